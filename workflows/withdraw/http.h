/*
 * One HTTP exchange, never repeated behind the caller's back.
 *
 * If a connection that libcurl had kept turns out to be dead, libcurl sends the request again by
 * itself.  A payment must not leave twice without being counted.  So every exchange has a
 * connection of its own, on which libcurl never repeats.  For the same reason proxies of the
 * environment are not used, and redirects are not followed.
 *
 * If no time is left of the attempt, the request is not begun.
 */
#ifndef WITHDRAW_HTTP_H
#define WITHDRAW_HTTP_H

#include <tradelock/workflow.h>

#include <stddef.h>

#define HTTP_BODY_MAX 65536

typedef enum http_fate {
    HTTP_NOT_SENT, /* no byte of the request has left */
    HTTP_LOST,     /* the request may have arrived; there is no whole answer */
    HTTP_ANSWERED
} http_fate;

typedef struct http_exchange {
    http_fate fate;
    long code;              /* the HTTP status of HTTP_ANSWERED */
    int64_t retry_after_ms; /* the header Retry-After, in seconds or as a date; 0: none */
    char problem[160];
    size_t size;
    char body[HTTP_BODY_MAX];
} http_exchange;

/* Once in a process, before the first exchange.  0, or -1. */
int http_start(void);

/* body NULL: a GET; else a POST of JSON. */
void http_run(http_exchange *exchange, const char *name, const char *url, const char *body,
              const tl_attempt *attempt);

#endif
