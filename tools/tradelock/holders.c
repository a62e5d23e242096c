/* Readers and writers, as a part of what `tradelock resource` shows. */
#include "holders.h"

#include <tradelock/admin.h>

#include <string.h>

struct holders {
    const char *prefix;
    struct listing *listing;
    unsigned count;
};

static int add_holder(void *context, const tl_holder_view *view)
{
    struct holders *h = context;

    if (h->prefix != NULL && strncmp(view->resource, h->prefix, strlen(h->prefix)) != 0)
        return 0;
    h->count++;
    return listing_add(h->listing, view);
}

tl_status holders_read(tl_client *client, const struct holders_wanted *w, struct listing *listing,
                       unsigned *count)
{
    struct holders h = {.prefix = w->prefix, .listing = listing};
    tl_status status;

    listing_begin(listing, &record_holder,
                  "resource,slot,mode,state,fence,acquired,until,renewed,holder");
    status = tl_holder_list(client, w->resource, w->all, w->limit, add_holder, &h);
    *count = h.count;
    return status;
}
