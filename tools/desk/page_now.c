/* The page Now: what waits for a person stands first, then money in doubt, payments, processes. */
#include "now.h"
#include "parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REFRESH_S 10

/* What is shown: of each shard, and what adds up. */
struct shown {
    struct visit *visit;
    size_t count;
    struct now **shard; /* NULL: that one is missing */
    struct missing *missing;
    struct now *total;
};

/* "Shard a: " of a fleet. */
#define OF_SHARD_TEXT 48
static const char *of_shard(char to[OF_SHARD_TEXT], const struct shown *shown, size_t i)
{
    to[0] = '\0';
    if (visit_is_of_fleet(shown->visit))
        snprintf(to, OF_SHARD_TEXT, "Shard %s: ", shards_name(shown->visit->session->shards, i));
    return to;
}

/* ------------------------------------------------------------------ alarms -- */

static void restore_alarm(struct page *page, const struct now *now, const char *shard)
{
    const tl_restore *restore = &now->restore;

    if (!restore->open)
        return;
    page_format(
        page,
        "<p class=\"notice bad\" role=\"alert\"><strong>%sA restore is open.</strong> Nothing "
        "is granted, sent or failed before two operators have accepted this server. It was "
        "%s ",
        shard, restore->how[0] != '\0' ? restore->how : "found");
    page_ago(page, restore->since_us, now->now_us);
    page_format(page, "%s%s. Then: <code>tradelock restore status</code></p>\n",
                restore->reason[0] != '\0' ? ": " : "", restore->reason);
}

static int is_anybody_alive(const struct now *now)
{
    for (unsigned i = 0; i < now->process_count; i++)
        if (now->processes[i].alive)
            return 1;
    return 0;
}

static void alarms(struct page *page, const struct now *now, const char *shard)
{
    restore_alarm(page, now, shard);
    for (unsigned i = 0; i < now->alarm_count; i++)
        page_format(page,
                    now->alarms[i].is_unsafe
                        ? "<p class=\"notice bad\" role=\"alert\"><strong>%s%s</strong> %s</p>\n"
                        : "<p class=\"notice warn\"><strong>%s%s</strong> %s</p>\n",
                    shard, now->alarms[i].check, now->alarms[i].sentence);
    if (!is_anybody_alive(now))
        page_format(page,
                    "<p class=\"notice warn\"><strong>%sNo process is alive.</strong> Nobody "
                    "opens, retries or ends anything.</p>\n",
                    shard);
}

/* ------------------------------------------------------------------ figures -- */

static void put_sum(struct page *page, const char *minor, const char *currency)
{
    char amount[TL_SUM_TEXT + TL_CURRENCY + 2];

    snprintf(amount, sizeof amount, "%s %s", minor, currency);
    page_money(page, currency[0] != '\0' ? amount : "");
}

static void figure(struct page *page, const char *name, const char *kind, const char *path,
                   const struct sums *sums, const struct now *now)
{
    page_format(page, "<a class=\"figure %s\" href=\"%s\"><span class=\"name\">%s</span>",
                sums->trades > 0 ? kind : "none", path, name);
    page_format(page, "<span class=\"count\">%llu</span><span class=\"more\">",
                (unsigned long long)sums->trades);
    for (unsigned i = 0; i < sums->count; i++) {
        if (sums->of[i].currency[0] == '\0')
            page_format(page, "%llu without amount", (unsigned long long)sums->of[i].count);
        else
            put_sum(page, sums->of[i].minor, sums->of[i].currency);
        page_put(page, "<br>");
    }
    if (sums->oldest_us != 0) {
        page_put(page, "oldest ");
        page_ago(page, sums->oldest_us, now->now_us);
    } else {
        page_put(page, "none");
    }
    page_put(page, "</span></a>\n");
}

