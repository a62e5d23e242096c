/*
 * One connection.  This room alone knows libmariadb.
 *
 * Every call gives one of five answers, since "connection lost" does not say whether it was done:
 *   DB_DONE        the server did it and the whole answer was read
 *   DB_ERROR       the server answered with an error; db_errno() says which
 *   DB_NOT_SENT    the request provably never left this process
 *   DB_UNANSWERED  it was sent, and whether it was carried out is not known
 *   DB_NO_MEMORY   out of memory before anything was asked to be done
 * After NOT_SENT or UNANSWERED the connection is broken: its owner closes it and never uses it
 * again.  There is no automatic reconnect.
 *
 * Needs: one thread at a time for each connection.
 */
#ifndef TL_DB_DB_H
#define TL_DB_DB_H

#include <tradelock/tradelock.h>

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef struct db db;

/* What is known of the server that a connection leads to.  Whoever finds it out keeps one for each
 * server, and all connections to that server point to it (client/restored.h). */
typedef enum db_server_state {
    DB_SERVER_MAY_LACK, /* commits may be missing there, or nobody has looked */
    DB_SERVER_WHOLE,    /* it was accepted */
    DB_SERVER_REPLICA,  /* the same, and it takes no writes: it is only read */
    DB_SERVER_STALE,    /* the same, and a whole one is there: only new connections look at it */
    DB_SERVER_RIVAL,    /* it was accepted, and so was another one, neither after the other: both
                         * take writes, and neither grants */
    DB_SERVER_LEFT      /* another one was accepted after it: no connection to it is used */
} db_server_state;
typedef struct db_server {
    _Atomic db_server_state state;
    _Atomic int takes_no_writes; /* it was read-only when somebody looked last */
} db_server;

typedef enum db_answer { DB_DONE, DB_ERROR, DB_NOT_SENT, DB_UNANSWERED, DB_NO_MEMORY } db_answer;

/* A statement of sql/, made by the build.  Its address is its identity. */
struct sql_text;

typedef enum db_type { DB_NULL, DB_INT, DB_UINT, DB_TEXT, DB_BYTES } db_type;

typedef struct db_value {
    db_type type;
    int64_t int_value; /* DB_UINT: the same bits */
    const void *data;  /* DB_TEXT, DB_BYTES; borrowed during the call */
    size_t size;
} db_value;

static inline db_value db_null(void)
{
    db_value value = {DB_NULL, 0, NULL, 0};
    return value;
}
static inline db_value db_int(int64_t number)
{
    db_value value = {DB_INT, number, NULL, 0};
    return value;
}
static inline db_value db_uint(uint64_t number)
{
    db_value value = {DB_UINT, (int64_t)number, NULL, 0};
    return value;
}
/* NULL text is SQL NULL. */
db_value db_text(const char *text);
/* For a value that goes into an ASCII column and is compared with nothing.  The server takes it as
 * it is; it would convert other text letter by letter. */
db_value db_ascii(const char *text);
/* The bytes of a UUID's text, for a column of that type; they stand in `to`, which must live as
 * long as the value.  NULL is SQL NULL. */
#define DB_UUID 16
db_value db_uuid(const char *text, unsigned char to[DB_UUID]);
static inline db_value db_bytes(const void *data, size_t size)
{
    db_value value = {data ? DB_BYTES : DB_NULL, 0, data, size};
    return value;
}

/* A result, read completely.  Starts as DB_RESULT_INIT, is reused by later calls, and is freed with
 * db_result_free(). */
typedef struct db_result {
    size_t rows, columns;
    uint64_t affected;
    uint64_t insert_id;    /* what LAST_INSERT_ID(...) said, of a statement without rows */
    struct db_cell *cells; /* rows * columns */
    char *data;            /* the cells' bytes, each followed by a NUL */
    size_t cell_space, data_space;
    int has_heading; /* asked for by the caller: the first row has the columns' names */
} db_result;

#define DB_RESULT_INIT {0, 0, 0, 0, NULL, NULL, 0, 0, 0}

void db_result_free(db_result *result);
/* A result that is freed with the block that has it: RESULT rows = DB_RESULT_INIT; */
#define RESULT __attribute__((cleanup(db_result_free))) db_result
/* Makes `to` a result of that row alone.  DB_DONE or DB_NO_MEMORY. */
db_answer db_result_copy_row(db_result *to, const db_result *from, size_t row);
int db_is_null(const db_result *result, size_t row, size_t column);
/* 0 for NULL. */
int64_t db_get_int(const db_result *result, size_t row, size_t column);
uint64_t db_get_uint(const db_result *result, size_t row, size_t column);
/* "" and size 0 for NULL; ends with a NUL. */
const char *db_get_text(const db_result *result, size_t row, size_t column);
const void *db_get_bytes(const db_result *result, size_t row, size_t column, size_t *size);
/* Whether it is these bytes; never for NULL. */
int db_is_bytes(const db_result *result, size_t row, size_t column, const void *bytes, size_t size);

