/* Borrows a connection for one read, and gives it back.  Touches the pool. */
#include "client/read.h"

#include "base/error.h"
#include "base/text.h"
#include "base/thread_context.h"
#include "client/blocker.h"

#include <stdio.h>
#include <string.h>

tl_status read_begin(read_call *at)
{
    error_clear();
    TRY(client_check(at->client));
    return pool_get(at->client->connections, POOL_QUICK, at->client->config.pool_wait_ms,
                    &at->connection);
}

void read_end(read_call *at)
{
    if (at->connection != NULL)
        pool_put(at->client->connections, at->connection);
    at->connection = NULL;
}

tl_status read_and_show(int (*fn)(void *context), void *context)
{
    return (tl_status)thread_context_call_out(fn, context, 0);
}

tl_status read_status(db *connection, db_answer answer, const char *doing)
{
    return blocker_add(connection, db_read_status(connection, answer, doing));
}

tl_status read_run(db *connection, const struct sql_text *statement, db_result *result,
                   const char *doing)
{
    return read_status(connection, db_run(connection, statement, NULL, 0, result), doing);
}

int read_again(tl_status status, unsigned *repeated)
{
    return status != TL_OK && error_is_interrupted() && (*repeated)++ < 2;
}

tl_status read_key(const tl_key *key, char retry_op[TL_OP_MAX + 1])
{
    TRY(key != NULL ? key_check(key) : error_set(TL_INVALID, "key is NULL"));
    snprintf(retry_op, TL_OP_MAX + 1, "%s%s", key->op_code, TL_RETRY_SUFFIX);
    return TL_OK;
}

tl_status read_of_trade(tl_client *client, const tl_key *key, read_fn read, const char *doing,
                        db_result *rows)
{
    READING at = {.client = client};
    char retry_op[TL_OP_MAX + 1];

    TRY(read_begin(&at));
    TRY(read_key(key, retry_op));
    return read_status(at.connection, read(at.connection, key, rows), doing);
}

tl_status read_check_person(const char *actor, const char *reason)
{
    if (actor == NULL || actor[0] == '\0' || strlen(actor) > 63)
        return error_set(TL_INVALID, "an operator's decision needs a name of at most 63 bytes");
    if (reason == NULL || reason[0] == '\0' || strlen(reason) > TL_REMARK_MAX)
        return error_set(TL_INVALID, "an operator's decision needs a reason of at most %d bytes",
                         TL_REMARK_MAX);
    TRY(text_check_utf8("the operator's name", actor));
    return text_check_utf8("the reason", reason);
}
