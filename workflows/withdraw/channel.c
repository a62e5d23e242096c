/* The sample's execute, query and cancel: builds each HTTP request of a payment, and says what
 * each answer proves.  Touches the channel, and no database. */
#include "channel.h"

#include "withdraw.h"

#include <tradelock/layer.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define URL_MAX 256
#define NO_CHARACTER "\xef\xbf\xbd" /* U+FFFD, for a byte that is of no character */

struct channel {
    tl_client *client;
    char url[URL_MAX]; /* without a slash at the end */
};

tl_status channel_new(channel **out, tl_client *client, const char *url)
{
    channel *self;
    size_t size = url != NULL ? strlen(url) : 0;

    while (size > 0 && url[size - 1] == '/')
        size--;
    if (size < sizeof "http://" || size >= URL_MAX ||
        (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0))
        return tl_error_report(TL_INVALID, "the channel's URL \"%.60s\" is not http://HOST:PORT",
                               url != NULL ? url : "");
    if (http_start() != 0)
        return tl_error_report(TL_INTERNAL, "libcurl could not be started");
    self = calloc(1, sizeof *self);
    if (self == NULL)
        return tl_error_report(TL_NO_MEMORY, "no memory for the channel");
    self->client = client;
    memcpy(self->url, url, size);
    *out = self;
    return TL_OK;
}

void channel_free(channel *self)
{
    free(self);
}

/* -------------------------------------------------------------- what answers mean -- */

static const char *get_text(const json_t *body, const char *name)
{
    const json_t *given = json_object_get(body, name);
    const char *text = json_string_value(given);

    return text != NULL && strlen(text) == json_string_length(given) ? text : "";
}

static int says(const json_t *body, const char *name, const char *text)
{
    return strcmp(get_text(body, name), text) == 0;
}

/* Takes the reference of a payment that succeeded.  One that is missing, or cannot be stored as it
 * is, makes it no less paid: it is left out, since the bank's statement would contradict a made-up
 * one, and the remark has what can be read of it. */
static void take_ref(const json_t *body, tl_reply *reply)
{
    const json_t *given = json_object_get(body, "channel_ref");
    char *shown = json_dumps(given, JSON_ENCODE_ANY | JSON_COMPACT);
    const char *ref =
        json_is_integer(given) && shown != NULL ? shown : get_text(body, "channel_ref");

    reply->remark[0] = '\0';
    if (given == NULL || json_is_null(given))
        tl_reply_remark(reply, "paid, but its reference is missing");
    else if (ref[0] == '\0' || strstr(ref, NO_CHARACTER) != NULL ||
             tl_reply_ref(reply, ref) != TL_OK)
        tl_reply_remark(reply, "paid, but its reference is longer than 128 bytes or no text: %s",
                        shown != NULL ? shown : ref);
    free(shown);
}

/* The remark, and when to come again. */
static void take_answer(const http_exchange *exchange, const json_t *body, tl_reply *reply)
{
    const char *outcome = get_text(body, "outcome"), *error = get_text(body, "error");

    if (exchange->fate != HTTP_ANSWERED)
        tl_reply_remark(reply, "%s", exchange->problem);
    else
        tl_reply_remark(reply, "HTTP %ld%s%s%s%s", exchange->code,
                        outcome[0] != '\0' || error[0] != '\0' ? " " : "", outcome, error,
                        exchange->code == 200 && body == NULL ? ", not a JSON object" : "");
    if (exchange->code == 429 || exchange->code == 503)
        (void)tl_reply_retry_after(reply, exchange->retry_after_ms);
}

static void remark_decline(const json_t *body, tl_reply *reply)
{
    tl_reply_remark(reply, "%s: %s", get_text(body, "code"), get_text(body, "reason"));
}

/* Keeps the result that a later ask for the same trade is told. */
static void keep_result(tl_reply *reply)
{
    json_t *json = json_pack("{s:s}", "channel_ref", reply->channel_ref);
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;

    if (text != NULL)
        (void)tl_reply_result(reply, text, strlen(text));
    free(text);
    json_decref(json);
}

static tl_execute_result answer_200(const json_t *body, tl_reply *reply)
{
    if (says(body, "outcome", "succeeded")) {
        take_ref(body, reply);
        keep_result(reply);
        return TL_EXECUTE_SUCCEEDED;
    }
    /* Only a decline that the channel calls final is proof. */
    if (says(body, "outcome", "declined") && json_is_true(json_object_get(body, "final"))) {
        remark_decline(body, reply);
        return TL_EXECUTE_DECLINED;
    }
    return TL_EXECUTE_UNKNOWN;
}

