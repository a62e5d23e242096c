/*
 * Filing what somebody knows.  The sync row is locked first; what follows from the
 * evidence is in the same transaction, by the trigger on it (sql/schema/0011_operators.sql):
 *
 *   the row is P and of the same epoch   success is remembered on the row, so that no
 *                                        failure can be written; a waiting or parked lane
 *                                        becomes due at once
 *   success, and the row is F, or of a   the conflict is set: nothing is armed, nothing is
 *   later epoch; or an F row's payment   reclaimed until operators have decided
 *   is pending now (final is set)
 */
#include "trade_lock/lock.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "base/thread_context.h"
#include "store/store.h"

#include <string.h>

struct filing {
    tl_client *client;
    tl_evidence evidence; /* with epoch and channel key filled in */
    char channel_key[TL_CHANNEL_KEY_MAX + 1];
    db *connection;
    int found, conflict;
};

static int says_success(const tl_evidence *e)
{
    return strcmp(e->outcome, "SUCCEEDED") == 0;
}

/* The channel was asked just now, and has a payment that the row says can never be. */
static int says_alive(const tl_evidence *e)
{
    return e->final && strcmp(e->outcome, "PENDING") == 0;
}

/* Whether the row, locked now, is contradicted: the trigger marks it so. */
static int contradicts(const tl_evidence *e, const db_result *row)
{
    int failed = db_get_text(row, 0, 0)[0] == 'F';
    int own_key = e->channel_key == NULL || db_is_null(row, 0, 2) ||
                  strcmp(e->channel_key, db_get_text(row, 0, 2)) == 0;
    int own = e->epoch == (uint32_t)db_get_uint(row, 0, 1) && own_key;

    return (says_success(e) && (!own || failed)) || (says_alive(e) && failed);
}

static db_answer file_statements(struct filing *f)
{
    db_result row = DB_RESULT_INIT;
    db_answer answer = db_begin(f->connection);

    if (answer == DB_DONE)
        answer = store_evidence_lock(f->connection, &f->evidence.key, &row);
    f->found = answer == DB_DONE && row.rows == 1;
    if (f->found) {
        if (f->evidence.epoch == 0)
            f->evidence.epoch = (uint32_t)db_get_uint(&row, 0, 1);
        if (f->evidence.channel_key == NULL && !db_is_null(&row, 0, 2) &&
            f->evidence.epoch == db_get_uint(&row, 0, 1)) {
            text_copy(f->channel_key, sizeof f->channel_key, db_get_text(&row, 0, 2));
            f->evidence.channel_key = f->channel_key;
        }
        f->conflict = contradicts(&f->evidence, &row);
        answer = store_evidence_insert(f->connection, &f->evidence, tl_thread_uuid());
        if (answer == DB_DONE)
            answer = db_commit(f->connection);
    }
    db_result_free(&row);
    return answer;
}

static tl_status file_once(struct filing *f, int64_t deadline_ms)
{
    char lost[RANDOM_UUID] = "";
    db_answer answer;
    tl_status status = pool_get(f->client->connections, POOL_BUSINESS,
                                f->client->config.pool_wait_ms, &f->connection);

    if (status != TL_OK)
        return status;
    answer = file_statements(f);
    if (answer != DB_DONE)
        status = db_error_status(f->connection, answer, "filing evidence");
    if (answer == DB_UNANSWERED || db_lost_in_transaction(f->connection, answer))
        text_copy(lost, sizeof lost, db_name(f->connection));
    if (db_in_transaction(f->connection))
        (void)db_rollback(f->connection);
    pool_put(f->client->connections, f->connection);
    /* What is left behind may hold the row, or come late, after it was closed again. */
    if (lost[0] != '\0')
        (void)transition_end(f->client->transitions, lost, clock_left_ms(deadline_ms));
    return status;
}

