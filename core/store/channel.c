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
