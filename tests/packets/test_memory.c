/* Every allocation of every operation fails once. */
#include "operations.h"
#include "support/theme.h"

#define SWEEP(name)                                                                                \
    TEST(test_##name)                                                                              \
    {                                                                                              \
        const struct operations *all = &operations_##name;                                         \
                                                                                                   \
        assert_int_equal(sweep_memory(all->theme, all->list, all->count), 0);                      \
    }

SWEEP(asks)
SWEEP(endings)
SWEEP(lane)
SWEEP(caller)
SWEEP(client)
SWEEP(others)

TESTS_OF(memory, NULL, NULL)
