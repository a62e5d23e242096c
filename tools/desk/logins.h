/* How often somebody may try to log in from an address: for one name, and in all. */
#ifndef DESK_LOGINS_H
#define DESK_LOGINS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>

#define LOGINS_KEPT 1024u /* more than can be tried within the minute that counts */
/* Others wait, and a wrong password keeps its turn for a while.  So few can be tried in all, from
 * however many addresses, and a crowd of strangers does not take the server's connections. */
#define LOGINS_AT_ONCE 4u
#define LOGINS_PAUSE_MS 250u

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
/* 0: it may be tried now; else so many seconds from now.  Who guesses elsewhere keeps nobody out.
 * address "": it is not known, and only names are counted. */
unsigned logins_wait_s(struct logins *logins, const char *user, const char *address);
void logins_failed(struct logins *logins, const char *user, const char *address);

#endif
