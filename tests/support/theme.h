/*
 * One executable holds all tests of a folder.  Each file test_THEME.c has a main of its own under
 * this name; the executable runs the one that its first argument names.
 *
 *     TEST_MAIN(ask)
 *     {
 *         return server_run_tests(tests, setup, teardown);
 *     }
 *
 * argv[0] is the theme, argv[1] the first argument after it.
 */
#ifndef TESTS_SUPPORT_THEME_H
#define TESTS_SUPPORT_THEME_H

#define TEST_MAIN(theme)                                                                           \
    int test_main_##theme(int argc, char **argv);                                                  \
    int test_main_##theme(__attribute__((unused)) int argc, __attribute__((unused)) char **argv)

/* The search for leaks doubles the time that a program takes to end.  Tests with LEAKS have it in
 * the programs that they start, all have it in themselves. */
void theme_spare_programs(void);

/* How long a test waits for what must come: after that it hangs.  A busy machine is no hang. */
#define PATIENCE_MS 240000

/* A count for each tier of tools/test.  TL_TEST_TIER says which tier this is: first, deep or long;
 * a test that is run by hand is deep. */
unsigned tier_pick(unsigned first, unsigned deep, unsigned full);
int tier_is_long(void);

#endif