tl_execute_result channel_pay_means(const http_exchange *exchange, const json_t *body,
                                    tl_reply *reply, int *mismatch)
{
    *mismatch = 0;
    take_answer(exchange, body, reply);
    if (exchange->fate == HTTP_NOT_SENT)
        return TL_EXECUTE_NOT_SENT;
    if (exchange->fate != HTTP_ANSWERED)
        return TL_EXECUTE_UNKNOWN;
    switch (exchange->code) {
    case 200:
        return answer_200(body, reply);
    case 202:
        return says(body, "outcome", "accepted") ? TL_EXECUTE_ACCEPTED : TL_EXECUTE_UNKNOWN;
    case 429:
        /* The channel documents that it does not process a rate-limited request. */
        return says(body, "outcome", "rate_limited") ? TL_EXECUTE_RETRY_LATER : TL_EXECUTE_UNKNOWN;
    case 422:
        *mismatch = says(body, "outcome", "key_mismatch");
        return TL_EXECUTE_UNKNOWN;
    default:
        /* 409, "a duplicate is in progress", means that another send of this key is alive, which
         * is the opposite of a decline.  After 5xx it may have paid.  Any other code has no
         * meaning. */
        return TL_EXECUTE_UNKNOWN;
    }
}

tl_query_result channel_query_means(const http_exchange *exchange, const json_t *body,
                                    tl_reply *reply)
{
    take_answer(exchange, body, reply);
    if (exchange->fate != HTTP_ANSWERED)
        return TL_QUERY_UNREACHABLE;
    /* A 404 alone may come from a wrong address or a gateway, so the body must say it as well. */
    if (exchange->code == 404)
        return says(body, "status", "not_found") ? TL_QUERY_NOT_FOUND : TL_QUERY_UNREACHABLE;
    if (exchange->code != 200)
        return TL_QUERY_UNREACHABLE;
    if (says(body, "status", "succeeded")) {
        take_ref(body, reply);
        keep_result(reply);
        return TL_QUERY_SUCCEEDED;
    }
    if (says(body, "status", "failed")) {
        remark_decline(body, reply);
        return TL_QUERY_FAILED;
    }
    return says(body, "status", "pending") ? TL_QUERY_PENDING : TL_QUERY_UNREACHABLE;
}

tl_cancel_result channel_cancel_means(const http_exchange *exchange, const json_t *body,
                                      tl_reply *reply)
{
    take_answer(exchange, body, reply);
    if (exchange->fate != HTTP_ANSWERED || exchange->code != 200)
        return TL_CANCEL_UNKNOWN;
    if (says(body, "outcome", "cancelled"))
        return TL_CANCEL_CANCELLED;
    return says(body, "outcome", "already_done") ? TL_CANCEL_ALREADY_DONE : TL_CANCEL_UNKNOWN;
}

/* ----------------------------------------------------------------------- the calls -- */

/* The code unit that an escape \uXXXX names; 0: none stands there. */
static unsigned unit_at(const char *at, const char *end)
{
    char digits[5] = "";

    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return 0;
    memcpy(digits, at + 2, 4);
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? (unsigned)strtoul(digits, NULL, 16) : 0;
}

/* The size of an escape; 0: it is half of a surrogate pair, and no character. */
static size_t escape_size(const char *at, const char *end)
{
    const unsigned unit = unit_at(at, end), next = unit != 0 ? unit_at(at + 6, end) : 0;

    if (unit < 0xd800 || unit > 0xdfff)
        return end - at < 2 ? 1 : 2;
    return unit < 0xdc00 && next >= 0xdc00 && next <= 0xdfff ? 12 : 0;
}

static size_t character_size(const char *at, const char *end)
{
    char next[5] = "";

    memcpy(next, at, end - at < 4 ? (size_t)(end - at) : 4);
    return tl_utf8_size(next);
}

/* What no JSON may have, bytes that are no UTF-8 and half of a surrogate pair, stands for itself: a
 * name in Latin-1 does not hide that a payment succeeded.  NULL: no memory. */
