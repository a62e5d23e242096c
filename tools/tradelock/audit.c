#include "command.h"

#include "print.h"
#include "statement.h"

#include <inttypes.h>
#include <stdio.h>

enum { OPTION_STATEMENT = OPTION_OWN };

struct output {
    struct table *table;
    json_t *violations;
};

static int add_violation(void *context, const tl_violation *violation)
{
    struct output *output = context;
    char rev[24] = "";

    if (violation->rev != 0)
        snprintf(rev, sizeof rev, "%" PRIu64, violation->rev);
    json_array_append_new(
        output->violations,
        json_pack("{s:s, s:s, s:s, s:o, s:o, s:s}", "rule", violation->rule, "serial_no",
                  violation->key.serial_no, "cust_no", violation->key.cust_no, "op_code",
                  json_text(violation->key.op_code), "rev",
                  violation->rev != 0 ? json_integer((json_int_t)violation->rev)
                                      : json_null(),
                  "sentence", violation->sentence));
    table_add(output->table, violation->rule, violation->key.serial_no,
              violation->key.cust_no, violation->key.op_code, rev, violation->sentence);
    return 0;
}

static int print_counts(const tl_audit_counts *counts, const struct output *output,
                        const struct common *common, int code)
{
    if (common->json)
        return print_json(
            json_pack("{s:I, s:I, s:I, s:I, s:O}", "rows", (json_int_t)counts->rows,
                      "steps", (json_int_t)counts->steps, "grants",
                      (json_int_t)counts->grants, "payments",
                      (json_int_t)counts->payments, "violations", output->violations),
            code);
    if (counts->violations > 0)
        table_print(output->table);
    printf("%" PRIu64 " rows, %" PRIu64 " steps, %" PRIu64 " grants, %" PRIu64
           " payments: %" PRIu64 " violations\n",
           counts->rows, counts->steps, counts->grants, counts->payments,
           counts->violations);
    return finish_output(code);
}

static int work(tl_client *client, const struct common *common,
                const struct statement *statement)
{
    struct output output = {
        table_new("RULE", "SERIAL", "CUST", "OP", "REV", "WHAT", NULL), json_array()};
    tl_audit_counts counts = {.version = TL_AUDIT_COUNTS_VERSION};
    tl_status status = tl_audit(client, statement->payments, statement->count,
                                add_violation, &output, &counts);
    int code = EXIT_DONE;

    if (status != TL_OK)
        code = report(status);
    else
        code = print_counts(&counts, &output, common,
                            counts.violations > 0 ? EXIT_REFUSED : EXIT_DONE);
    table_free(output.table);
    json_decref(output.violations);
    return code;
}

static int run(const struct command *self, int argc, char **argv)
{
    static const struct option options[] = {
        {"statement", required_argument, NULL, OPTION_STATEMENT},
        COMMON_OPTIONS,
        {NULL, 0, NULL, 0}};
    struct common common = {0};
    struct statement statement = {0};
    const char *path = NULL;
    char problem[512];
    tl_client *client = NULL;
    int option, code = EXIT_DONE;

    while ((option = common_next(self, &common, argc, argv, options, &code)) >= 0)
        path = optarg;
    if (option == COMMON_STOP)
        return code;
    if (optind < argc)
        return usage_error(self, "audit takes no operand: %s", argv[optind]);
    if (path != NULL && statement_read(&statement, path, problem, sizeof problem) != 0)
        return usage_error(self, "%s", problem);
    code = open_client(&client, &common, 0);
    if (code == EXIT_DONE)
        code = work(client, &common, &statement);
    tl_client_close(client);
    statement_free(&statement);
    return code;
}

const struct command command_audit = {
    .name = "audit",
    .summary = "prove from rows, history and statement that every promise was kept",
    .arguments = "[--statement FILE.csv] [--json]",
    .text =
        "Reads every row and its whole history, and names each trade that breaks a "
        "rule:\n"
        "a gap in its history, a fence that did not rise, two holds at once, a success\n"
        "that was repeated, late or followed by anything, a failure without a proof, a\n"
        "change by hand.  With the channel's ledger or statement it also names who was\n"
        "paid twice, after a failure, or not at all.\n",
    .options =
        "  --statement FILE.csv  what the channel paid; columns serial_no, cust_no,\n"
        "                        and where there are op_code, channel_key, channel_ref\n",
    .run = run,
};
