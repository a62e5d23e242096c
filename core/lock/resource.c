/* Asks for, settles, gives back, renews and proves locks of named resources.  It runs the
 * statements of a kind, and has none of its own. */
#include "lock/resource.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "client/caller.h"

#include <string.h>

#define ACTOR_MAX 63

/* ------------------------------------------------------------ what the caller says -- */

tl_status resource_check_times(int64_t lease_ms, int64_t max_hold_ms)
{
    if (lease_ms < 0 || lease_ms > TL_HOLD_MAX_MS)
        return error_set(TL_INVALID,
                         "lease_ms is %lld; it must be 0 (renewed by the "
                         "session) to %lld",
                         (long long)lease_ms, (long long)TL_HOLD_MAX_MS);
    if (max_hold_ms < 0 || max_hold_ms > TL_HOLD_MAX_MS)
        return error_set(TL_INVALID, "max_hold_ms is %lld; it must be 1 to %lld",
                         (long long)max_hold_ms, (long long)TL_HOLD_MAX_MS);
    if (max_hold_ms == 0 && lease_ms == 0)
        return error_set(TL_INVALID, "max_hold_ms is missing: a lock without an end could "
                                     "never be recovered");
    if (max_hold_ms != 0 && lease_ms > max_hold_ms)
        return error_set(TL_INVALID, "lease_ms is longer than max_hold_ms");
    return TL_OK;
}

tl_status resource_check_texts(const char *remark, const char *actor)
{
    tl_status status;

    if (remark != NULL && strlen(remark) > TL_REMARK_MAX)
        return error_set(TL_INVALID, "the remark has more than %d bytes", TL_REMARK_MAX);
    if (actor != NULL && strlen(actor) > ACTOR_MAX)
        return error_set(TL_INVALID, "the actor's name has more than %d bytes", ACTOR_MAX);
    status = text_check_utf8("remark", remark);
    return status == TL_OK ? text_check_utf8("actor", actor) : status;
}

tl_status resource_check_lease(int64_t lease_ms)
{
    if (lease_ms > 0 && lease_ms <= TL_HOLD_MAX_MS)
        return TL_OK;
    return error_set(TL_INVALID, "lease_ms is %lld; it must be 1 to %lld", (long long)lease_ms,
                     (long long)TL_HOLD_MAX_MS);
}

/* -------------------------------------------------------------------------- asking -- */

void resource_begin_ask(lock_handle *h)
{
    if (h->state != LOCK_ASK_UNKNOWN)
        handle_become(h, LOCK_NEW); /* whatever it held before is over, or lost */
    handle_begin(h, h->state != LOCK_ASK_UNKNOWN);
}

/* Reads one name's row for an ask whose answer was lost: whether the ask was committed, and is
 * still worth anything. */
static db_answer read_one(lock_ask *a, db *connection, size_t i, int *committed)
{
    const resource_method *method = a->lock->method->resource;
    db_result result = DB_RESULT_INIT;
    db_answer answer = method->now(a, connection, i, &result);

    if (answer == DB_DONE && result.rows == 1 && db_get_int(&result, 0, 0)) {
        *committed = 1;
        a->fences[i] = db_get_uint(&result, 0, 2);
        a->offer.hold_left_ms = a->offer.left_ms = db_get_int(&result, 0, 3);
        if (!db_is_null(&result, 0, 4) && db_get_int(&result, 0, 4) < a->offer.left_ms)
            a->offer.left_ms = db_get_int(&result, 0, 4);
        if (a->offer.left_ms <= 0)
            a->taken = 0;
    } else if (answer == DB_DONE) {
        int seen = 0;

        a->taken = 0;
        a->refused = i;
        answer = method->seen(a, connection, i, &seen);
        *committed |= seen;
    }
    db_result_free(&result);
    return answer;
}

