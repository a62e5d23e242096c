/*
 * The gates of the channels: what operators set of each channel and operation, as this process read
 * it last, and its share of that.  They answer one question: may a send of this channel and
 * operation begin now; if not, why, and when is it worth another try?
 *
 *     drain     The installation drains: nothing is begun, nothing is claimed.  It is the pause of
 *               TL_CHANNEL_ALL, and gives notice of a beat.
 *     pause     Nothing new is sent.
 *     breaker   Outcomes of sends were unknown: nothing is sent but a probe, which one process has
 *               at a time.  Outcomes are counted in memory, and told in the round after a beat.  A
 *               process whose own count is at the bound refuses at once.
 *     limit     So many sends at a time, so many a second.  This process takes permits and moments
 *               in blocks, which all threads use, so that most sends cost no statement.  A round
 *               gives back what is idle.  A session's permits are free again when it has ended and
 *               its longest hold is over.
 *
 * One statement reads all of them, once a session begins and in the round after each beat; what was
 * read last holds while that fails.  So a trade looks into memory only, where no limit or open
 * breaker is.  Their shares and probes are taken by procedures (sql/object/channel.sql).
 *
 * An ask that looked before a drain was read may be under way for long: its callback runs, its
 * group's commit is late, its answer is lost.  Nobody else sees a row of it.  So each ask and each
 * claim is counted from before it looks until its row tells; and a process obeys a drain once it
 * has read it and the count was 0.  Who looks later is refused.  Its heartbeat says so, and
 * `tradelock drain` waits for that word of every session.
 *
 * Who waits holds no connection, and a permit of the same send at most.
 */
#ifndef TL_CLIENT_GATE_H
#define TL_CLIENT_GATE_H

#include "base/life.h"
#include "db/db.h"

#include <tradelock/tradelock.h>

#include <pthread.h>
#include <stdatomic.h>

struct tl_client;
struct gate;

typedef struct channel_gates {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a share was taken or given back */
    /* Under the mutex.  It grows at its front; what is in it stays there until the end. */
    struct gate *list;
    int fails; /* the last look failed, which was said */
    struct {
        int64_t since_us; /* the moment of the decision; 0: there is none */
        int64_t read_ms;  /* boot time, when a drain was first read */
        int64_t from_ms;  /* it holds from this moment on, by the clock of the boot, */
        int holds;        /* and did so once */
        int is_obeyed;
    } drain;
    /* Atomic: whether there are any; how many asks and claims are under way; whether another shard of
     * the fleet leads to the same database, or to a copy of it (fleet/keeper.c): then nothing begins
     * here. */
    atomic_int any;
    atomic_uint under_way;
    atomic_int is_copy;
} channel_gates;

/* What a call of the channel came to. */
typedef enum gate_heard { GATE_NOTHING, GATE_UNKNOWN, GATE_ANSWER } gate_heard;

/* What one hold has of the gates of its operation, and of its channel as a whole.  All 0: nothing.
 * A hold is asked about by one thread at a time. */
#define GATES_OF_ONE 2
typedef struct gate_pass {
    int is_entered; /* an ask with it is under way, for which a drain waits */
    struct gate *permit[GATES_OF_ONE];
    unsigned era[GATES_OF_ONE];
    const life *life; /* under which the permits were taken */
    struct gate *probe[GATES_OF_ONE];
    uint64_t number[GATES_OF_ONE];
    gate_heard heard; /* what its last call that was no send came to */
    int is_counted;   /* what its send came to was counted */
    int64_t again_ms; /* it was refused: about when it is worth another try; 0: not known */
} gate_pass;

void gates_init(channel_gates *all);
/* here: in the process that made it, not in a child after fork. */
void gates_end(channel_gates *all, int here);

/* Once a session begins, on a connection that nobody else uses now.  TL_OK: what was read holds.
 * Else the last look does, and the log says once why. */
tl_status gates_look(struct tl_client *client, db *connection);
/* After a beat: tells what was counted, looks again, and gives back what is idle. */
void gates_round(struct tl_client *client);
/* Before the session ends: gives back all that is not used, and tells what was counted. */
void gates_leave(struct tl_client *client);

/* From memory alone: TL_OK, or TL_OVERLOADED with a sentence: this channel (NULL: any; "": none is
 * named) is paused for the operation, or the installation drains, or (unless pauses_only) a breaker
 * is open.  TL_BAD_CONFIG: another shard is a copy. */
tl_status gate_check(struct tl_client *client, const char *channel, const char *op_code,
                     int pauses_only);
/* Whether a limit of the channel is in force, so that gate_begin() may wait. */
int gate_is_limited(struct tl_client *client, const char *channel);

/* As gate_check() of pauses only, and with TL_OK an ask is counted as under way, until gate_leave(). */
tl_status gate_enter(struct tl_client *client, gate_pass *pass, const char *channel,
                     const char *op_code);
/* The same, and it is not asked whether it may begin: an earlier one left it in doubt. */
void gate_stay(struct tl_client *client, gate_pass *pass);
void gate_leave(struct tl_client *client, gate_pass *pass);

/*
 * Lets one send begin, under this life and for hold_ms at most; waits for it as long as wait_ms.
 * What the pass has already is not taken again.
 *
 *     TL_OK           It may begin now.
 *     TL_OVERLOADED   Not now, and the pass has no permit; pass->again_ms.
 *     other           The database could not be asked, and the pass has no permit.
 */
typedef enum gate_kind {
    GATE_ASK,  /* enters; where a breaker is open, only in its turn */
    GATE_ARM,  /* of a compensating attempt */
    GATE_QUERY /* no send: a call of the channel, which a breaker alone may refuse */
} gate_kind;
typedef struct gate_send {
    gate_kind kind;
    const char *channel, *op_code;
    const life *life;
    int64_t hold_ms, wait_ms; /* wait_ms 0: it shares its thread, and is no probe either */
} gate_send;
tl_status gate_begin(struct tl_client *client, gate_pass *pass, const gate_send *send);
/* Refuses for now, with a sentence, whatever it is that refuses; returns TL_OVERLOADED. */
tl_status gate_refuse(gate_pass *pass, int64_t again_ms, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

int gate_has_permit(const gate_pass *pass);
int gate_has_probe(const gate_pass *pass);
/* The send did not begin: its permit is free. */
void gate_give_back(struct tl_client *client, gate_pass *pass);
/* The hold's sends are over, and came to this; counted once, however often it is called. */
void gate_over(struct tl_client *client, gate_pass *pass, const char *channel, const char *op_code,
               gate_heard heard);
/* Nothing is under way with it any more. */
void gate_drop(struct tl_client *client, gate_pass *pass);

/* The moment of the decision to drain that is obeyed; 0: none, or not yet. */
int64_t gates_obeyed(struct tl_client *client);
/* For how long this process has known that the installation drains, or will in a moment; negative:
 * it does not. */
int64_t gates_drained_ms(struct tl_client *client);

/* What this process did at a gate since it first read it. */
typedef enum gate_number { GATE_BY_SENDS, GATE_BY_RATE, GATE_NUMBERS } gate_number;
#define GATE_LANES 2 /* asks; compensating attempts */
typedef struct gate_counts {
    const char *channel, *op_code;
    int was_limited, has_breaker, is_open;
    uint64_t used; /* sends under way */
    uint64_t refused[GATE_LANES][GATE_NUMBERS];
} gate_counts;
/* The next one, the first after NULL; NULL: there is no more. */
const struct gate *gates_next(channel_gates *all, const struct gate *after, gate_counts *counts);

#endif
