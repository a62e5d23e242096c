/*
 * Claiming due work in batches: candidates by the index on due time, stepping over rows that others
 * are at, and all claims of a batch in one statement and one transaction, which is one task.
 *
 * A claim that was committed must reach its caller, or nobody would work on that trade until its
 * max_hold is over.  So each claim of a batch whose commit was not answered is settled by its own
 * token, and each that could not be settled or read yet stays with the client and is tried again by
 * the next call.
 */
#include "trade_lock/lock.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "store/bind.h"
#include "store/store.h"
#include "store/many.h"

#include <tradelock/lane.h>

#include <string.h>

struct batch {
    tl_client *client;
    const tl_claim_options *options;
    /* The caller's handles: granted. */
    tl_lock **locks;
    size_t count, limit;
    int doubtful; /* claims whose fate is not known were left with the client */
    /* The transaction under way: handles, which may hold once it is committed, and what each asks
     * for. */
    db *connection;
    tl_lock *claims[TL_CLAIM_MAX];
    step_task *steps;
    size_t claim_count;
    int64_t before_ms;
    tl_status status; /* of a handle that could not be made */
};

/* A handle for one candidate, not granted yet. */
static tl_status make_handle(tl_lock **out, const struct batch *b, const db_result *rows,
                             size_t row)
{
    tl_key key = {db_get_text(rows, row, 1), db_get_text(rows, row, 0), b->options->op_code};
    tl_lock_options wanted = TL_LOCK_OPTIONS_INIT;

    wanted.lane = TL_LANE_RETRY;
    wanted.max_hold_ms = b->options->max_hold_ms;
    TRY(tl_lock_new(out, b->client, &key, &wanted));
    (*out)->suspect = b->options->suspects != 0;
    if (!b->options->suspects)
        (*out)->due_us = db_get_int(rows, row, 2);
    return TL_OK;
}

/*
 * What is claimed is claimed without waiting for its sync row: one that is not free, or not what
 * the claim expects, is dropped.  That is said with each statement and not by the connection's own
 * time-out: with one of 0 the server answers SKIP LOCKED with error 1180 where it steps over a row
 * (sql/query/purge.sql).
 */

/* Only the statement was undone, because somebody has a row in hand. */
static int met_a_lock(const struct batch *b, db_answer answer)
{
    return answer == DB_ERROR && db_errno(b->connection) == ERROR_LOCK_WAIT;
}

/* A handle and a claim for each candidate. */
static db_answer prepare(struct batch *b, const db_result *rows)
{
    for (size_t row = 0; row < rows->rows; row++) {
        tl_lock *lock = NULL;

        b->status = make_handle(&lock, b, rows, row);
        if (b->status != TL_OK)
            return DB_NO_MEMORY;
        lock_begin_step(lock, &b->steps[row], STEP_CLAIM, 1);
        b->steps[row].step.claim_as = CLAIM_BATCH;
        handle_become(&lock->base, LOCK_ASK_UNKNOWN);
        b->claims[b->claim_count++] = lock;
    }
    return DB_DONE;
}

/* All in one statement; where a row is in somebody's hand, one after the other. */
static db_answer claim_together(struct batch *b)
{
    step *steps[TL_CLAIM_MAX];
    db_answer answer;

    for (size_t i = 0; i < b->claim_count; i++)
        steps[i] = &b->steps[i].step;
    answer = store_claims(b->connection, steps, b->claim_count, 1);
    if (!met_a_lock(b, answer))
        return answer;
    for (size_t i = 0; i < b->claim_count; i++) {
        answer = store_step(b->connection, steps[i], STORE_NOWAIT);
        if (answer != DB_DONE && !met_a_lock(b, answer))
            return answer;
    }
    return DB_DONE;
}

/* Drops what was not claimed.  A lane that waits beside a finished trade, or of an older epoch,
 * would be met again and again: it is closed here, with both rows locked. */
static db_answer drop_others(struct batch *b)
{
    db_answer answer = DB_DONE;
    size_t kept = 0;

    for (size_t i = 0; i < b->claim_count; i++) {
        tl_lock *lock = b->claims[i];
        step_task t;

        if (b->steps[i].step.changed) {
            b->steps[kept] = b->steps[i];
            b->claims[kept++] = lock;
            continue;
        }
        if (answer == DB_DONE) {
            lock_begin_step(lock, &t, STEP_CLOSE, 1);
            answer = store_step(b->connection, &t.step, STORE_NOWAIT);
            if (met_a_lock(b, answer))
                answer = DB_DONE;
        }
        handle_become(&lock->base, LOCK_NEW);
        tl_lock_free(lock);
    }
    b->claim_count = kept;
    return answer;
}

/* The oldest due work, from where the last claim found it; from the beginning if nothing is there
 * any more. */
