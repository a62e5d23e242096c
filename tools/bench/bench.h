/*
 * One contestant, some callers, some seconds: how many lock + unlock cycles, how long each took,
 * and what they cost client and server.  The script tools/benchmark starts the servers, runs the
 * contestants in turn and makes the tables.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdint.h>

typedef struct bench_options {
    const char *part;        /* of the benchmark; printed with the result */
    const char *option_file; /* tradelock's settings and the connection */
    const char *socket, *user, *database;
    const char *hand_database; /* of the hand-written side, where both are in one process */
    const char *redis_socket;
    const char *directory; /* on the servers' file system */
    unsigned callers, connections;
    unsigned held;  /* locks that are held by one client */
    unsigned group; /* rows in one statement */
    unsigned poor;  /* percent of the trades whose customer has no money */
    int64_t run_ms, warm_up_ms;
    int64_t cycles;       /* of each caller, instead of a time; 0: by time */
    int64_t hold_open_ms; /* one key's ending stands open for so long, again and again */
    int64_t ask_held_ms;  /* and that key is asked for so often; 0: never */
    int64_t session_ms;   /* as the option file has it */
    int64_t server_pid;   /* whose CPU is counted; 0: nobody's */
    int64_t desk_pid;     /* whose CPU is counted too (desk) */
    int64_t clicks_pid;   /* of tradelock-clicks, which is let go and stopped in turn */
    int contended;        /* all callers want one key */
    int treasury;         /* one account that every ending debits */
    const char *run_name; /* part of every key: runs do not meet */
} bench_options;

extern bench_options bench;

typedef struct contestant {
    const char *name, *what;
    /* Shared by all callers: tables, pools, clients.  0, or the program has ended with a
     * sentence. */
    int (*open)(const bench_options *options);
    /* One cycle; how much was done: locks, refusals, claims, rows. */
    int (*cycle)(unsigned caller, uint64_t number);
    void (*close)(void);
    /* Instead of cycles: measures in its own way and calls bench_note(). */
    void (*measure)(void);
    /* After the last cycle, before the report: more to note; or NULL. */
    void (*after)(void);
} contestant;

extern const contestant contestant_tradelock, contestant_mutex, contestant_handwritten,
    contestant_article, contestant_unique_key, contestant_optimistic, contestant_for_update,
    contestant_get_lock, contestant_redis, contestant_select, contestant_refusal,
    contestant_with_rows, contestant_workflow, contestant_workflow_hand, contestant_claims,
    contestant_both_lanes, contestant_hold, contestant_values_prepared, contestant_values_text,
    contestant_bulk, contestant_json_table, contestant_hot_cold, contestant_fsync,
    contestant_in_turn, contestant_workflow_in_turn, contestant_books, contestant_books_hand,
    contestant_books_in_turn, contestant_books_loop, contestant_retry_books,
    contestant_retry_callbacks, contestant_desk;

_Noreturn void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t bench_now_us(void);
void bench_sleep_us(int64_t wait_us);

/* The key of a cycle: a serial number nobody had, of one of many customers. */
void bench_key(unsigned caller, uint64_t number, char serial[64], char cust[32]);

/* Contended runs: somebody else has the key.  Counts, and pauses as long as tradelock itself would
 * before the try of this number (from 0). */
void bench_refused(unsigned attempt);
/* Counts alone. */
void bench_count_refused(void);

/* One more number of the result. */
void bench_note(const char *name, double value);

/* ------------------------------------------------- what the server did (server.c) -- */

typedef struct server_counts {
    double statements; /* that came over a connection; a compound block is one */
    double commits;    /* of transactions that wrote or locked rows */
    double syncs;      /* of the log and of data files */
    double redo_bytes, memory_bytes;
    double cpu_s;
} server_counts;

/* Opens a connection of its own; its reading is not counted. */
void server_open(const bench_options *options);
void server_read(server_counts *counts);
/* What a process has used of the processors, in seconds; 0 when it is not known. */
double server_cpu_of(int64_t process);
/* Resident bytes of the server's process; 0 when it is not known. */
double server_resident(void);
void server_close(void);

/* ------------------------------- what the contestants over SQL share (sql.c): a pool -- */

struct st_mysql;
int sql_open(const bench_options *options,
             int (*prepare)(struct st_mysql *connection, unsigned number));
struct st_mysql *sql_connect(const bench_options *options);
void sql_close(void);
/* Takes a connection, waiting for one; its number. */
unsigned sql_take(struct st_mysql **connection);
void sql_give(unsigned number);
int sql_run(struct st_mysql *connection, const char *text);
/* The same with a format; the arguments are names made by bench_key. */
void sql_runf(struct st_mysql *connection, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same; the server's error number when it is 1062 or 1213, else 0. */
unsigned sql_tryf(struct st_mysql *connection, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The first column of the first row as a number. */
double sql_number(struct st_mysql *connection, const char *text);

#endif
