/* What the contestants made of tradelock share. */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <tradelock/tradelock.h>

extern tl_client *bench_client;

/* Opens bench_client; flags TL_CLIENT_... */
void client_open(unsigned flags);

/* A handle for this trade, not asked for yet. */
tl_lock *client_lock(const char *serial, const char *cust);

#endif
