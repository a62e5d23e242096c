/* Whether this server and its schema may be trusted with money, asked once at opening, and the
 * server alone before a schema is made on it. */
#ifndef TL_CLIENT_SERVER_H
#define TL_CLIENT_SERVER_H

#include "pool/pool.h"

/* The oldest server that serves. */
#define SERVER_OLDEST "MariaDB 10.11"

/* Whether a server that calls itself this version serves. */
int server_version_serves(const char *version);

/* Version and settings alone: TL_OK, TL_SERVER_UNSAFE, TL_READ_ONLY, or why the server could not be
 * asked. */
tl_status server_check_settings(db *connection);

/* Those, and TL_NO_SCHEMA and TL_WRONG_SCHEMA. */
tl_status server_check(pool *connections, int64_t wait_ms);

#endif
