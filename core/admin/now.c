/* Who is logged in, and how things are at this moment.  Reads by index, one page of each. */
#include "client/read.h"

#include "base/error.h"
#include "base/text.h"
#include "store/bind.h"
#include "store/store.h"

#include <tradelock/admin/now.h>

#include <string.h>

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
