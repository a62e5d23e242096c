/* Writes what waits in the database, as Prometheus reads it.  Touches what metrics_rows.c read, and
 * calls the caller's write() while it has no connection. */
#include "admin/metrics_rows.h"

#include "base/error.h"
#include "base/metrics.h"
#include "base/text.h"
#include "client/read.h"

#include "sql_text.h"

#include <tradelock/admin/metrics.h>
#include <tradelock/admin/overview.h>
#include <tradelock/money.h>

#include <stddef.h>
#include <string.h>

const char *tl_age_name(unsigned age)
{
    static const char *const names[TL_AGES] = {"0-1m", "1m-10m", "10m-1h", "1h-1d", "1d+"};

    return age < TL_AGES ? names[age] : "";
}

/* ------------------------------------------------------------------------- trades -- */

/* One line for each group of trades, with the value of a column. */
static void write_groups(metrics_text *m, const char *name, const char *operation,
                         const db_result *trades, unsigned column)
{
    for (size_t row = 0; row < trades->rows; row++)
        if (strcmp(db_get_text(trades, row, METRICS_STATE), "other") != 0)
            metrics_line_text(m, name, db_get_text(trades, row, column), "operation", operation,
                              "state", db_get_text(trades, row, METRICS_STATE), "channel",
                              db_get_text(trades, row, METRICS_CHANNEL), "currency",
                              db_get_text(trades, row, METRICS_CURRENCY), "age",
                              tl_age_name((unsigned)db_get_uint(trades, row, METRICS_AGE)), NULL);
}

static const char *const states[] = {"in_doubt", "queued", "parked", "working"};
#define STATES (sizeof states / sizeof states[0])

static const db_result *groups_of(const metrics_operation *o, const char *state)
{
    return strcmp(state, "working") == 0 ? &o->working : &o->unheld;
}

static int has_state(const db_result *trades, const char *state)
{
    for (size_t row = 0; row < trades->rows; row++)
        if (strcmp(db_get_text(trades, row, METRICS_STATE), state) == 0)
            return 1;
    return 0;
}

/* A state of which there is no trade has a line of 0, so that an alert ends with it. */
static void write_trades(metrics_text *m, const metrics_rows *rows, const char *name,
                         const char *help, unsigned column)
{
    metrics_begin(m, name, "gauge", help);
    for (size_t i = 0; i < rows->count; i++) {
        const metrics_operation *o = &rows->operations[i];

        write_groups(m, name, o->op_code, &o->unheld, column);
        write_groups(m, name, o->op_code, &o->working, column);
        for (size_t s = 0; s < STATES; s++)
            if (!has_state(groups_of(o, states[s]), states[s]))
                metrics_line(m, name, 0, 0, "operation", o->op_code, "state", states[s], NULL);
    }
}

static int64_t oldest_of(const db_result *trades, const char *state)
{
    int64_t oldest_s = 0;

    for (size_t row = 0; row < trades->rows; row++)
        if (strcmp(db_get_text(trades, row, METRICS_STATE), state) == 0 &&
            db_get_int(trades, row, METRICS_OLDEST_S) > oldest_s)
            oldest_s = db_get_int(trades, row, METRICS_OLDEST_S);
    return oldest_s;
}

/* 0 where there is none, so that an alert ends with it. */
static void write_oldest(metrics_text *m, const metrics_rows *rows)
{
    static const char name[] = "tradelock_oldest_trade_age_seconds";

    metrics_begin(m, name, "gauge",
                  "How long ago the oldest of these trades was asked for; 0 without one.");
    for (size_t i = 0; i < rows->count; i++)
        for (size_t s = 0; s < STATES; s++) {
            const metrics_operation *o = &rows->operations[i];

            metrics_line(m, name, oldest_of(groups_of(o, states[s]), states[s]), 0, "operation",
                         o->op_code, "state", states[s], NULL);
        }
}

/* The first deadline of what waits at the channel of the row, and may still be sent; 0: there is none.
 * All rows of one channel are asked for it, as they stand by state, currency and age. */
static int64_t deadline_of(const db_result *trades, const char *channel)
{
    int64_t first_us = 0;

    for (size_t row = 0; row < trades->rows; row++) {
        const int64_t us = db_get_int(trades, row, METRICS_DEADLINE_US);
        const char *state = db_get_text(trades, row, METRICS_STATE);

        if (strcmp(db_get_text(trades, row, METRICS_CHANNEL), channel) == 0 && us != 0 &&
            (strcmp(state, "in_doubt") == 0 || strcmp(state, "queued") == 0) &&
            (first_us == 0 || us < first_us))
            first_us = us;
    }
    return first_us;
}

