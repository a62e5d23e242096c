/*
 * admin/fleet.h - a database becomes a shard of a fleet; which customers it has; moving them.
 *
 * A fleet is several databases beside one another, its shards.  A customer belongs to a slot, by the
 * function tl_customer_slot() of the databases, which is the same at all shards; a slot belongs to
 * one shard, with all rows of its customers.  No transaction spans two shards.
 *
 * The databases themselves keep customers apart, by triggers that only a shard has: whatever begins
 * something for a customer of another shard is refused there (TL_MISDIRECTED), also for SQL typed by
 * hand.  A database of no fleet has none of it.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_ADMIN_FLEET_H
#define TRADELOCK_ADMIN_FLEET_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TL_FLEET_SLOTS /* as in <tradelock/fleet.h> */
#define TL_FLEET_SLOTS 1024
#endif
#define TL_FLEET_NAME_MAX 32

/* How a database becomes a shard of a fleet. */
typedef struct tl_fleet_joining {
    unsigned version;          /* TL_FLEET_JOINING_VERSION */
    const char *fleet, *shard; /* letters, digits, '-' and '_'; at most TL_FLEET_NAME_MAX */
    const char *reason;        /* NULL: none */
    /* One byte for each slot, TL_FLEET_SLOTS of them: not 0, the shard is to have it.  NULL: all
     * that nobody has. */
    const unsigned char *slots;
} tl_fleet_joining;

#define TL_FLEET_JOINING_VERSION 1u
#define TL_FLEET_JOINING_INIT TL_INITIAL(tl_fleet_joining, TL_FLEET_JOINING_VERSION)

/* The name of the fleet whose shards a settings file names; fleet: of TL_FLEET_NAME_MAX + 1 bytes,
 * "": the file is of one database.  TL_OK or TL_BAD_CONFIG. */
TL_EXPORT tl_status tl_fleet_named(const char *config_file, char *fleet);

/* What tl_fleet_join() did. */
typedef struct tl_fleet_joined {
    unsigned taken, owned; /* slots: by this call; in all */
    unsigned made;         /* triggers and functions that were missing or changed */
} tl_fleet_joined;

/*
 * Makes a database a shard: gives it slots that nobody has, and makes its triggers.  `shards` are
 * clients of all shards of the fleet that there are, also of those that have not joined yet, in the
 * same order in every call; shards[own] is the one that joins.  It may be called again, for more
 * slots, or after it was cut off.  Needs administrators' accounts.
 *
 *     TL_OK            The database is a shard, and owns the slots; *joined says how many.
 *     TL_REFUSED       A slot that was asked for is another shard's, or was moved away; or there are
 *                      customers here whose slots are not asked for; or the database is of another
 *                      fleet, or another shard.  Nothing was changed.
 *     TL_INVALID       A name or the slots are not valid.
 *     TL_BAD_CONFIG    Two of the shards lead to one database, or to a copy of it.
 *     TL_TIMEOUT       Somebody migrates, or another shard joins.  Nothing was changed.
 *     else             A shard could not be asked.  Call again.
 */
TL_EXPORT tl_status tl_fleet_join(tl_client *const *shards, size_t count, size_t own,
                                  const tl_fleet_joining *joining, tl_fleet_joined *joined);

/* A slot, as a shard has it. */
typedef struct tl_slot_row {
    unsigned slot;
    const char *state;  /* owned, leaving, gone, arriving */
    uint64_t version;   /* rises with each hand-over: the highest `owned` has the slot */
    const char *other;  /* the shard where it goes to or comes from; "" */
    int sealed;         /* leaving: nothing of it changes any more */
    int64_t changed_us; /* since 1970 */
    const char *account, *reason;
} tl_slot_row;

/* Returns 0 to go on. */
typedef int (*tl_slot_fn)(void *context, const tl_slot_row *row);

/* Tells the slots that the database has or had, in their order.  fleet, shard: of TL_FLEET_NAME_MAX
 * + 1 bytes, get the names; "": of no fleet, and no slot is told.  TL_OK, or it could not be
 * asked. */
