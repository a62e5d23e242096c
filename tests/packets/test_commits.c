/* The line is cut while the server is executing the operation's commit. */
#include "operations.h"
#include "support/theme.h"

#define SWEEP(name)                                                                                \
    TEST(test_##name)                                                                              \
    {                                                                                              \
        const struct operations *all = &operations_##name;                                         \
                                                                                                   \
        assert_int_equal(sweep_commits(all->theme, all->list, all->count), 0);                     \
    }

SWEEP(asks)
SWEEP(endings)
SWEEP(lane)
SWEEP(caller)

TESTS_OF(commits, NULL, NULL)
