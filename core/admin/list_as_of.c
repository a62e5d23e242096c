/* What a row was at a moment, by its history.  Reads only. */
#include "admin/list.h"

#include "client/read.h"

#include "base/error.h"
#include "base/text.h"
#include "store/bind.h"
#include "store/view.h"

#include <stdio.h>
#include <string.h>

#define AT(column) COLUMN_timeline_##column

/* The last steps of a trade up to a moment; NO_STEP: there was none. */
#define NO_STEP SIZE_MAX
struct last_steps {
    db_result rows;
    size_t own, retry;
};

static void find_last(struct last_steps *last, const tl_view *view, int64_t as_of_us)
{
    uint64_t own_rev = 0, retry_rev = 0;

    last->own = last->retry = NO_STEP;
    for (size_t row = 0; row < last->rows.rows; row++) {
        const char *op_code = db_get_text(&last->rows, row, AT(op_code));
        const uint64_t rev = db_get_uint(&last->rows, row, AT(rev));

        if (db_get_int(&last->rows, row, AT(logged_us)) > as_of_us)
            continue;
        if (strcmp(op_code, view->op_code) == 0 && rev >= own_rev) {
            last->own = row;
            own_rev = rev;
        }
        if (view->lane == 'S' && text_is_retry_op(op_code) && rev >= retry_rev) {
            last->retry = row;
            retry_rev = rev;
        }
    }
}

static int is_deleted(const struct last_steps *last, size_t row)
{
    return strcmp(db_get_text(&last->rows, row, AT(step)), "deleted") == 0;
}

#define TAKE_TEXT(field, row)                                                                      \
    text_copy(view->field, sizeof view->field, db_get_text(&last->rows, row, AT(field)))

static void take_own(tl_view *view, const struct last_steps *last)
{
    const db_result *rows = &last->rows;
    const size_t row = last->own;

    if (view->rev != db_get_uint(rows, row, AT(rev))) {
        /* What no history keeps may have changed since. */
        view->retryable = view->seen_by_channel = view->cancel_tried = 0;
        view->not_found_since_us = 0;
        view->result = NULL;
        view->result_size = 0;
    }
    view->status = db_get_text(rows, row, AT(status))[0];
    view->rev = db_get_uint(rows, row, AT(rev));
    view->fence = db_get_uint(rows, row, AT(fence));
    view->epoch = (uint32_t)db_get_uint(rows, row, AT(epoch));
    view->attempts = (uint32_t)db_get_uint(rows, row, AT(attempts));
    view->claims = (uint32_t)db_get_uint(rows, row, AT(claims));
    view->sends = (uint32_t)db_get_uint(rows, row, AT(sends));
    view->conflict = db_get_int(rows, row, AT(conflict)) != 0;
    view->proof = db_get_text(rows, row, AT(proof))[0];
    TAKE_TEXT(thread_no, row);
    TAKE_TEXT(log_no, row);
    TAKE_TEXT(parked, row);
    TAKE_TEXT(channel_key, row);
    TAKE_TEXT(channel_ref, row);
    TAKE_TEXT(remark, row);
    TAKE_TEXT(actor, row);
    text_copy(view->session_id, sizeof view->session_id,
              view->status == 'P' ? db_get_text(rows, row, AT(session_id)) : "");
    view->updated_us = db_get_int(rows, row, AT(logged_us));
    view->send_until_us = db_get_int(rows, row, AT(send_until_us));
    view->max_hold_until_us = db_get_int(rows, row, AT(max_hold_until_us));
    view->next_run_us = db_get_int(rows, row, AT(next_run_us));
}

/* A sync row's view tells of its retry row, too. */
static void take_retry(tl_view *view, const struct last_steps *last)
{
    const size_t row = last->retry;

    view->has_retry_row = row != NO_STEP && !is_deleted(last, row);
    view->retry_status = ' ';
    if (view->lane != 'S')
        return;
    view->attempts = view->claims = 0;
    if (!view->has_retry_row)
        return;
    view->retry_status = db_get_text(&last->rows, row, AT(status))[0];
    view->attempts = (uint32_t)db_get_uint(&last->rows, row, AT(attempts));
    view->claims = (uint32_t)db_get_uint(&last->rows, row, AT(claims));
    if (!db_is_null(&last->rows, row, AT(parked)))
        TAKE_TEXT(parked, row);
    if (!db_is_null(&last->rows, row, AT(next_run_us)))
        view->next_run_us = db_get_int(&last->rows, row, AT(next_run_us));
}

/* Who held it then, and whether that one lived.  A session that is forgotten counts as alive. */
static tl_status read_holder(db *connection, tl_view *view, int *alive)
{
    RESULT process = DB_RESULT_INIT;
    tl_status status = TL_OK;

    view->holder[0] = '\0';
    view->holder_silent_ms = -1;
    *alive = view->session_id[0] != '\0' && view->max_hold_until_us > view->now_us;
    if (view->session_id[0] != '\0')
        READ_REPEATED(status, read_status(connection,
                                          SQL_RUN(connection, &process, session_was,
                                                  .session_id = db_text(view->session_id)),
                                          "reading the holder's session"));
    if (status == TL_OK && process.rows > 0) {
        text_copy(view->holder, sizeof view->holder, db_get_text(&process, 0, 0));
        if (!db_is_null(&process, 0, 1) && db_get_int(&process, 0, 1) <= view->now_us)
            *alive = 0;
    }
    return status;
}

