/* Reports: walks through trades page by page, and counts and sums them, or tells each.  Reads only. */
#include "admin/list.h"
#include "admin/shard_copies.h"
#include "admin/sorted.h"

#include "base/memory.h"
#include "base/text.h"
#include "client/read.h"
#include "store/bind.h"
#include "store/record.h"

#include <tradelock/admin/explain.h>
#include <tradelock/admin/report.h>

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows that one statement looks at: sums are short, lines are wide. */
#define PAGE_SUMS 20000
#define PAGE_LINES 2000
/* After every key. */
#define LAST_KEY "\x7f"

struct report {
    const tl_report_scope *scope;
    int64_t until_us;
    db *connection;
    tl_report_row_fn each_row;
    tl_report_line_fn each_line;
    void *context;
    tl_report_row *rows; /* sorted */
    size_t count;
    store_list_place after, end;
    shard_copies copies;
    int by_made; /* through those that were asked for in the range, not through all */
    int is_last, stopped;
};

/* --------------------------------------------------------------------- counting -- */

/* What stands behind the end of a text is 0. */
static int compare(const void *left, const void *right)
{
    const tl_report_row *a = left;

    return memcmp(a, right, offsetof(tl_report_row, state) + sizeof a->state);
}

static tl_status add(struct report *self, const tl_report_row *row)
{
    const size_t at = sorted_place(row, self->rows, self->count, sizeof *row, compare);
    tl_report_row *there;

    if (!memory_room(&self->rows, self->count, sizeof *self->rows))
        return error_set(TL_NO_MEMORY, "out of memory for the sums of a report");
    there = self->rows + at;
    if (at < self->count && compare(there, row) == 0) {
        there->trades += row->trades;
        tl_sum_add(there->sum_minor, row->sum_minor);
        return TL_OK;
    }
    memmove(there + 1, there, (self->count++ - at) * sizeof *there);
    *there = *row;
    return TL_OK;
}

static int64_t moment_of(const struct report *self, const tl_report_line *line)
{
    return self->scope->at == TL_REPORT_ASKED  ? line->asked_us
           : self->scope->at == TL_REPORT_PAID ? line->paid_us
                                               : line->booked_us;
}

/* A trade as a row of its own. */
static tl_status add_line(struct report *self, const tl_report_line *line)
{
    const unsigned by = self->scope->by;
    tl_report_row row = {.trades = 1};
    char moment[TL_MOMENT_TEXT];

    tl_moment_text(moment, moment_of(self, line), 0);
    if (by & TL_REPORT_DAY)
        snprintf(row.day, sizeof row.day, "%.10s", moment);
    text_copy(row.channel, sizeof row.channel, by & TL_REPORT_CHANNEL ? line->channel : "");
    text_copy(row.op_code, sizeof row.op_code, by & TL_REPORT_OPERATION ? line->op_code : "");
    text_copy(row.currency, sizeof row.currency, line->currency);
    text_copy(row.state, sizeof row.state, by & TL_REPORT_STATE ? line->state : "");
    snprintf(row.sum_minor, sizeof row.sum_minor, "%" PRId64,
             line->amount_minor > 0 ? line->amount_minor : 0);
    return add(self, &row);
}

/* ---------------------------------------------------------------------- reading -- */

#define REPORT_PAGE(self)                                                                          \
    .cust_no = db_text((self)->after.cust_no), .serial_no = db_text((self)->after.serial_no),      \
    .op_code = db_text((self)->after.op_code), .end_cust = db_text((self)->end.cust_no),           \
    .end_serial = db_text((self)->end.serial_no), .end_op = db_text((self)->end.op_code)
#define REPORT_RANGE(self)                                                                         \
    .since_us = db_int((self)->scope->since_us), .until_us = db_int((self)->until_us)
#define REPORT_MADE(self)                                                                          \
    REPORT_PAGE(self), .after_us = db_int((self)->after.us), .end_us = db_int((self)->end.us)

