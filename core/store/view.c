/* Reads a row of trade_lock_state into a tl_view.  Touches the result only. */
#include "store/view.h"

#include "base/text.h"

#include <string.h>

enum view_column {
    COL_STATE,
    COL_ALIVE,
    COL_LANE,
    COL_STATUS,
    COL_CUST,
    COL_SERIAL,
    COL_OP,
    COL_FENCE,
    COL_REV,
    COL_EPOCH,
    COL_SENDS,
    COL_ATTEMPTS,
    COL_CLAIMS,
    COL_THREAD,
    COL_LOG,
    COL_SESSION,
    COL_HOLDER,
    COL_RETRYABLE,
    COL_CONFLICT,
    COL_EXCLUSIVE,
    COL_REPEATABLE,
    COL_RETRY_STATUS,
    COL_RETRY_EPOCH,
    COL_PROOF,
    COL_PARKED,
    COL_CHANNEL,
    COL_CHANNEL_KEY,
    COL_CHANNEL_REF,
    COL_REMARK,
    COL_ACTOR,
    COL_CREATED,
    COL_UPDATED,
    COL_NOW,
    COL_MAX_HOLD,
    COL_SEND_UNTIL,
    COL_NEXT_RUN,
    COL_DEADLINE,
    COL_NOT_FOUND,
    COL_SEEN,
    COL_CANCEL,
    COL_SUCCESS_EPOCH,
    COL_FINGERPRINT,
    COL_TOKEN,
    COL_PAYLOAD,
    COL_RESULT,
    COL_AMOUNT,
    COL_CURRENCY,
    COL_BATCH,
    COL_TRACEPARENT,
    COL_ON_FILE /* only of views_by_key */
};

tl_state view_state(const char *name)
{
    for (int state = TL_STATE_ABSENT; state <= TL_STATE_CLOSED; state++)
        if (strcmp(tl_state_name((tl_state)state), name) == 0)
            return (tl_state)state;
    return TL_STATE_ABSENT;
}

void view_clear(tl_view *view, view_inside *inside)
{
    memset(view, 0, sizeof *view);
    memset(inside, 0, sizeof *inside);
    view->version = TL_VIEW_VERSION;
    view->status = ' ';
    view->retry_status = ' ';
    view->proof = '-';
    view->holder_silent_ms = -1;
}

void view_said(tl_said *to, const db_result *result, size_t row, size_t column)
{
    to->amount_minor = db_get_int(result, row, column);
    text_copy(to->currency, sizeof to->currency, db_get_text(result, row, column + 1));
    text_copy(to->batch, sizeof to->batch, db_get_text(result, row, column + 2));
    text_copy(to->traceparent, sizeof to->traceparent, db_get_text(result, row, column + 3));
}

static void read_texts(tl_view *view, const db_result *result, size_t row)
{
    text_copy(view->cust_no, sizeof view->cust_no, db_get_text(result, row, COL_CUST));
    text_copy(view->serial_no, sizeof view->serial_no, db_get_text(result, row, COL_SERIAL));
    text_copy(view->op_code, sizeof view->op_code, db_get_text(result, row, COL_OP));
    text_copy(view->thread_no, sizeof view->thread_no, db_get_text(result, row, COL_THREAD));
    text_copy(view->log_no, sizeof view->log_no, db_get_text(result, row, COL_LOG));
    text_copy(view->session_id, sizeof view->session_id, db_get_text(result, row, COL_SESSION));
    text_copy(view->holder, sizeof view->holder, db_get_text(result, row, COL_HOLDER));
    text_copy(view->parked, sizeof view->parked, db_get_text(result, row, COL_PARKED));
    text_copy(view->channel, sizeof view->channel, db_get_text(result, row, COL_CHANNEL));
    text_copy(view->channel_key, sizeof view->channel_key,
              db_get_text(result, row, COL_CHANNEL_KEY));
    text_copy(view->channel_ref, sizeof view->channel_ref,
              db_get_text(result, row, COL_CHANNEL_REF));
    text_copy(view->remark, sizeof view->remark, db_get_text(result, row, COL_REMARK));
    text_copy(view->actor, sizeof view->actor, db_get_text(result, row, COL_ACTOR));
    text_copy(view->currency, sizeof view->currency, db_get_text(result, row, COL_CURRENCY));
    text_copy(view->batch, sizeof view->batch, db_get_text(result, row, COL_BATCH));
    text_copy(view->traceparent, sizeof view->traceparent,
              db_get_text(result, row, COL_TRACEPARENT));
}

