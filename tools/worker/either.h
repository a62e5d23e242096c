/* The worker of one database, or the one of a fleet: as the host that is open has it. */
#ifndef WORKER_EITHER_H
#define WORKER_EITHER_H

#include "host.h"

#include <tradelock/fleet_workflow.h>

/* One of the two; both NULL: none was started. */
typedef struct either {
    tl_worker *one;
    tl_fleet_worker *all;
} either;

/* Each as the functions of tradelock/worker.h. */
tl_status either_start(either *self, const host *here, const tl_worker_options *options);
void either_stop(const either *self);
tl_status either_wait(const either *self, int64_t wait_ms);
tl_status either_check(const either *self);
tl_status either_count(const either *self, tl_worker_counts *counts);
void either_free(either *self);

/* A client that is surely alive, of any shard; NULL: there is none. */
tl_client *either_client(const host *here);

#endif
