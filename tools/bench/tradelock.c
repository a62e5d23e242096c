/* tradelock itself: one client for all callers, as in a service. */
#include "bench.h"
#include "client.h"

#include <tradelock/callback.h>

#include <mysql.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

tl_client *bench_client;

void client_open(unsigned flags)
{
    tl_client_options wanted = TL_CLIENT_OPTIONS_INIT;

    wanted.config_file = bench.option_file;
    wanted.database = bench.database;
    wanted.program = "bench";
    wanted.flags = flags;
    if (tl_client_open(&bench_client, &wanted) != TL_OK)
        bench_fail("%s", tl_error_message());
}

tl_lock *client_lock(const char *serial, const char *cust)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_key key = {serial, cust, "WITHDRAW"};
    tl_lock *lock = NULL;

    options.max_hold_ms = 60000;
    options.payload = "100.00 EUR";
    options.payload_size = 10;
    if (bench.contended)
        options.flags = TL_ASK_REPEATABLE;
    if (tl_lock_new(&lock, bench_client, &key, &options) != TL_OK)
        bench_fail("%s", tl_error_message());
    return lock;
}

static tl_lock *new_lock(unsigned caller, uint64_t number)
{
    char serial[64], cust[32];

    bench_key(caller, number, serial, cust);
    return client_lock(serial, cust);
}

/* Calls that a busy machine did not carry out in time; made again, within the cycle. */
static atomic_ullong repeated;

static int may_repeat(tl_status status)
{
    if (tl_status_class(status) != TL_CLASS_RETRY)
        return 0;
    atomic_fetch_add(&repeated, 1);
    return 1;
}

static int finish(tl_lock *lock, tl_tx_fn apply)
{
    tl_ending ending = TL_ENDING_INIT;
    tl_status status;

    ending.outcome = TL_OUTCOME_SUCCESS;
    do
        status = apply != NULL ? tl_lock_finish_with(lock, &ending, apply, NULL, 30000)
                               : tl_lock_finish(lock, &ending);
    while (may_repeat(status));
    tl_lock_free(lock);
    if (status != TL_SUCCEEDED)
        bench_fail("finish: %s %s", tl_status_name(status), tl_error_message());
    return 1;
}

/* What the library itself says: how its groups came out. */
static void note_stats(void)
{
    tl_stats stats = TL_STATS_INIT;

    if (tl_client_stats(bench_client, &stats) != TL_OK)
        bench_fail("%s", tl_error_message());
    bench_note("groups", (double)stats.groups);
    bench_note("grouped", (double)stats.grouped);
    bench_note("repeats", (double)stats.repeats);
    bench_note("called_again", (double)atomic_load(&repeated));
}

/* ---------------------------- one more caller, whose ending stands open for long -- */

static struct {
    pthread_t holder, asker;
    int holds, asks;
    atomic_uint granted; /* how many of its locks it was given so far */
    atomic_int over;
} slow;

static tl_lock *slow_lock(unsigned number)
{
    char serial[64];

    snprintf(serial, sizeof serial, "%s-slow-%u", bench.run_name, number);
    return client_lock(serial, "SLOW");
}

static tl_status stand_open(void *context, struct st_mysql *connection)
{
    (void)context;
    (void)connection;
    bench_sleep_us(bench.hold_open_ms * 1000);
    return TL_OK;
}

static void *hold_open(void *argument)
{
    (void)argument;
    for (unsigned i = 1; !atomic_load(&slow.over); i++) {
        tl_lock *lock = slow_lock(i);

        if (tl_lock_ask(lock, 0) != TL_GRANTED)
            bench_fail("%s", tl_error_message());
        atomic_store(&slow.granted, i);
        (void)finish(lock, stand_open);
    }
    return NULL;
}

/* Asks for the key whose ending stands open, and is refused. */
static void *ask_held(void *argument)
{
    (void)argument;
    while (!atomic_load(&slow.over)) {
        unsigned number = atomic_load(&slow.granted);

        if (number > 0) {
            tl_lock *lock = slow_lock(number);
            tl_status status = tl_lock_ask(lock, 0);

            if (status != TL_BUSY && status != TL_ALREADY_DONE &&
                tl_status_class(status) != TL_CLASS_RETRY)
                bench_fail("asked: %s %s", tl_status_name(status), tl_error_message());
            tl_lock_free(lock);
        }
        bench_sleep_us(bench.ask_held_ms * 1000);
    }
    return NULL;
}

static int open_client(const bench_options *options)
{
    client_open(0);
    slow.holds =
        options->hold_open_ms > 0 && pthread_create(&slow.holder, NULL, hold_open, NULL) == 0;
    slow.asks = slow.holds && options->ask_held_ms > 0 &&
                pthread_create(&slow.asker, NULL, ask_held, NULL) == 0;
    return 0;
}

static void close_client(void)
{
    atomic_store(&slow.over, 1);
    if (slow.holds)
        pthread_join(slow.holder, NULL);
    if (slow.asks)
        pthread_join(slow.asker, NULL);
    tl_client_close(bench_client);
}

static int cycle(unsigned caller, uint64_t number)
{
    tl_lock *lock = new_lock(caller, number);
    tl_status status;

    do
        status = tl_lock_ask(lock, 0);
    while (may_repeat(status));
    if (status != TL_GRANTED)
        bench_fail("ask: %s %s", tl_status_name(status), tl_error_message());
    return finish(lock, NULL);
}

const contestant contestant_tradelock = {.name = "tradelock",
                                         .what = "ask and finish, one client for all callers",
                                         .open = open_client,
                                         .cycle = cycle,
                                         .close = close_client,
                                         .after = note_stats};

/* ------------------------------------------------------------------- refusals -- */

static tl_lock *held; /* what the refused ask for */
static double rows_before;

/* Every change of a row raises its rev, and what it replaces is kept. */
static double hot_steps(void)
{
    MYSQL *connection = sql_connect(&bench);
    char serial[64], cust[32], sql[400];
    double steps;

    bench_key(0, 0, serial, cust);
    snprintf(sql, sizeof sql,
             "SELECT (SELECT COALESCE(SUM(rev), 0) FROM trade_lock WHERE cust_no = '%s' "
             "AND serial_no = '%s') + (SELECT COUNT(*) FROM trade_lock_log WHERE "
             "cust_no = '%s' AND serial_no = '%s')",
             cust, serial, cust, serial);
    steps = sql_number(connection, sql);
    mysql_close(connection);
    return steps;
}

static int open_refusal(const bench_options *options)
{
    open_client(options);
    held = new_lock(0, 0);
    if (tl_lock_ask(held, 0) != TL_GRANTED)
        bench_fail("%s", tl_error_message());
    rows_before = hot_steps();
    return 0;
}

static int refused(unsigned caller, uint64_t number)
{
    tl_lock *lock = new_lock(0, 0);
    tl_status status = tl_lock_ask(lock, 0);

    (void)caller;
    (void)number;
    tl_lock_free(lock);
    if (status != TL_BUSY)
        bench_fail("not refused: %s", tl_status_name(status));
    return 1;
}

static void note_writes(void)
{
    bench_note("row_writes", hot_steps() - rows_before);
}

static void close_refusal(void)
{
    (void)finish(held, NULL);
    close_client();
}

const contestant contestant_refusal = {.name = "refusal",
                                       .what = "asks for one key that is held",
                                       .open = open_refusal,
                                       .cycle = refused,
                                       .close = close_refusal,
                                       .after = note_writes};
