/* How the operators' side reads: one pooled connection for the whole of a call. */
#ifndef TL_CLIENT_READ_H
#define TL_CLIENT_READ_H

#include "base/error.h"
#include "client/client.h"

/* TL_OK and a connection that read_end() gives back. */
tl_status read_begin(tl_client *client, db **out);
void read_end(tl_client *client, db *connection);

/* What calls the caller's each() while it has the connection: fn(context) is its tl_status. */
tl_status read_and_show(tl_client *client, db *connection, int (*fn)(void *context), void *context);
static inline tl_status read_check_each(int is_given)
{
    return is_given ? TL_OK : error_set(TL_INVALID, "each is NULL");
}

/* A read whose answer was lost has changed nothing, so it is merely unreachable. */
tl_status read_status(const db *connection, db_answer answer, const char *doing);

/* Checks the key and writes op_code + "_RETRY" into retry_op. */
tl_status read_key(const tl_key *key, char retry_op[TL_OP_MAX + 1]);

/* All rows that are about one trade; the connection has gone back before they are looked at. */
typedef db_answer (*read_fn)(db *connection, const tl_key *key, db_result *rows);
tl_status read_of_trade(tl_client *client, const tl_key *key, read_fn read, const char *doing,
                        db_result *rows);

/* Both are UTF-8. */
tl_status read_check_words(const char *actor, const char *reason);

/* An operator's decision needs a name and a reason. */
tl_status read_check_person(const char *actor, const char *reason);

#endif
