/* The retry lane: workers that claim due work, where callers are workers, each batch as large as
 * one claims; and trades that go through both lanes. */
#include "bench.h"
#include "client.h"

#include <tradelock/lane.h>

#include <stddef.h>

#define BATCH 16

static int open_claims(const bench_options *options)
{
    (void)options;
    client_open(TL_CLIENT_NO_JANITOR);
    return 0;
}

static int cycle(unsigned caller, uint64_t number)
{
    tl_claim_options options = TL_CLAIM_OPTIONS_INIT;
    tl_lock *locks[BATCH];
    size_t count = BATCH;
    tl_status status;

    (void)caller;
    (void)number;
    options.op_code = "WITHDRAW";
    options.max_hold_ms = 60000;
    status = tl_claim_due(bench_client, &options, locks, &count);
    if (status != TL_OK && tl_status_class(status) != TL_CLASS_RETRY)
        bench_fail("claim: %s %s", tl_status_name(status), tl_error_message());
    if (status != TL_OK)
        return 0;
    if (count == 0)
        bench_fail("nothing is due any more: prepare more rows");
    for (size_t i = 0; i < count; i++)
        tl_lock_free(locks[i]);
    return (int)count;
}

static void close_claims(void)
{
    tl_client_close(bench_client);
}

const contestant contestant_claims = {.name = "claims",
                                      .what = "claims 16 due trades at a time",
                                      .open = open_claims,
                                      .cycle = cycle,
                                      .close = close_claims};

/* ------------------------------------------------------------- through both lanes -- */

/* The same call again where a busy machine did not carry it out in time. */
static void finish(tl_lock *lock, tl_outcome outcome, tl_status expected)
{
    tl_ending ending = TL_ENDING_INIT;
    tl_status status;

    ending.outcome = outcome;
    do
        status = tl_lock_finish(lock, &ending);
    while (tl_status_class(status) == TL_CLASS_RETRY);
    if (status != expected)
        bench_fail("finish: %s %s", tl_status_name(status), tl_error_message());
    tl_lock_free(lock);
}

static tl_lock *ask(tl_lock *lock)
{
    tl_status status;

    do
        status = tl_lock_ask(lock, 0);
    while (tl_status_class(status) == TL_CLASS_RETRY);
    if (status != TL_GRANTED)
        bench_fail("ask: %s %s", tl_status_name(status), tl_error_message());
    return lock;
}

/* The first attempt gets no answer from its channel; the second one pays. */
static int compensate(unsigned caller, uint64_t number)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    char serial[64], cust[32];
    tl_key key = {serial, cust, "WITHDRAW"};
    tl_lock *lock = NULL;

    bench_key(caller, number, serial, cust);
    finish(ask(client_lock(serial, cust)), TL_OUTCOME_UNKNOWN, TL_IN_DOUBT);
    options.lane = TL_LANE_RETRY;
    options.max_hold_ms = 60000;
    if (tl_lock_new(&lock, bench_client, &key, &options) != TL_OK)
        bench_fail("%s", tl_error_message());
    finish(ask(lock), TL_OUTCOME_SUCCESS, TL_SUCCEEDED);
    return 1;
}

const contestant contestant_both_lanes = {
    .name = "both-lanes",
    .what = "ask, no answer; claim and finish by a compensating attempt",
    .open = open_claims,
    .cycle = compensate,
    .close = close_claims};
