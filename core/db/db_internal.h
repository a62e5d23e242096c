/*
 * What the files of this room share.  Nobody outside core/db includes it.
 */
#ifndef TL_DB_DB_INTERNAL_H
#define TL_DB_DB_INTERNAL_H

#include "db/db.h"

#include "base/fault.h"

#include <mysql.h>
#include <stdio.h>

#define DB_NAME_SIZE 37
#define DB_ERROR_SIZE 512
#define DB_INLINE_CELL 256
#define DB_NAME_A_CA                                                                               \
    "ssl-ca has to name the file of the authority that signed the server's certificate, and host " \
    "a name that stands in it"

struct db_cell {
    size_t offset, size; /* in data; numbers are there as text too */
    int64_t number;
    char is_null, is_number;
};

/* A prepared statement of this connection. */
struct db_prepared {
    const struct sql_text *text;
    enum db_wait wait;
    MYSQL_STMT *stmt;
};

/* Where libmariadb puts a fetched value; longer ones are fetched a second time. */
struct db_column {
    int64_t number;
    unsigned long length;
    my_bool is_null, cut;
    char text[DB_INLINE_CELL];
};

/* lock_wait_timeout is a second or more. */
#define DB_TABLE_WAIT_MIN_MS 900

#define ERROR_DEADLOCK 1213
/* KILL QUERY ended the statement. */
#define ERROR_INTERRUPTED 1317
/* The server has forgotten the statement, and says so before it does anything. */
#define ERROR_NOT_PREPARED 1243
/* What the trigger of trade_lock says of a failure while a restore is open. */
#define ERROR_RESTORED 31001
/* A number of ours for 1064 of a trigger.  A statement that is killed while the server reads a
 * table's triggers leaves a copy of the table whose trigger "has an error in its body" (10.11).
 * The server keeps it among the copies that it gives to statements. */
#define ERROR_BROKEN_TRIGGER 31002
/* What the triggers of a fleet's database say (sql/fleet): the customer's slot is not of this shard,
 * and: it is being moved to another one. */
#define ERROR_MISDIRECTED 31003
#define ERROR_SLOT_MOVES 31004
/* What tl_guard says of a session that has made a temporary table, as a function that a book's
 * trigger called may have: the connection is closed, and the work done on another. */
#define ERROR_BENT 31005

/* The state of the callback transaction (callback_tx.c).  What the server says of its own state is
 * not believed then: a callback that has the connection can change it. */
enum db_callback_tx {
    CALLBACK_TX_NONE,  /* autocommit is on */
    CALLBACK_TX_READY, /* autocommit is off, and the savepoint set */
    CALLBACK_TX_BEGUN  /* the first statement was sent; until a commit or a rollback was answered */
};

/* What the server told of the session since a callback transaction began (callback_tx.c). */
struct db_told {
    int lent;         /* a callback has the connection now */
    int autocommit;   /* told by our own commit or rollback, so that the rest was told too */
    char changed[64]; /* by the callback: a variable, or what else; "" */
};

struct db {
    MYSQL *mysql;
    int borrowed;
    int broken;                      /* never used again */
    int read_only;                   /* the server refused a write as read-only: not lent again */
    const db_server *_Atomic server; /* read by who cuts it as well */
    int cut_fd;                      /* its socket once more, for db_cut(); -1: none */
    int rolled_back;                 /* the last error may have rolled back */
    int in_block;                    /* the statement under way is one */
    enum db_callback_tx callback_tx;
    struct db_told told;
    int begins;          /* the statement under way only begins a transaction */
    int only_reads;      /* db_only_reads() */
    int preparing;       /* the request under way runs nothing yet */
    int looked;          /* db_alive() was the last call */
    int64_t trip_ms;     /* how long the last round trip took */
    int64_t silent_ms;   /* the same of the one that got no answer; 0: none */
    unsigned generation; /* the process it was made in */
    uint64_t thread_id;
    unsigned lock_wait_s; /* as in the options */
    int is_for_books;     /* the same */
    unsigned books_lock_wait_s;
    char name[DB_NAME_SIZE];

    unsigned error_number;
    char error_text[DB_ERROR_SIZE];

    struct db_prepared *prepared;
    size_t prepared_count, prepared_space;
    MYSQL_BIND *binds;
    size_t bind_space;
    struct db_column *columns;
    size_t column_space;

    db_counters counters;
};

/* -- round_trip.c: every packet passes here -- */

/* Sends and reads.  0; or not 0, and the connection's error is set. */
typedef int (*db_trip)(db *connection, void *what);

