/* What no single database can tell of itself: slots that two shards own, or none, and trades that
 * are on two shards. */
#ifndef TRADELOCK_FLEET_CHECK_H
#define TRADELOCK_FLEET_CHECK_H

#include "fleet_map.h"

struct fleet_finding {
    /* slot-twice, slot-behind, slot-nobody, slot-moves; two-shards, stray */
    const char *rule;
    unsigned first, last; /* slots; those of one trade are the same */
    const tl_key *key;    /* NULL: of no trade */
    const char *shards;   /* names, with commas between */
    const char *sentence;
};

typedef void (*fleet_finding_fn)(void *context, const struct fleet_finding *finding);

/* Slots that several shards own or have not let go (slot-twice), that one owns as it did before
 * another one had them (slot-behind), that none of all owns (slot-nobody, told only when every shard
 * could be asked), or that are being handed over (slot-moves); neighbours of which the same is true
 * are one finding. */
void fleet_check_slots(const struct fleet_map *map, fleet_finding_fn each, void *context);
/* Trades that are on two shards (two-shards), but for what was copied to the new owner of a slot,
 * and trades where their slot never was (stray).  It reads the keys of all trades, and whole those
 * of customers that stand where they may not.  The exit code as fleet_code() has it. */
int fleet_check_trades(const struct fleet_map *map, fleet_finding_fn each, void *context);

#endif
