/*
 * The task kind of a trade's steps: how one is run, alone or in a batch, what refuses it, and how
 * its token tells what became of it.  It does not decide which step is legal when.  Touches the
 * trade's rows.
 */
#include "transition/step_task.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "store/store.h"
#include "store/group.h"

#include <string.h>

static step *step_of(task *t)
{
    return &((step_task *)t)->step;
}

static const step *const_step_of(const task *t)
{
    return &((const step_task *)t)->step;
}

/* ------------------------------------------------------------------- may it be begun -- */

/* A failure needs to know what was sent, and after a restore steps that sent may be missing. */
static int is_failure(const step *s)
{
    return s->status == 'F' &&
           (s->kind == STEP_FINISH_RETRY || (s->kind == STEP_FINISH_SYNC && s->once));
}

/* A claim only asks the channel, and a repeatable operation guards no money. */
static tl_status check_server(const step *s, const db *connection)
{
    if (step_rule_of(s->kind)->is_whole || is_failure(s))
        return task_check_server(db_server_of(connection), step_name(s->kind));
    return TL_OK;
}

tl_status step_check_life(const step *s)
{
    if (s->life == NULL)
        return TL_OK;
    if (step_rule_of(s->kind)->is_holders && life_is_over(s->life))
        return error_set(TL_LOST, "the session that held the lock was declared dead");
    return step_rule_of(s->kind)->is_grant ? life_check(s->life) : TL_OK;
}

tl_status step_task_check(const task *t, const db *connection)
{
    const step *s = const_step_of(t);

    TRY(check_server(s, connection));
    TRY(step_check_life(s));
    if (s->life != NULL && step_rule_of(s->kind)->is_grant)
        TRY(life_check_at(s->life, db_server_of(connection)));
    return TL_OK;
}

/* ----------------------------------------------------------------------------- alone -- */

static verdict verdict_of(const step *s)
{
    return s->changed ? VERDICT_APPLIED : VERDICT_REFUSED;
}

db_answer step_task_run(task *t, db *connection)
{
    db_answer answer;

    t->doubt.rows = ROWS_NONE;
    answer = store_step(connection, step_of(t), STORE_PLAIN);
    if (answer == DB_DONE)
        t->verdict = verdict_of(step_of(t));
    return answer;
}

/* Which unique key refused is told by its name alone: the server's sentence also quotes the values,
 * which may look like names. */
int step_task_judge(task *t, const db *connection)
{
    const step_kind kind = step_of(t)->kind;

    step_of(t)->moves = db_error_kind_of(db_errno(connection)) == DB_KIND_MOVES;
    if (db_error_kind_of(db_errno(connection)) != DB_KIND_DUPLICATE ||
        (kind != STEP_ASK && kind != STEP_RECLAIM))
        return 0;
    t->verdict = strcmp(db_duplicate_key(connection), KEY_ONE_PER_CUSTOMER) == 0
                     ? VERDICT_CUSTOMER_BUSY
                     : VERDICT_REFUSED;
    return 1;
}

/* Elsewhere others end the session, whatever its own server says. */
static int is_at_home(const step *s, const db *connection)
{
    return s->life == NULL || life_is_at(s->life, db_server_of(connection));
}

/* The row carries our token.  A grant counts only while the row is still P under this living
 * session, and only where it could be made. */
static void read_own(task *t, const db *connection, const db_result *row)
{
    step *s = step_of(t);
    const int worth =
        !step_rule_of(s->kind)->is_grant ||
        (db_get_text(row, 0, 1)[0] == 'P' && db_get_int(row, 0, 4) && db_get_int(row, 0, 5) &&
         check_server(s, connection) == TL_OK && is_at_home(s, connection));

    t->verdict = worth ? VERDICT_APPLIED : VERDICT_LOST;
    s->changed = worth;
    s->fence = db_get_uint(row, 0, 2);
    s->epoch = (uint32_t)db_get_uint(row, 0, 3);
}

/* Reads the row by its key: our token there means that the step was committed.  Otherwise the
 * history is asked; if it has the token, the step was committed and somebody has gone on from
 * there. */
