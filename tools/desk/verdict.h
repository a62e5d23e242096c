/* What is said first of how things are: the worst of what is true. */
#ifndef DESK_VERDICT_H
#define DESK_VERDICT_H

#include "facts.h"
#include "now.h"

struct verdict {
    enum verdict_kind kind;
    int64_t since_us;              /* of the server's clock; 0: not known */
    uint64_t count;                /* of what it is about */
    const struct channel *channel; /* VERDICT_DOWN: the one for which most waits, or NULL */
    const struct stopped *stopped; /* what is paused, or a breaker of VERDICT_DOWN */
    const struct alarm *alarm;     /* VERDICT_UNFIT, VERDICT_WARNING */
};

/* Of what the database says; it points into *now. */
struct verdict verdict_of(const struct now *now);

/* How each kind looks ("bad", "warn", "good"), its section of the runbook, what it says where that
 * is always the same (NULL: it is not), and where what it is about is listed. */
extern const struct verdict_look {
    const char *look, *section, *runbook, *title, *detail, *list;
} verdict_looks[];

#endif
