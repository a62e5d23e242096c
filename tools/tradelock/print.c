/* Tables, times and other output that all commands share, over libsmartcols. */
#include "print.h"

#include "command.h"
#include "csv_guard.h"
#include "fleet.h"

#include <tradelock/lane.h>
#include <tradelock/layer.h>

#include <libsmartcols.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#define PAIR_WIDTH 16

void out_of_memory(void)
{
    fputs("tradelock: out of memory\n", stderr);
    exit(EXIT_INTERNAL);
}

/* ------------------------------------------------------------------- times -- */

const char *time_text(char to[TIME_TEXT], int64_t us)
{
    return tl_moment_text(to, us, 3);
}

const char *distance_text(char to[TIME_TEXT], int64_t from_us, int64_t to_us)
{
    to[0] = to_us < from_us ? '-' : '+';
    tl_span_text(to + 1, to_us < from_us ? from_us - to_us : to_us - from_us, TL_SPAN_FINE);
    return to;
}

const char *limit_text(char to[LIMIT_TEXT], int64_t sends, int64_t per_second)
{
    char most[32] = "", rate[32] = "";

    if (sends > 0)
        snprintf(most, sizeof most, "%s at a time", COUNT_TEXT((uint64_t)sends));
    if (per_second > 0)
        snprintf(rate, sizeof rate, "%s a second", COUNT_TEXT((uint64_t)per_second));
    snprintf(to, LIMIT_TEXT, "%s%s%s", most, sends > 0 && per_second > 0 ? ", " : "", rate);
    return to;
}

int deadlines_take(void *deadlines, const tl_waiting *one)
{
    struct deadlines *d = deadlines;

    if ((strcmp(one->state, "in_doubt") != 0 && strcmp(one->state, "queued") != 0) ||
        (strcmp(d->channel, TL_CHANNEL_ALL) != 0 && strcmp(d->channel, one->channel) != 0) ||
        (d->op_code != NULL && strcmp(d->op_code, one->op_code) != 0))
        return 0;
    d->waits += one->count;
    d->late += one->late;
    if (one->deadline_us != 0 && (d->first_us == 0 || one->deadline_us < d->first_us))
        d->first_us = one->deadline_us;
    return 0;
}

const char *deadlines_text(char to[DEADLINES_TEXT], const struct deadlines *d, int64_t now_us)
{
    char when[TIME_TEXT], span[TIME_TEXT], late[64] = "";

    to[0] = '\0';
    if (d->late > 0)
        snprintf(late, sizeof late, ", and %s are past theirs", COUNT_TEXT(d->late));
    if (d->first_us != 0)
        snprintf(to, DEADLINES_TEXT,
                 "Deadlines go on: of %s payments that wait the first one's is %s (%s%s%s)%s.  "
                 "After it nothing is sent: a payment that was never sent fails; one in doubt is "
                 "asked for, and parked if that does not tell.",
                 COUNT_TEXT(d->waits), time_text(when, d->first_us),
                 d->first_us > now_us ? "in " : "", distance_text(span, now_us, d->first_us) + 1,
                 d->first_us > now_us ? "" : " ago", late);
    return to;
}

int limit_is_full(const tl_pause_row *row)
{
    return row->sends > 0 && row->permits >= row->sends;
}

const char *permits_text(char to[LIMIT_TEXT], const tl_pause_row *row)
{
    char wanted[32] = "";

    to[0] = '\0';
    if (row->wanted > row->permits - row->permits_ended)
        snprintf(wanted, sizeof wanted, ", %s wanted", COUNT_TEXT((uint64_t)row->wanted));
    if (row->sends > 0)
        snprintf(to, LIMIT_TEXT, "%s of %s out%s", COUNT_TEXT((uint64_t)row->permits),
                 COUNT_TEXT((uint64_t)row->sends), wanted);
    return to;
}

void csv_print(FILE *to, const char *const *cells, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int quoted = strpbrk(cells[i], ",\"\r\n") != NULL;
        const char *guard = csv_wants_guard(cells[i]) ? "'" : "";

        fprintf(to, "%s%s%s", i > 0 ? "," : "", quoted ? "\"" : "", guard);
        for (const char *c = cells[i]; *c != '\0'; c++) {
            if (*c == '"')
                putc('"', to);
            putc(*c, to);
        }
        fputs(quoted ? "\"" : "", to);
    }
    putc('\n', to);
}

