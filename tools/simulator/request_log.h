/*
 * The optional request log: one JSON line for each request received and one for its end, written at
 * once (but not synced), so that a crash test can count HTTP calls.
 */
#ifndef SIM_REQUEST_LOG_H
#define SIM_REQUEST_LOG_H

#include "problem.h"

#include <jansson.h>
#include <stdint.h>

struct request_log;

/* A NULL path gives a log that writes nothing. */
struct request_log *request_log_open(const char *path, struct problem *problem);
void request_log_close(struct request_log *log);

/* "event" and "request" come first, then the fields; takes the fields. */
void request_log_line(struct request_log *log, const char *event, int64_t request, json_t *fields);

#endif
