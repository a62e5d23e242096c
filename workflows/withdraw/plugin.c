/*
 * The workflow as a plug-in: `tradelock-worker --plugin withdraw.so` brings to an end what the
 * service left undone.  The service opens the same entry, so that both believe the same of the
 * channel: what stands under [service-withdraw] of the settings file, or in the environment.
 */
#include "withdraw.h"

#include <tradelock/plugin.h>

#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTION "service-withdraw"

typedef struct settings {
    char *url;
    int has_channel;
    withdraw_options options;
    char wrong[160]; /* the first setting that is not understood */
} settings;

/* What the environment may say, too, as WITHDRAW_CHANNEL_URL: that counts above the file. */
static const struct {
    const char *name, *variable;
} variables[] = {{"channel_url", "WITHDRAW_CHANNEL_URL"},
                 {"channel", "WITHDRAW_CHANNEL"},
                 {"window_ms", "WITHDRAW_WINDOW_MS"},
                 {"exclusive", "WITHDRAW_EXCLUSIVE"}};

#define VARIABLES (sizeof variables / sizeof variables[0])

static void set(settings *to, const char *name, const char *value)
{
    int good = 0;

    if (strcmp(name, "channel_url") == 0)
        good = to->url == NULL && (to->url = strdup(value)) != NULL;
    else if (strcmp(name, "channel") == 0)
        good = !to->has_channel++ && withdraw_kind_find(value, &to->options.kind);
    else if (strcmp(name, "window_ms") == 0)
        good = withdraw_amount_read(&to->options.window_ms, value) == NULL;
    else if (strcmp(name, "exclusive") == 0)
        good = (to->options.exclusive = strcmp(value, "yes") == 0) || strcmp(value, "no") == 0;
    if (!good && to->wrong[0] == '\0')
        snprintf(to->wrong, sizeof to->wrong, "'%s = %s' is wrong, or stands twice", name, value);
}

/* Sections of others are passed over, whatever stands in them. */
static int take_setting(void *context, const char *section, const char *name, const char *value)
{
    int is_over = strcmp(section, SECTION) != 0;

    for (size_t i = 0; i < VARIABLES; i++)
        is_over |= strcmp(variables[i].name, name) == 0 && getenv(variables[i].variable) != NULL;
    if (!is_over)
        set(context, name, value);
    return 1;
}

static tl_status open_it(tl_client *client, tl_workflows *workflows, const char *config_file,
                         void **state)
{
    settings from = {.options = {.client = client, .window_ms = 60000}};
    withdraw *self = NULL;
    tl_status status;

    for (size_t i = 0; i < VARIABLES; i++) {
        const char *value = getenv(variables[i].variable);

        if (value != NULL)
            set(&from, variables[i].name, value);
    }
    if (config_file[0] != '\0' && ini_parse(config_file, take_setting, &from) < 0)
        status = tl_error_report(TL_BAD_CONFIG, "%s cannot be read", config_file);
    else if (from.wrong[0] != '\0' || from.url == NULL || !from.has_channel)
        status =
            tl_error_report(TL_BAD_CONFIG,
                            "%s: [" SECTION "] needs channel_url and channel (or the environment "
                            "WITHDRAW_CHANNEL_URL and WITHDRAW_CHANNEL)%s%s",
                            config_file, from.wrong[0] != '\0' ? ": " : "", from.wrong);
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