static db_answer find_due(struct batch *b, const char *retry_op, unsigned most, db_result *rows)
{
    due_marks *marks = &b->client->due_marks;
    int64_t from_us = due_mark_get(marks, b->options->op_code);
    db_answer answer = SQL_RUN(b->connection, rows, claim_candidates, .retry_op = db_text(retry_op),
                               .from_us = db_int(from_us), .most = db_uint(most));

    if (answer == DB_DONE && rows->rows == 0 && from_us != 0) {
        from_us = 0;
        answer = SQL_RUN(b->connection, rows, claim_candidates, .retry_op = db_text(retry_op),
                         .from_us = db_int(from_us), .most = db_uint(most));
    }
    if (answer == DB_DONE)
        due_mark_set(marks, b->options->op_code, from_us,
                     rows->rows == most ? db_get_int(rows, 0, 2) : 0);
    return answer;
}

static db_answer find_candidates(struct batch *b, db_result *rows)
{
    char retry_op[TL_OP_MAX + 1 + sizeof TL_RETRY_SUFFIX];
    const unsigned most = (unsigned)(b->limit - b->count);

    text_copy(retry_op, sizeof retry_op, b->options->op_code);
    strcat(retry_op, TL_RETRY_SUFFIX);
    return b->options->suspects ? SQL_RUN(b->connection, rows, claim_suspects,
                                          .retry_op = db_text(retry_op), .most = db_uint(most))
                                : find_due(b, retry_op, most, rows);
}

static db_answer claim_all(struct batch *b)
{
    RESULT rows = DB_RESULT_INIT;
    db_answer answer = db_begin(b->connection);

    if (answer == DB_DONE)
        answer = find_candidates(b, &rows);
    if (answer == DB_DONE)
        answer = prepare(b, &rows);
    if (answer == DB_DONE && b->claim_count > 0) {
        b->before_ms = clock_boottime_ms();
        answer = claim_together(b);
        if (answer == DB_DONE)
            answer = drop_others(b);
    }
    return answer == DB_DONE ? db_commit(b->connection) : answer;
}

/* ------------------------------------------------------- what became of a claim -- */

/* TL_GRANTED, with the row read; TL_UNKNOWN; anything else: it holds nothing. */
static tl_status grant(tl_lock *lock, step_task *t, int64_t before_ms)
{
    if (t->task.verdict == VERDICT_UNKNOWN) {
        lock->base.doubt = t->task.doubt;
        return TL_UNKNOWN;
    }
    lock->base.doubt.is_open = 0;
    if (t->task.verdict == VERDICT_APPLIED)
        return ask_granted(lock, t, before_ms);
    handle_become(&lock->base, LOCK_NEW);
    return TL_BUSY;
}

/* The server's clock was set since before the claim: by what the row says nothing may be
 * decided. */
static void give_back(tl_lock *lock)
{
    const tl_findings findings = {.not_counted = 1, .due_as_before = 1};
    tl_ending what = TL_ENDING_INIT;

    what.outcome = TL_OUTCOME_UNKNOWN;
    what.next_run_ms = lock->base.client->config.beat_ms;
    (void)tl_lock_put_back(lock, &what, &findings);
    tl_lock_free(lock);
}

/* A drain waits for it. */
static void keep_doubtful(struct batch *b, tl_lock *lock)
{
    gate_stay(b->client, &lock->pass);
    if (client_keep_claim(b->client, lock))
        b->doubtful = 1;
    else
        tl_lock_free(lock);
}

/* Of a claim that was settled, or whose row was not read yet, the row is read now, payload
 * included. */
static void take_claim(struct batch *b, tl_lock *lock, step_task *t)
{
    const int is_read = t->step.fence != 0 && !t->task.settled;
    int64_t before_ms = is_read ? b->before_ms : clock_boottime_ms();
    tl_status status;

    if (!is_read)
        t->step.fence = 0;
    status = grant(lock, t, before_ms);
    if (status == TL_GRANTED)
        gate_leave(b->client, &lock->pass);
    if (status == TL_GRANTED && !lock_is_timely(lock)) {
        give_back(lock);
    } else if (status == TL_GRANTED) {
        b->locks[b->count++] = lock;
    } else if (status == TL_UNKNOWN) {
        keep_doubtful(b, lock);
    } else {
        tl_lock_free(lock);
    }
}

/* 1: its server is not reached now, so that nothing can be told of others of that server either. */
static int settle_claim(struct batch *b, tl_lock *lock)
{
    step_task t;

    lock_begin_step(lock, &t, STEP_CLAIM, 0);
    task_settle(b->client->engine, step_task_of(&t), b->client->config.pool_wait_ms);
    take_claim(b, lock, &t);
    return t.task.untold;
}

