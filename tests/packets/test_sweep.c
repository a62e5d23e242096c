/* The operations of one theme, cut at every packet. */
#include "operations.h"
#include "support/theme.h"

static const struct operations *chosen;

static void test_every_packet(void **state)
{
    (void)state;
    assert_int_equal(sweep(chosen->theme, chosen->list, chosen->count), 0);
}

TEST_MAIN(sweep)
{
    const struct operations *const themes[] = {&operations_asks, &operations_endings,
                                               &operations_lane, &operations_caller,
                                               &operations_client};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_packet)};

    for (size_t i = 0; i < sizeof themes / sizeof *themes; i++)
        if (argc == 2 && strcmp(argv[1], themes[i]->theme) == 0)
            chosen = themes[i];
    if (chosen == NULL)
        server_panic("usage: test-packets_... asks|endings|lane|caller|client");
    return server_report(cmocka_run_group_tests(tests, NULL, NULL));
}
