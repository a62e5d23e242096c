/* Shows the steps of a trade, from its rows and their history.  Reads only. */
#include "client/read.h"

#include "admin/statements.h"
#include "store/bind.h"

#include <stdio.h>
#include "store/record.h"

#include "sql_text.h"

#include <tradelock/admin/trades.h>

db_answer store_timeline(db *connection, const tl_key *key, db_result *result)
{
    char retry_op[TL_OP_MAX + sizeof TL_RETRY_SUFFIX];

    snprintf(retry_op, sizeof retry_op, "%s%s", key->op_code, TL_RETRY_SUFFIX);
    return SQL_RUN(connection, result, timeline, .cust_no = db_text(key->cust_no),
                   .serial_no = db_text(key->serial_no), .op_code = db_text(key->op_code),
                   .retry_op = db_text(retry_op));
}

#define AT(member) COLUMN_timeline_##member

static void step_read(tl_step *to, const db_result *result, size_t row)
{
    TL_STEP_MAP(RECORD_READ);
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
