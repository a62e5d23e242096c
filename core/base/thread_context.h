/*
 * Who works here, and on what: the thread UUID and the log UUID of tradelock.h, and two things only
 * the library needs to know about its threads: which calls out of the library are under way, and
 * whether one is a database callback.
 */
#ifndef TL_BASE_THREAD_CONTEXT_H
#define TL_BASE_THREAD_CONTEXT_H

#include <tradelock/tradelock.h>

#include <pthread.h>

/* pthread_create() for a thread of the library's own, which takes no signals: those are for the
 * program's threads. */
int thread_context_start(pthread_t *thread, void *(*fn)(void *), void *argument);

/* The calling thread works under this log UUID, "" under none: for threads that do the work of
 * others.  It is believed; tl_work_adopt() is for what comes from outside. */
void thread_context_work(const char *log_uuid);
/* The same where it has no work; then 1, and thread_context_work("") ends it. */
int thread_context_lend(const char *log_uuid);

/*
 * A call out of the library, into code of the program's, which is to return.  It may be left
 * otherwise: an exception passes through it, its thread ends, a longjmp goes past it.  Then what
 * the library holds meanwhile is let go of by left(of, what): at once where the stack is unwound,
 * else when the thread next comes into the library, or ends.  Neither may lie on the stack.
 */
typedef struct call_out {
    int (*fn)(void *context);
    void *context;
    void (*left)(void *of, void *what);
    void *of, *what;
    int is_database; /* a database callback */
} call_out;

/* May be nested. */
int thread_context_call_out(const call_out *call);

/* Lets go of what this thread has left. */
void thread_context_come_in(void);

/* Asking for a lock inside a database callback is refused, since it could wait for its own
 * transaction. */
int thread_context_in_callback(void);

#endif
