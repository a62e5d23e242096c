/*
 * The protocol of the two lanes of one trade, for spin.
 *
 * Actors: two threads of one service (0, 1: one process, one session), a worker that may
 * die or stall (2) and a worker that lives (3).  Beside them one environment: time,
 * deaths, the janitor, the network, the channel, web-hooks.  What one transaction of the
 * database does is one atomic step here.  The comment on a step names the C function
 * that does it.
 *
 * The channel's contract and the budgets of accidents are -D macros, listed below; each
 * NO_... macro takes one rule of the protocol away.  README.md tells what is modelled,
 * what is not, and what each run showed.
 */

#include "trade_lock_settings.pml"

/* MONEY: what a customer would notice.  RULE: what callers are told.  The mutations
 * compile the second kind out, so that what spin finds in them is about money. */
#define MONEY(p) assert(p)
#ifdef ONLY_MONEY
#define RULE(p) skip
#else
#define RULE(p) assert(p)
#endif
#include "landmarks.pml"

#define NA 4
#define NOBODY 4
#define PROC(i) ((i) < 2 -> 0 : (i) - 1)
#define BIT(k) (1 << (k))

/* Statuses of the sync row; states of the retry row. */
#define NONE 0
#define P 1
#define F 2
#define Y 3
#define WAIT 1
#define WORK 2
#define PARKED 3
#define CLOSED 4

/* Statements, and what a caller hears of them. */
#define ASK 1
#define RECLAIM 2
#define CLAIM 3
#define ARM 4
#define FINISH 5
#define OK 1
#define REFUSED 2
#define LOST 3
#define EVIDENCE 4

/* Outcomes of an attempt; from DECLINED on they are proofs of failure. */
#define SUCCESS 1
#define UNKNOWN 2
#define NOT_SENT 3
#define NOT_FOUND 4
#define PENDING 5
#define PARK 6
#define DECLINED 7
#define QUERY_FAILED 8
#define NEVER_LEFT 9
#define NOT_FOUND_FINAL 10
#define CANCELLED 11

/* What an actor is at. */
#define GONE 0          /* dead, or its caller got UNKNOWN and went */
#define ASKING 1
#define AGAIN 2         /* a service that may ask for a new epoch */
#define IDLE 3          /* a worker that looks for due work */
#define UNANSWERED 4    /* a statement was sent, no answer came */
#define KILLED 5        /* ... and its connection is known dead */
#define QUERYING 6
#define CANCELLING 7
#define ARMING 8
#define CHECKING 9      /* about to ask tl_may_send() */
#define PAUSING 10      /* between that and the socket */
#define WAITING 11      /* for the channel's answer */
#define ENDING 12

#define FILING 13       /* fenced out, with something to tell */
#define WEIGHING 14     /* only where the grace is judged too late */

/* The sync row, the retry row, and evidence (bit k for epoch k). */
byte st, ep, holder = NOBODY, sends, nf, proof;
bool ref, conflict;
byte rs, rep, att;
byte evidence_paid, evidence_declined;

/* Time.  over[i]: the max_hold of actor i's latest hold has passed.  su (send_until) is
 * kept as the set of armed holds that have not passed: bit i for the latest hold of
 * actor i, bit NA for all earlier ones.  nf: 0 nothing, 1 not found once, 2 and the
 * grace has passed since. */
bool over[NA] = 1;
byte su;
#define SU_PASSED (su == 0)
bool deadline, forgotten;

/* Processes and sessions: 0 the service, 1 the mortal worker, 2 the living one.
 * "expired": a session time-out has passed since the last confirmed beat was sent. */
bool expired[3], ended[3], dead[3];
byte accidents = ACCIDENTS;
byte declines = DECLINES;
#if defined(NO_ENDED_AT) || defined(ENDED_UNSEEN)
bool observed[3];
#endif

/* Fences and tokens never repeat, so what counts is only whether a number is the one
 * that stands in the row: hf, ht: the fence, the token of actor i's handle does;
 * cur: the token of its present step does; seen: it stands in the row or in the log.
 * With -DNUMBERS the fences are kept as well and compared with these bits. */