/* Whether no row before it is of the same channel. */
static int is_first_of_channel(const db_result *trades, size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (strcmp(db_get_text(trades, i, METRICS_CHANNEL),
                   db_get_text(trades, row, METRICS_CHANNEL)) == 0)
            return 0;
    return 1;
}

static void write_deadlines(metrics_text *m, const metrics_rows *rows)
{
    static const char name[] = "tradelock_first_deadline_seconds";

    metrics_begin(
        m, name, "gauge",
        "How far ahead the first deadline is of trades in doubt or queued; negative: it is "
        "over; no line: none waits.  After it nothing is sent for a trade.");
    for (size_t i = 0; i < rows->count; i++) {
        const metrics_operation *o = &rows->operations[i];

        for (size_t row = 0; row < o->unheld.rows; row++) {
            const char *channel = db_get_text(&o->unheld, row, METRICS_CHANNEL);
            const int64_t us = deadline_of(&o->unheld, channel);

            if (us != 0 && is_first_of_channel(&o->unheld, row))
                metrics_line(m, name, us - o->now_us, 6, "operation", o->op_code, "channel",
                             channel, NULL);
        }
    }
}

static void write_conflicts(metrics_text *m, const metrics_rows *rows, const char *name,
                            const char *help, unsigned column)
{
    const db_result *r = &rows->conflicts;

    metrics_begin(m, name, "gauge", help);
    for (size_t row = 0; row < r->rows; row++)
        metrics_line_text(m, name, db_get_text(r, row, column), "operation",
                          db_get_text(r, row, CONFLICT_OP), "channel",
                          db_get_text(r, row, CONFLICT_CHANNEL), "currency",
                          db_get_text(r, row, CONFLICT_CURRENCY), NULL);
    for (size_t i = 0; i < rows->count; i++)
        if (metrics_row_of(r, rows->operations[i].op_code, NULL) == SIZE_MAX)
            metrics_line(m, name, 0, 0, "operation", rows->operations[i].op_code, NULL);
}

struct currencies {
    char seen[256][8]; /* or "unknown" */
    size_t count;
};

static void write_digits(metrics_text *m, struct currencies *c, const db_result *r, unsigned column)
{
    for (size_t row = 0; row < r->rows; row++) {
        const char *currency = db_get_text(r, row, column);
        const int digits = tl_currency_digits(currency);
        size_t i = 0;

        while (i < c->count && strcmp(c->seen[i], currency) != 0)
            i++;
        if (i < c->count || i == sizeof c->seen / sizeof c->seen[0])
            continue;
        text_copy(c->seen[c->count++], sizeof c->seen[0], currency);
        metrics_line(m, "tradelock_currency_digits", digits > 0 ? digits : 0, 0, "currency",
                     currency, NULL);
    }
}

/* Each currency once, by which a dashboard shows money as people write it. */
static void write_currencies(metrics_text *m, const metrics_rows *rows)
{
    struct currencies c = {.count = 0};

    metrics_begin(m, "tradelock_currency_digits", "gauge",
                  "How many digits of its minor units stand behind the point, by ISO 4217.");
    for (size_t i = 0; i < rows->count; i++) {
        write_digits(m, &c, &rows->operations[i].unheld, METRICS_CURRENCY);
        write_digits(m, &c, &rows->operations[i].working, METRICS_CURRENCY);
    }
    write_digits(m, &c, &rows->conflicts, CONFLICT_CURRENCY);
}

/* ---------------------------------------------------------------------- operations -- */

/* One line for each channel that is known for the operation, 0 where nothing is due; and for others
 * at which something is. */
static void write_due(metrics_text *m, const metrics_rows *rows, const char *name, const char *help,
                      unsigned column, unsigned decimals)
{
    const db_result *known = &rows->paused;

    metrics_begin(m, name, "gauge", help);
    for (size_t i = 0; i < rows->count; i++) {
        const metrics_operation *o = &rows->operations[i];

        for (size_t row = 0; row < known->rows; row++)
            if (strcmp(db_get_text(known, row, 1), o->op_code) == 0 &&
                metrics_row_of(&o->due, db_get_text(known, row, 0), NULL) == SIZE_MAX)
                metrics_line(m, name, 0, decimals, "operation", o->op_code, "channel",
                             db_get_text(known, row, 0), NULL);
        for (size_t row = 0; row < o->due.rows; row++)
            metrics_line(m, name, db_get_int(&o->due, row, column), decimals, "operation",
                         o->op_code, "channel", db_get_text(&o->due, row, 0), NULL);
    }
}

