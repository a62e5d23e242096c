/*
 * Releases of one service over one database: each has a channel for the withdrawal, with a name, a
 * contract and an address of its own, and may know former ones.
 */
#ifndef TESTS_WORKFLOWS_RELEASE_H
#define TESTS_WORKFLOWS_RELEASE_H

#include "house.h"

/* A channel: a name, a contract, and the simulator where it is. */
typedef struct bank {
    const char *name;
    withdraw_kind kind;
    const struct sim *sim;
    int only_asked; /* as a former channel: nothing is sent there any more */
    int is_lesser;  /* it does not promise to repeat its first answer */
} bank;

typedef struct release {
    tl_client *client;
    tl_workflows *workflows;
    struct channel *channels[1 + TL_FORMER_MAX];
} release;

/* former: may end with one without a name; NULL: none.  TL_OK, or what tl_client_open() or
 * tl_workflow_register() said; then nothing is open. */
tl_status release_open(release *self, const char *option_file, const bank *now, const bank *former,
                       tl_log_fn log, void *log_context);
void release_close(release *self);

/* One withdrawal in EUR, payee "Anna". */
tl_status release_pay(release *self, const char *serial, const char *cust, int64_t amount_minor,
                      uint32_t reclaim_epoch, tl_answer *answer);

#endif
