#include "janitor/janitor.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"
#include "base/thread_context.h"
#include "store/store.h"
#include "store/rw.h"

#include <string.h>

/* An opening that meets a row lock is left to the next round. */
#define OPEN_BUDGET_MS 50
#define READ_WAIT_MS 50
/* What ended so long ago at most is looked for although the low-water mark stands still. */
#define RECENT_US (60 * (int64_t)1000000)
/* Behind a stretch that is not settled the rest is looked through every so many rounds. */
#define UNSETTLED_ROUNDS 8
/* next_run_at = 0 is never due. */
#define FIRST_US 1

struct janitor {
    transition_engine *engine;
    const struct logger *logger;
    const char *actor;
    int64_t deadline_ms;
    uint64_t opened, freed;
    janitor_place *place;
    /* A round looks at one stretch for the dead at least, and each half of it tries to open one
     * trade, though the time is over: to come so far may take all of it, and would again. */
    int looked;
    uint64_t tries; /* in this half */
    int unfinished; /* holders that should have been freed are still there */
    int went_back;  /* low-water marks were read that were too late */
    /* Of the first row that the server refuses to open; the others are gone on with. */
    tl_status failure;
    char why[200];
};

/* What is read; which fields count depends on the reader. */
struct scope {
    const char *op_code, *session_id;
    store_stretch stretch;
    store_part part;            /* set by read_stretch() */
    store_operation *operation; /* set by read_operation() */
    int clear; /* set by read_clear(): nobody has a row of it in an open transaction */
};

typedef db_answer (*reap_read_fn)(db *connection, struct scope *scope, db_result *rows);

/* Reads on a connection that is given back before anything is opened: with a small pool the
 * openings need that very connection. */
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
    step_task t = {.step = {.kind = STEP_REAP,
                            .cust_no = cust_no,
                            .serial_no = serial_no,
                            .op_code = op_code,
                            .held_fence = fence,
                            .actor = j->actor,
                            .keep_claims = 1}};
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

/* Other janitors read the same rows; each begins at another one.  What is said of a trade is said
 * under the work that its row names. */
static void open_all(struct janitor *j, const char *op_code, const db_result *rows)
{
    uint32_t first;

    random_bytes(&first, sizeof first);
    for (size_t i = 0; i < rows->rows && (j->tries == 0 || clock_left_ms(j->deadline_ms) > 0);
         i++) {
        size_t row = (first + i) % rows->rows;
        char cust_no[TL_CUST_MAX + 1], serial_no[TL_SERIAL_MAX + 1];
        int lent;

        text_copy(cust_no, sizeof cust_no, db_get_text(rows, row, 0));
        text_copy(serial_no, sizeof serial_no, db_get_text(rows, row, 1));
        j->tries++;
        lent = thread_context_lend(db_get_text(rows, row, 3));
        open_one(j, op_code, cust_no, serial_no, db_get_uint(rows, row, 2));
        if (lent)
            thread_context_work("");
    }
}

static int is_retry_op(const char *op_code)
{
    size_t size = strlen(op_code), suffix = strlen(TL_RETRY_SUFFIX);

    return size > suffix && strcmp(op_code + size - suffix, TL_RETRY_SUFFIX) == 0;
}

static db_answer read_overdue(db *connection, struct scope *scope, db_result *rows)
{
    return store_reap_overdue(connection, scope->op_code, &scope->stretch, rows);
}

static int is_taken(const db *connection, db_answer answer)
{
    return answer == DB_ERROR && db_error_classify(db_errno(connection)) == DB_CLASS_REPEAT;
}

static db_answer read_clear(db *connection, struct scope *scope, db_result *rows)
{
    db_answer answer = store_low_water_clear(connection, scope->op_code, &scope->stretch);

    (void)rows;
    scope->clear = answer == DB_DONE;
    return is_taken(connection, answer) ? DB_DONE : answer;
}

static db_answer read_session(db *connection, struct scope *scope, db_result *rows)
{
    return store_reap_session(connection, scope->op_code, scope->session_id, &scope->stretch, rows);
}

static db_answer read_stretch(db *connection, struct scope *scope, db_result *rows)
{
    (void)rows;
    scope->stretch.to_us = STRETCH_END_US;
    return store_low_water_stretch(connection, scope->op_code, &scope->stretch, &scope->part);
}

static db_answer write_low_water(db *connection, struct scope *scope, db_result *rows)
{
    db_answer answer = store_low_water_move(connection, scope->op_code, scope->stretch.from_us,
                                            scope->stretch.to_us);

    (void)rows;
    return is_taken(connection, answer) ? DB_DONE : answer; /* another moves it */
}

