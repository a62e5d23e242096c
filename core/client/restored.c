/* Finds out whether the database may have lost commits, and writes that down.  Touches tl_schema,
 * and what the client remembers of it. */
#include "client/restored.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "client/client.h"
#include "client/schema.h"
#include "store/server.h"

#include <tradelock/lane.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Shorter than any age at which a session's row may be purged, which is a day. */
#define WITNESS_MOST_MS (INT64_C(12) * 3600 * 1000)

void restored_confirmed(void *context, const char *session_no, uint64_t beat, int64_t before_ms)
{
    restored_witness *w = &((struct tl_client *)context)->witness;

    pthread_mutex_lock(&w->mutex);
    /* A beat that does not rise does not become the witness, so the next look finds the restore. */
    if (strcmp(w->session, session_no) != 0 || beat > w->beat) {
        text_copy(w->session, sizeof w->session, session_no);
        w->beat = beat;
        w->confirmed_ms = before_ms;
    }
    pthread_mutex_unlock(&w->mutex);
}

/* Copies the witness before the database is asked, since a beat may be confirmed meanwhile.  A
 * witness that is too old says nothing. */
static void call_witness(struct tl_client *client, restored_witness *to, int64_t *age_ms)
{
    restored_witness *w = &client->witness;

    pthread_mutex_lock(&w->mutex);
    to->looks = ++w->looks;
    text_copy(to->session, sizeof to->session, w->session);
    to->beat = w->beat;
    to->confirmed_ms = w->confirmed_ms;
    pthread_mutex_unlock(&w->mutex);
    *age_ms = clock_boottime_ms() - to->confirmed_ms;
    if (*age_ms > WITNESS_MOST_MS)
        to->session[0] = '\0';
}

/* Forgets the witness once it is written down: it belongs to the time before. */
static void dismiss_witness(struct tl_client *client, const restored_witness *called)
{
    restored_witness *w = &client->witness;

    pthread_mutex_lock(&w->mutex);
    if (w->beat == called->beat && strcmp(w->session, called->session) == 0)
        w->session[0] = '\0';
    pthread_mutex_unlock(&w->mutex);
}

/* Whether this database has lost a beat that it confirmed, and no restore was accepted since; *why
 * says which. */
static int witness_speaks(const restored_witness *w, const db_result *seen, char *why, size_t space)
{
    uint64_t beat = db_get_uint(seen, 0, RESTORED_BEAT);

    if (w->session[0] == '\0' || db_get_int(seen, 0, RESTORED_ACCEPTED_SINCE))
        return 0;
    if (db_is_null(seen, 0, RESTORED_BEAT))
        snprintf(why, space, "the row of session %s is gone", w->session);
    else if (beat < w->beat)
        snprintf(why, space, "session %s has beat %" PRIu64 ", and %" PRIu64 " had been confirmed",
                 w->session, beat, w->beat);
    else
        return 0;
    return 1;
}

static tl_status write_down(struct tl_client *client, db *connection, const db_result *seen,
                            const char *why)
{
    db_answer answer =
        store_restore_found(connection, db_get_uint(seen, 0, RESTORED_ACCEPTED), why);
    tl_status status;

    if (answer == DB_DONE)
        return TL_OK;
    status = db_error_status(connection, answer, "writing down that it was restored");
    log_line(&client->logger, TL_WARNING, NULL, 0, "%s", tl_error_message());
    return status;
}

static void take(struct tl_client *client, int now, const restored_witness *called)
{
    restored_witness *w = &client->witness;
    int was = now;

    pthread_mutex_lock(&w->mutex);
    if (now)
        w->found_at = w->looks;
    if (now || called->looks > w->found_at)
        was = atomic_exchange(&client->restored, now);
    pthread_mutex_unlock(&w->mutex);
    if (was == now || !now)
        return;
    /* An ending that was confirmed may be missing here. */
    client_lose_track(client);
    log_line(&client->logger, TL_ALARM, NULL, 0,
             "this server is not the one that was accepted, or was restored: nothing is "
             "granted or failed until operators accept it");
}

/* Judges what was seen.  Anybody can see that the server is another one, written down or not; what
 * the witness says, nobody else knows. */
static tl_status judge(struct tl_client *client, db *connection, const db_result *seen,
                       const restored_witness *witness)
{
    char why[160] = "it is another server than the one that was accepted";
    int now = db_get_int(seen, 0, RESTORED_NOW) != 0;
    tl_status status = TL_OK;

    atomic_store(&client->accepted_us, db_get_int(seen, 0, RESTORED_ACCEPTED_US));
    if (witness_speaks(witness, seen, why, sizeof why)) {
        take(client, 1, witness);
        status = write_down(client, connection, seen, why);
        if (status == TL_OK)
            dismiss_witness(client, witness);
    } else if (now && !db_get_int(seen, 0, RESTORED_ON_RECORD)) {
        take(client, 1, witness);
        (void)write_down(client, connection, seen, why);
    } else {
        take(client, now, witness);
    }
    return status;
}

/* A database without the schema, or with an old one, has its own sentence. */
static tl_status cannot_look(db *connection, db_answer answer)
{
    schema_found found;
    char sentence[ERROR_MAX];
    tl_status status = db_read_status(connection, answer, "looking for a restore"), schema;

    if (answer != DB_ERROR)
        return status;
    text_copy(sentence, sizeof sentence, tl_error_message());
    if (schema_read(connection, &found) == TL_OK) {
        schema = schema_judge(&found);
        if (schema != TL_OK)
            return schema;
    }
    return error_set(status, "%s", sentence);
}

tl_status restored_look(struct tl_client *client, db *connection)
{
    db_result seen = DB_RESULT_INIT;
    restored_witness witness;
    int64_t age_ms;
    db_answer answer;
    tl_status status = TL_OK;

    call_witness(client, &witness, &age_ms);
    answer = store_server_restored(connection, witness.session[0] != '\0' ? witness.session : NULL,
                                   age_ms, &seen);
    if (answer != DB_DONE)
        status = cannot_look(connection, answer);
    else if (seen.rows != 1)
        status = error_set(TL_NO_SCHEMA, "the row of tl_schema is missing: run "
                                         "`tradelock migrate`");
    else
        status = judge(client, connection, &seen, &witness);
    db_result_free(&seen);
    return status;
}

void restored_look_again(struct tl_client *client)
{
    db *connection = NULL;

    /* If the look fails, the last result stands: the connection looked when it was made. */
    if (pool_get(client->connections, POOL_QUICK, client->config.beat_ms, &connection) == TL_OK)
        (void)restored_look(client, connection);
    pool_put(client->connections, connection);
}

int64_t tl_restore_accepted_us(const tl_client *client)
{
    return client_check(client) == TL_OK ? atomic_load(&client->accepted_us) : 0;
}

tl_status restored_check(const struct tl_client *client)
{
    if (!atomic_load(&client->restored))
        return TL_OK;
    return error_set(TL_ASK_CHANNEL,
                     "the server was restored or replaced, and payments may be missing "
                     "in it: ask the channel first; an operator accepts the server with "
                     "`tradelock restore accept`");
}

tl_status restored_check_resource(const struct tl_client *client)
{
    if (!atomic_load(&client->restored))
        return TL_OK;
    return error_set(TL_ASK_CHANNEL,
                     "the server was restored or replaced, and who holds what may be "
                     "missing in it: nothing is locked until an operator accepts the "
                     "server with `tradelock restore accept`");
}
