/*
 * Where an operation is disturbed: a database, a client whose packets pass the wire, and one that
 * talks to the server directly.  Each case has a trade of its own.
 */
#ifndef TESTS_PACKETS_SCENE_H
#define TESTS_PACKETS_SCENE_H

#include "support/database.h"
#include "wire.h"

#include <tradelock/tradelock.h>

#define SCENE_CLAIMS 3

typedef struct scene {
    server *where;
    database *db;
    wire *line;
    MYSQL *sql; /* direct */
    tl_client *near;
    char *patient_file, *hasty_file;

    /* Of the case under way. */
    tl_client *far;
    char serial[32], cust[32];
    tl_lock *lock;
    tl_lock *claimed[SCENE_CLAIMS];
    size_t claimed_count;
    MYSQL *caller;
    int stage; /* an operation's own */
    int64_t opened;
} scene;

/* NULL: a server of the scene's own settings; else of a server that the test started. */
void scene_open(scene *s, server *where);
void scene_close(scene *s);

/* Another near client, of the database's option file. */
tl_client *scene_client(scene *s);

/* Begins a case: a fresh far client and a fresh trade.  hasty: a client that gives up soon, for
 * when the line is down. */
void scene_begin(scene *s, int hasty);
/* A fresh trade for the same far client. */
void scene_next_trade(scene *s);
void scene_end_trade(scene *s);
void scene_end(scene *s);

/* A handle for the scene's trade, of either client; ends the process when it cannot. */
/* Besides the flags of asks: without a channel, so that little is told of it. */
#define SCENE_PLAIN 0x80000000u
tl_lock *scene_lock(scene *s, tl_client *client, tl_lane lane, unsigned flags);
tl_lock *scene_granted(scene *s, tl_client *client, tl_lane lane, unsigned flags);
tl_ending scene_ending(tl_outcome outcome);
/* The near client asks, and ends with this outcome. */
void scene_past(scene *s, tl_outcome outcome);
/* The trade of the scene, or "" when it is as it should be: what is wrong with a hold. */
const char *scene_hold_problem(scene *s, tl_lock *lock);

/* "P 1 1", status epoch sends; "-" without a row.  op: WITHDRAW or WITHDRAW_RETRY. */
void scene_row(scene *s, const char *op, char *to, size_t space);
/* The log of the trade in one line, for a sentence about what went wrong; free() it. */
char *scene_story(scene *s);
long long scene_steps(scene *s);  /* log rows of the trade, both lanes */
long long scene_ledger(scene *s); /* business rows of the trade */
/* A connection of a caller's own, through the wire. */
MYSQL *scene_caller(scene *s);
/* A callback that writes a business row; context is the scene. */
tl_status scene_book(void *context, struct st_mysql *connection);

/* The rules that the whole log must keep; the number of places where it does not. */
long long scene_log_problems(scene *s);

#endif