/* Until it is found the end of the range. */
static tl_status find_end(struct report *self, unsigned most)
{
    store_list_place *end = &self->end;
    RESULT result = DB_RESULT_INIT;

    *end = (store_list_place){
        .us = self->until_us - 1, .cust_no = LAST_KEY, .serial_no = LAST_KEY, .op_code = LAST_KEY};
    TRY(read_status(self->connection,
                    self->by_made ? SQL_RUN(self->connection, &result, report_made_end,
                                            REPORT_MADE(self), .most = db_uint(most - 1))
                                  : SQL_RUN(self->connection, &result, report_end,
                                            .cust_no = db_text(self->after.cust_no),
                                            .serial_no = db_text(self->after.serial_no),
                                            .op_code = db_text(self->after.op_code),
                                            .most = db_uint(most - 1)),
                    "reading the trades"));
    self->is_last = result.rows == 0;
    if (self->is_last)
        return TL_OK;
    text_copy(end->cust_no, sizeof end->cust_no, db_get_text(&result, 0, 0));
    text_copy(end->serial_no, sizeof end->serial_no, db_get_text(&result, 0, 1));
    text_copy(end->op_code, sizeof end->op_code, db_get_text(&result, 0, 2));
    if (self->by_made)
        end->us = db_get_int(&result, 0, 3);
    return TL_OK;
}

#define REPORT_BY(by)                                                                              \
    .by_day = db_int(((by) & TL_REPORT_DAY) != 0),                                                 \
    .by_channel = db_int(((by) & TL_REPORT_CHANNEL) != 0),                                         \
    .by_operation = db_int(((by) & TL_REPORT_OPERATION) != 0),                                     \
    .by_state = db_int(((by) & TL_REPORT_STATE) != 0)

#define AT(member) COLUMN_report_sums_##member

static tl_status take_sums(struct report *self)
{
    const unsigned by = self->scope->by;
    RESULT page = DB_RESULT_INIT;
    const db_result *result = &page;
    tl_report_row one, *to = &one;

    TRY(read_status(
        self->connection,
        self->by_made
            ? SQL_RUN(self->connection, &page, report_made_sums, REPORT_MADE(self), REPORT_BY(by))
            : SQL_RUN(self->connection, &page, report_sums, REPORT_PAGE(self), REPORT_RANGE(self),
                      REPORT_BY(by), .paid = db_int(self->scope->at == TL_REPORT_PAID)),
        "counting trades"));
    for (size_t row = 0; row < page.rows; row++) {
        memset(to, 0, sizeof *to);
        TL_REPORT_MAP(RECORD_READ)
        TRY(add(self, to));
    }
    return TL_OK;
}

#undef AT
#define AT(member) COLUMN_report_lines_##member

static void read_line(tl_report_line *to, const db_result *result, size_t row)
{
    TL_REPORT_LINE_MAP(RECORD_READ)
}

#undef AT

static int is_same(const tl_report_line *a, const tl_report_line *b)
{
    return strcmp(a->serial_no, b->serial_no) == 0 && strcmp(a->cust_no, b->cust_no) == 0 &&
           strcmp(a->op_code, b->op_code) == 0;
}

/* Reads the trade that begins at *row, and goes on behind it. */
static void next_line(tl_report_line *line, const db_result *result, size_t *row)
{
    tl_report_line other;

    read_line(line, result, *row);
    for (++*row; *row < result->rows; ++*row) {
        read_line(&other, result, *row);
        if (!is_same(line, &other))
            return;
        if (other.paid_us != 0 && other.paid_us < line->paid_us)
            line->paid_us = other.paid_us;
        if (other.booked_us < line->booked_us)
            line->booked_us = other.booked_us;
    }
}

static tl_status take_line(struct report *self, const tl_report_line *line)
{
    const int64_t at_us = moment_of(self, line);
    int is_copy = 0;

    if (at_us == 0 || at_us < self->scope->since_us || at_us >= self->until_us)
        return TL_OK;
    TRY(shard_is_copy(self->connection, &self->copies, line->cust_no, &is_copy));
    if (is_copy)
        return TL_OK;
    if (self->each_line == NULL)
        return add_line(self, line);
    self->stopped = self->each_line(self->context, line) != 0;
    return TL_OK;
}

