/*
 * The channel behind a proxy, over libcurl.  Each request has a connection of its own, since
 * libcurl repeats a request by itself when a connection that was used before is closed on it.
 */
#ifndef SIM_UPSTREAM_H
#define SIM_UPSTREAM_H

#include "problem.h"
#include "sim_time.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <stdint.h>

#define ANSWER_MAX ((size_t)4 * 1024 * 1024)

struct upstream;

/* ca_file: NULL for the system's certificates. */
struct upstream *upstream_new(const char *url, const char *ca_file, int64_t limit_ms,
                              struct stop_signal *stop, struct problem *problem);
void upstream_free(struct upstream *upstream);

/* Whether the upstream's URL leads to this address and port of this machine. */
bool upstream_is(const struct upstream *upstream, const struct sockaddr_in *address);

/* One request to the upstream, and what came back. */
struct exchange {
    const char *method;
    const char *target;               /* path and query, as they were sent */
    const struct curl_slist *headers; /* "Name: value", as they were sent */
    const char *body;
    size_t size;

    bool sent;                         /* a byte of it may have left */
    int status;                        /* 0: no answer */
    struct curl_slist *answer_headers; /* those that are passed on; free them */
    char *answer;                      /* free() it */
    size_t answer_size;
    uint64_t unsent_size;   /* how long it says that the answer is, also where none is sent */
    bool late;              /* there was no answer in time */
    struct problem problem; /* why there was no answer */
};

void upstream_send(const struct upstream *upstream, struct exchange *exchange);

#endif
