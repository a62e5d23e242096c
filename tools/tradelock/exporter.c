/* tradelock exporter: what waits in the database, or in all shards of a fleet, for Prometheus.  Each
 * scrape opens a client of its own, so a server that was away, restarted or restored is seen as it is
 * now. */
#include "array_room.h"
#include "command.h"
#include "log_print.h"
#include "metrics_server.h"

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

/* Reads the shards' pages at the same time, and merges them: Prometheus takes all lines of a metric
 * together, under one HELP and one TYPE.  Touches its own memory; databases by the caller's read. */

/* Hands the page of one shard to write(): on a thread of the shard's, but `down`, which touches
 * nothing that `read` does. */
typedef tl_status (*exporter_page_fn)(void *of_shard, tl_metrics_fn write, void *to);

typedef struct exporter_fleet exporter_fleet;

/* Below the ten seconds that Prometheus waits for a page. */
#define PAGE_S 5
#define NAME_SPACE 128

typedef struct printed {
    char *data;
    size_t size, space;
} printed;

typedef struct site {
    exporter_fleet *all;
    char name[NAME_SPACE];
    void *of;
    int is_late; /* of the page's thread: it was told that the shard does not answer */
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

struct exporter_fleet {
    exporter_page_fn read, down;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    size_t count, metrics_count;
    site **sites;
    metric *metrics; /* of the page that is being made */
};

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

/* -------------------------------------------------------------------- shards -- */

static exporter_fleet *exporter_fleet_new(exporter_page_fn read, exporter_page_fn down)
{
    exporter_fleet *self = calloc(1, sizeof *self);
    pthread_condattr_t attributes;

    if (self == NULL)
        return NULL;
    self->read = read;
    self->down = down;
    pthread_mutex_init(&self->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&self->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    return self;
}

/* 0; -1: out of memory. */
static int exporter_fleet_add(exporter_fleet *self, const char *name, void *of_shard)
{
    site *one = calloc(1, sizeof *one);

    if (one == NULL || !array_room(&self->sites, self->count, sizeof *self->sites)) {
        free(one);
        return -1;
    }
    one->all = self;
    one->of = of_shard;
    snprintf(one->name, sizeof one->name, "%s", name);
    self->sites[self->count++] = one;
    return 0;
}

static void end_thread(site *one)
{
    if (one->has_thread)
        pthread_join(one->thread, NULL);
    one->has_thread = 0;
}

/* Waits for reads that are under way. */
static void exporter_fleet_free(exporter_fleet *self)
{
    if (self == NULL)
        return;
    for (size_t i = 0; i < self->count; i++) {
        end_thread(self->sites[i]);
        free(self->sites[i]->page.data);
        free(self->sites[i]);
    }
    free(self->sites);
    pthread_cond_destroy(&self->ended);
    pthread_mutex_destroy(&self->mutex);
    free(self);
}

/* ------------------------------------------------------------------- reading -- */

static void *site_main(void *argument)
{
    site *one = argument;
    exporter_fleet *all = one->all;
    tl_status status;

    one->page.size = 0;
    status = all->read(one->of, add_text, &one->page);
    pthread_mutex_lock(&all->mutex);
    one->status = status;
    one->reading = 0;
    pthread_cond_signal(&all->ended);
    pthread_mutex_unlock(&all->mutex);
    return NULL;
}

/* Needs: the mutex held. */
static int is_reading(const exporter_fleet *self)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->sites[i]->reading)
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
static void read_all(exporter_fleet *self, char *late)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PAGE_S;
    pthread_mutex_lock(&self->mutex);
    for (size_t i = 0; i < self->count; i++)
        begin(self->sites[i]);
    while (is_reading(self) && pthread_cond_timedwait(&self->ended, &self->mutex, &until) == 0)
        continue;
    for (size_t i = 0; i < self->count; i++)
        late[i] = self->sites[i]->reading != 0;
    pthread_mutex_unlock(&self->mutex);
}

/* ------------------------------------------------------------------- merging -- */

static metric *find_metric(exporter_fleet *self, const char *name, size_t size, size_t from)
{
    metric *one;

    if (size >= NAME_SPACE)
        return NULL;
    for (size_t i = 0; i < self->metrics_count; i++)
        if (strncmp(self->metrics[i].name, name, size) == 0 && self->metrics[i].name[size] == '\0')
            return &self->metrics[i];
    if (!array_room(&self->metrics, self->metrics_count, sizeof *self->metrics))
        return NULL;
    one = &self->metrics[self->metrics_count++];
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

static int merge(exporter_fleet *self, size_t from, const printed *page)
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
            at = find_metric(self, line + 7, strcspn(line + 7, " "), from);
        if (at == NULL)
            return -1;
        if (line[0] != '#' ? add_line(at, line, size, self->sites[from]->name) != 0
                           : at->from == from && add_text(&at->head, line, size) != 0)
            return -1;
    }
    return 0;
}

