/* Every operation that is cut at every packet. */
#ifndef TESTS_PACKETS_OPERATIONS_H
#define TESTS_PACKETS_OPERATIONS_H

#include "sweep.h"

struct operations {
    const char *theme;
    const operation *list;
    size_t count;
};

extern const struct operations operations_asks, operations_endings, operations_lane,
    operations_caller, operations_client, operations_others;

#endif
