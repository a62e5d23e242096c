/* The operators' statements, bound to their parameters; each is one round trip. */
#ifndef TL_ADMIN_STATEMENTS_H
#define TL_ADMIN_STATEMENTS_H

#include "db/db.h"
#include "store/decision.h"
#include "store/store.h"

#include <tradelock/admin/audit.h>

/* The columns of every page of a list. */
enum store_list_column {
    LIST_CUST,
    LIST_SERIAL,
    LIST_OP,
    LIST_STATUS,
    LIST_REV,
    LIST_LOGGED,
    LIST_PASSES,
    LIST_PLACE_US,
    LIST_PLACE_TEXT
};

/* What list_columns asks of a row; "" and 0 (amount_over: -1) for whatever is not asked. */
typedef struct store_list_filter {
    const char *cust, *op, *retry_op, *lane, *status, *channel, *log_no, *batch, *channel_ref;
    int64_t amount_over, since_us, until_us, as_of_us, older_ms, idle_ms;
} store_list_filter;

/* A row's place in a list; the next page starts behind it.  What `us` and `text` are depends on the
 * list: the next moment; the reason why it is parked, or the holder's session. */
typedef struct store_list_place {
    int64_t us;
    char text[64];
    char cust_no[TL_CUST_MAX + 1], serial_no[TL_SERIAL_MAX + 1], op_code[TL_OP_MAX + 1];
} store_list_place;

typedef struct store_list_page {
    const store_list_filter *filter;
    const store_list_place *after;
    unsigned most;
} store_list_page;

/* Serial numbers from one to another. */
typedef struct store_serials {
    const char *first, *last;
} store_serials;
db_answer store_list_serial(db *connection, const store_list_page *page,
                            const store_serials *serials, int conflict, db_result *result);
db_answer store_list_parked(db *connection, const store_list_page *page,
                            const store_serials *serials, int conflict, db_result *result);
db_answer store_list_recent(db *connection, const store_list_page *page, const char *op_code,
                            int64_t from_us, db_result *result);
db_answer store_list_doubt(db *connection, db_result *result);
db_answer store_list_due(db *connection, const store_list_page *page, const char *op_code,
                         int64_t end_us, db_result *result);
db_answer store_list_held(db *connection, const store_list_page *page, const char *op_code,
                          db_result *result);
db_answer store_list_idle(db *connection, const store_list_page *page, const char *op_code,
                          db_result *result);
db_answer store_list_customer(db *connection, const store_list_page *page, db_result *result);
/* The batch, the reference are the filter's. */
db_answer store_list_batch(db *connection, const store_list_page *page, db_result *result);
db_answer store_list_ref(db *connection, const store_list_page *page, db_result *result);

/* The keys of those of these rows that have a step written under the log UUID. */
db_answer store_log_seen(db *connection, const tl_key *keys, size_t count, const char *log_uuid,
                         db_result *result);

/* ("program pid@host", the end of its life in microseconds or NULL); no row: it is forgotten. */
db_answer store_session_was(db *connection, const char *session_id, db_result *result);

/* The steps of both lanes. */
db_answer store_timeline(db *connection, const tl_key *key, db_result *result);

/* (site) of the installation */
db_answer store_site(db *connection, db_result *result);
/* (channel, op, contract, sessions that live and have registered it) */
db_answer store_channel_registered(db *connection, db_result *result);
/* (serial, cust): a trade of it that waits; or no row. */
db_answer store_channel_waiting(db *connection, const char *channel, const char *op_code,
                                db_result *result);
/* (session, program, pid, host, operations, started, silent, time-out in ms, ended, now) */
db_answer store_overview_sessions(db *connection, db_result *result);
/* (what, serial, cust, op, fence, said, reason, actor, account, own, moment) */
db_answer store_overview_inbox(db *connection, db_result *result);
/* (number, slot), numbered from `first` on */
db_answer store_slots_of(db *connection, const char *const *cust_nos, size_t first, size_t count,
                         db_result *result);
/* (customer, slot, state) of customers behind this one */
db_answer store_slot_customers(db *connection, const char *after, unsigned most, db_result *result);