static int merge_shard(exporter_fleet *self, size_t i, int is_late)
{
    site *one = self->sites[i];
    printed down = {NULL, 0, 0};
    int failed;

    if (is_late != one->is_late)
        log_say(is_late ? TL_WARNING : TL_INFO, "shard %s: %s", one->name,
                is_late ? "it does not answer" : "it answers again");
    one->is_late = is_late;
    if (!is_late && one->status == TL_OK)
        return merge(self, i, &one->page);
    failed = self->down(one->of, add_text, &down) != TL_OK || merge(self, i, &down) != 0;
    free(down.data);
    return failed ? -1 : 0;
}

static int write_metrics(exporter_fleet *self, tl_metrics_fn write, void *to)
{
    int failed = 0;

    for (size_t i = 0; i < self->metrics_count; i++) {
        metric *one = &self->metrics[i];

        failed |= !failed && write(to, one->head.data, one->head.size) != 0;
        failed |=
            !failed && one->lines.size > 0 && write(to, one->lines.data, one->lines.size) != 0;
        free(one->head.data);
        free(one->lines.data);
    }
    free(self->metrics);
    self->metrics = NULL;
    self->metrics_count = 0;
    return failed ? -1 : 0;
}

/* A page, as tools/metrics asks for it; of one thread at a time.  self: an exporter_fleet. */
static tl_status exporter_fleet_page(void *context, tl_metrics_fn write, void *to)
{
    exporter_fleet *self = context;
    char *late = calloc(self->count, 1);
    int failed = late == NULL;

    if (late != NULL)
        read_all(self, late);
    for (size_t i = 0; i < self->count && !failed; i++)
        failed = merge_shard(self, i, late[i]) != 0;
    free(late);
    failed |= write_metrics(self, write, to) != 0;
    return failed ? tl_error_report(TL_CALLBACK_FAILED, "the metrics could not be written") : TL_OK;
}

#define DEFAULT_LISTEN "127.0.0.1:9465"

struct exporter {
    const char *config_file, *shard, *listen;
    int once, of_fleet; /* of_fleet: one of several, each told with its name */
    char problem[512];  /* what kept the last scrape from the database; "": nothing */
};

/* Says what is wrong when it begins and when it changes, and when it is over; not at each
 * scrape. */
static void mention(struct exporter *e, const char *problem)
{
    if (strcmp(e->problem, problem) == 0)
        return;
    snprintf(e->problem, sizeof e->problem, "%s", problem);
    log_say(problem[0] != '\0' ? TL_WARNING : TL_INFO, "%s%s%s%s", e->of_fleet ? "shard " : "",
            e->of_fleet ? e->shard : "", e->of_fleet ? ": " : "",
            problem[0] != '\0' ? problem : "the database is back");
}

static int put(tl_metrics_fn write, void *to, const char *text)
{
    return write(to, text, strlen(text));
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
    return put(write, to, text);
}

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static tl_status open_database(tl_client **client, const struct exporter *e)
{
    tl_client_options wanted = TL_CLIENT_OPTIONS_INIT;

    wanted.flags = TL_CLIENT_NO_SESSION | TL_CLIENT_NO_SCHEMA;
    wanted.config_file = e->config_file;
    wanted.shard = e->shard;
    wanted.program = "tradelock exporter";
    return tl_client_open(client, &wanted);
}

static tl_status read_database(struct exporter *e, tl_metrics_fn write, void *to)
{
    tl_client *client = NULL;
    tl_status status = open_database(&client, e);

    if (status == TL_OK)
        status = tl_metrics_write_database(client, write, to);
    mention(e, status == TL_OK || status == TL_CALLBACK_FAILED ? "" : tl_error_message());
    tl_client_close(client);
    return status;
}

/* A server that is away is told, not refused: the scrape is answered. */
static tl_status page(void *context, tl_metrics_fn write, void *to)
{
    const int64_t since_us = now_us();
    const tl_status status = read_database(context, write, to);

    if (status == TL_CALLBACK_FAILED)
        return status;
    return put_own(write, to, status == TL_OK, now_us() - since_us) == 0
               ? TL_OK
               : tl_error_report(TL_CALLBACK_FAILED, "the metrics could not be written");
}