db_answer resource_read_ask(task *t, db *connection)
{
    lock_ask *a = t->context;
    db_answer answer = DB_DONE;
    int committed = 0;

    a->taken = a->claims;
    a->offer.before_ms = clock_boottime_ms();
    for (size_t i = 0; i < a->lock->grant->count && answer == DB_DONE; i++)
        answer = read_one(a, connection, i, &committed);
    /* Elsewhere others may end the session. */
    if (task_check_server(db_server_of(connection), t->name) != TL_OK ||
        (t->life != NULL && !life_is_at(t->life, db_server_of(connection))))
        a->taken = 0;
    if (answer == DB_DONE && committed)
        t->verdict = VERDICT_APPLIED;
    return answer;
}

/* The late check.  A hold whose time is over still counts until somebody else takes it; one under a
 * session that may be dead does not. */
tl_status resource_look(lock_handle *h, void *ask, lock_offer *offer, int *mine)
{
    lock_ask *a = ask;
    db_result result = DB_RESULT_INIT;
    db *connection = NULL;
    tl_status status =
        pool_get(h->client->connections, POOL_QUICK, h->client->config.pool_wait_ms, &connection);

    if (status == TL_OK)
        status = task_check_server(db_server_of(connection), "lock");
    *mine = !offer->by_session || life_left_ms(h->life) > 0;
    for (size_t i = 0; i < h->grant->count && status == TL_OK && *mine; i++) {
        db_answer answer = h->method->resource->now(a, connection, i, &result);

        if (answer != DB_DONE)
            status = db_error_status(connection, answer, "reading the row");
        else
            *mine = result.rows == 1 && db_get_int(&result, 0, 0) != 0;
        a->refused = i;
    }
    db_result_free(&result);
    pool_put(h->client->connections, connection);
    return status;
}

void resource_give_back(lock_handle *h, const void *ask)
{
    memcpy(h->grant->token, h->next_token, LOCK_TOKEN);
    handle_become(h, LOCK_HELD);
    h->method->resource->give_back(h, ask);
    handle_forget(h);
}

tl_status resource_gone(lock_handle *h, void *ask)
{
    const lock_ask *a = ask;

    resource_give_back(h, ask);
    h->refused = a->refused;
    return TL_BUSY;
}

static tl_status refused(lock_handle *h, const lock_ask *a, int settled)
{
    if (h->method->resource->refused != NULL)
        h->method->resource->refused(h, a, settled);
    h->refused = a->refused;
    handle_become(h, LOCK_NEW);
    return TL_BUSY;
}

static tl_status in_doubt(lock_handle *h, const lock_ask *a, const task *t)
{
    if (h->method->in_doubt != NULL)
        h->method->in_doubt(h, a);
    handle_unknown(h, LOCK_ASK_UNKNOWN, &t->doubt);
    return TL_UNKNOWN;
}

static tl_status failed(const task *t)
{
    return t->status != TL_OK ? t->status : TL_INTERNAL;
}

tl_status resource_ask_once(lock_handle *h, lock_ask *a)
{
    task t = {.kind = &h->method->resource->ask,
              .name = "lock",
              .context = a,
              .asks = 1,
              .life = h->life,
              .doubt = h->doubt};

    a->offer.before_ms = clock_boottime_ms();
    task_run(h->client->engine, &t, h->client->config.pool_wait_ms);
    if (t.verdict == VERDICT_APPLIED && !a->taken)
        return refused(h, a, t.settled);
    if (t.verdict == VERDICT_APPLIED) {
        a->offer.fence = a->fences[0];
        return lock_take(h, a, &a->offer);
    }
    if (t.verdict == VERDICT_UNKNOWN)
        return in_doubt(h, a, &t);
    handle_become(h, LOCK_NEW);
    h->refused = 0;
    /* A process that was stopped within its ask holds the row, until the server ends that
     * transaction. */
    if (t.verdict == VERDICT_DECIDING || (a->held_up && t.status == TL_TRY_AGAIN))
        return TL_BUSY;
    return failed(&t);
}

