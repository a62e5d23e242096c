/* Who is logged in, and how things are at this moment.  Reads by index, one page of each. */
#include "client/read.h"

#include "base/error.h"
#include "base/text.h"
#include "store/bind.h"
#include "store/store.h"
#include "store/view.h"

#include <tradelock/admin/now.h>

#include <string.h>

#define PROCESS_DEFAULT 200
#define CONFLICT_DEFAULT 100
#define PACE_ROWS 20000
#define MINUTE_US INT64_C(60000000)

/* ----------------------------------------------------------------- account -- */

/* What asks for the account's own password. */
static int asks_for_password(const char *plugin, size_t size)
{
    static const char *const plugins[] = {"mysql_native_password", "ed25519", "parsec",
                                          "caching_sha2_password", "pam"};

    for (size_t i = 0; i < sizeof plugins / sizeof plugins[0]; i++)
        if (strlen(plugins[i]) == size && strncmp(plugins[i], plugin, size) == 0)
            return 1;
    return 0;
}

/* Behind "USING '...'", if that stands there. */
static const char *behind_using(const char *text)
{
    if (strncmp(text, " USING '", 8) != 0)
        return text;
    text += 8;
    while (*text != '\0' && *text != '\'')
        text += text[0] == '\\' && text[1] != '\0' ? 2 : 1;
    return *text == '\'' ? text + 1 : text;
}

/* Judges "... IDENTIFIED BY PASSWORD '*..'" and "... IDENTIFIED VIA a USING '..' OR b ...". */
static int needs_password(const char *made)
{
    const char *via = strstr(made, " IDENTIFIED VIA ");

    if (via == NULL)
        return strstr(made, " IDENTIFIED BY PASSWORD '") != NULL;
    via += strlen(" IDENTIFIED VIA ");
    for (;;) {
        const size_t size = strcspn(via, " ");

        if (!asks_for_password(via, size))
            return 0;
        via = behind_using(via + size);
        if (strncmp(via, " OR ", 4) != 0)
            return 1;
        via += 4;
    }
}

/* Whether a statement that touches no row is allowed. */
static tl_status try_right(db *connection, const struct sql_text *statement, int *may)
{
    const db_answer answer = db_run(connection, statement, NULL, 0, NULL);

    *may = answer == DB_DONE;
    return answer == DB_DONE || answer == DB_ERROR
               ? TL_OK
               : read_status(connection, answer, "trying the rights");
}

static tl_status look_at_account(db *connection, tl_account *account)
{
    db_result r = DB_RESULT_INIT;
    tl_status status = read_status(connection, db_run(connection, &sql_account_name, NULL, 0, &r),
                                   "asking who is connected");

    if (status == TL_OK && r.rows == 1) {
        text_copy(account->name, sizeof account->name, db_get_text(&r, 0, 0));
        text_copy(account->database, sizeof account->database, db_get_text(&r, 0, 1));
        status = read_status(connection, db_run(connection, &sql_account_made, NULL, 0, &r),
                             "asking how the account is told");
        if (status == TL_OK && r.rows == 1)
            account->needs_password = needs_password(db_get_text(&r, 0, 0));
    }
    db_result_free(&r);
    return status;
}

tl_status tl_account_look(tl_client *client, tl_account *account)
{
    db *connection = NULL;
    tl_account found = TL_ACCOUNT_INIT;
    tl_status status = read_begin(client, &connection);

    if (status == TL_OK && (account == NULL || account->version != TL_ACCOUNT_VERSION))
        status = error_set(TL_INVALID, "account is NULL or its version is not set");
    if (status == TL_OK)
        status = look_at_account(connection, &found);
    if (status == TL_OK)
        status = try_right(connection, &sql_right_read_log, &found.may_read);
    if (status == TL_OK)
        status = try_right(connection, &sql_right_decide, &found.may_decide);
    if (status == TL_OK)
        *account = found;
    read_end(client, connection);
    return status;
}

/* --------------------------------------------------------------- processes -- */

enum process_column {
    PROCESS_SESSION,
    PROCESS_PROGRAM,
    PROCESS_HOST,
    PROCESS_PID,
    PROCESS_OPERATIONS,
    PROCESS_ALIVE,
    PROCESS_STARTED,
    PROCESS_NOW,
    PROCESS_SILENT
};

static void process_read(tl_process *one, const db_result *rows, size_t row)
{
    one->session_id = db_get_text(rows, row, PROCESS_SESSION);
    one->program = db_get_text(rows, row, PROCESS_PROGRAM);
    one->host = db_get_text(rows, row, PROCESS_HOST);
    one->pid = (unsigned)db_get_uint(rows, row, PROCESS_PID);
    one->operations = db_get_text(rows, row, PROCESS_OPERATIONS);
    one->alive = db_get_int(rows, row, PROCESS_ALIVE) != 0;
    one->started_us = db_get_int(rows, row, PROCESS_STARTED);
    one->now_us = db_get_int(rows, row, PROCESS_NOW);
    one->silent_ms = db_get_int(rows, row, PROCESS_SILENT);
}