/* One of several hosts that a settings file names. */
#define DB_HOSTS_MAX 8
typedef struct db_host {
    char name[256]; /* a name, an address, or the path of a socket */
    unsigned port;  /* 0: that of the settings */
} db_host;
typedef struct db_hosts {
    db_host host[DB_HOSTS_MAX];
    size_t count; /* 0: none, or one whose port is not in its name, which libmariadb reads */
} db_hosts;

typedef struct db_options {
    const char *option_file; /* read by libmariadb itself */
    const char *group;       /* "tradelock-client", or with a suffix */
    const char *over_group;  /* a section whose lines count above those of the group; or NULL */
    const char *database;    /* or NULL */
    /* Instead of those in the file; both, or NULL. */
    const char *user, *password;
    const db_host *host;  /* instead of the file's; or NULL */
    unsigned lock_wait_s; /* innodb_lock_wait_timeout of the connection */
    unsigned idle_transaction_s;
    unsigned connect_timeout_s;
    unsigned read_timeout_s; /* a silent server is a lost answer after this */
    /* A machine that acknowledges no packet for so long is a lost connection, also while the answer
     * may take longer; 0: as the system has it. */
    unsigned silent_s;
    int allow_insecure; /* TCP beyond loopback without verified TLS */
    /* For transactions of declared books, in which no callback runs: its callback transactions need
     * no savepoint, and nobody is told of the session.  So long DB_WAIT_LONG waits. */
    int is_for_books;
    unsigned books_lock_wait_s;
} db_options;

/* The hosts that the option file names.  TL_BAD_CONFIG: the list cannot be used, and the sentence
 * says why. */
tl_status db_hosts_read(db_hosts *out, const db_options *options);
/* TL_BAD_CONFIG: it is certain that there is no host of that name. */
tl_status db_host_known(const db_host *host);

/*
 * Connects, fixes the session (READ COMMITTED, strict mode, UTC, autocommit, time-outs) and takes
 * GET_LOCK('tl:' + a random UUID), by which others can name this connection.
 */
tl_status db_open(db **out, const db_options *options);
void db_close(db *connection);
/* The same, and the pointer is NULL before: so a child that is forked meanwhile closes nothing that is
 * closed already. */
void db_drop(db **connection);

/* For the child of a fork, if another thread of the parent was using the connection: closes the
 * child's copy of the socket and frees nothing, since libmariadb's memory may be half changed.
 * db_close() in the child frees memory, and sends nothing either. */
void db_abandon(db *connection);

/* The UUID of the connection's name; its GET_LOCK name is "tl:" and this. */
const char *db_name(const db *connection);
uint64_t db_thread_id(const db *connection);
/* Open, clean, not in a transaction; and it leads to a server that is not left, and that has not
 * refused a write here as read-only. */
int db_usable(const db *connection);
/* Whether the server refused a write here as read-only. */
int db_refused_writes(const db *connection);
/* Any thread, while nobody closes it: ends the connection under whoever uses it, who gets a lost
 * answer.  Only with silent_s. */
void db_cut(db *connection);
/* Whether it was lost since a request got no answer for so long.  The server's word that it killed
 * the statement, or its closing of the connection, is an answer, however long that had waited. */
int db_was_silent(const db *connection, int64_t ms);
/* Which server it leads to; `server` outlives the connection. */
void db_set_server(db *connection, const db_server *server);
/* NULL: nobody has looked. */
const db_server *db_server_of(const db *connection);
/* NULL may lack commits. */
db_server_state db_state_of(const db_server *server);
/* Whether a connection to it may be used; 0: another one may lead elsewhere, or look anew. */
int db_server_is_used(const db_server *server);
/* Tells what the server said last or, in a callback transaction (below), what was asked of it;
 * on a caller's connection it also says yes if autocommit is off.  It still says yes after an
 * error that rolled the transaction back (1213, 1020).  So a statement that must not commit by
 * itself on a caller's connection needs the condition "AND @@in_transaction = 1", which the
 * server evaluates. */
int db_in_transaction(const db *connection);

/* Whether unread results were left on it; nothing can be sent before they are read. */
int db_has_unread(const db *connection);

/* Whether its last error was a deadlock. */
int db_met_deadlock(const db *connection);