/* Of a shard that told nothing in time. */
static tl_status page_of_none(void *context, tl_metrics_fn write, void *to)
{
    (void)context;
    return put_own(write, to, 0, 0) == 0
               ? TL_OK
               : tl_error_report(TL_CALLBACK_FAILED, "the metrics could not be written");
}

static int to_stdout(void *to, const char *text, size_t size)
{
    return fwrite(text, 1, size, to) != size;
}

/* Settings that cannot be used are an error now; a server that is away is told at each scrape. */
static int check_settings(const struct exporter *e)
{
    tl_client *client = NULL;
    tl_status status = open_database(&client, e);

    if (status == TL_BAD_CONFIG)
        return report(status);
    tl_client_close(client);
    return EXIT_DONE;
}

static int serve(const struct exporter *e, metrics_page_fn make, void *of)
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
    server = metrics_server_start(e->listen != NULL ? e->listen : DEFAULT_LISTEN, make, of, NULL,
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

static struct exporter exporter;

static int check(int argc, char **argv)
{
    struct exporter *e = &exporter;

    (void)argc;
    (void)argv;
    if (e->once && e->listen != NULL)
        return usage_error("--once prints and ends, --listen serves: give one of them");
    if (e->listen != NULL && tl_metrics_check_listen("--listen", e->listen) != TL_OK)
        return usage_error("%s", tl_error_message());
    e->config_file = command_config();
    e->shard = common.shard;
    if (e->config_file == NULL)
        return EXIT_USAGE;
    log_begin("tradelock-exporter", TL_WARNING, e->config_file);
    return EXIT_DONE;
}

static int tell(const struct exporter *e, metrics_page_fn make, void *of)
{
    if (!e->once)
        return serve(e, make, of);
    (void)make(of, to_stdout, stdout);
    return finish_output(EXIT_DONE);
}

/* -------------------------------------------------------------------------- a fleet -- */

#define SHARD_SPACE 64

struct shard_exporter {
    struct exporter e;
    char name[SHARD_SPACE];
};

struct shards {
    const struct exporter *of;
    struct shard_exporter **list;
    size_t count;
    int failed;
};

static int take_shard(void *context, const char *name)
{
    struct shards *all = context;
    struct shard_exporter *one = calloc(1, sizeof *one);

    if (one == NULL || !array_room(&all->list, all->count, sizeof *all->list)) {
        free(one);
        all->failed = 1;
        return 1;
    }
    one->e = *all->of;
    one->e.of_fleet = 1;
    snprintf(one->name, sizeof one->name, "%s", name);
    one->e.shard = one->name;
    all->list[all->count++] = one;
    return 0;
}

static int tell_fleet(const struct exporter *e, const struct shards *all)
{
    exporter_fleet *fleet = exporter_fleet_new(page, page_of_none);
    int code = fleet != NULL ? EXIT_DONE : EXIT_INTERNAL;

    for (size_t i = 0; i < all->count && code == EXIT_DONE; i++) {
        code = check_settings(&all->list[i]->e);
        if (code == EXIT_DONE &&
            exporter_fleet_add(fleet, all->list[i]->name, &all->list[i]->e) != 0)
            code = EXIT_INTERNAL;
    }
    if (code == EXIT_INTERNAL)
        fputs("tradelock: out of memory\n", stderr);
    if (code == EXIT_DONE)
        code = tell(e, exporter_fleet_page, fleet);
    exporter_fleet_free(fleet);
    return code;
}

static int work(tl_client *client)
{
    struct shards all = {.of = &exporter};
    int code = EXIT_DONE;

    (void)client;
    if (exporter.shard == NULL) {
        const tl_status status = tl_shards(exporter.config_file, take_shard, &all);

        code = status == TL_OK ? EXIT_DONE : report(status);
    }
    if (code == EXIT_DONE && all.failed) {
        fputs("tradelock: out of memory\n", stderr);
        code = EXIT_INTERNAL;
    }
    if (code == EXIT_DONE && all.count > 0) {
        code = tell_fleet(&exporter, &all);
    } else if (code == EXIT_DONE) {
        code = check_settings(&exporter);
        if (code == EXIT_DONE)
            code = tell(&exporter, page, &exporter);
    }
    for (size_t i = 0; i < all.count; i++)
        free(all.list[i]);
    free(all.list);
    return code;
}

static const struct command_option options[] = {
    {"listen ADDRESS",
     "an address of the loopback, with a port (" DEFAULT_LISTEN ");\n"
     "port 0 is any free one; public:0.0.0.0:PORT is beyond it",
     OPTION_TEXT, .to = &exporter.listen},
    {"once", "print once, and end", OPTION_FLAG, .to = &exporter.once},
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
