/* The HTTP side: takes requests whole, hands them to routes.c, sends what comes back. */
#ifndef DESK_SERVER_H
#define DESK_SERVER_H

#include "desk.h"

struct server;

/* NULL: it cannot listen; one sentence is in problem. */
struct server *server_start(struct desk *desk, uint16_t *port, char *problem, size_t space);
void server_stop(struct server *server);

#endif
