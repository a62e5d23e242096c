/*
 * The callback transaction: a transaction of the library's in which a callback runs statements of
 * its own.  Touches one connection, and remembers what the server tells of its session.
 *
 * The connection has autocommit off, so the first statement begins the transaction, and a savepoint
 * that was set before it.  A callback that ends the transaction, by whatever statement, loses the
 * savepoint.  The commit first releases that savepoint, so it fails then; at its end it sets the
 * next one.  A callback of one statement thus costs three requests, and each carries work.
 *
 * COMMIT is prepared before the savepoint is set, for two reasons.  It cannot fail for want of room
 * when the work is done.  And it is never the most recently prepared statement: when a callback's
 * prepare fails for want of room (1461), the server may execute the last one instead (statement.c).
 *
 * The commit also checks that the connection still has its name (connect.c).  Others take the
 * name's absence as proof that nothing of the connection can happen any more.  If a callback
 * released it, by RELEASE_ALL_LOCKS() for instance, they would take a commit under way for one that
 * never came. So the commit releases the savepoint a second time then, which is the same error and
 * commits nothing.
 *
 * A callback can leave the session in any state, whatever the server said last: after a deadlock,
 * or with autocommit on.  A transaction that has begun is therefore over only when a commit or a
 * rollback of ours was answered; until then the connection serves nobody else.  The rollback sets
 * the savepoint again.
 *
 * On a connection for declared books no callback runs, so it does without savepoint and telling:
 * autocommit is off, and the commit is prepared.  It looks for the name, since a stored function
 * may have released that.  A transaction of a group begins there with its first statement too, and
 * commits only if @tl_changed is as it should be (books/write.c); whatever ends a transaction
 * empties it for the next one.
 *
 * A callback can also SET variables that would govern the next trade's hold or grace: the clock,
 * the isolation, lock waits.  The server tells with its answers which variables were set, and that
 * the default database, the role or temporary tables changed.  It tells with the statement's own
 * answer; or, if the statement failed or answered with rows, with the next answer that has
 * something to tell.  So commit and rollback set autocommit: its own mention also proves that
 * nobody switched the telling off.  A connection whose session was changed is closed.  This one
 * rule costs no request, and less than setting everything again would.
 */
#include "db/db_internal.h"

#include "base/error.h"
#include "sql_text.h"

#include <errmsg.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TELL "SET session_track_system_variables='*', session_track_state_change=1; "
#define SET_SAVEPOINT "SET autocommit=0; SAVEPOINT tl_callback; "

static const struct sql_text commit = {
    .name = "COMMIT",
    .text = "BEGIN NOT ATOMIC RELEASE SAVEPOINT tl_callback; "
            "IF IS_USED_LOCK(?) <=> CONNECTION_ID() THEN COMMIT; "
            "ELSE RELEASE SAVEPOINT tl_callback; END IF; " SET_SAVEPOINT "END",
};

static const struct sql_text books_commit = {
    .name = "COMMIT",
    .text = "BEGIN NOT ATOMIC IF IS_USED_LOCK(?) <=> CONNECTION_ID() THEN COMMIT; "
            "ELSE RELEASE SAVEPOINT tl_callback; END IF; END",
};

static const struct sql_text group_commit = {
    .name = "COMMIT",
    .text = "BEGIN NOT ATOMIC IF @tl_changed = ? AND IS_USED_LOCK(?) <=> CONNECTION_ID() "
            "THEN COMMIT; SET @tl_changed = ''; END IF; END",
};

/* ------------------------------------------------ what became of the session -- */

static int is_text(const MARIADB_CONST_STRING *text, const char *expected)
{
    return text->length == strlen(expected) && memcmp(text->str, expected, text->length) == 0;
}

static void note_change(db *connection, const char *what, size_t size)
{
    if (connection->told.changed[0] == '\0')
        snprintf(connection->told.changed, sizeof connection->told.changed, "%.*s", (int)size,
                 what);
}

/* Our own statement that does not wait (DB_NOWAIT_PREFIX) also sets a variable, and sets it
 * back. */
static void hear_variable(db *connection, const MARIADB_CONST_STRING *name,
                          const MARIADB_CONST_STRING *value)
{
    char own_wait[16];

    snprintf(own_wait, sizeof own_wait, "%u", connection->lock_wait_s);
    if (is_text(name, "autocommit"))
        connection->told.autocommit = 1;
    else if (!is_text(name, "innodb_lock_wait_timeout") || !is_text(value, own_wait))
        note_change(connection, name->str, name->length);
}

