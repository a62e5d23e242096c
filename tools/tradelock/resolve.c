/* tradelock resolve: one operator proposes a decision, another confirms it; of one trade, or of all
 * that pass a filter, which the second operator names by the act that proposed them. */
#include "command.h"

#include "fields.h"
#include "filter.h"
#include "fleet.h"
#include "fleet_map.h"
#include "judge.h"
#include "many.h"
#include "print.h"
#include "said.h"

#include <tradelock/admin.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static tl_resolution resolution = {.version = TL_RESOLUTION_VERSION};
static int has_fence, confirms, lists;

static struct {
    int is_all, filters, has_yes;
    tl_filter filter;
    char *where;
    const char *acts; /* of a confirmation: "7", "7,8", "a:7,b:3" */
    uint64_t yes;
} all = {.filter = {.version = TL_FILTER_VERSION}};

static int take_verdict(const char *value, void *to)
{
    static const tl_decision decisions[] = {TL_DECISION_CLEAR, TL_DECISION_PAID,
                                            TL_DECISION_FAILED};

    for (size_t i = 0; i < sizeof decisions / sizeof decisions[0]; i++)
        if (strcmp(value, tl_decision_name(decisions[i])) == 0) {
            *(tl_decision *)to = decisions[i];
            return EXIT_DONE;
        }
    return usage_error("--as is clear, paid or failed, not %s", value);
}

static int decide(tl_client *client)
{
    static const char *const next[] = {
        "another operator confirms it with `tradelock resolve confirm`, or nothing happens",
        "a worker that has the operation registered asks the channel, where that can be, and "
        "carries it out, with its books"};
    const tl_key *key = &resolution.key;
    const char *verdict = tl_decision_name(resolution.decision);
    struct said said = {.when_us = 0};
    char sentence[SAID_SENTENCE];
    /* Without the right to read the log nothing is known of it. */
    tl_status status = said_read(client, key, &said);

    if (status == TL_OK || status == TL_ACCESS_DENIED)
        status = confirms ? tl_resolution_confirm(client, &resolution)
                          : tl_resolution_propose(client, &resolution);
    if (status != TL_OK)
        return report(status);
    return print_answer(
        json_pack("{s:s, s:s, s:s, s:s, s:b, s:s, s:o, s:o}", "serial_no", key->serial_no,
                  "cust_no", key->cust_no, "op_code", key->op_code, "verdict", verdict, "confirmed",
                  confirms, "status", tl_status_name(status), "channel_said", json_text(said.text),
                  "channel_said_at", json_time(said.when_us)),
        EXIT_DONE, "%s for %s %s %s: %s; %s.\nThe channel last said: %s.\n",
        confirms ? "Decided" : "Proposed", key->serial_no, key->cust_no, key->op_code, verdict,
        confirms && resolution.decision == TL_DECISION_CLEAR
            ? "nothing contradicts the row any more"
            : next[confirms],
        said_text(sentence, &said));
}

/* ------------------------------------------------------------------ many trades -- */

/* What the channel said last, and of how many trades. */
static json_t *answers;

/* Without the right to read the log nothing is known of it. */
static int read_answer(struct many *self, tl_client *client, const struct seen *row)
{
    const tl_key key = seen_key(row);
    struct said said = {.when_us = 0};
    const tl_status status = said_read(client, &key, &said);
    const char *text = said.text[0] != '\0' ? said.text : "nothing that is on record";

    if (status == TL_OK)
        json_object_set_new(answers, text,
                            json_integer(1 + json_integer_value(json_object_get(answers, text))));
    else if (status != TL_ACCESS_DENIED)
        self->status = status;
    return JUDGE_MEANT;
}

static void say_answers(struct many *self, char *to, size_t space, size_t size)
{
    json_t *said = json_array(), *trades;
    const char *text;

    json_object_foreach(answers, text, trades)
    {
        json_array_append_new(said, json_pack("{s:s, s:O}", "text", text, "trades", trades));
        if (size < space)
            size += (size_t)snprintf(to + size, space - size, "%sThe channel last said of %s: %s.",
                                     size > 0 ? "\n" : "",
                                     COUNT_TEXT((uint64_t)json_integer_value(trades)), text);
    }
    json_object_set_new(self->bulk.apart_json, "channel_said", said);
}

