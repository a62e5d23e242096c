/* Writes and reads the payload of a withdrawal.  Touches no state. */
#include "withdraw.h"

#include <stdlib.h>
#include <string.h>

static int is_currency(const char *text)
{
    for (int i = 0; i < WITHDRAW_CURRENCY; i++)
        if (text[i] < 'A' || text[i] > 'Z')
            return 0;
    return text[WITHDRAW_CURRENCY] == '\0';
}

static int has_control(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++)
        if (*at < 0x20 || *at == 0x7f)
            return 1;
    return 0;
}

/* jansson accepts only valid UTF-8. */
static int is_utf8(const char *text)
{
    json_t *string = json_string(text);

    json_decref(string);
    return string != NULL;
}

const char *withdraw_order_problem(const withdraw_order *order)
{
    if (order->amount_minor <= 0)
        return "the amount must be at least 1";
    if (!is_currency(order->currency))
        return "the currency must be three capital letters";
    if (order->payee[0] == '\0')
        return "the payee is empty";
    if (has_control(order->payee))
        return "the payee has a control character";
    if (!is_utf8(order->payee))
        return "the payee is not UTF-8";
    return NULL;
}

char *withdraw_order_write(const withdraw_order *order)
{
    json_t *json = json_pack("{s:I, s:s, s:s}", "amount_minor", (json_int_t)order->amount_minor,
                             "currency", order->currency, "payee", order->payee);
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    json_decref(json);
    return text;
}

int withdraw_order_read(withdraw_order *order, const void *payload, size_t size)
{
    json_t *json = json_loadb(payload, size, JSON_REJECT_DUPLICATES, NULL);
    json_int_t amount_minor;
    const char *currency, *payee;
    int good = 0;

    memset(order, 0, sizeof *order);
    if (json == NULL || json_unpack(json, "{s:I, s:s, s:s}", "amount_minor", &amount_minor,
                                    "currency", &currency, "payee", &payee) != 0)
        goto out;
    if (strlen(currency) > WITHDRAW_CURRENCY || strlen(payee) > WITHDRAW_PAYEE_MAX)
        goto out;
    order->amount_minor = amount_minor;
    strcpy(order->currency, currency);
    strcpy(order->payee, payee);
    good = withdraw_order_problem(order) == NULL;
out:
    json_decref(json);
    return good;
}
