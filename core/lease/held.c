/* Steps of a holder, by the token of the grant: giving back, renewing and other changes, and the
 * proof in the caller's transaction.  Whoever frees the dead, or takes a lock over, must change the
 * row first. */
#include "lease/lease.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/thread_context.h"
#include "client/caller.h"

/* How long it is tried to give up what ends by itself. */
#define DROP_BUDGET_MS 200

static db_answer run_change(task *t, db *connection)
{
    lease_changing *c = t->context;
    const lease_step *s = &c->step;
    RESULT now = DB_RESULT_INIT;
    db_answer answer = c->statement(connection, s, &c->changed);

    c->rev = 0;
    if (answer == DB_DONE && c->changed > 0 && c->keeps_token)
        answer = c->kind->statements->now(connection, s->names[0], s->slot, s->held_token, &now);
    if (answer == DB_DONE && now.rows == 1)
        c->rev = db_get_uint(&now, 0, LEASE_NOW_REV);
    return answer;
}

/* It was one statement, so the first row stands for all. */
static void mark_change(const task *t, commit_mark *to)
{
    const lease_changing *c = t->context;

    if (c->changed == 0) {
        to->kind = MARK_NONE;
    } else if (c->keeps_token ? c->rev != 0 : c->changed == c->step.count) {
        lease_mark(c->kind, &c->step, c->keeps_token ? c->step.held_token : c->step.token, to);
        to->number = c->rev;
    }
}

/* --------------------------------------------------------------------- giving back -- */

static int take_row(lease_work *work)
{
    ((lease_changing *)work)->changed = work->row.changed ? 1 : 0;
    return 1;
}

/* Reads by its token how many rows a release freed.  It was one statement, so one row proves that
 * it was committed. */
static db_answer read_release(task *t, db *connection)
{
    lease_changing *c = t->context;
    const lease_statements *statements = c->kind->statements;
    const lease_step *s = &c->step;
    db_answer answer = DB_DONE;

    c->changed = 0;
    for (size_t i = 0; i < s->count && answer == DB_DONE; i++) {
        RESULT now = DB_RESULT_INIT;
        int mine;

        answer = statements->now(connection, s->names[i], s->slot, s->token, &now);
        mine = answer == DB_DONE && now.rows == 1 && db_get_int(&now, 0, 0);
        if (answer == DB_DONE && !mine)
            answer = statements->seen(connection, s->names[i], s->slot, s->token, &mine);
        c->changed += mine ? 1 : 0;
    }
    if (c->changed > 0)
        t->verdict = VERDICT_APPLIED;
    return answer;
}

static void begin_change(lease *l, lease_changing *c)
{
    c->kind = l->base.method->lease;
    lease_fill_step(l, &c->step);
}

static tl_status failed(const task *t)
{
    return t->status != TL_OK ? t->status : TL_INTERNAL;
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
    return error_set(TL_LOST, "%s", h->method->lease->lost_at_release);
}

tl_status lease_release(lease *l, int64_t budget_ms)
{
    static const task_kind releasing = {
        .run = run_change, .read = read_release, .mark = mark_change, .batch = lease_batch};
    lock_handle *h = &l->base;
    const lease_kind *kind = h->method->lease;
    lease_changing c = {.statement = kind->statements->release};
    task t = {.kind = &releasing, .name = "unlock", .context = &c};

    handle_begin(h, h->state != LOCK_END_UNKNOWN);
    t.doubt = h->doubt;
    begin_change(l, &c);
    c.step.word = "release";
    if (kind->shares)
        lease_share(&c.work, &c.step, 1, take_row);
    task_run(h->client->engine, &t, budget_ms);
    if (t.verdict == VERDICT_APPLIED)
        return released(h, c.changed == c.step.count);
    if (t.verdict == VERDICT_UNKNOWN) {
        handle_unknown(h, LOCK_END_UNKNOWN, &t.doubt);
        return TL_UNKNOWN;
    }
    handle_become(h, LOCK_HELD);
    return failed(&t);
}

/* Takes one grant off; 1 when the hold is still wanted, by this handle or another. */
static int is_still_wanted(lease *l)
{
    int wanted;

    holds_lock(l->holds);
    wanted = l->hold->depth > 1;
    if (wanted) {
        l->hold->depth--;
        l->depth--;
    }
    holds_unlock(l->holds);
    if (wanted && l->depth == 0)
        handle_become(&l->base, LOCK_OVER);
    return wanted;
}

