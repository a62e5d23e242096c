/* Looking for compensating attempts that are due and that nobody claims.  Reads only. */
#include "client/read.h"

#include "base/error.h"
#include "client/gate.h"
#include "store/store.h"

#include <tradelock/lane.h>

/* Behind how many trades of a channel that is paused others are looked for. */
#define LOOK_BEHIND_MAX 10000

static tl_status look(tl_client *client, db *connection, const char *retry_op, const char *op_code,
                      int64_t late_us, db_result *result)
{
    const int is_paused = gate_check(client, NULL, op_code, 1) != TL_OK;

    error_clear();
    return read_status(connection,
                       store_overdue(connection, retry_op, is_paused ? op_code : NULL, late_us,
                                     is_paused ? LOOK_BEHIND_MAX : TL_OVERDUE_MAX, result),
                       "looking for overdue work");
}

tl_status tl_lane_overdue(tl_client *client, const char *op_code, int64_t late_ms,
                          tl_overdue *overdue)
{
    char retry_op[TL_OP_MAX + 1];
    const tl_key key = {"-", "-", op_code};
    READING at = {.client = client};
    RESULT result = DB_RESULT_INIT;
    uint64_t found;

    TRY(read_begin(&at));
    if (overdue == NULL)
        return error_set(TL_INVALID, "overdue is NULL");
    if (late_ms < 0 || late_ms > INT64_MAX / 1000)
        return error_set(TL_INVALID, "late_ms is negative, or too large");
    TRY(read_key(&key, retry_op));
    TRY(look(client, at.connection, retry_op, op_code, late_ms * 1000, &result));
    found = db_get_uint(&result, 0, 0);
    overdue->count = found < TL_OVERDUE_MAX ? (unsigned)found : TL_OVERDUE_MAX;
    overdue->late_ms = db_get_int(&result, 0, 1) / 1000;
    return TL_OK;
}
