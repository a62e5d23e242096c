/*
 * The read-write lock.  An ask is one transaction: it locks the gate (the resource's row), looks
 * who holds, and claims a holder's row.  A refused ask writes nothing except a waiting writer's
 * intent.
 *
 * That a holder in the way looks dead is not enough: a renewal may be about to commit, or a
 * transaction that wrote "business done".  So the dead are freed first, which needs their rows'
 * locks, and as many must be freed as were seen dead.
 */
#include "lease/lease.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"

#include <string.h>

/* A waiting writer that shows no sign of life for this long beyond its longest pause lets readers
 * in again. */
#define INTENT_MS 3000
#define VIEWS 64

/* How an ask to read differs from one to write. */
static const struct mode {
    char kind; /* of the row */
    const char *word, *locked_for, *is_done;
} modes[] = {
    [TL_RW_READ] = {'R', "read", "reading", "read"},
    [TL_RW_WRITE] = {'W', "write", "writing", "written"},
};

struct tl_rw {
    lease lease; /* first */

    /* What is held, or what an ask whose answer was lost was for. */
    tl_rw_mode mode;
    unsigned next_slot; /* of an ask whose answer was lost; 0: that was an intent only */
    doubt downgrading;  /* whether the answer to that was lost */

    /* A writer that waits. */
    uint8_t intent[LEASE_TOKEN];
    unsigned intent_slot; /* 0: none */
    int64_t intent_until_ms;

    tl_holder_view view;
};

struct asking {
    lease_asking base; /* first */
    tl_rw *rw;
    int waits; /* a refused writer leaves an intent */
    int intent_made;
    int64_t latest_us; /* as the look was told */
};

static const char *resource_of(const tl_rw *rw)
{
    return rw->lease.base.grant->names[0];
}

static int64_t intent_ms(const tl_rw *rw)
{
    return INTENT_MS + 2 * rw->lease.base.client->config.ask_wait_max_ms;
}

/* ------------------------------------------------------------------ asking once -- */

/* Locks the gate; the first ask of all makes it. */
static db_answer enter_gate(db *connection, const char *resource)
{
    int there = 0;
    db_answer answer = db_begin(connection);

    if (answer == DB_DONE)
        answer = store_rw_gate(connection, resource, &there);
    if (answer != DB_DONE || there)
        return answer;
    answer = db_rollback(connection);
    if (answer == DB_DONE)
        answer = store_rw_make(connection, resource);
    if (answer == DB_DONE)
        answer = db_begin(connection);
    if (answer == DB_DONE)
        answer = store_rw_gate(connection, resource, &there);
    return answer;
}

/* Frees the dead who are in the way; *clear is 0 when one of them showed life. */
static db_answer free_dead(const struct asking *a, db *connection, const rw_look *look, int *clear)
{
    int readers_too = a->rw->mode == TL_RW_WRITE;
    unsigned expected = look->dead_writers + (readers_too ? look->dead_readers : 0);
    uint8_t token[LEASE_TOKEN];
    uint64_t freed = 0;
    db_answer answer;

    *clear = 1;
    if (expected == 0)
        return DB_DONE;
    random_token(token);
    answer =
        store_rw_free(connection, resource_of(a->rw), readers_too, token, a->base.step.thread_no,
                      a->rw->lease.base.client->actor, a->latest_us, &freed);
    *clear = freed == expected;
    return answer;
}

static int is_in_the_way(tl_rw_mode mode, const rw_look *look)
{
    if (mode == TL_RW_WRITE)
        return look->writers > 0 || look->readers > 0;
    return look->writers > 0 || look->intents > 0;
}

/* Claims a free row, or makes a new one.  A free row may be locked by a former holder whose
 * transaction comes too late. */
static db_answer claim(lease_step *s, db *connection, const rw_look *look)
{
    unsigned slot = look->my_intent != 0 ? look->my_intent : look->free_slot;
    db_answer answer;

    s->fence = look->fence;
    s->slot = slot != 0 ? slot : look->new_slot;
    answer = store_rw_claim(connection, s);
    if (answer == DB_ERROR && db_errno(connection) == ERROR_LOCK_WAIT && slot != 0 &&
        look->my_intent == 0) {
        s->slot = look->new_slot;
        answer = store_rw_claim(connection, s);
    }
    return answer;
}

