/*
 * The read-write lock of one resource, for spin.
 *
 * Any number of readers or one writer.  Each holder is a row of its own in
 * resource_holder, with lease, session and fence; nothing is counted.  An actor reads
 * the resource under its lock, pauses, and in one transaction of its own writes "business
 * done" on its holder row, writes the resource if it is a writer, and commits.  What one
 * statement of the database does is one atomic step here, and so is what happens behind
 * the gate; the comment on a step names the C function that does it, and tests/model/names
 * looks whether that is still there.
 *
 * ACTORS processes with a session each; every one is a reader, a writer, a writer that
 * downgrades, or a reader that asks for more.  Each NO_... macro takes one rule away.
 */

#ifndef ACTORS          /* 2 to 4 */
#define ACTORS 3
#endif
#ifndef ACCIDENTS       /* deaths, session time-outs of the living, lost answers */
#define ACCIDENTS 2
#endif

#include "landmarks.pml"

/* A holder row: none; a writer that waits and keeps new readers out; a holder. */
#define NONE 0
#define WAITING 1
#define READ 2
#define WRITE 3

/* What an actor wants. */
#define READER 0
#define WRITER 1
#define DOWNGRADER 2    /* writes, then goes on as a reader */
#define UPGRADER 3      /* reads, then asks to write */

/* What an actor is at. */
#define GONE 0
#define UNANSWERED 1    /* a statement was sent, no answer came */
#define SETTLING 2      /* ... and its connection is known dead */
#define ASKING 3
#define LOOKING 4       /* has the lock, is about to read the resource */
#define MARKING 5       /* about to write "business done" in its own transaction */
#define COMMITTING 6
#define DOWNGRADING 7
#define UPGRADING 8
#define RELEASING 9

/* What a caller hears. */
#define OK 1
#define WAIT 2
#define LOST 3          /* or refused */

byte row[4];
bool locked[4];         /* an open transaction holds the row: "done" not yet committed */
bool ended[4], expired[4], over[4];
byte accidents = ACCIDENTS;

byte want[4], phase[4], seen_value[4], op[4];
bool late[4], keep[4];
bool log_row[4], log_done[4], log_released[4];
byte value;             /* the resource: + 1 by each writer */

#define LIVE(k) (!ended[k] && !over[k])
/* The compare-and-set on the own row: its identifier is the holder's token, so nobody
 * else ever writes there but the janitor, who removes it. */
#define STANDS(k) (row[k] >= READ)

/* A row of another stands in the way until it is freed.  That its holder looks dead is
 * not enough: its transaction may be about to commit. */
#ifdef NO_FREEING_FIRST
#define COUNTS(k) (LIVE(k))
#else
#define COUNTS(k) 1
#endif
#define OTHER(k, i, what) ((k) != (i) && row[k] == what && COUNTS(k))
#define ANY(i, what) (OTHER(0, i, what) || OTHER(1, i, what) || \
                      OTHER(2, i, what) || OTHER(3, i, what))
#ifdef NO_BARRIER
#define CAN_READ(i) (!ANY(i, WRITE))
#else
#define CAN_READ(i) (!ANY(i, WRITE) && !ANY(i, WAITING))
#endif
#define CAN_WRITE(i) (!ANY(i, WRITE) && !ANY(i, READ))
#define READS(i) (want[i] == READER || want[i] == UPGRADER)

/* ---- The database. ---- */

inline grant(i, mode)
{
    row[i] = mode;
    log_row[i] = 1;
    r = OK;
    assert(mode == READ || CAN_WRITE(i));       /* one writer ... */
    assert(!ANY(i, WRITE))                      /* ... or readers */
}

/* An actor ends; what it knew is forgotten, but for a statement still under way. */
inline leave(i)
{
    phase[i] = GONE;
    expired[i] = 1;
    if
    :: !late[i] ->
        want[i] = 0; seen_value[i] = 0; keep[i] = 0; op[i] = 0;
        log_row[i] = 0; log_done[i] = 0; log_released[i] = 0
    :: else
    fi
}

