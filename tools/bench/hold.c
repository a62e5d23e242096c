/* One client that holds many locks: what each costs in memory, and whether the heartbeat feels
 * them. */
#include "bench.h"
#include "client.h"

#include <malloc.h>
#include <mysql.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define ASKERS 64
#define SAMPLE_US 500
#define SAMPLES_MAX 100000
#define BEAT_WAIT_US 60000000

static tl_lock **locks;
static atomic_uint asked;

static int open_hold(const bench_options *options)
{
    locks = calloc(options->held, sizeof(void *));
    if (locks == NULL)
        bench_fail("out of memory");
    client_open(TL_CLIENT_NO_JANITOR);
    return 0;
}

static void *ask(void *argument)
{
    unsigned i;

    (void)argument;
    while ((i = atomic_fetch_add(&asked, 1)) < bench.held) {
        char serial[64], cust[32];
        tl_status status;

        bench_key(0, i, serial, cust);
        locks[i] = client_lock(serial, cust);
        while ((status = tl_lock_ask(locks[i], 0)) != TL_GRANTED)
            if (tl_status_class(status) != TL_CLASS_RETRY)
                bench_fail("ask: %s %s", tl_status_name(status), tl_error_message());
    }
    return NULL;
}

static void ask_for_all(void)
{
    pthread_t threads[ASKERS];

    for (unsigned i = 0; i < ASKERS; i++)
        if (pthread_create(&threads[i], NULL, ask, NULL) != 0)
            bench_fail("a thread could not be started");
    for (unsigned i = 0; i < ASKERS; i++)
        pthread_join(threads[i], NULL);
}

static double client_heap(void)
{
    struct mallinfo2 heap = mallinfo2();

    return (double)(heap.uordblks + heap.hblkhd);
}

static double table_bytes(MYSQL *connection)
{
    sql_run(connection, "ANALYZE TABLE trade_lock, trade_lock_past");
    return sql_number(connection, "SELECT SUM(data_length + index_length) FROM "
                                  "information_schema.tables WHERE table_schema = DATABASE() AND "
                                  "table_name IN ('trade_lock', 'trade_lock_past')");
}

static void hold_all(void)
{
    MYSQL *connection = sql_connect(&bench);
    double heap = client_heap(), resident = server_resident(), bytes = table_bytes(connection);
    server_counts before, after;
    uint64_t start_us = bench_now_us();

    server_read(&before);
    ask_for_all();
    server_read(&after);
    bench_note("held", bench.held);
    bench_note("per_second", bench.held / ((double)(bench_now_us() - start_us) / 1e6));
    bench_note("heap_per_lock", (client_heap() - heap) / bench.held);
    bench_note("server_memory_per_lock", (after.memory_bytes - before.memory_bytes) / bench.held);
    bench_note("server_resident_per_lock", (server_resident() - resident) / bench.held);
    bench_note("table_bytes_per_lock", (table_bytes(connection) - bytes) / bench.held);
    mysql_close(connection);
}

static int by_size(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

/*
 * A confirmed beat makes the session's certain life longer at that moment: life counts from before
 * the beat was sent, so what is missing then is how long the beat took.
 */
static void watch_beats(void)
{
    static int64_t took_ms[SAMPLES_MAX];
    uint64_t until_us = bench_now_us() + (uint64_t)bench.run_ms * 1000;
    int64_t median_ms, least_ms = INT64_MAX, last_ms = tl_client_alive_ms(bench_client);
    size_t count = 0;

    /* A busy machine may be late with the first one. */
    while (bench_now_us() < until_us || (count == 0 && bench_now_us() < until_us + BEAT_WAIT_US)) {
        int64_t alive_ms = tl_client_alive_ms(bench_client);

        if (alive_ms > last_ms && count < SAMPLES_MAX)
            took_ms[count++] = alive_ms;
        last_ms = alive_ms;
        least_ms = alive_ms < least_ms ? alive_ms : least_ms;
        bench_sleep_us(SAMPLE_US);
    }
    if (count == 0)
        bench_fail("no beat was seen");
    qsort(took_ms, count, sizeof *took_ms, by_size);
    median_ms = took_ms[count / 2];
    bench_note("beats_seen", (double)count);
    bench_note("beat_p50_ms", (double)(bench.session_ms - median_ms));
    bench_note("beat_slowest_ms", (double)(bench.session_ms - took_ms[0]));
    bench_note("stale_most_ms", (double)(bench.session_ms - least_ms));
}

static void measure(void)
{
    tl_stats stats = {.version = TL_STATS_VERSION}, later = stats;
    server_counts before, after;
    double beats;

    hold_all();
    (void)tl_client_stats(bench_client, &stats);
    server_read(&before);
    watch_beats();
    server_read(&after);
    (void)tl_client_stats(bench_client, &later);
    beats = (double)(later.beats - stats.beats);
    bench_note("beats", beats);
    bench_note("beats_unreachable", (double)(later.beats_unreachable - stats.beats_unreachable));
    bench_note("statements_per_beat", (after.statements - before.statements) / beats);
    bench_note("redo_bytes_per_beat", (after.redo_bytes - before.redo_bytes) / beats);
    bench_note("server_cpu_ms_per_beat", 1000 * (after.cpu_s - before.cpu_s) / beats);
}

static void close_hold(void)
{
    for (unsigned i = 0; i < bench.held; i++)
        tl_lock_free(locks[i]);
    free(locks);
    tl_client_close(bench_client);
}

const contestant contestant_hold = {.name = "hold",
                                    .what = "one client with --held locks: memory, beats",
                                    .open = open_hold,
                                    .close = close_hold,
                                    .measure = measure};