static void hear(void *context, enum enum_mariadb_status_info type, ...)
{
    static const char something[] = "what is no variable";
    db *connection = context;
    va_list arguments;

    if (type != SESSION_TRACK_TYPE || connection->callback_tx != CALLBACK_TX_BEGUN)
        return;
    va_start(arguments, type);
    switch (va_arg(arguments, enum enum_session_state_type)) {
    case SESSION_TRACK_SYSTEM_VARIABLES: {
        const MARIADB_CONST_STRING *name = va_arg(arguments, MARIADB_CONST_STRING *);

        hear_variable(connection, name, va_arg(arguments, MARIADB_CONST_STRING *));
        break;
    }
    case SESSION_TRACK_STATE_CHANGE:
        if (connection->told.lent)
            note_change(connection, something, sizeof something - 1);
        break;
    default:
        break;
    }
    va_end(arguments);
}

void db_listen(db *connection)
{
    mysql_optionsv(connection->mysql, MARIADB_OPT_STATUS_CALLBACK, hear, connection);
}

struct st_mysql *db_lend(db *connection)
{
    connection->told.lent = 1;
    return connection->mysql;
}

void db_take_back(db *connection)
{
    connection->told.lent = 0;
}

const char *db_changed(const db *connection)
{
    return connection->told.changed;
}

/* The transaction is over.  The connection is kept only if its session is as it was made. */
static void ready_again(db *connection)
{
    static const char untold[] = "what it tells of itself";

    connection->callback_tx = CALLBACK_TX_READY;
    if (!connection->told.autocommit)
        note_change(connection, untold, sizeof untold - 1);
    if (connection->told.changed[0] != '\0')
        db_spoil(connection);
}

/* ------------------------------------------------------------ the transaction -- */

static int prepare_commit(db *connection)
{
    if (!connection->is_for_books)
        return db_prepare(connection, &commit);
    return db_prepare(connection, &books_commit) || db_prepare(connection, &group_commit);
}

static int set_savepoint(db *connection, void *what)
{
    const char *sql = connection->is_for_books ? "SET autocommit=0, @tl_changed=''"
                                               : "BEGIN NOT ATOMIC " TELL SET_SAVEPOINT "END";

    (void)what;
    connection->preparing = 1; /* nothing of the caller's is sent yet */
    if (prepare_commit(connection))
        return 1;
    if (mysql_real_query(connection->mysql, sql, strlen(sql))) {
        db_keep_error(connection, mysql_errno(connection->mysql), mysql_error(connection->mysql));
        return 1;
    }
    return 0;
}

/* With autocommit the lock's row would be a transaction of its own, without its books. */
static db_answer check_books(db *connection)
{
    if (!connection->is_for_books ||
        (!db_in_transaction(connection) &&
         !(connection->mysql->server_status & SERVER_STATUS_AUTOCOMMIT)))
        return DB_DONE;
    db_set_error(connection, 1568, "a transaction with books cannot begin here");
    db_spoil(connection);
    return DB_ERROR;
}

/* Switches autocommit off, prepares the commit and sets the savepoint, unless that is done
 * already. */
static db_answer make_ready(db *connection)
{
    db_answer answer;

    if (connection->callback_tx == CALLBACK_TX_READY)
        return check_books(connection);
    answer = db_round_trip(connection, FAULT_STATEMENT, "guard", set_savepoint, NULL);
    connection->preparing = 0;
    if (answer != DB_DONE) {
        db_spoil(connection); /* autocommit may be off */
        return answer;
    }
    connection->callback_tx = CALLBACK_TX_READY;
    return check_books(connection);
}

db_answer db_callback_tx_leave(db *connection)
{
    static const char sql[] = "SET autocommit=1";
    db_answer answer;

    connection->callback_tx = CALLBACK_TX_NONE;
    answer = db_run_text(connection, "unguard", sql, sizeof sql - 1, NULL);
    if (answer == DB_DONE)
        return DB_DONE;
    db_spoil(connection);
    return DB_NOT_SENT;
}

