/*
 * Asking to read or to write.  One transaction: the gate (the resource's row) is locked, who holds
 * is looked at, and a holder's row is claimed; or, refused, nothing is written but a waiting
 * writer's intent.
 *
 * That somebody in the way looks dead is not enough: a renewal may be about to commit, or a
 * transaction that has written "business done".  So the dead are freed first, which needs their
 * rows' locks, and as many as were seen dead must be freed.
 */
#include "rw_lock/rw.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "client/restored.h"

#include <stdio.h>
#include <string.h>

#define WAIT_KEY_SPACE (TL_RESOURCE_MAX + 3)
#define WAIT_MAX_MS TL_HOLD_MAX_MS
/* A waiting writer that shows no sign of life for this long beyond its longest pause lets readers
 * in again. */
#define INTENT_MS 3000
#define VIEWS 64

struct asking {
    tl_rw *rw;
    rw_step step;
    int wait; /* leaves an intent when it writes and is refused */
    int taken, intent_made;
    int gate_is_held;                         /* for longer than a moment */
    unsigned claimed_slot;                    /* 0: nothing was claimed */
    int64_t before_ms, hold_left_ms, left_ms; /* of a step that was settled */
};

static int64_t intent_ms(const tl_rw *rw)
{
    return INTENT_MS + 2 * rw->client->config.ask_wait_max_ms;
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
                           a->rw->client->actor, &freed);
    *clear = freed == expected;
    return answer;
}

static int is_in_the_way(tl_rw_mode mode, const rw_look *look)
{
    if (mode == TL_RW_WRITE)
        return look->writers > 0 || look->readers > 0;
    return look->writers > 0 || look->intents > 0;
}

/* A free row may be locked by a holder of old, whose transaction is just learning that it came too
 * late; then a new one serves. */
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

/* Renewed when half of it is over, so that most polls write nothing. */
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
    db_answer answer = store_rw_look(connection, a->rw->resource, a->rw->intent, &look);

    if (answer == DB_DONE && !is_in_the_way(a->rw->mode, &look)) {
        answer = free_dead(a, connection, &look, &clear);
        if (answer == DB_DONE && clear)
            answer = claim(a, connection, &look);
        a->taken = answer == DB_DONE && clear;
    } else if (answer == DB_DONE && wants_intent(a, &look)) {
        answer = claim_intent(a, connection, &look);
    }
    a->claimed_slot = a->taken || a->intent_made ? a->step.slot : 0;
    return answer;
}

static db_answer run_ask(void *context, db *connection)
{
    struct asking *a = context;
    db_answer answer;

    a->taken = a->intent_made = 0;
    a->claimed_slot = 0;
    answer = enter_gate(connection, a->rw->resource);
    a->gate_is_held = answer == DB_ERROR && db_errno(connection) == ERROR_LOCK_WAIT;
    if (answer == DB_DONE)
        answer = decide(a, connection);
    if (answer != DB_DONE)
        return answer;
    return a->claimed_slot != 0 ? db_commit(connection) : db_rollback(connection);
}

/* What the row says of an ask whose answer was lost. */
static db_answer read_ask(void *context, db *connection, int *committed)
{
    struct asking *a = context;
    const tl_rw *rw = a->rw;
    const uint8_t *token = a->intent_made ? rw->intent : a->step.token;
    db_result result = DB_RESULT_INIT;
    db_answer answer = DB_DONE;

    *committed = 0;
    if (a->claimed_slot == 0)
        return DB_DONE;
    a->before_ms = clock_boottime_ms();
    answer = store_rw_now(connection, rw->resource, a->claimed_slot, token, &result);
    if (answer == DB_DONE && result.rows == 1 && db_get_int(&result, 0, 0)) {
        *committed = 1;
        a->step.fence = db_get_uint(&result, 0, 2);
        a->hold_left_ms = db_get_int(&result, 0, 3);
        a->left_ms = db_get_int(&result, 0, 4);
    } else if (answer == DB_DONE) {
        answer = store_rw_token_seen(connection, rw->resource, a->claimed_slot, token, committed);
        a->left_ms = 0;
    }
    if (a->left_ms <= 0)
        a->taken = 0;
    db_result_free(&result);
    return answer;
}

static tl_status granted(tl_rw *rw, const struct asking *a, int settled)
{
    memcpy(rw->token, a->step.token, RW_TOKEN);
    rw->slot = a->step.slot;
    rw->fence = a->step.fence;
    rw->by_session = a->step.by_session;
    rw->over_ms = a->before_ms + (settled ? a->left_ms : a->step.over_ms);
    rw->hold_until_ms = a->before_ms + (settled ? a->hold_left_ms : a->step.max_hold_ms);
    memset(&rw->renewing, 0, sizeof rw->renewing);
    memset(&rw->downgrading, 0, sizeof rw->downgrading);
    rw->intent_slot = 0; /* its row is the holder's now */
    rw->state = RW_HELD;
    client_add(&rw->client->counters.grants, 1);
    log_line(&rw->client->logger, TL_INFO, NULL, rw->fence, "%s locked for %s", rw->resource,
             rw->mode == TL_RW_WRITE ? "writing" : "reading");
    return TL_GRANTED;
}

