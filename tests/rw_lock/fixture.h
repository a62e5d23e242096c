/* Short ways to ask for read-write locks. */
#ifndef TESTS_RW_LOCK_FIXTURE_H
#define TESTS_RW_LOCK_FIXTURE_H

#include "lease/fixture.h"

#include <tradelock/rw_lock.h>

tl_rw_options rw_options(int64_t lease_ms); /* 0: renewed, for a minute at most */
tl_rw *rw_new(tl_client *client, const char *resource, int64_t lease_ms);
/* The same, and locked at once. */
tl_rw *reading(tl_client *client, const char *resource, int64_t lease_ms);
tl_rw *writing(tl_client *client, const char *resource, int64_t lease_ms);
/* What a try by this client answers; nothing stays locked. */
tl_status try_read(tl_client *client, const char *resource);
tl_status try_write(tl_client *client, const char *resource);
/* Of a lock that nobody holds: a janitor that frees a dead holder locks its row for a moment, in
 * which a try is told that the lock is busy. */
tl_status write_when_free(tl_client *client, const char *resource);

/* No rev of a holder is missing in its log, no grant's fence is below an earlier one's, and nothing
 * was typed by hand but what the test says it did. */
void assert_holders_whole(const fixture *f, int by_hand);

#endif
