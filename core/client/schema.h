/*
 * Which schema the server has and whether it serves this library.
 *
 * A schema names its version and the oldest client that it still serves, so that a server is
 * migrated first and its clients one after the other.  A client refuses a schema that is older than
 * what it brings itself or that no longer serves it, and nothing else.
 */
#ifndef TL_CLIENT_SCHEMA_H
#define TL_CLIENT_SCHEMA_H

#include "db/db.h"

typedef struct schema_found {
    unsigned version; /* 0: there is none */
    unsigned oldest_client;
} schema_found;

/* The version that this library brings, and needs. */
unsigned schema_newest(void);

/* TL_OK also when there is no schema; then version is 0. */
tl_status schema_read(db *connection, schema_found *found);

/* TL_OK, TL_NO_SCHEMA or TL_WRONG_SCHEMA with a sentence that says what to run. */
tl_status schema_judge(const schema_found *found);

#endif
