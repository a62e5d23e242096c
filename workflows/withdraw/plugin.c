/*
 * The workflow as a plug-in: `tradelock-worker --plugin withdraw.so` brings to an end what the
 * service left undone.  The service opens the same entry, so that both believe the same of the
 * channel: what stands under [service-withdraw] of the settings file.
 */
#include "withdraw.h"

#include <tradelock/plugin.h>

#include <ini.h>
#include <stdlib.h>
#include <string.h>

#define SECTION "service-withdraw"

typedef struct settings {
    char *url;
    withdraw_options options;
    int wrong;
} settings;

/* Sections of others are passed over, whatever stands in them. */
static int take_setting(void *context, const char *section, const char *name, const char *value)
{
    settings *to = context;

    if (strcmp(section, SECTION) != 0)
        return 1;
    if (strcmp(name, "channel_url") == 0 && to->url == NULL)
        to->url = strdup(value);
    else if (strcmp(name, "channel") == 0)
        to->wrong |= !withdraw_kind_find(value, &to->options.kind);
    else if (strcmp(name, "window_ms") == 0)
        to->wrong |= withdraw_amount_read(&to->options.window_ms, value) != NULL;
    else if (strcmp(name, "exclusive") == 0)
        to->wrong |= !(to->options.exclusive = strcmp(value, "yes") == 0);
    else
        to->wrong = 1;
    return 1;
}

static tl_status open_it(tl_client *client, tl_workflows *workflows, const char *config_file,
                         void **state)
{
    settings from = {.options = {.client = client, .window_ms = 60000}};
    withdraw *self = NULL;
    tl_status status;

    if (ini_parse(config_file, take_setting, &from) < 0)
        status = tl_error_report(TL_BAD_CONFIG, "%s cannot be read", config_file);
    else if (from.wrong || from.url == NULL)
        status = tl_error_report(TL_BAD_CONFIG,
                                 "%s needs channel_url under [" SECTION "], once; channel, "
                                 "window_ms and exclusive may stand beside it",
                                 config_file);
    else {
        from.options.channel_url = from.url;
        status = withdraw_new(&self, workflows, &from.options);
    }
    free(from.url);
    *state = self;
    return status;
}

static void close_it(void *state)
{
    withdraw_free(state);
}

const tl_plugin tradelock_plugin = {.version = TL_PLUGIN_VERSION,
                                    .size = sizeof(tl_plugin),
                                    .name = WITHDRAW_OP,
                                    .open = open_it,
                                    .close = close_it};
