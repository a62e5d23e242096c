/*
 * record.h - the rows that people see, each field described once.
 *
 * A map has a line for each field of a struct:
 *
 *     X(type, member, how it is shown ...)
 *
 * From it come the reader of the row, which takes the column that is named like the member, and
 * what programs print.  The programs of this version are built with it: a later one may say more.
 *
 *     JSON(name)             in JSON, in the order of the map
 *     LIST(column, heading)  in a list that has such columns
 *     YES(word)              what a list says where a FLAG is set, instead of yes
 *     SHOW(label)            in the paragraph of `tradelock show`
 *     DESK(label)            among the facts on the desk, and over a column there
 *     IN(group)              with which other fields `show` and the desk print it
 *
 *     type      what it is, in C                         in words
 *     TEXT      char []
 *     STRING    const char *; NULL: none
 *     LETTER    char; ' ': none
 *     LANE      char: 'S', 'R'                           sync, retry
 *     PROOF     char: a tl_proof                         its name; TL_PROOF_NONE: nothing
 *     STATE     tl_state                                 its name; so MUTEX, a tl_resource_state,
 *                                                        HOLDER, a tl_holder_state, and DECISION,
 *                                                        a tl_decision
 *     MODE      tl_rw_mode                               read, write
 *     FLAG      int: 0 or 1                              yes, or nothing
 *     COUNT     uint32_t
 *     NUMBER    uint64_t
 *     SIGNED    int64_t
 *     TIME      int64_t: microseconds since 1970; 0: none
 *     MONEY     int64_t in minor units, and the currency behind it; "": none is told
 *     HASH      unsigned char [TL_FINGERPRINT]; zeros: none
 *     BYTES     const void *, and the size behind it
 *     WORDS     const char *, never NULL; "": none
 *     SOME      uint64_t or int64_t; 0: none             nothing for none
 *     SET       int64_t: whether it is not 0             yes, or nothing
 *     SPAN      int64_t: microseconds                    seconds; so SPAN_MS, milliseconds
 *     LEVEL     tl_finding_level                         ok, warning, unsafe
 *     KEY       tl_key, from three columns; its words stand beside it
 *
 * ALSO_ and a type: no column of that name is read, since whoever reads the row makes it.
 */
#ifndef TRADELOCK_RECORD_H
#define TRADELOCK_RECORD_H

/* clang-format off */

/* What a request says of itself, a tl_said and the end of a tl_view: `said_columns` of sql/query. */
#define TL_SAID_MAP(X)                                                                            \
    X(MONEY, amount_minor, JSON("amount_minor"))                                                  \
    X(TEXT, currency, JSON("currency"), LIST("currency", "CURRENCY"))                             \
    X(TEXT, batch, IN(REQUEST), JSON("batch"), LIST("batch", "BATCH"), SHOW("batch"),             \
      DESK("Batch"))                                                                              \
    X(TEXT, traceparent, IN(REQUEST), JSON("traceparent"), LIST("traceparent", "TRACE CONTEXT"),  \
      SHOW("trace context"), DESK("Trace context"))                                               \
    X(TEXT, label, IN(REQUEST), JSON("label"), LIST("label", "LABEL"), SHOW("label"),             \
      DESK("Label"))

