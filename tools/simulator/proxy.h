/*
 * The simulator in front of another channel: what it is asked it asks that one, and goes wrong on
 * the way.  README.md is the contract.
 *
 * Before a byte of a request may leave, the ledger has a line on the disk that says so; before an
 * answer is given, it has a line that says what came back.  So whoever kills the proxy finds in the
 * ledger every request that the upstream may have seen; those without a second line may have been
 * forwarded or not.
 */
#ifndef SIM_PROXY_H
#define SIM_PROXY_H

#include "handlers.h"
#include "options.h"

struct proxy;

struct proxy *proxy_open(const struct options *options, struct stop_signal *stop,
                         struct problem *problem);
/* Accepts NULL.  Needs: no request is under way. */
void proxy_close(struct proxy *proxy);

/* False when the proxy would forward to itself. */
bool proxy_check_address(const struct proxy *proxy, const struct sockaddr_in *address,
                         struct problem *problem);

void proxy_handle(struct house *house, const struct request *request, struct reply *reply);

#endif
