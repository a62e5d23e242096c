/*
 * One request, from its parsed form to its answer.  No HTTP library here.
 */
#ifndef SIM_HANDLERS_H
#define SIM_HANDLERS_H

#include "server.h"

#include <jansson.h>

struct request {
    int64_t number;
    const char *method;
    const char *path; /* as sent, still escaped */
    const char *body; /* size bytes */
    size_t size;
    bool too_big;
};

struct reply {
    int status;   /* 0: close the connection without an answer */
    json_t *body; /* or NULL */
    char *csv;    /* instead of a body; free() it */
    size_t csv_size;
};

#define BODY_MAX 16384

void handle(struct house *house, const struct request *request, struct reply *reply);

#endif
