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
 * the slot, and copied anew if one is missing.  It may also go back in time after it owned the slot, and
 * paid: then it comes to own it while that restore is open, and what it paid is filed before it is
 * accepted.
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
 *   an end is restored to when it had the slot,   it is ended by the owner's word (give_up_claim()),
 *   which went on meanwhile                       or made the target once more: in both cases only
 *                                                 once the other end knows whatever it sent or paid
 * Rows of business tables are nobody's but the service's: they are locked in share mode when they
 * are compared for the last time, so no change is lost; a row that is new by then shows as a
 * difference, one that comes later stays behind.  So a service writes a customer's rows only in the
 * transactions of his trades, or stops for the time of a move.
 */
#include "admin/act.h"
#include "admin/purge.h"
#include "admin/slot_copy.h"
#include "admin/slot_tables.h"
#include "admin/statements.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "client/client.h"
#include "client/read.h"
#include "client/schema.h"
#include "store/act.h"
#include "store/server.h"

#include <tradelock/admin/fleet.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LOOK_MS 200
#define BETWEEN_S 30

_Static_assert(RANDOM_TOKEN == STORE_SLOT_TOKEN, "a token is one");

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
    uint64_t act_no; /* of a cleaning */
};

/* ------------------------------------------------------------------------- both ends -- */

static tl_status status_of(const struct end *at, db_answer answer, const char *doing)
{
    tl_status status;

    if (answer == DB_DONE)
        return TL_OK;
    status = db_error_status(at->connection, answer, doing);
    return at->shard[0] != '\0' ? error_prefix(status, "shard %s", at->shard) : status;
}

static tl_status begin(struct end *at)
{
    const db_answer answer = db_begin(at->connection);

    at->open = answer == DB_DONE;
    return status_of(at, answer, "beginning a step of a move");
}

static tl_status commit(struct end *at)
{
    const db_answer answer = db_commit(at->connection);

    at->open = 0;
    return status_of(at, answer, "committing a step of a move");
}

static void undo(struct end *at)
{
    if (at->open)
        (void)db_rollback(at->connection);
    at->open = 0;
}

/* Ends the transaction: commits if all went well. */
static tl_status end_step(struct end *at, tl_status status)
{
    if (status == TL_OK)
        return commit(at);
    undo(at);
    return status;
}

static tl_status say(struct move *m, const char *done)
{
    if (m->said->progress == NULL)
        return TL_OK;
    return m->said->progress(m->said->context, done, &m->moved) == 0
               ? TL_OK
               : error_set(TL_REFUSED, "it was stopped");
}

/* In a transaction.  A slot without a row is "none". */
static tl_status read_slot(struct move *m, struct end *at, struct slot *to)
{
    db_result r = DB_RESULT_INIT;
    tl_status status =
        status_of(at, store_slot_row(at->connection, m->said->slot, &r), "reading the slot");
    size_t size = 0;
    const void *token;

    memset(to, 0, sizeof *to);
    text_copy(to->state, sizeof to->state, "none");
    if (status == TL_OK && r.rows == 1) {
        text_copy(to->state, sizeof to->state, db_get_text(&r, 0, SLOT_ROW_STATE));
        text_copy(to->other, sizeof to->other, db_get_text(&r, 0, SLOT_ROW_OTHER));
        to->version = db_get_uint(&r, 0, SLOT_ROW_VERSION);
        to->sealed = db_get_int(&r, 0, SLOT_ROW_SEALED) != 0;
        token = db_get_bytes(&r, 0, SLOT_ROW_TOKEN, &size);
        to->has_token = !db_is_null(&r, 0, SLOT_ROW_TOKEN) && size == STORE_SLOT_TOKEN;
        if (to->has_token)
            memcpy(to->token, token, STORE_SLOT_TOKEN);
        slot_tables_read(&to->tables, db_get_text(&r, 0, SLOT_ROW_TABLES));
        to->takes = !db_is_null(&r, 0, SLOT_ROW_TAKING);
        slot_tables_read(&to->taking, to->takes ? db_get_text(&r, 0, SLOT_ROW_TAKING) : "");
    }
    db_result_free(&r);
    return status;
}

static int is(const struct slot *s, const char *state)
{
    return strcmp(s->state, state) == 0;
}

static tl_status lost(const struct move *m)
{
    return error_set(TL_LOST, "somebody else moves slot %u now", m->said->slot);
}

/* In a transaction that has read the slot. */
static tl_status turn(struct move *m, struct end *at, const struct slot *was, const store_slot *to)
{
    const store_slot before = {.state = was->state,
                               .version = was->version,
                               .sealed = was->sealed,
                               .token = was->has_token ? was->token : NULL};
    db_result r = DB_RESULT_INIT;
    tl_status status = status_of(
        at, store_slot_turn(at->connection, m->said->slot, &before, to, m->said->reason, &r),
        "changing the slot");

    if (status == TL_OK && r.affected != 1)
        status = lost(m);
    db_result_free(&r);
    return status;
}

#define ACT_SAID 240

static store_act act_of(const struct move *m, const char *what, const char *more,
                        char said[ACT_SAID])
{
    const char *log_no = tl_log_uuid();

    snprintf(said, ACT_SAID, "slot %u from %s to %s%s", m->said->slot, m->from.shard, m->to.shard,
             more);
    return (store_act){.what = what,
                       .said = said,
                       .reason = m->said->reason,
                       .actor = m->said->actor,
                       .log_no = log_no[0] != '\0' ? log_no : NULL};
}

/* On record at the end that it is about, in the transaction that does it; `more` is said, too. */
static tl_status note_that(struct move *m, struct end *at, const char *what, const char *more)
{
    char said[ACT_SAID];
    const store_act act = act_of(m, what, more, said);

    return status_of(at, store_act_note(at->connection, &act, NULL), "noting the move");
}

