/* The life of a session: the heartbeat writes it, anybody may read it.  Touches only the life that
 * it is given. */
#include "base/life.h"

#include "base/clock.h"
#include "base/error.h"

#include <assert.h>
#include <stddef.h>

void life_confirm(life *l, int64_t until_ms)
{
    assert(!atomic_load(&l->over));
    assert(until_ms >= atomic_load(&l->certain_until_ms));
    atomic_store(&l->certain_until_ms, until_ms);
}

void life_end(life *l)
{
    assert(l->session_id[0] != '\0' && !atomic_load(&l->over));
    atomic_store(&l->over, 1);
}

void life_move(life *l, const struct db_server *server)
{
    assert(!atomic_load(&l->over));
    atomic_store(&l->server, server);
}

const struct db_server *life_server(const life *l)
{
    return atomic_load(&l->server);
}

const char *life_session_id(const life *l)
{
    return l != NULL ? l->session_id : "";
}

int64_t life_left_ms(const life *l)
{
    if (life_is_over(l) || l->is_left(life_server(l)))
        return 0;
    return clock_left_ms(atomic_load(&l->certain_until_ms));
}

int life_is_between(const life *l)
{
    return !life_is_over(l) && l->is_left(life_server(l)) &&
           clock_left_ms(atomic_load(&l->certain_until_ms)) > 0;
}

int life_is_over(const life *l)
{
    return l == NULL || atomic_load(&l->over);
}

tl_status life_check(const life *l)
{
    if (life_is_over(l))
        return error_set(TL_SESSION_LOST,
                         "session %s was declared dead, and what it held is lost; this "
                         "process goes on under a new one: ask again",
                         life_session_id(l));
    if (l->is_left(life_server(l))) {
        l->seek(l->seeker, NULL);
        return error_set(TL_UNREACHABLE,
                         "another server was accepted after that of this process' session, and no "
                         "session is there yet; nothing was asked");
    }
    /* Other processes may count the session as dead already, and take what was granted to it
     * now. */
    if (life_left_ms(l) == 0)
        return error_set(TL_UNREACHABLE,
                         "no heartbeat of this process was confirmed for a whole session "
                         "time-out; nothing was asked");
    return TL_OK;
}

int life_is_at(const life *l, const struct db_server *server)
{
    return l != NULL && life_server(l) == server;
}

tl_status life_check_at(const life *l, const struct db_server *server)
{
    tl_status status = life_check(l);

    if (status != TL_OK || life_is_at(l, server))
        return status;
    l->seek(l->seeker, server);
    return error_set(TL_UNREACHABLE,
                     "the session of this process is at another server than this connection leads "
                     "to, and here it may be ended; nothing was asked");
}