static tl_state retry_state(const tl_view *view)
{
    if (view->status == 'P')
        return TL_STATE_WORKING;
    if (view->status == 'Y')
        return TL_STATE_SUCCEEDED;
    if (view->parked[0] != '\0')
        return TL_STATE_PARKED;
    return view->next_run_us != 0 ? TL_STATE_WAITING : TL_STATE_CLOSED;
}

/* As the view trade_lock_state derives it (sql/object/trade_lock.sql). */
static tl_state sync_state(const tl_view *view, const struct last_steps *last, int alive)
{
    const int same =
        view->has_retry_row && db_get_uint(&last->rows, last->retry, AT(epoch)) == view->epoch;

    if (view->status == 'Y')
        return TL_STATE_SUCCEEDED;
    if (view->status == 'F')
        return TL_STATE_FAILED;
    if (alive)
        return same && view->retry_status == 'P' ? TL_STATE_WORKING : TL_STATE_LIVE;
    if (same && view->retry_status == 'F' && !db_is_null(&last->rows, last->retry, AT(parked)))
        return TL_STATE_PARKED;
    return view->sends > 0 ? TL_STATE_IN_DOUBT : TL_STATE_QUEUED;
}

static tl_status take_steps(db *connection, tl_view *view, const struct last_steps *last)
{
    int alive;

    take_own(view, last);
    take_retry(view, last);
    TRY(read_holder(connection, view, &alive));
    view->state = view->lane == 'R' ? retry_state(view) : sync_state(view, last, alive);
    return TL_OK;
}

/* The trade of a row of either lane. */
static tl_key trade_of(const tl_view *view, char op_code[TL_OP_MAX + 1])
{
    text_copy(op_code, TL_OP_MAX + 1, view->op_code);
    op_code[tl_business_op_size(op_code)] = '\0';
    return (tl_key){.cust_no = view->cust_no, .serial_no = view->serial_no, .op_code = op_code};
}

tl_status list_as_of(db *connection, tl_view *view, int64_t as_of_us, int *there)
{
    struct last_steps last = {.rows = DB_RESULT_INIT};
    char op_code[TL_OP_MAX + 1];
    const tl_key key = trade_of(view, op_code);
    tl_status status;

    *there = 0;
    READ_REPEATED(status, read_status(connection, store_timeline(connection, &key, &last.rows),
                                      "reading the log of a trade"));
    if (status == TL_OK) {
        find_last(&last, view, as_of_us);
        *there = last.own != NO_STEP && !is_deleted(&last, last.own);
    }
    if (*there) {
        view->now_us = as_of_us;
        if (view->created_us == 0)
            view->created_us = db_get_int(&last.rows, 0, AT(logged_us));
        status = take_steps(connection, view, &last);
    }
    db_result_free(&last.rows);
    return status;
}

/* ------------------------------------------------------------------- a row -- */

static tl_status read_row(db *connection, const tl_key *key, const char *op_code, int64_t as_of_us,
                          tl_view *view, db_result *row)
{
    view_inside inside;
    int there = 0;

    TRY(read_status(connection, store_view(connection, key->cust_no, key->serial_no, op_code, row),
                    "reading a row"));
    view_clear(view, &inside);
    if (row->rows > 0)
        view_read(view, &inside, row, 0);
    text_copy(view->cust_no, sizeof view->cust_no, key->cust_no);
    text_copy(view->serial_no, sizeof view->serial_no, key->serial_no);
    text_copy(view->op_code, sizeof view->op_code, op_code);
    view->lane = text_is_retry_op(op_code) ? 'R' : 'S';
    TRY(list_as_of(connection, view, as_of_us, &there));
    if (!there)
        return error_set(TL_NOT_FOUND,
                         "there was no row %s %s %s at that moment, or a purge has removed it",
                         key->serial_no, key->cust_no, op_code);
    return TL_OK;
}

tl_status tl_show_as_of(tl_client *client, const tl_key *key, tl_lane lane, int64_t as_of_us,
                        tl_view_fn each, void *context)
{
    READING at = {.client = client};
    RESULT row = DB_RESULT_INIT;
    char retry_op[TL_OP_MAX + 1];
    tl_view view;

    TRY(read_begin(&at));
    TRY(read_check_each(each != NULL));
    TRY(read_key(key, retry_op));
    if (as_of_us <= 0 || as_of_us > STRETCH_END_US)
        return error_set(TL_INVALID, "a moment lies between the years 1970 and 9998");
    TRY(read_row(at.connection, key, lane == TL_LANE_RETRY ? retry_op : key->op_code, as_of_us,
                 &view, &row));
    read_end(&at);
    (void)each(context, &view);
    return TL_OK;
}
