/* tradelock channel: pauses a channel, has it go on, limits it, gives it a breaker, and lists what
 * was decided. */
#include "command.h"

#include "disobedient.h"
#include "fields.h"
#include "fleet.h"
#include "print.h"

#include <tradelock/admin.h>

#include <stdio.h>
#include <string.h>

/* A decision about a channel: what all kinds share stands in the pause. */
static tl_pause pause = TL_PAUSE_INIT;
static tl_limit limit = TL_LIMIT_INIT;
static tl_breaker breaker = TL_BREAKER_INIT;
static int none, says_limit, says_breaker;

static json_t *json_number(int64_t number)
{
    return number > 0 ? json_integer(number) : json_null();
}

static int add_row(void *context, const tl_pause_row *row)
{
    json_t *object = record_json(&record_channel, row);

    json_object_set_new(object, "permits",
                        row->sends > 0 ? json_integer(row->permits) : json_null());
    json_object_set_new(object, "wanted", row->sends > 0 ? json_integer(row->wanted) : json_null());
    json_object_set_new(object, "breaker", json_breaker(row));
    return listing_add_as(context, row, object);
}

/* Tells what was decided, and the processes whose program is older than this kind of decision, each
 * in a line; the decision stands all the same. */
static int tell(tl_client *client, const char *what, json_t *document, const char *text)
{
    json_t *names;

    if (!common.json) {
        puts(text);
        fflush(stdout);
    }
    if (disobedient_list(client, what, &names) != TL_OK)
        (void)report(TL_UNKNOWN);
    if (common.json) {
        json_object_set_new(document, "disobedient", names);
        return print_json(document, EXIT_DONE);
    }
    for (size_t i = 0; i < json_array_size(names); i++)
        printf(DISOBEDIENT_SAYS "\n", json_string_value(json_array_get(names, i)));
    json_decref(names);
    json_decref(document);
    return finish_output(EXIT_DONE);
}

static int read_channels(tl_client *client, void *context)
{
    return fleet_told(tl_pause_list(client, add_row, context));
}

static int list(tl_client *client)
{
    return listing_run(client, &record_channel,
                       "channel,operation,state,since,account,reason,limit,permits,breaker",
                       "channels", "no workflow has registered a channel", read_channels);
}

/* " for OP"; "": the channel as a whole. */
static const char *for_operation(void)
{
    static char text[TL_OP_MAX + 8];

    if (pause.op_code != NULL)
        snprintf(text, sizeof text, " for %s", pause.op_code);
    return text;
}

static int decide(tl_client *client, tl_status status, int pauses)
{
    struct deadlines deadlines = {.channel = pause.channel, .op_code = pause.op_code};
    tl_overview overview = TL_OVERVIEW_INIT;
    char text[512 + DEADLINES_TEXT], when[DEADLINES_TEXT];

    if (status != TL_OK)
        return report(status);
    /* The decision stands all the same. */
    if (tl_overview_read(client, &overview, deadlines_take, &deadlines) != TL_OK)
        (void)report(TL_UNKNOWN);
    deadlines_text(when, &deadlines, overview.now_us);
    if (!pauses && deadlines.late == 0)
        when[0] = '\0';
    snprintf(text, sizeof text, "Channel %s %s%s within a heartbeat of each process; %s.%s%s",
             pause.channel, pauses ? "pauses" : "goes on", for_operation(),
             pauses ? "what was armed before may still be sent" : "what waited is due",
             when[0] != '\0' ? "\n" : "", when);
    return tell(client, "pause",
                json_pack("{s:s, s:o, s:b, s:o, s:o, s:o}", "channel", pause.channel, "op_code",
                          json_text(pause.op_code), "paused", pauses, "waits",
                          json_unsigned(deadlines.waits), "late", json_unsigned(deadlines.late),
                          "first_deadline_at", json_time(deadlines.first_us)),
                text);
}

static int work_pause(tl_client *client)
{
    return decide(client, tl_channel_pause(client, &pause), 1);
}

static int work_resume(tl_client *client)
{
    return decide(client, tl_channel_resume(client, &pause), 0);
}

static int work_limit(tl_client *client)
{
    const tl_status status = tl_channel_limit(client, &limit);
    char most[LIMIT_TEXT], text[512];

    if (status != TL_OK)
        return report(status);
    limit_text(most, limit.sends, limit.per_second);
    snprintf(
        text, sizeof text,
        "Channel %s sends %s%s within a heartbeat of each process; what was sent before is not "
        "counted.",
        limit.channel, most[0] != '\0' ? most : "as much as there is", for_operation());
    return tell(client, "limit",
                json_pack("{s:s, s:o, s:o, s:o}", "channel", limit.channel, "op_code",
                          json_text(limit.op_code), "sends", json_number(limit.sends), "per_second",
                          json_number(limit.per_second)),
                text);
}

static int work_breaker(tl_client *client)
{
    const tl_breaker *b = &breaker;
    const tl_status status = tl_channel_breaker(client, b);
    char text[512];

    if (status != TL_OK)
        return report(status);
    snprintf(text, sizeof text, "Channel %s has %s breaker%s within a heartbeat of each process%s.",
             b->channel, b->unknowns > 0 ? "this" : "no", for_operation(),
             b->unknowns > 0 ? "; what was sent before is not counted" : "");
    return tell(client, "breaker",
                json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "channel", b->channel, "op_code",
                          json_text(b->op_code), "unknowns", json_number(b->unknowns), "share",
                          json_number(b->share), "window_s", json_number(b->window_s), "probe_s",
                          json_number(b->probe_s)),
                text);
}

