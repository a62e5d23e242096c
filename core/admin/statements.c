/* The operators' statements, bound to their values.  Decides nothing, and touches only the
 * connection. */
#include "admin/statements.h"

#include "base/memory.h"
#include "store/bind.h"

#include <string.h>
#include "store/rows.h"

#include <stdio.h>
#include <stdlib.h>

/* The values of list_columns. */
#define LIST_FILTER(f)                                                                             \
    .cust = db_text((f)->cust), .op = db_text((f)->op), .retry_op = db_text((f)->retry_op),        \
    .lane = db_text((f)->lane), .status = db_text((f)->status), .channel = db_text((f)->channel),  \
    .batch = db_text((f)->batch), .channel_ref = db_text((f)->channel_ref),                        \
    .log_no = db_text((f)->log_no), .amount_over = db_int((f)->amount_over),                       \
    .since_us = db_int((f)->since_us), .until_us = db_int((f)->until_us),                          \
    .as_of_us = db_int((f)->as_of_us), .older_ms = db_int((f)->older_ms),                          \
    .idle_ms = db_int((f)->idle_ms)
#define LIST_AFTER_KEY(place)                                                                      \
    .after_cust = db_text((place)->cust_no), .after_serial = db_text((place)->serial_no)

db_answer store_list_serial(db *connection, const store_list_page *page,
                            const store_serials *serials, int conflict, db_result *result)
{
    return SQL_RUN(connection, result, list_serial, LIST_FILTER(page->filter),
                   .conflict = db_int(conflict), .first_serial = db_text(serials->first),
                   .last_serial = db_text(serials->last), LIST_AFTER_KEY(page->after),
                   .after_op = db_text(page->after->op_code), .most = db_uint(page->most));
}

db_answer store_list_parked(db *connection, const store_list_page *page,
                            const store_serials *serials, int conflict, db_result *result)
{
    return SQL_RUN(connection, result, list_parked, LIST_FILTER(page->filter),
                   .conflict = db_int(conflict), .first_serial = db_text(serials->first),
                   .last_serial = db_text(serials->last), .after_text = db_text(page->after->text),
                   LIST_AFTER_KEY(page->after), .after_op = db_text(page->after->op_code),
                   .most = db_uint(page->most));
}

db_answer store_list_recent(db *connection, const store_list_page *page, const char *op_code,
                            int64_t from_us, db_result *result)
{
    return SQL_RUN(connection, result, list_recent, LIST_FILTER(page->filter),
                   .due_op = db_text(op_code), .from_us = db_int(from_us),
                   .after_us = db_int(page->after->us), .after_text = db_text(page->after->text),
                   LIST_AFTER_KEY(page->after), .most = db_uint(page->most));
}

db_answer store_list_due(db *connection, const store_list_page *page, const char *op_code,
                         int64_t end_us, db_result *result)
{
    return SQL_RUN(connection, result, list_due, LIST_FILTER(page->filter),
                   .due_op = db_text(op_code), .end_us = db_int(end_us),
                   .after_us = db_int(page->after->us), .after_text = db_text(page->after->text),
                   LIST_AFTER_KEY(page->after), .most = db_uint(page->most));
}

db_answer store_list_doubt(db *connection, db_result *result)
{
    return db_run(connection, &sql_list_doubt, NULL, 0, result);
}

db_answer store_list_held(db *connection, const store_list_page *page, const char *op_code,
                          db_result *result)
{
    return SQL_RUN(connection, result, list_held, LIST_FILTER(page->filter),
                   .due_op = db_text(op_code), .after_text = db_text(page->after->text),
                   LIST_AFTER_KEY(page->after), .most = db_uint(page->most));
}

db_answer store_list_idle(db *connection, const store_list_page *page, const char *op_code,
                          db_result *result)
{
    return SQL_RUN(connection, result, list_idle, LIST_FILTER(page->filter),
                   .due_op = db_text(op_code), LIST_AFTER_KEY(page->after),
                   .most = db_uint(page->most));
}

