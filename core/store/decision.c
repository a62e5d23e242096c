/* The worker's statements about decisions of two operators, bound to their parameters.  Touches
 * only the connection. */
#include "store/decision.h"

#include "store/bind.h"

db_answer store_resolve_list(db *connection, const tl_key *key, db_result *result)
{
    return SQL_RUN(connection, result, resolve_list, .cust_no = db_text(key->cust_no),
                   .serial_no = db_text(key->serial_no), .op_code = db_text(key->op_code));
}