/* Those of earlier calls, of the same kind. */
static void take_doubtful(struct batch *b)
{
    tl_lock *kept[TL_CLAIM_MAX];
    size_t count = client_take_claims(b->client, kept);
    const db_server *untold = NULL;

    for (size_t i = 0; i < count; i++) {
        const db_server *server = kept[i]->base.doubt.server;
        int wanted = b->count < b->limit && strcmp(kept[i]->op_code, b->options->op_code) == 0 &&
                     kept[i]->suspect == (b->options->suspects != 0);

        if (!wanted) {
            if (!client_keep_claim(b->client, kept[i]))
                tl_lock_free(kept[i]);
        } else if (server != NULL && server == untold) {
            keep_doubtful(b, kept[i]);
        } else if (settle_claim(b, kept[i])) {
            untold = server;
        }
    }
}

/* Nothing of them was committed. */
static void drop_claims(struct batch *b)
{
    for (size_t i = 0; i < b->claim_count; i++) {
        handle_become(&b->claims[i]->base, LOCK_NEW);
        tl_lock_free(b->claims[i]);
    }
    b->claim_count = 0;
}

/* The rows of all claims in one statement.  Where that fails each reads its own. */
static void read_rows(struct batch *b)
{
    step *steps[TL_CLAIM_MAX];

    for (size_t i = 0; i < b->claim_count; i++) {
        steps[i] = &b->steps[i].step;
        if (lock_read_with(b->claims[i], &b->steps[i]) != TL_OK)
            return;
    }
    if (b->claim_count > 0)
        (void)store_granted_rows(b->connection, steps, b->claim_count);
}

/* ------------------------------------------------------------------- as a task -- */

static tl_status check_begin(const task *t, const db *connection)
{
    const struct batch *b = t->context;

    return life_check_at(session_life(b->client->session), db_server_of(connection));
}

static db_answer run(task *t, db *connection)
{
    struct batch *b = t->context;
    db_answer answer;

    drop_claims(b); /* of a try that was undone */
    b->connection = connection;
    b->status = TL_OK;
    answer = claim_all(b);
    if (answer == DB_DONE) {
        for (size_t i = 0; i < b->claim_count; i++)
            b->steps[i].task.verdict = VERDICT_APPLIED;
        read_rows(b);
    } else if (b->status != TL_OK) {
        t->verdict = VERDICT_FAILED;
        t->status = b->status;
        answer = DB_DONE;
    }
    return answer;
}

/* Each claim by its own token; they were committed together or not at all. */
static db_answer read_claims(task *t, db *connection)
{
    struct batch *b = t->context;
    db_answer answer = DB_DONE;

    for (size_t i = 0; i < b->claim_count && answer == DB_DONE; i++) {
        task *claim = step_task_of(&b->steps[i]);

        claim->verdict = VERDICT_REFUSED;
        answer = step_task_read(claim, connection);
        claim->settled = 1;
        if (claim->verdict != VERDICT_REFUSED)
            t->verdict = VERDICT_APPLIED;
    }
    return answer;
}

/* They were committed together. */
static void mark_claims(const task *t, commit_mark *to)
{
    const struct batch *b = t->context;

    if (b->claim_count == 0)
        to->kind = MARK_NONE;
    else
        step_task_mark(&b->steps[0].task, to);
}

/* What is in doubt of the batch is so of each of its claims. */
static void leave_claims(struct batch *b, const task *t)
{
    for (size_t i = 0; i < b->claim_count; i++) {
        b->steps[i].task.verdict = VERDICT_UNKNOWN;
        b->steps[i].task.doubt = t->doubt;
    }
}

/* Until there is an answer, some handles, or no time left. */
static tl_status claim_more(struct batch *b)
{
    static const task_kind kind = {.pool = POOL_BUSINESS,
                                   .check = check_begin,
                                   .run = run,
                                   .judge = task_judge_passing,
                                   .read = read_claims,
                                   .mark = mark_claims};
    task_engine *engine = b->client->engine;
    int64_t wait_ms = b->client->config.pool_wait_ms;
    task t = {.kind = &kind,
              .name = "claiming due work",
              .context = b,
              .life = session_life(b->client->session)};

    t.once = b->count > 0 || b->doubtful;
    task_run(engine, &t, wait_ms);
    if (t.verdict == VERDICT_UNKNOWN && b->claim_count > 0)
        task_settle(engine, &t, wait_ms);
    if (t.verdict == VERDICT_REFUSED)
        drop_claims(b); /* settled just now: they did not happen */
    if ((t.verdict == VERDICT_UNKNOWN || t.verdict == VERDICT_REFUSED) && b->claim_count == 0)
        return error_set(TL_TRY_AGAIN, "claiming due work: the answer was lost; nothing of it was "
                                       "claimed");
    if (t.verdict == VERDICT_UNKNOWN)
        leave_claims(b, &t);
    else if (t.verdict != VERDICT_APPLIED)
        drop_claims(b);
    for (size_t i = 0; i < b->claim_count; i++)
        take_claim(b, b->claims[i], &b->steps[i]);
    return t.verdict == VERDICT_APPLIED ? TL_OK : t.status;
}

