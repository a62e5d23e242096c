/* What is known of a trade when it is explained, and the parts that tell it. */
#ifndef TL_ADMIN_EXPLAIN_H
#define TL_ADMIN_EXPLAIN_H

#include "base/text.h"
#include "client/blocker.h"

#include <tradelock/admin/channels.h>
#include <tradelock/admin/decisions.h>
#include <tradelock/admin/explain.h>
#include <tradelock/admin/trades.h>

/* One answer of the channel in the trade's epoch: "pending", how often, first and last. */
typedef struct explain_answer {
    char word[48], detail[TL_REMARK_MAX + 1]; /* detail: what the callback remarked last */
    char verb; /* 's' sent, 'a' asked, 'c' told to cancel, 'n' not sent */
    unsigned count;
    int64_t first_us, last_us;
} explain_answer;

#define EXPLAIN_ANSWERS 12
#define EXPLAIN_HOLDERS 6

/* A process that held the trade. */
typedef struct explain_holder {
    char name[96]; /* "program pid@host" */
    unsigned count;
    int first_lane;
    int64_t last_us;
} explain_holder;

/* A proposal that waits for a second operator. */
typedef struct explain_proposal {
    tl_decision decision;
    int own;
    char proposer[256];
} explain_proposal;

/* A pause or limit of its channel, or a breaker of it that is open; of `row` no pointer is set. */
typedef struct explain_hold {
    char name[2 * TL_CHANNEL_MAX + 16], by[256], why[TL_REMARK_MAX + 1];
    int is_of_op;
    tl_pause_row row;
} explain_hold;

#define EXPLAIN_HOLDS 2

#define EXPLAIN_PROPOSALS 3 /* one of each decision */

typedef struct explaining {
    tl_client *client;
    tl_key key;
    unsigned attempts_max;
    tl_trade_each each; /* NULL again where a function wants no more */
    void *context;

    tl_view view; /* the row that is explained */
    int has_sync, has_log, restored;
    explain_hold paused; /* operators have paused its channel; its name is "": they have not */
    /* What operators limit of its channel: for its operation, and as a whole. */
    explain_hold limits[EXPLAIN_HOLDS];
    unsigned limit_count;
    explain_hold breakers[EXPLAIN_HOLDS]; /* likewise */
    unsigned breaker_count;
    int64_t
        due; /* so many attempts of its operation are due, read where there is a limit a second */
    int is_strange;     /* no process that lives has registered its channel, but others for it */
    int is_unserved;    /* no process that lives has registered its operation */
    int retry_waits;    /* its lane is open, and nobody works in it */
    int by_hand, filed; /* SQL changed it; it was lost in a restore, and made by a filing */
    explain_answer answers[EXPLAIN_ANSWERS]; /* in the order of their first time */
    unsigned answer_count, arms, deaths;
    int64_t first_sent_us, last_sent_us, parked_us, ended_us;
    explain_holder holders[EXPLAIN_HOLDERS];
    unsigned holder_count, other_holders;
    struct text_buffer people; /* what was filed and decided: texts, each with its NUL */
    explain_proposal proposals[EXPLAIN_PROPOSALS];
    unsigned proposal_count;
    tl_decision decided; /* failed or paid, which a worker carries out; 0: nothing */
    tl_status status;
} explaining;

/* Tells one sentence; command "" for none. */
void explain_say(explaining *e, tl_topic topic, const char *command, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* "It ..." */
const char *explain_decided(tl_decision decision);

/* Who is in the way of others now, if this account may see it. */
db_answer explain_blocker(tl_client *client, blocker *found);

/* explain_said.c: takes one step of history, oldest first. */
void explain_take_step(explaining *e, const tl_step *step);
void explain_channel(explaining *e);
void explain_before(explaining *e);

/* explain_next.c.  Nobody holds it, and it is to be asked about, sent or tried again. */
int explain_is_waiting(const tl_view *view);
void explain_state(explaining *e);
void explain_next(explaining *e);
void explain_end(explaining *e);

/* explain_act.c */
void explain_act(explaining *e);

#endif
