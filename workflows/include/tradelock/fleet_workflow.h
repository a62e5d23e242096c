/*
 * fleet_workflow.h - workflows, and their worker, over the shards of a fleet.
 *
 * The same workflows stand at every shard of a fleet (<tradelock/fleet.h>), each with a client and a
 * registry of its own.  A call goes to the shard that has its customer; if that was just moved away
 * (TL_MISDIRECTED), the map is read anew and the call goes there.  A refused ask has written
 * nothing, so that never pays twice.
 */
#ifndef TRADELOCK_FLEET_WORKFLOW_H
#define TRADELOCK_FLEET_WORKFLOW_H

#include <tradelock/fleet.h>
#include <tradelock/questions.h>
#include <tradelock/worker.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The registries of all shards. */
typedef struct tl_fleet_workflows tl_fleet_workflows;

/* What is registered at each shard. */
typedef struct tl_fleet_workflows_options {
    unsigned version; /* TL_FLEET_WORKFLOWS_OPTIONS_VERSION */
    tl_fleet *fleet;  /* it must outlive them */
    /*
     * Registers the workflows of one shard with tl_workflow_register(), the same ones at each.
     * Called once for each shard that can be used: within tl_fleet_workflows_new(), or later on the
     * thread of a shard that comes up, perhaps for two shards at once.  *state is NULL before, and
     * handed to close().  TL_OK; or another status with a sentence, after it has freed what it made;
     * then close() is not called, and for class RETRY open() is called again later.
     */
    tl_status (*open)(void *context, const char *shard, tl_client *client, tl_workflows *workflows,
                      void **state);
    /* After the shard's registry was freed, and before its client is closed; or NULL. */
    void (*close)(void *context, void *state);
    void *context;
    /* How many calls may be under way at one shard at once, so that one that does not answer cannot
     * take all threads of a service; those beyond hear TL_OVERLOADED at once.  0: any number. */
    unsigned calls;
} tl_fleet_workflows_options;

#define TL_FLEET_WORKFLOWS_OPTIONS_VERSION 1u
#define TL_FLEET_WORKFLOWS_OPTIONS_INIT                                                            \
    TL_INITIAL(tl_fleet_workflows_options, TL_FLEET_WORKFLOWS_OPTIONS_VERSION)

/* Registers them at each shard that can be used, and at the others when they come up.  TL_OK; or
 * what open() said of a shard, but class RETRY, which is tried again. */
TL_EXPORT tl_status tl_fleet_workflows_new(tl_fleet_workflows **out,
                                           const tl_fleet_workflows_options *options);

/* Frees all registries.  While a call is under way or a worker stands on them nothing is freed, and
 * tl_error_message() says so. */
TL_EXPORT void tl_fleet_workflows_free(tl_fleet_workflows *workflows);

/* As tl_workflow_run(), and TL_UNREACHABLE at once where the customer's shard is down;
 * TL_MISDIRECTED: no shard of the settings has this customer, for a moment while he is handed over
 * to another one.  Ask again later: it may be paid there. */
TL_EXPORT tl_status tl_fleet_workflow_run(tl_fleet_workflows *workflows, const tl_request *request,
                                          tl_answer *answer);
TL_EXPORT tl_status tl_fleet_workflow_settle(tl_fleet_workflows *workflows, tl_answer *answer);
/* The shard's database is asked first whether it has the customer; if it has not, the map is read
 * anew.  TL_MISDIRECTED as above; one that waits asks again until its time is over,
 * which is not prolonged by a shard that falls silent. */
TL_EXPORT tl_status tl_fleet_workflow_look(tl_fleet_workflows *workflows, const tl_key *key,
                                           tl_trade *trade);
TL_EXPORT tl_status tl_fleet_workflow_await(tl_fleet_workflows *workflows, const tl_key *key,
                                            int64_t wait_ms, tl_trade *trade);

/* The registry of the shard that has this customer, for all other calls.  It stays valid until
 * tl_fleet_workflows_free().  After TL_MISDIRECTED tl_fleet_look_again(), and ask anew. */
TL_EXPORT tl_status tl_fleet_workflows_of(tl_fleet_workflows *workflows, const char *cust_no,
                                          tl_workflows **registry);
/* That of a shard; TL_UNREACHABLE: it is not usable, or has none yet. */
TL_EXPORT tl_status tl_fleet_workflows_at(tl_fleet_workflows *workflows, size_t shard,
                                          tl_workflows **registry);

/*
 * A worker for all shards: each has a share of its threads for itself, and a thread that claims, so
 * that one that is down holds up no other.  A shard that comes up later is served from then on.
 */
typedef struct tl_fleet_worker tl_fleet_worker;

/* threads: of all shards together; each has at least one. */
TL_EXPORT tl_status tl_fleet_worker_start(tl_fleet_worker **out, tl_fleet_workflows *workflows,
                                          const tl_worker_options *options);
TL_EXPORT void tl_fleet_worker_stop(tl_fleet_worker *worker);
/* As tl_worker_wait(), for all shards. */
TL_EXPORT tl_status tl_fleet_worker_wait(tl_fleet_worker *worker, int64_t wait_ms);
/* As tl_worker_check().  TL_UNREACHABLE: no shard is served; one that is down while others are
 * served is TL_OK, since ending the process would help nobody. */
TL_EXPORT tl_status tl_fleet_worker_check(tl_fleet_worker *worker);
/* The sum over all shards, or that of one: zeroes where it was not served yet. */
TL_EXPORT tl_status tl_fleet_worker_count(tl_fleet_worker *worker, tl_worker_counts *counts);
TL_EXPORT tl_status tl_fleet_worker_count_at(tl_fleet_worker *worker, size_t shard,
                                             tl_worker_counts *counts);
TL_EXPORT void tl_fleet_worker_free(tl_fleet_worker *worker);

#ifdef __cplusplus
}
#endif
#endif
