/* A record of the ledger to its JSON line and back. */
#include "record.h"
#include "sim_time.h"

#include <stdlib.h>
#include <string.h>

static const char *const type_names[] = {"ledger",    "paid", "declined",   "accepted",
                                         "cancelled", "kept", "forwarding", "forwarded"};

#define TYPE_COUNT (sizeof(type_names) / sizeof(type_names[0]))

static void add(json_t *object, const char *field, json_t *value)
{
    if (json_object_set_new(object, field, memory_need(value)) != 0)
        memory_need(NULL);
}

static void add_order(json_t *object, const struct order *order)
{
    add(object, "serial_no", json_string(order->serial_no));
    add(object, "cust_no", json_string(order->cust_no));
    add(object, "op_code", json_string(order->op_code));
    add(object, "amount_minor", json_integer(order->amount_minor));
    add(object, "currency", json_string(order->currency));
    add(object, "payee", json_string(order->payee));
}

char *record_write(const struct record *record)
{
    json_t *object = memory_need(json_object());
    char at[TIME_TEXT_SIZE];
    char *text;
    size_t length;

    time_write(record->at_us, at);
    add(object, "seq", json_integer(record->seq));
    add(object, "type", json_string(type_names[record->type]));
    add(object, "at", json_string(at));
    if (record->type == RECORD_LEDGER)
        add(object, "format", json_integer(RECORD_FORMAT));
    if (record->of_proxy)
        add(object, "proxy", json_true());
    if (record->type >= RECORD_KEPT) {
        passage_add(object, &record->passage, &record->order);
        goto out;
    }
    if (record->type == RECORD_PAID)
        add(object, "channel_ref", json_string(record->channel_ref));
    if (record->type != RECORD_LEDGER)
        add(object, "channel_key", json_string(record->order.channel_key));
    if (record->type != RECORD_LEDGER && record->type != RECORD_CANCELLED)
        add_order(object, &record->order);
    if (record->code[0]) {
        add(object, "code", json_string(record->code));
        add(object, "reason", json_string(record->reason));
    }
    if (record->accepted_seq)
        add(object, "accepted_seq", json_integer(record->accepted_seq));
    if (record->type == RECORD_ACCEPTED) {
        add(object, "due_ms", json_integer(record->due_ms));
        add(object, "replied", json_boolean(record->replied));
    }
out:
    text = memory_need(json_dumps(object, JSON_COMPACT));
    json_decref(object);
    length = strlen(text);
    text = memory_need(realloc(text, length + 2));
    memcpy(text + length, "\n", 2);
    return text;
}

static bool read_type(const json_t *object, struct record *record, struct problem *problem)
{
    const char *name = json_string_value(json_object_get(object, "type"));
    size_t type = 0;

    while (name && type < TYPE_COUNT && strcmp(name, type_names[type]) != 0)
        type++;
    if (!name || type == TYPE_COUNT)
        return problem_set(problem, "type must be ledger, paid, declined, accepted or "
                                    "cancelled, or of a proxy kept, forwarding or forwarded");
    record->type = (enum record_type)type;
    return true;
}

static bool read_order(const json_t *object, struct order *order, struct problem *problem)
{
    char currency[ORDER_NAME_MAX + 1] = "";

    if (!field_name(object, "serial_no", FIELD_MUST, order->serial_no, problem) ||
        !field_name(object, "cust_no", FIELD_MUST, order->cust_no, problem) ||
        !field_name(object, "op_code", FIELD_MUST, order->op_code, problem) ||
        !field_int(object, "amount_minor", FIELD_MUST, 1, INT64_MAX, &order->amount_minor,
                   problem) ||
        !field_name(object, "currency", FIELD_MUST, currency, problem) ||
        !field_text(object, "payee", FIELD_MUST, order->payee, sizeof(order->payee), problem))
        return false;
    if (strlen(currency) != 3)
        return problem_set(problem, "currency must be three letters");
    strcpy(order->currency, currency);
    return true;
}

static bool read_fields(const json_t *object, struct record *record, struct problem *problem)
{
    enum field_need code_need = record->type == RECORD_DECLINED ? FIELD_MUST : FIELD_MAY;
    int64_t format = RECORD_FORMAT;

    if (record->type == RECORD_LEDGER)
        return field_int(object, "format", FIELD_MUST, RECORD_FORMAT, RECORD_FORMAT, &format,
                         problem) &&
               field_bool(object, "proxy", FIELD_MAY, &record->of_proxy, problem);
    if (record->type >= RECORD_KEPT)
        return passage_read(object, record->type == RECORD_FORWARDED, &record->passage,
                            &record->order, problem);
    if (!field_name(object, "channel_key", FIELD_MUST, record->order.channel_key, problem))
        return false;
    if (record->type == RECORD_CANCELLED)
        return true;
    if (!read_order(object, &record->order, problem) ||
        !field_text(object, "code", code_need, record->code, sizeof(record->code), problem) ||
        !field_text(object, "reason", code_need, record->reason, sizeof(record->reason), problem) ||
        !field_int(object, "accepted_seq", FIELD_MAY, 1, INT64_MAX, &record->accepted_seq, problem))
        return false;
    if (record->type == RECORD_PAID)
        return field_text(object, "channel_ref", FIELD_MUST, record->channel_ref,
                          sizeof(record->channel_ref), problem);
    if (record->type == RECORD_ACCEPTED)
        return field_int(object, "due_ms", FIELD_MUST, 0, INT64_MAX, &record->due_ms, problem) &&
               field_bool(object, "replied", FIELD_MUST, &record->replied, problem);
    return true;
}

bool record_read(const char *line, size_t length, struct record *record, struct problem *problem)
{
    json_error_t error;
    json_t *object = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
    const char *at;
    bool fine = false;

    memset(record, 0, sizeof(*record));
    if (!json_is_object(object)) {
        problem_set(problem, "not a JSON object");
        goto out;
    }
    at = json_string_value(json_object_get(object, "at"));
    if (!at || !time_read(at, &record->at_us)) {
        problem_set(problem, "at must be a time such as 2026-01-31T23:59:59.123456Z");
        goto out;
    }
    fine = field_int(object, "seq", FIELD_MUST, 1, INT64_MAX, &record->seq, problem) &&
           read_type(object, record, problem) && read_fields(object, record, problem);
out:
    json_decref(object);
    return fine;
}
