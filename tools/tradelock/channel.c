/* tradelock channel: pauses a channel, has it go on, limits it, gives it a breaker, and lists what
 * was decided. */
#include "command.h"

#include "print.h"

#include <tradelock/admin.h>

#include <stdio.h>
#include <string.h>

enum {
    OPTION_OP = OPTION_OWN,
    OPTION_REASON,
    OPTION_ACTOR,
    OPTION_SENDS,
    OPTION_RATE,
    OPTION_NONE,
    OPTION_UNKNOWNS,
    OPTION_SHARE,
    OPTION_WINDOW,
    OPTION_PROBE
};

/* What the command line says. */
struct said {
    tl_pause pause;
    tl_limit limit;
    tl_breaker breaker;
    const char *sends, *per_second; /* NULL: not said */
    const char *unknowns, *share, *window, *probe;
    int none;
};

/* "open since ...: 5 unknown in a row, or 50 % in 60 s", or NULL. */
static const char *breaker_text(char to[160], const tl_pause_row *row)
{
    char share[64] = "", since[TIME_TEXT];

    if (row->unknowns == 0)
        return NULL;
    if (row->share > 0)
        snprintf(share, sizeof share, ", or %lld %% in %lld s", (long long)row->share,
                 (long long)row->window_s);
    snprintf(to, 160, "%s%s: %lld unknown in a row%s",
             row->opened_us != 0 ? "open since " : "closed",
             row->opened_us != 0 ? time_text(since, row->opened_us) : "", (long long)row->unknowns,
             share);
    return to;
}

static json_t *json_number(int64_t number)
{
    return number > 0 ? json_integer(number) : json_null();
}

static json_t *json_breaker(const tl_pause_row *row)
{
    if (row->breaker_us == 0)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:b, s:o, s:I, s:o, s:o, s:o}", "unknowns",
                     json_number(row->unknowns), "share", json_number(row->share), "window_s",
                     json_number(row->window_s), "probe_s", json_number(row->probe_s), "open",
                     row->opened_us != 0, "opened_at", json_time(row->opened_us), "opened",
                     (json_int_t)row->opened, "decided_at", json_time(row->breaker_us), "account",
                     json_text(row->breaker_account), "reason", json_text(row->breaker_reason));
}

static int add_row(void *context, const tl_pause_row *row)
{
    struct listing *listing = context;
    char when[TIME_TEXT], limit[LIMIT_TEXT], permits[LIMIT_TEXT], breaker[160];
    const char *state = row->paused                                ? "paused"
                        : row->as_whole && row->op_code[0] != '\0' ? "paused as a whole"
                                                                   : "open";

    table_add(listing->table, row->channel, row->op_code[0] != '\0' ? row->op_code : "(all)", state,
              time_text(when, row->decided_us), row->account, row->reason,
              limit_text(limit, row->sends, row->per_second), permits_text(permits, row),
              breaker_text(breaker, row));
    json_array_append_new(
        listing->rows,
        json_pack(
            "{s:s, s:o, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
            "channel", row->channel, "op_code", json_text(row->op_code), "paused", row->paused,
            "as_whole", row->as_whole, "decided_at", json_time(row->decided_us), "account",
            json_text(row->account), "actor", json_text(row->actor), "reason",
            json_text(row->reason), "sends",
            row->sends > 0 ? json_integer(row->sends) : json_null(), "per_second",
            row->per_second > 0 ? json_integer(row->per_second) : json_null(), "limited_at",
            json_time(row->limited_us), "limit_account", json_text(row->limit_account),
            "limit_reason", json_text(row->limit_reason), "permits",
            row->sends > 0 ? json_integer(row->permits) : json_null(), "wanted",
            row->sends > 0 ? json_integer(row->wanted) : json_null(), "breaker",
            json_breaker(row)));
    return 0;
}

static int list(tl_client *client, const struct common *common)
{
    struct listing listing = {table_new("CHANNEL", "OPERATION", "STATE", "SINCE", "BY", "REASON",
                                        "LIMIT", "PERMITS", "BREAKER", NULL),
                              json_array()};
    tl_status status = tl_pause_list(client, add_row, &listing);

    return listing_end(&listing, status, common->json, "channels",
                       "no workflow has registered a channel");
}

struct disobedient {
    const char *what;
    json_t *names; /* "program pid@host" */
};

static int take_disobedient(void *context, const tl_session_row *row)
{
    struct disobedient *all = context;

    if (strcmp(row->state, "ended") != 0 && strstr(row->obeys, all->what) == NULL)
        json_array_append_new(all->names, json_sprintf("%s %llu@%s", row->program,
                                                       (unsigned long long)row->pid, row->host));
    return 0;
}

