/* Writes where money waits, by channel and age, the worst channel first. */
#include "waits.h"

#include "parts.h"
#include "print.h"
#include "verdict.h"

#include <tradelock/money.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE_US INT64_C(60000000)

void sums_write(struct page *page, const struct sums *sums, const char *between)
{
    for (unsigned i = 0; i < sums->count; i++) {
        char amount[TL_AMOUNT_TEXT];

        page_put(page, i > 0 ? between : "");
        if (sums->of[i].currency[0] != '\0')
            page_money(page, tl_sum_text(amount, sums->of[i].minor, sums->of[i].currency));
        else
            page_format(page, "%s without amount", COUNT_TEXT(sums->of[i].count));
    }
}

const char *waits_span(char to[TL_SPAN_TEXT], int64_t since_us, int64_t now_us)
{
    const int64_t us = since_us != 0 && now_us > since_us ? now_us - since_us : 0;

    tl_span_text(to, us > MINUTE_US ? us - us % MINUTE_US : us, TL_SPAN_WORDS);
    if (us > MINUTE_US && strstr(to, " 0 s") != NULL)
        *strstr(to, " 0 s") = '\0';
    return to;
}

struct row {
    const struct now *now;
    const char *shard, *name, *op_code;
    const struct channel *channel; /* NULL: nothing ended lately */
    const struct waits *waits;     /* NULL: nothing waits */
    const struct stopped *paused, *broken;
    uint64_t trades;
};

static int rank_of(const struct row *row)
{
    const int is_down = row->channel != NULL && row->channel->state.down_since_us != 0;

    return row->paused != NULL ? 1 : is_down || row->broken != NULL ? 2 : 0;
}

static int by_need(const void *one, const void *other)
{
    const struct row *a = one, *b = other;
    const int by_rank = rank_of(b) - rank_of(a), by_name = strcmp(a->name, b->name);

    if (by_rank != 0)
        return by_rank;
    if (a->trades != b->trades)
        return a->trades < b->trades ? 1 : -1;
    return by_name != 0 ? by_name : strcmp(a->op_code, b->op_code);
}

/* The row of a channel in an operation, made on first use, from `first` on. */
static struct row *row_of(struct row *rows, size_t first, size_t *count, const struct now *now,
                          const char *name, const char *op_code)
{
    struct row *row = rows + first;

    while (row < rows + *count &&
           (strcmp(row->name, name) != 0 || strcmp(row->op_code, op_code) != 0))
        row++;
    if (row < rows + *count)
        return row;
    *row = (struct row){.now = now,
                        .name = name,
                        .op_code = op_code,
                        .paused = stopped_of(&now->paused, name, op_code),
                        .broken = stopped_of(&now->broken, name, op_code)};
    ++*count;
    return row;
}

/* What is stopped as a whole stands with its operations, or alone where there are none. */
static void add_stopped(struct row *rows, size_t first, size_t *count, const struct now *now,
                        const struct stops *stops)
{
    for (unsigned i = 0; i < stops->count; i++) {
        size_t at = first;

        while (at < *count && rows[at].paused != &stops->of[i] && rows[at].broken != &stops->of[i])
            at++;
        if (at == *count)
            (void)row_of(rows, first, count, now, stops->of[i].channel, stops->of[i].op_code);
    }
}

static size_t collect(struct row *rows, size_t count, const struct now *now, const char *shard)
{
    const size_t first = count;

    for (unsigned i = 0; i < now->wait_count; i++) {
        const struct waits *waits = &now->waits[i];
        struct row *row = row_of(rows, first, &count, now, waits->channel, waits->op_code);

        row->waits = waits;
        for (unsigned age = 0; age < AGES; age++)
            row->trades += waits->age[age].trades;
    }
    for (unsigned i = 0; i < now->channel_count; i++) {
        const struct channel *one = &now->channels[i];
        const char *name = strcmp(one->name, "unknown") == 0 ? "" : one->name;

        row_of(rows, first, &count, now, name, one->op_code)->channel = one;
    }
    add_stopped(rows, first, &count, now, &now->paused);
    add_stopped(rows, first, &count, now, &now->broken);
    for (size_t i = first; i < count; i++)
        rows[i].shard = shard;
    return count;
}

/* ------------------------------------------------------------------- writing -- */

static void put_span(struct page *page, int64_t since_us, int64_t now_us)
{
    char span[TL_SPAN_TEXT];

    page_format(page, "%s</span>", waits_span(span, since_us, now_us));
}

