/* The statements of the operators' side, bound to their parameters; each is one round trip. */
#ifndef TL_STORE_OPERATOR_H
#define TL_STORE_OPERATOR_H

#include "db/db.h"
#include "store/store.h"

#include <tradelock/engine.h>

/* The columns that every page of a list begins with. */
enum store_list_column {
    LIST_CUST,
    LIST_SERIAL,
    LIST_OP,
    LIST_LANE,
    LIST_STATUS,
    LIST_CONFLICT,
    LIST_PARKED,
    LIST_AGE_MS,
    LIST_LOG,
    LIST_FIRST_LOG,
    LIST_HAS_PAST,
    LIST_PLACE /* due: next_run in microseconds; held: the session */
};

/* Where a page starts; which fields count depends on the list. */
typedef struct store_list_start {
    char cust_no[TL_CUST_MAX + 1], serial_no[TL_SERIAL_MAX + 1], op_code[TL_OP_MAX + 1];
    char place[TL_UUID_TEXT]; /* due and held: LIST_PLACE; "" for the first */
    unsigned skip;            /* rows at exactly this place that were seen */
    int64_t end_us;           /* due: before this moment */
    int finished, open;       /* due: finished sync rows; what is in process */
} store_list_start;

/* Of these rows the keys of those of which a step was written under the log UUID. */
db_answer store_log_seen(db *connection, const tl_key *keys, size_t count, const char *log_uuid,
                         db_result *result);

db_answer store_list_customer(db *connection, const store_list_start *start, unsigned limit,
                              db_result *result);
db_answer store_list_due(db *connection, const char *op_code, const store_list_start *start,
                         unsigned limit, db_result *result);
db_answer store_list_held(db *connection, const char *op_code, const store_list_start *start,
                          unsigned limit, db_result *result);
db_answer store_list_idle(db *connection, const char *op_code, const store_list_start *start,
                          unsigned limit, db_result *result);

enum store_timeline_column {
    STEP_OP,
    STEP_STEP,
    STEP_STATUS,
    STEP_REV,
    STEP_FENCE,
    STEP_EPOCH,
    STEP_ATTEMPTS,
    STEP_CLAIMS,
    STEP_SENDS,
    STEP_CONFLICT,
    STEP_PROOF,
    STEP_THREAD,
    STEP_LOG,
    STEP_SESSION,
    STEP_PARKED,
    STEP_CHANNEL_KEY,
    STEP_CHANNEL_REF,
    STEP_REMARK,
    STEP_ACTOR,
    STEP_ACCOUNT,
    STEP_LOGGED,
    STEP_SEND_UNTIL,
    STEP_MAX_HOLD,
    STEP_NEXT_RUN
};
/* Of both lanes. */
db_answer store_timeline(db *connection, const tl_key *key, db_result *result);

enum store_evidence_column {
    EVIDENCE_ID,
    EVIDENCE_EPOCH,
    EVIDENCE_CHANNEL_KEY,
    EVIDENCE_OUTCOME,
    EVIDENCE_FINAL,
    EVIDENCE_CHANNEL_REF,
    EVIDENCE_SOURCE,
    EVIDENCE_REMARK,
    EVIDENCE_ACCOUNT,
    EVIDENCE_FILED
};
db_answer store_evidence_list(db *connection, const tl_key *key, db_result *result);

/* What a decision of two operators rests on; both rows are locked from then on. */
enum store_resolve_column {
    RESOLVE_STATUS,
    RESOLVE_EPOCH,
    RESOLVE_FENCE,
    RESOLVE_REV,
    RESOLVE_CONFLICT,
    RESOLVE_HELD,
    RESOLVE_SUCCESS_FILED,
    RESOLVE_MAY_SEND,
    RESOLVE_LANE_OPEN
};
db_answer store_resolve_lock(db *connection, const tl_key *key, const char *retry_op,
                             db_result *result);

/* One half of a decision; the second one carries it out. */
typedef struct store_resolution {
    const tl_key *key;
    uint64_t rev, fence;
    uint32_t epoch;
    char verdict;
    int part; /* 1 the proposal, 2 the confirmation */
    int although_pending;
    const char *actor, *reason, *thread_no, *log_no;
} store_resolution;
db_answer store_resolve_insert(db *connection, const store_resolution *resolution);
/* What was decided about this revision is not carried out; key, rev, reason, thread, log. */
db_answer store_resolve_refuse(db *connection, const store_resolution *resolution);

enum store_resolution_column {
    RESOLUTION_REV,
    RESOLUTION_FENCE,
    RESOLUTION_EPOCH,
    RESOLUTION_VERDICT,
    RESOLUTION_PART,
    RESOLUTION_REASON,
    RESOLUTION_ACTOR,
    RESOLUTION_ACCOUNT,
    RESOLUTION_OWN,
    RESOLUTION_DECIDED,
    RESOLUTION_ALTHOUGH_PENDING
};
db_answer store_resolve_list(db *connection, const tl_key *key, db_result *result);