/* One statement with its commit; the resource's own row is locked meanwhile. */
inline execute(i, what)
{
    r = LOST;
    if
    :: what == ASKING && row[i] >= READ -> r = OK           /* the same ask again */
    :: what == ASKING && row[i] < READ && READS(i) ->       /* tl_rw_read, run_ask */
        if
        :: CAN_READ(i) ->
            assert(!ANY(i, WAITING));           /* no writer is passed over */
            grant(i, READ)
        :: else -> r = WAIT
        fi
    :: what == ASKING && row[i] < READ && !READS(i) ->      /* tl_rw_write, run_ask */
        if
        :: CAN_WRITE(i) -> grant(i, WRITE)
        :: else -> row[i] = WAITING; log_row[i] = 1; r = WAIT   /* claim_intent */
        fi
    :: what == UPGRADING ->                     /* tl_rw_write by a reader: check_state */
#ifdef NO_UPGRADE_REFUSAL
        if
        :: STANDS(i) && CAN_WRITE(i) -> grant(i, WRITE)
        :: else
        fi
#else
        skip
#endif
    :: what == DOWNGRADING ->                   /* tl_rw_downgrade */
        if
        :: STANDS(i) -> grant(i, READ)
        :: else
        fi
    :: what == RELEASING ->                     /* tl_rw_unlock */
        if
        :: STANDS(i) -> row[i] = NONE; over[i] = 0; log_released[i] = 1; r = OK
        :: else
        fi
    :: what == COMMITTING ->                    /* the caller's own commit */
        assert(seen_value[i] == value);         /* no lost update, no torn reading */
        value = (READS(i) -> value : value + 1);
        seen_value[i] = value;
        log_done[i] = 1;
        locked[i] = 0;
        r = OK
    fi
}

/* ---- An actor's step, answered or not. ---- */

inline send_statement(i, what)
{
    if
    :: d_step { execute(i, what); go_on(i, what) }
    :: d_step { accidents > 0 -> accidents--;
                op[i] = what; late[i] = 1; phase[i] = UNANSWERED }
    fi
}

/* What the caller is told, and what it does next. */
inline go_on(i, what)
{
    assert(!late[i]);                           /* nothing happens after the verdict */
    if
    :: what == ASKING && r == OK ->
        phase[i] = (keep[i] -> MARKING : LOOKING)
    :: what == ASKING && r == WAIT -> phase[i] = ASKING
    :: what == ASKING && r == LOST -> leave(i)
    :: what == UPGRADING -> phase[i] = RELEASING
    :: what == DOWNGRADING && r == OK ->
        want[i] = READER; log_done[i] = 0; phase[i] = MARKING
    :: what == DOWNGRADING && r != OK -> leave(i); c_code { landmark("downgrade-lost"); }
    :: what == RELEASING ->
        assert((r == OK) == log_released[i]);   /* no false "released", no false LOST */
        leave(i)
    :: what == COMMITTING ->
        assert((r == OK) == log_done[i]);       /* no false "done", no false failure */
        phase[i] = (r != OK || want[i] < DOWNGRADER -> RELEASING :
                    (want[i] == DOWNGRADER -> DOWNGRADING : UPGRADING))
    fi;
    op[i] = 0;
    r = 0
}

/* The old connection is dead, its transaction rolled back (task_settle): lease_read_ask
 * and read_release, by the holder's token and the log.  A downgrade is not settled but made
 * again, which comes to the same; what became of the caller's own commit the caller finds
 * out. */
inline settle(i)
{
    r = 0;
    if
    :: op[i] == ASKING && row[i] >= READ -> r = OK
    :: op[i] == ASKING && row[i] == WAITING -> r = WAIT
    :: op[i] == ASKING && row[i] == NONE && log_row[i] -> r = LOST
    :: op[i] == DOWNGRADING && row[i] == READ -> r = OK
    :: (op[i] == RELEASING || op[i] == DOWNGRADING) && row[i] == NONE ->
        r = (log_released[i] -> OK : LOST)
    :: op[i] == COMMITTING -> r = (log_done[i] -> OK : LOST)
    :: else
    fi
}

/* ---- The actors. ---- */

#ifdef NO_UPGRADE_REFUSAL
#define UPGRADE_NOW(i) (!STANDS(i) || CAN_WRITE(i))
#else
#define UPGRADE_NOW(i) 1
#endif

proctype Actor(byte i)
{
    byte r;

    do
    /* tl_rw_read, tl_rw_write; who waits polls (ask_waiting), and what would be refused again
     * changes nothing and is left out. */
    :: atomic { phase[i] == ASKING && !ended[i] &&
                (READS(i) -> CAN_READ(i) :
                 ((row[i] == NONE && !log_row[i]) || row[i] != NONE && CAN_WRITE(i))) ->
            send_statement(i, ASKING) }
    :: d_step { phase[i] == ASKING && row[i] == NONE && (ended[i] || log_row[i]) &&
                !keep[i] -> leave(i) }
    :: d_step { phase[i] == ASKING && ended[i] && keep[i] -> leave(i) }

    /* The caller reads the resource under its lock, outside any transaction. */
    :: d_step { phase[i] == LOOKING -> seen_value[i] = value; phase[i] = MARKING }

    /* tl_rw_done: "business done", by compare-and-set, in the caller's transaction. */
#ifdef NO_DONE_CHECK
    :: d_step { phase[i] == MARKING -> phase[i] = COMMITTING }
#else
    :: d_step { phase[i] == MARKING && STANDS(i) -> locked[i] = 1; phase[i] = COMMITTING }
    :: d_step { phase[i] == MARKING && !STANDS(i) -> leave(i);
            c_code { landmark("done-refused"); } }
#endif
    :: atomic { phase[i] == COMMITTING -> send_statement(i, COMMITTING) }

    /* tl_rw_downgrade: in one statement, so that no moment is without a lock. */
#ifdef NO_ATOMIC_DOWNGRADE
    :: d_step { phase[i] == DOWNGRADING && STANDS(i) ->
            row[i] = NONE; want[i] = READER; keep[i] = 1; log_done[i] = 0;
            phase[i] = ASKING }
    :: d_step { phase[i] == DOWNGRADING && !STANDS(i) -> leave(i) }
#else
    :: atomic { phase[i] == DOWNGRADING -> send_statement(i, DOWNGRADING) }
#endif
    :: atomic { phase[i] == UPGRADING && UPGRADE_NOW(i) -> send_statement(i, UPGRADING) }
    :: atomic { phase[i] == RELEASING -> send_statement(i, RELEASING) }

    /* task_settle: the connection must be dead before anything is read. */
    :: d_step { phase[i] == UNANSWERED ->
            late[i] = 0; locked[i] = 0; phase[i] = SETTLING }
    :: atomic { phase[i] == SETTLING ->
            settle(i);
            if
            :: r != 0 -> d_step { go_on(i, op[i]) }
            :: else -> phase[i] = op[i]; op[i] = 0
            fi }
    od
}

