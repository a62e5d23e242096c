#include "base/trouble.h"

#include "base/clock.h"
#include "base/error.h"

#define TOLD_AFTER 3
#define PASSES_WITHIN_MS (INT64_C(60) * 1000)

static int lasts(const trouble *t, tl_status status)
{
    const tl_class of = tl_status_class(status);
    const int passes = of == TL_CLASS_RETRY || of == TL_CLASS_UNKNOWN;

    return t->fails >= TOLD_AFTER &&
           (!passes || clock_boottime_ms() - t->since_ms >= PASSES_WITHIN_MS);
}

static void works(const struct logger *logger, trouble *t, const char *work)
{
    if (t->is_told)
        log_line(logger, TL_WARNING, NULL, 0, "%s: it works again, after %lld s", work,
                 (long long)(clock_boottime_ms() - t->since_ms) / 1000);
    *t = (trouble){0};
}

static void fails(const struct logger *logger, trouble *t, tl_status status, const char *work)
{
    if (t->fails++ == 0)
        t->since_ms = clock_boottime_ms();
    if (t->is_told || !lasts(t, status))
        return;
    t->is_told = 1;
    log_line(logger, TL_ALARM, NULL, 0, "%s: it goes on failing: %s", work, tl_error_message());
}

void trouble_note(const struct logger *logger, trouble *t, tl_status status, const char *work)
{
    if (status == TL_OK)
        works(logger, t, work);
    else
        fails(logger, t, status, work);
}
