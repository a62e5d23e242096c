/* The statements about channels that every process runs, bound to their parameters.  Touches only
 * the connection. */
#include "store/channel.h"

#include "store/bind.h"

db_answer store_channel_known(db *connection, const char *channel, const char *op_code)
{
    return SQL_RUN(connection, NULL, channel_known, .channel = db_text(channel),
                   .op_code = db_text(op_code));
}

db_answer store_channel_paused(db *connection, db_result *result)
{
    return db_run(connection, &sql_channel_paused, NULL, 0, result);
}

db_answer store_channel_limits(db *connection, db_result *result)
{
    return db_run(connection, &sql_channel_limits, NULL, 0, result);
}

db_answer store_channel_share(db *connection, const store_share *share, db_result *result)
{
    db_answer answer =
        SQL_RUN(connection, NULL, channel_share, .channel = db_text(share->channel),
                .op_code = db_text(share->op_code), .session_id = db_text(share->session_id),
                .used = db_uint(share->used), .wanted = db_uint(share->wanted),
                .hold_ms = db_int(share->hold_ms), .claims = db_uint(share->claims));

    if (answer == DB_DONE)
        return db_run(connection, &sql_channel_share_result, NULL, 0, result);
    return answer == DB_ERROR ? db_undo(connection) : answer;
}
