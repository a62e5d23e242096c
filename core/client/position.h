/*
 * Proof by position: a promoted server is accepted by itself, when every process has found there
 * all that it was told was committed (sql/object/position.sql says why that is enough).
 *
 * A process that meets a promoted server first gives up every other one for good: no connection to
 * those is used any more, and an answer that still comes from one is not believed
 * (transition/marks.h).  Only then does it look up what it knows, so nothing can be added to that.
 * It attests to one promoted server of a term alone, whatever others it meets.
 *
 * Its session stays alive there meanwhile, without being certain.  Once the server is accepted by
 * itself the session goes on there, and so does all that is held under it.  If anything is missing,
 * or operators accept the server, the session is lost as with any other server.
 *
 * A client without a session gives up nothing and attests to nothing: it grants nothing either.
 */
#ifndef TL_CLIENT_POSITION_H
#define TL_CLIENT_POSITION_H

#include "db/db.h"

#include <tradelock/tradelock.h>

struct tl_client;
struct life;

/* What a process found on a promoted server. */
typedef struct position_found {
    unsigned missing; /* so many commits are not there */
    int kept; /* the old server answered none before this one had it; -1: nobody told it any */
    const struct life *under; /* the newest of the sessions under which it was written down */
} position_found;

/* Looks up all that was committed on other servers, on a connection to the promoted one, and writes
 * down what this process found.  TL_OK: that is done; TL_TRY_AGAIN: not before the server's clock is
 * believed. */
tl_status position_attest(struct tl_client *client, db *connection, uint64_t number,
                          position_found *found);
/* Writes it down under the sessions that the process has begun since, too. */
tl_status position_attest_again(struct tl_client *client, db *connection, uint64_t number,
                                position_found *found);
/* After a confirmed beat, on its connection: a round that closes what this process was granted. */
void position_close(struct tl_client *client, db *connection);
/* The same without writing anything down: for a process that comes when it is accepted already. */
tl_status position_count_missing(struct tl_client *client, db *connection, unsigned *missing);
/* Accepts the promoted server, if everybody has attested and nothing is missing. */
tl_status position_accept(db *connection, uint64_t number);

#endif
