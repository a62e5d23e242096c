/* The kinds of rows that people see: the fields of each by its map, and what is made of several. */
#include "fields.h"

#include "filing.h"
#include "fleet.h"
#include "print.h"
#include "said.h"

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
#define CHANNEL_STATE_FIELD(...) FIELD(tl_channel_state, __VA_ARGS__)
#define BATCH_PART_FIELD(...) FIELD(tl_batch_part, __VA_ARGS__)
#define REPORT_FIELD(...) FIELD(tl_report_row, __VA_ARGS__)
#define REPORT_LINE_FIELD(...) FIELD(tl_report_line, __VA_ARGS__)
#define STEP_FIELD(...) FIELD(tl_step, __VA_ARGS__)
#define FILING_FIELD(...) FIELD(struct filing_row, __VA_ARGS__)
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
    if (!raw)
        tl_amount_text(to, view->amount_minor, view->currency);
    else if (view->currency[0] != '\0')
        snprintf(to, CELL, "%" PRId64, view->amount_minor);
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
        tl_span_text(to, us, TL_SPAN_SHORT);
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
    {MADE("state", "STATE"), cell_state, MADE_WORDS},
    {MADE("amount", "AMOUNT"), cell_amount, MADE_MONEY},
    {MADE("age", "AGE"), cell_age, MADE_NUMBER},
    {MADE("idle", "IDLE"), cell_idle, MADE_NUMBER},
    {MADE("next", "DUE IN"), cell_next, MADE_NUMBER},
    {MADE("counts", "EPOCH/SENDS/TRIES"), cell_counts, MADE_WORDS},
    {MADE("reason", "HOLDER OR REASON"), cell_reason, MADE_WORDS},
    {MADE("shard", "SHARD"), cell_shard, MADE_WORDS},
};

const struct record record_view = {.fields = view_fields,
                                   .count = VIEW_FIELDS,
                                   .now = offsetof(tl_view, now_us),
                                   MADE_BY(made_of_view)};

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
        snprintf(to, CELL, "%s", COUNT_TEXT(row->permits));
}

CELL_OF(cell_obeys, tl_session_row)
{
    snprintf(to, CELL, "%s", row->obeys[0] != '\0' ? row->obeys : "nothing");
}

static const struct made made_of_session[] = {
    {MADE("silent", "LAST BEAT"), cell_beat, MADE_WORDS},
    {MADE("permits", "PERMITS"), cell_permits, MADE_WORDS},
    {MADE("obeys", "OBEYS"), cell_obeys, MADE_WORDS}};

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
        size += (size_t)snprintf(to + size, CELL - size, ": %s of %s", COUNT_TEXT(row->done),
                                 COUNT_TEXT(row->planned));
    if (row->planned > 1 && row->skipped > 0 && size < CELL)
        size +=
            (size_t)snprintf(to + size, CELL - size, ", %s left alone", COUNT_TEXT(row->skipped));
    if (row->planned == 0 && row->counts[0] != '\0' && size < CELL)
        size += (size_t)snprintf(to + size, CELL - size, ": %s", row->counts);
    if (row->ended_us == 0 && size < CELL)
        size += (size_t)snprintf(to + size, CELL - size, ", under way or stopped");
    if (row->reason[0] != '\0' && size < CELL)
        snprintf(to + size, CELL - size, " (%s)", row->reason);
}

static const struct made made_of_act[] = {{MADE("by", "BY"), cell_person, MADE_WORDS},
                                          {MADE("what", "WHAT"), cell_act, MADE_WORDS}};

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

static const struct made made_of_violation[] = {
    {MADE("finding", "FINDING"), cell_name, MADE_WORDS},
    {MADE("closing", "CLOSING"), cell_fate, MADE_WORDS}};

RECORD_OF(record_violation, TL_VIOLATION_MAP(VIOLATION_FIELD), MADE_BY(made_of_violation));

#define FOUND_WIDTH 60

CELL_OF(cell_found, tl_finding)
{
    snprintf(to, CELL, "%.*s%s", FOUND_WIDTH, row->found,
             strlen(row->found) > FOUND_WIDTH ? "..." : "");
}

static const struct made made_of_finding[] = {{MADE("found", "FOUND"), cell_found, MADE_WORDS}};

RECORD_OF(record_finding, TL_FINDING_MAP(FINDING_FIELD), MADE_BY(made_of_finding));

CELL_OF(cell_trade, tl_proposal)
{
    if (row->act_no != 0)
        snprintf(to, CELL, "act %" PRIu64 ": %" PRIu64 " trades", row->act_no, row->trades);
    else
        snprintf(to, CELL, "%s %s %s", row->key.serial_no, row->key.cust_no, row->key.op_code);
}

CELL_OF(cell_may, tl_proposal)
{
    snprintf(to, CELL, "%s", row->own ? "no, a second person" : "yes");
}