static void figures(struct page *page, const struct now *now)
{
    page_put(page, "<section class=\"figures\" aria-label=\"Figures\">\n");
    figure(page, "In conflict", "bad", "/trades?show=conflict", &now->conflict, now);
    figure(page, "Parked", "bad", "/trades?show=parked", &now->parked, now);
    figure(page, "In doubt", "doubt", "/trades?show=doubt", &now->doubt, now);
    figure(page, "Queued", "calm", "/trades?show=process", &now->queued, now);
    figure(page, "Held now", "calm", "/trades?show=process", &now->live, now);
    page_put(page, "</section>\n");
    if (now->cut)
        page_put(page, "<p class=\"quiet\">More trades are in process than are counted here: these "
                       "figures are at least so many.</p>\n");
}

/* ------------------------------------------------------------------ persons -- */

static void cell_why(struct visit *visit, const void *row)
{
    struct page *page = &visit->answer->page;
    const struct person *person = row;

    if (person->proposed_by[0] != '\0')
        page_format(page, "<strong>%s proposed “%s”: it waits for a second operator</strong>",
                    person->proposed_by, person->decision);
    else if (person->view.conflict)
        page_put(page, "evidence contradicts the row");
    else
        page_text(page, person->view.parked);
}

static void persons(const struct shown *shown)
{
    struct visit *visit = shown->visit;
    struct page *page = &visit->answer->page;
    const struct now *now = shown->total;
    static const struct drawn drawn[] = {
        {"serial", part_trade_link}, {"state", part_state}, {"parked", cell_why}, {NULL, NULL}};
    struct grid grid;

    page_put(page, "<section class=\"card\"><h2>Waits for a person</h2>\n");
    if (now->closings > 0)
        page_format(page,
                    "<p>%u finding%s of an audit %s for a second operator, to be closed: "
                    "<code>tradelock inbox</code></p>\n",
                    now->closings, now->closings == 1 ? "" : "s",
                    now->closings == 1 ? "waits" : "wait");
    grid_begin(&grid, visit, &record_view, "serial,state,amount,created,parked=Why", drawn);
    for (size_t at = 0; at < shown->count; at++)
        for (unsigned i = 0; shown->shard[at] != NULL && i < shown->shard[at]->person_count; i++)
            grid_row_at(&grid, shards_name(visit->session->shards, at), NULL,
                        &shown->shard[at]->persons[i]);
    if (grid.rows > 0 || now->closings == 0)
        grid_end(&grid, "Nothing waits for a person.");
    if (now->persons_cut)
        page_put(page, "<p>More wait than stand here: <a href=\"/trades?show=parked\">all that are "
                       "parked</a>, <a href=\"/trades?show=conflict\">all in conflict</a>, "
                       "<code>tradelock inbox</code>.</p>\n");
    page_put(page, "</section>\n");
}

/* --------------------------------------------------------------------- bars -- */

static void segments_of(struct part_segment segments[AGES], const struct bar *bar)
{
    static const char *const colours[AGES] = {"age0", "age1", "age2", "age3"};

    for (unsigned age = 0; age < AGES; age++)
        segments[age] = (struct part_segment){ages[age].name, colours[age], bar->count[age]};
}

static void one_bar(struct page *page, const struct bar *bar, uint64_t longest,
                    const struct now *now)
{
    struct part_segment segments[AGES];

    segments_of(segments, bar);
    part_bar(page, bar->channel[0] != '\0' ? bar->channel : "no channel", segments, AGES, longest);
    put_sum(page, bar->minor, bar->currency);
    page_format(page, "<span class=\"quiet\">%llu %s, oldest ", (unsigned long long)bar->trades,
                bar->trades == 1 ? "trade" : "trades");
    page_ago(page, bar->oldest_us, now->now_us);
    page_put(page, "</span></span></div>\n");
}

