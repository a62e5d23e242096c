/* One change of many rows: shown first, agreed by its number, done row by row, on record.  Of a
 * fleet the rows of each shard stand together, and each shard has an act of its own. */
#ifndef TRADELOCK_BULK_H
#define TRADELOCK_BULK_H

#include "act_run.h"
#include "command.h"

#include <jansson.h>

#define BULK_EXAMPLES 10

struct bulk {
    struct act_run
        run;          /* the act's words, each(), is_of_row(), context; bulk_run() does the rest */
    const char *verb; /* "retry", "file success of" */
    uint64_t count;   /* how many rows it would change */
    /* How many of them are in each of fleet_size() shards, in their order; NULL: all are in the one
     * database. */
    const uint64_t *of_shard;
    tl_list_end money; /* of them */
    /* What else was seen, of rows that it would leave alone: for people, "" where there is nothing,
     * and for programs. */
    const char *apart;
    json_t *apart_json;
    json_t *left_out; /* bulk_leave_out() makes it, and whoever has the bulk frees it */
    struct table *examples;
    json_t *examples_json;
    /* Which trade a row is, from 0. */
    void (*name)(const void *context, uint64_t row, tl_key *key);
    const char *then; /* who goes on with the act: "resolve confirm --as failed"; or NULL */
    int code_of_none; /* the exit code where there is nothing to do */
    /* Agreed by an option; has_yes 0: a terminal is asked. */
    int has_yes;
    uint64_t yes;
};

/* Names a trade that is left alone, and why. */
void bulk_leave_out(struct bulk *self, const tl_key *key, const char *why);

/* Shows, asks, does, and tells what was done, after fleet_begin(); returns the exit code. */
int bulk_run(struct bulk *self);

#endif
