/* Reads what waits in the database.  Reads only, by index, and so many rows at most. */
#include "admin/metrics_rows.h"

#include "admin/statements.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "client/read.h"
#include "client/schema.h"
#include "client/server.h"
#include "store/bind.h"

#include "sql_text.h"

#include <tradelock/layer.h>

#include <stdio.h>
#include <string.h>

/* A statement that is older than so many audits is not looked for. */
#define AUDITS 400
/* Nor a proposal that is older than so many decisions. */
#define PROPOSALS 1000

uint64_t table_rows(const db_result *tables, const char *table)
{
    for (size_t row = 0; row < tables->rows; row++)
        if (strcmp(db_get_text(tables, row, 0), table) == 0)
            return db_get_uint(tables, row, 1);
    return 0;
}

/* The entry of a business operation, made on first use; NULL when out of memory. */
static metrics_operation *operation_of(metrics_rows *rows, const char *op_code)
{
    const size_t size = tl_business_op_size(op_code);

    for (size_t i = 0; i < rows->count; i++)
        if (strncmp(rows->operations[i].op_code, op_code, size) == 0 &&
            rows->operations[i].op_code[size] == '\0')
            return &rows->operations[i];
    if (!memory_room(&rows->operations, rows->count, sizeof *rows->operations))
        return NULL;
    memset(&rows->operations[rows->count], 0, sizeof *rows->operations);
    memcpy(rows->operations[rows->count].op_code, op_code, size);
    return &rows->operations[rows->count++];
}

static tl_status read_operations(metrics_rows *rows, db *connection)
{
    store_operation next = {.op_code = ""};
    tl_status status;

    for (;;) {
        metrics_operation *o;

        status = read_status(connection, store_operation_next(connection, &next),
                             "reading the operations");
        if (status != TL_OK || next.op_code[0] == '\0')
            return status;
        o = operation_of(rows, next.op_code);
        if (o == NULL)
            return error_set(TL_NO_MEMORY, "out of memory for the operations");
        o->now_us = next.now_us;
        if (!text_is_retry_op(next.op_code))
            o->low_water_us = next.low_water_us;
    }
}

static int64_t count_of(const db_result *trades)
{
    int64_t count = 0;

    for (size_t row = 0; row < trades->rows; row++)
        count += db_get_int(trades, row, METRICS_COUNT);
    return count;
}

static tl_status read_trades(metrics_operation *o, db *connection, const char *retry_op)
{
    TRY(read_status(connection,
                    SQL_RUN(connection, &o->unheld, metrics_trades, .op_code = db_text(o->op_code),
                            .retry_op = db_text(retry_op), .most = db_uint(METRICS_ROWS)),
                    "counting trades that wait"));
    TRY(read_status(connection,
                    SQL_RUN(connection, &o->working, metrics_working,
                            .op_code = db_text(o->op_code), .retry_op = db_text(retry_op),
                            .most = db_uint(METRICS_ROWS)),
                    "counting trades that are worked on"));
    o->is_cut = count_of(&o->unheld) >= METRICS_ROWS || count_of(&o->working) >= METRICS_ROWS;
    return TL_OK;
}

/* Takes the count and the time of the one row. */
static void take_late(const db_result *r, int64_t *count, int64_t *late_us)
{
    *count = r->rows == 1 ? db_get_int(r, 0, 0) : 0;
    *late_us = r->rows == 1 ? db_get_int(r, 0, 1) : 0;
}

static tl_status read_late(metrics_operation *o, db *connection, const char *retry_op)
{
    RESULT r = DB_RESULT_INIT;

    TRY(read_status(connection,
                    SQL_RUN(connection, &o->due, metrics_due, .op_code = db_text(o->op_code),
                            .retry_op = db_text(retry_op), .most = db_uint(METRICS_OVERDUE_ROWS)),
                    "looking for due work"));
    TRY(read_status(connection,
                    SQL_RUN(connection, &r, metrics_overdue, .op_code = db_text(o->op_code),
                            .from_us = db_int(o->low_water_us),
                            .most = db_uint(METRICS_OVERDUE_ROWS)),
                    "looking for holds that are over"));
    take_late(&r, &o->overdue, &o->overdue_us);
    return TL_OK;
}

static tl_status read_operation(metrics_operation *o, db *connection)
{
    char retry_op[TL_OP_MAX + sizeof TL_RETRY_SUFFIX];

    snprintf(retry_op, sizeof retry_op, "%s%s", o->op_code, TL_RETRY_SUFFIX);
    TRY(read_trades(o, connection, retry_op));
    if (o->low_water_us > 1000000 && o->now_us > o->low_water_us)
        o->lag_us = o->now_us - o->low_water_us;
    return read_late(o, connection, retry_op);
}

