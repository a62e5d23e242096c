/*
 * Which shard has which customers, by what the databases say.  It is read once for a command, so a
 * slot may be handed over behind it: the databases themselves refuse what is not theirs any more.
 */
#ifndef TRADELOCK_FLEET_MAP_H
#define TRADELOCK_FLEET_MAP_H

#include "command.h"

#include "statement.h"

#include <tradelock/admin.h>

struct fleet_slot {
    char state; /* 'o' owned, 'l' leaving, 'g' gone, 'a' arriving; 0: the shard never had it */
    uint64_t version;
    char other[TL_FLEET_NAME_MAX + 1]; /* where it goes to, or comes from */
};

/* As the databases call it; "none": the shard never had it. */
const char *fleet_slot_word(char state);

/* Of each shard of fleet_begin(), in its order; told 0: it could not be asked. */
struct fleet_map {
    size_t count;
    struct fleet_shard_slots {
        int told;
        struct fleet_slot slot[TL_FLEET_SLOTS];
    } *shard;
};

#define FLEET_NOBODY SIZE_MAX

/* Which of the shards of the settings has this name; FLEET_NOBODY: none. */
size_t fleet_shard_of(const char *name);

/* Reads it from every shard; the exit code as fleet_code() has it.  fleet_map_free() frees it. */
int fleet_map_read(struct fleet_map *map);
void fleet_map_free(struct fleet_map *map);
/* Where the rows of this slot are: at the owner under the highest version.  While it is moved there
 * is none: then where it leaves from, and after that where it arrives. */
size_t fleet_map_owner(const struct fleet_map *map, unsigned slot);
/* Whether the shard says that it owns the slot, or that it is leaving. */
int fleet_map_has(const struct fleet_map *map, size_t shard, unsigned slot);
/* Whether it says so under an earlier version than another one says anything: it was restored to before
 * the slot went on. */
int fleet_map_is_behind(const struct fleet_map *map, size_t shard, unsigned slot);
/* How many shards say that they own it; one that it leaves counts where there is another one, since
 * what was begun there goes on. */
unsigned fleet_map_owners(const struct fleet_map *map, unsigned slot);

/* To which slots customers belong, by the rule of the first shard that can be asked. */
tl_status fleet_slots_of(const char *const *cust_nos, size_t count, unsigned *slots);

/*
 * Puts a statement's payments in the order of the shards that have their trades, which are those
 * that have the customers' slots: those from first[i] on, and before first[i + 1], are of shard i.
 * Those from first[fleet_size()] on are of none that can be asked.  first has fleet_size() + 2
 * places.
 */
tl_status fleet_payments(const struct fleet_map *map, struct statement *statement, size_t *first);

/* After fleet_begin(): the client of the shard that has this customer, with which alone the command
 * goes on; or that of the one database.  0, or the exit code after the sentence. */
int fleet_owner(tl_client **client, const char *cust_no);

#endif
