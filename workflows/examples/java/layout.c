/* Prints Layout.java: by the compiler's own word where fields stand, and the headers' numbers. */
#include <tradelock/questions.h>
#include <tradelock/worker.h>

#include <stdio.h>

static void line(const char *type, const char *name, const char *field, size_t number)
{
    printf("    static final %s %s", type, name);
    for (; *field != '\0'; field++)
        putchar(*field == '.' ? '_' : *field);
    printf(" = %zu;\n", number);
}

#define SIZE(type) line("long", #type, "", sizeof(type))
#define FIELD(type, field) line("long", #type "_", #field, offsetof(type, field))
#define NUMBER(name) line("int", #name, "", name)

int main(void)
{
    puts("final class Layout {");
    SIZE(tl_client_options);
    FIELD(tl_client_options, config_file);
    FIELD(tl_client_options, program);
    SIZE(tl_statement);
    FIELD(tl_statement, name);
    FIELD(tl_statement, sql);
    FIELD(tl_statement, refused);
    SIZE(tl_workflow);
    FIELD(tl_workflow, op_code);
    FIELD(tl_workflow, channel.name);
    FIELD(tl_workflow, channel.idempotent);
    FIELD(tl_workflow, channel.replays_first_answer);
    FIELD(tl_workflow, channel.can_query);
    FIELD(tl_workflow, execute);
    FIELD(tl_workflow, query);
    FIELD(tl_workflow, statements);
    FIELD(tl_workflow, statement_count);
    FIELD(tl_workflow, book_prepare);
    FIELD(tl_workflow, book_success);
    FIELD(tl_workflow, book_failure);
    SIZE(tl_worker_options);
    SIZE(tl_request);
    FIELD(tl_request, key);
    FIELD(tl_request, key.serial_no);
    FIELD(tl_request, key.cust_no);
    FIELD(tl_request, key.op_code);
    FIELD(tl_request, payload);
    FIELD(tl_request, payload_size);
    FIELD(tl_request, amount_minor);
    FIELD(tl_request, currency);
    SIZE(tl_answer);
    FIELD(tl_answer, proof);
    FIELD(tl_answer, channel_ref);
    SIZE(tl_trade);
    FIELD(tl_trade, proof);
    FIELD(tl_trade, channel_ref);
    FIELD(tl_attempt, key.serial_no);
    FIELD(tl_attempt, key.cust_no);
    FIELD(tl_attempt, key.op_code);
    FIELD(tl_attempt, channel_key);
    FIELD(tl_attempt, payload);
    FIELD(tl_attempt, payload_size);
    FIELD(tl_attempt, after_failure);

    NUMBER(TL_CLIENT_OPTIONS_VERSION);
    NUMBER(TL_WORKFLOW_VERSION);
    NUMBER(TL_WORKER_OPTIONS_VERSION);
    NUMBER(TL_REQUEST_VERSION);
    NUMBER(TL_ANSWER_VERSION);
    NUMBER(TL_TRADE_VERSION);
    NUMBER(TL_OK);
    NUMBER(TL_MISMATCH);
    NUMBER(TL_UNKNOWN);
    NUMBER(TL_CALLBACK_FAILED);
    NUMBER(TL_PROOF_NONE);
    NUMBER(TL_EXECUTE_UNKNOWN);
    NUMBER(TL_EXECUTE_SUCCEEDED);
    NUMBER(TL_EXECUTE_DECLINED);
    NUMBER(TL_EXECUTE_RETRY_LATER);
    NUMBER(TL_EXECUTE_NOT_SENT);
    NUMBER(TL_EXECUTE_ACCEPTED);
    NUMBER(TL_QUERY_UNREACHABLE);
    NUMBER(TL_QUERY_SUCCEEDED);
    NUMBER(TL_QUERY_FAILED);
    NUMBER(TL_QUERY_PENDING);
    NUMBER(TL_QUERY_NOT_FOUND);
    puts("}");
    return 0;
}
