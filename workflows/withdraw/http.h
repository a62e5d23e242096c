/*
 * One HTTP exchange, never repeated behind the caller's back.
 *
 * libcurl sends a request again on its own when a connection that it had kept turns out to be dead.
 * A payment must not leave twice without being counted, so every exchange has a connection of its
 * own, on which libcurl never repeats.  Proxies of the environment and redirects are not followed
 * for the same reason.
 *
 * No exchange begins its request when nothing is left of its attempt.
 */
#ifndef WITHDRAW_HTTP_H
#define WITHDRAW_HTTP_H

#include <tradelock/workflow.h>

#include <stddef.h>

#define HTTP_BODY_MAX 65536

typedef enum http_fate {
    HTTP_NOT_SENT, /* not one byte of the request has left */
    HTTP_LOST,     /* it may have arrived; there is no whole answer */
    HTTP_ANSWERED
} http_fate;

typedef struct http_exchange {
    http_fate fate;
    long code; /* ANSWERED */
    char problem[160];
    size_t size;
    char body[HTTP_BODY_MAX];
} http_exchange;

/* Once in a process, before the first exchange.  0, or -1. */
int http_start(void);

/* body NULL: GET, else POST of JSON. */
void http_run(http_exchange *exchange, const char *name, const char *url, const char *body,
              const tl_attempt *attempt);

#endif
