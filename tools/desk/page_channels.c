/* The page Channels: what became of their trades; which are paused, limited or broken, why and by
 * whom; pausing, limiting and draining. */
#include "command.h"
#include "disobedient.h"
#include "now.h"
#include "parts.h"
#include "print.h"

#include <tradelock/layer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUEUES_MOST 64
#define HELD_MOST 100 /* that a drain counts, as the command */

struct queue {
    char channel[TL_CHANNEL_MAX + 1], op[TL_OP_MAX + 1];
    struct deadlines deadlines;
};

struct writing {
    struct visit *visit;
    struct queue waits[QUEUES_MOST]; /* of the shard that is written; the first one is of all */
    size_t waits_count;
    const struct now *now; /* NULL: it could not be taken */
    unsigned number;       /* of the row, for the names of its fields */
};

static int is_drain(const tl_pause_row *row)
{
    return strcmp(row->channel, TL_CHANNEL_ALL) == 0;
}

/* What was typed into the form of this row that was sent and refused; "": it was another. */
static const char *typed(const struct writing *w, const tl_pause_row *row, const char *act,
                         const char *name)
{
    const struct form *form = &w->visit->request->body;
    const char *const sent[][2] = {{"act", act},
                                   {"channel", row->channel},
                                   {"op", row->op_code},
                                   {"shard", visit_shard(w->visit)}};

    for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++)
        if (strcmp(form_get(form, sent[i][0]), sent[i][1]) != 0)
            return "";
    return form_get(form, name);
}

static void form_begin(struct writing *w, const tl_pause_row *row, const char *act)
{
    part_form(w->visit, "/channels", "shard", visit_shard(w->visit), "channel", row->channel, "op",
              row->op_code, "act", act);
}

static void form_end(struct writing *w, const tl_pause_row *row, const char *act,
                     const char *button)
{
    char id[40];

    snprintf(id, sizeof id, "reason-%s-%u", act, w->number);
    part_form_end(&w->visit->answer->page, id, typed(w, row, act, "reason"), button);
}

/* Has it pause or go on, and the command that does the same. */
static void form_pause(struct writing *w, const tl_pause_row *row)
{
    struct page *page = &w->visit->answer->page;
    const char *verb = row->paused ? "resume" : "pause";
    const char *lost = typed(w, row, row->paused ? "pause" : "resume", "reason");

    /* It was for what is so by now. */
    if (lost[0] != '\0')
        page_format(page, "<p class=\"notice\">You wrote: “%s”</p>\n", lost);
    form_begin(w, row, verb);
    form_end(w, row, verb,
             row->paused     ? "Have it go on"
             : is_drain(row) ? "Stop everything"
                             : "Pause it");
    if (is_drain(row) && row->paused)
        part_command(page, "drain", "--end", "--reason", "TEXT", "--shard", visit_shard(w->visit));
    else if (is_drain(row))
        part_command(page, "drain", "--reason", "TEXT", "--shard", visit_shard(w->visit));
    else
        part_command(page, "channel", verb, row->channel, "--op", row->op_code, "--reason", "TEXT",
                     "--shard", visit_shard(w->visit));
}

/* A number of a form: its name there, what it says, and the most that it may be. */
struct number {
    const char *name, *label;
    uint64_t most;
};

static const struct number limit_numbers[] = {
    {"sends", "Sends at a time", TL_LIMIT_SENDS_MAX},
    {"per_second", "Sends a second", TL_LIMIT_PER_SECOND_MAX}};
static const struct number breaker_numbers[] = {
    {"unknowns", "Opens after so many unknown outcomes in a row", TL_BREAKER_UNKNOWNS_MAX},
    {"share", "Or when so many per cent of a window’s are unknown", 100},
    {"window", "Seconds of that window", TL_BREAKER_SECONDS_MAX},
    {"probe", "Seconds from one probe to the next", TL_BREAKER_SECONDS_MAX}};
#define NUMBERS(of) of, sizeof of / sizeof of[0]

