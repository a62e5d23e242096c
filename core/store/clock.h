/* The statements about the server's clock, bound to their parameters; each is one round trip. */
#ifndef TL_STORE_CLOCK_H
#define TL_STORE_CLOCK_H

#include "db/db.h"

typedef struct store_clock {
    int64_t now_us;
    uint32_t jumps, unsettled;
    /* The rest is of store_clock_open() only. */
    int64_t behind_us; /* how far, at least, it was set back */
    int silent;        /* a session was not heard of for a whole time-out */
    int has_kept;      /* the last process of this boot left what it knew of the clock */
    int64_t kept_at_us, kept_least_us, kept_most_us;
    uint32_t kept_jumps;
} store_clock;

db_answer store_clock_look(db *connection, store_clock *found);
/* boot_id: of this machine, or NULL. */
db_answer store_clock_open(db *connection, const char *boot_id, store_clock *found);
/* How far in the future a last step of one operation's rows in process lies, at most. */
db_answer store_clock_future(db *connection, const char *op_code, int64_t *future_us);
/* known: how many jumps this process knew of; before_us: how long ago the jump can have been, at
 * most. */
db_answer store_clock_stepped(db *connection, uint32_t known, int64_t size_us, int64_t before_us,
                              const char *actor);
db_answer store_clock_settle(db *connection, unsigned most, const char *thread_no,
                             const char *actor);
/* One text: how many jumps are left, how many rows were changed, 0 when another is at it. */
db_answer store_clock_settled(db *connection, db_result *result);

/* (jumps, unsettled, size, age in microseconds, actor) */
db_answer store_clock_last(db *connection, db_result *result);
/* (size, earliest moment in microseconds) of each jump back */
db_answer store_clock_steps(db *connection, db_result *result);

#endif
