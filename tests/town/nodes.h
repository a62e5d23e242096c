/*
 * Nodes of a Galera cluster on machines of their own.  Whoever was killed joins again from its own
 * data, as systems do that start mariadbd: at the position to which it was recovered, from which
 * another node sends what it missed.  A new one, and one that was told to forget its data
 * (galera_forget()), is given a copy of another's.
 */
#ifndef TESTS_TOWN_NODES_H
#define TESTS_TOWN_NODES_H

#include "support/server.h"

/* Starts it, or a new one for NULL.  first: whom it finds the cluster at; itself: it makes one. */
server *node_join(server *self, unsigned machine, unsigned first);
/* Up to which commit its data reach; it does not run. */
long long node_position(const server *self);
/* Until it can be written to, in a cluster of so many. */
void node_await(MYSQL *sql, unsigned count, int patience_ms);

#endif