TL_EXPORT tl_status tl_slot_list(tl_client *client, char *fleet, char *shard, tl_slot_fn each,
                                 void *context);

/* How far the move of a slot has come. */
typedef struct tl_slot_moved {
    uint64_t customers, rows; /* of the slot; copied and compared, of all tables together */
    /* TL_BUSY, and while it waits: how many trades or decisions are in the way (100 stands for more),
     * and one of them; why: "in process", "waiting", "parked" or "proposed".  TL_REFUSED: "removed"
     * where `from` has not all that it had, and only another shard that let it go could have. */
    unsigned in_the_way;
    char cust_no[TL_CUST_MAX + 1], serial_no[TL_SERIAL_MAX + 1], op_code[TL_OP_MAX + 1], why[16];
} tl_slot_moved;

/* Told after each step: "leaving", "waiting" (again and again), "sealed", "arriving", "copied",
 * "compared", "gone", "owned".  Returns 0 to go on; else the move stops, and what was not gone yet
 * stays.
 *
 * Where an end that was restored has the slot as before it went on: "unknown" of each trade that it
 * paid or sent (*moved names it; why: "paid" or "sent") and the other end does not know, and then
 * "agree" if there were any, in_the_way of them: 0 agrees that they count for nothing there.  A
 * person has compared them with the channel by then.  NULL agrees to nothing. */
typedef int (*tl_slot_step_fn)(void *context, const char *step, const tl_slot_moved *moved);

/* Which slot moves, and what goes along. */
typedef struct tl_slot_moving {
    unsigned version; /* TL_SLOT_MOVING_VERSION */
    unsigned slot;
    const char *actor, *reason; /* mandatory; for the record */
    int64_t wait_ms;            /* for what is in process to end, and for locked rows */
    /* Business tables whose rows go along, by their column cust_no; parents before children, 64 at
     * most.  The slot's row keeps them: none, those that went along the last time.  A move that
     * has begun goes on with the same ones; a later one takes them all, and may take others. */
    const char *const *tables;
    size_t tables_count;
    tl_slot_step_fn progress; /* or NULL */
    void *context;            /* of progress */
} tl_slot_moving;

#define TL_SLOT_MOVING_VERSION 1u
#define TL_SLOT_MOVING_INIT TL_INITIAL(tl_slot_moving, TL_SLOT_MOVING_VERSION)

/*
 * Moves a slot from one shard to another: nothing begins for its customers, what was begun ends, the
 * rows are copied and compared, and the slot is handed over under the next version, with every fence
 * raised.  Until then they are told to come again (TL_OVERLOADED).  Whoever was killed calls again:
 * it goes on from what both databases show.  The rows stay at the source, where nobody can use them,
 * until they are removed (tl_slot_clean()).  Needs administrators' accounts at both.  Only these two
 * are asked: before each call the caller asks all other shards (tl_slot_list) that none owns the
 * slot under a later version, which an end that was restored does not know.
 *
 *     TL_OK            The slot is at `to`.
 *     TL_ALREADY_DONE  It was there already.
 *     TL_BUSY          Something is in process still, and wait_ms is over; *moved says what.  Or
 *                      another process moves this slot.  It is at `from`, as it was.
 *     TL_REFUSED       It cannot be moved so; the sentence says why.  A row of one of these
 *                      customers differs at `to`, or other tables go along, or the slot is not at
 *                      `from`.  It stays.
 *     TL_INVALID       A table is not there, or has no column cust_no.
 *     TL_LOST          Another process has taken the move over.
 *     TL_ASK_CHANNEL   A restore is open at one of them.  Nothing is moved.  But at `to` it may be
 *                      open where `from` let the slot go already, and has to be where `to` forgot
 *                      that it came: what it paid of it is filed when it owns the slot, and before
 *                      the restore is accepted.
 *     TL_TRY_AGAIN     A row was locked, or a deadlock undid a step, until wait_ms was over.
 *     else             Call again: where it had begun to leave it is `leaving` or `owned`, or `gone`
 *                      and not owned by anybody yet.
 */