/* A tl_view: `view_columns`. */
#define TL_VIEW_MAP(X)                                                                            \
    X(TEXT, serial_no, JSON("serial_no"), LIST("serial", "SERIAL"))                               \
    X(TEXT, cust_no, JSON("cust_no"), LIST("customer", "CUSTOMER"))                               \
    X(TEXT, op_code, JSON("op_code"), LIST("operation", "OPERATION"))                             \
    X(LANE, lane, JSON("lane"), LIST("lane", "LANE"))                                             \
    X(LETTER, status, JSON("status"), LIST("status", "ST"))                                       \
    X(STATE, state, JSON("state"))                                                                \
    X(NUMBER, fence, IN(COUNTS), JSON("fence"), LIST("fence", "FENCE"), SHOW("fence"),            \
      DESK("Fence"))                                                                              \
    X(NUMBER, rev, JSON("rev"), LIST("rev", "REVISION"))                                          \
    X(COUNT, epoch, IN(COUNTS), JSON("epoch"), LIST("epoch", "EPOCH"), SHOW("epoch"),             \
      DESK("Epoch"))                                                                              \
    X(COUNT, sends, IN(COUNTS), JSON("sends"), LIST("sends", "SENDS"), SHOW("sends"),             \
      DESK("Sends"))                                                                              \
    X(COUNT, attempts, IN(COUNTS), JSON("attempts"), LIST("attempts", "TRIES"),                   \
      DESK("Compensating attempts"))                                                              \
    X(COUNT, claims, JSON("claims"), LIST("claims", "CLAIMS"))                                    \
    X(TEXT, thread_no, IN(WORK), JSON("thread_no"), SHOW("thread"))                               \
    X(TEXT, log_no, IN(WORK), JSON("log_no"), LIST("log", "LOG"), SHOW("log"), DESK("Log"))       \
    X(TEXT, session_id, IN(SESSION), JSON("session_id"), LIST("session", "SESSION"),              \
      SHOW("session"))                                                                            \
    X(TEXT, holder, IN(HOLDER), JSON("holder"), LIST("holder", "HOLDER"), SHOW("holder"),         \
      DESK("Holder"))                                                                             \
    X(FLAG, retryable, JSON("retryable"))                                                         \
    X(FLAG, conflict, IN(TROUBLE), JSON("conflict"), LIST("conflict", "CONFLICT"),                \
      SHOW("conflict"))                                                                           \
    X(FLAG, exclusive, JSON("exclusive"))                                                         \
    X(FLAG, repeatable, JSON("repeatable"))                                                       \
    X(FLAG, seen_by_channel, IN(FOUND), JSON("seen_by_channel"), SHOW("seen by channel"))         \
    X(FLAG, cancel_tried, IN(FOUND), JSON("cancel_tried"), SHOW("cancel tried"))                  \
    X(LETTER, retry_status, JSON("retry_status"))                                                 \
    X(PROOF, proof, JSON("proof"), LIST("proof", "PROOF"))                                        \
    X(TEXT, parked, IN(TROUBLE), JSON("parked"), LIST("parked", "PARKED"), SHOW("parked"),        \
      DESK("Parked"))                                                                             \
    X(TEXT, channel, IN(CHANNEL), JSON("channel"), LIST("channel", "CHANNEL"), SHOW("channel"),   \
      DESK("Channel"))                                                                            \
    X(TEXT, channel_key, IN(CHANNEL), JSON("channel_key"), LIST("channel_key", "CHANNEL KEY"),    \
      SHOW("channel key"), DESK("Channel key"))                                                   \
    X(TEXT, channel_ref, IN(CHANNEL), JSON("channel_ref"), LIST("channel_ref", "CHANNEL REF"),    \
      SHOW("channel ref"), DESK("Channel reference"))                                             \
    X(TEXT, remark, IN(REMARK), JSON("remark"), LIST("remark", "REMARK"), SHOW("remark"),         \
      DESK("Remark"))                                                                             \
    X(TEXT, actor, JSON("actor"), LIST("actor", "ACTOR"))                                         \
    X(TIME, created_us, IN(TIMES), JSON("created_at"), LIST("created", "CREATED"),                \
      SHOW("created"), DESK("Made"))                                                              \
    X(TIME, updated_us, IN(TIMES), JSON("updated_at"), LIST("updated", "UPDATED"),                \
      SHOW("updated"), DESK("Changed"))                                                           \
    X(TIME, now_us, JSON("read_at"))                                                              \
    X(TIME, max_hold_until_us, IN(TIMES), JSON("max_hold_until"), SHOW("max hold until"),         \
      DESK("May be held until"))                                                                  \
    X(TIME, send_until_us, IN(TIMES), JSON("send_until"), SHOW("send until"),                     \
      DESK("May be sent until"))                                                                  \
    X(TIME, next_run_us, IN(TIMES), JSON("next_run_at"), LIST("next_at", "NEXT"),                 \
      SHOW("next run"), DESK("Next attempt"))                                                     \
    X(TIME, deadline_us, IN(TIMES), JSON("deadline_at"), LIST("deadline", "DEADLINE"),            \
      SHOW("deadline"), DESK("Deadline"))                                                         \
    X(TIME, not_found_since_us, IN(TIMES), JSON("not_found_since"), SHOW("not found since"),      \
      DESK("Not found since"))                                                                    \
    X(HASH, fingerprint, JSON("fingerprint"))                                                     \
    X(BYTES, payload, IN(CONTENTS), JSON("payload"), SHOW("payload"))                             \
    X(BYTES, result, IN(CONTENTS), JSON("result"), SHOW("result"))                                \
    TL_SAID_MAP(X)

