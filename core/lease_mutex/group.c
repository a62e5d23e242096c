/*
 * Asks and unlocks of one resource share a statement with those of other threads
 * (transition/group.h).  Sets go alone: their rows are all or none, and a group is none
 * of one caller's.  So does an ask that names dead holders, and whatever is being
 * settled.
 */
#include "lease_mutex/mutex.h"

static const char *row_key(const void *row)
{
    return ((const resource_row *)row)->step->resources[0];
}

static size_t row_size(const void *row)
{
    return store_resource_row_size(row);
}

static db_answer run_rows(void **rows, size_t count, db *connection)
{
    return store_resource_group(connection, (resource_row **)rows, count);
}

void mutex_offer_group(work *w, resource_row *row, const resource_step *own,
                       int (*take)(void *context))
{
    static const work_group group = {row_key, row_size, run_rows};

    if (own->count > 1)
        return;
    row->step = own;
    w->row = row;
    w->take = take;
    w->group = &group;
}
