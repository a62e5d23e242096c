/* The endings of the retry lane: one worker, whose threads are the callers, brings due trades to
 * their end.  Its channel says at once that they are paid.  Books are declared, or written by a
 * callback on a connection. */
#include "books.h"
#include "client.h"

#include <tradelock/worker.h>
#include <tradelock/workflow.h>

#include <mysql.h>
#include <stddef.h>
#include <stdio.h>

/* A caller looks so often how many were ended. */
#define LOOK_US 10000
#define IDLE_LOOKS_MAX 3000

static tl_workflows *workflows;
static tl_worker *worker;
static books_run run;

static tl_status run_row(MYSQL *connection, const char *sql)
{
    if (mysql_query(connection, sql) != 0)
        return TL_TRY_AGAIN;
    return mysql_affected_rows(connection) == 1 ? TL_OK : TL_CALLBACK_FAILED;
}

/* The lines of `books` as a callback writes them. */
static tl_status sql_success(void *context, const tl_attempt *attempt, const tl_reply *reply,
                             struct st_mysql *connection)
{
    const char *cust = attempt->key.cust_no, *serial = attempt->key.serial_no;
    const long long amount = attempt->amount_minor;
    char sql[3][400];
    tl_status status = TL_OK;

    (void)context;
    (void)reply;
    snprintf(sql[0], sizeof sql[0],
             "UPDATE account SET frozen = frozen - %lld, balance = balance - %lld "
             "WHERE cust_no = '%s'",
             amount, amount, cust);
    snprintf(sql[1], sizeof sql[1],
             "UPDATE orders SET state = 'paid' WHERE cust_no = '%s' AND serial_no = '%s' "
             "AND state = 'new'",
             cust, serial);
    snprintf(sql[2], sizeof sql[2],
             "INSERT INTO ledger (cust_no, serial_no, amount) VALUES ('%s', '%s', %lld)", cust,
             serial, amount);
    for (int i = 0; i < 3 && status == TL_OK; i++)
        status = run_row(connection, sql[i]);
    return status;
}

static int open_worker(const bench_options *options, int declared)
{
    tl_worker_options wanted = TL_WORKER_OPTIONS_INIT;
    tl_workflow workflow = TL_WORKFLOW_INIT;

    books_begin(&run, options);
    client_open(TL_CLIENT_NO_JANITOR);
    books_declare(&workflow);
    if (!declared) {
        workflow.statements = NULL;
        workflow.statement_count = 0;
        workflow.book_prepare = NULL;
        workflow.book_success = NULL;
        workflow.sql_success = sql_success;
    }
    wanted.threads = options->callers;
    if (tl_workflows_new(&workflows, bench_client) != TL_OK ||
        tl_workflow_register(workflows, &workflow) != TL_OK ||
        tl_worker_start(&worker, workflows, &wanted) != TL_OK)
        bench_fail("%s", tl_error_message());
    return 0;
}

static int open_books(const bench_options *options)
{
    return open_worker(options, 1);
}

static int open_callbacks(const bench_options *options)
{
    return open_worker(options, 0);
}

/* How many were ended since anybody looked. */
static int new_endings(void)
{
    tl_worker_counts counts = TL_WORKER_COUNTS_INIT;
    unsigned long long before = atomic_load(&run.paid);

    if (tl_worker_count(worker, &counts) != TL_OK)
        bench_fail("%s", tl_error_message());
    if (counts.failed + counts.parked > 0)
        bench_fail("an attempt did not end in success");
    while (counts.succeeded > before)
        if (atomic_compare_exchange_weak(&run.paid, &before, counts.succeeded))
            return (int)(counts.succeeded - before);
    return 0;
}

/* The work is the worker's; what callers do is count, and wait until there is something. */
static int cycle(unsigned caller, uint64_t number)
{
    unsigned long long before = atomic_load(&run.paid);
    int ended;

    (void)caller;
    (void)number;
    for (unsigned idle = 0; idle < IDLE_LOOKS_MAX; idle++) {
        bench_sleep_us(LOOK_US);
        ended = new_endings();
        if (ended > 0)
            return ended;
        if (atomic_load(&run.paid) != before) { /* another caller counted them */
            before = atomic_load(&run.paid);
            idle = 0;
        }
    }
    bench_fail("nothing is due any more: prepare more rows");
}

/* What the worker holds is ended first. */
static void check(void)
{
    tl_worker_stop(worker);
    if (tl_worker_wait(worker, 60000) != TL_OK)
        bench_fail("the worker does not stop: %s", tl_error_message());
    (void)new_endings();
    books_check(&run);
}

static void close_worker(void)
{
    tl_worker_free(worker);
    tl_workflows_free(workflows);
    tl_client_close(bench_client);
}

const contestant contestant_retry_books = {
    .name = "retry-books",
    .what = "a worker's endings with declared books; callers are its threads",
    .open = open_books,
    .cycle = cycle,
    .close = close_worker,
    .after = check};

const contestant contestant_retry_callbacks = {
    .name = "retry-callbacks",
    .what = "the same with a callback that is given a connection",
    .open = open_callbacks,
    .cycle = cycle,
    .close = close_worker,
    .after = check};
