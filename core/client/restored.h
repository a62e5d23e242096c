/*
 * Whether the database may have lost commits: it was restored, or a copy of it was promoted.  Then
 * "there is no such row" and "nothing was sent" prove nothing.  So nothing is granted or armed
 * until two operators accept the server; the retry lane goes on asking the channel.
 *
 * Every new connection looks, since a failover breaks the old ones, and every heartbeat, since a
 * restore can be declared at any time.  A connection on which the look failed is not used.  A step
 * checks the result once it has its connection (transition/step_task.h), since the first ask after
 * a failover is the one that makes the new connection.
 *
 * A look finds a restore in two cases.  The server is another one than the accepted one.  Or its
 * data directory is an earlier one: this process's own session row is gone, or its beat is lower
 * than one that was confirmed a short while ago (the witness).
 *
 * Whoever finds a restore writes it down (tl_restore_found), so that a copy of this database knows
 * it too.  Until that is done the witness is kept, and no connection is used.  A look that began
 * before another one found a restore does not deny it.
 */
#ifndef TL_CLIENT_RESTORED_H
#define TL_CLIENT_RESTORED_H

#include "base/random.h"
#include "db/db.h"

#include <pthread.h>

struct tl_client;

/* The last beat of this process that the database confirmed. */
typedef struct restored_witness {
    pthread_mutex_t mutex;
    char session[RANDOM_UUID]; /* "" when there is none */
    uint64_t beat;
    int64_t confirmed_ms; /* boot time, from before the beat was sent */
    uint64_t looks;       /* how many were begun */
    uint64_t found_at;    /* what looks was when one last found a restore */
} restored_witness;

/* Keeps a confirmed beat as the witness; context: the client. */
void restored_confirmed(void *context, const char *session_no, uint64_t beat, int64_t before_ms);

/* Looks on a connection that nobody else uses now.  TL_OK: the result is known. */
tl_status restored_look(struct tl_client *client, db *connection);
/* The same on a connection of the pool. */
void restored_look_again(struct tl_client *client);

/* TL_OK, or TL_ASK_CHANNEL with a sentence. */
tl_status restored_check(const struct tl_client *client);
/* The same for a lock of a resource: a holder of the lost hours may still act on it. */
tl_status restored_check_resource(const struct tl_client *client);

#endif
