/* The page Channels: what became of their trades; which are paused, why and by whom; pausing one
 * and having it go on. */
#include "disobedient.h"
#include "now.h"
#include "parts.h"
#include "print.h"

#include <tradelock/layer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUEUES_MOST 64

struct queue {
    char channel[TL_CHANNEL_MAX + 1], op[TL_OP_MAX + 1];
    struct deadlines deadlines;
};

struct writing {
    struct visit *visit;
    struct queue waits[QUEUES_MOST]; /* of the shard that is written */
    size_t waits_count;
    const struct now *now; /* NULL: it could not be taken */
    unsigned number;       /* of the row, for the names of its fields */
};

/* The form that changes this row, and the command that does the same. */
static void offer(struct writing *w, const tl_pause_row *row)
{
    struct page *page = &w->visit->answer->page;
    const char *verb = row->paused ? "resume" : "pause";
    char id[24];

    snprintf(id, sizeof id, "reason-%u", w->number);
    part_form(w->visit, "/channels", "shard", visit_shard(w->visit), "channel", row->channel, "op",
              row->op_code, "act", verb);
    part_form_end(page, id, "", row->paused ? "Have it go on" : "Pause it");
    part_command(page, "channel", verb, row->channel, "--op", row->op_code, "--reason", "TEXT",
                 "--shard", visit_shard(w->visit));
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
        page_format(page,
                    "<p>In the last hour: %s succeeded, %s declined, %s failed. Waiting: %s. ",
                    COUNT_TEXT(state->succeeded), COUNT_TEXT(state->declined),
                    COUNT_TEXT(state->failed), COUNT_TEXT(state->waits));
        if (state->succeeded + state->declined + state->failed > 0)
            page_put(page, "Success rate: ");
        grid_value(w->visit, &record_channel_state, record_column(&record_channel_state, "rate", 4),
                   state);
        if (state->down_since_us != 0) {
            page_put(page, " <strong>No answer since ");
            page_moment(page, state->down_since_us);
            page_put(page, "</strong>");
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

static int write_row(void *context, const tl_pause_row *row)
{
    struct writing *w = context;
    struct page *page = &w->visit->answer->page;

    w->number++;
    page_put(page, "<section class=\"card offer\" id=\"");
    part_channel_id(page, visit_shard(w->visit), row->channel, row->op_code);
    page_format(page, "\"><h2>%s, %s</h2>\n<p><strong>",
                strcmp(row->channel, TL_CHANNEL_ALL) == 0 ? "All channels (drain)" : row->channel,
                row->op_code[0] != '\0' ? row->op_code : "as a whole");
    grid_value(w->visit, &record_channel, record_column(&record_channel, "state", 5), row);
    page_put(page, "</strong>");
    if (row->decided_us != 0) {
        page_put(page, row->paused ? " since " : ", decided ");
        page_ago(page, row->decided_us, row->now_us);
        page_format(page, " by %s: %s", row->account, row->reason);
    }
    page_put(page, "</p>\n");
    write_deadlines(w, row);
    write_limit(page, row);
    write_breaker(w, row);
    write_rate(w, row);
    if (w->visit->account.may_decide)
        offer(w, row);
    page_put(page, "</section>\n");
    return 0;
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
    w->waits_count = 0;
    if (status == TL_OK)
        status = tl_overview_read(visit->client, &overview, take_waiting, w);
    if (status == TL_OK)
        status = tl_pause_list(visit->client, write_row, w);
    page_put(page, "</div>\n");
    if (status != TL_OK)
        page_format(page, "<p class=\"notice bad\">This cannot be read now: %s</p>\n",
                    said_by(status));
    else if (w->number == before)
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
        "after its next heartbeat; what was armed before may still be sent. Limits are set by "
        "<code>tradelock channel limit</code>: what is sent beyond one waits in the same "
        "way. While a breaker is open all waits but for one probe at a time, until one is "
        "answered.</p>\n");
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

/* Adds who does not obey the pause; more of them than there is room for are left out, with the last
 * one cut. */
static void add_disobedient(struct visit *visit, char *said, size_t space)
{
    json_t *names;

    if (disobedient_list(visit->client, "pause", &names) != TL_OK)
        snprintf(said + strlen(said), space - strlen(said), " Who does not obey is not known: %s.",
                 tl_error_message());
    for (size_t i = 0; i < json_array_size(names); i++)
        snprintf(said + strlen(said), space - strlen(said), " " DISOBEDIENT_SAYS,
                 json_string_value(json_array_get(names, i)));
    json_decref(names);
}

void page_channel_decided(struct visit *visit)
{
    const struct form *form = &visit->request->body;
    const int pauses = strcmp(form_get(form, "act"), "pause") == 0;
    tl_pause pause = TL_PAUSE_INIT;
    char said[1024];
    tl_status status;

    if (!visit_may_decide(visit))
        return;
    if (!pauses && strcmp(form_get(form, "act"), "resume") != 0) {
        layout_no_form(visit, "No page of this desk sends such a form.");
        return;
    }
    if (!visit_go_to_sent(visit) || !visit_may_decide(visit))
        return;
    pause.channel = form_get(form, "channel");
    pause.op_code = form_get(form, "op");
    pause.reason = form_get(form, "reason");
    pause.actor = visit->session->user;
    status =
        pauses ? tl_channel_pause(visit->client, &pause) : tl_channel_resume(visit->client, &pause);
    if (status != TL_OK) {
        snprintf(said, sizeof said, "It was refused: %s.", said_by(status));
        write_channels(visit, http_of(status), said);
        return;
    }
    now_forget(visit->desk->now);
    snprintf(said, sizeof said, "%s %s within a heartbeat of each process%s%s.", pause.channel,
             pauses ? "pauses" : "goes on", visit_is_of_fleet(visit) ? " at shard " : "",
             visit_shard(visit));
    if (pauses)
        add_disobedient(visit, said, sizeof said);
    session_tell(visit->desk->sessions, visit->session, said);
    layout_redirect(visit->answer, "/channels", NULL);
}
