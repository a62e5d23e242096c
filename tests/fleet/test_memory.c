/*
 * Every allocation of a fleet fails once (--deep: every fourth): of opening it, of its workflows
 * and its worker, of its calls, on whichever thread.  Each time it says so, or goes on by itself,
 * and nothing is left behind.
 */
#include "shards.h"

#include "base/fault.h"
#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/fleet_workflow.h>
#include <tradelock/workflow.h>

#define ALLOCATIONS_MAX 600

static shards all;

static void fail_allocation(unsigned n)
{
    setenv("TL_FAULT_ALLOC", text_of("%u", n).is, 1);
    fault_reload();
}

static tl_execute_result pay(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)attempt;
    (void)reply;
    return TL_EXECUTE_SUCCEEDED;
}

static tl_status open_one(void *context, const char *shard, tl_client *client,
                          tl_workflows *registry, void **state)
{
    tl_workflow it = TL_WORKFLOW_INIT;

    (void)context;
    (void)shard;
    (void)client;
    (void)state;
    it.op_code = "WITHDRAW";
    it.channel.name = "fastpay";
    it.channel.idempotent = 1;
    it.execute = pay;
    return tl_workflow_register(registry, &it);
}

static tl_status up(void *context, size_t shard, tl_client *client)
{
    (void)context;
    (void)shard;
    (void)client;
    return TL_OK;
}

static tl_status open_all(tl_fleet *fleet, tl_fleet_workflows **workflows)
{
    tl_fleet_workflows_options options = TL_FLEET_WORKFLOWS_OPTIONS_INIT;

    options.fleet = fleet;
    options.open = open_one;
    return tl_fleet_workflows_new(workflows, &options);
}

static tl_status run(tl_fleet_workflows *workflows, const char *serial, const char *cust)
{
    tl_request request = TL_REQUEST_INIT;
    tl_answer answer = TL_ANSWER_INIT;
    tl_status status;

    request.key = (tl_key){serial, cust, "WITHDRAW"};
    request.payload = "1";
    request.payload_size = 1;
    status = tl_fleet_workflow_run(workflows, &request, &answer);
    for (unsigned i = 0; status == TL_UNKNOWN && answer.run != NULL && i < 100; i++)
        status = tl_fleet_workflow_settle(workflows, &answer);
    tl_answer_clear(&answer);
    return status;
}

static tl_status all_questions(tl_fleet *fleet, tl_fleet_workflows *workflows, const char *serial,
                               const char *cust)
{
    const tl_key key = {serial, cust, "WITHDRAW"};
    tl_trade trade = TL_TRADE_INIT;
    tl_workflows *registry;
    tl_client *client;
    size_t shard;
    tl_status status = tl_fleet_look_again(fleet);

    if (status == TL_OK)
        status = tl_fleet_owner(fleet, cust, &shard);
    if (status == TL_OK)
        status = tl_fleet_confirm(fleet, cust, shard);
    if (status == TL_OK)
        status = tl_fleet_client(fleet, cust, &client);
    if (status == TL_OK)
        status = tl_fleet_shard_client(fleet, shard, &client);
    if (status == TL_OK)
        status = tl_fleet_workflows_of(workflows, cust, &registry);
    if (status == TL_OK)
        status = tl_fleet_workflows_at(workflows, shard, &registry);
    if (status == TL_OK)
        status = tl_fleet_workflow_look(workflows, &key, &trade);
    if (status == TL_SUCCEEDED)
        status = tl_fleet_workflow_await(workflows, &key, 10, &trade);
    return status;
}