tl_status lease_unlock(lease *l)
{
    tl_status status;

    TRY(lease_check_held(l));
    if (is_still_wanted(l))
        return TL_OK;
    holds_pause(l->holds, l->hold);
    status = lease_release(l, l->base.client->config.commit_ms);
    if (l->base.state == LOCK_HELD)
        holds_resume(l->holds, l->hold);
    /* While the unlock is in doubt, no loss is reported, and no handle joins. */
    if (lease_is_held(l))
        return status;
    holds_lock(l->holds);
    l->hold->depth = l->depth = 0;
    holds_unlock(l->holds);
    holds_drop(l->holds, l->hold);
    return status;
}

/* -------------------------------------------------------------- going on differently -- */

static const task_kind repeatable = {.run = run_change, .mark = mark_change};

static tl_status run(lease *l, lease_changing *c, const char *name, const task_kind *kind,
                     doubt *left)
{
    task t = {.kind = kind, .name = name, .context = c, .doubt = *left};

    task_run(l->base.client->engine, &t, l->base.client->config.pool_wait_ms);
    *left = t.doubt;
    if (t.verdict == VERDICT_UNKNOWN)
        return TL_UNKNOWN;
    if (t.verdict != VERDICT_APPLIED)
        return failed(&t);
    if (c->changed != c->step.count)
        return error_set(TL_LOST, "%s", c->kind->lost_at_change);
    return TL_OK;
}

tl_status lease_change(lease *l, lease_changing *c, const char *name, doubt *left)
{
    handle_begin(&l->base, 0);
    begin_change(l, c);
    return run(l, c, name, &repeatable, left);
}

void lease_drop(lease *l, unsigned slot, const uint8_t *held_token)
{
    lease_changing c = {.statement = l->base.method->lease->statements->release};
    task t = {.kind = &repeatable, .name = "unlock", .context = &c};
    tl_client *client = l->base.client;
    const int64_t own_ms = thread_context_await_until(clock_deadline(client->config.pool_wait_ms));
    uint8_t token[LEASE_TOKEN];

    random_token(token);
    handle_begin(&l->base, 0);
    begin_change(l, &c);
    c.step.word = "give up";
    c.step.slot = slot;
    c.step.token = token;
    c.step.held_token = held_token;
    task_run(client->engine, &t, DROP_BUDGET_MS);
    (void)thread_context_await_until(own_ms);
    lock_wake(&l->base);
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

/* Sets the end of the lease, so running it twice does no harm while no shorter renewal can still
 * arrive late. */
tl_status lease_renew(lease *l, int64_t lease_ms)
{
    static const task_kind renewing = {
        .check = task_check_renewal, .run = run_change, .mark = mark_change};
    lease_changing c = {.statement = l->base.method->lease->statements->renew, .keeps_token = 1};
    int64_t before_ms = clock_boottime_ms();
    tl_status status;

    TRY(lease_check_held(l));
    TRY(lease_check_ms(lease_ms));
    TRY(lease_check_certain(l));
    handle_begin(&l->base, 0);
    begin_change(l, &c);
    c.step.over_ms = lease_ms;
    status = run(l, &c, "renew", &renewing, &l->base.grant->renewing);
    if (status != TL_OK && status != TL_UNKNOWN)
        return status;
    holds_lock(l->holds);
    grant_renew(l->base.grant, before_ms + lease_ms, status == TL_UNKNOWN);
    holds_unlock(l->holds);
    holds_wake(l->holds);
    return status;
}

/* -------------------------------------------------------------------- the proof -- */

static tl_status prove(lease *l, db *borrowed, const char *doing,
                       db_answer (*statement)(db *connection, const lease_step *s, size_t i,
                                              uint64_t *changed))
{
    lease_step s = {0};

    handle_begin(&l->base, 0);
    lease_fill_step(l, &s);
    for (size_t i = 0; i < s.count; i++) {
        uint64_t changed = 0;
        db_answer answer = statement(borrowed, &s, i, &changed);

        if (answer != DB_DONE)
            return caller_must_roll_back(borrowed, answer, doing);
        if (changed != 1)
            return error_set(TL_ROLL_BACK, "roll back: the lock of %s is lost", s.names[i]);
    }
    return TL_OK;
}

tl_status lease_prove(lease *l, struct st_mysql *connection, unsigned flags, const char *doing,
                      db_answer (*statement)(db *connection, const lease_step *s, size_t i,
                                             uint64_t *changed))
{
    db *borrowed = NULL;
    tl_status status = caller_open(&borrowed, connection, flags, l->base.grant->life);

    /* The life is known here; the session's row is not read on the caller's connection. */
    if (status == TL_OK && grant_left_ms(l->base.grant) == 0)
        status = error_set(TL_ROLL_BACK, "roll back: the lock of %s is not certain any more",
                           l->base.grant->names[0]);
    if (status == TL_OK)
        status = prove(l, borrowed, doing, statement);
    db_close(borrowed);
    return status;
}
