/* The order as a payload, and the workflow: what the channel promises, and its callbacks.  Business
 * rows stand in books.c, the calls of the channel in channel.c. */
#include "payout.h"

#include "books.h"
#include "channel.h"

#include <ini.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------- the order -- */

static int only(const char *text, const char *characters)
{
    return text[0] != '\0' && text[strspn(text, characters)] == '\0';
}

#define DIGITS "0123456789"
#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* ISO 13616: with its first four characters put last, and letters read as 10 to 35, the number
 * leaves 1 when divided by 97.  Check digits are 02 to 98: 00 would pass for 97. */
static int is_iban(const char *text)
{
    const size_t size = strlen(text);
    unsigned rest = 0;

    if (size < 15 || size > PAYOUT_IBAN_MAX || !only(text, DIGITS CAPITALS) ||
        strspn(text, CAPITALS) != 2 || strspn(text + 2, DIGITS) < 2 ||
        strncmp(text + 2, "02", 2) < 0 || strncmp(text + 2, "98", 2) > 0)
        return 0;
    for (size_t i = 0; i < size; i++) {
        const char character = text[(i + 4) % size];
        const unsigned value =
            (unsigned)(character <= '9' ? character - '0' : character - 'A' + 10);

        rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
    }
    return rest == 1;
}

const char *payout_order_take(payout_order *order, const char *currency, const char *iban)
{
    if (strlen(currency) != TL_CURRENCY || !only(currency, CAPITALS))
        return "the currency must be three capital letters";
    if (!is_iban(iban))
        return "the payee is no IBAN, or its check digits are wrong";
    strcpy(order->currency, currency);
    strcpy(order->iban, iban);
    return NULL;
}

void payout_order_write(const payout_order *order, char text[PAYOUT_TEXT])
{
    snprintf(text, PAYOUT_TEXT, "%" PRId64 " %s %s", order->amount_minor, order->currency,
             order->iban);
}

int payout_order_read(payout_order *order, const void *payload, size_t size)
{
    char text[PAYOUT_TEXT], again[PAYOUT_TEXT], currency[TL_CURRENCY + 1],
        iban[PAYOUT_IBAN_MAX + 1];

    if (size >= sizeof text)
        return 0;
    memcpy(text, payload, size);
    text[size] = '\0';
    if (sscanf(text, "%" SCNd64 " %3s %34s", &order->amount_minor, currency, iban) != 3 ||
        order->amount_minor <= 0 || payout_order_take(order, currency, iban) != NULL)
        return 0;
    payout_order_write(order, again);
    return strcmp(text, again) == 0;
}

/* --------------------------------------------------------------------------- the channel -- */

struct payout {
    channel *channel;
};

static tl_execute execute(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    payout *self = context;
    channel_payment payment;
    payout_order order;

    if (!payout_order_read(&order, attempt->payload, attempt->payload_size)) {
        tl_reply_remark(reply, "the payload is no order");
        return TL_EXECUTE_NOT_SENT;
    }
    payment = (channel_payment){order.amount_minor, order.currency, order.iban};
    return channel_execute(self->channel, attempt, &payment, reply);
}

static tl_query query(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    payout *self = context;

    return channel_query(self->channel, attempt, reply);
}

/* Believed and never tried out: take each from the channel's contract (workflows/README.md). */
static const tl_channel promises = {
    .name = "payout-bank",
    .idempotent = 1, /* a key pays once, for ever */
    .replays_first_answer = 1,
    .can_query = 1,
    .key_chars = 40,
    .latency_ms = 150,
};

/* --------------------------------------------------------------------------- the settings -- */

struct settings {
    char *url;
    int wrong;
};

/* Sections of others are passed over, whatever stands in them. */
static int take_setting(void *context, const char *section, const char *name, const char *value)
{
    struct settings *to = context;

    if (strcmp(section, "service-payout") != 0)
        return 1;
    if (strcmp(name, "channel_url") != 0 || to->url != NULL)
        to->wrong = 1;
    else
        to->url = strdup(value);
    return 1;
}

static tl_status read_settings(struct settings *to, const char *config_file)
{
    if (ini_parse(config_file, take_setting, to) < 0)
        return tl_error_report(TL_BAD_CONFIG, "%s cannot be read", config_file);
    if (to->wrong || to->url == NULL)
        return tl_error_report(
            TL_BAD_CONFIG, "%s needs channel_url under [service-payout], once, alone", config_file);
    return TL_OK;
}

/* --------------------------------------------------------------------------- the workflow -- */

tl_status payout_open(payout **out, tl_client *client, tl_workflows *workflows,
                      const char *config_file)
{
    tl_workflow workflow = TL_WORKFLOW_INIT;
    payout *self = calloc(1, sizeof *self);
    struct settings settings = {NULL, 0};
    tl_status status;

    if (self == NULL)
        return tl_error_report(TL_NO_MEMORY, "no memory for the payout workflow");
    status = read_settings(&settings, config_file);
    if (status == TL_OK)
        status = channel_new(&self->channel, client, settings.url);
    if (status != TL_OK)
        goto out;
    workflow.op_code = PAYOUT_OP;
    workflow.channel = promises;
    workflow.context = self;
    workflow.execute = execute;
    workflow.query = query;
    workflow.statements = books_statements;
    workflow.statement_count = BOOKS_STATEMENTS;
    workflow.book_prepare = books_reserve;
    workflow.book_success = books_pay;
    workflow.book_failure = books_release;
    status = tl_workflow_register(workflows, &workflow);
out:
    free(settings.url);
    if (status == TL_OK)
        *out = self;
    else
        payout_close(self);
    return status;
}

void payout_close(payout *self)
{
    if (self == NULL)
        return;
    channel_free(self->channel);
    free(self);
}
