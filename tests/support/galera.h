/*
 * Nodes of a Galera cluster.  Each has its data in a directory of its own, as any server of a test;
 * whoever joins with other data than the cluster's is given a copy of another node's.
 */
#ifndef TESTS_SUPPORT_GALERA_H
#define TESTS_SUPPORT_GALERA_H

#include "support/server.h"

typedef struct galera_node {
    unsigned id;
    const char *address;  /* its own, so that nobody else has its ports */
    const char *also;     /* a second one that it is bound to, or NULL */
    const char *incoming; /* where clients reach it, if it says so itself, or NULL */
    const char *position; /* "UUID:NUMBER" that its data have come to, or NULL: it does not know */
} galera_node;

/* Before the first one is started. */
void galera_prepare(void);
/* An option: where Galera's library is. */
const char *galera_provider(void);
/* Starts it anew, or a new server for NULL, and gives it.  first: the address of whom it finds the
 * cluster at; its own: it makes one. */
server *galera_join(server *self, const galera_node *node, const char *first);
/* What it has is not the cluster's, and it is given a copy when it joins next. */
void galera_forget(const server *self);

#endif
