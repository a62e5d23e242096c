/*
 * Whether another machine's clock runs steadily, by this machine's CLOCK_BOOTTIME.
 *
 * A look at the other clock falls between two moments of ours, so it tells only an interval of how
 * far that clock is ahead.  The remembered interval widens by the drift that a clock may have, and
 * narrows with each look.  A look that lies wholly outside it, by more than the margin, shows a
 * clock jump.  A slow answer, or a process that was stopped meanwhile, only makes the interval
 * wide, which shows nothing.
 */
#ifndef TL_BASE_STEADY_H
#define TL_BASE_STEADY_H

#include <stdint.h>

/* A clock may drift by one part in this many; one that is slewed stays within half of that. */
#define STEADY_DRIFT 1000

typedef struct steady_look {
    int64_t other_us, before_us, after_us; /* the other clock; ours before and after */
} steady_look;

/* {0}: nothing is known, and the first look is believed. */
typedef struct steady {
    int known;
    int64_t least_us, most_us; /* the other clock less ours */
    int64_t at_us;             /* by our clock, when that was learnt */
} steady;

/* How far, at least, the look lies outside the remembered interval.  Below 0: the clock was set
 * back; above 0: forward; 0: within the margin. */
int64_t steady_off_us(const steady *self, const steady_look *look, int64_t margin_us);

/* Learns from a look that lies within the margin. */
void steady_learn(steady *self, const steady_look *look);

/* 1, and the interval in which the other clock is now, widened by the margin; 0: nothing is
 * known. */
int steady_now(const steady *self, int64_t now_us, int64_t margin_us, int64_t *least_us,
               int64_t *most_us);

#endif
