/* The registered operations of one client. */
#ifndef TL_WORKFLOWS_REGISTRY_H
#define TL_WORKFLOWS_REGISTRY_H

#include "await.h"
#include "later.h"

#include <tradelock/layer.h>
#include <tradelock/workflow.h>

#include <pthread.h>
#include <stdatomic.h>

#define WORKFLOWS_MAX 64

/* Whether the channel answers; atomic. */
typedef struct channel_watch {
    atomic_uint misses; /* calls in a row that got no clear answer */
    atomic_int_fast64_t since_ms;
    atomic_int_fast64_t strange_ms; /* when a trade of a channel that nobody registered was told */
} channel_watch;

/* An operation and one of its channels.  Fixed after registration; read by any thread. */
typedef struct workflow {
    tl_workflow given; /* names point into the arrays below; policy is filled up; no statements */
    tl_books *books;   /* its statements, which are the client's; NULL: it has none */
    char op_code[TL_OP_MAX + 1];
    char channel[TL_CHANNEL_MAX + 1];
    tl_client *client;
    tl_calls *executes, *queries, *cancels; /* counters, which are the client's */
    channel_watch *watch, watched;          /* watch: where it stands, here */
    void *channel_context;                  /* for execute, query and cancel */
    /* Of the operation as it is registered: the same with a former channel each. */
    struct workflow *former[TL_FORMER_MAX];
    unsigned former_count;
} workflow;

struct tl_workflows {
    tl_client *client; /* fixed */
    pthread_mutex_t mutex;
    /* Under the mutex; entries are never moved or removed. */
    workflow *entries[WORKFLOWS_MAX];
    unsigned count, workers; /* workers: how many use this registry */
    awaits awaits;           /* under its own mutex */
    later later;             /* likewise */
};

/* NULL: the operation is not registered. */
const workflow *workflows_find(tl_workflows *workflows, const char *op_code);

/* The i-th registered workflow, or NULL. */
const workflow *workflows_at(tl_workflows *workflows, unsigned i);

/* The workflow with the channel that a row names; NULL: that one is not registered. */
const workflow *workflow_of_channel(const workflow *of, const char *channel);
/* Counts and tells that a trade of such a channel waits. */
void workflow_tell_strange(const workflow *of, const tl_view *view);

/* TL_OK, or TL_OVERLOADED with a sentence: operators have paused the workflow's channel. */
tl_status workflow_check_paused(const workflow *of);
/* How many trades that are due may be claimed: `most`; none while its channels are paused; and
 * where a breaker is open, one when a probe may be free. */
size_t workflow_may_claim(const workflow *of, size_t most);
/* The same of its own channel alone. */
size_t workflow_may_claim_of(const workflow *of, size_t most);

/* Has the client count the calls of the workflow's channel (attempt.c).  TL_OK or TL_NO_MEMORY. */
tl_status attempt_count_calls(workflow *of);

/* The policy with every 0 replaced by the default. */
tl_policy policy_complete(const tl_policy *given, const tl_policy *defaults);

/* TL_OK; TL_INVALID or TL_UNSAFE, with a sentence (registration.c).  Needs: a complete policy. */
tl_status workflow_check(const tl_workflow *given);
/* The same of what differs with a former channel, which may be without execute. */
tl_status workflow_check_former(const tl_workflow *given);

#endif
