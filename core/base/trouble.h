/*
 * Work that is done again and again, such as what follows each beat, and may fail each time.  Nobody
 * waits for it, so nobody is told by a status; what goes on failing is told in the log, once, and
 * once more when it works again.
 */
#ifndef TL_BASE_TROUBLE_H
#define TL_BASE_TROUBLE_H

#include "base/log.h"

#include <tradelock/tradelock.h>

#include <stdint.h>

/* Zeroed, it has not failed.  Of the one thread that does the work, or under a mutex of it. */
typedef struct trouble {
    unsigned fails; /* in a row */
    int64_t since_ms;
    int is_told;
} trouble;

/* How the work ended this time; the thread's error sentence says why it failed.  What passes by
 * itself (classes RETRY and UNKNOWN: no connection is free, the server is away) counts once it has
 * lasted for a minute. */
void trouble_note(const struct logger *logger, trouble *t, tl_status status, const char *work);

#endif
