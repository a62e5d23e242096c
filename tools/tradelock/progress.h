/* How far a long command is, on stderr: on a terminal one line in place, in a log a line now and
 * then.  For people, so never beside JSON. */
#ifndef TRADELOCK_PROGRESS_H
#define TRADELOCK_PROGRESS_H

#include <tradelock/admin.h>

#define PROGRESS_EVERY_MS 10000

struct progress {
    int is_off, is_terminal, is_shown;
    int64_t every_ms, told_ms; /* told_ms: when it was told last */
    const char *found;         /* what tl_progress.found counts: "removed", "violations" */
};

/* every_ms: of a log; a terminal's line changes five times a second. */
void progress_begin(struct progress *progress, int is_off, int64_t every_ms, const char *found);
void progress_tell(struct progress *progress, const tl_progress *now);
/* Takes the line off the terminal, so that what follows stands alone. */
void progress_end(struct progress *progress);

#endif
