/* A decision of two operators that nobody made; transcripts/resolve_rules.txt has the other rules. */
#include "operators.h"
#include "support/theme.h"

/* A compensating attempt that says that operators decided, and they did not. */
TEST(test_the_proof_is_looked_for)
{
#define BY_HAND "rev = rev + 1, step = 'test' WHERE serial_no = 'L1' AND lane = 'S'"
#define WRITTEN(part, account)                                                                     \
    "INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, "              \
    "fence, epoch, reason, actor, thread_no, account) SELECT cust_no, serial_no, "                 \
    "op_code, 1, 'F', " part ", fence, epoch, 'r', 'a', UUID(), '" account                         \
    "' FROM trade_lock WHERE serial_no = 'L1' AND lane = 'S'"
    static const char *const steps[] = {
        WRITTEN("2", "x@a"),
        WRITTEN("1", "x@b"),
        "UPDATE trade_resolution SET account = 'y@a', rev = 2 WHERE serial_no = 'L1' "
        "AND part = 1",
        "UPDATE trade_resolution SET rev = 1 WHERE serial_no = 'L1'; " WRITTEN("3", "svc@a"),
        "DELETE FROM trade_resolution WHERE serial_no = 'L1' AND part = 3; "
        "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6) + "
        "INTERVAL 1 HOUR, " BY_HAND,
    };
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_ending ending = TL_ENDING_INIT;
    tl_key key = {"L1", "C1", WITHDRAW_OP};
    tl_lock *lock = NULL;

    operators_make_doubtful("L1");
    database_run(operators.h.sql, "UPDATE trade_lock SET next_run_at = UTC_TIMESTAMP(6), "
                                  "rev = rev + 1, step = 'test' WHERE serial_no = 'L1' AND "
                                  "lane = 'R'");
    options.lane = TL_LANE_RETRY;
    options.max_hold_ms = 60000;
    assert_status(tl_lock_new(&lock, operators.h.client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    ending.outcome = TL_OUTCOME_FAILURE;
    ending.proof = TL_PROOF_OPERATORS;
    assert_status(tl_lock_finish(lock, &ending), TL_INVALID);
    /* Halves that no trigger looked at, as an administrator can write them: each time one thing is
     * missing that a confirmation by the command brings. */
    database_run(operators.h.sql, "DROP TRIGGER trade_resolution_inserted; "
                                  "DROP TRIGGER trade_resolution_confirmed");
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        database_run(operators.h.sql, "%s", steps[i]);
        assert_status(tl_lock_finish(lock, &ending), TL_INVALID);
        house_row(&operators.h, "L1", "P 1 1 -");
    }
    operators_grant();
    database_run(operators.h.sql, "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6), " BY_HAND);
    assert_status(tl_lock_finish(lock, &ending), TL_FAILED);
    house_row(&operators.h, "L1", "F 1 1 O");
    tl_lock_free(lock);
}

TESTS_OF(resolve_rules, operators_set_up, operators_tear_down)
