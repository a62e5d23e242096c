/*
 * layer.h - for a layer above the locks, such as the workflows, which keeps a client, checks texts
 * as the library does, and obeys the pauses of channels.
 */
#ifndef TRADELOCK_LAYER_H
#define TRADELOCK_LAYER_H

#include <tradelock/record.h>
#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tells the client that a layer uses it.  TL_OK.  Each attach needs its detach; until then
 * tl_client_close() closes nothing, and writes an alarm. */
TL_EXPORT tl_status tl_client_attach(tl_client *client);
TL_EXPORT void tl_client_detach(tl_client *client);

/* How many bytes the UTF-8 character has that begins here; 0: these bytes are none.  References and
 * remarks of endings consist of such characters.  Reads no further than a NUL. */
TL_EXPORT size_t tl_utf8_size(const char *character);

/* TL_OK: this is a key; none of it is read.  TL_INVALID: the sentence names the part. */
TL_EXPORT tl_status tl_key_check(const tl_key *key);

/* TL_OK: this is a batch that a request may name.  It is UTF-8 without control characters, neither
 * empty nor longer than TL_BATCH_MAX bytes.  TL_INVALID: the sentence says what is wrong. */
TL_EXPORT tl_status tl_batch_check(const char *batch);

#define TL_PATH 4096

/* TL_OK: nobody but root and this account can change the file, which says what is run or which server
 * is believed, or a folder above it; `resolved`, its path without symbolic links, is what to open.
 * TL_INVALID: the sentence says who can, or why it cannot be looked at. */
TL_EXPORT tl_status tl_writers_check(const char *path, char resolved[TL_PATH]);

/* What the request of this handle says of itself, as its row keeps it; NULL: nothing is said. */
TL_EXPORT const tl_said *tl_lock_said(const tl_lock *lock);

/*
 * TL_SAID_MAP(TL_KEEP) copies what a request says of itself from the struct `from` to the struct
 * `to`, whose texts are arrays; TL_SAID_MAP(TL_PASS) where they are pointers, and
 * TL_SAID_MAP(TL_POINT) to pointers of which NULL is not said.
 */
#define TL_KEEP(type, member, ...) TL_KEEP_##type(member)
#define TL_KEEP_MONEY(member) to->member = from->member;
#define TL_KEEP_TEXT(member) tl_text_keep(to->member, sizeof to->member, from->member);
#define TL_PASS(type, member, ...) to->member = from->member;
#define TL_POINT(type, member, ...) TL_POINT_##type(member)
#define TL_POINT_MONEY(member) to->member = from->member;
#define TL_POINT_TEXT(member) to->member = from->member[0] != '\0' ? from->member : NULL;

/* As much of a text as the space holds; NULL is "". */
static inline void tl_text_keep(char *to, size_t space, const char *from)
{
    size_t size = 0;

    for (; from && size < space - 1 && from[size] != '\0'; size++)
        to[size] = from[size];
    to[size] = '\0';
}

/*
 * Callbacks of a program return.  One that is left by an exception, a longjmp or the end of its
 * thread ends the process with one sentence: at once, or after a longjmp when its thread next calls
 * the library.  What it held is then brought to its end as after any crash.
 *
 * TL_CALLED(answer, "execute", call) makes a call of that name.
 */
typedef struct tl_callback {
    const char *name; /* NULL: it has returned */
    const char *around;
    const void *frame; /* of the one around it */
} tl_callback;

TL_EXPORT void tl_callback_begins(tl_callback *callback, const char *name, const void *frame);
TL_EXPORT void tl_callback_returned(tl_callback *callback);
TL_EXPORT void tl_callback_over(tl_callback *callback);
#define TL_CALLED(answer, name, call)                                                              \
    do {                                                                                           \
        __attribute__((cleanup(tl_callback_over))) tl_callback callback_;                          \
                                                                                                   \
        tl_callback_begins(&callback_, (name), __builtin_frame_address(0));                        \
        (answer) = (call);                                                                         \
        tl_callback_returned(&callback_);                                                          \
    } while (0)