/* `member`: where the number stands in a metrics_operation. */
static void write_each(metrics_text *m, const metrics_rows *rows, const char *name,
                       const char *help, size_t member, unsigned decimals)
{
    metrics_begin(m, name, "gauge", help);
    for (size_t i = 0; i < rows->count; i++) {
        const metrics_operation *o = &rows->operations[i];
        int64_t value;

        memcpy(&value, (const char *)o + member, sizeof value);
        metrics_line(m, name, value, decimals, "operation", o->op_code, NULL);
    }
}

static void write_operations(metrics_text *m, const metrics_rows *rows)
{
    write_trades(m, rows, "tradelock_trades",
                 "Trades without an end that nobody holds (in_doubt, queued, parked) or that a "
                 "compensating attempt holds (working), by the time since they were asked for.",
                 METRICS_COUNT);
    write_trades(m, rows, "tradelock_trades_amount_minor_units",
                 "Their money, in minor units of the currency.", METRICS_MINOR);
    write_oldest(m, rows);
    write_deadlines(m, rows);
    write_each(m, rows, "tradelock_trades_not_counted",
               "1: there are more of them than were counted.", offsetof(metrics_operation, is_cut),
               0);
    write_conflicts(m, rows, "tradelock_conflicts",
                    "Trades that evidence contradicts, at most 100,000.", CONFLICT_COUNT);
    write_conflicts(m, rows, "tradelock_conflicts_amount_minor_units",
                    "Their money, in minor units of the currency.", CONFLICT_MINOR);
    write_currencies(m, rows);
    write_due(m, rows, "tradelock_due_lanes",
              "Compensating attempts that are due and that no worker has claimed, at most "
              "10,000 of an operation.",
              1, 0);
    write_due(m, rows, "tradelock_due_lanes_oldest_seconds",
              "For how long the oldest of them has been due.", 2, 6);
    write_each(m, rows, "tradelock_overdue_holds",
               "Trades that are held for longer than their max_hold, at most 10,000.",
               offsetof(metrics_operation, overdue), 0);
    write_each(m, rows, "tradelock_overdue_holds_oldest_seconds",
               "For how long the oldest of them has been over.",
               offsetof(metrics_operation, overdue_us), 6);
    write_each(m, rows, "tradelock_low_water_lag_seconds",
               "How far in the past the operation may still have an unresolved row.",
               offsetof(metrics_operation, lag_us), 6);
}

/* -------------------------------------------------------------------- the database -- */

/* Each program that has a session has a line of each state. */
static void write_sessions(metrics_text *m, const db_result *r)
{
    static const char name[] = "tradelock_sessions";
    static const char *const all[] = {"alive", "silent", "ended"};

    metrics_begin(m, name, "gauge",
                  "Processes by what is known of them: alive, silent for longer than their "
                  "time-out, or ended with work that nobody has taken over yet.");
    for (size_t row = 0; row < r->rows; row++) {
        const char *program = db_get_text(r, row, 0);

        metrics_line(m, name, db_get_int(r, row, 2), 0, "program", program, "state",
                     db_get_text(r, row, 1), NULL);
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            if (metrics_row_of(r, program, NULL) == row &&
                metrics_row_of(r, program, all[i]) == SIZE_MAX)
                metrics_line(m, name, 0, 0, "program", program, "state", all[i], NULL);
    }
}

/* One line for each row, which begins with channel and operation. */
static void write_channels(metrics_text *m, const db_result *r, const char *name, const char *type,
                           const char *help, unsigned column, unsigned decimals)
{
    metrics_begin(m, name, type, help);
    for (size_t row = 0; row < r->rows; row++)
        metrics_line(m, name, db_get_int(r, row, column), decimals, "channel",
                     db_get_text(r, row, 0), "operation", db_get_text(r, row, 1), NULL);
}

/* Where `of` is 0 there is no such limit, and no line. */
static void write_limits(metrics_text *m, const db_result *r, const char *name, const char *help,
                         unsigned of, unsigned column)
{
    metrics_begin(m, name, "gauge", help);
    for (size_t row = 0; row < r->rows; row++)
        if (db_get_int(r, row, of) > 0)
            metrics_line(m, name, db_get_int(r, row, column), 0, "channel",
                         db_get_text(r, row, COLUMN_channel_use_channel), "operation",
                         db_get_text(r, row, COLUMN_channel_use_op_code), NULL);
}

static void write_limited(metrics_text *m, const db_result *r)
{
    write_limits(m, r, "tradelock_channel_limit_sends",
                 "How many sends at a time operators let through the channel for the operation; no "
                 "line: any number.  The operation is empty for all of them together.",
                 COLUMN_channel_use_sends, COLUMN_channel_use_sends);
    write_limits(m, r, "tradelock_channel_limit_sends_per_second",
                 "How many sends a second they let begin.", COLUMN_channel_use_per_second,
                 COLUMN_channel_use_per_second);
    write_limits(m, r, "tradelock_channel_permits",
                 "How many of the sends at a time processes have as permits now.",
                 COLUMN_channel_use_sends, COLUMN_channel_use_permits);
}