static int judge(struct many *self, const tl_view *view)
{
    (void)self;
    return judge_proposal(resolution.decision, view);
}

/* What is proposed needs no proposal: so the same again goes on with what is left. */
static int check_proposal(struct many *self, tl_client *client, const struct seen *row)
{
    const tl_key key = seen_key(row);
    const int why = judge_proposed(client, resolution.decision, &key, &self->status);

    return why != JUDGE_MEANT ? why : read_answer(self, client, row);
}

enum { CONFIRMED, MOVED_ON };

/* What act of this database is looked at. */
struct confirming {
    struct many *many;
    tl_client *client;
    uint64_t act_no, rows;
    int is_own, is_other;
};

static int take_proposed(void *context, const tl_proposed *proposed)
{
    struct confirming *c = context;
    struct seen row = {
        .amount_minor = proposed->amount_minor, .fence = proposed->fence, .act_no = c->act_no};

    c->rows++;
    c->is_own |= proposed->own;
    c->is_other |= proposed->decision != resolution.decision;
    if (proposed->confirmed)
        c->many->apart[CONFIRMED]++;
    if (!proposed->confirmed && !proposed->stands) {
        c->many->apart[MOVED_ON]++;
        (void)tl_moved_on(c->client, &proposed->key, proposed->fence);
        bulk_leave_out(&c->many->bulk, &proposed->key, tl_error_message());
    }
    if (!proposed->stands)
        return 0;
    snprintf(row.serial_no, sizeof row.serial_no, "%s", proposed->key.serial_no);
    snprintf(row.cust_no, sizeof row.cust_no, "%s", proposed->key.cust_no);
    snprintf(row.op_code, sizeof row.op_code, "%s", proposed->key.op_code);
    snprintf(row.currency, sizeof row.currency, "%s", proposed->currency);
    return !many_add(c->many, &row);
}

static int look_at_act(struct many *self, tl_client *client, uint64_t act_no)
{
    struct confirming c = {.many = self, .client = client, .act_no = act_no};
    const tl_status status = tl_proposed_list(client, act_no, take_proposed, &c);

    if (status != TL_OK)
        return fleet_told(status);
    if (c.rows == 0)
        return fleet_told(tl_error_report(TL_NOT_FOUND,
                                          "act %" PRIu64 " proposed nothing; see "
                                          "`tradelock inbox`",
                                          act_no));
    if (c.is_other)
        return fleet_told(tl_error_report(TL_REFUSED, "act %" PRIu64 " did not propose `%s`",
                                          act_no, tl_decision_name(resolution.decision)));
    if (c.is_own)
        return fleet_told(
            tl_error_report(TL_REFUSED,
                            "you proposed act %" PRIu64 ", and whoever proposed a decision cannot "
                            "confirm it: another operator, with an account of their own, must",
                            act_no));
    return EXIT_DONE;
}

/* The next of "7,8" or "a:7,b:3": 0 where there is none, or it is none. */
static int next_act(const char **from, char shard[TL_FLEET_NAME_MAX + 1], uint64_t *act_no)
{
    const size_t size = strcspn(*from, ","), name = strcspn(*from, ":,");
    char digits[24];

    snprintf(shard, TL_FLEET_NAME_MAX + 1, "%.*s", name < size ? (int)name : 0, *from);
    snprintf(digits, sizeof digits, "%.*s", (int)(name < size ? size - name - 1 : size),
             *from + (name < size ? name + 1 : 0));
    *from += size + ((*from)[size] == ',' && (*from)[size + 1] != '\0');
    return read_number(digits, INT64_MAX, act_no) && *act_no != 0;
}

static int look_at_acts(struct many *self, tl_client *client)
{
    char shard[TL_FLEET_NAME_MAX + 1];
    const char *rest = all.acts;
    int code = EXIT_DONE;
    uint64_t act_no;

    while (code == EXIT_DONE && rest[0] != '\0' && next_act(&rest, shard, &act_no))
        if (shard[0] == '\0' || strcmp(shard, fleet_name(fleet_at())) == 0)
            code = look_at_act(self, client, act_no);
    return code;
}

static tl_status decide_one(void *context, tl_client *client, uint64_t act_no, uint64_t row)
{
    const struct seen *seen = &((const struct many *)context)->rows[row];
    tl_resolution one = resolution;

    one.key = seen_key(seen);
    one.fence = seen->fence;
    return tl_act_resolve(client, act_no, row + 1, &one, seen->act_no);
}

