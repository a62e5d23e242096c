#include "client/restored.h"

#include "base/error.h"
#include "client/client.h"
#include "sql_text.h"

void restored_look(struct tl_client *client, db *connection)
{
    db_result result = DB_RESULT_INIT;

    /* What could not be read leaves the last word standing. */
    if (db_run(connection, &sql_server_restored, NULL, 0, &result) == DB_DONE &&
        result.rows == 1) {
        int now = db_get_int(&result, 0, 0) != 0;

        if (atomic_exchange(&client->restored, now) != now && now) {
            /* An ending that was answered may be missing here. */
            client_lose_track(client);
            log_line(&client->logger, TL_ALARM, NULL, 0,
                     "this server is not the one that was accepted, or was restored: "
                     "nothing is granted until an operator accepts it");
        }
    }
    db_result_free(&result);
}

void restored_look_again(struct tl_client *client)
{
    db *connection = NULL;

    if (pool_get(client->connections, POOL_QUICK, client->config.beat_ms, &connection) ==
        TL_OK)
        restored_look(client, connection);
    pool_put(client->connections, connection);
}

tl_status restored_check(const struct tl_client *client)
{
    if (!atomic_load(&client->restored))
        return TL_OK;
    return error_set(TL_ASK_CHANNEL,
                     "the server was restored or replaced, and payments may be missing "
                     "in it: ask the channel first; an operator accepts the server with "
                     "`tradelock restore accept`");
}

tl_status restored_check_resource(const struct tl_client *client)
{
    if (!atomic_load(&client->restored))
        return TL_OK;
    return error_set(TL_ASK_CHANNEL,
                     "the server was restored or replaced, and who holds what may be "
                     "missing in it: nothing is locked until an operator accepts the "
                     "server with `tradelock restore accept`");
}
