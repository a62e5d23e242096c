/*
 * Proof by position: a primary whose copy is promoted, and accepted by itself.
 *
 * One trade, asked for on the old primary by any process, and on each server that was accepted.
 * The commits of the old primary are numbered; a copy has the first so many of them.  Copy 1
 * follows the primary, which waits for it and for no other; copy 2 follows copy 1, or the primary
 * too.  One that was promoted follows nobody.  A process may meet either of them first, or never one
 * of them, as on the sides of a split.  The old
 * primary goes on answering for ever, but with OFF: whoever is not cut off from it believes it.
 */
#include "landmarks.pml"

#ifndef PROCESSES       /* 2: their sessions are on all copies already */
#define PROCESSES 2
#endif
#ifndef NEWCOMERS       /* of them, how many begin their sessions now */
#define NEWCOMERS 0
#endif
#ifndef COPIES
#define COPIES 1
#endif
#ifndef SPLIT           /* 1: copy 2 follows the primary, and no commit waits for it */
#define SPLIT 0
#endif
#ifndef GAP             /* 1: from some moment on the primary answers a commit that no copy has,
                           and nobody looked since; 2: whoever is there then has seen it */
#define GAP 0
#endif
#ifndef OFF             /* 1: the primary is off for certain before a copy is promoted */
#define OFF 0
#endif

#define OLD 0
#define BIT(p) (1 << (p))

byte commits;                   /* on the old primary */
byte grant;                     /* which of them granted the trade; 0: none */
byte begun[PROCESSES];          /* which began the session of a process; 0: not yet */
byte ended[PROCESSES];          /* which ended it in order, while it was there; 0: none */
byte has[3];                    /* how many of them a copy has */
bool promoted[3], accepted[3];
byte asked[3], attested[3];     /* sessions, as bits: who has to attest, and who did */
bool short_of[3];               /* somebody knows of a commit that the copy lacks, saw the gap, or saw
                                   that the primary waits for the other one */
bool granted[3];                /* the trade was granted on the copy */
bool gap;
byte payments;

/* What the primary tells a process only once a copy has it. */
#define answered(number) (gap || has[1] >= number)
#define is_on() (!OFF || !(promoted[1] || promoted[2]))

/* A session whose end the copy has as well was told of nothing that comes after it. */
#ifdef ENDED_PASSED_OVER
#define has_ended(c, p) (ended[p] > 0)
#else
#define has_ended(c, p) (ended[p] > 0 && ended[p] <= has[c])
#endif

inline pay() {
    payments++;
    assert(payments < 2)
}

inline promote(c) {
    promoted[c] = 1;
    q = 0;
    do
    :: q < PROCESSES ->
        if
        :: begun[q] > 0 && begun[q] <= has[c] && !has_ended(c, q) -> asked[c] = asked[c] | BIT(q)
        :: else
        fi;
        q++
    :: else -> break
    od
}

/* Looks up the newest commit that the process was told of.  A session that need not attest says
 * only what speaks against the server. */
inline attest(c) {
#ifdef ONLY_BEATS
    short_of[c] = short_of[c] || begun[me] > has[c];
#else
    short_of[c] = short_of[c] || known > has[c];
#endif
#ifndef KEPT_PASSED_OVER
    if
    :: GAP == 2 && gap -> short_of[c] = 1; c_code { landmark("not-kept"); }
    :: else
    fi;
#endif
#ifndef ANY_SERVER
    if
    :: c != 1 -> short_of[c] = 1; c_code { landmark("another"); }
    :: else
    fi;
#endif
    attested[c] = attested[c] | BIT(me);
    if
    :: known > has[c] -> c_code { landmark("missing"); }
    :: else
    fi
}

