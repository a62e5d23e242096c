/*
 * The transaction that lets somebody else's statements in.
 *
 * Its connection has autocommit off, so that the first statement begins it, and a savepoint
 * that was set before.  Whoever ends the transaction, with whatever words, loses the savepoint
 * too, and the commit begins with its release.  It ends with setting the next one: so there
 * are three requests for a callback of one statement, and every one of them carries work.
 *
 * The commit is prepared before the savepoint is set, so that it does not fail for want of
 * room when the work is done.  Then it is not what was prepared last either, which a callback
 * may have the server run once more where it cannot prepare what it wants (statement.c).
 *
 * A callback can leave the session in any state, whatever the server's last word on it was:
 * after a deadlock, say, or with autocommit on.  Once begun, a transaction is over when a
 * commit or a rollback of ours was answered, and the rollback sets the guard anew; until then
 * the connection serves nobody else.
 */
#include "db/db_internal.h"

#include "sql_text.h"

#include <errmsg.h>
#include <string.h>

#define SET_GUARD "SET autocommit=0; SAVEPOINT tl_callback;"

static const struct sql_text commit = {
    .name = "COMMIT",
    .text = "BEGIN NOT ATOMIC RELEASE SAVEPOINT tl_callback; COMMIT; "
            "SAVEPOINT tl_callback; END",
};

static int set_guard(db *connection, void *what)
{
    static const char sql[] = "BEGIN NOT ATOMIC " SET_GUARD " END";

    (void)what;
    connection->preparing = 1; /* nothing of the caller's is sent yet */
    if (db_prepare(connection, &commit))
        return 1;
    if (mysql_real_query(connection->mysql, sql, sizeof sql - 1)) {
        db_keep_error(connection, mysql_errno(connection->mysql),
                      mysql_error(connection->mysql));
        return 1;
    }
    return 0;
}

static db_answer guard(db *connection)
{
    db_answer answer;

    if (connection->guard == GUARD_SET)
        return DB_DONE;
    answer = db_round_trip(connection, FAULT_STATEMENT, "guard", set_guard, NULL);
    connection->preparing = 0;
    if (answer == DB_DONE)
        connection->guard = GUARD_SET;
    else
        db_spoil(connection); /* autocommit may be off */
    return answer;
}

db_answer db_unguard(db *connection)
{
    static const char sql[] = "SET autocommit=1";
    db_answer answer;

    connection->guard = GUARD_NONE;
    answer = db_run_text(connection, "unguard", sql, sizeof sql - 1, NULL);
    if (answer == DB_DONE)
        return DB_DONE;
    db_spoil(connection);
    return DB_NOT_SENT;
}

db_answer db_run_guarded(db *connection, const struct sql_text *statement,
                         const db_value *values, size_t count, int nowait,
                         db_result *result)
{
    db_answer answer;

    if (db_in_transaction(connection)) {
        db_set_error(connection, 1568, "%s is not for a transaction", statement->name);
        return DB_ERROR;
    }
    answer = guard(connection);
    if (answer != DB_DONE)
        return answer;
    return db_run_first(connection, statement, values, count, nowait, result);
}

/* Whoever ended the transaction may have done more to the session. */
static db_answer judge(db *connection, db_answer answer)
{
    if (answer == DB_ERROR && connection->error_number == ERROR_NO_SAVEPOINT)
        db_spoil(connection);
    return answer;
}

db_answer db_commit_guarded(db *connection)
{
    db_answer answer = DB_ERROR;

    /* What was prepared is gone, and with it the transaction: nobody need be asked. */
    if (db_was_reset(connection, &commit))
        db_set_error(connection, ERROR_NO_SAVEPOINT, "the connection was reset");
    else
        answer = db_run_commit(connection, &commit);
    if (answer == DB_DONE)
        connection->guard = GUARD_SET;
    return judge(connection, answer);
}

db_answer db_rollback_guarded(db *connection)
{
    db_answer answer = db_text_trip(connection, FAULT_ROLLBACK, "ROLLBACK",
                                    "BEGIN NOT ATOMIC ROLLBACK; " SET_GUARD " END");

    if (answer == DB_DONE)
        connection->guard = GUARD_SET;
    if (answer != DB_DONE || db_was_reset(connection, &commit))
        db_spoil(connection);
    return answer;
}

db_answer db_savepoint_release(db *connection)
{
    static const char sql[] = "RELEASE SAVEPOINT tl_callback";

    return judge(connection, db_run_text(connection, sql, sql, sizeof sql - 1, NULL));
}
