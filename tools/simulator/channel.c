/* The simulated channel's decisions: pay, query and cancel, each under one mutex and written to
 * the ledger before it is told. */
#include "channel_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {"idempotent", "window", "plain"};

const char *endpoint_name(enum endpoint endpoint)
{
    static const char *const names[] = {"pay", "query", "cancel"};

    return names[endpoint];
}

const char *kind_name(enum channel_kind kind)
{
    return kind_names[kind];
}

bool kind_find(const char *name, enum channel_kind *kind)
{
    for (size_t i = 0; i < sizeof(kind_names) / sizeof(kind_names[0]); i++) {
        if (strcmp(name, kind_names[i]) == 0) {
            *kind = (enum channel_kind)i;
            return true;
        }
    }
    return false;
}

/* Writes a decision down and makes it.  Needs: mutex held. */
static void decide(struct channel *channel, struct record *record, bool watched)
{
    struct problem problem;

    ledger_append(channel->ledger, record);
    if (!state_apply(channel, record, watched, &problem))
        abort(); /* a settlement comes from the open list itself */
}

static bool replay(void *context, const struct record *record, struct problem *problem)
{
    return record->type == RECORD_LEDGER || state_apply(context, record, false, problem);
}

static int64_t settle(struct channel *channel, const struct pending *item)
{
    struct record record = item->record;

    record.type = record.code[0] ? RECORD_DECLINED : RECORD_PAID;
    record.accepted_seq = item->record.seq;
    record.due_ms = 0;
    decide(channel, &record, false);
    return record.seq;
}

/* The thread that settles what is due. */
static void *settler_run(void *context)
{
    struct channel *channel = context;
    int64_t unsynced = 0;

    pthread_mutex_lock(&channel->mutex);
    while (!channel->stopping) {
        struct pending *first = TAILQ_FIRST(&channel->open);
        int64_t wait_ms = first ? first->record.due_ms - time_now_ms() : 60000;

        if (first && wait_ms <= 0) {
            unsynced = settle(channel, first);
            continue;
        }
        if (unsynced) {
            /* Nobody may ask for these payments, so nobody else would write them. */
            pthread_mutex_unlock(&channel->mutex);
            channel_durable(channel, unsynced);
            unsynced = 0;
            pthread_mutex_lock(&channel->mutex);
            continue;
        }
        /* Short waits, since the wall clock may be set meanwhile. */
        time_wait(&channel->changed, &channel->mutex, wait_ms < 1000 ? wait_ms : 1000);
    }
    pthread_mutex_unlock(&channel->mutex);
    return NULL;
}

struct channel *channel_open(const char *ledger_path, enum channel_kind kind, int64_t window_ms,
                             struct stop_signal *stop, struct problem *problem)
{
    struct channel *channel = memory_new(sizeof(*channel));

    channel->kind = kind;
    channel->window_ms = window_ms;
    channel->stop = stop;
    TAILQ_INIT(&channel->open);
    TAILQ_INIT(&channel->settled);
    pthread_mutex_init(&channel->mutex, NULL);
    time_condition_init(&channel->changed);
    channel->ledger = ledger_open(ledger_path, false, replay, channel, problem);
    if (!channel->ledger)
        goto out;
    if (pthread_create(&channel->settler, NULL, settler_run, channel) != 0) {
        problem_set(problem, "cannot start a thread");
        goto out;
    }
    channel->settler_runs = true;
    return channel;
out:
    channel_close(channel);
    return NULL;
}

void channel_stop(struct channel *channel)
{
    pthread_mutex_lock(&channel->mutex);
    channel->stopping = true;
    pthread_cond_broadcast(&channel->changed);
    pthread_mutex_unlock(&channel->mutex);
}

void channel_close(struct channel *channel)
{
    if (!channel)
        return;
    if (channel->settler_runs)
        pthread_join(channel->settler, NULL);
    ledger_close(channel->ledger);
    state_free(channel);
    pthread_cond_destroy(&channel->changed);
    pthread_mutex_destroy(&channel->mutex);
    free(channel);
}

