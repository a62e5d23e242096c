/*
 * Compares what a stale end of a slot sent or paid with what the other end knows, before its claim
 * ends.
 *
 * An end is stale if it was restored to before it let the slot go: it says that it has a slot which
 * went on meanwhile.  Whatever it paid by that claim is known nowhere else.  So each such trade is
 * told to the caller, who stops unless a person agrees, and their number goes on record where they
 * are.  It reads at both ends, and writes that record alone.
 */
#include "admin/slot_stale.h"

#include "base/error.h"
#include "store/bind.h"

#include <stdio.h>

int slot_has_claim(const struct slot *s)
{
    return slot_is(s, "owned") || slot_is(s, "leaving");
}

int slot_is_stale(const struct slot *s, uint64_t version)
{
    return slot_has_claim(s) && s->version < version;
}

tl_status slot_check_declared(struct move *m, struct end *stale)
{
    char rule[80];

    TRY(end_read_rule(stale, rule));
    if (!stale->is_restored)
        return error_set(TL_REFUSED,
                         "shard %s would go on paying for slot %u from before it went to "
                         "another: declare a restore there first",
                         stale->shard, m->said->slot);
    return TL_OK;
}

static tl_status tell_unknown(struct move *m, const db_result *r)
{
    for (size_t row = 0; row < r->rows; row++) {
        text_copy(m->moved.cust_no, sizeof m->moved.cust_no, db_get_text(r, row, 0));
        text_copy(m->moved.serial_no, sizeof m->moved.serial_no, db_get_text(r, row, 1));
        text_copy(m->moved.op_code, sizeof m->moved.op_code, db_get_text(r, row, 2));
        text_copy(m->moved.why, sizeof m->moved.why, db_get_int(r, row, 3) != 0 ? "paid" : "sent");
        m->moved.in_the_way++;
        TRY(slot_say(m, "unknown"));
    }
    return TL_OK;
}

/* The trades from *row on, as many as one statement takes. */
static tl_status check_some(struct move *m, const struct end *other, const db_result *trades,
                            size_t *row)
{
    const size_t end = *row + SLOT_ROWS < trades->rows ? *row + SLOT_ROWS : trades->rows;
    RESULT r = DB_RESULT_INIT;

    text_buffer_clear(&m->json);
    text_buffer_append_text(&m->json, "[");
    for (size_t i = *row; i < end; i++)
        text_buffer_append_format(&m->json, "%s%s", i > *row ? "," : "", db_get_text(trades, i, 0));
    text_buffer_append_text(&m->json, "]");
    *row = end;
    if (m->json.failed)
        return error_set(TL_NO_MEMORY, "out of memory for moving a slot");
    TRY(end_status(other,
                   SQL_RUN(other->connection, &r, slot_unknown, .trades = db_text(m->json.data)),
                   "comparing what was sent"));
    return tell_unknown(m, &r);
}

/* A person may have compared them with the channel. */
static tl_status agree_to_unknown(struct move *m, const struct end *stale, const struct end *other)
{
    const tl_slot_moved *d = &m->moved;

    if (d->in_the_way == 0 || (m->said->progress != NULL && slot_say(m, "agree") == TL_OK))
        return TL_OK;
    return error_set(TL_REFUSED,
                     "%u trades that shard %s paid or sent are not known to shard %s, as trade %s "
                     "of customer %s (%s): file there what was paid, or agree to the number with "
                     "--yes %u; slot %u stays as it is",
                     d->in_the_way, stale->shard, other->shard, d->serial_no, d->cust_no,
                     d->op_code, d->in_the_way, m->said->slot);
}

tl_status slot_check_sent(struct move *m, struct end *stale, const struct end *other)
{
    RESULT trades = DB_RESULT_INIT;

    TRY(slot_read_customers(m, stale));
    m->moved.in_the_way = 0;
    for (size_t i = 0; i < m->customers.count; i += SLOT_CUSTOMERS) {
        size_t row = 0;

        TRY(slot_customers_json(&m->customers, i, &m->json));
        TRY(end_status(
            stale,
            SQL_RUN(stale->connection, &trades, slot_sends, .customers = db_text(m->json.data)),
            "reading what was sent"));
        while (row < trades.rows)
            TRY(check_some(m, other, &trades, &row));
    }
    return agree_to_unknown(m, stale, other);
}

tl_status slot_note_claim(struct move *m, struct end *stale)
{
    char more[64] = "";

    if (m->moved.in_the_way > 0)
        snprintf(more, sizeof more, ": %u trades here are not known there", m->moved.in_the_way);
    return slot_note_that(m, stale, "fleet claim given up", more);
}