static tl_status with_a_worker(tl_fleet *fleet, tl_fleet_workflows *workflows)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker_counts counts = TL_WORKER_COUNTS_INIT;
    tl_fleet_worker *worker = NULL;
    tl_fleet_watch *watch = NULL;
    tl_status status = tl_fleet_watch_new(&watch, fleet, up, NULL, 1000);

    if (status == TL_OK)
        tl_fleet_watch_free(watch);
    if (status == TL_OK)
        status = tl_fleet_worker_start(&worker, workflows, &options);
    if (status != TL_OK)
        return status;
    status = tl_fleet_worker_count(worker, &counts);
    if (status == TL_OK)
        status = tl_fleet_worker_count_at(worker, 0, &counts);
    if (status == TL_OK && tl_fleet_worker_wait(worker, 0) != TL_TIMEOUT)
        status = TL_INTERNAL;
    tl_fleet_worker_free(worker);
    return status;
}

/* What is missing is said, or is there a moment later; it is never taken for an answer. */
static int is_right(tl_status status)
{
    return status == TL_OK || status == TL_SUCCEEDED || status == TL_NO_MEMORY ||
           tl_status_class(status) == TL_CLASS_RETRY ||
           tl_status_class(status) == TL_CLASS_UNKNOWN || status == TL_IN_DOUBT ||
           status == TL_QUEUED || status == TL_NOT_FOUND;
}

#define RIGHT(got)                                                                                 \
    do {                                                                                           \
        const tl_status right_ = (got);                                                            \
        if (!is_right(right_))                                                                     \
            fail_msg("allocation %u: %s is %s: %s", n, #got, tl_status_name(right_),               \
                     tl_error_message());                                                          \
    } while (0)

static void try_without(unsigned n, tl_fleet **fleet, tl_fleet_workflows **workflows,
                        const char *serial, const char *cust)
{
    size_t count = 0;
    tl_status status;

    fail_allocation(n);
    RIGHT(tl_fleet_count(all.file, &count));
    status = shards_fleet(&all, fleet);
    RIGHT(status);
    if (status == TL_OK) {
        status = open_all(*fleet, workflows);
        RIGHT(status);
        if (status == TL_OK) {
            RIGHT(with_a_worker(*fleet, *workflows));
            RIGHT(run(*workflows, serial, cust));
            RIGHT(all_questions(*fleet, *workflows, serial, cust));
        }
    }
}

/* With memory again the same fleet works, or one that is opened now. */
static void check_works(unsigned n, tl_fleet *fleet, tl_fleet_workflows *workflows,
                        const char *cust)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_status status;
    const struct text serial = text_of("after-%u", n);

    if (fleet == NULL)
        assert_int_equal(shards_fleet(&all, &fleet), TL_OK);
    if (workflows == NULL)
        assert_int_equal(open_all(fleet, &workflows), TL_OK);
    while ((status = run(workflows, serial.is, cust)) != TL_SUCCEEDED &&
           status != TL_ALREADY_DONE) {
        if (crew_now_ms() > end_ms)
            fail_msg("allocation %u: afterwards %s: %s", n, tl_status_name(status),
                     tl_error_message());
        crew_sleep_ms(20);
    }
    tl_fleet_workflows_free(workflows);
    assert_string_equal(tl_error_message(), "");
    tl_fleet_close(fleet);
    assert_string_equal(tl_error_message(), "");
}

TEST(test_every_allocation)
{
    const unsigned stride = tier_pick(8, 4, 1);
    char cust[TL_CUST_MAX + 1];
    unsigned n = 0, counted, failed = 0;

    shards_open_shared(&all, 2);
    do {
        tl_fleet *fleet = NULL;
        tl_fleet_workflows *workflows = NULL;

        n += stride;
        shards_cust(&all, n / stride % 2, n / stride % 5, cust);
        try_without(n, &fleet, &workflows, text_of("mem-%u", n).is, cust);
        counted = (unsigned)fault_allocations();
        fail_allocation(0);
        failed += counted >= n;
        check_works(n, fleet, workflows, cust);
    } while (counted >= n && n < ALLOCATIONS_MAX);
    print_message("%u allocations failed\n", failed);
    assert_in_range(failed, 20 / stride, ALLOCATIONS_MAX / stride);
    shards_close(&all);
}

TESTS_OF(memory, NULL, NULL)