/* The processes whose program is older than this kind of decision; the decision stands all the
 * same. */
static json_t *disobedient(tl_client *client, const char *what)
{
    struct disobedient all = {what, json_array()};

    if (tl_session_list(client, take_disobedient, &all) != TL_OK)
        (void)report(TL_UNKNOWN);
    return all.names;
}

/* One line for each. */
static int finish_names(json_t *names)
{
    json_t *name;
    size_t i;

    json_array_foreach(names, i, name)
        printf("%s does not obey: its program is older than such decisions.  End it.\n",
               json_string_value(name));
    json_decref(names);
    return finish_output(EXIT_DONE);
}

static int decide(tl_client *client, const struct common *common, const tl_pause *pause, int pauses)
{
    const char *op_code = pause->op_code != NULL ? pause->op_code : "";
    tl_status status = pauses ? tl_channel_pause(client, pause) : tl_channel_resume(client, pause);

    if (status != TL_OK)
        return report(status);
    if (common->json)
        return print_json(json_pack("{s:s, s:o, s:b, s:o}", "channel", pause->channel, "op_code",
                                    json_text(op_code), "paused", pauses, "disobedient",
                                    disobedient(client, "pause")),
                          EXIT_DONE);
    printf("Channel %s %s%s%s within a heartbeat of each process; %s.\n", pause->channel,
           pauses ? "pauses" : "goes on", op_code[0] != '\0' ? " for " : "", op_code,
           pauses ? "what was armed before may still be sent" : "what waited is due");
    return finish_names(disobedient(client, "pause"));
}

static int limit(tl_client *client, const struct common *common, const tl_limit *limit)
{
    const char *op_code = limit->op_code != NULL ? limit->op_code : "";
    const tl_status status = tl_channel_limit(client, limit);
    char text[LIMIT_TEXT];

    if (status != TL_OK)
        return report(status);
    if (common->json)
        return print_json(
            json_pack("{s:s, s:o, s:o, s:o, s:o}", "channel", limit->channel, "op_code",
                      json_text(op_code), "sends",
                      limit->sends > 0 ? json_integer(limit->sends) : json_null(), "per_second",
                      limit->per_second > 0 ? json_integer(limit->per_second) : json_null(),
                      "disobedient", disobedient(client, "limit")),
            EXIT_DONE);
    if (limit_text(text, limit->sends, limit->per_second)[0] == '\0')
        snprintf(text, sizeof text, "as much as there is");
    printf(
        "Channel %s sends %s%s%s within a heartbeat of each process; what was sent before is not "
        "counted.\n",
        limit->channel, text, op_code[0] != '\0' ? " for " : "", op_code);
    return finish_names(disobedient(client, "limit"));
}

static int give_breaker(tl_client *client, const struct common *common, const tl_breaker *b)
{
    const char *op_code = b->op_code != NULL ? b->op_code : "";
    const tl_status status = tl_channel_breaker(client, b);

    if (status != TL_OK)
        return report(status);
    if (common->json)
        return print_json(
            json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "channel", b->channel, "op_code",
                      json_text(op_code), "unknowns", json_number(b->unknowns), "share",
                      json_number(b->share), "window_s", json_number(b->window_s), "probe_s",
                      json_number(b->probe_s), "disobedient", disobedient(client, "breaker")),
            EXIT_DONE);
    printf("Channel %s has %s breaker%s%s within a heartbeat of each process%s.\n", b->channel,
           b->unknowns > 0 ? "this" : "no", op_code[0] != '\0' ? " for " : "", op_code,
           b->unknowns > 0 ? "; what was sent before is not counted" : "");
    return finish_names(disobedient(client, "breaker"));
}

