/*
 * The channel over HTTP.  README.md is the contract; server.c speaks HTTP, handlers.c decides what
 * a request is answered.
 */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "channel.h"
#include "fault.h"
#include "request_log.h"

#include <netinet/in.h>
#include <stdatomic.h>

/* What the handlers work with; borrowed until server_stop(). */
struct house {
    struct channel *channel; /* NULL: it is a proxy */
    struct proxy *proxy;     /* NULL: it is a channel */
    enum channel_kind kind;
    struct faults *faults;
    struct request_log *log;
    struct stop_signal *stop;

    atomic_llong requests[ENDPOINT_COUNT];
    atomic_llong other_requests, bad_requests, dropped;
    atomic_llong outcomes[OUTCOME_COUNT];
    atomic_llong faults_injected[FAULT_KIND_COUNT];
};

struct server;

/* Starts listening; *port is the port that was taken. */
struct server *server_start(struct house *house, const struct sockaddr_in *address, uint16_t *port,
                            struct problem *problem);
/* Requests under way are left without an answer.  Needs: the stop signal was raised and
 * channel_stop() was called. */
void server_stop(struct server *server);

#endif
