/* A record of the ledger to its JSON line and back. */
#include "record.h"
#include "sim_time.h"

#include <stdlib.h>
#include <string.h>

#define OF(type) (1u << RECORD_##type)
#define AT(member) FIELD_AT(struct record, member)
#define POSITIVE .lowest = 1, .highest = INT64_MAX

static const struct type {
    const char *name;
    unsigned order; /* what its lines say of the order; 0: nothing */
} types[] = {
    [RECORD_LEDGER] = {"ledger", 0},
    [RECORD_PAID] = {"paid", ORDER_WHOLE},
    [RECORD_DECLINED] = {"declined", ORDER_WHOLE},
    [RECORD_ACCEPTED] = {"accepted", ORDER_WHOLE},
    [RECORD_CANCELLED] = {"cancelled", ORDER_KEY},
    [RECORD_KEPT] = {"kept", ORDER_SOME},
    [RECORD_FORWARDING] = {"forwarding", ORDER_SOME},
    [RECORD_FORWARDED] = {"forwarded", 0},
};

#define TYPE_COUNT (sizeof(types) / sizeof(types[0]))

/* A line has seq, type and at, then of these what is its type's, and the order between them. */
static const struct field before_order[] = {
    {"format", FIELD_INT, AT(format), .must = OF(LEDGER), .lowest = RECORD_FORMAT,
     .highest = RECORD_FORMAT},
    {"proxy", FIELD_BOOL, AT(of_proxy), .may = OF(LEDGER)},
    {"channel_ref", FIELD_TEXT, AT(channel_ref), .must = OF(PAID)},
    {"method", FIELD_TEXT, AT(passage.method), .must = OF(KEPT) | OF(FORWARDING)},
    {"path", FIELD_TEXT, AT(passage.path), .must = OF(KEPT) | OF(FORWARDING)},
    {"body_sha256", FIELD_TEXT, AT(passage.body_sha256), .must = OF(KEPT) | OF(FORWARDING)},
    {"fault", FIELD_TEXT, AT(passage.fault), .must = OF(KEPT) | OF(FORWARDING)},
    {.name = NULL}};

static const struct field after_order[] = {
    {"code", FIELD_TEXT, AT(code), .must = OF(DECLINED), .may = OF(PAID) | OF(ACCEPTED)},
    {"reason", FIELD_TEXT, AT(reason), .must = OF(DECLINED), .may = OF(PAID) | OF(ACCEPTED)},
    {"accepted_seq", FIELD_INT, AT(accepted_seq), .may = OF(PAID) | OF(DECLINED) | OF(ACCEPTED),
     POSITIVE},
    {"due_ms", FIELD_INT, AT(due_ms), .must = OF(ACCEPTED), .highest = INT64_MAX},
    {"replied", FIELD_BOOL, AT(replied), .must = OF(ACCEPTED)},
    {"forwarding_seq", FIELD_INT, AT(passage.forwarding_seq), .must = OF(FORWARDED), POSITIVE},
    {"sent", FIELD_BOOL, AT(passage.sent), .must = OF(FORWARDED)},
    {"status", FIELD_INT, AT(passage.status), .must = OF(FORWARDED), .highest = 999},
    {"channel_ref", FIELD_TEXT, AT(passage.channel_ref), .may = OF(FORWARDED)},
    {"why", FIELD_TEXT, AT(passage.why), .may = OF(FORWARDED)},
    {.name = NULL}};

char *record_write(const struct record *record)
{
    json_t *object = memory_need(json_object());
    char at[TIME_TEXT_SIZE];
    char *text;
    size_t length;

    time_write(record->at_us, at);
    field_add(object, "seq", json_integer(record->seq));
    field_add(object, "type", json_string(types[record->type].name));
    field_add(object, "at", json_string(at));
    fields_write(object, before_order, 1u << record->type, record);
    fields_write(object, order_fields, types[record->type].order, &record->order);
    fields_write(object, after_order, 1u << record->type, record);
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

    while (name && type < TYPE_COUNT && strcmp(name, types[type].name) != 0)
        type++;
    if (!name || type == TYPE_COUNT)
        return problem_set(problem, "type must be ledger, paid, declined, accepted or "
                                    "cancelled, or of a proxy kept, forwarding or forwarded");
    record->type = (enum record_type)type;
    return true;
}

bool record_read(const char *line, size_t length, struct record *record, struct problem *problem)
{
    static const struct field seq[] = {{"seq", FIELD_INT, AT(seq), .must = 1, POSITIVE},
                                       {.name = NULL}};
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
    fine = fields_read(object, seq, 1, record, problem) && read_type(object, record, problem) &&
           fields_read(object, before_order, 1u << record->type, record, problem) &&
           fields_read(object, order_fields, types[record->type].order, &record->order, problem) &&
           fields_read(object, after_order, 1u << record->type, record, problem);
out:
    json_decref(object);
    return fine;
}
