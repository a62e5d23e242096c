/*
 * How things are now.  One picture of each shard for everybody, taken at most every three seconds by
 * whoever asks first, so that fifty people who watch cost the database no more than one.  While
 * somebody takes it, the others are shown the one before.
 */
#ifndef DESK_NOW_H
#define DESK_NOW_H

#include "desk.h"
#include "house.h"

#define AGES 4
#define BARS_MOST 24u
#define ALARMS_MOST 8u
#define PROCESSES_MOST 64u
#define PERSONS_MOST 30u
#define PAUSED_MOST 16u
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
    int64_t oldest_us; /* creation of the oldest trade; 0: none */
};

/* What is in doubt or parked at one channel in one currency, by age. */
struct bar {
    char channel[TL_CHANNEL_MAX + 1], currency[TL_CURRENCY + 1];
    uint64_t count[AGES], trades;
    char minor[TL_SUM_TEXT];
    int64_t oldest_us;
};

/* A trade that waits for a person. */
struct person {
    tl_view view;
    char proposed_by[385]; /* "": nobody has proposed anything */
    char decision[8];
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

/* A channel that operators have paused, or whose breaker is open; the pointers of `row` are not
 * set. */
struct stopped {
    char channel[TL_CHANNEL_MAX + 1], op_code[TL_OP_MAX + 1]; /* "": as a whole */
    char account[128], reason[TL_REMARK_MAX + 1];
    tl_pause_row row;
};

struct stops {
    struct stopped of[PAUSED_MOST];
    unsigned count;
    int cut;
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
    struct sums doubt, parked, queued, live, conflict;
    struct bar bars[BARS_MOST];
    unsigned bar_count;
    int bars_cut;
    struct person persons[PERSONS_MOST];
    unsigned person_count;
    int persons_cut;
    unsigned closings; /* findings of an audit that somebody proposed to close */
    struct running processes[PROCESSES_MOST];
    unsigned process_count;
    struct stops paused, broken;
    tl_restore restore;
    /* From here on it is taken over from the picture before, as long as it is new enough. */
    int64_t begun_ms, pace_ms, doctor_ms; /* of the desk's clock; 0: never */
    struct alarm alarms[ALARMS_MOST];
    unsigned alarm_count;
    /* Payments of each minute, newest first; -1: not counted. */
    int64_t minute_us;
    int64_t paid[TL_PACE_MINUTES];
    struct channel channels[CHANNELS_MOST];
    unsigned channel_count;
    int channels_cut;
};

struct now_keeper;

struct now_keeper *now_keeper_new(void); /* NULL: out of memory */
void now_keeper_free(struct now_keeper *keeper);
/* Copies the newest picture of the shard at which the visit works; takes one if it is older than
 * three seconds and nobody does.  Where there is none, or the last could not be taken, everybody
 * takes their own. */
tl_status now_look(struct now_keeper *keeper, const struct visit *visit, struct now *now);
/* Adds what can be added, which are figures, bars and payments. */
void now_add(struct now *total, const struct now *shard);

/* Somebody has changed something: a picture that was begun before is old. */
void now_forget(struct now_keeper *keeper);

/* From which age on a trade counts as older: a name, and the least age. */
extern const struct age {
    const char *name;
    int64_t from_us;
} ages[AGES];

#endif
