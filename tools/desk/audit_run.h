/*
 * Audits run one at a time, on a thread of their own, since they read every row.  What the last one
 * found stays until the next, and what the last statement showed until the next statement.
 */
#ifndef DESK_AUDIT_RUN_H
#define DESK_AUDIT_RUN_H

#include "desk.h"

#include "statement.h"

#include <tradelock/admin.h>

#define VIOLATIONS_MOST 200u
#define STATEMENT_NAME 128

#define FINDING_SHOWN 16 /* letters of a finding's name, which the command takes for it */
/* What is kept of a violation; `found` points into the texts behind it after violation_point(). */
struct violation {
    tl_violation found;
    char rule[32], serial_no[TL_SERIAL_MAX + 1], cust_no[TL_CUST_MAX + 1], op_code[TL_OP_MAX + 1];
    char account[385], sentence[512];
    char shard[33]; /* of a fleet: that has it */
    char finding[65], proposed_by[385], proposed_reason[TL_REMARK_MAX + 1];
};

/* After each copy. */
void violation_point(struct violation *violation);

/* One run, and what it found of one kind. */
struct audit_run {
    int has_run;
    /* Of a fleet: whose, or "" of all shards; and how many of them came to the end. */
    int is_of_fleet;
    char shard[33];
    unsigned done;
    char statement[STATEMENT_NAME]; /* whose payments were compared; "": none */
    tl_status status;               /* not TL_OK: some of it proves nothing, and problem says why */
    char problem[512];
    int64_t took_ms;
    tl_audit_counts counts;
    /* What the statement says, what its trades are of, and how much of it was left out. */
    tl_list_end paid, returned, trades;
    char aside[160];
    uint64_t open, closed; /* findings of this kind */
    struct violation violations[VIOLATIONS_MOST];
    unsigned violation_count; /* the first of the open ones */
};

struct audit_report {
    int is_running;
    struct audit_run books;     /* rows and history */
    struct audit_run statement; /* payments beside rows */
};

/* A statement that is compared, or was: then nobody changes it. */
struct compared {
    struct statement statement;
    char name[STATEMENT_NAME];
    char unfiled[640]; /* why its payments cannot be filed; "": they can */
    unsigned users;    /* under the keeper's mutex */
};

struct audit_keeper;

struct audit_keeper *audit_keeper_new(struct sessions *sessions); /* NULL: out of memory */
/* Stops the audit that runs. */
void audit_keeper_free(struct audit_keeper *keeper);
/* Of this shard, or of all of them (SHARD_NOBODY), one after the other; with a statement, or NULL,
 * which it takes over.  0: one runs already, or no thread can be made, and the statement is still
 * the caller's. */
int audit_start(struct audit_keeper *keeper, const struct visit *visit, size_t shard,
                struct compared *compared);
/* The run ends with its next page, and says so. */
void audit_stop(struct audit_keeper *keeper);
void audit_look(struct audit_keeper *keeper, struct audit_report *report);

/* The last one, until audit_put(); NULL: there is none. */
struct compared *audit_compared(struct audit_keeper *keeper);
void audit_put(struct audit_keeper *keeper, struct compared *compared);
void compared_free(struct compared *compared);
/* Each payment goes to the shard that has its customer, from first[shard] on; what is no customer to
 * the first one, and behind all of them what is of no shard that answers.  -1: out of memory. */
int split_payments(struct shards *shards, struct statement *statement, size_t *first);

/* The violation of this name and shard ("" without a fleet) among those that are kept, and the
 * statement that showed it, or "".  A customer who moved may have left the same finding behind.
 * 0: the last runs did not find it. */
int audit_find(struct audit_keeper *keeper, const char *finding, const char *shard,
               struct violation *to, char statement[STATEMENT_NAME]);
/* Who proposed to close it, as the server has it now; account "": nobody, or it is closed. */
struct closing_proposal {
    const char *finding;
    char account[385], reason[TL_REMARK_MAX + 1];
    int own; /* by the visitor's account, which cannot confirm it */
};
tl_status audit_proposal(const struct visit *visit, const char *finding,
                         struct closing_proposal *to);
/* Puts half of a closing on record, for the visitor's account, and in what is kept. */
tl_status audit_close(struct audit_keeper *keeper, const struct visit *visit,
                      const struct violation *found, int confirms, const char *reason);

#endif
