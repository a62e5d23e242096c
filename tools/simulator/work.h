/* A request while it is handled, by the channel or by the proxy: its answer, its fault, and its two
 * lines in the request log. */
#ifndef SIM_WORK_H
#define SIM_WORK_H

#include "handlers.h"

struct work {
    struct house *house;
    const struct request *request;
    struct reply *reply;
    struct fault fault;
    const char *injected; /* the fault that really happened, for the log */
    const char *outcome;  /* for the log */
    bool received;        /* the log has a line for its arrival */
};

/* Clears the reply. */
void work_begin(struct work *work, struct house *house, const struct request *request,
                struct reply *reply);
/* Counts the request, draws its fault and logs its arrival.  differs NULL: nothing is compared. */
void work_receive(struct work *work, const struct fault_subject *subject, const char *differs);
/* Counts and logs what became of it. */
void work_end(struct work *work);

void reply_json(struct work *work, int status, const char *outcome, json_t *body);
void reply_error(struct work *work, int status, const char *sentence);
/* Of a request that is none; counts it. */
void reply_bad(struct work *work, int status, const char *sentence);
void reply_nothing(struct work *work);

/* Counts a fault when it really changes something. */
void inject(struct work *work, enum fault_kind kind);
/* The faults that do nothing else.  True when the request is over. */
bool fault_before(struct work *work);
/* The faults that hit after the work was done.  True when the request is over. */
bool fault_after(struct work *work);

#endif