static int decide_all(void)
{
    char said[1024] = "--as ", as[16];
    struct many many = {
        .bulk = {.run.act = {.what = confirms ? "resolve confirm" : "resolve propose",
                             .said = said,
                             .actor = resolution.actor,
                             .reason = resolution.reason},
                 .run.each = decide_one,
                 .verb = confirms ? "confirm" : "propose",
                 .then = confirms ? NULL : as,
                 .has_yes = all.has_yes,
                 .yes = all.yes},
        .limit = all.filter.limit,
        .judge = judge,
        .check = confirms ? read_answer : check_proposal,
        .say = say_answers,
        .reasons = {"held", "may_send", "proposed"},
        .words = {"held by somebody", "may still be sent", "proposed already"}};
    int code;

    snprintf(as, sizeof as, "--as %s", tl_decision_name(resolution.decision));
    if (confirms) {
        many.look = look_at_acts;
        many.reasons[0] = "confirmed", many.words[0] = "confirmed already";
        many.reasons[1] = "moved_on", many.words[1] = "not as they were proposed";
        many.reasons[2] = NULL;
        snprintf(said, sizeof said, "%s --act %.900s", as, all.acts);
    } else {
        many.filter = &all.filter;
        all.filter.status = judge_status(resolution.decision);
        all.filter.conflict |= resolution.decision != TL_DECISION_FAILED;
        code = snprintf(said, sizeof said, "%s ", as);
        filter_say(said + code, sizeof said - (size_t)code);
    }
    answers = json_object();
    code = many_run(&many);
    json_decref(answers);
    return code == EXIT_DONE && confirms && many.apart[MOVED_ON] > 0 ? EXIT_REFUSED : code;
}

/* ------------------------------------------------------------------ the command -- */

static int add_row(void *context, const tl_resolution_row *row)
{
    return listing_add(context, row);
}

static int read_decisions(tl_client *client, void *context)
{
    return fleet_told(tl_resolution_list(client, &resolution.key, add_row, context));
}

static int check_acts(void)
{
    char shard[TL_FLEET_NAME_MAX + 1];
    const char *rest = all.acts;
    uint64_t act_no;

    if (!confirms)
        return usage_error("--act is for `confirm`: a proposal takes filters");
    if (all.filters)
        return usage_error("a confirmation takes no filters: --act names the trades");
    do {
        if (!next_act(&rest, shard, &act_no))
            return usage_error(
                "--act is the number of an act such as 7, of a fleet a:7,b:3, not %s", all.acts);
        if ((shard[0] != '\0') != fleet_is() ||
            (fleet_is() && fleet_shard_of(shard) == FLEET_NOBODY))
            return usage_error(fleet_is() ? "--act names acts of these shards, as a:7,b:3, not %s"
                                          : "--act names acts of one database, as 7, not %s",
                               all.acts);
    } while (rest[0] != '\0');
    return EXIT_DONE;
}

static int check_all(int argc, char **argv)
{
    if (lists || argc > 0)
        return lists ? usage_error("`ls` is about one trade")
                     : usage_error("--all, --where and --act take no operand: %s", argv[0]);
    if (has_fence)
        return usage_error("--fence is for one trade; of many each has the fence that was seen");
    if (resolution.although_pending)
        return usage_error("--although-pending is said of one trade, whose answer was seen");
    if (confirms && all.acts == NULL)
        return usage_error("--act is missing: which proposal is confirmed; `tradelock inbox` "
                           "names it");
    return EXIT_DONE;
}

static int check_one(int argc, char **argv)
{
    if (read_key(&resolution.key, argc, argv) != EXIT_DONE)
        return EXIT_USAGE;
    if (all.filters || all.has_yes)
        return usage_error("filters and --yes are for many trades: say --all");
    return EXIT_DONE;
}