tl_status resource_answer(lock_handle *h, tl_status status, int64_t wait_ms)
{
    if (status != TL_BUSY && status != TL_TIMEOUT)
        return status;
    return lock_refused(h, wait_ms > 0 ? TL_TIMEOUT : TL_BUSY);
}

/* ------------------------------------------------------------------------- holding -- */

tl_status resource_check_certain(const lock_handle *h)
{
    if (h->state != LOCK_HELD)
        return error_set(TL_WRONG_STATE, "the lock is being unlocked");
    if (grant_left_ms(h->grant) == 0)
        return error_set(TL_LOST, "the time of this lock is over");
    return TL_OK;
}

static tl_status released(lock_handle *h, int was_held)
{
    const char *resource = h->grant->names[0];
    int several = h->grant->count > 1;

    lock_wake(h);
    if (was_held) {
        handle_become(h, LOCK_OVER);
        client_add(&h->client->counters.finishes, 1);
        log_line(&h->client->logger, TL_INFO, NULL, h->grant->fence, "%s%s unlocked", resource,
                 several ? " and others" : "");
        return TL_OK;
    }
    handle_become(h, LOCK_LOST);
    client_add(&h->client->counters.lost, 1);
    log_line(&h->client->logger, TL_WARNING, NULL, h->grant->fence,
             "the lock of %s%s was lost before it was unlocked", resource,
             several ? " or others" : "");
    return error_set(TL_LOST, "%s", h->method->resource->lost_at_release);
}

tl_status resource_release(lock_handle *h, lock_change *change, int64_t budget_ms)
{
    task t = {.kind = &h->method->resource->release,
              .name = "unlock",
              .context = change,
              .doubt = h->doubt};

    task_run(h->client->engine, &t, budget_ms);
    if (t.verdict == VERDICT_APPLIED)
        return released(h, change->changed == h->grant->count);
    if (t.verdict == VERDICT_UNKNOWN) {
        handle_unknown(h, LOCK_END_UNKNOWN, &t.doubt);
        return TL_UNKNOWN;
    }
    handle_become(h, LOCK_HELD);
    return failed(&t);
}

tl_status resource_change(lock_handle *h, lock_change *change, const char *name,
                          const task_kind *kind, doubt *left)
{
    task t = {.kind = kind, .name = name, .context = change, .doubt = *left};

    task_run(h->client->engine, &t, h->client->config.pool_wait_ms);
    *left = t.doubt;
    if (t.verdict == VERDICT_UNKNOWN)
        return TL_UNKNOWN;
    if (t.verdict != VERDICT_APPLIED)
        return failed(&t);
    if (change->changed != h->grant->count)
        return error_set(TL_LOST, "%s", h->method->resource->lost_at_change);
    return TL_OK;
}

/* A renewal that may have happened may have ended the session's renewal, or shortened a longer
 * lease.  Only what is certain either way is left. */
void grant_renew(lock_grant *grant, int64_t until_ms, int doubtful)
{
    if (!doubtful)
        grant->by_session = 0;
    if (!doubtful || until_ms < grant->until_ms)
        grant->until_ms = until_ms;
    if (grant->hold_until_ms < grant->until_ms)
        grant->until_ms = grant->hold_until_ms;
}

tl_status resource_prove(lock_handle *h, struct st_mysql *connection, unsigned flags,
                         tl_status (*how)(lock_handle *h, db *borrowed))
{
    db *borrowed = NULL;
    tl_status status =
        caller_open(&borrowed, connection, (flags & TL_GUARD_ANY_IDLE) != 0, h->life);

    /* The life is known here; the session's row is not read on the caller's connection. */
    if (status == TL_OK && grant_left_ms(h->grant) == 0)
        status = error_set(TL_ROLL_BACK, "roll back: the lock of %s is not certain any more",
                           h->grant->names[0]);
    if (status == TL_OK)
        status = how(h, borrowed);
    db_close(borrowed);
    return status;
}