db_answer db_round_trip(db *connection, fault_kind kind, const char *name, db_trip trip,
                        void *what);

/* So long libmariadb awaits what comes next, whole or in part; below 0: for ever. */
void db_await_for(MYSQL *mysql, int64_t ms);

/* What the server said last, also in a callback transaction. */
int db_server_in_transaction(const db *connection);

/* Whether libmariadb may be called: even making or freeing a statement throws away results that a
 * caller has not read yet. */
int db_ready(db *connection);

/* Keeps number and sentence for db_errno() and db_error(). */
void db_set_error(db *connection, unsigned number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void db_keep_error(db *connection, unsigned number, const char *text);
int db_error_is_client(unsigned number);

/* -- connect.c -- */

/* A handle with the settings of the option file, which leads nowhere yet; mysql_close() it, also
 * after an error, unless it is NULL. */
tl_status db_settings_read(MYSQL **out, const db_options *options);

/* -- layers.c -- */

/* The settings file with the environment's lines above those of options->group, and those of
 * options->over_group above both; to be closed, also after an error. */
typedef struct db_layers {
    FILE *file; /* NULL: there is none */
    char path[32];
} db_layers;

tl_status db_layers_open(db_layers *layers, const db_options *options);
void db_layers_close(db_layers *layers);

/* -- db.c -- */

db_answer db_text_trip(db *connection, fault_kind kind, const char *name, const char *sql);

/* Only the thread that uses the connection writes its counters; other threads may read them. */
void db_counter_add(uint64_t *counter, uint64_t by);

/* -- result.c -- */

void db_result_clear(db_result *result);
int db_result_shape(db_result *result, size_t rows, size_t columns);
int db_result_put(db_result *result, size_t row, size_t column, const void *data, size_t size,
                  int is_number);
/* Stores a number as a number; the bits of a uint64_t if it is unsigned. */
int db_result_put_number(db_result *result, size_t row, size_t column, int64_t number,
                         int is_unsigned);
void db_result_put_null(db_result *result, size_t row, size_t column);
/* Room for size bytes and a NUL; NULL when out of memory. */
char *db_result_room(db_result *result, size_t row, size_t column, size_t size);
int db_type_is_number(enum enum_field_types type);

/* -- row.c -- */

/* Whether each cell ends before the row does. */
int db_row_is_whole(const MYSQL_ROWS *row, const MYSQL_FIELD *fields, unsigned columns);

/* -- statement.c -- */

void db_statements_free(db *connection);
/* Room for count parameters in connection->binds; 0, or 1 when out of memory. */
int db_bind_room(db *connection, size_t count);

/* Run the first statement of a callback transaction (nowait as in db_run_nowait()), alone or with
 * those behind it, and the last one, which commits it. */
db_answer db_run_first(db *connection, const struct sql_text *statement, const db_value *values,
                       size_t count, int nowait, db_result *result);
db_answer db_run_first_ahead(db *connection, db_request *requests, size_t count, size_t *done);
db_answer db_run_commit(db *connection, const struct sql_text *statement, const db_value *values,
                        size_t count);
/* Prepares a statement that is run later; within a round trip.  0, or 1 with the connection's error
 * set. */
int db_prepare(db *connection, const struct sql_text *statement);
/* Whether the connection was reset since this was prepared. */
int db_was_reset(db *connection, const struct sql_text *statement);

/* -- callback_tx.c -- */

/* From the connect on, keeps what the server tells of the session. */
void db_listen(db *connection);
/* Switches autocommit on again. */
db_answer db_callback_tx_leave(db *connection);
db_answer db_callback_tx_rollback(db *connection);

/* -- arrays.c -- */

/* Binds rows of `count` values each.  Each question mark gets the value that `marks` names, or the
 * one at its own position.  Returns memory for memory_free() after the execution, or NULL when out
 * of memory. */
void *db_bind_arrays(MYSQL_BIND *binds, const db_value *values, size_t rows, size_t count,
                     const unsigned char *marks, size_t mark_count);

/* -- error_kind.c -- */

/* Whether the connection's last error leaves open whether the request was committed: a COMMIT, a
 * block, or a statement that commits by itself. */
int db_error_is_doubtful(const db *connection, int is_commit);
/* Whether the last error says that the server takes no writes. */
int db_error_is_read_only(const db *connection);
/* Whether the server closes the connection with this error. */
int db_error_ends_connection(unsigned number);
tl_status db_connect_status(MYSQL *mysql);

#endif
