/*
 * test_hooks.h - how tests stop, kill and count the layers above the locks.  It is not installed.
 * Without TL_TEST_HOOKS all of it does nothing.
 */
#ifndef TRADELOCK_TEST_HOOKS_H
#define TRADELOCK_TEST_HOOKS_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef TL_TEST_HOOKS
/* A passage of the layers above, where a test can count, stop or kill.  kind: 'C' a callback, 'H'
 * an HTTP call, 'S' a statement, 'X' a commit.  when: "before" or "after". */
TL_EXPORT void tl_test_point(char kind, const char *name, const char *when);
/* Whether TL_MUTATION switches this safety rule off. */
TL_EXPORT int tl_test_mutated(const char *rule);
/* Whether this allocation, or this start of a thread, is to fail. */
TL_EXPORT int tl_test_allocation(void);
#else
#define tl_test_point(kind, name, when) ((void)0)
#define tl_test_mutated(rule) 0
#define tl_test_allocation() 0
#endif

#ifdef __cplusplus
}
#endif
#endif
