/*
 * A service with and without people at the desk: its callers run workflows all the time, and
 * tradelock-clicks is let go and stopped in turn, which of both first at random.  A pair of turns
 * is one ratio, so that the machine's mood meets both; the median counts.
 *
 * Before the callers begin it takes what desk and server use of the processors with people and
 * without, which is told also where others run on the machine.
 */
#include "bench.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define TURN_MS 2000
#define SETTLE_MS 200 /* clicks that are under way end */
#define PAIRS_MOST 1000

static atomic_int is_over;
static atomic_ullong done;

static void *call(void *context)
{
    const unsigned caller = *(const unsigned *)context;

    for (uint64_t number = 0; !atomic_load(&is_over); number++)
        atomic_fetch_add(&done, (unsigned)contestant_workflow.cycle(caller, number));
    return NULL;
}

/* What one turn got done, and what desk and server used of the processors, both in a second. */
struct speed {
    double cycles, cpu;
};

static double cpu_s(void)
{
    return server_cpu_of(bench.server_pid) + server_cpu_of(bench.desk_pid);
}

static struct speed turn(int with_people, int64_t turn_ms)
{
    unsigned long long before;
    uint64_t began_us;
    double cpu_before, took_s;

    if (kill((pid_t)bench.clicks_pid, with_people ? SIGUSR1 : SIGUSR2) != 0)
        bench_fail("the people have gone");
    bench_sleep_us((int64_t)SETTLE_MS * 1000);
    before = atomic_load(&done);
    cpu_before = cpu_s();
    began_us = bench_now_us();
    bench_sleep_us(turn_ms * 1000);
    took_s = (double)(bench_now_us() - began_us) / 1e6;
    return (struct speed){(double)(atomic_load(&done) - before) / took_s,
                          (cpu_s() - cpu_before) / took_s};
}

static int by_size(const void *one, const void *other)
{
    const double a = *(const double *)one, b = *(const double *)other;

    return (a > b) - (a < b);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_size);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void take_turns(size_t pairs)
{
    static double ratio[PAIRS_MOST], without_people[PAIRS_MOST];
    unsigned seed = (unsigned)bench_now_us();

    for (size_t i = 0; i < pairs; i++) {
        const int first = rand_r(&seed) / 8 % 2;
        const struct speed one = turn(first, TURN_MS), other = turn(!first, TURN_MS);
        const struct speed with = first ? one : other, without = first ? other : one;

        if (without.cycles <= 0)
            bench_fail("the service did nothing");
        ratio[i] = with.cycles / without.cycles;
        without_people[i] = without.cycles;
    }
    bench_note("ratio", median(ratio, pairs));
    bench_note("ratio_low_quarter", ratio[pairs / 4]);
    bench_note("ratio_high_quarter", ratio[pairs - 1 - pairs / 4]);
    bench_note("without_per_second", median(without_people, pairs));
    bench_note("pairs", (double)pairs);
}

static void measure(void)
{
    pthread_t *threads = calloc(bench.callers, sizeof *threads);
    unsigned *numbers = calloc(bench.callers, sizeof *numbers);
    const int64_t pairs = bench.run_ms / (2 * TURN_MS);

    if (threads == NULL || numbers == NULL)
        bench_fail("out of memory");
    if (bench.clicks_pid == 0 || bench.desk_pid == 0 || bench.server_pid == 0 || pairs < 1 ||
        pairs > PAIRS_MOST)
        bench_fail("desk needs --server-pid, --desk-pid, --clicks-pid, and --run-ms of at least %d",
                   2 * TURN_MS);
    bench_note("cores", turn(1, bench.run_ms / 2).cpu - turn(0, bench.run_ms / 2).cpu);
    for (unsigned i = 0; i < bench.callers; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, call, &numbers[i]) != 0)
            bench_fail("caller %u could not be started", i);
    }
    bench_sleep_us(bench.warm_up_ms * 1000);
    take_turns((size_t)pairs);
    atomic_store(&is_over, 1);
    for (unsigned i = 0; i < bench.callers; i++)
        pthread_join(threads[i], NULL);
    bench_note("done", (double)atomic_load(&done));
    free(threads);
    free(numbers);
}

static int open_service(const bench_options *options)
{
    return contestant_workflow.open(options);
}

static void close_service(void)
{
    contestant_workflow.close();
}

const contestant contestant_desk = {
    .name = "desk",
    .what = "a service's workflows with and without people who click at the desk, in turn",
    .open = open_service,
    .measure = measure,
    .close = close_service};