static void write_breakers(metrics_text *m, const db_result *r)
{
    write_channels(m, r, "tradelock_channel_breaker_open_seconds", "gauge",
                   "For how long the channel's breaker has been open for the operation; 0: closed; "
                   "no line: it has none.  The operation is empty for a channel as a whole.",
                   2, 6);
    write_channels(m, r, "tradelock_channel_breaker_openings_total", "counter",
                   "How often the breaker has opened.", 3, 0);
}

static void write_server(metrics_text *m, const metrics_rows *rows)
{
    const db_result *r = &rows->server;

    metrics_one(m, "tradelock_server_fit", "gauge",
                "1: the server's settings are safe for money, and it takes writes.", rows->is_fit,
                0);
    if (r->rows == 0)
        return;
    metrics_one(m, "tradelock_restore_open", "gauge",
                "1: the database may lack commits, and two operators have not accepted that.",
                db_get_int(r, 0, 0), 0);
    metrics_one(m, "tradelock_restores_total", "counter", "Restores that were declared or found.",
                db_get_int(r, 0, 1), 0);
    metrics_one(m, "tradelock_clock_jumps_total", "counter",
                "How often the server's clock was set.", db_get_int(r, 0, 2), 0);
    metrics_one(m, "tradelock_clock_jumps_open", "gauge",
                "Clock jumps to which the rows are not adjusted yet.", db_get_int(r, 0, 3), 0);
}

static void write_proposals(metrics_text *m, const db_result *r)
{
    metrics_one(m, "tradelock_proposals", "gauge",
                "Decisions about trades and findings that wait for a second person, of the newest "
                "1,000 each.",
                db_get_int(r, 0, 0), 0);
    metrics_one(m, "tradelock_oldest_proposal_age_seconds", "gauge",
                "For how long the oldest of them has waited; 0 without one.", db_get_int(r, 0, 1),
                6);
}

/* Moments, and 0 without one, so that an alert also finds that there was none. */
static void write_audits(metrics_text *m, const metrics_rows *rows)
{
    tl_audited audit, statement;

    metrics_audits(rows, &audit, &statement);
    metrics_one(m, "tradelock_last_audit_timestamp_seconds", "gauge",
                "When the last audit on record ended, since 1970; 0: there is none.", audit.at_us,
                6);
    metrics_one(m, "tradelock_last_audit_violations", "gauge",
                "Broken promises that it found and nobody has closed.", (int64_t)audit.violations,
                0);
    metrics_one(m, "tradelock_last_statement_timestamp_seconds", "gauge",
                "When the last audit with a channel's statement ended; 0: there is none.",
                statement.at_us, 6);
    metrics_one(m, "tradelock_last_statement_differences", "gauge",
                "Differences between that statement and the trades.",
                (int64_t)statement.differences, 0);
}

static void write_tables(metrics_text *m, const char *name, const char *help, const db_result *r,
                         unsigned column)
{
    metrics_begin(m, name, "gauge", help);
    for (size_t row = 0; row < r->rows; row++)
        metrics_line(m, name, db_get_int(r, row, column), 0, "table", db_get_text(r, row, 0), NULL);
}

static tl_status write_all(const metrics_rows *rows, tl_metrics_fn write, void *context)
{
    metrics_text m = {.write = write, .context = context};

    write_operations(&m, rows);
    write_sessions(&m, &rows->sessions);
    write_channels(&m, &rows->paused, "tradelock_channel_paused_seconds", "gauge",
                   "For how long operators have had the channel paused for the operation; 0: it is "
                   "open.  The operation is empty for a channel as a whole.",
                   2, 6);
    write_limited(&m, &rows->limited);
    write_breakers(&m, &rows->breakers);
    write_server(&m, rows);
    write_proposals(&m, &rows->proposals);
    write_audits(&m, rows);
    write_tables(&m, "tradelock_table_rows", "About how many rows the table has.", &rows->tables,
                 1);
    write_tables(&m, "tradelock_table_size_bytes", "About how large it is, indexes included.",
                 &rows->tables, 2);
    return metrics_end(&m);
}

tl_status tl_metrics_write_database(tl_client *client, tl_metrics_fn write, void *context)
{
    READING at = {.client = client};
    metrics_rows rows = {0};
    tl_status status;

    TRY(read_begin(&at));
    if (write == NULL)
        return error_set(TL_INVALID, "write is NULL");
    status = metrics_read(&rows, at.connection);
    read_end(&at);
    if (status == TL_OK)
        status = write_all(&rows, write, context);
    metrics_free(&rows);
    return status;
}