/* An intent is renewed when half of it is over, so that most polls write nothing. */
static int wants_intent(const struct asking *a, const rw_look *look)
{
    const tl_rw *rw = a->rw;

    return a->waits && rw->mode == TL_RW_WRITE &&
           (look->my_intent == 0 || clock_left_ms(rw->intent_until_ms) < intent_ms(rw) / 2);
}

static db_answer claim_intent(struct asking *a, db *connection, const rw_look *look)
{
    lease_step s = a->base.step;
    db_answer answer;

    s.status = 'W';
    s.word = "wait";
    s.token = a->rw->intent;
    s.by_session = 1;
    s.over_ms = intent_ms(a->rw);
    answer = claim(&s, connection, look);
    a->base.step.slot = s.slot;
    a->intent_made = answer == DB_DONE;
    a->base.token = a->intent_made ? a->rw->intent : NULL;
    return answer;
}

static db_answer decide(struct asking *a, db *connection)
{
    rw_look look;
    int clear = 0;
    db_answer answer;

    a->latest_us = clock_watch_latest_us(a->rw->lease.base.client);
    answer = store_rw_look(connection, resource_of(a->rw), a->rw->intent, a->latest_us, &look);
    if (answer == DB_DONE && !is_in_the_way(a->rw->mode, &look)) {
        answer = free_dead(a, connection, &look, &clear);
        if (answer == DB_DONE && clear)
            answer = claim(&a->base.step, connection, &look);
        a->base.taken = a->base.claims = answer == DB_DONE && clear;
        a->base.token = a->base.taken ? a->base.step.token : NULL;
        a->base.fences[0] = look.fence;
    } else if (answer == DB_DONE && wants_intent(a, &look)) {
        answer = claim_intent(a, connection, &look);
    }
    return answer;
}

static db_answer run_ask(task *t, db *connection)
{
    struct asking *a = t->context;
    db_answer answer;

    a->base.taken = a->base.claims = a->intent_made = 0;
    a->base.token = NULL;
    answer = enter_gate(connection, resource_of(a->rw));
    a->base.held_up = answer == DB_ERROR && db_errno(connection) == ERROR_LOCK_WAIT;
    if (answer == DB_DONE)
        answer = decide(a, connection);
    if (answer != DB_DONE)
        return answer;
    return a->base.token != NULL ? db_commit(connection) : db_rollback(connection);
}

static void granted(lease *l, const lease_asking *a)
{
    tl_rw *rw = (tl_rw *)l;

    (void)a;
    memset(&rw->downgrading, 0, sizeof rw->downgrading);
    rw->intent_slot = 0; /* its row is the holder's now */
    log_line(&l->base.client->logger, TL_INFO, NULL, l->hold->grant.fence, "%s locked for %s",
             resource_of(rw), modes[rw->mode].locked_for);
}

static void refused(lease *l, const lease_asking *asking, int settled)
{
    tl_rw *rw = (tl_rw *)l;
    const struct asking *a = (const struct asking *)asking;

    (void)settled;
    if (a->intent_made) {
        rw->intent_slot = a->base.step.slot;
        rw->intent_until_ms = a->base.offer.before_ms + intent_ms(rw);
    }
}

static void in_doubt(lock_handle *h, const void *asking)
{
    tl_rw *rw = (tl_rw *)h;
    const struct asking *a = asking;

    /* An intent that may be there ends by itself. */
    if (a->intent_made)
        rw->intent_slot = a->base.step.slot;
    rw->next_slot = a->intent_made || a->base.token == NULL ? 0 : a->base.step.slot;
}

static tl_status ask_once(lease *l, int waits)
{
    tl_rw *rw = (tl_rw *)l;
    struct asking a = {.rw = rw, .waits = waits};

    lease_begin_ask(l, &a.base);
    a.base.step.kind = modes[rw->mode].kind;
    a.base.step.status = 'H';
    a.base.step.word = modes[rw->mode].word;
    if (l->base.state == LOCK_ASK_UNKNOWN && rw->next_slot != 0) {
        a.base.step.slot = rw->next_slot;
        a.base.token = a.base.step.token;
        a.base.claims = 1;
    }
    return lease_run_ask(&a.base);
}

/* ------------------------------------------------------------ why it was refused -- */

static int is_blocker(const tl_rw *rw, const tl_holder_view *view)
{
    if (view->state == TL_HOLDER_FREE)
        return 0;
    return rw->mode == TL_RW_WRITE ? view->state != TL_HOLDER_WAITING : view->mode == TL_RW_WRITE;
}

