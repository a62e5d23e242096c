/*
 * What this process was last told was committed.
 *
 * A replica has a prefix of the commits of its primary, and commits of one connection come one
 * after the other.  So of all acknowledged commits only those are kept after whose answer no other
 * one, answered since, was sent to the same server: at most one for each connection.  If a promoted
 * server has these, it has all that this process was told of (client/position.h).
 *
 * A replica on which a commit was passed over has no prefix.  Where that was a first send, it stops
 * at the session's next round (sql/object/position.sql).  So each step of a trade is kept until such
 * a round was answered, and a beat that was sent after it.  A later send leaves nothing that a round
 * could miss: its step is kept until the trade's next one, or until its hold is over.
 *
 * Their order is told by a count and not by a clock: a commit is begun with the count as it is, and
 * its answer raises it.
 *
 * An answer of a server that this process has left is not believed: it is a lost answer.  That is
 * judged under the mutex under which marks are taken out.  So what comes too late to be among them
 * was not believed.
 */
#ifndef TL_TRANSITION_MARKS_H
#define TL_TRANSITION_MARKS_H

#include "base/random.h"
#include "db/db.h"

#include <tradelock/resource.h>

#include <pthread.h>
#include <stdatomic.h>

#define MARK_NAME 31
#define MARK_TOKEN 16
/* More than anybody has connections for. */
#define COMMIT_MARKS_MAX 512

typedef enum mark_kind {
    MARK_UNTOLD, /* nobody can look it up: a later commit has to cover it */
    MARK_NONE,   /* nothing was committed */
    MARK_BEAT,
    MARK_TRADE,
    MARK_RESOURCE,
    MARK_HOLDER, /* of a read-write lock */
    MARK_EVIDENCE
} mark_kind;

typedef struct commit_mark {
    mark_kind kind;
    char name[MARK_NAME + 1]; /* of the step */
    char cust_no[TL_CUST_MAX + 1], op_code[TL_OP_MAX + 1];
    char serial_no[TL_RESOURCE_MAX + 1]; /* or the resource, or the session */
    unsigned slot;                       /* of a holder */
    char thread_no[RANDOM_UUID];         /* of evidence */
    uint8_t token[MARK_TOKEN];
    uint64_t
        number; /* of the beat, the evidence, or the row's change (rev); 0: found by its token */
    int64_t lasts_until_ms; /* boot time; no round closes it before that */
    int of_many;            /* it stands for others, too */
    /* Set when it is noted. */
    const db_server *server;
    uint64_t answered;
    int64_t answered_ms; /* boot time */
    /* Its server was not one that may lack commits, where nothing is granted; or an earlier one that
     * this covers was answered when it was not. */
    int may_grant;
} commit_mark;

typedef struct commit_marks {
    /* Atomic. */
    atomic_uint_fast64_t count;
    /* Under the mutex. */
    pthread_mutex_t mutex;
    commit_mark all[COMMIT_MARKS_MAX];
    size_t used;
    commit_mark *steps; /* of trades, by the order of their answers */
    size_t step_count, step_space;
    atomic_size_t lasting; /* about so many of them last */
    uint64_t steps_lost;   /* there was no room for one, when so many had been answered; or 0 */
    /* The last round: of which server, and how many had been answered when it was sent. */
    const db_server *closed_of;
    uint64_t closed;
    /* There was no room for one of this server, when so many had been answered; 0: for each there
     * was.  If servers differ, of none. */
    uint64_t overflowed;
    const db_server *overflowed_of;
    const db_server *only; /* all was answered by that one, which nobody had accepted then */
    int is_told;           /* anything else was */
} commit_marks;

void marks_init(commit_marks *self);
void marks_end(commit_marks *self);

/* Before a commit is sent. */
uint64_t marks_begin(commit_marks *self);
/* The commit was answered.  0: its server is left, and the answer is not to be believed. */
int marks_note(commit_marks *self, const commit_mark *one, const db_server *server, uint64_t began);
/* This one was answered, too: an earlier step of the trade does not last any more. */
void marks_follow(commit_marks *self, const commit_mark *one);
/* After a confirmed beat of this server: forgets the steps that the last round closed.  Whether there
 * are others, for which another round is due. */
int marks_drop_closed(commit_marks *self, const db_server *server);
/* A round of this server was answered, before which so many had been. */
void marks_closed(commit_marks *self, const db_server *server, uint64_t began);
/* Copies those of other servers than this one; *count of them, for memory_free().  0: out of
 * memory, or there was no room for one. */
int marks_of_others(commit_marks *self, const db_server *here, commit_mark **out, size_t *count);
/* Whether anything that was ever noted was answered by another server than this one, or by this one
 * when it was accepted.  Else this process knows of no commit that this server could lack. */
int marks_are_told(commit_marks *self, const db_server *here);
/* Forgets those of servers that are left: the one that is used now was accepted. */
void marks_forget_left(commit_marks *self);

#endif