static tl_status check_evidence(const tl_client *client, const tl_evidence *e)
{
    static const char *const outcomes[] = {"SUCCEEDED", "FAILED",  "DECLINED", "ACCEPTED",
                                           "PENDING",   "UNKNOWN", "NOT_SENT"};
    tl_status status = client_check(client);

    if (status != TL_OK)
        return status;
    if (e == NULL || e->version != TL_EVIDENCE_VERSION)
        return error_set(TL_INVALID, "evidence is NULL or its version is not set");
    status = key_check(&e->key);
    if (status != TL_OK)
        return status;
    if (e->source == NULL || e->source[0] == '\0' || strlen(e->source) > 63)
        return error_set(TL_INVALID, "evidence names its source, in at most 63 bytes");
    if ((e->remark != NULL && strlen(e->remark) > TL_REMARK_MAX) ||
        (e->channel_ref != NULL && strlen(e->channel_ref) > TL_REF_MAX) ||
        (e->channel_key != NULL && strlen(e->channel_key) > TL_CHANNEL_KEY_MAX))
        return error_set(TL_INVALID, "remark, reference or channel key is too long");
    if (text_check_utf8("source", e->source) != TL_OK ||
        text_check_utf8("remark", e->remark) != TL_OK ||
        text_check_utf8("channel_ref", e->channel_ref) != TL_OK)
        return TL_INVALID;
    if (e->channel_key != NULL &&
        text_check_name("channel key", e->channel_key, TL_CHANNEL_KEY_MAX) != TL_OK)
        return TL_INVALID;
    for (size_t i = 0; e->outcome != NULL && i < sizeof outcomes / sizeof *outcomes; i++)
        if (strcmp(e->outcome, outcomes[i]) == 0)
            return TL_OK;
    return error_set(TL_INVALID,
                     "outcome '%s' is not one of SUCCEEDED, FAILED, DECLINED, "
                     "ACCEPTED, PENDING, UNKNOWN, NOT_SENT",
                     e->outcome != NULL ? e->outcome : "");
}

tl_status tl_evidence_add(tl_client *client, const tl_evidence *evidence)
{
    int64_t deadline_ms;
    tl_status status;

    error_clear();
    status = check_evidence(client, evidence);
    if (status != TL_OK)
        return status;
    deadline_ms = clock_deadline(client->config.commit_ms);
    for (;;) {
        struct filing f = {.client = client, .evidence = *evidence};

        status = file_once(&f, deadline_ms);
        /* Filing the same thing twice does no harm, so a lost answer is repeated too. */
        if ((status == TL_TRY_AGAIN || status == TL_UNKNOWN || status == TL_UNREACHABLE ||
             status == TL_OVERLOADED) &&
            clock_left_ms(deadline_ms) > 0) {
            client_repeats(client);
            clock_sleep_until_ms(clock_deadline(random_jitter_ms(20, 100)));
            continue;
        }
        if (status != TL_OK)
            return status;
        if (!f.found)
            return error_set(TL_NOT_FOUND, "there is no such trade");
        if (!f.conflict)
            return error_over(TL_OK);
        log_line(&client->logger, TL_ALARM, &evidence->key, 0,
                 "conflict: %s says of epoch %u and channel key %s what the row denies",
                 evidence->source, f.evidence.epoch,
                 f.evidence.channel_key != NULL ? f.evidence.channel_key : "(none)");
        return error_set(TL_IN_CONFLICT,
                         "filed; it contradicts the row, and two operators "
                         "must decide");
    }
}

/* What an ending of a fenced-out holder says, as evidence. */
static const char *evidence_outcome(const tl_ending *ending)
{
    switch (ending->outcome) {
    case TL_OUTCOME_SUCCESS:
        return "SUCCEEDED";
    case TL_OUTCOME_FAILURE:
        return ending->proof == TL_PROOF_DECLINED ? "DECLINED" : "FAILED";
    case TL_OUTCOME_ACCEPTED:
        return "ACCEPTED";
    case TL_OUTCOME_PENDING:
        return "PENDING";
    case TL_OUTCOME_NOT_SENT:
        return "NOT_SENT";
    default:
        return "UNKNOWN";
    }
}

void lock_file_evidence(tl_lock *lock, const tl_ending *ending)
{
    tl_evidence evidence = {
        .version = TL_EVIDENCE_VERSION,
        .key = lock_key(lock),
        .epoch = lock->epoch,
        .channel_key = lock->channel_key[0] != '\0' ? lock->channel_key : NULL,
        .outcome = evidence_outcome(ending),
        .channel_ref = ending->channel_ref,
        .source = "fenced-out holder",
        .remark = ending->remark,
    };
    tl_key key = evidence.key;
    tl_status status;

    if (lock_is_mutex(lock))
        return; /* a mutex has no money to know about */
    status = tl_evidence_add(lock->client, &evidence);
    if (status != TL_OK && status != TL_IN_CONFLICT)
        log_line(&lock->client->logger, TL_ALARM, &key, lock->fence,
                 "the evidence '%s' of a fenced-out holder could not be filed: %s",
                 evidence.outcome, tl_error_message());
}
