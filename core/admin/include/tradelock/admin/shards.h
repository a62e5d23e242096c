/*
 * admin/shards.h - the shards that settings name, and the customers that a shard has.
 *
 * Reads only.  Each call is about one database; nothing tells of all of them at one moment.
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_ADMIN_SHARDS_H
#define TRADELOCK_ADMIN_SHARDS_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns 0 to go on. */
typedef int (*tl_shard_name_fn)(void *context, const char *shard);

/*
 * Tells the shards that a settings file names, in its order; connects to none.
 *
 *     TL_OK           Also when there are none: the file is of one database.
 *     TL_BAD_CONFIG   The settings are wrong.
 */
TL_EXPORT tl_status tl_shards(const char *config_file, tl_shard_name_fn each, void *context);

/* What a shard says of a slot, as in tl_slot_row (admin/fleet.h); state "": it never had it, or could
 * not be asked.  other: which one of these shards it names; SIZE_MAX: none of them. */
typedef struct tl_slot_claim {
    const char *state;
    uint64_t version;
    size_t other;
} tl_slot_claim;

/* Which one of the shards has the slot, as services go by it (tl_fleet_owner): the one under the
 * highest version; where that is gone the one that it went to.  SIZE_MAX: none says so, or two do
 * under one version. */
TL_EXPORT size_t tl_slot_owner(const tl_slot_claim *claims, size_t count);

/* To which slots these customers belong, by the database's rule; slots[count] is filled in. */
TL_EXPORT tl_status tl_slots_of(tl_client *client, const char *const *cust_nos, size_t count,
                                unsigned *slots);

/* A customer that has trades in the database. */
typedef struct tl_slot_customer {
    const char *cust_no;
    unsigned slot;
    const char
        *state; /* of the slot, as in tl_slot_row (admin/fleet.h); "": the database never had it */
} tl_slot_customer;

/* Returns 0 to go on. */
typedef int (*tl_customer_fn)(void *context, const tl_slot_customer *customer);

/* Tells every customer that has trades in the database, in the order of their numbers.  It reads
 * keys alone, in pages. */
TL_EXPORT tl_status tl_slot_customers(tl_client *client, tl_customer_fn each, void *context);

#ifdef __cplusplus
}
#endif
#endif
