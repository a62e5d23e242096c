/* What service and worker share: opens client and registry, registers the sample workflow or has a
 * plug-in register its own, and writes the log to standard error. */
#include "host.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One write for each line, so that the lines of many threads and programs stay whole. */
static void print_line(void *context, const tl_log_line *line)
{
    static const char *const levels[] = {"debug", "info", "warning", "ALARM"};
    const host_options *options = context;
    struct timespec now;
    struct tm utc;
    char when[32];

    if (line->level < options->least)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc);
    fprintf(stderr, "%s.%03ldZ %s %s: %s%s%s%s%s%s [thread %s%s%s%s%s]\n", when,
            now.tv_nsec / 1000000, options->program, levels[line->level], line->message,
            line->serial_no[0] != '\0' ? " (" : "", line->serial_no,
            line->serial_no[0] != '\0' ? " of " : "", line->cust_no,
            line->serial_no[0] != '\0' ? ")" : "", line->thread_uuid,
            line->log_uuid[0] != '\0' ? ", work " : "", line->log_uuid,
            line->trace_id[0] != '\0' ? ", trace " : "", line->trace_id);
}

static tl_status open_sample(host *self, const host_options *options)
{
    withdraw_options sample = {0};

    sample.client = self->client;
    sample.channel_url = options->channel_url;
    sample.kind = options->kind;
    sample.window_ms = options->window_ms;
    sample.exclusive = options->exclusive;
    return withdraw_new(&self->withdraw, self->workflows, &sample);
}

static tl_status open_plugin(host *self, const host_options *options)
{
    const tl_plugin *plugin = options->plugin;
    tl_status status;

    (void)tl_error_report(TL_OK, "%s", "");
    status = plugin->open(self->client, self->workflows, options->config_file, &self->state);
    if (status != TL_OK) {
        char sentence[512];

        snprintf(sentence, sizeof sentence, "%s",
                 tl_error_message()[0] != '\0' ? tl_error_message() : tl_status_text(status));
        return tl_error_report(status, "plug-in %s: %s", plugin->name, sentence);
    }
    self->plugin = plugin;
    if (tl_workflow_operation(self->workflows, 0) == NULL)
        return tl_error_report(TL_INVALID, "plug-in %s registered no workflow", plugin->name);
    return TL_OK;
}

/* Closing ends the sentence of what failed before. */
static tl_status close_failed(host *self, tl_status status)
{
    char sentence[640];

    snprintf(sentence, sizeof sentence, "%s", tl_error_message());
    host_close(self);
    return tl_error_report(status, "%s", sentence);
}

tl_status host_open(host *self, const host_options *options)
{
    tl_client_options client = TL_CLIENT_OPTIONS_INIT;
    tl_status status;

    memset(self, 0, sizeof *self);
    client.flags = options->client_flags;
    client.config_file = options->config_file;
    client.program = options->program;
    client.operations = options->plugin != NULL ? options->plugin->name : WITHDRAW_OP;
    client.group_suffix = options->group_suffix;
    client.log = print_line;
    client.log_context = (void *)(uintptr_t)options;
    status = tl_client_open(&self->client, &client);
    if (status != TL_OK)
        return status;
    status = tl_workflows_new(&self->workflows, self->client);
    if (status == TL_OK)
        status = options->plugin != NULL ? open_plugin(self, options) : open_sample(self, options);
    return status == TL_OK ? TL_OK : close_failed(self, status);
}

void host_close(host *self)
{
    tl_workflows_free(self->workflows);
    withdraw_free(self->withdraw);
    if (self->plugin != NULL && self->plugin->close != NULL)
        self->plugin->close(self->state);
    tl_client_close(self->client);
    memset(self, 0, sizeof *self);
}

int host_exit_code(tl_status status)
{
    switch (status) {
    case TL_OK:
        return EXIT_DONE;
    case TL_BAD_CONFIG:
    case TL_INVALID:
    case TL_UNSAFE:
        return EXIT_USAGE;
    case TL_UNREACHABLE:
    case TL_ACCESS_DENIED:
    case TL_OVERLOADED:
        return EXIT_SERVER;
    case TL_NO_SCHEMA:
    case TL_WRONG_SCHEMA:
        return EXIT_SCHEMA;
    case TL_SERVER_UNSAFE:
    case TL_READ_ONLY:
        return EXIT_UNSAFE;
    default:
        return EXIT_INTERNAL;
    }
}

int host_read_number(int64_t *number, const char *text, int64_t least, int64_t most)
{
    char *end;
    long long value;

    if (text[0] < '0' || text[0] > '9')
        return 0;
    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || value < least || value > most)
        return 0;
    *number = value;
    return 1;
}