/* With what is so now, or was typed; folded unless it was sent. */
static void form_numbers(struct writing *w, const tl_pause_row *row, const char *act,
                         const char *title, const struct number *numbers, size_t count,
                         const int64_t *now)
{
    struct page *page = &w->visit->answer->page;
    const int is_sent = typed(w, row, act, "act")[0] != '\0';

    page_put(page, is_sent ? "<details open>" : "<details>");
    page_format(page, "<summary>%s</summary>\n", title);
    form_begin(w, row, act);
    for (size_t i = 0; i < count; i++) {
        char value[24] = "";

        if (now[i] > 0)
            snprintf(value, sizeof value, "%lld", (long long)now[i]);
        page_format(page,
                    "<label for=\"%s-%u\">%s</label><input id=\"%s-%u\" type=\"number\" "
                    "min=\"1\" max=\"%llu\" step=\"1\" name=\"%s\" value=\"%s\">\n",
                    numbers[i].name, w->number, numbers[i].label, numbers[i].name, w->number,
                    (unsigned long long)numbers[i].most, numbers[i].name,
                    is_sent ? typed(w, row, act, numbers[i].name) : value);
    }
    page_format(page,
                "<p class=\"check\"><input type=\"checkbox\" id=\"none-%s-%u\" name=\"none\" "
                "value=\"1\"><label for=\"none-%s-%u\">None any more</label></p>\n",
                act, w->number, act, w->number);
    form_end(w, row, act, "Set it");
}

static void form_limit(struct writing *w, const tl_pause_row *row)
{
    const int64_t now[] = {row->sends, row->per_second};

    form_numbers(w, row, "limit", "Limit it", NUMBERS(limit_numbers), now);
    part_command(&w->visit->answer->page, "channel", "limit", row->channel, "--op", row->op_code,
                 "--sends", "N", "--per-second", "R", "--reason", "TEXT", "--shard",
                 visit_shard(w->visit));
    page_put(&w->visit->answer->page, "</details>\n");
}

static void form_breaker(struct writing *w, const tl_pause_row *row)
{
    const int64_t now[] = {row->unknowns, row->share, row->window_s, row->probe_s};

    form_numbers(w, row, "breaker", "Give it a breaker", NUMBERS(breaker_numbers), now);
    part_command(&w->visit->answer->page, "channel", "breaker", row->channel, "--op", row->op_code,
                 "--unknowns", "N", "--share", "P", "--window", "S", "--reason", "TEXT", "--shard",
                 visit_shard(w->visit));
    page_put(&w->visit->answer->page, "</details>\n");
}

/* What became of its trades, where any ended or wait. */
static void write_rate(struct writing *w, const tl_pause_row *row)
{
    struct page *page = &w->visit->answer->page;
    const struct now *now = w->now;

    for (unsigned i = 0; now != NULL && i < now->channel_count; i++) {
        const tl_channel_state *state = &now->channels[i].state;

        if (strcmp(now->channels[i].name, row->channel) != 0 ||
            strcmp(now->channels[i].op_code, row->op_code) != 0)
            continue;
        page_format(page, "<p>In the last hour: %s paid, %s declined, %s failed. Waiting: %s. ",
                    COUNT_TEXT(state->succeeded), COUNT_TEXT(state->declined),
                    COUNT_TEXT(state->failed), COUNT_TEXT(state->waits));
        if (state->down_since_us != 0) {
            page_put(page, "<strong>No answer since ");
            page_moment(page, state->down_since_us);
            page_put(page, "</strong>");
        } else if (state->succeeded + state->declined + state->failed > 0) {
            page_put(page, "Success rate: ");
            grid_value(w->visit, &record_channel_state,
                       record_column(&record_channel_state, "rate", 4), state);
        }
        page_put(page, "</p>\n");
    }
}

