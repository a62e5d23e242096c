/* Tells how far a long command is.  Writes to stderr. */
#include "progress.h"

#include "moment.h"
#include "print.h"

#include <stdio.h>
#include <unistd.h>

#define TERMINAL_EVERY_MS 200

void progress_begin(struct progress *progress, int is_off, int64_t every_ms, const char *found)
{
    *progress = (struct progress){.is_off = is_off,
                                  .is_terminal = isatty(STDERR_FILENO),
                                  .every_ms = every_ms,
                                  .told_ms = steady_ms(),
                                  .found = found};
    if (progress->is_terminal)
        progress->every_ms = TERMINAL_EVERY_MS;
}

void progress_tell(struct progress *progress, const tl_progress *now)
{
    char of[64] = "";

    if (progress->is_off || steady_ms() - progress->told_ms < progress->every_ms)
        return;
    progress->told_ms = steady_ms();
    progress->is_shown = 1;
    /* The statistics are old now and then: nobody is told that 12 of about 10 are done. */
    if (now->of >= now->done)
        snprintf(of, sizeof of, " of about %s", COUNT_TEXT(now->of));
    fprintf(stderr, "%stradelock: %s%s %s looked at, %s %s%s",
            progress->is_terminal ? "\r\033[K" : "", COUNT_TEXT(now->done), of, now->what,
            COUNT_TEXT(now->found), progress->found, progress->is_terminal ? "" : "\n");
}

void progress_end(struct progress *progress)
{
    if (progress->is_terminal && progress->is_shown)
        fputs("\r\033[K", stderr);
    progress->is_shown = 0;
}
