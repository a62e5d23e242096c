/*
 * Takes back a slot that is leaving, and gives up one that arrives, or the older of two claims.
 *
 *   taking back       at the source: it is owned there again, under the same version
 *   an arrival        at the target, if nobody can hand it over any more: what came is no source
 *   an older claim    at an end that was restored to before it let the slot go: the other one owns it
 *                     under a later version
 *
 * Each changes the slot's row at one end, and is on record there; the end of a claim also where the
 * slot is owned.  No customer's row is written.
 */
#include "admin/slot_leave.h"
#include "admin/slot_stale.h"

#include "base/error.h"

#include <string.h>

/* --------------------------------------------------------------------- taking back -- */

static tl_status take_back(struct move *m)
{
    struct slot source;
    tl_status status = slot_begin(m, &m->from, &source);

    if (status == TL_OK && !slot_is(&source, "leaving"))
        status = error_set(TL_REFUSED, "slot %u is not leaving shard %s: it is '%s' there",
                           m->said->slot, m->from.shard, source.state);
    if (status != TL_OK)
        return status;
    text_copy(m->to.shard, sizeof m->to.shard, source.other);
    return slot_stay(m, &source);
}

tl_status tl_slot_take_back(tl_client *from, const tl_slot_moving *moving)
{
    struct move m = {.said = moving, .from = {.client = from}};
    char fleet[TL_FLEET_NAME_MAX + 1];
    tl_status status;

    error_clear();
    status = slot_check_said(&m);
    if (status == TL_OK)
        status = end_open(&m.from);
    if (status == TL_OK)
        status = end_read_names(&m.from, fleet);
    if (status == TL_OK)
        status = take_back(&m);
    slot_close_ends(&m);
    return status;
}

/* ----------------------------------------------------------------------- giving up -- */

/* What was here may be removed already, and what came is not all of it: so the row keeps a token, as
 * of one that was cleaned. */
static tl_status give_up_arrival(struct move *m, const struct slot *target)
{
    char tables[SLOT_TABLES_TEXT];
    store_slot to = {.state = "gone", .other = m->from.shard, .token = m->token};
    struct slot owner;
    tl_status status = slot_begin(m, &m->from, &owner);

    if (status == TL_OK && (!slot_is(&owner, "owned") || slot_may_come_still(m, &owner, target)))
        status = error_set(TL_REFUSED,
                           "slot %u may be handed over to shard %s still: it is '%s' at shard %s",
                           m->said->slot, m->to.shard, owner.state, m->from.shard);
    if (status == TL_OK) {
        to.version = owner.version;
        to.tables = slot_tables_text(&target->tables, tables);
        status = slot_turn(m, &m->to, target, &to);
    }
    if (status == TL_OK)
        status = slot_note(m, &m->to, "fleet move given up");
    return end_step(&m->to, status);
}

/* Nothing is locked where the slot is in use: versions only rise, so what the owner says of a later
 * one stays true. */
static tl_status ask_later_owner(struct move *m, const struct slot *stale, uint64_t *version)
{
    tl_status status = slot_ask_version(m, version);

    if (status == TL_OK && *version <= stale->version)
        status = error_set(TL_REFUSED,
                           "shard %s owns slot %u under no later version than shard %s: nobody can "
                           "tell which claim is the older one",
                           m->to.shard, m->said->slot, m->from.shard);
    return status;
}

/*
 * The end at m->from says that it has the slot, which m->to has under a later version: it was restored
 * to before it let it go.  It says so no more.  The owner's word counts once the owner has taken a
 * commit, before ours: whoever is killed between the two has changed nothing but the record.  What
 * is there is not all that the owner got, so the row keeps a token.
 */
static tl_status give_up_claim(struct move *m, const struct slot *stale)
{
    static const slot_tables none = {.count = 0};
    char tables[SLOT_TABLES_TEXT];
    store_slot to = {.state = "gone", .other = m->to.shard, .token = m->token};
    tl_status status = ask_later_owner(m, stale, &to.version);

    if (status == TL_OK)
        status = slot_check_declared(m, &m->from);
    if (status == TL_OK)
        status = slot_copy_open(&m->copy, m->from.connection, m->said->slot, &none);
    if (status == TL_OK)
        status = slot_check_sent(m, &m->from, &m->to);
    to.tables = slot_tables_text(&stale->tables, tables);
    if (status == TL_OK)
        status = slot_turn(m, &m->from, stale, &to);
    if (status == TL_OK)
        status = slot_note_claim(m, &m->from);
    if (status == TL_OK)
        status = slot_note_at_owner(m, "fleet claim given up");
    if (status == TL_OK)
        status = slot_say(m, "noted");
    status = end_step(&m->from, status);
    return status == TL_OK ? slot_say(m, "given up") : status;
}

static tl_status give_up(struct move *m)
{
    struct slot target;
    tl_status status = slot_begin(m, &m->to, &target);

    if (status == TL_OK && slot_is(&target, "arriving"))
        return give_up_arrival(m, &target);
    if (status == TL_OK && slot_has_claim(&target)) {
        const struct end stale = m->to;

        m->to = m->from;
        m->from = stale;
        return give_up_claim(m, &target);
    }
    if (status == TL_OK)
        status = error_set(TL_REFUSED, "slot %u does not arrive at shard %s: it is '%s' there",
                           m->said->slot, m->to.shard, target.state);
    return status;
}

tl_status tl_slot_give_up(tl_client *owner, tl_client *at, const tl_slot_moving *moving)
{
    struct move m = {.said = moving, .from = {.client = owner}, .to = {.client = at}};
    tl_status status;

    error_clear();
    status = slot_open_ends(&m);
    if (status == TL_OK)
        status = slot_check_fleet(&m);
    if (status == TL_OK)
        status = slot_be_alone(&m, &m.from);
    if (status == TL_OK)
        status = slot_be_alone(&m, &m.to);
    if (status == TL_OK)
        status = give_up(&m);
    slot_close_ends(&m);
    return status;
}