/* From now on, or no longer, this connection only reads, outside of a transaction: a statement that
 * KILL QUERY interrupts is DB_ERROR then, and the connection goes on. */
void db_only_reads(db *connection, int does);

/* From now on the connection counts as broken, so that the pool closes it; for instance since a
 * callback may have changed its session. */
void db_spoil(db *connection);
/* Whether the last answer ends the connection while its transaction may still be open at the
 * server.  The row locks of that transaction are then in the way of a repeat. */
int db_lost_in_transaction(db *connection, db_answer answer);
int db_wrong_process(const db *connection); /* made before a fork() */

/* 0: the socket shows that the server has closed the connection.  It costs no round trip.  For use
 * directly before a request, which then does not look again.  db_ping() asks the server. */
int db_alive(db *connection);
int db_ping(db *connection);

/* Wraps a caller's connection.  db_close() frees the wrapper only.  Prepared statements on it are
 * not kept. */
tl_status db_borrow(db **out, struct st_mysql *caller);
/* libmariadb's own object. */
struct st_mysql *db_raw(db *connection);
/* The same, lent to a callback in a callback transaction until it has returned. */
struct st_mysql *db_lend(db *connection);
void db_take_back(db *connection);

/* Runs a statement with `count` values (sql_text.h); it is prepared once for each connection.
 * result may be NULL. */
db_answer db_run(db *connection, const struct sql_text *statement, const db_value *values,
                 size_t count, db_result *result);

/* The same without waiting for row locks, on a connection whose other statements wait: with this in
 * front. */
#define DB_WAIT_PREFIX(seconds) "SET STATEMENT innodb_lock_wait_timeout=" seconds " FOR "
#define DB_NOWAIT_PREFIX DB_WAIT_PREFIX("0")
#define DB_NEVER_PREFIX "SET STATEMENT innodb_lock_wait_timeout=0,lock_wait_timeout=0 FOR "
db_answer db_run_nowait(db *connection, const struct sql_text *statement, const db_value *values,
                        size_t count, db_result *result);
/* How long a statement waits for row locks; for a locked table as the session says, a second or
 * more. */
enum db_wait {
    DB_WAIT_AS_SET, /* by the session */
    DB_WAIT_NOT,
    DB_WAIT_NEVER, /* nor for a locked table: db_row_is_taken() says so of that too */
    DB_WAIT_LONG   /* on a connection for books, whose other statements do not */
};
db_answer db_run_with_wait(db *connection, enum db_wait wait, const struct sql_text *statement,
                           const db_value *values, size_t count, db_result *result);

/* Several statements of one transaction, for one round trip. */
#define DB_AHEAD_MAX 9
typedef struct db_request {
    const struct sql_text *statement; /* each one once */
    const db_value *values;
    size_t count;
    enum db_wait wait;
    uint64_t affected; /* once it is done */
    db_result *result; /* gets what it returns; NULL: nobody wants it */
} db_request;
/* Sends them all before it reads the first answer.  The server carries out each of them, whatever
 * became of those before it: unless all are done, and as they should be, the transaction has to be
 * rolled back.  *done: how many were, before the first that was not.  What the connection has not
 * prepared yet is waited for, and then nothing is carried out after an error. */
db_answer db_run_ahead(db *connection, db_request *requests, size_t count, size_t *done);

/* Many rows of values for a statement that has one row of parameters, row after row. */
typedef struct db_rows {
    const db_value *values;
    size_t rows, columns;
    enum db_wait wait;
} db_rows;
/* One execution for all of them, and one commit outside a transaction.  RETURNING gives a row for
 * each, and affected is the sum.  An error undid all of them; in a transaction, once that is rolled
 * back.  Not for a caller's connection, which may have another character set. */
db_answer db_run_rows(db *connection, const struct sql_text *statement, const db_rows *rows,
                      db_result *result);

/* Runs one text statement as it is. */
db_answer db_run_text(db *connection, const char *name, const char *sql, size_t size,
                      db_result *result);

/* Runs several statements, each of which commits by itself, up to the first that fails; db_error()
 * then says which one. */
db_answer db_run_script(db *connection, const char *name, const char *text);

/* Writes a value as a literal into a text statement; returns the end.  `to` has room for
 * db_literal_size(). */
size_t db_literal_size(const db_value *value);
char *db_literal(char *to, const db_value *value);

db_answer db_begin(db *connection);
db_answer db_commit(db *connection);
db_answer db_rollback(db *connection);
/* After an error: rolls back, and keeps the error's number and words.  An error does not say
 * whether a transaction is left open, and some errors bypass the handlers of a block or a
 * procedure.  The next transaction on the connection would commit what was left open.  Returns
 * DB_ERROR; DB_UNANSWERED if the server may still be rolling back, so that rows are locked. */