/* From now on this thread's log lines about a key tell this amount, batch and trace id; NULL: none.
 * Lines of a lock tell its trade's in any case, or none.  tl_work_end() ends it, too. */
TL_EXPORT void tl_log_context_set(const tl_said *said);
/* What was set, never NULL; whoever sets another for a while copies this and sets it again. */
TL_EXPORT const tl_said *tl_log_context(void);
/* The trace context of it alone; NULL or "": none. */
TL_EXPORT void tl_log_trace_set(const char *traceparent);
TL_EXPORT const char *tl_log_trace(void);

/* Counts one kind of call of a channel, for tl_metrics_write(). */
typedef struct tl_calls tl_calls;

/* How a counter of calls is named in metrics. */
typedef struct tl_calls_names {
    const char *channel, *op_code; /* copied */
    /* Static texts, such as "execute", and what it may be answered: at most 8. */
    const char *call;
    const char *const *answers;
    unsigned count;
} tl_calls_names;

/* Gives the counter of these names, made on first use; whoever gives the same names gets the same.
 * It belongs to the client and lives as long, so nobody frees it.  TL_OK; TL_INVALID; TL_NO_MEMORY;
 * TL_WRONG_PROCESS or TL_WRONG_STATE of the client. */
TL_EXPORT tl_status tl_calls_of(tl_calls **out, tl_client *client, const tl_calls_names *names);
/* Counts a call that got the answer of this number, from 0 on, and how long it took.  Takes no
 * lock. NULL, or a number that has no name: nothing. */
TL_EXPORT void tl_calls_count(tl_calls *calls, unsigned answer, int64_t took_us);

/*
 * Channels that operators pause (`tradelock channel pause`), for one operation or as a whole.
 *
 * While a channel is paused, an ask for a trade of it that would be granted is answered
 * TL_OVERLOADED, and writes nothing.  A trade that is there answers as ever.  tl_lock_arm() arms no
 * send, and workers claim nothing, so that no attempt is used up and nothing is parked; what is
 * claimed already may still be asked for and ended.  Workflows do all of this by themselves.
 *
 * A pause takes hold in a process at its next heartbeat (beat_ms), and so does its end.  A send
 * that was granted or armed before may still leave, until its max_hold is over; so may that of an
 * ask whose answer was lost before.  A process that cannot read what is paused goes by what it read
 * last, and says so in the log as an alarm.
 */

/* Stands for all channels, and for what names none: operators who pause it drain the installation
 * (`tradelock drain`).  Then no trade is granted in any process, none is claimed by a compensating
 * attempt, and none is armed; what is held ends as ever, and evidence is taken.  Lease mutexes and
 * read-write locks are granted as ever: they send nothing, and may be held for days. */
#define TL_CHANNEL_ALL "*"

/* From when on something needs a person, for commands, the desk, workers and `doctor` alike; the
 * alerts, the dashboard and the pages say the same. */
#define TL_UNCLAIMED_S 60     /* a lane that is due for so long is claimed by nobody */
#define TL_HANGS_S 900        /* money that is in doubt for so long hangs */
#define TL_PAUSED_LONG_S 3600 /* a channel that is paused for so long may have been forgotten */

/* What a channel promises for an operation, and how long its word is awaited. */
typedef struct tl_promises {
    int idempotent, replays_first_answer, can_query, not_found_final, cancel_final;
    unsigned key_chars;
    int64_t window_ms, latency_ms, grace_ms; /* window_ms 0: for ever */
} tl_promises;

/*
 * Makes known that this channel moves money for this operation: operators can pause only what is
 * known.  tl_workflow_register() calls it; a service of bare locks does at its start.
 *
 * With promises this session goes by that contract, and so does each later one of this client.  All
 * sessions that live go by the same one, and it promises no more than those did that sent what is
 * in process still.
 *
 *     TL_OK       It is known, and the contract holds.  A client without a session writes nothing.
 *     TL_UNSAFE   A process lives that promises something else, or a trade is in process that was
 *                 sent under less.  The sentence names it.
 *     other       The database could not be asked.
 */