/* What limits it, and how much of that is used. */
static void write_limit(struct page *page, const tl_pause_row *row)
{
    char limit[LIMIT_TEXT];

    if (row->sends == 0 && row->per_second == 0)
        return;
    page_format(page, "<p><strong>Limited to %s</strong> since ",
                limit_text(limit, row->sends, row->per_second));
    page_ago(page, row->limited_us, row->now_us);
    page_format(page, " by %s: %s. ", row->limit_account, row->limit_reason);
    if (limit_is_full(row))
        page_put(page, "<strong>Full:</strong> ");
    if (row->sends > 0)
        page_format(page, "%s of %s permits are out%s. ", COUNT_TEXT((uint64_t)row->permits),
                    COUNT_TEXT((uint64_t)row->sends),
                    limit_is_full(row) ? ", so other sends wait until one comes back" : "");
    if (row->permits_ended > 0) {
        page_format(page, "%s of them are of processes that ended; the first is free at ",
                    COUNT_TEXT((uint64_t)row->permits_ended));
        page_moment(page, row->ended_free_us);
        page_put(page, ". ");
    }
    if (row->next_us != 0) {
        page_put(page, "The next send may begin at ");
        page_moment(page, row->next_us);
        page_put(page, ".");
    }
    page_put(page, "</p>\n");
}

/* Its breaker, and how that stands. */
static void write_breaker(struct writing *w, const tl_pause_row *row)
{
    struct page *page = &w->visit->answer->page;

    if (row->unknowns == 0)
        return;
    page_format(page, "<p><strong>Breaker %s</strong>", row->opened_us != 0 ? "open" : "closed");
    if (row->opened_us != 0) {
        page_put(page, " since ");
        page_ago(page, row->opened_us, row->now_us);
    }
    page_format(page, ": opens after %lld unknown outcomes in a row", (long long)row->unknowns);
    if (row->share > 0)
        page_format(page, ", or %lld %% of a window of %lld s", (long long)row->share,
                    (long long)row->window_s);
    page_format(page, " (%s, %s). ", row->breaker_reason, row->breaker_account);
    if (row->opened_us != 0)
        part_probes(page, row);
    page_put(page, "</p>\n");
    if (row->opened_us != 0 && w->visit->account.may_decide)
        part_command(page, "channel", "breaker", row->channel, "--op", row->op_code, "--none",
                     "--reason", "TEXT", "--shard", visit_shard(w->visit));
}

/* Each operation of a channel, at which something waits. */
static int take_waiting(void *context, const tl_waiting *one)
{
    struct writing *w = context;
    struct queue *at = w->waits, *const end = at + w->waits_count;

    deadlines_take(&w->waits[0].deadlines, one);
    while (at < end &&
           (strcmp(at->channel, one->channel) != 0 || strcmp(at->op, one->op_code) != 0))
        at++;
    if (at == w->waits + QUEUES_MOST)
        return 0;
    if (at == end) {
        w->waits_count++;
        snprintf(at->channel, sizeof at->channel, "%s", one->channel);
        snprintf(at->op, sizeof at->op, "%s", one->op_code);
        at->deadlines = (struct deadlines){.channel = at->channel, .op_code = at->op};
    }
    return deadlines_take(&at->deadlines, one);
}

/* Before it is paused, and while it is: which deadlines go on. */
static void write_deadlines(struct writing *w, const tl_pause_row *row)
{
    char text[DEADLINES_TEXT];

    for (size_t i = 0; i < w->waits_count; i++)
        if (strcmp(w->waits[i].channel, row->channel) == 0 &&
            strcmp(w->waits[i].op, row->op_code) == 0 && w->waits[i].deadlines.first_us != 0)
            page_format(&w->visit->answer->page, "<p class=\"%s\">%s</p>\n",
                        row->paused ? "notice warn" : "quiet",
                        deadlines_text(text, &w->waits[i].deadlines, row->now_us));
}

static int count_unheard(void *unheard, const tl_session_row *row)
{
    *(unsigned *)unheard += !row->obeys_drain && strcmp(row->state, "ended") != 0;
    return 0;
}

static int count_held(void *held, const tl_view *view)
{
    (void)view;
    ++*(unsigned *)held;
    return 0;
}

