/*
 * Every statement, commit, callback and HTTP call passes fault_point().  In a build with
 * TL_TEST_HOOKS a test can count those passages, and stop or kill the process at one of them.  In
 * every other build fault_point() does nothing and costs nothing.
 *
 * The environment says what happens; it is read once, at the first passage:
 *   TL_FAULT_LOG=FILE   append a line for each passage: pid, number, kind, name, when,
 *                       separated by tabs
 *   TL_FAULT_KILL=N     SIGKILL this process at its N-th passage, after the line
 *   TL_FAULT_STOP=N     SIGSTOP this process at its N-th passage, after the line
 *   TL_FAULT_ONLY=NAME/WHEN  KILL and STOP count only passages of this name and `when`
 *   TL_FAULT_ALLOC=N    let this process's N-th allocation fail
 *   TL_MUTATION=A,B     switch the safety rules A and B off
 * Passages and allocations are counted from 1, in each process anew after fork().
 */
#ifndef TL_BASE_FAULT_H
#define TL_BASE_FAULT_H

#include <stdint.h>

typedef enum fault_kind {
    FAULT_CONNECT,
    FAULT_STATEMENT,
    FAULT_COMMIT,
    FAULT_ROLLBACK,
    FAULT_CALLBACK,
    FAULT_HTTP
} fault_kind;

#ifdef TL_TEST_HOOKS
/* when: "before" the request leaves, or "after" its answer came. */
void fault_point(fault_kind kind, const char *name, const char *when);
/* Whether the safety rule of this name is switched off (environment TL_MUTATION). */
int fault_mutated(const char *rule);
/* Whether this allocation is to fail. */
int fault_allocation(void);
/* Reads the environment again and counts from the start; for tests within one process. */
void fault_reload(void);
uint64_t fault_allocations(void);
#else
#define fault_point(kind, name, when) ((void)0)
#define fault_mutated(rule) 0
#define fault_allocation() 0
#endif

#endif
