#include "janitor/janitor.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"
#include "store/store.h"
#include "store/store_rw.h"

#include <string.h>

/* An opening that meets a row lock is left to the next round. */
#define OPEN_BUDGET_MS 50
#define READ_WAIT_MS 50
/* What ended so long ago at most is looked for although the low-water mark stands still. */
#define RECENT_US (60 * (int64_t)1000000)

struct janitor {
    transition_engine *engine;
    const struct logger *logger;
    const char *actor;
    int64_t deadline_ms;
    uint64_t opened, freed;
    int unfinished; /* rows that should have been opened are still there */
    /* Of the first row that the server refuses to open; the others are gone on with. */
    tl_status failure;
    char why[200];
};

/* What is read; which fields count depends on the reader. */
struct scope {
    const char *op_code, *session_id;
    store_stretch stretch; /* a session's rows: from_us on */
    int taken;             /* set by read_clear() */
};

typedef db_answer (*reap_read_fn)(db *connection, struct scope *scope, db_result *rows);

/* Reads on a connection that is given back before anything is opened: with a small pool
 * the openings need that very connection. */
static tl_status read_rows(struct janitor *j, reap_read_fn read, struct scope *scope,
                           db_result *rows)
{
    pool *connections = transition_pool(j->engine);
    db *connection;
    db_answer answer;
    tl_status status = pool_get(connections, POOL_QUICK, READ_WAIT_MS, &connection);

    if (status != TL_OK)
        return status;
    answer = read(connection, scope, rows);
    if (answer != DB_DONE)
        status = db_error_status(connection, answer, "the janitor's round");
    pool_put(connections, connection);
    return status;
}

static void open_one(struct janitor *j, const char *op_code, const char *cust_no,
                     const char *serial_no, uint64_t fence)
{
    transition t = {.step = {.kind = STEP_REAP,
                             .cust_no = cust_no,
                             .serial_no = serial_no,
                             .op_code = op_code,
                             .held_fence = fence,
                             .actor = j->actor,
                             .keep_claims = 1}};
    transition *one = &t;
    tl_key key = {serial_no, cust_no, op_code};

    random_token(t.step.token);
    transition_run(j->engine, &one, 1, OPEN_BUDGET_MS);
    if (t.verdict == VERDICT_APPLIED) {
        j->opened++;
        log_line(j->logger, TL_WARNING, &key, fence,
                 "the holder is dead: the retry lane was opened");
    } else if (t.verdict == VERDICT_FAILED && j->failure == TL_OK &&
               tl_status_class(t.status) == TL_CLASS_BROKEN) {
        j->failure = t.status;
        text_copy(j->why, sizeof j->why, tl_error_message());
        log_line(j->logger, TL_WARNING, &key, fence,
                 "the holder is dead, and the retry lane could not be opened: %s",
                 j->why);
    }
}

/* Other janitors read the same rows; each begins at another one. */
static void open_all(struct janitor *j, const char *op_code, const db_result *rows)
{
    uint32_t first;

    random_bytes(&first, sizeof first);
    for (size_t i = 0; i < rows->rows && clock_left_ms(j->deadline_ms) > 0; i++) {
        size_t row = (first + i) % rows->rows;
        char cust_no[TL_CUST_MAX + 1], serial_no[TL_SERIAL_MAX + 1];

        text_copy(cust_no, sizeof cust_no, db_get_text(rows, row, 0));
        text_copy(serial_no, sizeof serial_no, db_get_text(rows, row, 1));
        open_one(j, op_code, cust_no, serial_no, db_get_uint(rows, row, 2));
    }
}

static int is_retry_op(const char *op_code)
{
    size_t size = strlen(op_code), suffix = strlen(TL_RETRY_SUFFIX);

    return size > suffix && strcmp(op_code + size - suffix, TL_RETRY_SUFFIX) == 0;
}

static db_answer read_overdue(db *connection, struct scope *scope, db_result *rows)
{
    return store_reap_overdue(connection, scope->op_code, &scope->stretch, 0, rows);
}

/* Where somebody has a row of the stretch in an open transaction, what is seen is read all
 * the same. */
static db_answer read_clear(db *connection, struct scope *scope, db_result *rows)
{
    db_answer answer =
        store_reap_overdue(connection, scope->op_code, &scope->stretch, 1, rows);

    scope->taken = answer == DB_ERROR && db_row_is_taken(connection);
    return scope->taken ? read_overdue(connection, scope, rows) : answer;
}