static tl_status read_rest(metrics_rows *rows, db *connection)
{
    TRY(read_status(
        connection,
        SQL_RUN(connection, &rows->conflicts, metrics_conflicts, .most = db_uint(METRICS_ROWS)),
        "counting conflicts"));
    TRY(read_run(connection, &sql_metrics_sessions, &rows->sessions, "counting sessions"));
    TRY(read_run(connection, &sql_metrics_paused, &rows->paused,
                 "reading which channels are paused"));
    TRY(read_status(
        connection,
        SQL_RUN(connection, &rows->proposals, metrics_proposals, .most = db_uint(PROPOSALS)),
        "looking for proposals"));
    TRY(read_run(connection, &sql_channel_use, &rows->limited,
                 "reading how much of the channels' limits is used"));
    TRY(read_run(connection, &sql_metrics_breakers, &rows->breakers,
                 "reading the breakers of channels"));
    TRY(read_run(connection, &sql_metrics_server, &rows->server,
                 "looking for restores and clock jumps"));
    TRY(read_status(connection,
                    SQL_RUN(connection, &rows->audits, audit_noted, .most = db_uint(AUDITS)),
                    "looking for the last audit"));
    return read_run(connection, &sql_metrics_tables, &rows->tables,
                    "asking how large the tables are");
}

/* A server whose settings are not safe is one of the things to be told. */
static tl_status read_fitness(metrics_rows *rows, db *connection)
{
    schema_found found;
    tl_status status = server_check_settings(connection);

    rows->is_fit = status == TL_OK;
    if (status != TL_OK && status != TL_SERVER_UNSAFE && status != TL_READ_ONLY)
        return status;
    status = schema_read(connection, &found);
    return status == TL_OK ? schema_judge(&found) : status;
}

size_t metrics_row_of(const db_result *r, const char *channel, const char *op_code)
{
    for (size_t row = 0; row < r->rows; row++)
        if (strcmp(db_get_text(r, row, 0), channel) == 0 &&
            (op_code == NULL || strcmp(db_get_text(r, row, 1), op_code) == 0))
            return row;
    return SIZE_MAX;
}

int metrics_is_paused(const metrics_rows *rows, const char *channel, const char *op_code)
{
    const size_t own = metrics_row_of(&rows->paused, channel, op_code),
                 all = metrics_row_of(&rows->paused, TL_CHANNEL_ALL, "");

    return (own != SIZE_MAX && db_get_int(&rows->paused, own, 2) > 0) ||
           (all != SIZE_MAX && db_get_int(&rows->paused, all, 2) > 0);
}

void metrics_audits(const metrics_rows *rows, tl_audited *audit, tl_audited *statement)
{
    const db_result *r = &rows->audits;

    *audit = *statement = (tl_audited){.at_us = 0};
    for (size_t row = 0; row < r->rows; row++) {
        tl_audited one = {.at_us = db_get_int(r, row, COLUMN_audit_noted_at_us),
                          .rows = db_get_uint(r, row, COLUMN_audit_noted_rows_read),
                          .payments = db_get_uint(r, row, COLUMN_audit_noted_payments),
                          .violations = db_get_uint(r, row, COLUMN_audit_noted_violations),
                          .differences = db_get_uint(r, row, COLUMN_audit_noted_differences)};

        text_copy(one.account, sizeof one.account, db_get_text(r, row, COLUMN_audit_noted_account));
        text_copy(one.statement, sizeof one.statement,
                  db_get_text(r, row, COLUMN_audit_noted_statement));
        if (one.statement[0] != '\0')
            *statement = one;
        if (one.at_us > audit->at_us)
            *audit = one;
    }
}

tl_status metrics_read(metrics_rows *rows, db *connection)
{
    TRY(read_fitness(rows, connection));
    TRY(read_operations(rows, connection));
    for (size_t i = 0; i < rows->count; i++)
        TRY(read_operation(&rows->operations[i], connection));
    return read_rest(rows, connection);
}

void metrics_free(metrics_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        db_result_free(&rows->operations[i].unheld);
        db_result_free(&rows->operations[i].working);
        db_result_free(&rows->operations[i].due);
    }
    memory_free(rows->operations);
    db_result_free(&rows->conflicts);
    db_result_free(&rows->sessions);
    db_result_free(&rows->paused);
    db_result_free(&rows->proposals);
    db_result_free(&rows->limited);
    db_result_free(&rows->breakers);
    db_result_free(&rows->server);
    db_result_free(&rows->tables);
    db_result_free(&rows->audits);
}