static void find_blocker(tl_rw *rw)
{
    tl_client *client = rw->lease.base.client;
    RESULT rows = DB_RESULT_INIT;
    db *connection;

    memset(&rw->view, 0, sizeof rw->view);
    rw->view.version = TL_HOLDER_VIEW_VERSION;
    if (pool_get(client->connections, POOL_QUICK, client->config.pool_wait_ms, &connection) !=
        TL_OK)
        return;
    if (store_rw_list(connection, resource_of(rw), 0, 0, VIEWS, &rows) == DB_DONE)
        for (size_t row = 0; row < rows.rows && rw->view.resource[0] == '\0'; row++) {
            tl_holder_view view;

            holder_view_read(&view, &rows, row);
            if (is_blocker(rw, &view))
                rw->view = view;
        }
    pool_put(client->connections, connection);
}

static tl_status explain(lock_handle *h, tl_status status)
{
    tl_rw *rw = (tl_rw *)h;
    const char *by;

    find_blocker(rw);
    if (rw->view.resource[0] == '\0')
        return error_set(status, "%s is just changing hands", resource_of(rw));
    by = rw->view.holder[0] != '\0' ? rw->view.holder : "another process";
    if (rw->view.state == TL_HOLDER_WAITING)
        return error_set(status, "%s: %s waits to write it", resource_of(rw), by);
    return error_set(status, "%s is %s by %s", resource_of(rw), modes[rw->view.mode].is_done, by);
}

static const lease_kind kind = {
    .statements = &store_holders,
    .mark = MARK_HOLDER,
    .ask = {.check = task_check_lock,
            .run = run_ask,
            .read = lease_read_ask,
            .mark = lease_mark_ask},
    .ask_once = ask_once,
    .granted = granted,
    .refused = refused,
    .noun = "read-write lock",
    .lost_at_release = "the lock had been freed: its holder looked dead",
    .lost_at_change = "the lock was freed, or its time was over",
};

static const lock_method rw_method = {
    .wait_prefix = "  ",
    .lost = "the lock was freed before it was unlocked",
    .ask_unknown = "whether the lock was granted is not known yet: ask again first, or free the "
                   "handle",
    .look = lease_look,
    .gone = lease_gone,
    .granted = lease_granted,
    .in_doubt = in_doubt,
    .explain = explain,
    .lease = &kind,
};

/* ------------------------------------------------------------ making a handle -- */

