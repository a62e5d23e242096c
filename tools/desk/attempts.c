/* Tells the history of a trade by attempts: who asked for it or looked at it, and what came of that.
 * Only formats. */
#include "page_trade.h"

#include "said.h"

#include <string.h>

/* So many stand open; those before them are folded. */
#define ATTEMPTS_OPEN 5u

struct telling {
    struct page *page;
    unsigned number, all;
    int is_open;
    int64_t begun_us;
    uint32_t sends;
};

static int begins_attempt(const tl_step *step)
{
    return !step_is_retry(step) &&
           (strcmp(step->step, "ask") == 0 || strcmp(step->step, "reask") == 0 ||
            strcmp(step->step, "reclaim") == 0 || strcmp(step->step, "claim") == 0);
}

/* Sends are counted from each ask on; a claim goes on with what the ask had. */
int step_sends(const tl_step *step, uint32_t before)
{
    const int is_new = begins_attempt(step) && strcmp(step->step, "claim") != 0;

    return step->sends > (is_new ? 0 : before);
}

static const char *words_of(const tl_step *step)
{
    static const char *const words[][2] = {
        {"ask", "asked for"},      {"reask", "asked for again"},
        {"reclaim", "tried anew"}, {"claim", "looked at by a worker"},
        {"unknown", "no answer"},  {"reap", "its process died or was too late"}};

    if (strcmp(step->step, "end") == 0)
        return step->status == 'Y' ? "paid" : "failed";
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(step->step, words[i][0]) == 0)
            return words[i][1];
    return step->step;
}

static void end_line(struct telling *telling)
{
    if (telling->is_open)
        page_put(telling->page, "</li>\n");
    telling->is_open = 0;
}

static void begin_line(struct telling *telling, const tl_step *step)
{
    end_line(telling);
    if (telling->all > ATTEMPTS_OPEN && telling->number == telling->all - ATTEMPTS_OPEN)
        page_put(telling->page, "</ul></details>\n<ul class=\"attempts\">\n");
    page_format(telling->page, "<li><strong>Attempt %u</strong>, ", ++telling->number);
    page_moment(telling->page, step->logged_us);
    page_put(telling->page, ": ");
    telling->begun_us = step->logged_us;
    telling->is_open = 1;
}

static void tell(struct telling *telling, const tl_step *step)
{
    const int begins = begins_attempt(step);
    const int sends = step_sends(step, telling->sends);
    const int is_over = step->status != 'P' || step->session_id == NULL;
    const char *said =
        is_over && step->remark != NULL && !said_is_carried(step->step) ? step->remark : "";
    /* Workers put before a remark what they did and were told. */
    const int tells_all = strncmp(said, "asked: ", 7) == 0 || strncmp(said, "cancel: ", 8) == 0;
    char span[TL_SPAN_TEXT];

    telling->sends = step->sends;
    if (begins)
        begin_line(telling, step);
    if (!telling->is_open)
        return;
    if (!tells_all && strcmp(step->step, "arm") != 0)
        page_format(telling->page, "%s%s", begins ? "" : ", ", words_of(step));
    if (sends)
        page_put(telling->page, ", sent");
    if (said[0] != '\0')
        page_format(telling->page, "%s%s", tells_all ? ", " : ": ", said);
    if (!is_over)
        return;
    page_format(telling->page, " (%s)",
                tl_span_text(span, step->logged_us - telling->begun_us, TL_SPAN_FINE));
    end_line(telling);
}

void trade_attempts(struct page *page, const struct trade *trade)
{
    struct telling telling = {.page = page};

    for (size_t i = 0; i < trade->step_count; i++)
        if (begins_attempt(&trade->steps[i]))
            telling.all++;
    if (telling.all == 0)
        return;
    page_put(page, "<section class=\"card\"><h2>Attempts</h2>\n");
    if (telling.all > ATTEMPTS_OPEN)
        page_format(page, "<details><summary>The first %u</summary>", telling.all - ATTEMPTS_OPEN);
    page_put(page, "<ul class=\"attempts\">\n");
    for (size_t i = 0; i < trade->step_count; i++)
        if (!step_is_retry(&trade->steps[i]))
            tell(&telling, &trade->steps[i]);
    end_line(&telling);
    page_put(page, "</ul></section>\n");
}
