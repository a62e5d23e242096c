/*
 * The load of a town: services that pay rows of a file and workers, any of which may be killed at
 * any moment and begins anew.  All randomness comes from one number, which each run prints.
 */
#ifndef TESTS_CRASH_CROWD_H
#define TESTS_CRASH_CROWD_H

#include "town.h"

#define CROWD_MOST 8

typedef struct crowd {
    town town;
    unsigned services, workers; /* how many of each */
    unsigned threads;           /* of a service */
    unsigned trades;            /* wanted */
    double faults;              /* the part of the channel's requests that goes wrong */
    unsigned kills;             /* of services and workers, counted */
    char *rows[CROWD_MOST];     /* a file for each service */
    child running[CROWD_MOST];  /* services first, then workers */
    uint64_t random;
} crowd;

/* Opens the town with its rows and faults; the numbers above are set before. */
void crowd_open(crowd *self, const char *kind, const char *const options[]);
/* The same on a server that the caller has started, and with another deadline. */
void crowd_open_on(crowd *self, const char *kind, server *where, const char *deadline);
void crowd_close(crowd *self);

unsigned crowd_random(crowd *self, unsigned below);
void crowd_start(crowd *self);
/* Kills one of them at random and starts it anew; a service only where `services` says. */
void crowd_kill_one(crowd *self, int services);
/* Starts anew who has ended; how many services are still at work. */
unsigned crowd_look_after(crowd *self, int more);
/* SIGKILL for all that run, services included; they are not begun anew. */
void crowd_end(crowd *self);
/* Trades that came as far as a row. */
long long crowd_begun(crowd *self);
/* Lines that were cut off are asked again; those that were not are answered again. */
void crowd_ask_all_again(crowd *self);

#endif
