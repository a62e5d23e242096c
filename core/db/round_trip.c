/*
 * Every round trip passes here, and its answer is judged here.  Touches one connection.
 *
 * NOT_SENT means that libmariadb was not asked to write at all.  Either the connection was broken
 * before or belongs to another process; or the last look at its socket showed that the server had
 * closed it or said something unasked.  (A server that kills or shuts down an idle connection says
 * so first.  That look is the pool's when it gave the connection out, or one just before the
 * request.) After any later client error, CR_SERVER_GONE_ERROR included, the bytes may have left:
 * UNANSWERED. A statement outside a transaction that was only being prepared counts as not sent.
 *
 * An error that the server answered proves that nothing was committed, with these exceptions
 * (db_error_is_doubtful):
 *
 * - A COMMIT, or a statement that commits by itself, may have been committed if the server answers
 *   that it shuts down, that it killed the connection or the query, or that the commit went wrong.
 * - Of a block (sql/query) one statement may be committed, or its transaction still open, when the
 *   error comes from another one; and some errors bypass its handlers.  Only an error that says why
 *   nothing was done proves it.
 * - A statement that begins a callback transaction commits nothing.  So every error proves it,
 *   except one that ends the connection or the query; the transaction is then given up.
 */
#include "db/db_internal.h"

#include "base/clock.h"
#include "base/process.h"
#include "base/text.h"
#include "base/thread_context.h"

#include <errmsg.h>
#include <errno.h>
#include <limits.h>
#include <ma_pvio.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int db_error_is_client(unsigned number)
{
    return (number >= CR_MIN_ERROR && number <= 2999) || (number >= 5000 && number <= 5999);
}

void db_keep_error(db *connection, unsigned number, const char *text)
{
    /* The server read a trigger in part, since a statement was killed meanwhile.  Either it says
     * so, or it knows the trigger and not the table that the trigger alone writes. */
    if ((number == 1064 && strstr(text, "has an error in its body") != NULL) ||
        ((number == 1142 || number == 1146) && strstr(text, "tl_receipt") != NULL))
        number = ERROR_BROKEN_TRIGGER;
    connection->error_number = number;
    text_copy(connection->error_text, sizeof(connection->error_text), text);
}

void db_set_error(db *connection, unsigned number, const char *format, ...)
{
    va_list arguments;

    connection->error_number = number;
    va_start(arguments, format);
    vsnprintf(connection->error_text, sizeof(connection->error_text), format, arguments);
    va_end(arguments);
}

/* Between two statements the server sends nothing.  So if something can be read now, it is the
 * server's farewell or the end of the stream. */
static int peer_is_silent(db *connection)
{
    struct pollfd watched;
    int seen;

    if (!connection->mysql->net.pvio)
        return 0;
    watched.fd = (int)mysql_get_socket(connection->mysql);
    watched.events = POLLIN | POLLRDHUP;
    watched.revents = 0;
    if (watched.fd < 0)
        return 0;
    do
        seen = poll(&watched, 1, 0);
    while (seen < 0 && errno == EINTR);
    return seen == 0;
}

int db_alive(db *connection)
{
    connection->looked = connection->mysql && !connection->broken &&
                         connection->generation == process_generation() &&
                         peer_is_silent(connection);
    return connection->looked;
}

int db_has_unread(const db *connection)
{
    return connection->mysql && (connection->mysql->status != MYSQL_STATUS_READY ||
                                 connection->mysql->server_status & SERVER_MORE_RESULTS_EXIST);
}

int db_ready(db *connection)
{
    if (connection->generation != process_generation()) {
        db_set_error(connection, CR_COMMANDS_OUT_OF_SYNC,
                     "the connection belongs to the parent process");
        return 0;
    }
    if (connection->broken || !connection->mysql) {
        db_set_error(connection, CR_SERVER_GONE_ERROR, "the connection was lost before");
        return 0;
    }
    if (db_has_unread(connection)) {
        db_set_error(connection, CR_COMMANDS_OUT_OF_SYNC,
                     "the connection has results that were not read");
        return 0;
    }
    return 1;
}

static int may_write(db *connection)
{
    const int looked = connection->looked;

    connection->looked = 0;
    if (!db_ready(connection))
        return 0;
    if (!looked && !peer_is_silent(connection)) {
        connection->broken = 1;
        db_set_error(connection, CR_SERVER_GONE_ERROR, "the server had closed the connection");
        return 0;
    }
    return 1;
}