static tl_status note(struct move *m, struct end *at, const char *what)
{
    return note_that(m, at, what, "");
}

/* -------------------------------------------------------------------- what comes first -- */

static tl_status check_said(struct move *m)
{
    const tl_slot_moving *s = m->said;
    tl_status status;

    if (s == NULL || s->version != TL_SLOT_MOVING_VERSION)
        return error_set(TL_INVALID, "moving is NULL or its version is not set");
    if (s->slot >= TL_FLEET_SLOTS)
        return error_set(TL_INVALID, "slots are 0 to %d", TL_FLEET_SLOTS - 1);
    if (s->tables == NULL && s->tables_count > 0)
        return error_set(TL_INVALID, "tables is NULL");
    status = slot_tables_take(&m->named, s->tables, s->tables_count);
    return status == TL_OK ? read_check_person(s->actor, s->reason) : status;
}

/* The server ends a transaction that stands idle.  At the one end it stands while the other one
 * answers a statement, for read_timeout_s at most, and a little for what lies between. */
static tl_status stay_idle(struct end *at)
{
    const struct config *c = &at->client->config;
    const unsigned seconds = c->read_timeout_s + BETWEEN_S;

    return status_of(at,
                     store_slot_idle(at->connection, seconds > c->idle_transaction_s
                                                         ? seconds
                                                         : c->idle_transaction_s),
                     "connecting");
}

static tl_status open_end(struct end *at)
{
    schema_found found;
    tl_status status = client_check(at->client);

    if (status == TL_OK)
        status = pool_open_extra(at->client->connections, POOL_BUSINESS, &at->connection);
    if (status == TL_OK)
        status = stay_idle(at);
    if (status == TL_OK)
        status = schema_read(at->connection, &found);
    return status == TL_OK ? schema_judge(&found) : status;
}

static tl_status read_names(struct move *m, struct end *at, char fleet[TL_FLEET_NAME_MAX + 1])
{
    db_result r = DB_RESULT_INIT;
    tl_status status = status_of(at, store_fleet_of(at->connection, &r), "reading its name");

    (void)m;
    fleet[0] = '\0';
    if (status == TL_OK && r.rows == 1 && !db_is_null(&r, 0, FLEET_OF_NAME)) {
        text_copy(fleet, TL_FLEET_NAME_MAX + 1, db_get_text(&r, 0, FLEET_OF_NAME));
        text_copy(at->shard, sizeof at->shard, db_get_text(&r, 0, FLEET_OF_SHARD));
    }
    db_result_free(&r);
    return status;
}

static tl_status check_fleet(struct move *m)
{
    char from[TL_FLEET_NAME_MAX + 1], to[TL_FLEET_NAME_MAX + 1];
    tl_status status = read_names(m, &m->from, from);

    if (status == TL_OK)
        status = read_names(m, &m->to, to);
    if (status != TL_OK)
        return status;
    if (from[0] == '\0' || strcmp(from, to) != 0)
        return error_set(TL_REFUSED, "these two databases are not of one fleet");
    if (strcmp(m->from.shard, m->to.shard) == 0)
        return error_set(TL_REFUSED, "both ends are shard %s", m->from.shard);
    return TL_OK;
}

static tl_status refuse_restored(const struct end *at)
{
    return error_set(TL_ASK_CHANNEL,
                     "shard %s: a restore is open, or the rule of slots is missing: nothing is "
                     "moved",
                     at->shard);
}

static tl_status read_rule(struct end *at, char rule[80])
{
    db_result r = DB_RESULT_INIT;
    tl_status status =
        status_of(at, store_slot_rule(at->connection, &r), "looking at the rule of slots");

    if (status == TL_OK && r.rows != 1)
        status = refuse_restored(at);
    if (status == TL_OK) {
        at->is_restored = db_get_int(&r, 0, 0) != 0;
        text_copy(rule, 80, db_get_text(&r, 0, 1));
    }
    db_result_free(&r);
    return status;
}

static tl_status check_rules(struct move *m)
{
    char from[80] = "", to[80] = "";
    tl_status status = read_rule(&m->from, from);

    if (status == TL_OK)
        status = read_rule(&m->to, to);
    if (status == TL_OK && strcmp(from, to) != 0)
        status = error_set(TL_REFUSED,
                           "tl_customer_slot() is another rule at shard %s than at "
                           "shard %s",
                           m->from.shard, m->to.shard);
    if (status == TL_OK && m->from.is_restored)
        status = refuse_restored(&m->from);
    return status;
}

static tl_status be_alone(struct move *m, struct end *at)
{
    db_result r = DB_RESULT_INIT;
    tl_status status = status_of(at, store_slot_alone(at->connection, m->said->slot, &r),
                                 "waiting for the turn to move");

    if (status == TL_OK && (r.rows != 1 || db_get_int(&r, 0, 0) != 1))
        status = error_set(TL_BUSY, "another process moves slot %u just now", m->said->slot);
    db_result_free(&r);
    return status;
}

/* ------------------------------------------------------------------ leaving, and sealed -- */

/*
 * Whether the move of which `target` is the end may still be handed over, though `owner` has the slot
 * now.  That makes the version next to the arriving one, and only the shard it arrives from makes
 * it.  So it cannot where the slot is owned under a later version, for then that one was given to
 * another shard; nor where the shard it arrives from itself has it under that version, for it has not
 * let go, and whoever holds the row's lock here keeps a mover from it.
 */
static int may_come_still(const struct move *m, const struct slot *owner, const struct slot *target)
{
    return owner->version < target->version ||
           (owner->version == target->version && strcmp(target->other, m->from.shard) != 0);
}

