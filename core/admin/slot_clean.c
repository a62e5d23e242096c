/*
 * Removes what is left of a slot that is gone.  The owner got all of it before it owned the slot
 * under the version of the hand-over, and each later owner from the one before.  So whoever owns it
 * under that version or a later one has had these rows.  Who went back in time says an earlier one.
 *
 * The slot's row keeps the token of whoever cleans: before the first row goes, and for good, so that
 * nobody completes a move from what is not all there.  A move that brings the slot back writes its
 * own, and the cleaner's next transaction does nothing more.
 */
#include "admin/act.h"
#include "admin/purge.h"
#include "admin/slot_end.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>

/* --------------------------------------------------------------------- who owns it -- */

static tl_status read_left(struct move *m, struct slot *left)
{
    TRY(slot_begin(m, &m->from, left));
    if (!slot_is(left, "gone"))
        return error_set(TL_REFUSED, "slot %u is not gone from shard %s: it is '%s' there",
                         m->said->slot, m->from.shard, left->state);
    return TL_OK;
}

static tl_status ask_owner(struct move *m, const struct slot *left)
{
    uint64_t version = 0;

    TRY(slot_ask_version(m, &version));
    if (version < left->version)
        return error_set(TL_REFUSED,
                         "shard %s owns slot %u under an earlier version than shard %s let it go "
                         "under, as after a restore: what is left of it stays",
                         m->to.shard, m->said->slot, m->from.shard);
    return TL_OK;
}

/* ------------------------------------------------------------------------ removing -- */

/* In a transaction where the slot is gone from. */
static tl_status begin_cleaning(struct move *m, const struct slot *seen)
{
    char said[SLOT_ACT_SAID], tables[SLOT_TABLES_TEXT];
    const store_act act = slot_act(m, "fleet clean", "", said);
    store_slot to = {.state = "gone", .token = m->token};
    struct slot left;

    TRY(read_left(m, &left));
    if (left.version != seen->version)
        return slot_lost(m);
    to.other = left.other;
    to.version = left.version;
    to.tables = slot_tables_text(&left.tables, tables);
    TRY(slot_turn(m, &m->from, &left, &to));
    TRY(act_begin(m->from.connection, &act, 0, &m->act_no));
    return slot_note_at_owner(m, "fleet clean");
}

/* The shard serves other customers meanwhile, whose locks may be met. */
static tl_status remove_page(struct move *m, size_t first)
{
    struct slot_run run = {.move = m, .at = &m->from, .state = "gone", .done = "removed"};
    const slot_writing writing = slot_run_writing(&run);
    unsigned repeats = 0;
    tl_status status;

    do
        status = slot_copy_wipe(&m->copy, m->from.connection, &m->customers, first, &writing);
    while (purge_may_repeat(status, &repeats));
    return status;
}

static tl_status remove_left(struct move *m)
{
    char counts[64];

    for (size_t i = 0; i < m->customers.count; i += SLOT_CUSTOMERS)
        TRY(remove_page(m, i));
    snprintf(counts, sizeof counts, "customers=%" PRIu64 " rows=%" PRIu64, m->moved.customers,
             m->moved.rows);
    return act_end(m->from.connection, m->act_no, counts);
}

/* ----------------------------------------------------------------------- all of it -- */

static tl_status count_left(struct move *m, const tl_slot_cleaning *cleaning)
{
    TRY(slot_read_customers(m, &m->from));
    TRY(slot_copy_count(&m->copy, m->from.connection, &m->customers));
    m->moved.customers = m->customers.count;
    m->moved.rows = m->copy.rows;
    if (cleaning->each_table != NULL)
        slot_copy_tell(&m->copy, cleaning->each_table, cleaning->context);
    return slot_say(m, "counted");
}

static tl_status clean(struct move *m, const tl_slot_cleaning *cleaning)
{
    struct slot left;
    tl_status status;

    TRY(slot_check_fleet(m));
    TRY(slot_check_rules(m));
    TRY(slot_be_alone(m, &m->from));
    status = read_left(m, &left);
    end_undo(&m->from);
    TRY(status);
    TRY(ask_owner(m, &left));
    TRY(slot_copy_open(&m->copy, m->from.connection, m->said->slot, &left.tables));
    TRY(count_left(m, cleaning));
    if (m->moved.rows == 0)
        return TL_OK;
    /* Whoever agreed to the count may have taken his time. */
    TRY(ask_owner(m, &left));
    TRY(end_step(&m->from, begin_cleaning(m, &left)));
    TRY(slot_say(m, "noted"));
    return remove_left(m);
}

static tl_status take_cleaning(tl_slot_moving *to, const tl_slot_cleaning *said)
{
    if (said == NULL || said->version != TL_SLOT_CLEANING_VERSION)
        return error_set(TL_INVALID, "cleaning is NULL or its version is not set");
    *to = (tl_slot_moving){.version = TL_SLOT_MOVING_VERSION,
                           .slot = said->slot,
                           .actor = said->actor,
                           .reason = said->reason,
                           .progress = said->progress,
                           .context = said->context};
    return TL_OK;
}

tl_status tl_slot_clean(tl_client *at, tl_client *owner, const tl_slot_cleaning *cleaning,
                        tl_slot_moved *removed)
{
    tl_slot_moving moving;
    struct move m = {.said = &moving, .from = {.client = at}, .to = {.client = owner}};
    tl_status status;

    error_clear();
    status = take_cleaning(&moving, cleaning);
    if (status == TL_OK)
        status = slot_open_ends(&m);
    if (status == TL_OK)
        status = clean(&m, cleaning);
    slot_close_ends(&m);
    if (removed != NULL)
        *removed = m.moved;
    return status;
}