proctype process(byte me) {
    byte at = OLD;      /* the server that it believes */
    byte known;         /* the newest commit that it was told of */
    byte pending;       /* a commit without an answer */
    byte awaited;       /* the commit by whose answer it counts: itself, or a later one */
    byte c;
    bool asks, holds;

    known = begun[me];
end:
    do
    :: atomic { at == OLD && is_on() && begun[me] == 0 ->
        commits++; begun[me] = commits; pending = commits; awaited = commits }
    :: atomic { at == OLD && is_on() && known > 0 && pending == 0 && grant == 0 ->
        commits++; grant = commits; pending = commits; awaited = commits; asks = 1 }
    :: atomic { at == OLD && is_on() && pending > 0 && answered(awaited) ->
        if
        :: awaited > pending -> c_code { landmark("settled"); }
        :: else
        fi;
        known = pending; pending = 0; awaited = 0; holds = asks }
    /* The answer was lost.  Its connection is ended before the trade is read by its token, and with
     * that the wait for a copy: it is seen there, whether a copy has it or not. */
    :: atomic { at == OLD && is_on() && asks && pending > 0 && awaited == pending ->
#ifdef BELIEVES_READ
        known = pending; pending = 0; awaited = 0; holds = 1
#else
        commits++; awaited = commits
#endif
        }
    /* tl_may_send(): the session is certain. */
    :: atomic { holds && (at == OLD || accepted[at]) ->
        holds = 0;
        if
        :: at == OLD -> c_code { landmark("paid"); }
        :: else -> c_code { landmark("hold-kept"); }
        fi;
        pay() }
    /* It gives up the old server, for good, before it looks. */
    :: atomic { at == OLD && begun[me] > 0 ->
        if
        :: promoted[1] -> c = 1
        :: promoted[2] -> c = 2
        fi;
        attest(c);
#ifdef NO_GIVING_UP
        at = (pending > 0 -> OLD : c)
#else
        at = c; pending = 0; awaited = 0
#endif
        }
#ifdef GOES_BACK
    :: atomic { at != OLD && accepted[at] -> at = OLD }
#endif
#ifdef ATTESTS_TO_BOTH
    :: atomic { at != OLD && promoted[3 - at] && (attested[3 - at] & BIT(me)) == 0 ->
        attest(3 - at) }
#endif
#ifdef UNCERTAIN
    :: atomic { at != OLD && !granted[at] && (grant == 0 || grant > has[at]) ->
        granted[at] = 1; pay() }
#endif
    :: atomic { at == OLD && is_on() && begun[me] > 0 ->
        commits++; ended[me] = commits; c_code { landmark("ended"); }; break }
    :: break            /* it dies */
    od
}

#ifdef DEAD_PASSED_OVER
#define all_spoke(c) (attested[c] != 0)
#else
#define all_spoke(c) (attested[c] != 0 && (asked[c] & attested[c]) == asked[c])
#endif
#ifdef MISSING_PASSED_OVER
#define nothing_missing(c) 1
#else
#define nothing_missing(c) (!short_of[c])
#endif

/* Replication, people who promote, the accepting by itself, and customers of what was accepted. */
active proctype world() {
    byte c, q;

    atomic {
        do
        :: q < PROCESSES - NEWCOMERS ->
            commits++; begun[q] = commits; q++
        :: else -> break
        od;
        has[1] = commits; has[2] = commits;
        q = 0;
        do
        :: q < PROCESSES -> run process(q); q++
        :: else -> break
        od
    }
end:
    do
    :: atomic { !promoted[1] && has[1] < commits -> has[1]++ }
    :: atomic { !promoted[2] && has[2] < (SPLIT -> commits : has[1]) -> has[2]++ }
    :: atomic { GAP && !gap && is_on() -> gap = 1 }
    :: atomic { !promoted[1] -> promote(1) }
    :: atomic { COPIES == 2 && !promoted[2] -> promote(2) }
    :: atomic {
        c = 1;
        do
        :: c < 2 -> c++
        :: break
        od;
        promoted[c] && !accepted[c] && all_spoke(c) && nothing_missing(c) ->
        accepted[c] = 1;
#ifndef ANY_SERVER
        assert(!(accepted[1] && accepted[2]));
#endif
        c_code { landmark("accepted"); } }
    :: atomic {
        c = 1;
        do
        :: c < 2 -> c++
        :: break
        od;
        accepted[c] && !granted[c] ->
        granted[c] = 1;
        if
        :: grant > 0 && grant <= has[c] -> c_code { landmark("refused"); }
        :: else -> c_code { landmark("granted"); }
            pay()
        fi }
    od
}
