/*
 * Both ends of a slot's move: their connections and transactions, the slot's row at each, and what
 * is checked before anything is changed.  What moves a slot, gives it up or cleans up after it
 * begins here.
 */
#ifndef TL_ADMIN_SLOT_END_H
#define TL_ADMIN_SLOT_END_H

#include "admin/slot_copy.h"
#include "admin/slot_tables.h"
#include "admin/statements.h"

#include "base/text.h"
#include "db/db.h"
#include "store/act.h"

#include <tradelock/admin/fleet.h>

/* What a transaction may stand idle beyond what the other end takes for a statement. */
#define SLOT_BETWEEN_S 30
#define SLOT_ACT_SAID 240

struct slot {
    char state[16], other[TL_FLEET_NAME_MAX + 1];
    uint64_t version;
    int sealed;
    slot_tables tables, taking;
    int takes; /* `taking` is said */
    unsigned char token[STORE_SLOT_TOKEN];
    int has_token;
};

struct end {
    tl_client *client;
    db *connection;
    char shard[TL_FLEET_NAME_MAX + 1];
    int open;        /* a transaction */
    int is_restored; /* a restore is open */
};

struct move {
    const tl_slot_moving *said;
    struct end from, to;
    unsigned char token[STORE_SLOT_TOKEN];
    slot_tables named, tables;   /* by the caller; that go along */
    char list[SLOT_TABLES_TEXT]; /* the latter, as a row keeps them */
    slot_copy copy;
    slot_customers customers;
    struct text_buffer json;
    tl_slot_moved moved;
    int64_t deadline_ms; /* of waiting */
    uint64_t act_no;     /* of a cleaning */
};

/* On a connection of its own, if the schema there is one that we know. */
tl_status end_open(struct end *at);
/* With the name of the shard before the sentence, once it is known. */
tl_status end_status(const struct end *at, db_answer answer, const char *doing);
void end_undo(struct end *at);
/* Ends the transaction: commits if all went well. */
tl_status end_step(struct end *at, tl_status status);
/* Of the fleet, "" for none, and of the shard, which the end keeps. */
tl_status end_read_names(struct end *at, char fleet[TL_FLEET_NAME_MAX + 1]);
/* And whether a restore is open, which the end keeps. */
tl_status end_read_rule(struct end *at, char rule[80]);
tl_status end_refuse_restored(const struct end *at);

/* TL_INVALID: a field of what the caller said is not as it must be. */
tl_status slot_check_said(struct move *m);
/* Makes a token, checks what was said, and opens both ends. */
tl_status slot_open_ends(struct move *m);
/* Undoes what was not committed, and frees all that the move had. */
void slot_close_ends(struct move *m);
/* A move whose ends are closed with the block that has it. */
#define MOVING __attribute__((cleanup(slot_close_ends))) struct move
/* TL_REFUSED: the two ends are not two shards of one fleet. */
tl_status slot_check_fleet(struct move *m);
tl_status slot_check_rules(struct move *m);
/* Until the end is closed; TL_BUSY: another process moves the slot. */
tl_status slot_be_alone(struct move *m, struct end *at);

/* Begins a transaction that has the slot's row locked, and reads it. */
tl_status slot_begin(struct move *m, struct end *at, struct slot *to);
/* In a transaction.  A slot without a row is "none". */
tl_status slot_read(struct move *m, struct end *at, struct slot *to);
/* The slot as this mover left it, locked; else TL_LOST. */
tl_status slot_lock_own(struct move *m, struct end *at, const char *state, struct slot *found);
int slot_is(const struct slot *s, const char *state);
tl_status slot_lost(const struct move *m);
/* In a transaction that has read the slot. */
tl_status slot_turn(struct move *m, struct end *at, const struct slot *was, const store_slot *to);
/*
 * Whether the move of which `target` is the end may still be handed over, though `owner` has the slot
 * now.  That makes the version next to the arriving one, and only the shard it arrives from makes
 * it.  So it cannot where the slot is owned under a later version, for then that one was given to
 * another shard; nor where the shard it arrives from itself has it under that version, for it has not
 * let go, and whoever holds the row's lock here keeps a mover from it.
 */
int slot_may_come_still(const struct move *m, const struct slot *owner, const struct slot *target);

tl_status slot_read_customers(struct move *m, struct end *at);

/* Many short transactions at one end, each with the slot's row locked, as this mover left it in that
 * state.  `done` is said after each that was committed; NULL: nothing is. */
struct slot_run {
    struct move *move;
    struct end *at;
    const char *state, *done;
};
/* The context is the run. */
tl_status slot_run_begin(void *context);
tl_status slot_run_end(void *context, tl_status status);
slot_writing slot_run_writing(struct slot_run *run);

/* Tells the caller what is done; TL_REFUSED: he stops it. */
tl_status slot_say(struct move *m, const char *done);
store_act slot_act(const struct move *m, const char *what, const char *more,
                   char said[SLOT_ACT_SAID]);
/* On record at the end that it is about, in the transaction that does it; `more` is said, too. */
tl_status slot_note_that(struct move *m, struct end *at, const char *what, const char *more);
tl_status slot_note(struct move *m, struct end *at, const char *what);

/* Nothing is locked where the slot is in use. */
tl_status slot_ask_version(struct move *m, uint64_t *version);
/* What the owner said counts once it has taken a commit after it: neither a replica does, nor a
 * server that was cut off where replicas must acknowledge. */
tl_status slot_note_at_owner(struct move *m, const char *what);

/* The token of a slot as a value; NULL: none. */
db_value slot_token_value(const unsigned char *token);

#endif
