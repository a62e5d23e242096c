/* The command line of tradelock-withdraw. */
#ifndef WITHDRAW_OPTIONS_H
#define WITHDRAW_OPTIONS_H

#include "host.h"

#define PROGRAM "tradelock-withdraw"

typedef struct options {
    host_options host;
    const char *file, *out, *batch; /* batch NULL: none */
    unsigned threads;
    int64_t seed, open_minor, wait_ms, patience_ms, final_wait_ms; /* open_minor < 0: no */
} options;

/* -1: go on; else the exit code. */
int options_read(options *self, int argc, char **argv);

#endif
