/* What the contestants of the part `books` share: who asks for how much, the declared statements,
 * and the sums that must be right after each measurement. */
#ifndef BENCH_BOOKS_H
#define BENCH_BOOKS_H

#include "bench.h"

#include <stdatomic.h>

#define BOOKS_AMOUNT 10000
#define BOOKS_CURRENCY "EUR"

/* The key of a cycle, as bench_key(); 0 when its customer has no money. */
int books_key(unsigned caller, uint64_t number, char serial[64], char cust[32]);

/* One measurement's view of a database. */
typedef struct books_run {
    const char *database;
    double ledger_rows, treasury; /* before it */
    atomic_ullong paid;           /* by it */
} books_run;

void books_begin(books_run *run, const bench_options *options);
/* Once nothing is under way: ends the program with a sentence if a sum is wrong or a row is
 * missing, so that nobody is fast because of rows that were lost. */
void books_check(books_run *run);

/* A workflow with its books declared; callbacks and channel included. */
struct tl_workflow;
void books_declare(struct tl_workflow *workflow);

#endif
