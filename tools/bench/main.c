/* One measurement: runs the callers of one contestant for a while, counts their cycles and
 * latencies, and prints one JSON object.  tools/benchmark starts the servers and compares. */
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
#define GROUP_MAX 1024
/* Latencies in a histogram of 1 microsecond steps up to 16 ms, then coarser. */
#define FINE 16384
#define COARSE_US 256
#define BINS (FINE + 65536)

bench_options bench = {.part = "-",
                       .callers = 1,
                       .connections = 8,
                       .group = 64,
                       .run_ms = 2000,
                       .warm_up_ms = 300,
                       .database = "bench",
                       .run_name = "r"};

static const contestant *const contestants[] = {
    &contestant_tradelock,   &contestant_handwritten,      &contestant_article,
    &contestant_redis,       &contestant_select,           &contestant_refusal,
    &contestant_workflow,    &contestant_workflow_hand,    &contestant_fsync,
    &contestant_in_turn,     &contestant_workflow_in_turn, &contestant_books,
    &contestant_books_hand,  &contestant_books_in_turn,    &contestant_books_loop,
    &contestant_retry_books, &contestant_retry_callbacks,  &contestant_desk,
};
#define CONTESTANTS (sizeof contestants / sizeof contestants[0])

typedef struct bench_caller {
    const contestant *of;
    unsigned number;
    pthread_t thread;
    uint64_t cycles, done, longest_us;
    uint32_t *bins;
} bench_caller;

enum phase { PHASE_WARM_UP, PHASE_MEASURE, PHASE_OVER };
static atomic_int phase;
static atomic_ullong refused;
static json_t *result;

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

