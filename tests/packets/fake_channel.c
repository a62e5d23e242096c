#include "fake_channel.h"

#include <stdio.h>

struct channel channel;

void channel_begin(void)
{
    atomic_store(&channel.sent, 0);
    atomic_store(&channel.paid, 0);
    atomic_store(&channel.queried, 0);
    channel.within_prepare = channel.within_execute = NULL;
    channel.answer = TL_EXECUTE_SUCCEEDED;
    channel.pays = 1;
}

static tl_status prepare(void *context, const tl_attempt *attempt, tl_reply *reply,
                         struct st_mysql *connection)
{
    (void)context;
    (void)attempt;
    (void)reply;
    (void)connection;
    if (channel.within_prepare != NULL)
        channel.within_prepare();
    return TL_OK;
}

static tl_execute_result execute(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    atomic_fetch_add(&channel.sent, 1);
    if (channel.pays)
        atomic_fetch_add(&channel.paid, 1);
    tl_reply_ref(reply, attempt->key.serial_no);
    tl_reply_result(reply, "paid", 4);
    if (channel.within_execute != NULL)
        channel.within_execute();
    return channel.answer;
}

static tl_query_result query(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    atomic_fetch_add(&channel.queried, 1);
    if (atomic_load(&channel.paid) == 0)
        return TL_QUERY_NOT_FOUND;
    tl_reply_ref(reply, attempt->key.serial_no);
    return TL_QUERY_SUCCEEDED;
}

static const tl_statement statements[] = {
    {.name = "insert ledger", .sql = "INSERT INTO ledger (serial_no) VALUES (:serial_no)"},
};

static tl_status book_prepare(void *context, const tl_attempt *attempt, tl_reply *reply,
                              tl_book *lines)
{
    (void)lines;
    return prepare(context, attempt, reply, NULL);
}

static tl_status book_success(void *context, const tl_attempt *attempt, const tl_reply *reply,
                              tl_book *lines)
{
    (void)context;
    (void)attempt;
    (void)reply;
    tl_book_line(lines, "insert ledger");
    return TL_OK;
}

static void declare(tl_workflow *w)
{
    w->sql_prepare = NULL;
    w->sql_success = NULL;
    w->statements = statements;
    w->statement_count = 1;
    w->book_prepare = book_prepare;
    w->book_success = book_success;
}

/* A business row of the trade that the attempt is about, whichever that is. */
static tl_status book(void *context, const tl_attempt *attempt, const tl_reply *reply,
                      struct st_mysql *connection)
{
    scene of;

    (void)context;
    (void)reply;
    snprintf(of.serial, sizeof of.serial, "%s", attempt->key.serial_no);
    return scene_book(&of, connection);
}

tl_workflow channel_workflow(const char *op_code)
{
    tl_workflow w = TL_WORKFLOW_INIT;

    w.op_code = op_code;
    w.channel.name = "fastpay";
    w.channel.can_query = 1;
    w.channel.not_found_final = 1;
    w.policy.max_hold_ms = CHANNEL_MAX_HOLD_MS;
    w.policy.execute_ms = 1000;
    w.policy.commit_ms = 2000;
    w.policy.grace_ms = 100;
    w.policy.clock_margin_ms = 50;
    w.policy.schedule_count = 1;
    w.policy.schedule_ms[0] = 50;
    w.sql_prepare = prepare;
    w.execute = execute;
    w.query = query;
    w.sql_success = book;
    if (channel.declared)
        declare(&w);
    return w;
}

tl_workflows *channel_registry_of(tl_client *client, int64_t commit_ms)
{
    tl_workflow w = channel_workflow("WITHDRAW");
    tl_workflows *workflows = NULL;

    w.policy.commit_ms = commit_ms;
    if (tl_workflows_new(&workflows, client) != TL_OK ||
        tl_workflow_register(workflows, &w) != TL_OK)
        server_panic("no workflow: %s", tl_error_message());
    return workflows;
}

tl_workflows *channel_registry(tl_client *client)
{
    return channel_registry_of(client, 2000);
}
