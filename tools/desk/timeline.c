/* Draws both lanes of a trade, what was filed and what was decided, on one line of time.  It is wide
 * at both ends, so that the first second shows as well as the last day.  Positions are shares of the width, so that no word is stretched on a small screen. */
#include "page_trade.h"

#include "said.h"

#include <math.h>
#include <string.h>

struct scale {
    int64_t from_us, to_us;
    int64_t as_of_us; /* 0: now */
};

/* The logarithm of the hundredths of a second that it is away from its end of the line. */
static double away(int64_t us)
{
    return log1p((double)(us > 0 ? us : 0) / 10000);
}

static double share_of(const struct scale *scale, int64_t us)
{
    const int64_t half_us = (scale->to_us - scale->from_us) / 2;
    const int64_t past_us = us - scale->from_us, left_us = scale->to_us - us;

    return past_us <= half_us ? away(past_us) / away(half_us) / 2
                              : 1 - away(left_us) / away(half_us) / 2;
}

static void at(struct page *page, const char *name, const struct scale *scale, int64_t us)
{
    page_format(page, " %s=\"", name);
    page_percent(page, share_of(scale, us));
    page_put(page, "\"");
}

static int is_of_lane(const tl_step *step, tl_lane lane)
{
    return step_is_retry(step) == (lane == TL_LANE_RETRY);
}

/* The next step of the same lane, or NULL. */
static const tl_step *next_of(const struct trade *trade, size_t i, tl_lane lane)
{
    for (i++; i < trade->step_count; i++)
        if (is_of_lane(&trade->steps[i], lane))
            return &trade->steps[i];
    return NULL;
}

/* What stands between a step and the next one of its lane. */
static const char *stretch_of(const tl_step *step, tl_lane lane)
{
    if (step->status == 'P' && step->session_id != NULL)
        return "hold";
    if (step->parked != NULL)
        return "parked";
    if (lane == TL_LANE_SYNC)
        return step->status != 'P' ? NULL : step->sends > 0 ? "doubt" : "wait";
    return step->next_run_us != 0 ? "wait" : NULL;
}

static void stretch(struct page *page, const struct scale *scale, const tl_step *step,
                    const tl_step *next, tl_lane lane)
{
    const char *kind = stretch_of(step, lane);
    const int64_t end_us = next != NULL ? next->logged_us : scale->to_us;
    char span[TL_SPAN_TEXT];

    if (kind == NULL)
        return;
    page_format(page, "<line class=\"%s\"", kind);
    at(page, "x1", scale, step->logged_us);
    at(page, "x2", scale, end_us);
    page_format(page, " y1=\"16\" y2=\"16\"><title>%s for %s</title></line>",
                strcmp(kind, "hold") == 0     ? "held"
                : strcmp(kind, "doubt") == 0  ? "in doubt"
                : strcmp(kind, "parked") == 0 ? "waits for a person"
                                              : "waits",
                tl_span_text(span, end_us - step->logged_us, TL_SPAN_WORDS));
}

static void mark(struct page *page, const struct scale *scale, const char *kind, int64_t us,
                 const char *words, const char *more)
{
    page_format(page, "<circle class=\"%s\" cy=\"16\" r=\"5\"", kind);
    at(page, "cx", scale, us);
    page_format(page, "><title>%s%s%s</title></circle>", words, more[0] != '\0' ? ": " : "", more);
}

/* Whoever held the trade gave it back, with what the channel said, or that it said nothing. */
static int is_answer(const tl_step *step)
{
    return step->status == 'P' && step->session_id == NULL && !said_is_carried(step->step);
}

static const char *kind_of(const tl_step *step, uint32_t sends_before, tl_lane lane)
{
    if (lane == TL_LANE_SYNC && step->status == 'Y')
        return "paid";
    if (lane == TL_LANE_SYNC && step->status == 'F')
        return "failed";
    if (lane == TL_LANE_SYNC && step_sends(step, sends_before))
        return "send";
    return lane == TL_LANE_SYNC && is_answer(step) ? "answer" : "step";
}

/* Sends and ends are drawn over other steps, which are often only milliseconds away. */
static void marks(struct page *page, const struct trade *trade, const struct scale *scale,
                  tl_lane lane, int important)
{
    uint32_t sends = 0;

    for (size_t i = 0; i < trade->step_count; i++) {
        const tl_step *step = &trade->steps[i];
        const char *kind = kind_of(step, sends, lane);

        if (!is_of_lane(step, lane))
            continue;
        sends = step->sends;
        if ((strcmp(kind, "step") != 0) == important)
            mark(page, scale, kind, step->logged_us, step->step,
                 step->remark != NULL ? step->remark : "");
    }
}

