/*
 * Nodes of a Galera cluster on machines of their own.  Whoever was killed joins again from its own
 * data, as systems do that start mariadbd: at the position to which it was recovered, from which
 * another node sends what it missed.
 */
#ifndef TESTS_TOWN_NODES_H
#define TESTS_TOWN_NODES_H

#include "support/server.h"

/* Before the first one is started. */
void nodes_prepare(void);
/* Makes the node's directory. */
server *node_new(unsigned machine);
/* Starts it.  first: whom it finds the cluster at; itself: it makes one. */
void node_join(server *self, unsigned machine, unsigned first);
/* Gives `to`, which does not run, the data of `from`, which does, and is alone. */
void node_copy(const server *from, const server *to);
/* Until it can be written to, in a cluster of so many. */
void node_await(MYSQL *sql, unsigned count, int patience_ms);

#endif
