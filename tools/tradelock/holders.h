/* Readers and writers, as a part of what `tradelock resource` shows. */
#ifndef TRADELOCK_HOLDERS_H
#define TRADELOCK_HOLDERS_H

#include "print.h"

struct holders_wanted {
    const char *resource, *prefix; /* NULL: all */
    int all;                       /* rows without a holder too */
    unsigned limit;
};

/* A table, when there is anything to show.  *count: how many. */
tl_status holders_print(tl_client *client, const struct holders_wanted *w, unsigned *count);
/* An array, which the caller frees, also on failure. */
tl_status holders_json(tl_client *client, const struct holders_wanted *w, json_t **rows,
                       unsigned *count);

#endif