/* Nobody can have taken what a certain session renews, or before its time is over. */
static int is_certain(const tl_rw *rw, const struct asking *a, int settled)
{
    if (a->step.by_session && life_left_ms(rw->life) <= 0)
        return 0;
    return clock_left_ms(a->before_ms + (settled ? a->left_ms : a->step.over_ms)) > 0;
}

/* What a late answer told of is no lock any more, or not for certain. */
static tl_status give_back(tl_rw *rw, const struct asking *a)
{
    memcpy(rw->token, a->step.token, RW_TOKEN);
    rw->slot = a->step.slot;
    (void)rw_release(rw, rw->client->config.pool_wait_ms);
    rw->state = RW_NEW;
    return TL_BUSY;
}

/*
 * The answer came too late to be certain, this process having been stopped perhaps.  A hold whose
 * time is over is one as long as nobody has freed it; under a session that may be dead it is none.
 */
static tl_status check_late(tl_rw *rw, const struct asking *a, int settled)
{
    int mine = !a->step.by_session || life_left_ms(rw->life) > 0;
    db_result result = DB_RESULT_INIT;
    db *connection = NULL;
    db_answer answer;
    tl_status status =
        pool_get(rw->client->connections, POOL_QUICK, rw->client->config.pool_wait_ms, &connection);

    if (status == TL_OK && mine) {
        answer = store_rw_now(connection, rw->resource, a->step.slot, a->step.token, &result);
        if (answer != DB_DONE)
            status = db_error_status(connection, answer, "reading the row");
        else
            mine = result.rows == 1 && db_get_int(&result, 0, 0) != 0;
    }
    db_result_free(&result);
    pool_put(rw->client->connections, connection);
    if (status == TL_OK)
        return mine ? granted(rw, a, settled) : give_back(rw, a);
    /* Asking again with this token settles it: its connection has answered, so a name that nobody
     * has says as much. */
    rw->next_slot = a->step.slot;
    rw->state = RW_ASK_UNKNOWN;
    random_uuid(rw->lost_connection);
    return error_prefix(TL_UNKNOWN, "granted, but the row could not be read");
}

static tl_status refused(tl_rw *rw, const struct asking *a)
{
    if (a->intent_made) {
        rw->intent_slot = a->claimed_slot;
        rw->intent_until_ms = a->before_ms + intent_ms(rw);
    }
    return TL_BUSY;
}

static tl_status unknown(tl_rw *rw, const struct asking *a, const work *w)
{
    /* An intent that may be there ends by itself. */
    if (a->intent_made)
        rw->intent_slot = a->claimed_slot;
    rw->next_slot = a->intent_made ? 0 : a->claimed_slot;
    rw->state = RW_ASK_UNKNOWN;
    memcpy(rw->lost_connection, w->lost_connection, sizeof rw->lost_connection);
    client_add(&rw->client->counters.unknown, 1);
    return TL_UNKNOWN;
}

static tl_status ask_once(tl_rw *rw, int wait)
{
    struct asking a = {.rw = rw, .wait = wait};
    work w = {.name = "lock", .run = run_ask, .read = read_ask, .context = &a, .asks = 1};

    if (rw->state != RW_ASK_UNKNOWN)
        rw->life = session_life(rw->client->session);
    rw_begin_step(rw, &a.step, rw->state != RW_ASK_UNKNOWN);
    w.life = rw->life;
    a.step.kind = rw->mode == TL_RW_WRITE ? 'W' : 'R';
    a.step.status = 'H';
    a.step.step = rw->mode == TL_RW_WRITE ? "write" : "read";
    if (rw->state == RW_ASK_UNKNOWN) {
        memcpy(w.lost_connection, rw->lost_connection, sizeof w.lost_connection);
        a.claimed_slot = a.step.slot = rw->next_slot;
        a.taken = rw->next_slot != 0;
    }
    a.before_ms = clock_boottime_ms();
    work_run(rw->client->transitions, &w, rw->client->config.pool_wait_ms);
    rw->state = RW_NEW;
    switch (w.verdict) {
    case VERDICT_APPLIED:
        if (!a.taken)
            return refused(rw, &a);
        return is_certain(rw, &a, w.settled) ? granted(rw, &a, w.settled)
                                             : check_late(rw, &a, w.settled);
    case VERDICT_DECIDING:
        return TL_BUSY;
    case VERDICT_UNKNOWN:
        return unknown(rw, &a, &w);
    case VERDICT_FAILED:
        /* By a process that was stopped within its ask, until the server ends that transaction. */
        if (a.gate_is_held && w.status == TL_TRY_AGAIN)
            return TL_BUSY;
        return w.status;
    default:
        return w.status != TL_OK ? w.status : TL_INTERNAL;
    }
}