static db_answer write_low_water_back(db *connection, struct scope *scope, db_result *rows)
{
    db_answer answer = store_low_water_back(connection, scope->op_code);

    (void)rows;
    return is_taken(connection, answer) ? DB_DONE : answer;
}

static db_answer read_operation(db *connection, struct scope *scope, db_result *rows)
{
    (void)rows;
    return store_operation_next(connection, scope->operation);
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

/* The next operation that has trades, and not their retry lane; op_code "" behind the last. */
static tl_status next_operation(struct janitor *j, store_operation *operation)
{
    struct scope scope = {.operation = operation};
    tl_status status;

    do {
        status = read_rows(j, read_operation, &scope, NULL);
    } while (status == TL_OK && is_retry_op(operation->op_code));
    return status;
}

/* Reads batch after batch of one operation until nothing is left, until one opens nothing any
 * more (others are at it, or hold the rows), or until the time is over.  The last batch stays in
 * rows. */
static tl_status reap(struct janitor *j, struct scope *scope, reap_read_fn read, db_result *rows)
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
    return status;
}

/* Opens what is overdue within a stretch.  *settled_us, where it is the stretch's beginning,
 * becomes the first moment at which a row may be in process still.  The rows are read after the
 * proof that none is hidden. */
static tl_status reap_stretch(struct janitor *j, struct scope *scope, int64_t *settled_us)
{
    int settled = *settled_us == scope->stretch.from_us;
    db_result rows = DB_RESULT_INIT;
    tl_status status = settled ? read_rows(j, read_clear, scope, NULL) : TL_OK;

    if (status == TL_OK)
        status = reap(j, scope, read_overdue, &rows);
    if (status == TL_OK && settled && scope->clear)
        *settled_us = rows.rows > 0 ? db_get_int(&rows, 0, 4) : scope->stretch.to_us;
    db_result_free(&rows);
    return status;
}

/* What became overdue lately. */
static tl_status reap_recent(struct janitor *j, struct scope *scope, int64_t now_us)
{
    db_result rows = DB_RESULT_INIT;
    tl_status status;

    if (scope->stretch.from_us < now_us - RECENT_US)
        scope->stretch.from_us = now_us - RECENT_US;
    scope->stretch.to_us = now_us;
    status = reap(j, scope, read_overdue, &rows);
    db_result_free(&rows);
    return status;
}

/* Behind a stretch that could not be settled: not in every round, and on from where the last such
 * round ran out of time.  0: not now. */
static int go_on_unsettled(struct janitor *j, struct scope *scope)
{
    janitor_place *place = j->place;

    if (place->rounds % UNSETTLED_ROUNDS != 0)
        return 0;
    if (strcmp(place->overdue_op, scope->op_code) == 0) {
        if (place->overdue_us > scope->stretch.from_us)
            scope->stretch.from_us = place->overdue_us;
        place->overdue_op[0] = '\0';
    }
    return 1;
}

static void remember_overdue(struct janitor *j, const struct scope *scope)
{
    janitor_place *place = j->place;

    if (place->overdue_op[0] != '\0')
        return;
    text_copy(place->overdue_op, sizeof place->overdue_op, scope->op_code);
    place->overdue_us = scope->stretch.from_us;
}

/*
 * Looks for what is overdue from the low-water mark on, in stretches, and moves the mark. It stands
 * still before a row that cannot be opened, and while an open transaction has one; what stands
 * behind those is opened all the same, and what is new even when the time is over.
 */
static tl_status reap_overdue(struct janitor *j, const char *op_code, int64_t low_water_us)
{
    struct scope scope = {.op_code = op_code, .stretch = {.from_us = low_water_us}};
    int64_t settled_us = low_water_us, now_us = 0;
    tl_status status;
    int empty = 0, last = 0, unsettled = 0, more;

    do {
        status = read_rows(j, read_stretch, &scope, NULL);
        now_us = scope.part.now_us;
        if (status == TL_OK && now_us < low_water_us) {
            j->went_back = 1;
            return read_rows(j, write_low_water_back, &scope, NULL);
        }
        empty = scope.part.empty || scope.part.first_us >= now_us;
        if (status != TL_OK || empty)
            break;
        last = scope.stretch.to_us >= now_us;
        if (last)
            scope.stretch.to_us = now_us;
        status = reap_stretch(j, &scope, &settled_us);
        scope.stretch.from_us = scope.stretch.to_us;
        more = status == TL_OK && !last;
        if (more && !unsettled && settled_us < scope.stretch.from_us) {
            unsettled = 1;
            more = go_on_unsettled(j, &scope);
        }
        if (more && clock_left_ms(j->deadline_ms) == 0) {
            more = 0;
            if (unsettled)
                remember_overdue(j, &scope);
        }
    } while (more);
    if (status == TL_OK && settled_us > low_water_us) {
        struct scope moved = {.op_code = op_code, .stretch = {low_water_us, settled_us}};

        status = read_rows(j, write_low_water, &moved, NULL);
    }
    return status == TL_OK && !last && !empty ? reap_recent(j, &scope, now_us) : status;
}

