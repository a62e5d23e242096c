/* Begins and ends the transactions of a connection, and tells its state.  Touches one
 * connection. */
#include "db/db_internal.h"

#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"

#include <errmsg.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* In the child of a fork the socket is the parent's.  What libmariadb sends while it closes
 * (COM_STMT_CLOSE, COM_QUIT, the end of TLS) must not reach it. */
static void muffle(MYSQL *mysql)
{
    int fd = (int)mysql_get_socket(mysql);
    int nothing;

    if (fd < 0)
        return;
    nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0 || dup2(nothing, fd) < 0)
        close(fd); /* libmariadb then writes to no descriptor at all */
    if (nothing >= 0)
        close(nothing);
}

static void close_cut(db *connection)
{
    if (connection->cut_fd >= 0)
        close(connection->cut_fd);
    connection->cut_fd = -1;
}

void db_cut(db *connection)
{
    if (connection->cut_fd >= 0)
        (void)shutdown(connection->cut_fd, SHUT_RDWR);
}

void db_close(db *connection)
{
    if (!connection)
        return;
    if (connection->mysql && !connection->borrowed) {
        if (connection->generation != process_generation())
            muffle(connection->mysql);
        db_statements_free(connection);
        mysql_close(connection->mysql);
    }
    close_cut(connection);
    memory_free(connection->binds);
    memory_free(connection->columns);
    memory_free(connection);
}

void db_drop(db **connection)
{
    db *old = *connection;

    *connection = NULL;
    db_close(old);
}

void db_abandon(db *connection)
{
    if (connection && connection->mysql && !connection->borrowed)
        muffle(connection->mysql);
    if (connection)
        close_cut(connection);
}

const char *db_name(const db *connection)
{
    return connection->name;
}

uint64_t db_thread_id(const db *connection)
{
    return connection->thread_id;
}

struct st_mysql *db_raw(db *connection)
{
    return connection->mysql;
}

int db_wrong_process(const db *connection)
{
    return connection->generation != process_generation();
}

void db_only_reads(db *connection, int does)
{
    connection->only_reads = does;
}

void db_spoil(db *connection)
{
    connection->broken = 1;
}

void db_set_server(db *connection, const db_server *server)
{
    connection->server = server;
}

const db_server *db_server_of(const db *connection)
{
    return connection->server;
}

db_server_state db_state_of(const db_server *server)
{
    return server != NULL ? atomic_load(&server->state) : DB_SERVER_MAY_LACK;
}

int db_server_is_used(const db_server *server)
{
    const db_server_state state = db_state_of(server);

    return state != DB_SERVER_STALE && state != DB_SERVER_LEFT;
}

int db_refused_writes(const db *connection)
{
    return connection->read_only;
}

int db_was_silent(const db *connection, int64_t ms)
{
    return connection->broken && connection->silent_ms >= ms;
}

int db_usable(const db *connection)
{
    return !connection->broken && !connection->read_only && db_server_is_used(connection->server) &&
           !db_wrong_process(connection) && connection->mysql->net.pvio &&
           connection->mysql->status == MYSQL_STATUS_READY && !db_in_transaction(connection);
}

int db_server_in_transaction(const db *connection)
{
    return (connection->mysql->server_status & SERVER_STATUS_IN_TRANS) != 0;
}

/* If a caller has switched autocommit off, the next statement belongs to a transaction even before
 * one has begun. */
int db_in_transaction(const db *connection)
{
    if (connection->callback_tx == CALLBACK_TX_BEGUN)
        return 1;
    if (connection->callback_tx == CALLBACK_TX_READY && !connection->is_for_books)
        return 0;
    return db_server_in_transaction(connection) ||
           (connection->borrowed && !(connection->mysql->server_status & SERVER_STATUS_AUTOCOMMIT));
}

int db_met_deadlock(const db *connection)
{
    return connection->mysql && mysql_errno(connection->mysql) == ERROR_DEADLOCK;
}

int db_met_broken_trigger(const db *connection)
{
    return connection->error_number == ERROR_BROKEN_TRIGGER;
}

int db_lost_in_transaction(db *connection, db_answer answer)
{
    if (!db_in_transaction(connection) || db_wrong_process(connection))
        return 0;
    if (answer == DB_ERROR && db_error_kind_of(connection->error_number) == DB_KIND_GONE)
        db_spoil(connection); /* KILL QUERY alone would leave it open */
    return answer != DB_DONE && connection->broken;
}

unsigned db_errno(const db *connection)
{
    return connection->error_number;
}

int db_row_is_taken(const db *connection)
{
    return connection->error_number == 1205 && connection->trip_ms < DB_TABLE_WAIT_MIN_MS;
}

const char *db_error(const db *connection)
{
    return connection->error_text;
}

const db_counters *db_count(const db *connection)
{
    return &connection->counters;
}