static tl_status may_leave(struct move *m, const struct slot *source, const struct slot *target)
{
    const unsigned slot = m->said->slot;

    if (is(target, "owned") || is(target, "leaving"))
        return error_set(TL_REFUSED,
                         "slot %u is owned by both shards: end the older claim first, with "
                         "`tradelock fleet move %u --back`",
                         slot, slot);
    if (is(target, "arriving") && may_come_still(m, source, target))
        return error_set(TL_REFUSED, "slot %u arrives at shard %s from shard %s", slot, m->to.shard,
                         target->other);
    if (is(source, "leaving") && strcmp(source->other, m->to.shard) != 0)
        return error_set(TL_REFUSED,
                         "slot %u is on its way to shard %s: finish that move, or take the slot "
                         "back",
                         slot, source->other);
    if (target->version > source->version)
        return error_set(TL_REFUSED, "shard %s had slot %u under a later version than shard %s",
                         m->to.shard, slot, m->from.shard);
    if (!is(source, "owned") && !is(source, "leaving"))
        return error_set(TL_REFUSED, "slot %u is not at shard %s: it is '%s' there", slot,
                         m->from.shard, source->state);
    return TL_OK;
}

static tl_status leave(struct move *m, struct slot *source)
{
    char before[SLOT_TABLES_TEXT];
    const store_slot to = {.state = "leaving",
                           .other = m->to.shard,
                           .version = source->version,
                           .sealed = is(source, "leaving") && source->sealed,
                           .tables = slot_tables_text(&source->tables, before),
                           .taking = m->list,
                           .token = m->token};
    tl_status status = turn(m, &m->from, source, &to);

    if (status == TL_OK && is(source, "owned"))
        status = note(m, &m->from, "fleet move");
    status = end_step(&m->from, status);
    return status == TL_OK ? say(m, "leaving") : status;
}

/* The slot as this mover left it, locked; else TL_LOST. */
static tl_status lock_own(struct move *m, struct end *at, const char *state, struct slot *found)
{
    tl_status status = begin(at);

    if (status == TL_OK)
        status = read_slot(m, at, found);
    if (status == TL_OK && (!is(found, state) || !found->has_token ||
                            memcmp(found->token, m->token, sizeof m->token) != 0))
        status = lost(m);
    if (status != TL_OK)
        undo(at);
    return status;
}

static tl_status give_back(struct move *m)
{
    struct slot source;
    char before[SLOT_TABLES_TEXT];
    tl_status status = lock_own(m, &m->from, "leaving", &source);

    if (status == TL_OK) {
        const store_slot to = {.state = "owned",
                               .version = source.version,
                               .tables = slot_tables_text(&source.tables, before)};

        status = turn(m, &m->from, &source, &to);
        if (status == TL_OK)
            status = note(m, &m->from, "fleet move given up");
        status = end_step(&m->from, status);
    }
    return status;
}

/* Back to owned, if it is leaving by this mover still.  Keeps the sentence.  Who has the row locked is
 * waited for: the server ends a transaction that stands idle. */
static void put_back(struct move *m)
{
    const unsigned idle_s = m->from.client->config.idle_transaction_s + BETWEEN_S;
    const int64_t deadline_ms = clock_deadline(INT64_C(1000) * idle_s);
    char sentence[ERROR_MAX];
    tl_status status;

    undo(&m->from);
    undo(&m->to);
    text_copy(sentence, sizeof sentence, tl_error_message());
    while ((status = give_back(m)) == TL_TRY_AGAIN && clock_left_ms(deadline_ms) > 0)
        clock_sleep_until_ms(clock_deadline(LOOK_MS));
    if (status == TL_OK || status == TL_LOST)
        (void)error_set(TL_BUSY, "%s", sentence);
    else
        (void)error_set(TL_BUSY, "%s; slot %u may be leaving still: go on, or take it back",
                        sentence, m->said->slot);
}

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
            status = status_of(&m->from, store_slot_blockers(m->from.connection, m->json.data, &r),
                               "looking for what is in process");
        *blocked = status == TL_OK && r.rows > 0;
        if (*blocked)
            take_blocker(m, &r);
    }
    db_result_free(&r);
    return status;
}

static tl_status read_customers(struct move *m, struct end *at)
{
    slot_customers_free(&m->customers);
    return slot_customers_read(&m->customers, &m->copy, at->connection);
}

static tl_status fence_out(struct move *m)
{
    tl_status status = TL_OK;

    for (size_t i = 0; i < m->customers.count && status == TL_OK; i++)
        status = status_of(
            &m->from,
            store_slot_fence_out(m->from.connection, m->customers.of[i].name, m->said->actor),
            "taking repeatable trades from the dead");
    return status;
}