static tl_status reap_all_overdue(struct janitor *j)
{
    store_operation operation = {"", 0};
    tl_status status = next_operation(j, &operation);

    while (status == TL_OK && operation.op_code[0] != '\0') {
        status = reap_overdue(j, operation.op_code, operation.low_water_us);
        if (status == TL_OK)
            status = next_operation(j, &operation);
    }
    j->place->rounds++;
    return status;
}

/* -------------------------------------------------------------- ended sessions -- */

/* Opens what the session held of one operation.  1 in *out_of_time: scope says how far, and so it
 * does after a failure.  A stretch with rows left for want of time is gone on with, but left behind
 * where those that were tried could not be opened: others may have them. */
static tl_status reap_session(struct janitor *j, struct scope *scope, int *out_of_time)
{
    db_result rows = DB_RESULT_INIT;
    tl_status status = TL_OK;
    uint64_t opened, tries;
    int last = 0;

    do {
        if (j->looked && clock_left_ms(j->deadline_ms) == 0) {
            *out_of_time = 1;
            break;
        }
        j->looked = 1;
        opened = j->opened;
        tries = j->tries;
        status = read_rows(j, read_stretch, scope, NULL);
        if (status != TL_OK || scope->part.empty)
            break;
        status = reap(j, scope, read_session, &rows);
        if (status != TL_OK)
            break;
        if (rows.rows > 0 && clock_left_ms(j->deadline_ms) == 0 &&
            (j->opened > opened || j->tries == tries))
            continue;
        if (rows.rows > 0)
            j->place->kept = 1;
        last = scope->stretch.to_us == STRETCH_END_US;
        scope->stretch.from_us = scope->stretch.to_us;
    } while (status == TL_OK && !last);
    db_result_free(&rows);
    return status;
}

/* One of two passes over all operations, in the order of their names; it goes on in the next round
 * where the time was over.  The operations are read now: the session is ended, and has no trade in
 * one that is not there yet.  *done: the pass came to its end, and opened all. */
static tl_status pass_for_session(struct janitor *j, const char *session_id, int *done)
{
    janitor_place *place = j->place;
    store_operation operation = {"", 0};
    tl_status status;
    int out_of_time = 0;

    text_copy(operation.op_code, sizeof operation.op_code, place->after);
    do {
        struct scope scope = {.op_code = operation.op_code, .session_id = session_id};

        text_copy(place->after, sizeof place->after, operation.op_code);
        status = next_operation(j, &operation);
        if (status != TL_OK || operation.op_code[0] == '\0')
            break;
        scope.stretch.from_us = place->everywhere ? FIRST_US : operation.low_water_us;
        if (strcmp(operation.op_code, place->op_code) == 0 &&
            place->from_us > scope.stretch.from_us)
            scope.stretch.from_us = place->from_us;
        status = reap_session(j, &scope, &out_of_time);
        if (scope.part.now_us == 0) /* not looked at: the next round begins at its mark */
            continue;
        text_copy(place->op_code, sizeof place->op_code, scope.op_code);
        place->from_us = scope.stretch.from_us;
    } while (status == TL_OK && !out_of_time);
    *done = status == TL_OK && !out_of_time && !place->kept;
    /* The next pass begins anew; but for want of a connection none has to. */
    if (!out_of_time && tl_status_class(status) != TL_CLASS_RETRY)
        place->op_code[0] = '\0';
    return status;
}

static void begin_pass(janitor_place *place, int everywhere)
{
    /* No operation yet, and yet it is under way. */
    text_copy(place->op_code, sizeof place->op_code, "-");
    place->after[0] = '\0';
    place->from_us = 0;
    place->kept = 0;
    place->everywhere = everywhere;
}

/* From the low-water marks on, where it has its trades; and then everywhere: before a mark one
 * stands that was written by a clock that had been set back, which perhaps nobody saw.  The second
 * pass only walks through the index. */
