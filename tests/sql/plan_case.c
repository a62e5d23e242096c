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
#define NONE                                                                                       \
    {                                                                                              \
        DB_NULL, 0, NULL, 0                                                                        \
    }

/* MD5 of "1", "7" and so on, which the rows of these numbers carry. */
#define TOKEN_1 B("\xc4\xca\x42\x38\xa0\xb9\x23\x82\x0d\xcc\x50\x9a\x6f\x75\x84\x9b")
#define TOKEN_7 B("\x8f\x14\xe4\x5f\xce\xea\x16\x7a\x5a\x36\xde\xdd\x4b\xea\x25\x43")
#define FRESH B("0123456789abcdef")
#define FINDING B("0123456789abcdef0123456789abcdef")
#define THREAD S("11111111-1111-4111-8111-111111111111")
#define LOG S("22222222-1111-4111-8111-111111111111")
#define ALIVE S("a0000000-0000-4000-8000-000000000001")
#define DEAD S("d0000000-0000-4000-8000-000000000001")
#define SILENT S("c0000000-0000-4000-8000-000000000001")
#define NEW_SESSION S("e0000000-0000-4000-8000-000000000001")
/* 2021-01-01, where plan_data.sql sets the low-water mark; and the year 2096. */
#define LOW_WATER N(1609459200000000)
#define NEVER 4000000000000000
#define OP S("WITHDRAW")
#define RETRY S("WITHDRAW_RETRY")
#define KEY(letter_number) S("C7"), S(letter_number), OP

/* What a statement by key may read: the row, what is joined to it, and the unique checks and
 * triggers beside it. */
#define FEW 12