void db_counter_add(uint64_t *counter, uint64_t by)
{
    __atomic_store_n(counter, *counter + by, __ATOMIC_RELAXED);
}

static uint64_t counter_of(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

void db_count_add(db_counters *sum, const db *connection)
{
    const db_counters *from = &connection->counters;

    sum->statements += counter_of(&from->statements);
    sum->commits += counter_of(&from->commits);
    sum->rollbacks += counter_of(&from->rollbacks);
    sum->deadlocks += counter_of(&from->deadlocks);
    sum->lock_waits += counter_of(&from->lock_waits);
    sum->snapshot_conflicts += counter_of(&from->snapshot_conflicts);
}

/* "Duplicate entry 'x' for key 'PRIMARY'": the last quoted word, without the table's name. */
const char *db_duplicate_key(const db *connection)
{
    static _Thread_local char key[65];
    const char *end, *from;
    size_t size;

    key[0] = '\0';
    if (connection->error_number != 1062)
        return key;
    end = strrchr(connection->error_text, '\'');
    if (!end)
        return key;
    for (from = end; from > connection->error_text && from[-1] != '\'' && from[-1] != '.'; from--)
        ;
    size = (size_t)(end - from);
    if (size >= sizeof(key))
        size = sizeof(key) - 1;
    memcpy(key, from, size);
    key[size] = '\0';
    return key;
}

/* ------------------------------------------------------- text statements -- */

struct text_call {
    const char *sql;
    size_t size;
    db_result *result;
};

static int take_text_rows(MYSQL_RES *rows, db_result *result)
{
    unsigned columns = mysql_num_fields(rows), column;
    const MYSQL_FIELD *fields = mysql_fetch_fields(rows);
    size_t count = (size_t)mysql_num_rows(rows), row;

    if (db_result_shape(result, count, columns))
        return 1;
    for (row = 0; row < count; row++) {
        MYSQL_ROW values = mysql_fetch_row(rows);
        unsigned long *sizes = mysql_fetch_lengths(rows);

        if (!values || !sizes)
            return 1;
        for (column = 0; column < columns; column++) {
            if (!values[column])
                db_result_put_null(result, row, column);
            else if (db_result_put(result, row, column, values[column], sizes[column],
                                   db_type_is_number(fields[column].type)))
                return 1;
        }
    }
    result->affected = count;
    return 0;
}

static int run_text(db *connection, void *what)
{
    const struct text_call *call = what;
    MYSQL *mysql = connection->mysql;
    MYSQL_RES *rows;
    int failed = 0;

    if (mysql_real_query(mysql, call->sql, call->size)) {
        db_keep_error(connection, mysql_errno(mysql), mysql_error(mysql));
        return 1;
    }
    if (!mysql_field_count(mysql)) {
        if (call->result)
            call->result->affected = mysql_affected_rows(mysql);
        return 0;
    }
    rows = mysql_store_result(mysql);
    if (!rows) {
        db_keep_error(connection, mysql_errno(mysql), mysql_error(mysql));
        return 1;
    }
    if (call->result && take_text_rows(rows, call->result)) {
        db_set_error(connection, CR_OUT_OF_MEMORY, "out of memory for the answer");
        failed = 1;
    }
    mysql_free_result(rows);
    return failed;
}

static db_answer text_trip(db *connection, fault_kind kind, const char *name, const char *sql,
                           size_t size, db_result *result)
{
    struct text_call call = {sql, size, result};

    if (result)
        db_result_clear(result);
    return db_round_trip(connection, kind, name, run_text, &call);
}

db_answer db_run_text(db *connection, const char *name, const char *sql, size_t size,
                      db_result *result)
{
    return text_trip(connection, FAULT_STATEMENT, name, sql, size, result);
}

db_answer db_text_trip(db *connection, fault_kind kind, const char *name, const char *sql)
{
    return text_trip(connection, kind, name, sql, strlen(sql), NULL);
}

db_answer db_begin(db *connection)
{
    static const char sql[] = "START TRANSACTION";

    return db_text_trip(connection, FAULT_STATEMENT, sql, sql);
}

db_answer db_commit(db *connection)
{
    return db_text_trip(connection, FAULT_COMMIT, "COMMIT", "COMMIT");
}

db_answer db_rollback(db *connection)
{
    return connection->callback_tx != CALLBACK_TX_NONE
               ? db_callback_tx_rollback(connection)
               : db_text_trip(connection, FAULT_ROLLBACK, "ROLLBACK", "ROLLBACK");
}

static int ping(db *connection, void *what)
{
    (void)what;
    if (!mysql_ping(connection->mysql))
        return 0;
    db_keep_error(connection, mysql_errno(connection->mysql), mysql_error(connection->mysql));
    return 1;
}

int db_ping(db *connection)
{
    return db_round_trip(connection, FAULT_STATEMENT, "ping", ping, NULL) == DB_DONE;
}
