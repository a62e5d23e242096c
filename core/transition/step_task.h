/*
 * A step of a trade as a task: one compare-and-set, which commits on its own or did not happen.
 *
 *     step_task t = {.step = {...}};
 *
 *     task_run(engine, step_task_of(&t), budget_ms);
 *     switch (t.task.verdict) ...
 */
#ifndef TL_TRANSITION_STEP_TASK_H
#define TL_TRANSITION_STEP_TASK_H

#include "store/step.h"
#include "transition/task.h"

/* The unique key that lets one trade of a customer be in process. */
#define KEY_ONE_PER_CUSTOMER "one_per_customer"

typedef struct step_task {
    task task; /* first */
    step step;
} step_task;

/* Makes it a task, by what its step says; what is in doubt stays. */
task *step_task_of(step_task *t);

/* -- for kinds that carry a step out in another way (trade_lock/with.c, books.c, arm.c,
 * claim_due.c) -- */

/* Whether the step may be begun: not while commits may be missing in the database (TL_ASK_CHANNEL),
 * and not without its session: TL_SESSION_LOST or TL_UNREACHABLE of what asks, TL_LOST of a hold
 * whose session is over. */
tl_status step_task_check(const task *t, const db *connection);
tl_status step_check_life(const step *s);
/* The step's statement, alone. */
db_answer step_task_run(task *t, db *connection);
/* 1062 of an ask means that it was refused. */
int step_task_judge(task *t, const db *connection);
/* By the step's token. */
db_answer step_task_read(task *t, db *connection);
/* By the same. */
void step_task_mark(const task *t, commit_mark *to);
/* What is granted after a lost answer is granted late: it counts as settled, so that its row is
 * read. */
void step_task_undone(task *t);
/* Of a batch kind: see task.h. */
size_t step_task_size(const task *t);
int step_task_order(const task *left, const task *right);
int step_task_follow(const task *written, task *t);

#endif