static int check(int argc, char **argv)
{
    const char *verb = argc > 0 ? argv[0] : "";
    int code = EXIT_DONE;

    lists = strcmp(verb, "ls") == 0;
    confirms = strcmp(verb, "confirm") == 0;
    if (!confirms && !lists && strcmp(verb, "propose") != 0)
        return usage_error("resolve is for `propose`, `confirm` and `ls`, not '%s'", verb);
    if (all.where != NULL)
        code = filter_where(all.where);
    all.is_all |= all.where != NULL || all.acts != NULL;
    if (code == EXIT_DONE)
        code = all.is_all ? check_all(argc - 1, argv + 1) : check_one(argc - 1, argv + 1);
    if (code != EXIT_DONE || lists)
        return code;
    if (tl_decision_name(resolution.decision)[0] == '\0')
        return usage_error("--as is missing: clear, paid or failed");
    if (!all.is_all && !has_fence)
        return usage_error("--fence is missing: it says which state of the trade you saw, and "
                           "`tradelock show` prints it");
    if (needs_reason(resolution.reason) != EXIT_DONE)
        return EXIT_USAGE;
    if (resolution.although_pending && (!confirms || resolution.decision != TL_DECISION_FAILED))
        return usage_error("--although-pending is said by whoever confirms that a trade failed");
    return EXIT_DONE;
}

static int work(tl_client *client)
{
    int code;

    if (all.is_all) {
        code = all.acts != NULL ? check_acts() : EXIT_DONE;
        return code == EXIT_DONE ? decide_all() : code;
    }
    code = fleet_owner(&client, resolution.key.cust_no);
    if (code != EXIT_DONE)
        return code;
    return lists ? listing_run(client, &record_resolution, NULL, "resolutions",
                               "no operator decided anything about this trade", read_decisions)
                 : decide(client);
}

static const struct command_option options[] = {
    {"as clear", "the conflict is cleared: the evidence was wrong", OPTION_OTHER,
     .to = &resolution.decision, .take = take_verdict},
    {"as paid", "a failure in conflict was paid after all", OPTION_OTHER,
     .to = &resolution.decision, .take = take_verdict},
    {"as failed", "a trade in doubt, or parked, failed: no money moved or will", OPTION_OTHER,
     .to = &resolution.decision, .take = take_verdict},
    {"fence N", "the fence of the row as `tradelock show` printed it", OPTION_NUMBER,
     .to = &resolution.fence, .given = &has_fence, .is = "a number as `tradelock show` prints it"},
    OPTION_REASON_OF(&resolution.reason, WHY),
    OPTION_ACTOR_OF(&resolution.actor, WHO),
    {"although-pending", "confirm: book `failed` although the channel says pending", OPTION_FLAG,
     .to = &resolution.although_pending},
    {"all", "propose: all trades that pass these filters:", OPTION_FLAG, .to = &all.is_all},
    FILTER_OPTIONS(all.filter, &all.filters),
    FILTER_LIMIT(all.filter, &all.filters, "at most N of them (all)"),
    {"where TEXT", "--all, with filters as words: 'parked channel=bank'", OPTION_TEXT,
     .to = &all.where},
    {"act ACTS", "confirm: what act 7 proposed; of a fleet a:7,b:3", OPTION_TEXT, .to = &all.acts},
    {"yes N", "do it, if it is N trades", OPTION_NUMBER, .to = &all.yes, .given = &all.has_yes,
     .is = "the number of trades"},
    {.name = NULL}};

const struct command command_resolve = {
    .name = "resolve",
    .summary = "decide a trade that no rule can, as two operators",
    .arguments = "propose|confirm|ls SERIAL CUST OP [OPTION...]\n"
                 "       tradelock resolve propose --all FILTER... | confirm --act N",
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
            "carried out.\n"
            "\n"
            "With --all, it is proposed of each trade that passes the filters, under the fence\n"
            "that was seen.  First it shows how many, how much money, ten of them, and what the\n"
            "channel last said; then it takes the number, typed on the terminal or by --yes.\n"
            "The other operator confirms that act (--act): only what it proposed, and only\n"
            "trades that are as they were; the others are named and left alone (exit code 1).\n"
            "Ctrl-C stops it between two trades, and the same again goes on.\n",
    .examples = "  tradelock resolve propose --all --parked --as failed --reason letter\n"
                "  tradelock resolve confirm --act 7 --as failed --reason \"read the letter\"\n"
                "  tradelock resolve ls W2024001 C1001 WITHDRAW\n",
    .options = options,
    .check = check,
    .of = OF_SHARDS,
    .work = work,
    .takes_operands = 1,
};
