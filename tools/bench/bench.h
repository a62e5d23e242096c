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
    unsigned group; /* payments under way of the loop */
    unsigned poor;  /* percent of the trades whose customer has no money */
    int64_t run_ms, warm_up_ms;
    int64_t cycles;       /* of each caller, instead of a time; 0: by time */
    int64_t hold_open_ms; /* one key's ending stands open for so long, again and again */
    int64_t ask_held_ms;  /* and that key is asked for so often; 0: never */
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

extern const contestant contestant_tradelock, contestant_handwritten, contestant_article,
    contestant_redis, contestant_select, contestant_refusal, contestant_workflow,
    contestant_workflow_hand, contestant_fsync, contestant_in_turn, contestant_workflow_in_turn,
    contestant_books, contestant_books_hand, contestant_books_in_turn, contestant_books_loop,
    contestant_retry_books, contestant_retry_callbacks, contestant_desk;

_Noreturn void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t bench_now_us(void);
void bench_sleep_us(int64_t wait_us);

/* The key of a cycle: a serial number nobody had, of one of many customers. */
void bench_key(unsigned caller, uint64_t number, char serial[64], char cust[32]);

/* Somebody else has the key, or there is no money. */
void bench_count_refused(void);

/* One more number of the result. */
void bench_note(const char *name, double value);

/* ------------------------------------------------- what the server did (server.c) -- */

typedef struct server_counts {
    double statements; /* that came over a connection; a compound block is one */
    double commits;    /* of transactions that wrote or locked rows */
    double syncs;      /* of the log and of data files */
    double redo_bytes;
    double cpu_s;
} server_counts;

/* Opens a connection of its own; its reading is not counted. */
void server_open(const bench_options *options);
void server_read(server_counts *counts);
/* What a process has used of the processors, in seconds; 0 when it is not known. */
double server_cpu_of(int64_t process);
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
/* The first column of the first row as a number. */
double sql_number(struct st_mysql *connection, const char *text);

#endif
