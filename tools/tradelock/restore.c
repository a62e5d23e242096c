#include "command.h"

#include "print.h"

#include <stdio.h>
#include <string.h>

enum { OPTION_REASON = OPTION_OWN, OPTION_ACTOR };

static int declare(tl_client *client, const struct common *common, const char *actor,
                   const char *reason)
{
    tl_status status = tl_restore_declare(client, actor, reason);

    if (status != TL_OK)
        return report(status);
    if (common->json)
        return print_json(json_pack("{s:s}", "restore", "declared"), EXIT_DONE);
    printf("Declared. Nothing is granted or sent until `tradelock restore accept`; the\n"
           "retry lane only asks the channel.\n");
    return finish_output(EXIT_DONE);
}

static int accept_server(tl_client *client, const struct common *common,
                         const char *actor, const char *reason)
{
    uint64_t doubtful = 0;
    tl_status status = tl_restore_accept(client, actor, reason, &doubtful);

    if (status != TL_OK)
        return report(status);
    if (common->json)
        return print_json(json_pack("{s:s, s:I}", "restore", "accepted", "doubtful",
                                    (json_int_t)doubtful),
                          EXIT_DONE);
    printf("Accepted. %llu trades are in process, and all of them in doubt now: the "
           "channel is\n"
           "asked before anything is sent for them.\n",
           (unsigned long long)doubtful);
    return finish_output(EXIT_DONE);
}

static int run(const struct command *self, int argc, char **argv)
{
    static const struct option options[] = {
        {"reason", required_argument, NULL, OPTION_REASON},
        {"actor", required_argument, NULL, OPTION_ACTOR},
        COMMON_OPTIONS,
        {NULL, 0, NULL, 0}};
    const char *reason = NULL, *actor = person();
    struct common common = {0};
    tl_client *client = NULL;
    int code = EXIT_DONE, option, accepts;

    while ((option = common_next(self, &common, argc, argv, options, &code)) >= 0)
        *(option == OPTION_REASON ? &reason : &actor) = optarg;
    if (option == COMMON_STOP)
        return code;
    if (optind + 1 != argc ||
        (strcmp(argv[optind], "declare") != 0 && strcmp(argv[optind], "accept") != 0))
        return usage_error(self, "say what: declare or accept");
    if (reason == NULL || reason[0] == '\0')
        return usage_error(self, "--reason is missing: it goes on record");
    accepts = strcmp(argv[optind], "accept") == 0;
    code = open_client(&client, &common, 0);
    if (code == EXIT_DONE)
        code = (accepts ? accept_server : declare)(client, &common, actor, reason);
    tl_client_close(client);
    return code;
}

const struct command command_restore = {
    .name = "restore",
    .summary = "declare that the database was restored, or accept it as it is",
    .arguments = "declare|accept --reason TEXT [--actor NAME] [--json]",
    .text =
        "A restored database, or a promoted copy, may lack payments that were made.\n"
        "Declared, or noticed by itself on another server, nothing is granted or sent\n"
        "any more, and the retry lane only asks the channel.  Accept it once the\n"
        "channel's statements have been compared: every trade that was queued is in\n"
        "doubt from then on.\n",
    .options = "  --reason TEXT   why, for the record\n"
               "  --actor NAME    who decided (the login name)\n",
    .run = run,
};
