/* How the commands print: times, bytes, tables for people, JSON for programs. */
#ifndef TRADELOCK_PRINT_H
#define TRADELOCK_PRINT_H

#include <tradelock/admin.h>
#include <tradelock/money.h>

#include <jansson.h>
#include <stdio.h>

/* Says so, and ends the program. */
void out_of_memory(void) __attribute__((noreturn));

/* "2026-03-01T09:30:00.125Z"; "" for 0. */
#define TIME_TEXT (TL_SPAN_TEXT + 1)
const char *time_text(char to[TIME_TEXT], int64_t us);
/* "+12.345 s", "-3 min 10 s", "+2 d 4 h": from one moment to another. */
const char *distance_text(char to[TIME_TEXT], int64_t from_us, int64_t to_us);

/* tl_count_text(), for the arguments of one call. */
#define COUNT_TEXT(count) tl_count_text((char[TL_AMOUNT_TEXT]){""}, count)

#define LIMIT_TEXT 80
/* "4 at a time, 10 a second"; "" without a limit. */
const char *limit_text(char to[LIMIT_TEXT], int64_t sends, int64_t per_second);
/* Whether all sends at a time are with processes. */
int limit_is_full(const tl_pause_row *row);
/* "3 of 4 out", "4 of 4 out, 9 wanted"; "" without a limit of sends at a time. */
const char *permits_text(char to[LIMIT_TEXT], const tl_pause_row *row);

/* The deadlines of what waits for a channel, which go on while it is paused.  op_code NULL: of all
 * operations; channel TL_CHANNEL_ALL: of all channels. */
struct deadlines {
    const char *channel, *op_code;
    uint64_t waits, late; /* in doubt or queued; of them, past their deadline */
    int64_t first_us;     /* 0: none has one */
};
/* For tl_overview_read(). */
int deadlines_take(void *deadlines, const tl_waiting *one);
#define DEADLINES_TEXT 400
/* What a pause, or its end, does to them, as sentences; "" where none has a deadline. */
const char *deadlines_text(char to[DEADLINES_TEXT], const struct deadlines *d, int64_t now_us);

/* ------------------------------------------------------------------ tables -- */

struct table;

/* A table with these columns, of which the last is NULL. */
#define table_new(...) table_new_of((const char *const[]){__VA_ARGS__})
struct table *table_new_of(const char *const *names);
/* A line; as many cells as columns.  Bytes that a terminal would obey are shown as \x1b. */
#define table_add(table, ...) table_add_cells(table, (const char *const[]){__VA_ARGS__})
void table_add_cells(struct table *table, const char *const *cells);
void table_print(struct table *table);
/* The same; of an empty one a sentence on stderr tells people that they see all there is; or NULL. */
void table_print_or_say(struct table *table, const char *nothing);
void table_free(struct table *table);

/* A line of CSV, whose cells no spreadsheet takes for a formula. */
void csv_print(FILE *to, const char *const *cells, size_t count);

/* The size of the character at text, 0 when it is none that may reach a terminal. */
size_t harmless(const char *text, size_t size);
/* The text, with bytes that a terminal would obey as \x1b, and how many characters that are. */
void print_harmless(const char *text, size_t size);
int text_width(const char *text, size_t size);
/* Whether it has a UUID's form. */
int text_is_uuid(const char *text);

/* "name: value" with the names in one column; nothing for an empty value. */
void print_pair(const char *name, const char *value);
void print_pair_format(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Bytes as text where they are text, else in hexadecimal, with their size. */
void print_bytes(const char *name, const void *data, size_t size);

/* -------------------------------------------------------------------- JSON -- */

/* null for NULL and "". */
json_t *json_text(const char *text);
json_t *json_time(int64_t us);
/* A number; as text where it is beyond INT64_MAX, which few readers of JSON take. */
json_t *json_digits(const char *digits);
json_t *json_unsigned(uint64_t number);
json_t *json_char(char c);
json_t *json_hex(const unsigned char *bytes, size_t size);
/* {"size": n, "text": "..."}, or "hex" where the bytes are not text; null for none. */
json_t *json_bytes(const void *data, size_t size);

/* What `show --json` prints of a trade; every part that is NULL becomes null. */
struct json_trade {
    json_t *sync, *retry, *explanation, *evidence, *resolutions, *timeline;
    const char *channel_said; /* "": nothing that is on record */
    int64_t channel_said_us, as_of_us;
};
/* Takes over the parts. */
json_t *json_trade(const struct json_trade *trade);

/* Prints the document, frees it; returns code, or EXIT_INTERNAL when it cannot. */
int print_json(json_t *document, int code);

#endif
