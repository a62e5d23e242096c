/* tradelock migrate: brings the schema up to date, and grants the roles. */
#include "command.h"

#include "print.h"

#include <tradelock/admin.h>

#include <stdio.h>

enum { OPTION_GRANTS = OPTION_OWN };

static int work(tl_client *client, const struct common *common, int grants)
{
    tl_migrated done;
    tl_status status = tl_migrate(client, &done);

    if (status == TL_OK && grants)
        status = tl_grant_roles(client);
    if (status != TL_OK)
        return report(status);
    if (common->json)
        return print_json(json_pack("{s:i, s:i, s:i, s:b}", "from", (int)done.from, "to",
                                    (int)done.to, "mended", (int)done.mended, "grants", grants),
                          EXIT_DONE);
    if (done.from == done.to)
        printf("The schema is version %u already.\n", done.to);
    else if (done.from == 0)
        printf("The schema was made: version %u.\n", done.to);
    else
        printf("The schema went from version %u to %u.%s\n", done.from, done.to,
               grants ? ""
                      : "  The roles have the rights of the older one, and\n"
                        "the server refuses what these do not name: `tradelock migrate --grants`.");
    if (done.mended > 0)
        printf("%u triggers, routines or views were missing and were made anew.%s\n", done.mended,
               grants ? "" : "  The rights on functions went: --grants gives them.");
    if (grants)
        puts("The roles have their rights: the database's name with _application, _operator and "
             "_reader.");
    return finish_output(EXIT_DONE);
}

static int run(const struct command *self, int argc, char **argv)
{
    static const struct option options[] = {
        {"grants", no_argument, NULL, OPTION_GRANTS}, COMMON_OPTIONS, {NULL, 0, NULL, 0}};
    struct common common = {0};
    tl_client *client = NULL;
    int code = EXIT_DONE, grants = 0, option;

    while ((option = common_next(self, &common, argc, argv, options, &code)) >= 0)
        grants = option == OPTION_GRANTS;
    if (option == COMMON_STOP)
        return code;
    if (optind < argc)
        return usage_error(self, "migrate takes no operand: %s", argv[optind]);
    code = open_client(&client, &common, TL_CLIENT_NO_SCHEMA);
    if (code == EXIT_DONE)
        code = work(client, &common, grants);
    tl_client_close(client);
    return code;
}

const struct command command_migrate = {
    .name = "migrate",
    .summary = "bring the schema up to this version",
    .arguments = "[--grants] [--json]",
    .text = "Applies the migrations that the database does not have yet.  Any number of\n"
            "processes may run it at once; one that was interrupted is run again.  The\n"
            "account becomes the definer of the triggers that write the log: it must be an\n"
            "administrator's, and stay.\n",
    .options = "  --grants        make the three roles and give them their rights\n",
    .run = run,
};
