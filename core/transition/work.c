/* Work in its older form, given to the engine as a task. */
#include "transition/work.h"

#include "store/group.h"

#include <string.h>

static work *work_of(const task *t)
{
    return t->context;
}

static db_answer run(task *t, db *connection)
{
    return work_of(t)->run(work_of(t)->context, connection);
}

static db_answer read(task *t, db *connection)
{
    int committed = 0;
    db_answer answer = work_of(t)->read(work_of(t)->context, connection, &committed);

    if (answer == DB_DONE && committed)
        t->verdict = VERDICT_APPLIED;
    return answer;
}

static size_t row_size(const task *t)
{
    return work_of(t)->group->size(work_of(t)->row);
}

static int in_order(const task *a, const task *b)
{
    int order =
        strcmp(work_of(a)->group->key(work_of(a)->row), work_of(b)->group->key(work_of(b)->row));

    return order != 0 ? order : a->asks - b->asks;
}

static db_answer run_rows(task **tasks, size_t count, db *connection)
{
    void *rows[STORE_GROUP_MAX];
    db_answer answer;

    for (size_t i = 0; i < count; i++)
        rows[i] = work_of(tasks[i])->row;
    answer = work_of(tasks[0])->group->run(rows, count, connection);
    for (size_t i = 0; i < count && answer == DB_DONE; i++)
        if (!work_of(tasks[i])->take(work_of(tasks[i])->context))
            task_send_back(tasks[i]);
    return answer;
}

static const batch_kind *batch_of(const task *t)
{
    static const batch_kind kind = {.size = row_size, .order = in_order, .run = run_rows};

    return work_of(t)->group != NULL ? &kind : NULL;
}

static const task_kind *kind_of(const work *w)
{
    static const task_kind asks = {
        .check = task_check_lock, .run = run, .read = read, .batch = batch_of};
    static const task_kind others = {.run = run, .read = read, .batch = batch_of};
    static const task_kind again = {.run = run};

    if (w->read == NULL)
        return &again;
    return w->asks ? &asks : &others;
}

void work_run(transition_engine *engine, work *w, int64_t budget_ms)
{
    task t = {.kind = kind_of(w),
              .name = w->name,
              .context = w,
              .asks = w->asks,
              .life = w->life,
              .doubt = {.is_open = w->doubtful || w->lost_connection[0] != '\0'}};

    memcpy(t.doubt.connection, w->lost_connection, sizeof w->lost_connection);
    task_run(engine, &t, budget_ms);
    memcpy(w->lost_connection, t.doubt.connection, sizeof w->lost_connection);
    w->verdict = t.verdict;
    w->settled = t.settled;
    w->status = t.status;
}

void work_run_again(transition_engine *engine, work *w, work_doubt *left, int64_t budget_ms)
{
    w->doubtful = left->doubtful;
    memcpy(w->lost_connection, left->lost_connection, sizeof w->lost_connection);
    work_run(engine, w, budget_ms);
    left->doubtful = w->verdict == VERDICT_UNKNOWN;
    memcpy(left->lost_connection, w->lost_connection, sizeof left->lost_connection);
}