bool hf[NA], ht[NA], cur[NA], seen[NA];
#ifdef NUMBERS
byte fence, fence_of[NA];
#endif
byte phase[NA];
byte op[NA], arg[NA];   /* the statement in the socket, while unanswered */
bool late[NA];          /* ... and the server has not executed it yet */
byte out[NA];           /* the outcome the actor is about to record */
byte hk[NA];            /* the handle's epoch */
bool armed[NA];         /* its hold has counted a send */
bool past_su[NA], past_grace[NA];       /* at the claim */

/* The channel, by epoch, which is by key. */
byte m[NA];             /* an actor's message: 0 none, 1 under way, 2 paid, 3 declined */
byte orphans[3];        /* messages under way for which nobody waits */
byte paid[3];
byte declined, tomb;    /* bit k for epoch k */
#define TOTAL (paid[1] + paid[2])
#define UNDER_WAY (m[0] == 1 || m[1] == 1 || m[2] == 1 || m[3] == 1 || \
                   orphans[1] > 0 || orphans[2] > 0)

#define LIVE (holder != NOBODY && !ended[PROC(holder)] && !over[holder])
#define BLOCKED (rs == PARKED && rep == ep)
#define MAY_SEND(i) (!expired[PROC(i)] && !over[i])             /* tl_may_send() */

#ifdef NO_FENCE
#define CAS(i) (st == P)
#else
#ifdef NO_TOKEN
#define CAS(i) (st == P && hf[i])
#else
#define CAS(i) (st == P && hf[i] && ht[i])
#endif
#endif

#ifdef LATE_DEADLINE    /* the deadline is judged at the claim, not by the arming */
#define ARM_LATE 1
#else
#define ARM_LATE 0
#endif
#define MAY_NOT_ARM (conflict || (evidence_paid & BIT(ep)) || (deadline && !ARM_LATE))

#include "trade_lock_rows.pml"

/* ---- An actor's step, answered or not. ---- */

/* Begin a step under a fresh token: the answer comes, or it does not. */
inline begin(i, what, how)
{
    cur[i] = 0; seen[i] = 0;
    send_statement(i, what, how)
}

inline send_statement(i, what, how)
{
    if
    :: d_step { execute(i, what, how); go_on(i, what, how) }
    :: d_step { accidents > 0 -> accidents--;
                op[i] = what; arg[i] = how; late[i] = 1; phase[i] = UNANSWERED }
    fi
}

#ifdef NO_TOKEN         /* ... the row looks as this step would have left it */
#define MINE(i) (op[i] == FINISH -> !hf[i] : \
                 st == P && holder != NOBODY && PROC(holder) == PROC(i))
#define SEEN(i) 0
#else
#define MINE(i) cur[i]
#define SEEN(i) seen[i]                         /* tl_token_seen() */
#endif

/* The old connection is dead; read what became of the step: task_settle. */
inline settle(i)
{
    if
    :: MINE(i) -> r = (op[i] == FINISH || (st == P && !ended[PROC(i)]) -> OK : LOST)
    :: !(MINE(i)) && SEEN(i) -> r = (op[i] == FINISH -> OK : LOST)
    :: !(MINE(i)) && !SEEN(i) -> r = 0          /* it did not happen */
    fi
}

/* What the caller is told, and what it does next. */
inline go_on(i, what, how)
{
    RULE(r != OK || seen[i]);                               /* no false GRANTED */
    RULE(!(what == FINISH && r == LOST && seen[i]));        /* no false LOST */
    RULE(!(what <= CLAIM && r != OK && cur[i] && LIVE));    /* no false "no" */
    RULE(!late[i]);                             /* nothing happens after the verdict */
    if
    :: r == OK && what != FINISH ->
        hf[i] = 1; ht[i] = 1; hk[i] = ep; armed[i] = (what != CLAIM);
#ifdef NUMBERS
        RULE(fence > fence_of[i]);                          /* fences only rise */
        fence_of[i] = fence;
#endif
        if
        :: what == CLAIM -> resolver_decide(i)
        :: else -> phase[i] = CHECKING
        fi
    :: what == ARM && r == REFUSED -> out[i] = PARK; phase[i] = ENDING
    :: what == FINISH && r == EVIDENCE -> out[i] = UNKNOWN; phase[i] = ENDING
    :: what == FINISH && r == LOST && (how == SUCCESS || how == DECLINED) ->
        phase[i] = FILING
    :: else ->
        rest(i)
    fi;
    cur[i] = 0; seen[i] = 0; r = 0
}

