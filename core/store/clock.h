/* The statements about the server's clock, bound to their parameters; each is one round trip. */
#ifndef TL_STORE_CLOCK_H
#define TL_STORE_CLOCK_H

#include "db/db.h"

typedef struct store_clock {
    int64_t now_us;
    uint32_t jumps, unsettled;
    /* Only store_clock_open() fills the rest. */
    int64_t behind_us; /* it was set back by at least this */
    int silent;        /* a session showed no beat for a whole time-out */
    int has_kept;      /* the last process of this boot left what it knew: the rest */
    int64_t kept_at_us, kept_least_us, kept_most_us;
    uint32_t kept_jumps;
} store_clock;

db_answer store_clock_look(db *connection, store_clock *found);
/* boot_id: this machine's; or NULL. */
db_answer store_clock_open(db *connection, const char *boot_id, store_clock *found);
/* How far in the future the latest last step of an operation's rows in process lies. */
db_answer store_clock_future(db *connection, const char *op_code, int64_t *future_us);

#endif
