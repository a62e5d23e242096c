/*
 * A fleet for tests: a server and a database for each shard, joined with even parts of the slots,
 * and a settings file that names them.
 */
#ifndef TESTS_FLEET_SHARDS_H
#define TESTS_FLEET_SHARDS_H

#include "support/database.h"

#include <tradelock/admin/fleet.h>
#include <tradelock/fleet.h>

#define SHARDS_MOST 4
/* A shard that is silent counts as down after a third of session_ms. */
#define SHARDS_SETTINGS                                                                            \
    "site=fleet\nbeat_ms=100ms\nsession_ms=6s\nconnect_timeout_s=2\nread_timeout_s=8\n"            \
    "max_hold_ms=6s\nexecute_ms=3s\ncommit_ms=2s\ndeadline_ms=1m\nschedule=50ms,100ms\n"           \
    "attempts=50\npoison=50\ngrace_ms=200ms\nclock_margin_ms=50ms\nbusiness_lock_wait_s=1\n"

typedef struct shards {
    size_t count;
    server *where[SHARDS_MOST];
    database *db[SHARDS_MOST];
    MYSQL *sql[SHARDS_MOST];
    char file[640];
} shards;

extern const char *const shards_names[SHARDS_MOST]; /* a, b, c, d */

/* Servers and databases with the business tables of the sample, not joined yet. */
void shards_make(shards *self, size_t count);
/* The same on these servers, which it frees with shards_close(). */
void shards_make_at(shards *self, server *const where[], size_t count);
/* Joins shard i, with these slots. */
void shards_join(shards *self, size_t i, unsigned from, unsigned end);
/* Both, with even parts, and the settings file. */
void shards_open(shards *self, size_t count);
void shards_close(shards *self);

/* Writes the settings file: at[i] is the database to which the section of shard i leads, of all
 * that `names` names; the fleet is called payouts. */
void shards_write(shards *self, const char *names, const size_t at[], const char *settings);

/* The n-th customer of shard i, by the even parts. */
const char *shards_cust(const shards *self, size_t i, unsigned n, char to[TL_CUST_MAX + 1]);
/* An account of the sample for that customer. */
void shards_account(shards *self, size_t i, const char *cust_no, long long balance_minor);

/* The fleet of that file. */
tl_status shards_fleet(const shards *self, tl_fleet **fleet);
/* A slot is given to another shard by hand, as the last two steps of a move do. */
void shards_hand_over(shards *self, size_t from, size_t to, unsigned slot);

/* A real move, with the tables of the sample. */
tl_status shards_move(const shards *self, size_t from, size_t to, unsigned slot,
                      tl_slot_step_fn progress, void *context);
/* Removes the rows that moves left behind, as a purge does. */
void shards_clean(const shards *self);

void shards_stop(shards *self, size_t i); /* SIGSTOP */
void shards_go_on(shards *self, size_t i);
/* kill -9 and start anew. */
void shards_kill(shards *self, size_t i);
void shards_restart(shards *self, size_t i);

#endif
