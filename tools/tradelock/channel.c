/* tradelock channel: pauses a channel, has it go on, and lists which are paused. */
#include "command.h"

#include "print.h"

#include <tradelock/admin.h>

#include <stdio.h>
#include <string.h>

enum { OPTION_OP = OPTION_OWN, OPTION_REASON, OPTION_ACTOR };

static int add_row(void *context, const tl_pause_row *row)
{
    struct listing *listing = context;
    char when[TIME_TEXT];
    const char *state = row->paused                                ? "paused"
                        : row->as_whole && row->op_code[0] != '\0' ? "paused as a whole"
                                                                   : "open";

    table_add(listing->table, row->channel, row->op_code[0] != '\0' ? row->op_code : "(all)", state,
              time_text(when, row->decided_us), row->account, row->reason);
    json_array_append_new(
        listing->rows,
        json_pack("{s:s, s:o, s:b, s:b, s:o, s:o, s:o, s:o}", "channel", row->channel, "op_code",
                  json_text(row->op_code), "paused", row->paused, "as_whole", row->as_whole,
                  "decided_at", json_time(row->decided_us), "account", json_text(row->account),
                  "actor", json_text(row->actor), "reason", json_text(row->reason)));
    return 0;
}

static int list(tl_client *client, const struct common *common)
{
    struct listing listing = {
        table_new("CHANNEL", "OPERATION", "STATE", "SINCE", "BY", "REASON", NULL), json_array()};
    tl_status status = tl_pause_list(client, add_row, &listing);

    return listing_end(&listing, status, common->json, "channels",
                       "no workflow has registered a channel");
}

static int decide(tl_client *client, const struct common *common, const tl_pause *pause, int pauses)
{
    const char *op_code = pause->op_code != NULL ? pause->op_code : "";
    tl_status status = pauses ? tl_channel_pause(client, pause) : tl_channel_resume(client, pause);

    if (status != TL_OK)
        return report(status);
    if (common->json)
        return print_json(json_pack("{s:s, s:o, s:b}", "channel", pause->channel, "op_code",
                                    json_text(op_code), "paused", pauses),
                          EXIT_DONE);
    printf("Channel %s %s%s%s within a heartbeat of each process; %s.\n", pause->channel,
           pauses ? "pauses" : "goes on", op_code[0] != '\0' ? " for " : "", op_code,
           pauses ? "what was armed before may still be sent" : "what waited is due");
    return finish_output(EXIT_DONE);
}

static int read_options(const struct command *self, struct common *common, tl_pause *pause,
                        int argc, char **argv, int *code)
{
    static const struct option options[] = {{"op", required_argument, NULL, OPTION_OP},
                                            {"reason", required_argument, NULL, OPTION_REASON},
                                            {"actor", required_argument, NULL, OPTION_ACTOR},
                                            COMMON_OPTIONS,
                                            {NULL, 0, NULL, 0}};
    int option;

    while ((option = common_next(self, common, argc, argv, options, code)) >= 0) {
        if (option == OPTION_OP)
            pause->op_code = optarg;
        else if (option == OPTION_REASON)
            pause->reason = optarg;
        else
            pause->actor = optarg;
    }
    return option != COMMON_STOP;
}

/* EXIT_DONE, or EXIT_USAGE with a sentence. */
static int check(const struct command *self, tl_pause *pause, char **operands, int count)
{
    const int lists = count > 0 && strcmp(operands[0], "ls") == 0;

    if (count < 1 ||
        (!lists && strcmp(operands[0], "pause") != 0 && strcmp(operands[0], "resume") != 0))
        return usage_error(self, "channel is followed by pause, resume or ls%s%s",
                           count > 0 ? ", not " : "", count > 0 ? operands[0] : "");
    if (lists && (count > 1 || pause->op_code != NULL || pause->reason != NULL))
        return usage_error(self, "channel ls takes neither an operand, nor --op or --reason");
    if (lists)
        return EXIT_DONE;
    if (count != 2)
        return usage_error(self, "channel %s takes one operand, the channel, not %d", operands[0],
                           count - 1);
    if (pause->op_code != NULL && pause->op_code[0] == '\0')
        return usage_error(self, "--op is empty");
    if (pause->reason == NULL || pause->reason[0] == '\0')
        return usage_error(self, "--reason is missing: it goes on record");
    pause->channel = operands[1];
    return EXIT_DONE;
}

static int run(const struct command *self, int argc, char **argv)
{
    tl_pause pause = TL_PAUSE_INIT;
    struct common common = {0};
    tl_client *client = NULL;
    int code = EXIT_DONE;

    pause.actor = person();
    if (!read_options(self, &common, &pause, argc, argv, &code))
        return code;
    code = check(self, &pause, argv + optind, argc - optind);
    if (code == EXIT_DONE)
        code = open_client(&client, &common, 0);
    if (code == EXIT_DONE)
        code = pause.channel == NULL
                   ? list(client, &common)
                   : decide(client, &common, &pause, strcmp(argv[optind], "pause") == 0);
    tl_client_close(client);
    return code;
}

const struct command command_channel = {
    .name = "channel",
    .summary = "pause a channel, have it go on, list them",
    .arguments = "pause|resume CHANNEL [--op OP] --reason TEXT [--actor NAME] | ls",
    .text = "While a channel is paused nothing new is sent through it: services are told to try\n"
            "again later before anything is written, and what waits in the retry lane stays as\n"
            "it is.  No attempt is used up, nothing is parked, and all of it goes on after the\n"
            "resume.  Each process obeys after its next heartbeat; what was armed before may\n"
            "still be sent.  Without --op it is about the channel as a whole.\n",
    .options = "  --op OP         for this operation alone\n"
               "  --reason TEXT   why, for the record\n"
               "  --actor NAME    who decided (the login name)\n",
    .run = run,
};
