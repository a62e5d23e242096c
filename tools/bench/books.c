/* A withdrawal with its books declared: frozen funds and an order with the lock; the money, the
 * order's state, a ledger line and, if wanted, one treasury account with the ending. */
#include "books.h"
#include "client.h"

#include <tradelock/workflow.h>

#include <stddef.h>

static const tl_statement statements[] = {
    {.name = "freeze funds",
     .sql = "UPDATE account SET frozen = frozen + :amount_minor"
            " WHERE cust_no = :cust_no AND balance - frozen >= :amount_minor",
     .refused = "too little money"},
    {.name = "insert order",
     .sql = "INSERT INTO orders (cust_no, serial_no, amount, state)"
            " VALUES (:cust_no, :serial_no, :amount_minor, 'new')"},
    {.name = "take money",
     .sql = "UPDATE account SET frozen = frozen - :amount_minor, balance = balance - :amount_minor"
            " WHERE cust_no = :cust_no"},
    {.name = "order is paid",
     .sql = "UPDATE orders SET state = 'paid'"
            " WHERE cust_no = :cust_no AND serial_no = :serial_no AND state = 'new'"},
    {.name = "insert ledger line",
     .sql = "INSERT INTO ledger (cust_no, serial_no, amount)"
            " VALUES (:cust_no, :serial_no, :amount_minor)"},
    {.name = "debit treasury",
     .sql = "UPDATE treasury SET balance = balance - :amount_minor WHERE id = 1",
     .shared = 1,
     .summed = 1},
};

static tl_status book_prepare(void *context, const tl_attempt *attempt, tl_reply *reply,
                              tl_book *book)
{
    (void)context;
    (void)attempt;
    (void)reply;
    tl_book_line(book, "freeze funds");
    tl_book_line(book, "insert order");
    return TL_OK;
}

static tl_status book_success(void *context, const tl_attempt *attempt, const tl_reply *reply,
                              tl_book *book)
{
    (void)context;
    (void)attempt;
    (void)reply;
    tl_book_line(book, "take money");
    tl_book_line(book, "order is paid");
    tl_book_line(book, "insert ledger line");
    if (bench.treasury)
        tl_book_line(book, "debit treasury");
    return TL_OK;
}

static tl_execute_result execute(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)attempt;
    (void)reply;
    return TL_EXECUTE_SUCCEEDED;
}

static tl_query_result query(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)attempt;
    (void)reply;
    return TL_QUERY_SUCCEEDED;
}

void books_declare(tl_workflow *workflow)
{
    workflow->op_code = "WITHDRAW";
    workflow->channel.name = "bench";
    workflow->channel.idempotent = 1;
    workflow->channel.can_query = 1;
    workflow->execute = execute;
    workflow->query = query;
    workflow->statements = statements;
    workflow->statement_count = sizeof statements / sizeof statements[0];
    workflow->book_prepare = book_prepare;
    workflow->book_success = book_success;
}

/* -------------------------------------------------------------- the first lane -- */

static tl_workflows *workflows;
static books_run run;
static atomic_ullong repeated;

static int open_books(const bench_options *options)
{
    tl_workflow workflow = TL_WORKFLOW_INIT;

    books_begin(&run, options);
    client_open(0);
    books_declare(&workflow);
    if (tl_workflows_new(&workflows, bench_client) != TL_OK ||
        tl_workflow_register(workflows, &workflow) != TL_OK)
        bench_fail("%s", tl_error_message());
    return 0;
}

/* The same call again where a busy machine did not carry it out in time. */
static tl_status pay(const tl_request *request)
{
    tl_answer answer = TL_ANSWER_INIT;
    tl_status status;

    for (;;) {
        status = tl_workflow_run(workflows, request, &answer);
        tl_answer_clear(&answer);
        if (tl_status_class(status) != TL_CLASS_RETRY)
            return status;
        atomic_fetch_add(&repeated, 1);
    }
}

static int cycle(unsigned caller, uint64_t number)
{
    tl_request request = TL_REQUEST_INIT;
    char serial[64], cust[32];
    int rich = books_key(caller, number, serial, cust);
    tl_status status;

    request.key = (tl_key){serial, cust, "WITHDRAW"};
    request.payload = "100.00 EUR";
    request.payload_size = 10;
    request.amount_minor = BOOKS_AMOUNT;
    request.currency = BOOKS_CURRENCY;
    status = pay(&request);
    if (status != (rich ? TL_SUCCEEDED : TL_REFUSED))
        bench_fail("run: %s %s", tl_status_name(status), tl_error_message());
    if (rich)
        atomic_fetch_add(&run.paid, 1);
    else
        bench_count_refused();
    return 1;
}

/* How the groups came out, before the sums. */
static void check(void)
{
    tl_stats stats = TL_STATS_INIT;

    if (tl_client_stats(bench_client, &stats) != TL_OK)
        bench_fail("%s", tl_error_message());
    bench_note("groups", (double)stats.groups);
    bench_note("grouped", (double)stats.grouped);
    bench_note("repeats", (double)stats.repeats);
    bench_note("called_again", (double)atomic_load(&repeated));
    books_check(&run);
}

static void close_books(void)
{
    tl_workflows_free(workflows);
    tl_client_close(bench_client);
}

const contestant contestant_books = {
    .name = "books",
    .what = "a registered workflow with declared books, its channel free of cost",
    .open = open_books,
    .cycle = cycle,
    .close = close_books,
    .after = check};
