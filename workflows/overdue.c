/* Raises an alarm for due work that no worker claims.  Reads only. */
#include "overdue.h"

#include <tradelock/lane.h>
#include <tradelock/layer.h>

#include <inttypes.h>
#include <string.h>

#define OPERATIONS_MOST 128

typedef struct operations {
    char codes[OPERATIONS_MOST][TL_OP_MAX + 1];
    unsigned count;
} operations;

/* Keeps the operations that have a retry lane. */
static int keep_operation(void *context, const char *op_code)
{
    operations *all = context;
    const size_t size = tl_business_op_size(op_code);

    if (all->count == OPERATIONS_MOST)
        return 1;
    if (size == 0 || size > TL_OP_MAX || op_code[size] == '\0')
        return 0;
    memcpy(all->codes[all->count], op_code, size);
    all->codes[all->count++][size] = '\0';
    return 0;
}

static tl_status look_at(tl_workflows *workflows, const char *op_code, int64_t late_ms)
{
    const workflow *of = workflows_find(workflows, op_code);
    tl_client *client = workflows->client;
    tl_overdue found;
    tl_status status;

    /* Whatever channel a trade began with, this one will be sent to. */
    if (of != NULL && workflow_check_paused(of) != TL_OK)
        return TL_OK;
    status = tl_lane_overdue(client, op_code, late_ms, &found);
    if (status == TL_OK && found.count > 0)
        tl_client_log(client, TL_ALARM, NULL, 0,
                      "%s: %u%s compensating attempts are due and nobody claims them, one "
                      "for %" PRId64 " s; is a worker running for this operation?",
                      op_code, found.count, found.count == TL_OVERDUE_MAX ? " or more" : "",
                      found.late_ms / 1000);
    return status;
}

void overdue_alarm(tl_workflows *workflows, int64_t late_ms)
{
    tl_client *client = workflows->client;
    operations all = {.count = 0};
    tl_status status = tl_operations(client, keep_operation, &all);

    for (unsigned i = 0; i < all.count && status == TL_OK; i++)
        status = look_at(workflows, all.codes[i], late_ms);
    if (status != TL_OK)
        tl_client_log(client, TL_WARNING, NULL, 0, "looking for overdue work: %s: %s",
                      tl_status_name(status), tl_error_message());
}