/* A tl_step: `timeline`. */
#define TL_STEP_MAP(X)                                                                            \
    X(TIME, logged_us, JSON("logged_at"), LIST("logged", "TIME"))                                 \
    X(STRING, op_code, JSON("op_code"))                                                           \
    X(STRING, step, JSON("step"), LIST("step", "STEP"))                                           \
    X(LETTER, status, JSON("status"), LIST("status", "ST"), DESK("Status"))                       \
    X(NUMBER, rev, JSON("rev"))                                                                   \
    X(NUMBER, fence, JSON("fence"), LIST("fence", "FENCE"))                                       \
    X(COUNT, epoch, JSON("epoch"))                                                                \
    X(COUNT, attempts, JSON("attempts"))                                                          \
    X(COUNT, claims, JSON("claims"))                                                              \
    X(COUNT, sends, JSON("sends"))                                                                \
    X(FLAG, conflict, JSON("conflict"))                                                           \
    X(PROOF, proof, JSON("proof"))                                                                \
    X(STRING, thread_no, JSON("thread_no"))                                                       \
    X(STRING, log_no, JSON("log_no"))                                                             \
    X(STRING, session_id, JSON("session_id"))                                                     \
    X(STRING, parked, JSON("parked"))                                                             \
    X(STRING, channel_key, JSON("channel_key"))                                                   \
    X(STRING, channel_ref, JSON("channel_ref"))                                                   \
    X(STRING, remark, JSON("remark"))                                                             \
    X(STRING, actor, JSON("actor"))                                                               \
    X(STRING, account, JSON("account"))                                                           \
    X(TIME, send_until_us, JSON("send_until"))                                                    \
    X(TIME, max_hold_until_us, JSON("max_hold_until"))                                            \
    X(TIME, next_run_us, JSON("next_run_at"))                                                     \
    X(STRING, holder)

/* A tl_evidence_row: `evidence_list`.  What it says was paid, and whether it contradicts, stand
 * beside it. */
#define TL_EVIDENCE_MAP(X)                                                                        \
    X(NUMBER, evidence_id, JSON("evidence_id"))                                                   \
    X(TIME, filed_us, JSON("filed_at"), LIST("filed", "FILED"))                                   \
    X(COUNT, epoch, JSON("epoch"), LIST("epoch", "EPOCH"))                                        \
    X(STRING, outcome, JSON("outcome"), LIST("outcome", "OUTCOME"))                               \
    X(FLAG, final, JSON("final"), LIST("final", "FINAL"))                                         \
    X(STRING, channel_key, JSON("channel_key"))                                                   \
    X(STRING, channel_ref, JSON("channel_ref"), LIST("ref", "CHANNEL REF"))                       \
    X(STRING, source, JSON("source"), LIST("source", "SOURCE"))                                   \
    X(STRING, remark, JSON("remark"), LIST("remark", "REMARK"))                                   \
    X(STRING, account, JSON("account"), LIST("account", "ACCOUNT"))

/* A tl_resolution_row: `resolve_list`. */
#define TL_RESOLUTION_MAP(X)                                                                      \
    X(TIME, decided_us, JSON("decided_at"), LIST("decided", "DECIDED"))                           \
    X(NUMBER, rev, JSON("rev"))                                                                   \
    X(NUMBER, fence, JSON("fence"), LIST("fence", "FENCE"))                                       \
    X(COUNT, epoch, JSON("epoch"))                                                                \
    X(DECISION, decision, JSON("verdict"), LIST("verdict", "VERDICT"))                            \
    X(FLAG, confirms, JSON("confirms"))                                                           \
    X(FLAG, refused, JSON("refused"))                                                             \
    X(FLAG, although_pending, JSON("although_pending"))                                           \
    X(STRING, account, JSON("account"), LIST("account", "ACCOUNT"))                               \
    X(STRING, actor, JSON("actor"), LIST("by", "BY"))                                             \
    X(STRING, reason, JSON("reason"), LIST("reason", "REASON"))                                   \
    X(SOME, act_no, JSON("act"))                                                                  \
    X(FLAG, own)                                                                                  \
    X(FLAG, stands)

