/*
 * Moves a slot with all that its customers have from one shard to another.
 *
 *   leaving   at the source: nothing begins any more, and what was begun ends
 *   sealed    at the source: nothing is in process, and nothing of it changes any more
 *   arriving  at the target: only the mover writes there
 *   copied    and compared, row by row
 *   gone      at the source, under the next version.  From here on it is the target's
 *   owned     at the target, under that version, every fence raised
 *
 * Each is a commit, so the same call goes on from what both databases show, whoever died in between:
 * until "gone" it copies everything anew, from there on it only completes the target.  Between the
 * last two nobody owns the slot, which is safe: both refuse.  The target may lose commits in between,
 * as in a restore, and the source has all rows still: so they are compared before the target owns
 * the slot, and copied anew if one is missing.  It may also go back in time after it owned the slot,
 * and paid: then it comes to own it while that restore is open, and what it paid is filed before it
 * is accepted.
 *
 * What could go wrong, and why it does not:
 *   an ask commits after the slot was seen empty    each ask has the slot's row locked in share mode
 *                                                   until it ends, and the seal locks it exclusively
 *                                                   before it looks
 *   two movers, or one that was stopped for an      each begins with a new token at both ends; each
 *   hour and goes on                                step, and each row that is copied, wants its own
 *   the target is taken over by another mover       the target's row is locked when the source
 *   between the comparison and "gone"               becomes "gone"; from there on each step wants
 *                                                   its mover's token, and compares before
 *   an answer to a commit is lost                   the next call reads what became of it
 *   a table that the caller forgot to name          the slot's row names those that went along;
 *                                                   one that never did is never taken for a copy
 *   the rows that were left are removed, and the  a gone slot keeps the token of whoever removed
 *   target is restored to before it had them      them, or gave up what came in part: it is no
 *                                                   source any more
 *   an end is restored to when it had the slot,   it is ended by the owner's word (slot_give_up.c),
 *   which went on meanwhile                       or made the target once more: in both cases only
 *                                                 once the other end knows whatever it sent or paid
 * Rows of business tables are nobody's but the service's: they are locked in share mode when they
 * are compared for the last time, so no change is lost; a row that is new by then shows as a
 * difference, one that comes later stays behind.  So a service writes a customer's rows only in the
 * transactions of his trades, or stops for the time of a move.
 */
#include "admin/slot_end.h"
#include "admin/slot_leave.h"
#include "admin/slot_stale.h"
#include "base/clock.h"
#include "base/error.h"
#include "store/bind.h"

#include <stdio.h>
#include <string.h>

/*
 * Has a slot arrive at its target: removes what is left of it there, copies the rows of its
 * customers, and compares them.
 *
 * Only the mover writes there, in short transactions that each want the slot arriving by his token.
 * At the source it only reads; for the last comparison it locks rows of business tables in share
 * mode.
 */

/* Each step in a transaction of its own, with the slot's row locked. */
static struct slot_run run_of(struct move *m)
{
    return (struct slot_run){.move = m, .at = &m->to, .state = "arriving"};
}

static tl_status wipe(struct move *m)
{
    struct slot_run run = run_of(m);
    const slot_writing writing = slot_run_writing(&run);

    for (size_t i = 0; i < m->customers.count; i += SLOT_CUSTOMERS)
        TRY(slot_copy_wipe(&m->copy, m->to.connection, &m->customers, i, &writing));
    return TL_OK;
}

static tl_status copy(struct move *m)
{
    struct slot_run run = run_of(m);
    const slot_writing writing = slot_run_writing(&run);

    for (size_t i = 0; i < m->customers.count; i += SLOT_CUSTOMERS)
        TRY(slot_copy_page(&m->copy, m->from.connection, m->to.connection, &m->customers, i,
                           &writing));
    return TL_OK;
}

/* ------------------------------------------------------------------------ arriving -- */

/* What is there of a slot that never was there, or of a table that did not go along when it was,
 * must be the source's own rows. */
static tl_status check_leftovers(struct move *m)
{
    TRY(slot_read_customers(m, &m->to));
    for (size_t i = 0; i < m->customers.count; i += SLOT_CUSTOMERS)
        TRY(slot_copy_compare(&m->copy, m->from.connection, m->to.connection, &m->customers, i,
                              SLOT_STRANGE));
    return TL_OK;
}

/* What was found here of the slot before it came, and closed, goes with the rows it was about.  It is
 * on record in the transaction after which it may go.  After check_leftovers(). */
static tl_status note_closings(struct move *m)
{
    uint64_t count = 0;
    char more[64];

    for (size_t i = 0; i < m->customers.count; i += SLOT_CUSTOMERS)
        TRY(slot_copy_closings(&m->copy, m->to.connection, &m->customers, i, &count));
    snprintf(more, sizeof more, ": %llu closings of findings here are removed",
             (unsigned long long)count);
    return count > 0 ? slot_note_that(m, &m->to, "fleet move", more) : TL_OK;
}

