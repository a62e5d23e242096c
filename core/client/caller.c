/* Looks at a caller's own connection before a step joins its transaction.  Sends it one SELECT;
 * never commits, rolls back or SETs. */
#include "client/caller.h"

#include "base/error.h"
#include "client/restored.h"
#include "sql_text.h"

#include <string.h>

tl_status caller_must_roll_back(const db *connection, db_answer answer, const char *doing)
{
    (void)db_error_status(connection, answer, doing);
    return error_prefix(TL_ROLL_BACK, "roll back: ");
}

/* begun: the caller has begun the transaction by itself. */
static tl_status judge(const db_result *result, unsigned flags, const life *of, int begun)
{
    const int in_one = db_get_int(result, 0, 0) != 0, autocommit = db_get_int(result, 0, 1) != 0;
    const struct db_server *home = of != NULL ? life_server(of) : NULL;

    if (begun && !autocommit)
        return error_set(TL_NO_TRANSACTION,
                         "the caller's connection has autocommit off: after a deadlock "
                         "the server would have begun another transaction, without what "
                         "was written before; switch it on, and START TRANSACTION");
    if (!in_one && autocommit)
        return error_set(TL_NO_TRANSACTION, "the caller's connection is not in a "
                                            "transaction; what is done on it would commit "
                                            "alone");
    if (!(flags & TL_GUARD_ANY_IDLE) && db_get_int(result, 0, 2) == 0)
        return error_set(TL_INVALID,
                         "the caller's connection has no idle_transaction_timeout: if its "
                         "process vanished, the lock would stay with it for hours; SET it "
                         "when connecting, or pass TL_GUARD_ANY_IDLE");
    if (home != NULL && strcmp(restored_identity(home), db_get_text(result, 0, 3)) != 0)
        return error_set(TL_ROLL_BACK, "roll back: the caller's connection leads to another server "
                                       "than the session of this process");
    return TL_OK;
}

static tl_status look(db **out, struct st_mysql *connection, unsigned flags, const life *home,
                      int begun)
{
    RESULT result = DB_RESULT_INIT;
    db *borrowed = NULL;
    db_answer answer;
    tl_status status;

    if (flags & ~TL_GUARD_ANY_IDLE)
        return error_set(TL_INVALID, "flags has bits that this version does not know");
    if (connection == NULL)
        return error_set(TL_INVALID, "connection is NULL");
    TRY(db_borrow(&borrowed, connection));
    if (!db_in_transaction(borrowed)) {
        status = error_set(TL_NO_TRANSACTION, "the caller's connection is not in a "
                                              "transaction");
    } else {
        answer = db_run(borrowed, &sql_caller_transaction, NULL, 0, &result);
        status = answer == DB_DONE
                     ? judge(&result, flags, home, begun)
                     : caller_must_roll_back(borrowed, answer, "looking at the transaction");
    }
    if (status == TL_OK)
        *out = borrowed;
    else
        db_close(borrowed);
    return status;
}

tl_status caller_open(db **out, struct st_mysql *connection, unsigned flags, const life *home)
{
    return look(out, connection, flags, home, 0);
}

tl_status caller_open_begun(db **out, struct st_mysql *connection, unsigned flags, const life *home)
{
    return look(out, connection, flags, home, 1);
}
