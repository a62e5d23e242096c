/*
 * The sample workflow as a plug-in, for tests, with one mistake planted if [service-handlers] of
 * the settings file asks for it: `mistake = NAME`.  Without one it is what a careful team writes.
 */
#include "books.h"
#include "channel.h"
#include "withdraw.h"

#include <tradelock/plugin.h>

#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECTION "service-handlers"
#define TEXT 200

struct handlers {
    char url[TEXT], mistake[TEXT];
    channel *channel;
};

static int makes(const struct handlers *self, const char *mistake)
{
    return strcmp(self->mistake, mistake) == 0;
}

static int take(void *context, const char *section, const char *name, const char *value)
{
    struct handlers *self = context;

    if (strcmp(section, SECTION) != 0)
        return 1;
    if (strcmp(name, "channel_url") == 0)
        strncpy(self->url, value, TEXT - 1);
    else if (strcmp(name, "mistake") == 0)
        strncpy(self->mistake, value, TEXT - 1);
    return 1;
}

/* Does not tell the channel until when it may pay. */
static tl_execute_result execute_for_ever(const struct handlers *self, const tl_attempt *attempt,
                                          tl_reply *reply)
{
    static __thread http_exchange exchange;
    json_t *order = json_loadb(attempt->payload, attempt->payload_size, 0, NULL), *body;
    char url[TEXT + 8], *request;
    tl_execute_result answer;
    int mismatch;

    json_object_set_new(order, "channel_key", json_string(attempt->channel_key));
    json_object_set_new(order, "serial_no", json_string(attempt->key.serial_no));
    json_object_set_new(order, "cust_no", json_string(attempt->key.cust_no));
    json_object_set_new(order, "op_code", json_string(attempt->key.op_code));
    request = json_dumps(order, JSON_COMPACT);
    snprintf(url, sizeof url, "%s/v1/pay", self->url);
    http_run(&exchange, "pay", url, request, attempt);
    body = json_loadb(exchange.body, exchange.size, 0, NULL);
    answer = channel_pay_means(&exchange, body, reply, &mismatch);
    json_decref(body);
    json_decref(order);
    free(request);
    return answer;
}

static tl_execute_result execute(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    struct handlers *self = context;
    tl_attempt mine = *attempt;
    withdraw_order order;
    char *payload = NULL;
    tl_execute_result answer;

    if (makes(self, "other-amount") &&
        withdraw_order_read(&order, attempt->payload, attempt->payload_size)) {
        order.amount_minor += attempt->number > 0 ? 1 : -1;
        mine.payload = payload = withdraw_order_write(&order);
        mine.payload_size = strlen(payload);
    }
    if (makes(self, "late"))
        mine.until_ms += 60000;
    if (makes(self, "own-key"))
        mine.channel_key = attempt->key.serial_no;
    if (makes(self, "slow")) {
        const int64_t ms = 2 * attempt->timeout_ms;

        nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
    }
    answer = makes(self, "hasty") ? execute_for_ever(self, &mine, reply)
                                  : channel_execute(self->channel, &mine, reply);
    free(payload);
    if (makes(self, "aborts") && answer == TL_EXECUTE_UNKNOWN)
        abort();
    if (makes(self, "declines") && answer == TL_EXECUTE_UNKNOWN)
        answer = TL_EXECUTE_DECLINED;
    if (makes(self, "hasty") && answer == TL_EXECUTE_ACCEPTED)
        answer = TL_EXECUTE_SUCCEEDED;
    if (makes(self, "hasty") && (answer == TL_EXECUTE_RETRY_LATER ||
                                 strstr(reply->remark, "duplicate_in_progress") != NULL))
        answer = TL_EXECUTE_DECLINED;
    if (makes(self, "not-sent") && answer == TL_EXECUTE_UNKNOWN)
        answer = TL_EXECUTE_NOT_SENT;
    return answer;
}