static void bars(struct page *page, const struct now *now)
{
    struct part_segment segments[AGES];
    uint64_t longest = 1;

    page_put(page,
             "<section class=\"card\"><h2>Money in doubt or parked, by channel and age</h2>\n");
    for (unsigned i = 0; i < now->bar_count; i++)
        if (now->bars[i].trades > longest)
            longest = now->bars[i].trades;
    for (unsigned i = 0; i < now->bar_count; i++)
        one_bar(page, &now->bars[i], longest, now);
    if (now->bar_count == 0) {
        page_put(
            page,
            "<p class=\"calm-line\">No money is in doubt, and none is parked.</p></section>\n");
        return;
    }
    segments_of(segments, &now->bars[0]);
    part_legend(page, segments, AGES);
    page_put(page, "<li>long bars: many trades</li></ul>");
    if (now->bars_cut)
        page_put(page, "<p class=\"quiet\">There are more channels than stand here.</p>");
    page_put(page, "</section>\n");
}

/* --------------------------------------------------------------- channels -- */

static void paused(struct page *page, const struct now *now, const char *shard)
{
    for (unsigned i = 0; i < now->paused.count; i++) {
        const struct stopped *one = &now->paused.of[i];

        page_format(
            page,
            "<p class=\"notice warn\"><strong>%sChannel %s is paused%s%s.</strong> Nothing new "
            "is sent through it: %s (%s, ",
            shard, one->channel, one->op_code[0] != '\0' ? " for " : "", one->op_code, one->reason,
            one->account);
        page_ago(page, one->row.decided_us, now->now_us);
        page_put(page, "). <a href=\"/channels\">Channels</a></p>\n");
    }
    if (now->paused.cut)
        page_put(page,
                 "<p class=\"quiet\"><a href=\"/channels\">More channels are paused</a></p>\n");
}

static void broken(struct page *page, const struct now *now, const char *shard)
{
    for (unsigned i = 0; i < now->broken.count; i++) {
        const struct stopped *one = &now->broken.of[i];

        page_format(page,
                    "<p class=\"notice warn\"><strong>%sChannel %s does not answer%s%s, and its "
                    "breaker is open.</strong> But for one probe at a time nothing is sent or "
                    "asked (since ",
                    shard, one->channel, one->op_code[0] != '\0' ? " for " : "", one->op_code);
        page_ago(page, one->row.opened_us, now->now_us);
        page_put(page, "). ");
        part_probes(page, &one->row);
        page_put(page, " <a href=\"/channels\">Channels</a></p>\n");
    }
    if (now->broken.cut)
        page_put(page, "<p class=\"quiet\"><a href=\"/channels\">More channels do not "
                       "answer</a></p>\n");
}

static void cell_down(struct visit *visit, const void *row)
{
    struct page *page = &visit->answer->page;
    const struct channel *one = row;

    if (one->state.down_since_us == 0)
        return;
    page_put(page, "<strong>no answer since ");
    page_moment(page, one->state.down_since_us);
    page_put(page, "</strong>, ");
    page_ago(page, one->state.down_since_us, one->now_us);
}

static void channels(const struct shown *shown)
{
    static const struct drawn drawn[] = {{"down", cell_down}, {NULL, NULL}};
    struct visit *visit = shown->visit;
    struct page *page = &visit->answer->page;
    unsigned most = 0;
    int is_cut = 0;
    struct grid grid;

    page_put(page, "<section class=\"card\"><h2>Channels, the last hour</h2>\n");
    grid_begin(&grid, visit, &record_channel_state, NULL, drawn);
    for (size_t at = 0; at < shown->count; at++) {
        const struct now *now = shown->shard[at];

        for (unsigned i = 0; now != NULL && i < now->channel_count && i < CHANNELS_SHOWN; i++) {
            struct channel one = now->channels[i];

            one.now_us = now->now_us;
            one.state.channel = one.name;
            one.state.op_code = one.op_code;
            is_cut |= one.state.cut;
            grid_row_at(&grid, shards_name(visit->session->shards, at), NULL, &one);
        }
        most = now != NULL && now->channel_count > most ? now->channel_count : most;
    }
    grid_end(&grid, "Nothing ended, and nothing waits.");
    if (is_cut)
        page_put(page, "<p class=\"quiet\">More ended or waits than is counted here: these are the "
                       "newest of each operation.</p>\n");
    if (most > CHANNELS_SHOWN)
        page_put(page, "<p class=\"quiet\">There are more channels than stand here: "
                       "<a href=\"/channels\">Channels</a></p>\n");
    page_put(page, "</section>\n");
}

