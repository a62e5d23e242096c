/* The simulator as the channel between, in a process of its own. */
#ifndef TRY_SIMULATOR_H
#define TRY_SIMULATOR_H

#include <stddef.h>
#include <stdint.h>

typedef struct channel_process {
    long pid;
    char dir[64], url[64], rules[96];
    int proxy; /* it stands before another channel */
} channel_process;

/* Starts it on this port with these further options, ended by NULL.  0; else `problem` says why. */
int channel_start(channel_process *self, int64_t port, char *const options[], char *problem,
                  size_t space);
void channel_stop(channel_process *self);
/* Takes all rules away.  0, or -1. */
int channel_clear(channel_process *self);
/* Adds one: 0; -1: the channel does not know such a one. */
int channel_rule(channel_process *self, const char *rule);

#endif
