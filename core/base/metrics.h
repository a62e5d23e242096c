/*
 * Counters, histograms, and their text for Prometheus.  A histogram is two relaxed additions, and
 * never a lock; whoever reads it may see one of two additions.
 */
#ifndef TL_BASE_METRICS_H
#define TL_BASE_METRICS_H

#include <tradelock/metrics.h>

#include <stdatomic.h>

#define HISTOGRAM_MOST 16

/* The upper bounds of a histogram's buckets, rising; values above the last are counted too. */
typedef struct histogram_shape {
    unsigned count, decimals; /* decimals: 6 shows microseconds as seconds */
    uint64_t bounds[HISTOGRAM_MOST];
} histogram_shape;

/* Microseconds, shown as seconds; and numbers of tasks. */
extern const histogram_shape histogram_of_times, histogram_of_tasks;

typedef struct histogram {
    atomic_uint_fast64_t counts[HISTOGRAM_MOST + 1], sum;
} histogram;

void histogram_add(histogram *h, const histogram_shape *shape, uint64_t value);
/* The time since a moment of clock_boottime_us(). */
void histogram_add_since(histogram *h, int64_t since_us);

/* ---------------------------------------------------------------------- the text -- */

#define METRICS_BUFFER 4096
typedef struct metrics_text {
    tl_metrics_fn write;
    void *context;
    int failed;
    size_t size;
    char buffer[METRICS_BUFFER];
} metrics_text;

/* Begins a metric.  Its name ends as Prometheus wants it: counters with _total, and with the unit
 * before that. */
void metrics_begin(metrics_text *m, const char *name, const char *type, const char *help);

/* One line: the value with so many decimals, and the labels as pairs of name and value, ended by
 * NULL. */
void metrics_line(metrics_text *m, const char *name, int64_t value, unsigned decimals, ...)
    __attribute__((sentinel));
/* The same of a value that is digits, and may be beyond 64 bits. */
void metrics_line_text(metrics_text *m, const char *name, const char *value, ...)
    __attribute__((sentinel));
/* A metric of one line without labels. */
void metrics_one(metrics_text *m, const char *name, const char *type, const char *help,
                 int64_t value, unsigned decimals);
/* The lines of one histogram, with labels as above. */
void metrics_histogram(metrics_text *m, const char *name, const histogram_shape *shape,
                       const histogram *h, ...) __attribute__((sentinel));

/* Hands over what is left.  TL_OK or TL_CALLBACK_FAILED. */
tl_status metrics_end(metrics_text *m);

#endif
