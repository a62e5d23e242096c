/* Readers and writers, as a part of what `tradelock resource` shows. */
#ifndef TRADELOCK_HOLDERS_H
#define TRADELOCK_HOLDERS_H

#include "fields.h"

struct holders_wanted {
    const char *resource, *prefix; /* NULL: all */
    int all;                       /* rows without a holder too */
    unsigned limit;
};

/* Begins the listing, which the caller frees, also on failure, and reads into it.  *count: how
 * many. */
tl_status holders_read(tl_client *client, const struct holders_wanted *w, struct listing *listing,
                       unsigned *count);

#endif
