/* Explains a trade: reads its rows, its history, what was filed and what people decided, and tells
 * it in sentences.  Reads only, and holds no connection while it tells. */
#include "admin/explain.h"

#include "admin/words.h"
#include "base/memory.h"
#include "client/read.h"

#include <tradelock/admin/restore.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

    if (e->stopped || e->status != TL_OK)
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
    e->stopped = e->each(e->context, &(tl_sentence){topic, text, command, &e->view}) != 0;
    memory_free(text);
}

/* ------------------------------------------------------------------ gathering -- */

static int take_view(void *context, const tl_view *view)
{
    explaining *e = context;

    if (view->lane == 'R')
        e->retry_waits = view->status == 'F' && !view->repeatable &&
                         (view->next_run_us != 0 || view->parked[0] != '\0');
    e->view = *view;
    e->view.payload = e->view.result = NULL;
    e->view.payload_size = e->view.result_size = 0;
    return 0;
}

/* The sync row last: it is what is explained, where it is there. */
static tl_status read_rows(explaining *e)
{
    tl_status status = tl_show(e->client, &e->key, TL_LANE_RETRY, take_view, e);
    const int has_retry = status == TL_OK;

    if (status == TL_OK || status == TL_NOT_FOUND)
        status = tl_show(e->client, &e->key, TL_LANE_SYNC, take_view, e);
    e->has_sync = status == TL_OK;
    return status == TL_NOT_FOUND && has_retry ? TL_OK : status;
}

static int take_step(void *context, const tl_step *one)
{
    explain_take_step(context, one);
    return 0;
}

static int take_evidence(void *context, const tl_evidence_row *row)
{
    explaining *e = context;
    char when[2 * WORDS];

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
    explain_decision *last = &e->decision;

    if (row->epoch != e->view.epoch)
        return;
    if (row->refused) {
        last->refused = 1;
        return;
    }
    if (!row->confirms)
        text_copy(last->proposer, sizeof last->proposer, row->account);
    last->decision = row->decision;
    last->confirmed = row->confirms;
    last->refused = 0;
    last->own = row->own;
    last->rev = row->rev;
    last->when_us = row->decided_us;
}

static int take_decision(void *context, const tl_resolution_row *row)
{
    explaining *e = context;
    char when[2 * WORDS];
    const char *did = row->refused ? "did not carry out" : row->confirms ? "confirmed" : "proposed";

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
    if (status == TL_OK)
        status = tl_restore_status(e->client, &restore, NULL, NULL);
    e->restored = restore.open;
    if (status == TL_OK && e->people.failed)
        status = error_set(TL_NO_MEMORY, "out of memory for what people said");
    return status;
}

tl_status tl_explain(tl_client *client, const tl_key *key, tl_sentence_fn each, void *context)
{
    explaining *e;
    tl_status status;

    error_clear();
    status = client_check(client);
    if (status == TL_OK)
        status = read_check_each(each != NULL);
    e = status == TL_OK ? memory_new(sizeof *e) : NULL;
    if (status != TL_OK || e == NULL)
        return status != TL_OK ? status : error_set(TL_NO_MEMORY, "out of memory");
    *e = (explaining){.client = client, .each = each, .context = context};
    e->attempts_max = client->config.attempts;
    if (key != NULL)
        e->key = *key;
    text_buffer_init(&e->people);
    status = key != NULL ? gather(e) : error_set(TL_INVALID, "key is NULL");
    if (status == TL_OK) {
        explain_state(e);
        explain_channel(e);
        explain_before(e);
        explain_next(e);
        explain_end(e);
        explain_act(e);
        status = e->status;
    }
    text_buffer_free(&e->people);
    memory_free(e);
    return status;
}
