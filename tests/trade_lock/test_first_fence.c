/* A new row's fence starts from the server's microseconds, exactly. */
#include "fixture.h"
#include "support/theme.h"

#define ASKS 50

WHOLE_FIXTURE_OF_ALL("")

/* Nothing is told but what every ask tells, so that the shortest statement will do. */
static void ask_and_end(int number)
{
    tl_lock_options options = sync_options("x");
    tl_lock *lock;

    options.channel = NULL;
    const struct text serial = text_of("f%d", number);
    lock = granted(f.client, serial.is, "c1", &options);
    assert_true(
        (long long)tl_lock_view(lock)->fence ==
        database_number(f.sql, "SELECT fence FROM trade_lock WHERE serial_no='%s'", serial.is));
    assert_true(database_number(f.sql,
                                "SELECT fence = rev AND first_rev = rev FROM trade_lock "
                                "WHERE serial_no='%s'",
                                serial.is));
    end_paid(lock);
}

TEST(test_asks_in_a_row)
{
    for (int i = 0; i < ASKS; i++)
        ask_and_end(i);

    /* An ending has added one. */
    database_expect(f.sql, ASKS,
                    "SELECT COUNT(*) FROM trade_lock WHERE fence - 1 = " DATABASE_MADE_REV);
}

TESTS_OF(first_fence, open_all, close_all)