TL_EXPORT tl_status tl_slot_move(tl_client *from, tl_client *to, const tl_slot_moving *moving,
                                 tl_slot_moved *moved);

/* Ends a move that was cut off before the source let the slot go: it is owned there again.  Of
 * `moving` only slot, actor and reason are used.  All others are asked before, as for tl_slot_move().
 * TL_OK; TL_REFUSED: it is not leaving; or the database could not be asked. */
TL_EXPORT tl_status tl_slot_take_back(tl_client *from, const tl_slot_moving *moving);

/* The other end of a move that was given up, or of one that a restore made it forget: `at` says that
 * the slot arrives there, or that it has it, while `owner` has it.  From then on `at` says that it is
 * gone to `owner`, under the owner's version, and its rows count for nothing.  `moving` as above.
 *
 * Where `at` says that it has it, `owner` must have it under a later version, a restore be open at
 * `at`, and `owner` know each trade that `at` paid or sent, or progress agree.  The acts of both tell
 * of it; progress is told "noted" when the owner's does, and "given up".
 *
 *     TL_OK        It is gone from there.
 *     TL_REFUSED   Nothing was changed; the sentence says why: `at` neither awaits nor has it, or
 *                  `owner` does not have it so, or it may be handed over still, since it is leaving
 *                  or has gone there.
 *     TL_BUSY      Somebody moves it.
 *     else         A database could not be asked.  Call again. */
TL_EXPORT tl_status tl_slot_give_up(tl_client *owner, tl_client *at, const tl_slot_moving *moving);

typedef void (*tl_slot_table_fn)(void *context, const char *table, uint64_t rows);

/* Of which slot that moved away the rows are removed. */
typedef struct tl_slot_cleaning {
    unsigned version; /* TL_SLOT_CLEANING_VERSION */
    unsigned slot;
    const char *actor, *reason; /* mandatory; for the record */
    /* Told of each table that has rows of the slot's customers, before any is removed; or NULL. */
    tl_slot_table_fn each_table;
    /* Told "counted", when nothing has been changed; "noted", before the first row goes; "removed"
     * after each transaction.  Returns 0 to go on.  NULL: goes on. */
    tl_slot_step_fn progress;
    void *context; /* of both */
} tl_slot_cleaning;

#define TL_SLOT_CLEANING_VERSION 1u
#define TL_SLOT_CLEANING_INIT TL_INITIAL(tl_slot_cleaning, TL_SLOT_CLEANING_VERSION)

/*
 * Removes what was left of a slot at a shard that it is gone from: lock rows, history, evidence,
 * decisions and closings of findings of its customers, and their rows in the business tables that
 * went along.  `owner` has to own it under the version of that hand-over or a later one: then it got
 * all of these rows.  They go in many short transactions.  Whoever was killed calls again, and the
 * rest goes.  An act at both ends tells of it.  From "noted" on nobody completes a move from this
 * shard, where the owner is restored to before it had the slot.  Needs administrators' accounts at
 * both.  *removed says how many customers and rows were counted.
 *
 *     TL_OK            Nothing of the slot is at `at` any more; no rows: nothing was there.
 *     TL_REFUSED       The slot is not gone from `at`, or `owner` does not own it, or under an
 *                      earlier version; or progress stopped it.
 *     TL_BUSY          Another process moves or cleans this slot.
 *     TL_INVALID       A table that went along is not there any more.
 *     TL_LOST          The slot comes back meanwhile, or another process cleans it.
 *     TL_ASK_CHANNEL   A restore is open at one of them.
 *     else             Call again.
 */
TL_EXPORT tl_status tl_slot_clean(tl_client *at, tl_client *owner, const tl_slot_cleaning *cleaning,
                                  tl_slot_moved *removed);

#ifdef __cplusplus
}
#endif
#endif
