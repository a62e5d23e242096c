/*
 * One round of the janitor: first opens trades that are overdue, then what dead sessions held.
 *
 * It reads trade_lock, tl_session and resource_holder, opens lanes as tasks of the engine, frees
 * dead holders, moves the low-water marks, and writes which sessions are swept.
 */
#include "janitor/janitor.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "base/thread_context.h"
#include "store/lease.h"
#include "store/sweep.h"
#include "store/view.h"

#include <tradelock/layer.h>

#include <assert.h>
#include <string.h>

/* An opening that meets a row lock is left to the next round. */
#define OPEN_BUDGET_MS 50
#define READ_WAIT_MS 50
/* Every round looks for what became overdue within this time. */
#define RECENT_US (60 * (int64_t)1000000)
/* Behind a row that stays in process a sweep gets the round's time divided by this. */
#define BEHIND_SHARE 8
/* A mark in the future is put back to this long before now: the clock was set back, and rows may
 * have been written before the mark since. */
#define PUT_BACK_US (3600 * (int64_t)1000000)
/* next_run_at = 0 is never due. */
#define FIRST_US 1

struct janitor {
    task_engine *engine;
    const struct logger *logger;
    const char *actor;
    janitor_cursor *cursor;
    int64_t budget_ms, deadline_ms; /* of the half that is under way */
    int64_t latest_us;
    uint64_t opened, freed;
    /* Why the server refused to open a row, the first one; the round goes on with the others. */
    tl_status failure;
    char why[200];
};

typedef db_answer (*statement_fn)(db *connection, store_sweep *scope);

/* Runs a statement on a connection, and gives that back before anything is opened: with a small
 * pool the openings need that very connection. */
static tl_status run(struct janitor *j, statement_fn statement, store_sweep *scope)
{
    pool *connections = transition_pool(j->engine);
    db *connection;
    tl_status status;

    TRY(pool_get(connections, POOL_QUICK, READ_WAIT_MS, &connection));
    status = db_error_status(connection, statement(connection, scope), "the janitor's round");
    pool_put(connections, connection);
    return status;
}

static void open_one(struct janitor *j, const char *op_code, const char *cust_no,
                     const char *serial_no, uint64_t fence)
{
    step_task t = {.step = {.kind = STEP_REAP,
                            .cust_no = cust_no,
                            .serial_no = serial_no,
                            .op_code = op_code,
                            .held_fence = fence,
                            .actor = j->actor,
                            .keep_claims = CLAIMS_KEEP}};
    tl_key key = {serial_no, cust_no, op_code};

    random_token(t.step.token);
    task_run(j->engine, step_task_of(&t), OPEN_BUDGET_MS);
    if (t.task.verdict == VERDICT_APPLIED) {
        j->opened++;
        log_line(j->logger, TL_WARNING, &key, fence,
                 "the holder is dead: the retry lane was opened");
    } else if (t.task.verdict == VERDICT_FAILED && j->failure == TL_OK &&
               tl_status_class(t.task.status) == TL_CLASS_BROKEN) {
        j->failure = t.task.status;
        text_copy(j->why, sizeof j->why, tl_error_message());
        log_line(j->logger, TL_WARNING, &key, fence,
                 "the holder is dead, and the retry lane could not be opened: %s", j->why);
    }
}

/* Opens the rows.  Other janitors read the same ones, so each begins at a random row.  One row is
 * tried even when the time is over; otherwise rounds whose reads take all of it would never open
 * anything.  Log lines of a trade carry the log UUID that its row names and what
 * the row says of itself. */
