/* The structs of the headers by the names of their fields.  Touches the heap and what it is given. */
#include "memory.h"

#include <tradelock/questions.h>
#include <tradelock/struct.h>
#include <tradelock/worker.h>

#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------- the table -- */

/* What a field is, by its type in C. */
enum kind {
    SIGNED,
    UNSIGNED, /* an enum, too */
    LETTER,
    NUMBERS, /* int64_t [], and how many are set */
    TEXT,    /* const char * */
    CHARS,   /* char [] */
    BYTES,   /* a pointer; their size is a field, or TL_FINGERPRINT */
    ARRAY,   /* unsigned char []; their size is a field, or all */
    POINTER,
    MEMBER, /* a struct */
    LIST    /* a pointer to structs, and how many they are */
};

struct field {
    const char *name;
    enum kind kind;
    size_t at, size, count_at; /* count_at: where its size or count is; 0: it has none */
    const char *of;            /* which struct is within */
};

struct type {
    const char *name;
    const struct field *fields;
    size_t count, size;
    const void *initial; /* NULL: zeros */
    enum use { SET, ANSWER, LENT } use;
};

/* clang-format off */
/* A field of a type that is in none of these lists does not compile. */
#define KIND(value)                                                                                \
    _Generic((value), int: SIGNED, int64_t: SIGNED, unsigned: UNSIGNED, uint64_t: UNSIGNED,        \
             char: LETTER, const char *: TEXT, char *: CHARS, const unsigned char *: BYTES,        \
             unsigned char *: ARRAY, void *: POINTER, tl_log_fn: POINTER, tl_loss_fn: POINTER,     \
             tl_execute_fn: POINTER, tl_query_fn: POINTER, tl_cancel_fn: POINTER,                  \
             tl_sql_prepare_fn: POINTER, tl_sql_success_fn: POINTER, tl_sql_failure_fn: POINTER,   \
             tl_book_prepare_fn: POINTER, tl_book_success_fn: POINTER, tl_book_failure_fn: POINTER)
