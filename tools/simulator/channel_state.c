/* What the channel knows of each key, rebuilt from the ledger and changed by one function. */
#include "channel_state.h"

#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

static int entry_compare(const void *left, const void *right)
{
    return strcmp(((const struct key_entry *)left)->channel_key,
                  ((const struct key_entry *)right)->channel_key);
}

static int trade_compare(const void *left, const void *right)
{
    const struct trade *one = left, *other = right;
    int order = strcmp(one->serial_no, other->serial_no);

    return order ? order : strcmp(one->cust_no, other->cust_no);
}

struct key_entry *state_entry(struct channel *channel, const char *channel_key)
{
    /* The key is the first thing of an entry, so it can stand for one here. */
    struct key_entry **found = tfind(channel_key, &channel->entries, entry_compare);
    struct key_entry *fresh;

    if (found)
        return *found;
    fresh = memory_new(sizeof(*fresh));
    strcpy(fresh->channel_key, channel_key);
    memory_need(tsearch(fresh, &channel->entries, entry_compare));
    return fresh;
}

/* Needs: mutex held. */
static void trade_count(struct channel *channel, const struct order *order)
{
    struct trade *fresh = memory_new(sizeof(*fresh));
    struct trade **found;

    strcpy(fresh->serial_no, order->serial_no);
    strcpy(fresh->cust_no, order->cust_no);
    found = memory_need(tsearch(fresh, &channel->trades, trade_compare));
    if (*found != fresh)
        free(fresh);
    (*found)->payments++;
    channel->counts.payments++;
    if ((*found)->payments == 1)
        channel->counts.trades_paid++;
    else if ((*found)->payments == 2)
        channel->counts.paid_twice++;
}

/* Due times mostly grow, so the search from the end is short.  Needs: mutex held. */
static void open_insert(struct channel *channel, const struct record *record, bool watched)
{
    struct pending *fresh = memory_new(sizeof(*fresh)), *before;

    fresh->record = *record;
    fresh->watched = watched;
    TAILQ_FOREACH_REVERSE(before, &channel->open, pending_list, link)
    {
        if (before->record.due_ms <= record->due_ms)
            break;
    }
    if (before)
        TAILQ_INSERT_AFTER(&channel->open, before, fresh, link);
    else
        TAILQ_INSERT_HEAD(&channel->open, fresh, link);
    channel->counts.accepted_open++;
    pthread_cond_broadcast(&channel->changed);
}

/* What the sender of an accepted payment hears at its end.  Needs: mutex held. */
static void open_remove(struct channel *channel, struct pending *item, const struct record *record)
{
    struct verdict *result = &item->result;

    TAILQ_REMOVE(&channel->open, item, link);
    channel->counts.accepted_open--;
    if (!item->watched) {
        free(item);
        return;
    }
    result->seq = record->seq;
    result->amount_minor = item->record.order.amount_minor;
    if (record->type == RECORD_PAID) {
        result->outcome = OUTCOME_SUCCEEDED;
        strcpy(result->channel_ref, record->channel_ref);
    } else {
        result->outcome = OUTCOME_DECLINED;
        strcpy(result->code, record->code[0] ? record->code : "cancelled");
        strcpy(result->reason, record->code[0] ? record->reason : "the payment was cancelled");
    }
    TAILQ_INSERT_TAIL(&channel->settled, item, link);
    pthread_cond_broadcast(&channel->changed);
}

/* Takes out what the record settles; false when there is no such thing. */
static bool open_settle(struct channel *channel, const struct record *record)
{
    struct pending *item;

    TAILQ_FOREACH(item, &channel->open, link)
    {
        if (item->record.seq == record->accepted_seq) {
            open_remove(channel, item, record);
            return true;
        }
    }
    return false;
}

static void apply_cancel(struct channel *channel, struct key_entry *entry,
                         const struct record *record)
{
    struct pending *item, *next;

    for (item = TAILQ_FIRST(&channel->open); item; item = next) {
        next = TAILQ_NEXT(item, link);
        if (strcmp(item->record.order.channel_key, entry->channel_key) == 0)
            open_remove(channel, item, record);
    }
    entry->open = 0;
    if (entry->answer == OUTCOME_ACCEPTED)
        entry->answer = OUTCOME_NONE;
    if (!entry->cancelled)
        channel->counts.cancels++;
    entry->cancelled = true;
}

bool state_apply(struct channel *channel, const struct record *record, bool watched,
                 struct problem *problem)
{
    struct key_entry *entry = state_entry(channel, record->order.channel_key);
    bool settles = record->accepted_seq != 0;

    if (settles && !open_settle(channel, record))
        return problem_set(problem, "accepted_seq %" PRId64 " is not open", record->accepted_seq);
    entry->seq = record->seq;
    channel->counts.last_seq = record->seq;
    if (!entry->known_ms) {
        entry->known_ms = record->at_us / 1000;
        channel->counts.keys++;
    }
    if (record->type == RECORD_CANCELLED) {
        apply_cancel(channel, entry, record);
        return true;
    }
    if (!settles) {
        if (!entry->order)
            entry->order = memory_new(sizeof(*entry->order));
        *entry->order = record->order;
        entry->answer_ms = record->at_us / 1000;
        entry->accepted_seq = record->type == RECORD_ACCEPTED ? record->seq : 0;
        entry->replied = record->replied;
    } else {
        entry->open--;
    }
    if (record->type == RECORD_ACCEPTED) {
        entry->answer = OUTCOME_ACCEPTED;
        entry->open++;
        open_insert(channel, record, watched);
        return true;
    }
    /* A settlement of an earlier send does not change what the latest one is answered. */
    if (!settles || entry->accepted_seq == record->accepted_seq)
        entry->answer = record->type == RECORD_PAID ? OUTCOME_SUCCEEDED : OUTCOME_DECLINED;
    if (record->type == RECORD_PAID) {
        entry->payments++;
        strcpy(entry->channel_ref, record->channel_ref);
        entry->paid_minor = record->order.amount_minor;
        trade_count(channel, &record->order);
    } else {
        strcpy(entry->code, record->code);
        strcpy(entry->reason, record->reason);
        channel->counts.declines++;
    }
    return true;
}

static void list_free(struct pending_list *list)
{
    struct pending *item;

    while ((item = TAILQ_FIRST(list))) {
        TAILQ_REMOVE(list, item, link);
        free(item);
    }
}

void state_free(struct channel *channel)
{
    list_free(&channel->open);
    list_free(&channel->settled);
    while (channel->entries) {
        struct key_entry *first = *(struct key_entry **)channel->entries;

        tdelete(first, &channel->entries, entry_compare);
        free(first->order);
        free(first->first);
        free(first);
    }
    while (channel->trades) {
        struct trade *first = *(struct trade **)channel->trades;

        tdelete(first, &channel->trades, trade_compare);
        free(first);
    }
}
