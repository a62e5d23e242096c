/* Workflows at all shards of a fleet. */
#ifndef TL_WORKFLOWS_FLEET_H
#define TL_WORKFLOWS_FLEET_H

#include <tradelock/fleet_workflow.h>
#include <tradelock/workflow.h>

#include <pthread.h>

/* What stands on one shard. */
typedef struct fleet_site {
    tl_workflows *registry; /* NULL: its workflows are not registered yet; it stays once it is */
    void *state;
    unsigned calls; /* under way */
} fleet_site;

struct tl_fleet_workflows {
    /* Fixed. */
    tl_fleet_workflows_options given;
    tl_fleet *fleet;
    tl_fleet_watch *watch;
    size_t count;
    pthread_mutex_t mutex;
    /* Under the mutex. */
    unsigned workers;
    fleet_site sites[];
};

/* The shard's registry; NULL: there is none yet. */
tl_workflows *fleet_registry(tl_fleet_workflows *all, size_t shard);
void fleet_stand(tl_fleet_workflows *all, int stands);

#endif
