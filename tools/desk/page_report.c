/* The page Reports: how many trades a day, and their money, of some days. */
#include "parts.h"

#include "array_room.h"
#include "moment.h"
#include "print.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DAY_US INT64_C(86400000000)
#define DAYS_SHOWN 14
/* More rows belong into a spreadsheet. */
#define DAYS_MOST 92

static const char *const ats[][2] = {
    {"asked", "asked for"}, {"paid", "paid"}, {"booked", "booked"}};
/* As the library calls them, and as people do. */
static const char *const states[] = {"succeeded", "failed", "in process"};
static const char *const state_words[] = {"paid", "failed", "in process"};
#define STATES (sizeof states / sizeof states[0])

struct told {
    tl_report_row row;
    size_t shard;
};

struct report {
    struct visit *visit;
    struct told *rows;
    size_t count;
    int failed; /* out of memory */
};

static int take_row(void *context, const tl_report_row *row)
{
    struct report *report = context;

    if (!array_room(&report->rows, report->count, sizeof *report->rows))
        return report->failed = 1;
    report->rows[report->count++] = (struct told){*row, report->visit->shard};
    return 0;
}

/* ------------------------------------------------------------------------ chart -- */

static int in_order(const void *a, const void *b)
{
    const struct told *one = a, *other = b;
    const int order = memcmp(&one->row, &other->row, offsetof(tl_report_row, trades));

    return order != 0 ? order : (one->shard > other->shard) - (one->shard < other->shard);
}

/* The trades of the day that begins at *at, by state; goes on behind it. */
static uint64_t count_day(const struct report *report, size_t *at, uint64_t count[STATES])
{
    const char *day = report->rows[*at].row.day;
    uint64_t all = 0;

    memset(count, 0, STATES * sizeof count[0]);
    for (; *at < report->count && strcmp(report->rows[*at].row.day, day) == 0; ++*at) {
        const tl_report_row *row = &report->rows[*at].row;

        for (size_t i = 0; i < STATES; i++)
            count[i] += strcmp(row->state, states[i]) == 0 ? row->trades : 0;
        all += row->trades;
    }
    return all;
}

/* Needs: rows, sorted by day. */
static void chart(struct report *report)
{
    static const char *const colours[] = {"good-bar", "age3", "age1"};
    struct page *page = &report->visit->answer->page;
    struct part_segment segments[STATES];
    uint64_t count[STATES], longest = 1;

    for (size_t at = 0; at < report->count;) {
        const uint64_t all = count_day(report, &at, count);

        longest = all > longest ? all : longest;
    }
    page_put(page, "<section class=\"card\"><h2>Trades a day</h2>\n");
    for (size_t at = 0; at < report->count;) {
        const char *day = report->rows[at].row.day;
        const uint64_t all = count_day(report, &at, count);

        for (size_t i = 0; i < STATES; i++)
            segments[i] = (struct part_segment){state_words[i], colours[i], count[i]};
        part_bar(page, day, segments, STATES, longest);
        page_format(page, "%s %s</span></div>\n", COUNT_TEXT(all), all == 1 ? "trade" : "trades");
    }
    part_legend(page, segments, STATES);
    page_put(page, "</ul></section>\n");
}

/* ------------------------------------------------------------------------- page -- */

static void cell_state(struct visit *visit, const void *row)
{
    const tl_report_row *told = row;

    for (size_t i = 0; i < STATES; i++)
        if (strcmp(told->state, states[i]) == 0)
            page_text(&visit->answer->page, state_words[i]);
}

static void table(struct report *report)
{
    static const struct drawn drawn[] = {{"state", cell_state}, {NULL, NULL}};
    struct grid grid;

    page_put(&report->visit->answer->page, "<section class=\"card\"><h2>Sums</h2>\n");
    grid_begin(&grid, report->visit, &record_report, "day,channel,state,trades,sum", drawn);
    for (size_t i = 0; i < report->count; i++)
        grid_row_at(&grid, shards_name(report->visit->session->shards, report->rows[i].shard),
                    &report->rows[i].row);
    grid_end(&grid, "No trade is of these days.");
    page_put(&report->visit->answer->page, "</section>\n");
}

static void gap(struct page *page, int64_t before_us, const char *where)
{
    if (before_us == 0)
        return;
    page_put(page, "<p class=\"notice warn\"><strong>Trades that ended before ");
    page_moment(page, before_us);
    page_format(page, " were purged%s.</strong> Those of these days are missing here.</p>\n",
                where);
}

