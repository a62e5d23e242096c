/*
 * One request, from its parsed form to its answer.  No HTTP library here.
 */
#ifndef SIM_HANDLERS_H
#define SIM_HANDLERS_H

#include "server.h"

#include <curl/curl.h>
#include <jansson.h>

struct request {
    int64_t number;
    const char *method;
    const char *path; /* as sent, still escaped; at a proxy with the query */
    const char *body; /* size bytes */
    size_t size;
    bool too_big;
    const struct curl_slist *headers; /* "Name: value"; at a proxy only */
};

struct reply {
    int status;   /* 0: close the connection without an answer */
    json_t *body; /* or NULL */
    char *csv;    /* instead of a body; free() it */
    size_t csv_size;
    bool raw; /* csv is whatever an upstream answered, with these headers; free them */
    struct curl_slist *headers;
    uint64_t unsent_size; /* after HEAD: how long the body would be */
};

#define BODY_MAX ((size_t)16384)
#define PROXY_BODY_MAX ((size_t)1048576)

void handle(struct house *house, const struct request *request, struct reply *reply);

#endif