/* A tl_resource_view: `resource_columns`. */
#define TL_RESOURCE_MAP(X)                                                                        \
    X(TEXT, resource, JSON("resource"), LIST("resource", "RESOURCE"))                             \
    X(MUTEX, state, JSON("state"), LIST("state", "STATE"))                                        \
    X(TEXT, step, JSON("step"))                                                                   \
    X(NUMBER, fence, JSON("fence"), LIST("fence", "FENCE"))                                       \
    X(NUMBER, rev, JSON("rev"))                                                                   \
    X(FLAG, renewed, JSON("renewed"), LIST("renewed", "RENEWED BY"), YES("session"))              \
    X(TEXT, thread_no, JSON("thread_no"))                                                         \
    X(TEXT, log_no, JSON("log_no"))                                                               \
    X(TEXT, session_id, JSON("session_id"))                                                       \
    X(TEXT, holder, JSON("holder"), LIST("holder", "HOLDER"))                                     \
    X(TEXT, remark, JSON("remark"))                                                               \
    X(TEXT, actor, JSON("actor"))                                                                 \
    X(TIME, locked_us, JSON("locked_at"), LIST("locked", "LOCKED"))                               \
    X(TIME, updated_us, JSON("updated_at"))                                                       \
    X(TIME, now_us, JSON("read_at"))                                                              \
    X(TIME, lease_until_us, JSON("lease_until"))                                                  \
    X(TIME, max_hold_until_us, JSON("max_hold_until"))                                            \
    X(TIME, free_us, JSON("not_before"))                                                          \
    X(BYTES, payload, JSON("payload"))

/* A tl_holder_view: `rw_columns`. */
#define TL_HOLDER_MAP(X)                                                                          \
    X(TEXT, resource, JSON("resource"), LIST("resource", "RESOURCE"))                             \
    X(COUNT, slot, JSON("slot"), LIST("slot", "SLOT"))                                            \
    X(MODE, mode, JSON("mode"), LIST("mode", "MODE"))                                             \
    X(HOLDER, state, JSON("state"), LIST("state", "STATE"))                                       \
    X(TEXT, step, JSON("step"))                                                                   \
    X(NUMBER, fence, JSON("fence"), LIST("fence", "FENCE"))                                       \
    X(NUMBER, rev, JSON("rev"))                                                                   \
    X(FLAG, renewed, JSON("renewed"), LIST("renewed", "RENEWED BY"), YES("session"))              \
    X(TEXT, thread_no, JSON("thread_no"))                                                         \
    X(TEXT, log_no, JSON("log_no"))                                                               \
    X(TEXT, session_id, JSON("session_id"))                                                       \
    X(TEXT, holder, JSON("holder"), LIST("holder", "HOLDER"))                                     \
    X(TEXT, remark, JSON("remark"))                                                               \
    X(TEXT, actor, JSON("actor"))                                                                 \
    X(TIME, acquired_us, JSON("acquired_at"), LIST("acquired", "ACQUIRED"))                       \
    X(TIME, done_us, JSON("done_at"))                                                             \
    X(TIME, released_us, JSON("released_at"))                                                     \
    X(TIME, over_us, JSON("until"), LIST("until", "AT MOST UNTIL"))                               \
    X(TIME, max_hold_until_us, JSON("max_hold_until"))                                            \
    X(TIME, now_us, JSON("read_at"))

/* The words of a KEY. */
#define TL_KEY_WORDS(X)                                                                           \
    X(ALSO_WORDS, key.serial_no, JSON("serial_no"), LIST("serial", "SERIAL"))                     \
    X(ALSO_WORDS, key.cust_no, JSON("cust_no"), LIST("customer", "CUSTOMER"))                     \
    X(ALSO_WORDS, key.op_code, JSON("op_code"), LIST("operation", "OPERATION"))

