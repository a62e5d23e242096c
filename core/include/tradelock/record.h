/*
 * record.h - the rows that people see, each field described once.
 *
 * A map has a line for each field of a struct.  From it come the reader of the row, which takes the
 * column that is named like the member; its JSON, in the order of the map; and the cells and lines
 * of people's lists.  What a program makes of a line it says by X, and by JSON, LIST, SHOW and DESK
 * where it uses them.  The programs of this version are built with it: a later one may say more.
 *
 *     X(type, member, group, how it is shown ...)
 *
 *     group                  of a trade's view: fields that `show` and the desk print together
 *     JSON(name)             under that name
 *     LIST(column, heading)  in tables; `tradelock ls` knows the column by that name
 *     SHOW(label)            in the paragraph of `tradelock show`
 *     DESK(label)            among the facts on the desk
 *
 *     type      what it is, in C                         in words
 *     TEXT      char []
 *     STRING    const char *; NULL: none
 *     LETTER    char; ' ': none
 *     LANE      char: 'S', 'R'                           sync, retry
 *     PROOF     char: a tl_proof                         its name; TL_PROOF_NONE: nothing
 *     STATE     tl_state                                 its name
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
    X(MONEY, amount_minor, REQUEST, JSON("amount_minor"))                                         \
    X(TEXT, currency, REQUEST, JSON("currency"), LIST("currency", "CURRENCY"))                    \
    X(TEXT, batch, REQUEST, JSON("batch"), LIST("batch", "BATCH"), SHOW("batch"), DESK("Batch"))  \
    X(TEXT, traceparent, REQUEST, JSON("traceparent"), LIST("traceparent", "TRACE CONTEXT"),      \
      SHOW("trace context"), DESK("Trace context"))

/* A tl_view.  Its reader is in store/view.c, its columns are `view_columns` of sql/query. */
#define TL_VIEW_MAP(X)                                                                            \
    X(TEXT, serial_no, KEY, JSON("serial_no"), LIST("serial", "SERIAL"))                          \
    X(TEXT, cust_no, KEY, JSON("cust_no"), LIST("customer", "CUSTOMER"))                          \
    X(TEXT, op_code, KEY, JSON("op_code"), LIST("operation", "OPERATION"))                        \
    X(LANE, lane, KEY, JSON("lane"), LIST("lane", "LANE"))                                        \
    X(LETTER, status, KEY, JSON("status"), LIST("status", "ST"))                                  \
    X(STATE, state, KEY, JSON("state"))                                                           \
    X(NUMBER, fence, COUNTS, JSON("fence"), LIST("fence", "FENCE"), SHOW("fence"), DESK("Fence")) \
    X(NUMBER, rev, COUNTS, JSON("rev"), LIST("rev", "REVISION"))                                  \
    X(COUNT, epoch, COUNTS, JSON("epoch"), LIST("epoch", "EPOCH"), SHOW("epoch"), DESK("Epoch"))  \
    X(COUNT, sends, COUNTS, JSON("sends"), LIST("sends", "SENDS"), SHOW("sends"), DESK("Sends"))  \
    X(COUNT, attempts, COUNTS, JSON("attempts"), LIST("attempts", "TRIES"),                       \
      DESK("Compensating attempts"))                                                              \
    X(COUNT, claims, COUNTS, JSON("claims"), LIST("claims", "CLAIMS"))                            \
    X(TEXT, thread_no, WORK, JSON("thread_no"), SHOW("thread"))                                   \
    X(TEXT, log_no, WORK, JSON("log_no"), LIST("log", "LOG"), SHOW("log"), DESK("Log"))           \
    X(TEXT, session_id, SESSION, JSON("session_id"), LIST("session", "SESSION"), SHOW("session")) \
    X(TEXT, holder, HOLDER, JSON("holder"), LIST("holder", "HOLDER"), SHOW("holder"),             \
      DESK("Holder"))                                                                             \
    X(FLAG, retryable, PROOF, JSON("retryable"))                                                  \
    X(FLAG, conflict, TROUBLE, JSON("conflict"), LIST("conflict", "CONFLICT"), SHOW("conflict"))  \
    X(FLAG, exclusive, KIND, JSON("exclusive"))                                                   \
    X(FLAG, repeatable, KIND, JSON("repeatable"))                                                 \
    X(FLAG, seen_by_channel, FOUND, JSON("seen_by_channel"), SHOW("seen by channel"))             \
    X(FLAG, cancel_tried, FOUND, JSON("cancel_tried"), SHOW("cancel tried"))                      \
    X(LETTER, retry_status, KIND, JSON("retry_status"))                                           \
    X(PROOF, proof, PROOF, JSON("proof"), LIST("proof", "PROOF"))                                 \
    X(TEXT, parked, TROUBLE, JSON("parked"), LIST("parked", "PARKED"), SHOW("parked"),            \
      DESK("Parked"))                                                                             \
    X(TEXT, channel, CHANNEL, JSON("channel"), LIST("channel", "CHANNEL"), SHOW("channel"),       \
      DESK("Channel"))                                                                            \
    X(TEXT, channel_key, CHANNEL, JSON("channel_key"), LIST("channel_key", "CHANNEL KEY"),        \
      SHOW("channel key"), DESK("Channel key"))                                                   \
    X(TEXT, channel_ref, CHANNEL, JSON("channel_ref"), LIST("channel_ref", "CHANNEL REF"),        \
      SHOW("channel ref"), DESK("Channel reference"))                                             \
    X(TEXT, remark, REMARK, JSON("remark"), LIST("remark", "REMARK"), SHOW("remark"),             \
      DESK("Remark"))                                                                             \
    X(TEXT, actor, ACTOR, JSON("actor"), LIST("actor", "ACTOR"))                                  \
    X(TIME, created_us, TIMES, JSON("created_at"), LIST("created", "CREATED"), SHOW("created"),   \
      DESK("Made"))                                                                               \
    X(TIME, updated_us, TIMES, JSON("updated_at"), LIST("updated", "UPDATED"), SHOW("updated"),   \
      DESK("Changed"))                                                                            \
    X(TIME, now_us, TIMES, JSON("read_at"))                                                       \
    X(TIME, max_hold_until_us, TIMES, JSON("max_hold_until"), SHOW("max hold until"),             \
      DESK("May be held until"))                                                                  \
    X(TIME, send_until_us, TIMES, JSON("send_until"), SHOW("send until"),                         \
      DESK("May be sent until"))                                                                  \
    X(TIME, next_run_us, TIMES, JSON("next_run_at"), LIST("next_at", "NEXT"), SHOW("next run"),   \
      DESK("Next attempt"))                                                                       \
    X(TIME, deadline_us, TIMES, JSON("deadline_at"), LIST("deadline", "DEADLINE"),                \
      SHOW("deadline"), DESK("Deadline"))                                                         \
    X(TIME, not_found_since_us, TIMES, JSON("not_found_since"), SHOW("not found since"),          \
      DESK("Not found since"))                                                                    \
    X(HASH, fingerprint, KIND, JSON("fingerprint"))                                               \
    X(BYTES, payload, CONTENTS, JSON("payload"), SHOW("payload"))                                 \
    X(BYTES, result, CONTENTS, JSON("result"), SHOW("result"))                                    \
    TL_SAID_MAP(X)

/* clang-format on */

#endif