#define M(type, member) (((tl_##type *)0)->member)
#define AT(type, member) offsetof(tl_##type, member)
#define ENTRY(type, member, kind, count_at, of)                                                    \
    {#member, kind, AT(type, member), sizeof M(type, member), count_at, of}

#define F(type, member) ENTRY(type, member, KIND(M(type, member)), 0, NULL)
/* With its size in a field of its own. */
#define SIZED(type, member)                                                                        \
    ENTRY(type, member, _Generic(M(type, member), const void *: BYTES, unsigned char *: ARRAY),    \
          AT(type, member##_size), NULL)
#define NUMBERED(type, member, count)                                                              \
    ENTRY(type, member, _Generic(M(type, member), int64_t *: NUMBERS), AT(type, count), NULL)
#define INSIDE(type, member, of)                                                                   \
    ENTRY(type, member, _Generic(M(type, member), tl_##of: MEMBER), 0, "tl_" #of)
#define LISTED(type, member, count, of)                                                            \
    ENTRY(type, member, _Generic(M(type, member), const tl_##of *: LIST), AT(type, count), "tl_" #of)

static const struct field of_key[] = {
    F(key, serial_no), F(key, cust_no), F(key, op_code),
};
static const struct field of_client_options[] = {
    F(client_options, flags), F(client_options, config_file), F(client_options, program),
    F(client_options, operations), F(client_options, group_suffix), F(client_options, database),
    F(client_options, log), F(client_options, log_context), F(client_options, loss),
    F(client_options, loss_context), F(client_options, user), F(client_options, password),
    F(client_options, shard),
};
static const struct field of_channel[] = {
    F(channel, name), F(channel, idempotent), F(channel, window_ms),
    F(channel, replays_first_answer), F(channel, can_query), F(channel, not_found_final),
    F(channel, key_chars), F(channel, cancel_final), F(channel, latency_ms),
};
static const struct field of_policy[] = {
    F(policy, max_hold_ms), F(policy, execute_ms), F(policy, commit_ms), F(policy, deadline_ms),
    F(policy, grace_ms), F(policy, attempts), F(policy, clock_margin_ms), F(policy, poison),
    NUMBERED(policy, schedule_ms, schedule_count),
};
static const struct field of_statement[] = {
    F(statement, name), F(statement, sql), F(statement, values), F(statement, rows),
    F(statement, refused), F(statement, shared), F(statement, summed),
};
static const struct field of_former_channel[] = {
    INSIDE(former_channel, channel, channel), F(former_channel, context),
    F(former_channel, execute), F(former_channel, query), F(former_channel, cancel),
};
static const struct field of_workflow[] = {
    F(workflow, op_code), INSIDE(workflow, channel, channel), INSIDE(workflow, policy, policy),
    F(workflow, exclusive), F(workflow, context), F(workflow, sql_prepare), F(workflow, execute),
    F(workflow, query), F(workflow, cancel), F(workflow, sql_success), F(workflow, sql_failure),
    LISTED(workflow, statements, statement_count, statement), F(workflow, book_prepare),
    F(workflow, book_success), F(workflow, book_failure),
    LISTED(workflow, former, former_count, former_channel),
};
static const struct field of_request[] = {
    INSIDE(request, key, key), SIZED(request, payload), F(request, fingerprint),
    F(request, wait_ms), F(request, reclaim_epoch), F(request, remark), F(request, actor),
    F(request, amount_minor), F(request, currency), F(request, batch), F(request, traceparent),
    F(request, label),
};
static const struct field of_trades[] = {
    F(trades, cust_no), F(trades, batch), F(trades, op_code), F(trades, limit), F(trades, after),
};
static const struct field of_worker_options[] = {
    F(worker_options, threads), F(worker_options, idle_max_ms), F(worker_options, unclaimed_ms),
};
static const struct field of_view[] = {
    F(view, state), F(view, lane), F(view, status), F(view, serial_no), F(view, cust_no),
    F(view, op_code), F(view, fence), F(view, rev), F(view, epoch), F(view, sends),
    F(view, attempts), F(view, claims), F(view, thread_no), F(view, log_no), F(view, session_id),
    F(view, holder), F(view, being_decided), F(view, holder_silent_ms), F(view, retryable),
    F(view, conflict), F(view, exclusive), F(view, has_retry_row), F(view, repeatable),
    F(view, seen_by_channel), F(view, cancel_tried), F(view, retry_status), F(view, proof),
    F(view, parked), F(view, channel), F(view, channel_key), F(view, channel_ref), F(view, remark),
    F(view, actor), F(view, other_serial), F(view, other_state), F(view, created_us),
    F(view, updated_us), F(view, now_us), F(view, send_until_us), F(view, max_hold_until_us),
    F(view, next_run_us), F(view, deadline_us), F(view, fingerprint), F(view, not_found_since_us),
    SIZED(view, payload), SIZED(view, result), F(view, amount_minor), F(view, currency),
    F(view, batch), F(view, traceparent), F(view, label),
};
static const struct field of_answer[] = {
    F(answer, status), F(answer, own), F(answer, next_look_ms), INSIDE(answer, view, view),
};
static const struct field of_trade[] = {
    F(trade, status), F(trade, serial_no), F(trade, cust_no), F(trade, op_code), F(trade, epoch),
    F(trade, sends), F(trade, attempts), F(trade, proof), F(trade, retryable),
    F(trade, created_us), F(trade, next_look_ms), F(trade, updated_us), F(trade, now_us),
    F(trade, amount_minor), F(trade, currency), F(trade, batch), F(trade, traceparent),
    F(trade, label), F(trade, channel), F(trade, channel_ref), F(trade, remark), F(trade, parked),
    SIZED(trade, result),
};
static const struct field of_attempt[] = {
    INSIDE(attempt, key, key), F(attempt, lane), F(attempt, epoch), F(attempt, number),
    F(attempt, sends), F(attempt, channel_key), F(attempt, channel_ref), SIZED(attempt, payload),
    F(attempt, timeout_ms), F(attempt, deadline_ms), F(attempt, after_failure),
    F(attempt, until_ms), F(attempt, amount_minor), F(attempt, currency), F(attempt, created_us),
    F(attempt, batch), F(attempt, traceparent), F(attempt, label),
};
static const struct field of_reply[] = {
    F(reply, channel_ref), F(reply, remark), F(reply, retryable), SIZED(reply, result),
    F(reply, retry_after_ms),
};
static const struct field of_log_line[] = {
    F(log_line, level), F(log_line, message), F(log_line, thread_uuid), F(log_line, log_uuid),
    F(log_line, serial_no), F(log_line, cust_no), F(log_line, op_code), F(log_line, fence),
    F(log_line, trace_id), F(log_line, currency), F(log_line, amount_minor), F(log_line, batch),
};

#define TYPE(name, initial, use)                                                                   \
    {"tl_" #name, of_##name, sizeof of_##name / sizeof of_##name[0], sizeof(tl_##name), initial,   \
     use}

static const struct type types[] = {
    TYPE(key, NULL, SET), TYPE(channel, NULL, SET), TYPE(policy, NULL, SET),
    TYPE(statement, NULL, SET), TYPE(former_channel, NULL, SET),
    TYPE(client_options, &(const tl_client_options)TL_CLIENT_OPTIONS_INIT, SET),
    TYPE(workflow, &(const tl_workflow)TL_WORKFLOW_INIT, SET),
    TYPE(request, &(const tl_request)TL_REQUEST_INIT, SET),
    TYPE(trades, &(const tl_trades)TL_TRADES_INIT, SET),
    TYPE(worker_options, &(const tl_worker_options)TL_WORKER_OPTIONS_INIT, SET),
    TYPE(answer, &(const tl_answer)TL_ANSWER_INIT, ANSWER),
    TYPE(trade, &(const tl_trade)TL_TRADE_INIT, ANSWER),
    TYPE(attempt, NULL, LENT), TYPE(reply, NULL, LENT), TYPE(view, NULL, LENT),
    TYPE(log_line, NULL, LENT),
};
/* clang-format on */

static const struct {
    const char *name;
    int number;
} constants[] = {
#define STATUS(number, name, class_, payment, text) {"TL_" #name, TL_##name},
#define PROOF(code, name, text) {"TL_PROOF_" #name, TL_PROOF_##name},
#define N(name) {#name, name}
    TL_STATUS_MAP(STATUS) TL_PROOF_MAP(PROOF)
    /* clang-format off */
    N(TL_CLASS_DONE), N(TL_CLASS_CONFLICT), N(TL_CLASS_RETRY), N(TL_CLASS_UNKNOWN),
    N(TL_CLASS_ROLL_BACK), N(TL_CLASS_CALLER), N(TL_CLASS_BROKEN),
    N(TL_EXECUTE_UNKNOWN), N(TL_EXECUTE_SUCCEEDED), N(TL_EXECUTE_DECLINED),
    N(TL_EXECUTE_RETRY_LATER), N(TL_EXECUTE_NOT_SENT), N(TL_EXECUTE_ACCEPTED),
    N(TL_QUERY_UNREACHABLE), N(TL_QUERY_SUCCEEDED), N(TL_QUERY_FAILED), N(TL_QUERY_PENDING),
    N(TL_QUERY_NOT_FOUND),
    N(TL_CANCEL_UNKNOWN), N(TL_CANCEL_CANCELLED), N(TL_CANCEL_ALREADY_DONE),
    N(TL_LANE_SYNC), N(TL_LANE_RETRY),
    N(TL_STATE_ABSENT), N(TL_STATE_LIVE), N(TL_STATE_WORKING), N(TL_STATE_IN_DOUBT),
    N(TL_STATE_QUEUED), N(TL_STATE_PARKED), N(TL_STATE_FAILED), N(TL_STATE_SUCCEEDED),
    N(TL_STATE_WAITING), N(TL_STATE_CLOSED),
    N(TL_DEBUG), N(TL_INFO), N(TL_WARNING), N(TL_ALARM),
    N(TL_CLIENT_NO_SESSION), N(TL_CLIENT_NO_JANITOR), N(TL_CLIENT_NO_SCHEMA),
    /* clang-format on */
};

tl_status tl_constant(const char *name, int64_t *number)
{
    workflow_call_begins();
    for (size_t i = 0; name != NULL && i < sizeof constants / sizeof constants[0]; i++)
        if (number != NULL && strcmp(constants[i].name, name) == 0) {
            *number = constants[i].number;
            return TL_OK;
        }
    return tl_error_report(TL_INVALID,
                           "\"%s\" is no constant, such as TL_EXECUTE_UNKNOWN, or its "
                           "number is not asked for",
                           name != NULL ? name : "NULL");
}

/* ------------------------------------------------------------- what the caller's struct is -- */

/* A copy of what was set. */
struct copy {
    struct copy *next;
    max_align_t data[];
};

/* It lies before the struct that the caller has. */
struct made {
    const struct type *type;
    struct copy *copies;
    max_align_t start[];
};

static struct made *made_of(void *start)
{
    return (void *)((char *)start - offsetof(struct made, start));
}

static const struct type *find_type(const char *name)
{
    for (size_t i = 0; name != NULL && i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    (void)tl_error_report(TL_INVALID,
                          "\"%s\" is no struct of <tradelock/struct.h>, such as "
                          "tl_request",
                          name != NULL ? name : "NULL");
    return NULL;
}

tl_status tl_struct_new(void **out, const char *name)
{
    const struct type *type;
    struct made *made;

    workflow_call_begins();
    type = find_type(name);
    if (type == NULL)
        return TL_INVALID;
    if (out == NULL || type->use == LENT)
        return tl_error_report(TL_INVALID, "%s is only given to callbacks, or is not asked for",
                               name);
    made = workflow_memory(sizeof *made + type->size);
    if (made == NULL)
        return tl_error_report(TL_NO_MEMORY, "no memory for a struct %s", name);
    made->type = type;
    if (type->initial != NULL)
        memcpy(made->start, type->initial, type->size);
    *out = made->start;
    return TL_OK;
}

void tl_struct_free(void *start)
{
    struct made *made;

    if (start == NULL)
        return;
    made = made_of(start);
    if (strcmp(made->type->name, "tl_answer") == 0) {
        tl_answer_clear(start);
        if (((tl_answer *)start)->run != NULL)
            return;
    }
    while (made->copies != NULL) {
        struct copy *copy = made->copies;

        made->copies = copy->next;
        free(copy);
    }
    free(made);
}

/* Has the pointer at `at` point to a copy, with `more` zeros behind it, in place of an older one. */
static tl_status point_at(struct made *made, char *at, const void *data, size_t size, size_t more)
{
    struct copy **old, *copy = NULL;
    const void *was, *now = NULL;

    if (data != NULL) {
        copy = workflow_memory(sizeof *copy + size + more);
        if (copy == NULL)
            return tl_error_report(TL_NO_MEMORY, "no memory for %zu bytes of a %s", size,
                                   made->type->name);
        memcpy(copy->data, data, size);
        now = copy->data;
    }
    memcpy(&was, at, sizeof was);
    memcpy(at, &now, sizeof now);
    for (old = &made->copies; *old != NULL; old = &(*old)->next)
        if ((*old)->data == was) {
            struct copy *gone = *old;

            *old = gone->next;
            free(gone);
            break;
        }
    if (copy != NULL) {
        copy->next = made->copies;
        made->copies = copy;
    }
    return TL_OK;
}

/* ------------------------------------------------------------------- where a name leads -- */

static uint64_t load(const char *at, size_t size)
{
    uint32_t small;
    uint64_t large;

    if (size == sizeof small) {
        memcpy(&small, at, sizeof small);
        return small;
    }
    memcpy(&large, at, sizeof large);
    return large;
}

static void store(char *at, size_t size, uint64_t number)
{
    uint32_t small = (uint32_t)number;

    memcpy(at, size == sizeof small ? (void *)&small : (void *)&number, size);
}

/* Where a name leads. */
struct place {
    struct made *made;         /* of what is set; NULL: it is only read */
    const struct type *type;   /* the innermost struct on the way, */
    const struct field *field; /* its field, */
    char *in, *at;             /* and where both are */
    enum kind kind;            /* of the field, or of its element */
    size_t size;
};

/* Goes to the element whose number comes next.  One more than there are is made, to be set. */
static tl_status find_element(struct place *place, const char **rest)
{
    const int is_list = place->kind == LIST;
    const size_t wide = is_list ? sizeof(size_t) : sizeof(unsigned);
    const size_t size = is_list ? find_type(place->field->of)->size : sizeof(int64_t);
    const size_t room = is_list ? TL_BOOK_STATEMENTS : place->size / size;
    char *count_at = place->in + place->field->count_at, *end, *start = place->at;
    const size_t count = (size_t)load(count_at, wide);
    const int has_number = (*rest)[0] == '.' && (*rest)[1] >= '0' && (*rest)[1] <= '9';
    const size_t i = has_number ? strtoul(*rest + 1, &end, 10) : SIZE_MAX;

    if (i >= count && (place->made == NULL || i > count || i >= room))
        return tl_error_report(has_number && place->made == NULL ? TL_NOT_FOUND : TL_INVALID,
                               "%s.%s has %zu elements, of at most %zu; name one as %s.0, the next "
                               "to make it",
                               place->type->name, place->field->name, count, room,
                               place->field->name);
    *rest = end;
    if (i == count) {
        if (is_list) {
            memcpy(&start, place->at, sizeof start);
            if (point_at(place->made, place->at, count > 0 ? start : "", count * size, size) !=
                TL_OK)
                return TL_NO_MEMORY;
        }
        store(count_at, wide, count + 1);
    }
    if (is_list)
        memcpy(&start, place->at, sizeof start);
    place->at = start + i * size;
    place->kind = is_list ? MEMBER : SIGNED;
    place->size = size;
    return TL_OK;
}

static tl_status find_field(struct place *place, const char *name, size_t length)
{
    char names[600] = "";
    int end = 0;

    for (size_t i = 0; i < place->type->count; i++) {
        const struct field *field = &place->type->fields[i];

        if (strncmp(field->name, name, length) == 0 && field->name[length] == '\0') {
            place->field = field;
            place->at = place->in + field->at;
            place->kind = field->kind;
            place->size = field->size;
            return TL_OK;
        }
        if (end < (int)sizeof names)
            end += snprintf(names + end, sizeof names - (size_t)end, " %s", field->name);
    }
    return tl_error_report(TL_INVALID, "%s has no field %.*s, but%s", place->type->name,
                           (int)(length < 64 ? length : 64), name, names);
}

static tl_status find(struct place *place, const struct type *type, char *in, const char *name)
{
    for (;;) {
        const size_t length = strcspn(name, ".");
        tl_status status;

        place->type = type;
        place->in = in;
        status = find_field(place, name, length);
        name += length;
        if (status == TL_OK && (place->kind == LIST || place->kind == NUMBERS))
            status = find_element(place, &name);
        if (status != TL_OK || *name == '\0')
            return status;
        if (place->kind != MEMBER || *name++ != '.')
            return tl_error_report(TL_INVALID, "%s.%s has no fields, so nothing follows its name",
                                   type->name, place->field->name);
        type = find_type(place->field->of);
        in = place->at;
    }
}

static tl_status wrong_kind(const struct place *place)
{
    static const char number[] = "a number, for tl_struct_set_number() and tl_struct_number()";
    static const char bytes[] = "a text or bytes, for tl_struct_set_bytes() and tl_struct_bytes()";
    const char *is = place->kind <= LETTER ? number : bytes;

    if (place->kind > POINTER)
        is = "a struct: name a field of it";
    else if (place->kind == POINTER)
        is = "a pointer, for tl_struct_set_pointer() and tl_struct_bytes()";
    return tl_error_report(TL_INVALID, "%s.%s is %s", place->type->name, place->field->name, is);
}

/* --------------------------------------------------------------------- setting and reading -- */

static tl_status find_to_set(struct place *place, void *start, const char *field)
{
    workflow_call_begins();
    if (start == NULL || field == NULL)
        return tl_error_report(TL_INVALID, "a struct, or the name of a field is missing");
    place->made = made_of(start);
    if (place->made->type->use != SET)
        return tl_error_report(TL_INVALID, "%s is set by the call that answers with it",
                               place->made->type->name);
    return find(place, place->made->type, start, field);
}

tl_status tl_struct_set_number(void *start, const char *field, int64_t number)
{
    struct place place;
    tl_status status = find_to_set(&place, start, field);
    int64_t least, most;
    int is_small;

    if (status != TL_OK)
        return status;
    if (place.kind != SIGNED && place.kind != UNSIGNED)
        return wrong_kind(&place);
    is_small = place.size == sizeof(int);
    least = place.kind == UNSIGNED ? 0 : is_small ? INT_MIN : INT64_MIN;
    most = !is_small ? INT64_MAX : place.kind == UNSIGNED ? UINT_MAX : INT_MAX;
    if (number < least || number > most)
        return tl_error_report(TL_INVALID, "%s.%s is %" PRId64 " to %" PRId64 ", not %" PRId64,
                               place.type->name, place.field->name, least, most, number);
    store(place.at, place.size, (uint64_t)number);
    return TL_OK;
}

tl_status tl_struct_set_bytes(void *start, const char *field, const void *bytes, size_t size)
{
    struct place place;
    tl_status status = find_to_set(&place, start, field);

    if (status != TL_OK)
        return status;
    if (place.kind != TEXT && place.kind != BYTES)
        return wrong_kind(&place);
    if (bytes == NULL && size > 0)
        return tl_error_report(TL_INVALID, "%s.%s: NULL has no %zu bytes", place.type->name,
                               place.field->name, size);
    if (bytes != NULL && place.kind == TEXT && memchr(bytes, '\0', size) != NULL)
        return tl_error_report(TL_INVALID, "%s.%s has a NUL inside: it would be cut there",
                               place.type->name, place.field->name);
    if (bytes != NULL && place.kind == BYTES && place.field->count_at == 0 &&
        size != TL_FINGERPRINT)
        return tl_error_report(TL_INVALID, "%s.%s has %d bytes, not %zu", place.type->name,
                               place.field->name, TL_FINGERPRINT, size);
    status = point_at(place.made, place.at, bytes, size, 1);
    if (status == TL_OK && place.field->count_at > 0)
        store(place.in + place.field->count_at, sizeof size, size);
    return status;
}

tl_status tl_struct_set_pointer(void *start, const char *field, void *pointer)
{
    struct place place;
    tl_status status = find_to_set(&place, start, field);

    if (status != TL_OK)
        return status;
    if (place.kind != POINTER)
        return wrong_kind(&place);
    memcpy(place.at, &pointer, sizeof pointer);
    return TL_OK;
}

static tl_status find_to_read(struct place *place, const char *name, const void *of,
                              const char *field, int has_out)
{
    const struct type *type;

    workflow_call_begins();
    type = find_type(name);
    if (type == NULL)
        return TL_INVALID;
    if (of == NULL || field == NULL || !has_out)
        return tl_error_report(TL_INVALID,
                               "a %s, the name of a field, or where to write is missing", name);
    place->made = NULL;
    return find(place, type, (char *)(uintptr_t)of, field);
}

tl_status tl_struct_number(const char *type, const void *of, const char *field, int64_t *number)
{
    struct place place;
    tl_status status = find_to_read(&place, type, of, field, number != NULL);
    uint64_t loaded;

    if (status != TL_OK)
        return status;
    if (place.kind > LETTER)
        return wrong_kind(&place);
    loaded = place.kind == LETTER ? (unsigned char)*place.at : load(place.at, place.size);
    if (place.kind == UNSIGNED && loaded > INT64_MAX)
        return tl_error_report(TL_INVALID, "%s.%s is beyond 63 bits", place.type->name,
                               place.field->name);
    *number = place.kind == SIGNED && place.size == sizeof(int) ? (int32_t)loaded : (int64_t)loaded;
    return TL_OK;
}

tl_status tl_struct_bytes(const char *type, const void *of, const char *field, const void **bytes,
                          size_t *size)
{
    struct place place;
    tl_status status = find_to_read(&place, type, of, field, bytes != NULL && size != NULL);
    const void *at;
    size_t found;

    if (status != TL_OK)
        return status;
    if (place.kind <= LETTER)
        return wrong_kind(&place);
    at = place.at;
    if (place.kind == TEXT || place.kind == BYTES || place.kind == POINTER)
        memcpy(&at, place.at, sizeof at);
    if (at == NULL || place.kind == POINTER)
        found = 0;
    else if (place.kind == TEXT || place.kind == CHARS)
        found = strnlen(at, place.kind == TEXT ? SIZE_MAX : place.size);
    else if (place.field->count_at > 0 && place.kind != MEMBER)
        memcpy(&found, place.in + place.field->count_at, sizeof found);
    else
        found = place.kind == BYTES ? TL_FINGERPRINT : place.size;
    *bytes = at;
    *size = found;
    return TL_OK;
}
