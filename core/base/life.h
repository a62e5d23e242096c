/*
 * The life of one session, as its own process knows it: how long it is certain, and whether it is
 * over for good.
 *
 * A process whose session was ended goes on under a new one.  Each handle keeps the life under
 * which it asked, so that what an old session held never looks alive because a new one lives.  Only
 * the heartbeat writes a life; anybody may read it, without a lock, until the client is closed.
 *
 * A life is of one server: the one where its session's row is renewed.  Elsewhere that row says
 * nothing, and others may end it there.  So nothing is granted under it on another server.  Once
 * another one was accepted after it, nothing is certain under it any more.  Only to a server that
 * was accepted by itself, since nothing is missing there, does the life go along with its row.
 */
#ifndef TL_BASE_LIFE_H
#define TL_BASE_LIFE_H

#include "base/random.h"

#include <tradelock/tradelock.h>

#include <stdatomic.h>

struct db_server;

typedef struct life {
    /* Fixed once others can see it. */
    char session_id[RANDOM_UUID];
    struct life *before; /* the one before it in this process, or NULL */
    /* Tells the heartbeat that a connection leads to another server than its own, perhaps since the
     * address does. */
    void (*seek)(void *seeker, const struct db_server *server);
    void *seeker;
    /* Whether another server was accepted after that one. */
    int (*is_left)(const struct db_server *server);
    /* Atomic. */
    _Atomic(const struct db_server *) server;
    atomic_int_fast64_t certain_until_ms; /* boot time */
    atomic_int over;
    /* How many handles may have left a trade in process under this life; freed ones count too. */
    atomic_uint_fast64_t may_hold;
} life;

/* For the heartbeat.  Each confirmed beat makes the life certain for longer.  life_end() ends it
 * for good. */
void life_confirm(life *l, int64_t until_ms);
void life_end(life *l);
void life_move(life *l, const struct db_server *server);

/* The functions below accept NULL, which is a life that is over. */
const char *life_session_id(const life *l); /* "" for NULL */
/* How much longer it is certainly alive; 0: it is over, or not certain any more. */
int64_t life_left_ms(const life *l);
int life_is_over(const life *l);
/* Its server is left, and what becomes of it is not decided yet: it goes along to the next server,
 * or it is over, by the next beats and before nobody can say any more that it lived. */
int life_is_between(const life *l);
/* Not NULL. */
const struct db_server *life_server(const life *l);

/* TL_OK: locks may be asked for under it.  TL_SESSION_LOST: it is over.  TL_UNREACHABLE: it is not
 * certain any more, since no beat was confirmed for too long. */
tl_status life_check(const life *l);
/* The same for a lock of that server.  TL_UNREACHABLE, too: the life is of another one; then the
 * heartbeat looks where the address leads. */
tl_status life_check_at(const life *l, const struct db_server *server);
/* NULL is at no server. */
int life_is_at(const life *l, const struct db_server *server);

#endif