/* In a transaction at the target.  is_completing: the source let it go already. */
static tl_status make_arriving(struct move *m, const struct slot *source, int is_completing)
{
    const store_slot to = {.state = "arriving",
                           .other = m->from.shard,
                           .version = source->version,
                           .tables = m->list,
                           .token = m->token};
    struct slot target;
    int was_stale, is_new;

    TRY(slot_begin(m, &m->to, &target));
    is_new = slot_is(&target, "none");
    was_stale = is_completing && slot_is_stale(&target, source->version + 1);
    if (was_stale) {
        TRY(slot_check_declared(m, &m->to));
        TRY(slot_check_sent(m, &m->to, &m->from));
        TRY(slot_note_claim(m, &m->to));
    }
    /* A stale target had the slot, and let its rows go with these tables later on. */
    slot_copy_estrange(&m->copy, was_stale ? &m->tables : is_new ? NULL : &target.tables);
    TRY(check_leftovers(m));
    if (is_new) {
        TRY(note_closings(m));
        return end_status(&m->to,
                          SQL_RUN(m->to.connection, NULL, slot_make, .slot = db_uint(m->said->slot),
                                  .version = db_uint(to.version), .other = db_text(to.other),
                                  .tables = db_text(to.tables), .token = slot_token_value(to.token),
                                  .reason = db_text(m->said->reason)),
                          "making the slot");
    }
    return slot_is(&target, "gone") || slot_is(&target, "arriving") || was_stale
               ? slot_turn(m, &m->to, &target, &to)
               : slot_lost(m);
}

static tl_status slot_arrive(struct move *m, const struct slot *source, int is_completing)
{
    TRY(end_step(&m->to, make_arriving(m, source, is_completing)));
    TRY(end_status(
        &m->to,
        SQL_RUN(m->to.connection, NULL, slot_mover, .token = db_bytes(m->token, STORE_SLOT_TOKEN)),
        "copying"));
    return slot_say(m, "arriving");
}

/* -------------------------------------------------------------------------- copied -- */

/* Who has rows at the target only is among those whose rows go, too. */
static tl_status slot_arrive_copy(struct move *m)
{
    TRY(slot_read_customers(m, &m->to));
    TRY(wipe(m));
    TRY(slot_read_customers(m, &m->from));
    m->copy.rows = 0;
    TRY(copy(m));
    m->moved.customers = m->customers.count;
    m->moved.rows = m->copy.rows;
    return slot_say(m, "copied");
}

/* Our own tables do not change any more: the slot is sealed at the one end, and the other one takes
 * rows from the mover alone.  So they are compared before the slot's rows are locked. */
static tl_status slot_arrive_compare(struct move *m)
{
    const uint64_t copied = m->moved.rows;

    TRY(slot_read_customers(m, &m->from));
    m->copy.rows = 0;
    for (size_t i = 0; i < m->customers.count; i += SLOT_CUSTOMERS)
        TRY(slot_copy_compare(&m->copy, m->from.connection, m->to.connection, &m->customers, i,
                              SLOT_ALL_THERE));
    if (m->copy.rows != copied)
        return error_set(TL_REFUSED,
                         "%llu rows were copied and %llu are there; nothing was handed over",
                         (unsigned long long)copied, (unsigned long long)m->copy.rows);
    return TL_OK;
}

/* This transaction stands idle while the other end reads, which it may for as long as one statement
 * takes (stay_idle() of slot_end.c): so it is woken after each. */
static tl_status wake_target(void *context)
{
    struct move *m = context;
    struct slot target;

    return slot_read(m, &m->to, &target);
}

/* In transactions at both ends.  Everybody is read anew: a customer may have come to a business
 * table. */
