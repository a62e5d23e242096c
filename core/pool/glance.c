/* Looks where one address leads.  Touches a connection of its own, on which nothing is written. */
#include "pool/glance.h"

#include "base/clock.h"
#include "base/error.h"

#define CONNECT_MS 1000

int glance_init(glance *g, const db_options *connect,
                tl_status (*opened)(void *context, db *connection, pool_opening what),
                void *context)
{
    g->connect = connect;
    g->opened = opened;
    g->context = context;
    return pthread_mutex_init(&g->mutex, NULL);
}

void glance_end(glance *g, int here)
{
    if (here) {
        db_close(g->connection);
        pthread_mutex_destroy(&g->mutex);
    } else if (g->connection != NULL) {
        db_abandon(g->connection);
    }
    g->connection = NULL;
}

/* Needs: g->mutex held. */
static void leave(glance *g)
{
    db_drop(&g->connection);
}

/* 0: the connection is of no use any more.  Needs: g->mutex held. */
static int look(glance *g)
{
    const int is_good = g->opened(g->context, g->connection, POOL_LOOKED) == TL_OK;

    if (!is_good)
        leave(g);
    return is_good;
}

/* Needs: g->mutex held. */
static void look_where_it_leads(glance *g)
{
    const int was_there = g->connection != NULL;
    const int is_new_due = clock_left_ms(g->may_connect_ms) == 0;

    if (was_there && !is_new_due && db_alive(g->connection) && look(g))
        return;
    leave(g);
    if (!was_there && !is_new_due)
        return;
    g->may_connect_ms = clock_deadline(CONNECT_MS);
    if (db_open(&g->connection, g->connect) == TL_OK)
        (void)look(g);
}

void glance_once(glance *g)
{
    if (g->opened == NULL || pthread_mutex_trylock(&g->mutex) != 0)
        return;
    look_where_it_leads(g);
    pthread_mutex_unlock(&g->mutex);
    error_clear();
}

void glance_rest(glance *g)
{
    if (pthread_mutex_trylock(&g->mutex) != 0)
        return;
    leave(g);
    pthread_mutex_unlock(&g->mutex);
}