/* ------------------------------------------------------------------ tables -- */

struct table {
    struct libscols_table *lines;
    size_t columns;
    int of_fleet; /* the first column is the shard */
};

struct table *table_new_of(const char *const *names)
{
    struct table *table = calloc(1, sizeof *table);
    struct libscols_column *column = NULL;

    if (table == NULL || (table->lines = scols_new_table()) == NULL)
        out_of_memory();
    table->of_fleet = fleet_has_column();
    if (table->of_fleet && scols_table_new_column(table->lines, "SHARD", 0, 0) == NULL)
        out_of_memory();
    for (; *names != NULL; names++, table->columns++) {
        column = scols_table_new_column(table->lines, *names, 0, 0);
        if (column == NULL)
            out_of_memory();
    }
    /* What is said in words stands last, and may take several lines of a terminal. */
    scols_column_set_flags(column, SCOLS_FL_WRAP);
    return table;
}

void table_add_cells(struct table *table, const char *const *cells)
{
    struct libscols_line *line = scols_table_new_line(table->lines, NULL);

    if (line == NULL)
        out_of_memory();
    if (table->of_fleet && fleet_now() != NULL && scols_line_set_data(line, 0, fleet_now()) != 0)
        out_of_memory();
    for (size_t i = 0; i < table->columns; i++)
        if (cells[i] != NULL &&
            scols_line_set_data(line, i + (table->of_fleet != 0), cells[i]) != 0)
            out_of_memory();
}

void table_print(struct table *table)
{
    table_print_or_say(table, NULL);
}

void table_print_or_say(struct table *table, const char *nothing)
{
    if (scols_table_get_nlines(table->lines) > 0)
        scols_print_table(table->lines);
    else if (nothing != NULL)
        fprintf(stderr, "tradelock: %s\n", nothing);
}

void table_free(struct table *table)
{
    if (table == NULL)
        return;
    scols_unref_table(table->lines);
    free(table);
}

/* ------------------------------------------------------------------- pairs -- */

size_t harmless(const char *text, size_t size)
{
    mbstate_t state;
    wchar_t c;
    size_t used;

    memset(&state, 0, sizeof state);
    used = mbrtowc(&c, text, size, &state);
    if (used == 0 || used > size)
        return 0;
    return c >= L' ' && c != 0x7f && !(c >= 0x80 && c < 0xa0) ? used : 0;
}

void print_harmless(const char *text, size_t size)
{
    while (size > 0) {
        const size_t used = harmless(text, size);

        if (used > 0)
            fwrite(text, 1, used, stdout);
        else
            printf("\\x%02x", (unsigned char)*text);
        text += used > 0 ? used : 1;
        size -= used > 0 ? used : 1;
    }
}

int text_width(const char *text, size_t size)
{
    int width = 0;

    while (size > 0) {
        const size_t used = harmless(text, size);

        width += used > 0 ? 1 : 4;
        text += used > 0 ? used : 1;
        size -= used > 0 ? used : 1;
    }
    return width;
}

int text_is_uuid(const char *text)
{
    return strlen(text) == TL_UUID_TEXT - 1 &&
           strspn(text, "0123456789abcdefABCDEF-") == strlen(text);
}

void print_pair(const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    printf("%-*s  ", PAIR_WIDTH, name);
    print_harmless(value, strlen(value));
    putchar('\n');
}

void print_pair_format(const char *name, const char *format, ...)
{
    char value[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    print_pair(name, value);
}

static int is_text(const char *data, size_t size)
{
    while (size > 0) {
        const size_t used = *data == '\n' || *data == '\t' ? 1 : harmless(data, size);

        if (used == 0)
            return 0;
        data += used;
        size -= used;
    }
    return 1;
}

void print_bytes(const char *name, const void *data, size_t size)
{
    const unsigned char *bytes = data;

    if (data == NULL || size == 0)
        return;
    printf("%-*s  %zu bytes: ", PAIR_WIDTH, name, size);
    if (is_text(data, size))
        fwrite(data, 1, size, stdout);
    else
        for (size_t i = 0; i < size; i++)
            printf("%02x", bytes[i]);
    putchar('\n');
}