inline forget_hold(i)
{
    if
    :: holder != i ->
        su = (su & BIT(i) -> (su & ~BIT(i)) | BIT(NA) : su);
        over[i] = 1
    :: else
    fi
}

inline rest(i)
{
    phase[i] = (i >= 2 -> IDLE : (hk[i] < 2 && RECLAIMS -> AGAIN : GONE));
    hf[i] = 0; ht[i] = 0; armed[i] = 0; out[i] = 0; hk[i] = 0;
    past_su[i] = 0; past_grace[i] = 0;
    forget_hold(i)
}

#include "trade_lock_retry.pml"

/* ---- The actors. ---- */

proctype Actor(byte i)
{
    byte r;

    do
    /* tl_lock_ask */
    :: atomic { phase[i] == ASKING -> begin(i, ASK, 0) }

    /* tl_lock_ask with TL_ASK_RECLAIM; a failure without the channel's own word is asked
     * about first, and money that moved after all sets conflict. */
    :: atomic { phase[i] == AGAIN && !ended[0] && st == F && ep == 1 && !conflict ->
            if
            :: QUERY && proof >= NEVER_LEFT && paid[1] > 0 -> file_evidence(1, 1)
            :: else -> hk[i] = 2; begin(i, RECLAIM, 0)
            fi }

    /* tl_claim_due */
    :: atomic { phase[i] == IDLE && !ended[PROC(i)] && st == P && !LIVE && !BLOCKED ->
            begin(i, CLAIM, 0) }

    /* tl_lock_arm */
    :: atomic { phase[i] == ARMING -> begin(i, ARM, 0) }

    /* tl_lock_finish */
    :: atomic { phase[i] == ENDING -> begin(i, FINISH, out[i]) }

    /* tl_evidence_add */
    :: atomic { phase[i] == FILING ->
            file_evidence(hk[i], out[i] == SUCCESS); rest(i);
            c_code { landmark("evidence"); } }

    /* task_settle: first the connection must be known dead, else the caller hears
     * UNKNOWN and the end of the session, or max_hold, opens the lane. */
#ifdef NO_KILL
    :: d_step { phase[i] == UNANSWERED -> phase[i] = KILLED }
#else
    :: d_step { phase[i] == UNANSWERED -> phase[i] = KILLED; late[i] = 0 }
#endif
    :: d_step { phase[i] == UNANSWERED && i != 3 -> phase[i] = GONE; out[i] = 0 }
    :: atomic { phase[i] == KILLED ->
            settle(i);
            if
            :: r != 0 -> d_step { go_on(i, op[i], arg[i]) }
            :: else -> send_statement(i, op[i], arg[i])
            fi;
            if
            :: phase[i] != UNANSWERED -> op[i] = 0; arg[i] = 0
            :: else
            fi }

    /* tl_workflow_run: tl_may_send(), the pause, the socket, the wait for the answer. */
    :: d_step { phase[i] == CHECKING && !MAY_SEND(i) ->
            out[i] = NOT_SENT; phase[i] = ENDING }
#if PLAIN == 1 && !SLOW
    :: atomic { phase[i] == CHECKING && MAY_SEND(i) ->
            RULE(st == P && hf[i]); arrive(hk[i], m[i]); phase[i] = WAITING }
#else
    :: d_step { phase[i] == CHECKING && MAY_SEND(i) ->
            RULE(st == P && hf[i]);             /* true only while the lock is held */
            phase[i] = PAUSING }
    :: d_step { phase[i] == PAUSING && (!over[i] || (GAP && !EXPIRY)) ->
            m[i] = 1; phase[i] = WAITING }
    :: d_step { phase[i] == PAUSING -> out[i] = NOT_SENT; phase[i] = ENDING }
#endif
    :: d_step { phase[i] == WAITING && m[i] > 1 ->
            out[i] = (m[i] == 2 -> SUCCESS : DECLINED);
            if
            :: out[i] == DECLINED && sends > 1 && hf[i] && !(IDEM && REPLAY) ->
                out[i] = UNKNOWN
            :: else
            fi;
            m[i] = 0; phase[i] = ENDING }
    :: d_step { phase[i] == WAITING && m[i] != 0 ->         /* timed out */
            leave_message(i); out[i] = UNKNOWN; phase[i] = ENDING }

    /* compensate: the callback query. */
    :: atomic { phase[i] == QUERYING ->
            if
            :: paid[hk[i]] > 0 -> out[i] = SUCCESS; phase[i] = ENDING
            :: paid[hk[i]] == 0 && ((declined | tomb) & BIT(hk[i])) -> weigh_failed(i)
            :: !NFFINAL || (paid[hk[i]] == 0 && !((declined | tomb) & BIT(hk[i]))) ->
#ifdef LATE_JUDGE
                phase[i] = WEIGHING
#else
                weigh_not_found(i)
#endif
            :: UNDER_WAY -> out[i] = PENDING; phase[i] = ENDING
            :: PLAIN != 1 -> out[i] = UNKNOWN; phase[i] = ENDING    /* unreachable */
            fi }

#ifdef LATE_JUDGE
    :: d_step { phase[i] == WEIGHING -> weigh_not_found(i) }
#endif

    /* ... and the callback cancel, whose receipt may be lost. */
    :: atomic { phase[i] == CANCELLING ->
            out[i] = UNKNOWN;
            phase[i] = ENDING;
            if
            :: paid[hk[i]] > 0
            :: paid[hk[i]] == 0 && CANCEL == 2 ->
                tomb = tomb | BIT(hk[i]);
                if
                :: out[i] = CANCELLED
                :: skip
                fi
            :: paid[hk[i]] == 0 && CANCEL == 1
            fi }
    od
}

