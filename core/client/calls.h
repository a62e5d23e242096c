/* Counts of a channel's answers, which a layer keeps with the client (tradelock/layer.h). */
#ifndef TL_CLIENT_CALLS_H
#define TL_CLIENT_CALLS_H

#include "base/metrics.h"

#include <tradelock/layer.h>

#define CALLS_ANSWERS_MAX 8

struct tl_calls {
    /* Fixed once it is in the list. */
    struct tl_calls *next;
    char channel[TL_CHANNEL_MAX + 1], op_code[TL_OP_MAX + 1];
    const char *call;
    const char *const *answers;
    unsigned answer_count;
    /* Atomic. */
    atomic_uint_fast64_t answered[CALLS_ANSWERS_MAX];
    histogram took;
};

/* Frees the whole list. */
void calls_free(struct tl_calls *first);

#endif
