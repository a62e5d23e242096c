/* Asks, settles an ask whose answer was lost, and checks a grant whose answer came late.  It runs
 * the statements of a kind, and has none of its own. */
#include "lease/lease.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/thread_context.h"

#include <string.h>

void lease_begin_ask(lease *l, lease_asking *a)
{
    if (l->base.state != LOCK_ASK_UNKNOWN)
        handle_become(&l->base, LOCK_NEW); /* whatever it held before is over, or lost */
    handle_begin(&l->base, l->base.state != LOCK_ASK_UNKNOWN);
    a->lease = l;
    lease_fill_step(l, &a->step);
    a->offer.by_session = a->step.by_session;
    a->offer.left_ms = a->step.over_ms;
    a->offer.hold_left_ms = a->step.max_hold_ms;
}

static const lease_statements *statements_of(const lease_asking *a)
{
    return a->lease->base.method->lease->statements;
}

/* Reads one name's row for an ask whose answer was lost: whether the ask was committed, and is
 * still worth anything. */
static db_answer read_one(lease_asking *a, db *connection, size_t i, int *committed)
{
    const char *name = a->step.names[i];
    RESULT result = DB_RESULT_INIT;
    int seen = 0;
    db_answer answer = statements_of(a)->now(connection, name, a->step.slot, a->token, &result);

    if (answer == DB_DONE && result.rows == 1 && db_get_int(&result, 0, 0)) {
        *committed = 1;
        a->fences[i] = db_get_uint(&result, 0, 2);
        a->offer.hold_left_ms = a->offer.left_ms = db_get_int(&result, 0, 3);
        if (!db_is_null(&result, 0, 4) && db_get_int(&result, 0, 4) < a->offer.left_ms)
            a->offer.left_ms = db_get_int(&result, 0, 4);
        if (a->offer.left_ms <= 0)
            a->taken = 0;
    } else if (answer == DB_DONE) {
        a->taken = 0;
        a->refused = i;
        answer = statements_of(a)->seen(connection, name, a->step.slot, a->token, &seen);
        *committed |= seen;
    }
    return answer;
}

db_answer lease_read_ask(task *t, db *connection)
{
    lease_asking *a = t->context;
    db_answer answer = DB_DONE;
    int committed = 0;

    a->taken = a->claims && a->token != NULL;
    a->offer.before_ms = clock_boottime_ms();
    for (size_t i = 0; i < a->step.count && a->token != NULL && answer == DB_DONE; i++)
        answer = read_one(a, connection, i, &committed);
    /* Elsewhere others may end the session. */
    if (task_check_server(db_server_of(connection), t->name) != TL_OK ||
        (t->life != NULL && !life_is_at(t->life, db_server_of(connection))))
        a->taken = 0;
    if (answer == DB_DONE && committed)
        t->verdict = VERDICT_APPLIED;
    return answer;
}

/* A mutex that was not kept is given back, and that leaves a mark.  A holder's row that is worth
 * nothing any more is only left to others, and was written all the same. */
void lease_mark_ask(const task *t, commit_mark *to)
{
    const lease_asking *a = t->context;
    const lease_kind *kind = a->lease->base.method->lease;

    if (a->token == NULL || (kind->mark == MARK_RESOURCE && a->claims && !a->taken))
        to->kind = MARK_NONE;
    else
        lease_mark(kind, &a->step, a->token, to);
}

/* The late check.  A hold whose time is over still counts until somebody else takes it; one under a
 * session that may be dead does not. */
tl_status lease_look(lock_handle *h, void *asking, lock_offer *offer, int *mine)
{
    lease_asking *a = asking;
    RESULT result = DB_RESULT_INIT;
    db *connection = NULL;
    tl_status status =
        pool_get(h->client->connections, POOL_QUICK, h->client->config.pool_wait_ms, &connection);

    if (status == TL_OK)
        status = task_check_server(db_server_of(connection), "lock");
    *mine = !offer->by_session || life_left_ms(h->life) > 0;
    for (size_t i = 0; i < a->step.count && status == TL_OK && *mine; i++) {
        db_answer answer =
            statements_of(a)->now(connection, a->step.names[i], a->step.slot, a->token, &result);

        if (answer != DB_DONE)
            status = db_error_status(connection, answer, "reading the row");
        else
            *mine = result.rows == 1 && db_get_int(&result, 0, 0) != 0;
        a->refused = i;
    }
    pool_put(h->client->connections, connection);
    return status;
}

/* Beyond the end of a wait: else nobody's lock would be left. */
void lease_give_back(lease *l, const lease_asking *a)
{
    const int64_t own_ms = thread_context_await_until(0);

    memcpy(l->base.grant->token, l->base.next_token, LOCK_TOKEN);
    l->slot = a->step.slot;
    handle_become(&l->base, LOCK_HELD);
    (void)lease_release(l, l->base.client->config.pool_wait_ms);
    (void)thread_context_await_until(own_ms);
    handle_forget(&l->base);
}

tl_status lease_gone(lock_handle *h, void *asking)
{
    const lease_asking *a = asking;

    lease_give_back(a->lease, a);
    h->refused = a->refused;
    return TL_BUSY;
}

tl_status lease_granted(lock_handle *handle, void *asking)
{
    const lease_asking *a = asking;
    lease *l = a->lease;
    hold *h = l->hold;
    tl_status status;

    (void)handle;
    memcpy(h->fences, a->fences, a->step.count * sizeof *h->fences);
    h->depth = l->depth = 1;
    l->slot = a->step.slot;
    l->base.method->lease->granted(l, a);
    status = holds_add(l->holds, h);
    if (status == TL_OK)
        return TL_GRANTED;
    /* The caller asked for a watched lock. */
    (void)lease_unlock(l);
    return status;
}

static tl_status refused(lease *l, const lease_asking *a, int settled)
{
    l->base.method->lease->refused(l, a, settled);
    l->base.refused = a->refused;
    handle_become(&l->base, LOCK_NEW);
    return TL_BUSY;
}

static tl_status in_doubt(lock_handle *h, const lease_asking *a, const task *t)
{
    if (h->method->in_doubt != NULL)
        h->method->in_doubt(h, a);
    handle_unknown(h, LOCK_ASK_UNKNOWN, &t->doubt);
    return TL_UNKNOWN;
}

tl_status lease_run_ask(lease_asking *a)
{
    lock_handle *h = &a->lease->base;
    task t = {.kind = &h->method->lease->ask,
              .name = "lock",
              .context = a,
              .asks = 1,
              .life = h->life,
              .doubt = h->doubt};

    a->offer.before_ms = clock_boottime_ms();
    task_run(h->client->engine, &t, h->client->config.pool_wait_ms);
    if (t.verdict == VERDICT_APPLIED && !a->taken)
        return refused(a->lease, a, t.settled);
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
    return t.status != TL_OK ? t.status : TL_INTERNAL;
}

static tl_status ask_and_wait(void *context)
{
    lease *l = context;

    return l->base.method->lease->ask_once(l, 1);
}

tl_status lease_ask(lease *l, int64_t wait_ms)
{
    TRY(lease_own_hold(l));
    client_add(&l->base.client->counters.asks, 1);
    return wait_ms > 0 ? lock_wait(&l->base, wait_ms, ask_and_wait, l)
                       : l->base.method->lease->ask_once(l, 0);
}

tl_status lease_answer(lease *l, tl_status status, int64_t wait_ms)
{
    if (status != TL_BUSY && status != TL_TIMEOUT)
        return status;
    return lock_refused(&l->base, wait_ms > 0 ? TL_TIMEOUT : TL_BUSY);
}