db_answer store_list_customer(db *connection, const store_list_page *page, db_result *result)
{
    return SQL_RUN(connection, result, list_customer, LIST_FILTER(page->filter),
                   LIST_AFTER_KEY(page->after), .after_op = db_text(page->after->op_code),
                   .most = db_uint(page->most));
}

db_answer store_list_batch(db *connection, const store_list_page *page, db_result *result)
{
    return SQL_RUN(connection, result, list_batch, LIST_FILTER(page->filter),
                   LIST_AFTER_KEY(page->after), .after_op = db_text(page->after->op_code),
                   .most = db_uint(page->most));
}

db_answer store_list_ref(db *connection, const store_list_page *page, db_result *result)
{
    return SQL_RUN(connection, result, list_ref, LIST_FILTER(page->filter),
                   LIST_AFTER_KEY(page->after), .after_op = db_text(page->after->op_code),
                   .most = db_uint(page->most));
}

db_answer store_log_seen(db *connection, const tl_key *keys, size_t count, const char *log_uuid,
                         db_result *result)
{
    struct sql_log_seen_row *values = memory_new_array(count, sizeof *values);
    const store_rows rows = {.outside = SQL_VALUES(log_seen, .log_no = db_text(log_uuid)),
                             .rows = (const db_value *)values,
                             .count = count};
    db_answer answer;

    if (values == NULL)
        return DB_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        values[i] =
            SQL_ROW(log_seen, .cust_no = db_ascii(keys[i].cust_no),
                    .serial_no = db_ascii(keys[i].serial_no), .op_code = db_ascii(keys[i].op_code));
    answer = store_run_rows(connection, &sql_log_seen, &rows, result);
    memory_free(values);
    return answer;
}

db_answer store_session_was(db *connection, const char *session_id, db_result *result)
{
    return SQL_RUN(connection, result, session_was, .session_id = db_text(session_id));
}

db_answer store_timeline(db *connection, const tl_key *key, db_result *result)
{
    char retry_op[TL_OP_MAX + sizeof TL_RETRY_SUFFIX];

    snprintf(retry_op, sizeof retry_op, "%s%s", key->op_code, TL_RETRY_SUFFIX);
    return SQL_RUN(connection, result, timeline, .cust_no = db_text(key->cust_no),
                   .serial_no = db_text(key->serial_no), .op_code = db_text(key->op_code),
                   .retry_op = db_text(retry_op));
}

db_answer store_site(db *connection, db_result *result)
{
    return db_run(connection, &sql_site, NULL, 0, result);
}

db_answer store_channel_registered(db *connection, db_result *result)
{
    return db_run(connection, &sql_channel_registered, NULL, 0, result);
}

db_answer store_channel_waiting(db *connection, const char *channel, const char *op_code,
                                db_result *result)
{
    return SQL_RUN(connection, result, channel_waiting, .channel = db_text(channel),
                   .op_code = db_text(op_code));
}

db_answer store_overview_sessions(db *connection, db_result *result)
{
    return db_run(connection, &sql_overview_sessions, NULL, 0, result);
}

db_answer store_overview_inbox(db *connection, db_result *result)
{
    return db_run(connection, &sql_overview_inbox, NULL, 0, result);
}

db_answer store_slots_of(db *connection, const char *const *cust_nos, size_t first, size_t count,
                         db_result *result)
{
    struct sql_slots_of_row *values = memory_new_array(count, sizeof *values);
    const store_rows rows = {.rows = (const db_value *)values, .count = count};
    db_answer answer;

    if (values == NULL)
        return DB_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        values[i] = SQL_ROW(slots_of, .number = db_uint(first + i),
                            .cust_no = db_ascii(cust_nos[first + i]));
    answer = store_run_rows(connection, &sql_slots_of, &rows, result);
    memory_free(values);
    return answer;
}

db_answer store_slot_customers(db *connection, const char *after, unsigned most, db_result *result)
{
    return SQL_RUN(connection, result, slot_customers, .cust_no = db_ascii(after),
                   .most = db_uint(most));
}

db_answer store_schema_identity(db *connection)
{
    return db_run(connection, &sql_schema_identity, NULL, 0, NULL);
}

db_answer store_migrate_wait(db *connection, unsigned wait_s)
{
    return SQL_RUN(connection, NULL, migrate_wait, .wait_s = db_uint(wait_s));
}

