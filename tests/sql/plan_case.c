#include "plan_case.h"

#include <string.h>

#define S(text)                                                                                    \
    {                                                                                              \
        DB_TEXT, 0, text, sizeof(text) - 1                                                         \
    }
#define N(number)                                                                                  \
    {                                                                                              \
        DB_INT, number, NULL, 0                                                                    \
    }
#define B(bytes)                                                                                   \
    {                                                                                              \
        DB_BYTES, 0, bytes, sizeof(bytes) - 1                                                      \
    }

/* MD5 of "1", "7" and so on, which the rows of these numbers carry. */
#define TOKEN_1 B("\xc4\xca\x42\x38\xa0\xb9\x23\x82\x0d\xcc\x50\x9a\x6f\x75\x84\x9b")
#define TOKEN_7_BYTES "\x8f\x14\xe4\x5f\xce\xea\x16\x7a\x5a\x36\xde\xdd\x4b\xea\x25\x43"
#define TOKEN_7 B(TOKEN_7_BYTES)
#define FRESH_BYTES "0123456789abcdef"
#define FRESH B(FRESH_BYTES)
#define FINDING B("0123456789abcdef0123456789abcdef")
#define THREAD_TEXT "11111111-1111-4111-8111-111111111111"
#define THREAD S(THREAD_TEXT)
#define LOG_TEXT "22222222-1111-4111-8111-111111111111"
#define LOG S(LOG_TEXT)
#define ALIVE_TEXT "a0000000-0000-4000-8000-000000000001"
#define ALIVE S(ALIVE_TEXT)
#define DEAD S("d0000000-0000-4000-8000-000000000001")
#define SILENT S("c0000000-0000-4000-8000-000000000001")
#define BOOT S("b0000000-0000-4000-8000-000000000001")
#define NEW_SESSION S("e0000000-0000-4000-8000-000000000001")
/* 2021-01-01, where plan_data.sql sets the low-water mark; and the year 2096. */
#define LOW_WATER N(1609459200000000)
#define NEVER 4000000000000000
#define OP S("WITHDRAW")
#define RETRY S("WITHDRAW_RETRY")
#define KEY(number) .cust_no = S("C7"), .serial_no = S(number), .op_code = OP
#define ROW(number) .cust_no = "C7", .serial_no = number, .op_code = "WITHDRAW"

/* The values of a statement: by name, NULL where none is given; with a group of rows, those of one
 * row besides; or as a step says them. */
