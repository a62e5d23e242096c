/*
 * Where an operation is disturbed: a database, a client whose packets pass the wire, and one that
 * talks to the server directly.  Each case has a trade of its own.
 */
#ifndef TESTS_PACKETS_SCENE_H
#define TESTS_PACKETS_SCENE_H

#include "support/database.h"
#include "wire.h"

#include <tradelock/books.h>

#define SCENE_CLAIMS 3
#define SCENE_AMOUNT 10

typedef struct scene {
    server *where;
    database *db;
    wire *line;
    MYSQL *sql; /* direct */
    tl_client *near;
    tl_books *near_books; /* or NULL, as long as no case has asked for them */
    char *patient_file, *hasty_file;

    /* Of the case under way. */
    tl_client *far;
    tl_books *far_books; /* or NULL */
    char serial[32], cust[32];
    tl_lock *lock;
    tl_lock *claimed[SCENE_CLAIMS];
    size_t claimed_count;
    MYSQL *caller;
    int stage; /* an operation's own */
    int64_t opened;
    /* When the account was opened: the ledger's last row, and what the treasury had by then. */
    long long ledger_was, treasury_was;
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
/* The trade has an amount. */
#define SCENE_PRICED 0x40000000u
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
long long scene_steps(scene *s);       /* log rows of all the customer's trades */
long long scene_trade_steps(scene *s); /* log rows of the trade, both lanes */
long long scene_ledger(scene *s);      /* business rows of the trade */
/* A connection of a caller's own, through the wire. */
MYSQL *scene_caller(scene *s);
/* A callback that writes a business row; context is the scene. */
tl_status scene_book(void *context, struct st_mysql *connection);

/*
 * Declared books: an account, which the trade's amount is frozen in and paid from, a treasury, and
 * the ledger, with a row for each ask and each ending.  A line of "strike out" finds no row.
 */
enum scene_pages { PAGES_ASK, PAGES_SUCCESS, PAGES_FAILURE };

/* Declares the statements, for the far client or for another one. */
tl_status scene_declare(tl_books **out, tl_client *client);
/* Declares them for both clients, unless they have them, and gives the trade's customer an account
 * with so much. */
void scene_open_account(scene *s, int64_t balance);
/* A book with the lines of an ask or an ending; NULL: out of memory. */
tl_book *scene_pages(tl_books *books, enum scene_pages which);
/* tl_lock_ask_book() and tl_lock_finish_book() with these lines. */
tl_status scene_ask_book(tl_lock *lock, tl_books *books);
tl_status scene_finish_book(tl_lock *lock, tl_books *books, const tl_ending *ending);
/* The near client asks and ends with books. */
void scene_booked_past(scene *s, tl_outcome outcome);
/* Account and treasury follow the ledger, row by row; "" when they do. */
const char *scene_books_problem(scene *s);

/* The rules that the whole log must keep; the number of places where it does not. */
long long scene_log_problems(scene *s);

#endif
