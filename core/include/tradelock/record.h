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
 *     SHOW(label)            in the paragraph of `tradelock show`
 *     DESK(label)            among the facts on the desk
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
 *     TIME      int64_t: microseconds since 1970; 0: none
 *     MONEY     int64_t in minor units, and the currency behind it; "": none is told
 *     HASH      unsigned char [TL_FINGERPRINT]; zeros: none
 *     BYTES     const void *, and the size behind it
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
    X(TIME, logged_us, JSON("logged_at"))                                                         \
    X(STRING, op_code, JSON("op_code"))                                                           \
    X(STRING, step, JSON("step"))                                                                 \
    X(LETTER, status, JSON("status"))                                                             \
    X(NUMBER, rev, JSON("rev"))                                                                   \
    X(NUMBER, fence, JSON("fence"))                                                               \
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
    X(TIME, filed_us, JSON("filed_at"))                                                           \
    X(COUNT, epoch, JSON("epoch"))                                                                \
    X(STRING, outcome, JSON("outcome"))                                                           \
    X(FLAG, final, JSON("final"))                                                                 \
    X(STRING, channel_key, JSON("channel_key"))                                                   \
    X(STRING, channel_ref, JSON("channel_ref"))                                                   \
    X(STRING, source, JSON("source"))                                                             \
    X(STRING, remark, JSON("remark"))                                                             \
    X(STRING, account, JSON("account"))

/* A tl_resolution_row: `resolve_list`. */
#define TL_RESOLUTION_MAP(X)                                                                      \
    X(TIME, decided_us, JSON("decided_at"))                                                       \
    X(NUMBER, rev, JSON("rev"))                                                                   \
    X(NUMBER, fence, JSON("fence"))                                                               \
    X(COUNT, epoch, JSON("epoch"))                                                                \
    X(DECISION, decision, JSON("verdict"))                                                        \
    X(FLAG, confirms, JSON("confirms"))                                                           \
    X(FLAG, refused, JSON("refused"))                                                             \
    X(FLAG, although_pending, JSON("although_pending"))                                           \
    X(STRING, account, JSON("account"))                                                           \
    X(STRING, actor, JSON("actor"))                                                               \
    X(STRING, reason, JSON("reason"))                                                             \
    X(FLAG, own)                                                                                  \
    X(FLAG, stands)

/* A tl_resource_view: `resource_columns`. */
#define TL_RESOURCE_MAP(X)                                                                        \
    X(TEXT, resource, JSON("resource"))                                                           \
    X(MUTEX, state, JSON("state"))                                                                \
    X(TEXT, step, JSON("step"))                                                                   \
    X(NUMBER, fence, JSON("fence"))                                                               \
    X(NUMBER, rev, JSON("rev"))                                                                   \
    X(FLAG, renewed, JSON("renewed"))                                                             \
    X(TEXT, thread_no, JSON("thread_no"))                                                         \
    X(TEXT, log_no, JSON("log_no"))                                                               \
    X(TEXT, session_id, JSON("session_id"))                                                       \
    X(TEXT, holder, JSON("holder"))                                                               \
    X(TEXT, remark, JSON("remark"))                                                               \
    X(TEXT, actor, JSON("actor"))                                                                 \
    X(TIME, locked_us, JSON("locked_at"))                                                         \
    X(TIME, updated_us, JSON("updated_at"))                                                       \
    X(TIME, now_us, JSON("read_at"))                                                              \
    X(TIME, lease_until_us, JSON("lease_until"))                                                  \
    X(TIME, max_hold_until_us, JSON("max_hold_until"))                                            \
    X(TIME, free_us, JSON("not_before"))                                                          \
    X(BYTES, payload, JSON("payload"))

/* A tl_holder_view: `rw_columns`. */
#define TL_HOLDER_MAP(X)                                                                          \
    X(TEXT, resource, JSON("resource"))                                                           \
    X(COUNT, slot, JSON("slot"))                                                                  \
    X(MODE, mode, JSON("mode"))                                                                   \
    X(HOLDER, state, JSON("state"))                                                               \
    X(TEXT, step, JSON("step"))                                                                   \
    X(NUMBER, fence, JSON("fence"))                                                               \
    X(NUMBER, rev, JSON("rev"))                                                                   \
    X(FLAG, renewed, JSON("renewed"))                                                             \
    X(TEXT, thread_no, JSON("thread_no"))                                                         \
    X(TEXT, log_no, JSON("log_no"))                                                               \
    X(TEXT, session_id, JSON("session_id"))                                                       \
    X(TEXT, holder, JSON("holder"))                                                               \
    X(TEXT, remark, JSON("remark"))                                                               \
    X(TEXT, actor, JSON("actor"))                                                                 \
    X(TIME, acquired_us, JSON("acquired_at"))                                                     \
    X(TIME, done_us, JSON("done_at"))                                                             \
    X(TIME, released_us, JSON("released_at"))                                                     \
    X(TIME, over_us, JSON("until"))                                                               \
    X(TIME, max_hold_until_us, JSON("max_hold_until"))                                            \
    X(TIME, now_us, JSON("read_at"))

/* clang-format on */

#endif
