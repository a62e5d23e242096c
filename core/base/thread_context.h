/*
 * What the library knows of a thread: its thread UUID and log UUID (tradelock.h), which calls out
 * of the library are under way on it, whether one of those is a database callback, and until when
 * it awaits answers of the server.
 */
#ifndef TL_BASE_THREAD_CONTEXT_H
#define TL_BASE_THREAD_CONTEXT_H

#include <tradelock/tradelock.h>

#include <pthread.h>
#include <stdint.h>

/* pthread_create() for a thread of the library's own.  The thread blocks all signals, which are for
 * the program's threads. */
int thread_context_start(pthread_t *thread, void *(*fn)(void *), void *argument);

/* Sets the calling thread's log UUID, "" for none: for threads that do the work of others.  It is
 * not checked; tl_work_adopt() is for one that comes from outside. */
void thread_context_work(const char *log_uuid);
/* The same if the thread has no log UUID.  1: it was set, and thread_context_work("") ends it; 0:
 * the thread keeps its own. */
int thread_context_lend(const char *log_uuid);

/*
 * A call out of the library, into code of the program's.  It should return, but may be left in
 * other ways: by an exception, a longjmp, or the end of its thread.  left(of, what) then releases
 * what the library holds during the call.  It is called at once if the stack is unwound, else when
 * the thread next enters the library, or ends.  Neither `of` nor `what` may lie on the stack.
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

/* Until when, by clock_boottime_ms(), this thread awaits answers of the server; 0: for as long as
 * its connections do.  A call out begins with 0, and what is set within it ends with it.  Returns
 * what it was. */
int64_t thread_context_await_until(int64_t until_ms);
int64_t thread_context_awaits_until(void);

/* Releases what calls held that this thread has left. */
void thread_context_come_in(void);

/* Asking for a lock inside a database callback is refused, since it could wait for its own
 * transaction. */
int thread_context_in_callback(void);

#endif
