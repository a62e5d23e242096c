/* operation.c - the operation WITHDRAW: what its channel promises, and its business rows. */
#include "addon.h"

#define TAKE                                                                                       \
    "UPDATE account SET balance_minor = balance_minor - :amount_minor WHERE cust_no = :cust_no"

static const tl_statement statements[] = {
    {.name = "take money",
     .sql = TAKE " AND balance_minor >= :amount_minor",
     .refused = "too little money"},
    {.name = "give back",
     .sql = "UPDATE account SET balance_minor = balance_minor + :amount_minor"
            " WHERE cust_no = :cust_no"},
    {.name = "take again", .sql = TAKE},
    {.name = "insert ledger",
     .sql = "INSERT INTO ledger (serial_no, cust_no, amount_minor, channel_ref)"
            " VALUES (:serial_no, :cust_no, :amount_minor, :channel_ref)"},
};

static tl_execute_result execute(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    return (tl_execute_result)handlers_ask("execute", attempt, reply);
}

static tl_query_result query(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    return (tl_query_result)handlers_ask("query", attempt, reply);
}

static tl_status prepare(void *context, const tl_attempt *attempt, tl_reply *reply, tl_book *book)
{
    (void)context, (void)attempt, (void)reply;
    tl_book_line(book, "take money");
    return TL_OK;
}

static tl_status success(void *context, const tl_attempt *attempt, const tl_reply *reply,
                         tl_book *book)
{
    (void)context, (void)reply;
    if (attempt->after_failure) /* booked, and then found paid by two operators */
        tl_book_line(book, "take again");
    tl_book_line(book, "insert ledger");
    return TL_OK;
}

static tl_status failure(void *context, const tl_attempt *attempt, const tl_reply *reply,
                         tl_proof proof, tl_book *book)
{
    (void)context, (void)attempt, (void)reply, (void)proof;
    tl_book_line(book, "give back");
    return TL_OK;
}

tl_status operation_register(tl_workflows *workflows)
{
    tl_workflow workflow = TL_WORKFLOW_INIT;

    workflow.op_code = "WITHDRAW";
    workflow.channel.name = "node-bank";
    workflow.channel.idempotent = 1;           /* a key pays once, however often it is sent */
    workflow.channel.replays_first_answer = 1; /* and gets the first send's answer */
    workflow.channel.can_query = 1;
    workflow.execute = execute;
    workflow.query = query;
    workflow.statements = statements;
    workflow.statement_count = sizeof statements / sizeof *statements;
    workflow.book_prepare = prepare;
    workflow.book_success = success;
    workflow.book_failure = failure;
    return tl_workflow_register(workflows, &workflow);
}
