/*
 * fleet.h - customers over several databases.
 *
 * THE STORY
 *
 * A fleet is several primaries, or clusters, beside one another: its shards.  Each customer belongs
 * to one of 1024 slots, and each slot to one shard, where all of that customer's trades and
 * business rows are.  No transaction ever spans two shards, and no shard knows of another.
 *
 * The settings file names the shards and how each is reached:
 *
 *     [tradelock]
 *     fleet = payouts
 *     shards = a, b
 *     [tradelock-client]        what all of them have: user, password, database
 *     [tradelock-client-a]      host = db-a, db-a2
 *     [tradelock-client-b]      host = db-b
 *
 * Each database says which shard of which fleet it is, and which slots it owns (`tradelock fleet
 * join`).  That alone decides: an ask for a customer whose slot is not of that shard is refused by
 * the database itself in the ask's own transaction (TL_MISDIRECTED), whatever this process believes.
 * The fleet's map only tells where to ask.  It is read from each shard with each beat.
 *
 * CALLING ORDER
 *
 *     tl_fleet_open
 *     tl_fleet_client           the client of a customer, for each payment anew
 *       tl_lock_new ...         as with any client; after TL_MISDIRECTED tl_fleet_look_again(), and
 *                               ask for the client once more
 *     tl_fleet_close            when nothing stands on its clients any more
 *
 * A service with workflows makes a tl_fleet_workflows (<tradelock/fleet_workflow.h>), which does that by
 * itself.
 *
 * A SHARD THAT IS DOWN
 *
 * Each shard has a thread of its own here, which opens its client, tries again while it cannot be
 * reached, and reads its map.  So a shard that is down keeps neither the opening nor another shard
 * waiting.  Its customers hear TL_UNREACHABLE at once, as soon as it has been silent for a third of
 * session_ms; whoever was inside a call by then waits as at any database.  When it is back it is
 * used again by itself.
 *
 * THREADS, FORK, MEMORY
 *
 * Any number of threads may use a fleet.  A client that it gives stays valid until the fleet is
 * closed; never close it.  After fork() the child's calls return TL_WRONG_PROCESS, and
 * tl_fleet_close() frees memory there.
 */
#ifndef TRADELOCK_FLEET_H
#define TRADELOCK_FLEET_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The slots of a fleet, each a set of customers. */
#define TL_FLEET_SLOTS 1024

/* The clients of all shards, and the map of customers to them. */
typedef struct tl_fleet tl_fleet;

/* Below TL_FLEET_SLOTS, the same for a customer in every process and at every shard: the databases
 * have the same rule as tl_customer_slot().  Called from any thread; it must not call the
 * library. */
typedef uint16_t (*tl_slot_rule)(void *context, const char *cust_no);

/* How the clients of a fleet are opened. */
typedef struct tl_fleet_options {
    unsigned version;                /* TL_FLEET_OPTIONS_VERSION */
    const tl_client_options *client; /* of each shard's client; its shard is NULL.  Copied. */
    tl_slot_rule slot;               /* NULL: CRC-32 of the customer's number, modulo 1024 */
    void *slot_context;
} tl_fleet_options;

#define TL_FLEET_OPTIONS_VERSION 1u
#define TL_FLEET_OPTIONS_INIT TL_INITIAL(tl_fleet_options, TL_FLEET_OPTIONS_VERSION)

/*
 * Opens a client to each shard that the settings file names, and reads the map.
 *
 *     TL_OK           The fleet is open.  A shard that cannot be reached now is tried again with
 *                     each beat.
 *     TL_BAD_CONFIG   The file names no shards, or cannot be used; or a database is another shard
 *                     than the settings say, of another fleet, or of none; or two shards lead to
 *                     one database, or to a copy of it.
 *
 * or why else a shard may not be used, as tl_client_open() says it (TL_ACCESS_DENIED,
 * TL_WRONG_SCHEMA, TL_SERVER_UNSAFE ...); the message begins with the shard's name.  The fleet is
 * made only with TL_OK.
 */
TL_EXPORT tl_status tl_fleet_open(tl_fleet **out, const tl_fleet_options *options);

/* How many shards a settings file names; 0: it is of no fleet, and tl_client_open() is for it.
 * TL_OK, or TL_BAD_CONFIG: it cannot be used. */