static void open_all(struct janitor *j, const char *op_code, const db_result *rows)
{
    const tl_said before = *tl_log_context(); /* of a thread of the program that reaps */
    uint32_t first;

    random_bytes(&first, sizeof first);
    for (size_t i = 0; i < rows->rows && (i == 0 || clock_left_ms(j->deadline_ms) > 0); i++) {
        size_t row = (first + i) % rows->rows;
        char cust_no[TL_CUST_MAX + 1], serial_no[TL_SERIAL_MAX + 1];
        tl_said said;
        int lent;

        text_copy(cust_no, sizeof cust_no, db_get_text(rows, row, 0));
        text_copy(serial_no, sizeof serial_no, db_get_text(rows, row, 1));
        lent = thread_context_lend(db_get_text(rows, row, 3));
        view_said(&said, rows, row, 5);
        tl_log_context_set(&said);
        open_one(j, op_code, cust_no, serial_no, db_get_uint(rows, row, 2));
        if (lent)
            thread_context_work("");
    }
    tl_log_context_set(&before);
}

/* Finds the next operation of a sync lane; op_code "" after the last one. */
static tl_status next_operation(struct janitor *j, store_operation *operation)
{
    store_sweep scope = {.operation = *operation};
    tl_status status;

    do {
        status = run(j, store_sweep_operation, &scope);
    } while (status == TL_OK && text_is_retry_op(scope.operation.op_code));
    *operation = scope.operation;
    return status;
}

/* Opens what `read` finds within a stretch, batch after batch.  It stops when a batch opened
 * nothing (none is left, or others open or hold the rows), or the time is over.  The last batch
 * stays in scope->rows.  *hurried: the last batch opened some, and the time is over. */
static tl_status reap(struct janitor *j, store_sweep *scope, statement_fn read, int *hurried)
{
    tl_status status;
    uint64_t before;

    do {
        before = j->opened;
        status = run(j, read, scope);
        if (status == TL_OK)
            open_all(j, scope->op_code, &scope->rows);
    } while (status == TL_OK && j->opened > before && clock_left_ms(j->deadline_ms) > 0);
    *hurried = j->opened > before;
    return status;
}

/* ------------------------------------------------------------- what is overdue -- */

/* Opens what is overdue within a stretch that is not empty.  *mark_us, unless NULL, becomes the
 * first moment at which a row may still be in process; the rows are read after the proof that no
 * uncommitted row is hidden. */
static tl_status reap_stretch(struct janitor *j, store_sweep *scope, int64_t *mark_us)
{
    tl_status status = mark_us != NULL ? run(j, store_sweep_look_hidden, scope) : TL_OK;
    int hurried;

    if (status == TL_OK)
        status = reap(j, scope, store_sweep_overdue, &hurried);
    if (status == TL_OK && mark_us != NULL && !scope->hidden)
        *mark_us = scope->rows.rows > 0 ? db_get_int(&scope->rows, 0, 4) : scope->stretch.to_us;
    db_result_free(&scope->rows);
    return status;
}

/* Opens what became overdue lately, however far the sweep has come. */
static tl_status reap_recent(struct janitor *j, store_sweep *scope, int64_t now_us)
{
    if (scope->stretch.from_us < now_us - RECENT_US)
        scope->stretch.from_us = now_us - RECENT_US;
    scope->stretch.to_us = now_us;
    return reap_stretch(j, scope, NULL);
}

/* Where the last round ran out of time behind a row of this operation that stays in process; 0:
 * nowhere. */
static int64_t take_behind(janitor_cursor *cursor, const char *op_code)
{
    if (strcmp(cursor->overdue_op, op_code) != 0)
        return 0;
    cursor->overdue_op[0] = '\0';
    return cursor->overdue_us;
}

/* One operation at a time is remembered. */
static void remember_behind(janitor_cursor *cursor, const store_sweep *scope)
{
    if (cursor->overdue_op[0] != '\0')
        return;
    text_copy(cursor->overdue_op, sizeof cursor->overdue_op, scope->op_code);
    cursor->overdue_us = scope->stretch.from_us;
}

/* Opens what is overdue from the mark until now, in stretches.  *mark_us becomes the moment of the
 * first row that stays in process; rows behind it are opened all the same. */
