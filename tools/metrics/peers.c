/* Keeps the list of a server's connections, and displaces the slow ones.  Touches their sockets. */
#include "peers.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void peers_init(struct peers *all, unsigned most)
{
    *all = (struct peers){.most = most < PEERS_MOST ? most : PEERS_MOST};
    pthread_mutex_init(&all->mutex, NULL);
}

void peers_destroy(struct peers *all)
{
    pthread_mutex_destroy(&all->mutex);
}

/* Needs: the mutex held.  Who sends a request slowly, or nothing, makes room for who comes. */
static void displace(struct peers *all)
{
    struct peer *oldest = NULL;
    unsigned waiting = 0;

    for (unsigned i = 0; i < PEERS_MOST; i++) {
        struct peer *peer = all->peers[i];

        if (peer == NULL || peer->since_ms == 0)
            continue;
        waiting++;
        if (oldest == NULL || peer->since_ms < oldest->since_ms)
            oldest = peer;
    }
    if (waiting <= all->most / 4 * 3)
        return;
    oldest->since_ms = 0;
    shutdown(oldest->fd, SHUT_RDWR);
}

/* Needs: the mutex held. */
static struct peer **place_of(struct peers *all, const struct peer *peer)
{
    for (unsigned i = 0; i < PEERS_MOST; i++)
        if (all->peers[i] == peer)
            return &all->peers[i];
    return NULL;
}

void peers_notify(void *context, struct MHD_Connection *connection, void **peer_context,
                  enum MHD_ConnectionNotificationCode code)
{
    struct peers *all = context;
    struct peer *peer = code == MHD_CONNECTION_NOTIFY_STARTED ? calloc(1, sizeof *peer) : NULL;
    struct peer **place;

    pthread_mutex_lock(&all->mutex);
    place = place_of(all, code == MHD_CONNECTION_NOTIFY_STARTED ? NULL : *peer_context);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*peer_context != NULL && place != NULL)
            *place = NULL;
        free(*peer_context);
        *peer_context = NULL;
    } else if (peer != NULL && place != NULL) {
        peer->fd =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        peer->since_ms = now_ms();
        *peer_context = *place = peer;
        displace(all);
    } else {
        free(peer);
    }
    pthread_mutex_unlock(&all->mutex);
}

void peers_set_waiting(struct peers *all, struct MHD_Connection *connection, int waits)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct peer *peer = info != NULL ? info->socket_context : NULL;

    if (peer == NULL)
        return;
    pthread_mutex_lock(&all->mutex);
    peer->since_ms = waits ? now_ms() : 0;
    pthread_mutex_unlock(&all->mutex);
}