static const struct made made_of_proposal[] = {{MADE("trade", "TRADE"), cell_trade, MADE_WORDS},
                                               {MADE("may", "YOU MAY"), cell_may, MADE_WORDS}};

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
    snprintf(to, CELL, "%s%s: %s unknown in a row%s",
             row->opened_us != 0 ? "open since " : "closed",
             row->opened_us != 0 ? time_text(since, row->opened_us) : "",
             COUNT_TEXT((uint64_t)row->unknowns), share);
}

static const struct made made_of_channel[] = {
    {MADE("operation", "OPERATION"), cell_operation, MADE_WORDS},
    {MADE("state", "STATE"), cell_paused, MADE_WORDS},
    {MADE("limit", "LIMIT"), cell_limit, MADE_WORDS},
    {MADE("permits", "PERMITS"), cell_out, MADE_WORDS},
    {MADE("breaker", "BREAKER"), cell_breaker, MADE_WORDS}};

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

RECORD_OF(record_breaker, TL_BREAKER_MAP(CHANNEL_FIELD));

json_t *json_breaker(const tl_pause_row *row)
{
    return row->breaker_us != 0 ? record_json(&record_breaker, row) : json_null();
}

/* Never rounded up: only where all succeeded it is 100.  While no answer comes, what ended before says
 * nothing. */
CELL_OF(cell_rate, tl_channel_state)
{
    const uint64_t ended = row->succeeded + row->declined + row->failed;
    const unsigned tenths = ended > 0 ? (unsigned)(row->succeeded * 1000 / ended) : 0;

    to[0] = '\0';
    if (ended > 0 && row->down_since_us == 0)
        snprintf(to, CELL, "%u.%u %%", tenths / 10, tenths % 10);
}

static const struct made made_of_channel_state[] = {{MADE("rate", "RATE"), cell_rate, MADE_NUMBER}};

RECORD_OF(record_channel_state, TL_CHANNEL_STATE_MAP(CHANNEL_STATE_FIELD),
          MADE_BY(made_of_channel_state),
          .shown = "channel,operation,succeeded,declined,failed,rate,waits,silent,down");

CELL_OF(cell_part_state, tl_batch_part)
{
    snprintf(to, CELL, "%s%s", tl_state_name(row->state), row->conflict ? ", in conflict" : "");
}

CELL_OF(cell_money, tl_batch_part)
{
    tl_sum_text(to, row->money.sum_minor, row->money.currency);
}

static const struct made made_of_batch_part[] = {
    {MADE("state", "STATE"), cell_part_state, MADE_WORDS},
    {MADE("money", "MONEY"), cell_money, MADE_MONEY}};

RECORD_OF(record_batch_part, TL_BATCH_PART_MAP(BATCH_PART_FIELD), MADE_BY(made_of_batch_part),
          .shown = "state,trades,money");

CELL_OF(cell_sum, tl_report_row)
{
    tl_sum_text(to, row->sum_minor, row->currency);
}

static const struct made made_of_report[] = {{MADE("sum", "SUM"), cell_sum, MADE_MONEY}};

RECORD_OF(record_report, TL_REPORT_MAP(REPORT_FIELD), MADE_BY(made_of_report));

CELL_OF(cell_line_amount, tl_report_line)
{
    to[0] = '\0';
    if (row->currency[0] != '\0')
        snprintf(to, CELL, "%" PRId64, row->amount_minor);
}

static const struct made made_of_report_line[] = {
    {MADE("amount_minor", "MINOR UNITS"), cell_line_amount, MADE_NUMBER}};

RECORD_OF(record_report_line, TL_REPORT_LINE_MAP(REPORT_LINE_FIELD), MADE_BY(made_of_report_line));

CELL_OF(cell_paid, tl_evidence_row)
{
    to[0] = '\0';
    if (row->amount.is_told)
        tl_amount_text(to, row->amount.amount_minor, row->amount.currency);
}

CELL_OF(cell_final, tl_evidence_row)
{
    snprintf(to, CELL, "%s", row->final ? "final" : "");
}

CELL_OF(cell_contradicts, tl_evidence_row)
{
    snprintf(to, CELL, "%s", row->contradicts ? "conflict" : "");
}

static const struct made made_of_evidence[] = {
    {MADE("paid", "PAID"), cell_paid, MADE_MONEY},
    {MADE("is_final", "FINAL"), cell_final, MADE_WORDS},
    {MADE("conflict", "CONFLICT"), cell_contradicts, MADE_WORDS}};

RECORD_OF(record_evidence, TL_EVIDENCE_MAP(EVIDENCE_FIELD), MADE_BY(made_of_evidence),
          .shown = "filed,epoch,outcome,is_final,conflict,paid,ref,source,remark,account");

CELL_OF(cell_of_trade, struct filing_row)
{
    tl_amount_text(to, row->seen.amount_minor, row->currency);
}