static tl_status sweep_operation(struct janitor *j, store_sweep *scope, int64_t now_us,
                                 int64_t *mark_us)
{
    const int64_t go_on_us = take_behind(j->cursor, scope->op_code);
    int64_t deadline_ms = j->deadline_ms;
    tl_status status;
    int behind = 0;

    for (;;) {
        scope->stretch.to_us = now_us;
        status = run(j, store_sweep_stretch, scope);
        if (status == TL_OK && !scope->empty)
            status = reap_stretch(j, scope, behind ? NULL : mark_us);
        if (status != TL_OK || scope->stretch.to_us == now_us)
            return status;
        assert(scope->stretch.from_us < scope->stretch.to_us && *mark_us <= scope->stretch.to_us);
        scope->stretch.from_us = scope->stretch.to_us;
        if (!behind && *mark_us < scope->stretch.from_us) {
            behind = 1; /* at least one more stretch follows */
            deadline_ms = clock_deadline(j->budget_ms / BEHIND_SHARE);
            if (go_on_us > scope->stretch.from_us)
                scope->stretch.from_us = go_on_us;
        } else if (clock_left_ms(deadline_ms) == 0) {
            break;
        }
    }
    if (behind)
        remember_behind(j->cursor, scope);
    return reap_recent(j, scope, now_us);
}

static tl_status move_mark(struct janitor *j, const char *op_code, int64_t from_us, int64_t to_us)
{
    store_sweep scope = {.op_code = op_code, .stretch = {from_us, to_us}};

    return run(j, store_sweep_move, &scope);
}

/* Sweeps an operation and moves its mark.  A mark in the future is put back first. */
static tl_status sweep_from_mark(struct janitor *j, const store_operation *operation)
{
    const int64_t put_back_us = operation->now_us - PUT_BACK_US;
    int64_t from_us = operation->low_water_us, mark_us;
    store_sweep scope = {.op_code = operation->op_code};
    tl_status status = TL_OK;

    if (from_us > operation->now_us) {
        status = move_mark(j, operation->op_code, from_us, put_back_us);
        from_us = put_back_us;
    }
    mark_us = scope.stretch.from_us = from_us;
    if (status == TL_OK)
        status = sweep_operation(j, &scope, operation->now_us, &mark_us);
    assert(from_us <= mark_us && mark_us <= operation->now_us);
    if (status == TL_OK && mark_us > from_us)
        status = move_mark(j, operation->op_code, from_us, mark_us);
    return status;
}

static tl_status sweep_overdue(struct janitor *j)
{
    store_operation operation = {.op_code = ""};
    tl_status status = next_operation(j, &operation);

    while (status == TL_OK && operation.op_code[0] != '\0') {
        status = sweep_from_mark(j, &operation);
        if (status == TL_OK)
            status = next_operation(j, &operation);
    }
    return status;
}

/* -------------------------------------------------------------- ended sessions -- */

/* Notes that a row of this session stayed, or with NULL of any session. */
static void keep(janitor_cursor *cursor, const char *session_id)
{
    for (size_t i = 0; i < cursor->count; i++)
        if (session_id == NULL || strcmp(cursor->sessions[i].id, session_id) == 0)
            cursor->sessions[i].kept = 1;
}

static int are_all_kept(const janitor_cursor *cursor)
{
    for (size_t i = 0; i < cursor->count; i++)
        if (!cursor->sessions[i].kept)
            return 0;
    return 1;
}

static void begin_pass(janitor_cursor *cursor, int everywhere)
{
    cursor->everywhere = everywhere;
    cursor->op_code[0] = '\0';
    cursor->from_us = STRETCH_END_US; /* the first operation is next */
}

/* Goes on to the next operation of the pass.  It is read only now: the sessions have ended, so they
 * have no trade in an operation that is added later. */
static tl_status next_of_pass(struct janitor *j)
{
    janitor_cursor *cursor = j->cursor;
    store_operation operation = {.op_code = ""};
    tl_status status;

    text_copy(operation.op_code, sizeof operation.op_code, cursor->op_code);
    status = next_operation(j, &operation);
    if (status == TL_OK) {
        text_copy(cursor->op_code, sizeof cursor->op_code, operation.op_code);
        cursor->from_us = cursor->everywhere || operation.low_water_us > operation.now_us
                              ? FIRST_US
                              : operation.low_water_us;
    }
    return status;
}

