/* The alarm for due work that no worker claims. Only reads. */
#include "overdue.h"

#include <inttypes.h>
#include <string.h>

#define OPERATIONS_MOST 128
#define LOOK_AT 100u

typedef struct operations {
    char codes[OPERATIONS_MOST][TL_OP_MAX + 1];
    unsigned count;
} operations;

/* The business operations that have a retry lane. */
static int keep_operation(void *context, const char *op_code)
{
    operations *all = context;
    size_t size = strlen(op_code), suffix = strlen(TL_RETRY_SUFFIX);

    if (all->count == OPERATIONS_MOST)
        return 1;
    if (size <= suffix || size > TL_OP_MAX || strcmp(op_code + size - suffix, TL_RETRY_SUFFIX) != 0)
        return 0;
    memcpy(all->codes[all->count], op_code, size - suffix);
    all->codes[all->count++][size - suffix] = '\0';
    return 0;
}

typedef struct lateness {
    int64_t late_us, most_us;
    unsigned count;
} lateness;

static int measure(void *context, const tl_view *view)
{
    lateness *found = context;
    int64_t by_us = view->now_us - view->next_run_us;

    if (view->next_run_us == 0 || by_us < found->late_us)
        return 0;
    found->count++;
    if (by_us > found->most_us)
        found->most_us = by_us;
    return 0;
}

static tl_status look_at(tl_client *client, const char *op_code, int64_t late_ms)
{
    tl_filter filter = {.version = TL_FILTER_VERSION,
                        .lane = 'R',
                        .status = 'F',
                        .op = op_code,
                        .older_ms = late_ms,
                        .limit = LOOK_AT};
    lateness found = {.late_us = late_ms * 1000};
    int64_t due_ms;
    tl_status status = tl_next_due_ms(client, op_code, &due_ms);

    if (status != TL_OK || due_ms != 0)
        return status;
    status = tl_list(client, &filter, measure, &found);
    if (status == TL_OK && found.count > 0)
        tl_client_log(client, TL_ALARM, NULL, 0,
                      "%s: %u%s compensating attempts are due and nobody claims them, one "
                      "for %" PRId64 " s; is a worker running for this operation?",
                      op_code, found.count, found.count == LOOK_AT ? " or more" : "",
                      found.most_us / 1000000);
    return status;
}

void overdue_alarm(tl_client *client, int64_t late_ms)
{
    operations all = {.count = 0};
    tl_status status = tl_operations(client, keep_operation, &all);

    for (unsigned i = 0; i < all.count && status == TL_OK; i++)
        status = look_at(client, all.codes[i], late_ms);
    if (status != TL_OK)
        tl_client_log(client, TL_WARNING, NULL, 0, "looking for overdue work: %s: %s",
                      tl_status_name(status), tl_error_message());
}