/* (version, oldest_client) */
db_answer store_schema_version(db *connection, db_result *result);
db_answer store_schema_identity(db *connection);
/* What a look for a restore sees; session_id and age_ms (since its last confirmed beat) of the
 * session that may bear witness, NULL for none. */
enum store_restored_column {
    RESTORED_NOW,
    RESTORED_ON_RECORD,
    RESTORED_ACCEPTED,
    RESTORED_ACCEPTED_US,
    RESTORED_BEAT,
    RESTORED_ACCEPTED_SINCE
};
db_answer store_server_restored(db *connection, const char *session_id, int64_t age_ms,
                                db_result *result);
/* accepted: the number of the last accepted one, as it was seen. */
db_answer store_restore_found(db *connection, uint64_t accepted, const char *why);
db_answer store_restore_declare(db *connection, const char *actor, const char *reason);
typedef struct store_restore_half_of {
    uint64_t number;
    int confirms;
    const char *actor, *reason;
} store_restore_half_of;
db_answer store_restore_half(db *connection, const store_restore_half_of *half);
/* Within the transaction that confirms. */
db_answer store_restore_carry_out(db *connection, int64_t max_hold_ms, const char *thread_no);
enum store_restore_column {
    RESTORE_NOW,
    RESTORE_NUMBER,
    RESTORE_ACCEPTED,
    RESTORE_ACCEPTED_US,
    RESTORE_WAS,
    RESTORE_IS,
    RESTORE_SINCE_US,
    RESTORE_STEP,
    RESTORE_REASON,
    RESTORE_ACTOR,
    RESTORE_ACCOUNT,
    RESTORE_PROPOSAL,
    RESTORE_PROPOSER,
    RESTORE_PROPOSER_ACCOUNT,
    RESTORE_PROPOSED_US,
    RESTORE_OWN_PROPOSAL,
    RESTORE_PROPOSED_ELSEWHERE,
    RESTORE_CONFIRMER_ACCOUNT,
    RESTORE_OWN_CONFIRMATION,
    RESTORE_DOUBTFUL
};
db_answer store_restore_status(db *connection, db_result *result);
/* (op_code, state, how many); op_code "" for locks */
db_answer store_restore_trades(db *connection, db_result *result);
/* How long DDL waits for those who use a table. */
db_answer store_migrate_wait(db *connection, unsigned wait_s);
/* (1 when it is this connection's turn, 0 when the wait is over) */
db_answer store_migrate_turn(db *connection, unsigned wait_s, db_result *result);

/* (how many, the longest silence in seconds) */
db_answer store_doctor_sessions(db *connection, db_result *result);
/* (milliseconds); no row when nothing is due */
db_answer store_doctor_overdue(db *connection, const char *op_code, const store_stretch *stretch,
                               db_result *result);
/* (how many) */
db_answer store_doctor_conflicts(db *connection, db_result *result);
/* One text: "kind name" of every trigger, function, procedure and view, one a line. */
db_answer store_doctor_parts(db *connection, db_result *result);
/* The same for an administrator, a row each. */
db_answer store_migrate_parts(db *connection, db_result *result);
/* Settings and status of the server; the columns are those of the file. */
db_answer store_doctor_server(db *connection, db_result *result);
/* (name, value) */
db_answer store_doctor_variables(db *connection, db_result *result);
/* (the text of each grant) */
db_answer store_doctor_grants(db *connection, db_result *result);

/* One page of purging behind the key; then what it came to: (removed seen key), or no text. */
db_answer store_purge(db *connection, int64_t older_ms, unsigned most,
                      const store_list_start *after);
db_answer store_purge_result(db *connection, db_result *result);
/* The same for mutexes and read-write locks, behind the name. */
db_answer store_purge_resources(db *connection, int64_t older_ms, unsigned most, const char *after);
db_answer store_purge_rw(db *connection, int64_t older_ms, unsigned most, const char *after);
db_answer store_purge_sessions(db *connection, int64_t older_ms, unsigned most);
db_answer store_purge_sessions_result(db *connection, db_result *result);

/* Whether this account has a right: DB_DONE when it has; touches no row. */
typedef enum store_right_of {
    STORE_RIGHT_ASK,
    STORE_RIGHT_READ_RESOLUTION,
    STORE_RIGHT_WRITE_LOG,
    STORE_RIGHT_WRITE_FIRST,
    STORE_RIGHT_DELETE_LOG,
    STORE_RIGHT_DELETE_LOCK,
    STORE_RIGHT_CHANGE_EVIDENCE,
    STORE_RIGHT_FORGE,
    STORE_RIGHTS
} store_right_of;
db_answer store_right(db *connection, store_right_of right);

#endif
