/*
 * What a compensating attempt does next, as a pure function of what is known: it asks no clock, no
 * database and no channel.  compensate.c calls it again after each thing that it learned, until the
 * action is an ending.  tests/workflows/test_resolver.c goes through every row of the table in
 * workflows/README.md.
 */
#ifndef TL_WORKFLOWS_RESOLVER_H
#define TL_WORKFLOWS_RESOLVER_H

#include <tradelock/lane.h>
#include <tradelock/workflow.h>

/* Why a trade was parked; kept in the row and shown to the operators. */
#define PARK_ATTEMPTS "attempts used up"
#define PARK_APPLY "apply failed"
#define PARK_POISON "poison"
#define PARK_CONTRADICTION "contradiction"
#define PARK_CONFLICT "conflict"
#define PARK_DEADLINE "in doubt after the deadline"
#define PARK_NO_WAY "in doubt, cannot send again"
/* Why a decision of two operators is not carried out; at most 63 characters each. */
#define PARK_PENDING "operators said failed, channel pending"
#define PARK_PAID "operators said failed, channel paid it"

typedef struct resolver_facts {
    /* The channel's contract and the policy. */
    tl_channel channel;
    int only_asked; /* nothing is sent there any more */
    int nobody;     /* the row names a channel that is not registered: it is not called */
    int has_cancel;
    int64_t grace_ms;
    unsigned attempts_max;

    /* The row as it was claimed, brought up to date after a send. */
    int64_t now_us, send_until_us, deadline_us, not_found_since_us; /* 0: none */
    uint32_t sends, attempts;
    int parked, conflict, seen_by_channel, cancel_tried;

    /* Evidence of this epoch and of the row's own channel key. */
    int success_evidence, failure_evidence, decline_evidence;
    /* What two operators decided about this epoch: a tl_decision, or 0. */
    int decided;
    int although_pending; /* they want it booked although the channel says pending */

    /* What this attempt has learned. */
    int queried, cancelled, sent; /* 1: this attempt did that */
    tl_query_result query;
    tl_cancel_result cancel;
    tl_execute_result execute;
    int declined; /* the send was declined, and a query is to confirm that */
} resolver_facts;

typedef enum resolver_step {
    RESOLVE_QUERY,   /* ask the channel, decide again */
    RESOLVE_CANCEL,  /* try to cancel, decide again */
    RESOLVE_SEND,    /* arm and send the same key, decide again */
    RESOLVE_SUCCEED, /* P -> Y */
    RESOLVE_FAIL,    /* P -> F, with proof */
    RESOLVE_WAIT,    /* put back by schedule, not before not_before_us */
    RESOLVE_PARK     /* put back for a person, because reason */
} resolver_step;

typedef struct resolver_action {
    resolver_step step;
    tl_proof proof;        /* FAIL */
    int by_evidence;       /* SUCCEED, FAIL: the outcome was filed before, not learned now */
    int refused;           /* PARK: the operators' decision is not carried out, and is over */
    tl_outcome outcome;    /* WAIT, PARK: what the ending says of the last send */
    int64_t not_before_us; /* WAIT: looking earlier cannot help; 0: no such moment */
    const char *reason;    /* PARK; NULL: keep the reason that is there */
    tl_findings findings;  /* WAIT, PARK */
} resolver_action;

resolver_action resolver_decide(const resolver_facts *facts);

#endif
