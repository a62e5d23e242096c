/* tradelock itself: one client for all callers, as in a service. */
#include "bench.h"

#include <tradelock/engine.h>

#include <mysql.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static tl_client *client;
static tl_lock *held; /* what the refused ask for */

static int open_client(const bench_options *options)
{
    tl_client_options wanted = TL_CLIENT_OPTIONS_INIT;

    wanted.config_file = options->option_file;
    wanted.program = "bench";
    if (tl_client_open(&client, &wanted) != TL_OK)
        bench_fail("%s", tl_error_message());
    return 0;
}

static tl_lock *new_lock(unsigned caller, uint64_t number)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    char serial[64], cust[32];
    tl_key key = {serial, cust, "WITHDRAW"};
    tl_lock *lock = NULL;

    bench_key(caller, number, serial, cust);
    options.max_hold_ms = 60000;
    options.payload = "100.00 EUR";
    options.payload_size = 10;
    if (bench.contended)
        options.flags = TL_ASK_REPEATABLE;
    if (tl_lock_new(&lock, client, &key, &options) != TL_OK)
        bench_fail("%s", tl_error_message());
    return lock;
}

static int finish(tl_lock *lock, tl_tx_fn apply)
{
    tl_ending ending = TL_ENDING_INIT;
    tl_status status;

    ending.outcome = TL_OUTCOME_SUCCESS;
    status = apply != NULL ? tl_lock_finish_with(lock, &ending, apply, NULL, 10000)
                           : tl_lock_finish(lock, &ending);
    tl_lock_free(lock);
    if (status != TL_SUCCEEDED)
        bench_fail("finish: %s %s", tl_status_name(status), tl_error_message());
    return 1;
}

static int cycle(unsigned caller, uint64_t number)
{
    tl_lock *lock = new_lock(caller, number);
    tl_status status = tl_lock_ask(lock, bench.contended ? 30000 : 0);

    if (status == TL_GRANTED)
        return finish(lock, NULL);
    if (tl_status_class(status) != TL_CLASS_CONFLICT && status != TL_TIMEOUT)
        bench_fail("ask: %s %s", tl_status_name(status), tl_error_message());
    tl_lock_free(lock);
    return 0;
}

static void close_client(void)
{
    tl_lock_free(held);
    held = NULL;
    tl_client_close(client);
}

const contestant contestant_tradelock = {"tradelock",
                                         "ask and finish, one client for all callers",
                                         open_client, cycle, close_client};

/* ------------------------------------------------------------------- refusals -- */

static int open_refusal(const bench_options *options)
{
    open_client(options);
    held = new_lock(0, 0);
    if (tl_lock_ask(held, 0) != TL_GRANTED)
        bench_fail("%s", tl_error_message());
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
    return 0;
}

const contestant contestant_refusal = {"refusal", "asks for one key that is held",
                                       open_refusal, refused, close_client};

/* ------------------------------------------------- with business rows beside it -- */

static tl_status insert_order(void *context, struct st_mysql *connection)
{
    (void)context;
    return mysql_query(connection, "INSERT INTO bench_order (amount) VALUES (10000)") == 0
               ? TL_OK
               : TL_TRY_AGAIN;
}

static tl_status insert_booking(void *context, struct st_mysql *connection)
{
    (void)context;
    return mysql_query(connection, "INSERT INTO bench_ledger (amount) VALUES (10000)") ==
                   0
               ? TL_OK
               : TL_TRY_AGAIN;
}

static int workflow_cycle(unsigned caller, uint64_t number)
{
    tl_lock *lock = new_lock(caller, number);
    tl_status status = tl_lock_ask_with(lock, insert_order, NULL);

    if (status != TL_GRANTED)
        bench_fail("ask: %s %s", tl_status_name(status), tl_error_message());
    return finish(lock, insert_booking);
}

const contestant contestant_workflow = {
    "workflow", "ask and finish with an order and a booking in their transactions",
    open_client, workflow_cycle, close_client};