db_answer store_migrate_turn(db *connection, unsigned wait_s, db_result *result)
{
    return SQL_RUN(connection, result, migrate_turn, .wait_s = db_uint(wait_s));
}

db_answer store_doctor_sessions(db *connection, db_result *result)
{
    return db_run(connection, &sql_doctor_sessions, NULL, 0, result);
}

db_answer store_doctor_overdue(db *connection, const char *op_code, const store_stretch *stretch,
                               db_result *result)
{
    return SQL_RUN(connection, result, doctor_overdue, .op_code = db_text(op_code),
                   .from_us = db_int(stretch->from_us), .to_us = db_int(stretch->to_us));
}

db_answer store_doctor_conflicts(db *connection, db_result *result)
{
    return db_run(connection, &sql_doctor_conflicts, NULL, 0, result);
}

db_answer store_doctor_parts(db *connection, db_result *result)
{
    return db_run(connection, &sql_doctor_parts, NULL, 0, result);
}

db_answer store_doctor_parts_made(db *connection, db_result *result)
{
    return db_run(connection, &sql_doctor_parts_made, NULL, 0, result);
}

db_answer store_migrate_objects(db *connection, db_result *result)
{
    return db_run(connection, &sql_migrate_objects, NULL, 0, result);
}

db_answer store_migrate_same(db *connection, const char *kind, const char *name, const char *other,
                             db_result *result)
{
    if (strcmp(kind, "trigger") == 0)
        return SQL_RUN(connection, result, migrate_same_trigger, .name = db_text(name),
                       .definition = db_text(other));
    if (strcmp(kind, "view") == 0)
        return SQL_RUN(connection, result, migrate_same_view, .name = db_text(name),
                       .other = db_text(other));
    return SQL_RUN(connection, result, migrate_same_routine, .name = db_text(name),
                   .other = db_text(other));
}

db_answer store_migrate_done(db *connection, unsigned version, int64_t retention_ms)
{
    return SQL_RUN(connection, NULL, migrate_done, .version = db_uint(version),
                   .retention_ms = db_int(retention_ms));
}

db_answer store_doctor_server(db *connection, db_result *result)
{
    return db_run(connection, &sql_doctor_server, NULL, 0, result);
}

db_answer store_doctor_mode(db *connection, db_result *result)
{
    return db_run(connection, &sql_doctor_mode, NULL, 0, result);
}

db_answer store_doctor_passes_over(db *connection, db_result *result)
{
    return db_run(connection, &sql_doctor_passes_over, NULL, 0, result);
}

db_answer store_doctor_variables(db *connection, db_result *result)
{
    return db_run(connection, &sql_doctor_variables, NULL, 0, result);
}

db_answer store_doctor_reach(db *connection, db_result *result)
{
    return db_run(connection, &sql_doctor_reach, NULL, 0, result);
}

db_answer store_doctor_temporary(db *connection, db_result *result)
{
    return db_run(connection, &sql_doctor_temporary, NULL, 0, result);
}

db_answer store_doctor_reach_own(db *connection, db_result *result)
{
    return db_run(connection, &sql_doctor_reach_own, NULL, 0, result);
}

db_answer store_doctor_grants(db *connection, db_result *result)
{
    return db_run(connection, &sql_doctor_grants, NULL, 0, result);
}

db_answer store_tables(db *connection, db_result *result)
{
    return db_run(connection, &sql_metrics_tables, NULL, 0, result);
}

uint64_t table_rows(const db_result *tables, const char *table)
{
    for (size_t row = 0; row < tables->rows; row++)
        if (strcmp(db_get_text(tables, row, 0), table) == 0)
            return db_get_uint(tables, row, 1);
    return 0;
}

db_answer store_purge(db *connection, const store_purge_what *what, const store_list_place *after)
{
    return SQL_RUN(connection, NULL, purge, .only_counts = db_int(what->only_counts),
                   .older_ms = db_int(what->older_ms), .most = db_uint(what->most),
                   .cust_no = db_text(after->cust_no), .serial_no = db_text(after->serial_no),
                   .op_code = db_text(after->op_code));
}

