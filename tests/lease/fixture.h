/* What the tests of mutexes share: a database, two clients, and short ways to ask. */
#ifndef TESTS_LEASE_FIXTURE_H
#define TESTS_LEASE_FIXTURE_H

#include "support/database.h"

#include <tradelock/resource.h>

typedef struct fixture {
    database *db;
    tl_client *client, *other; /* two sessions */
    MYSQL *sql;
} fixture;

/* settings as database_new(). */
void fixture_open(fixture *f, const char *settings);
void fixture_close(fixture *f);

/* One for all tests of the file, with open_all and close_all. */
#define FIXTURE_OF_ALL(settings)                                                                   \
    static fixture f;                                                                              \
    FIXTURE(open_all)                                                                              \
    {                                                                                              \
        fixture_open(&f, settings);                                                                \
    }                                                                                              \
    FIXTURE(close_all)                                                                             \
    {                                                                                              \
        fixture_close(&f);                                                                         \
    }

tl_client *client_new(const fixture *f);

tl_mutex_options lease_options(int64_t lease_ms); /* 0: renewed, for a minute at most */
tl_mutex *mutex_new(tl_client *client, const char *resource, const tl_mutex_options *options);
/* The same, and locked at once. */
tl_mutex *locked(tl_client *client, const char *resource, const tl_mutex_options *options);
/* What a try by this client answers; nothing stays locked. */
tl_status try_once(tl_client *client, const char *resource);

/* A connection of a caller's own, with an idle_transaction_timeout, in a transaction. */
MYSQL *caller_new(const fixture *f);
void caller_run(MYSQL *caller, const char *sql);

/* No rev is missing in the log, and no fence ever fell. */
void assert_log_whole(const fixture *f);
long long server_counter(const fixture *f, const char *name);

#define assert_status(got, expected)                                                               \
    assert_string_equal(tl_status_name(got), tl_status_name(expected))

#endif
