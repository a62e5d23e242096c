/*
 * Whether the database may have lost commits: it was restored, or a copy of it was
 * promoted.  Then "there is no such row" and "nothing was sent" prove nothing, so nothing
 * is granted or armed until an operator accepts the server; the retry lane goes on asking
 * the channel.
 *
 * It is looked at with every new connection, since a failover breaks the old ones, and
 * with every heartbeat, since a restore can be declared at any time.  A step looks at what
 * was found once it has its connection (transition.h): the first ask after a failover is
 * the one that makes the new connection.
 */
#ifndef TL_CLIENT_RESTORED_H
#define TL_CLIENT_RESTORED_H

#include "db/db.h"

struct tl_client;

/* Looks, on a connection that nobody else uses now. */
void restored_look(struct tl_client *client, db *connection);
/* The same on a connection of the pool. */
void restored_look_again(struct tl_client *client);

/* TL_OK, or TL_ASK_CHANNEL with a sentence. */
tl_status restored_check(const struct tl_client *client);
/* The same for a lock of a resource: who was granted it in the lost hours may still act on
 * it. */
tl_status restored_check_resource(const struct tl_client *client);

#endif