tl_status tl_rw_new(tl_rw **out, tl_client *client, const char *resource, const tl_rw_options *o)
{
    tl_rw *rw;
    tl_status status;

    error_clear();
    if (out == NULL)
        return error_set(TL_INVALID, "out is NULL");
    TRY(client_check(client));
    TRY(lease_check_names(&resource, 1));
    if (o == NULL || o->version != TL_RW_OPTIONS_VERSION)
        return error_set(TL_INVALID, "options is NULL or was not made with "
                                     "TL_RW_OPTIONS_INIT");
    TRY(lease_check_terms(o->lease_ms, o->max_hold_ms, o->remark, o->actor));
    rw = memory_new(sizeof *rw);
    if (rw == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for a read-write lock");
    status = lease_init(&rw->lease, &rw_method, client, &resource, 1);
    if (status != TL_OK) {
        tl_rw_free(rw);
        return status;
    }
    lease_set_terms(&rw->lease, o->lease_ms, o->max_hold_ms, o->remark, o->actor);
    rw->view.version = TL_HOLDER_VIEW_VERSION;
    *out = rw;
    return TL_OK;
}

void tl_rw_free(tl_rw *rw)
{
    if (rw == NULL)
        return;
    lease_clear(&rw->lease);
    memory_free(rw);
}

/* --------------------------------------------------------------------- the calls -- */

static tl_status check(const tl_rw *rw)
{
    if (rw == NULL)
        return error_set(TL_INVALID, "the lock is NULL");
    return client_check(rw->lease.base.client);
}

static tl_status check_state(const tl_rw *rw, tl_rw_mode mode)
{
    switch (rw->lease.base.state) {
    case LOCK_HELD:
        if (mode == TL_RW_WRITE && rw->mode == TL_RW_READ)
            return error_set(TL_WOULD_UPGRADE,
                             "this handle reads %s; two readers that waited to write "
                             "would wait for each other: unlock first",
                             resource_of(rw));
        return error_set(TL_WRONG_STATE, "this handle holds its lock already");
    case LOCK_END_UNKNOWN:
        return error_set(TL_WRONG_STATE, "the answer to the last unlock was lost; unlock "
                                         "again first");
    case LOCK_ASK_UNKNOWN:
        if (mode != rw->mode)
            return error_set(TL_WRONG_STATE,
                             "the answer to the last ask was lost; ask for the same "
                             "again first");
        break;
    default:
        break;
    }
    return TL_OK;
}

static tl_status ask(tl_rw *rw, tl_rw_mode mode, int64_t wait_ms)
{
    tl_status status;

    error_clear();
    TRY(check(rw));
    TRY(handle_check_asking(&rw->lease.base));
    TRY(handle_check_wait(wait_ms));
    TRY(check_state(rw, mode));
    rw->mode = mode;
    if (rw->lease.base.state != LOCK_ASK_UNKNOWN)
        random_token(rw->intent);
    status = lease_ask(&rw->lease, wait_ms);
    /* A writer that waits no more gives up its intent. */
    if (wait_ms > 0 && status != TL_UNKNOWN && rw->intent_slot != 0) {
        lease_drop(&rw->lease, rw->intent_slot, rw->intent);
        rw->intent_slot = 0;
    }
    return lease_answer(&rw->lease, status, wait_ms);
}

tl_status tl_rw_read(tl_rw *rw, int64_t wait_ms)
{
    return ask(rw, TL_RW_READ, wait_ms);
}

tl_status tl_rw_write(tl_rw *rw, int64_t wait_ms)
{
    return ask(rw, TL_RW_WRITE, wait_ms);
}

tl_status tl_rw_unlock(tl_rw *rw)
{
    error_clear();
    TRY(check(rw));
    return lease_unlock(&rw->lease);
}

tl_status tl_rw_renew(tl_rw *rw, int64_t lease_ms)
{
    error_clear();
    TRY(check(rw));
    TRY(lease_check_ms(lease_ms));
    return lease_renew(&rw->lease, lease_ms);
}

tl_status tl_rw_downgrade(tl_rw *rw)
{
    lease_changing c = {.statement = store_rw_downgrade, .keeps_token = 1};

    error_clear();
    TRY(check(rw));
    TRY(lease_check_held(&rw->lease));
    TRY(lease_check_certain(&rw->lease));
    if (rw->mode == TL_RW_READ)
        return TL_OK;
    TRY(lease_change(&rw->lease, &c, "downgrade", &rw->downgrading));
    rw->mode = TL_RW_READ;
    lock_wake(&rw->lease.base);
    return TL_OK;
}

static tl_status check_proving(const tl_rw *rw)
{
    error_clear();
    TRY(check(rw));
    if (rw->lease.base.state == LOCK_LOST)
        return error_set(TL_ROLL_BACK, "roll back: the lock of %s is lost", resource_of(rw));
    TRY(lease_check_held(&rw->lease));
    if (rw->lease.base.state != LOCK_HELD)
        return error_set(TL_NOT_HELD, "the lock is being unlocked");
    if (rw->downgrading.is_open)
        return error_set(TL_WRONG_STATE,
                         "whether %s is still held for writing is not known: the "
                         "answer to the downgrade was lost; downgrade again first",
                         resource_of(rw));
    return TL_OK;
}

tl_status tl_rw_done(tl_rw *rw, struct st_mysql *connection, unsigned flags)
{
    TRY(check_proving(rw));
    return lease_prove(&rw->lease, connection, flags, "writing that business is done",
                       store_rw_done);
}

tl_status tl_rw_guard(tl_rw *rw, struct st_mysql *connection, unsigned flags)
{
    TRY(check_proving(rw));
    return lease_prove(&rw->lease, connection, flags, "guarding the transaction",
                       store_holders.guard);
}

/* ------------------------------------------------------------------ what it knows -- */

int64_t tl_rw_remaining_ms(const tl_rw *rw)
{
    return check(rw) == TL_OK ? lease_remaining_ms(&rw->lease) : 0;
}

tl_rw_mode tl_rw_held(const tl_rw *rw)
{
    if (rw == NULL || !lease_is_held(&rw->lease))
        return TL_RW_NONE;
    return rw->downgrading.is_open ? TL_RW_READ : rw->mode;
}

uint64_t tl_rw_fence(const tl_rw *rw)
{
    return rw != NULL && lease_is_held(&rw->lease) ? rw->lease.base.grant->fence : 0;
}

const tl_holder_view *tl_rw_view(const tl_rw *rw)
{
    static const tl_holder_view nothing = {.version = TL_HOLDER_VIEW_VERSION};

    return rw != NULL ? &rw->view : &nothing;
}
