/*
 * Has a slot arrive at its target: removes what is left of it there, copies the rows of its
 * customers, and compares them.
 *
 * Only the mover writes there, in short transactions that each want the slot arriving by his token.
 * At the source it only reads; for the last comparison it locks rows of business tables in share
 * mode.
 */
#include "admin/slot_arrive.h"

#include "admin/slot_stale.h"

#include "base/error.h"
#include "store/bind.h"

#include <stdio.h>

/* Each step in a transaction of its own, with the slot's row locked. */
static struct slot_run run_of(struct move *m)
{
    return (struct slot_run){.move = m, .at = &m->to, .state = "arriving"};
}

static tl_status wipe(struct move *m)
{
    struct slot_run run = run_of(m);
    const slot_writing writing = slot_run_writing(&run);
    tl_status status = TL_OK;

    for (size_t i = 0; i < m->customers.count && status == TL_OK; i += SLOT_CUSTOMERS)
        status = slot_copy_wipe(&m->copy, m->to.connection, &m->customers, i, &writing);
    return status;
}

static tl_status copy(struct move *m)
{
    struct slot_run run = run_of(m);
    const slot_writing writing = slot_run_writing(&run);
    tl_status status = TL_OK;

    for (size_t i = 0; i < m->customers.count && status == TL_OK; i += SLOT_CUSTOMERS)
        status = slot_copy_page(&m->copy, m->from.connection, m->to.connection, &m->customers, i,
                                &writing);
    return status;
}

/* ------------------------------------------------------------------------ arriving -- */

/* What is there of a slot that never was there, or of a table that did not go along when it was,
 * must be the source's own rows. */
static tl_status check_leftovers(struct move *m)
{
    tl_status status = slot_read_customers(m, &m->to);

    for (size_t i = 0; i < m->customers.count && status == TL_OK; i += SLOT_CUSTOMERS)
        status = slot_copy_compare(&m->copy, m->from.connection, m->to.connection, &m->customers, i,
                                   SLOT_STRANGE);
    return status;
}

/* What was found here of the slot before it came, and closed, goes with the rows it was about.  It is
 * on record in the transaction after which it may go.  After check_leftovers(). */
static tl_status note_closings(struct move *m)
{
    uint64_t count = 0;
    char more[64];
    tl_status status = TL_OK;

    for (size_t i = 0; i < m->customers.count && status == TL_OK; i += SLOT_CUSTOMERS)
        status = slot_copy_closings(&m->copy, m->to.connection, &m->customers, i, &count);
    snprintf(more, sizeof more, ": %llu closings of findings here are removed",
             (unsigned long long)count);
    return status == TL_OK && count > 0 ? slot_note_that(m, &m->to, "fleet move", more) : status;
}

tl_status slot_arrive(struct move *m, const struct slot *source, int is_completing)
{
    const store_slot to = {.state = "arriving",
                           .other = m->from.shard,
                           .version = source->version,
                           .tables = m->list,
                           .token = m->token};
    struct slot target = {.state = "none"};
    int was_stale;
    tl_status status = slot_begin(m, &m->to, &target);

    was_stale = is_completing && slot_is_stale(&target, source->version + 1);
    if (status == TL_OK && was_stale)
        status = slot_check_declared(m, &m->to);
    if (status == TL_OK && was_stale)
        status = slot_check_sent(m, &m->to, &m->from);
    if (status == TL_OK && was_stale)
        status = slot_note_claim(m, &m->to);
    /* A stale target had the slot, and let its rows go with these tables later on. */
    slot_copy_estrange(&m->copy,
                       was_stale ? &m->tables : (slot_is(&target, "none") ? NULL : &target.tables));
    if (status == TL_OK)
        status = check_leftovers(m);
    if (status == TL_OK && slot_is(&target, "none"))
        status = note_closings(m);
    if (status == TL_OK && slot_is(&target, "none"))
        status =
            end_status(&m->to,
                       SQL_RUN(m->to.connection, NULL, slot_make, .slot = db_uint(m->said->slot),
                               .version = db_uint(to.version), .other = db_text(to.other),
                               .tables = db_text(to.tables), .token = slot_token_value(&to),
                               .reason = db_text(m->said->reason)),
                       "making the slot");
    else if (status == TL_OK &&
             (slot_is(&target, "gone") || slot_is(&target, "arriving") || was_stale))
        status = slot_turn(m, &m->to, &target, &to);
    else if (status == TL_OK)
        status = slot_lost(m);
    status = end_step(&m->to, status);
    if (status == TL_OK)
        status = end_status(&m->to,
                            SQL_RUN(m->to.connection, NULL, slot_mover,
                                    .token = db_bytes(m->token, STORE_SLOT_TOKEN)),
                            "copying");
    return status == TL_OK ? slot_say(m, "arriving") : status;
}

