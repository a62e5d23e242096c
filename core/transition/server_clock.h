/*
 * The server's clock, as an answer of the last second showed it.
 *
 * The fence of a new row starts from the server's microseconds, so that it lies above those of
 * every purged life of its key.  Between a life and its purge lies a day at least (retention_ms),
 * so a clock that is somewhat off will do; and to have the server work it out and send it back is a
 * fortieth of an ask.  So one ask a second has it sent, and those that follow add to it what
 * CLOCK_BOOTTIME went on.  A virtual machine that was stopped for longer than the retention, in the
 * middle of that second, goes on with the old time; then it is the token that tells the lives
 * apart, as when the server's clock falls.
 */
#ifndef TL_TRANSITION_SERVER_CLOCK_H
#define TL_TRANSITION_SERVER_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

/* Of any thread; begins as zeroes, which say nothing. */
typedef struct server_clock {
    atomic_int_fast64_t ahead_us, read_us;
} server_clock;

/* The server's microseconds, as they were between two moments of CLOCK_BOOTTIME; nothing is learned
 * when more than a tenth of a second lies between. */
void server_clock_set(server_clock *self, uint64_t server_us, int64_t before_us, int64_t after_us);

/* What they are at this moment of CLOCK_BOOTTIME; 0: they were not read for a second. */
uint64_t server_clock_us(const server_clock *self, int64_t now_us);

#endif
