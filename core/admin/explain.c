/* Explains a trade: reads its rows, its history, what was filed and what people decided, and tells
 * it in sentences.  Reads only, and holds no connection while it tells. */
#include "admin/explain.h"

#include "admin/words.h"
#include "base/memory.h"
#include "client/read.h"

#include <tradelock/admin/channels.h>
#include <tradelock/admin/restore.h>

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
    char when[2 * WORDS];

    if (is_later(e, row->filed_us))
        return 0;
    TELL(e, evidence, row);
    text_buffer_append_format(&e->people, "At %s %s filed %s from %s",
                              words_when(when, e->view.now_us, row->filed_us), row->account,
                              row->outcome, row->source);
    if (row->channel_ref != NULL && row->channel_ref[0] != '\0')
        text_buffer_append_format(&e->people, ", reference %s", row->channel_ref);
    if (row->remark != NULL && row->remark[0] != '\0')
        text_buffer_append_format(&e->people, ": %s", row->remark);
    text_buffer_append(&e->people, ".", sizeof ".");
    return 0;
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
                              row->decision == TL_DECISION_CLEAR  ? "is in no conflict"
                              : row->decision == TL_DECISION_PAID ? "was paid"
                                                                  : "failed",
                              row->reason);
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

static int take_pause(void *context, const tl_pause_row *row)
{
    explaining *e = context;

    if (!row->paused || strcmp(row->channel, e->view.channel) != 0 ||
        (row->op_code[0] != '\0' && strcmp(row->op_code, e->key.op_code) != 0))
        return 0;
    snprintf(e->paused, sizeof e->paused, "channel %s%s%s", row->channel,
             row->op_code[0] != '\0' ? " for " : "", row->op_code);
    text_copy(e->paused_by, sizeof e->paused_by, row->account);
    text_copy(e->paused_why, sizeof e->paused_why, row->reason);
    e->paused_us = row->decided_us;
    return 1;
}

static tl_status gather(explaining *e)
{
    tl_restore restore = TL_RESTORE_INIT;
    tl_status status = read_rows(e);

    if (status == TL_OK)
        status = read_history(e);
    if (status == TL_OK)
        status = tl_evidence_list(e->client, &e->key, take_evidence, e);
    if (status == TL_OK)
        status = tl_resolution_list(e->client, &e->key, take_decision, e);
    if (status == TL_OK && e->each.sentence != NULL)
        status = tl_restore_status(e->client, &restore, NULL, NULL);
    e->restored = restore.open;
    if (status == TL_OK)
        status = tl_pause_list(e->client, take_pause, e);
    if (status == TL_OK && e->people.failed)
        status = error_set(TL_NO_MEMORY, "out of memory for what people said");
    return status;
}

static void tell_sentences(explaining *e)
{
    explain_state(e);
    explain_channel(e);
    explain_before(e);
    explain_next(e);
    explain_end(e);
    explain_act(e);
}

static tl_status check_each(const tl_trade_each *each)
{
    return each != NULL && each->version == TL_TRADE_EACH_VERSION
               ? TL_OK
               : error_set(TL_INVALID, "each is NULL or its version is not set");
}

tl_status tl_trade_read(tl_client *client, const tl_key *key, const tl_trade_each *each,
                        void *context, int *has_history)
{
    explaining *e;
    tl_status status;

    error_clear();
    status = client_check(client);
    if (status == TL_OK)
        status = check_each(each);
    if (status == TL_OK && key == NULL)
        status = error_set(TL_INVALID, "key is NULL");
    e = status == TL_OK ? memory_new(sizeof *e) : NULL;
    if (status != TL_OK || e == NULL)
        return status != TL_OK ? status : error_set(TL_NO_MEMORY, "out of memory");
    *e = (explaining){.client = client, .key = *key, .each = *each, .context = context};
    e->attempts_max = client->config.attempts;
    if (each->as_of_us != 0)
        e->each.sentence = NULL;
    text_buffer_init(&e->people);
    status = gather(e);
    if (status == TL_OK && e->each.sentence != NULL) {
        tell_sentences(e);
        status = e->status;
    }
    if (has_history != NULL)
        *has_history = e->has_log;
    text_buffer_free(&e->people);
    memory_free(e);
    return status;
}

tl_status tl_explain(tl_client *client, const tl_key *key, tl_sentence_fn each, void *context)
{
    tl_trade_each asked = TL_TRADE_EACH_INIT;
    tl_status status;

    error_clear();
    status = client_check(client);
    if (status == TL_OK)
        status = read_check_each(each != NULL);
    asked.sentence = each;
    return status == TL_OK ? tl_trade_read(client, key, &asked, context, NULL) : status;
}
