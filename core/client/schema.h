/*
 * Which schema the server has and whether it serves this library.
 *
 * A schema names its version and the oldest client that it serves.  So a server is migrated first,
 * and its clients are upgraded one after the other.  A client refuses a schema that is older than
 * its own, and one that does not serve it any more.
 */
#ifndef TL_CLIENT_SCHEMA_H
#define TL_CLIENT_SCHEMA_H

#include "db/db.h"

typedef struct schema_found {
    unsigned version; /* 0: there is none */
    unsigned oldest_client;
} schema_found;

/* The version that this library has migrations for, and needs. */
unsigned schema_newest(void);

/* TL_OK; version is 0 if there is no schema. */
tl_status schema_read(db *connection, schema_found *found);

/* TL_OK: the schema serves.  TL_NO_SCHEMA, TL_WRONG_SCHEMA: the sentence says what to run. */
tl_status schema_judge(const schema_found *found);

#endif
