/*
 * Locks of several kinds behind the same calls, so that one test proves the same of each.  A kind
 * is named by the first argument of a theme.
 */
#ifndef TESTS_KINDS_KINDS_H
#define TESTS_KINDS_KINDS_H

#include "rw_lock/fixture.h"

/* The kind of this run: a mutex, or a read-write lock; a row lock in test_counter alone. */
typedef enum kind { MUTEX, RW, ROW, KINDS } kind;
extern kind tested;

/* Sets `tested`: lease, rw or row. */
void kind_choose(int argc, char **argv);

/* A handle: one of the two. */
typedef struct any_lock {
    tl_mutex *mutex;
    tl_rw *rw;
} any_lock;

/* lease_ms 0: renewed by the session.  Ten minutes at most. */
any_lock any_new(tl_client *client, const char *resource, int64_t lease_ms);
any_lock any_new_for(tl_client *client, const char *resource, int64_t lease_ms,
                     int64_t max_hold_ms);
/* The same, and taken at once. */
any_lock any_taken(tl_client *client, const char *resource, int64_t lease_ms);
void any_free(any_lock lock);

/* So that nobody else has it: a read-write lock is taken to write. */
tl_status any_take(any_lock lock, int64_t wait_ms);
tl_status any_unlock(any_lock lock);
tl_status any_renew(any_lock lock, int64_t lease_ms);
tl_status any_guard(any_lock lock, MYSQL *caller);
typedef tl_status (*any_proof)(any_lock lock, MYSQL *caller, unsigned flags);
tl_status any_guard_with(any_lock lock, MYSQL *caller, unsigned flags);
tl_status any_done_with(any_lock lock, MYSQL *caller, unsigned flags); /* of a read-write lock */
/* An operator takes it away from its holder, of a read-write lock the first. */
tl_status any_force(tl_client *client, const char *resource, uint64_t fence);
int64_t any_remaining_ms(any_lock lock);
uint64_t any_fence(any_lock lock);

/* What a try by this client answers, of a read-write lock one to read; nothing stays locked. */
tl_status any_try(tl_client *client, const char *resource);
/* The same to take it, when nobody holds it: see write_when_free(). */
tl_status any_take_when_free(tl_client *client, const char *resource);

#endif
