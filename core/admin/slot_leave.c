/*
 * Has a slot leave its shard, and seals it there once nothing of it is in process.
 *
 * It writes the slot's row at the source, takes repeatable trades from the dead, and waits for what
 * was begun.  The slot is owned again if the move does not come about.  Nothing is written at the
 * target.
 */
#include "admin/slot_leave.h"

#include "admin/slot_stale.h"
#include "base/clock.h"
#include "base/error.h"
#include "client/client.h"
#include "store/bind.h"

#include <string.h>

#define LOOK_MS 200

/* ------------------------------------------------------------------------- leaving -- */

tl_status slot_may_leave(struct move *m, const struct slot *source, const struct slot *target)
{
    const unsigned slot = m->said->slot;

    if (slot_is(target, "owned") || slot_is(target, "leaving"))
        return error_set(TL_REFUSED,
                         "slot %u is owned by both shards: end the older claim first, with "
                         "`tradelock fleet move %u --back`",
                         slot, slot);
    if (slot_is(target, "arriving") && slot_may_come_still(m, source, target))
        return error_set(TL_REFUSED, "slot %u arrives at shard %s from shard %s", slot, m->to.shard,
                         target->other);
    if (slot_is(source, "leaving") && strcmp(source->other, m->to.shard) != 0)
        return error_set(TL_REFUSED,
                         "slot %u is on its way to shard %s: finish that move, or take the slot "
                         "back",
                         slot, source->other);
    if (target->version > source->version)
        return error_set(TL_REFUSED, "shard %s had slot %u under a later version than shard %s",
                         m->to.shard, slot, m->from.shard);
    if (!slot_is(source, "owned") && !slot_is(source, "leaving"))
        return error_set(TL_REFUSED, "slot %u is not at shard %s: it is '%s' there", slot,
                         m->from.shard, source->state);
    return TL_OK;
}

static store_slot leaving(const struct move *m, const struct slot *source, int sealed,
                          char before[SLOT_TABLES_TEXT])
{
    return (store_slot){.state = "leaving",
                        .other = m->to.shard,
                        .version = source->version,
                        .sealed = sealed,
                        .tables = slot_tables_text(&source->tables, before),
                        .taking = m->list,
                        .token = m->token};
}

tl_status slot_leave(struct move *m, struct slot *source)
{
    char before[SLOT_TABLES_TEXT];
    const store_slot to = leaving(m, source, slot_is(source, "leaving") && source->sealed, before);
    tl_status status = slot_turn(m, &m->from, source, &to);

    if (status == TL_OK && slot_is(source, "owned"))
        status = slot_note(m, &m->from, "fleet move");
    TRY(end_step(&m->from, status));
    return slot_say(m, "leaving");
}

/* --------------------------------------------------------------------- and staying -- */

tl_status slot_stay(struct move *m, const struct slot *source)
{
    char before[SLOT_TABLES_TEXT];
    const store_slot to = {.state = "owned",
                           .version = source->version,
                           .tables = slot_tables_text(&source->tables, before)};
    tl_status status = slot_turn(m, &m->from, source, &to);

    if (status == TL_OK)
        status = slot_note(m, &m->from, "fleet move given up");
    return end_step(&m->from, status);
}

static tl_status give_back(struct move *m)
{
    struct slot source;

    TRY(slot_lock_own(m, &m->from, "leaving", &source));
    return slot_stay(m, &source);
}

void slot_put_back(struct move *m)
{
    const unsigned idle_s = m->from.client->config.idle_transaction_s + SLOT_BETWEEN_S;
    const int64_t deadline_ms = clock_deadline(INT64_C(1000) * idle_s);
    char sentence[ERROR_MAX];
    tl_status status;

    end_undo(&m->from);
    end_undo(&m->to);
    text_copy(sentence, sizeof sentence, tl_error_message());
    while ((status = give_back(m)) == TL_TRY_AGAIN && clock_left_ms(deadline_ms) > 0)
        clock_sleep_until_ms(clock_deadline(LOOK_MS));
    if (status == TL_OK || status == TL_LOST)
        (void)error_set(TL_BUSY, "%s", sentence);
    else
        (void)error_set(TL_BUSY, "%s; slot %u may be leaving still: go on, or take it back",
                        sentence, m->said->slot);
}

