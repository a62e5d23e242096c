/* The kinds of rows that people see: the fields of each by its map, and what is made of several. */
#include "fields.h"

#include "fleet.h"
#include "moment.h"
#include "print.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define JSON(name) .json = name
#define LIST(name, title) .column = name, .heading = title
#define YES(word) .yes = word
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
    to[0] = '\0';
    if (row->permits > 0)
        snprintf(to, CELL, "%" PRIu64, row->permits);
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

static const struct made made_of_resource[] = {{MADE("until", "AT MOST UNTIL"), cell_until, 0}};

RECORD_OF(record_resource, TL_RESOURCE_MAP(RESOURCE_FIELD), MADE_BY(made_of_resource));

RECORD_OF(record_holder, TL_HOLDER_MAP(HOLDER_FIELD));

static const struct field step_fields[] = {TL_STEP_MAP(STEP_FIELD)};
static const struct record record_step = {.fields = step_fields,
                                          .count = sizeof step_fields / sizeof step_fields[0]};

json_t *json_step(const tl_step *step)
{
    return record_json(&record_step, step);
}
