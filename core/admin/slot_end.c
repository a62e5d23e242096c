/*
 * Opens and closes both ends of a slot's move, reads and changes the slot's row, and checks what was
 * said.
 *
 * An end has one connection of its own and at most one transaction at a time.  A step begins it, reads
 * the slot's row, which locks it, and commits if all went well.  Each change of the row wants it as it
 * was read, so a mover that was overtaken changes nothing.  Both ends must be of one fleet and have one
 * rule of slots, and one process at a time moves a slot.
 */
#include "admin/slot_end.h"
#include "admin/words.h"

#include "base/error.h"
#include "base/random.h"
#include "client/client.h"
#include "client/read.h"
#include "client/schema.h"
#include "store/bind.h"
#include "store/server.h"

#include "sql_text.h"

#include <stdio.h>
#include <string.h>

db_value slot_token_value(const unsigned char *token)
{
    return token != NULL ? db_bytes(token, STORE_SLOT_TOKEN) : db_null();
}

_Static_assert(RANDOM_TOKEN == STORE_SLOT_TOKEN, "a token is one");

/* ------------------------------------------------------------------- a transaction -- */

tl_status end_status(const struct end *at, db_answer answer, const char *doing)
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
    return end_status(at, answer, "beginning a step of a move");
}

static tl_status commit(struct end *at)
{
    const db_answer answer = db_commit(at->connection);

    at->open = 0;
    return end_status(at, answer, "committing a step of a move");
}

void end_undo(struct end *at)
{
    if (at->open)
        (void)db_rollback(at->connection);
    at->open = 0;
}

tl_status end_step(struct end *at, tl_status status)
{
    if (status == TL_OK)
        return commit(at);
    end_undo(at);
    return status;
}

/* ------------------------------------------------------------------------ the slot -- */

tl_status slot_say(struct move *m, const char *done)
{
    if (m->said->progress == NULL)
        return TL_OK;
    return m->said->progress(m->said->context, done, &m->moved) == 0
               ? TL_OK
               : error_set(TL_REFUSED, "it was stopped");
}

tl_status slot_read(struct move *m, struct end *at, struct slot *to)
{
    RESULT r = DB_RESULT_INIT;
    tl_status status =
        end_status(at, SQL_RUN(at->connection, &r, slot_row, .slot = db_uint(m->said->slot)),
                   "reading the slot");
    size_t size = 0;
    const void *token;

    memset(to, 0, sizeof *to);
    text_copy(to->state, sizeof to->state, "none");
    if (status == TL_OK && r.rows == 1) {
        text_copy(to->state, sizeof to->state, db_get_text(&r, 0, COLUMN_slot_row_state));
        text_copy(to->other, sizeof to->other, db_get_text(&r, 0, COLUMN_slot_row_other));
        to->version = db_get_uint(&r, 0, COLUMN_slot_row_version);
        to->sealed = db_get_int(&r, 0, COLUMN_slot_row_sealed) != 0;
        token = db_get_bytes(&r, 0, COLUMN_slot_row_token, &size);
        to->has_token = !db_is_null(&r, 0, COLUMN_slot_row_token) && size == STORE_SLOT_TOKEN;
        if (to->has_token)
            memcpy(to->token, token, STORE_SLOT_TOKEN);
        slot_tables_read(&to->tables, db_get_text(&r, 0, COLUMN_slot_row_tables));
        to->takes = !db_is_null(&r, 0, COLUMN_slot_row_taking);
        slot_tables_read(&to->taking, to->takes ? db_get_text(&r, 0, COLUMN_slot_row_taking) : "");
    }
    return status;
}

tl_status slot_begin(struct move *m, struct end *at, struct slot *to)
{
    TRY(begin(at));
    return slot_read(m, at, to);
}

int slot_is(const struct slot *s, const char *state)
{
    return strcmp(s->state, state) == 0;
}

tl_status slot_lost(const struct move *m)
{
    return error_set(TL_LOST, "somebody else moves slot %u now", m->said->slot);
}

tl_status slot_turn(struct move *m, struct end *at, const struct slot *was, const store_slot *to)
{
    RESULT r = DB_RESULT_INIT;

    TRY(end_status(at,
                   SQL_RUN(at->connection, &r, slot_turn, .slot = db_uint(m->said->slot),
                           .state = db_text(to->state), .sealed = db_int(to->sealed),
                           .version = db_uint(to->version), .other = db_text(to->other),
                           .tables = db_text(to->tables), .taking = db_text(to->taking),
                           .token = slot_token_value(to->token), .reason = db_text(m->said->reason),
                           .was = db_text(was->state), .was_sealed = db_int(was->sealed),
                           .was_version = db_uint(was->version),
                           .was_token = slot_token_value(was->has_token ? was->token : NULL)),
                   "changing the slot"));
    if (r.affected != 1)
        return slot_lost(m);
    return TL_OK;
}