int64_t channel_count_request(struct channel *channel, enum endpoint endpoint,
                              const char *channel_key, char serial_no[ORDER_NAME_MAX + 1],
                              char cust_no[ORDER_NAME_MAX + 1])
{
    struct key_entry *entry;
    int64_t number;

    pthread_mutex_lock(&channel->mutex);
    entry = state_entry(channel, channel_key);
    number = ++entry->requests[endpoint];
    strcpy(serial_no, entry->order ? entry->order->serial_no : "");
    strcpy(cust_no, entry->order ? entry->order->cust_no : "");
    pthread_mutex_unlock(&channel->mutex);
    return number;
}

const char *channel_differs(struct channel *channel, const struct order *order)
{
    struct key_entry *entry;
    const char *field;

    pthread_mutex_lock(&channel->mutex);
    entry = state_entry(channel, order->channel_key);
    if (!entry->first) {
        entry->first = memory_new(sizeof(*entry->first));
        *entry->first = *order;
    }
    field = order_difference(entry->first, order);
    pthread_mutex_unlock(&channel->mutex);
    return field ? field : "";
}

static void verdict_decline(struct verdict *verdict, const char *code, const char *reason)
{
    verdict->outcome = OUTCOME_DECLINED;
    snprintf(verdict->code, sizeof(verdict->code), "%s", code);
    snprintf(verdict->reason, sizeof(verdict->reason), "%s", reason);
}

/* The answer to a repeated send of a key that is idempotent now.  Needs: mutex held. */
static void pay_again(const struct key_entry *entry, const struct order *order,
                      struct verdict *verdict)
{
    const char *field = order_difference(entry->order, order);

    if (field) {
        verdict->outcome = OUTCOME_MISMATCH;
        strcpy(verdict->code, field);
        return;
    }
    if (entry->answer == OUTCOME_DECLINED) {
        verdict_decline(verdict, entry->code, entry->reason);
        return;
    }
    verdict->outcome = entry->answer;
    if (entry->answer == OUTCOME_ACCEPTED && !entry->replied)
        verdict->outcome = OUTCOME_IN_PROGRESS;
    if (entry->answer == OUTCOME_SUCCEEDED)
        strcpy(verdict->channel_ref, entry->channel_ref);
}

/* A send that is taken as a payment of its own.  Needs: mutex held. */
static void pay_new(struct channel *channel, const struct order *order, const struct pay_way *way,
                    int64_t now_ms, struct verdict *verdict)
{
    struct record record;

    memset(&record, 0, sizeof(record));
    record.order = *order;
    record.type = RECORD_PAID;
    if (order->expires_at_ms && now_ms >= order->expires_at_ms) {
        record.type = RECORD_DECLINED;
        strcpy(record.code, "expired");
        strcpy(record.reason, "the payment arrived after expires_at_ms");
    } else {
        verdict->as_asked = true;
        if (way->code) {
            record.type = RECORD_DECLINED;
            snprintf(record.code, sizeof(record.code), "%s", way->code);
            snprintf(record.reason, sizeof(record.reason), "%s", way->reason);
        }
        if (way->later) {
            record.type = RECORD_ACCEPTED;
            record.due_ms = now_ms + way->settle_ms;
            record.replied = way->replied;
        }
    }
    decide(channel, &record, way->later && !way->replied);
    if (record.type == RECORD_PAID) {
        verdict->outcome = OUTCOME_SUCCEEDED;
        strcpy(verdict->channel_ref, record.channel_ref);
    } else if (record.type == RECORD_DECLINED) {
        verdict_decline(verdict, record.code, record.reason);
    } else {
        verdict->outcome = OUTCOME_ACCEPTED;
        verdict->accepted_seq = record.seq;
    }
}

void channel_pay(struct channel *channel, const struct order *order, const struct pay_way *way,
                 struct verdict *verdict)
{
    int64_t now_ms;
    struct key_entry *entry;
    bool again;

    memset(verdict, 0, sizeof(*verdict));
    verdict->amount_minor = order->amount_minor;
    pthread_mutex_lock(&channel->mutex);
    now_ms = time_now_ms();
    entry = state_entry(channel, order->channel_key);
    again = entry->answer != OUTCOME_NONE && channel->kind != KIND_PLAIN &&
            (channel->kind == KIND_IDEMPOTENT || now_ms - entry->answer_ms < channel->window_ms);
    if (again)
        pay_again(entry, order, verdict);
    else if (entry->cancelled)
        verdict_decline(verdict, "cancelled", "the payment was cancelled");
    else
        pay_new(channel, order, way, now_ms, verdict);
    verdict->seq = entry->seq;
    pthread_mutex_unlock(&channel->mutex);
}

