/* tradelock exporter: what waits in the database, or in all shards of a fleet, for Prometheus.  Each
 * scrape opens a client of its own, so a server that was away, restarted or restored is seen as it is
 * now.  The shards' pages are read at the same time, and merged: Prometheus takes all lines of a metric
 * together, under one HELP and one TYPE. */
#include "array_room.h"
#include "command.h"
#include "log_print.h"
#include "metrics_server.h"
#include "print.h"

#include <tradelock/admin/metrics.h>
#include <tradelock/admin/shards.h>
#include <tradelock/metrics.h>

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEFAULT_LISTEN "127.0.0.1:9465"
/* Below the ten seconds that Prometheus waits for a page. */
#define PAGE_S 5
#define NAME_SPACE 128

static const char *config_file, *listen_at;
static int once;

typedef struct printed {
    char *data;
    size_t size, space;
} printed;

/* A database. */
typedef struct site {
    char shard[TL_FLEET_NAME_MAX + 1]; /* "": of no fleet, or the one that --shard names */
    char problem[512]; /* what kept the last scrape from the database; "": nothing */
    int is_late;       /* of the page's thread: it was told that the shard does not answer */
    pthread_t thread;
    int has_thread;
    printed page; /* of the shard's thread while that reads */
    tl_status status;
    int reading; /* under the mutex */
} site;

/* A metric: what is told of it, and its lines so far. */
typedef struct metric {
    char name[NAME_SPACE];
    size_t from; /* the shard that told it first */
    printed head, lines;
} metric;

static struct {
    site *sites; /* fixed before the first page */
    size_t count, metrics_count;
    metric *metrics; /* of the page that is being made */
    pthread_mutex_t mutex;
    pthread_cond_t ended;
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

static int add_text(void *to, const char *from, size_t size)
{
    printed *t = to;

    if (!text_room(&t->data, &t->space, t->size + size))
        return -1;
    if (size > 0)
        memcpy(t->data + t->size, from, size);
    t->size += size;
    return 0;
}

/* -------------------------------------------------------------------- one database -- */

/* Says what is wrong when it begins and when it changes, and when it is over; not at each
 * scrape. */
static void mention(site *one, const char *problem)
{
    const int is_shard = one->shard[0] != '\0';

    if (strcmp(one->problem, problem) == 0)
        return;
    snprintf(one->problem, sizeof one->problem, "%s", problem);
    log_say(problem[0] != '\0' ? TL_WARNING : TL_INFO, "%s%s%s%s", is_shard ? "shard " : "",
            one->shard, is_shard ? ": " : "",
            problem[0] != '\0' ? problem : "the database is back");
}

/* What there is also without a server. */
static int put_own(tl_metrics_fn write, void *to, int up, int64_t took_us)
{
    char text[768];

    snprintf(text, sizeof text,
             "# HELP tradelock_up 1: the database was read; 0: it could not be.\n"
             "# TYPE tradelock_up gauge\n"
             "tradelock_up %d\n"
             "# HELP tradelock_exporter_duration_seconds How long reading it took.\n"
             "# TYPE tradelock_exporter_duration_seconds gauge\n"
             "tradelock_exporter_duration_seconds %" PRId64 ".%06" PRId64 "\n"
             "# HELP tradelock_exporter_build_info The version of the exporter.\n"
             "# TYPE tradelock_exporter_build_info gauge\n"
             "tradelock_exporter_build_info{version=\"%s\"} 1\n",
             up, took_us / 1000000, took_us % 1000000, tl_version());
    return write(to, text, strlen(text));
}

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static tl_status open_database(tl_client **client, const site *one)
{
    tl_client_options wanted = TL_CLIENT_OPTIONS_INIT;

    wanted.flags = TL_CLIENT_NO_SESSION | TL_CLIENT_NO_SCHEMA;
    wanted.config_file = config_file;
    wanted.shard = one->shard[0] != '\0' ? one->shard : common.shard;
    wanted.program = "tradelock exporter";
    return tl_client_open(client, &wanted);
}

static tl_status read_database(site *one, tl_metrics_fn write, void *to)
{
    tl_client *client = NULL;
    tl_status status = open_database(&client, one);

    if (status == TL_OK)
        status = tl_metrics_write_database(client, write, to);
    mention(one, status == TL_OK || status == TL_CALLBACK_FAILED ? "" : tl_error_message());
    tl_client_close(client);
    return status;
}

/* A server that is away is told, not refused: the scrape is answered. */
static tl_status page_of_one(void *context, tl_metrics_fn write, void *to)
{
    const int64_t since_us = now_us();
    const tl_status status = read_database(context, write, to);

    if (status == TL_CALLBACK_FAILED)
        return status;
    return put_own(write, to, status == TL_OK, now_us() - since_us) == 0
               ? TL_OK
               : tl_error_report(TL_CALLBACK_FAILED, "the metrics could not be written");
}

/* Settings that cannot be used are an error now; a server that is away is told at each scrape. */
static int check_settings(const site *one)
{
    tl_client *client = NULL;
    tl_status status = open_database(&client, one);

    if (status == TL_BAD_CONFIG)
        return report(status);
    tl_client_close(client);
    return EXIT_DONE;
}

/* ------------------------------------------------------------------- reading -- */

static void end_thread(site *one)
{
    if (one->has_thread)
        pthread_join(one->thread, NULL);
    one->has_thread = 0;
}

static void *site_main(void *argument)
{
    site *one = argument;
    tl_status status;

    one->page.size = 0;
    status = page_of_one(one, add_text, &one->page);
    pthread_mutex_lock(&all.mutex);
    one->status = status;
    one->reading = 0;
    pthread_cond_signal(&all.ended);
    pthread_mutex_unlock(&all.mutex);
    return NULL;
}

/* Needs: the mutex held. */
static int is_reading(void)
{
    for (size_t i = 0; i < all.count; i++)
        if (all.sites[i].reading)
            return 1;
    return 0;
}

/* Needs: the mutex held; a thread that has said that it ended needs it no more. */
static void begin(site *one)
{
    if (one->reading)
        return;
    end_thread(one);
    one->status = TL_NO_MEMORY;
    one->reading = 1;
    one->has_thread = pthread_create(&one->thread, NULL, site_main, one) == 0;
    one->reading = one->has_thread;
}

/* late[i]: shard i has not told in time. */
static void read_all(char *late)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PAGE_S;
    pthread_mutex_lock(&all.mutex);
    for (size_t i = 0; i < all.count; i++)
        begin(&all.sites[i]);
    while (is_reading() &&
           pthread_cond_clockwait(&all.ended, &all.mutex, CLOCK_MONOTONIC, &until) == 0)
        continue;
    for (size_t i = 0; i < all.count; i++)
        late[i] = all.sites[i].reading != 0;
    pthread_mutex_unlock(&all.mutex);
}