tl_status slot_lock_own(struct move *m, struct end *at, const char *state, struct slot *found)
{
    tl_status status = slot_begin(m, at, found);

    if (status == TL_OK && (!slot_is(found, state) || !found->has_token ||
                            memcmp(found->token, m->token, sizeof m->token) != 0))
        status = slot_lost(m);
    if (status != TL_OK)
        end_undo(at);
    return status;
}

tl_status slot_read_customers(struct move *m, struct end *at)
{
    slot_customers_free(&m->customers);
    return slot_customers_read(&m->customers, &m->copy, at->connection);
}

int slot_may_come_still(const struct move *m, const struct slot *owner, const struct slot *target)
{
    return owner->version < target->version ||
           (owner->version == target->version && strcmp(target->other, m->from.shard) != 0);
}

/* ----------------------------------------------------------------------- on record -- */

store_act slot_act(const struct move *m, const char *what, const char *more,
                   char said[SLOT_ACT_SAID])
{
    snprintf(said, SLOT_ACT_SAID, "slot %u from %s to %s%s", m->said->slot, m->from.shard,
             m->to.shard, more);
    return (store_act){.what = what,
                       .said = said,
                       .reason = m->said->reason,
                       .actor = m->said->actor,
                       .log_no = words_or_null(tl_log_uuid())};
}

tl_status slot_note_that(struct move *m, struct end *at, const char *what, const char *more)
{
    char said[SLOT_ACT_SAID];
    const store_act act = slot_act(m, what, more, said);

    return end_status(at, store_act_note(at->connection, &act, NULL), "noting the move");
}

tl_status slot_note(struct move *m, struct end *at, const char *what)
{
    return slot_note_that(m, at, what, "");
}

/* --------------------------------------------------------------- many transactions -- */

tl_status slot_run_begin(void *context)
{
    const struct slot_run *run = context;
    struct slot found;

    return slot_lock_own(run->move, run->at, run->state, &found);
}

tl_status slot_run_end(void *context, tl_status status)
{
    const struct slot_run *run = context;

    status = end_step(run->at, status);
    return status == TL_OK && run->done != NULL ? slot_say(run->move, run->done) : status;
}

slot_writing slot_run_writing(struct slot_run *run)
{
    return (slot_writing){.begin = slot_run_begin, .end = slot_run_end, .context = run};
}

/* ---------------------------------------------------------------- what comes first -- */

tl_status slot_check_said(struct move *m)
{
    const tl_slot_moving *s = m->said;

    if (s == NULL || s->version != TL_SLOT_MOVING_VERSION)
        return error_set(TL_INVALID, "moving is NULL or its version is not set");
    if (s->slot >= TL_FLEET_SLOTS)
        return error_set(TL_INVALID, "slots are 0 to %d", TL_FLEET_SLOTS - 1);
    if (s->tables == NULL && s->tables_count > 0)
        return error_set(TL_INVALID, "tables is NULL");
    TRY(slot_tables_take(&m->named, s->tables, s->tables_count));
    return read_check_person(s->actor, s->reason);
}

/* The server ends a transaction that stands idle.  At the one end it stands while the other one
 * answers a statement, for read_timeout_s at most, and a little for what lies between. */
static tl_status stay_idle(struct end *at)
{
    const struct config *c = &at->client->config;
    const unsigned seconds = c->read_timeout_s + SLOT_BETWEEN_S;

    return end_status(
        at,
        SQL_RUN(at->connection, NULL, slot_idle,
                .seconds =
                    db_uint(seconds > c->idle_transaction_s ? seconds : c->idle_transaction_s)),
        "connecting");
}

tl_status end_open(struct end *at)
{
    schema_found found;

    TRY(client_check(at->client));
    TRY(pool_open_extra(at->client->connections, POOL_BUSINESS, &at->connection));
    TRY(stay_idle(at));
    TRY(schema_read(at->connection, &found));
    return schema_judge(&found);
}