db_answer store_purge_result(db *connection, db_result *result)
{
    return db_run(connection, &sql_purge_result, NULL, 0, result);
}

db_answer store_purge_named(db *connection, int64_t older_ms, unsigned most,
                            const store_list_place *after)
{
    return SQL_RUN(connection, NULL, purge_named, .older_ms = db_int(older_ms),
                   .most = db_uint(most), .cust_no = db_text(after->cust_no),
                   .serial_no = db_text(after->serial_no), .op_code = db_text(after->op_code));
}

db_answer store_purge_named_result(db *connection, db_result *result)
{
    return db_run(connection, &sql_purge_named_result, NULL, 0, result);
}

db_answer store_purge_resources(db *connection, const store_purge_what *what, const char *after)
{
    return SQL_RUN(connection, NULL, purge_resources, .only_counts = db_int(what->only_counts),
                   .older_ms = db_int(what->older_ms), .most = db_uint(what->most),
                   .after = db_text(after));
}

db_answer store_purge_rw(db *connection, const store_purge_what *what, const char *after)
{
    return SQL_RUN(connection, NULL, purge_rw, .only_counts = db_int(what->only_counts),
                   .older_ms = db_int(what->older_ms), .most = db_uint(what->most),
                   .after = db_text(after));
}

db_answer store_purge_sessions(db *connection, const store_purge_what *what)
{
    if (what->only_counts)
        return SQL_RUN(connection, NULL, purge_sessions_count, .older_ms = db_int(what->older_ms));
    return SQL_RUN(connection, NULL, purge_sessions, .older_ms = db_int(what->older_ms),
                   .most = db_uint(what->most));
}

db_answer store_purge_sessions_result(db *connection, db_result *result)
{
    return db_run(connection, &sql_purge_sessions_result, NULL, 0, result);
}

db_answer store_attest_list(db *connection, uint64_t number, db_result *result)
{
    return SQL_RUN(connection, result, attest_list, .number = db_uint(number));
}

db_answer store_restore_open(db *connection, const char *how, const char *actor, const char *reason)
{
    return SQL_RUN(connection, NULL, restore_declare, .how = db_text(how),
                   .reason = db_text(reason), .actor = db_text(actor));
}

db_answer store_restore_half(db *connection, const store_restore_half_of *half)
{
    return SQL_RUN(connection, NULL, restore_half, .number = db_uint(half->number),
                   .half = db_text(half->confirms ? "confirmed" : "proposed"),
                   .reason = db_text(half->reason), .actor = db_text(half->actor));
}

db_answer store_restore_carry_out(db *connection, int64_t max_hold_ms, const char *thread_no)
{
    return SQL_RUN(connection, NULL, restore_carry_out, .max_hold_ms = db_int(max_hold_ms),
                   .thread_no = db_text(thread_no));
}

db_answer store_restore_status(db *connection, db_result *result)
{
    return db_run(connection, &sql_restore_status, NULL, 0, result);
}

db_answer store_restore_trades(db *connection, db_result *result)
{
    return db_run(connection, &sql_restore_trades, NULL, 0, result);
}

db_answer store_resolve_lock(db *connection, const tl_key *key, const char *retry_op,
                             db_result *result)
{
    return SQL_RUN(connection, result, resolve_lock, .retry_op = db_text(retry_op),
                   .cust_no = db_text(key->cust_no), .serial_no = db_text(key->serial_no),
                   .op_code = db_text(key->op_code));
}

db_answer store_resolve_insert(db *connection, const store_resolution *r)
{
    const char decision[2] = {r->decision, '\0'};

    return SQL_RUN(connection, NULL, resolve_insert, .cust_no = db_text(r->key->cust_no),
                   .serial_no = db_text(r->key->serial_no), .op_code = db_text(r->key->op_code),
                   .rev = db_uint(r->rev), .verdict = db_text(decision), .part = db_int(r->which),
                   .fence = db_uint(r->fence), .epoch = db_uint(r->epoch),
                   .reason = db_text(r->reason), .actor = db_text(r->actor),
                   .thread_no = db_text(r->thread_no), .log_no = db_text(r->log_no),
                   .although_pending = db_int(r->although_pending));
}