/* A tl_session_row: `overview_sessions`. */
#define TL_SESSION_MAP(X)                                                                         \
    X(ALSO_WORDS, state, JSON("state"), LIST("state", "STATE"))                                   \
    X(WORDS, program, JSON("program"), LIST("program", "PROGRAM"))                                \
    X(NUMBER, pid, JSON("pid"), LIST("pid", "PID"))                                               \
    X(WORDS, host, JSON("host"), LIST("host", "HOST"))                                            \
    X(WORDS, session_id, JSON("session_id"))                                                      \
    X(WORDS, operations, JSON("operations"), LIST("operations", "OPERATIONS"))                    \
    X(TIME, started_us, JSON("started_at"), LIST("started", "STARTED"))                           \
    X(SPAN, silent_us, JSON("silent_s"))                                                          \
    X(SPAN_MS, timeout_ms, JSON("timeout_s"))                                                     \
    X(ALSO_NUMBER, permits, JSON("permits"))                                                      \
    X(WORDS, obeys, JSON("obeys"))                                                                \
    X(TIME, now_us)                                                                               \
    X(FLAG, obeys_drain)

/* A tl_act_view: `acts`.  Its counts, as an object, stand beside it. */
#define TL_ACT_MAP(X)                                                                             \
    X(SOME, act_no, JSON("act"), LIST("act", "ACT"))                                              \
    X(TIME, begun_us, JSON("begun_at"), LIST("begun", "WHEN"))                                    \
    X(TIME, ended_us, JSON("ended_at"))                                                           \
    X(WORDS, what, JSON("what"))                                                                  \
    X(WORDS, said, JSON("said"))                                                                  \
    X(KEY, key)                                                                                   \
    TL_KEY_WORDS(X)                                                                               \
    X(SOME, fence, JSON("fence"))                                                                 \
    X(WORDS, account, JSON("account"))                                                            \
    X(WORDS, actor, JSON("actor"))                                                                \
    X(WORDS, reason, JSON("reason"))                                                              \
    X(NUMBER, planned, JSON("planned"))                                                           \
    X(NUMBER, done, JSON("done"))                                                                 \
    X(NUMBER, skipped, JSON("skipped"))                                                           \
    X(WORDS, counts)

/* A tl_act_row: `act_rows`. */
#define TL_ACT_ROW_MAP(X)                                                                         \
    X(NUMBER, row_no, JSON("row"), LIST("row", "ROW"))                                            \
    X(TIME, acted_us, JSON("acted_at"), LIST("acted", "WHEN"))                                    \
    X(KEY, key)                                                                                   \
    TL_KEY_WORDS(X)                                                                               \
    X(NUMBER, fence, JSON("fence"), LIST("fence", "FENCE"))                                       \
    X(WORDS, result, JSON("result"), LIST("result", "RESULT"))

/* A tl_proposed: `act_proposals`. */
#define TL_PROPOSED_MAP(X)                                                                        \
    X(NUMBER, row_no)                                                                             \
    X(KEY, key)                                                                                   \
    X(NUMBER, fence)                                                                              \
    X(DECISION, decision)                                                                         \
    X(WORDS, reason)                                                                              \
    X(WORDS, account)                                                                             \
    X(FLAG, own)                                                                                  \
    X(FLAG, stands)                                                                               \
    X(FLAG, confirmed)                                                                            \
    X(SIGNED, amount_minor)                                                                       \
    X(WORDS, currency)

/* A tl_violation; who closed it: `audit_closing`. */
#define TL_VIOLATION_MAP(X)                                                                       \
    X(ALSO_WORDS, finding, JSON("finding"))                                                       \
    X(ALSO_WORDS, rule, JSON("rule"), LIST("rule", "RULE"))                                       \
    TL_KEY_WORDS(X)                                                                               \
    X(ALSO_SOME, rev, JSON("rev"), LIST("rev", "REV"))                                            \
    X(ALSO_WORDS, sentence, JSON("sentence"), LIST("sentence", "WHAT"))                           \
    X(ALSO_WORDS, account, JSON("account"), LIST("account", "BY"))                                \
    X(ALSO_TIME, logged_us, JSON("logged_at"), LIST("logged", "WHEN"))                            \
    X(FLAG, closed, JSON("closed"))                                                               \
    X(WORDS, proposed_by, JSON("proposed_by"))                                                    \
    X(WORDS, proposed_reason, JSON("proposed_reason"))                                            \
    X(WORDS, closed_by, JSON("closed_by"))                                                        \
    X(WORDS, closed_reason, JSON("closed_reason"))                                                \
    X(TIME, closed_us, JSON("closed_at"))

