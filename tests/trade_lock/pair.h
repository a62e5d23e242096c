/*
 * A primary and its replica on servers of their own, and two processes that know both, for the tests
 * of what happens when the replica is promoted.  A test calls open_pair() first and close_pair()
 * last.
 */
#ifndef TESTS_TRADE_LOCK_PAIR_H
#define TESTS_TRADE_LOCK_PAIR_H

#include "fixture.h"

/* So long nothing may have happened. */
#define QUIET_MS 1500
#define BEATING "beat_ms=100ms\nsession_ms=20s\nread_timeout_s=2\nconnect_timeout_s=4\n"
#define SLOW "beat_ms=1m\nsession_ms=10m\nread_timeout_s=2\nconnect_timeout_s=4\n"

extern struct pair {
    database *db;           /* at the primary */
    server *primary, *copy; /* the copy is the replica, and is promoted */
    unsigned port_primary, port_copy;
    MYSQL *sql, *sql_copy; /* an administrator at each of them */
    tl_client *first, *second;
    tl_client *ops; /* an operator at the copy, or NULL */
} pair;

/* waits: the primary waits for its replica with each commit. */
void open_pair(int waits);
/* The same with an option of mariadbd for both, or NULL. */
void open_pair_with(int waits, const char *option);
/* The log that the promoted one has must be whole. */
void close_pair(void);

/* ------------------------------------------------------------------------------- servers -- */

/* A server of this number, with an option of its own or NULL, and the port where it listens. */
server *start_at(unsigned number, const char *option, unsigned *port);
/* `to` becomes the replica of the server at this port, which has an account for it. */
void follow(unsigned port, server *to, int acknowledges);
/* The same, acknowledging, of one that may have no such account yet. */
void replicate(server *from, unsigned port, server *to);

/* Until the query answers this number. */
void await_number(MYSQL *sql, const char *query, long long wanted);
/* Until the server there, or the copy, has applied all that the primary has committed by now. */
void await_at(MYSQL *sql);
void await_copy(void);

/* The primary takes no more writes, and the replica has all.  Each process has looked once more, after
 * the last beat that was answered, whether the primary waits for its replica: the replica is stopped
 * next, and who looked after that would have seen no one. */
void stop_writes(void);
/* All that the replica was sent is applied; then it is none any more. */
void apply_all(void);
/* Replication stops at a row of this table that is not there. */
void await_stopped_at(const char *table);
/* The replica is stopped, as if it had all until now.  Its position is read while it still receives:
 * else a commit waits for it. */
void set_position(void);
/* The copy is no replica any more, and takes writes. */
void take_writes(void);

/* ----------------------------------------------------------------------------- processes -- */

/* Option files, which close_pair() removes: of the service's account at these hosts, and of an
 * administrator at the copy. */
const char *file_with(const char *hosts, const char *settings);
const char *file_at_copy(void);
/* The hosts of the primary and of the server at this port, until the next call; or of the copy. */
const char *hosts_with(unsigned port);
const char *both(void);
tl_client *open_with(const char *option_file, unsigned flags);

uint64_t beats(tl_client *client);
/* Those that no server confirmed. */
uint64_t beats_unreachable(tl_client *client);
void await_unreachable(tl_client *client, uint64_t times);
/* Each of the two has looked at the server in a round since now. */
void await_rounds(void);
/* Ends the first one's session at the primary, as if it had done so itself. */
void end_mine(void);

/* ----------------------------------------------------------------------------- promotion -- */

void open_ops(void);
/* fenced: the old primary is off for certain. */
void promote_as(int fenced);
void promote(void);
int is_restored(void);
/* The copy is accepted, by itself. */
void await_accepted(void);
/* So many sessions have said what they know, and still it is not accepted. */
void expect_veto(int64_t sessions);
/* Two persons accept it. */
void accept_as_two(void);

/* The list of what is missing there. */
struct found {
    char serial[128], token[64]; /* of the last step */
    char whose[256];             /* of the last session that said nothing */
    int rows, unattested, not_kept, steps;
};
struct found what_is_missing(void);

#endif
