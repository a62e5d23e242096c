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

/* Calls code of the program's by TL_CALLED() (layer.h), for which answers of the server are awaited
 * as ever.  May be nested. */
int thread_context_call_out(int (*fn)(void *context), void *context, int is_database);

/* Until when, by clock_boottime_ms(), this thread awaits answers of the server; 0: for as long as
 * its connections do.  A call out begins with 0, and what is set within it ends with it.  Returns
 * what it was. */
int64_t thread_context_await_until(int64_t until_ms);
int64_t thread_context_awaits_until(void);

/* Ends the process if this thread has left a call by longjmp, and stands above it now. */
void thread_context_come_in(void);

/* Asking for a lock inside a database callback is refused, since it could wait for its own
 * transaction. */
int thread_context_in_callback(void);

#endif