tl_status rw_ask_again(tl_rw *rw)
{
    return ask_once(rw, 0);
}

/* --------------------------------------------------------------------- waiting -- */

static tl_status ask_waiting(tl_rw *rw, int64_t wait_ms)
{
    const struct config *config = &rw->client->config;
    int64_t deadline_ms = clock_deadline(wait_ms), pause_ms = config->ask_wait_min_ms;
    char key[WAIT_KEY_SPACE];
    waiter *turn;
    tl_status status = TL_BUSY;

    /* No trade's key begins with a blank, and no mutex's with two. */
    snprintf(key, sizeof key, "  %s", rw->resource);
    turn = waiters_join(rw->client->waiting, key);
    if (turn == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for waiting");
    if (waiters_turn(turn, deadline_ms)) {
        for (;;) {
            int64_t until_ms;

            status = ask_once(rw, 1);
            if (status != TL_BUSY || clock_left_ms(deadline_ms) == 0)
                break;
            until_ms = clock_deadline(random_jitter_ms(pause_ms, 50));
            waiters_pause(turn, until_ms < deadline_ms ? until_ms : deadline_ms);
            pause_ms =
                pause_ms * 2 < config->ask_wait_max_ms ? pause_ms * 2 : config->ask_wait_max_ms;
        }
    }
    waiters_leave(turn);
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
    tl_client *client = rw->client;
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

static tl_status explain(tl_rw *rw, tl_status status)
{
    const char *by;

    client_add(&rw->client->counters.refusals, 1);
    find_blocker(rw);
    if (rw->view.resource[0] == '\0')
        return error_set(status, "%s is just changing hands", rw->resource);
    by = rw->view.holder[0] != '\0' ? rw->view.holder : "another process";
    if (rw->view.state == TL_HOLDER_WAITING)
        return error_set(status, "%s: %s waits to write it", rw->resource, by);
    return error_set(status, "%s is %s by %s", rw->resource,
                     rw->view.mode == TL_RW_WRITE ? "written" : "read", by);
}

/* -------------------------------------------------------------------- the calls -- */

static tl_status check_state(const tl_rw *rw, tl_rw_mode mode)
{
    switch (rw->state) {
    case RW_HELD:
        if (mode == TL_RW_WRITE && rw->mode == TL_RW_READ)
            return error_set(TL_WOULD_UPGRADE,
                             "this handle reads %s; two readers that waited to write "
                             "would wait for each other: unlock first",
                             rw->resource);
        return error_set(TL_WRONG_STATE, "this handle holds its lock already");
    case RW_UNLOCK_UNKNOWN:
        return error_set(TL_WRONG_STATE, "the answer to the last unlock was lost; unlock "
                                         "again first");
    case RW_ASK_UNKNOWN:
        if (mode != rw->mode)
            return error_set(TL_WRONG_STATE,
                             "the answer to the last ask was lost; ask for the same "
                             "again first");
        break;
    case RW_NEW:
    case RW_RELEASED:
    case RW_LOST:
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
        status = client_check_asking(rw->client);
    if ((status == TL_UNREACHABLE || status == TL_SESSION_LOST) && rw->state == RW_ASK_UNKNOWN)
        status = error_prefix(TL_UNKNOWN, "the earlier ask is not settled");
    if (status == TL_OK)
        status = restored_check_resource(rw->client);
    if (status == TL_OK && (wait_ms < 0 || wait_ms > WAIT_MAX_MS))
        status = error_set(TL_INVALID, "wait_ms is %lld; it must be 0 to %lld", (long long)wait_ms,
                           (long long)WAIT_MAX_MS);
    if (status == TL_OK)
        status = check_state(rw, mode);
    if (status != TL_OK)
        return status;
    rw->mode = mode;
    if (rw->state != RW_ASK_UNKNOWN)
        random_token(rw->intent);
    client_add(&rw->client->counters.asks, 1);
    status = wait_ms > 0 ? ask_waiting(rw, wait_ms) : ask_once(rw, 0);
    if (status != TL_BUSY)
        return status;
    return explain(rw, wait_ms > 0 ? TL_TIMEOUT : TL_BUSY);
}

tl_status tl_rw_read(tl_rw *rw, int64_t wait_ms)
{
    return ask(rw, TL_RW_READ, wait_ms);
}

tl_status tl_rw_write(tl_rw *rw, int64_t wait_ms)
{
    return ask(rw, TL_RW_WRITE, wait_ms);
}