/* A tl_finding of the doctor. */
#define TL_FINDING_MAP(X)                                                                         \
    X(ALSO_LEVEL, level, JSON("level"), LIST("level", "LEVEL"))                                   \
    X(ALSO_WORDS, check, JSON("check"), LIST("check", "CHECK"))                                   \
    X(ALSO_WORDS, found, JSON("found"))                                                           \
    X(ALSO_WORDS, sentence, JSON("sentence"), LIST("sentence", "SENTENCE"))

/* A tl_proposal: `overview_inbox`. */
#define TL_PROPOSAL_MAP(X)                                                                        \
    X(TIME, proposed_us, JSON("proposed_at"), LIST("proposed", "PROPOSED"))                       \
    X(WORDS, what, JSON("what"), LIST("what", "WHAT"))                                            \
    X(WORDS, said, JSON("said"), LIST("said", "AS"))                                              \
    X(KEY, key)                                                                                   \
    TL_KEY_WORDS(X)                                                                               \
    X(SOME, fence, JSON("fence"), LIST("fence", "FENCE"))                                         \
    X(WORDS, account, JSON("account"), LIST("account", "BY"))                                     \
    X(WORDS, actor, JSON("actor"))                                                                \
    X(WORDS, reason, JSON("reason"), LIST("reason", "REASON"))                                    \
    X(SOME, act_no, JSON("act"))                                                                  \
    X(NUMBER, trades, JSON("trades"))                                                             \
    X(FLAG, own, JSON("own"))                                                                     \
    X(MONEY, amount_minor)                                                                        \
    X(TEXT, currency)

/* A tl_slot_row: `slot_list`. */
#define TL_SLOT_MAP(X)                                                                            \
    X(COUNT, slot)                                                                                \
    X(WORDS, state)                                                                               \
    X(NUMBER, version)                                                                            \
    X(WORDS, other)                                                                               \
    X(FLAG, sealed)                                                                               \
    X(TIME, changed_us)                                                                           \
    X(WORDS, account)                                                                             \
    X(WORDS, reason)

/* A tl_pause_row, a channel: `channel_list`.  What is used of its limit, and its breaker, stand
 * beside it. */
#define TL_CHANNEL_MAP(X)                                                                         \
    X(WORDS, channel, JSON("channel"), LIST("channel", "CHANNEL"))                                \
    X(WORDS, op_code, JSON("op_code"))                                                            \
    X(FLAG, paused, JSON("paused"))                                                               \
    X(ALSO_FLAG, as_whole, JSON("as_whole"))                                                      \
    X(TIME, decided_us, JSON("decided_at"), LIST("since", "SINCE"))                               \
    X(WORDS, account, JSON("account"), LIST("account", "BY"))                                     \
    X(WORDS, actor, JSON("actor"))                                                                \
    X(WORDS, reason, JSON("reason"), LIST("reason", "REASON"))                                    \
    X(SOME, sends, JSON("sends"))                                                                 \
    X(SOME, per_second, JSON("per_second"))                                                       \
    X(TIME, limited_us, JSON("limited_at"))                                                       \
    X(WORDS, limit_account, JSON("limit_account"))                                                \
    X(WORDS, limit_reason, JSON("limit_reason"))                                                  \
    X(WORDS, limit_actor)                                                                         \
    X(TIME, now_us)

/* The limit's use: `channel_use`. */
#define TL_CHANNEL_USE_MAP(X)                                                                     \
    X(SIGNED, permits, JSON("permits"))                                                           \
    X(SIGNED, wanted, JSON("wanted"))                                                             \
    X(SIGNED, permits_ended)                                                                      \
    X(TIME, ended_free_us)                                                                        \
    X(SIGNED, longest_hold_ms)                                                                    \
    X(TIME, next_us)

/* The breaker: `channel_list`. */
#define TL_BREAKER_MAP(X)                                                                         \
    X(SOME, unknowns, JSON("unknowns"))                                                           \
    X(SOME, share, JSON("share"))                                                                 \
    X(SOME, window_s, JSON("window_s"))                                                           \
    X(SOME, probe_s, JSON("probe_s"))                                                             \
    X(ALSO_SET, opened_us, JSON("open"))                                                          \
    X(TIME, opened_us, JSON("opened_at"))                                                         \
    X(SIGNED, opened, JSON("opened"))                                                             \
    X(TIME, breaker_us, JSON("decided_at"))                                                       \
    X(WORDS, breaker_account, JSON("account"))                                                    \
    X(WORDS, breaker_reason, JSON("reason"))                                                      \
    X(WORDS, breaker_actor)                                                                       \
    X(SIGNED, silent_probes)                                                                      \
    X(TIME, probed_us)                                                                            \
    X(FLAG, probes)                                                                               \
    X(TIME, probe_us)