/* -------------------------------------------------------------------------- copied -- */

tl_status slot_arrive_copy(struct move *m)
{
    tl_status status = slot_read_customers(m, &m->to);

    if (status == TL_OK)
        status = wipe(m);
    if (status == TL_OK)
        status = slot_read_customers(m, &m->from);
    m->copy.rows = 0;
    if (status == TL_OK)
        status = copy(m);
    m->moved.customers = m->customers.count;
    m->moved.rows = m->copy.rows;
    return status == TL_OK ? slot_say(m, "copied") : status;
}

tl_status slot_arrive_compare(struct move *m)
{
    const uint64_t copied = m->moved.rows;
    tl_status status = slot_read_customers(m, &m->from);

    m->copy.rows = 0;
    for (size_t i = 0; i < m->customers.count && status == TL_OK; i += SLOT_CUSTOMERS)
        status = slot_copy_compare(&m->copy, m->from.connection, m->to.connection, &m->customers, i,
                                   SLOT_ALL_THERE);
    if (status == TL_OK && m->copy.rows != copied)
        status = error_set(TL_REFUSED,
                           "%llu rows were copied and %llu are there; nothing was handed over",
                           (unsigned long long)copied, (unsigned long long)m->copy.rows);
    return status;
}

/* This transaction stands idle while the other end reads, which it may for as long as one statement
 * takes (stay_idle() of slot_end.c): so it is woken after each. */
static tl_status wake_target(void *context)
{
    struct move *m = context;
    struct slot target;

    return slot_read(m, &m->to, &target);
}

tl_status slot_arrive_compare_others(struct move *m)
{
    slot_customers all = {.count = 0};
    tl_status status =
        slot_customers_read_others(&all, &m->copy, m->from.connection, wake_target, m);

    for (size_t i = 0; i < all.count && status == TL_OK; i += SLOT_CUSTOMERS)
        status = slot_copy_compare(&m->copy, m->from.connection, m->to.connection, &all, i,
                                   SLOT_ALL_THERE | SLOT_LOCKS | SLOT_OTHERS);
    slot_customers_free(&all);
    return status == TL_OK ? slot_say(m, "compared") : status;
}

/* -------------------------------------------------------------------- what is lost -- */

/* Whether the target has all rows that the source has; the source may have purged some since. */
static tl_status compare_target(struct move *m, int *has_all)
{
    tl_status status = slot_read_customers(m, &m->from);

    for (size_t i = 0; i < m->customers.count && status == TL_OK; i += SLOT_CUSTOMERS)
        status =
            slot_copy_compare(&m->copy, m->to.connection, m->from.connection, &m->customers, i, 0);
    *has_all = status == TL_OK;
    return status == TL_REFUSED ? TL_OK : status;
}

tl_status slot_arrive_copy_lost(struct move *m)
{
    int has_all = 0;
    tl_status status = compare_target(m, &has_all);

    if (status != TL_OK || has_all)
        return status;
    status = slot_arrive_copy(m);
    if (status == TL_OK)
        status = compare_target(m, &has_all);
    return status == TL_OK && !has_all
               ? error_set(TL_REFUSED, "rows of slot %u do not arrive at shard %s", m->said->slot,
                           m->to.shard)
               : status;
}

/* -------------------------------------------------------------------------- fences -- */

tl_status slot_arrive_raise(struct move *m)
{
    struct slot_run run = run_of(m);
    tl_status status = TL_OK;

    for (size_t i = 0; i < m->customers.count && status == TL_OK; i++) {
        status = slot_run_begin(&run);
        if (status == TL_OK)
            status =
                slot_run_end(&run, end_status(&m->to,
                                              SQL_RUN(m->to.connection, NULL, slot_raise,
                                                      .cust_no = db_text(m->customers.of[i].name),
                                                      .thread_no = db_text(tl_thread_uuid()),
                                                      .actor = db_text(m->said->actor)),
                                              "raising the fences"));
    }
    return status;
}