/* --------------------------------------------------------------- payments -- */

static void line(struct page *page, const struct now *now, int64_t most)
{
    int is_open = 0;

    for (int i = TL_PACE_MINUTES - 1; i >= 1; i--) {
        const int64_t paid = now->paid[i];
        const int y = (int)(100 - 96 * paid / most);

        if (paid >= 0 && !is_open)
            page_put(page, "<polyline points=\"");
        if (paid >= 0)
            page_format(page, "%d,%d ", TL_PACE_MINUTES - 1 - i, y);
        else if (is_open)
            page_put(page, "\"/>");
        is_open = paid >= 0;
    }
    if (is_open)
        page_put(page, "\"/>");
}

static void payments(struct page *page, const struct now *now)
{
    int64_t most = 1, last = now->paid[1] < 0 ? 0 : now->paid[1], sum = 0;

    for (unsigned i = 0; i < TL_PACE_MINUTES; i++) {
        most = now->paid[i] > most ? now->paid[i] : most;
        sum += now->paid[i] > 0 ? now->paid[i] : 0;
    }
    page_put(page, "<section class=\"card\"><h2>Payments a minute</h2>\n");
    page_format(page,
                "<p class=\"lead\"><span class=\"count\">%lld</span> in the last minute, %lld in "
                "three hours, at most %lld a minute</p>\n",
                (long long)last, (long long)sum, (long long)(sum > 0 ? most : 0));
    page_format(page,
                "<svg class=\"pace\" viewBox=\"0 0 %d 100\" preserveAspectRatio=\"none\" "
                "role=\"img\" aria-label=\"Payments in each of the last 180 minutes, at most "
                "%lld\"><line class=\"grid\" x1=\"0\" x2=\"%d\" y1=\"100\" y2=\"100\"/>"
                "<line class=\"grid\" x1=\"0\" x2=\"%d\" y1=\"52\" y2=\"52\"/>",
                TL_PACE_MINUTES - 2, (long long)(sum > 0 ? most : 0), TL_PACE_MINUTES - 2,
                TL_PACE_MINUTES - 2);
    line(page, now, most);
    page_put(page, "</svg>\n<p class=\"axis\" aria-hidden=\"true\"><span>3 h ago</span>"
                   "<span>2 h</span><span>1 h</span><span>now</span></p></section>\n");
}

/* --------------------------------------------------------------- processes -- */

static void process(struct page *page, const struct running *one, const char *shard)
{
    char silent[TL_SPAN_TEXT];

    page_put(page, one->alive ? "<li><span class=\"dot good\" aria-hidden=\"true\"></span>"
                              : "<li><span class=\"dot bad\" aria-hidden=\"true\"></span>");
    page_format(page,
                "<span class=\"what\">%s<strong>%s</strong> <span class=\"quiet\">%llu@%s"
                "</span></span>",
                shard, one->program, (unsigned long long)one->pid, one->host);
    page_format(page, "<span class=\"quiet\">%s %s</span></li>\n",
                one->alive ? "alive, beat" : "silent for",
                tl_span_text(silent, one->silent_us, TL_SPAN_WORDS));
}

static void processes(struct page *page, const struct shown *shown)
{
    char of[OF_SHARD_TEXT];
    unsigned count = 0;

    page_put(page, "<section class=\"card\"><h2>Processes</h2>\n");
    for (size_t i = 0; i < shown->count; i++)
        count += shown->shard[i] != NULL ? shown->shard[i]->process_count : 0;
    if (count == 0) {
        page_put(page, "<p class=\"calm-line\">None.</p></section>\n");
        return;
    }
    page_put(page, "<ul class=\"processes\">\n");
    for (size_t i = 0; i < shown->count; i++)
        for (unsigned k = 0; shown->shard[i] != NULL && k < shown->shard[i]->process_count; k++)
            process(page, &shown->shard[i]->processes[k], of_shard(of, shown, i));
    page_put(page, "</ul></section>\n");
}