static void read_shard(struct report *report, size_t shard, const tl_report_scope *scope)
{
    struct visit *visit = report->visit;
    struct missing missing = {0};
    tl_report_gaps gaps = {.purged_us = 0};
    tl_status status = visit_go_to(visit, shard);

    if (status == TL_OK)
        status = tl_report(visit->client, scope, take_row, report, &gaps);
    gap(&visit->answer->page, gaps.purged_us, "");
    gap(&visit->answer->page, gaps.archived_us, " into an archive");
    if (status != TL_OK && visit_is_of_fleet(visit)) {
        missing_keep(&missing, visit, status);
        missing_tell(visit, shard, &missing);
    } else if (status != TL_OK) {
        page_format(&visit->answer->page,
                    "<p class=\"notice bad\">This cannot be read now: %s</p>\n", said_by(status));
    }
}

static void form(struct page *page, const char *since, const char *until, tl_report_at at)
{
    page_format(page,
                "<form class=\"card search\" method=\"get\" action=\"/reports\">\n"
                "<div class=\"field\"><label for=\"since\">From (UTC)</label><input id=\"since\" "
                "type=\"date\" name=\"since\" value=\"%s\"></div>\n"
                "<div class=\"field\"><label for=\"until\">And before</label><input id=\"until\" "
                "type=\"date\" name=\"until\" value=\"%s\"></div>\n"
                "<div class=\"field\"><label for=\"at\">By when it was</label><select id=\"at\" "
                "name=\"at\">",
                since, until);
    for (size_t i = 0; i < 3; i++) {
        page_format(page, "<option value=\"%s\"", ats[i][0]);
        page_put(page, i == (size_t)at ? " selected>" : ">");
        page_format(page, "%s</option>", ats[i][1]);
    }
    page_put(page, "</select></div>\n<div class=\"field\"><button class=\"button main\">Show"
                   "</button></div>\n</form>\n");
}

/* What the form says, or the last days; what is wrong with it, or NULL. */
static const char *read_scope(const struct form *query, tl_report_scope *scope, char since[16],
                              char until[16])
{
    const int64_t now_us = (int64_t)time(NULL) * 1000000;
    char moment[TL_MOMENT_TEXT];

    for (size_t i = 0; i < 3; i++)
        if (strcmp(form_get(query, "at"), ats[i][0]) == 0)
            scope->at = (tl_report_at)i;
    scope->since_us = now_us - now_us % DAY_US - (DAYS_SHOWN - 1) * DAY_US;
    tl_moment_text(moment, scope->since_us, 0);
    snprintf(since, 16, "%.10s",
             form_get(query, "since")[0] != '\0' ? form_get(query, "since") : moment);
    snprintf(until, 16, "%.10s", form_get(query, "until"));
    if (!read_moment_us(since, &scope->since_us) ||
        (until[0] != '\0' && !read_moment_us(until, &scope->until_us)))
        return "A day is written as 2026-03-01.";
    if (scope->since_us > now_us)
        return "The first day lies in the future.";
    if (scope->until_us != 0 && scope->until_us <= scope->since_us)
        return "The last day is not behind the first.";
    if ((scope->until_us != 0 ? scope->until_us : now_us) - scope->since_us > DAYS_MOST * DAY_US)
        return "A page is of 92 days at most; the command takes any range.";
    return NULL;
}

void page_report(struct visit *visit)
{
    struct page *page = &visit->answer->page;
    struct report report = {.visit = visit};
    tl_report_scope scope = TL_REPORT_SCOPE_INIT;
    char since[16], until[16];
    const char *problem = read_scope(&visit->request->query, &scope, since, until);

    scope.by = TL_REPORT_DAY | TL_REPORT_CHANNEL | TL_REPORT_CURRENCY | TL_REPORT_STATE;
    layout_begin(visit, problem != NULL ? 400 : 200, "Reports", PLACE_REPORTS, 0);
    page_put(page, "<div class=\"title\"><h1>Reports</h1></div>\n");
    part_problem(page, problem, "Nothing was counted.");
    form(page, since, until, scope.at);
    for (size_t i = 0; problem == NULL && i < shards_count(visit->session->shards); i++)
        read_shard(&report, i, &scope);
    if (report.failed)
        page_put(page, "<p class=\"notice bad\">Out of memory: not all is shown.</p>\n");
    if (report.count > 0) {
        qsort(report.rows, report.count, sizeof report.rows[0], in_order);
        chart(&report);
    }
    if (problem == NULL) {
        table(&report);
        part_command(page, "report", "--since", since, "--until", until, "--at", ats[scope.at][0],
                     "-o", "csv", "--trades");
    }
    free(report.rows);
    layout_end(visit);
}
