/* A new row's fence starts from the server's microseconds, exactly. */
#include "fixture.h"
#include "support/theme.h"

#define ASKS 50

WHOLE_FIXTURE_OF_ALL("")

/* Nothing is told but what every ask tells, so that the shortest statement will do. */
static void ask_and_end(int number)
{
    tl_lock_options options = sync_options("x");
    char serial[16];
    tl_lock *lock;

    options.channel = NULL;
    snprintf(serial, sizeof serial, "f%d", number);
    lock = granted(f.client, serial, "c1", &options);
    assert_true(
        (long long)tl_lock_view(lock)->fence ==
        database_number(f.sql, "SELECT fence FROM trade_lock WHERE serial_no='%s'", serial));
    assert_true(database_number(f.sql,
                                "SELECT fence = rev AND first_rev = rev FROM trade_lock "
                                "WHERE serial_no='%s'",
                                serial));
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
}

TEST(test_asks_in_a_row)
{
    for (int i = 0; i < ASKS; i++)
        ask_and_end(i);

    /* An ending has added one. */
    assert_int_equal(
        database_number(f.sql,
                        "SELECT COUNT(*) FROM trade_lock WHERE fence - 1 = " DATABASE_MADE_REV),
        ASKS);
}

TESTS_OF(first_fence, open_all, close_all)
