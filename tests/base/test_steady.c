/* What shows that another machine's clock was set, and what does not. */
#include "base/steady.h"
#include "support/theme.h"

#define SECOND INT64_C(1000000)
#define AHEAD (1000 * SECOND)
#define MARGIN (2 * SECOND)

static steady clock_seen;

/* A look at a clock that is so far ahead, between two moments of ours. */
static steady_look look(int64_t ahead_us, int64_t before_us, int64_t took_us)
{
    const steady_look seen = {before_us + took_us / 2 + ahead_us, before_us, before_us + took_us};

    return seen;
}

static int64_t off(int64_t ahead_us, int64_t before_us, int64_t took_us)
{
    const steady_look seen = look(ahead_us, before_us, took_us);
    const int64_t off_us = steady_off_us(&clock_seen, &seen, MARGIN);

    if (off_us == 0)
        steady_learn(&clock_seen, &seen);
    return off_us;
}

FIXTURE(begin)
{
    const steady nothing = {0};

    clock_seen = nothing;
    assert_int_equal(off(AHEAD, 0, 1000), 0);
}

TEST_IN(a_step_is_seen, begin, NULL)
{
    int64_t size_us = off(AHEAD + 700 * SECOND, SECOND, 1000);

    assert_in_range(size_us, 700 * SECOND - 1000, 700 * SECOND);
    size_us = -off(AHEAD - 12 * SECOND, 2 * SECOND, 1000);
    /* It is not less than it was. */
    assert_in_range(size_us, 12 * SECOND, 12 * SECOND + 1000);
    assert_int_equal(off(AHEAD, 3 * SECOND, 1000), 0);
}

/* However long the answer took: the clock may have been where it must be. */
TEST_IN(a_pause_is_no_step, begin, NULL)
{
    assert_int_equal(off(AHEAD + 1000 * SECOND, SECOND, 3000 * SECOND), 0);
    assert_int_equal(off(AHEAD, 3002 * SECOND, 1000), 0);
    assert_int_not_equal(off(AHEAD - 20 * SECOND, 3003 * SECOND, 1000), 0);
}

TEST_IN(drift_is_followed, begin, NULL)
{
    for (int64_t at = 1; at < 20000; at++)
        assert_int_equal(off(AHEAD + at * SECOND / 1100, at * SECOND, 1000), 0);
    assert_int_not_equal(off(AHEAD, 20000 * SECOND, 1000), 0);
}

/* Steps below the margin add up to one that is not. */
TEST_IN(small_steps_add_up, begin, NULL)
{
    assert_int_equal(off(AHEAD + 3 * SECOND / 2, SECOND, 1000), 0);
    assert_int_not_equal(off(AHEAD + 3 * SECOND, 2 * SECOND, 1000), 0);
}

TEST_IN(what_it_must_be_now, begin, NULL)
{
    const steady nothing = {0};
    int64_t least_us, most_us;

    assert_int_equal(steady_now(&nothing, SECOND, MARGIN, &least_us, &most_us), 0);
    assert_int_equal(steady_now(&clock_seen, 1000 * SECOND, MARGIN, &least_us, &most_us), 1);
    assert_in_range(least_us, AHEAD + 996 * SECOND, AHEAD + 997 * SECOND + 1000);
    assert_in_range(most_us, AHEAD + 1003 * SECOND - 1000, AHEAD + 1004 * SECOND);
}

TESTS_OF(steady, NULL, NULL)