void db_await_for(MYSQL *mysql, int64_t ms)
{
    MARIADB_PVIO *pvio = mysql->net.pvio;
    const struct timeval time = {.tv_sec = ms > 0 ? ms / 1000 : 0,
                                 .tv_usec = ms > 0 ? ms % 1000 * 1000 : 0};

    if (pvio == NULL)
        return;
    pvio->timeout[PVIO_READ_TIMEOUT] = ms > 0 && ms < INT_MAX ? (int)ms : -1;
    /* TLS reads the socket itself. */
    (void)setsockopt((int)mysql_get_socket(mysql), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
}

/* The answer to the next request is awaited for as long as the thread waits, if that is shorter than
 * *as_set_ms, which is the connection's own time.  0: the thread's wait is over, so nothing is sent.  A
 * connection that nobody waits for is closed. */
static int may_await(db *connection, int64_t until_ms, int *as_set_ms)
{
    const int64_t left_ms = clock_left_ms(until_ms);

    *as_set_ms = connection->mysql->net.pvio->timeout[PVIO_READ_TIMEOUT];
    if (left_ms == 0) {
        connection->broken = 1;
        db_set_error(connection, CR_SERVER_LOST, "the wait for an answer is over");
        return 0;
    }
    if (*as_set_ms < 0 || left_ms < *as_set_ms)
        db_await_for(connection->mysql, left_ms);
    return 1;
}

static void count_error(db *connection)
{
    switch (connection->error_number) {
    case ERROR_DEADLOCK:
        db_counter_add(&connection->counters.deadlocks, 1);
        break;
    case 1205:
        db_counter_add(&connection->counters.lock_waits, 1);
        break;
    case 1020:
        db_counter_add(&connection->counters.snapshot_conflicts, 1);
        break;
    default:
        break;
    }
}

/* A statement that was only being prepared has not been run, whatever went wrong.  But in a
 * transaction the answer is UNANSWERED: that transaction may still be open at the server, and
 * whoever settles the lost answer ends it. */
static db_answer judge_lost(db *connection)
{
    connection->broken = 1;
    if (!connection->preparing || db_in_transaction(connection))
        return DB_UNANSWERED;
    return connection->error_number == CR_OUT_OF_MEMORY ? DB_NO_MEMORY : DB_NOT_SENT;
}

/* Whether the server closed the connection, as it does with one that is killed.  A time-out of the
 * network leaves no half of it open. */
static int peer_has_closed(const db *connection)
{
    struct pollfd watched = {.fd = connection->cut_fd, .events = POLLRDHUP};
    struct tcp_info tcp;
    socklen_t size = sizeof tcp;

    if (connection->cut_fd < 0)
        return 0;
    if (getsockopt(connection->cut_fd, IPPROTO_TCP, TCP_INFO, &tcp, &size) == 0)
        return tcp.tcpi_state == TCP_CLOSE_WAIT;
    return poll(&watched, 1, 0) == 1 && (watched.revents & (POLLRDHUP | POLLHUP)) != 0;
}

static db_answer judge(db *connection, fault_kind kind, int commits)
{
    unsigned number = connection->error_number;

    if (db_error_is_client(number)) {
        connection->silent_ms = peer_has_closed(connection) ? 0 : connection->trip_ms;
        return judge_lost(connection);
    }
    count_error(connection);
    /* An error does not tell the server's status: the transaction may be gone although the last
     * answer said that there was one. */
    if (db_error_kind_of(number) == DB_KIND_REPEAT)
        connection->rolled_back = 1;
    if (db_error_ends_connection(number))
        connection->broken = 1;
    /* Another server may take writes now, and this connection would never lead there. */
    if (db_error_is_read_only(connection))
        connection->read_only = 1;
    if (connection->only_reads && number == ERROR_INTERRUPTED)
        return DB_ERROR;
    if (connection->preparing)
        return db_error_kind_of(number) == DB_KIND_GONE ? judge_lost(connection) : DB_ERROR;
    if (commits && db_error_is_doubtful(connection, kind == FAULT_COMMIT)) {
        connection->broken = 1;
        return DB_UNANSWERED;
    }
    return DB_ERROR;
}

db_answer db_round_trip(db *connection, fault_kind kind, const char *name, db_trip trip, void *what)
{
    int commits =
        kind == FAULT_COMMIT ||
        (kind == FAULT_STATEMENT && (!db_in_transaction(connection) || connection->rolled_back));
    const int64_t until_ms = thread_context_awaits_until();
    int64_t begin_ms;
    int failed, as_set_ms = -1;

    (void)name;
    /* Autocommit is off here; only the first statement of a callback transaction may begin one. */
    if (connection->callback_tx == CALLBACK_TX_READY && kind == FAULT_STATEMENT &&
        !connection->begins && !connection->is_for_books &&
        db_callback_tx_leave(connection) != DB_DONE)
        return DB_NOT_SENT;
    fault_point(kind, name, "before");
    if (!may_write(connection) || (until_ms != 0 && !may_await(connection, until_ms, &as_set_ms)))
        return DB_NOT_SENT;
    db_keep_error(connection, 0, "");
    begin_ms = clock_boottime_ms();
    failed = trip(connection, what);
    connection->trip_ms = clock_boottime_ms() - begin_ms;
    if (until_ms != 0)
        db_await_for(connection->mysql, as_set_ms);
    fault_point(kind, name, "after");
    if (!failed && mysql_thread_id(connection->mysql) !=
                       (unsigned long)(connection->thread_id & 0xffffffffu)) {
        db_set_error(connection, CR_SERVER_LOST, "the connection was replaced by another");
        failed = 1;
    }
    if (kind == FAULT_STATEMENT)
        db_counter_add(&connection->counters.statements, 1);
    if (!failed) {
        connection->rolled_back = 0;
        if (kind == FAULT_COMMIT)
            db_counter_add(&connection->counters.commits, 1);
        if (kind == FAULT_ROLLBACK)
            db_counter_add(&connection->counters.rollbacks, 1);
        return DB_DONE;
    }
    if (!connection->error_number)
        db_set_error(connection, CR_UNKNOWN_ERROR, "the answer could not be read");
    return judge(connection, kind, commits);
}