static char *with_characters(const http_exchange *exchange)
{
    char *text = malloc(exchange->size * strlen(NO_CHARACTER) + 1), *to = text;
    const char *from = exchange->body, *const end = from + exchange->size;

    while (text != NULL && from < end) {
        const int is_escape = *from == '\\';
        const size_t size = is_escape ? escape_size(from, end) : character_size(from, end);

        if (size > 0)
            memcpy(to, from, size);
        else
            memcpy(to, NO_CHARACTER, strlen(NO_CHARACTER));
        to += size > 0 ? size : strlen(NO_CHARACTER);
        from += size > 0 ? size : is_escape ? 6 : 1;
    }
    if (text != NULL)
        *to = '\0';
    return text;
}

static json_t *read_body(const http_exchange *exchange)
{
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
    char *text = exchange->fate == HTTP_ANSWERED ? with_characters(exchange) : NULL;
    json_t *body = text != NULL ? json_loads(text, flags, NULL) : NULL;

    if (text != NULL && body == NULL) /* or with a number that is too long for an integer */
        body = json_loads(text, flags | JSON_DECODE_INT_AS_REAL, NULL);
    free(text);
    if (body != NULL && !json_is_object(body)) {
        json_decref(body);
        body = NULL;
    }
    return body;
}

/* The moment, by the clock of the channel, after which it must not pay; it is as exact as the two
 * clocks agree.  The time that is left is asked for last.  So a pause before that makes the moment
 * earlier, never later. */
static json_int_t expires_at_ms(const tl_attempt *attempt)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (json_int_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + tl_attempt_left_ms(attempt);
}

static char *pay_body(const tl_attempt *attempt, const withdraw_order *order)
{
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:s, s:s, s:I}", "channel_key", attempt->channel_key,
                  "serial_no", attempt->key.serial_no, "cust_no", attempt->key.cust_no, "op_code",
                  attempt->key.op_code, "amount_minor", (json_int_t)order->amount_minor, "currency",
                  order->currency, "payee", order->payee, "expires_at_ms", expires_at_ms(attempt));
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return text;
}

tl_execute_result channel_execute(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    const channel *self = context;
    http_exchange *exchange = calloc(1, sizeof *exchange);
    char *request = NULL, url[URL_MAX + 16];
    tl_execute_result answer = TL_EXECUTE_NOT_SENT;
    withdraw_order order;
    json_t *body = NULL;
    int mismatch = 0;

    if (withdraw_order_read(&order, attempt->payload, attempt->payload_size))
        request = pay_body(attempt, &order);
    else
        tl_reply_remark(reply, "the payload is no order");
    if (exchange == NULL || request == NULL)
        goto out;
    snprintf(url, sizeof url, "%s/v1/pay", self->url);
    http_run(exchange, "pay", url, request, attempt);
    body = read_body(exchange);
    answer = channel_pay_means(exchange, body, reply, &mismatch);
    if (mismatch)
        tl_client_log(self->client, TL_ALARM, &attempt->key, 0,
                      "the channel knows key %s with other contents", attempt->channel_key);
out:
    json_decref(body);
    free(request);
    free(exchange);
    return answer;
}

tl_query_result channel_query(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    const channel *self = context;
    http_exchange *exchange = calloc(1, sizeof *exchange);
    char url[URL_MAX + TL_CHANNEL_KEY_MAX + 32];
    tl_query_result answer;
    json_t *body;

    if (exchange == NULL)
        return TL_QUERY_UNREACHABLE;
    snprintf(url, sizeof url, "%s/v1/payments/%s", self->url, attempt->channel_key);
    http_run(exchange, "query", url, NULL, attempt);
    body = read_body(exchange);
    answer = channel_query_means(exchange, body, reply);
    json_decref(body);
    free(exchange);
    return answer;
}

tl_cancel_result channel_cancel(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    const channel *self = context;
    http_exchange *exchange = calloc(1, sizeof *exchange);
    char url[URL_MAX + TL_CHANNEL_KEY_MAX + 32];
    tl_cancel_result answer;
    json_t *body;

    if (exchange == NULL)
        return TL_CANCEL_UNKNOWN;
    snprintf(url, sizeof url, "%s/v1/payments/%s/cancel", self->url, attempt->channel_key);
    http_run(exchange, "cancel", url, "{}", attempt);
    body = read_body(exchange);
    answer = channel_cancel_means(exchange, body, reply);
    json_decref(body);
    free(exchange);
    return answer;
}
