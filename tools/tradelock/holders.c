/* Readers and writers, as a part of what `tradelock resource` shows. */
#include "holders.h"

#include "fields.h"

#include <tradelock/admin.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct holders {
    const char *prefix;
    struct table *table; /* or NULL */
    json_t *rows;
    unsigned count;
};

static const char *mode_of(const tl_holder_view *view)
{
    return view->mode == TL_RW_WRITE ? "write" : "read";
}

static int add_holder(void *context, const tl_holder_view *view)
{
    struct holders *h = context;
    char since[TIME_TEXT], until[TIME_TEXT], fence[24], slot[12];

    if (h->prefix != NULL && strncmp(view->resource, h->prefix, strlen(h->prefix)) != 0)
        return 0;
    h->count++;
    if (h->table == NULL) {
        json_array_append_new(h->rows, json_holder(view));
        return 0;
    }
    snprintf(fence, sizeof fence, "%" PRIu64, view->fence);
    snprintf(slot, sizeof slot, "%u", view->slot);
    table_add(h->table, view->resource, slot, mode_of(view), tl_holder_state_name(view->state),
              fence, time_text(since, view->acquired_us), time_text(until, view->over_us),
              view->renewed ? "session" : "", view->holder);
    return 0;
}

tl_status holders_print(tl_client *client, const struct holders_wanted *w, unsigned *count)
{
    struct holders h = {.prefix = w->prefix,
                        .table = table_new("RESOURCE", "SLOT", "MODE", "STATE", "FENCE", "ACQUIRED",
                                           "AT MOST UNTIL", "RENEWED BY", "HOLDER", NULL)};
    tl_status status = tl_holder_list(client, w->resource, w->all, w->limit, add_holder, &h);

    if (status == TL_OK && h.count > 0)
        table_print(h.table);
    table_free(h.table);
    *count = h.count;
    return status;
}

tl_status holders_json(tl_client *client, const struct holders_wanted *w, json_t **rows,
                       unsigned *count)
{
    struct holders h = {.prefix = w->prefix, .rows = json_array()};
    tl_status status = tl_holder_list(client, w->resource, w->all, w->limit, add_holder, &h);

    *rows = h.rows;
    *count = h.count;
    return status;
}
