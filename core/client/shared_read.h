/*
 * Reads one row for all threads that want it now.  A read that begins after a caller asked is new
 * enough for that caller, so the callers of one key share it: while one read is under way, callers
 * gather for the next.  Of sixty-four refused asks for one key, one goes to the server.
 */
#ifndef TL_CLIENT_SHARED_READ_H
#define TL_CLIENT_SHARED_READ_H

#include "db/db.h"

typedef struct shared_reads shared_reads;

/* What was read, shared by all who wanted it; read only. */
typedef struct shared_row {
    tl_status status; /* of the reading; TL_OK: rows holds what was found */
    db_result rows;
    const db_server *server; /* where it was read; NULL: by the caller who made it */
    char message[160];       /* the sentence of a failure, for callers whose thread did not read */
} shared_row;

/* Reads into the row's rows and server; called by one of those who wait, on its thread. */
typedef tl_status (*shared_read_fn)(void *context, shared_row *row);

shared_reads *shared_reads_new(void); /* NULL when out of memory */
void shared_reads_free(shared_reads *reads);

/* The row of this key, as a read that begins after this call shows it; NULL when out of memory.
 * Give it back with shared_row_release(). */
const shared_row *shared_read(shared_reads *reads, const char *key, shared_read_fn read,
                              void *context);
/* Whether somebody is reading this key's row just now, so that shared_read() would share. */
int shared_read_under_way(shared_reads *reads, const char *key);
/* A row that the caller fills; NULL when out of memory. */
shared_row *shared_row_new(void);
void shared_row_release(const shared_row *row); /* accepts NULL */

#endif