static tl_query_result query(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    struct handlers *self = context;
    tl_query_result answer;

    while (makes(self, "hangs"))
        pause();
    answer = channel_query(self->channel, attempt, reply);

    if (makes(self, "absent") && answer == TL_QUERY_UNREACHABLE)
        answer = TL_QUERY_NOT_FOUND;
    if (makes(self, "hasty") && answer == TL_QUERY_NOT_FOUND)
        answer = TL_QUERY_FAILED;
    if (makes(self, "hasty") && answer == TL_QUERY_PENDING)
        answer = TL_QUERY_SUCCEEDED;
    return answer;
}

/* Books one more of what a worker learned than of what the service did. */
static tl_status book_more(void *context, const tl_attempt *attempt, const tl_reply *reply,
                           tl_book *book)
{
    const struct handlers *self = context;
    tl_status status = books_pay(context, attempt, reply, book);

    if (status != TL_OK || !makes(self, "books-more") || attempt->number == 0)
        return status;
    tl_book_line(book, "take funds");
    tl_book_int(book, "amount", 1);
    tl_book_text(book, "money", "EUR");
    return TL_OK;
}

static tl_status keep_frozen(void *context, const tl_attempt *attempt, const tl_reply *reply,
                             tl_proof proof, tl_book *book)
{
    const struct handlers *self = context;

    if (!makes(self, "keeps-frozen"))
        return books_release(context, attempt, reply, proof, book);
    tl_book_line(book, "end order");
    tl_book_text(book, "was", "FROZEN");
    tl_book_text(book, "state", "RELEASED");
    return TL_OK;
}

static void close_handlers(void *state)
{
    struct handlers *self = state;

    channel_free(self->channel);
    free(self);
}

static tl_status open_handlers(tl_client *client, tl_workflows *workflows, const char *config_file,
                               void **state)
{
    struct handlers *self = calloc(1, sizeof *self);
    tl_workflow workflow = TL_WORKFLOW_INIT;
    tl_status status;

    if (self == NULL)
        return tl_error_report(TL_NO_MEMORY, "no memory");
    (void)ini_parse(config_file, take, self);
    status = makes(self, "open") ? tl_error_report(TL_BAD_CONFIG, "the mistake is to open")
                                 : channel_new(&self->channel, client, self->url);
    workflow.op_code = WITHDRAW_OP;
    withdraw_contract(&workflow.channel, WITHDRAW_IDEMPOTENT, 0);
    workflow.channel.can_query = !makes(self, "asks-nothing");
    workflow.context = self;
    workflow.execute = execute;
    workflow.query = makes(self, "asks-nothing") ? NULL : query;
    workflow.statements = books_statements;
    workflow.statement_count = BOOKS_STATEMENTS;
    workflow.book_prepare = books_freeze;
    workflow.book_success = book_more;
    workflow.book_failure = keep_frozen;
    if (status == TL_OK && !makes(self, "empty"))
        status = tl_workflow_register(workflows, &workflow);
    if (status != TL_OK) {
        channel_free(self->channel);
        free(self);
        return status;
    }
    *state = self;
    return TL_OK;
}

#ifndef HANDLERS_VERSION
#define HANDLERS_VERSION TL_PLUGIN_VERSION
#endif
#ifndef HANDLERS_SIZE
#define HANDLERS_SIZE sizeof(tl_plugin)
#endif
#ifndef HANDLERS_ENTRY
#define HANDLERS_ENTRY tradelock_plugin
#endif
#ifndef HANDLERS_NAME
#define HANDLERS_NAME "handlers"
#endif

TL_EXPORT extern const tl_plugin HANDLERS_ENTRY;
const tl_plugin HANDLERS_ENTRY = {
    .version = HANDLERS_VERSION,
    .size = HANDLERS_SIZE,
    .name = HANDLERS_NAME,
    .open = open_handlers,
    .close = close_handlers,
};
