/* The ways in which a callback does not return. */
#ifndef TESTS_MISUSE_LEAVING_H
#define TESTS_MISUSE_LEAVING_H

typedef enum way {
    BY_LONGJMP,
    BY_THE_END_OF_ITS_THREAD,
#ifdef TESTS_HAVE_CXX
    BY_EXCEPTION,
#endif
    WAYS
} way;

const char *way_name(way way);

/* Runs fn(context), which leaves by leave_now(), and comes back. */
void leave_by(way way, void (*fn)(void *context), void *context);
_Noreturn void leave_now(way way);

#endif
