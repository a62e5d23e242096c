/* Whose slot it is, by what the shards said last.  Touches no state but the map. */
#ifndef TL_FLEET_MAP_H
#define TL_FLEET_MAP_H

#include "db/db.h"

#include <tradelock/fleet.h>

/* What one shard says of a slot. */
typedef enum slot_claim {
    SLOT_NONE, /* it never had it, or it is on its way here */
    SLOT_GONE, /* to another one */
    SLOT_HAD   /* it owns it, also while that is to leave */
} slot_claim;

typedef struct slot_said {
    uint64_t version;
    slot_claim claim;
    size_t other; /* GONE: to which shard; MAP_NOBODY: to one that this file does not name */
} slot_said;

/* What one shard says of all slots. */
typedef struct slot_map {
    int is_read; /* at least once */
    slot_said slot[TL_FLEET_SLOTS];
} slot_map;

#define MAP_NOBODY SIZE_MAX

/* Takes what store_slots() read.  names: of the shards.  0: the rows are no map, and *to is as it
 * was. */
int map_take(slot_map *to, const db_result *rows, char *const names[], size_t count);

slot_claim map_claim_of(const char *state);

/* The rule of whose a slot is, which is told of one shard after the other. */
typedef struct slot_verdict {
    slot_said best; /* what counts most so far */
    int is_said, is_twice;
    size_t owner;
} slot_verdict;
void map_judge(slot_verdict *so_far, size_t shard, const slot_said *said);
/* MAP_NOBODY: none says that it has it, or two say so under one version. */
size_t map_judged(const slot_verdict *of_all);

/*
 * The shard that has the slot under the highest version; where that one says that it is gone, the
 * one that it went to, which may not know it yet.  MAP_NOBODY: none says so, and *unread is then a
 * shard whose map was never read, or MAP_NOBODY; or two say so under one version, and nobody may go
 * by the order in which a file names them.
 */
size_t map_owner(const slot_map *const maps[], size_t count, unsigned slot, size_t *unread);

/* CRC-32 as in zlib and in the server's CRC32(), modulo TL_FLEET_SLOTS. */
uint16_t map_slot(const char *cust_no);

#endif