db_answer store_acts(db *connection, int64_t since_us, const char *person,
                     const store_acts_place *after, unsigned most, db_result *result)
{
    return SQL_RUN(connection, result, acts, .since_us = db_int(since_us),
                   .person = db_text(person), .after_us = db_int(after->us),
                   .after_origin = db_text(after->origin), .after_tie = db_text(after->tie),
                   .most = db_uint(most));
}

db_answer store_act_rows(db *connection, uint64_t act_no, uint64_t after_row, unsigned most,
                         db_result *result)
{
    return SQL_RUN(connection, result, act_rows, .act_no = db_uint(act_no),
                   .after_row = db_uint(after_row), .most = db_uint(most));
}

db_answer store_purge_acts(db *connection, int64_t older_ms, unsigned most)
{
    return SQL_RUN(connection, NULL, purge_acts, .older_ms = db_int(older_ms),
                   .most = db_uint(most));
}

db_answer store_purge_acts_result(db *connection, db_result *result)
{
    return db_run(connection, &sql_purge_acts_result, NULL, 0, result);
}

db_answer store_evidence_known(db *connection, const tl_payment *payments, size_t first,
                               size_t count, db_result *result)
{
    struct sql_evidence_known_row *values = memory_new_array(count, sizeof *values);
    const store_rows rows = {.rows = (const db_value *)values, .count = count};
    db_answer answer;

    if (values == NULL)
        return DB_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        values[i] = SQL_ROW(
            evidence_known, .number = db_uint(first + i), .cust_no = db_ascii(payments[i].cust_no),
            .serial_no = db_ascii(payments[i].serial_no), .op_code = db_ascii(payments[i].op_code),
            .channel_key = db_ascii(payments[i].channel_key),
            .channel_ref = db_text(payments[i].channel_ref),
            .amount_minor =
                payments[i].amount.is_told ? db_int(payments[i].amount.amount_minor) : db_null(),
            .currency = db_ascii(payments[i].amount.currency));
    answer = store_run_rows(connection, &sql_evidence_known, &rows, result);
    memory_free(values);
    return answer;
}

db_answer store_channel_list(db *connection, const char *channel, db_result *result)
{
    return SQL_RUN(
        connection, result, channel_list, .from_channel = db_text(channel != NULL ? channel : ""),
        .to_channel = db_text(channel != NULL ? channel : "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~"));
}

db_answer store_channel_use(db *connection, db_result *result)
{
    return db_run(connection, &sql_channel_use, NULL, 0, result);
}

db_answer store_channel_permits(db *connection, db_result *result)
{
    return db_run(connection, &sql_channel_permits, NULL, 0, result);
}

static db_value number_or_null(int64_t number)
{
    return number != 0 ? db_int(number) : db_text(NULL);
}

db_answer store_channel_decide(db *connection, const store_channel_decision *d)
{
    if (d->breaks)
        return SQL_RUN(connection, NULL, channel_breaker, .channel = db_text(d->channel),
                       .op_code = db_text(d->op_code), .unknowns = number_or_null(d->unknowns),
                       .share = number_or_null(d->share), .window_s = number_or_null(d->window_s),
                       .probe_s = db_int(d->probe_s), .log_no = db_text(d->log_no),
                       .actor = db_text(d->actor), .reason = db_text(d->reason));
    if (d->limits)
        return SQL_RUN(connection, NULL, channel_limit, .channel = db_text(d->channel),
                       .op_code = db_text(d->op_code), .sends = number_or_null(d->sends),
                       .per_second = number_or_null(d->per_second), .log_no = db_text(d->log_no),
                       .actor = db_text(d->actor), .reason = db_text(d->reason));
    return SQL_RUN(connection, NULL, channel_decide, .channel = db_text(d->channel),
                   .op_code = db_text(d->op_code), .paused = db_int(d->pauses),
                   .log_no = db_text(d->log_no), .actor = db_text(d->actor),
                   .reason = db_text(d->reason));
}

db_answer store_fleet_name(db *connection, const char *fleet, const char *shard)
{
    return SQL_RUN(connection, NULL, fleet_name, .fleet = db_text(fleet), .shard = db_text(shard));
}

