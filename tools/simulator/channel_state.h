/*
 * What the channel knows, and the one function that changes it.  Private to channel.c and
 * channel_state.c.
 */
#ifndef SIM_CHANNEL_STATE_H
#define SIM_CHANNEL_STATE_H

#include "channel.h"
#include "ledger.h"

#include <pthread.h>
#include <sys/queue.h>

/* A channel key.  Keys that were only asked about are here too, with no record. */
struct key_entry {
    char channel_key[ORDER_NAME_MAX + 1]; /* first: the tree compares it */
    struct order *order;                  /* of the answer below; NULL without a record */
    enum outcome answer; /* NONE, SUCCEEDED, DECLINED or ACCEPTED: what a repetition gets */
    bool replied;        /* ACCEPTED: a repetition is told so, else that it is in progress */
    bool cancelled;
    int told;
    int64_t seq;          /* of the last record */
    int64_t known_ms;     /* time of the first record */
    int64_t answer_ms;    /* time of the send that is answered above; starts the window */
    int64_t accepted_seq; /* of that send, when it was accepted */
    int64_t payments, open;
    char channel_ref[REF_MAX + 1]; /* of the last payment */
    int64_t paid_minor;            /* of the same */
    char code[CODE_MAX + 1];       /* of the last decline */
    char reason[REASON_MAX + 1];
    int64_t requests[ENDPOINT_COUNT];
    struct order *first; /* the first send since the start, whatever became of it; or NULL */
};

/* A trade as an outsider counts it, whatever key was used. */
struct trade {
    char serial_no[ORDER_NAME_MAX + 1];
    char cust_no[ORDER_NAME_MAX + 1];
    int64_t payments;
};

/* An accepted payment that is not settled yet, or whose sender still has to hear of it.
 */
struct pending {
    TAILQ_ENTRY(pending) link;
    struct record record;  /* the accepted line */
    bool watched;          /* a sender waits in channel_settled() */
    struct verdict result; /* once settled */
};

TAILQ_HEAD(pending_list, pending);

struct channel {
    enum channel_kind kind; /* fixed after opening */
    int64_t window_ms;
    struct stop_signal *stop;
    struct ledger *ledger;
    pthread_t settler;
    bool settler_runs;

    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    bool stopping;
    bool failure_told;
    void *entries; /* trees of tsearch() */
    void *trades;
    struct pending_list open;    /* by due time */
    struct pending_list settled; /* watched only */
    struct channel_counts counts;
};

/* The key's entry, made when it is new.  Needs: mutex held. */
struct key_entry *state_entry(struct channel *channel, const char *channel_key);

/*
 * The one place that changes what the channel knows of money, for a decision made now and for a
 * line read at the start alike.  watched: a sender will wait for the settlement of this accepted
 * record.  False only for a ledger that contradicts itself. Needs: mutex held.
 */
bool state_apply(struct channel *channel, const struct record *record, bool watched,
                 struct problem *problem);

/* Frees entries, trades and lists. */
void state_free(struct channel *channel);

#endif
