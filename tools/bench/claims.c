/* Workers that claim due work: callers are workers, each batch as large as one claims. */
#include "bench.h"
#include "client.h"

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
