/* The whole way of a payment, as services go it: a registered workflow whose channel answers at
 * once, an order with the lock and a booking with the ending. */
#include "bench.h"
#include "client.h"

#include <tradelock/workflow.h>

#include <mysql.h>
#include <stddef.h>

static tl_workflows *workflows;

static tl_status run_row(MYSQL *connection, const char *sql)
{
    return mysql_query(connection, sql) == 0 ? TL_OK : TL_TRY_AGAIN;
}

static tl_status prepare(void *context, const tl_attempt *attempt, tl_reply *reply,
                         struct st_mysql *connection)
{
    (void)context;
    (void)attempt;
    (void)reply;
    return run_row(connection, "INSERT INTO bench_order (amount) VALUES (10000)");
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
    return TL_QUERY_UNREACHABLE;
}

static tl_status apply(void *context, const tl_attempt *attempt, const tl_reply *reply,
                       struct st_mysql *connection)
{
    (void)context;
    (void)attempt;
    (void)reply;
    return run_row(connection, "INSERT INTO bench_ledger (amount) VALUES (10000)");
}

static int open_workflow(const bench_options *options)
{
    tl_workflow workflow = TL_WORKFLOW_INIT;

    (void)options;
    client_open(0);
    workflow.op_code = "WITHDRAW";
    workflow.channel.name = "bench";
    workflow.channel.idempotent = 1;
    workflow.channel.can_query = 1;
    workflow.sql_prepare = prepare;
    workflow.execute = execute;
    workflow.query = query;
    workflow.sql_success = apply;
    if (tl_workflows_new(&workflows, bench_client) != TL_OK ||
        tl_workflow_register(workflows, &workflow) != TL_OK)
        bench_fail("%s", tl_error_message());
    return 0;
}

static int cycle(unsigned caller, uint64_t number)
{
    tl_request request = TL_REQUEST_INIT;
    tl_answer answer = TL_ANSWER_INIT;
    char serial[64], cust[32];
    tl_status status;

    bench_key(caller, number, serial, cust);
    request.key = (tl_key){serial, cust, "WITHDRAW"};
    request.payload = "100.00 EUR";
    request.payload_size = 10;
    request.amount_minor = 10000;
    request.currency = "EUR";
    status = tl_workflow_run(workflows, &request, &answer);
    if (status != TL_SUCCEEDED)
        bench_fail("run: %s %s", tl_status_name(status), tl_error_message());
    tl_answer_clear(&answer);
    return 1;
}

static void close_workflow(void)
{
    tl_workflows_free(workflows);
    tl_client_close(bench_client);
}

const contestant contestant_workflow = {
    .name = "workflow",
    .what = "a registered workflow with an order and a booking, its channel free of cost",
    .open = open_workflow,
    .cycle = cycle,
    .close = close_workflow};
