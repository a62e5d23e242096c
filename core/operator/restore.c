/*
 * A restore is declared before services see it, and accepted when the channel's statements
 * have been compared.  Accepting forgets every "nothing was sent": the step that sent may
 * be among the lost ones.  It takes every mutex and read-write lock from its holder, since
 * the same is true of their grants.
 */
#include "operator/read.h"

#include "base/error.h"
#include "store/store.h"
#include "store/store_operator.h"

static tl_status check(tl_client *client, const char *actor, const char *reason)
{
    tl_status status;

    error_clear();
    status = client_check(client);
    return status == TL_OK ? read_check_person(actor, reason) : status;
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
    if (status == TL_OK)
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
        answer = store_restore_resources(connection, tl_thread_uuid(), actor, reason);
    if (answer == DB_DONE)
        answer = store_restore_holders(connection, tl_thread_uuid(), actor, reason);
    if (answer == DB_DONE)
        answer = store_low_water_reset(connection);
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