db_answer db_undo(db *connection);

/*
 * The callback transaction (callback_tx.c): a callback runs statements of its own in it.
 *
 * It begins with a statement, outside any transaction.  Its commit first releases a savepoint that
 * was set before; a callback that committed or rolled back has lost that savepoint.  Then nothing
 * is committed, the error is ERROR_NO_SAVEPOINT, and the connection counts as broken.  The same
 * happens when the connection has lost its name.
 *
 * Beginning and committing are one round trip each, once the statements are prepared and the
 * savepoint is set.  Both stay for the next callback transaction; anything else that is run in
 * between costs one round trip more.  A transaction that began ends with db_callback_tx_commit() or
 * db_rollback(), whatever an answer said; before that the connection is usable for nothing else.
 */
#define ERROR_NO_SAVEPOINT 1305
db_answer db_callback_tx_begin(db *connection, const struct sql_text *statement,
                               const db_value *values, size_t count, int nowait, db_result *result);
/* The same on a connection for declared books, with the statements that follow, in one round trip
 * (db_run_ahead).  The first one has a result; what is not prepared yet goes one by one, and does not
 * go at all if the first one changed nothing. */
db_answer db_books_tx_begin(db *connection, db_request *requests, size_t count, size_t *done);
db_answer db_callback_tx_commit(db *connection);
/* The same for a group with declared books, on a connection for those: it begins with whatever
 * statement comes next, and @tl_changed is empty.  It commits if @tl_changed is what `changed` says
 * and the connection has its name; else DB_DONE without *committed, and it is still open. */
db_answer db_group_tx_begin(db *connection);
db_answer db_group_tx_commit(db *connection, const char *changed, int *committed);
/* Whether the savepoint is still there, for a callback that failed. */
db_answer db_savepoint_release(db *connection);
/* After the commit or the rollback: what the callback changed of the session, such as a variable's
 * name; "": nothing.  A changed connection counts as broken. */
const char *db_changed(const db *connection);

unsigned db_errno(const db *connection); /* of the last DB_ERROR or lost answer */
/* After DB_UNANSWERED: the server's error, if a block failed and it is not known how far it had
 * come.  0: the answer itself was lost, or the error may pass by itself. */
unsigned db_failed_with(const db *connection);
const char *db_error(const db *connection);
/* Whether the last error says that an open transaction holds the row, after a statement that does
 * not wait for rows.  The server also answers 1205 while a table is altered or a backup holds back
 * commits, but only after lock_wait_timeout. */
int db_row_is_taken(const db *connection);
/* Whether the last error says that the server gave the statement a broken copy of a table's
 * triggers, which a killed statement left.  The next statement may get another copy. */
int db_met_broken_trigger(const db *connection);

/* After 1062: the name of the key, "PRIMARY" or another; else "".  Valid until the thread's next
 * call. */
const char *db_duplicate_key(const db *connection);

/* What may be done about the last DB_ERROR: one table (db/error_kind.c). */
typedef enum db_error_kind {
    DB_KIND_REPEAT, /* 1213, 1020, 1205, 1243: the work may be repeated, once it is rolled back */
    DB_KIND_DUPLICATE,  /* 1062 */
    DB_KIND_READ_ONLY,  /* 1290, 1792, 1836 */
    DB_KIND_OVERLOADED, /* 1040, 1203, 1226 */
    DB_KIND_ACCESS,     /* 1044, 1045, 1142, 1143, 1370, 1698 */
    DB_KIND_SCHEMA,     /* 1049, 1054, 1146, 1305 */
    DB_KIND_MOVES,      /* 31004: a trigger refused, while the customer's slot is being moved */
    DB_KIND_GONE,       /* 1053, 1927, 1317 ... the server is ending the connection */
    DB_KIND_OTHER
} db_error_kind;
db_error_kind db_error_kind_of(unsigned number);
/* The status and one clear sentence for the last error of the connection. */
tl_status db_error_status(const db *connection, db_answer answer, const char *doing);
/* The same after a statement that may be run again, such as a read: after a lost answer the server
 * is unreachable, and nothing is unknown. */
tl_status db_read_status(const db *connection, db_answer answer, const char *doing);

/* Counters, summed by the pool. */
typedef struct db_counters {
    uint64_t statements, commits, rollbacks, deadlocks, lock_waits, snapshot_conflicts;
} db_counters;
const db_counters *db_count(const db *connection);
/* Adds them to sum; allowed while another thread uses the connection. */
void db_count_add(db_counters *sum, const db *connection);

#endif
