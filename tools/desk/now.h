/*
 * How things are now.  One picture of each shard for everybody, taken at most every three seconds by
 * whoever asks first, so that fifty people who watch cost the database no more than one.  While
 * somebody takes it, the others are shown the one before.
 */
#ifndef DESK_NOW_H
#define DESK_NOW_H

#include "desk.h"
#include "facts.h"
#include "house.h"

#define AGES 4
#define ALARMS_MOST 8u
#define PROCESSES_MOST 64u
#define GROUPS_MOST 30u
#define MANY_PROPOSED 8u
#define WAITS_MOST 64u
#define CHANNELS_MOST 256u
#define CHANNELS_SHOWN 24u /* on the page Now; the page Channels shows all */
#define SUMS_MOST 6u

/* Money in one currency; "" where trades told no amount. */
struct sum {
    char currency[TL_CURRENCY + 1];
    uint64_t count;
    char minor[TL_SUM_TEXT];
};

struct sums {
    struct sum of[SUMS_MOST];
    unsigned count;
    uint64_t trades;
    int64_t oldest_us; /* creation of the oldest trade; 0: none, or not known */
};

/* What waits for one channel in one operation, by age; "": the trades did not say. */
struct waits {
    char channel[TL_CHANNEL_MAX + 1], op_code[TL_OP_MAX + 1];
    struct sums age[AGES];
};

/* Trades that wait for a person for one cause. */
enum group_kind { GROUP_CONFLICT, GROUP_PROPOSED, GROUP_PARKED };
struct group {
    enum group_kind kind;
    char channel[TL_CHANNEL_MAX + 1];
    char reason[TL_REMARK_MAX + 1];
    char by[385], said[8]; /* of what was proposed */
    struct sums sums;
    char serial_no[TL_SERIAL_MAX + 1], cust_no[TL_CUST_MAX + 1], op_code[TL_OP_MAX + 1]; /* one */
};

struct alarm {
    int is_unsafe;
    char check[32], sentence[512];
};

struct running {
    char program[64], host[64], operations[256];
    uint64_t pid;
    int alive;
    int64_t started_us, silent_us;
};

/* What became of an operation's trades at a channel; the pointers of `state` are not set. */
struct channel {
    tl_channel_state state;
    int64_t now_us; /* while it is written */
    char name[TL_CHANNEL_MAX + 1], op_code[TL_OP_MAX + 1];
};

struct now {
    int64_t now_us; /* the server's */
    int cut;        /* more trades are in process than were looked at */
    int64_t
        away_us; /* of the desk's clock: since when the database does not answer, so that this is
                      * the picture before; 0: it does */
    struct sums doubt, parked, queued, conflict; /* doubt: also what is looked after just now */
    struct waits waits[WAITS_MOST];
    unsigned wait_count;
    struct group groups[GROUPS_MOST];
    unsigned group_count;
    int groups_cut; /* there are more, or more in them */
    tl_overview overview;
    /* Acts that proposed something of many trades, which wait for a second operator. */
    struct many_proposed {
        uint64_t act_no, trades;
        char by[385], said[8];
    } many[MANY_PROPOSED];
    unsigned many_count;
    unsigned closings; /* findings of an audit that somebody proposed to close */
    struct running processes[PROCESSES_MOST];
    unsigned process_count;
    struct stops paused, broken;
    tl_restore restore;
    /* From here on it is taken over from the picture before, as long as it is new enough. */
    int64_t begun_ms, pace_ms, doctor_ms; /* of the desk's clock; 0: never */
    struct alarm alarms[ALARMS_MOST];
    unsigned alarm_count;
    /* Of each minute, newest first, what was paid, and what was asked for and had no end a minute
     * later; -1: not counted. */
    int64_t minute_us;
    unsigned whole; /* so many of them the last reading counted */
    int64_t paid[TL_PACE_MINUTES], late[TL_PACE_MINUTES];
    struct channel channels[CHANNELS_MOST];
    unsigned channel_count;
    int channels_cut;
};

struct now_keeper;

struct now_keeper *now_keeper_new(void); /* NULL: out of memory */
void now_keeper_free(struct now_keeper *keeper);
/* Keeps an act of many trades among those that wait (page_many.c). */
void many_keep(struct now *now, const tl_proposal *proposal);
/* Copies the newest picture of the shard at which the visit works; takes one if it is older than
 * three seconds and nobody does.  Where there is none, or the last could not be taken, everybody
 * takes their own.  Unless TL_OK *now is the one before, or empty where there was none, and says since
 * when none can be taken.  visit->client NULL: `status` says why the database cannot be asked. */
tl_status now_look(struct now_keeper *keeper, const struct visit *visit, tl_status status,
                   struct now *now);
/* Adds the money that waits, and payments. */
void now_add(struct now *total, const struct now *shard);
void sums_add(struct sums *sums, const struct sums *more);

/* Somebody has changed something: a picture that was begun before is old. */
void now_forget(struct now_keeper *keeper);

/* How long a trade has waited since it was asked for. */
extern const char *const ages[AGES];

#endif
