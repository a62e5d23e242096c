/*
 * What goes wrong on purpose.  Rules come first, in the order in which they were added; then
 * chance, which is a pure function of the seed, the endpoint, the channel key and which request of
 * that key this is, so that a run can be repeated whatever the order of threads.
 */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include "channel.h"

enum fault_kind {
    FAULT_NONE,
    FAULT_SLOW,              /* travels late: looked at only after delay_ms */
    FAULT_SLOW_PAYING,       /* taken at once, paid after delay_ms, answered then */
    FAULT_SLOW_ANSWER,       /* done at once, answered after delay_ms */
    FAULT_DECLINE,           /* refused for good */
    FAULT_ACCEPTED,          /* answered "accepted", paid after delay_ms */
    FAULT_ACCEPTED_DECLINED, /* the same, but declined in the end */
    FAULT_ERROR_BEFORE,      /* 503, nothing done */
    FAULT_ERROR_AFTER,       /* 500, done */
    FAULT_DROP_BEFORE,       /* connection closed, nothing done */
    FAULT_DROP_AFTER,        /* connection closed, done */
    FAULT_DUPLICATE,         /* "duplicate in progress", nothing done */
    FAULT_RATE_LIMIT,        /* 429, nothing done */
    FAULT_NOT_FOUND_FIRST,   /* a query does not see the payment yet */
    FAULT_PENDING,           /* a query calls a known payment pending */
    FAULT_UNREACHABLE,       /* a query is answered 503 */
    FAULT_DOUBLED,           /* a proxy forwards the request twice, and gives the second answer */
    FAULT_KIND_COUNT
};

struct fault {
    enum fault_kind kind;
    int64_t delay_ms;
    int64_t for_ms; /* not_found_first, pending: only that long after the first record;
                       0: at any age */
    int64_t lag_ms; /* a query by chance: besides, not found for that long */
    bool by_chance;
    char code[CODE_MAX + 1];
    char reason[REASON_MAX + 1];
};

/* The request for which a fault is drawn. */
struct fault_subject {
    enum endpoint endpoint;
    const char *channel_key;
    const char *serial_no; /* "" when the key is not known */
    const char *cust_no;
    int64_t number; /* which request of this key at this endpoint, from 1 */
};

struct fault_settings {
    double rate; /* 0 to 1; 0: no chance faults */
    uint64_t seed;
    int64_t slow_ms;   /* delay of the slow kinds */
    int64_t settle_ms; /* delay of the accepted kinds */
    int64_t lag_ms;    /* how long not_found_first lasts by chance */
    bool proxy;        /* only what can be done to any request */
};

struct faults;

struct faults *faults_new(const struct fault_settings *settings);
void faults_free(struct faults *faults);

/* Adds a rule from its JSON form (README.md); *rule is its number. */
bool faults_add(struct faults *faults, const json_t *body, int64_t *rule, struct problem *problem);
/* Changes chance: {"rate": 0 to 1, "seed": ...}; without a seed the old one stays. */
bool faults_chance(struct faults *faults, const json_t *body, struct problem *problem);
/* No more rules and no more chance; returns how many rules there were. */
int64_t faults_clear(struct faults *faults);
/* {"rate", "seed", "rules": [...]} */
json_t *faults_list(struct faults *faults);

/* FAULT_NONE for most.  Uses up one of the rule's count when a rule fits. */
void faults_draw(struct faults *faults, const struct fault_subject *subject, struct fault *fault);

const char *fault_name(enum fault_kind kind);

#endif