/* What operators decided about channels; op_code "": about a channel as a whole. */
/* channel NULL: of all. */
db_answer store_channel_list(db *connection, const char *channel, db_result *result);
/* The limits, and how much of each is used; what is NULL is 0. */
db_answer store_channel_use(db *connection, db_result *result);
/* (session, permits) */
db_answer store_channel_permits(db *connection, db_result *result);
typedef struct store_channel_decision {
    const char *channel, *op_code; /* op_code "": the channel as a whole */
    int pauses;
    const char *log_no; /* NULL: none */
    const char *actor, *reason;
    /* Instead of a pause: a limit, each number 0 for none. */
    int limits;
    int64_t sends, per_second;
    /* Or a breaker; unknowns 0: none any more; share and window_s 0: no share. */
    int breaks;
    int64_t unknowns, share, window_s, probe_s;
} store_channel_decision;
db_answer store_channel_decide(db *connection, const store_channel_decision *decision);

/* What a decision of two operators rests on.  Reading it locks both rows. */
db_answer store_resolve_lock(db *connection, const tl_key *key, const char *retry_op,
                             db_result *result);

db_answer store_resolve_insert(db *connection, const store_resolution *resolution);

db_answer store_schema_identity(db *connection);
/* (session, whose, attested, missing, kept or NULL, step, cust_no, serial_no, op_code, token). */
db_answer store_attest_list(db *connection, uint64_t number, db_result *result);
/* how: "declared" or "promoted". */
db_answer store_restore_open(db *connection, const char *how, const char *actor,
                             const char *reason);
typedef struct store_restore_half_of {
    uint64_t number;
    int confirms;
    const char *actor, *reason;
} store_restore_half_of;
db_answer store_restore_half(db *connection, const store_restore_half_of *half);
/* Within the transaction that confirms. */
db_answer store_restore_carry_out(db *connection, int64_t max_hold_ms, const char *thread_no);
db_answer store_restore_status(db *connection, db_result *result);
/* (op_code, state, how many); op_code "" for locks */
db_answer store_restore_trades(db *connection, db_result *result);
/* Sets how long DDL waits while others use a table. */
db_answer store_migrate_wait(db *connection, unsigned wait_s);
/* (1: it is this connection's turn; 0: the wait is over) */
db_answer store_migrate_turn(db *connection, unsigned wait_s, db_result *result);

/* (how many, the longest silence in seconds) */
db_answer store_doctor_sessions(db *connection, db_result *result);
/* (milliseconds); no row when nothing is due */
db_answer store_doctor_overdue(db *connection, const char *op_code, const store_stretch *stretch,
                               db_result *result);
/* (how many) */
db_answer store_doctor_conflicts(db *connection, db_result *result);
/* One text: "kind name" of every schema object, one a line. */
db_answer store_doctor_parts(db *connection, db_result *result);
/* One text: "kind name HASH" of every trigger, function and procedure, one a line. */
db_answer store_doctor_parts_made(db *connection, db_result *result);
/* As store_doctor_parts() for an administrator, a row each. */
db_answer store_migrate_objects(db *connection, db_result *result);
/* (1: the object is the same as `other`).  For a trigger, `other` is a definition; for other
 * kinds, the name of an object that was made from the definition. */
db_answer store_migrate_same(db *connection, const char *kind, const char *name, const char *other,
                             db_result *result);
db_answer store_migrate_done(db *connection, unsigned version, int64_t retention_ms);
/* Settings and status of the server; the columns are those of the file. */
db_answer store_doctor_server(db *connection, db_result *result);
/* (name, value) */
db_answer store_doctor_variables(db *connection, db_result *result);
db_answer store_doctor_passes_over(db *connection, db_result *result);
db_answer store_doctor_mode(db *connection, db_result *result);
/* (the text of each grant) */
db_answer store_doctor_grants(db *connection, db_result *result);
/* (account or role, whether it is a role, the other database), of all or of this account. */
db_answer store_doctor_reach(db *connection, db_result *result);
db_answer store_doctor_reach_own(db *connection, db_result *result);
/* (account or role) that may make temporary tables, as far as this account sees it. */
db_answer store_doctor_temporary(db *connection, db_result *result);

