/* The workflow as a plug-in: `tradelock-worker --plugin payout.so` brings to an end what the
 * service left undone. */
#include "payout.h"

#include <tradelock/plugin.h>

static tl_status open_it(tl_client *client, tl_workflows *workflows, const char *config_file,
                         void **state)
{
    payout *self = NULL;
    tl_status status = payout_open(&self, client, workflows, config_file);

    *state = self;
    return status;
}

static void close_it(void *state)
{
    payout_close(state);
}

const tl_plugin tradelock_plugin = {.version = TL_PLUGIN_VERSION,
                                    .size = sizeof(tl_plugin),
                                    .name = "payout",
                                    .open = open_it,
                                    .close = close_it};
