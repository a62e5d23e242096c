/* Draws the payments of three hours: what was paid upwards, what had no end a minute after it was
 * asked for downwards, on one axis.  Writes only. */
#include "pace.h"

#include "print.h"

#include <tradelock/money.h>

#include <stdlib.h>

#define MINUTE_US INT64_C(60000000)
#define HEIGHT 150.0
#define NEWEST 1 /* the minute that runs now is not whole */

/* From how many a minute to how high on the picture. */
struct scale {
    double zero_y, per_one;
};

static int64_t most_of(const int64_t *minutes)
{
    int64_t most = 0;

    for (unsigned i = NEWEST; i < TL_PACE_MINUTES; i++)
        most = minutes[i] > most ? minutes[i] : most;
    return most;
}

static int64_t sum_of(const int64_t *minutes)
{
    int64_t sum = 0;

    for (unsigned i = 0; i < TL_PACE_MINUTES; i++)
        sum += minutes[i] > 0 ? minutes[i] : 0;
    return sum;
}

static void put_count(struct page *page, int64_t count)
{
    char text[TL_AMOUNT_TEXT];

    page_format(page, "<b>%s</b>", tl_count_text(text, count > 0 ? (uint64_t)count : 0));
}

static int by_size(const void *one, const void *other)
{
    const int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;

    return a < b ? -1 : a > b;
}

/* What half of the minutes that were counted have. */
static int64_t usual_of(const int64_t *minutes)
{
    int64_t sorted[TL_PACE_MINUTES];
    size_t count = 0;

    for (unsigned i = NEWEST; i < TL_PACE_MINUTES; i++)
        if (minutes[i] >= 0)
            sorted[count++] = minutes[i];
    qsort(sorted, count, sizeof sorted[0], by_size);
    return count > 0 ? sorted[count / 2] : 0;
}

/* A shape for each run of minutes that were counted.  Who is late in the newest is not known yet. */
static void shape(struct page *page, const int64_t *minutes, const char *kind,
                  const struct scale *scale, double sign, int newest)
{
    int is_open = 0;

    for (int i = TL_PACE_MINUTES - 1; i >= newest; i--) {
        const int x = TL_PACE_MINUTES - 1 - i;
        const int is_last = i == newest || minutes[i - 1] < 0;

        if (minutes[i] < 0)
            continue;
        if (!is_open)
            page_format(page, "<polygon class=\"%s\" points=\"%d,%d ", kind, x, (int)scale->zero_y);
        page_format(page, "%d,%d ", x,
                    (int)(scale->zero_y - sign * scale->per_one * (double)minutes[i]));
        if (is_last)
            page_format(page, "%d,%d\"/>", x, (int)scale->zero_y);
        is_open = !is_last;
    }
}

/* More had no end than were paid, or a channel does not answer. */
static int is_outage(const struct now *now, int64_t down_since_us, int i)
{
    const int64_t minute_us = now->minute_us - i * MINUTE_US;

    return now->late[i] > (now->paid[i] > 0 ? now->paid[i] : 0) ||
           (down_since_us != 0 && minute_us + MINUTE_US > down_since_us);
}

static void outages(struct page *page, const struct now *now, int64_t down_since_us)
{
    for (int i = TL_PACE_MINUTES - 1; i >= NEWEST; i--) {
        const int first = i;

        if (!is_outage(now, down_since_us, i))
            continue;
        while (i > NEWEST && is_outage(now, down_since_us, i - 1))
            i--;
        page_format(page, "<rect class=\"outage\" y=\"0\" height=\"%d\" x=\"%d\" width=\"%d\"/>",
                    (int)HEIGHT, TL_PACE_MINUTES - 1 - first, first - i + 1);
    }
}

static void key(struct page *page, const char *kind)
{
    page_format(page,
                "<svg width=\"12\" height=\"12\" aria-hidden=\"true\"><rect width=\"12\" "
                "height=\"12\" rx=\"3\" class=\"%s\"/></svg><span>",
                kind);
}

static void legend(struct page *page, const struct now *now)
{
    page_put(page, "<ul class=\"legend\"><li>");
    key(page, "paid");
    page_put(page, "paid ");
    put_count(page, now->paid[NEWEST]);
    page_put(page, " in the last minute, usually ");
    put_count(page, usual_of(now->paid));
    page_put(page, ", ");
    put_count(page, sum_of(now->paid));
    page_put(page, " in three hours</span></li><li>");
    key(page, "late");
    page_put(page, "no end a minute after the ask ");
    put_count(page, now->late[NEWEST + 1]);
    page_put(page, ", ");
    put_count(page, sum_of(now->late));
    page_put(page, " in three hours</span></li><li>");
    key(page, "outage");
    page_put(page, "outage</span></li></ul>\n");
}

static void axis(struct page *page, int64_t now_us)
{
    page_put(page, "<p class=\"axis\" aria-hidden=\"true\">");
    for (int hours = 3; hours >= 0; hours--) {
        char moment[TL_MOMENT_TEXT];

        tl_moment_text(moment, now_us - hours * 60 * MINUTE_US, 0);
        page_put(page, "<span>");
        page_bytes(page, moment + 11, 5);
        page_put(page, hours == 0 ? " UTC</span>" : "</span>");
    }
    page_put(page, "</p></section>\n");
}

void pace_write(struct page *page, const struct now *now, int64_t down_since_us)
{
    const int64_t up = most_of(now->paid), down = most_of(now->late);
    const struct scale scale = {
        .zero_y = up + down > 0 ? 2 + (HEIGHT - 4) * (double)up / (double)(up + down) : HEIGHT - 2,
        .per_one = up + down > 0 ? (HEIGHT - 4) / (double)(up + down) : 0};

    page_put(page, "<section class=\"card\"><h2>Payments a minute, three hours</h2>\n");
    legend(page, now);
    page_format(page,
                "<svg class=\"pace\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
                "role=\"img\" aria-label=\"Payments in each of the last 180 minutes, at most "
                "%s; without an end a minute later at most %s\">",
                TL_PACE_MINUTES - 1, (int)HEIGHT, COUNT_TEXT((uint64_t)up),
                COUNT_TEXT((uint64_t)down));
    outages(page, now, down_since_us);
    shape(page, now->paid, "paid", &scale, 1, NEWEST);
    shape(page, now->late, "late", &scale, -1, NEWEST + 1);
    page_format(page, "<line class=\"zero\" x1=\"0\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/></svg>\n",
                TL_PACE_MINUTES - 1, (int)scale.zero_y, (int)scale.zero_y);
    axis(page, now->now_us);
}
