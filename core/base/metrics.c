/* Counts into histograms, and writes metrics as Prometheus reads them.  Touches its own memory and
 * calls the caller's write(). */
#include "base/metrics.h"

#include "base/clock.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define VALUE_TEXT 32

const histogram_shape histogram_of_times = {
    16,
    6,
    {250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000,
     5000000, 10000000, 30000000},
};
const histogram_shape histogram_of_tasks = {8, 0, {2, 4, 8, 16, 32, 64, 128, 256}};

void histogram_add(histogram *h, const histogram_shape *shape, uint64_t value)
{
    unsigned i = 0;

    while (i < shape->count && value > shape->bounds[i])
        i++;
    atomic_fetch_add_explicit(&h->counts[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum, value, memory_order_relaxed);
}

void histogram_add_since(histogram *h, int64_t since_us)
{
    const int64_t took_us = clock_boottime_us() - since_us;

    histogram_add(h, &histogram_of_times, took_us > 0 ? (uint64_t)took_us : 0);
}

/* ---------------------------------------------------------------------- the text -- */

static void flush(metrics_text *m)
{
    if (m->size > 0 && !m->failed)
        m->failed = m->write(m->context, m->buffer, m->size) != 0;
    m->size = 0;
}

static void put(metrics_text *m, const char *text, size_t size)
{
    while (size > 0 && !m->failed) {
        size_t part = sizeof m->buffer - m->size;

        if (part > size)
            part = size;
        memcpy(m->buffer + m->size, text, part);
        m->size += part;
        text += part;
        size -= part;
        if (m->size == sizeof m->buffer)
            flush(m);
    }
}

static void put_text(metrics_text *m, const char *text)
{
    put(m, text, strlen(text));
}

/* A label's value: backslash, quotation mark and line feed are escaped. */
static void put_value(metrics_text *m, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n')
            put_text(m, "\\n");
        else if (*text == '\\' || *text == '"') {
            put_text(m, "\\");
            put(m, text, 1);
        } else {
            put(m, text, 1);
        }
    }
}

/* By hand, since printf() writes fractions as the program's locale wants them. */
static const char *decimal(char to[VALUE_TEXT], int64_t value, unsigned decimals)
{
    uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value, unit = 1;
    int size;

    for (unsigned i = 0; i < decimals; i++)
        unit *= 10;
    size = snprintf(to, VALUE_TEXT, "%s%" PRIu64, value < 0 ? "-" : "", magnitude / unit);
    if (magnitude % unit == 0)
        return to;
    size += snprintf(to + size, VALUE_TEXT - (size_t)size, ".%0*" PRIu64, (int)decimals,
                     magnitude % unit);
    while (to[size - 1] == '0')
        to[--size] = '\0';
    return to;
}

static void put_labels(metrics_text *m, va_list pairs, const char *le)
{
    const char *name, *between = "{";

    while ((name = va_arg(pairs, const char *)) != NULL) {
        put_text(m, between);
        put_text(m, name);
        put_text(m, "=\"");
        put_value(m, va_arg(pairs, const char *));
        put_text(m, "\"");
        between = ",";
    }
    if (le != NULL) {
        put_text(m, between);
        put_text(m, "le=\"");
        put_text(m, le);
        put_text(m, "\"");
        between = ",";
    }
    if (between[0] == ',')
        put_text(m, "}");
}

static void put_line(metrics_text *m, const char *name, const char *suffix, va_list pairs,
                     const char *le, const char *value)
{
    put_text(m, name);
    put_text(m, suffix);
    put_labels(m, pairs, le);
    put_text(m, " ");
    put_text(m, value);
    put_text(m, "\n");
}

void metrics_begin(metrics_text *m, const char *name, const char *type, const char *help)
{
    put_text(m, "# HELP ");
    put_text(m, name);
    put_text(m, " ");
    put_text(m, help);
    put_text(m, "\n# TYPE ");
    put_text(m, name);
    put_text(m, " ");
    put_text(m, type);
    put_text(m, "\n");
}

void metrics_line(metrics_text *m, const char *name, int64_t value, unsigned decimals, ...)
{
    char text[VALUE_TEXT];
    va_list pairs;

    va_start(pairs, decimals);
    put_line(m, name, "", pairs, NULL, decimal(text, value, decimals));
    va_end(pairs);
}

void metrics_line_text(metrics_text *m, const char *name, const char *value, ...)
{
    va_list pairs;

    va_start(pairs, value);
    put_line(m, name, "", pairs, NULL, value);
    va_end(pairs);
}

void metrics_one(metrics_text *m, const char *name, const char *type, const char *help,
                 int64_t value, unsigned decimals)
{
    metrics_begin(m, name, type, help);
    metrics_line(m, name, value, decimals, NULL);
}

static void put_bucket(metrics_text *m, const char *name, va_list pairs, const char *le,
                       uint64_t count)
{
    char text[VALUE_TEXT];
    va_list again;

    va_copy(again, pairs);
    put_line(m, name, "_bucket", again, le, decimal(text, (int64_t)count, 0));
    va_end(again);
}

void metrics_histogram(metrics_text *m, const char *name, const histogram_shape *shape,
                       const histogram *h, ...)
{
    char le[VALUE_TEXT];
    uint64_t count = 0;
    va_list pairs, again;

    va_start(pairs, h);
    for (unsigned i = 0; i <= shape->count; i++) {
        count += atomic_load_explicit(&h->counts[i], memory_order_relaxed);
        put_bucket(m, name, pairs,
                   i < shape->count ? decimal(le, (int64_t)shape->bounds[i], shape->decimals)
                                    : "+Inf",
                   count);
    }
    va_copy(again, pairs);
    put_line(
        m, name, "_sum", again, NULL,
        decimal(le, (int64_t)atomic_load_explicit(&h->sum, memory_order_relaxed), shape->decimals));
    va_end(again);
    put_line(m, name, "_count", pairs, NULL, decimal(le, (int64_t)count, 0));
    va_end(pairs);
}

tl_status metrics_end(metrics_text *m)
{
    flush(m);
    return m->failed ? error_set(TL_CALLBACK_FAILED, "the metrics could not be written") : TL_OK;
}
