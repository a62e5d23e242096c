/*
 * A channel within the test's own process, which pays again for every send, so that a payment too
 * many or too few shows, and the workflow that uses it.
 */
#ifndef TESTS_PACKETS_FAKE_CHANNEL_H
#define TESTS_PACKETS_FAKE_CHANNEL_H

#include "scene.h"

#include <tradelock/workflow.h>

#include <stdatomic.h>

#define CHANNEL_MAX_HOLD_MS 60000

/* How it answers, and what it has done for the trade under way. */
extern struct channel {
    tl_execute_result answer;
    int pays;
    int declared; /* the business rows are; else a connection writes them */
    atomic_uint sent, paid, queried;
    /* Called within the callbacks, to disturb what follows. */
    void (*within_prepare)(void), (*within_execute)(void);
} channel;

/* It succeeds and pays, and has done nothing. */
void channel_begin(void);

/* The workflow of this operation, as it is registered; a success is a business row. */
tl_workflow channel_workflow(const char *op_code);
/* A registry of this client's with the operation WITHDRAW; ends the process when there is none. */
tl_workflows *channel_registry(tl_client *client);
tl_workflows *channel_registry_of(tl_client *client, int64_t commit_ms);

#endif
