/* What a purge shares with the one that writes an archive. */
#ifndef TL_ADMIN_PURGE_H
#define TL_ADMIN_PURGE_H

#include "admin/archive.h"
#include "admin/statements.h"

#include <tradelock/admin/server.h>
#include <tradelock/resource.h>

#define PURGE_OLDEST_MS INT64_C(3155760000000) /* 36525 days, as in the settings */
/* A page is small, so nobody waits long for a row of it. */
#define PURGE_PAGE 200

/* Where the last page ended. */
struct place {
    store_list_place trade;
    char name[TL_RESOURCE_MAX + 1];
};

struct purge {
    tl_client *client;
    db *connection;
    const tl_purge_options *options;
    int only_counts; /* nothing is removed */
    int64_t older_ms;
    tl_purged done;
    db_result tables;
    int archives; /* whether there is an archive to be written */
    archive_dir archive;
    archive_manifest server; /* what every manifest says */
    tl_archived archived;
};

/* Takes what "removed seen key ..." says of trades; 0: it does not say that.  The names come from
 * rows, so they have no blanks, and fit. */
int purge_take_trades(struct purge *p, const char *text, struct place *after, unsigned *seen);

/* A page that met a row lock or a deadlock is run again. */
int purge_may_repeat(tl_status status, unsigned *repeats);

/* TL_REFUSED: it is to be stopped. */
tl_status purge_tell(const struct purge *p, const char *what, const char *table, uint64_t done,
                     uint64_t found);

/* Purges the trades, set by set, each once it is in the archive. */
tl_status purge_to_archive(struct purge *p);

#endif
