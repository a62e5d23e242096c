/* What the tests of trade locks share: a database, a client, and short ways to ask. */
#ifndef TESTS_TRADE_LOCK_FIXTURE_H
#define TESTS_TRADE_LOCK_FIXTURE_H

#include "support/database.h"

#include <tradelock/admin.h>
#include <tradelock/tradelock.h>

typedef struct fixture {
    database *db;
    tl_client *client, *other; /* two sessions */
    MYSQL *sql;
} fixture;

/* settings as database_new(). */
void fixture_open(fixture *f, const char *settings);
void fixture_close(fixture *f);

/* One for all tests of the file, with open_all and close_all. */
#define FIXTURE_OF_ALL(settings) FIXTURE_WITH_END(settings, (void)0)
/* The same; at the end every row's history is complete. */
#define WHOLE_FIXTURE_OF_ALL(settings) FIXTURE_WITH_END(settings, assert_log_whole(&f))
#define FIXTURE_WITH_END(settings, end)                                                            \
    static fixture f;                                                                              \
    FIXTURE(open_all)                                                                              \
    {                                                                                              \
        fixture_open(&f, settings);                                                                \
    }                                                                                              \
    FIXTURE(close_all)                                                                             \
    {                                                                                              \
        end;                                                                                       \
        fixture_close(&f);                                                                         \
    }

tl_client *client_new(const fixture *f, unsigned flags);
/* With other settings, or through another socket. */
tl_client *client_of(const char *option_file, unsigned flags);

/* A handle for (serial, cust, "WITHDRAW"). */
tl_lock *lock_new(tl_client *client, const char *serial, const char *cust,
                  const tl_lock_options *options);
/* The options of a sync lock with a payload and a channel. */
tl_lock_options sync_options(const char *payload);
/* The same with payload "x", for who changes nothing of it. */
#define SYNC sync_plainly()
const tl_lock_options *sync_plainly(void);
tl_lock_options retry_options(void);

/* A handle that was asked once; the answer in *status. */
tl_lock *ask(tl_client *client, const char *serial, const char *cust,
             const tl_lock_options *options, tl_status *status);
/* The same, and the answer must be TL_GRANTED. */
tl_lock *granted(tl_client *client, const char *serial, const char *cust,
                 const tl_lock_options *options);

/* The answer alone; the trade is as it was left then. */
tl_status ask_now(tl_client *client, const char *serial);
/* The same handle until it is granted, as a service does that is told to try again. */
void await_grant(tl_client *client, const char *serial);
/* Whether there is a row of this serial number, where several servers are asked. */
int has_row(MYSQL *sql, const char *serial);

tl_status finish(tl_lock *lock, tl_outcome outcome, tl_proof proof);
/* Ends it, with this answer, and frees it. */
#define end_lock(lock, outcome, proof, expected)                                                   \
    do {                                                                                           \
        tl_lock *ending_lock = (lock);                                                             \
        assert_status(finish(ending_lock, outcome, proof), expected);                              \
        tl_lock_free(ending_lock);                                                                 \
    } while (0)
#define end_paid(lock) end_lock(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE, TL_SUCCEEDED)
#define end_in_doubt(lock) end_lock(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE, TL_IN_DOUBT)

/* The row's columns as one word each, "P 1 1" = status epoch sends; "-" when absent. */
void assert_row(const fixture *f, const char *serial, const char *cust, const char *op,
                const char *expected);
/* No rev is missing in the log, fences never fell, and every row has its log. */
void assert_log_whole(const fixture *f);

/* The server's own counter, over all connections. */
long long server_counter(const fixture *f, const char *name);

#define assert_status(got, expected)                                                               \
    assert_string_equal(tl_status_name(got), tl_status_name(expected))

/* What the doctor says of this check, of which there is one finding, or none: level -1 and "". */
void expect_finding(tl_client *client, const char *check, int level, const char *found,
                    const char *part);
/* The doctor until it says so: the process hears of it with its next beat. */
void await_finding(tl_client *client, const char *check, int level, const char *found,
                   const char *part);

/* After a restore was accepted: every process hears of it with its next beat.  Asks for fresh
 * trades of this serial, with a number behind it, until one is granted, and ends it. */
void await_granting(tl_client *client, const char *serial, const char *cust);

#endif
