/* What is wrong in a database, or worth a word, and what is worst of it: by that the command's exit
 * code and the desk's first sentence. */
#ifndef TRADELOCK_FACTS_H
#define TRADELOCK_FACTS_H

#include <tradelock/admin.h>

/* The worst first. */
enum verdict_kind {
    VERDICT_AWAY,
    VERDICT_RESTORE,
    VERDICT_UNFIT,
    VERDICT_NOBODY,
    VERDICT_DOWN,
    VERDICT_BLOCKED,
    VERDICT_UNCLAIMED,
    VERDICT_CONFLICT,
    VERDICT_PARKED,
    VERDICT_SILENT,
    VERDICT_PROPOSED,
    VERDICT_HANGS,
    VERDICT_OVERDUE,
    VERDICT_FORGOTTEN,
    VERDICT_WARNING,
    VERDICT_PAUSED,
    VERDICT_WELL
};

/* Of each kind how many there are, and since when, by the server's clock; 0: not known. */
struct facts {
    struct fact {
        uint64_t count;
        int64_t since_us;
    } of[VERDICT_WELL + 1];
};

/* What the overview says by itself. */
void facts_take(struct facts *facts, const tl_overview *overview);
void facts_take_doubt(struct facts *facts, uint64_t count, int64_t oldest_us, int64_t now_us);
void facts_take_pause(struct facts *facts, const tl_pause_row *row);
enum verdict_kind facts_worst(const struct facts *facts);
/* The exit code that tells it to a monitor. */
int facts_code(const struct facts *facts);

#endif