/* A tl_channel_state: `channel_states`.  The rate stands beside it. */
#define TL_CHANNEL_STATE_MAP(X)                                                                   \
    X(ALSO_WORDS, op_code, JSON("op_code"), LIST("operation", "OPERATION"))                       \
    X(ALSO_WORDS, channel, JSON("channel"), LIST("channel", "CHANNEL"))                           \
    X(ALSO_NUMBER, succeeded, JSON("succeeded"), LIST("succeeded", "PAID"))                       \
    X(ALSO_NUMBER, declined, JSON("declined"), LIST("declined", "DECLINED"))                      \
    X(ALSO_NUMBER, failed, JSON("failed"), LIST("failed", "FAILED"))                              \
    X(ALSO_NUMBER, waits, JSON("waits"), LIST("waits", "WAITS"))                                  \
    X(ALSO_NUMBER, answered, JSON("answered"))                                                    \
    X(ALSO_NUMBER, silent, JSON("unanswered"), LIST("silent", "SILENT"))                          \
    X(ALSO_TIME, answered_us, JSON("answered_at"))                                                \
    X(ALSO_TIME, down_since_us, JSON("down_since"), LIST("down", "DOWN SINCE"))                   \
    X(ALSO_FLAG, cut, JSON("cut"))

/* A tl_batch_part. */
#define TL_BATCH_PART_MAP(X)                                                                      \
    X(STATE, state, JSON("state"))                                                                \
    X(ALSO_FLAG, conflict, JSON("conflict"))                                                      \
    X(TEXT, money.currency, JSON("currency"))                                                     \
    X(TEXT, money.sum_minor, JSON("sum_minor"))                                                   \
    X(ALSO_NUMBER, money.trades, JSON("trades"), LIST("trades", "TRADES"))

/* A tl_report_row: `report_sums`. */
#define TL_REPORT_MAP(X)                                                                          \
    X(TEXT, day, JSON("day"), LIST("day", "DAY (UTC)"))                                           \
    X(TEXT, channel, JSON("channel"), LIST("channel", "CHANNEL"))                                 \
    X(TEXT, op_code, JSON("op_code"), LIST("operation", "OPERATION"))                             \
    X(TEXT, currency, JSON("currency"), LIST("currency", "CURRENCY"))                             \
    X(TEXT, state, JSON("state"), LIST("state", "STATE"))                                         \
    X(NUMBER, trades, JSON("trades"), LIST("trades", "TRADES"))                                   \
    X(TEXT, sum_minor, JSON("sum_minor"), LIST("sum_minor", "MINOR UNITS"))

/* A tl_report_line: `report_lines`. */
#define TL_REPORT_LINE_MAP(X)                                                                     \
    X(WORDS, serial_no, LIST("serial", "SERIAL"))                                                 \
    X(WORDS, cust_no, LIST("customer", "CUSTOMER"))                                               \
    X(WORDS, op_code, LIST("operation", "OPERATION"))                                             \
    X(WORDS, label, LIST("label", "LABEL"))                                                       \
    X(WORDS, channel, LIST("channel", "CHANNEL"))                                                 \
    X(WORDS, channel_key, LIST("channel_key", "CHANNEL KEY"))                                     \
    X(WORDS, channel_ref, LIST("channel_ref", "CHANNEL REF"))                                     \
    X(MONEY, amount_minor)                                                                        \
    X(TEXT, currency, LIST("currency", "CURRENCY"))                                               \
    X(WORDS, state, LIST("state", "STATE"))                                                       \
    X(WORDS, batch, LIST("batch", "BATCH"))                                                       \
    X(TIME, asked_us, LIST("asked", "ASKED FOR"))                                                 \
    X(TIME, paid_us, LIST("paid", "PAID"))                                                        \
    X(TIME, booked_us, LIST("booked", "BOOKED"))

/* clang-format on */

#endif
