/*
 * Has a slot leave its shard, and seals it there once nothing of it is in process.
 *
 * It writes the slot's row at the source, takes repeatable trades from the dead, and waits for what
 * was begun.  The slot is owned again if the move does not come about.  Nothing is written at the
 * target.
 */
#include "admin/slot_leave.h"

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
    status = end_step(&m->from, status);
    return status == TL_OK ? slot_say(m, "leaving") : status;
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
    const tl_status status = slot_lock_own(m, &m->from, "leaving", &source);

    return status == TL_OK ? slot_stay(m, &source) : status;
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
    db_result r = DB_RESULT_INIT;
    tl_status status = TL_OK;

    *blocked = 0;
    m->moved.in_the_way = 0;
    for (size_t i = 0; i < m->customers.count && status == TL_OK && !*blocked;
         i += SLOT_CUSTOMERS) {
        status = slot_customers_json(&m->customers, i, &m->json);
        if (status == TL_OK)
            status = end_status(
                &m->from,
                SQL_RUN(m->from.connection, &r, slot_blockers, .customers = db_text(m->json.data)),
                "looking for what is in process");
        *blocked = status == TL_OK && r.rows > 0;
        if (*blocked)
            take_blocker(m, &r);
    }
    db_result_free(&r);
    return status;
}

static tl_status fence_out(struct move *m)
{
    tl_status status = TL_OK;

    for (size_t i = 0; i < m->customers.count && status == TL_OK; i++)
        status = end_status(&m->from,
                            SQL_RUN(m->from.connection, NULL, slot_fence_out,
                                    .cust_no = db_text(m->customers.of[i].name),
                                    .thread_no = db_text(tl_thread_uuid()),
                                    .actor = db_text(m->said->actor)),
                            "taking repeatable trades from the dead");
    return status;
}

/* Under the exclusive lock nobody begins, and whoever was let through has ended. */
static tl_status try_to_seal(struct move *m, int *blocked)
{
    char before[SLOT_TABLES_TEXT];
    struct slot source;
    tl_status status = slot_lock_own(m, &m->from, "leaving", &source);

    *blocked = 0;
    if (status != TL_OK)
        return status;
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
    return status == TL_OK ? slot_say(m, "sealed") : status;
}
