#include "base/futex.h"

#include "base/clock.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The kernel measures by a clock that stands still while the machine is suspended. */
#define SLICE_MS 1000

void futex_wait(atomic_int *word, int seen)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

int futex_wait_until(atomic_int *word, int seen, int64_t deadline_ms)
{
    int64_t left_ms = clock_left_ms(deadline_ms);
    int64_t slice_ms = left_ms < SLICE_MS ? left_ms : SLICE_MS;
    struct timespec slice = {slice_ms / 1000, (slice_ms % 1000) * 1000000};

    if (left_ms == 0)
        return 0;
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &slice, NULL, 0);
    return 1;
}

void futex_wake(atomic_int *word, int count)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}