/* -------------------------------------------------------------------------- sealed -- */

static void take_blocker(struct move *m, const db_result *r)
{
    m->moved.in_the_way = (unsigned)r->rows;
    text_copy(m->moved.cust_no, sizeof m->moved.cust_no, db_get_text(r, 0, 0));
    text_copy(m->moved.serial_no, sizeof m->moved.serial_no, db_get_text(r, 0, 1));
    text_copy(m->moved.op_code, sizeof m->moved.op_code, db_get_text(r, 0, 2));
    text_copy(m->moved.why, sizeof m->moved.why, db_get_text(r, 0, 3));
}

static tl_status look(struct move *m, int *blocked)
{
    RESULT r = DB_RESULT_INIT;

    *blocked = 0;
    m->moved.in_the_way = 0;
    for (size_t i = 0; i < m->customers.count && !*blocked; i += SLOT_CUSTOMERS) {
        TRY(slot_customers_json(&m->customers, i, &m->json));
        TRY(end_status(
            &m->from,
            SQL_RUN(m->from.connection, &r, slot_blockers, .customers = db_text(m->json.data)),
            "looking for what is in process"));
        *blocked = r.rows > 0;
        if (*blocked)
            take_blocker(m, &r);
    }
    return TL_OK;
}

static tl_status fence_out(struct move *m)
{
    for (size_t i = 0; i < m->customers.count; i++)
        TRY(end_status(&m->from,
                       SQL_RUN(m->from.connection, NULL, slot_fence_out,
                               .cust_no = db_text(m->customers.of[i].name),
                               .thread_no = db_text(tl_thread_uuid()),
                               .actor = db_text(m->said->actor)),
                       "taking repeatable trades from the dead"));
    return TL_OK;
}

/* Under the exclusive lock nobody begins, and whoever was let through has ended. */
static tl_status try_to_seal(struct move *m, int *blocked)
{
    char before[SLOT_TABLES_TEXT];
    struct slot source;
    tl_status status = TL_OK;

    *blocked = 0;
    TRY(slot_lock_own(m, &m->from, "leaving", &source));
    if (!source.sealed) {
        const store_slot to = leaving(m, &source, 1, before);

        status = look(m, blocked);
        if (status == TL_OK && *blocked) {
            end_undo(&m->from);
            return TL_OK;
        }
        if (status == TL_OK)
            status = fence_out(m);
        if (status == TL_OK)
            status = slot_turn(m, &m->from, &source, &to);
    }
    return end_step(&m->from, status);
}

static tl_status in_the_way(const struct move *m)
{
    const tl_slot_moved *d = &m->moved;

    if (d->in_the_way == 0)
        return error_set(TL_BUSY,
                         "slot %u: another transaction has its row locked for longer than it was "
                         "waited for; it stays at shard %s",
                         m->said->slot, m->from.shard);
    return error_set(TL_BUSY,
                     "slot %u is not empty: %u%s trades or decisions are in the way, as trade %s "
                     "of customer %s (%s): %s; it stays at shard %s",
                     m->said->slot, d->in_the_way, d->in_the_way >= 100 ? " or more" : "",
                     d->serial_no, d->cust_no, d->op_code, d->why, m->from.shard);
}

tl_status slot_seal(struct move *m)
{
    const int64_t deadline_ms = m->deadline_ms;
    int blocked = 0;
    tl_status status = slot_read_customers(m, &m->from);

    while (status == TL_OK) {
        status = look(m, &blocked);
        if (status == TL_OK && !blocked)
            status = try_to_seal(m, &blocked);
        /* As the transaction of a claim whose answer is lost, which the server ends in time. */
        if (status == TL_TRY_AGAIN) {
            blocked = 1;
            status = TL_OK;
        }
        if (status != TL_OK || !blocked)
            break;
        if (clock_left_ms(deadline_ms) == 0)
            return in_the_way(m);
        status = slot_say(m, "waiting");
        clock_sleep_until_ms(clock_deadline(LOOK_MS));
    }
    /* Nobody can come any more, but some may have since they were read. */
    if (status == TL_OK)
        status = slot_read_customers(m, &m->from);
    m->moved.customers = m->customers.count;
    TRY(status);
    return slot_say(m, "sealed");
}

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

