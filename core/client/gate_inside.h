/* A gate, as the files of the gates share it: gate.c, gate_limit.c, gate_breaker.c. */
#ifndef TL_CLIENT_GATE_INSIDE_H
#define TL_CLIENT_GATE_INSIDE_H

#include "base/random.h"
#include "client/client.h"
#include "client/gate.h"

struct gate {
    struct gate *next;
    char channel[TL_CHANNEL_MAX + 1], op_code[TL_OP_MAX + 1]; /* "": all operations together */
    unsigned read; /* the parts that the look under way has read */

    int is_paused;

    /* The limit, as read last; 0: any number.  was_limited: the metrics have it from now on. */
    uint64_t sends, per_second;
    int was_limited;
    /* Its share, of one session.  share_era: another one for each, so that what an earlier session
     * held is not given back to this one. */
    char session_id[RANDOM_UUID];
    unsigned share_era;
    uint64_t used, may; /* sends under way; up to so many may be */
    uint64_t waiting, peak;
    int64_t hold_ms;
    int has_row;           /* the database may have permits of this session */
    int asks;              /* a thread takes a share now */
    int64_t next_share_ms; /* nothing was free: no earlier is another share taken */
    /* Moments at which a send may begin, by the clock of the boot. */
    int64_t slot_us, interval_us;
    int64_t next_slot_ms; /* as next_share_ms */
    uint64_t slots, batch;
    uint64_t refused[GATE_LANES][GATE_NUMBERS];

    /* The breaker, as read last. */
    uint64_t unknowns, share; /* 0: there is no such breaker, or no share */
    int64_t probe_ms;         /* from one probe to the next */
    uint64_t era, in_a_row;
    int is_open;
    int is_said;           /* the log says that it is open */
    int64_t next_probe_ms; /* open: no earlier is a probe free, by the clock of the boot */
    /* Not told yet, and of this era. */
    uint64_t tail, fails, ended; /* unknown ones since the last answer, unknown ones, all */
    int answered;
    int tells; /* a thread tells now */
    /* The probe of this process; 0: none.  One that is not over by then is nobody's. */
    uint64_t probe;
    int64_t probe_until_ms;
    int is_over; /* and not told yet */
    gate_heard came_to;
};

/* All below need the mutex held, but for gate_called().  Those that take a client and a pass, and
 * the rounds, let go of it meanwhile. */

/* The gate of the operation, then that of the channel as a whole; NULL: there is none. */
struct gate *gate_find(const channel_gates *all, const char *channel, const char *op_code,
                       unsigned i);

/* A procedure ran on this connection, which goes back to the pool: the text that it left. */
#define GATE_TEXT 96
tl_status gate_called(struct tl_client *client, db *connection, db_answer answer, const char *what,
                      char text[GATE_TEXT]);

/* The limit (gate_limit.c).  *at_us: the send begins no earlier. */
void gate_set_limit(struct tl_client *client, struct gate *one, uint64_t sends,
                    uint64_t per_second);
tl_status gate_take_permits(struct tl_client *client, gate_pass *pass, const gate_send *send,
                            int64_t *at_us);
void gate_free_permits(gate_pass *pass);
void gate_keep_share(struct tl_client *client, struct gate *one);
void gate_leave_share(struct tl_client *client, struct gate *one, int64_t until_ms);

/* The breaker (gate_breaker.c).  Broken: nothing new is sent, since it is open, or will be once this
 * process has told. */
void gate_set_standing(struct tl_client *client, struct gate *one, int is_open, uint64_t era,
                       uint64_t in_a_row, int64_t again_ms);
void gate_end_breaker(struct tl_client *client, struct gate *one);
int gate_is_broken(const struct gate *one);
tl_status gate_refuse_broken(const struct tl_client *client, gate_pass *pass,
                             const struct gate *one);
int gate_probe_is_free(struct tl_client *client, const char *channel, const char *op_code,
                       int is_ask);
tl_status gate_pass_breakers(struct tl_client *client, gate_pass *pass, const gate_send *send);
void gate_end_probes(gate_pass *pass, gate_heard heard);
void gate_count(struct gate *one, gate_heard heard);
void gate_tell(struct tl_client *client, struct gate *one);

#endif