static tl_status claim(struct batch *b)
{
    gate_pass pass = {0};
    tl_status status;

    take_doubtful(b);
    /* What was claimed before a drain is handed out, and ends; nothing more is claimed. */
    if (b->count == b->limit || gate_enter(b->client, &pass, "", "") != TL_OK) {
        error_clear();
        return TL_OK;
    }
    status = claim_more(b);
    gate_leave(b->client, &pass);
    return status;
}

tl_status tl_claim_due(tl_client *client, const tl_claim_options *options, tl_lock **locks,
                       size_t *count)
{
    struct batch b = {.client = client, .options = options, .locks = locks};
    tl_status status;

    error_clear();
    TRY(client_check_asking(client));
    if (options == NULL || options->version != TL_CLAIM_OPTIONS_VERSION || locks == NULL ||
        count == NULL || options->op_code == NULL || options->max_hold_ms <= 0)
        return error_set(TL_INVALID, "tl_claim_due: an argument is missing");
    TRY(key_check(&(tl_key){"-", "-", options->op_code}));
    if (clock_watch_check(client) != TL_OK) {
        error_clear();
        *count = 0;
        return TL_OK;
    }
    b.limit = *count < TL_CLAIM_MAX ? *count : TL_CLAIM_MAX;
    b.steps = memory_new_array(TL_CLAIM_MAX, sizeof *b.steps);
    if (b.steps == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for claiming due work");
    status = claim(&b);
    memory_free(b.steps);
    if (b.count == 0 && b.doubtful)
        return error_set(TL_UNKNOWN, "claims may have been made whose fate is not known "
                                     "yet; the next call finds out");
    if (b.count == 0 && status != TL_OK)
        return status;
    client_add(&client->counters.claimed, b.count);
    *count = b.count;
    return error_over(TL_OK);
}

typedef db_answer (*due_fn)(db *connection, const char *retry_op, db_result *result);

static tl_status look_at_due(tl_client *client, const char *op_code, due_fn look, db_result *result)
{
    char retry_op[TL_OP_MAX + 1 + sizeof TL_RETRY_SUFFIX];
    db *connection;
    tl_status status;

    TRY(client_check(client));
    TRY(pool_get(client->connections, POOL_QUICK, client->config.pool_wait_ms, &connection));
    text_copy(retry_op, TL_OP_MAX + 1, op_code);
    strcat(retry_op, TL_RETRY_SUFFIX);
    status =
        db_error_status(connection, look(connection, retry_op, result), "looking for due work");
    pool_put(client->connections, connection);
    return status;
}

tl_status tl_next_due_ms(tl_client *client, const char *op_code, int64_t *due_ms)
{
    RESULT result = DB_RESULT_INIT;
    tl_status status;

    error_clear();
    if (op_code == NULL || due_ms == NULL)
        return error_set(TL_INVALID, "tl_next_due_ms: an argument is missing");
    status = look_at_due(client, op_code, store_next_due, &result);
    if (status == TL_OK)
        *due_ms = result.rows > 0 ? db_get_int(&result, 0, 0) : -1;
    return status;
}

static db_answer one_suspect(db *connection, const char *retry_op, db_result *result)
{
    return SQL_RUN(connection, result, claim_suspects, .retry_op = db_text(retry_op),
                   .most = db_uint(1));
}

tl_status tl_suspects_due(tl_client *client, const char *op_code, int *due)
{
    RESULT result = DB_RESULT_INIT;
    tl_status status;

    error_clear();
    if (op_code == NULL || due == NULL)
        return error_set(TL_INVALID, "tl_suspects_due: an argument is missing");
    status = look_at_due(client, op_code, one_suspect, &result);
    if (status == TL_OK)
        *due = result.rows > 0;
    return status;
}

/* The connection is given back before each() may want one. */
static tl_status next_operation(tl_client *client, store_operation *operation)
{
    db *connection;
    tl_status status;

    TRY(pool_get(client->connections, POOL_QUICK, client->config.pool_wait_ms, &connection));
    status = db_error_status(connection, store_operation_next(connection, operation),
                             "listing the operations");
    pool_put(client->connections, connection);
    return status;
}

tl_status tl_operations(tl_client *client, tl_operation_fn each, void *context)
{
    store_operation operation = {.op_code = ""};

    error_clear();
    TRY(client_check(client));
    if (each == NULL)
        return error_set(TL_INVALID, "each is NULL");
    do {
        TRY(next_operation(client, &operation));
    } while (operation.op_code[0] != '\0' && each(context, operation.op_code) == 0);
    return TL_OK;
}
