#include "bench.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define CALLERS_MAX 2048
/* Latencies in a histogram of 1 microsecond steps up to 16 ms, then coarser. */
#define FINE 16384
#define COARSE_US 256
#define BINS (FINE + 65536)

bench_options bench = {.callers = 1,
                       .connections = 8,
                       .run_ms = 2000,
                       .warm_up_ms = 300,
                       .database = "bench",
                       .run_name = "r"};

static const contestant *const contestants[] = {
    &contestant_tradelock,  &contestant_handwritten, &contestant_article,
    &contestant_unique_key, &contestant_optimistic,  &contestant_for_update,
    &contestant_get_lock,   &contestant_redis,       &contestant_select,
    &contestant_refusal,    &contestant_workflow,    &contestant_workflow_hand,
};
#define CONTESTANTS (sizeof contestants / sizeof contestants[0])

typedef struct bench_caller {
    const contestant *of;
    unsigned number;
    pthread_t thread;
    uint64_t done, refused, longest_us;
    uint32_t *bins;
} bench_caller;

enum phase { PHASE_WARM_UP, PHASE_MEASURE, PHASE_OVER };
static atomic_int phase;

void bench_fail(const char *format, ...)
{
    va_list arguments;

    fputs("tradelock-bench: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static uint64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void bench_key(unsigned caller, uint64_t number, char serial[64], char cust[32])
{
    if (bench.contended) {
        snprintf(serial, 64, "%s", "hot");
        snprintf(cust, 32, "%s", "C1");
        return;
    }
    snprintf(serial, 64, "%s-%u-%llu", bench.run_name, caller,
             (unsigned long long)number);
    /* Spread over customers as traffic is, the same in every run. */
    snprintf(cust, 32, "C%06llu",
             (unsigned long long)((number * 7919 + caller * 104729u) % 100000));
}

static void note(bench_caller *c, uint64_t took_us)
{
    uint64_t bin = took_us < FINE ? took_us : FINE + (took_us - FINE) / COARSE_US;

    c->bins[bin < BINS ? bin : BINS - 1]++;
    if (took_us > c->longest_us)
        c->longest_us = took_us;
}

static void *run_caller(void *argument)
{
    bench_caller *c = argument;
    uint64_t number = 0;

    for (;;) {
        enum phase before = (enum phase)atomic_load(&phase);
        uint64_t start_us;
        int result;

        if (before == PHASE_OVER)
            return NULL;
        start_us = now_us();
        result = c->of->cycle(c->number, number++);
        if (result < 0)
            bench_fail("%s: a cycle failed", c->of->name);
        if (before != PHASE_MEASURE || atomic_load(&phase) != PHASE_MEASURE)
            continue;
        if (result > 0)
            c->done++;
        else
            c->refused++;
        note(c, now_us() - start_us);
    }
}

static uint64_t percentile(const uint32_t *bins, uint64_t total, double share)
{
    uint64_t wanted = (uint64_t)((double)total * share), seen = 0;

    for (uint64_t bin = 0; bin < BINS; bin++) {
        seen += bins[bin];
        if (seen > wanted)
            return bin < FINE ? bin : FINE + (bin - FINE) * COARSE_US;
    }
    return 0;
}

static double cpu_seconds(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void sleep_ms(int64_t wait_ms)
{
    struct timespec left = {wait_ms / 1000, (long)(wait_ms % 1000) * 1000000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

static void report(const contestant *of, bench_caller *callers, double seconds,
                   double cpu)
{
    uint32_t *all = calloc(BINS, sizeof *all);
    uint64_t done = 0, refused = 0, longest = 0;
    json_t *line;

    if (all == NULL)
        bench_fail("out of memory");
    for (unsigned i = 0; i < bench.callers; i++) {
        if (callers[i].bins == NULL)
            bench_fail("caller %u measured nothing", i);
        done += callers[i].done;
        refused += callers[i].refused;
        if (callers[i].longest_us > longest)
            longest = callers[i].longest_us;
        for (size_t bin = 0; bin < BINS; bin++)
            all[bin] += callers[i].bins[bin];
    }
    line = json_pack("{s:s, s:i, s:i, s:f, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:f}",
                     "contestant", of->name, "callers", (int)bench.callers, "connections",
                     (int)bench.connections, "seconds", seconds, "cycles",
                     (json_int_t)done, "refused", (json_int_t)refused, "per_second",
                     (double)(done + refused) / seconds, "p50_us",
                     (json_int_t)percentile(all, done + refused, 0.5), "p99_us",
                     (json_int_t)percentile(all, done + refused, 0.99), "p999_us",
                     (json_int_t)percentile(all, done + refused, 0.999), "max_us",
                     (json_int_t)longest, "client_cpu_s", cpu);
    if (line == NULL)
        bench_fail("out of memory");
    json_dumpf(line, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(line);
    free(all);
}

static void run(const contestant *of)
{
    bench_caller *callers = calloc(bench.callers, sizeof *callers);
    pthread_attr_t small;
    uint64_t start_us;
    double cpu;

    if (callers == NULL || of->open(&bench) != 0)
        bench_fail("%s could not be opened", of->name);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 512 * 1024);
    for (unsigned i = 0; i < bench.callers; i++) {
        callers[i] = (bench_caller){.of = of, .number = i};
        callers[i].bins = calloc(BINS, sizeof *callers[i].bins);
        if (callers[i].bins == NULL ||
            pthread_create(&callers[i].thread, &small, run_caller, &callers[i]) != 0)
            bench_fail("caller %u could not be started", i);
    }
    sleep_ms(bench.warm_up_ms);
    cpu = cpu_seconds();
    start_us = now_us();
    atomic_store(&phase, PHASE_MEASURE);
    sleep_ms(bench.run_ms);
    atomic_store(&phase, PHASE_OVER);
    cpu = cpu_seconds() - cpu;
    start_us = now_us() - start_us;
    for (unsigned i = 0; i < bench.callers; i++)
        pthread_join(callers[i].thread, NULL);
    report(of, callers, (double)start_us / 1e6, cpu);
    of->close();
    for (unsigned i = 0; i < bench.callers; i++)
        free(callers[i].bins);
    free(callers);
}

static void usage(FILE *to)
{
    fputs("usage: tradelock-bench --contestant NAME [OPTION]...\n\n"
          "  --callers N      threads that lock and unlock (1)\n"
          "  --connections N  of the contestants over SQL and Redis (8)\n"
          "  --run-ms N, --warm-up-ms N\n"
          "  --contended      all callers want one key\n"
          "  --name TEXT      part of every key, another one for each run\n"
          "  --config FILE    tradelock's settings and connection\n"
          "  --socket PATH, --user NAME, --database NAME   the same server, for the "
          "others\n"
          "  --redis PATH     Redis' socket\n\n"
          "Prints one line of JSON. Contestants:\n",
          to);
    for (size_t i = 0; i < CONTESTANTS; i++)
        fprintf(to, "  %-16s %s\n", contestants[i]->name, contestants[i]->what);
}

static long long number_of(const char *text, long long most)
{
    char *end;
    long long number = strtoll(text, &end, 10);

    if (end == text || *end != '\0' || number < 0 || number > most)
        bench_fail("'%s' is not a number up to %lld", text, most);
    return number;
}

static const contestant *find(const char *name)
{
    for (size_t i = 0; i < CONTESTANTS; i++)
        if (strcmp(contestants[i]->name, name) == 0)
            return contestants[i];
    bench_fail("there is no contestant %s", name);
}

static const struct option option_names[] = {
    {"contestant", 1, NULL, 'k'},  {"callers", 1, NULL, 'n'},
    {"connections", 1, NULL, 'c'}, {"run-ms", 1, NULL, 'r'},
    {"warm-up-ms", 1, NULL, 'w'},  {"contended", 0, NULL, 'h'},
    {"name", 1, NULL, 'm'},        {"config", 1, NULL, 'f'},
    {"socket", 1, NULL, 's'},      {"user", 1, NULL, 'u'},
    {"database", 1, NULL, 'd'},    {"redis", 1, NULL, 'e'},
    {"help", 0, NULL, 'H'},        {NULL, 0, NULL, 0}};

/* The options that are text and taken as they are; NULL for others. */
static const char **text_option(int option)
{
    switch (option) {
    case 'm':
        return &bench.run_name;
    case 'f':
        return &bench.option_file;
    case 's':
        return &bench.socket;
    case 'u':
        return &bench.user;
    case 'd':
        return &bench.database;
    case 'e':
        return &bench.redis_socket;
    default:
        return NULL;
    }
}

/* 1, or 0 when there is no such option. */
static int take_option(int option)
{
    const char **text = text_option(option);

    if (text != NULL)
        *text = optarg;
    else if (option == 'n')
        bench.callers = (unsigned)number_of(optarg, CALLERS_MAX);
    else if (option == 'c')
        bench.connections = (unsigned)number_of(optarg, 512);
    else if (option == 'r')
        bench.run_ms = number_of(optarg, 600000);
    else if (option == 'w')
        bench.warm_up_ms = number_of(optarg, 600000);
    else if (option == 'h')
        bench.contended = 1;
    else
        return 0;
    return 1;
}

int main(int argc, char **argv)
{
    const contestant *of = NULL;
    int option;

    while ((option = getopt_long(argc, argv, "", option_names, NULL)) != -1) {
        if (option == 'H') {
            usage(stdout);
            return 0;
        }
        if (option == 'k') {
            of = find(optarg);
        } else if (!take_option(option)) {
            usage(stderr);
            return 2;
        }
    }
    if (of == NULL || bench.callers == 0 || bench.connections == 0) {
        usage(stderr);
        return 2;
    }
    run(of);
    return 0;
}
