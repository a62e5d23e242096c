/* tradelock doctor: prints whether this server is fit for money. Only reads. */
#include "command.h"

#include "print.h"

#include <tradelock/admin.h>

#include <stdio.h>
#include <string.h>

#define FOUND_WIDTH 60

struct output {
    struct table *table;
    json_t *findings;
};

static const char *level_name(tl_finding_level level)
{
    switch (level) {
    case TL_FINDING_OK:
        return "ok";
    case TL_FINDING_WARNING:
        return "warning";
    case TL_FINDING_UNSAFE:
        return "unsafe";
    }
    return "?";
}

static int add_finding(void *context, const tl_finding *finding)
{
    struct output *output = context;
    const char *level = level_name(finding->level);
    char found[FOUND_WIDTH + 4];

    snprintf(found, sizeof found, "%.*s%s", FOUND_WIDTH, finding->found,
             strlen(finding->found) > FOUND_WIDTH ? "..." : "");
    json_array_append_new(output->findings,
                          json_pack("{s:s, s:s, s:o, s:o}", "level", level, "check", finding->check,
                                    "found", json_text(finding->found), "sentence",
                                    json_text(finding->sentence)));
    table_add(output->table, level, finding->check, found);
    return 0;
}

/* What is in order needs no words; what is not gets a sentence each. */
static void print_problems(const json_t *findings)
{
    const json_t *finding;
    size_t i;

    json_array_foreach(findings, i, finding)
    {
        const char *level = json_string_value(json_object_get(finding, "level"));

        if (strcmp(level, level_name(TL_FINDING_OK)) != 0)
            printf("\n%s, %s: %s.\n", level, json_string_value(json_object_get(finding, "check")),
                   json_string_value(json_object_get(finding, "sentence")));
    }
}

static int work(tl_client *client, const struct common *common)
{
    struct output output = {table_new("LEVEL", "CHECK", "FOUND", NULL), json_array()};
    tl_status status = tl_doctor(client, add_finding, &output);
    int code = status == TL_OK ? EXIT_DONE : report(status);

    if (common->json) {
        code = print_json(
            json_pack("{s:s, s:O}", "status", tl_status_name(status), "findings", output.findings),
            code);
    } else {
        table_print(output.table);
        print_problems(output.findings);
        code = finish_output(code);
    }
    table_free(output.table);
    json_decref(output.findings);
    return code;
}

static int run(const struct command *self, int argc, char **argv)
{
    static const struct option options[] = {COMMON_OPTIONS, {NULL, 0, NULL, 0}};
    struct common common = {0};
    tl_client *client = NULL;
    int code = EXIT_DONE;

    if (common_next(self, &common, argc, argv, options, &code) == COMMON_STOP)
        return code;
    if (optind < argc)
        return usage_error(self, "doctor takes no operand: %s", argv[optind]);
    code = open_client(&client, &common, TL_CLIENT_NO_SCHEMA);
    if (code == EXIT_DONE)
        code = work(client, &common);
    tl_client_close(client);
    return code;
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "check everything that the guarantees rest on",
    .arguments = "[--json]",
    .text = "Asks the server for its settings, clock, schema, identity and history, for the\n"
            "rights of this account, and for work that nobody does.  Run it with the "
            "account\n"
            "of a service: then it also proves, by a probe that is rolled back, that steps\n"
            "are recorded.\n",
    .options = "",
    .run = run,
};