/* Opens what ended sessions held within the next stretch.  If the time was too short for all
 * rows, the next round goes on with this stretch.  Rows that could not be opened may be held by
 * others. */
static tl_status sweep_stretch(struct janitor *j)
{
    janitor_cursor *cursor = j->cursor;
    store_sweep scope = {.op_code = cursor->op_code, .stretch = {cursor->from_us, STRETCH_END_US}};
    tl_status status = run(j, store_sweep_stretch, &scope);
    int hurried = 0;

    if (status == TL_OK && !scope.empty)
        status = reap(j, &scope, store_sweep_dead, &hurried);
    if (status == TL_OK && !hurried) {
        assert(cursor->from_us < scope.stretch.to_us);
        cursor->from_us = scope.stretch.to_us;
        for (size_t row = 0; row < scope.rows.rows; row++)
            keep(cursor, db_get_text(&scope.rows, row, 4));
        if (scope.rows.rows == STORE_SWEEP_BATCH) /* the rest may be any session's */
            keep(cursor, NULL);
    }
    db_result_free(&scope.rows);
    return status;
}

/*
 * Opens what ended sessions held, operation by operation, while there is time; the next round goes
 * on from there.
 *
 * The first pass begins at the low-water marks, behind which the sessions have their trades.  The
 * second one begins at the start of the index: a trade that was asked for while the clock was set
 * back stands before the mark, and perhaps nobody saw that.  It only walks through the index.
 * *done: both passes are finished.
 */
static tl_status sweep_trades(struct janitor *j, int *done)
{
    janitor_cursor *cursor = j->cursor;
    tl_status status = TL_OK;

    do {
        if (cursor->from_us == STRETCH_END_US)
            status = next_of_pass(j);
        if (status == TL_OK && cursor->op_code[0] != '\0')
            status = sweep_stretch(j);
        else if (status == TL_OK && !cursor->everywhere && !are_all_kept(cursor))
            begin_pass(cursor, 1);
        else if (status == TL_OK)
            *done = 1;
    } while (status == TL_OK && !*done && clock_left_ms(j->deadline_ms) > 0);
    return status;
}

/* -------------------------------------------------- holders of read-write locks -- */

/* Frees the dead holders of one resource.  A row that a transaction with a guard has locked is left
 * to the next round. */
static void free_holders_of(struct janitor *j, const char *resource)
{
    pool *connections = transition_pool(j->engine);
    uint8_t token[LEASE_TOKEN];
    uint64_t freed = 0;
    db *connection;

    if (pool_get(connections, POOL_QUICK, READ_WAIT_MS, &connection) != TL_OK)
        return;
    random_token(token);
    if (store_rw_free(connection, resource, 1, token, tl_thread_uuid(), j->actor, j->latest_us,
                      &freed) == DB_DONE &&
        freed > 0)
        log_line(j->logger, TL_WARNING, NULL, 0, "%s: %llu dead holders were freed", resource,
                 (unsigned long long)freed);
    pool_put(connections, connection);
    j->freed += freed;
}

/* Frees a session's holders or, with NULL, those whose time is over, batch after batch.  *left:
 * some that should have been freed are still there. */
static tl_status free_holders(struct janitor *j, const char *session_id, int *left)
{
    store_sweep scope = {.session_id = session_id};
    tl_status status;
    uint64_t before;

    do {
        before = j->freed;
        status = run(j, store_sweep_holders, &scope);
        for (size_t row = 0; row < scope.rows.rows && status == TL_OK; row++) {
            const char *resource = db_get_text(&scope.rows, row, 0);

            if (row == 0 || strcmp(resource, db_get_text(&scope.rows, row - 1, 0)) != 0)
                free_holders_of(j, resource);
        }
    } while (status == TL_OK && j->freed > before && clock_left_ms(j->deadline_ms) > 0);
    *left = scope.rows.rows > 0;
    db_result_free(&scope.rows);
    return status;
}