static tl_status reap_all_of_session(struct janitor *j, const char *session_id, int *done)
{
    janitor_place *place = j->place;
    tl_status status = TL_OK;

    if (strcmp(place->session_id, session_id) != 0 || place->op_code[0] == '\0') {
        text_copy(place->session_id, sizeof place->session_id, session_id);
        begin_pass(place, 0);
    }
    if (!place->everywhere) {
        status = pass_for_session(j, session_id, done);
        if (status != TL_OK || !*done)
            return status;
        begin_pass(place, 1);
    }
    return pass_for_session(j, session_id, done);
}

/* -------------------------------------------------- holders of read-write locks -- */

static db_answer read_holders_overdue(db *connection, struct scope *scope, db_result *rows)
{
    (void)scope;
    return store_rw_overdue(connection, rows);
}

static db_answer read_holders_of_session(db *connection, struct scope *scope, db_result *rows)
{
    return store_rw_session(connection, scope->session_id, rows);
}

/* The dead holders of one resource.  A row that a guarded transaction keeps is left to the next
 * round. */
static void free_holders_of(struct janitor *j, const char *resource)
{
    pool *connections = transition_pool(j->engine);
    uint8_t token[RW_TOKEN];
    uint64_t freed = 0;
    db *connection;

    if (pool_get(connections, POOL_QUICK, READ_WAIT_MS, &connection) != TL_OK)
        return;
    random_token(token);
    if (store_rw_free(connection, resource, 1, token, tl_thread_uuid(), j->actor, &freed) ==
            DB_DONE &&
        freed > 0)
        log_line(j->logger, TL_WARNING, NULL, 0, "%s: %llu dead holders were freed", resource,
                 (unsigned long long)freed);
    pool_put(connections, connection);
    j->freed += freed;
}

/* Batch after batch, as for an operation's rows. */
static tl_status free_holders(struct janitor *j, const char *session_id, reap_read_fn read)
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

static tl_status sweep(struct janitor *j, const char *session_id, int settled)
{
    struct scope scope = {.session_id = session_id};
    int done = settled;
    tl_status status = TL_OK;

    if (!settled)
        status = reap_all_of_session(j, session_id, &done);
    else if (j->place->op_code[0] == '\0') /* the next round begins behind it */
        text_copy(j->place->session_id, sizeof j->place->session_id, session_id);
    j->unfinished = 0;
    if (status == TL_OK)
        status = free_holders(j, session_id, read_holders_of_session);
    if (status == TL_OK && done && !j->unfinished)
        status = read_rows(j, write_swept, &scope, NULL);
    return status;
}

/* A session is swept when a pass has found nothing of it that stayed.  The first is the one that
 * the last round had not the time for, or the next after that one: a session that cannot be swept
 * does not keep the others from it. */
static tl_status sweep_sessions(struct janitor *j)
{
    db_result sessions = DB_RESULT_INIT;
    tl_status status = read_rows(j, read_ended, NULL, &sessions);
    size_t first = 0;
    int there = 0;

    for (size_t row = 0; row < sessions.rows && status == TL_OK; row++) {
        if (strcmp(db_get_text(&sessions, row, 0), j->place->session_id) == 0) {
            first = row + (j->place->op_code[0] == '\0');
            there = 1;
        }
    }
    if (status == TL_OK && !there)
        j->place->op_code[0] = '\0'; /* another janitor came to its end */
    for (size_t i = 0; i < sessions.rows && status == TL_OK; i++) {
        size_t row = (first + i) % sessions.rows;

        if (i > 0 && clock_left_ms(j->deadline_ms) == 0)
            break;
        status = sweep(j, db_get_text(&sessions, row, 0), db_get_int(&sessions, row, 1) != 0);
    }
    db_result_free(&sessions);
    return status;
}

tl_status janitor_round(transition_engine *engine, const struct logger *logger, const char *actor,
                        int64_t budget_ms, janitor_place *place, uint64_t *opened, uint64_t *freed)
{
    struct janitor j = {.engine = engine,
                        .logger = logger,
                        .actor = actor,
                        .place = place,
                        .deadline_ms = clock_deadline(budget_ms / 2)};
    tl_status status = reap_all_overdue(&j), dead = TL_OK;

    if (status == TL_OK)
        status = free_holders(&j, NULL, read_holders_overdue);
    /* The dead have time of their own, and their turn whatever became of what is overdue: among
     * many operations that may need all of its time in each round. */
    j.deadline_ms = clock_deadline(budget_ms / 2);
    j.tries = 0;
    if (status != TL_UNREACHABLE && !j.went_back)
        dead = sweep_sessions(&j);
    if (status == TL_OK)
        status = dead;
    if (status == TL_OK && j.failure != TL_OK)
        status = error_set(j.failure, "not every dead holder's trade was opened: %s", j.why);
    *opened += j.opened;
    *freed += j.freed;
    return status;
}