static void put_state(struct page *page, const struct row *row)
{
    const tl_channel_state *state = row->channel != NULL ? &row->channel->state : NULL;
    const struct stopped *paused = row->paused;
    const int64_t now_us = row->now->now_us;
    char text[3][TL_AMOUNT_TEXT];

    if (paused != NULL) {
        page_put(page, "<span class=\"state doubt\">paused by ");
        page_bytes(page, paused->account, strcspn(paused->account, "@"));
        page_put(page, ", ");
        put_span(page, paused->row.decided_us, now_us);
    }
    if (row->broken != NULL) {
        page_put(page, "<span class=\"state bad\">breaker open for ");
        put_span(page, row->broken->row.opened_us, now_us);
    }
    if (state != NULL && state->down_since_us != 0) {
        page_put(page, "<span class=\"state bad\">no answer for ");
        put_span(page, state->down_since_us, now_us);
    } else if (state != NULL && state->answered_us != 0) {
        page_put(page, "<span class=\"state good\">answered ");
        page_ago(page, state->answered_us, now_us);
        page_put(page, "</span>");
    }
    if (paused != NULL)
        page_format(page, "<br><span class=\"quiet\">%s</span>", paused->reason);
    if (state != NULL && state->succeeded + state->declined + state->failed > 0)
        page_format(page,
                    "<br><span class=\"quiet\">the last hour%s: %s paid, %s declined, %s failed"
                    "</span>",
                    state->cut ? ", at least" : "", tl_count_text(text[0], state->succeeded),
                    tl_count_text(text[1], state->declined), tl_count_text(text[2], state->failed));
}

/* The older and the more, the darker. */
static void put_age(struct page *page, const struct row *row, unsigned age)
{
    const struct sums *sums = row->waits != NULL ? &row->waits->age[age] : NULL;
    unsigned shade = age;

    if (sums == NULL || sums->trades == 0) {
        page_format(page, "<td class=\"heat\" data-l=\"%s\"></td>", ages[age]);
        return;
    }
    shade += sums->trades >= 100 ? 2 : sums->trades >= 10;
    shade += rank_of(row) == 2;
    page_format(page, "<td class=\"heat heat%u\" data-l=\"%s\"><div><strong>%s</strong>",
                shade > 3 ? 3 : shade, ages[age], COUNT_TEXT(sums->trades));
    page_put(page, "<br>");
    sums_write(page, sums, "<br>");
    page_put(page, "</div></td>");
}

static void write_row(struct page *page, const struct row *row, int may_act)
{
    page_format(page,
                "<tr><th scope=\"row\">%s%s<strong>%s</strong> <span class=\"quiet\">%s</span>"
                "<br>",
                row->shard, row->shard[0] != '\0' ? ": " : "",
                row->name[0] != '\0' ? row->name : "no channel", row->op_code);
    put_state(page, row);
    page_put(page, "</th>");
    for (unsigned age = 0; age < AGES; age++)
        put_age(page, row, age);
    page_put(page, "<td class=\"do\">");
    if (may_act && row->paused != NULL)
        part_channel_button(page, row->shard, row->paused->channel, row->paused->op_code, "",
                            "Resume…");
    else if (may_act && row->name[0] != '\0')
        part_channel_button(page, row->shard, row->name, row->op_code, "", "Pause…");
    page_put(page, "</td></tr>\n");
}

static void write_rows(struct page *page, const struct row *rows, size_t count, int may_act)
{
    page_put(page, "<section class=\"card\"><h2>Where money waits, and for how long</h2>\n");
    if (count == 0) {
        page_put(page, "<p class=\"calm-line\">Nothing waits, and nothing ended in the last hour."
                       "</p></section>\n");
        return;
    }
    page_put(page, "<div class=\"scroll\"><table class=\"waits\"><thead><tr>"
                   "<th scope=\"col\">Channel</th>");
    for (unsigned age = 0; age < AGES; age++)
        page_format(page, "<th scope=\"col\" class=\"number\">%s</th>", ages[age]);
    page_put(page, "<td></td></tr></thead><tbody>\n");
    for (size_t i = 0; i < count && i < CHANNELS_SHOWN; i++)
        write_row(page, &rows[i], may_act);
    page_put(page, "</tbody></table></div>\n");
    if (count > CHANNELS_SHOWN)
        page_put(page, "<p class=\"quiet\">There are more channels than stand here: "
                       "<a href=\"/channels\">Channels</a></p>\n");
    page_put(page, "</section>\n");
}

void waits_write(struct visit *visit, struct now *const *shards, size_t count, int may_act)
{
    struct page *page = &visit->answer->page;
    size_t space = 1, used = 0;
    struct row *rows;

    for (size_t i = 0; i < count; i++)
        if (shards[i] != NULL)
            space += shards[i]->wait_count + shards[i]->channel_count + shards[i]->paused.count +
                     shards[i]->broken.count;
    rows = calloc(space, sizeof *rows);
    if (rows == NULL) {
        page->failed = 1;
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (shards[i] != NULL)
            used = collect(rows, used, shards[i], shards_name(visit->session->shards, i));
    qsort(rows, used, sizeof *rows, by_need);
    write_rows(page, rows, used, may_act);
    free(rows);
}
