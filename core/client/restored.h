/*
 * Whether the database may have lost commits: it was restored, or a copy of it was
 * promoted.  Then "there is no such row" and "nothing was sent" prove nothing, so nothing
 * is granted or armed until an operator accepts the server; the retry lane goes on asking
 * the channel.
 *
 * It is looked at with every new connection, since a failover breaks the old ones, and with every
 * heartbeat, since a restore can be declared at any time.  A connection on which that could not be
 * seen is not used.  A step looks at what was found once it has its connection (transition/step_task.h): the
 * first ask after a failover is the one that makes the new connection.
 *
 * Who finds it writes it down (tl_restore_found), so that a copy of this database knows it
 * too.  What the witness said is not forgotten before that is done, and no connection is used
 * meanwhile; and a look that was begun before another one found a restore does not deny it.
 * Found is: another server than the accepted one; or, on the same one, a data directory
 * of earlier.  Of that this process's own session bears witness: its row is gone, or has a
 * lower beat than one that was confirmed a short while ago.
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
    uint64_t looks;       /* that were begun */
    uint64_t found_at;    /* how many had been, when one last found a restore */
} restored_witness;

/* A beat was confirmed; context: the client. */
void restored_confirmed(void *context, const char *session_no, uint64_t beat, int64_t before_ms);

/* Looks, on a connection that nobody else uses now.  TL_OK: it is known now. */
tl_status restored_look(struct tl_client *client, db *connection);
/* The same on a connection of the pool. */
void restored_look_again(struct tl_client *client);

/* TL_OK, or TL_ASK_CHANNEL with a sentence. */
tl_status restored_check(const struct tl_client *client);
/* The same for a lock of a resource: who was granted it in the lost hours may still act on it. */
tl_status restored_check_resource(const struct tl_client *client);

#endif
