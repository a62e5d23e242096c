/*
 * admin/channels.h - operators pause a channel, have it go on, limit it, and give it a breaker.
 *
 * What a pause does, and how soon, stands in <tradelock/layer.h>: nothing new is sent, what is due
 * waits, and nothing is used up.  It is one row of the database that every process reads.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_ADMIN_CHANNELS_H
#define TRADELOCK_ADMIN_CHANNELS_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which channel is paused or resumed, and why. */
typedef struct tl_pause {
    unsigned version;           /* TL_PAUSE_VERSION */
    const char *channel;        /* as a workflow registered it; TL_CHANNEL_ALL: a drain */
    const char *op_code;        /* for this operation alone; NULL or "": the channel as a whole */
    const char *actor, *reason; /* mandatory; for the record, and for no customer */
} tl_pause;

#define TL_PAUSE_VERSION 1u
#define TL_PAUSE_INIT TL_INITIAL(tl_pause, TL_PAUSE_VERSION)

/*
 * Pauses the channel, or ends the pause of just this channel and operation.  A channel that is
 * paused as a whole is not open for an operation whose own pause ended.  TL_CHANNEL_ALL
 * (<tradelock/layer.h>) needs no registration, and is of all operations.  Needs an operator's
 * account.
 *
 *     TL_OK             It is on record, and holds in each process after its next heartbeat.
 *                       A drain holds once it is a heartbeat old, in all of them.
 *     TL_ALREADY_DONE   It is paused already, or not paused.  Nothing was changed.
 *     TL_NOT_FOUND      No workflow has registered this channel, or not for this operation.
 *     TL_UNKNOWN        The answer was lost.  tl_pause_list() tells.
 */
TL_EXPORT tl_status tl_channel_pause(tl_client *client, const tl_pause *pause);
TL_EXPORT tl_status tl_channel_resume(tl_client *client, const tl_pause *pause);

/* How much a channel is sent at most. */
typedef struct tl_limit {
    unsigned version; /* TL_LIMIT_VERSION */
    const char *channel;
    const char *op_code;       /* for this operation alone; NULL or "": for all of them together */
    int64_t sends, per_second; /* at a time, and in a second; each 0: any number */
    const char *actor, *reason;
} tl_limit;

#define TL_LIMIT_VERSION 1u
#define TL_LIMIT_INIT TL_INITIAL(tl_limit, TL_LIMIT_VERSION)
#define TL_LIMIT_SENDS_MAX 1000000
#define TL_LIMIT_PER_SECOND_MAX 100000

/*
 * Limits what all processes together send through the channel (<tradelock/layer.h>), in place of
 * what limits just this channel and operation now; with both numbers 0 it lifts that.  A send obeys
 * the limit of its operation and that of the channel as a whole.  Needs an operator's account.  The
 * answers are those of tl_channel_pause(); TL_ALREADY_DONE: it is limited so already.
 */
TL_EXPORT tl_status tl_channel_limit(tl_client *client, const tl_limit *limit);

/* When nothing is sent to a channel whose outcomes are unknown. */
typedef struct tl_breaker {
    unsigned version; /* TL_BREAKER_VERSION */
    const char *channel;
    const char *op_code;     /* for this operation alone; NULL or "": for all of them together */
    int64_t unknowns;        /* so many unknown outcomes in a row open it; 0: no breaker any more */
    int64_t share, window_s; /* or so many per cent of a window's, and at least `unknowns` of them;
                                both 0: no such share */
    int64_t probe_s;         /* from one probe to the next; 0: TL_BREAKER_PROBE_S */
    const char *actor, *reason;
} tl_breaker;

#define TL_BREAKER_VERSION 1u
#define TL_BREAKER_INIT TL_INITIAL(tl_breaker, TL_BREAKER_VERSION)
#define TL_BREAKER_UNKNOWNS_MAX 1000000
#define TL_BREAKER_SECONDS_MAX 86400
#define TL_BREAKER_PROBE_S 10

/*
 * Gives the channel a circuit breaker (<tradelock/layer.h>), in place of the one that just this
 * channel and operation has now; with unknowns 0 it takes that away, and the channel is open.  One
 * that is open stays open under its new numbers.  Needs an operator's account.  The answers are
 * those of tl_channel_pause(); TL_ALREADY_DONE: it has such a breaker already.
 */
TL_EXPORT tl_status tl_channel_breaker(tl_client *client, const tl_breaker *breaker);

/* A channel, with its pause, limit and breaker. */
typedef struct tl_pause_row {
    const char *channel, *op_code; /* op_code "": the channel as a whole */
    int paused;                    /* by a decision about this row */
    int as_whole;                  /* the channel is paused as a whole */
    /* The last decision about this row, a pause or the end of one; decided_us 0: there was none. */
    int64_t decided_us;
    const char *reason, *actor, *account;
    int64_t now_us;
    /* The limit of just this row, each number 0 for none, and its last decision, likewise. */
    int64_t sends, per_second, limited_us;
    const char *limit_reason, *limit_actor, *limit_account;
    /* Of the sends at a time, so many are with processes, each of which begins no more than it has;
     * and so many these could use when they last asked. */
    int64_t permits, wanted;
    /* Of the permits, those of processes that ended, whose sends may still be at the channel; and
     * when the first of these is free.  0: none. */
    int64_t permits_ended, ended_free_us;
    int64_t longest_hold_ms; /* for so long a send of these processes is under way at most */
    int64_t next_us;         /* of those a second: the next one may begin then; 0: now */
    /* The breaker of just this row, unknowns 0 for none; since when it is open, 0: it is closed;
     * how often it has opened; and its last decision, likewise. */
    int64_t unknowns, share, window_s, probe_s, opened_us, opened, breaker_us;
    const char *breaker_reason, *breaker_actor, *breaker_account;
    /* Of one that is open: so many probes had no answer; when the last one began, 0: none has yet;
     * whether that goes on; and when the next one may begin, at the latest where one goes on, 0:
     * now. */
    int64_t silent_probes, probed_us, probe_us;
    int probes;
} tl_pause_row;

/* Called once for each channel; returns 0 to go on. */
typedef int (*tl_pause_fn)(void *context, const tl_pause_row *row);
/* Tells every channel and operation that is known, by name; a channel as a whole only once that was
 * decided about.  What is used of a limit is as of the same moment, or one just after.  Needs a
 * reader's or an operator's account.  each() returns 0 to go on. */
TL_EXPORT tl_status tl_pause_list(tl_client *client, tl_pause_fn each, void *context);

#ifdef __cplusplus
}
#endif
#endif
