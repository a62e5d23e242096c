/* The schedule's steps and its jitter, which only ever adds; and the poison count. */
#include "compensate.h"
#include "schedule.h"

#include "support/theme.h"

static const tl_policy policy = {.schedule_ms = {100, 200, 5000}, .schedule_count = 3};

TEST(steps_and_repeats_the_last)
{
    assert_int_equal(schedule_step_ms(&policy, 0), 100);
    assert_int_equal(schedule_step_ms(&policy, 1), 200);
    assert_int_equal(schedule_step_ms(&policy, 2), 5000);
    assert_int_equal(schedule_step_ms(&policy, 3), 5000);
    assert_int_equal(schedule_step_ms(&policy, UINT32_MAX), 5000);
}

TEST(jitter_only_adds)
{
    assert_int_equal(schedule_jitter_ms(1000, 25, 0), 1000);
    assert_int_equal(schedule_jitter_ms(1000, 25, 250), 1250);
    assert_int_equal(schedule_jitter_ms(1000, 25, 251), 1000);
    assert_int_equal(schedule_jitter_ms(0, 25, 77), 0);
    assert_int_equal(schedule_jitter_ms(3, 25, 77), 3);
    for (uint32_t random = 0; random < 5000; random++) {
        int64_t delay_ms = schedule_jitter_ms(1234, 25, random * 2654435761u);

        assert_in_range(delay_ms, 1234, 1234 + 308);
    }
    /* A year does not overflow. */
    assert_true(schedule_jitter_ms(INT64_C(31622400000), 50, UINT32_MAX) >= INT64_C(31622400000));
}

TEST(jitter_spreads)
{
    int64_t least = INT64_MAX, most = 0;

    for (int i = 0; i < 1000; i++) {
        int64_t delay_ms = schedule_next_ms(&policy, 2, 0);

        assert_in_range(delay_ms, 5000, 6250);
        least = delay_ms < least ? delay_ms : least;
        most = delay_ms > most ? delay_ms : most;
    }
    assert_true(most - least > 600);
}

TEST(not_before_what_must_be_waited_for)
{
    for (int i = 0; i < 100; i++) {
        assert_true(schedule_next_ms(&policy, 0, 700) >= 700);
        assert_true(schedule_next_ms(&policy, 2, 700) >= 5000);
    }
}

TEST(backoff_doubles_up_to_its_most)
{
    int64_t delay_ms = 0, before_ms = 0;

    for (int i = 0; i < 20; i++) {
        int64_t wait_ms = schedule_backoff_ms(&delay_ms, 200);

        assert_true(delay_ms <= 200 && delay_ms >= before_ms);
        assert_in_range(wait_ms, delay_ms, delay_ms + delay_ms / 2);
        before_ms = delay_ms;
    }
    assert_int_equal(delay_ms, 200);
}

TEST(only_deaths_alone_are_poison)
{
    /* claims counts this one too: 2 is the first time alone. */
    assert_false(compensate_is_poison(0, 3));
    assert_false(compensate_is_poison(1, 3));
    assert_false(compensate_is_poison(2, 3));
    assert_false(compensate_is_poison(4, 3)); /* two deaths alone */
    assert_true(compensate_is_poison(5, 3));  /* three */
    assert_true(compensate_is_poison(3, 1));
    assert_false(compensate_is_poison(2, 1));
}

TESTS_OF(schedule, NULL, NULL)