/* clang-format off */
const plan_case plan_cases[] = {
    /* asks */
    {&sql_ask_insert, "", 1, FEW, PLAN_NONE,
     {S("C7"), S("new"), OP, THREAD, LOG, ALIVE, FRESH, N(1), N(60000), NONE, NONE, NONE, N(0),
      NONE, NONE, NONE, NONE}},
    {&sql_ask_insert_plain, "", 1, FEW, PLAN_NONE,
     {S("C7"), S("new"), OP, THREAD, LOG, ALIVE, FRESH, N(1), N(60000), NONE, NONE}},
    {&sql_ask_repeatable, "first", 1, FEW, PLAN_NONE,
     {S("C7"), S("new"), S("MUTEX"), S("S"), THREAD, LOG, ALIVE, FRESH, N(60000), NONE, NONE,
      NONE, NONE}},
    {&sql_ask_repeatable, "held", 1, FEW, PLAN_NONE,
     {S("C7"), S("M7"), S("MUTEX"), S("S"), THREAD, LOG, ALIVE, FRESH, N(60000), NONE, NONE,
      NONE, NONE}},
    {&sql_ask_reclaim, "", 1, FEW, PLAN_KEYS,
     {THREAD, LOG, ALIVE, FRESH, N(1), N(60000), NONE, N(0), NONE, NONE, NONE, KEY("F7"),
      N(1), N(0), N(0), NONE}},
    {&sql_reclaim_group, "", 1, FEW, PLAN_KEYS,
     {KEY("F7"), THREAD, LOG, ALIVE, FRESH, N(1), N(60000), NONE, NONE, NONE, NONE, N(1), N(0),
      NONE}},
    {&sql_group, "ask", 1, FEW, PLAN_NONE,
     {S("C7"), S("new"), OP, S("S"), S("P"), S("ask"), THREAD, LOG, ALIVE, FRESH, NONE, N(1),
      N(60000), NONE, NONE, NONE, NONE, NONE, NONE, NONE, S("-"), N(0), NONE, NONE}},
    {&sql_group, "refused", 1, FEW, PLAN_NONE,
     {S("C7"), S("L7"), OP, S("S"), S("P"), S("ask"), THREAD, LOG, ALIVE, FRESH, NONE, N(1),
      N(60000), NONE, NONE, NONE, NONE, NONE, NONE, NONE, S("-"), N(0), NONE, NONE}},
    {&sql_group, "ended", 1, FEW, PLAN_NONE,
     {S("C7"), S("L7"), OP, S("S"), S("Y"), S("end"), THREAD, LOG, NONE, FRESH, N(1000), N(0),
      NONE, NONE, TOKEN_7, NONE, NONE, NONE, NONE, NONE, S("-"), N(0), NONE, NONE}},
    {&sql_group_plain, "ask", 1, FEW, PLAN_NONE,
     {S("C7"), S("new"), OP, S("S"), S("P"), S("ask"), THREAD, LOG, ALIVE, FRESH, NONE, N(1),
      N(60000), NONE, NONE}},
    {&sql_group_plain, "refused", 1, FEW, PLAN_NONE,
     {S("C7"), S("L7"), OP, S("S"), S("P"), S("ask"), THREAD, LOG, ALIVE, FRESH, NONE, N(1),
      N(60000), NONE, NONE}},
    {&sql_group_plain, "ended", 1, FEW, PLAN_NONE,
     {S("C7"), S("L7"), OP, S("S"), S("Y"), S("end"), THREAD, LOG, NONE, FRESH, N(1000), N(0),
      NONE, NONE, TOKEN_7}},
    {&sql_group_mutex, "ask", 1, FEW, PLAN_NONE,
     {S("C7"), S("new"), OP, S("S"), S("P"), S("ask"), THREAD, LOG, ALIVE, FRESH, NONE, N(1),
      N(60000), NONE, NONE, NONE, NONE, NONE, NONE, NONE, S("-"), N(0), NONE, NONE}},
    {&sql_group_mutex, "refused", 1, FEW, PLAN_NONE,
     {S("C7"), S("L7"), OP, S("S"), S("P"), S("ask"), THREAD, LOG, ALIVE, FRESH, NONE, N(1),
      N(60000), NONE, NONE, NONE, NONE, NONE, NONE, NONE, S("-"), N(0), NONE, NONE}},
    {&sql_group_mutex, "taken over", 1, FEW, PLAN_NONE,
     {S("C8"), S("M8"), S("MUTEX"), S("S"), S("P"), S("reask"), THREAD, LOG, ALIVE, FRESH, NONE,
      N(1), N(60000), NONE, NONE, NONE, NONE, NONE, NONE, NONE, S("-"), N(0), NONE, NONE}},
    {&sql_group_mutex, "ended", 1, FEW, PLAN_NONE,
     {S("C7"), S("L7"), OP, S("S"), S("Y"), S("end"), THREAD, LOG, NONE, FRESH, N(1000), N(0),
      NONE, NONE, TOKEN_7, NONE, NONE, NONE, NONE, NONE, S("-"), N(0), NONE, NONE}},
    {&sql_customer_busy, "", 1, FEW, PLAN_KEYS, {S("C7"), S("TRANSFER")}},
    {&sql_view_by_key, "", 1, FEW, PLAN_KEYS, {KEY("O7")}},
    {&sql_holder_silent, "", 1, FEW, PLAN_KEYS, {ALIVE}},
    {&sql_row_held, "", 1, FEW, PLAN_KEYS, {KEY("O7")}},
    {&sql_views_by_key, "", 1, FEW, PLAN_KEYS, {KEY("O7")}},
    {&sql_view_by_key, "absent", 0, FEW, PLAN_KEYS, {KEY("no")}},
    /* endings */
    {&sql_finish_sync, "", 1, FEW, PLAN_KEYS,
     {S("Y"), THREAD, LOG, FRESH, S("-"), N(0), NONE, NONE, NONE, NONE, KEY("L7"), N(1000),
      TOKEN_7, S("Y")}},
    {&sql_finish_sync_plain, "", 1, FEW, PLAN_KEYS,
     {THREAD, LOG, FRESH, KEY("L7"), N(1000), TOKEN_7}},
    {&sql_finish_retry, "", 2, FEW, PLAN_KEYS,
     {RETRY, S("Y"), THREAD, LOG, FRESH, S("-"), N(0), NONE, NONE, NONE, S("Y"), NONE,
      S("Y"), THREAD, LOG, FRESH, S("Y"), KEY("K7"), N(1000), TOKEN_7, S("Y"), N(0),
      S("-")}},
    {&sql_finish_retry_group, "", 2, FEW, PLAN_KEYS,
     {KEY("K7"), RETRY, S("Y"), THREAD, LOG, FRESH, S("-"), N(0), NONE, NONE, NONE, NONE,
      N(1000), TOKEN_7}},
    {&sql_finish_retry_group, "refused", 0, FEW, PLAN_KEYS,
     {KEY("K7"), RETRY, S("Y"), THREAD, LOG, FRESH, S("-"), N(0), NONE, NONE, NONE, NONE,
      N(1001), TOKEN_7}},
    {&sql_open_held, "", 1, FEW, PLAN_KEYS,
     {S("not sent"), THREAD, LOG, FRESH, N(1), N(1700000000000000), N(1), N(0), N(0), N(0),
      NONE, NONE, NONE, KEY("L7"), N(1000), TOKEN_7}},
    {&sql_open_group, "", 1, FEW, PLAN_KEYS,
     {KEY("L7"), S("not sent"), THREAD, LOG, FRESH, N(1), N(0), N(1), N(0), N(0), N(0), NONE,
      NONE, NONE, N(1000), TOKEN_7}},
    {&sql_open_retry_group, "", 1, FEW, PLAN_KEYS,
     {KEY("L7"), TOKEN_7, N(0), N(90000), NONE, NONE}},
    {&sql_open_retry, "", 1, FEW, PLAN_KEYS,
     {N(0), N(90000), NONE, NONE, KEY("L7"), TOKEN_7, N(0), N(0)}},
    {&sql_open_dead, "", 1, FEW, PLAN_KEYS, {FRESH, NONE, KEY("D7"), N(1000)}},
    {&sql_arm, "", 1, FEW, PLAN_KEYS,
     {THREAD, LOG, FRESH, N(60000), KEY("K7"), N(1000), TOKEN_7, N(0), N(NEVER)}},
    {&sql_close_retry, "", 1, FEW, PLAN_KEYS,
     {RETRY, THREAD, FRESH, S("C3001"), S("W3001"), OP}},
    /* the retry lane */
    {&sql_claim, "", 2, FEW, PLAN_KEYS,
     {RETRY, THREAD, NONE, LOG, ALIVE, FRESH, N(60000), N(60000), THREAD, NONE, LOG,
      ALIVE, FRESH, KEY("O7"), N(0), N(0)}},
    {&sql_claim_group, "", 2, FEW, PLAN_KEYS,
     {KEY("O7"), RETRY, THREAD, NONE, LOG, ALIVE, FRESH, N(60000), S("0")}},
    {&sql_claim_group, "refused", 0, FEW, PLAN_KEYS,
     {KEY("K7"), RETRY, THREAD, LOG, NONE, ALIVE, FRESH, N(60000), S("0")}},
    {&sql_claim_candidates, "", 20, 40, PLAN_KEYS, {RETRY, N(20)}},
    /* 256 of the index, each looked up, and read back from the derived table. */
    {&sql_claim_suspects, "", 10, 800, PLAN_KEYS, {RETRY, N(20)}},
    {&sql_next_due, "", 1, FEW, PLAN_KEYS, {RETRY}},
    {&sql_overdue, "", 1, 320, PLAN_KEYS, {RETRY, N(60000000), N(100), N(60000000)}},
    /* Blocks and procedures commit, so that they are run where nothing is to be done. */
    {&sql_operator_retry, "refused", 0, FEW, PLAN_NONE,
     {KEY("Q7"), N(999), THREAD, LOG, FRESH, S("ann"), S("why")}},
    {&sql_open_now, "refused", 0, FEW, PLAN_NONE,
     {S("unknown"), THREAD, LOG, FRESH, NONE, N(0), N(0), N(0), N(0), N(0), NONE, NONE, NONE,
      KEY("L7"), N(1001), TOKEN_7, N(0), N(90000), NONE, NONE, KEY("L7"), FRESH, N(0),
      N(0)}},
    {&sql_reap_now, "refused", 0, FEW, PLAN_NONE,
     {FRESH, NONE, KEY("D7"), N(1001), N(0), N(90000), NONE, NONE, KEY("D7"), FRESH, N(0),
      N(0)}},
    {&sql_claim_now, "refused", 1, FEW, PLAN_NONE,
     {RETRY, THREAD, LOG, NONE, ALIVE, FRESH, N(60000), N(60000), THREAD, LOG, NONE,
      ALIVE, FRESH, KEY("L7"), N(0), N(0), N(0), KEY("L7")}},
    {&sql_reclaim_now, "refused", 1, FEW, PLAN_NONE,
     {THREAD, LOG, ALIVE, FRESH, N(1), N(60000), NONE, N(0), NONE, NONE, NONE, KEY("L7"),
      N(1), N(0), N(0), NONE, KEY("L7")}},
    /* lost answers */
    {&sql_token_now, "", 1, FEW, PLAN_KEYS, {TOKEN_7, ALIVE, KEY("L7")}},
    {&sql_token_seen, "", 1, FEW, PLAN_NONE, {KEY("L7"), TOKEN_7}},
    {&sql_tokens_seen, "", 1, FEW, PLAN_KEYS, {KEY("L7"), TOKEN_7}},
    {&sql_tokens_seen, "none", 0, FEW, PLAN_KEYS, {KEY("L7"), FRESH}},
    {&sql_connection_used, "", 1, FEW, PLAN_NONE, {S("tl:nobody")}},
    /* janitor and sessions */
    {&sql_operation_next, "the first", 1, 4, PLAN_KEYS, {S("")}},
    {&sql_operation_next, "behind one", 1, 4, PLAN_KEYS, {OP}},
    {&sql_reap_overdue, "", 256, 300, PLAN_KEYS, {OP, LOW_WATER, N(NEVER)}},
    /* An index-only walk over what is in process, as it says. */
    {&sql_reap_session, "", 256, 3200, PLAN_KEYS, {OP, LOW_WATER, N(NEVER), DEAD}},
    {&sql_low_water_stretch, "", 1, 1020, PLAN_KEYS,
     {OP, LOW_WATER, N(NEVER), OP, LOW_WATER, N(NEVER)}},
    {&sql_low_water_stretch, "far behind", 1, 1020, PLAN_KEYS,
     {OP, N(1), N(NEVER), OP, N(1), N(NEVER)}},
    {&sql_low_water_clear, "", 1, 1020, PLAN_KEYS, {OP, N(1), N(1577837800000000)}},
    {&sql_low_water_move, "", 2, FEW, PLAN_KEYS,
     {OP, LOW_WATER, N(NEVER), LOW_WATER, N(NEVER)}},
    {&sql_low_water_back, "", 0, FEW, PLAN_KEYS, {OP}},
    /* the server's clock: the procedures' own statements are by key, or walk a page */
    {&sql_clock_look, "", 1, FEW, PLAN_KEYS, {NONE}},
    {&sql_clock_open, "", 1, 60, PLAN_WALK, {NONE}},
    {&sql_clock_future, "", 1, 3100, PLAN_KEYS, {RETRY}},
    {&sql_clock_last, "", 1, FEW, PLAN_KEYS, {NONE}},
    {&sql_clock_steps, "", 0, FEW, PLAN_WALK, {NONE}},
    {&sql_clock_stepped, "", 1, FEW, PLAN_NONE, {N(7), N(1000000), N(1000000), S("ann")}},
    {&sql_clock_settle, "", 1, FEW, PLAN_NONE, {N(100), THREAD, S("ann")}},
    {&sql_clock_settled, "", 1, FEW, PLAN_NONE, {NONE}},
    {&sql_session_insert, "", 1, FEW, PLAN_NONE,
     {NEW_SESSION, S("p"), S("h"), N(1), NONE, LOG, N(10000), N(10000)}},
    {&sql_session_beat, "", 1, FEW, PLAN_KEYS, {ALIVE}},
    {&sql_session_ended, "", 1, FEW, PLAN_KEYS, {DEAD}},
    {&sql_session_end, "", 1, FEW, PLAN_KEYS, {N(1), ALIVE}},
    {&sql_session_others, "", 22, 60, PLAN_KEYS, {ALIVE}},
    {&sql_session_expire, "", 1, FEW, PLAN_KEYS, {ALIVE, SILENT, N(0)}},
    {&sql_session_to_sweep, "", 5, 20, PLAN_KEYS, {NONE}},
    {&sql_session_swept, "", 1, FEW, PLAN_KEYS, {DEAD}},
    /* evidence */
    {&sql_evidence_lock, "", 1, FEW, PLAN_KEYS, {KEY("O7")}},
    {&sql_evidence_insert, "", 1, FEW, PLAN_NONE,
     {KEY("O7"), N(1), NONE, S("SUCCEEDED"), N(0), NONE, S("bank"), NONE, THREAD}},
    {&sql_file_paid, "", 1, FEW, PLAN_NONE,
     {S("C7"), S("new"), OP, N(1), NONE, S("ref"), THREAD}},
    {&sql_file_gone, "", 1, FEW, PLAN_NONE,
     {S("C7"), S("new"), OP, THREAD, LOG, FRESH, N(1), N(1), N(60000), N(1), N(1), N(0), NONE,
      NONE, NONE, NONE, NONE, NONE}},
    {&sql_resolve_lock, "", 1, FEW, PLAN_KEYS, {RETRY, KEY("O7")}},
    {&sql_resolve_insert, "", 1, FEW, PLAN_NONE,
     {KEY("O7"), N(1000), S("F"), N(1), N(1000), N(1), S("why"), S("ann"), THREAD, LOG, N(0)}},
    {&sql_resolve_insert, "clear", 1, FEW, PLAN_NONE,
     {KEY("X7"), N(1000), S("C"), N(2), N(1000), N(1), S("why"), S("ann"), THREAD, LOG, N(0)}},
    {&sql_resolve_insert, "paid", 1, FEW, PLAN_NONE,
     {KEY("X7"), N(1000), S("Y"), N(2), N(1000), N(1), S("why"), S("ann"), THREAD, LOG, N(0)}},
    {&sql_resolve_insert, "failed", 1, FEW, PLAN_NONE,
     {KEY("Q7"), N(1000), S("F"), N(2), N(1000), N(1), S("why"), S("ann"), THREAD, LOG, N(0)}},
    {&sql_resolve_refuse, "", 1, FEW, PLAN_NONE,
     {S("C9"), S("Q9"), OP, N(1000), S("pending"), THREAD, LOG}},
    {&sql_resolve_list, "", 2, FEW, PLAN_KEYS, {KEY("W7")}},
    {&sql_evidence_list, "", 1, FEW, PLAN_KEYS, {KEY("W7")}},
    /* lists */
    {&sql_log_seen, "", 1, FEW, PLAN_KEYS, {KEY("W7"), LOG, LOG, LOG}},
    {&sql_log_seen, "elsewhere", 0, FEW, PLAN_KEYS, {KEY("W7"), ALIVE, ALIVE, ALIVE}},
    {&sql_list_customer, "", 15, 20, PLAN_KEYS, {S("C7"), S(""), S(""), S(""), N(15)}},
    {&sql_list_customer, "later", 12, 20, PLAN_KEYS,
     {S("C7"), S("W10"), S("W10"), S("WITHDRAW"), N(100)}},
    {&sql_list_due, "", 100, 120, PLAN_KEYS,
     {OP, LOW_WATER, N(NEVER), N(0), N(1), N(100), N(0)}},
    {&sql_list_due, "later", 100, 320, PLAN_KEYS,
     {OP, LOW_WATER, N(NEVER), N(0), N(1), N(100), N(200)}},
    {&sql_list_due, "finished", 100, 120, PLAN_KEYS,
     {OP, N(1), LOW_WATER, N(1), N(1), N(100), N(0)}},
    {&sql_list_held, "", 100, 120, PLAN_KEYS,
     {S("MUTEX"), S("00000000-0000-0000-0000-000000000000"), N(100), N(0)}},
    {&sql_list_idle, "", 512, 540, PLAN_KEYS, {OP, S(""), S(""), S(""), N(512)}},
    {&sql_list_idle, "later", 512, 540, PLAN_KEYS,
     {OP, S("C5"), S("C5"), S("W5"), N(512)}},
    /* resources */
    {&sql_resource_ask, "first", 1, FEW, PLAN_NONE,
     {S("new"), THREAD, LOG, ALIVE, FRESH, NONE, N(60000), NONE, NONE, NONE, NONE,
      S("")}},
    {&sql_resource_ask, "held", 1, FEW, PLAN_NONE,
     {S("held/7"), THREAD, LOG, ALIVE, FRESH, NONE, N(60000), NONE, NONE, NONE, NONE,
      S("  held/7 1000  ")}},
    {&sql_resource_unlock, "", 1, FEW, PLAN_KEYS,
     {THREAD, LOG, FRESH, TOKEN_7, S("held/7")}},
    {&sql_resource_group, "first", 1, FEW, PLAN_NONE,
     {S("new"), S("L"), S("lock"), THREAD, LOG, ALIVE, FRESH, N(30000), N(60000), NONE,
      NONE, NONE, NONE}},
    {&sql_resource_group, "held", 1, FEW, PLAN_NONE,
     {S("held/7"), S("L"), S("lock"), THREAD, LOG, ALIVE, FRESH, N(30000), N(60000), NONE,
      NONE, NONE, NONE}},
    {&sql_resource_group, "unlocked", 1, FEW, PLAN_NONE,
     {S("held/7"), S("U"), S("release"), THREAD, LOG, NONE, FRESH, NONE, NONE, NONE,
      TOKEN_7, NONE, NONE}},
    {&sql_resource_renew, "", 1, FEW, PLAN_KEYS,
     {THREAD, LOG, N(1000), TOKEN_7, S("held/7")}},
    {&sql_resource_force, "", 1, FEW, PLAN_KEYS,
     {THREAD, LOG, FRESH, S("why"), S("ann"), S("held/7"), N(1000)}},
    {&sql_resource_now, "", 1, FEW, PLAN_KEYS, {TOKEN_7, S("held/7")}},
    {&sql_resource_token_seen, "", 1, FEW, PLAN_NONE, {S("held/7"), TOKEN_7}},
    {&sql_resource_guard, "", 1, FEW, PLAN_KEYS, {TOKEN_7, N(1000), S("held/7")}},
    {&sql_caller_transaction, "", 1, FEW, PLAN_NONE, {NONE}},
    {&sql_resource_show, "", 1, FEW, PLAN_KEYS, {S("held/7")}},
    {&sql_resource_list, "", 256, 520, PLAN_KEYS, {S("held/"), N(256)}},
    /* read-write locks */
    {&sql_rw_make, "", 1, FEW, PLAN_NONE, {S("new")}},
    {&sql_rw_gate, "", 1, FEW, PLAN_KEYS, {S("read/7")}},
    {&sql_rw_look, "", 1, FEW, PLAN_KEYS, {FRESH, FRESH, S("read/7")}},
    {&sql_rw_claim, "first", 1, FEW, PLAN_NONE,
     {S("new"), N(1), S("R"), S("H"), S("read"), THREAD, LOG, ALIVE, N(1), FRESH, N(1000),
      N(60000), N(60000), NONE, NONE}},
    {&sql_rw_claim, "free", 2, FEW, PLAN_NONE,
     {S("free/7"), N(1), S("W"), S("H"), S("write"), THREAD, LOG, ALIVE, N(1), FRESH,
      N(1001), N(60000), N(60000), NONE, NONE}},
    {&sql_rw_free, "", 1, FEW, PLAN_KEYS, {THREAD, FRESH, S("janitor"), S("over/7"), N(1)}},
    {&sql_rw_free, "ended", 1, FEW, PLAN_KEYS,
     {THREAD, FRESH, S("janitor"), S("gone/7"), N(1)}},
    {&sql_rw_free, "alive", 0, FEW, PLAN_KEYS,
     {THREAD, FRESH, S("janitor"), S("read/7"), N(1)}},
    {&sql_rw_release, "", 1, FEW, PLAN_KEYS,
     {S("release"), THREAD, LOG, FRESH, S("read/7"), N(2), TOKEN_7}},
    {&sql_rw_downgrade, "", 1, FEW, PLAN_KEYS, {THREAD, LOG, S("read/7"), N(2), TOKEN_7}},
    {&sql_rw_renew, "", 1, FEW, PLAN_KEYS,
     {THREAD, LOG, N(1000), S("read/7"), N(2), TOKEN_7}},
    {&sql_rw_force, "", 1, FEW, PLAN_KEYS,
     {THREAD, LOG, FRESH, N(1001), S("why"), S("ann"), S("read/7"), N(2), N(1000)}},
    {&sql_rw_done, "", 1, FEW, PLAN_KEYS,
     {THREAD, LOG, S("read/7"), N(2), TOKEN_7, N(1000)}},
    {&sql_rw_guard, "", 1, FEW, PLAN_KEYS, {TOKEN_7, N(1000), S("read/7"), N(2)}},
    {&sql_rw_now, "", 1, FEW, PLAN_KEYS, {TOKEN_7, S("read/7"), N(2)}},
    {&sql_rw_token_seen, "", 1, FEW, PLAN_NONE, {S("read/7"), N(2), TOKEN_7}},
    {&sql_rw_overdue, "", 256, 300, PLAN_KEYS, {NONE}},
    /* A walk over the index of what is held now, as it says. */
    {&sql_rw_session, "", 256, 8000, PLAN_KEYS, {DEAD}},
    {&sql_rw_show, "", 3, FEW, PLAN_KEYS, {S("read/7"), N(0), N(256)}},
    {&sql_rw_list, "", 256, 600, PLAN_KEYS, {S("read/"), S("read/"), N(0), N(256)}},
    /* row locks */
    {&sql_row_lock_there, "", 1, FEW, PLAN_KEYS, {S("row/7")}},
    {&sql_row_lock_make, "", 1, FEW, PLAN_NONE, {S("new")}},
    {&sql_row_lock, "", 1, FEW, PLAN_KEYS, {S("row/7")}},
    {&sql_timeline, "", 2, FEW, PLAN_KEYS, {KEY("O7"), RETRY}},
    /* purging: the procedure's own statements are by key */
    {&sql_purge, "", 10, 400, PLAN_NONE,
     {N(86400000), N(10), S("C5"), S("W5"), OP}},
    {&sql_purge_resources, "", 10, 100, PLAN_NONE, {N(86400000), N(10), S("account/5")}},
    {&sql_purge_rw, "", 10, 100, PLAN_NONE, {N(86400000), N(10), S("read/5")}},
    {&sql_purge_result, "", 1, FEW, PLAN_NONE, {NONE}},
    {&sql_purge_sessions, "", 10, 100, PLAN_NONE, {N(86400000), N(10)}},
    {&sql_purge_sessions_result, "", 1, FEW, PLAN_NONE, {NONE}},
    /* the audit */
    {&sql_audit_log, "", 200, 2200, PLAN_KEYS,
     {S("W5"), S("W5"), S("W5"), S("C5"), S("C5"), OP, OP, N(0), N(100)}},
    {&sql_audit_rows, "", 150, 1200, PLAN_KEYS,
     {S("C5"), S("C5"), S("C5"), S("W5"), S("W5"), OP, N(100)}},
    {&sql_audit_run, "", 1, FEW, PLAN_NONE, {NONE}},
    {&sql_audit_closing, "", 1, FEW, PLAN_KEYS, {FINDING}},
    {&sql_audit_close, "", 1, FEW, PLAN_NONE,
     {FINDING, N(2), S("gap"), KEY("W7"), N(1), S("why"), S("ann"), THREAD}},
    /* schema and server */
    {&sql_schema_version, "", 1, FEW, PLAN_KEYS, {NONE}},
    {&sql_schema_identity, "", 1, FEW, PLAN_KEYS, {NONE}},
    {&sql_server_restored, "", 1, FEW, PLAN_KEYS, {ALIVE, N(1000)}},
    /* A procedure that commits, and one that wants two operators: run where nothing is done. */
    {&sql_restore_found, "refused", 1, FEW, PLAN_NONE, {N(99), S("why")}},
    {&sql_restore_declare, "", 1, FEW, PLAN_NONE, {S("why"), S("ann")}},
    {&sql_restore_status, "", 1, FEW, PLAN_KEYS, {NONE}},
    /* Once after a restore, by an operator, and everything is looked at. */
    {&sql_restore_half, "", 1, FEW, PLAN_NONE, {N(0), S("found"), S("why"), S("ann")}},
    {&sql_restore_carry_out, "", 58455, 2000000, PLAN_NONE, {N(60000), THREAD}},
    {&sql_restore_trades, "", 7, 1000000, PLAN_WALK, {NONE}},
    {&sql_server_settings, "", 1, FEW, PLAN_NONE, {NONE}},
    {&sql_migrate_turn, "", 1, FEW, PLAN_NONE, {N(1)}},
    {&sql_migrate_wait, "", 0, FEW, PLAN_NONE, {N(5)}},
    /* the doctor */
    {&sql_doctor_sessions, "", 1, 60, PLAN_KEYS, {NONE}},
    {&sql_doctor_overdue, "", 1, FEW, PLAN_KEYS, {RETRY, N(1), N(NEVER)}},
    {&sql_doctor_overdue, "sync", 1, FEW, PLAN_KEYS, {OP, LOW_WATER, N(NEVER)}},
    {&sql_doctor_conflicts, "", 1, 40100, PLAN_WALK, {NONE}},
    {&sql_doctor_parts, "", 1, 600, PLAN_NONE, {NONE}},
    {&sql_migrate_parts, "", EVERY_PART, 600, PLAN_NONE, {NONE}},
    {&sql_doctor_server, "", 1, 2000, PLAN_NONE, {NONE}},
    {&sql_doctor_variables, "", 15, 100, PLAN_NONE, {NONE}},
    {&sql_doctor_grants, "", 2, FEW, PLAN_NONE, {NONE}},
    {&sql_right_ask, "", 0, FEW, PLAN_NONE, {NONE}},
    {&sql_right_change_evidence, "", 0, FEW, PLAN_NONE, {NONE}},
    {&sql_right_delete_lock, "", 0, FEW, PLAN_NONE, {NONE}},
    {&sql_right_delete_log, "", 0, FEW, PLAN_NONE, {NONE}},
    {&sql_right_forge, "", 0, FEW, PLAN_NONE, {NONE}},
    {&sql_right_read_resolution, "", 0, FEW, PLAN_NONE, {NONE}},
    {&sql_right_write_first, "", 0, FEW, PLAN_NONE, {NONE}},
    {&sql_right_write_log, "", 0, FEW, PLAN_NONE, {NONE}},
};
/* clang-format on */

const size_t plan_cases_count = sizeof plan_cases / sizeof plan_cases[0];

size_t plan_values_count(const struct sql_text *statement)
{
    size_t count = 0;

    for (const char *c = statement->text; (c = strchr(c, '?')) != NULL; c++)
        count++;
    return count;
}