static int read_options(const struct command *self, struct common *common, struct said *said,
                        int argc, char **argv, int *code)
{
    static const struct option options[] = {{"op", required_argument, NULL, OPTION_OP},
                                            {"reason", required_argument, NULL, OPTION_REASON},
                                            {"actor", required_argument, NULL, OPTION_ACTOR},
                                            {"sends", required_argument, NULL, OPTION_SENDS},
                                            {"per-second", required_argument, NULL, OPTION_RATE},
                                            {"none", no_argument, NULL, OPTION_NONE},
                                            {"unknowns", required_argument, NULL, OPTION_UNKNOWNS},
                                            {"share", required_argument, NULL, OPTION_SHARE},
                                            {"window", required_argument, NULL, OPTION_WINDOW},
                                            {"probe-every", required_argument, NULL, OPTION_PROBE},
                                            COMMON_OPTIONS,
                                            {NULL, 0, NULL, 0}};
    int option;

    while ((option = common_next(self, common, argc, argv, options, code)) >= 0) {
        if (option == OPTION_OP)
            said->pause.op_code = optarg;
        else if (option == OPTION_REASON)
            said->pause.reason = optarg;
        else if (option == OPTION_SENDS)
            said->sends = optarg;
        else if (option == OPTION_RATE)
            said->per_second = optarg;
        else if (option == OPTION_NONE)
            said->none = 1;
        else if (option == OPTION_UNKNOWNS)
            said->unknowns = optarg;
        else if (option == OPTION_SHARE)
            said->share = optarg;
        else if (option == OPTION_WINDOW)
            said->window = optarg;
        else if (option == OPTION_PROBE)
            said->probe = optarg;
        else
            said->pause.actor = optarg;
    }
    return option != COMMON_STOP;
}

static int is(const char *word, char **operands)
{
    return strcmp(operands[0], word) == 0;
}

/* A whole number from 1 on; 0: it is none. */
static int read_limit(const char *text, int64_t most, int64_t *number)
{
    uint64_t read = 0;

    if (text == NULL)
        return 1;
    if (!read_number(text, (uint64_t)most, &read) || read == 0)
        return 0;
    *number = (int64_t)read;
    return 1;
}

/* EXIT_DONE, or EXIT_USAGE with a sentence. */
static int check_limit(const struct command *self, struct said *said)
{
    if (!said->none && said->sends == NULL && said->per_second == NULL)
        return usage_error(self, "channel limit needs --sends, --per-second or --none");
    if (said->none && (said->sends != NULL || said->per_second != NULL))
        return usage_error(self, "--none goes with neither --sends nor --per-second");
    if (!read_limit(said->sends, TL_LIMIT_SENDS_MAX, &said->limit.sends))
        return usage_error(self, "--sends %s is no number from 1 to %d", said->sends,
                           TL_LIMIT_SENDS_MAX);
    if (!read_limit(said->per_second, TL_LIMIT_PER_SECOND_MAX, &said->limit.per_second))
        return usage_error(self, "--per-second %s is no number from 1 to %d", said->per_second,
                           TL_LIMIT_PER_SECOND_MAX);
    return EXIT_DONE;
}

static int says_breaker(const struct said *said)
{
    return said->unknowns != NULL || said->share != NULL || said->window != NULL ||
           said->probe != NULL;
}

/* EXIT_DONE, or EXIT_USAGE with a sentence. */
static int check_breaker(const struct command *self, struct said *said)
{
    tl_breaker *b = &said->breaker;

    if (!said->none && said->unknowns == NULL)
        return usage_error(self, "channel breaker needs --unknowns or --none");
    if (said->none && says_breaker(said))
        return usage_error(self, "--none goes with no number");
    if (said->sends != NULL || said->per_second != NULL)
        return usage_error(self, "channel breaker takes no limit");
    if ((said->share == NULL) != (said->window == NULL))
        return usage_error(self, "--share and --window go together");
    if (!read_limit(said->unknowns, TL_BREAKER_UNKNOWNS_MAX, &b->unknowns))
        return usage_error(self, "--unknowns %s is no number from 1 to %d", said->unknowns,
                           TL_BREAKER_UNKNOWNS_MAX);
    if (!read_limit(said->share, 100, &b->share))
        return usage_error(self, "--share %s is no number from 1 to 100", said->share);
    if (!read_limit(said->window, TL_BREAKER_SECONDS_MAX, &b->window_s))
        return usage_error(self, "--window %s is no number of seconds from 1 to %d", said->window,
                           TL_BREAKER_SECONDS_MAX);
    if (!read_limit(said->probe, TL_BREAKER_SECONDS_MAX, &b->probe_s))
        return usage_error(self, "--probe-every %s is no number of seconds from 1 to %d",
                           said->probe, TL_BREAKER_SECONDS_MAX);
    if (!said->none && b->probe_s == 0)
        b->probe_s = TL_BREAKER_PROBE_S;
    return EXIT_DONE;
}

