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
#define HELD_MAX 1000000
#define GROUP_MAX 1024
/* Latencies in a histogram of 1 microsecond steps up to 16 ms, then coarser. */
#define FINE 16384
#define COARSE_US 256
#define BINS (FINE + 65536)

/* A refused try of a contended key is repeated as tradelock repeats its own by default. */
#define PAUSE_MIN_US 5000
#define PAUSE_MAX_US 200000

bench_options bench = {.part = "-",
                       .callers = 1,
                       .connections = 8,
                       .held = 1000,
                       .group = 64,
                       .run_ms = 2000,
                       .warm_up_ms = 300,
                       .session_ms = 10000,
                       .database = "bench",
                       .run_name = "r"};

static const contestant *const contestants[] = {
    &contestant_tradelock,        &contestant_mutex,         &contestant_handwritten,
    &contestant_article,          &contestant_unique_key,    &contestant_optimistic,
    &contestant_for_update,       &contestant_get_lock,      &contestant_redis,
    &contestant_select,           &contestant_refusal,       &contestant_with_rows,
    &contestant_workflow,         &contestant_workflow_hand, &contestant_claims,
    &contestant_both_lanes,       &contestant_hold,          &contestant_values_prepared,
    &contestant_values_text,      &contestant_bulk,          &contestant_json_table,
    &contestant_hot_cold,         &contestant_fsync,         &contestant_in_turn,
    &contestant_workflow_in_turn, &contestant_books,         &contestant_books_hand,
    &contestant_books_in_turn,    &contestant_books_loop,    &contestant_retry_books,
    &contestant_retry_callbacks,  &contestant_desk,
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

void bench_refused(unsigned attempt)
{
    static _Thread_local unsigned seed;
    int64_t pause_us = PAUSE_MIN_US;

    bench_count_refused();
    if (seed == 0)
        seed = (unsigned)bench_now_us() | 1;
    while (attempt-- > 0 && pause_us < PAUSE_MAX_US)
        pause_us *= 2;
    if (pause_us > PAUSE_MAX_US)
        pause_us = PAUSE_MAX_US;
    bench_sleep_us(pause_us / 2 + rand_r(&seed) % pause_us);
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
          "  --held N         locks that are held (hold)\n"
          "  --session-ms N   what the option file says of it (hold)\n"
          "  --group N        rows in one statement\n"
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

static const struct option option_names[] = {
    {"contestant", 1, NULL, 'k'},    {"callers", 1, NULL, 'n'},
    {"connections", 1, NULL, 'c'},   {"run-ms", 1, NULL, 'r'},
    {"warm-up-ms", 1, NULL, 'w'},    {"cycles", 1, NULL, 'y'},
    {"contended", 0, NULL, 'h'},     {"hold-open-ms", 1, NULL, 'o'},
    {"ask-held-ms", 1, NULL, 'a'},   {"session-ms", 1, NULL, 't'},
    {"held", 1, NULL, 'l'},          {"group", 1, NULL, 'g'},
    {"part", 1, NULL, 'p'},          {"name", 1, NULL, 'm'},
    {"config", 1, NULL, 'f'},        {"socket", 1, NULL, 's'},
    {"user", 1, NULL, 'u'},          {"database", 1, NULL, 'd'},
    {"hand-database", 1, NULL, 'b'}, {"server-pid", 1, NULL, 'i'},
    {"redis", 1, NULL, 'e'},         {"treasury", 0, NULL, 'T'},
    {"poor", 1, NULL, 'P'},          {"dir", 1, NULL, 'D'},
    {"desk-pid", 1, NULL, 'K'},      {"clicks-pid", 1, NULL, 'C'},
    {"help", 0, NULL, 'H'},          {NULL, 0, NULL, 0}};

/* The options that are text and taken as they are; NULL for others. */
static const char **text_option(int option)
{
    switch (option) {
    case 'p':
        return &bench.part;
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
    case 'b':
        return &bench.hand_database;
    case 'e':
        return &bench.redis_socket;
    case 'D':
        return &bench.directory;
    default:
        return NULL;
    }
}

static unsigned *count_option(int option, long long *most)
{
    switch (option) {
    case 'n':
        *most = CALLERS_MAX;
        return &bench.callers;
    case 'c':
        *most = 512;
        return &bench.connections;
    case 'l':
        *most = HELD_MAX;
        return &bench.held;
    case 'g':
        *most = GROUP_MAX;
        return &bench.group;
    case 'P':
        *most = 100;
        return &bench.poor;
    default:
        return NULL;
    }
}

static int64_t *long_option(int option)
{
    switch (option) {
    case 'r':
        return &bench.run_ms;
    case 'w':
        return &bench.warm_up_ms;
    case 'y':
        return &bench.cycles;
    case 'o':
        return &bench.hold_open_ms;
    case 'a':
        return &bench.ask_held_ms;
    case 't':
        return &bench.session_ms;
    case 'i':
        return &bench.server_pid;
    case 'K':
        return &bench.desk_pid;
    case 'C':
        return &bench.clicks_pid;
    default:
        return NULL;
    }
}

/* 1, or 0 when there is no such option. */
static int take_option(int option)
{
    const char **text = text_option(option);
    int64_t *number = long_option(option);
    long long most;
    unsigned *count = count_option(option, &most);

    if (text != NULL)
        *text = optarg;
    else if (number != NULL)
        *number = number_of(optarg, 100000000);
    else if (count != NULL)
        *count = (unsigned)number_of(optarg, most);
    else if (option == 'h')
        bench.contended = 1;
    else if (option == 'T')
        bench.treasury = 1;
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
    if (of == NULL || bench.callers == 0 || bench.connections == 0 || bench.group == 0) {
        usage(stderr);
        return 2;
    }
    run(of);
    return 0;
}
