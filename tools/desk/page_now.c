/* The page Now: what is worst stands first; then where money waits, what needs a person, payments
 * and processes.  The wall screen is the same without anything to click. */
#include "pace.h"
#include "parts.h"
#include "print.h"
#include "verdict.h"
#include "waits.h"

#include <tradelock/money.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REFRESH_S 10

/* What is shown: of each shard, and what adds up. */
struct shown {
    struct visit *visit;
    int is_wall;
    size_t count;
    struct now **shard; /* NULL: that one is missing */
    struct missing *missing;
    size_t away; /* the first that does not answer, and since when, if any */
    int64_t away_us;
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

static struct page *page_of(const struct shown *shown)
{
    return &shown->visit->answer->page;
}

static int may_act(const struct shown *shown)
{
    return !shown->is_wall && shown->visit->session->account.may_decide;
}

static const char *many(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* ------------------------------------------------------------------ verdict -- */

static void title_down(struct page *page, const struct verdict *verdict, const struct now *now)
{
    char span[TL_SPAN_TEXT];

    page_format(page, "Channel %s has not answered for %s",
                verdict->channel != NULL ? verdict->channel->name : verdict->stopped->channel,
                waits_span(span, verdict->since_us, now->now_us));
    if (verdict->count > 1)
        page_format(page, ", nor ha%s %s other%s", verdict->count == 2 ? "s" : "ve",
                    COUNT_TEXT(verdict->count - 1), many(verdict->count - 1));
    page_put(page, ".");
}

static void title_counted(struct page *page, const struct verdict *verdict)
{
    const char *count = COUNT_TEXT(verdict->count);
    const char *s = many(verdict->count), *verb = verdict->count == 1 ? "s" : "";

    if (verdict->kind == VERDICT_CONFLICT)
        page_format(page, "Evidence contradicts %s trade%s.", count, s);
    else if (verdict->kind == VERDICT_PARKED)
        page_format(page, "%s payment%s wait%s for a person.", count, s, verb);
    else if (verdict->kind == VERDICT_OVERDUE)
        page_format(page, "%s trade%s %s held for too long.", count, s,
                    verdict->count == 1 ? "is" : "are");
    else if (verdict->kind == VERDICT_SILENT)
        page_format(page, "%s process%s gave no heartbeat.", count,
                    verdict->count == 1 ? "" : "es");
    else
        page_format(page, "%s proposal%s wait%s for a second operator.", count, s, verb);
}

static void title(struct page *page, const struct verdict *verdict, const struct now *now)
{
    char span[TL_SPAN_TEXT], moment[TL_MOMENT_TEXT];

    waits_span(span, verdict->since_us, now->now_us);
    if (verdict_looks[verdict->kind].title != NULL) {
        page_text(page, verdict_looks[verdict->kind].title);
        return;
    }
    switch (verdict->kind) {
    case VERDICT_AWAY:
        tl_moment_text(moment, verdict->since_us, 0);
        page_put(page, "The database does not answer since ");
        page_bytes(page, moment + 11, 8);
        page_put(page, " UTC.");
        break;
    case VERDICT_UNFIT:
        page_format(page, "The server is not fit for money: %s.", verdict->alarm->check);
        break;
    case VERDICT_DOWN:
        title_down(page, verdict, now);
        break;
    case VERDICT_BLOCKED:
        tl_span_text(span, now->overview.blocker_us, TL_SPAN_WORDS);
        page_format(page, "A connection of %s has held rows for %s.", now->overview.blocker_account,
                    span);
        break;
    case VERDICT_UNCLAIMED:
        page_format(page, "No worker has claimed what is due for %s.", span);
        break;
    case VERDICT_HANGS:
        page_format(page, "A payment has been in doubt for %s.", span);
        break;
    case VERDICT_FORGOTTEN:
    case VERDICT_PAUSED:
        page_format(page, "Channel %s is paused%s%s.", verdict->stopped->channel,
                    verdict->stopped->op_code[0] != '\0' ? " for " : "", verdict->stopped->op_code);
        break;
    case VERDICT_WARNING:
        page_format(page, "The server has a warning: %s.", verdict->alarm->check);
        break;
    case VERDICT_WELL:
        page_format(page, "All is well: %s paid in the last minute, nothing needs a person.",
                    COUNT_TEXT(now->paid[1] > 0 ? (uint64_t)now->paid[1] : 0));
        break;
    default:
        title_counted(page, verdict);
    }
}

/* What waits for this channel in all ages. */
static void put_waiting(struct page *page, const struct now *now, const struct verdict *verdict)
{
    struct sums sums = {.count = 0};

    for (unsigned i = 0; verdict->channel != NULL && i < now->wait_count; i++)
        for (unsigned age = 0; age < AGES; age++)
            if (strcmp(now->waits[i].channel, verdict->channel->name) == 0)
                sums_add(&sums, &now->waits[i].age[age]);
    if (sums.trades > 0) {
        page_format(page, "%s payment%s wait%s for its answer: ", COUNT_TEXT(sums.trades),
                    many(sums.trades), sums.trades == 1 ? "s" : "");
        sums_write(page, &sums, ", ");
        page_put(page, ". ");
    }
    if (verdict->stopped != NULL) {
        page_put(page,
                 "Its breaker is open: but for one probe at a time nothing is sent or asked. ");
        part_probes(page, &verdict->stopped->row);
    } else {
        page_put(page, "Workers ask again by schedule.");
    }
    page_put(page, " Nothing is lost, nothing is paid twice.");
}

static void detail(struct page *page, const struct verdict *verdict, const struct now *now)
{
    const tl_restore *restore = &now->restore;

    if (verdict_looks[verdict->kind].detail != NULL) {
        page_text(page, verdict_looks[verdict->kind].detail);
        return;
    }
    switch (verdict->kind) {
    case VERDICT_AWAY:
        page_put(page, "Services retry by themselves; nothing is paid twice.");
        if (now->away_us != 0 && now->now_us != 0) {
            page_put(page, " Below is what the desk knew last, as of ");
            page_moment(page, now->now_us);
            page_put(page, ".");
        }
        break;
    case VERDICT_RESTORE:
        page_format(page,
                    "Nothing is granted, sent or failed before two operators have accepted this "
                    "server. It was %s%s%s. ",
                    restore->how[0] != '\0' ? restore->how : "found",
                    restore->reason[0] != '\0' ? ": " : "", restore->reason);
        page_words(page, "Then: `tradelock restore status`");
        break;
    case VERDICT_DOWN:
        put_waiting(page, now, verdict);
        break;
    case VERDICT_BLOCKED:
        page_words(page, now->overview.blocker_text);
        break;
    case VERDICT_UNCLAIMED:
        page_format(page, "%s attempts are due.", COUNT_TEXT(verdict->count));
        break;
    case VERDICT_CONFLICT:
    case VERDICT_PARKED:
        sums_write(page, verdict->kind == VERDICT_PARKED ? &now->parked : &now->conflict, ", ");
        break;
    case VERDICT_FORGOTTEN:
    case VERDICT_PAUSED:
        page_format(page, "Nothing new is sent through it: %s (%s, ", verdict->stopped->reason,
                    verdict->stopped->account);
        page_ago(page, verdict->stopped->row.decided_us, now->now_us);
        page_put(page, ").");
        break;
    case VERDICT_HANGS:
    case VERDICT_WELL:
        sums_write(page, &now->doubt, ", ");
        page_put(page, now->doubt.trades > 0 ? " in doubt, which workers end." : "");
        break;
    default:
        page_words(page, verdict->alarm->sentence);
    }
}

static void verdict_buttons(const struct shown *shown, size_t shard, const struct verdict *verdict)
{
    const struct verdict_look *look = &verdict_looks[verdict->kind];
    const struct stopped *stopped = verdict->stopped;
    const char *name = shards_name(shown->visit->session->shards, shard);
    struct page *page = page_of(shown);

    if (shown->is_wall)
        return;
    page_put(page, "<p class=\"acts\">");
    if (verdict->kind == VERDICT_AWAY)
        page_put(page, "<a class=\"button main\" href=\"/\">Try again</a>\n");
    else if (verdict->kind == VERDICT_DOWN && may_act(shown))
        part_channel_button(page, name,
                            verdict->channel != NULL ? verdict->channel->name : stopped->channel,
                            verdict->channel != NULL ? verdict->channel->op_code : stopped->op_code,
                            " main", "Pause the channel…");
    else if ((verdict->kind == VERDICT_FORGOTTEN || verdict->kind == VERDICT_PAUSED) &&
             may_act(shown))
        part_channel_button(page, name, stopped->channel, stopped->op_code, " main",
                            "Resume the channel…");
    else
        page_format(page, "<a class=\"button main\" href=\"%s\">%s</a>\n",
                    look->list != NULL ? look->list : "/trades?show=process",
                    verdict->kind == VERDICT_WELL ? "Look for a payment" : "See what waits");
    page_format(page, "<a class=\"button\" href=\"/runbook#%s\">Runbook: %s</a></p>\n",
                look->section, look->runbook);
}

/* Alarms that are not what stands first. */
static void other_alarms(struct page *page, const struct now *now, const struct verdict *verdict,
                         const char *shard)
{
    for (unsigned i = 0; i < now->alarm_count; i++)
        if (&now->alarms[i] != verdict->alarm) {
            page_format(page, "<p class=\"notice %s\"><strong>%s%s</strong> ",
                        now->alarms[i].is_unsafe ? "bad" : "warn", shard, now->alarms[i].check);
            page_words(page, now->alarms[i].sentence);
            page_put(page, "</p>\n");
        }
}

static void write_verdict(const struct shown *shown)
{
    struct page *page = page_of(shown);
    struct verdict worst = {.kind = VERDICT_AWAY, .since_us = shown->away_us};
    size_t at = shown->away_us != 0 ? shown->away : shown->count;
    const struct now *now = shown->total;
    char of[OF_SHARD_TEXT];

    for (size_t i = 0; i < shown->count; i++)
        if (shown->shard[i] != NULL) {
            const struct verdict one = verdict_of(shown->shard[i]);

            if (at == shown->count || one.kind < worst.kind) {
                worst = one;
                at = i;
            }
        }
    for (size_t i = 0; i < shown->count; i++)
        missing_tell(shown->visit, i, &shown->missing[i]);
    if (at == shown->count)
        return;
    if (worst.kind != VERDICT_WELL && shown->shard[at] != NULL)
        now = shown->shard[at];
    page_format(page, "<section class=\"card worst %s\"><div><h1>%s",
                verdict_looks[worst.kind].look,
                worst.kind != VERDICT_WELL ? of_shard(of, shown, at) : "");
    title(page, &worst, now);
    page_put(page, "</h1><p>");
    detail(page, &worst, now);
    page_put(page, "</p></div>");
    verdict_buttons(shown, at, &worst);
    page_put(page, "</section>\n");
    for (size_t i = 0; i < shown->count; i++)
        if (shown->shard[i] != NULL && !shown->is_wall)
            other_alarms(page, shown->shard[i], &worst, of_shard(of, shown, i));
}

/* ------------------------------------------------------------------ persons -- */

static void group_words(struct page *page, const char *shard, const struct group *group)
{
    static const char *const kinds[] = {"in conflict", "proposed", "waits for a person"};

    page_put(page, group->kind == GROUP_PARKED ? "<span class=\"state doubt\">"
                                               : "<span class=\"state bad\">");
    if (group->kind == GROUP_PROPOSED)
        page_bytes(page, group->by, strcspn(group->by, "@"));
    page_format(page, " %s · %s</span><span>%s", kinds[group->kind], COUNT_TEXT(group->sums.trades),
                shard);
    sums_write(page, &group->sums, ", ");
    page_put(page, " <span class=\"quiet\">");
    if (group->kind == GROUP_CONFLICT)
        page_format(page, "evidence contradicts the row%s%s",
                    group->channel[0] != '\0' ? ", channel " : "", group->channel);
    else if (group->kind == GROUP_PARKED)
        page_format(page, "%s%s%s", group->reason, group->channel[0] != '\0' ? ", channel " : "",
                    group->channel);
    else
        page_format(page, "“%s”: %s. It waits for a second operator", group->said, group->reason);
}

static void group_buttons(const struct shown *shown, const struct group *group, const char *shard)
{
    const tl_key key = {group->serial_no, group->cust_no, group->op_code};
    struct page *page = page_of(shown);
    struct visit *visit = shown->visit;
    const int is_own =
        group->kind == GROUP_PROPOSED && strcmp(group->by, visit->session->account.name) == 0;
    char text[SECRET_TEXT];
    struct ref all;

    if (group->sums.trades > 1 && group->kind != GROUP_PROPOSED) {
        const enum show show = group->kind == GROUP_PARKED ? SHOW_PARKED : SHOW_CONFLICT;

        memset(&all, 0, sizeof all);
        snprintf(all.show, sizeof all.show, "%s", show == SHOW_PARKED ? "parked" : "conflict");
        snprintf(all.shard, sizeof all.shard, "%s", shard);
        snprintf(all.cause, sizeof all.cause, "%s",
                 show == SHOW_PARKED ? group->reason : "in conflict");
        snprintf(all.channel, sizeof all.channel, "%s", group->channel);
        refs_keep(visit->desk->refs, &all, text);
        page_format(page, "<a class=\"button\" href=\"/trades?r=%s\">See all %s</a>", text,
                    COUNT_TEXT(group->sums.trades));
        if (may_act(shown))
            part_many_links(visit, show, text, shard);
        return;
    }
    page_put(page, "<span class=\"button\">");
    part_link(visit, &key, "/trade");
    page_put(page, "</span>");
    part_ref(visit, &key, text);
    if (may_act(shown) && !is_own)
        page_format(page, "<a class=\"button%s\" href=\"/decide?r=%s\">%s</a>",
                    group->kind == GROUP_PROPOSED ? " main" : "", text,
                    group->kind == GROUP_PROPOSED ? "Confirm…" : "Decide…");
}

static unsigned write_groups(const struct shown *shown, size_t at, enum group_kind kind)
{
    const struct now *now = shown->shard[at];
    struct page *page = page_of(shown);
    char of[OF_SHARD_TEXT];
    unsigned written = 0;

    for (const struct group *group = now->groups; group < now->groups + now->group_count; group++) {
        if (group->kind != kind)
            continue;
        page_put(page, "<li>");
        group_words(page, of_shard(of, shown, at), group);
        page_put(page, group->sums.trades > 1 ? " · oldest " : " · ");
        page_ago(page, group->sums.oldest_us, now->now_us);
        page_put(page, "</span></span><span class=\"do\">");
        if (!shown->is_wall)
            group_buttons(shown, group, shards_name(shown->visit->session->shards, at));
        page_put(page, "</span></li>\n");
        written++;
    }
    return written;
}

/* What one proposed of many trades at once; how many acts that are. */
static unsigned write_proposed(const struct shown *shown)
{
    struct page *page = &shown->visit->answer->page;
    unsigned acts = 0;

    for (size_t at = 0; at < shown->count; at++)
        for (unsigned i = 0; shown->shard[at] != NULL && i < shown->shard[at]->many_count; i++) {
            const struct many_proposed *one = &shown->shard[at]->many[i];

            page_format(page,
                        "<p>%s proposed “%s” for %s trades: <a class=\"button\" "
                        "href=\"/many?act=confirm&amp;no=%llu&amp;shard=%s\">Look, and "
                        "confirm</a></p>\n",
                        one->by, one->said, COUNT_TEXT(one->trades),
                        (unsigned long long)one->act_no,
                        shards_name(shown->visit->session->shards, at));
            acts++;
        }
    return acts;
}

static void persons(const struct shown *shown)
{
    struct page *page = page_of(shown);
    const struct now *total = shown->total;
    unsigned groups = 0;

    page_put(page, "<section class=\"card\" id=\"person\"><h2>Needs a person</h2>\n"
                   "<ul class=\"work\">\n");
    for (enum group_kind kind = GROUP_CONFLICT; kind <= GROUP_PARKED; kind++)
        for (size_t at = 0; at < shown->count; at++)
            if (shown->shard[at] != NULL)
                groups += write_groups(shown, at, kind);
    page_put(page, "</ul>\n");
    groups += write_proposed(shown);
    if (total->closings > 0) {
        page_format(page,
                    "<p>%u finding%s of an audit %s for a second operator, to be closed: "
                    "<a href=\"/inbox\">Inbox</a></p>\n",
                    total->closings, many(total->closings),
                    total->closings == 1 ? "waits" : "wait");
    } else if (groups == 0) {
        page_put(page, "<p class=\"calm-line\">Nothing needs a person.</p>\n");
    }
    if (total->groups_cut)
        page_put(
            page,
            "<p>More wait than are counted here: <a href=\"/trades?show=parked\">all "
            "that wait for a person</a>, <a href=\"/trades?show=conflict\">all in conflict</a>."
            "</p>\n");
    page_put(page, "</section>\n");
}

/* --------------------------------------------------------------------- foot -- */

static void foot_processes(struct page *page, const struct now *now)
{
    unsigned silent = 0;

    for (unsigned i = 0; i < now->process_count;) {
        const char *program = now->processes[i].program;
        unsigned alive = 0;

        for (; i < now->process_count && strcmp(now->processes[i].program, program) == 0; i++) {
            alive += now->processes[i].alive != 0;
            silent += now->processes[i].alive == 0;
        }
        if (alive > 0)
            page_format(page, "<span><b>%u %s</b> alive</span>\n", alive, program);
    }
    if (silent > 0)
        page_format(page, "<span class=\"alarm\"><b>%u silent</b></span>\n", silent);
}

/* Nothing where there was none. */
static void foot_audited(struct page *page, const struct now *now, const tl_audited *last,
                         const char *what, const char *fault, uint64_t faults)
{
    if (last->at_us == 0)
        return;
    page_put(page, faults > 0 ? "<span class=\"alarm\">" : "<span>");
    page_format(page, "last %s <b>", what);
    page_ago(page, last->at_us, now->now_us);
    page_format(page, ", %s %s%s</b></span>\n", COUNT_TEXT(faults), fault, many(faults));
}

static void foot(const struct shown *shown)
{
    struct page *page = page_of(shown);
    char of[OF_SHARD_TEXT];

    for (size_t i = 0; i < shown->count; i++) {
        const struct now *now = shown->shard[i];

        if (now == NULL)
            continue;
        page_format(page, "<div class=\"strip\">%s\n", of_shard(of, shown, i));
        foot_processes(page, now);
        page_put(page, now->overview.fit ? "<span>server <b>fit for money</b></span>\n"
                                         : "<span class=\"alarm\">server <b>not fit for money</b>"
                                           "</span>\n");
        if (now->overview.audit.at_us == 0)
            page_put(page, "<span>no audit is on record</span>\n");
        foot_audited(page, now, &now->overview.audit, "audit", "violation",
                     now->overview.audit.violations);
        foot_audited(page, now, &now->overview.statement, "statement", "difference",
                     now->overview.statement.differences);
        page_put(page, "<span>as of ");
        page_moment(page, now->now_us);
        page_put(page, "</span></div>\n");
    }
}

/* --------------------------------------------------------------------- page -- */

/* Since when some channel does not answer; 0: all do. */
static int64_t down_since_us(const struct shown *shown)
{
    int64_t since_us = 0;

    for (size_t i = 0; i < shown->count; i++)
        for (unsigned k = 0; shown->shard[i] != NULL && k < shown->shard[i]->channel_count; k++) {
            const int64_t us = shown->shard[i]->channels[k].state.down_since_us;

            if (us != 0 && (since_us == 0 || us < since_us))
                since_us = us;
        }
    return since_us;
}

static void write_now(const struct shown *shown)
{
    struct visit *visit = shown->visit;
    struct page *page = page_of(shown);

    if (shown->is_wall)
        layout_wall(visit, "Now", REFRESH_S);
    else
        layout_begin(visit, 200, "Now", PLACE_NOW, REFRESH_S);
    write_verdict(shown);
    waits_write(visit, shown->shard, shown->count, may_act(shown));
    if (shown->total->cut)
        page_put(page, "<p class=\"quiet\">More waits than is counted here.</p>\n");
    persons(shown);
    pace_write(page, shown->total, down_since_us(shown));
    foot(shown);
    layout_end(visit);
}

/* A database that is away is shown as it was; a shard that is away is missing. */
static tl_status look_at(struct shown *shown, size_t i)
{
    struct visit *visit = shown->visit;
    struct now *now = calloc(1, sizeof *now);
    tl_status status = now != NULL ? visit_go_to(visit, i) : TL_NO_MEMORY;

    if (now != NULL && (status == TL_OK || http_of(status) == 503))
        status = now_look(visit->desk->now, visit, status, now);
    if (status != TL_OK && now != NULL && http_of(status) == 503 && shown->away_us == 0) {
        shown->away_us = now->away_us;
        shown->away = i;
    }
    if (status == TL_OK || (now != NULL && http_of(status) == 503 && !visit_is_of_fleet(visit))) {
        shown->shard[i] = now;
        now_add(shown->total, now);
        return TL_OK;
    }
    missing_keep(&shown->missing[i], visit, status);
    free(now);
    return status;
}

/* A fleet is shown as far as it answers. */
static void show(struct visit *visit, int is_wall)
{
    const size_t count = shards_count(visit->session->shards);
    struct shown shown = {.visit = visit,
                          .is_wall = is_wall,
                          .count = count,
                          .shard = calloc(count, sizeof *shown.shard),
                          .missing = calloc(count, sizeof *shown.missing),
                          .total = calloc(1, sizeof *shown.total)};
    const int has_room = shown.shard != NULL && shown.missing != NULL && shown.total != NULL;
    tl_status status = TL_NO_MEMORY;

    for (unsigned i = 0; has_room && i < TL_PACE_MINUTES; i++)
        shown.total->paid[i] = shown.total->late[i] = -1;
    for (size_t i = 0; has_room && i < shown.count; i++)
        status = look_at(&shown, i);
    if (status == TL_OK || (has_room && visit_is_of_fleet(visit)))
        write_now(&shown);
    else
        layout_sentence(visit, http_of(status), "This cannot be read now", said_by(status));
    for (size_t i = 0; shown.shard != NULL && i < count; i++)
        free(shown.shard[i]);
    free(shown.shard);
    free(shown.missing);
    free(shown.total);
}

void page_now(struct visit *visit)
{
    show(visit, 0);
}

void page_wall(struct visit *visit)
{
    show(visit, 1);
}
