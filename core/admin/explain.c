/* Explains a trade: reads its rows, its history, what was filed and what people decided, and tells
 * it in sentences.  Reads only, and holds no connection while it tells. */
#include "admin/explain.h"

#include "admin/metrics_rows.h"
#include "admin/words.h"
#include "base/memory.h"
#include "client/read.h"
#include "store/bind.h"

#include <tradelock/admin/restore.h>
#include <tradelock/layer.h>
#include <tradelock/money.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Tells it whoever asks for it, until they want no more. */
#define TELL(e, member, what)                                                                      \
    do {                                                                                           \
        if ((e)->each.member != NULL && (e)->each.member((e)->context, what) != 0)                 \
            (e)->each.member = NULL;                                                               \
    } while (0)

const char *tl_topic_name(tl_topic topic)
{
    static const char *const names[] = {"state", "channel", "before", "next", "end", "act"};

    return (size_t)topic < sizeof names / sizeof names[0] ? names[topic] : "";
}

void explain_say(explaining *e, tl_topic topic, const char *command, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    int size;

    if (e->each.sentence == NULL || e->status != TL_OK)
        return;
    va_start(arguments, format);
    size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    text = size >= 0 ? memory_new((size_t)size + 1) : NULL;
    if (text == NULL) {
        e->status = error_set(TL_NO_MEMORY, "out of memory for a sentence");
        return;
    }
    va_start(arguments, format);
    vsnprintf(text, (size_t)size + 1, format, arguments);
    va_end(arguments);
    TELL(e, sentence, (&(tl_sentence){topic, text, command, &e->view}));
    memory_free(text);
}

/* ------------------------------------------------------------------ gathering -- */

static int take_view(void *context, const tl_view *view)
{
    explaining *e = context;

    TELL(e, row, view);
    if (view->lane == 'R')
        e->retry_waits = view->status == 'F' && !view->repeatable &&
                         (view->next_run_us != 0 || view->parked[0] != '\0');
    e->view = *view;
    e->view.payload = e->view.result = NULL;
    e->view.payload_size = e->view.result_size = 0;
    return 0;
}

static tl_status read_row(explaining *e, tl_lane lane)
{
    return e->each.as_of_us == 0
               ? tl_show(e->client, &e->key, lane, take_view, e)
               : tl_show_as_of(e->client, &e->key, lane, e->each.as_of_us, take_view, e);
}

/* The sync row last: it is what is explained, where it is there, and what the sentence about a
 * trade that is not there names. */
static tl_status read_rows(explaining *e)
{
    tl_status status = read_row(e, TL_LANE_RETRY);
    const int has_retry = status == TL_OK;

    if (status == TL_OK || status == TL_NOT_FOUND)
        status = read_row(e, TL_LANE_SYNC);
    e->has_sync = status == TL_OK;
    return status == TL_NOT_FOUND && has_retry ? TL_OK : status;
}

/* Whether this was not there yet at the moment that is asked for. */
static int is_later(const explaining *e, int64_t us)
{
    return e->each.as_of_us != 0 && us > e->each.as_of_us;
}

static int take_step(void *context, const tl_step *one)
{
    explaining *e = context;

    if (is_later(e, one->logged_us))
        return 0;
    TELL(e, step, one);
    explain_take_step(e, one);
    return 0;
}

static int take_evidence(void *context, const tl_evidence_row *row)
{
    explaining *e = context;
    char when[2 * WORDS], amount[TL_AMOUNT_TEXT];

    if (is_later(e, row->filed_us))
        return 0;
    TELL(e, evidence, row);
    text_buffer_append_format(&e->people, "At %s %s filed %s from %s",
                              words_when(when, e->view.now_us, row->filed_us), row->account,
                              row->outcome, row->source);
    if (row->channel_ref != NULL && row->channel_ref[0] != '\0')
        text_buffer_append_format(&e->people, ", reference %s", row->channel_ref);
    if (row->amount.is_told)
        text_buffer_append_format(
            &e->people, ", of %s",
            tl_amount_text(amount, row->amount.amount_minor, row->amount.currency));
    if (row->contradicts)
        text_buffer_append_format(&e->people, ", which contradicts the trade");
    if (row->remark != NULL && row->remark[0] != '\0')
        text_buffer_append_format(&e->people, ": %s", row->remark);
    text_buffer_append(&e->people, ".", sizeof ".");
    return 0;
}

