/* Reads the shards' pages at the same time, and merges them: Prometheus takes all lines of a metric
 * together, under one HELP and one TYPE.  Touches its own memory; databases by the caller's read. */
#include "exporter_fleet.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Below the ten seconds that Prometheus waits for a page. */
#define PAGE_S 5
#define NAME_SPACE 128

typedef struct text {
    char *data;
    size_t size, space;
} text;

typedef struct site {
    exporter_fleet *all;
    char name[NAME_SPACE];
    void *of;
    int is_late; /* of the page's thread: it was told that the shard does not answer */
    pthread_t thread;
    int has_thread;
    text page; /* of the shard's thread while that reads */
    tl_status status;
    int reading; /* under the mutex */
} site;

/* A metric: what is told of it, and its lines so far. */
typedef struct metric {
    char name[NAME_SPACE];
    size_t from; /* the shard that told it first */
    text head, lines;
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
    text *t = to;

    if (t->size + size > t->space) {
        const size_t space = (t->size + size) * 2;
        char *larger = realloc(t->data, space);

        if (larger == NULL)
            return -1;
        t->data = larger;
        t->space = space;
    }
    if (size > 0)
        memcpy(t->data + t->size, from, size);
    t->size += size;
    return 0;
}

/* -------------------------------------------------------------------- shards -- */

exporter_fleet *exporter_fleet_new(exporter_page_fn read, exporter_page_fn down)
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

int exporter_fleet_add(exporter_fleet *self, const char *name, void *of_shard)
{
    site **larger = realloc(self->sites, (self->count + 1) * sizeof *larger);
    site *one = calloc(1, sizeof *one);

    if (larger != NULL)
        self->sites = larger;
    if (larger == NULL || one == NULL) {
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

void exporter_fleet_free(exporter_fleet *self)
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
    metric *larger;

    if (size >= NAME_SPACE)
        return NULL;
    for (size_t i = 0; i < self->metrics_count; i++)
        if (strncmp(self->metrics[i].name, name, size) == 0 && self->metrics[i].name[size] == '\0')
            return &self->metrics[i];
    larger = realloc(self->metrics, (self->metrics_count + 1) * sizeof *larger);
    if (larger == NULL)
        return NULL;
    self->metrics = larger;
    larger += self->metrics_count++;
    memset(larger, 0, sizeof *larger);
    memcpy(larger->name, name, size);
    larger->from = from;
    return larger;
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

static int merge(exporter_fleet *self, size_t from, const text *page)
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
    text down = {NULL, 0, 0};
    int failed;

    if (is_late != one->is_late)
        fprintf(stderr, "tradelock: shard %s: %s\n", one->name,
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

tl_status exporter_fleet_page(void *context, tl_metrics_fn write, void *to)
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
