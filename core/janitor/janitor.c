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

typedef db_answer (*reap_read_fn)(db *connection, const char *op_code,
                                  const char *session_id, db_result *rows);

/* Reads on a connection that is given back before anything is opened: with a small pool
 * the openings need that very connection. */
static tl_status read_rows(struct janitor *j, reap_read_fn read, const char *op_code,
                           const char *session_id, db_result *rows)
{
    pool *connections = transition_pool(j->engine);
    db *connection;
    db_answer answer;
    tl_status status = pool_get(connections, POOL_QUICK, READ_WAIT_MS, &connection);

    if (status != TL_OK)
        return status;
    answer = read(connection, op_code, session_id, rows);
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

static db_answer read_overdue(db *connection, const char *op_code, const char *session_id,
                              db_result *rows)
{
    (void)session_id;
    return store_reap_overdue(connection, op_code, rows);
}

static db_answer read_session(db *connection, const char *op_code, const char *session_id,
                              db_result *rows)
{
    return store_reap_session(connection, op_code, session_id, rows);
}

static db_answer read_operations(db *connection, const char *op_code,
                                 const char *session_id, db_result *rows)
{
    (void)op_code;
    (void)session_id;
    return store_operations(connection, rows);
}

static db_answer read_ended(db *connection, const char *op_code, const char *session_id,
                            db_result *rows)
{
    (void)op_code;
    (void)session_id;
    return store_session_to_sweep(connection, rows);
}

static db_answer write_swept(db *connection, const char *op_code, const char *session_id,
                             db_result *rows)
{
    (void)op_code;
    (void)rows;
    return store_session_swept(connection, session_id);
}

/* Reads batch after batch of one operation until nothing is left, until one opens nothing
 * any more (others are at it, or hold the rows), or until the time is over. */
static tl_status reap_operation(struct janitor *j, const char *op_code,
                                const char *session_id, reap_read_fn read)
{
    db_result rows = DB_RESULT_INIT;
    tl_status status;
    uint64_t before;

    do {
        before = j->opened;
        status = read_rows(j, read, op_code, session_id, &rows);
        if (status == TL_OK)
            open_all(j, op_code, &rows);
    } while (status == TL_OK && rows.rows > 0 && j->opened > before &&
             clock_left_ms(j->deadline_ms) > 0);
    if (rows.rows > 0)
        j->unfinished = 1;
    db_result_free(&rows);
    return status;
}

static tl_status reap_operations(struct janitor *j, const db_result *operations,
                                 const char *session_id, reap_read_fn read)
{
    tl_status status = TL_OK;

    for (size_t row = 0; row < operations->rows && status == TL_OK; row++) {
        const char *op_code = db_get_text(operations, row, 0);

        if (!is_retry_op(op_code))
            status = reap_operation(j, op_code, session_id, read);
    }
    return status;
}

/* -------------------------------------------------- holders of read-write locks -- */

static db_answer read_holders_overdue(db *connection, const char *op_code,
                                      const char *session_id, db_result *rows)
{
    (void)op_code;
    (void)session_id;
    return store_rw_overdue(connection, rows);
}

static db_answer read_holders_of_session(db *connection, const char *op_code,
                                         const char *session_id, db_result *rows)
{
    (void)op_code;
    return store_rw_session(connection, session_id, rows);
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
    db_result rows = DB_RESULT_INIT;
    tl_status status;
    uint64_t before;

    do {
        before = j->freed;
        status = read_rows(j, read, NULL, session_id, &rows);
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
    tl_status status = read_rows(j, read_ended, NULL, NULL, &sessions);

    for (size_t row = 0; row < sessions.rows && status == TL_OK; row++) {
        const char *session_id;

        if (clock_left_ms(j->deadline_ms) == 0)
            break;
        session_id = db_get_text(&sessions, row, 0);

        j->unfinished = 0;
        status = reap_operations(j, operations, session_id, read_session);
        if (status == TL_OK)
            status = free_holders(j, session_id, read_holders_of_session);
        if (status == TL_OK && !j->unfinished)
            status = read_rows(j, write_swept, NULL, session_id, NULL);
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
    tl_status status = read_rows(&j, read_operations, NULL, NULL, &operations);

    if (status == TL_OK)
        status = reap_operations(&j, &operations, NULL, read_overdue);
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
