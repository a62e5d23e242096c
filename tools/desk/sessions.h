/*
 * Who is logged in.  A session has clients of the library, opened with the account that the person
 * typed, so that the server itself keeps its rights; the password is not kept anywhere else.
 *
 * Sessions live in memory only: when the desk ends, everybody logs in anew.
 */
#ifndef DESK_SESSIONS_H
#define DESK_SESSIONS_H

#include "secret.h"

#include "moment.h" /* steady_ms() */
#include "shards.h"

#include <tradelock/admin.h>

#include <pthread.h>

#define SESSIONS_MOST 128u
#define SESSIONS_OF_ACCOUNT 8u
#define NOTICE_TEXT 512

struct session {
    char id[2 * SECRET_TEXT], token[SECRET_TEXT];
    char user[129];     /* as it was typed */
    tl_account account; /* of a fleet: what it may do at one shard at least */
    struct shards *shards;
    /* Under the mutex of all sessions. */
    int64_t born_ms, used_ms;
    unsigned users; /* requests that work with it now, and the table */
    int is_wall;    /* nothing else is looked at with it */
    char notice[NOTICE_TEXT];
};

struct sessions;

struct sessions *sessions_new(int64_t idle_ms, int64_t longest_ms);
/* Ends all of them.  Needs: no request is under way. */
void sessions_free(struct sessions *sessions);
/* Takes over the shards.  NULL: too many are logged in, or of this account, and they are closed. */
struct session *sessions_add(struct sessions *sessions, const char *user, const tl_account *account,
                             struct shards *shards);
/* The session of this cookie, until session_put(); NULL: there is none, or not any more.  counts 0:
 * nobody's hand did it, so that its idle time goes on.  is_wall: it is for the screen on the wall,
 * which a reader's session shows for as long as nothing else is asked of it. */
struct session *sessions_get(struct sessions *sessions, const char *cookie, int counts,
                             int is_wall);
struct session *session_keep(struct sessions *sessions, struct session *session);
void session_put(struct sessions *sessions, struct session *session);
/* Nobody gets it any more. */
void session_end(struct sessions *sessions, struct session *session);
/* Ends those that nobody used for too long. */
void sessions_sweep(struct sessions *sessions);

/* A sentence for the next page of this session. */
void session_tell(struct sessions *sessions, struct session *session, const char *sentence);
void session_told(struct sessions *sessions, struct session *session, char to[NOTICE_TEXT]);

#endif
