/* Whether this server and its schema may be trusted with money, asked once at opening. */
#ifndef TL_CLIENT_SERVER_H
#define TL_CLIENT_SERVER_H

#include "pool/pool.h"

/* TL_OK, TL_SERVER_UNSAFE, TL_READ_ONLY, TL_NO_SCHEMA, TL_WRONG_SCHEMA, or why the server
 * could not be asked. */
tl_status server_check(pool *connections, int64_t wait_ms);

#endif