db_answer step_task_read(task *t, db *connection)
{
    step *s = step_of(t);
    RESULT result = DB_RESULT_INIT;
    db_answer answer = store_token_now(connection, s, &result);

    if (answer == DB_DONE && result.rows == 1 && db_get_int(&result, 0, 0) != 0) {
        read_own(t, connection, &result);
    } else if (answer == DB_DONE) {
        answer = store_token_seen(connection, s, &result);
        if (answer == DB_DONE && result.rows == 1 && db_get_int(&result, 0, 0) != 0)
            t->verdict = step_rule_of(s->kind)->is_grant ? VERDICT_LOST : VERDICT_APPLIED;
    }
    return answer;
}

void step_task_mark(const task *t, commit_mark *to)
{
    const step *s = const_step_of(t);

    to->kind = MARK_TRADE;
    text_copy(to->cust_no, sizeof to->cust_no, s->cust_no);
    text_copy(to->serial_no, sizeof to->serial_no, s->serial_no);
    text_copy(to->op_code, sizeof to->op_code, s->op_code);
    memcpy(to->token, s->token, sizeof to->token);
    if (s->kind == STEP_ARM || s->kind == STEP_RECLAIM)
        to->lasts_until_ms = clock_boottime_ms() + s->max_hold_ms;
}

void step_task_undone(task *t)
{
    t->settled = 1;
}

/* -------------------------------------------------------------------------- in batches -- */

size_t step_task_size(const task *t)
{
    return store_group_size(const_step_of(t));
}

int step_task_order(const task *left, const task *right)
{
    const step *a = const_step_of(left), *b = const_step_of(right);
    int order = strcmp(a->cust_no, b->cust_no);

    if (order == 0)
        order = strcmp(a->serial_no, b->serial_no);
    return order != 0 ? order : strcmp(a->op_code, b->op_code);
}

static db_answer run_rows(task **tasks, size_t count, db *connection)
{
    step *steps[STORE_GROUP_MAX];
    db_answer answer;

    for (size_t i = 0; i < count; i++)
        steps[i] = step_of(tasks[i]);
    answer = store_group(connection, steps, count);
    for (size_t i = 0; i < count && answer == DB_DONE; i++)
        tasks[i]->verdict = verdict_of(steps[i]);
    return answer;
}

/*
 * Of several asks for one key in a batch, one is written.  If it was granted, the others meet a
 * living holder.  If it was refused, the others are refused too, since all asked before that.  Only
 * reclaims go on alone, since each names what it saw.
 */
int step_task_follow(const task *written, task *t)
{
    const step_kind kind = const_step_of(t)->kind;
    const int same_asks = const_step_of(written)->kind == kind && step_rule_of(kind)->is_grant;

    t->verdict = VERDICT_REFUSED;
    return same_asks && (written->verdict == VERDICT_APPLIED ||
                         (written->verdict == VERDICT_REFUSED && kind != STEP_RECLAIM));
}

#define BATCH_KIND                                                                                 \
    {.size = step_task_size, .order = step_task_order, .follow = step_task_follow, .run = run_rows}

static const batch_kind *batch_of(const task *t)
{
    static const batch_kind kinds[SHARES] = {BATCH_KIND, BATCH_KIND, BATCH_KIND, BATCH_KIND,
                                             BATCH_KIND};
    const step_share share = step_shares(const_step_of(t));

    return share == SHARE_NOBODY ? NULL : &kinds[share];
}

task *step_task_of(step_task *t)
{
    static const task_kind kind = {.check = step_task_check,
                                   .run = step_task_run,
                                   .judge = step_task_judge,
                                   .read = step_task_read,
                                   .mark = step_task_mark,
                                   .undone = step_task_undone,
                                   .batch = batch_of};

    t->task.kind = &kind;
    t->task.name = step_name(t->step.kind);
    t->task.asks = step_rule_of(t->step.kind)->is_grant && t->step.kind != STEP_ARM;
    t->task.life = t->step.life;
    return &t->task;
}