db_answer store_fleet_probe(db *connection, db_result *result)
{
    return db_run(connection, &sql_fleet_probe, NULL, 0, result);
}

db_answer store_slot_list(db *connection, db_result *result)
{
    return db_run(connection, &sql_slot_list, NULL, 0, result);
}

db_answer store_slot_take(db *connection, const char *slots, const char *reason)
{
    return SQL_RUN(connection, NULL, slot_take, .slots = db_text(slots), .reason = db_text(reason));
}

db_answer store_slot_untake(db *connection)
{
    return db_run(connection, &sql_slot_untake, NULL, 0, NULL);
}

db_answer store_slot_strangers(db *connection, const char *slots, db_result *result)
{
    return SQL_RUN(connection, result, slot_strangers, .slots = db_text(slots));
}

db_answer store_slot_row(db *connection, unsigned slot, db_result *result)
{
    return SQL_RUN(connection, result, slot_row, .slot = db_uint(slot));
}

static db_value token_of(const store_slot *s)
{
    return s->token != NULL ? db_bytes(s->token, STORE_SLOT_TOKEN) : db_null();
}

db_answer store_slot_turn(db *connection, unsigned slot, const store_slot *was,
                          const store_slot *is, const char *reason, db_result *result)
{
    return SQL_RUN(
        connection, result, slot_turn, .slot = db_uint(slot), .state = db_text(is->state),
        .sealed = db_int(is->sealed), .version = db_uint(is->version), .other = db_text(is->other),
        .tables = db_text(is->tables), .taking = db_text(is->taking), .token = token_of(is),
        .reason = db_text(reason), .was = db_text(was->state), .was_sealed = db_int(was->sealed),
        .was_version = db_uint(was->version), .was_token = token_of(was));
}

db_answer store_slot_make(db *connection, unsigned slot, const store_slot *is, const char *reason)
{
    return SQL_RUN(connection, NULL, slot_make, .slot = db_uint(slot),
                   .version = db_uint(is->version), .other = db_text(is->other),
                   .tables = db_text(is->tables), .token = token_of(is), .reason = db_text(reason));
}

db_answer store_slot_alone(db *connection, unsigned slot, db_result *result)
{
    return SQL_RUN(connection, result, slot_alone, .slot = db_uint(slot));
}

db_answer store_slot_rule(db *connection, db_result *result)
{
    return db_run(connection, &sql_slot_rule, NULL, 0, result);
}

db_answer store_slot_idle(db *connection, unsigned seconds)
{
    return SQL_RUN(connection, NULL, slot_idle, .seconds = db_uint(seconds));
}

db_answer store_slot_mover(db *connection, const unsigned char *token)
{
    return SQL_RUN(connection, NULL, slot_mover, .token = db_bytes(token, STORE_SLOT_TOKEN));
}

db_answer store_slot_blockers(db *connection, const char *customers, db_result *result)
{
    return SQL_RUN(connection, result, slot_blockers, .customers = db_text(customers));
}

db_answer store_slot_sends(db *connection, const char *customers, db_result *result)
{
    return SQL_RUN(connection, result, slot_sends, .customers = db_text(customers));
}

db_answer store_slot_unknown(db *connection, const char *trades, db_result *result)
{
    return SQL_RUN(connection, result, slot_unknown, .trades = db_text(trades));
}

db_answer store_slot_fence_out(db *connection, const char *cust_no, const char *actor)
{
    return SQL_RUN(connection, NULL, slot_fence_out, .cust_no = db_text(cust_no),
                   .thread_no = db_text(tl_thread_uuid()), .actor = db_text(actor));
}

db_answer store_slot_raise(db *connection, const char *cust_no, const char *actor)
{
    return SQL_RUN(connection, NULL, slot_raise, .cust_no = db_text(cust_no),
                   .thread_no = db_text(tl_thread_uuid()), .actor = db_text(actor));
}

db_answer store_slot_table(db *connection, const char *table_name, db_result *result)
{
    return SQL_RUN(connection, result, slot_table, .table_name = db_text(table_name));
}
