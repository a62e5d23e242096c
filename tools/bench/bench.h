/*
 * One contestant, some callers, some seconds: how many lock + unlock cycles, and how long
 * each took.  The script tools/benchmark starts the servers, runs the contestants in turn
 * and makes the tables.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdint.h>

typedef struct bench_options {
    const char *option_file; /* tradelock's settings and the connection */
    const char *socket, *user, *database;
    const char *redis_socket;
    unsigned callers, connections;
    int64_t run_ms, warm_up_ms;
    int contended;        /* all callers want one key */
    const char *run_name; /* part of every key: runs do not meet */
} bench_options;

/* One caller's own state; made before the clock starts. */
typedef struct contestant {
    const char *name, *what;
    /* Shared by all callers: tables, pools, clients.  0, or -1 with a sentence said. */
    int (*open)(const bench_options *options);
    /* One cycle: 1 done, 0 refused (contended runs), -1 broken. */
    int (*cycle)(unsigned caller, uint64_t number);
    void (*close)(void);
} contestant;

extern const contestant contestant_tradelock, contestant_handwritten, contestant_article,
    contestant_unique_key, contestant_optimistic, contestant_for_update,
    contestant_get_lock, contestant_redis, contestant_select, contestant_refusal,
    contestant_workflow, contestant_workflow_hand;

/* What the contestants over SQL share (sql.c): a pool of plain connections. */
struct st_mysql;
int sql_open(const bench_options *options,
             int (*prepare)(struct st_mysql *connection, unsigned number));
void sql_close(void);
/* Takes a connection, waiting for one; its number. */
unsigned sql_take(struct st_mysql **connection);
void sql_give(unsigned number);
int sql_run(struct st_mysql *connection, const char *text);
_Noreturn void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

extern bench_options bench;

/* The key of a cycle: a serial number nobody had, of one of many customers. */
void bench_key(unsigned caller, uint64_t number, char serial[64], char cust[32]);

#endif