/* rest: those that take_sums() did not count. */
static tl_status take_lines(struct report *self, int rest)
{
    RESULT page = DB_RESULT_INIT;
    tl_report_line line;

    TRY(read_status(self->connection,
                    SQL_RUN(self->connection, &page, report_lines, REPORT_PAGE(self),
                            REPORT_RANGE(self), .rest = db_int(rest)),
                    "reading the trades"));
    for (size_t row = 0; row < page.rows && !self->stopped;) {
        next_line(&line, &page, &row);
        TRY(take_line(self, &line));
    }
    return TL_OK;
}

static int walk(void *context)
{
    struct report *self = context;
    const int one_by_one = self->each_line != NULL || self->scope->one_by_one || self->copies.has;
    tl_status status = TL_OK;

    self->by_made = self->scope->at == TL_REPORT_ASKED && !one_by_one;
    self->after.us = self->scope->since_us;
    while (status == TL_OK && !self->is_last && !self->stopped) {
        status = find_end(self, one_by_one ? PAGE_LINES : PAGE_SUMS);
        if (status == TL_OK && !one_by_one)
            status = take_sums(self);
        if (status == TL_OK && !self->by_made)
            status = take_lines(self, !one_by_one);
        self->after = self->end;
    }
    for (size_t i = 0; status == TL_OK && i < self->count && !self->stopped; i++)
        self->stopped = self->each_row(self->context, &self->rows[i]) != 0;
    return (int)status;
}

static tl_status read_gaps(const struct report *self, tl_report_gaps *gaps)
{
    RESULT result = DB_RESULT_INIT;

    TRY(read_status(self->connection,
                    SQL_RUN(self->connection, &result, report_purged,
                            .since_us = db_int(self->scope->since_us)),
                    "reading what was purged"));
    gaps->purged_us = db_get_int(&result, 0, 0);
    gaps->archived_us = db_get_int(&result, 0, 1);
    return TL_OK;
}

static tl_status check(const tl_report_scope *scope, int has_each, const tl_report_gaps *gaps)
{
    TRY(read_check_each(has_each));
    if (scope == NULL || scope->version != TL_REPORT_SCOPE_VERSION)
        return error_set(TL_INVALID, "scope is NULL or its version is not set");
    if (gaps == NULL)
        return error_set(TL_INVALID, "gaps is NULL");
    if (scope->since_us < 0 || scope->since_us > STRETCH_END_US || scope->until_us < 0 ||
        scope->until_us > STRETCH_END_US)
        return error_set(TL_INVALID, "a moment lies between the years 1970 and 9998");
    if (scope->until_us != 0 && scope->until_us <= scope->since_us)
        return error_set(TL_INVALID, "until_us is not after since_us");
    return TL_OK;
}

/* What was purged is read last: a purge that goes on meanwhile is told, too. */
static tl_status run(struct report *self, tl_client *client, tl_report_gaps *gaps)
{
    READING at = {.client = client};
    tl_status status;

    TRY(read_begin(&at));
    self->connection = at.connection;
    self->until_us = self->scope->until_us != 0 ? self->scope->until_us : STRETCH_END_US;
    status = shard_copies_read(self->connection, &self->copies);
    if (status == TL_OK)
        status = read_and_show(walk, self);
    if (status == TL_OK)
        status = read_gaps(self, gaps);
    memory_free(self->rows);
    return status;
}

tl_status tl_report(tl_client *client, const tl_report_scope *scope, tl_report_row_fn each,
                    void *context, tl_report_gaps *gaps)
{
    struct report self = {.scope = scope, .each_row = each, .context = context};

    error_clear();
    TRY(check(scope, each != NULL, gaps));
    return run(&self, client, gaps);
}

tl_status tl_report_lines(tl_client *client, const tl_report_scope *scope, tl_report_line_fn each,
                          void *context, tl_report_gaps *gaps)
{
    struct report self = {.scope = scope, .each_line = each, .context = context};

    error_clear();
    TRY(check(scope, each != NULL, gaps));
    return run(&self, client, gaps);
}
