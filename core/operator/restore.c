/*
 * A restore is declared before services see it, and accepted when the channel's statements
 * have been compared.  Accepting forgets every "nothing was sent": the step that sent may
 * be among the lost ones.
 */
#include "client/client.h"

#include "base/error.h"
#include "store/store_operator.h"

#include <string.h>

static tl_status check(tl_client *client, const char *actor, const char *reason)
{
    tl_status status = client_check(client);

    if (status != TL_OK)
        return status;
    if (actor == NULL || actor[0] == '\0' || strlen(actor) > 63)
        return error_set(TL_INVALID,
                         "an operator's decision needs a name of at most 63 bytes");
    if (reason == NULL || reason[0] == '\0' || strlen(reason) > TL_REMARK_MAX)
        return error_set(TL_INVALID,
                         "an operator's decision needs a reason of at most %d bytes",
                         TL_REMARK_MAX);
    return TL_OK;
}

tl_status tl_restore_declare(tl_client *client, const char *actor, const char *reason)
{
    db *connection = NULL;
    db_answer answer;
    tl_status status = check(client, actor, reason);

    if (status == TL_OK)
        status = pool_get(client->connections, POOL_BUSINESS, client->config.pool_wait_ms,
                          &connection);
    if (status != TL_OK)
        return status;
    answer = store_restore_declare(connection);
    if (answer != DB_DONE)
        status = db_error_status(connection, answer, "declaring the restore");
    pool_put(client->connections, connection);
    log_line(&client->logger, TL_ALARM, NULL, 0, "a restore was declared by %s: %s",
             actor, reason);
    return status;
}

static db_answer accept(db *connection, int64_t max_hold_ms, const char *actor,
                        const char *reason, uint64_t *doubtful)
{
    db_answer answer = db_begin(connection);

    if (answer == DB_DONE)
        answer = store_restore_doubt(connection, max_hold_ms, tl_thread_uuid(), actor,
                                     reason, doubtful);
    if (answer == DB_DONE)
        answer = store_restore_accept(connection);
    if (answer == DB_DONE)
        answer = db_commit(connection);
    return answer;
}

tl_status tl_restore_accept(tl_client *client, const char *actor, const char *reason,
                            uint64_t *doubtful)
{
    db *connection = NULL;
    db_answer answer;
    uint64_t count = 0;
    tl_status status = check(client, actor, reason);

    if (status == TL_OK)
        status = pool_get(client->connections, POOL_BUSINESS, client->config.pool_wait_ms,
                          &connection);
    if (status != TL_OK)
        return status;
    answer = accept(connection, client->policy.max_hold_ms, actor, reason, &count);
    if (answer != DB_DONE)
        status = db_error_status(connection, answer, "accepting the server");
    pool_put(client->connections, connection);
    if (status == TL_OK && doubtful != NULL)
        *doubtful = count;
    return status;
}
