/* tradelock migrate: brings the schema up to date, and grants the roles. */
#include "command.h"

#include "print.h"

#include <tradelock/admin.h>

#include <stdio.h>

static int grants;

static int work(tl_client *client)
{
    tl_migrated done;
    tl_status status = tl_migrate(client, &done);

    if (status == TL_OK && grants)
        status = tl_grant_roles(client);
    if (status != TL_OK)
        return report(status);
    if (common.json)
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

static const struct command_option options[] = {
    {"grants", "make the three roles and give them their rights", OPTION_FLAG, .to = &grants},
    {.name = NULL}};

const struct command command_migrate = {
    .name = "migrate",
    .summary = "bring the schema up to this version",
    .arguments = "[--grants] [--json]",
    .text = "Applies the migrations that the database does not have yet.  Any number of\n"
            "processes may run it at once; one that was interrupted is run again.  The\n"
            "account becomes the definer of the triggers that write the log: it must be an\n"
            "administrator's, and stay.\n",
    .examples = "  tradelock migrate --grants\n",
    .options = options,
    .of = OF_DATABASE,
    .flags = TL_CLIENT_NO_SCHEMA,
    .work = work,
};
