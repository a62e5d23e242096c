/* Clients of the library for tests that link it. */
#ifndef TESTS_SUPPORT_CLIENT_H
#define TESTS_SUPPORT_CLIENT_H

#include "support/server.h"

#include <tradelock/tradelock.h>

/* One with these options: CLIENT(.config_file = file, .flags = TL_CLIENT_NO_JANITOR).  Ends the
 * process where there is none. */
#define CLIENT(...)                                                                                \
    client_opened(&(tl_client_options){.version = TL_CLIENT_OPTIONS_VERSION, __VA_ARGS__})

static inline tl_client *client_opened(const tl_client_options *options)
{
    tl_client *client = NULL;
    const tl_status status = tl_client_open(&client, options);

    if (status != TL_OK)
        server_panic("no client: %s: %s", tl_status_name(status), tl_error_message());
    return client;
}

static inline tl_stats stats_of(const tl_client *client)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    if (tl_client_stats(client, &stats) != TL_OK)
        server_panic("no counters: %s", tl_error_message());
    return stats;
}

#endif
