/* What the contestants that are hand-written share: the lock row's statements, on each connection
 * of the pool. */
#ifndef BENCH_HANDWRITTEN_H
#define BENCH_HANDWRITTEN_H

#include "bench.h"

#include <mysql.h>
#include <nettle/sha2.h>

/* What one trade writes with.  As in the library, each step has a token that nobody guesses, the
 * row tells the thread and the service, and what was asked for has a fingerprint: constants in the
 * statement would be cheaper to parse and to log, and other rows than the library's. */
typedef struct trade {
    char serial[64], cust[32];
    struct {
        unsigned char ask[16], end[16];
    } token;
    unsigned char fingerprint[SHA256_DIGEST_SIZE];
    unsigned long long fence;
} trade;

/* With the key of the cycle. */
void hand_trade(trade *t, unsigned caller, uint64_t number);

/* The pool, and the statements on each of its connections; prepare, or NULL, adds the caller's. */
int hand_open(const bench_options *options, int (*prepare)(MYSQL *connection, unsigned number));
void hand_close(void);
MYSQL_STMT *hand_prepare(MYSQL *connection, const char *sql);
MYSQL_BIND hand_text(char *text, unsigned long *size);
void hand_execute(MYSQL_STMT *statement, MYSQL_BIND *binds);

/* The lock row of a payment, and its ending by compare-and-set. */
void hand_insert_payment(unsigned at, trade *t);
void hand_end(unsigned at, trade *t);

#define HAND_CONNECTIONS_MAX 512

#endif