const char *explain_decided(tl_decision decision)
{
    return decision == TL_DECISION_CLEAR  ? "is in no conflict"
           : decision == TL_DECISION_PAID ? "was paid"
                                          : "failed";
}

static void keep_decision(explaining *e, const tl_resolution_row *row)
{
    if (row->epoch != e->view.epoch)
        return;
    if (row->stands && e->proposal_count < EXPLAIN_PROPOSALS) {
        explain_proposal *proposal = &e->proposals[e->proposal_count++];

        proposal->decision = row->decision;
        proposal->own = row->own;
        text_copy(proposal->proposer, sizeof proposal->proposer, row->account);
    }
    if (row->refused)
        e->decided = (tl_decision)0;
    else if (row->confirms && row->decision != TL_DECISION_CLEAR)
        e->decided = row->decision;
}

static int take_decision(void *context, const tl_resolution_row *row)
{
    explaining *e = context;
    char when[2 * WORDS];
    const char *did = row->refused ? "did not carry out" : row->confirms ? "confirmed" : "proposed";

    if (is_later(e, row->decided_us))
        return 0;
    TELL(e, resolution, row);
    text_buffer_append_format(&e->people, "At %s %s %s that it %s: %s.",
                              words_when(when, e->view.now_us, row->decided_us),
                              row->refused ? "a worker" : row->account, did,
                              explain_decided(row->decision), row->reason);
    text_buffer_append(&e->people, "", 1);
    keep_decision(e, row);
    return 0;
}

static tl_status read_history(explaining *e)
{
    tl_status status = tl_timeline(e->client, &e->key, take_step, e);

    e->has_log = status == TL_OK;
    return status == TL_ACCESS_DENIED ? TL_OK : status;
}

static void take_hold(explain_hold *holds, unsigned most, unsigned *count, const tl_pause_row *row,
                      const char *name, const char *by, const char *why)
{
    explain_hold *one = &holds[*count];

    if (*count == most)
        return;
    ++*count;
    text_copy(one->name, sizeof one->name, name);
    text_copy(one->by, sizeof one->by, by);
    text_copy(one->why, sizeof one->why, why);
    one->is_of_op = row->op_code[0] != '\0';
    one->row = *row;
    one->row.channel = one->row.op_code = one->row.reason = one->row.actor = one->row.account =
        NULL;
    one->row.limit_reason = one->row.limit_actor = one->row.limit_account = NULL;
    one->row.breaker_reason = one->row.breaker_actor = one->row.breaker_account = NULL;
}

/* What holds up the sends of its channel, for its operation or as a whole. */
static int take_channel(void *context, const tl_pause_row *row)
{
    explaining *e = context;
    const int drains = strcmp(row->channel, TL_CHANNEL_ALL) == 0;
    unsigned pauses = e->paused.name[0] != '\0';
    char name[sizeof e->paused.name];

    if ((!drains && strcmp(row->channel, e->view.channel) != 0) ||
        (row->op_code[0] != '\0' && strcmp(row->op_code, e->key.op_code) != 0))
        return 0;
    if (drains)
        text_copy(name, sizeof name, "all channels");
    else
        snprintf(name, sizeof name, "channel %s%s%s", row->channel,
                 row->op_code[0] != '\0' ? " for " : "", row->op_code);
    if (row->paused)
        take_hold(&e->paused, 1, &pauses, row, name, row->account, row->reason);
    if (row->sends > 0 || row->per_second > 0)
        take_hold(e->limits, EXPLAIN_HOLDS, &e->limit_count, row, name, row->limit_account,
                  row->limit_reason);
    if (row->opened_us != 0)
        take_hold(e->breakers, EXPLAIN_HOLDS, &e->breaker_count, row, name, row->breaker_account,
                  row->breaker_reason);
    return 0;
}

