/*
 * What this process promises of its channels (tl_channel_add()), and of which site it is.  Each of
 * its sessions says both before anything is asked for under its name, so that no two sessions that
 * live go by other contracts, or make other keys (sql/object/contract.sql).
 */
#ifndef TL_CLIENT_CONTRACTS_H
#define TL_CLIENT_CONTRACTS_H

#include "db/db.h"

#include <tradelock/layer.h>

#include <pthread.h>

struct tl_client;
struct contract;

typedef struct client_contracts {
    pthread_mutex_t mutex;
    struct contract *list; /* under the mutex; entries before a new one stay as they are */
} client_contracts;

void contracts_init(client_contracts *all);
void contracts_end(client_contracts *all);

/* As a session's row is there, on its connection.  TL_OK; TL_BAD_CONFIG: the site is another one;
 * TL_UNSAFE: some channel's contract is.  Else the server could not be asked. */
tl_status contracts_declare(struct tl_client *client, db *connection, const char *session_id);

#endif
