/*
 * Declares what the three kinds of channel promise, and registers the workflow.
 *
 * All three kinds take `expires_at_ms` with a payment and never pay after it.  execute sends a
 * moment within the hold, however long it was stopped.  So a request that is late in the network
 * cannot be paid after send_until.  This promise makes "no such payment" final on the window kind.
 * The plain kind shows the other way: a cancel that is final.
 */
#include "books.h"
#include "channel.h"
#include "withdraw.h"

#include <string.h>

/* A query may not know a payment for this long after the channel took it. */
#define LATENCY_MS 150

int withdraw_kind_find(const char *name, withdraw_kind *kind)
{
    static const char *const names[] = {"idempotent", "window", "plain"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) {
            *kind = (withdraw_kind)i;
            return 1;
        }
    return 0;
}

void withdraw_contract(tl_channel *promises, withdraw_kind kind, int64_t window_ms)
{
    memset(promises, 0, sizeof *promises);
    promises->can_query = 1;
    promises->key_chars = 40;
    promises->latency_ms = LATENCY_MS;
    switch (kind) {
    case WITHDRAW_IDEMPOTENT:
        /* The safest kind: a lost request is simply sent again. */
        promises->name = "idempotent";
        promises->idempotent = 1;
        promises->replays_first_answer = 1;
        break;
    case WITHDRAW_WINDOW:
        promises->name = "window";
        promises->idempotent = 1;
        promises->replays_first_answer = 1;
        promises->window_ms = window_ms;
        promises->not_found_final = 1;
        break;
    case WITHDRAW_PLAIN:
    default:
        promises->name = "plain";
        promises->cancel_final = 1;
    }
}

tl_status withdraw_new(withdraw **out, tl_workflows *workflows, const withdraw_options *options)
{
    tl_workflow workflow = TL_WORKFLOW_INIT;
    channel *self = NULL;
    tl_status status = channel_new(&self, options->client, options->channel_url);

    if (status != TL_OK)
        return status;
    withdraw_contract(&workflow.channel, options->kind, options->window_ms);
    workflow.op_code = WITHDRAW_OP;
    workflow.exclusive = options->exclusive;
    workflow.context = self;
    workflow.execute = channel_execute;
    workflow.query = channel_query;
    workflow.cancel = workflow.channel.cancel_final ? channel_cancel : NULL;
    workflow.statements = books_statements;
    workflow.statement_count = BOOKS_STATEMENTS;
    workflow.book_prepare = books_freeze;
    workflow.book_success = books_pay;
    workflow.book_failure = books_release;
    status = tl_workflow_register(workflows, &workflow);
    if (status == TL_OK)
        *out = self;
    else
        channel_free(self);
    return status;
}

void withdraw_free(withdraw *self)
{
    channel_free(self);
}
