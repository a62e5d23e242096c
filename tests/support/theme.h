/*
 * One executable holds all tests of a folder; its first argument names the theme, test_THEME.c.
 *
 *     FIXTURE(open_all)
 *     {
 *         fixture_open(&f, NULL);
 *     }
 *
 *     TEST(first_time_then_success)
 *     {
 *         ...
 *     }
 *
 *     TESTS_OF(ask, open_all, close_all)
 *
 * Every test of the file is run, in its order; with --only=PATTERN after the theme, those of that
 * name.
 */
#ifndef TESTS_SUPPORT_THEME_H
#define TESTS_SUPPORT_THEME_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef int (*test_fixture)(void **state);

struct test {
    struct CMUnitTest cmocka;
    const char *file;
    int line;
    struct test *next;
};
void test_add(struct test *self);

/* What is done before or after tests.  A failed assertion in it fails them. */
#define FIXTURE(name)                                                                              \
    static void name##_steps(void **state);                                                        \
    static int name(void **state)                                                                  \
    {                                                                                              \
        name##_steps(state);                                                                       \
        return 0;                                                                                  \
    }                                                                                              \
    static void name##_steps(__attribute__((unused)) void **state)

#define TEST(name) TEST_IN(name, NULL, NULL)
/* With a set-up and a tear-down of its own, or NULL. */
#define TEST_IN(name, set_up, tear_down)                                                           \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void name##_added(void)                                    \
    {                                                                                              \
        static struct test test = {                                                                \
            {#name, name, set_up, tear_down, NULL}, __FILE__, __LINE__, NULL};                     \
        test_add(&test);                                                                           \
    }                                                                                              \
    static void name(__attribute__((unused)) void **state)

/* The tests of this file between the set-up and the tear-down of all; gives back how many failed. */
#define tests_run(set_up, tear_down) tests_run_file(__FILE__, set_up, tear_down)
int tests_run_file(const char *file, test_fixture set_up, test_fixture tear_down);
/* Only those whose names match are run. */
void tests_choose(const char *pattern);

#define TESTS_OF(theme, set_up, tear_down)                                                         \
    TEST_MAIN(theme)                                                                               \
    {                                                                                              \
        return tests_run(set_up, tear_down);                                                       \
    }

/* For what is more than that.  argv[0] is the theme, argv[1] the first argument after it. */
#define TEST_MAIN(theme)                                                                           \
    int test_main_##theme(int argc, char **argv);                                                  \
    int test_main_##theme(__attribute__((unused)) int argc, __attribute__((unused)) char **argv)

/* The search for leaks doubles the time that a program takes to end.  Tests with LEAKS have it in
 * the programs that they start, all have it in themselves. */
void theme_spare_programs(void);

/* A short text that is its expression's, or a variable's: pay(text_of("W%d", i).is). */
struct text {
    char is[96];
};
struct text text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* How long a test waits for what must come: after that it hangs.  A busy machine is no hang. */
#define PATIENCE_MS 240000

/* A count for each tier of tools/test.  TL_TEST_TIER says which tier this is: first, deep or long;
 * a test that is run by hand is deep. */
unsigned tier_pick(unsigned first, unsigned deep, unsigned full);
int tier_is_long(void);

#endif
