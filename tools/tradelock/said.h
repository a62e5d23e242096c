/* What the channel said last of a trade, as the retry lane's put-backs have it on record. */
#ifndef TRADELOCK_SAID_H
#define TRADELOCK_SAID_H

#include <tradelock/admin.h>

struct said {
    char text[TL_REMARK_MAX + 1]; /* "": it was never asked, as far as is on record */
    int64_t when_us;
};

/* Whether the step is of the retry lane. */
int step_is_retry(const tl_step *step);
/* Whether a step leaves on the row what an earlier one remarked; it was not it who said it. */
int said_is_carried(const char *step);
/* Steps of the sync row, oldest first. */
void said_take(struct said *said, const tl_step *step);
/* Reads the timeline.  TL_ACCESS_DENIED: this account may not. */
tl_status said_read(tl_client *client, const tl_key *key, struct said *said);
/* "asked: pending (2026-03-01T09:30:00.125Z)", or that nobody has asked. */
#define SAID_SENTENCE (TL_REMARK_MAX + 64)
const char *said_text(char to[SAID_SENTENCE], const struct said *said);

#endif