static db_answer read_session(db *connection, struct scope *scope, db_result *rows)
{
    return store_reap_session(connection, scope->op_code, scope->session_id,
                              scope->stretch.from_us, rows);
}

static db_answer read_stretch(db *connection, struct scope *scope, db_result *rows)
{
    return store_low_water_stretch(connection, scope->op_code, scope->stretch.from_us,
                                   rows);
}

static db_answer write_low_water(db *connection, struct scope *scope, db_result *rows)
{
    (void)rows;
    return store_low_water_move(connection, scope->op_code, scope->stretch.from_us,
                                scope->stretch.to_us);
}

static db_answer write_low_water_back(db *connection, struct scope *scope,
                                      db_result *rows)
{
    (void)rows;
    return store_low_water_back(connection, scope->op_code);
}

static db_answer read_operations(db *connection, struct scope *scope, db_result *rows)
{
    (void)scope;
    return store_operations(connection, rows);
}

static db_answer read_ended(db *connection, struct scope *scope, db_result *rows)
{
    (void)scope;
    return store_session_to_sweep(connection, rows);
}

static db_answer write_swept(db *connection, struct scope *scope, db_result *rows)
{
    (void)rows;
    return store_session_swept(connection, scope->session_id);
}

/* Reads batch after batch of one operation until nothing is left, until one opens nothing
 * any more (others are at it, or hold the rows), or until the time is over.  The last batch
 * stays in rows. */
static tl_status reap(struct janitor *j, struct scope *scope, reap_read_fn read,
                      db_result *rows)
{
    tl_status status;
    uint64_t before;

    do {
        before = j->opened;
        status = read_rows(j, read, scope, rows);
        if (status == TL_OK)
            open_all(j, scope->op_code, rows);
    } while (status == TL_OK && rows->rows > 0 && j->opened > before &&
             clock_left_ms(j->deadline_ms) > 0);
    if (rows->rows > 0)
        j->unfinished = 1;
    return status;
}

/* Opens what is overdue within a stretch, and moves the low-water mark behind it, or to the
 * first row that is in process still.  *done: nothing of it is. */
static tl_status reap_stretch(struct janitor *j, struct scope *scope, int *done)
{
    struct scope settled = *scope;
    db_result rows = DB_RESULT_INIT;
    tl_status status = reap(j, scope, read_clear, &rows);

    *done = status == TL_OK && !scope->taken && rows.rows == 0;
    if (rows.rows > 0)
        settled.stretch.to_us = db_get_int(&rows, 0, 3);
    if (status == TL_OK && !scope->taken &&
        settled.stretch.to_us > settled.stretch.from_us)
        status = read_rows(j, write_low_water, &settled, NULL);
    db_result_free(&rows);
    return status;
}

/*
 * Looks for what is overdue from the low-water mark on, in stretches.  The mark stands
 * still before a row that cannot be opened, and while an open transaction has one; what
 * became overdue lately is opened all the same.
 */
static tl_status reap_overdue(struct janitor *j, const char *op_code,
                              int64_t low_water_us)
{
    struct scope scope = {.op_code = op_code, .stretch = {.from_us = low_water_us}};
    db_result found = DB_RESULT_INIT;
    tl_status status;
    int64_t now_us = 0;
    int done = 1, last = 0;

    do {
        status = read_rows(j, read_stretch, &scope, &found);
        if (status != TL_OK)
            break;
        now_us = db_get_int(&found, 0, 2);
        if (now_us < scope.stretch.from_us) {
            status = read_rows(j, write_low_water_back, &scope, NULL);
            break;
        }
        last = db_is_null(&found, 0, 1);
        if (db_is_null(&found, 0, 0))
            break;
        scope.stretch.to_us = last ? now_us : db_get_int(&found, 0, 1);
        status = reap_stretch(j, &scope, &done);
        scope.stretch.from_us = scope.stretch.to_us;
    } while (status == TL_OK && done && !last && clock_left_ms(j->deadline_ms) > 0);
    if (status == TL_OK && !last && now_us > scope.stretch.from_us) {
        if (scope.stretch.from_us < now_us - RECENT_US)
            scope.stretch.from_us = now_us - RECENT_US;
        scope.stretch.to_us = now_us;
        status = reap(j, &scope, read_overdue, &found);
    }
    db_result_free(&found);
    return status;
}