TL_EXPORT tl_status tl_channel_add(tl_client *client, const char *channel, const char *op_code,
                                   const tl_promises *promises);

/* TL_OK, or TL_OVERLOADED with a sentence: the channel is paused for the operation, or a breaker of
 * it is open.  channel NULL: some channel is.  No round trip. */
TL_EXPORT tl_status tl_channel_check(tl_client *client, const char *channel, const char *op_code);

/*
 * Channels that operators limit (`tradelock channel limit`): at most so many sends at a time and so
 * many a second, of all processes together, for one operation or all of a channel's.
 *
 * A send counts from the ask or the arming until the ending is called, or the handle is freed.  If
 * there is no room within half a second (at once, for a submitted ask), an ask that would be
 * granted is answered TL_OVERLOADED, and so is tl_lock_arm(): nothing is written, and no attempt is
 * used up. What was sent before a process heard of the limit is not counted.
 */

/*
 * A completion of the layer's own, which tl_client_completed() gives in its turn, with lock NULL.
 * Its room is made beforehand, so that completing cannot fail.  TL_OK; TL_NO_MEMORY, TL_INVALID, or
 * TL_WRONG_PROCESS or TL_WRONG_STATE of the client.  Whoever has made one puts it, from any thread,
 * or frees it; put, it is the client's.
 */
typedef struct tl_posting tl_posting;
TL_EXPORT tl_status tl_posting_new(tl_posting **out, tl_client *client, void *context);
TL_EXPORT void tl_posting_complete(tl_posting *posting, tl_status status);
TL_EXPORT void tl_posting_free(tl_posting *posting);

/* After TL_OVERLOADED: in about how many milliseconds it is worth another try; 0: not known. */
TL_EXPORT int64_t tl_lock_come_again_ms(const tl_lock *lock);

/*
 * Circuit breakers (`tradelock channel breaker`), for one operation or all of a channel's.  The
 * outcomes of sends are counted by their endings: TL_OUTCOME_UNKNOWN counts; a success, a decline,
 * TL_OUTCOME_ACCEPTED and TL_OUTCOME_PENDING end the row; all else counts for nothing.  Each
 * process counts in memory and tells the database in the round after a beat, so a breaker opens
 * within about two beats of the last outcome, and "in a row" is by the order of telling.
 *
 * While one is open, an ask that would be granted is answered TL_OVERLOADED: nothing is written,
 * and no attempt is used up.  The retry lane probes: one hold of all processes at a time, each at
 * least the breaker's interval after the one before it, may ask the channel (tl_lock_may_call()) or
 * arm a send.  A probe's answer closes the breaker; one without an answer uses up no attempt of its
 * trade. A probe of a process that was killed is free once its hold is over.  After three probes
 * without an answer an ask is let through as the next one, since one trade that never hears
 * anything may be all that is due; and whenever nobody of those whose turn it is probed for one
 * interval more, the others may. What was granted or armed before a process heard of the opening
 * may still be sent.
 */

/* Whether a breaker is open and the probe may be free, so that one due trade is worth a claim.  No
 * round trip. */
TL_EXPORT int tl_channel_may_probe(tl_client *client, const char *channel, const char *op_code);
/* Before a hold on the retry lane asks the channel or cancels: TL_OK; TL_OVERLOADED: a breaker is
 * open, and others probe; put it back. */
TL_EXPORT tl_status tl_lock_may_call(tl_lock *lock);
/* Whether this hold has the probe of an open breaker. */
TL_EXPORT int tl_lock_probes(const tl_lock *lock);
/* What such a call, or an own send, came to: whether there was an answer.  After an own send only
 * that send's counts.  An answer goes before TL_OUTCOME_UNKNOWN of the ending. */
TL_EXPORT void tl_lock_report_call(tl_lock *lock, int answered);

#ifdef __cplusplus
}
#endif
#endif