static const struct verb {
    const char *name;
    int (*work)(tl_client *client);
} verbs[] = {{"ls", list},
             {"pause", work_pause},
             {"resume", work_resume},
             {"limit", work_limit},
             {"breaker", work_breaker}};

static const struct verb *verb;

/* EXIT_DONE, or EXIT_USAGE with a sentence. */
static int check_limit(void)
{
    if (!none && !says_limit)
        return usage_error("channel limit needs --sends, --per-second or --none");
    if (none && says_limit)
        return usage_error("--none goes with neither --sends nor --per-second");
    return EXIT_DONE;
}

/* EXIT_DONE, or EXIT_USAGE with a sentence. */
static int check_breaker(void)
{
    if (!none && breaker.unknowns == 0)
        return usage_error("channel breaker needs --unknowns or --none");
    if (none && says_breaker)
        return usage_error("--none goes with no number");
    if (says_limit)
        return usage_error("channel breaker takes no limit");
    if ((breaker.share == 0) != (breaker.window_s == 0))
        return usage_error("--share and --window go together");
    if (!none && breaker.probe_s == 0)
        breaker.probe_s = TL_BREAKER_PROBE_S;
    return EXIT_DONE;
}

/* EXIT_DONE, or EXIT_USAGE with a sentence. */
static int check(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0] && argc > 0; i++)
        if (strcmp(verbs[i].name, argv[0]) == 0)
            verb = &verbs[i];
    if (verb == NULL)
        return usage_error("channel is followed by pause, resume, limit, breaker or ls%s%s",
                           argc > 0 ? ", not " : "", argc > 0 ? argv[0] : "");
    const int limits = verb->work == work_limit, breaks = verb->work == work_breaker;

    if (!limits && !breaks && (says_limit || none))
        return usage_error("channel %s takes no limit", verb->name);
    if (!breaks && says_breaker)
        return usage_error("channel %s takes no breaker", verb->name);
    if (verb->work == list && (argc > 1 || pause.op_code != NULL || pause.reason != NULL))
        return usage_error("channel ls takes neither an operand, nor --op or --reason");
    if (verb->work == list)
        return EXIT_DONE;
    if (argc != 2)
        return usage_error("channel %s takes one operand, the channel, not %d", verb->name,
                           argc - 1);
    if (pause.op_code != NULL && pause.op_code[0] == '\0')
        return usage_error("--op is empty");
    if (needs_reason(pause.reason) != EXIT_DONE)
        return EXIT_USAGE;
    pause.channel = limit.channel = breaker.channel = argv[1];
    limit.op_code = breaker.op_code = pause.op_code;
    limit.reason = breaker.reason = pause.reason;
    limit.actor = breaker.actor = pause.actor;
    return breaks ? check_breaker() : limits ? check_limit() : EXIT_DONE;
}

static int work(tl_client *client)
{
    return verb->work(client);
}

static const struct command_option options[] = {
    {"op OP", "for this operation alone", OPTION_TEXT, .to = &pause.op_code},
    {"sends N", "limit: so many sends at a time, up to 1000000", OPTION_NUMBER, .to = &limit.sends,
     .given = &says_limit, .least = 1, .most = TL_LIMIT_SENDS_MAX},
    {"per-second R", "limit: so many sends a second, up to 100000", OPTION_NUMBER,
     .to = &limit.per_second, .given = &says_limit, .least = 1, .most = TL_LIMIT_PER_SECOND_MAX},
    {"unknowns N", "breaker: opens after so many in a row, up to 1000000", OPTION_NUMBER,
     .to = &breaker.unknowns, .given = &says_breaker, .least = 1, .most = TL_BREAKER_UNKNOWNS_MAX},
    {"share P", "breaker: or when so many per cent of a window's are unknown", OPTION_NUMBER,
     .to = &breaker.share, .given = &says_breaker, .least = 1, .most = 100},
    {"window S", "breaker: seconds of that window, up to 86400", OPTION_NUMBER,
     .to = &breaker.window_s, .given = &says_breaker, .least = 1, .most = TL_BREAKER_SECONDS_MAX,
     .is = "a number of seconds"},
    {"probe-every S", "breaker: seconds from one probe to the next (10)", OPTION_NUMBER,
     .to = &breaker.probe_s, .given = &says_breaker, .least = 1, .most = TL_BREAKER_SECONDS_MAX,
     .is = "a number of seconds"},
    {"none", "limit, breaker: none any more", OPTION_FLAG, .to = &none},
    OPTION_REASON_OF(&pause.reason, WHY),
    OPTION_ACTOR_OF(&pause.actor, WHO),
    {.name = NULL}};

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
        "resume.  But deadlines go on too: a pause and a resume say when the first one is.\n"
        "After it nothing is sent: what was never sent fails, what is in doubt is asked for,\n"
        "and parked if that does not tell.  Each process obeys after its next heartbeat; what\n"
        "was armed before may still be sent.  Without --op it is about the whole channel.\n"
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
    .examples = "  tradelock channel pause bankA --reason \"answers nothing\"\n"
                "  tradelock channel limit bankA --sends 4 --reason \"their letter\"\n",
    .options = options,
    .check = check,
    .of = OF_DATABASE,
    .work = work,
    .takes_operands = 1,
};
