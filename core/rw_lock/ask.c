/*
 * Asks to read or to write, in one transaction: locks the gate (the resource's row), looks who
 * holds, and claims a holder's row.  A refused ask writes nothing except a waiting writer's intent.
 *
 * That a holder in the way looks dead is not enough: a renewal may be about to commit, or a
 * transaction that wrote "business done".  So the dead are freed first, which needs their rows'
 * locks, and as many must be freed as were seen dead.
 */
#include "rw_lock/rw.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"

#include <string.h>

/* A waiting writer that shows no sign of life for this long beyond its longest pause lets readers
 * in again. */
#define INTENT_MS 3000
#define VIEWS 64

struct asking {
    lock_ask base;
    tl_rw *rw;
    rw_step step;
    int wait; /* a refused writer leaves an intent */
    int intent_made;
    unsigned claimed_slot; /* 0: nothing was claimed */
    int64_t latest_us;     /* as the look was told */
};

static int64_t intent_ms(const tl_rw *rw)
{
    return INTENT_MS + 2 * rw->base.client->config.ask_wait_max_ms;
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
    uint8_t token[RW_TOKEN];
    uint64_t freed = 0;
    db_answer answer;

    *clear = 1;
    if (expected == 0)
        return DB_DONE;
    random_token(token);
    answer = store_rw_free(connection, a->rw->resource, readers_too, token, a->step.thread_no,
                           a->rw->base.client->actor, a->latest_us, &freed);
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
static db_answer claim(struct asking *a, db *connection, const rw_look *look)
{
    unsigned slot = look->my_intent != 0 ? look->my_intent : look->free_slot;
    db_answer answer;

    a->step.fence = look->fence;
    a->step.slot = slot != 0 ? slot : look->new_slot;
    answer = store_rw_claim(connection, &a->step);
    if (answer == DB_ERROR && db_errno(connection) == ERROR_LOCK_WAIT && slot != 0 &&
        look->my_intent == 0) {
        a->step.slot = look->new_slot;
        answer = store_rw_claim(connection, &a->step);
    }
    return answer;
}

/* An intent is renewed when half of it is over, so that most polls write nothing. */
static int wants_intent(const struct asking *a, const rw_look *look)
{
    const tl_rw *rw = a->rw;

    return a->wait && rw->mode == TL_RW_WRITE &&
           (look->my_intent == 0 || clock_left_ms(rw->intent_until_ms) < intent_ms(rw) / 2);
}

static db_answer claim_intent(struct asking *a, db *connection, const rw_look *look)
{
    rw_step held = a->step;
    db_answer answer;

    a->step.status = 'W';
    a->step.step = "wait";
    a->step.token = a->rw->intent;
    a->step.by_session = 1;
    a->step.over_ms = intent_ms(a->rw);
    answer = claim(a, connection, look);
    held.slot = a->step.slot;
    a->step = held;
    if (answer == DB_DONE)
        a->intent_made = 1;
    return answer;
}

static db_answer decide(struct asking *a, db *connection)
{
    rw_look look;
    int clear = 0;
    db_answer answer;

    a->latest_us = clock_watch_latest_us(a->rw->base.client);
    answer = store_rw_look(connection, a->rw->resource, a->rw->intent, a->latest_us, &look);
    if (answer == DB_DONE && !is_in_the_way(a->rw->mode, &look)) {
        answer = free_dead(a, connection, &look, &clear);
        if (answer == DB_DONE && clear)
            answer = claim(a, connection, &look);
        a->base.taken = a->base.claims = answer == DB_DONE && clear;
    } else if (answer == DB_DONE && wants_intent(a, &look)) {
        answer = claim_intent(a, connection, &look);
    }
    a->claimed_slot = a->base.taken || a->intent_made ? a->step.slot : 0;
    return answer;
}

static db_answer run_ask(task *t, db *connection)
{
    struct asking *a = t->context;
    db_answer answer;

    a->base.taken = a->base.claims = a->intent_made = 0;
    a->claimed_slot = 0;
    answer = enter_gate(connection, a->rw->resource);
    a->base.held_up = answer == DB_ERROR && db_errno(connection) == ERROR_LOCK_WAIT;
    if (answer == DB_DONE)
        answer = decide(a, connection);
    if (answer != DB_DONE)
        return answer;
    return a->claimed_slot != 0 ? db_commit(connection) : db_rollback(connection);
}

/* Reads the claimed row, for an ask whose answer was lost. */
static db_answer read_row(const void *ask, db *connection, size_t i, db_result *result)
{
    const struct asking *a = ask;

    (void)i;
    if (a->claimed_slot == 0)
        return DB_DONE;
    return store_rw_now(connection, a->rw->resource, a->claimed_slot,
                        a->intent_made ? a->rw->intent : a->step.token, result);
}

static db_answer look_for_token(const void *ask, db *connection, size_t i, int *seen)
{
    const struct asking *a = ask;

    (void)i;
    if (a->claimed_slot == 0)
        return DB_DONE;
    return store_rw_token_seen(connection, a->rw->resource, a->claimed_slot,
                               a->intent_made ? a->rw->intent : a->step.token, seen);
}

static void mark_ask(const task *t, commit_mark *to)
{
    const struct asking *a = t->context;

    if (a->claimed_slot == 0) {
        to->kind = MARK_NONE;
        return;
    }
    rw_mark(&a->step, to);
    to->slot = a->claimed_slot;
    if (a->intent_made)
        memcpy(to->token, a->rw->intent, sizeof to->token);
}

static tl_status granted(lock_handle *h, void *ask)
{
    tl_rw *rw = (tl_rw *)h;
    const struct asking *a = ask;

    rw->slot = a->step.slot;
    memset(&rw->downgrading, 0, sizeof rw->downgrading);
    rw->intent_slot = 0; /* its row is the holder's now */
    log_line(&h->client->logger, TL_INFO, NULL, rw->grant.fence, "%s locked for %s", rw->resource,
             rw->mode == TL_RW_WRITE ? "writing" : "reading");
    return TL_GRANTED;
}

static void give_back(lock_handle *h, const void *ask)
{
    tl_rw *rw = (tl_rw *)h;

    rw->slot = ((const struct asking *)ask)->step.slot;
    (void)rw_release(rw, h->client->config.pool_wait_ms);
}

static void refused(lock_handle *h, const void *ask, int settled)
{
    tl_rw *rw = (tl_rw *)h;
    const struct asking *a = ask;

    (void)settled;
    if (a->intent_made) {
        rw->intent_slot = a->claimed_slot;
        rw->intent_until_ms = a->base.offer.before_ms + intent_ms(rw);
    }
}

static void in_doubt(lock_handle *h, const void *ask)
{
    tl_rw *rw = (tl_rw *)h;
    const struct asking *a = ask;

    /* An intent that may be there ends by itself. */
    if (a->intent_made)
        rw->intent_slot = a->claimed_slot;
    rw->next_slot = a->intent_made ? 0 : a->claimed_slot;
}

static tl_status ask_once(tl_rw *rw, int wait)
{
    struct asking a = {.base.lock = &rw->base, .rw = rw, .wait = wait};

    a.base.fences = &a.step.fence;
    resource_begin_ask(&rw->base);
    rw_fill_step(rw, &a.step);
    a.step.kind = rw->mode == TL_RW_WRITE ? 'W' : 'R';
    a.step.status = 'H';
    a.step.step = rw->mode == TL_RW_WRITE ? "write" : "read";
    a.base.offer.by_session = a.step.by_session;
    a.base.offer.left_ms = a.step.over_ms;
    a.base.offer.hold_left_ms = a.step.max_hold_ms;
    if (rw->base.state == LOCK_ASK_UNKNOWN) {
        a.claimed_slot = a.step.slot = rw->next_slot;
        a.base.claims = rw->next_slot != 0;
    }
    return resource_ask_once(&rw->base, &a.base);
}

tl_status rw_ask_again(tl_rw *rw)
{
    return ask_once(rw, 0);
}

static tl_status ask_and_wait(void *rw)
{
    return ask_once(rw, 1);
}

static tl_status ask_waiting(tl_rw *rw, int64_t wait_ms)
{
    tl_status status = lock_wait(&rw->base, wait_ms, ask_and_wait, rw);

    if (status != TL_UNKNOWN)
        rw_drop_intent(rw);
    return status;
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
    tl_client *client = rw->base.client;
    db_result rows = DB_RESULT_INIT;
    db *connection;

    memset(&rw->view, 0, sizeof rw->view);
    rw->view.version = TL_HOLDER_VIEW_VERSION;
    if (pool_get(client->connections, POOL_QUICK, client->config.pool_wait_ms, &connection) !=
        TL_OK)
        return;
    if (store_rw_list(connection, rw->resource, 0, 0, VIEWS, &rows) == DB_DONE)
        for (size_t row = 0; row < rows.rows && rw->view.resource[0] == '\0'; row++) {
            tl_holder_view view;

            holder_view_read(&view, &rows, row);
            if (is_blocker(rw, &view))
                rw->view = view;
        }
    db_result_free(&rows);
    pool_put(client->connections, connection);
}

static tl_status explain(lock_handle *h, tl_status status)
{
    tl_rw *rw = (tl_rw *)h;
    const char *by;

    find_blocker(rw);
    if (rw->view.resource[0] == '\0')
        return error_set(status, "%s is just changing hands", rw->resource);
    by = rw->view.holder[0] != '\0' ? rw->view.holder : "another process";
    if (rw->view.state == TL_HOLDER_WAITING)
        return error_set(status, "%s: %s waits to write it", rw->resource, by);
    return error_set(status, "%s is %s by %s", rw->resource,
                     rw->view.mode == TL_RW_WRITE ? "written" : "read", by);
}

static const resource_method statements = {
    .ask = {.check = task_check_lock, .run = run_ask, .read = resource_read_ask, .mark = mark_ask},
    .now = read_row,
    .seen = look_for_token,
    .refused = refused,
    .give_back = give_back,
    .release = {.run = rw_run_change, .read = rw_read_release, .mark = rw_mark_change},
    .lost_at_release = "the lock had been freed: its holder looked dead",
    .lost_at_change = "the lock was freed, or its time was over",
};

const lock_method rw_method = {
    .wait_prefix = "  ",
    .lost = "the lock was freed before it was unlocked",
    .ask_unknown = "whether the lock was granted is not known yet: ask again first, or free the "
                   "handle",
    .look = resource_look,
    .gone = resource_gone,
    .granted = granted,
    .in_doubt = in_doubt,
    .explain = explain,
    .resource = &statements,
};

/* -------------------------------------------------------------------- the calls -- */

static tl_status check_state(const tl_rw *rw, tl_rw_mode mode)
{
    switch (rw->base.state) {
    case LOCK_HELD:
        if (mode == TL_RW_WRITE && rw->mode == TL_RW_READ)
            return error_set(TL_WOULD_UPGRADE,
                             "this handle reads %s; two readers that waited to write "
                             "would wait for each other: unlock first",
                             rw->resource);
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
    status = rw_check(rw);
    if (status == TL_OK)
        status = handle_check_asking(&rw->base);
    if (status == TL_OK)
        status = handle_check_wait(wait_ms);
    if (status == TL_OK)
        status = check_state(rw, mode);
    if (status != TL_OK)
        return status;
    rw->mode = mode;
    if (rw->base.state != LOCK_ASK_UNKNOWN)
        random_token(rw->intent);
    client_add(&rw->base.client->counters.asks, 1);
    status = wait_ms > 0 ? ask_waiting(rw, wait_ms) : ask_once(rw, 0);
    return resource_answer(&rw->base, status, wait_ms);
}

tl_status tl_rw_read(tl_rw *rw, int64_t wait_ms)
{
    return ask(rw, TL_RW_READ, wait_ms);
}

tl_status tl_rw_write(tl_rw *rw, int64_t wait_ms)
{
    return ask(rw, TL_RW_WRITE, wait_ms);
}
