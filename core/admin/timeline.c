/* Shows the steps of a trade, from its rows and their history.  Reads only. */
#include "client/read.h"

#include "admin/statements.h"

#include <tradelock/admin/trades.h>

static const char *text_or_null(const db_result *result, size_t row, size_t column)
{
    return db_is_null(result, row, column) ? NULL : db_get_text(result, row, column);
}

static void step_read(tl_step *one, const db_result *result, size_t row)
{
    one->op_code = db_get_text(result, row, STEP_OP);
    one->step = db_get_text(result, row, STEP_STEP);
    one->thread_no = db_get_text(result, row, STEP_THREAD);
    one->log_no = text_or_null(result, row, STEP_LOG);
    one->session_id = text_or_null(result, row, STEP_SESSION);
    one->parked = text_or_null(result, row, STEP_PARKED);
    one->channel_key = text_or_null(result, row, STEP_CHANNEL_KEY);
    one->channel_ref = text_or_null(result, row, STEP_CHANNEL_REF);
    one->remark = text_or_null(result, row, STEP_REMARK);
    one->actor = text_or_null(result, row, STEP_ACTOR);
    one->account = db_get_text(result, row, STEP_ACCOUNT);
    one->status = db_get_text(result, row, STEP_STATUS)[0];
    one->proof = db_get_text(result, row, STEP_PROOF)[0];
    one->rev = db_get_uint(result, row, STEP_REV);
    one->fence = db_get_uint(result, row, STEP_FENCE);
    one->epoch = (uint32_t)db_get_uint(result, row, STEP_EPOCH);
    one->attempts = (uint32_t)db_get_uint(result, row, STEP_ATTEMPTS);
    one->claims = (uint32_t)db_get_uint(result, row, STEP_CLAIMS);
    one->sends = (uint32_t)db_get_uint(result, row, STEP_SENDS);
    one->conflict = db_get_int(result, row, STEP_CONFLICT) != 0;
    one->logged_us = db_get_int(result, row, STEP_LOGGED);
    one->send_until_us = db_get_int(result, row, STEP_SEND_UNTIL);
    one->max_hold_until_us = db_get_int(result, row, STEP_MAX_HOLD);
    one->next_run_us = db_get_int(result, row, STEP_NEXT_RUN);
    one->holder = text_or_null(result, row, STEP_HOLDER);
}

tl_status tl_timeline(tl_client *client, const tl_key *key, tl_step_fn each, void *context)
{
    db_result rows = DB_RESULT_INIT;
    tl_status status = read_check_each(each != NULL);

    if (status == TL_OK)
        status = read_of_trade(client, key, store_timeline, "reading the log of the trade", &rows);

    for (size_t row = 0; status == TL_OK && row < rows.rows; row++) {
        tl_step one;

        step_read(&one, &rows, row);
        if (each(context, &one) != 0)
            break;
    }
    db_result_free(&rows);
    return status;
}