tl_status end_read_names(struct end *at, char fleet[TL_FLEET_NAME_MAX + 1])
{
    RESULT r = DB_RESULT_INIT;

    fleet[0] = '\0';
    TRY(end_status(at, db_run(at->connection, &sql_fleet_of, NULL, 0, &r), "reading its name"));
    if (r.rows == 1 && !db_is_null(&r, 0, FLEET_OF_NAME)) {
        text_copy(fleet, TL_FLEET_NAME_MAX + 1, db_get_text(&r, 0, FLEET_OF_NAME));
        text_copy(at->shard, sizeof at->shard, db_get_text(&r, 0, FLEET_OF_SHARD));
    }
    return TL_OK;
}

tl_status slot_check_fleet(struct move *m)
{
    char from[TL_FLEET_NAME_MAX + 1], to[TL_FLEET_NAME_MAX + 1];

    TRY(end_read_names(&m->from, from));
    TRY(end_read_names(&m->to, to));
    if (from[0] == '\0' || strcmp(from, to) != 0)
        return error_set(TL_REFUSED, "these two databases are not of one fleet");
    if (strcmp(m->from.shard, m->to.shard) == 0)
        return error_set(TL_REFUSED, "both ends are shard %s", m->from.shard);
    return TL_OK;
}

tl_status end_refuse_restored(const struct end *at)
{
    return error_set(TL_ASK_CHANNEL,
                     "shard %s: a restore is open, or the rule of slots is missing: nothing is "
                     "moved",
                     at->shard);
}

tl_status end_read_rule(struct end *at, char rule[80])
{
    RESULT r = DB_RESULT_INIT;

    TRY(end_status(at, db_run(at->connection, &sql_slot_rule, NULL, 0, &r),
                   "looking at the rule of slots"));
    if (r.rows != 1)
        return end_refuse_restored(at);
    at->is_restored = db_get_int(&r, 0, 0) != 0;
    text_copy(rule, 80, db_get_text(&r, 0, 1));
    return TL_OK;
}

tl_status slot_check_rules(struct move *m)
{
    char from[80] = "", to[80] = "";

    TRY(end_read_rule(&m->from, from));
    TRY(end_read_rule(&m->to, to));
    if (strcmp(from, to) != 0)
        return error_set(TL_REFUSED,
                         "tl_customer_slot() is another rule at shard %s than at "
                         "shard %s",
                         m->from.shard, m->to.shard);
    if (m->from.is_restored)
        return end_refuse_restored(&m->from);
    return TL_OK;
}

tl_status slot_be_alone(struct move *m, struct end *at)
{
    RESULT r = DB_RESULT_INIT;

    TRY(end_status(at, SQL_RUN(at->connection, &r, slot_alone, .slot = db_uint(m->said->slot)),
                   "waiting for the turn to move"));
    if (r.rows != 1 || db_get_int(&r, 0, 0) != 1)
        return error_set(TL_BUSY, "another process moves slot %u just now", m->said->slot);
    return TL_OK;
}

tl_status slot_open_ends(struct move *m)
{
    text_buffer_init(&m->json);
    random_token(m->token);
    TRY(slot_check_said(m));
    TRY(end_open(&m->from));
    return end_open(&m->to);
}

static void close_end(struct end *at)
{
    if (at->connection != NULL)
        pool_close_extra(at->client->connections, at->connection);
}

void slot_close_ends(struct move *m)
{
    end_undo(&m->from);
    end_undo(&m->to);
    close_end(&m->from);
    close_end(&m->to);
    slot_customers_free(&m->customers);
    slot_copy_close(&m->copy);
    text_buffer_free(&m->json);
}

/* ---------------------------------------------------------------- the owner's word -- */

tl_status slot_ask_version(struct move *m, uint64_t *version)
{
    RESULT r = DB_RESULT_INIT;

    TRY(end_status(&m->to,
                   SQL_RUN(m->to.connection, &r, slot_version, .slot = db_uint(m->said->slot)),
                   "asking who owns the slot"));
    if (r.rows == 0)
        return error_set(TL_REFUSED,
                         "shard %s does not own slot %u: what is left of it at shard %s stays",
                         m->to.shard, m->said->slot, m->from.shard);
    *version = db_get_uint(&r, 0, 0);
    return TL_OK;
}

tl_status slot_note_at_owner(struct move *m, const char *what)
{
    tl_status status = begin(&m->to);

    if (status == TL_OK)
        status = slot_note(m, &m->to, what);
    return end_step(&m->to, status);
}