db_answer db_callback_tx_begin(db *connection, const struct sql_text *statement,
                               const db_value *values, size_t count, int nowait, db_result *result)
{
    if (db_in_transaction(connection)) {
        db_set_error(connection, 1568, "%s is not for a transaction", statement->name);
        return DB_ERROR;
    }
    TRY(make_ready(connection));
    memset(&connection->told, 0, sizeof connection->told);
    return db_run_first(connection, statement, values, count, nowait, result);
}

db_answer db_books_tx_begin(db *connection, db_request *requests, size_t count, size_t *done)
{
    db_answer answer = make_ready(connection);

    *done = 0;
    return answer == DB_DONE ? db_run_first_ahead(connection, requests, count, done) : answer;
}

db_answer db_group_tx_begin(db *connection)
{
    db_answer answer = make_ready(connection);

    if (answer == DB_DONE)
        connection->callback_tx = CALLBACK_TX_BEGUN;
    return answer;
}

/* A callback that ended the transaction may have changed more of the session. */
static db_answer judge(db *connection, db_answer answer)
{
    if (answer == DB_ERROR && connection->error_number == ERROR_NO_SAVEPOINT)
        db_spoil(connection);
    return answer;
}

static void lock_name(const db *connection, char to[DB_NAME_SIZE + 3])
{
    snprintf(to, DB_NAME_SIZE + 3, "tl:%s", connection->name);
}

static db_answer commit_books(db *connection, const db_value *name)
{
    db_answer answer = db_run_commit(connection, &books_commit, name, 1);

    if (answer == DB_DONE)
        connection->callback_tx = CALLBACK_TX_READY;
    return answer;
}

db_answer db_callback_tx_commit(db *connection)
{
    char name[DB_NAME_SIZE + 3];
    db_answer answer = DB_ERROR;
    db_value value;

    lock_name(connection, name);
    value = db_ascii(name);
    if (connection->is_for_books)
        return judge(connection, commit_books(connection, &value));
    connection->told.autocommit = 0;

    /* A reset took the prepared commit and the transaction with it, so nothing is sent. */
    if (db_was_reset(connection, &commit))
        db_set_error(connection, ERROR_NO_SAVEPOINT, "the connection was reset");
    else
        answer = db_run_commit(connection, &commit, &value, 1);
    if (answer == DB_DONE)
        ready_again(connection);
    return judge(connection, answer);
}

db_answer db_group_tx_commit(db *connection, const char *changed, int *committed)
{
    char name[DB_NAME_SIZE + 3];
    db_value values[2];
    db_answer answer;

    lock_name(connection, name);
    values[0] = db_text(changed);
    values[1] = db_ascii(name);
    answer = db_run_commit(connection, &group_commit, values, 2);
    *committed = answer == DB_DONE && !db_server_in_transaction(connection);
    if (*committed)
        connection->callback_tx = CALLBACK_TX_READY;
    return answer;
}

static db_answer rollback_books(db *connection)
{
    static const char sql[] = "BEGIN NOT ATOMIC ROLLBACK; SET @tl_changed = ''; END";
    db_answer answer = db_text_trip(connection, FAULT_ROLLBACK, "ROLLBACK", sql);

    if (answer == DB_DONE)
        connection->callback_tx = CALLBACK_TX_READY;
    else
        db_spoil(connection);
    return answer;
}

db_answer db_callback_tx_rollback(db *connection)
{
    char name[DB_NAME_SIZE + 3], sql[256];
    db_answer answer;

    if (connection->is_for_books)
        return rollback_books(connection);
    lock_name(connection, name);
    snprintf(sql, sizeof sql,
             "BEGIN NOT ATOMIC ROLLBACK; IF NOT IS_USED_LOCK('%s') <=> CONNECTION_ID() "
             "THEN RELEASE SAVEPOINT tl_callback; END IF; " SET_SAVEPOINT "END",
             name);
    connection->told.autocommit = 0;
    answer = db_text_trip(connection, FAULT_ROLLBACK, "ROLLBACK", sql);
    if (answer == DB_DONE)
        ready_again(connection);
    if (answer != DB_DONE || db_was_reset(connection, &commit))
        db_spoil(connection);
    return answer;
}

db_answer db_savepoint_release(db *connection)
{
    static const char sql[] = "RELEASE SAVEPOINT tl_callback";

    return judge(connection, db_run_text(connection, sql, sql, sizeof sql - 1, NULL));
}
