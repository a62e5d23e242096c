/* tradelock resolve: one operator proposes a decision, another confirms it. */
#include "command.h"

#include "fields.h"
#include "fleet.h"
#include "fleet_map.h"
#include "print.h"
#include "said.h"

#include <tradelock/admin.h>

#include <stdio.h>
#include <string.h>

enum { OPTION_AS = OPTION_OWN, OPTION_FENCE, OPTION_REASON, OPTION_ACTOR, OPTION_ALTHOUGH_PENDING };

static int take_verdict(const struct command *self, tl_resolution *resolution)
{
    static const tl_decision decisions[] = {TL_DECISION_CLEAR, TL_DECISION_PAID,
                                            TL_DECISION_FAILED};

    for (size_t i = 0; i < sizeof decisions / sizeof decisions[0]; i++)
        if (strcmp(optarg, tl_decision_name(decisions[i])) == 0) {
            resolution->decision = decisions[i];
            return EXIT_DONE;
        }
    return usage_error(self, "--as is clear, paid or failed, not %s", optarg);
}

static int take_option(const struct command *self, tl_resolution *resolution, int *has_fence,
                       int option)
{
    switch (option) {
    case OPTION_AS:
        return take_verdict(self, resolution);
    case OPTION_REASON:
        resolution->reason = optarg;
        return EXIT_DONE;
    case OPTION_ACTOR:
        resolution->actor = optarg;
        return EXIT_DONE;
    case OPTION_ALTHOUGH_PENDING:
        resolution->although_pending = 1;
        return EXIT_DONE;
    default:
        *has_fence = read_number(optarg, INT64_MAX, &resolution->fence);
        return *has_fence ? EXIT_DONE
                          : usage_error(self,
                                        "--fence is a number as `tradelock show` prints "
                                        "it, not %s",
                                        optarg);
    }
}

static int read_options(const struct command *self, struct common *common,
                        tl_resolution *resolution, int *has_fence, int argc, char **argv, int *code)
{
    static const struct option options[] = {
        {"as", required_argument, NULL, OPTION_AS},
        {"fence", required_argument, NULL, OPTION_FENCE},
        {"reason", required_argument, NULL, OPTION_REASON},
        {"actor", required_argument, NULL, OPTION_ACTOR},
        {"although-pending", no_argument, NULL, OPTION_ALTHOUGH_PENDING},
        COMMON_OPTIONS,
        {NULL, 0, NULL, 0}};
    int option;

    while ((option = common_next(self, common, argc, argv, options, code)) >= 0) {
        *code = take_option(self, resolution, has_fence, option);
        if (*code != EXIT_DONE)
            return 0;
    }
    return option != COMMON_STOP;
}

/* ------------------------------------------------------------------ deciding -- */

static void tell(const tl_resolution *resolution, int confirms, const char *said)
{
    static const char *const next[] = {
        "another operator confirms it with `tradelock resolve confirm`, or nothing "
        "happens",
        "a worker that has the operation registered asks the channel, where that can be, "
        "and carries it out, with its books"};
    const tl_key *key = &resolution->key;

    printf("%s for %s %s %s: %s; %s.\n", confirms ? "Decided" : "Proposed", key->serial_no,
           key->cust_no, key->op_code, tl_decision_name(resolution->decision),
           confirms && resolution->decision == TL_DECISION_CLEAR
               ? "nothing contradicts the row any more"
               : next[confirms]);
    printf("The channel last said: %s.\n", said);
}

static int work_decide(tl_client *client, const struct common *common,
                       const tl_resolution *resolution, int confirms)
{
    const tl_key *key = &resolution->key;
    struct said said = {.when_us = 0};
    char sentence[SAID_SENTENCE];
    /* Without the right to read the log nothing is known of it. */
    tl_status status = said_read(client, key, &said);

    if (status == TL_OK || status == TL_ACCESS_DENIED)
        status = confirms ? tl_resolution_confirm(client, resolution)
                          : tl_resolution_propose(client, resolution);
    if (status != TL_OK)
        return report(status);
    if (common->json)
        return print_json(json_pack("{s:s, s:s, s:s, s:s, s:b, s:s, s:o, s:o}", "serial_no",
                                    key->serial_no, "cust_no", key->cust_no, "op_code",
                                    key->op_code, "verdict", tl_decision_name(resolution->decision),
                                    "confirmed", confirms, "status", tl_status_name(status),
                                    "channel_said", json_text(said.text), "channel_said_at",
                                    json_time(said.when_us)),
                          EXIT_DONE);
    tell(resolution, confirms, said_text(sentence, &said));
    return finish_output(EXIT_DONE);
}