/* ------------------------------------------------------------------- merging -- */

static metric *find_metric(const char *name, size_t size, size_t from)
{
    metric *one;

    if (size >= NAME_SPACE)
        return NULL;
    for (size_t i = 0; i < all.metrics_count; i++)
        if (strncmp(all.metrics[i].name, name, size) == 0 && all.metrics[i].name[size] == '\0')
            return &all.metrics[i];
    if (!array_room(&all.metrics, all.metrics_count, sizeof *all.metrics))
        return NULL;
    one = &all.metrics[all.metrics_count++];
    memset(one, 0, sizeof *one);
    memcpy(one->name, name, size);
    one->from = from;
    return one;
}

/* name{a="b"} 1 and name 1 get the label; the line has its end. */
static int add_line(metric *to, const char *line, size_t size, const char *shard)
{
    const size_t name = strcspn(line, "{ ");
    const int has_labels = line[name] == '{';
    char label[NAME_SPACE + 16];
    const int label_size =
        snprintf(label, sizeof label, "{shard=\"%s\"%s", shard, has_labels ? "," : "}");
    const size_t rest = name + (has_labels ? 1 : 0);

    return add_text(&to->lines, line, name) != 0 ||
                   add_text(&to->lines, label, (size_t)label_size) != 0 ||
                   add_text(&to->lines, line + rest, size - rest) != 0
               ? -1
               : 0;
}

static int merge(size_t from, const printed *page)
{
    metric *at = NULL;
    const char *line = page->data, *end = page->data + page->size;

    for (const char *next; line < end; line = next) {
        const char *feed = memchr(line, '\n', (size_t)(end - line));
        size_t size;

        if (feed == NULL)
            return -1;
        next = feed + 1;
        size = (size_t)(next - line);
        if (strncmp(line, "# HELP ", 7) == 0)
            at = find_metric(line + 7, strcspn(line + 7, " "), from);
        if (at == NULL)
            return -1;
        if (line[0] != '#' ? add_line(at, line, size, all.sites[from].shard) != 0
                           : at->from == from && add_text(&at->head, line, size) != 0)
            return -1;
    }
    return 0;
}

static int merge_shard(size_t i, int is_late)
{
    site *one = &all.sites[i];
    printed down = {NULL, 0, 0};
    int failed;

    if (is_late != one->is_late)
        log_say(is_late ? TL_WARNING : TL_INFO, "shard %s: %s", one->shard,
                is_late ? "it does not answer" : "it answers again");
    one->is_late = is_late;
    if (!is_late && one->status == TL_OK)
        return merge(i, &one->page);
    failed = put_own(add_text, &down, 0, 0) != 0 || merge(i, &down) != 0;
    free(down.data);
    return failed ? -1 : 0;
}

