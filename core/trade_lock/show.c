/*
 * Looking at a trade: one row with what belongs to it on the other lane, and the evidence that was
 * filed about it.  Nothing is written, and no session is needed.
 */
#include "client/read.h"

#include "base/error.h"
#include "store/bind.h"
#include "store/record.h"
#include "store/store.h"
#include "store/view.h"

#include "sql_text.h"

#include <tradelock/tradelock.h>

/* Whether an open transaction stands in the way of whoever goes on with this row.  An account that
 * may not lock rows is not told. */
static int is_being_decided(db *connection, const tl_view *view)
{
    return view->status == 'P' &&
           SQL_RUN(connection, NULL, row_held, .cust_no = db_text(view->cust_no),
                   .serial_no = db_text(view->serial_no),
                   .op_code = db_text(view->op_code)) == DB_ERROR &&
           db_error_kind_of(db_errno(connection)) == DB_KIND_REPEAT;
}

/* A holder that was killed seems to live until its session is over; this tells. */
static int64_t silence_of(db *connection, const tl_view *view)
{
    RESULT result = DB_RESULT_INIT;
    int64_t silent_ms = -1;

    if (view->session_id[0] != '\0' &&
        SQL_RUN(connection, &result, holder_silent, .session_id = db_text(view->session_id)) ==
            DB_DONE &&
        result.rows == 1)
        silent_ms = db_get_int(&result, 0, 0);
    return silent_ms;
}

tl_status tl_show(tl_client *client, const tl_key *key, tl_lane lane, tl_view_fn each,
                  void *context)
{
    READING at = {.client = client};
    RESULT result = DB_RESULT_INIT;
    char retry_op[TL_OP_MAX + 1];
    const char *op_code;
    view_inside inside;
    tl_view view;

    TRY(read_begin(&at));
    TRY(read_check_each(each != NULL));
    TRY(read_key(key, retry_op));
    op_code = lane == TL_LANE_SYNC ? key->op_code : retry_op;
    TRY(read_status(at.connection,
                    store_view(at.connection, key->cust_no, key->serial_no, op_code, &result),
                    "reading the row"));
    if (result.rows == 0)
        return error_set(TL_NOT_FOUND, "there is no row %s %s %s", key->serial_no, key->cust_no,
                         op_code);
    view_read(&view, &inside, &result, 0);
    view.holder_silent_ms = silence_of(at.connection, &view);
    view.being_decided = is_being_decided(at.connection, &view);
    read_end(&at);
    each(context, &view);
    return TL_OK;
}

/* So many rows in one statement: their payloads are in memory together. */
#define ROWS_AT_ONCE 64

/* Reads them with a connection of its own, which is given back before anybody looks. */
static tl_status show_some(tl_client *client, const tl_key *keys, size_t count, tl_view_fn each,
                           void *context, int *enough)
{
    READING at = {.client = client};
    RESULT result = DB_RESULT_INIT;
    tl_status status;

    TRY(read_begin(&at));
    READ_REPEATED(status,
                  read_status(at.connection, store_list_views(at.connection, keys, count, &result),
                              "reading rows"));
    TRY(status);
    read_end(&at);
    for (size_t row = 0; !*enough && row < result.rows; row++) {
        view_inside inside;
        tl_view view;

        view_read(&view, &inside, &result, row);
        *enough = each(context, &view) != 0;
    }
    return TL_OK;
}

tl_status tl_show_many(tl_client *client, const tl_key *keys, size_t count, tl_view_fn each,
                       void *context)
{
    char retry_op[TL_OP_MAX + 1];
    int enough = 0;

    error_clear();
    TRY(client_check(client));
    TRY(read_check_each(each != NULL));
    if (keys == NULL && count > 0)
        return error_set(TL_INVALID, "keys is NULL");
    for (size_t i = 0; i < count; i++)
        TRY(read_key(&keys[i], retry_op));
    for (size_t i = 0; !enough && i < count; i += ROWS_AT_ONCE)
        TRY(show_some(client, keys + i, count - i < ROWS_AT_ONCE ? count - i : ROWS_AT_ONCE, each,
                      context, &enough));
    return TL_OK;
}

#define AT(member) COLUMN_evidence_list_##member

static void evidence_read(tl_evidence_row *to, const db_result *result, size_t row)
{
    TL_EVIDENCE_MAP(RECORD_READ);
    to->amount.is_told = !db_is_null(result, row, AT(amount_minor));
    to->amount.amount_minor = db_get_int(result, row, AT(amount_minor));
    to->amount.currency = record_string(result, row, AT(currency));
    to->contradicts = (int)db_get_int(result, row, AT(contradicts));
}

tl_status tl_evidence_list(tl_client *client, const tl_key *key, tl_evidence_fn each, void *context)
{
    RESULT rows = DB_RESULT_INIT;
    tl_status status = read_check_each(each != NULL);

    if (status == TL_OK)
        status = read_of_trade(client, key, store_evidence_list, "reading the evidence", &rows);

    for (size_t row = 0; status == TL_OK && row < rows.rows; row++) {
        tl_evidence_row one;

        evidence_read(&one, &rows, row);
        if (each(context, &one) != 0)
            break;
    }
    return status;
}