static void read_times(tl_view *view, const db_result *result, size_t row)
{
    view->created_us = db_get_int(result, row, COL_CREATED);
    view->updated_us = db_get_int(result, row, COL_UPDATED);
    view->now_us = db_get_int(result, row, COL_NOW);
    view->max_hold_until_us = db_get_int(result, row, COL_MAX_HOLD);
    view->send_until_us = db_get_int(result, row, COL_SEND_UNTIL);
    view->next_run_us = db_get_int(result, row, COL_NEXT_RUN);
    view->deadline_us = db_get_int(result, row, COL_DEADLINE);
    view->not_found_since_us = db_get_int(result, row, COL_NOT_FOUND);
}

static void read_inside(view_inside *inside, const db_result *result, size_t row)
{
    size_t size;
    const void *token = db_get_bytes(result, row, COL_TOKEN, &size);

    memset(inside, 0, sizeof *inside);
    if (size == sizeof inside->token)
        memcpy(inside->token, token, size);
    inside->alive = db_get_int(result, row, COL_ALIVE) != 0;
    inside->retry_epoch = (uint32_t)db_get_uint(result, row, COL_RETRY_EPOCH);
    inside->success_epoch = (uint32_t)db_get_uint(result, row, COL_SUCCESS_EPOCH);
    inside->seen_by_channel = db_get_int(result, row, COL_SEEN) != 0;
    inside->cancel_tried = db_get_int(result, row, COL_CANCEL) != 0;
    inside->has_fingerprint = !db_is_null(result, row, COL_FINGERPRINT);
    inside->nothing_filed =
        result->columns > COL_ON_FILE && db_get_int(result, row, COL_ON_FILE) == 0;
}

void view_read(tl_view *view, view_inside *inside, const db_result *result, size_t row)
{
    size_t size;
    const void *fingerprint = db_get_bytes(result, row, COL_FINGERPRINT, &size);

    view_clear(view, inside);
    read_inside(inside, result, row);
    read_texts(view, result, row);
    read_times(view, result, row);
    if (size == sizeof view->fingerprint)
        memcpy(view->fingerprint, fingerprint, size);
    view->state = view_state(db_get_text(result, row, COL_STATE));
    view->lane = db_get_text(result, row, COL_LANE)[0];
    view->status = db_get_text(result, row, COL_STATUS)[0];
    view->fence = db_get_uint(result, row, COL_FENCE);
    view->rev = db_get_uint(result, row, COL_REV);
    view->epoch = (uint32_t)db_get_uint(result, row, COL_EPOCH);
    view->sends = (uint32_t)db_get_uint(result, row, COL_SENDS);
    view->attempts = (uint32_t)db_get_uint(result, row, COL_ATTEMPTS);
    view->claims = (uint32_t)db_get_uint(result, row, COL_CLAIMS);
    view->retryable = db_get_int(result, row, COL_RETRYABLE) != 0;
    view->conflict = db_get_int(result, row, COL_CONFLICT) != 0;
    view->exclusive = db_get_int(result, row, COL_EXCLUSIVE) != 0;
    view->repeatable = db_get_int(result, row, COL_REPEATABLE) != 0;
    view->has_retry_row = !db_is_null(result, row, COL_RETRY_STATUS);
    view->retry_status = view->has_retry_row ? db_get_text(result, row, COL_RETRY_STATUS)[0] : ' ';
    view->proof = db_get_text(result, row, COL_PROOF)[0];
    view->seen_by_channel = inside->seen_by_channel;
    view->cancel_tried = inside->cancel_tried;
    view->payload = db_get_bytes(result, row, COL_PAYLOAD, &view->payload_size);
    view->result = db_get_bytes(result, row, COL_RESULT, &view->result_size);
    view->amount_minor = db_get_int(result, row, COL_AMOUNT);
}
