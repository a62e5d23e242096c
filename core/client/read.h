/* Reads of the operators' calls: each call has one connection of the pool from begin to end. */
#ifndef TL_CLIENT_READ_H
#define TL_CLIENT_READ_H

#include "base/error.h"
#include "client/client.h"

typedef struct read_call {
    tl_client *client;
    db *connection;
} read_call;

/* Gets the connection, if there is one within pool_wait_ms. */
tl_status read_begin(read_call *at);
/* Gives it back; a second time does nothing. */
void read_end(read_call *at);
/* One that ends with its block: READING at = {.client = client}; */
#define READING __attribute__((cleanup(read_end))) read_call

/* Runs fn(context), which calls the caller's each() while the call has the connection.  Returns the
 * tl_status of fn. */
tl_status read_and_show(int (*fn)(void *context), void *context);
static inline tl_status read_check_each(int is_given)
{
    return is_given ? TL_OK : error_set(TL_INVALID, "each is NULL");
}

/* As db_error_status(); a lost answer is TL_UNREACHABLE, since a read has changed nothing.
 * If the read waited in vain, the sentence says who is in the way. */
tl_status read_status(db *connection, db_answer answer, const char *doing);
/* The same of a statement without values. */
tl_status read_run(db *connection, const struct sql_text *statement, db_result *result,
                   const char *doing);

/* Whether a read that ended so was interrupted, as by KILL QUERY, and may be run once more: at most
 * twice in all.  *repeated begins with 0. */
int read_again(tl_status status, unsigned *repeated);
/* status = read, run once more where read_again() says so. */
#define READ_REPEATED(status, read)                                                                \
    do {                                                                                           \
        unsigned repeated_ = 0;                                                                    \
                                                                                                   \
        do                                                                                         \
            (status) = (read);                                                                     \
        while (read_again((status), &repeated_));                                                  \
    } while (0)

/* Checks the key and writes op_code + "_RETRY" into retry_op. */
tl_status read_key(const tl_key *key, char retry_op[TL_OP_MAX + 1]);

/* Reads all rows about one trade, and gives the connection back before anybody looks at them. */
typedef db_answer (*read_fn)(db *connection, const tl_key *key, db_result *rows);
tl_status read_of_trade(tl_client *client, const tl_key *key, read_fn read, const char *doing,
                        db_result *rows);

/* TL_OK: there are a name and a reason, as an operator's decision needs, in UTF-8; else
 * TL_INVALID. */
tl_status read_check_person(const char *actor, const char *reason);

#endif
