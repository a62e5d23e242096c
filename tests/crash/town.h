/*
 * A payment house of real processes that can be killed: a server and a simulator of the test's own,
 * services, workers and janitors started and awaited one by one, and the proof at the end, from
 * outside: the books and the audit.
 */
#ifndef TESTS_CRASH_TOWN_H
#define TESTS_CRASH_TOWN_H

#include "simulator/sim.h"
#include "support/database.h"

/* Short, so that thousands of deaths pass in minutes.  Deaths and attempts are never used up: what
 * a test must not do is park its own evidence away. */
#define TOWN_SETTINGS_OF(deadline)                                                                 \
    "site=town\nmax_hold_ms=1200ms\nexecute_ms=500ms\n"                                            \
    "commit_ms=500ms\nschedule=50ms\nattempts=500\npoison=90\ndeadline_ms=" deadline "\n"          \
    "grace_ms=200ms\nclock_margin_ms=50ms\nbusiness_lock_wait_s=1\n"
#define TOWN_SETTINGS TOWN_SETTINGS_OF("10m")

typedef struct town {
    server *own;
    database *db;
    MYSQL *sql;
    struct sim sim;
    const char *kind, *deadline;
    char url[64], dir[64];
    char *service_config; /* TOWN_SETTINGS, no janitor: only what it is told dies */
    char *worker_config;  /* the same with a janitor, which finishes what is left */
    char *janitor_config; /* sessions of a tenth of a second, for the dead */
    char *heart_config;   /* fast beats and a janitor in the service */
    unsigned long long serial;
} town;

/* options: of mariadbd, or NULL. */
void town_open(town *self, const char *kind, const char *const options[]);
/* The same on a server that the caller has started, and with another deadline. */
void town_open_on(town *self, const char *kind, server *where, const char *deadline);
/* A settings file with these and the channel; free() it. */
char *town_config(town *self, const char *settings);
void town_close(town *self);
/* After a restart of the server. */
void town_reconnect(town *self);

/* Another rule, or another kind of fault from here on; NULL: none. */
void town_rule(town *self, const char *rule);
void town_no_rules(town *self);

/* A CSV file with count withdrawals of new serials, and their accounts; free() it. */
char *town_rows(town *self, unsigned count);

/* Starts a program of the build tree with this environment (NAME=value, NULL). */
typedef struct child {
    pid_t pid;
    char name[24];
    char output[96]; /* what it printed; removed with the town */
} child;
child town_start(town *self, const char *program, const char *const arguments[],
                 const char *const environment[]);
child town_service(town *self, const char *config, const char *rows, unsigned threads,
                   const char *const environment[]);
child town_worker(town *self, const char *config, unsigned threads,
                  const char *const environment[]);
void town_await_ready(const child *worker);
/* Its wait status; after limit_ms it is killed, and -1. */
int child_wait(child *self, int64_t limit_ms);
/* 1 when it has ended, with its wait status. */
int child_ended(child *self, int *status);
void child_signal(const child *self, int signal);

/* Trades that a worker has to do with still. */
long long town_open_trades(town *self);
/* Starts a worker with a janitor and waits until nothing is open; fails after limit_ms. */
void town_finish(town *self, int64_t limit_ms);
/* The books and the audit, from outside.  0 when both agree; what they say is printed when not.
 * The counts may be NULL. */
typedef struct town_figures {
    long long trades, paid, failed, parked, payments, steps;
} town_figures;
int town_check(town *self, town_figures *figures);
/* town_check() of the books only, which a violation must fail; the text in output. */
int town_books(town *self, char **output);
int town_audit(town *self, char **output);

#endif
