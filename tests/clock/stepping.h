/*
 * A MariaDB whose clock a test sets, while it runs: libfaketime is loaded into it and reads a file
 * before each look at the clock.  Its monotonic clock, and with it every time-out, goes on as it
 * is; so does the clock of everybody else, the simulator above all.
 */
#ifndef TESTS_CLOCK_STEPPING_H
#define TESTS_CLOCK_STEPPING_H

#include "support/server.h"

#include <stdint.h>

typedef struct stepping stepping;

stepping *stepping_start(void);
/* The server itself is freed by whoever uses it, or with the process. */
void stepping_free(stepping *self);
server *stepping_server(stepping *self);

/* From now on the server's clock is so far ahead of this machine's. */
void stepping_set(stepping *self, int64_t ahead_ms);

/* The path of libfaketime. */
void stepping_library(char *path, size_t space);

#endif
