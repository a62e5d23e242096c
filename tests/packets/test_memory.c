/* Every allocation of every operation fails once. */
#include "operations.h"
#include "support/theme.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TEST_THEME(name)                                                                           \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        const struct operations *all = &operations_##name;                                         \
        (void)state;                                                                               \
        assert_int_equal(sweep_memory(all->theme, all->list, all->count), 0);                      \
    }

TEST_THEME(asks)
TEST_THEME(endings)
TEST_THEME(lane)
TEST_THEME(caller)
TEST_THEME(client)
TEST_THEME(others)

TEST_MAIN(memory)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asks),   cmocka_unit_test(test_endings),
        cmocka_unit_test(test_lane),   cmocka_unit_test(test_caller),
        cmocka_unit_test(test_client), cmocka_unit_test(test_others),
    };

    return server_report(cmocka_run_group_tests(tests, NULL, NULL));
}