TL_EXPORT tl_status tl_fleet_count(const char *config_file, size_t *shards);

/* Closes all clients.  While a registry of workflows, a mutex or a read-write lock stands on one of
 * them, nothing is closed, and tl_error_message() says so. */
TL_EXPORT void tl_fleet_close(tl_fleet *fleet);

/* The fleet's name, how many shards it has, and their names in the order of the file.  NULL: there
 * is no shard i. */
TL_EXPORT const char *tl_fleet_name(const tl_fleet *fleet);
TL_EXPORT size_t tl_fleet_size(const tl_fleet *fleet);
TL_EXPORT const char *tl_fleet_shard(const tl_fleet *fleet, size_t i);

/*
 * The client of a shard.
 *
 *     TL_OK            *client is set.
 *     TL_UNREACHABLE   The shard does not answer, or was not reached yet.
 *     TL_INVALID       There is no shard i.
 *
 * or why it may not be used, as tl_fleet_open() would have said it.
 */
TL_EXPORT tl_status tl_fleet_shard_client(tl_fleet *fleet, size_t i, tl_client **client);

/*
 * Whose customer this is, by the map as it was read last.
 *
 *     TL_OK            *shard is set.
 *     TL_UNREACHABLE   No shard that was reached has this customer's slot, and one was not reached.
 *     TL_MISDIRECTED   No shard of this file has it.
 *     TL_BAD_CONFIG    The shard that has it leads to the same database as another one, or one of
 *                      them is a copy: neither is used.
 *     TL_INVALID       cust_no is none.
 */
TL_EXPORT tl_status tl_fleet_owner(tl_fleet *fleet, const char *cust_no, size_t *shard);

/* The client of that shard: TL_OK, or what these two answer. */
TL_EXPORT tl_status tl_fleet_client(tl_fleet *fleet, const char *cust_no, tl_client **client);

/*
 * Asks the shard's own database whether it has this customer now, by one row.  Before a question
 * that only reads: the map may be old for a beat, and rows that were left behind tell of the past,
 * while an ask is refused by the database anyhow.
 *
 *     TL_OK            It has: what is read there from now on is true.
 *     TL_MISDIRECTED   It has not.  tl_fleet_look_again(), and tl_fleet_owner(); if that one has
 *                      not either, the customer is being handed over: ask again later.
 *     TL_INVALID       cust_no is none, or there is no such shard.
 *
 * or why the shard could not be asked, as tl_fleet_shard_client() says it.
 */
TL_EXPORT tl_status tl_fleet_confirm(tl_fleet *fleet, const char *cust_no, size_t shard);

/* The slot of a customer, by the fleet's rule; TL_FLEET_SLOTS: cust_no is none. */
TL_EXPORT unsigned tl_fleet_slot(const tl_fleet *fleet, const char *cust_no);

/* Reads the map anew at each shard that answers, and waits for that at most a beat.  TL_OK, or
 * TL_TIMEOUT: one of them was not read yet. */
TL_EXPORT tl_status tl_fleet_look_again(tl_fleet *fleet);

/* ------------------------------------------------------------- for layers above -- */

/*
 * Called once for each shard that can be used, when it first can be: on the thread of that shard,
 * which reads no map meanwhile.  If it does not return TL_OK it is called again with the next beat.
 */
typedef tl_status (*tl_shard_fn)(void *context, size_t shard, tl_client *client);

/* Somebody who is told when a shard comes up. */
typedef struct tl_fleet_watch tl_fleet_watch;

/*
 * Has up() called for each shard, and waits until it was called for each one that can be used now,
 * at most wait_ms.
 *
 *     TL_OK   *out is set, also where a call has not returned yet, or said class RETRY.
 *     other   What up() said of a shard, with its sentence; nothing is watched.
 */
TL_EXPORT tl_status tl_fleet_watch_new(tl_fleet_watch **out, tl_fleet *fleet, tl_shard_fn up,
                                       void *context, int64_t wait_ms);
/* Waits for a call that is under way.  Before the fleet is closed. */
TL_EXPORT void tl_fleet_watch_free(tl_fleet_watch *watch);

#ifdef __cplusplus
}
#endif
#endif