/* ---- Time, deaths, the janitor, the network. ---- */

/* Accidents befall processes that are in the middle of something. */
#define BUSY(p) (accidents > 0 && st <= P && !dead[p] && \
                 (p == 0 -> phase[0] > IDLE || phase[1] > IDLE : phase[2] > IDLE))

inline die(k)
{
    leave_message(k);
    phase[k] = GONE; out[k] = 0; armed[k] = 0; past_su[k] = 0; past_grace[k] = 0;
    hf[k] = (late[k] -> hf[k] : 0); ht[k] = (late[k] -> ht[k] : 0)
}

active proctype Environment()
{
    byte i, r, a;

    do
    /* A max_hold passes. */
    :: d_step { st == P && !over[0] -> over[0] = 1; su = su & ~BIT(0) }
    :: d_step { st == P && !over[1] -> over[1] = 1; su = su & ~BIT(1) }
    :: d_step { st == P && !over[2] -> over[2] = 1; su = su & ~BIT(2) }
    :: d_step { st == P && !over[3] -> over[3] = 1; su = su & ~BIT(3) }
    :: d_step { st == P && (su & BIT(NA)) -> su = su & ~BIT(NA) }
    /* The grace: longer than anything sent before it started needs to arrive. */
    :: d_step { st == P && nf == 1 && !UNDER_WAY -> nf = 2 }
    :: d_step { st == P && (IDEM || sends == 0) && !deadline -> deadline = 1 }
#if WINDOW
    /* It must last to the end of the hold of a send armed just before the deadline. */
    :: d_step { deadline && (SU_PASSED || WINDOW == 2) && !UNDER_WAY && !forgotten ->
            forgotten = 1 }
#endif

    /* A process dies; its messages and its last statement stay under way. */
    :: d_step { BUSY(0) -> accidents--; dead[0] = 1; expired[0] = 1; die(0); die(1) }
    :: d_step { BUSY(1) -> accidents--; dead[1] = 1; expired[1] = 1; die(2) }

    /* The heartbeat, beat: none for a session time-out, and one after that. */
    :: d_step { BUSY(0) && !expired[0] -> accidents--; expired[0] = 1 }
    :: d_step { BUSY(1) && !expired[1] -> accidents--; expired[1] = 1 }
    :: d_step { expired[0] && !dead[0] && !ended[0] -> expired[0] = 0 }
    :: d_step { expired[1] && !dead[1] && !ended[1] -> expired[1] = 0 }

    /* observer_look: ended_at, written only over the very beat that was watched. */
#if defined(NO_ENDED_AT) || defined(ENDED_UNSEEN)
    :: d_step { expired[0] && !observed[0] -> observed[0] = 1 }
    :: d_step { expired[1] && !observed[1] -> observed[1] = 1 }
#endif
#ifdef NO_ENDED_AT
    :: d_step { st == P && holder != NOBODY && observed[PROC(holder)] -> open_lane() }
#else
#ifdef ENDED_UNSEEN
    :: d_step { observed[0] && !ended[0] -> ended[0] = 1 }
    :: d_step { observed[1] && !ended[1] -> ended[1] = 1 }
#else
    :: d_step { expired[0] && !ended[0] -> ended[0] = 1 }
    :: d_step { expired[1] && !ended[1] -> ended[1] = 1 }
#endif
#endif

    /* The janitor: janitor_round. */
    :: d_step { st == P && holder != NOBODY && !LIVE -> open_lane() }

    /* A statement nobody waits for is executed by the server, or never. */
    :: d_step { late[0] -> execute(0, op[0], arg[0]); late[0] = 0; r = 0 }
    :: d_step { late[1] -> execute(1, op[1], arg[1]); late[1] = 0; r = 0 }
    :: d_step { late[2] -> execute(2, op[2], arg[2]); late[2] = 0; r = 0 }
    :: d_step { late[3] -> execute(3, op[3], arg[3]); late[3] = 0; r = 0 }
    :: d_step { late[0] && phase[0] == GONE -> late[0] = 0 }
    :: d_step { late[1] && phase[1] == GONE -> late[1] = 0 }
    :: d_step { late[2] && phase[2] == GONE -> late[2] = 0 }

    /* The channel gets a message; or the network loses one. */
    :: atomic { m[0] == 1 -> arrive(hk[0], m[0]) }
    :: atomic { m[1] == 1 -> arrive(hk[1], m[1]) }
    :: atomic { m[2] == 1 -> arrive(hk[2], m[2]) }
    :: atomic { m[3] == 1 -> arrive(hk[3], m[3]) }
    :: atomic { orphans[1] > 0 -> orphans[1]--; arrive(1, a); a = 0 }
    :: atomic { orphans[2] > 0 -> orphans[2]--; arrive(2, a); a = 0 }
    :: d_step { orphans[1] > 0 -> orphans[1]-- }
    :: d_step { orphans[2] > 0 -> orphans[2]-- }

#if WEBHOOKS
    :: d_step { paid[1] > 0 && !(evidence_paid & BIT(1)) -> file_evidence(1, 1) }
    :: d_step { paid[2] > 0 && !(evidence_paid & BIT(2)) -> file_evidence(2, 1) }
#endif
    od
}