/* EXIT_DONE, or EXIT_USAGE with a sentence. */
static int check(const struct command *self, struct said *said, char **operands, int count)
{
    tl_pause *pause = &said->pause;
    const int lists = count > 0 && is("ls", operands), limits = count > 0 && is("limit", operands),
              breaks = count > 0 && is("breaker", operands);
    const int says_limit = said->sends != NULL || said->per_second != NULL;

    if (count < 1 ||
        (!lists && !limits && !breaks && !is("pause", operands) && !is("resume", operands)))
        return usage_error(self, "channel is followed by pause, resume, limit, breaker or ls%s%s",
                           count > 0 ? ", not " : "", count > 0 ? operands[0] : "");
    if (!limits && !breaks && (says_limit || said->none))
        return usage_error(self, "channel %s takes no limit", operands[0]);
    if (!breaks && says_breaker(said))
        return usage_error(self, "channel %s takes no breaker", operands[0]);
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
    said->limit.channel = pause->channel;
    said->limit.op_code = pause->op_code;
    said->limit.reason = pause->reason;
    said->limit.actor = pause->actor;
    said->breaker.channel = pause->channel;
    said->breaker.op_code = pause->op_code;
    said->breaker.reason = pause->reason;
    said->breaker.actor = pause->actor;
    if (breaks)
        return check_breaker(self, said);
    return limits ? check_limit(self, said) : EXIT_DONE;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct said said = {.pause = TL_PAUSE_INIT, .limit = TL_LIMIT_INIT, .breaker = TL_BREAKER_INIT};
    struct common common = {0};
    tl_client *client = NULL;
    int code = EXIT_DONE;

    said.pause.actor = person();
    if (!read_options(self, &common, &said, argc, argv, &code))
        return code;
    code = check(self, &said, argv + optind, argc - optind);
    if (code == EXIT_DONE)
        code = open_client(&client, &common, 0);
    if (code != EXIT_DONE)
        return code;
    if (is("ls", argv + optind))
        code = list(client, &common);
    else if (is("limit", argv + optind))
        code = limit(client, &common, &said.limit);
    else if (is("breaker", argv + optind))
        code = give_breaker(client, &common, &said.breaker);
    else
        code = decide(client, &common, &said.pause, is("pause", argv + optind));
    tl_client_close(client);
    return code;
}

const struct command command_channel = {
    .name = "channel",
    .summary = "pause or limit a channel, have it go on, list them",
    .arguments =
        "pause|resume CHANNEL [--op OP] --reason TEXT [--actor NAME]\n"
        "       tradelock channel limit CHANNEL [--op OP] --sends N --per-second R "
        "--reason TEXT\n"
        "       tradelock channel limit CHANNEL [--op OP] --none --reason TEXT\n"
        "       tradelock channel breaker CHANNEL [--op OP] --unknowns N [--share P --window S]\n"
        "             [--probe-every S] --reason TEXT\n"
        "       tradelock channel breaker CHANNEL [--op OP] --none --reason TEXT\n"
        "       tradelock channel ls",
    .text =
        "While a channel is paused nothing new is sent through it: services are told to try\n"
        "again later before anything is written, and what waits in the retry lane stays as\n"
        "it is.  No attempt is used up, nothing is parked, and all of it goes on after the\n"
        "resume.  Each process obeys after its next heartbeat; what was armed before may\n"
        "still be sent.  Without --op it is about the channel as a whole.\n"
        "\n"
        "A limit holds for all processes together: no more than N sends are under way at a\n"
        "time, and no more than R begin in a second.  Whoever asks beyond it is told to try\n"
        "again later, as for a pause.  It replaces the limit before it; --none lifts that.\n"
        "\n"
        "A breaker opens after N sends in a row whose outcome is unknown, or when P per cent of\n"
        "a window's sends are, and N at least.  While it is open, whoever asks is told to try\n"
        "again later, and the retry lane probes with one call at a time, until an answer closes\n"
        "it.  Processes count by themselves and tell after their heartbeats.  It replaces the\n"
        "breaker before it; --none takes that away.\n",
    .options = "  --op OP         for this operation alone\n"
               "  --sends N       limit: so many sends at a time, up to 1000000\n"
               "  --per-second R  limit: so many sends a second, up to 100000\n"
               "  --unknowns N    breaker: opens after so many in a row, up to 1000000\n"
               "  --share P       breaker: or when so many per cent of a window's are unknown\n"
               "  --window S      breaker: seconds of that window, up to 86400\n"
               "  --probe-every S breaker: seconds from one probe to the next (10)\n"
               "  --none          limit, breaker: none any more\n"
               "  --reason TEXT   why, for the record\n"
               "  --actor NAME    who decided (the login name)\n",
    .run = run,
};
