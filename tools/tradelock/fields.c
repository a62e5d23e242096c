/* The fields of rows that people see, from their maps.  Decides nothing. */
#include "fields.h"

#include "command.h"
#include "fleet.h"
#include "moment.h"
#include "print.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON(name) .json = name
#define LIST(name, title) .column = name, .heading = title
#define SHOW(name) .label = name
#define DESK(name) .fact = name
#define IN(name) .group = GROUP_##name
#define FIELD(record, type_, member, ...)                                                          \
    {.type = FIELD_##type_, .offset = offsetof(record, member), __VA_ARGS__},
#define VIEW_FIELD(...) FIELD(tl_view, __VA_ARGS__)

const struct field view_fields[VIEW_FIELDS] = {TL_VIEW_MAP(VIEW_FIELD)};

_Static_assert(offsetof(tl_view, currency) == offsetof(tl_view, amount_minor) + sizeof(int64_t) &&
                   offsetof(tl_view, payload_size) == offsetof(tl_view, payload) + sizeof(void *) &&
                   offsetof(tl_view, result_size) == offsetof(tl_view, result) + sizeof(void *) &&
                   offsetof(tl_resource_view, payload_size) ==
                       offsetof(tl_resource_view, payload) + sizeof(void *),
               "a currency stands behind its amount, a size behind its bytes");

static const void *at(const struct field *field, const void *row)
{
    return (const char *)row + field->offset;
}

/* A member of this type. */
#define AS(type) (*(const type *)at(field, row))

int64_t field_time(const struct field *field, const void *row)
{
    return AS(int64_t);
}

const void *field_bytes(const struct field *field, const void *row, size_t *size)
{
    const void *const *bytes = at(field, row);

    *size = *(const size_t *)(const void *)(bytes + 1);
    return *bytes;
}

static const char *number_words(char space[FIELD_SPACE], uint64_t number)
{
    snprintf(space, FIELD_SPACE, "%" PRIu64, number);
    return space;
}

static const char *letter_words(char space[FIELD_SPACE], char letter)
{
    space[0] = letter;
    space[1] = '\0';
    return space;
}

const char *level_name(tl_finding_level level)
{
    static const char *const names[] = {
        [TL_FINDING_OK] = "ok", [TL_FINDING_WARNING] = "warning", [TL_FINDING_UNSAFE] = "unsafe"};

    return names[level];
}

const char *field_words(char space[FIELD_SPACE], const struct field *field, const void *row)
{
    switch (field->type) {
    case FIELD_TEXT:
        return at(field, row);
    case FIELD_STRING:
        return AS(char *) != NULL ? AS(char *) : "";
    case FIELD_LETTER:
        return letter_words(space, AS(char));
    case FIELD_LANE:
        return AS(char) == 'R' ? "retry" : "sync";
    case FIELD_PROOF:
        return AS(char) == TL_PROOF_NONE ? "" : tl_proof_name((tl_proof)AS(char));
    case FIELD_STATE:
        return tl_state_name(AS(tl_state));
    case FIELD_MUTEX:
        return tl_resource_state_name(AS(tl_resource_state));
    case FIELD_HOLDER:
        return tl_holder_state_name(AS(tl_holder_state));
    case FIELD_MODE:
        return AS(tl_rw_mode) == TL_RW_WRITE ? "write" : "read";
    case FIELD_DECISION:
        return tl_decision_name(AS(tl_decision));
    case FIELD_FLAG:
        return AS(int) ? "yes" : "";
    case FIELD_COUNT:
        return number_words(space, AS(uint32_t));
    case FIELD_NUMBER:
        return number_words(space, AS(uint64_t));
    case FIELD_TIME:
        return time_text(space, AS(int64_t));
    case FIELD_SOME:
        return AS(uint64_t) != 0 ? number_words(space, AS(uint64_t)) : "";
    case FIELD_SIGNED:
        snprintf(space, FIELD_SPACE, "%" PRId64, AS(int64_t));
        return space;
    case FIELD_SET:
        return AS(int64_t) != 0 ? "yes" : "";
    case FIELD_SPAN:
        return distance_text(space, 0, AS(int64_t)) + 1;
    case FIELD_SPAN_MS:
        return distance_text(space, 0, AS(int64_t) * 1000) + 1;
    case FIELD_LEVEL:
        return level_name(AS(tl_finding_level));
    default:
        return "";
    }
}

static json_t *json_hash(const unsigned char *hash)
{
    static const unsigned char none[TL_FINGERPRINT];

    return memcmp(hash, none, sizeof none) == 0 ? json_null() : json_hex(hash, sizeof none);
}

static json_t *field_json(const struct field *field, const void *row)
{
    char space[FIELD_SPACE];
    const void *bytes;
    size_t size;

    switch (field->type) {
    case FIELD_LETTER:
        return json_char(AS(char));
    case FIELD_FLAG:
        return json_boolean(AS(int));
    case FIELD_COUNT:
        return json_unsigned(AS(uint32_t));
    case FIELD_NUMBER:
        return json_unsigned(AS(uint64_t));
    case FIELD_SOME:
        return AS(uint64_t) != 0 ? json_unsigned(AS(uint64_t)) : json_null();
    case FIELD_SIGNED:
        return json_integer(AS(int64_t));
    case FIELD_SET:
        return json_boolean(AS(int64_t) != 0);
    case FIELD_SPAN:
        return json_real((double)AS(int64_t) / 1e6);
    case FIELD_SPAN_MS:
        return json_real((double)AS(int64_t) / 1e3);
    case FIELD_MONEY:
        return ((const char *)at(field, row))[sizeof(int64_t)] != '\0' ? json_integer(AS(int64_t))
                                                                       : json_null();
    case FIELD_HASH:
        return json_hash(at(field, row));
    case FIELD_BYTES:
        bytes = field_bytes(field, row, &size);
        return json_bytes(bytes, size);
    default:
        return json_text(field_words(space, field, row));
    }
}

json_t *record_json(const struct record *record, const void *row)
{
    const struct field *fields = record->fields;
    json_t *object = json_object();

    for (size_t i = 0; i < record->count; i++)
        if (fields[i].json != NULL)
            json_object_set_new(object, fields[i].json, field_json(&fields[i], row));
    return object;
}

const struct field *record_column_at(const struct record *record, size_t place)
{
    return place < record->count ? &record->fields[place]
                                 : &record->made[place - record->count].field;
}

const struct field *record_column(const struct record *record, const char *name, size_t size)
{
    for (size_t i = 0; i < record->count + record->made_count; i++) {
        const struct field *column = record_column_at(record, i);

        if (column->column != NULL && strlen(column->column) == size &&
            strncmp(column->column, name, size) == 0)
            return column;
    }
    return NULL;
}

const struct made *as_made(const struct field *column)
{
    return column->type == FIELD_MADE ? (const struct made *)(const void *)column : NULL;
}

void record_cell(char to[CELL], const struct field *column, const void *row, int raw)
{
    char space[FIELD_SPACE];

    if (as_made(column) != NULL)
        as_made(column)->cell(to, row, raw);
    else
        snprintf(to, CELL, "%s", field_words(space, column, row));
}

/* ------------------------------------------------------------------------- listings -- */

void listing_begin(struct listing *listing, const struct record *record, const char *columns)
{
    const char *headings[LISTING_COLUMNS + 1];
    char words[512], *next = NULL;

    *listing = (struct listing){.record = record, .rows = json_array()};
    snprintf(words, sizeof words, "%s", columns);
    for (char *word = strtok_r(words, ",", &next); word != NULL;
         word = strtok_r(NULL, ",", &next)) {
        const size_t size = strcspn(word, "=");
        const struct field *column = record_column(record, word, size);

        headings[listing->count] = word[size] == '=' ? word + size + 1 : column->heading;
        listing->columns[listing->count++] = column;
    }
    headings[listing->count] = NULL;
    listing->table = table_new_of(headings);
}

int listing_add_as(struct listing *listing, const void *row, json_t *object)
{
    char text[LISTING_COLUMNS][CELL];
    const char *cells[LISTING_COLUMNS];

    for (size_t i = 0; i < listing->count; i++) {
        record_cell(text[i], listing->columns[i], row, 0);
        cells[i] = text[i];
    }
    table_add_cells(listing->table, cells);
    json_array_append_new(listing->rows, fleet_row(object));
    return 0;
}

int listing_add(struct listing *listing, const void *row)
{
    return listing_add_as(listing, row, record_json(listing->record, row));
}

void listing_free(struct listing *listing)
{
    table_free(listing->table);
    json_decref(listing->rows);
}

static int listing_print(struct listing *listing, int code, int json, const char *name,
                         const char *nothing)
{
    if (json)
        return print_json(fleet_document(json_pack("{s:O}", name, listing->rows)), code);
    if (code == EXIT_DONE)
        table_print_or_say(listing->table, nothing);
    else
        table_print(listing->table);
    return finish_output(code);
}

int listing_end(struct listing *listing, tl_status status, int json, const char *name,
                const char *nothing)
{
    const int code =
        status == TL_OK ? listing_print(listing, EXIT_DONE, json, name, nothing) : report(status);

    listing_free(listing);
    return code;
}

int listing_end_fleet(struct listing *listing, int code, int json, const char *name,
                      const char *nothing)
{
    /* What others told is shown; one database that told nothing has shown nothing. */
    if (code == EXIT_DONE || fleet_is())
        code = listing_print(listing, code, json, name, nothing);
    listing_free(listing);
    return code;
}

/* offsetof() needs the type's name where the map is unrolled. */
#define SESSION_FIELD(...) FIELD(tl_session_row, __VA_ARGS__)
#define ACT_FIELD(...) FIELD(tl_act_view, __VA_ARGS__)
#define ACT_ROW_FIELD(...) FIELD(tl_act_row, __VA_ARGS__)
#define VIOLATION_FIELD(...) FIELD(tl_violation, __VA_ARGS__)
#define FINDING_FIELD(...) FIELD(tl_finding, __VA_ARGS__)
#define PROPOSAL_FIELD(...) FIELD(tl_proposal, __VA_ARGS__)
#define CHANNEL_FIELD(...) FIELD(tl_pause_row, __VA_ARGS__)
#define EVIDENCE_FIELD(...) FIELD(tl_evidence_row, __VA_ARGS__)
#define RESOLUTION_FIELD(...) FIELD(tl_resolution_row, __VA_ARGS__)
#define RESOURCE_FIELD(...) FIELD(tl_resource_view, __VA_ARGS__)
#define HOLDER_FIELD(...) FIELD(tl_holder_view, __VA_ARGS__)
#define STEP_FIELD(...) FIELD(tl_step, __VA_ARGS__)
#define RECORD_OF(name, all, ...)                                                                  \
    static const struct field name##_fields[] = {all};                                             \
    const struct record name = {.fields = name##_fields,                                           \
                                .count = sizeof name##_fields / sizeof name##_fields[0],           \
                                __VA_ARGS__}
#define MADE_BY(table) .made = table, .made_count = sizeof table / sizeof table[0]

/* ------------------------------------------------------------------ a trade's row -- */

static void cell_shard(char to[CELL], const void *row, int raw)
{
    (void)row;
    (void)raw;
    snprintf(to, CELL, "%s", fleet_now() != NULL ? fleet_now() : "");
}

static void cell_reason(char to[CELL], const void *row, int raw)
{
    const tl_view *view = row;

    (void)raw;
    snprintf(to, CELL, "%s", view->parked[0] != '\0' ? view->parked : view->holder);
}

static void cell_state(char to[CELL], const void *row, int raw)
{
    const tl_view *view = row;

    snprintf(to, CELL, "%s%s", tl_state_name(view->state),
             view->conflict && !raw ? ", conflict" : "");
}

static void cell_amount(char to[CELL], const void *row, int raw)
{
    const tl_view *view = row;

    to[0] = '\0';
    if (view->currency[0] != '\0')
        snprintf(to, CELL, "%" PRId64 "%s%s", view->amount_minor, raw ? "" : " ",
                 raw ? "" : view->currency);
}

static void cell_counts(char to[CELL], const void *row, int raw)
{
    const tl_view *view = row;

    (void)raw;
    snprintf(to, CELL, "%" PRIu32 "/%" PRIu32 "/%" PRIu32, view->epoch, view->sends,
             view->attempts);
}

static void put_distance(char to[CELL], int64_t us, int raw)
{
    if (raw)
        snprintf(to, CELL, "%" PRId64, us / 1000000);
    else
        short_duration(to, us);
}

static void cell_age(char to[CELL], const void *row, int raw)
{
    const tl_view *view = row;

    put_distance(to, view->now_us - view->created_us, raw);
}

static void cell_idle(char to[CELL], const void *row, int raw)
{
    const tl_view *view = row;

    put_distance(to, view->now_us - view->updated_us, raw);
}

static void cell_next(char to[CELL], const void *row, int raw)
{
    const tl_view *view = row;

    to[0] = '\0';
    if (view->next_run_us != 0)
        put_distance(to, view->next_run_us - view->now_us, raw);
}

static const struct made made_of_view[] = {
    {MADE("state", "STATE"), cell_state, 0},
    {MADE("amount", "AMOUNT"), cell_amount, 1},
    {MADE("age", "AGE"), cell_age, 1},
    {MADE("idle", "IDLE"), cell_idle, 1},
    {MADE("next", "DUE IN"), cell_next, 1},
    {MADE("counts", "EPOCH/SENDS/TRIES"), cell_counts, 0},
    {MADE("reason", "HOLDER OR REASON"), cell_reason, 0},
    {MADE("shard", "SHARD"), cell_shard, 0},
};

const struct record record_view = {view_fields, VIEW_FIELDS, MADE_BY(made_of_view)};

json_t *json_view(const tl_view *view)
{
    return record_json(&record_view, view);
}

/* -------------------------------------------------------------------- other kinds -- */

#define CELL_OF(name, type)                                                                        \
    static void name##_of(char to[CELL], const type *row);                                         \
    static void name(char to[CELL], const void *row, int raw)                                      \
    {                                                                                              \
        (void)raw;                                                                                 \
        name##_of(to, row);                                                                        \
    }                                                                                              \
    static void name##_of(char to[CELL], const type *row)

CELL_OF(cell_beat, tl_session_row)
{
    distance_text(to, 0, row->silent_us);
    memmove(to, to + 1, strlen(to));
}

CELL_OF(cell_permits, tl_session_row)
{
    snprintf(to, CELL, row->permits > 0 ? "%" PRIu64 : "", row->permits);
}

CELL_OF(cell_obeys, tl_session_row)
{
    snprintf(to, CELL, "%s", row->obeys[0] != '\0' ? row->obeys : "nothing");
}

static const struct made made_of_session[] = {{MADE("silent", "LAST BEAT"), cell_beat, 0},
                                              {MADE("permits", "PERMITS"), cell_permits, 0},
                                              {MADE("obeys", "OBEYS"), cell_obeys, 0}};

RECORD_OF(record_session, TL_SESSION_MAP(SESSION_FIELD), MADE_BY(made_of_session));

CELL_OF(cell_person, tl_act_view)
{
    snprintf(to, CELL, "%.*s",
             (int)(strrchr(row->account, '@') != NULL ? strrchr(row->account, '@') - row->account
                                                      : (long)strlen(row->account)),
             row->account);
}

/* "retry parked channel=bank: 11 of 12, 1 left alone (the bank is back)" */
CELL_OF(cell_act, tl_act_view)
{
    const char *const words[] = {row->key.serial_no, row->key.cust_no, row->key.op_code, row->said};
    size_t size = (size_t)snprintf(to, CELL, "%s", row->what);

    for (size_t i = 0; i < 4 && size < CELL; i++)
        if (words[i][0] != '\0')
            size += (size_t)snprintf(to + size, CELL - size, " %s", words[i]);
    if (row->planned > 1 && size < CELL)
        size += (size_t)snprintf(to + size, CELL - size, ": %" PRIu64 " of %" PRIu64, row->done,
                                 row->planned);
    if (row->planned > 1 && row->skipped > 0 && size < CELL)
        size += (size_t)snprintf(to + size, CELL - size, ", %" PRIu64 " left alone", row->skipped);
    if (row->planned == 0 && row->counts[0] != '\0' && size < CELL)
        size += (size_t)snprintf(to + size, CELL - size, ": %s", row->counts);
    if (row->ended_us == 0 && size < CELL)
        size += (size_t)snprintf(to + size, CELL - size, ", under way or stopped");
    if (row->reason[0] != '\0' && size < CELL)
        snprintf(to + size, CELL - size, " (%s)", row->reason);
}

static const struct made made_of_act[] = {{MADE("by", "BY"), cell_person, 0},
                                          {MADE("what", "WHAT"), cell_act, 0}};

RECORD_OF(record_act, TL_ACT_MAP(ACT_FIELD), MADE_BY(made_of_act));
RECORD_OF(record_act_row, TL_ACT_ROW_MAP(ACT_ROW_FIELD));

/* What people type of a finding's name. */
CELL_OF(cell_name, tl_violation)
{
    snprintf(to, CELL, "%.16s", row->finding);
}

/* What became of it: open, to be confirmed, or closed by whom. */
CELL_OF(cell_fate, tl_violation)
{
    char when[TIME_TEXT];

    to[0] = '\0';
    if (row->closed)
        snprintf(to, CELL, "closed by %s (%s) and %s (%s), %s", row->proposed_by,
                 row->proposed_reason, row->closed_by, row->closed_reason,
                 time_text(when, row->closed_us));
    else if (row->proposed_by[0] != '\0')
        snprintf(to, CELL, "%s proposes to close it: %s", row->proposed_by, row->proposed_reason);
}

static const struct made made_of_violation[] = {{MADE("finding", "FINDING"), cell_name, 0},
                                                {MADE("closing", "CLOSING"), cell_fate, 0}};

RECORD_OF(record_violation, TL_VIOLATION_MAP(VIOLATION_FIELD), MADE_BY(made_of_violation));

#define FOUND_WIDTH 60

CELL_OF(cell_found, tl_finding)
{
    snprintf(to, CELL, "%.*s%s", FOUND_WIDTH, row->found,
             strlen(row->found) > FOUND_WIDTH ? "..." : "");
}

static const struct made made_of_finding[] = {{MADE("found", "FOUND"), cell_found, 0}};

RECORD_OF(record_finding, TL_FINDING_MAP(FINDING_FIELD), MADE_BY(made_of_finding));

CELL_OF(cell_trade, tl_proposal)
{
    snprintf(to, CELL, "%s %s %s", row->key.serial_no, row->key.cust_no, row->key.op_code);
}

CELL_OF(cell_may, tl_proposal)
{
    snprintf(to, CELL, "%s", row->own ? "no, a second person" : "yes");
}

static const struct made made_of_proposal[] = {{MADE("trade", "TRADE"), cell_trade, 0},
                                               {MADE("may", "YOU MAY"), cell_may, 0}};

RECORD_OF(record_proposal, TL_PROPOSAL_MAP(PROPOSAL_FIELD), MADE_BY(made_of_proposal));

CELL_OF(cell_operation, tl_pause_row)
{
    snprintf(to, CELL, "%s", row->op_code[0] != '\0' ? row->op_code : "(all)");
}

CELL_OF(cell_paused, tl_pause_row)
{
    snprintf(to, CELL, "%s",
             row->paused                                ? "paused"
             : row->as_whole && row->op_code[0] != '\0' ? "paused as a whole"
                                                        : "open");
}

CELL_OF(cell_limit, tl_pause_row)
{
    limit_text(to, row->sends, row->per_second);
}

CELL_OF(cell_out, tl_pause_row)
{
    permits_text(to, row);
}

/* "open since ...: 5 unknown in a row, or 50 % in 60 s" */
CELL_OF(cell_breaker, tl_pause_row)
{
    char share[64] = "", since[TIME_TEXT];

    to[0] = '\0';
    if (row->unknowns == 0)
        return;
    if (row->share > 0)
        snprintf(share, sizeof share, ", or %lld %% in %lld s", (long long)row->share,
                 (long long)row->window_s);
    snprintf(to, CELL, "%s%s: %lld unknown in a row%s",
             row->opened_us != 0 ? "open since " : "closed",
             row->opened_us != 0 ? time_text(since, row->opened_us) : "", (long long)row->unknowns,
             share);
}

static const struct made made_of_channel[] = {{MADE("operation", "OPERATION"), cell_operation, 0},
                                              {MADE("state", "STATE"), cell_paused, 0},
                                              {MADE("limit", "LIMIT"), cell_limit, 0},
                                              {MADE("permits", "PERMITS"), cell_out, 0},
                                              {MADE("breaker", "BREAKER"), cell_breaker, 0}};

RECORD_OF(record_channel, TL_CHANNEL_MAP(CHANNEL_FIELD), MADE_BY(made_of_channel));

json_t *json_evidence(const tl_evidence_row *row)
{
    json_t *o = record_json(&record_evidence, row);

    json_object_set_new(o, "paid_minor",
                        row->amount.is_told ? json_integer(row->amount.amount_minor) : json_null());
    json_object_set_new(o, "paid_currency", json_text(row->amount.currency));
    json_object_set_new(o, "contradicts", json_boolean(row->contradicts));
    return o;
}

json_t *json_breaker(const tl_pause_row *row)
{
    static const struct field fields[] = {TL_BREAKER_MAP(CHANNEL_FIELD)};
    const struct record breaker = {.fields = fields, .count = sizeof fields / sizeof fields[0]};

    return row->breaker_us != 0 ? record_json(&breaker, row) : json_null();
}

CELL_OF(cell_paid, tl_evidence_row)
{
    to[0] = '\0';
    if (row->amount.is_told)
        snprintf(to, CELL, "%" PRId64 " %s", row->amount.amount_minor,
                 row->amount.currency != NULL ? row->amount.currency : "");
}

CELL_OF(cell_final, tl_evidence_row)
{
    snprintf(to, CELL, "%s", row->final ? "final" : "");
}

static const struct made made_of_evidence[] = {{MADE("paid", "PAID"), cell_paid, 0},
                                               {MADE("is_final", "FINAL"), cell_final, 0}};

RECORD_OF(record_evidence, TL_EVIDENCE_MAP(EVIDENCE_FIELD), MADE_BY(made_of_evidence));

CELL_OF(cell_part, tl_resolution_row)
{
    snprintf(to, CELL, "%s", resolution_part(row));
}

static const struct made made_of_resolution[] = {{MADE("part", "PART"), cell_part, 0}};

RECORD_OF(record_resolution, TL_RESOLUTION_MAP(RESOLUTION_FIELD), MADE_BY(made_of_resolution));

CELL_OF(cell_until, tl_resource_view)
{
    int64_t until_us = row->max_hold_until_us;

    if (row->state == TL_RESOURCE_KEPT)
        until_us = row->free_us;
    else if (row->lease_until_us != 0)
        until_us = row->lease_until_us;
    time_text(to, until_us);
}

CELL_OF(cell_renewed, tl_resource_view)
{
    snprintf(to, CELL, "%s", row->renewed ? "session" : "");
}

static const struct made made_of_resource[] = {{MADE("until", "AT MOST UNTIL"), cell_until, 0},
                                               {MADE("renewed", "RENEWED BY"), cell_renewed, 0}};

RECORD_OF(record_resource, TL_RESOURCE_MAP(RESOURCE_FIELD), MADE_BY(made_of_resource));

CELL_OF(cell_beats, tl_holder_view)
{
    snprintf(to, CELL, "%s", row->renewed ? "session" : "");
}

static const struct made made_of_holder[] = {{MADE("renewed", "RENEWED BY"), cell_beats, 0}};

RECORD_OF(record_holder, TL_HOLDER_MAP(HOLDER_FIELD), MADE_BY(made_of_holder));

static const struct field step_fields[] = {TL_STEP_MAP(STEP_FIELD)};
static const struct record record_step = {.fields = step_fields,
                                          .count = sizeof step_fields / sizeof step_fields[0]};

json_t *json_step(const tl_step *step)
{
    return record_json(&record_step, step);
}
