/*
 * The watchdog is fed by the thread that waits for signals, but only after tl_worker_check() said
 * that the session is certain and that rounds of claiming end.  A feeding thread that lives proves
 * nothing about those that work.
 */
#include "watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#if HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#define STATUS_SPACE 512

/* The main thread's own. */
static struct {
    int64_t fed_ms;
    char told[STATUS_SPACE];
    const char *served;
} watch;

/* ms of a clock that also runs while the machine sleeps. */
static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void tell(const char *state)
{
#if HAVE_SYSTEMD
    (void)sd_notify(0, state);
#else
    (void)state;
#endif
}

/* Four times in the time that systemd allows. */
static void feed(void)
{
#if HAVE_SYSTEMD
    uint64_t allowed_us = 0;

    if (sd_watchdog_enabled(0, &allowed_us) <= 0 ||
        now_ms() - watch.fed_ms < (int64_t)(allowed_us / 4000))
        return;
    watch.fed_ms = now_ms();
    tell("WATCHDOG=1");
#endif
}

static void tell_status(const char *status)
{
    char state[STATUS_SPACE + sizeof "STATUS="];

    if (strcmp(status, watch.told) == 0)
        return;
    snprintf(watch.told, sizeof watch.told, "%s", status);
    snprintf(state, sizeof state, "STATUS=%s", watch.told);
    tell(state);
}

void watch_ready(const char *served)
{
    char status[STATUS_SPACE];

    watch.served = served;
    tell("READY=1");
    snprintf(status, sizeof status, "%s: it works", served);
    tell_status(status);
}

void watch_worker(const either *worker)
{
    char status[STATUS_SPACE];

    if (either_check(worker) == TL_OK) {
        feed();
        snprintf(status, sizeof status, "%s: it works", watch.served);
    } else {
        snprintf(status, sizeof status, "%s: %s", watch.served, tl_error_message());
        /* Without the numbers, which change each time. */
        status[strcspn(status, "0123456789")] = '\0';
    }
    tell_status(status);
}

void watch_stopping(void)
{
    tell("STOPPING=1\nSTATUS=it finishes what it holds");
}