static int check(const struct command *self, const tl_resolution *resolution, int has_fence,
                 int confirms)
{
    if (tl_decision_name(resolution->decision)[0] == '\0')
        return usage_error(self, "--as is missing: clear, paid or failed");
    if (!has_fence)
        return usage_error(self, "--fence is missing: it says which state of the trade you "
                                 "saw, and `tradelock show` prints it");
    if (resolution->reason == NULL || resolution->reason[0] == '\0')
        return usage_error(self, "--reason is missing: it goes on record");
    if (resolution->although_pending && (!confirms || resolution->decision != TL_DECISION_FAILED))
        return usage_error(self, "--although-pending is said by whoever confirms that a "
                                 "trade failed");
    return EXIT_DONE;
}

/* ------------------------------------------------------------------------ ls -- */

static int add_row(void *context, const tl_resolution_row *row)
{
    struct listing *listing = context;
    char when[TIME_TEXT], fence[24];

    json_array_append_new(listing->rows, json_resolution(row));
    snprintf(fence, sizeof fence, "%llu", (unsigned long long)row->fence);
    table_add(listing->table, time_text(when, row->decided_us), fence,
              tl_decision_name(row->decision), resolution_part(row), row->account, row->actor,
              row->reason);
    return 0;
}

static int work_ls(tl_client *client, const struct common *common, const tl_key *key)
{
    struct listing listing = {
        table_new("WHEN", "FENCE", "VERDICT", "PART", "ACCOUNT", "BY", "REASON", NULL),
        json_array()};
    const tl_status status = tl_resolution_list(client, key, add_row, &listing);

    return listing_end(&listing, status, common->json, "resolutions",
                       "no operator decided anything about this trade");
}

/* ------------------------------------------------------------------- command -- */

static int run(const struct command *self, int argc, char **argv)
{
    tl_resolution resolution = {.version = TL_RESOLUTION_VERSION, .actor = person()};
    struct common common = {0};
    tl_client *client = NULL;
    const char *verb;
    int lists, confirms, has_fence = 0, code = EXIT_DONE;

    if (!read_options(self, &common, &resolution, &has_fence, argc, argv, &code))
        return code;
    verb = optind < argc ? argv[optind++] : "";
    confirms = strcmp(verb, "confirm") == 0;
    lists = strcmp(verb, "ls") == 0;
    if (!confirms && !lists && strcmp(verb, "propose") != 0)
        return usage_error(self, "resolve is for `propose`, `confirm` and `ls`, not '%s'", verb);
    if (!read_key(self, &resolution.key, argc, argv, &code))
        return code;
    if (!lists)
        code = check(self, &resolution, has_fence, confirms);
    if (code == EXIT_DONE)
        code = fleet_begin(&common);
    if (code == EXIT_DONE)
        code = fleet_owner(&client, resolution.key.cust_no);
    if (code == EXIT_DONE)
        code = lists ? work_ls(client, &common, &resolution.key)
                     : work_decide(client, &common, &resolution, confirms);
    fleet_end();
    return code;
}

const struct command command_resolve = {
    .name = "resolve",
    .summary = "decide a trade that no rule can, as two operators",
    .arguments = "propose|confirm|ls SERIAL CUST OP [OPTION...]",
    .text = "One operator proposes, another confirms, each with a database account of their "
            "own;\n"
            "the server tells them apart.  Both are bound to the fence that they saw: when "
            "the\n"
            "trade has moved on in between, nothing happens.  A proposal alone changes "
            "nothing.\n"
            "`failed` and `paid` are carried out by a worker that has the operation "
            "registered,\n"
            "with the business rows in the same transaction; nothing is sent any more.  A "
            "trade\n"
            "that succeeded stays so.  Before `failed` is booked a channel that can be asked "
            "is\n"
            "asked: what it paid becomes paid, what it calls pending is not carried out, and "
            "the\n"
            "trade is parked.  `ls` prints who proposed and who confirmed what, and what was "
            "not\n"
            "carried out.\n",
    .options = "  --as clear      the conflict is cleared: the evidence was wrong\n"
               "  --as paid       a failure in conflict was paid after all\n"
               "  --as failed     a trade in doubt, or parked, failed: no money moved or will\n"
               "  --fence N       the fence of the row as `tradelock show` printed it\n"
               "  --reason TEXT   why, for the record\n"
               "  --actor NAME    who decided (the login name)\n"
               "  --although-pending  confirm: book `failed` although the channel says "
               "pending\n",
    .run = run,
};
