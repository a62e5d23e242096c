/* The fields of a proxy's ledger lines, to JSON and back. */
#include "passage.h"

#include <string.h>

static void add(json_t *object, const char *field, json_t *value)
{
    if (json_object_set_new(object, field, memory_need(value)) != 0)
        memory_need(NULL);
}

static void add_text(json_t *object, const char *field, const char *text)
{
    if (text[0])
        add(object, field, json_string(text));
}

void passage_add(json_t *object, const struct passage *passage, const struct order *order)
{
    if (passage->forwarding_seq) {
        add(object, "forwarding_seq", json_integer(passage->forwarding_seq));
        add(object, "sent", json_boolean(passage->sent));
        add(object, "status", json_integer(passage->status));
        add_text(object, "channel_ref", passage->channel_ref);
        add_text(object, "why", passage->why);
        return;
    }
    add(object, "method", json_string(passage->method));
    add(object, "path", json_string(passage->path));
    add(object, "body_sha256", json_string(passage->body_sha256));
    add(object, "fault", json_string(passage->fault));
    add_text(object, "channel_key", order->channel_key);
    add_text(object, "serial_no", order->serial_no);
    add_text(object, "cust_no", order->cust_no);
    add_text(object, "op_code", order->op_code);
    if (order->amount_minor)
        add(object, "amount_minor", json_integer(order->amount_minor));
    add_text(object, "currency", order->currency);
    add_text(object, "payee", order->payee);
}

static bool read_forwarded(const json_t *object, struct passage *passage, struct problem *problem)
{
    int64_t status = 0;

    if (!field_int(object, "forwarding_seq", FIELD_MUST, 1, INT64_MAX, &passage->forwarding_seq,
                   problem) ||
        !field_bool(object, "sent", FIELD_MUST, &passage->sent, problem) ||
        !field_int(object, "status", FIELD_MUST, 0, 999, &status, problem) ||
        !field_text(object, "channel_ref", FIELD_MAY, passage->channel_ref,
                    sizeof(passage->channel_ref), problem) ||
        !field_text(object, "why", FIELD_MAY, passage->why, sizeof(passage->why), problem))
        return false;
    passage->status = (int)status;
    return true;
}

bool passage_read(const json_t *object, bool forwarded, struct passage *passage,
                  struct order *order, struct problem *problem)
{
    if (forwarded)
        return read_forwarded(object, passage, problem);
    return field_text(object, "method", FIELD_MUST, passage->method, sizeof(passage->method),
                      problem) &&
           field_text(object, "path", FIELD_MUST, passage->path, sizeof(passage->path), problem) &&
           field_text(object, "body_sha256", FIELD_MUST, passage->body_sha256,
                      sizeof(passage->body_sha256), problem) &&
           field_text(object, "fault", FIELD_MUST, passage->fault, sizeof(passage->fault),
                      problem) &&
           field_name(object, "channel_key", FIELD_MAY, order->channel_key, problem) &&
           field_name(object, "serial_no", FIELD_MAY, order->serial_no, problem) &&
           field_name(object, "cust_no", FIELD_MAY, order->cust_no, problem) &&
           field_name(object, "op_code", FIELD_MAY, order->op_code, problem) &&
           field_int(object, "amount_minor", FIELD_MAY, 0, INT64_MAX, &order->amount_minor,
                     problem) &&
           field_text(object, "currency", FIELD_MAY, order->currency, sizeof(order->currency),
                      problem) &&
           field_text(object, "payee", FIELD_MAY, order->payee, sizeof(order->payee), problem);
}
