/*
 * Whether a connection leads to the shard that it is for.
 *
 * The settings of two shards may be swapped, or a host's name may lead elsewhere after a failover.
 * The triggers of a fleet's database refuse customers that are not its own, but only by what that
 * database has on record.  So each new connection of a shard's client reads which shard of which
 * fleet it has reached, and is not used unless it is the one.  A client of no shard never asks.
 */
#ifndef TL_CLIENT_SHARD_H
#define TL_CLIENT_SHARD_H

#include "db/db.h"

#define SHARD_INSTALLATION 37 /* a UUID */

struct tl_client;

/* TL_OK; TL_BAD_CONFIG with a sentence; or why it could not be read.  may_be_none: a database that
 * says nothing yet will do, for whoever makes the schema or has it join. */
tl_status shard_check(const struct tl_client *client, db *connection, int may_be_none);

/* Which installation the client's database is; "": it says nothing yet. */
tl_status shard_installation(struct tl_client *client, char installation[SHARD_INSTALLATION]);

#endif
