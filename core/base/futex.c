/* Sleeps and wakes by futex(2), within this process.  Touches the word that it is given. */
#include "base/futex.h"

#include "base/clock.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* SYS_futex takes the kernel's own timespec, of two longs. */
_Static_assert(sizeof(time_t) == sizeof(long), "futex(2) with a 64-bit time on 32 bits");

void futex_wait(atomic_int *word, int seen)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void wait_at_most(atomic_int *word, int seen, struct timespec most)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &most, NULL, 0);
}

void futex_wait_for(atomic_int *word, int seen, int64_t wait_us)
{
    wait_at_most(word, seen, (struct timespec){wait_us / 1000000, (wait_us % 1000000) * 1000});
}

int futex_wait_until(atomic_int *word, int seen, int64_t deadline_ms)
{
    const int64_t left_ms = clock_left_ms(deadline_ms);

    if (left_ms == 0)
        return 0;
    wait_at_most(word, seen, (struct timespec){left_ms / 1000, (left_ms % 1000) * 1000000});
    return 1;
}

void futex_wake(atomic_int *word, int count)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}