/* Under the exclusive lock nobody begins, and whoever was let through has ended. */
static tl_status try_to_seal(struct move *m, int *blocked)
{
    char before[SLOT_TABLES_TEXT];
    struct slot source;
    tl_status status = lock_own(m, &m->from, "leaving", &source);

    *blocked = 0;
    if (status != TL_OK)
        return status;
    if (!source.sealed) {
        const store_slot to = {.state = "leaving",
                               .other = m->to.shard,
                               .version = source.version,
                               .sealed = 1,
                               .tables = slot_tables_text(&source.tables, before),
                               .taking = m->list,
                               .token = m->token};

        status = look(m, blocked);
        if (status == TL_OK && *blocked) {
            undo(&m->from);
            return TL_OK;
        }
        if (status == TL_OK)
            status = fence_out(m);
        if (status == TL_OK)
            status = turn(m, &m->from, &source, &to);
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

static tl_status seal(struct move *m)
{
    const int64_t deadline_ms = clock_deadline(m->said->wait_ms);
    int blocked = 0;
    tl_status status = read_customers(m, &m->from);

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
        status = say(m, "waiting");
        clock_sleep_until_ms(clock_deadline(LOOK_MS));
    }
    /* Nobody can come any more, but some may have since they were read. */
    if (status == TL_OK)
        status = read_customers(m, &m->from);
    m->moved.customers = m->customers.count;
    return status == TL_OK ? say(m, "sealed") : status;
}

/* --------------------------------------------------------------------- the target's copy -- */

/* Each step in a transaction of its own, with the slot's row locked. */
static tl_status begin_writing(void *context)
{
    struct move *m = context;
    struct slot target;

    return lock_own(m, &m->to, "arriving", &target);
}

static tl_status end_writing(void *context, tl_status status)
{
    struct move *m = context;

    return end_step(&m->to, status);
}

static tl_status wipe(struct move *m)
{
    const slot_writing writing = {.begin = begin_writing, .end = end_writing, .context = m};
    tl_status status = TL_OK;

    for (size_t i = 0; i < m->customers.count && status == TL_OK; i += SLOT_CUSTOMERS)
        status = slot_copy_wipe(&m->copy, m->to.connection, &m->customers, i, &writing);
    return status;
}

static tl_status copy(struct move *m)
{
    const slot_writing writing = {.begin = begin_writing, .end = end_writing, .context = m};
    tl_status status = TL_OK;

    for (size_t i = 0; i < m->customers.count && status == TL_OK; i += SLOT_CUSTOMERS)
        status = slot_copy_page(&m->copy, m->from.connection, m->to.connection, &m->customers, i,
                                &writing);
    return status;
}

/* What is there of a slot that never was there, or of a table that did not go along when it was,
 * must be the source's own rows. */
static tl_status check_leftovers(struct move *m)
{
    tl_status status = read_customers(m, &m->to);

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
    return status == TL_OK && count > 0 ? note_that(m, &m->to, "fleet move", more) : status;
}

/* ------------------------------------------------------------------ what a stale end knows -- */

static tl_status tell_unknown(struct move *m, const db_result *r)
{
    tl_status status = TL_OK;

    for (size_t row = 0; row < r->rows && status == TL_OK; row++) {
        text_copy(m->moved.cust_no, sizeof m->moved.cust_no, db_get_text(r, row, 0));
        text_copy(m->moved.serial_no, sizeof m->moved.serial_no, db_get_text(r, row, 1));
        text_copy(m->moved.op_code, sizeof m->moved.op_code, db_get_text(r, row, 2));
        text_copy(m->moved.why, sizeof m->moved.why, db_get_int(r, row, 3) != 0 ? "paid" : "sent");
        m->moved.in_the_way++;
        status = say(m, "unknown");
    }
    return status;
}

/* The trades from *row on, as many as one statement takes. */
static tl_status check_some(struct move *m, const struct end *other, const db_result *trades,
                            size_t *row)
{
    const size_t end = *row + SLOT_ROWS < trades->rows ? *row + SLOT_ROWS : trades->rows;
    db_result r = DB_RESULT_INIT;
    tl_status status;

    text_buffer_clear(&m->json);
    text_buffer_append_text(&m->json, "[");
    for (size_t i = *row; i < end; i++)
        text_buffer_append_format(&m->json, "%s%s", i > *row ? "," : "", db_get_text(trades, i, 0));
    text_buffer_append_text(&m->json, "]");
    *row = end;
    if (m->json.failed)
        return error_set(TL_NO_MEMORY, "out of memory for moving a slot");
    status = status_of(other, store_slot_unknown(other->connection, m->json.data, &r),
                       "comparing what was sent");
    if (status == TL_OK)
        status = tell_unknown(m, &r);
    db_result_free(&r);
    return status;
}

/* A person may have compared them with the channel. */
static tl_status agree_to_unknown(struct move *m, const struct end *stale, const struct end *other)
{
    const tl_slot_moved *d = &m->moved;

    if (d->in_the_way == 0 || (m->said->progress != NULL && say(m, "agree") == TL_OK))
        return TL_OK;
    return error_set(TL_REFUSED,
                     "%u trades that shard %s paid or sent are not known to shard %s, as trade %s "
                     "of customer %s (%s): file there what was paid, or agree to the number with "
                     "--yes %u; slot %u stays as it is",
                     d->in_the_way, stale->shard, other->shard, d->serial_no, d->cust_no,
                     d->op_code, d->in_the_way, m->said->slot);
}

/* In a transaction that has the slot's row at the stale end locked.  Whoever believed its claim may
 * have paid there: then this is the last place that tells of it. */
static tl_status check_sent(struct move *m, struct end *stale, const struct end *other)
{
    db_result trades = DB_RESULT_INIT;
    tl_status status = read_customers(m, stale);

    m->moved.in_the_way = 0;
    for (size_t i = 0; i < m->customers.count && status == TL_OK; i += SLOT_CUSTOMERS) {
        size_t row = 0;

        status = slot_customers_json(&m->customers, i, &m->json);
        if (status == TL_OK)
            status = status_of(stale, store_slot_sends(stale->connection, m->json.data, &trades),
                               "reading what was sent");
        while (status == TL_OK && row < trades.rows)
            status = check_some(m, other, &trades, &row);
    }
    db_result_free(&trades);
    return status == TL_OK ? agree_to_unknown(m, stale, other) : status;
}

/* How many were unknown is on record where they were. */
static tl_status note_claim(struct move *m, struct end *stale)
{
    char more[64] = "";

    if (m->moved.in_the_way > 0)
        snprintf(more, sizeof more, ": %u trades here are not known there", m->moved.in_the_way);
    return note_that(m, stale, "fleet claim given up", more);
}

static int has_claim(const struct slot *s)
{
    return is(s, "owned") || is(s, "leaving");
}

/* What it says of a slot that went on meanwhile, from `version` on. */
static int is_stale(const struct slot *s, uint64_t version)
{
    return has_claim(s) && s->version < version;
}

/* Read anew where the slot's row is locked: whoever was let through before may have been let through
 * by an accepting. */
static tl_status check_declared(struct move *m, struct end *stale)
{
    char rule[80];
    tl_status status = read_rule(stale, rule);

    if (status == TL_OK && !stale->is_restored)
        status = error_set(TL_REFUSED,
                           "shard %s would go on paying for slot %u from before it went to "
                           "another: declare a restore there first",
                           stale->shard, m->said->slot);
    return status;
}

/* is_completing: the source let it go already. */
static tl_status arrive(struct move *m, const struct slot *source, int is_completing)
{
    const store_slot to = {.state = "arriving",
                           .other = m->from.shard,
                           .version = source->version,
                           .tables = m->list,
                           .token = m->token};
    struct slot target = {.state = "none"};
    int was_stale;
    tl_status status = begin(&m->to);

    if (status == TL_OK)
        status = read_slot(m, &m->to, &target);
    was_stale = is_completing && is_stale(&target, source->version + 1);
    if (status == TL_OK && was_stale)
        status = check_declared(m, &m->to);
    if (status == TL_OK && was_stale)
        status = check_sent(m, &m->to, &m->from);
    if (status == TL_OK && was_stale)
        status = note_claim(m, &m->to);
    /* A stale target had the slot, and let its rows go with these tables later on. */
    slot_copy_estrange(&m->copy,
                       was_stale ? &m->tables : (is(&target, "none") ? NULL : &target.tables));
    if (status == TL_OK)
        status = check_leftovers(m);
    if (status == TL_OK && is(&target, "none"))
        status = note_closings(m);
    if (status == TL_OK && is(&target, "none"))
        status = status_of(&m->to,
                           store_slot_make(m->to.connection, m->said->slot, &to, m->said->reason),
                           "making the slot");
    else if (status == TL_OK && (is(&target, "gone") || is(&target, "arriving") || was_stale))
        status = turn(m, &m->to, &target, &to);
    else if (status == TL_OK)
        status = lost(m);
    status = end_step(&m->to, status);
    if (status == TL_OK)
        status = status_of(&m->to, store_slot_mover(m->to.connection, m->token), "copying");
    return status == TL_OK ? say(m, "arriving") : status;
}

/* Who has rows at the target only is among those whose rows go, too. */
static tl_status copy_all(struct move *m)
{
    tl_status status = read_customers(m, &m->to);

    if (status == TL_OK)
        status = wipe(m);
    if (status == TL_OK)
        status = read_customers(m, &m->from);
    m->copy.rows = 0;
    if (status == TL_OK)
        status = copy(m);
    m->moved.customers = m->customers.count;
    m->moved.rows = m->copy.rows;
    return status == TL_OK ? say(m, "copied") : status;
}

/* Our own tables do not change any more: the slot is sealed at the one end, and the other one takes
 * rows from the mover alone.  So they are compared before the slot's rows are locked. */
static tl_status compare_all(struct move *m)
{
    const uint64_t copied = m->moved.rows;
    tl_status status = read_customers(m, &m->from);

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
 * takes (stay_idle()): so it is woken after each. */
static tl_status wake_target(void *context)
{
    struct move *m = context;
    struct slot target;

    return read_slot(m, &m->to, &target);
}

/* In transactions at both ends.  Everybody is read anew: a customer may have come to a business
 * table. */
static tl_status compare_others(struct move *m)
{
    slot_customers all = {.count = 0};
    tl_status status =
        slot_customers_read_others(&all, &m->copy, m->from.connection, wake_target, m);

    for (size_t i = 0; i < all.count && status == TL_OK; i += SLOT_CUSTOMERS)
        status = slot_copy_compare(&m->copy, m->from.connection, m->to.connection, &all, i,
                                   SLOT_ALL_THERE | SLOT_LOCKS | SLOT_OTHERS);
    slot_customers_free(&all);
    return status == TL_OK ? say(m, "compared") : status;
}

/* -------------------------------------------------------------------- the hand-over -- */

/* Each customer in a transaction of his own. */
static tl_status raise(struct move *m)
{
    tl_status status = TL_OK;

    for (size_t i = 0; i < m->customers.count && status == TL_OK; i++) {
        status = begin_writing(m);
        if (status == TL_OK)
            status =
                end_writing(m, status_of(&m->to,
                                         store_slot_raise(m->to.connection, m->customers.of[i].name,
                                                          m->said->actor),
                                         "raising the fences"));
    }
    return status;
}

static tl_status let_go(struct move *m)
{
    struct slot source;
    tl_status status = lock_own(m, &m->from, "leaving", &source);

    if (status == TL_OK && !source.sealed)
        status = lost(m);
    if (status == TL_OK)
        status = compare_others(m);
    if (status == TL_OK) {
        const store_slot gone = {.state = "gone",
                                 .other = m->to.shard,
                                 .version = source.version + 1,
                                 .tables = m->list};

        status = turn(m, &m->from, &source, &gone);
    }
    if (status == TL_OK)
        status = note(m, &m->from, "fleet moved away");
    return end_step(&m->from, status);
}

/* Nobody has the slot meanwhile, so nothing is looked for here: m->customers are all who have trades
 * at the target.  Whoever is killed while fences rise goes on with rows that differ from the
 * source's, and copies them anew. */
static tl_status own(struct move *m, uint64_t version)
{
    const store_slot owned = {.state = "owned", .version = version, .tables = m->list};
    struct slot target;
    tl_status status = raise(m);

    if (status == TL_OK)
        status = lock_own(m, &m->to, "arriving", &target);
    if (status == TL_OK)
        status = turn(m, &m->to, &target, &owned);
    if (status == TL_OK)
        status = note(m, &m->to, "fleet moved here");
    status = end_step(&m->to, status);
    return status == TL_OK ? say(m, "owned") : status;
}

/* Who was compared at the source is who has trades at the target: both ends have the same ones. */
static tl_status hand_over(struct move *m)
{
    struct slot target;
    tl_status status = compare_all(m);

    if (status == TL_OK)
        status = lock_own(m, &m->to, "arriving", &target);
    if (status != TL_OK)
        return status;
    status = let_go(m);
    undo(&m->to);
    if (status == TL_OK)
        status = say(m, "gone");
    return status == TL_OK ? own(m, target.version + 1) : status;
}

/* Whether the target has all rows that the source has; the source may have purged some since. */
static tl_status compare_target(struct move *m, int *has_all)
{
    tl_status status = read_customers(m, &m->from);

    for (size_t i = 0; i < m->customers.count && status == TL_OK; i += SLOT_CUSTOMERS)
        status =
            slot_copy_compare(&m->copy, m->to.connection, m->from.connection, &m->customers, i, 0);
    *has_all = status == TL_OK;
    return status == TL_REFUSED ? TL_OK : status;
}

static tl_status copy_what_is_lost(struct move *m)
{
    int has_all = 0;
    tl_status status = compare_target(m, &has_all);

    if (status != TL_OK || has_all)
        return status;
    status = copy_all(m);
    if (status == TL_OK)
        status = compare_target(m, &has_all);
    return status == TL_OK && !has_all
               ? error_set(TL_REFUSED, "rows of slot %u do not arrive at shard %s", m->said->slot,
                           m->to.shard)
               : status;
}

/* The source let it go already, and may have purged customers whose fences rise all the same. */
static tl_status complete(struct move *m, const struct slot *source)
{
    const struct slot before = {.version = source->version - 1};
    tl_status status = arrive(m, &before, 1);

    if (status == TL_OK)
        status = copy_what_is_lost(m);
    if (status == TL_OK)
        status = read_customers(m, &m->to);
    return status == TL_OK ? own(m, source->version) : status;
}

/* ------------------------------------------------------------------------ all of it -- */

static tl_status go_on(struct move *m, struct slot *source)
{
    tl_status status = leave(m, source);

    if (status == TL_OK)
        status = seal(m);
    if (status == TL_OK)
        status = arrive(m, source, 0);
    if (status == TL_OK)
        status = copy_all(m);
    if (status == TL_OK)
        status = hand_over(m);
    if (status != TL_OK)
        put_back(m);
    return status;
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
    tl_status status = more != NULL ? slot_tables_add(&wanted, more) : TL_OK;

    if (status == TL_OK && m->named.count > 0 &&
        (!slot_tables_cover(&m->named, &wanted) ||
         (more == NULL && m->named.count != wanted.count)))
        status =
            error_set(TL_REFUSED,
                      "the tables that go along with slot %u are %s, by its row: name %s, or "
                      "none",
                      m->said->slot, wanted.count > 0 ? slot_tables_text(&wanted, m->list) : "none",
                      more != NULL ? "these and what is new" : "the same ones");
    m->tables = m->named.count > 0 && more != NULL ? m->named : wanted;
    slot_tables_text(&m->tables, m->list);
    return status == TL_OK ? slot_copy_open(&m->copy, m->from.connection, m->said->slot, &m->tables)
                           : status;
}

/* The target had it arrive before the source let it go, so it went back in time: what it paid since
 * may be missing. */
static int has_forgotten(const struct slot *source, const struct slot *target)
{
    return is(target, "none") || (is(target, "gone") && target->version < source->version) ||
           (is(target, "arriving") && target->version + 1 < source->version) ||
           is_stale(target, source->version);
}

static int was_let_go(const struct move *m, const struct slot *source, const struct slot *target)
{
    return is(source, "gone") && strcmp(source->other, m->to.shard) == 0 &&
           (has_forgotten(source, target) ||
            (is(target, "arriving") && strcmp(target->other, m->from.shard) == 0) ||
            is(target, "owned") || is(target, "leaving"));
}

/* In transactions at both ends, the arriving one first, as whoever hands over: nobody who waits there
 * has the row locked at the shard that pays. */
static tl_status begin_both(struct move *m, struct slot *source, struct slot *target)
{
    tl_status status = begin(&m->to);

    if (status == TL_OK)
        status = read_slot(m, &m->to, target);
    if (status == TL_OK)
        status = begin(&m->from);
    if (status == TL_OK)
        status = read_slot(m, &m->from, source);
    return status;
}

/* A restore that is open at the target does not stand in its way: until the slot is owned there
 * nobody can file what was paid there and is missing, and until that is filed nobody may accept the
 * restore.  Nothing is granted there meanwhile. */
static tl_status decide_let_go(struct move *m, const struct slot *source, const struct slot *target)
{
    tl_status status;

    if (source->has_token && (has_forgotten(source, target) || is(target, "arriving"))) {
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
        (is(target, "arriving") && target->version + 1 == source->version)) {
        undo(&m->to);
        status = choose_tables(m, &source->tables, NULL);
        return status == TL_OK ? complete(m, source) : status;
    }
    if (!is(target, "arriving") && target->version >= source->version)
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
    tl_status status = begin_both(m, &source, &target);

    if (status != TL_OK)
        return status;
    if (was_let_go(m, &source, &target)) {
        undo(&m->from);
        return decide_let_go(m, &source, &target);
    }
    undo(&m->to);
    status = m->to.is_restored ? refuse_restored(&m->to) : may_leave(m, &source, &target);
    if (status == TL_OK)
        status = source.takes ? choose_tables(m, &source.taking, NULL)
                              : choose_tables(m, &source.tables, &target.tables);
    return status == TL_OK ? go_on(m, &source) : status;
}

static tl_status move(struct move *m)
{
    tl_status status = check_fleet(m);

    if (status == TL_OK)
        status = check_rules(m);
    if (status == TL_OK)
        status = be_alone(m, &m->from);
    if (status == TL_OK)
        status = be_alone(m, &m->to);
    if (status == TL_OK)
        status = decide(m);
    undo(&m->from);
    undo(&m->to);
    return status;
}

static void close_end(struct end *at)
{
    if (at->connection != NULL)
        pool_close_extra(at->client->connections, at->connection);
}

tl_status tl_slot_move(tl_client *from, tl_client *to, const tl_slot_moving *moving,
                       tl_slot_moved *moved)
{
    struct move m = {.said = moving, .from = {.client = from}, .to = {.client = to}};
    tl_status status;

    error_clear();
    text_buffer_init(&m.json);
    random_token(m.token);
    status = check_said(&m);
    if (status == TL_OK)
        status = open_end(&m.from);
    if (status == TL_OK)
        status = open_end(&m.to);
    if (status == TL_OK)
        status = move(&m);
    close_end(&m.from);
    close_end(&m.to);
    slot_customers_free(&m.customers);
    slot_copy_close(&m.copy);
    text_buffer_free(&m.json);
    if (moved != NULL)
        *moved = m.moved;
    return status;
}

/* ------------------------------------------------------------------------ taking back -- */

static tl_status take_back(struct move *m)
{
    store_slot to = {.state = "owned"};
    char before[SLOT_TABLES_TEXT];
    struct slot source;
    tl_status status = begin(&m->from);

    if (status == TL_OK)
        status = read_slot(m, &m->from, &source);
    if (status == TL_OK && !is(&source, "leaving"))
        status = error_set(TL_REFUSED, "slot %u is not leaving shard %s: it is '%s' there",
                           m->said->slot, m->from.shard, source.state);
    if (status == TL_OK) {
        to.version = source.version;
        to.tables = slot_tables_text(&source.tables, before);
        text_copy(m->to.shard, sizeof m->to.shard, source.other);
        status = turn(m, &m->from, &source, &to);
    }
    if (status == TL_OK)
        status = note(m, &m->from, "fleet move given up");
    return end_step(&m->from, status);
}

tl_status tl_slot_take_back(tl_client *from, const tl_slot_moving *moving)
{
    struct move m = {.said = moving, .from = {.client = from}};
    char fleet[TL_FLEET_NAME_MAX + 1];
    tl_status status;

    error_clear();
    status = check_said(&m);
    if (status == TL_OK)
        status = open_end(&m.from);
    if (status == TL_OK)
        status = read_names(&m, &m.from, fleet);
    if (status == TL_OK)
        status = take_back(&m);
    undo(&m.from);
    close_end(&m.from);
    return status;
}

/* ------------------------------------------------------------------------- the owner's word -- */

/* Nothing is locked where the slot is in use. */
static tl_status ask_version(struct move *m, uint64_t *version)
{
    db_result r = DB_RESULT_INIT;
    tl_status status = status_of(&m->to, store_slot_version(m->to.connection, m->said->slot, &r),
                                 "asking who owns the slot");

    if (status == TL_OK && r.rows == 0)
        status = error_set(TL_REFUSED,
                           "shard %s does not own slot %u: what is left of it at shard %s stays",
                           m->to.shard, m->said->slot, m->from.shard);
    else if (status == TL_OK)
        *version = db_get_uint(&r, 0, 0);
    db_result_free(&r);
    return status;
}

/* What the owner said counts once it has taken a commit after it: neither a replica does, nor a
 * server that was cut off where replicas must acknowledge. */
static tl_status note_at_owner(struct move *m, const char *what)
{
    tl_status status = begin(&m->to);

    if (status == TL_OK)
        status = note(m, &m->to, what);
    return end_step(&m->to, status);
}

/* -------------------------------------------------------------------------- giving up -- */

/* What was here may be removed already, and what came is not all of it: so the row keeps a token, as
 * of one that was cleaned. */
static tl_status give_up_arrival(struct move *m, const struct slot *target)
{
    char tables[SLOT_TABLES_TEXT];
    store_slot to = {.state = "gone", .other = m->from.shard, .token = m->token};
    struct slot owner;
    tl_status status = begin(&m->from);

    if (status == TL_OK)
        status = read_slot(m, &m->from, &owner);
    if (status == TL_OK && (!is(&owner, "owned") || may_come_still(m, &owner, target)))
        status = error_set(TL_REFUSED,
                           "slot %u may be handed over to shard %s still: it is '%s' at shard %s",
                           m->said->slot, m->to.shard, owner.state, m->from.shard);
    if (status == TL_OK) {
        to.version = owner.version;
        to.tables = slot_tables_text(&target->tables, tables);
        status = turn(m, &m->to, target, &to);
    }
    if (status == TL_OK)
        status = note(m, &m->to, "fleet move given up");
    return end_step(&m->to, status);
}

/* Nothing is locked where the slot is in use: versions only rise, so what the owner says of a later
 * one stays true. */
static tl_status ask_later_owner(struct move *m, const struct slot *stale, uint64_t *version)
{
    tl_status status = ask_version(m, version);

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
        status = check_declared(m, &m->from);
    if (status == TL_OK)
        status = slot_copy_open(&m->copy, m->from.connection, m->said->slot, &none);
    if (status == TL_OK)
        status = check_sent(m, &m->from, &m->to);
    to.tables = slot_tables_text(&stale->tables, tables);
    if (status == TL_OK)
        status = turn(m, &m->from, stale, &to);
    if (status == TL_OK)
        status = note_claim(m, &m->from);
    if (status == TL_OK)
        status = note_at_owner(m, "fleet claim given up");
    if (status == TL_OK)
        status = say(m, "noted");
    status = end_step(&m->from, status);
    return status == TL_OK ? say(m, "given up") : status;
}

static tl_status give_up(struct move *m)
{
    struct slot target;
    tl_status status = begin(&m->to);

    if (status == TL_OK)
        status = read_slot(m, &m->to, &target);
    if (status == TL_OK && is(&target, "arriving"))
        return give_up_arrival(m, &target);
    if (status == TL_OK && has_claim(&target)) {
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
    text_buffer_init(&m.json);
    random_token(m.token);
    status = check_said(&m);
    if (status == TL_OK)
        status = open_end(&m.from);
    if (status == TL_OK)
        status = open_end(&m.to);
    if (status == TL_OK)
        status = check_fleet(&m);
    if (status == TL_OK)
        status = be_alone(&m, &m.from);
    if (status == TL_OK)
        status = be_alone(&m, &m.to);
    if (status == TL_OK)
        status = give_up(&m);
    undo(&m.from);
    undo(&m.to);
    close_end(&m.from);
    close_end(&m.to);
    slot_customers_free(&m.customers);
    slot_copy_close(&m.copy);
    text_buffer_free(&m.json);
    return status;
}

/* --------------------------------------------------------------------------- cleaning -- */

/*
 * Removes what is left of a slot that is gone.  The owner got all of it before it owned the slot
 * under the version of the hand-over, and each later owner from the one before.  So whoever owns it
 * under that version or a later one has had these rows.  Who went back in time says an earlier one.
 *
 * The slot's row keeps the token of whoever cleans: before the first row goes, and for good, so that
 * nobody completes a move from what is not all there.  A move that brings the slot back writes its
 * own, and the cleaner's next transaction does nothing more.
 */
static tl_status read_left(struct move *m, struct slot *left)
{
    tl_status status = begin(&m->from);

    if (status == TL_OK)
        status = read_slot(m, &m->from, left);
    if (status == TL_OK && !is(left, "gone"))
        status = error_set(TL_REFUSED, "slot %u is not gone from shard %s: it is '%s' there",
                           m->said->slot, m->from.shard, left->state);
    return status;
}

static tl_status ask_owner(struct move *m, const struct slot *left)
{
    uint64_t version = 0;
    tl_status status = ask_version(m, &version);

    if (status == TL_OK && version < left->version)
        status = error_set(TL_REFUSED,
                           "shard %s owns slot %u under an earlier version than shard %s let it go "
                           "under, as after a restore: what is left of it stays",
                           m->to.shard, m->said->slot, m->from.shard);
    return status;
}

static tl_status begin_cleaning(struct move *m, const struct slot *seen)
{
    char said[ACT_SAID], tables[SLOT_TABLES_TEXT];
    const store_act act = act_of(m, "fleet clean", "", said);
    struct slot left;
    tl_status status = read_left(m, &left);

    if (status == TL_OK && left.version != seen->version)
        status = lost(m);
    if (status == TL_OK) {
        const store_slot to = {.state = "gone",
                               .other = left.other,
                               .version = left.version,
                               .tables = slot_tables_text(&left.tables, tables),
                               .token = m->token};

        status = turn(m, &m->from, &left, &to);
    }
    if (status == TL_OK)
        status = act_begin(m->from.connection, &act, 0, &m->act_no);
    if (status == TL_OK)
        status = note_at_owner(m, "fleet clean");
    status = end_step(&m->from, status);
    return status == TL_OK ? say(m, "noted") : status;
}

static tl_status begin_removing(void *context)
{
    struct move *m = context;
    struct slot left;

    return lock_own(m, &m->from, "gone", &left);
}

static tl_status end_removing(void *context, tl_status status)
{
    struct move *m = context;

    status = end_step(&m->from, status);
    return status == TL_OK ? say(m, "removed") : status;
}

/* The shard serves other customers meanwhile, whose locks may be met. */
static tl_status remove_page(struct move *m, size_t first)
{
    const slot_writing writing = {.begin = begin_removing, .end = end_removing, .context = m};
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
    tl_status status = TL_OK;

    for (size_t i = 0; i < m->customers.count && status == TL_OK; i += SLOT_CUSTOMERS)
        status = remove_page(m, i);
    snprintf(counts, sizeof counts, "customers=%" PRIu64 " rows=%" PRIu64, m->moved.customers,
             m->moved.rows);
    return status == TL_OK ? act_end(m->from.connection, m->act_no, counts) : status;
}

static tl_status count_left(struct move *m, const tl_slot_cleaning *cleaning)
{
    tl_status status = read_customers(m, &m->from);

    if (status == TL_OK)
        status = slot_copy_count(&m->copy, m->from.connection, &m->customers);
    if (status != TL_OK)
        return status;
    m->moved.customers = m->customers.count;
    m->moved.rows = m->copy.rows;
    if (cleaning->each_table != NULL)
        slot_copy_tell(&m->copy, cleaning->each_table, cleaning->context);
    return say(m, "counted");
}

static tl_status clean(struct move *m, const tl_slot_cleaning *cleaning)
{
    struct slot left;
    tl_status status = check_fleet(m);

    if (status == TL_OK)
        status = check_rules(m);
    if (status == TL_OK)
        status = be_alone(m, &m->from);
    if (status == TL_OK)
        status = read_left(m, &left);
    undo(&m->from);
    if (status == TL_OK)
        status = ask_owner(m, &left);
    if (status == TL_OK)
        status = slot_copy_open(&m->copy, m->from.connection, m->said->slot, &left.tables);
    if (status == TL_OK)
        status = count_left(m, cleaning);
    if (status != TL_OK || m->moved.rows == 0)
        return status;
    /* Whoever agreed to the count may have taken his time. */
    status = ask_owner(m, &left);
    if (status == TL_OK)
        status = begin_cleaning(m, &left);
    return status == TL_OK ? remove_left(m) : status;
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
    random_token(m.token);
    status = take_cleaning(&moving, cleaning);
    if (status == TL_OK)
        status = check_said(&m);
    if (status == TL_OK)
        status = open_end(&m.from);
    if (status == TL_OK)
        status = open_end(&m.to);
    if (status == TL_OK)
        status = clean(&m, cleaning);
    undo(&m.from);
    undo(&m.to);
    close_end(&m.from);
    close_end(&m.to);
    slot_customers_free(&m.customers);
    slot_copy_close(&m.copy);
    if (removed != NULL)
        *removed = m.moved;
    return status;
}