/* ------------------------------------------------------------------- the round -- */

static const janitor_session *find(const janitor_cursor *cursor, const char *session_id)
{
    for (size_t i = 0; i < cursor->count; i++)
        if (strcmp(cursor->sessions[i].id, session_id) == 0)
            return &cursor->sessions[i];
    return NULL;
}

/* Takes up the ended sessions (session_id, settled) that may have left a trade; a settled one has
 * not, by its owner's word.  Each new one makes the sweep begin anew: its trades stand behind the
 * low-water marks, and must not wait until the whole index was walked through. */
static void take_up(janitor_cursor *cursor, const db_result *ended)
{
    int is_new = 0;

    for (size_t row = 0; row < ended->rows; row++)
        is_new |= db_get_int(ended, row, 1) == 0 && !find(cursor, db_get_text(ended, row, 0));
    if (!is_new)
        return;
    cursor->count = 0;
    begin_pass(cursor, 0);
    for (size_t row = 0; row < ended->rows && cursor->count < JANITOR_SESSIONS; row++) {
        janitor_session *session = &cursor->sessions[cursor->count];

        if (db_get_int(ended, row, 1) != 0)
            continue;
        text_copy(session->id, sizeof session->id, db_get_text(ended, row, 0));
        session->kept = 0;
        cursor->count++;
    }
}

/* Writes that a session is swept, if a sweep that began after its end left no row of it. */
static tl_status finish_session(struct janitor *j, const char *session_id, int settled, int done)
{
    const janitor_session *session = find(j->cursor, session_id);
    store_sweep scope = {.session_id = session_id};
    int left = 0;

    TRY(free_holders(j, session_id, &left));
    if (!left && (settled || (done && session != NULL && !session->kept)))
        TRY(run(j, store_sweep_swept, &scope));
    return TL_OK;
}

static tl_status sweep_sessions(struct janitor *j)
{
    store_sweep scope = {.rows = DB_RESULT_INIT};
    const db_result *ended = &scope.rows;
    tl_status status = run(j, store_sweep_sessions, &scope);
    int done = 0;

    if (status == TL_OK)
        take_up(j->cursor, ended);
    if (status == TL_OK && ended->rows > 0 && j->cursor->count > 0)
        status = sweep_trades(j, &done);
    for (size_t row = 0; row < ended->rows && status == TL_OK; row++)
        status =
            finish_session(j, db_get_text(ended, row, 0), db_get_int(ended, row, 1) != 0, done);
    if (done || ended->rows == 0)
        j->cursor->count = 0; /* sessions that kept rows are taken up again */
    db_result_free(&scope.rows);
    return status;
}

tl_status janitor_round(task_engine *engine, const struct logger *logger, const char *actor,
                        int64_t budget_ms, int64_t latest_us, janitor_cursor *cursor,
                        uint64_t *opened, uint64_t *freed)
{
    struct janitor j = {.engine = engine,
                        .logger = logger,
                        .actor = actor,
                        .cursor = cursor,
                        .budget_ms = budget_ms / 2,
                        .latest_us = latest_us,
                        .deadline_ms = clock_deadline(budget_ms / 2)};
    tl_status status = sweep_overdue(&j), dead = TL_OK;
    int left;

    if (status == TL_OK)
        status = free_holders(&j, NULL, &left);
    /* The dead get half of the time whatever became of the first half, which many operations may
     * use up in each round. */
    j.deadline_ms = clock_deadline(j.budget_ms);
    if (status != TL_UNREACHABLE)
        dead = sweep_sessions(&j);
    if (status == TL_OK)
        status = dead;
    if (status == TL_OK && j.failure != TL_OK)
        status = error_set(j.failure, "not every dead holder's trade was opened: %s", j.why);
    *opened += j.opened;
    *freed += j.freed;
    return status;
}
