#include "leaving.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>

#ifdef TESTS_HAVE_CXX
void exception_throw(void);
int exception_catch(void (*fn)(void *), void *context);
#endif

static _Thread_local jmp_buf back;

struct leaving {
    void (*fn)(void *context);
    void *context;
};

const char *way_name(leave_way way)
{
    static const char *const names[] = {"longjmp", "the end of its thread", "exception"};

    return names[way];
}

static void *run(void *argument)
{
    const struct leaving *leaving = argument;

    leaving->fn(leaving->context);
    return NULL;
}

static void jump(const struct leaving *leaving)
{
    if (setjmp(back) == 0)
        leaving->fn(leaving->context);
}

void leave_by(leave_way way, void (*fn)(void *context), void *context)
{
    struct leaving leaving = {fn, context};
    pthread_t thread;

    switch (way) {
    case BY_LONGJMP:
        jump(&leaving);
        break;
    case BY_THE_END_OF_ITS_THREAD:
        if (pthread_create(&thread, NULL, run, &leaving) != 0)
            abort();
        pthread_join(thread, NULL);
        break;
#ifdef TESTS_HAVE_CXX
    case BY_EXCEPTION:
        if (!exception_catch(fn, context))
            abort();
        break;
#endif
    default:
        abort();
    }
}

void leave_now(leave_way way)
{
    switch (way) {
    case BY_LONGJMP:
        longjmp(back, 1);
    case BY_THE_END_OF_ITS_THREAD:
        pthread_exit(NULL);
#ifdef TESTS_HAVE_CXX
    case BY_EXCEPTION:
        exception_throw();
        break;
#endif
    default:
        break;
    }
    abort();
}
