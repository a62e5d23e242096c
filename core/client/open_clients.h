/* Which clients of this process are open, so that closing one twice is noticed. */
#ifndef TL_CLIENT_OPEN_CLIENTS_H
#define TL_CLIENT_OPEN_CLIENTS_H

#include <tradelock/tradelock.h>

void open_clients_add(tl_client *client);
/* Compares the pointer only, and never follows it. */
int open_clients_has(const tl_client *client);
void open_clients_remove(const tl_client *client);

#endif
