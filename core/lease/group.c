/*
 * Lets asks and unlocks of one mutex share a statement with those of other threads
 * (transition/group.h).  Sets go alone, since their rows are all or none.  So do asks that name
 * dead holders, and tasks in doubt.  Touches resource_lock.
 */
#include "lease/lease.h"

#include "store/group.h"

#include <string.h>

static resource_row *row_of(const task *t)
{
    return &((lease_work *)t->context)->row;
}

static size_t row_size(const task *t)
{
    return store_resource_row_size(row_of(t));
}

/* Orders by name; an unlock comes before an ask. */
static int in_order(const task *a, const task *b)
{
    int order = strcmp(row_of(a)->step->names[0], row_of(b)->step->names[0]);

    return order != 0 ? order : a->asks - b->asks;
}

static db_answer run_rows(task **tasks, size_t count, db *connection)
{
    resource_row *rows[STORE_GROUP_MAX] = {NULL};
    db_answer answer;

    for (size_t i = 0; i < count; i++)
        rows[i] = row_of(tasks[i]);
    answer = store_resource_group(connection, rows, count);
    for (size_t i = 0; i < count && answer == DB_DONE; i++) {
        lease_work *work = tasks[i]->context;

        if (!work->take(work))
            task_send_back(tasks[i]);
    }
    return answer;
}

const batch_kind *lease_batch(const task *t)
{
    static const batch_kind kind = {.size = row_size, .order = in_order, .run = run_rows};

    return row_of(t)->step != NULL ? &kind : NULL;
}

void lease_share(lease_work *work, const lease_step *own, int unlocks,
                 int (*take)(lease_work *work))
{
    if (own->count > 1)
        return;
    work->row = (resource_row){.step = own, .unlocks = unlocks};
    work->take = take;
}