/* How far a drain is: what a process was granted before it obeyed is there, so those come first. */
static void write_drained(struct writing *w)
{
    struct page *page = &w->visit->answer->page;
    tl_filter filter = TL_FILTER_INIT;
    unsigned unheard = 0, held = 0;
    tl_status status = tl_session_list(w->visit->client, count_unheard, &unheard);

    filter.held = 1;
    filter.limit = HELD_MOST;
    if (status == TL_OK)
        status = tl_list(w->visit->client, &filter, count_held, &held);
    if (status != TL_OK)
        page_format(page, "<p class=\"notice bad\">What is still held is not known: %s</p>\n",
                    said_by(status));
    else
        page_format(page,
                    "<p><strong>Trades that are still held: %u%s.</strong> Processes that have not "
                    "said yet that nothing begins there: %u.</p>\n",
                    held, held == HELD_MOST ? " or more" : "", unheard);
}

static void write_card(struct writing *w, const tl_pause_row *row)
{
    struct page *page = &w->visit->answer->page;

    w->number++;
    page_format(page, "<section class=\"card offer%s\" id=\"",
                is_drain(row) && !row->paused ? " last" : "");
    part_channel_id(page, visit_shard(w->visit), row->channel, row->op_code);
    page_format(page, "\"><h2>%s, %s</h2>\n<p><strong>",
                is_drain(row) ? "All channels (drain)" : row->channel,
                row->op_code[0] != '\0' ? row->op_code : "as a whole");
    grid_value(w->visit, &record_channel, record_column(&record_channel, "state", 5), row);
    page_put(page, "</strong>");
    if (row->decided_us != 0) {
        page_put(page, row->paused ? " since " : ", decided ");
        page_ago(page, row->decided_us, row->now_us);
        page_format(page, " by %s: %s", row->account, row->reason);
    }
    page_put(page, "</p>\n");
    if (is_drain(row))
        page_put(page, "<p>A drain stops everything: no process grants a trade, and none begins a "
                       "compensating attempt. What runs ends as ever.</p>\n");
    if (is_drain(row) && row->paused)
        write_drained(w);
    write_deadlines(w, row);
    write_limit(page, row);
    write_breaker(w, row);
    write_rate(w, row);
    if (w->visit->account.may_decide)
        form_pause(w, row);
    if (w->visit->account.may_decide && !is_drain(row)) {
        form_limit(w, row);
        form_breaker(w, row);
    }
    page_put(page, "</section>\n");
}

static int write_drain(void *context, const tl_pause_row *row)
{
    struct writing *w = context;

    if (!is_drain(row))
        return 0;
    write_card(w, row);
    return 1;
}

static int write_row(void *context, const tl_pause_row *row)
{
    if (!is_drain(row))
        write_card(context, row);
    return 0;
}

/* The drain stands first, also where nobody has decided about it yet. */
static tl_status write_cards(struct writing *w, int64_t now_us)
{
    const unsigned before = w->number;
    tl_status status = tl_pause_list(w->visit->client, write_drain, w);

    if (status == TL_OK && w->number == before)
        write_card(w, &(tl_pause_row){.channel = TL_CHANNEL_ALL, .op_code = "", .now_us = now_us});
    return status == TL_OK ? tl_pause_list(w->visit->client, write_row, w) : status;
}

/* The channels of one shard, as far as it answers. */
static void write_shard(struct writing *w, size_t shard)
{
    struct visit *visit = w->visit;
    struct page *page = &visit->answer->page;
    struct now *now = malloc(sizeof *now);
    const unsigned before = w->number;
    tl_overview overview = TL_OVERVIEW_INIT;
    tl_status status = visit_go_to(visit, shard);

    if (visit_is_of_fleet(visit))
        page_format(page, "<h2>Shard %s</h2>\n", visit_shard(visit));
    w->now = NULL;
    if (status == TL_OK && now != NULL && now_look(visit->desk->now, visit, TL_OK, now) == TL_OK)
        w->now = now;
    if (w->now != NULL && w->now->channels_cut)
        page_put(page, "<p class=\"quiet\">There are more channels than rates stand here: "
                       "<code>tradelock status</code></p>\n");
    if (status == TL_OK)
        part_may_decide(visit);
    page_put(page, "<div class=\"offers\">\n");
    w->waits_count = 1;
    w->waits[0] =
        (struct queue){.channel = TL_CHANNEL_ALL, .deadlines = {.channel = w->waits[0].channel}};
    if (status == TL_OK)
        status = tl_overview_read(visit->client, &overview, take_waiting, w);
    if (status == TL_OK)
        status = write_cards(w, overview.now_us);
    page_put(page, "</div>\n");
    if (status != TL_OK)
        page_format(page, "<p class=\"notice bad\">This cannot be read now: %s</p>\n",
                    said_by(status));
    else if (w->number == before + 1)
        page_put(page, "<p class=\"calm-line\">No workflow has registered a channel.</p>\n");
    free(now);
}