static int write_metrics(tl_metrics_fn write, void *to)
{
    int failed = 0;

    for (size_t i = 0; i < all.metrics_count; i++) {
        metric *one = &all.metrics[i];

        failed |= !failed && write(to, one->head.data, one->head.size) != 0;
        failed |=
            !failed && one->lines.size > 0 && write(to, one->lines.data, one->lines.size) != 0;
        free(one->head.data);
        free(one->lines.data);
    }
    free(all.metrics);
    all.metrics = NULL;
    all.metrics_count = 0;
    return failed ? -1 : 0;
}

/* A page, as tools/metrics asks for it; of one thread at a time. */
static tl_status page_of_fleet(void *context, tl_metrics_fn write, void *to)
{
    char *late = calloc(all.count, 1);
    int failed = late == NULL;

    (void)context;
    if (late != NULL)
        read_all(late);
    for (size_t i = 0; i < all.count && !failed; i++)
        failed = merge_shard(i, late[i]) != 0;
    free(late);
    failed |= write_metrics(write, to) != 0;
    return failed ? tl_error_report(TL_CALLBACK_FAILED, "the metrics could not be written") : TL_OK;
}

/* ------------------------------------------------------------------- the command -- */

static int to_stdout(void *to, const char *text, size_t size)
{
    return fwrite(text, 1, size, to) != size;
}

static int serve(metrics_page_fn make, void *of)
{
    char problem[512];
    sigset_t signals;
    metrics_server *server;
    int caught;

    /* Before the server's thread is made, so that it leaves them to this one. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    server = metrics_server_start(listen_at != NULL ? listen_at : DEFAULT_LISTEN, make, of, NULL,
                                  NULL, problem, sizeof problem);
    if (server == NULL) {
        fprintf(stderr, "tradelock: %s\n", problem);
        return EXIT_USAGE;
    }
    log_answer("metrics at %s", metrics_server_url(server));
    sigwait(&signals, &caught);
    metrics_server_stop(server);
    return finish_output(EXIT_DONE);
}

static int check(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    if (once && listen_at != NULL)
        return usage_error("--once prints and ends, --listen serves: give one of them");
    if (listen_at != NULL && tl_metrics_check_listen("--listen", listen_at) != TL_OK)
        return usage_error("%s", tl_error_message());
    config_file = command_config();
    if (config_file == NULL)
        return EXIT_USAGE;
    log_begin("tradelock-exporter", TL_WARNING, config_file);
    return EXIT_DONE;
}

static int add_site(void *context, const char *shard)
{
    site one = {.status = TL_OK};

    (void)context;
    snprintf(one.shard, sizeof one.shard, "%s", shard);
    if (!array_room(&all.sites, all.count, sizeof *all.sites))
        out_of_memory();
    all.sites[all.count++] = one;
    return 0;
}

static int work(tl_client *client)
{
    const tl_status status = common.shard == NULL ? tl_shards(config_file, add_site, NULL) : TL_OK;
    const int is_fleet = all.count > 0;
    const metrics_page_fn make = is_fleet ? page_of_fleet : page_of_one;
    int code = status == TL_OK ? EXIT_DONE : report(status);

    (void)client;
    if (!is_fleet)
        (void)add_site(NULL, "");
    for (size_t i = 0; i < all.count && code == EXIT_DONE; i++)
        code = check_settings(&all.sites[i]);
    if (code == EXIT_DONE && !once)
        code = serve(make, all.sites);
    else if (code == EXIT_DONE) {
        (void)make(all.sites, to_stdout, stdout);
        code = finish_output(EXIT_DONE);
    }
    for (size_t i = 0; i < all.count; i++) {
        end_thread(&all.sites[i]);
        free(all.sites[i].page.data);
    }
    free(all.sites);
    return code;
}

static const struct command_option options[] = {
    {"listen ADDRESS",
     "an address of the loopback, with a port (" DEFAULT_LISTEN ");\n"
     "port 0 is any free one; public:0.0.0.0:PORT is beyond it",
     OPTION_TEXT, .to = &listen_at},
    {"once", "print once, and end", OPTION_FLAG, .to = &once},
    {.name = NULL}};

const struct command command_exporter = {
    .name = "exporter",
    .summary = "serves what waits in the database to Prometheus",
    .arguments = "[--listen 127.0.0.1:PORT | --once]",
    .text = "Tells, as text for Prometheus at /metrics, how many trades and how much money are in\n"
            "doubt, queued, parked and in conflict, for how long, and who is alive.  One exporter\n"
            "is enough for a database, or for all shards of a fleet: then each line has a label\n"
            "shard, and a shard that is down holds up no other; --shard NAME tells one alone.  It\n"
            "needs a reader's account, and reads by index, however many trades have ended.  While\n"
            "the server is away it says tradelock_up 0, and /healthz that it works all the same.\n",
    .examples = "  tradelock exporter --config /etc/tradelock-exporter.cnf\n",
    .options = options,
    .help_width = 20,
    .check = check,
    .work = work,
    .why_no_json = "the text for Prometheus has no JSON form",
};
