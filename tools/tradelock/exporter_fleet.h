/*
 * One page of metrics over all shards of a fleet: each shard's own page, with a label `shard` on
 * every line.
 *
 * Shards are read at the same time, each on a thread of its own, so one that hangs holds up no
 * other: what has not been told when the time for a page is over is down, and it is not asked again
 * before that read has ended.
 */
#ifndef TRADELOCK_EXPORTER_FLEET_H
#define TRADELOCK_EXPORTER_FLEET_H

#include <tradelock/metrics.h>

#include <stddef.h>

/* Hands the page of one shard to write(): on a thread of the shard's, but `down`, which touches
 * nothing that `read` does. */
typedef tl_status (*exporter_page_fn)(void *of_shard, tl_metrics_fn write, void *to);

typedef struct exporter_fleet exporter_fleet;

exporter_fleet *exporter_fleet_new(exporter_page_fn read, exporter_page_fn down);
/* 0; -1: out of memory. */
int exporter_fleet_add(exporter_fleet *self, const char *name, void *of_shard);
/* A page, as tools/metrics asks for it; of one thread at a time.  self: an exporter_fleet. */
tl_status exporter_fleet_page(void *self, tl_metrics_fn write, void *to);
/* Waits for reads that are under way. */
void exporter_fleet_free(exporter_fleet *self);

#endif
