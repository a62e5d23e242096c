/*
 * What a trade costs with one shard, two and four on one machine, each with as many callers:
 * statements, which the clients count; commits, which the servers do (Handler_commit); and processor
 * time of this process and of the servers.  None of them may rise with the number of shards.
 */
#include "shards.h"

#include "support/crew.h"
#include "support/theme.h"

#include <stdatomic.h>
#include <sys/resource.h>

/* Of each shard. */
#define TRADES 4000u
#define THREADS 8
#define CUSTOMERS 64u

/* Beats and maps are of the process, not of a trade: they shall hardly count. */
#define SETTINGS                                                                                   \
    "site=fleet\nbeat_ms=5s\nsession_ms=60s\nmax_hold_ms=60s\nexecute_ms=20s\ncommit_ms=20s\n"

typedef struct cost {
    double statements, commits, here_us, servers_us;
} cost;

static shards all;
static tl_fleet *fleet;
static atomic_uint next;
static unsigned trades;

static void pay_some(void *context, int number)
{
    (void)context;
    (void)number;
    for (unsigned n; (n = atomic_fetch_add(&next, 1)) < trades;) {
        char serial[32], cust[TL_CUST_MAX + 1];
        const tl_key key = {serial, cust, "COST"};
        tl_lock_options options = TL_LOCK_OPTIONS_INIT;
        tl_ending ending = TL_ENDING_INIT;
        tl_client *client = NULL;
        tl_lock *lock = NULL;

        snprintf(serial, sizeof serial, "cost-%u", n);
        snprintf(cust, sizeof cust, "C%u", n % (CUSTOMERS * (unsigned)all.count));
        options.max_hold_ms = 60000;
        options.payload = "x";
        options.payload_size = 1;
        ending.outcome = TL_OUTCOME_SUCCESS;
        CREW_STATUS(tl_fleet_client(fleet, cust, &client), TL_OK);
        CREW_STATUS(tl_lock_new(&lock, client, &key, &options), TL_OK);
        CREW_STATUS(tl_lock_ask(lock, 0), TL_GRANTED);
        CREW_STATUS(tl_lock_finish(lock, &ending), TL_SUCCEEDED);
        tl_lock_free(lock);
    }
}

static double own_us(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static double servers_us(void)
{
    double sum = 0;

    for (size_t i = 0; i < all.count; i++) {
        unsigned long user = 0, system = 0;
        FILE *file;

        file = fopen(text_of("/proc/%ld/stat", server_pid(all.where[i])).is, "re");
        assert_non_null(file);
        assert_int_equal(fscanf(file,
                                "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu "
                                "%lu",
                                &user, &system),
                         2);
        fclose(file);
        sum += (double)(user + system) * 1e6 / (double)sysconf(_SC_CLK_TCK);
    }
    return sum;
}

static cost counted(void)
{
    cost sum = {.here_us = own_us(), .servers_us = servers_us()};

    for (size_t i = 0; i < tl_fleet_size(fleet); i++) {
        tl_stats stats = {.version = TL_STATS_VERSION};
        tl_client *client = NULL;

        assert_int_equal(tl_fleet_shard_client(fleet, i, &client), TL_OK);
        assert_int_equal(tl_client_stats(client, &stats), TL_OK);
        sum.statements += (double)stats.statements;
        sum.commits += (double)database_counter(all.sql[i], "Handler_commit");
    }
    return sum;
}

static cost measure(size_t count)
{
    static const char *const lists[] = {"", "a", "a, b", "a, b, c", "a, b, c, d"};
    static const size_t straight[] = {0, 1, 2, 3};
    cost before, after;

    shards_open(&all, count);
    shards_write(&all, lists[count], straight, SETTINGS);
    assert_int_equal(shards_fleet(&all, &fleet), TL_OK);
    atomic_store(&next, 0);
    trades = TRADES * (unsigned)count;
    before = counted();
    crew_threads(THREADS * (int)count, pay_some, NULL);
    after = counted();
    after.statements = (after.statements - before.statements) / trades;
    after.commits = (after.commits - before.commits) / trades;
    after.here_us = (after.here_us - before.here_us) / trades;
    after.servers_us = (after.servers_us - before.servers_us) / trades;
    print_message("%zu shards: %.3f statements, %.3f commits, %.0f us here and %.0f us of the "
                  "servers a trade\n",
                  count, after.statements, after.commits, after.here_us, after.servers_us);
    tl_fleet_close(fleet);
    shards_close(&all);
    return after;
}

TEST(test_cost_stays_flat)
{
    const cost one = measure(1);

    for (size_t count = 2; count <= 4; count *= 2) {
        const cost more = measure(count);

        assert_true(more.statements <= 1.05 * one.statements);
        assert_true(more.commits <= 1.05 * one.commits);
        assert_true(more.here_us + more.servers_us <= 1.25 * (one.here_us + one.servers_us));
    }
}

TESTS_OF(cost, NULL, NULL)