CELL_OF(cell_filed, struct filing_row)
{
    tl_amount_text(to, row->paid_minor, row->paid_currency);
}

static const struct made made_of_filing[] = {{MADE("amount", "AMOUNT"), cell_of_trade, MADE_MONEY},
                                             {MADE("paid", "PAID"), cell_filed, MADE_MONEY}};

RECORD_OF(record_filing, FILING_MAP(FILING_FIELD), MADE_BY(made_of_filing),
          .shown = "serial,customer,operation,amount,paid,ref,effect");

CELL_OF(cell_part, tl_resolution_row)
{
    snprintf(to, CELL, "%s",
             row->refused            ? "not carried out"
             : !row->confirms        ? "proposed"
             : row->although_pending ? "confirmed, although pending"
                                     : "confirmed");
}

static const struct made made_of_resolution[] = {{MADE("part", "PART"), cell_part, MADE_WORDS}};

RECORD_OF(record_resolution, TL_RESOLUTION_MAP(RESOLUTION_FIELD), MADE_BY(made_of_resolution),
          .shown = "decided,fence,verdict,part,account,by,reason");

CELL_OF(cell_until, tl_resource_view)
{
    int64_t until_us = row->max_hold_until_us;

    if (row->state == TL_RESOURCE_KEPT)
        until_us = row->free_us;
    else if (row->lease_until_us != 0)
        until_us = row->lease_until_us;
    time_text(to, until_us);
}

static const struct made made_of_resource[] = {
    {MADE("until", "AT MOST UNTIL"), cell_until, MADE_WORDS}};

RECORD_OF(record_resource, TL_RESOURCE_MAP(RESOURCE_FIELD), MADE_BY(made_of_resource));

RECORD_OF(record_holder, TL_HOLDER_MAP(HOLDER_FIELD));

/* ------------------------------------------------------------------ a trade's history -- */

struct told_step step_tell(struct step_teller *teller, const tl_step *step)
{
    char *last = teller->remark[step_is_retry(step)];
    const char *remark = step->remark != NULL ? step->remark : "";
    const int carried = said_is_carried(step->step) && strcmp(remark, last) == 0;

    snprintf(last, sizeof teller->remark[0], "%s", remark);
    if (teller->first_us == 0)
        teller->first_us = step->logged_us;
    return (struct told_step){*step, teller->first_us, carried ? "" : remark};
}

CELL_OF(cell_since, struct told_step)
{
    distance_text(to, row->first_us, row->step.logged_us);
}

CELL_OF(cell_lane, struct told_step)
{
    snprintf(to, CELL, "%s", step_is_retry(&row->step) ? "retry" : "sync");
}

/* Nothing has failed where the retry lane waits, whose letter is F. */
CELL_OF(cell_letter, struct told_step)
{
    const tl_step *step = &row->step;
    const int waits = step_is_retry(step) && step->status == 'F' &&
                      (step->next_run_us != 0 || step->parked != NULL);

    snprintf(to, CELL, "%c", waits ? '-' : step->status);
}

CELL_OF(cell_step_counts, struct told_step)
{
    snprintf(to, CELL, "%" PRIu32 "/%" PRIu32 "/%" PRIu32, row->step.epoch, row->step.sends,
             row->step.attempts);
}

CELL_OF(cell_note, struct told_step)
{
    const char *parked = row->step.parked != NULL ? row->step.parked : "";

    snprintf(to, CELL, "%s", row->step.conflict ? "conflict" : parked);
}

CELL_OF(cell_remark, struct told_step)
{
    snprintf(to, CELL, "%s", row->remark);
}

/* The account is the server's word, the name only what somebody typed. */
CELL_OF(cell_step_by, struct told_step)
{
    const char *actor = row->step.actor != NULL ? row->step.actor : "";
    const char *as = actor[0] != '\0' ? " (as " : "";

    snprintf(to, CELL, "%s%s%s%s", row->step.account, as, actor, as[0] != '\0' ? ")" : "");
}

static const struct made made_of_step[] = {
    {MADE("since", "SINCE"), cell_since, MADE_WORDS},
    {MADE("lane", "LANE"), cell_lane, MADE_WORDS},
    {MADE("letter", "ST"), cell_letter, MADE_WORDS},
    {MADE("counts", "EPOCH/SENDS/TRIES"), cell_step_counts, MADE_WORDS},
    {MADE("note", "NOTE"), cell_note, MADE_WORDS},
    {MADE("remark", "REMARK"), cell_remark, MADE_WORDS},
    {MADE("by", "BY"), cell_step_by, MADE_WORDS}};

RECORD_OF(record_step, TL_STEP_MAP(STEP_FIELD), MADE_BY(made_of_step),
          .shown = "logged,since,lane,step,letter,counts,fence,note,remark,by");