tl_status tl_process_list(tl_client *client, unsigned limit, tl_process_fn each, void *context)
{
    db_result rows = DB_RESULT_INIT;
    db *connection = NULL;
    tl_status status = read_begin(client, &connection);

    if (status == TL_OK)
        status = read_check_each(each != NULL);
    if (status == TL_OK)
        status = read_status(connection,
                             SQL_RUN(connection, &rows, process_list,
                                     .most = db_uint(limit > 0 ? limit : PROCESS_DEFAULT)),
                             "reading who runs");
    read_end(client, connection);
    for (size_t row = 0; status == TL_OK && row < rows.rows; row++) {
        tl_process one;

        process_read(&one, &rows, row);
        if (each(context, &one) != 0)
            break;
    }
    db_result_free(&rows);
    return status;
}

/* -------------------------------------------------------------------- pace -- */

enum pace_column { PACE_NOW, PACE_MINUTE, PACE_PAID, PACE_LOOKED_AT, PACE_EARLIEST };

static void pace_begin(tl_pace *pace, int64_t this_minute)
{
    if (pace->minute_us == 0)
        pace->minute_us = this_minute * MINUTE_US;
}

/* Adds what one operation paid, as it was read. */
static void pace_add(tl_pace *pace, const db_result *rows)
{
    uint64_t looked_at = 0;
    int64_t earliest = INT64_MAX, now = 0;

    for (size_t row = 0; row < rows->rows; row++) {
        pace_begin(pace, db_get_int(rows, row, PACE_NOW));
        now = pace->minute_us / MINUTE_US;
        const int64_t ago = now - db_get_int(rows, row, PACE_MINUTE);

        if (ago >= 0 && ago < TL_PACE_MINUTES)
            pace->paid[ago] += db_get_uint(rows, row, PACE_PAID);
        looked_at += db_get_uint(rows, row, PACE_LOOKED_AT);
        if (db_get_int(rows, row, PACE_EARLIEST) < earliest)
            earliest = db_get_int(rows, row, PACE_EARLIEST);
    }
    /* What ended in the minute of the earliest end was perhaps cut off. */
    if (looked_at >= PACE_ROWS && now - earliest < (int64_t)pace->whole)
        pace->whole = now > earliest ? (unsigned)(now - earliest) : 0;
}

static tl_status pace_read(db *connection, tl_pace *pace)
{
    store_operation operation = {.op_code = ""};
    db_result rows = DB_RESULT_INIT;
    tl_status status;

    do {
        status = read_status(connection, store_operation_next(connection, &operation),
                             "reading the operations");
        if (status != TL_OK || operation.op_code[0] == '\0' || text_is_retry_op(operation.op_code))
            continue;
        status =
            read_status(connection,
                        SQL_RUN(connection, &rows, pace, .op_code = db_text(operation.op_code),
                                .minutes = db_uint(TL_PACE_MINUTES), .most = db_uint(PACE_ROWS)),
                        "counting payments");
        if (status == TL_OK)
            pace_add(pace, &rows);
    } while (status == TL_OK && operation.op_code[0] != '\0');
    db_result_free(&rows);
    return status;
}

tl_status tl_pace_look(tl_client *client, tl_pace *pace)
{
    db *connection = NULL;
    tl_pace found = TL_PACE_INIT;
    tl_status status = read_begin(client, &connection);

    found.whole = TL_PACE_MINUTES;
    if (status == TL_OK && (pace == NULL || pace->version != TL_PACE_VERSION))
        status = error_set(TL_INVALID, "pace is NULL or its version is not set");
    if (status == TL_OK)
        status = pace_read(connection, &found);
    if (status == TL_OK)
        *pace = found;
    read_end(client, connection);
    return status;
}

/* --------------------------------------------------------------- conflicts -- */

struct conflicts {
    db *connection;
    unsigned limit;
    tl_view_fn each;
    void *context;
};

static tl_status show_conflict(const struct conflicts *c, const db_result *keys, size_t row,
                               db_result *found, int *stopped)
{
    view_inside inside;
    tl_view view;
    tl_status status =
        read_status(c->connection,
                    store_view(c->connection, db_get_text(keys, row, 0), db_get_text(keys, row, 1),
                               db_get_text(keys, row, 2), found),
                    "reading a row");

    if (status != TL_OK || found->rows == 0)
        return status;
    view_read(&view, &inside, found, 0);
    /* Operators may have decided meanwhile. */
    if (view.conflict && c->each(c->context, &view) != 0)
        *stopped = 1;
    return status;
}

static int list_conflicts(void *context)
{
    const struct conflicts *c = context;
    db_result keys = DB_RESULT_INIT, found = DB_RESULT_INIT;
    int stopped = 0;
    tl_status status = read_status(
        c->connection, SQL_RUN(c->connection, &keys, conflict_list, .most = db_uint(c->limit)),
        "looking for conflicts");

    for (size_t row = 0; status == TL_OK && !stopped && row < keys.rows; row++)
        status = show_conflict(c, &keys, row, &found, &stopped);
    db_result_free(&found);
    db_result_free(&keys);
    return (int)status;
}

tl_status tl_conflict_list(tl_client *client, unsigned limit, tl_view_fn each, void *context)
{
    struct conflicts conflicts = {
        .limit = limit > 0 ? limit : CONFLICT_DEFAULT, .each = each, .context = context};
    tl_status status = read_begin(client, &conflicts.connection);

    if (status == TL_OK)
        status = read_check_each(each != NULL);
    if (status == TL_OK)
        status = read_and_show(client, conflicts.connection, list_conflicts, &conflicts);
    read_end(client, conflicts.connection);
    return status;
}
