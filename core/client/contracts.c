/* Declares what channels are promised to do, for the first session and for each later one.  Touches
 * the database by its procedures alone. */
#include "client/contracts.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "client/client.h"
#include "store/bind.h"
#include "transition/task.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CONTRACT_SPACE 256
/* Somebody else may declare in between. */
#define TRIES 5

struct contract {
    struct contract *next;
    char channel[TL_CHANNEL_MAX + 1], op_code[TL_OP_MAX + 1], text[CONTRACT_SPACE];
};

void contracts_init(client_contracts *all)
{
    pthread_mutex_init(&all->mutex, NULL);
}

void contracts_end(client_contracts *all)
{
    while (all->list != NULL) {
        struct contract *next = all->list->next;

        memory_free(all->list);
        all->list = next;
    }
    pthread_mutex_destroy(&all->mutex);
}

/* ---------------------------------------------------------------------- as text -- */

#define CONTRACT_FORMAT(number)                                                                    \
    "idempotent=" number " window_ms=" number " replays_first_answer=" number " can_query=" number \
    " not_found_final=" number " cancel_final=" number " key_chars=" number " latency_ms=" number  \
    " grace_ms=" number
enum {
    IDEMPOTENT,
    WINDOW_MS,
    REPLAYS,
    CAN_QUERY,
    NOT_FOUND,
    CANCEL,
    KEY_CHARS,
    LATENCY,
    GRACE,
    PARTS
};

/* Each part as a number that is the greater the more is promised.  0: this is no contract. */
static int read_parts(const char *text, int64_t part[PARTS])
{
    const int found = sscanf(text, CONTRACT_FORMAT("%" SCNd64), &part[IDEMPOTENT], &part[WINDOW_MS],
                             &part[REPLAYS], &part[CAN_QUERY], &part[NOT_FOUND], &part[CANCEL],
                             &part[KEY_CHARS], &part[LATENCY], &part[GRACE]);

    if (part[IDEMPOTENT] != 0 && part[WINDOW_MS] == 0)
        part[WINDOW_MS] = INT64_MAX; /* for ever */
    part[LATENCY] = -part[LATENCY];
    part[GRACE] = -part[GRACE];
    return found == PARTS;
}

/* Whether `text` promises anything that `was` does not. */
static int promises_more(const char *text, const char *was)
{
    int64_t part[PARTS] = {0}, before[PARTS] = {0};

    if (!read_parts(text, part) || !read_parts(was, before))
        return 1;
    for (int i = 0; i < PARTS; i++)
        if (part[i] > before[i])
            return 1;
    return 0;
}

/* -------------------------------------------------------------------- declaring -- */

/* What the procedure said, if that is no "was". */
static tl_status judge(const struct contract *one, const char *said)
{
    if (strncmp(said, "lives ", 6) == 0)
        return error_set(TL_UNSAFE,
                         "channel %s for %s: %s lives and promises something else of it than this "
                         "program; all that live go by one contract, so end that one first",
                         one->channel, one->op_code, said + 6);
    if (strncmp(said, "sent ", 5) == 0)
        return error_set(TL_UNSAFE,
                         "channel %s for %s: this program promises more of it than the one that "
                         "sent what is in process still, such as %s: begin it when that has ended",
                         one->channel, one->op_code, said + 5);
    return said[0] == '\0' ? TL_OK
                           : error_set(TL_TRY_AGAIN,
                                       "channel %s for %s: its contract changes "
                                       "again and again",
                                       one->channel, one->op_code);
}

static tl_status declare(db *connection, const char *session_id, const struct contract *one)
{
    char said[512] = "";
    tl_status status = TL_OK;

    for (int i = 0; i < TRIES; i++) {
        const char *was = strncmp(said, "was ", 4) == 0 ? said + 4 : NULL;
        const int more = was != NULL && promises_more(one->text, was);
        RESULT r = DB_RESULT_INIT;
        db_answer answer =
            SQL_RUN(connection, NULL, channel_declare, .channel = db_text(one->channel),
                    .op_code = db_text(one->op_code), .session_id = db_text(session_id),
                    .was = db_text(was), .contract = db_text(one->text), .more = db_int(more));

        answer = store_called(connection, answer, &sql_channel_called, &r);
        status = db_read_status(connection, answer, "declaring what a channel promises");
        if (status == TL_OK)
            text_copy(said, sizeof said, db_get_text(&r, 0, 0));
        /* Of two that declare at once the server may undo one, which then waits for the other.  A
         * wait that was too long is not waited for again: no beat confirms the session yet. */
        if (status == TL_TRY_AGAIN && db_errno(connection) != ERROR_LOCK_WAIT)
            continue;
        if (status != TL_OK || strncmp(said, "was ", 4) != 0)
            break;
    }
    return status == TL_OK ? judge(one, said) : status;
}