/* --------------------------------------------------------------------- page -- */

/* What is wrong at each shard, also that it is missing. */
static void notices(struct page *page, const struct shown *shown)
{
    char of[OF_SHARD_TEXT];

    for (size_t i = 0; i < shown->count; i++) {
        missing_tell(shown->visit, i, &shown->missing[i]);
        if (shown->shard[i] != NULL)
            alarms(page, shown->shard[i], of_shard(of, shown, i));
    }
    for (size_t i = 0; i < shown->count; i++)
        if (shown->shard[i] != NULL)
            paused(page, shown->shard[i], of_shard(of, shown, i));
    for (size_t i = 0; i < shown->count; i++)
        if (shown->shard[i] != NULL)
            broken(page, shown->shard[i], of_shard(of, shown, i));
}

static void write_now(const struct shown *shown)
{
    struct visit *visit = shown->visit;
    struct page *page = &visit->answer->page;
    const struct now *now = shown->total;

    layout_begin(visit, 200, "Now", PLACE_NOW, REFRESH_S);
    page_put(page, "<div class=\"title\"><h1>Now</h1><p class=\"quiet\">as of ");
    page_moment(page, now->now_us);
    page_put(page, "</p></div>\n");
    notices(page, shown);
    figures(page, now);
    persons(shown);
    page_put(page, "<div class=\"two\">\n");
    bars(page, now);
    payments(page, now);
    page_put(page, "</div>\n");
    channels(shown);
    processes(page, shown);
    page_put(page,
             "<p class=\"acts\"><a class=\"button\" href=\"/channels\">Pause a channel</a></p>\n");
    layout_end(visit);
}

static tl_status look_at(struct shown *shown, size_t i)
{
    struct visit *visit = shown->visit;
    struct now *now = malloc(sizeof *now);
    tl_status status = now != NULL ? visit_go_to(visit, i) : TL_NO_MEMORY;

    if (status == TL_OK)
        status = now_look(visit->desk->now, visit, now);
    if (status != TL_OK) {
        missing_keep(&shown->missing[i], visit, status);
        free(now);
        return status;
    }
    shown->shard[i] = now;
    now_add(shown->total, now);
    shown->total->person_count += now->person_count;
    shown->total->persons_cut |= now->persons_cut;
    return TL_OK;
}

static int make_room(struct shown *shown)
{
    shown->count = shards_count(shown->visit->session->shards);
    shown->shard = calloc(shown->count, sizeof *shown->shard);
    shown->missing = calloc(shown->count, sizeof *shown->missing);
    shown->total = calloc(1, sizeof *shown->total);
    if (shown->shard == NULL || shown->missing == NULL || shown->total == NULL)
        return 0;
    for (unsigned i = 0; i < TL_PACE_MINUTES; i++)
        shown->total->paid[i] = -1;
    return 1;
}

static void free_shown(struct shown *shown)
{
    for (size_t i = 0; shown->shard != NULL && i < shown->count; i++)
        free(shown->shard[i]);
    free(shown->shard);
    free(shown->missing);
    free(shown->total);
}

/* A fleet is shown as far as it answers, one database only if it does. */
void page_now(struct visit *visit)
{
    struct shown shown = {.visit = visit};
    tl_status status = TL_NO_MEMORY;
    const int has_room = make_room(&shown);

    for (size_t i = 0; has_room && i < shown.count; i++)
        status = look_at(&shown, i);
    if (status == TL_OK || (has_room && visit_is_of_fleet(visit)))
        write_now(&shown);
    else
        layout_sentence(visit, http_of(status), "This cannot be read now", said_by(status));
    free_shown(&shown);
}
