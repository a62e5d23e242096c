/*
 * Whether a database may have lost commits: it was restored, or a copy of it was promoted.  Then
 * "there is no such row" and "nothing was sent" prove nothing.  So nothing is granted or armed
 * until the server is accepted, by two operators or by the proof that nothing is missing
 * (client/position.h); the retry lane goes on asking the channel.
 *
 * One address may lead to several servers, one after the other or at the same time.  So what a look
 * finds belongs to the server that the connection leads to, by its identity, and never to the
 * process.  Each connection knows its server; a task asks that, once it has its connection
 * (transition/task.h).  The rule stands in what_it_is():
 *
 *   left      It was given up for a promoted one, to which this process attests (client/position.h);
 *             that ends when it is accepted anew.  Or:
 *             The process has met a server whose last accepted restore had both a higher number and
 *             a later moment by the clock.  So this one is of an earlier term: a primary that was
 *             replaced, or an old backup.  No connection to it is used any more, until it is
 *             accepted anew.
 *   may lack  It is another server than the accepted one.  Or a restore of it is open.  Or its data
 *             directory is an earlier one: this process's own session row is gone, or its beat is
 *             lower than one that was confirmed a short while ago (the witness).
 *   replica   It may lack commits, and is read-only.  It is read; nothing is written there, neither
 *             by tasks nor by a look, so what a look finds is found again once it takes writes.
 *   rival     One of a list of hosts was accepted and takes writes, and so does another one that
 *             this process has met, and neither is of an earlier term: two were promoted, or a
 *             backup was accepted beside the server.  Neither grants, before one is accepted anew or
 *             by another number and moment.  It is written down at both.
 *   whole     Else.  It grants.
 *
 * Both have to be lower, so that neither a clock nor a backup alone makes a server an earlier one.
 * After a backup was accepted under a lower number, but later, neither is known as the earlier one.
 * A process that begins later has met nobody, and cannot know which of two servers is the earlier.
 *
 * Every new connection looks, since a failover breaks the old ones, and every heartbeat, since a
 * restore can be declared at any time.  A connection on which the look failed is not used.  Where
 * the process has a whole server, others that may lack commits are stale: connections to them are
 * closed, and the next ones look anew and hear of it when those are accepted.
 *
 * Whoever finds a restore, or an earlier term, writes it down there (tl_restore_found), so that
 * everybody who connects knows it, and a copy of that database too.  Until that is done the witness
 * is kept, and no connection is used.  A look that began before another one found a restore does
 * not deny it.
 *
 * On a node of Galera that is not the accepted one nothing is written down either: the accepted one
 * has the same record, and would stop.
 *
 * Of a list of hosts each is looked at without any writing but on one that is left, and on rivals:
 * whoever only compares has no word on a server that takes writes beside the accepted one, such as
 * another node of a cluster, and what it wrote there would stop everybody.  Nor is a server judged
 * at all that is of another installation: it has none of the servers on record that those met
 * before have.
 */
#ifndef TL_CLIENT_RESTORED_H
#define TL_CLIENT_RESTORED_H

#include "base/random.h"
#include "client/position.h"
#include "db/db.h"
#include "session/session.h"
#include "transition/marks.h"

#include <pthread.h>

struct store_kept;
struct tl_client;
struct met_server;
struct met_term;
struct met_kin;

/* The last beat of this process that a database confirmed. */
typedef struct restored_witness {
    char session[RANDOM_UUID]; /* "" when there is none */
    uint64_t beat;
    int64_t confirmed_ms; /* boot time, from before the beat was sent */
    /* NULL: a whole server confirmed it, and every server has to know it.  Else the one that did,
     * which nobody had accepted: it says nothing of others. */
    const db_server *only;
    const db_server *by; /* the one that confirmed it: only a look there dismisses it */
} restored_witness;

/* The last restore that was accepted; zeroes: none. */
typedef struct restored_term {
    uint64_t number;
    int64_t accepted_us;
} restored_term;

/* The servers that this process met. */
typedef struct restored_servers {
    pthread_mutex_t mutex;
    /* Under the mutex. */
    struct met_server *met;
    struct met_term *terms; /* each that a look has seen, on any of them */
    struct met_kin *kin;    /* with a list of hosts: all servers on record at those met */
    restored_witness witness;
    uint64_t looks; /* how many were begun */
    /* The promoted server to which this process attests, or NULL: under which number, which server
     * was the accepted one there before, and whether it has attested, and to what. */
    struct met_server *promoted;
    uint64_t promoted_no;
    restored_term promoted_before;
    int has_attested, lacks;
    position_found found; /* once it has attested */
    commit_marks noted;   /* under its own mutex: what this process was last told was committed */
    /* Fixed: the settings name several hosts. */
    int has_list;
} restored_servers;

void restored_init(restored_servers *all);
void restored_end(restored_servers *all);
/* Frees the servers, which rows that handles keep still name after the end. */
void restored_free(restored_servers *all);

/* For the session; context: the client.  An answered beat becomes the witness, and a mark. */
uint64_t restored_sending(void *context);
int restored_confirmed(void *context, const session_beat *beat);
/* Whether a session goes along to another server. */
session_stay restored_follow(void *context, const db_server *from, const db_server *to,
                             int64_t since_ms);
/* Whether this process may know of a commit that this server could lack (transition/marks.h). */
int restored_is_told(void *context, const db_server *here);
/* Whether a promoted server that could be accepted by itself may still ask what this process was told
 * on that one. */
int restored_has_to_answer(void *context, const db_server *lived_at);
/* As tl_identity() says it. */
const char *restored_identity(const db_server *server);
/* Whether that server, when it answered at that moment, had been seen a short while ago to answer
 * commits only when another one has them: kept is what was seen. */
int restored_was_kept(struct tl_client *client, const db_server *server, int64_t answered_ms,
                      struct store_kept *kept);

/* Looks on a connection that nobody else uses now, and tells it its server.  TL_OK: it may be used.
 * TL_UNREACHABLE: that server is left. */
tl_status restored_look(struct tl_client *client, db *connection);
/* The same on one to a host of a list that perhaps will not be used: it is judged, and nobody is
 * told.  TL_BAD_CONFIG: it is of another installation. */
tl_status restored_compare(struct tl_client *client, db *connection);
/* After such a look, and after each confirmed beat: sees whether the server keeps what it answers,
 * while it lives. */
void restored_look_whether_kept(void *client, db *connection);
/* On a connection of the pool. */
void restored_look_again(struct tl_client *client);

#endif
