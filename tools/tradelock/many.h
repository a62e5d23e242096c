/* The trades of one change of many, each as it was seen: those that a filter finds, or that look()
 * adds.  Of a fleet they stand shard by shard. */
#ifndef TRADELOCK_MANY_H
#define TRADELOCK_MANY_H

#include "bulk.h"

struct seen {
    char serial_no[TL_SERIAL_MAX + 1], cust_no[TL_CUST_MAX + 1], op_code[TL_OP_MAX + 1];
    char currency[TL_CURRENCY + 1];
    int64_t amount_minor;
    uint64_t fence;
    uint64_t act_no; /* of a confirmation: which proposed it */
};

#define MANY_APART 4

struct many {
    struct bulk bulk;
    tl_filter *filter;                                    /* NULL: look() adds the rows */
    int (*judge)(struct many *self, const tl_view *view); /* as of judge.h */
    int (*look)(struct many *self, tl_client *client);    /* the exit code */
    /* A second judge, which may ask the database; or NULL. */
    int (*check)(struct many *self, tl_client *client, const struct seen *row);
    /* Adds to the text of so many letters what stands below `Left alone`; or NULL. */
    void (*say)(struct many *self, char *to, size_t space, size_t size);
    const char *reasons[MANY_APART], *words[MANY_APART]; /* in JSON, and for people */
    uint64_t limit, apart[MANY_APART];
    struct seen *rows;
    uint64_t *of_shard;
    tl_status status; /* of what was asked meanwhile */
};

/* 0: there is no memory for it. */
int many_add(struct many *self, const struct seen *row);
/* Finds them in all databases; then shows, asks and does as bulk_run().  Returns the exit code, and
 * frees what it made. */
int many_run(struct many *self);

tl_key seen_key(const struct seen *seen);

#endif