static tl_status declare_site(struct tl_client *client, db *connection)
{
    RESULT r = DB_RESULT_INIT;
    db_answer answer = SQL_RUN(connection, NULL, site_is, .site = db_text(client->config.site));
    tl_status status;

    answer = store_called(connection, answer, &sql_channel_called, &r);
    status = db_read_status(connection, answer, "saying of which site this process is");

    if (status == TL_OK && strcmp(db_get_text(&r, 0, 0), client->config.site) != 0)
        status = error_set(TL_BAD_CONFIG,
                           "the settings say site = %s, and this installation's is %s: the keys of "
                           "one payment would be two",
                           client->config.site, db_get_text(&r, 0, 0));
    return status;
}

tl_status contracts_declare(struct tl_client *client, db *connection, const char *session_id)
{
    tl_status status = declare_site(client, connection);

    pthread_mutex_lock(&client->contracts.mutex);
    for (const struct contract *one = client->contracts.list; one != NULL && status == TL_OK;
         one = one->next)
        status = declare(connection, session_id, one);
    pthread_mutex_unlock(&client->contracts.mutex);
    return status;
}

/* From here on each new session says it, too. */
static struct contract *keep(struct tl_client *client, const char *channel, const char *op_code,
                             const tl_promises *p)
{
    struct contract *one = memory_new(sizeof *one);

    if (one == NULL)
        return NULL;
    text_copy(one->channel, sizeof one->channel, channel);
    text_copy(one->op_code, sizeof one->op_code, op_code);
    snprintf(one->text, sizeof one->text, CONTRACT_FORMAT("%" PRId64),
             (int64_t)(p->idempotent != 0), p->window_ms, (int64_t)(p->replays_first_answer != 0),
             (int64_t)(p->can_query != 0), (int64_t)(p->not_found_final != 0),
             (int64_t)(p->cancel_final != 0), (int64_t)p->key_chars, p->latency_ms, p->grace_ms);
    pthread_mutex_lock(&client->contracts.mutex);
    one->next = client->contracts.list;
    client->contracts.list = one;
    pthread_mutex_unlock(&client->contracts.mutex);
    return one;
}

/* Of a channel and operation the one that holds stays: this, or what was declared before it. */
static void settle(struct tl_client *client, struct contract *one, int holds)
{
    struct contract **link = &client->contracts.list;

    pthread_mutex_lock(&client->contracts.mutex);
    while (*link != NULL) {
        struct contract *at = *link;

        if (holds ? at != one && strcmp(at->channel, one->channel) == 0 &&
                        strcmp(at->op_code, one->op_code) == 0
                  : at == one) {
            *link = at->next;
            if (at != one)
                memory_free(at);
        } else {
            link = &at->next;
        }
    }
    pthread_mutex_unlock(&client->contracts.mutex);
    if (!holds)
        memory_free(one);
}

static tl_status check_names(const char *channel, const char *op_code)
{
    if (channel != NULL && strcmp(channel, TL_CHANNEL_ALL) == 0)
        return error_set(TL_INVALID,
                         "no channel is called " TL_CHANNEL_ALL ", which stands for all of them");
    if (channel != NULL && channel[0] != '\0' && strlen(channel) <= TL_CHANNEL_MAX &&
        op_code != NULL && op_code[0] != '\0' && strlen(op_code) <= TL_OP_MAX)
        return TL_OK;
    return error_set(TL_INVALID, "a channel has a name of at most %d bytes, and an operation",
                     TL_CHANNEL_MAX);
}

/* On a connection of the pool that waits: an operator may be deciding about the channel. */
static tl_status add(struct tl_client *client, const char *channel, const char *op_code,
                     const struct contract *one)
{
    db *connection = NULL;
    tl_status status;

    TRY(pool_get(client->connections, POOL_BUSINESS, client->config.pool_wait_ms, &connection));
    if (one != NULL)
        status = declare(connection, tl_client_session(client), one);
    else
        status = db_read_status(connection,
                                SQL_RUN(connection, NULL, channel_known,
                                        .channel = db_text(channel), .op_code = db_text(op_code)),
                                "making the channel known");
    pool_put(client->connections, connection);
    return status;
}

tl_status tl_channel_add(tl_client *client, const char *channel, const char *op_code,
                         const tl_promises *promises)
{
    struct contract *one = NULL;
    tl_status status;

    error_clear();
    status = client_check(client);
    if (status == TL_OK)
        status = check_names(channel, op_code);
    /* A client without a session looks, and writes nothing. */
    if (status != TL_OK || client->flags & TL_CLIENT_NO_SESSION)
        return status;
    if (promises != NULL && (one = keep(client, channel, op_code, promises)) == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for what a channel promises");
    status = add(client, channel, op_code, one);
    if (one != NULL)
        settle(client, one, status == TL_OK);
    return status;
}
