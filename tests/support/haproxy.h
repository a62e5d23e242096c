/*
 * HAProxy before two servers of 127.0.0.1: one address, which leads to the first of them until it is
 * told something else.  It ends with this process.
 */
#ifndef TESTS_SUPPORT_HAPROXY_H
#define TESTS_SUPPORT_HAPROXY_H

typedef struct haproxy haproxy;

/* ends: those who are connected to a server that is disabled are cut off. */
haproxy *haproxy_start(unsigned port_first, unsigned port_second, int ends);
void haproxy_free(haproxy *self); /* accepts NULL */

unsigned haproxy_port(const haproxy *self);
/* Has it lead to the second one. */
void haproxy_turn(haproxy *self);

#endif