#define VALUES(name, ...)                                                                          \
    .values = (const db_value *)&(const struct sql_##name##_values)                                \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define NAMED(...)                                                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define WITH_ROW(name, outside_, row_)                                                             \
    .values = (const db_value *)&(const struct {                                                   \
        struct sql_##name##_values outside;                                                        \
        struct sql_##name##_row row;                                                               \
    })                                                                                             \
    {                                                                                              \
        outside_, row_                                                                             \
    }
#define STEP(kind_, ...)                                                                           \
    .step = &(const step)                                                                          \
    {                                                                                              \
        .kind = kind_, .deadline_ms = -1, .proof = '-', __VA_ARGS__                                \
    }

/* The values of list_columns.sql of a list that asks for nothing. */
#define LIST_ALL                                                                                   \
    .cust = S(""), .op = S(""), .retry_op = S(""), .lane = S(""), .status = S(""),                 \
    .channel = S(""), .log_no = S(""), .amount_over = N(-1), .since_us = N(0),                     \
    .until_us = N(NEVER), .as_of_us = N(0), .older_ms = N(0), .idle_ms = N(0)

/* What a statement by key may read: the row, what is joined to it, and the unique checks and
 * triggers beside it. */
#define FEW 12

/* clang-format off */
const plan_case plan_cases[] = {
    /* asks */
    {&sql_ask_insert, "", 1, FEW, PLAN_NONE,
     STEP(STEP_ASK, ROW("new"), .lane = 'S', .thread_no = THREAD_TEXT, .log_no = LOG_TEXT,
      .session_id = ALIVE_TEXT, .token = FRESH_BYTES, .sends = 1, .max_hold_ms = 60000,
      .amount_minor = 1050, .currency = "EUR")},
    {&sql_ask_insert_short, "", 1, FEW, PLAN_NONE,
     STEP(STEP_ASK, ROW("new"), .lane = 'S', .thread_no = THREAD_TEXT, .log_no = LOG_TEXT,
      .session_id = ALIVE_TEXT, .token = FRESH_BYTES, .sends = 1, .max_hold_ms = 60000)},
    {&sql_ask_repeatable, "first", 1, FEW, PLAN_NONE,
     STEP(STEP_ASK_REPEATABLE, .cust_no = "C7", .serial_no = "new", .op_code = "MUTEX",
      .lane = 'S', .thread_no = THREAD_TEXT, .log_no = LOG_TEXT, .session_id = ALIVE_TEXT,
      .token = FRESH_BYTES, .max_hold_ms = 60000, .sends = 1)},
    {&sql_ask_repeatable, "held", 1, FEW, PLAN_NONE,
     STEP(STEP_ASK_REPEATABLE, .cust_no = "C7", .serial_no = "M7", .op_code = "MUTEX", .lane = 'S',
      .thread_no = THREAD_TEXT, .log_no = LOG_TEXT, .session_id = ALIVE_TEXT, .token = FRESH_BYTES,
      .max_hold_ms = 60000, .sends = 1)},
    {&sql_reclaim, "", 1, FEW, PLAN_KEYS,
     STEP(STEP_RECLAIM, ROW("F7"), .thread_no = THREAD_TEXT, .log_no = LOG_TEXT,
      .session_id = ALIVE_TEXT, .token = FRESH_BYTES, .sends = 1, .max_hold_ms = 60000,
      .reclaim_epoch = 1)},
    {&sql_reclaim_many, "", 1, FEW, PLAN_KEYS,
     STEP(STEP_RECLAIM, ROW("F7"), .thread_no = THREAD_TEXT, .log_no = LOG_TEXT,
      .session_id = ALIVE_TEXT, .token = FRESH_BYTES, .sends = 1, .max_hold_ms = 60000,
      .reclaim_epoch = 1)},
    {&sql_group, "ask", 1, FEW, PLAN_NONE,
     STEP(STEP_ASK, ROW("new"), .lane = 'S', .thread_no = THREAD_TEXT, .log_no = LOG_TEXT,
      .session_id = ALIVE_TEXT, .token = FRESH_BYTES, .sends = 1, .max_hold_ms = 60000)},
    {&sql_group, "refused", 1, FEW, PLAN_NONE,
     STEP(STEP_ASK, ROW("L7"), .lane = 'S', .thread_no = THREAD_TEXT, .log_no = LOG_TEXT,
      .session_id = ALIVE_TEXT, .token = FRESH_BYTES, .sends = 1, .max_hold_ms = 60000)},
    {&sql_group, "ended", 1, FEW, PLAN_NONE,
     STEP(STEP_FINISH_SYNC, ROW("L7"), .lane = 'S', .status = 'Y', .thread_no = THREAD_TEXT,
      .log_no = LOG_TEXT, .token = FRESH_BYTES, .held_fence = 1000,
      .held_token = TOKEN_7_BYTES)},
    {&sql_group_short, "ask", 1, FEW, PLAN_NONE,
     STEP(STEP_ASK, ROW("new"), .lane = 'S', .thread_no = THREAD_TEXT, .log_no = LOG_TEXT,
      .session_id = ALIVE_TEXT, .token = FRESH_BYTES, .sends = 1, .max_hold_ms = 60000)},
    {&sql_group_short, "refused", 1, FEW, PLAN_NONE,
     STEP(STEP_ASK, ROW("L7"), .lane = 'S', .thread_no = THREAD_TEXT, .log_no = LOG_TEXT,
      .session_id = ALIVE_TEXT, .token = FRESH_BYTES, .sends = 1, .max_hold_ms = 60000)},
    {&sql_group_short, "ended", 1, FEW, PLAN_NONE,
     STEP(STEP_FINISH_SYNC, ROW("L7"), .lane = 'S', .status = 'Y', .thread_no = THREAD_TEXT,
      .log_no = LOG_TEXT, .token = FRESH_BYTES, .held_fence = 1000, .held_token = TOKEN_7_BYTES)},
    {&sql_group_repeatable, "ask", 1, FEW, PLAN_NONE,
     STEP(STEP_ASK, ROW("new"), .lane = 'S', .thread_no = THREAD_TEXT, .log_no = LOG_TEXT,
      .session_id = ALIVE_TEXT, .token = FRESH_BYTES, .sends = 1, .max_hold_ms = 60000)},
    {&sql_group_repeatable, "refused", 1, FEW, PLAN_NONE,
     STEP(STEP_ASK, ROW("L7"), .lane = 'S', .thread_no = THREAD_TEXT, .log_no = LOG_TEXT,
      .session_id = ALIVE_TEXT, .token = FRESH_BYTES, .sends = 1, .max_hold_ms = 60000)},
    {&sql_group_repeatable, "taken over", 1, FEW, PLAN_NONE,
     STEP(STEP_ASK_REPEATABLE, .cust_no = "C8", .serial_no = "M8", .op_code = "MUTEX", .lane = 'S',
      .thread_no = THREAD_TEXT, .log_no = LOG_TEXT, .session_id = ALIVE_TEXT, .token = FRESH_BYTES,
      .sends = 1, .max_hold_ms = 60000)},
    {&sql_group_repeatable, "ended", 1, FEW, PLAN_NONE,
     STEP(STEP_FINISH_SYNC, ROW("L7"), .lane = 'S', .status = 'Y', .thread_no = THREAD_TEXT,
      .log_no = LOG_TEXT, .token = FRESH_BYTES, .held_fence = 1000,
      .held_token = TOKEN_7_BYTES)},
    {&sql_customer_busy, "", 1, FEW, PLAN_KEYS,
     VALUES(customer_busy, .cust_no = S("C7"), .op_code = S("TRANSFER"))},
    {&sql_view_by_key, "", 1, FEW, PLAN_KEYS, VALUES(view_by_key, KEY("O7"))},
    {&sql_holder_silent, "", 1, FEW, PLAN_KEYS, VALUES(holder_silent, .session_id = ALIVE)},
    {&sql_row_held, "", 1, FEW, PLAN_KEYS, VALUES(row_held, KEY("O7"))},
    {&sql_views_by_key, "", 1, FEW, PLAN_KEYS, STEP(STEP_CLAIM, ROW("O7"))},
    {&sql_view_by_key, "absent", 0, FEW, PLAN_KEYS, VALUES(view_by_key, KEY("no"))},
    /* endings */
    {&sql_finish_sync, "", 1, FEW, PLAN_KEYS,
     STEP(STEP_FINISH_SYNC, ROW("L7"), .status = 'Y', .thread_no = THREAD_TEXT, .log_no = LOG_TEXT,
      .token = FRESH_BYTES, .held_fence = 1000, .held_token = TOKEN_7_BYTES)},
    {&sql_finish_sync_short, "", 1, FEW, PLAN_KEYS,
     STEP(STEP_FINISH_SYNC, ROW("L7"), .thread_no = THREAD_TEXT, .log_no = LOG_TEXT,
      .token = FRESH_BYTES, .held_fence = 1000, .held_token = TOKEN_7_BYTES)},
    {&sql_finish_retry, "", 2, FEW, PLAN_KEYS,
     STEP(STEP_FINISH_RETRY, ROW("K7"), .retry_op = "WITHDRAW_RETRY", .status = 'Y',
      .thread_no = THREAD_TEXT, .log_no = LOG_TEXT, .token = FRESH_BYTES,
      .held_fence = 1000, .held_token = TOKEN_7_BYTES)},
    {&sql_finish_retry, "by time", 2, FEW, PLAN_KEYS,
     STEP(STEP_FINISH_RETRY, ROW("K7"), .retry_op = "WITHDRAW_RETRY", .status = 'Y',
      .thread_no = THREAD_TEXT, .log_no = LOG_TEXT, .token = FRESH_BYTES, .held_fence = 1000,
      .held_token = TOKEN_7_BYTES, .by_time = 1)},
    {&sql_finish_retry_short, "", 2, FEW, PLAN_KEYS,
     STEP(STEP_FINISH_RETRY, ROW("K7"), .retry_op = "WITHDRAW_RETRY", .status = 'Y',
      .thread_no = THREAD_TEXT, .log_no = LOG_TEXT, .token = FRESH_BYTES,
      .held_fence = 1000, .held_token = TOKEN_7_BYTES)},
    {&sql_finish_retry_many_short, "", 2, FEW, PLAN_KEYS,
     STEP(STEP_FINISH_RETRY, ROW("K7"), .retry_op = "WITHDRAW_RETRY", .status = 'Y',
      .thread_no = THREAD_TEXT, .log_no = LOG_TEXT, .token = FRESH_BYTES,
      .held_fence = 1000, .held_token = TOKEN_7_BYTES)},
    {&sql_finish_retry_many, "", 2, FEW, PLAN_KEYS,
     STEP(STEP_FINISH_RETRY, ROW("K7"), .retry_op = "WITHDRAW_RETRY", .status = 'Y',
      .thread_no = THREAD_TEXT, .log_no = LOG_TEXT, .token = FRESH_BYTES,
      .held_fence = 1000, .held_token = TOKEN_7_BYTES)},
    {&sql_finish_retry_many, "refused", 0, FEW, PLAN_KEYS,
     STEP(STEP_FINISH_RETRY, ROW("K7"), .retry_op = "WITHDRAW_RETRY", .status = 'Y',
      .thread_no = THREAD_TEXT, .log_no = LOG_TEXT, .token = FRESH_BYTES,
      .held_fence = 1001, .held_token = TOKEN_7_BYTES)},
    {&sql_open, "", 1, FEW, PLAN_KEYS,
     STEP(STEP_OPEN, ROW("L7"), .name = "not sent", .thread_no = THREAD_TEXT, .log_no = LOG_TEXT,
      .token = FRESH_BYTES, .known_sends = 1, .send_before_us = 1700000000000000, .unsend = 1,
      .held_fence = 1000, .held_token = TOKEN_7_BYTES)},
    {&sql_open_many, "", 1, FEW, PLAN_KEYS,
     STEP(STEP_OPEN, ROW("L7"), .name = "not sent", .thread_no = THREAD_TEXT, .log_no = LOG_TEXT,
      .token = FRESH_BYTES, .known_sends = 1, .unsend = 1, .held_fence = 1000,
      .held_token = TOKEN_7_BYTES)},
    {&sql_open_lane_many, "", 1, FEW, PLAN_KEYS,
     STEP(STEP_OPEN, ROW("L7"), .token = TOKEN_7_BYTES, .next_run_ms = 90000)},
    {&sql_open_lane, "", 1, FEW, PLAN_KEYS,
     STEP(STEP_OPEN, ROW("L7"), .next_run_ms = 90000, .token = TOKEN_7_BYTES, .keep_claims = 1)},
    {&sql_reap, "", 1, FEW, PLAN_KEYS,
     STEP(STEP_REAP, ROW("D7"), .token = FRESH_BYTES, .held_fence = 1000)},
    {&sql_arm, "", 1, FEW, PLAN_KEYS,
     STEP(STEP_ARM, ROW("K7"), .thread_no = THREAD_TEXT, .log_no = LOG_TEXT, .token = FRESH_BYTES,
      .max_hold_ms = 60000, .held_fence = 1000, .held_token = TOKEN_7_BYTES, .most_us = NEVER)},
    {&sql_close_lane, "", 1, FEW, PLAN_KEYS,
     STEP(STEP_CLOSE, .retry_op = "WITHDRAW_RETRY", .thread_no = THREAD_TEXT, .token = FRESH_BYTES,
      .cust_no = "C3001", .serial_no = "W3001", .op_code = "WITHDRAW")},
    /* the retry lane */
    {&sql_claim, "", 2, FEW, PLAN_KEYS,
     STEP(STEP_CLAIM, ROW("O7"), .retry_op = "WITHDRAW_RETRY", .thread_no = THREAD_TEXT,
      .new_log_no = LOG_TEXT, .session_id = ALIVE_TEXT, .token = FRESH_BYTES,
      .max_hold_ms = 60000)},
    {&sql_claim_many, "", 2, FEW, PLAN_KEYS,
     STEP(STEP_CLAIM, ROW("O7"), .retry_op = "WITHDRAW_RETRY", .thread_no = THREAD_TEXT,
      .new_log_no = LOG_TEXT, .session_id = ALIVE_TEXT, .token = FRESH_BYTES,
      .max_hold_ms = 60000)},
    {&sql_claim_many, "refused", 0, FEW, PLAN_KEYS,
     STEP(STEP_CLAIM, ROW("K7"), .retry_op = "WITHDRAW_RETRY", .thread_no = THREAD_TEXT,
      .log_no = LOG_TEXT, .session_id = ALIVE_TEXT, .token = FRESH_BYTES, .max_hold_ms = 60000)},
    {&sql_claim_candidates, "", 20, 40, PLAN_KEYS,
     VALUES(claim_candidates, .retry_op = RETRY, .from_us = N(0), .most = N(20))},
    {&sql_claim_candidates, "not before", 0, FEW, PLAN_KEYS,
     VALUES(claim_candidates, .retry_op = RETRY, .from_us = N(NEVER), .most = N(20))},
    /* 256 of the index, each looked up, and read back from the derived table. */
    {&sql_claim_suspects, "", 10, 800, PLAN_KEYS,
     VALUES(claim_suspects, .retry_op = RETRY, .most = N(20))},
    {&sql_next_due, "", 1, FEW, PLAN_KEYS, VALUES(next_due, .op_code = RETRY)},
    {&sql_overdue, "", 1, 320, PLAN_KEYS,
     VALUES(overdue, .op_code = RETRY, .late_us = N(60000000), .most = N(100))},
    /* Blocks and procedures commit, so that they are run where nothing is to be done. */
    {&sql_operator_retry, "refused", 0, FEW, PLAN_NONE,
     STEP(STEP_OPERATOR_RETRY, ROW("Q7"), .held_fence = 999, .thread_no = THREAD_TEXT,
      .log_no = LOG_TEXT, .token = FRESH_BYTES, .actor = "ann", .remark = "why")},
    {&sql_open_now, "refused", 0, FEW, PLAN_NONE,
     STEP(STEP_OPEN, ROW("L7"), .name = "unknown", .thread_no = THREAD_TEXT, .log_no = LOG_TEXT,
      .token = FRESH_BYTES, .held_fence = 1001, .held_token = TOKEN_7_BYTES, .next_run_ms = 90000)},
    {&sql_reap_now, "refused", 0, FEW, PLAN_NONE,
     STEP(STEP_REAP, ROW("D7"), .token = FRESH_BYTES, .held_fence = 1001, .next_run_ms = 90000)},
    /* lost answers */
    {&sql_token_now, "", 1, FEW, PLAN_KEYS,
     STEP(STEP_ASK, ROW("L7"), .token = TOKEN_7_BYTES, .session_id = ALIVE_TEXT)},
    {&sql_token_seen, "", 1, FEW, PLAN_NONE, STEP(STEP_ASK, ROW("L7"), .token = TOKEN_7_BYTES)},
    {&sql_tokens_seen, "", 1, FEW, PLAN_KEYS, STEP(STEP_ASK, ROW("L7"), .token = TOKEN_7_BYTES)},
    {&sql_tokens_seen, "none", 0, FEW, PLAN_KEYS, STEP(STEP_ASK, ROW("L7"), .token = FRESH_BYTES)},
    {&sql_connection_used, "", 1, FEW, PLAN_NONE, VALUES(connection_used, .name = S("tl:nobody"))},
    /* janitor and sessions */
    {&sql_operation_next, "the first", 1, 4, PLAN_KEYS, VALUES(operation_next, .op_code = S(""))},
    {&sql_operation_next, "behind one", 1, 4, PLAN_KEYS, VALUES(operation_next, .op_code = OP)},
    {&sql_reap_overdue, "", 256, 300, PLAN_KEYS,
     VALUES(reap_overdue, .op_code = OP, .from_us = LOW_WATER, .to_us = N(NEVER))},
    /* An index-only walk over what is in process, as it says; each entry's session is looked up
     * among those that are ended. */
    {&sql_reap_dead, "", 256, 6400, PLAN_KEYS,
     VALUES(reap_dead, .op_code = OP, .from_us = LOW_WATER, .to_us = N(NEVER), .most = N(256))},
    {&sql_low_water_stretch, "", 1, 1020, PLAN_KEYS,
     VALUES(low_water_stretch, .op_code = OP, .from_us = LOW_WATER, .to_us = N(NEVER))},
    {&sql_low_water_stretch, "far behind", 1, 1020, PLAN_KEYS,
     VALUES(low_water_stretch, .op_code = OP, .from_us = N(1), .to_us = N(NEVER))},
    {&sql_low_water_clear, "", 1, 1020, PLAN_KEYS,
     VALUES(low_water_clear, .op_code = OP, .from_us = N(1), .to_us = N(1577837800000000))},
    {&sql_low_water_move, "", 2, FEW, PLAN_KEYS,
     VALUES(low_water_move, .op_code = OP, .from_us = LOW_WATER, .to_us = N(NEVER))},
    /* the server's clock: the procedures' own statements are by key, or walk a page */
    {&sql_clock_look, "", 1, FEW, PLAN_KEYS, .values = NULL},
    {&sql_clock_open, "", 1, 60, PLAN_WALK, VALUES(clock_open, .boot_id = BOOT)},
    /* of each lane its sync row too */
    {&sql_clock_future, "", 1, 4100, PLAN_KEYS, VALUES(clock_future, .op_code = RETRY)},
    {&sql_clock_last, "", 1, FEW, PLAN_KEYS, .values = NULL},
    {&sql_clock_steps, "", 0, FEW, PLAN_WALK, .values = NULL},
    {&sql_clock_stepped, "", 1, FEW, PLAN_NONE,
     VALUES(clock_stepped, .known = N(7), .size_us = N(1000000), .before_us = N(1000000),
      .actor = S("ann"))},
    {&sql_clock_settle, "", 1, FEW, PLAN_NONE,
     VALUES(clock_settle, .most = N(100), .thread_no = THREAD, .actor = S("ann"))},
    {&sql_clock_settled, "", 1, FEW, PLAN_NONE, .values = NULL},
    {&sql_session_insert, "", 1, FEW, PLAN_NONE,
     VALUES(session_insert, .session_id = NEW_SESSION, .program = S("p"), .host = S("h"),
      .pid = N(1), .connection_name = LOG, .timeout_ms = N(10000))},
    {&sql_session_beat, "", 1, FEW, PLAN_KEYS,
     VALUES(session_beat, .session_id = ALIVE, .boot_id = BOOT, .clock_us = N(9),
      .clock_least_us = N(1), .clock_most_us = N(2), .clock_steps = N(0))},
    {&sql_session_ended, "", 1, FEW, PLAN_KEYS, VALUES(session_ended, .session_id = DEAD)},
    {&sql_session_end, "", 1, FEW, PLAN_KEYS,
     VALUES(session_end, .settled = N(1), .session_id = ALIVE)},
    {&sql_session_others, "", 22, 60, PLAN_KEYS, VALUES(session_others, .session_id = ALIVE)},
    {&sql_session_expire, "", 1, FEW, PLAN_KEYS,
     VALUES(session_expire, .observer = ALIVE, .session_id = SILENT, .beat = N(0))},
    {&sql_session_to_sweep, "", 5, 20, PLAN_KEYS, .values = NULL},
    {&sql_session_swept, "", 1, FEW, PLAN_KEYS, VALUES(session_swept, .session_id = DEAD)},
    /* evidence */
    {&sql_evidence_lock, "", 1, FEW, PLAN_KEYS, VALUES(evidence_lock, KEY("O7"))},
    {&sql_evidence_insert, "", 1, FEW, PLAN_NONE,
     VALUES(evidence_insert, KEY("O7"), .epoch = N(1), .outcome = S("SUCCEEDED"), .final = N(0),
      .source = S("bank"), .thread_no = THREAD)},
    {&sql_file_paid, "", 1, FEW, PLAN_NONE,
     VALUES(file_paid, KEY("new"), .epoch = N(1), .channel_ref = S("ref"), .thread_no = THREAD)},
    {&sql_file_gone, "", 1, FEW, PLAN_NONE,
     VALUES(file_gone, KEY("new"), .thread_no = THREAD, .log_no = LOG, .token = FRESH,
      .epoch = N(1), .sends = N(1), .hold_ms = N(60000), .seen = N(1), .success_epoch = N(1),
      .exclusive = N(0), .amount_minor = N(1050), .currency = S("EUR"))},
    {&sql_resolve_lock, "", 1, FEW, PLAN_KEYS, VALUES(resolve_lock, KEY("O7"), .retry_op = RETRY)},
    {&sql_resolve_insert, "", 1, FEW, PLAN_NONE,
     VALUES(resolve_insert, KEY("O7"), .rev = N(1000), .verdict = S("F"), .part = N(1),
      .fence = N(1000), .epoch = N(1), .reason = S("why"), .actor = S("ann"), .thread_no = THREAD,
      .log_no = LOG, .although_pending = N(0))},
    {&sql_resolve_insert, "clear", 1, FEW, PLAN_NONE,
     VALUES(resolve_insert, KEY("X7"), .rev = N(1000), .verdict = S("C"), .part = N(2),
      .fence = N(1000), .epoch = N(1), .reason = S("why"), .actor = S("ann"), .thread_no = THREAD,
      .log_no = LOG, .although_pending = N(0))},
    {&sql_resolve_insert, "paid", 1, FEW, PLAN_NONE,
     VALUES(resolve_insert, KEY("X7"), .rev = N(1000), .verdict = S("Y"), .part = N(2),
      .fence = N(1000), .epoch = N(1), .reason = S("why"), .actor = S("ann"), .thread_no = THREAD,
      .log_no = LOG, .although_pending = N(0))},
    {&sql_resolve_insert, "failed", 1, FEW, PLAN_NONE,
     VALUES(resolve_insert, KEY("Q7"), .rev = N(1000), .verdict = S("F"), .part = N(2),
      .fence = N(1000), .epoch = N(1), .reason = S("why"), .actor = S("ann"), .thread_no = THREAD,
      .log_no = LOG, .although_pending = N(0))},
    {&sql_resolve_refuse, "", 1, FEW, PLAN_NONE,
     VALUES(resolve_refuse, .cust_no = S("C9"), .serial_no = S("Q9"), .op_code = OP,
      .rev = N(1000), .reason = S("pending"), .thread_no = THREAD, .log_no = LOG)},
    {&sql_resolve_list, "", 2, FEW, PLAN_KEYS, VALUES(resolve_list, KEY("W7"))},
    {&sql_evidence_list, "", 1, FEW, PLAN_KEYS, VALUES(evidence_list, KEY("W7"))},
    /* lists */
    {&sql_log_seen, "", 1, FEW, PLAN_KEYS,
     WITH_ROW(log_seen, NAMED(.log_no = LOG), NAMED(KEY("W7")))},
    {&sql_log_seen, "elsewhere", 0, FEW, PLAN_KEYS,
     WITH_ROW(log_seen, NAMED(.log_no = ALIVE), NAMED(KEY("W7")))},
    {&sql_list_views, "", 1, FEW, PLAN_KEYS,
     .values = (const db_value *)&(const struct sql_list_views_row){KEY("W7")}},
    {&sql_session_was, "", 1, FEW, PLAN_KEYS, VALUES(session_was, .session_id = ALIVE)},
    {&sql_list_customer, "", 15, 20, PLAN_KEYS,
     VALUES(list_customer, LIST_ALL, .after_cust = S("C7"), .after_serial = S("\x7f"),
      .after_op = S(""), .most = N(15))},
    {&sql_list_customer, "later", 12, 20, PLAN_KEYS,
     VALUES(list_customer, LIST_ALL, .after_cust = S("C7"), .after_serial = S("W20007"),
      .after_op = S(""), .most = N(12))},
    {&sql_list_serial, "one", 2, 10, PLAN_KEYS,
     VALUES(list_serial, LIST_ALL, .conflict = N(0), .first_serial = S("W777"),
      .last_serial = S("W777"), .after_serial = S("\x7f"), .after_cust = S(""),
      .after_op = S(""), .most = N(100))},
    {&sql_list_serial, "beginning", 100, 120, PLAN_KEYS,
     VALUES(list_serial, LIST_ALL, .conflict = N(0), .first_serial = S("W1"),
      .last_serial = S("W1\x7f"), .after_serial = S("W15"), .after_cust = S("C15"),
      .after_op = S("WITHDRAW"), .most = N(100))},
    {&sql_list_serial, "conflict", 50, 70, PLAN_KEYS,
     VALUES(list_serial, LIST_ALL, .conflict = N(1), .first_serial = S(""),
      .last_serial = S("\x7f"), .after_serial = S("\x7f"), .after_cust = S(""),
      .after_op = S(""), .most = N(100))},
    {&sql_list_parked, "", 40, 60, PLAN_KEYS,
     VALUES(list_parked, LIST_ALL, .conflict = N(0), .first_serial = S(""),
      .last_serial = S("\x7f"), .after_text = S("\x7f"), .after_serial = S(""),
      .after_cust = S(""), .after_op = S(""), .most = N(40))},
    {&sql_list_parked, "later", 10, 30, PLAN_KEYS,
     VALUES(list_parked, LIST_ALL, .conflict = N(0), .first_serial = S(""),
      .last_serial = S("\x7f"), .after_text = S("attempts used up"), .after_serial = S("Q30"),
      .after_cust = S("C30"), .after_op = S("WITHDRAW_RETRY"), .most = N(10))},
    {&sql_list_recent, "", 100, 120, PLAN_KEYS,
     VALUES(list_recent, LIST_ALL, .due_op = OP, .after_us = N(NEVER), .after_text = S(""),
      .after_cust = S(""), .after_serial = S(""), .most = N(100))},
    {&sql_list_recent, "later", 100, 120, PLAN_KEYS,
     VALUES(list_recent, LIST_ALL, .due_op = OP, .after_us = LOW_WATER, .after_text = S(""),
      .after_cust = S(""), .after_serial = S(""), .most = N(100))},
    {&sql_list_due, "", 100, 120, PLAN_KEYS,
     VALUES(list_due, LIST_ALL, .due_op = OP, .after_us = LOW_WATER, .end_us = N(NEVER),
      .after_text = S(""), .after_cust = S(""), .after_serial = S(""), .most = N(100))},
    {&sql_list_held, "", 100, 120, PLAN_KEYS,
     VALUES(list_held, LIST_ALL, .due_op = S("MUTEX"),
      .after_text = S("00000000-0000-0000-0000-000000000000"), .after_cust = S(""),
      .after_serial = S(""), .most = N(100))},
    {&sql_list_idle, "", 512, 540, PLAN_KEYS,
     VALUES(list_idle, LIST_ALL, .due_op = OP, .after_cust = S(""), .after_serial = S(""),
      .most = N(512))},
    {&sql_list_idle, "later", 512, 540, PLAN_KEYS,
     VALUES(list_idle, LIST_ALL, .due_op = OP, .after_cust = S("C5"), .after_serial = S("W5"),
      .most = N(512))},
    /* resources */
    {&sql_resource_ask, "first", 1, FEW, PLAN_NONE,
     WITH_ROW(resource_ask, NAMED(.dead = S("")), NAMED(.resource = S("new"), .thread_no = THREAD,
      .log_no = LOG, .session_id = ALIVE, .token = FRESH, .max_hold_ms = N(60000)))},
    {&sql_resource_ask, "held", 1, FEW, PLAN_NONE,
     WITH_ROW(resource_ask, NAMED(.dead = S(" held/7 1000 ")), NAMED(.resource = S("held/7"),
      .thread_no = THREAD, .log_no = LOG, .session_id = ALIVE, .token = FRESH,
      .max_hold_ms = N(60000)))},
    {&sql_resource_unlock, "", 1, FEW, PLAN_KEYS,
     WITH_ROW(resource_unlock, NAMED(.thread_no = THREAD, .log_no = LOG, .token = FRESH,
      .held_token = TOKEN_7), NAMED(.resource = S("held/7")))},
    {&sql_resource_group, "first", 1, FEW, PLAN_NONE,
     VALUES(resource_group, .resource = S("new"), .status = S("L"), .step = S("lock"),
      .thread_no = THREAD, .log_no = LOG, .session_id = ALIVE, .token = FRESH,
      .lease_ms = N(30000), .max_hold_ms = N(60000))},
    {&sql_resource_group, "held", 1, FEW, PLAN_NONE,
     VALUES(resource_group, .resource = S("held/7"), .status = S("L"), .step = S("lock"),
      .thread_no = THREAD, .log_no = LOG, .session_id = ALIVE, .token = FRESH,
      .lease_ms = N(30000), .max_hold_ms = N(60000))},
    {&sql_resource_group, "unlocked", 1, FEW, PLAN_NONE,
     VALUES(resource_group, .resource = S("held/7"), .status = S("U"), .step = S("release"),
      .thread_no = THREAD, .log_no = LOG, .token = FRESH, .payload = TOKEN_7)},
    {&sql_resource_renew, "", 1, FEW, PLAN_KEYS,
     WITH_ROW(resource_renew, NAMED(.thread_no = THREAD, .log_no = LOG, .lease_ms = N(1000),
      .held_token = TOKEN_7), NAMED(.resource = S("held/7")))},
    {&sql_resource_force, "", 1, FEW, PLAN_KEYS,
     VALUES(resource_force, .thread_no = THREAD, .log_no = LOG, .token = FRESH, .remark = S("why"),
      .actor = S("ann"), .resource = S("held/7"), .seen_fence = N(1000))},
    {&sql_resource_now, "", 1, FEW, PLAN_KEYS,
     VALUES(resource_now, .token = TOKEN_7, .resource = S("held/7"))},
    {&sql_resource_token_seen, "", 1, FEW, PLAN_NONE,
     VALUES(resource_token_seen, .resource = S("held/7"), .token = TOKEN_7)},
    {&sql_resource_guard, "", 1, FEW, PLAN_KEYS,
     VALUES(resource_guard, .token = TOKEN_7, .fence = N(1000), .resource = S("held/7"))},
    {&sql_caller_transaction, "", 1, FEW, PLAN_NONE, .values = NULL},
    {&sql_resource_show, "", 1, FEW, PLAN_KEYS, VALUES(resource_show, .resource = S("held/7"))},
    {&sql_resource_list, "", 256, 520, PLAN_KEYS,
     VALUES(resource_list, .after = S("held/"), .most = N(256))},
    /* read-write locks */
    {&sql_rw_make, "", 1, FEW, PLAN_NONE, VALUES(rw_make, .resource = S("new"))},
    {&sql_rw_gate, "", 1, FEW, PLAN_KEYS, VALUES(rw_gate, .resource = S("read/7"))},
    {&sql_rw_look, "", 1, FEW, PLAN_KEYS,
     VALUES(rw_look, .intent = FRESH, .resource = S("read/7"))},
    {&sql_rw_claim, "first", 1, FEW, PLAN_NONE,
     VALUES(rw_claim, .resource = S("new"), .slot = N(1), .kind = S("R"), .status = S("H"),
      .step = S("read"), .thread_no = THREAD, .log_no = LOG, .session_id = ALIVE,
      .by_session = N(1), .token = FRESH, .fence = N(1000), .over_ms = N(60000),
      .max_hold_ms = N(60000))},
    {&sql_rw_claim, "free", 2, FEW, PLAN_NONE,
     VALUES(rw_claim, .resource = S("free/7"), .slot = N(1), .kind = S("W"), .status = S("H"),
      .step = S("write"), .thread_no = THREAD, .log_no = LOG, .session_id = ALIVE,
      .by_session = N(1), .token = FRESH, .fence = N(1001), .over_ms = N(60000),
      .max_hold_ms = N(60000))},
    {&sql_rw_free, "", 1, FEW, PLAN_KEYS,
     VALUES(rw_free, .thread_no = THREAD, .token = FRESH, .actor = S("janitor"),
      .resource = S("over/7"), .readers_too = N(1))},
    {&sql_rw_free, "ended", 1, FEW, PLAN_KEYS,
     VALUES(rw_free, .thread_no = THREAD, .token = FRESH, .actor = S("janitor"),
      .resource = S("gone/7"), .readers_too = N(1))},
    {&sql_rw_free, "alive", 0, FEW, PLAN_KEYS,
     VALUES(rw_free, .thread_no = THREAD, .token = FRESH, .actor = S("janitor"),
      .resource = S("read/7"), .readers_too = N(1))},
    {&sql_rw_release, "", 1, FEW, PLAN_KEYS,
     VALUES(rw_release, .step = S("release"), .thread_no = THREAD, .log_no = LOG, .token = FRESH,
      .resource = S("read/7"), .slot = N(2), .held_token = TOKEN_7)},
    {&sql_rw_downgrade, "", 1, FEW, PLAN_KEYS,
     VALUES(rw_downgrade, .thread_no = THREAD, .log_no = LOG, .resource = S("read/7"),
      .slot = N(2), .held_token = TOKEN_7)},
    {&sql_rw_renew, "", 1, FEW, PLAN_KEYS,
     VALUES(rw_renew, .thread_no = THREAD, .log_no = LOG, .over_ms = N(1000),
      .resource = S("read/7"), .slot = N(2), .held_token = TOKEN_7)},
    {&sql_rw_force, "", 1, FEW, PLAN_KEYS,
     VALUES(rw_force, .thread_no = THREAD, .log_no = LOG, .token = FRESH, .fence = N(1001),
      .remark = S("why"), .actor = S("ann"), .resource = S("read/7"), .slot = N(2),
      .seen_fence = N(1000))},
    {&sql_rw_done, "", 1, FEW, PLAN_KEYS,
     VALUES(rw_done, .thread_no = THREAD, .log_no = LOG, .resource = S("read/7"), .slot = N(2),
      .held_token = TOKEN_7, .fence = N(1000))},
    {&sql_rw_guard, "", 1, FEW, PLAN_KEYS,
     VALUES(rw_guard, .held_token = TOKEN_7, .fence = N(1000), .resource = S("read/7"),
      .slot = N(2))},
    {&sql_rw_now, "", 1, FEW, PLAN_KEYS,
     VALUES(rw_now, .token = TOKEN_7, .resource = S("read/7"), .slot = N(2))},
    {&sql_rw_token_seen, "", 1, FEW, PLAN_NONE,
     VALUES(rw_token_seen, .resource = S("read/7"), .slot = N(2), .token = TOKEN_7)},
    {&sql_rw_overdue, "", 256, 300, PLAN_KEYS, .values = NULL},
    /* A walk over the index of what is held now, as it says. */
    {&sql_rw_session, "", 256, 8000, PLAN_KEYS, VALUES(rw_session, .session_id = DEAD)},
    {&sql_rw_show, "", 3, FEW, PLAN_KEYS,
     VALUES(rw_show, .resource = S("read/7"), .slot = N(0), .most = N(256))},
    {&sql_rw_list, "", 256, 600, PLAN_KEYS,
     VALUES(rw_list, .resource = S("read/"), .slot = N(0), .most = N(256))},
    /* row locks */
    {&sql_row_lock_there, "", 1, FEW, PLAN_KEYS, VALUES(row_lock_there, .resource = S("row/7"))},
    {&sql_row_lock_make, "", 1, FEW, PLAN_NONE, VALUES(row_lock_make, .resource = S("new"))},
    {&sql_row_lock, "", 1, FEW, PLAN_KEYS, VALUES(row_lock, .resource = S("row/7"))},
    {&sql_timeline, "", 2, FEW, PLAN_KEYS, VALUES(timeline, KEY("O7"), .retry_op = RETRY)},
    /* purging: the procedure's own statements are by key */
    {&sql_purge, "", 10, 400, PLAN_NONE,
     VALUES(purge, .older_ms = N(86400000), .most = N(10), .cust_no = S("C5"),
      .serial_no = S("W5"), .op_code = OP)},
    {&sql_purge_resources, "", 10, 100, PLAN_NONE,
     VALUES(purge_resources, .older_ms = N(86400000), .most = N(10), .after = S("account/5"))},
    {&sql_purge_rw, "", 10, 100, PLAN_NONE,
     VALUES(purge_rw, .older_ms = N(86400000), .most = N(10), .after = S("read/5"))},
    {&sql_purge_result, "", 1, FEW, PLAN_NONE, .values = NULL},
    {&sql_purge_sessions, "", 10, 100, PLAN_NONE,
     VALUES(purge_sessions, .older_ms = N(86400000), .most = N(10))},
    {&sql_purge_sessions_result, "", 1, FEW, PLAN_NONE, .values = NULL},
    /* the audit */
    {&sql_audit_log, "", 200, 2200, PLAN_KEYS,
     VALUES(audit_log, .serial_no = S("W5"), .cust_no = S("C5"), .op_code = OP, .rev = N(0),
      .most = N(100))},
    {&sql_audit_rows, "", 150, 1200, PLAN_KEYS,
     VALUES(audit_rows, .cust_no = S("C5"), .serial_no = S("W5"), .op_code = OP, .most = N(100))},
    {&sql_audit_run, "", 1, FEW, PLAN_NONE, .values = NULL},
    {&sql_audit_closing, "", 1, FEW, PLAN_KEYS, VALUES(audit_closing, .finding = FINDING)},
    {&sql_audit_close, "", 1, FEW, PLAN_NONE,
     VALUES(audit_close, KEY("W7"), .finding = FINDING, .part = N(2), .rule = S("gap"),
      .rev = N(1), .reason = S("why"), .actor = S("ann"), .thread_no = THREAD)},
    /* schema and server */
    {&sql_schema_version, "", 1, FEW, PLAN_KEYS, .values = NULL},
    {&sql_schema_identity, "", 1, FEW, PLAN_KEYS, .values = NULL},
    {&sql_server_restored, "", 1, FEW, PLAN_KEYS,
     VALUES(server_restored, .session_id = ALIVE, .age_ms = N(1000))},
    /* A procedure that commits, and one that wants two operators: run where nothing is done. */
    {&sql_restore_found, "refused", 1, FEW, PLAN_NONE,
     VALUES(restore_found, .accepted = N(99), .why = S("why"))},
    {&sql_restore_declare, "", 1, FEW, PLAN_NONE,
     VALUES(restore_declare, .reason = S("why"), .actor = S("ann"))},
    {&sql_restore_status, "", 1, FEW, PLAN_KEYS, .values = NULL},
    /* Once after a restore, by an operator, and everything is looked at. */
    {&sql_restore_half, "", 1, FEW, PLAN_NONE,
     VALUES(restore_half, .number = N(0), .half = S("found"), .reason = S("why"),
      .actor = S("ann"))},
    {&sql_restore_carry_out, "", 58455, 2000000, PLAN_NONE,
     VALUES(restore_carry_out, .max_hold_ms = N(60000), .thread_no = THREAD)},
    {&sql_restore_trades, "", 8, 1000000, PLAN_WALK, .values = NULL},
    {&sql_overview_channels, "", 0, 4100, PLAN_KEYS,
     VALUES(overview_channels, .op_code = OP, .most = N(1000))},
    {&sql_overview_sessions, "", 28, 120, PLAN_KEYS, .values = NULL},
    /* walks what operators decided */
    {&sql_overview_inbox, "", 1000, 21100, PLAN_WALK, .values = NULL},
    {&sql_open_transactions, "", 0, FEW, PLAN_NONE, .values = NULL},
    {&sql_server_settings, "", 1, FEW, PLAN_NONE, .values = NULL},
    /* declared statements */
    {&sql_declared_table, "", 1, 100, PLAN_NONE, VALUES(declared_table, .table_name = S("tl_schema"))},
    {&sql_declared_types, "", 9, 100, PLAN_NONE, VALUES(declared_types, .table_name = S("tl_schema"))},
    {&sql_migrate_turn, "", 1, FEW, PLAN_NONE, VALUES(migrate_turn, .wait_s = N(1))},
    {&sql_migrate_wait, "", 0, FEW, PLAN_NONE, VALUES(migrate_wait, .wait_s = N(5))},
    /* the doctor */
    {&sql_doctor_sessions, "", 1, 60, PLAN_KEYS, .values = NULL},
    {&sql_doctor_overdue, "", 1, FEW, PLAN_KEYS,
     VALUES(doctor_overdue, .op_code = RETRY, .from_us = N(1), .to_us = N(NEVER))},
    {&sql_doctor_overdue, "sync", 1, FEW, PLAN_KEYS,
     VALUES(doctor_overdue, .op_code = OP, .from_us = LOW_WATER, .to_us = N(NEVER))},
    {&sql_doctor_conflicts, "", 1, 40100, PLAN_WALK, .values = NULL},
    /* metrics: an entry of the index, the row and its retry row for each trade; groups beside it */
    {&sql_metrics_trades, "", 3, 12 * 2100, PLAN_KEYS,
     VALUES(metrics_trades, .op_code = OP, .retry_op = RETRY, .most = N(100000))},
    {&sql_metrics_trades, "cut off", 3, 1300, PLAN_KEYS,
     VALUES(metrics_trades, .op_code = OP, .retry_op = RETRY, .most = N(100))},
    {&sql_metrics_working, "", 1, 6 * 200, PLAN_KEYS,
     VALUES(metrics_working, .op_code = OP, .retry_op = RETRY, .most = N(100000))},
    {&sql_metrics_overdue, "", 1, 1100, PLAN_KEYS,
     VALUES(metrics_overdue, .op_code = OP, .from_us = LOW_WATER, .most = N(10000))},
    {&sql_metrics_overdue, "cut off", 1, 220, PLAN_KEYS,
     VALUES(metrics_overdue, .op_code = OP, .from_us = LOW_WATER, .most = N(100))},
    {&sql_metrics_conflicts, "", 1, 300, PLAN_KEYS,
     VALUES(metrics_conflicts, .most = N(100000))},
    {&sql_metrics_sessions, "", 3, 120, PLAN_KEYS, .values = NULL},
    {&sql_metrics_server, "", 1, FEW, PLAN_KEYS, .values = NULL},
    {&sql_metrics_tables, "", 5, 600, PLAN_NONE, .values = NULL},
    {&sql_doctor_parts, "", 1, 600, PLAN_NONE, .values = NULL},
    /* the desk */
    {&sql_account_name, "", 1, FEW, PLAN_NONE, .values = NULL},
    {&sql_account_made, "", 1, FEW, PLAN_NONE, .values = NULL},
    {&sql_right_read_log, "", 0, FEW, PLAN_NONE, .values = NULL},
    {&sql_right_decide, "", 0, FEW, PLAN_NONE, .values = NULL},
    {&sql_pace, "", 1, 20100, PLAN_WALK,
     VALUES(pace, .op_code = OP, .minutes = N(180), .most = N(20000))},
    {&sql_pace, "first", 1, 320, PLAN_WALK,
     VALUES(pace, .op_code = OP, .minutes = N(180), .most = N(100))},
    {&sql_migrate_objects, "", EVERY_PART, 600, PLAN_NONE, .values = NULL},
    {&sql_migrate_same_trigger, "", 1, 600, PLAN_NONE,
     VALUES(migrate_same_trigger, .name = S("trade_lock_kept"), .definition = S(""))},
    {&sql_migrate_same_routine, "", 1, 600, PLAN_NONE,
     VALUES(migrate_same_routine, .name = S("tl_purge"), .other = S("tl_purge"))},
    {&sql_migrate_same_view, "", 1, 600, PLAN_NONE,
     VALUES(migrate_same_view, .name = S("trade_lock_log"), .other = S("trade_lock_log"))},
    /* walks the table, once in its life */
    {&sql_migrate_holds, "", 0, 230000, PLAN_NONE, .values = NULL},
    {&sql_migrate_done, "", 0, FEW, PLAN_KEYS, VALUES(migrate_done, .version = N(1))},
    {&sql_doctor_server, "", 1, 2000, PLAN_NONE, .values = NULL},
    {&sql_doctor_variables, "", 15, 100, PLAN_NONE, .values = NULL},
    {&sql_doctor_grants, "", 2, FEW, PLAN_NONE, .values = NULL},
    {&sql_right_ask, "", 0, FEW, PLAN_NONE, .values = NULL},
    {&sql_right_change_evidence, "", 0, FEW, PLAN_NONE, .values = NULL},
    {&sql_right_delete_lock, "", 0, FEW, PLAN_NONE, .values = NULL},
    {&sql_right_delete_log, "", 0, FEW, PLAN_NONE, .values = NULL},
    {&sql_right_forge, "", 0, FEW, PLAN_NONE, .values = NULL},
    {&sql_right_read_resolution, "", 0, FEW, PLAN_NONE, .values = NULL},
    {&sql_right_write_amount, "", 0, FEW, PLAN_NONE, .values = NULL},
    {&sql_right_write_first, "", 0, FEW, PLAN_NONE, .values = NULL},
    {&sql_right_write_log, "", 0, FEW, PLAN_NONE, .values = NULL},
};
/* clang-format on */

const size_t plan_cases_count = sizeof plan_cases / sizeof plan_cases[0];

const db_value *plan_values(const plan_case *c, db_value *values, step_uuids uuids)
{
    if (c->step == NULL)
        return c->values;
    step_bind(c->statement, c->step, values, uuids);
    return values;
}