bool channel_settled(struct channel *channel, struct verdict *verdict)
{
    struct pending *item = NULL;

    pthread_mutex_lock(&channel->mutex);
    for (;;) {
        TAILQ_FOREACH(item, &channel->settled, link)
        {
            if (item->record.seq == verdict->accepted_seq)
                break;
        }
        if (item || channel->stopping)
            break;
        time_wait(&channel->changed, &channel->mutex, 1000);
    }
    if (item) {
        TAILQ_REMOVE(&channel->settled, item, link);
        item->result.as_asked = verdict->as_asked;
        *verdict = item->result;
        free(item);
    }
    pthread_mutex_unlock(&channel->mutex);
    return item != NULL;
}

void channel_query(struct channel *channel, const char *channel_key, struct verdict *verdict)
{
    const struct key_entry *entry;

    memset(verdict, 0, sizeof(*verdict));
    pthread_mutex_lock(&channel->mutex);
    entry = state_entry(channel, channel_key);
    verdict->seq = entry->seq;
    verdict->told = entry->told;
    verdict->payments = entry->payments;
    verdict->age_ms = time_now_ms() - entry->known_ms;
    if (entry->payments > 0) {
        verdict->outcome = OUTCOME_SUCCEEDED;
        verdict->amount_minor = entry->paid_minor;
        strcpy(verdict->channel_ref, entry->channel_ref);
    } else if (entry->open > 0) {
        verdict->outcome = OUTCOME_ACCEPTED;
    } else if (entry->answer == OUTCOME_DECLINED) {
        verdict_decline(verdict, entry->code, entry->reason);
    } else if (entry->cancelled) {
        verdict_decline(verdict, "cancelled", "the payment was cancelled");
    } else {
        verdict->outcome = OUTCOME_NOT_FOUND;
    }
    pthread_mutex_unlock(&channel->mutex);
}

void channel_cancel(struct channel *channel, const char *channel_key, struct verdict *verdict)
{
    struct key_entry *entry;
    struct record record;

    memset(verdict, 0, sizeof(*verdict));
    pthread_mutex_lock(&channel->mutex);
    entry = state_entry(channel, channel_key);
    if (entry->payments > 0) {
        verdict->outcome = OUTCOME_ALREADY_DONE;
        verdict->amount_minor = entry->paid_minor;
        strcpy(verdict->channel_ref, entry->channel_ref);
    } else {
        verdict->outcome = OUTCOME_CANCELLED;
        if (!entry->cancelled) {
            memset(&record, 0, sizeof(record));
            record.type = RECORD_CANCELLED;
            strcpy(record.order.channel_key, channel_key);
            decide(channel, &record, false);
        }
    }
    verdict->seq = entry->seq;
    pthread_mutex_unlock(&channel->mutex);
}

void channel_told(struct channel *channel, const char *channel_key, int told)
{
    struct key_entry *entry;

    pthread_mutex_lock(&channel->mutex);
    entry = state_entry(channel, channel_key);
    if (entry->told < told)
        entry->told = told;
    pthread_mutex_unlock(&channel->mutex);
}

bool channel_durable(struct channel *channel, int64_t seq)
{
    struct problem problem;
    bool first;

    if (ledger_wait(channel->ledger, seq))
        return true;
    pthread_mutex_lock(&channel->mutex);
    first = !channel->failure_told;
    channel->failure_told = true;
    pthread_mutex_unlock(&channel->mutex);
    if (first) {
        ledger_failure(channel->ledger, &problem);
        fprintf(stderr,
                "tradelock-simulator: %s; stopping, since nobody can know what "
                "was paid\n",
                problem.text);
        stop_raise(channel->stop, true);
    }
    return false;
}

void channel_count(struct channel *channel, struct channel_counts *counts)
{
    pthread_mutex_lock(&channel->mutex);
    *counts = channel->counts;
    pthread_mutex_unlock(&channel->mutex);
}

struct ledger *channel_ledger(struct channel *channel)
{
    return channel->ledger;
}