/* problem NULL: none. */
static void write_channels(struct visit *visit, unsigned status, const char *problem)
{
    struct page *page = &visit->answer->page;
    struct writing writing = {.visit = visit};

    layout_begin(visit, status, "Channels", PLACE_CHANNELS, 0);
    page_put(page, "<div class=\"title\"><h1>Channels</h1></div>\n");
    part_problem(page, problem, "These are the channels as they are now.");
    page_put(
        page,
        "<p>While a channel is paused nothing new is sent through it: services are told to "
        "try again later, and what waits in the retry lane stays as it is. No attempt is used "
        "up, nothing is parked, and all of it goes on after the resume. But deadlines go on "
        "too: after its deadline nothing is sent for a payment. One that was never sent then "
        "fails; one in doubt is asked for, and parked if that does not tell. Each process obeys "
        "after its next heartbeat; what was armed before may still be sent. What is sent beyond a "
        "limit waits in the same way. While a breaker is open all waits but for one probe at a "
        "time, until one is answered.</p>\n");
    if (visit_is_of_fleet(visit))
        page_put(page, "<p>Each shard has its own pauses, limits and breakers.</p>\n");
    for (size_t i = 0; i < shards_count(visit->session->shards); i++)
        write_shard(&writing, i);
    layout_end(visit);
}

void page_channels(struct visit *visit)
{
    write_channels(visit, 200, NULL);
}

/* Adds who does not obey such a decision; more of them than there is room for are left out, with the
 * last one cut. */
static void add_disobedient(struct visit *visit, const char *what, char *said, size_t space)
{
    json_t *names;

    if (disobedient_list(visit->client, what, &names) != TL_OK)
        snprintf(said + strlen(said), space - strlen(said), " Who does not obey is not known: %s.",
                 tl_error_message());
    for (size_t i = 0; i < json_array_size(names); i++)
        snprintf(said + strlen(said), space - strlen(said), " " DISOBEDIENT_SAYS,
                 json_string_value(json_array_get(names, i)));
    json_decref(names);
}

/* What the form says; "" is 0.  With `none` the numbers count for nothing. */
static tl_status read_numbers(const struct form *form, const struct number *numbers, size_t count,
                              int64_t *to)
{
    const int none = form_get(form, "none")[0] != '\0';
    int is_any = 0;

    for (size_t i = 0; i < count; i++) {
        const char *text = form_get(form, numbers[i].name);
        uint64_t number = 0;

        if (text[0] != '\0' && (!read_number(text, numbers[i].most, &number) || number == 0))
            return tl_error_report(TL_INVALID, "“%s” is a number from 1 to %s", numbers[i].label,
                                   COUNT_TEXT(numbers[i].most));
        is_any |= number != 0;
        to[i] = none ? 0 : (int64_t)number;
    }
    if (!none && !is_any)
        return tl_error_report(TL_INVALID, "say a number, or that there is none any more");
    return TL_OK;
}

/* A decision that a form of this page sends: it says what holds now, as "pauses". */
#define DECIDED 128
typedef tl_status decide_fn(struct visit *visit, const tl_pause *what, char said[DECIDED]);

static tl_status decide_pause(struct visit *visit, const tl_pause *what, char said[DECIDED])
{
    snprintf(said, DECIDED, "pauses");
    return tl_channel_pause(visit->client, what);
}