static tl_status slot_arrive_compare_others(struct move *m)
{
    slot_customers all = {.count = 0};
    tl_status status =
        slot_customers_read_others(&all, &m->copy, m->from.connection, wake_target, m);

    for (size_t i = 0; i < all.count && status == TL_OK; i += SLOT_CUSTOMERS)
        status = slot_copy_compare(&m->copy, m->from.connection, m->to.connection, &all, i,
                                   SLOT_ALL_THERE | SLOT_LOCKS | SLOT_OTHERS);
    slot_customers_free(&all);
    TRY(status);
    return slot_say(m, "compared");
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

/* Copies all anew unless the target has all rows that the source has. */
static tl_status slot_arrive_copy_lost(struct move *m)
{
    int has_all = 0;

    TRY(compare_target(m, &has_all));
    if (has_all)
        return TL_OK;
    TRY(slot_arrive_copy(m));
    TRY(compare_target(m, &has_all));
    return has_all ? TL_OK
                   : error_set(TL_REFUSED, "rows of slot %u do not arrive at shard %s",
                               m->said->slot, m->to.shard);
}

/* -------------------------------------------------------------------------- fences -- */

/* Each customer in a transaction of his own. */
static tl_status slot_arrive_raise(struct move *m)
{
    struct slot_run run = run_of(m);

    for (size_t i = 0; i < m->customers.count; i++) {
        TRY(slot_run_begin(&run));
        TRY(slot_run_end(&run, end_status(&m->to,
                                          SQL_RUN(m->to.connection, NULL, slot_raise,
                                                  .cust_no = db_text(m->customers.of[i].name),
                                                  .thread_no = db_text(tl_thread_uuid()),
                                                  .actor = db_text(m->said->actor)),
                                          "raising the fences")));
    }
    return TL_OK;
}

/* Before a step is tried again. */
#define AGAIN_MS 200

/* ------------------------------------------------------------------- the hand-over -- */

/* In a transaction at the source. */
static tl_status let_go(struct move *m)
{
    store_slot gone = {.state = "gone", .other = m->to.shard, .tables = m->list};
    struct slot source;

    TRY(slot_lock_own(m, &m->from, "leaving", &source));
    if (!source.sealed)
        return slot_lost(m);
    TRY(slot_arrive_compare_others(m));
    gone.version = source.version + 1;
    TRY(slot_turn(m, &m->from, &source, &gone));
    return slot_note(m, &m->from, "fleet moved away");
}

/* Nobody has the slot meanwhile, so nothing is looked for here: m->customers are all who have trades
 * at the target.  Whoever is killed while fences rise goes on with rows that differ from the
 * source's, and copies them anew. */
static tl_status own(struct move *m, uint64_t version)
{
    const store_slot owned = {.state = "owned", .version = version, .tables = m->list};
    struct slot target;
    tl_status status;

    TRY(slot_arrive_raise(m));
    TRY(slot_lock_own(m, &m->to, "arriving", &target));
    status = slot_turn(m, &m->to, &target, &owned);
    if (status == TL_OK)
        status = slot_note(m, &m->to, "fleet moved here");
    TRY(end_step(&m->to, status));
    return slot_say(m, "owned");
}

/* Who was compared at the source is who has trades at the target: both ends have the same ones. */
static tl_status hand_over(struct move *m)
{
    struct slot target;
    tl_status status;

    TRY(slot_arrive_compare(m));
    TRY(slot_lock_own(m, &m->to, "arriving", &target));
    status = end_step(&m->from, let_go(m));
    end_undo(&m->to);
    TRY(status);
    TRY(slot_say(m, "gone"));
    return own(m, target.version + 1);
}

/* The source let it go already, and may have purged customers whose fences rise all the same. */
static tl_status complete(struct move *m, const struct slot *source)
{
    const struct slot before = {.version = source->version - 1};

    TRY(slot_arrive(m, &before, 1));
    TRY(slot_arrive_copy_lost(m));
    TRY(slot_read_customers(m, &m->to));
    return own(m, source->version);
}

/* ----------------------------------------------------------------------- all of it -- */

static tl_status go_on(struct move *m, struct slot *source)
{
    TRY(slot_leave(m, source));
    TRY(slot_seal(m));
    TRY(slot_arrive(m, source, 0));
    TRY(slot_arrive_copy(m));
    return hand_over(m);
}

/*
 * The rows of a business table must not stay behind, nor be taken for stale ones and removed, because
 * somebody forgot to name it.  So the slot's row says which go along, and names are needed once.
 *
 *   bound, no `more`   of a move that has begun: these, and no others
 *   bound and more     of one that begins: what went along the last time, and what an older move left
 *                      copies of at the target, has to be among them; others may be added
 */
static tl_status choose_tables(struct move *m, const slot_tables *bound, const slot_tables *more)
{
    slot_tables wanted = *bound;

    TRY(more != NULL ? slot_tables_add(&wanted, more) : TL_OK);
    if (m->named.count > 0 && (!slot_tables_cover(&m->named, &wanted) ||
                               (more == NULL && m->named.count != wanted.count)))
        return error_set(TL_REFUSED,
                         "the tables that go along with slot %u are %s, by its row: name %s, or "
                         "none",
                         m->said->slot,
                         wanted.count > 0 ? slot_tables_text(&wanted, m->list) : "none",
                         more != NULL ? "these and what is new" : "the same ones");
    m->tables = m->named.count > 0 && more != NULL ? m->named : wanted;
    slot_tables_text(&m->tables, m->list);
    return slot_copy_open(&m->copy, m->from.connection, m->said->slot, &m->tables);
}

/* The target had it arrive before the source let it go, so it went back in time: what it paid since
 * may be missing. */
static int has_forgotten(const struct slot *source, const struct slot *target)
{
    return slot_is(target, "none") ||
           (slot_is(target, "gone") && target->version < source->version) ||
           (slot_is(target, "arriving") && target->version + 1 < source->version) ||
           slot_is_stale(target, source->version);
}

static int was_let_go(const struct move *m, const struct slot *source, const struct slot *target)
{
    return slot_is(source, "gone") && strcmp(source->other, m->to.shard) == 0 &&
           (has_forgotten(source, target) ||
            (slot_is(target, "arriving") && strcmp(target->other, m->from.shard) == 0) ||
            slot_is(target, "owned") || slot_is(target, "leaving"));
}

/* In transactions at both ends, the arriving one first, as whoever hands over: nobody who waits there
 * has the row locked at the shard that pays. */
static tl_status begin_both(struct move *m, struct slot *source, struct slot *target)
{
    TRY(slot_begin(m, &m->to, target));
    return slot_begin(m, &m->from, source);
}

/* A restore that is open at the target does not stand in its way: until the slot is owned there
 * nobody can file what was paid there and is missing, and until that is filed nobody may accept the
 * restore.  Nothing is granted there meanwhile. */
static tl_status decide_let_go(struct move *m, const struct slot *source, const struct slot *target)
{
    if (source->has_token && (has_forgotten(source, target) || slot_is(target, "arriving"))) {
        text_copy(m->moved.why, sizeof m->moved.why, "removed");
        return error_set(TL_REFUSED,
                         "slot %u was removed from shard %s since shard %s had it, or never was "
                         "there as it went on; shard %s was restored to before that: restore it "
                         "to a later moment",
                         m->said->slot, m->from.shard, m->to.shard, m->to.shard);
    }
    if (has_forgotten(source, target) && !m->to.is_restored)
        return error_set(TL_REFUSED,
                         "slot %u went to shard %s, which knows nothing of it: it went back in "
                         "time, and what it paid may be missing; declare a restore there first",
                         m->said->slot, m->to.shard);
    if (has_forgotten(source, target) ||
        (slot_is(target, "arriving") && target->version + 1 == source->version)) {
        end_undo(&m->to);
        TRY(choose_tables(m, &source->tables, NULL));
        return complete(m, source);
    }
    if (!slot_is(target, "arriving") && target->version >= source->version)
        return error_set(TL_ALREADY_DONE, "slot %u is at shard %s already", m->said->slot,
                         m->to.shard);
    return error_set(TL_REFUSED,
                     "slot %u is gone from shard %s under another version than it "
                     "arrives under at shard %s",
                     m->said->slot, m->from.shard, m->to.shard);
}

static tl_status decide(struct move *m)
{
    struct slot source, target;
    tl_status status;

    TRY(begin_both(m, &source, &target));
    if (was_let_go(m, &source, &target)) {
        end_undo(&m->from);
        return decide_let_go(m, &source, &target);
    }
    end_undo(&m->to);
    TRY(m->to.is_restored ? end_refuse_restored(&m->to) : slot_may_leave(m, &source, &target));
    TRY(source.takes ? choose_tables(m, &source.taking, NULL)
                     : choose_tables(m, &source.tables, &target.tables));
    status = go_on(m, &source);
    if (status != TL_OK)
        slot_put_back(m);
    return status;
}

static tl_status move(struct move *m)
{
    TRY(slot_check_fleet(m));
    TRY(slot_check_rules(m));
    TRY(slot_be_alone(m, &m->from));
    TRY(slot_be_alone(m, &m->to));
    return decide(m);
}

static tl_status attempt(struct move *m)
{
    tl_status status;

    error_clear();
    status = slot_open_ends(m);
    if (status == TL_OK)
        status = move(m);
    slot_close_ends(m);
    return status;
}

/* A deadlock with a payment, or with the last statement of a mover that was killed, has undone one
 * step: the next attempt goes on from what both databases show. */
tl_status tl_slot_move(tl_client *from, tl_client *to, const tl_slot_moving *moving,
                       tl_slot_moved *moved)
{
    const int64_t deadline_ms = clock_deadline(moving != NULL ? moving->wait_ms : 0);
    tl_slot_moved done = {.rows = 0};
    tl_status status;

    for (;;) {
        struct move m = {.said = moving, .from = {.client = from}, .to = {.client = to}};

        m.deadline_ms = deadline_ms;
        m.moved.customers = done.customers;
        m.moved.rows = done.rows;
        status = attempt(&m);
        done = m.moved;
        if (status != TL_TRY_AGAIN || clock_left_ms(deadline_ms) == 0)
            break;
        status = slot_say(&m, "waiting");
        if (status != TL_OK)
            break;
        clock_sleep_until_ms(clock_deadline(AGAIN_MS));
    }
    if (moved != NULL)
        *moved = done;
    return status;
}
