/* Reads the lanes of all operations; writes nothing, so it needs no session. */
#include "due.h"

#include <tradelock/lane.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OTHERS_MAX 64u

struct others {
    tl_workflows *workflows;
    char names[OTHERS_MAX][TL_OP_MAX + 1];
    unsigned count;
};

static int is_registered(tl_workflows *workflows, const char *op_code)
{
    const char *own;

    for (unsigned i = 0; (own = tl_workflow_operation(workflows, i)) != NULL; i++)
        if (strcmp(own, op_code) == 0)
            return 1;
    return 0;
}

/* Each business operation once, whichever of its lanes has rows. */
static int note_other(void *context, const char *op_code)
{
    struct others *others = context;
    char name[TL_OP_MAX + 1];

    snprintf(name, sizeof name, "%.*s", (int)tl_business_op_size(op_code), op_code);
    if (is_registered(others->workflows, name))
        return 0;
    for (unsigned i = 0; i < others->count; i++)
        if (strcmp(others->names[i], name) == 0)
            return 0;
    if (others->count < OTHERS_MAX)
        memcpy(others->names[others->count++], name, sizeof name);
    return 0;
}

static tl_status print_one(tl_client *client, const char *op_code, int is_own)
{
    tl_overdue due = {0};
    tl_status status = tl_lane_overdue(client, op_code, 0, &due);

    if (status != TL_OK)
        return status;
    if (due.count > 0)
        printf("%s: %u%s due, the oldest for %" PRId64 " ms%s\n", op_code, due.count,
               due.count == TL_OVERDUE_MAX ? " or more" : "", due.late_ms,
               is_own ? "" : "; not served here");
    else if (is_own)
        printf("%s: nothing is due\n", op_code);
    return TL_OK;
}

tl_status due_print(tl_client *client, tl_workflows *workflows)
{
    struct others others = {.workflows = workflows};
    tl_status status = tl_operations(client, note_other, &others);
    const char *own;

    for (unsigned i = 0; status == TL_OK && (own = tl_workflow_operation(workflows, i)) != NULL;
         i++)
        status = print_one(client, own, 1);
    for (unsigned i = 0; status == TL_OK && i < others.count; i++)
        status = print_one(client, others.names[i], 0);
    fflush(stdout);
    return status;
}