uint64_t bench_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void bench_sleep_us(int64_t wait_us)
{
    struct timespec left = {wait_us / 1000000, (long)(wait_us % 1000000) * 1000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

void bench_key(unsigned caller, uint64_t number, char serial[64], char cust[32])
{
    if (bench.contended) {
        snprintf(serial, 64, "%s-hot", bench.run_name);
        snprintf(cust, 32, "%s", "C1");
        return;
    }
    snprintf(serial, 64, "%s-%u-%llu", bench.run_name, caller, (unsigned long long)number);
    /* Spread over customers as traffic is, the same in every run. */
    snprintf(cust, 32, "C%06llu",
             (unsigned long long)((number * 7919 + caller * 104729u) % 100000));
}

void bench_count_refused(void)
{
    if (atomic_load(&phase) == PHASE_MEASURE)
        atomic_fetch_add(&refused, 1);
}

void bench_note(const char *name, double value)
{
    if (json_object_set_new(result, name, json_real(value)) != 0)
        bench_fail("out of memory");
}

static void note_us(bench_caller *c, uint64_t took_us)
{
    uint64_t bin = took_us < FINE ? took_us : FINE + (took_us - FINE) / COARSE_US;

    c->bins[bin < BINS ? bin : BINS - 1]++;
    if (took_us > c->longest_us)
        c->longest_us = took_us;
}

/* A cycle counts in the phase in which it ended, as what it cost does, which the server counted. */
static void *run_caller(void *argument)
{
    bench_caller *c = argument;
    uint64_t number = 0;

    while (atomic_load(&phase) != PHASE_OVER &&
           (bench.cycles == 0 || number < (uint64_t)bench.cycles)) {
        uint64_t start_us = bench_now_us();
        int done = c->of->cycle(c->number, number++);

        if (atomic_load(&phase) != PHASE_MEASURE)
            continue;
        c->cycles++;
        c->done += (uint64_t)done;
        note_us(c, bench_now_us() - start_us);
    }
    return NULL;
}

static void note_percentile(const char *name, const uint32_t *bins, uint64_t total, double share)
{
    uint64_t wanted = (uint64_t)((double)total * share), seen = 0, bin = 0;

    for (; total > 0 && bin < BINS; bin++) {
        seen += bins[bin];
        if (seen > wanted)
            break;
    }
    bench_note(name, (double)(bin < FINE ? bin : FINE + (bin - FINE) * COARSE_US));
}

static double cpu_seconds(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/* What everybody used between two moments. */
typedef struct moment {
    uint64_t at_us;
    double cpu_s;
    server_counts server;
} moment;

static void take_moment(moment *now)
{
    server_read(&now->server);
    now->at_us = bench_now_us();
    now->cpu_s = cpu_seconds();
}

static double note_costs(const moment *before, const moment *after)
{
    double seconds = (double)(after->at_us - before->at_us) / 1e6;

    bench_note("seconds", seconds);
    bench_note("client_cpu_s", after->cpu_s - before->cpu_s);
    bench_note("server_cpu_s", after->server.cpu_s - before->server.cpu_s);
    bench_note("statements", after->server.statements - before->server.statements);
    bench_note("commits", after->server.commits - before->server.commits);
    bench_note("syncs", after->server.syncs - before->server.syncs);
    bench_note("redo_bytes", after->server.redo_bytes - before->server.redo_bytes);
    return seconds;
}

static void note_callers(const bench_caller *callers, double seconds)
{
    uint32_t *all = calloc(BINS, sizeof *all);
    uint64_t cycles = 0, done = 0, longest_us = 0;

    if (all == NULL)
        bench_fail("out of memory");
    for (unsigned i = 0; i < bench.callers; i++) {
        if (callers[i].bins == NULL)
            bench_fail("caller %u measured nothing", i);
        cycles += callers[i].cycles;
        done += callers[i].done;
        if (callers[i].longest_us > longest_us)
            longest_us = callers[i].longest_us;
        for (size_t bin = 0; bin < BINS; bin++)
            all[bin] += callers[i].bins[bin];
    }
    bench_note("done", (double)done);
    bench_note("refused", (double)atomic_load(&refused));
    bench_note("per_second", (double)done / seconds);
    note_percentile("p50_us", all, cycles, 0.5);
    note_percentile("p99_us", all, cycles, 0.99);
    note_percentile("p999_us", all, cycles, 0.999);
    bench_note("max_us", (double)longest_us);
    free(all);
}

static void start_callers(const contestant *of, bench_caller *callers)
{
    pthread_attr_t small;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 512 * 1024);
    for (unsigned i = 0; i < bench.callers; i++) {
        callers[i] = (bench_caller){.of = of, .number = i};
        callers[i].bins = calloc(BINS, sizeof *callers[i].bins);
        if (callers[i].bins == NULL ||
            pthread_create(&callers[i].thread, &small, run_caller, &callers[i]) != 0)
            bench_fail("caller %u could not be started", i);
    }
    pthread_attr_destroy(&small);
}

static void join_callers(const bench_caller *callers)
{
    for (unsigned i = 0; i < bench.callers; i++)
        pthread_join(callers[i].thread, NULL);
}

static void measure_time(const contestant *of, bench_caller *callers, moment *before, moment *after)
{
    start_callers(of, callers);
    bench_sleep_us(bench.warm_up_ms * 1000);
    take_moment(before);
    atomic_store(&phase, PHASE_MEASURE);
    bench_sleep_us(bench.run_ms * 1000);
    take_moment(after);
    atomic_store(&phase, PHASE_OVER);
    join_callers(callers);
}

/* Nothing at the borders: every statement that is counted belongs to a cycle. */
static void measure_cycles(const contestant *of, bench_caller *callers, moment *before,
                           moment *after)
{
    take_moment(before);
    atomic_store(&phase, PHASE_MEASURE);
    start_callers(of, callers);
    join_callers(callers);
    take_moment(after);
}

static void run_cycles(const contestant *of)
{
    bench_caller *callers = calloc(bench.callers, sizeof *callers);
    moment before, after;

    if (callers == NULL)
        bench_fail("out of memory");
    if (bench.cycles > 0)
        measure_cycles(of, callers, &before, &after);
    else
        measure_time(of, callers, &before, &after);
    note_callers(callers, note_costs(&before, &after));
    for (unsigned i = 0; i < bench.callers; i++)
        free(callers[i].bins);
    free(callers);
}

static void run(const contestant *of)
{
    result = json_pack("{s:s, s:s, s:i, s:i}", "part", bench.part, "contestant", of->name,
                       "callers", (int)bench.callers, "connections", (int)bench.connections);
    if (result == NULL)
        bench_fail("out of memory");
    server_open(&bench);
    of->open(&bench);
    if (of->measure != NULL)
        of->measure();
    else
        run_cycles(of);
    if (of->after != NULL)
        of->after();
    json_dumpf(result, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(result);
    of->close();
    server_close();
}

static void usage(FILE *to)
{
    fputs("usage: tradelock-bench --contestant NAME [OPTION]...\n\n"
          "  --callers N      threads that lock and unlock (1)\n"
          "  --connections N  of the contestants over SQL (8)\n"
          "  --run-ms N, --warm-up-ms N\n"
          "  --cycles N       of each caller, instead of a time\n"
          "  --contended      all callers want one key\n"
          "  --treasury       every ending debits one account (books)\n"
          "  --poor N         percent of trades that are refused for want of money (books)\n"
          "  --hold-open-ms N one more caller's ending stands open for so long, again\n"
          "  --ask-held-ms N  and one more asks for its key so often\n"
          "  --group N        payments under way (books-loop)\n"
          "  --part TEXT      printed with the result\n"
          "  --name TEXT      part of every key, another one for each run\n"
          "  --config FILE    tradelock's settings and connection\n"
          "  --socket PATH, --user NAME, --database NAME   the same server, for the "
          "others\n"
          "  --hand-database NAME   of the side by hand (in turn)\n"
          "  --server-pid N   the process whose CPU is counted\n"
          "  --desk-pid N, --clicks-pid N   of the desk and of tradelock-clicks (desk)\n"
          "  --redis PATH     Redis' socket\n"
          "  --dir DIR        on the servers' file system (fsync)\n\n"
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

/* The options: text is taken as it is; a count has a most; a flag has no value. */
static const struct bench_option {
    const char *name;
    const char **text;
    unsigned *count;
    long long most;
    int64_t *number;
    int *flag;
} bench_options_known[] = {
    {"part", .text = &bench.part},
    {"name", .text = &bench.run_name},
    {"config", .text = &bench.option_file},
    {"socket", .text = &bench.socket},
    {"user", .text = &bench.user},
    {"database", .text = &bench.database},
    {"hand-database", .text = &bench.hand_database},
    {"redis", .text = &bench.redis_socket},
    {"dir", .text = &bench.directory},
    {"callers", .count = &bench.callers, .most = CALLERS_MAX},
    {"connections", .count = &bench.connections, .most = 512},
    {"group", .count = &bench.group, .most = GROUP_MAX},
    {"poor", .count = &bench.poor, .most = 100},
    {"run-ms", .number = &bench.run_ms},
    {"warm-up-ms", .number = &bench.warm_up_ms},
    {"cycles", .number = &bench.cycles},
    {"hold-open-ms", .number = &bench.hold_open_ms},
    {"ask-held-ms", .number = &bench.ask_held_ms},
    {"server-pid", .number = &bench.server_pid},
    {"desk-pid", .number = &bench.desk_pid},
    {"clicks-pid", .number = &bench.clicks_pid},
    {"contended", .flag = &bench.contended},
    {"treasury", .flag = &bench.treasury},
};
#define OPTIONS ((int)(sizeof bench_options_known / sizeof bench_options_known[0]))

static void take_option(const struct bench_option *option)
{
    if (option->text != NULL)
        *option->text = optarg;
    else if (option->number != NULL)
        *option->number = number_of(optarg, 100000000);
    else if (option->count != NULL)
        *option->count = (unsigned)number_of(optarg, option->most);
    else
        *option->flag = 1;
}

int main(int argc, char **argv)
{
    struct option names[OPTIONS + 3] = {{"contestant", 1, NULL, OPTIONS},
                                        {"help", 0, NULL, OPTIONS + 1}};
    const contestant *of = NULL;
    int option;

    for (int i = 0; i < OPTIONS; i++)
        names[i + 2] = (struct option){bench_options_known[i].name,
                                       bench_options_known[i].flag == NULL, NULL, i};
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (option == OPTIONS + 1) {
            usage(stdout);
            return 0;
        }
        if (option == OPTIONS) {
            of = find(optarg);
        } else if (option < OPTIONS) {
            take_option(&bench_options_known[option]);
        } else {
            usage(stderr);
            return 2;
        }
    }
    if (of == NULL || bench.callers == 0 || bench.connections == 0 || bench.group == 0) {
        usage(stderr);
        return 2;
    }
    run(of);
    return 0;
}