/* (table, about how many rows, bytes) of those that grow with every trade */
db_answer store_tables(db *connection, db_result *result);
/* Of that result; 0: the table is not in it. */
uint64_t table_rows(const db_result *tables, const char *table);

/* What a page of a purge is to do. */
typedef struct store_purge_what {
    int only_counts; /* nothing is removed */
    int64_t older_ms;
    unsigned most;
} store_purge_what;
/* Purges one page behind the key.  The result is then the text "removed seen key ...", or none. */
db_answer store_purge(db *connection, const store_purge_what *what, const store_list_place *after);
db_answer store_purge_result(db *connection, db_result *result);
/* Names a page of trades that may go: (the same text, the trades as JSON). */
db_answer store_purge_named(db *connection, int64_t older_ms, unsigned most,
                            const store_list_place *after);
db_answer store_purge_named_result(db *connection, db_result *result);
/* The same for lease mutexes and read-write locks, behind the name. */
db_answer store_purge_resources(db *connection, const store_purge_what *what, const char *after);
db_answer store_purge_rw(db *connection, const store_purge_what *what, const char *after);
/* Counts all at once where it only counts. */
db_answer store_purge_sessions(db *connection, const store_purge_what *what);
db_answer store_purge_sessions_result(db *connection, db_result *result);

#define ACTS_TIE_MAX 191
/* Behind which act a page starts. */
typedef struct store_acts_place {
    int64_t us;
    char origin[2], tie[ACTS_TIE_MAX + 1];
} store_acts_place;
/* person: "": all pass. */
db_answer store_acts(db *connection, int64_t since_us, const char *person,
                     const store_acts_place *after, unsigned most, db_result *result);
db_answer store_act_rows(db *connection, uint64_t act_no, uint64_t after_row, unsigned most,
                         db_result *result);
/* As store_purge_sessions(), of acts with their rows. */
db_answer store_purge_acts(db *connection, int64_t older_ms, unsigned most);
db_answer store_purge_acts_result(db *connection, db_result *result);

/* Of the payments, of which the first has that number. */
db_answer store_evidence_known(db *connection, const tl_payment *payments, size_t first,
                               size_t count, db_result *result);

db_answer store_fleet_name(db *connection, const char *fleet, const char *shard);
db_answer store_fleet_probe(db *connection, db_result *result);
db_answer store_slot_list(db *connection, db_result *result);
/* slots: a JSON array; or a digit for each slot. */
db_answer store_slot_take(db *connection, const char *slots, const char *reason);
db_answer store_slot_untake(db *connection);
db_answer store_slot_strangers(db *connection, const char *slots, db_result *result);

/* The columns of slot_row. */
db_answer store_slot_row(db *connection, unsigned slot, db_result *result);

/* What a slot is, or is to become.  NULL: none. */
#define STORE_SLOT_TOKEN 16
typedef struct store_slot {
    const char *state, *other, *tables, *taking;
    uint64_t version;
    int sealed;
    const unsigned char *token;
} store_slot;
db_answer store_slot_turn(db *connection, unsigned slot, const store_slot *was,
                          const store_slot *is, const char *reason, db_result *result);
db_answer store_slot_make(db *connection, unsigned slot, const store_slot *is, const char *reason);
db_answer store_slot_alone(db *connection, unsigned slot, db_result *result);
db_answer store_slot_rule(db *connection, db_result *result);
db_answer store_slot_idle(db *connection, unsigned seconds);
db_answer store_slot_mover(db *connection, const unsigned char *token);
/* customers: a JSON array. */
db_answer store_slot_blockers(db *connection, const char *customers, db_result *result);
/* (a JSON object); trades: a JSON array of them.  (customer, serial, operation, paid). */
db_answer store_slot_sends(db *connection, const char *customers, db_result *result);
db_answer store_slot_unknown(db *connection, const char *trades, db_result *result);
db_answer store_slot_fence_out(db *connection, const char *cust_no, const char *actor);
db_answer store_slot_raise(db *connection, const char *cust_no, const char *actor);
db_answer store_slot_table(db *connection, const char *table_name, db_result *result);

#endif