/* How much is due before or with it, which a limit a second lets through one after the other. */
static tl_status read_due(explaining *e)
{
    READING at = {.client = e->client};
    char retry_op[TL_OP_MAX + sizeof TL_RETRY_SUFFIX];
    RESULT r = DB_RESULT_INIT;

    snprintf(retry_op, sizeof retry_op, "%s%s", e->key.op_code, TL_RETRY_SUFFIX);
    TRY(read_begin(&at));
    TRY(read_status(at.connection,
                    store_overdue(at.connection, retry_op, NULL, 0, METRICS_OVERDUE_ROWS, &r),
                    "counting what is due"));
    if (r.rows == 1)
        e->due = db_get_int(&r, 0, 0);
    return TL_OK;
}

/* Whether its operation is served, and nobody has registered the channel that its row names. */
static tl_status read_registered(explaining *e)
{
    READING at = {.client = e->client};
    RESULT r = DB_RESULT_INIT;
    uint64_t own = 0, all = 0;

    TRY(read_begin(&at));
    TRY(read_run(at.connection, &sql_channel_registered, &r,
                 "reading which channels are registered"));
    for (size_t row = 0; row < r.rows; row++)
        if (strcmp(db_get_text(&r, row, 1), e->key.op_code) == 0) {
            all += db_get_uint(&r, row, 3);
            if (strcmp(db_get_text(&r, row, 0), e->view.channel) == 0)
                own += db_get_uint(&r, row, 3);
        }
    e->is_strange = own == 0 && all > 0;
    e->is_unserved = all == 0;
    return TL_OK;
}

static tl_status read_channels(explaining *e)
{
    TRY(tl_pause_list(e->client, take_channel, e));
    if (explain_is_waiting(&e->view))
        TRY(read_registered(e));
    for (unsigned i = 0; i < e->limit_count && explain_is_waiting(&e->view); i++)
        if (e->limits[i].row.per_second > 0)
            return read_due(e);
    return TL_OK;
}

static tl_status gather(explaining *e)
{
    tl_restore restore = TL_RESTORE_INIT;

    TRY(read_rows(e));
    TRY(read_history(e));
    TRY(tl_evidence_list(e->client, &e->key, take_evidence, e));
    TRY(tl_resolution_list(e->client, &e->key, take_decision, e));
    if (e->each.sentence != NULL)
        TRY(tl_restore_status(e->client, &restore, NULL, NULL));
    e->restored = restore.open;
    TRY(read_channels(e));
    if (e->people.failed)
        return error_set(TL_NO_MEMORY, "out of memory for what people said");
    return TL_OK;
}

db_answer explain_blocker(tl_client *client, blocker *found)
{
    READING at = {.client = client};

    return read_begin(&at) == TL_OK ? blocker_read(at.connection, found) : DB_ERROR;
}

/* It may not be there since its ask waits for somebody. */
static tl_status say_why(tl_client *client, tl_status status)
{
    char said[ERROR_MAX];
    blocker found = {.connection = 0};

    text_copy(said, sizeof said, tl_error_message());
    (void)explain_blocker(client, &found);
    if (blocker_is_long(&found))
        return error_set(status, "%s; %s", said, found.text);
    return error_set(status, "%s", said);
}

tl_status tl_trade_read(tl_client *client, const tl_key *key, const tl_trade_each *each,
                        void *context, int *has_history)
{
    explaining *e;
    tl_status status;

    error_clear();
    TRY(client_check(client));
    if (each == NULL || each->version != TL_TRADE_EACH_VERSION)
        return error_set(TL_INVALID, "each is NULL or its version is not set");
    if (key == NULL)
        return error_set(TL_INVALID, "key is NULL");
    e = memory_new(sizeof *e);
    if (e == NULL)
        return error_set(TL_NO_MEMORY, "out of memory");
    *e = (explaining){.client = client, .key = *key, .each = *each, .context = context};
    e->attempts_max = client->config.attempts;
    if (each->as_of_us != 0)
        e->each.sentence = NULL;
    text_buffer_init(&e->people);
    status = gather(e);
    if (status == TL_OK && e->each.sentence != NULL) {
        explain_state(e);
        explain_channel(e);
        explain_before(e);
        explain_next(e);
        explain_end(e);
        explain_act(e);
        status = e->status;
    }
    if (has_history != NULL)
        *has_history = e->has_log;
    text_buffer_free(&e->people);
    memory_free(e);
    return status == TL_NOT_FOUND && each->sentence != NULL ? say_why(client, status) : status;
}
