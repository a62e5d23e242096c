#include "release.h"

#include "books.h"
#include "channel.h"
#include "support/theme.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tl_status open_channel(release *self, unsigned i, const bank *of, tl_channel *promises)
{
    const struct text url = text_of("http://127.0.0.1:%u", of->sim->port);

    withdraw_contract(promises, of->kind, HOUSE_WINDOW_MS);
    promises->name = of->name;
    promises->replays_first_answer &= !of->is_lesser;
    return channel_new(&self->channels[i], self->client, url.is);
}

static tl_status register_all(release *self, const bank *now, const bank *former)
{
    tl_former_channel formers[TL_FORMER_MAX] = {0};
    tl_workflow workflow = TL_WORKFLOW_INIT;
    tl_status status = open_channel(self, 0, now, &workflow.channel);
    size_t count = 0;

    for (; status == TL_OK && former != NULL && former[count].name != NULL; count++) {
        tl_former_channel *one = &formers[count];

        status = open_channel(self, 1 + (unsigned)count, &former[count], &one->channel);
        one->context = self->channels[1 + count];
        one->execute = former[count].only_asked ? NULL : channel_execute;
        one->query = channel_query;
        one->cancel = one->channel.cancel_final ? channel_cancel : NULL;
    }
    workflow.op_code = WITHDRAW_OP;
    workflow.context = self->channels[0];
    workflow.execute = channel_execute;
    workflow.query = channel_query;
    workflow.cancel = workflow.channel.cancel_final ? channel_cancel : NULL;
    workflow.statements = books_statements;
    workflow.statement_count = BOOKS_STATEMENTS;
    workflow.book_prepare = books_freeze;
    workflow.book_success = books_pay;
    workflow.book_failure = books_release;
    workflow.former = formers;
    workflow.former_count = count;
    return status == TL_OK ? tl_workflow_register(self->workflows, &workflow) : status;
}

tl_status release_open(release *self, const char *option_file, const bank *now, const bank *former,
                       tl_log_fn log, void *log_context)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    char sentence[512];
    tl_status status;

    memset(self, 0, sizeof *self);
    options.config_file = option_file;
    options.program = now->name;
    options.log = log;
    options.log_context = log_context;
    status = tl_client_open(&self->client, &options);
    if (status == TL_OK)
        status = tl_workflows_new(&self->workflows, self->client);
    if (status == TL_OK)
        status = register_all(self, now, former);
    if (status == TL_OK)
        return TL_OK;
    snprintf(sentence, sizeof sentence, "%s", tl_error_message());
    release_close(self);
    return tl_error_report(status, "%s", sentence);
}

void release_close(release *self)
{
    tl_workflows_free(self->workflows);
    for (size_t i = 0; i < sizeof self->channels / sizeof self->channels[0]; i++)
        channel_free(self->channels[i]);
    tl_client_close(self->client);
    memset(self, 0, sizeof *self);
}

tl_status release_pay(release *self, const char *serial, const char *cust, int64_t amount_minor,
                      uint32_t reclaim_epoch, tl_answer *answer)
{
    withdraw_order order = {.amount_minor = amount_minor, .currency = "EUR", .payee = "Anna"};
    tl_request request = TL_REQUEST_INIT;
    char *payload = withdraw_order_write(&order);
    tl_status status;

    request.key = (tl_key){serial, cust, WITHDRAW_OP};
    request.payload = payload;
    request.payload_size = strlen(payload);
    request.amount_minor = amount_minor;
    request.currency = "EUR";
    request.reclaim_epoch = reclaim_epoch;
    status = tl_workflow_run(self->workflows, &request, answer);
    free(payload);
    return status;
}
