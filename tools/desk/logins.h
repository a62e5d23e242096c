/* How often somebody may try to log in: wrong passwords of one name, of one address, of all. */
#ifndef DESK_LOGINS_H
#define DESK_LOGINS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>

#define LOGINS_KEPT 256u
/* Others wait.  So no more than these can be tried beyond the limits, and a crowd of strangers does
 * not take the server's connections. */
#define LOGINS_AT_ONCE 4u

struct logins {
    sem_t turns;
    pthread_mutex_t mutex;
    /* Under the mutex. */
    unsigned next;
    struct login_failure {
        int64_t at_ms; /* 0: none */
        uint64_t user, address;
    } failures[LOGINS_KEPT];
};

void logins_begin(struct logins *logins);
void logins_end(struct logins *logins);
/* Around each login, from the question whether it may be tried on. */
void logins_take_turn(struct logins *logins);
void logins_give_turn(struct logins *logins);
/* 0: it may be tried now; else so many seconds from now.  address "": everybody comes from the same
 * one. */
unsigned logins_wait_s(struct logins *logins, const char *user, const char *address);
void logins_failed(struct logins *logins, const char *user, const char *address);

#endif