static void begin_row(struct page *page, const struct scale *scale, const char *name)
{
    page_format(page,
                "<span class=\"lane\">%s</span><svg class=\"time\" height=\"32\" role=\"img\" "
                "aria-label=\"%s\">",
                name, name);
    if (scale->as_of_us == 0)
        return;
    page_put(page, "<line class=\"moment\" y1=\"0\" y2=\"32\"");
    at(page, "x1", scale, scale->as_of_us);
    at(page, "x2", scale, scale->as_of_us);
    page_put(page, "><title>the moment that is shown</title></line>");
}

static void lane_row(struct page *page, const struct trade *trade, const struct scale *scale,
                     tl_lane lane, const char *name)
{
    begin_row(page, scale, name);
    for (size_t i = 0; i < trade->step_count; i++)
        if (is_of_lane(&trade->steps[i], lane))
            stretch(page, scale, &trade->steps[i], next_of(trade, i, lane), lane);
    marks(page, trade, scale, lane, 0);
    marks(page, trade, scale, lane, 1);
    page_put(page, "</svg>\n");
}

static void others_row(struct page *page, const struct trade *trade, const struct scale *scale)
{
    if (trade->evidence_count == 0 && trade->half_count == 0)
        return;
    begin_row(page, scale, "People and evidence");
    for (size_t i = 0; i < trade->evidence_count; i++)
        mark(page, scale, "evidence", trade->evidence[i].filed_us, trade->evidence[i].outcome,
             trade->evidence[i].source);
    for (size_t i = 0; i < trade->half_count; i++)
        mark(page, scale, "decided", trade->halves[i].decided_us,
             tl_decision_name(trade->halves[i].decision), trade->halves[i].account);
    page_put(page, "</svg>\n");
}

/* How far behind the first step, and before the last moment. */
static void rule(struct page *page, const struct scale *scale)
{
    static const struct {
        int64_t us;
        const char *name;
    } marks[] = {{1000000, "1 s"}, {60000000, "1 min"}, {3600000000, "1 h"}, {86400000000, "1 d"}};

    page_put(page, "<span class=\"lane\">from either end</span><svg class=\"time rule\" "
                   "height=\"18\" aria-hidden=\"true\">");
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        for (int end = 0; end < 2 && 10 * marks[i].us < scale->to_us - scale->from_us; end++) {
            page_put(page, "<text y=\"12\"");
            at(page, "x", scale,
               end == 0 ? scale->from_us + marks[i].us : scale->to_us - marks[i].us);
            page_format(page, ">%s</text>", marks[i].name);
        }
    page_put(page, "</svg>\n");
}

static void key(struct page *page)
{
    static const char *const kinds[][2] = {
        {"send", "send"},     {"answer", "answer"},     {"step", "other step"}, {"paid", "paid"},
        {"failed", "failed"}, {"evidence", "evidence"}, {"decided", "decision"}};
    static const char *const lines[][2] = {{"hold", "held"},
                                           {"doubt", "in doubt"},
                                           {"wait", "waits"},
                                           {"parked", "waits for a person"}};

    page_put(page, "<ul class=\"legend\">");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        page_format(page,
                    "<li><svg class=\"time\" width=\"20\" height=\"12\" aria-hidden=\"true\"><line "
                    "class=\"%s\" x1=\"0\" x2=\"20\" y1=\"6\" y2=\"6\"/></svg>%s</li>",
                    lines[i][0], lines[i][1]);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        page_format(
            page,
            "<li><svg class=\"time\" width=\"12\" height=\"12\" aria-hidden=\"true\"><circle "
            "class=\"%s\" cx=\"6\" cy=\"6\" r=\"5\"/></svg>%s</li>",
            kinds[i][0], kinds[i][1]);
    page_put(page, "</ul>");
}

void trade_timeline(struct page *page, const struct trade *trade, int64_t as_of_us)
{
    const tl_view *view = trade_view(trade);
    struct scale scale;
    char span[TL_SPAN_TEXT];

    if (trade->step_count == 0)
        return;
    scale.as_of_us = as_of_us;
    scale.from_us = trade->steps[0].logged_us;
    scale.to_us =
        view->status == 'P' ? view->now_us : trade->steps[trade->step_count - 1].logged_us;
    if (scale.to_us - scale.from_us < 20000)
        scale.to_us = scale.from_us + 20000;
    page_put(page, "<section class=\"card\"><h2>Both lanes on one line of time</h2>\n"
                   "<div class=\"lanes\">\n");
    lane_row(page, trade, &scale, TL_LANE_SYNC, "First lane");
    lane_row(page, trade, &scale, TL_LANE_RETRY, "Retry lane");
    others_row(page, trade, &scale);
    rule(page, &scale);
    page_put(page, "</div>\n<p class=\"axis\"><span>");
    page_moment(page, scale.from_us);
    page_format(page, "</span><span>%s</span><span>",
                tl_span_text(span, scale.to_us - scale.from_us, TL_SPAN_WORDS));
    page_moment(page, scale.to_us);
    page_put(page, "</span></p>\n");
    key(page);
    page_put(page, "</section>\n");
}
