/* Whether this server and its schema may be trusted with money.  Each client asks once when it
 * opens; a migration asks about the server alone, before it makes a schema. */
#ifndef TL_CLIENT_SERVER_H
#define TL_CLIENT_SERVER_H

#include "pool/pool.h"

/* The oldest server that serves. */
#define SERVER_OLDEST "MariaDB 10.11"

/* Whether a server of this version serves. */
int server_version_serves(const char *version);

/* Checks version and settings.  TL_OK; TL_SERVER_UNSAFE or TL_READ_ONLY, with a sentence; or why
 * the server could not be asked. */
tl_status server_check_settings(db *connection);

/* The same and the schema: also TL_NO_SCHEMA and TL_WRONG_SCHEMA. */
tl_status server_check(pool *connections, int64_t wait_ms);

#endif
