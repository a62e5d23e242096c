/* tradelock retry --all: many trades at once. */
#ifndef TRADELOCK_RETRY_ALL_H
#define TRADELOCK_RETRY_ALL_H

#include "filter.h"

struct retry_all {
    tl_filter filter;
    const char *reason, *actor, *said; /* said: the filter in words */
    int has_yes;
    uint64_t yes;
};

int retry_all(tl_client *client, const struct common *common, struct retry_all *all);

#endif