/* --------------------------------------------------------------------- taking back -- */

static tl_status take_back(struct move *m)
{
    struct slot source;

    TRY(slot_begin(m, &m->from, &source));
    if (!slot_is(&source, "leaving"))
        return error_set(TL_REFUSED, "slot %u is not leaving shard %s: it is '%s' there",
                         m->said->slot, m->from.shard, source.state);
    text_copy(m->to.shard, sizeof m->to.shard, source.other);
    return slot_stay(m, &source);
}

tl_status tl_slot_take_back(tl_client *from, const tl_slot_moving *moving)
{
    MOVING m = {.said = moving, .from = {.client = from}};
    char fleet[TL_FLEET_NAME_MAX + 1];

    error_clear();
    TRY(slot_check_said(&m));
    TRY(end_open(&m.from));
    TRY(end_read_names(&m.from, fleet));
    return take_back(&m);
}

/* ----------------------------------------------------------------------- giving up -- */

/* In transactions at both ends.  What was here may be removed already, and what came is not all of it:
 * so the row keeps a token, as of one that was cleaned. */
static tl_status give_up_arrival(struct move *m, const struct slot *target)
{
    char tables[SLOT_TABLES_TEXT];
    store_slot to = {.state = "gone", .other = m->from.shard, .token = m->token};
    struct slot owner;

    TRY(slot_begin(m, &m->from, &owner));
    if (!slot_is(&owner, "owned") || slot_may_come_still(m, &owner, target))
        return error_set(TL_REFUSED,
                         "slot %u may be handed over to shard %s still: it is '%s' at shard %s",
                         m->said->slot, m->to.shard, owner.state, m->from.shard);
    to.version = owner.version;
    to.tables = slot_tables_text(&target->tables, tables);
    TRY(slot_turn(m, &m->to, target, &to));
    return slot_note(m, &m->to, "fleet move given up");
}

/* Nothing is locked where the slot is in use: versions only rise, so what the owner says of a later
 * one stays true. */
static tl_status ask_later_owner(struct move *m, const struct slot *stale, uint64_t *version)
{
    TRY(slot_ask_version(m, version));
    if (*version <= stale->version)
        return error_set(TL_REFUSED,
                         "shard %s owns slot %u under no later version than shard %s: nobody can "
                         "tell which claim is the older one",
                         m->to.shard, m->said->slot, m->from.shard);
    return TL_OK;
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

    TRY(ask_later_owner(m, stale, &to.version));
    TRY(slot_check_declared(m, &m->from));
    TRY(slot_copy_open(&m->copy, m->from.connection, m->said->slot, &none));
    TRY(slot_check_sent(m, &m->from, &m->to));
    to.tables = slot_tables_text(&stale->tables, tables);
    TRY(slot_turn(m, &m->from, stale, &to));
    TRY(slot_note_claim(m, &m->from));
    TRY(slot_note_at_owner(m, "fleet claim given up"));
    return slot_say(m, "noted");
}

static tl_status give_up(struct move *m)
{
    struct slot target;

    TRY(slot_begin(m, &m->to, &target));
    if (slot_is(&target, "arriving"))
        return end_step(&m->to, give_up_arrival(m, &target));
    if (slot_has_claim(&target)) {
        const struct end stale = m->to;

        m->to = m->from;
        m->from = stale;
        TRY(end_step(&m->from, give_up_claim(m, &target)));
        return slot_say(m, "given up");
    }
    return error_set(TL_REFUSED, "slot %u does not arrive at shard %s: it is '%s' there",
                     m->said->slot, m->to.shard, target.state);
}

tl_status tl_slot_give_up(tl_client *owner, tl_client *at, const tl_slot_moving *moving)
{
    MOVING m = {.said = moving, .from = {.client = owner}, .to = {.client = at}};

    error_clear();
    TRY(slot_open_ends(&m));
    TRY(slot_check_fleet(&m));
    TRY(slot_be_alone(&m, &m.from));
    TRY(slot_be_alone(&m, &m.to));
    return give_up(&m);
}