static tl_status decide_resume(struct visit *visit, const tl_pause *what, char said[DECIDED])
{
    snprintf(said, DECIDED, "goes on");
    return tl_channel_resume(visit->client, what);
}

static tl_status decide_limit(struct visit *visit, const tl_pause *what, char said[DECIDED])
{
    tl_limit limit = TL_LIMIT_INIT;
    int64_t to[2] = {0, 0};
    tl_status status = read_numbers(&visit->request->body, NUMBERS(limit_numbers), to);
    char most[LIMIT_TEXT];

    if (status != TL_OK)
        return status;
    limit.channel = what->channel;
    limit.op_code = what->op_code;
    limit.sends = to[0];
    limit.per_second = to[1];
    limit.actor = what->actor;
    limit.reason = what->reason;
    limit_text(most, limit.sends, limit.per_second);
    snprintf(said, DECIDED, "sends %s", most[0] != '\0' ? most : "as much as there is");
    return tl_channel_limit(visit->client, &limit);
}

static tl_status decide_breaker(struct visit *visit, const tl_pause *what, char said[DECIDED])
{
    tl_breaker breaker = TL_BREAKER_INIT;
    int64_t to[4] = {0, 0, 0, 0};
    tl_status status = read_numbers(&visit->request->body, NUMBERS(breaker_numbers), to);

    if (status == TL_OK && to[0] == 0 && to[1] + to[2] + to[3] > 0)
        status = tl_error_report(TL_INVALID, "say after how many unknown outcomes it opens");
    if (status != TL_OK)
        return status;
    breaker.channel = what->channel;
    breaker.op_code = what->op_code;
    breaker.unknowns = to[0];
    breaker.share = to[1];
    breaker.window_s = to[2];
    breaker.probe_s = to[3];
    breaker.actor = what->actor;
    breaker.reason = what->reason;
    snprintf(said, DECIDED, "has %s breaker", breaker.unknowns > 0 ? "this" : "no");
    return tl_channel_breaker(visit->client, &breaker);
}

/* Those who decide of all that a form of this page says. */
static const struct act_of_channel {
    const char *act;
    decide_fn *decide;
    const char *obeyed; /* by whom it has to be known; NULL: it harms nobody who does not */
} acts[] = {{"pause", decide_pause, "pause"},
            {"resume", decide_resume, NULL},
            {"limit", decide_limit, "limit"},
            {"breaker", decide_breaker, "breaker"}};

void page_channel_decided(struct visit *visit)
{
    const struct form *form = &visit->request->body;
    const struct act_of_channel *act = acts, *const end = acts + sizeof acts / sizeof acts[0];
    tl_pause what = TL_PAUSE_INIT;
    char said[1024], holds[DECIDED];
    tl_status status;

    if (!visit_may_decide(visit))
        return;
    while (act < end && strcmp(act->act, form_get(form, "act")) != 0)
        act++;
    if (act == end) {
        layout_no_form(visit, "No page of this desk sends such a form.");
        return;
    }
    if (!visit_go_to_sent(visit) || !visit_may_decide(visit))
        return;
    what.channel = form_get(form, "channel");
    what.op_code = form_get(form, "op");
    what.reason = form_get(form, "reason");
    what.actor = visit->session->user;
    status = act->decide(visit, &what, holds);
    if (status != TL_OK) {
        snprintf(said, sizeof said, "It was refused: %s.", said_by(status));
        write_channels(visit, http_of(status), said);
        return;
    }
    now_forget(visit->desk->now);
    snprintf(said, sizeof said, "%s %s within a heartbeat of each process%s%s.",
             strcmp(what.channel, TL_CHANNEL_ALL) == 0 ? "The installation" : what.channel, holds,
             visit_is_of_fleet(visit) ? " at shard " : "", visit_shard(visit));
    if (act->obeyed != NULL)
        add_disobedient(visit, act->obeyed, said, sizeof said);
    session_tell(visit->desk->sessions, visit->session, said);
    layout_redirect(visit->answer, "/channels", NULL);
}