/* Every operation's; its retry rows are not the janitor's. */
static tl_status reap_operations(struct janitor *j, const db_result *operations,
                                 const char *session_id)
{
    db_result rows = DB_RESULT_INIT;
    tl_status status = TL_OK;

    for (size_t row = 0; row < operations->rows && status == TL_OK; row++) {
        struct scope scope = {.op_code = db_get_text(operations, row, 0),
                              .session_id = session_id,
                              .stretch = {.from_us = db_get_int(operations, row, 1)}};

        if (is_retry_op(scope.op_code))
            continue;
        status = session_id == NULL
                     ? reap_overdue(j, scope.op_code, scope.stretch.from_us)
                     : reap(j, &scope, read_session, &rows);
    }
    db_result_free(&rows);
    return status;
}

/* -------------------------------------------------- holders of read-write locks -- */

static db_answer read_holders_overdue(db *connection, struct scope *scope,
                                      db_result *rows)
{
    (void)scope;
    return store_rw_overdue(connection, rows);
}

static db_answer read_holders_of_session(db *connection, struct scope *scope,
                                         db_result *rows)
{
    return store_rw_session(connection, scope->session_id, rows);
}

/* The dead holders of one resource.  A row that a guarded transaction keeps is left to the
 * next round. */
static void free_holders_of(struct janitor *j, const char *resource)
{
    pool *connections = transition_pool(j->engine);
    uint8_t token[RW_TOKEN];
    uint64_t freed = 0;
    db *connection;

    if (pool_get(connections, POOL_QUICK, READ_WAIT_MS, &connection) != TL_OK)
        return;
    random_token(token);
    if (store_rw_free(connection, resource, 1, token, tl_thread_uuid(), j->actor,
                      &freed) == DB_DONE &&
        freed > 0)
        log_line(j->logger, TL_WARNING, NULL, 0, "%s: %llu dead holders were freed",
                 resource, (unsigned long long)freed);
    pool_put(connections, connection);
    j->freed += freed;
}

/* Batch after batch, as for an operation's rows. */
static tl_status free_holders(struct janitor *j, const char *session_id,
                              reap_read_fn read)
{
    struct scope scope = {.session_id = session_id};
    db_result rows = DB_RESULT_INIT;
    tl_status status;
    uint64_t before;

    do {
        before = j->freed;
        status = read_rows(j, read, &scope, &rows);
        for (size_t row = 0; row < rows.rows && status == TL_OK; row++) {
            const char *resource = db_get_text(&rows, row, 0);

            if (row == 0 || strcmp(resource, db_get_text(&rows, row - 1, 0)) != 0)
                free_holders_of(j, resource);
        }
    } while (status == TL_OK && rows.rows > 0 && j->freed > before &&
             clock_left_ms(j->deadline_ms) > 0);
    if (rows.rows > 0)
        j->unfinished = 1;
    db_result_free(&rows);
    return status;
}

/* A session is swept when nothing of it was found any more. */
static tl_status sweep_sessions(struct janitor *j, const db_result *operations)
{
    db_result sessions = DB_RESULT_INIT;
    tl_status status = read_rows(j, read_ended, NULL, &sessions);

    for (size_t row = 0; row < sessions.rows && status == TL_OK; row++) {
        struct scope scope = {.session_id = db_get_text(&sessions, row, 0)};

        if (clock_left_ms(j->deadline_ms) == 0)
            break;
        j->unfinished = 0;
        status = reap_operations(j, operations, scope.session_id);
        if (status == TL_OK)
            status = free_holders(j, scope.session_id, read_holders_of_session);
        if (status == TL_OK && !j->unfinished)
            status = read_rows(j, write_swept, &scope, NULL);
    }
    db_result_free(&sessions);
    return status;
}

tl_status janitor_round(transition_engine *engine, const struct logger *logger,
                        const char *actor, int64_t budget_ms, uint64_t *opened,
                        uint64_t *freed)
{
    struct janitor j = {.engine = engine,
                        .logger = logger,
                        .actor = actor,
                        .deadline_ms = clock_deadline(budget_ms)};
    db_result operations = DB_RESULT_INIT;
    tl_status status = read_rows(&j, read_operations, NULL, &operations);

    if (status == TL_OK)
        status = reap_operations(&j, &operations, NULL);
    if (status == TL_OK)
        status = free_holders(&j, NULL, read_holders_overdue);
    if (status == TL_OK)
        status = sweep_sessions(&j, &operations);
    if (status == TL_OK && j.failure != TL_OK)
        status =
            error_set(j.failure, "not every dead holder's trade was opened: %s", j.why);
    db_result_free(&operations);
    *opened += j.opened;
    *freed += j.freed;
    return status;
}
