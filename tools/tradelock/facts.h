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

#define STOPS_MOST 16u

/* A channel that operators have paused, or whose breaker is open; the pointers of `row` are not
 * set. */
struct stopped {
    char channel[TL_CHANNEL_MAX + 1], op_code[TL_OP_MAX + 1]; /* "": as a whole */
    char account[128], reason[TL_REMARK_MAX + 1];
    tl_pause_row row;
};

struct stops {
    struct stopped of[STOPS_MOST];
    unsigned count;
};

/* Those beyond STOPS_MOST are left out. */
void stops_keep(struct stops *stops, const tl_pause_row *row);
/* What is stopped and concerns the channel in this operation; NULL: nothing. */
const struct stopped *stopped_of(const struct stops *stops, const char *channel,
                                 const char *op_code);

/* What the overview says by itself. */
void facts_take(struct facts *facts, const tl_overview *overview);
void facts_take_doubt(struct facts *facts, uint64_t count, int64_t oldest_us, int64_t now_us);
void facts_take_pause(struct facts *facts, const tl_pause_row *row);
/* Of a channel that does not answer, or whose breaker is open.  0: it does not count, since operators
 * have paused it, so that nothing is sent there and nobody is called before the pause is too long. */
int facts_take_down(struct facts *facts, const struct stops *paused, const char *channel,
                    const char *op_code);
enum verdict_kind facts_worst(const struct facts *facts);
/* The exit code that tells it to a monitor. */
int facts_code(const struct facts *facts);

#endif