/* Progress: nothing runs for ever (the run for non-progress cycles), and where all has
 * stopped the trade is decided, or a person was called, and the lanes agree. */
active proctype End()
{
    timeout;
    MONEY(st != P || BLOCKED);
    RULE(st == P || rs == NONE || rs == CLOSED);
    if
    :: st == P -> c_code { landmark("parked"); }
    :: st == Y && ep == 1 -> c_code { landmark("paid"); }
    :: st == Y && ep == 2 -> c_code { landmark("paid-anew"); }
    :: st == F && proof == DECLINED -> c_code { landmark("declined"); }
    :: st == F && proof == QUERY_FAILED -> c_code { landmark("failed"); }
    :: st == F && proof == NEVER_LEFT -> c_code { landmark("never-left"); }
    :: st == F && proof == NOT_FOUND_FINAL -> c_code { landmark("not-found"); }
    :: st == F && proof == CANCELLED -> c_code { landmark("cancelled"); }
    :: else
    fi
}

init
{
    atomic {
        phase[0] = ASKING; run Actor(0);
#if SERVICES == 2
        phase[1] = ASKING; run Actor(1);
#endif
#if WORKERS == 2
        phase[2] = IDLE; run Actor(2);
#endif
        phase[3] = IDLE; run Actor(3)
    }
}
