/* Who is connected to a server of libmicrohttpd: of those who have sent nothing whole, the one that
 * waits for longest makes room for who comes.  So slow and silent peers keep nobody out. */
#ifndef TL_TOOLS_PEERS_H
#define TL_TOOLS_PEERS_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdint.h>

#define PEERS_MOST 256u

/* A connection that is open. */
struct peer {
    int fd;
    /* Since when it waits for a whole request; 0: it is answered, or the peer is displaced. */
    int64_t since_ms;
};

struct peers {
    unsigned most; /* MHD_OPTION_CONNECTION_LIMIT; more than three quarters may not wait */
    pthread_mutex_t mutex;
    struct peer *peers[PEERS_MOST]; /* under the mutex */
};

void peers_init(struct peers *all, unsigned most);
void peers_destroy(struct peers *all);

/* For MHD_OPTION_NOTIFY_CONNECTION, with the peers as its context. */
void peers_notify(void *all, struct MHD_Connection *connection, void **peer_context,
                  enum MHD_ConnectionNotificationCode code);

/* Between requests, and until one has arrived whole. */
void peers_set_waiting(struct peers *all, struct MHD_Connection *connection, int waits);

#endif
