/* Keeps sessions.  Closes their clients, and else touches memory only. */
#include "sessions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sessions {
    int64_t idle_ms, longest_ms;
    pthread_mutex_t mutex;
    struct session *all[SESSIONS_MOST]; /* under the mutex */
};

struct sessions *sessions_new(int64_t idle_ms, int64_t longest_ms)
{
    struct sessions *sessions = calloc(1, sizeof *sessions);

    if (sessions == NULL)
        return NULL;
    sessions->idle_ms = idle_ms;
    sessions->longest_ms = longest_ms;
    pthread_mutex_init(&sessions->mutex, NULL);
    return sessions;
}

static void session_free(struct session *session)
{
    if (session == NULL)
        return;
    shards_close(session->shards);
    explicit_bzero(session->id, sizeof session->id);
    free(session);
}

/* Needs: the mutex held.  Returns what the caller frees after it. */
static struct session *drop(struct session *session)
{
    return session != NULL && --session->users == 0 ? session : NULL;
}

void session_put(struct sessions *sessions, struct session *session)
{
    struct session *last;

    pthread_mutex_lock(&sessions->mutex);
    last = drop(session);
    pthread_mutex_unlock(&sessions->mutex);
    session_free(last);
}

struct session *session_keep(struct sessions *sessions, struct session *session)
{
    pthread_mutex_lock(&sessions->mutex);
    session->users++;
    pthread_mutex_unlock(&sessions->mutex);
    return session;
}

void session_end(struct sessions *sessions, struct session *session)
{
    struct session *last = NULL;

    pthread_mutex_lock(&sessions->mutex);
    for (unsigned i = 0; i < SESSIONS_MOST; i++)
        if (sessions->all[i] == session) {
            sessions->all[i] = NULL;
            last = drop(session);
            break;
        }
    pthread_mutex_unlock(&sessions->mutex);
    session_free(last);
}

static int is_over(const struct sessions *sessions, const struct session *session, int64_t now,
                   int is_wall)
{
    return now - session->used_ms > sessions->idle_ms ||
           (now - session->born_ms > sessions->longest_ms &&
            !(is_wall && !session->account.may_decide));
}

void sessions_sweep(struct sessions *sessions)
{
    struct session *over[SESSIONS_MOST];
    const int64_t now = steady_ms();
    unsigned count = 0;

    pthread_mutex_lock(&sessions->mutex);
    for (unsigned i = 0; i < SESSIONS_MOST; i++)
        if (sessions->all[i] != NULL &&
            is_over(sessions, sessions->all[i], now, sessions->all[i]->is_wall)) {
            over[count++] = drop(sessions->all[i]);
            sessions->all[i] = NULL;
        }
    pthread_mutex_unlock(&sessions->mutex);
    while (count > 0)
        session_free(over[--count]);
}

void sessions_free(struct sessions *sessions)
{
    if (sessions == NULL)
        return;
    for (unsigned i = 0; i < SESSIONS_MOST; i++)
        session_free(drop(sessions->all[i]));
    pthread_mutex_destroy(&sessions->mutex);
    free(sessions);
}

/* Needs: the mutex held. */
static int find_room(struct sessions *sessions, struct session *session)
{
    unsigned same = 0, room = SESSIONS_MOST;

    for (unsigned i = 0; i < SESSIONS_MOST; i++) {
        if (sessions->all[i] == NULL)
            room = i;
        else
            same += strcmp(sessions->all[i]->account.name, session->account.name) == 0;
    }
    if (room == SESSIONS_MOST || same >= SESSIONS_OF_ACCOUNT)
        return 0;
    sessions->all[room] = session;
    return 1;
}

struct session *sessions_add(struct sessions *sessions, const char *user, const tl_account *account,
                             struct shards *shards)
{
    struct session *session = calloc(1, sizeof *session);
    int found;

    if (session == NULL) {
        shards_close(shards);
        return NULL;
    }
    sessions_sweep(sessions);
    secret_word(session->id);
    secret_word(session->id + SECRET_TEXT - 1);
    secret_word(session->token);
    snprintf(session->user, sizeof session->user, "%s", user);
    session->account = *account;
    session->shards = shards;
    session->born_ms = session->used_ms = steady_ms();
    session->users = 2;
    pthread_mutex_lock(&sessions->mutex);
    found = find_room(sessions, session);
    pthread_mutex_unlock(&sessions->mutex);
    if (found)
        return session;
    session_free(session);
    return NULL;
}

struct session *sessions_get(struct sessions *sessions, const char *cookie, int counts, int is_wall)
{
    struct session *found = NULL;
    const int64_t now = steady_ms();

    /* Those that are over are closed by the sweep: who clicks waits for no shard that stands still. */
    pthread_mutex_lock(&sessions->mutex);
    for (unsigned i = 0; i < SESSIONS_MOST; i++)
        if (sessions->all[i] != NULL && secret_equal(sessions->all[i]->id, cookie) &&
            !is_over(sessions, sessions->all[i], now, is_wall))
            found = sessions->all[i];
    if (found != NULL) {
        found->users++;
        if (counts) {
            found->used_ms = now;
            found->is_wall = is_wall;
        }
    }
    pthread_mutex_unlock(&sessions->mutex);
    return found;
}

void session_tell(struct sessions *sessions, struct session *session, const char *sentence)
{
    pthread_mutex_lock(&sessions->mutex);
    snprintf(session->notice, sizeof session->notice, "%s", sentence);
    pthread_mutex_unlock(&sessions->mutex);
}

void session_told(struct sessions *sessions, struct session *session, char to[NOTICE_TEXT])
{
    pthread_mutex_lock(&sessions->mutex);
    memcpy(to, session->notice, NOTICE_TEXT);
    session->notice[0] = '\0';
    pthread_mutex_unlock(&sessions->mutex);
}