/* ---- Time, deaths, the janitor. ---- */

#ifdef NO_WAITER_FREED
#define FREEABLE(k) (row[k] >= READ)
#else
#define FREEABLE(k) (row[k] != NONE)
#endif
#ifdef NO_ROW_LOCK      /* "done" is only looked at, not written, before the commit */
#define UNLOCKED(k) 1
#else
#define UNLOCKED(k) (!locked[k])
#endif

#define BUSY(k) (phase[k] != GONE && (row[k] != NONE || late[k]))

proctype Environment(byte k)
{
    byte r;

    do
    /* A max_hold passes. */
#ifndef NO_MAX_HOLD     /* holders that renew for ever */
    :: d_step { row[k] >= READ && !over[k] -> over[k] = 1 }
#endif

    /* A process dies while it holds, waits or has a statement under way. */
    :: d_step { accidents > 0 && BUSY(k) -> accidents--; leave(k) }

    /* The heartbeat: none for a session time-out, and one after that. */
    :: d_step { accidents > 0 && !expired[k] && BUSY(k) -> accidents--; expired[k] = 1 }
    :: d_step { expired[k] && phase[k] != GONE && !ended[k] -> expired[k] = 0 }

    /* observer_look. */
    :: d_step { expired[k] && !ended[k] && (phase[k] != GONE || row[k] != NONE) ->
            ended[k] = 1 }

    /* The server executes a statement nobody waits for, or notices that the client of an
     * open transaction is gone. */
    :: d_step { late[k] ->
            late[k] = 0;
            execute(k, op[k]);
            r = 0;
            if
            :: phase[k] == GONE -> leave(k)
            :: else
            fi }
    :: d_step { phase[k] == GONE && (late[k] || locked[k]) ->
            late[k] = 0; locked[k] = 0; leave(k) }

    /* janitor_round, and free_dead of whoever it stands in the way of: only the dead, and
     * under the row's lock (store_rw_free). */
    :: d_step { FREEABLE(k) && !LIVE(k) && UNLOCKED(k) ->
            assert(ended[k] || over[k]);
            row[k] = NONE; over[k] = 0; c_code { landmark("freed"); } }
    od
}

/* Progress: nothing runs for ever, and where all has stopped every actor has come to
 * its end and no row is left. */
active proctype End()
{
    timeout;
    assert(phase[0] == GONE && phase[1] == GONE && phase[2] == GONE && phase[3] == GONE);
    assert(row[0] == NONE && row[1] == NONE && row[2] == NONE && row[3] == NONE);
    if
    :: value == 0 -> c_code { landmark("no-writer"); }
    :: value == ACTORS -> c_code { landmark("all-wrote"); }
    :: else
    fi
}

/* Actors are alike, so one order of their wishes is enough. */
inline choose(i, most)
{
    if
    :: want[i] = READER
    :: most >= WRITER -> want[i] = WRITER
    :: most >= DOWNGRADER -> want[i] = DOWNGRADER
    :: most >= UPGRADER -> want[i] = UPGRADER
    fi;
    phase[i] = ASKING
}

init
{
    atomic {
        choose(0, UPGRADER);
        choose(1, want[0]);
#if ACTORS > 2
        choose(2, want[1]);
#endif
#if ACTORS > 3
        choose(3, want[2]);
#endif
        run Actor(0); run Environment(0);
        run Actor(1); run Environment(1);
#if ACTORS > 2
        run Actor(2); run Environment(2);
#endif
#if ACTORS > 3
        run Actor(3); run Environment(3)
#endif
    }
}
