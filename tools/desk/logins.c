/* Remembers the last wrong passwords, and lets few try at once.  Touches memory only. */
#include "logins.h"

#include "sessions.h"

#include <string.h>
#include <unistd.h>

#define WINDOW_MS INT64_C(60000)
#define MOST_OF_USER 5u
#define MOST_OF_ADDRESS 20u

/* FNV-1a; two names that meet only wait for each other. */
static uint64_t hash(const char *text)
{
    uint64_t value = UINT64_C(14695981039346656037);

    for (; *text != '\0'; text++)
        value = (value ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return value;
}

void logins_begin(struct logins *logins)
{
    memset(logins, 0, sizeof *logins);
    pthread_mutex_init(&logins->mutex, NULL);
    sem_init(&logins->turns, 0, LOGINS_AT_ONCE);
}

void logins_end(struct logins *logins)
{
    sem_destroy(&logins->turns);
    pthread_mutex_destroy(&logins->mutex);
}

void logins_take_turn(struct logins *logins)
{
    while (sem_wait(&logins->turns) != 0) /* a signal */
        ;
}

void logins_give_turn(struct logins *logins)
{
    sem_post(&logins->turns);
}

unsigned logins_wait_s(struct logins *logins, const char *user, const char *address)
{
    const int64_t now = steady_ms(), since = now - WINDOW_MS;
    unsigned of_user = 0, of_address = 0;

    pthread_mutex_lock(&logins->mutex);
    for (unsigned i = 0; i < LOGINS_KEPT; i++) {
        const struct login_failure *failure = &logins->failures[i];

        if (failure->at_ms == 0 || failure->at_ms <= since || failure->address != hash(address))
            continue;
        of_user += failure->user == hash(user);
        of_address += address[0] != '\0';
    }
    pthread_mutex_unlock(&logins->mutex);
    return of_user >= MOST_OF_USER || of_address >= MOST_OF_ADDRESS ? WINDOW_MS / 1000 : 0;
}

void logins_failed(struct logins *logins, const char *user, const char *address)
{
    pthread_mutex_lock(&logins->mutex);
    logins->failures[logins->next] = (struct login_failure){steady_ms(), hash(user), hash(address)};
    logins->next = (logins->next + 1) % LOGINS_KEPT;
    pthread_mutex_unlock(&logins->mutex);
    usleep(LOGINS_PAUSE_MS * 1000);
}
