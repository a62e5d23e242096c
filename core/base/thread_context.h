/*
 * Who works here, and on what: the thread UUID and the log UUID of tradelock.h, and two
 * things only the library needs to know about its threads: in which process it is, and
 * whether it runs a database callback.
 */
#ifndef TL_BASE_THREAD_CONTEXT_H
#define TL_BASE_THREAD_CONTEXT_H

#include <tradelock/tradelock.h>

#include <pthread.h>

/* pthread_create() for a thread of the library's own, which takes no signals: those are
 * for the program's threads. */
int thread_context_start(pthread_t *thread, void *(*fn)(void *), void *argument);

/* Changes in the child of every fork().  A handle keeps the generation it was made in;
 * another one now means TL_WRONG_PROCESS. */
unsigned thread_context_generation(void);

/* The calling thread works under this log UUID, "" under none: for threads that do the work
 * of others.  It is believed; tl_work_adopt() is for what comes from outside. */
void thread_context_work(const char *log_uuid);
/* The same where it has no work; then 1, and thread_context_work("") ends it. */
int thread_context_lend(const char *log_uuid);

/* Around every database callback, on its thread.  Asking for a lock inside one is refused
 * since it could wait for its own transaction.  May be nested. */
void thread_context_enter_callback(void);
void thread_context_leave_callback(void);
int thread_context_in_callback(void);

#endif
