/* The ways in which a callback does not return. */
#ifndef TESTS_MISUSE_LEAVING_H
#define TESTS_MISUSE_LEAVING_H

typedef enum leave_way {
    BY_LONGJMP,
    BY_THE_END_OF_ITS_THREAD,
#ifdef TESTS_HAVE_CXX
    BY_EXCEPTION,
#endif
    WAYS
} leave_way;

const char *way_name(leave_way way);

/* Runs fn(context), which leaves by leave_now(), and comes back. */
void leave_by(leave_way way, void (*fn)(void *context), void *context);
_Noreturn void leave_now(leave_way way);

#endif
