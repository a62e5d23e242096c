/* Looking for compensating attempts that are due and that nobody claims.  Reads only. */
#include "client/read.h"

#include "base/error.h"
#include "store/store.h"

#include <tradelock/lane.h>

tl_status tl_lane_overdue(tl_client *client, const char *op_code, int64_t late_ms,
                          tl_overdue *overdue)
{
    char retry_op[TL_OP_MAX + 1];
    const tl_key key = {"-", "-", op_code};
    db_result result = DB_RESULT_INIT;
    db *connection = NULL;
    tl_status status = read_begin(client, &connection);

    if (status == TL_OK && overdue == NULL)
        status = error_set(TL_INVALID, "overdue is NULL");
    if (status == TL_OK && (late_ms < 0 || late_ms > INT64_MAX / 1000))
        status = error_set(TL_INVALID, "late_ms is negative, or too large");
    if (status == TL_OK)
        status = read_key(&key, retry_op);
    if (status == TL_OK)
        status = read_status(
            connection,
            store_overdue(connection, retry_op, late_ms * 1000, TL_OVERDUE_MAX, &result),
            "looking for overdue work");
    read_end(client, connection);
    if (status == TL_OK) {
        overdue->count = (unsigned)db_get_uint(&result, 0, 0);
        overdue->late_ms = db_get_int(&result, 0, 1) / 1000;
    }
    db_result_free(&result);
    return status;
}
