/*
 * A fleet whose service is the sample workflow: two shards or more, one real channel.
 */
#ifndef TESTS_FLEET_BANK_H
#define TESTS_FLEET_BANK_H

#include "shards.h"
#include "simulator/sim.h"
#include "withdraw.h"

#include <tradelock/fleet_workflow.h>

typedef struct bank {
    shards shards;
    struct sim sim;
    char url[64];
} bank;

void bank_open(bank *self, size_t count);
void bank_close(bank *self);

/* What one process has open. */
typedef struct branch {
    bank *of;
    tl_fleet *fleet;
    tl_fleet_workflows *workflows;
} branch;

/* calls: as in tl_fleet_workflows_options. */
void branch_open(branch *self, bank *of, unsigned calls);
void branch_close(branch *self);
tl_status branch_pay(branch *self, const char *serial, const char *cust_no, int64_t amount_minor);

/* A rule for the simulator, as JSON. */
void bank_rule(bank *self, const char *rule);
/* Trades that a worker has to do with still, at all shards. */
long long bank_open_trades(bank *self);
/* Every payment of the channel is in one shard's ledger and the reverse; nobody was paid twice; each
 * row is at the shard of its customer; accounts and ledger agree. */
void bank_books(bank *self, int64_t payments);

#endif
