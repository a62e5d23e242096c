/* The page of one trade. */
#include "page_trade.h"

#include "fields.h"
#include "moment.h"
#include "moments.h"
#include "parts.h"
#include "print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void tell_unread(struct visit *visit, tl_status status)
{
    char said[1024];

    if (status == TL_MISDIRECTED)
        snprintf(said, sizeof said,
                 "No shard has this customer now: it is being moved, or its slot is nobody's (%s). "
                 "Look again in a moment; `tradelock doctor` tells more.",
                 said_by(status));
    else if (status == TL_NOT_FOUND && visit_is_of_fleet(visit))
        snprintf(said, sizeof said, "Shard %s, which has this customer, has no such trade: %s",
                 visit_shard(visit), said_by(status));
    else
        snprintf(said, sizeof said, "%s", said_by(status));
    layout_sentence(visit, http_of(status),
                    status == TL_NOT_FOUND ? "No such trade" : "This cannot be read now", said);
}

int trade_read(struct visit *visit, const struct form *form, struct ref *ref, struct trade *trade)
{
    tl_status status = TL_NOT_FOUND;
    const int known = refs_find(visit->desk->refs, form_get(form, "r"), ref);

    if (known)
        status = visit_go_to_owner(visit, ref->cust_no);
    if (known && status == TL_OK)
        status = house_trade(visit->client, ref, 0, trade);
    if (status == TL_OK) {
        const tl_key key = ref_key(ref);

        if (!visit->request->is_refresh)
            tl_client_log(visit->client, TL_INFO, &key, 0, SHARDS_ACCESS "%s", visit->account.name);
        return 1;
    }
    if (!known)
        layout_sentence(visit, 404, "No such trade",
                        "This link is older than the desk, or was not used for long. Search for "
                        "the trade again. Nothing was done.");
    else
        tell_unread(visit, status);
    trade_free(trade);
    return 0;
}

/* On top stand the state, the last that happened at the channel, and what is next.  What a person may
 * do is offered by buttons. */
static int is_on_top(const struct trade *trade, size_t i)
{
    const tl_topic topic = trade->told[i].topic;
    const int is_first = i == 0 || trade->told[i - 1].topic != topic;
    const int is_last = i + 1 == trade->told_count || trade->told[i + 1].topic != topic;

    return topic == TL_TOPIC_STATE || (topic == TL_TOPIC_CHANNEL && is_last) ||
           (topic == TL_TOPIC_NEXT && is_first);
}

static int is_folded(const struct trade *trade, size_t i)
{
    return trade->told[i].topic != TL_TOPIC_ACT && !is_on_top(trade, i);
}

static void put_sentences(struct page *page, const struct trade *trade,
                          int (*stands)(const struct trade *trade, size_t i))
{
    for (size_t i = 0; i < trade->told_count; i++)
        if (stands(trade, i)) {
            page_put(page, trade->told[i].topic == TL_TOPIC_STATE ? "<p class=\"lead\">" : "<p>");
            page_words(page, trade->told[i].text);
            page_put(page, "</p>");
        }
}

void trade_head(struct visit *visit, const struct trade *trade)
{
    struct page *page = &visit->answer->page;
    const tl_view *view = trade_view(trade);
    char amount[TL_AMOUNT_TEXT];

    page_format(page,
                "<div class=\"title\"><div><p class=\"over\">%s of customer %s</p>"
                "<h1 class=\"serial\">%s</h1></div><p class=\"amount\">",
                view->op_code, view->cust_no, view->serial_no);
    page_money(page, tl_amount_text(amount, view->amount_minor, view->currency));
    page_put(page, "</p></div>\n<section class=\"card why\"><p>");
    part_state(visit, view);
    page_put(page, "</p>");
    put_sentences(page, trade, is_on_top);
    page_put(page, "</section>\n");
}

static void all_sentences(struct page *page, const struct trade *trade)
{
    size_t i = 0;

    while (i < trade->told_count && !is_folded(trade, i))
        i++;
    if (i == trade->told_count)
        return;
    page_put(page, "<details class=\"card why\"><summary>The whole explanation</summary>");
    put_sentences(page, trade, is_folded);
    page_put(page, "</details>\n");
}

/* ------------------------------------------------------------------- facts -- */

static void fact(struct page *page, const char *name, const char *value)
{
    if (value != NULL && value[0] != '\0')
        page_format(page, "<div><dt>%s</dt><dd>%s</dd></div>\n", name, value);
}

static void facts_of(struct page *page, enum field_group group, const tl_view *view)
{
    char space[FIELD_SPACE];

    for (size_t i = 0; i < VIEW_FIELDS; i++) {
        const struct field *field = &view_fields[i];
        const char *words = field_words(space, field, view);

        if (field->group != group || field->fact == NULL || words[0] == '\0')
            continue;
        page_format(page, "<div><dt>%s</dt><dd>%s", field->fact, words);
        if (field->type == FIELD_TIME) {
            page_put(page, " <span class=\"quiet\">");
            page_ago(page, field_time(field, view), view->now_us);
            page_put(page, "</span>");
        }
        page_put(page, "</dd></div>\n");
    }
}

static void facts(struct page *page, const tl_view *view, const char *shard)
{
    static const enum field_group groups[] = {
        GROUP_TIMES,   GROUP_TROUBLE, GROUP_HOLDER, GROUP_SESSION, GROUP_CHANNEL,
        GROUP_REQUEST, GROUP_REMARK,  GROUP_FOUND,  GROUP_COUNTS,  GROUP_WORK};

    page_put(page, "<details class=\"card\"><summary>Facts</summary><dl class=\"facts\">\n");
    fact(page, "Shard", shard);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        facts_of(page, groups[i], view);
    if (view->proof != TL_PROOF_NONE)
        fact(page, "Proof", tl_proof_text((tl_proof)view->proof));
    page_put(page, "</dl>\n</details>\n");
}

/* ------------------------------------------------- evidence, decisions, history -- */

static void evidence(struct visit *visit, const struct trade *trade)
{
    struct page *page = &visit->answer->page;
    struct grid grid;

    if (trade->evidence_count == 0)
        return;
    page_put(page, "<section class=\"card\"><h2>Evidence</h2>\n");
    grid_begin(&grid, visit, &record_evidence, NULL, NULL);
    for (size_t i = 0; i < trade->evidence_count; i++)
        grid_row(&grid, &trade->evidence[i]);
    grid_end(&grid, "");
    page_put(page, "</section>\n");
}

static void decisions(struct visit *visit, const struct trade *trade)
{
    struct page *page = &visit->answer->page;
    struct grid grid;

    if (trade->half_count == 0)
        return;
    page_put(page, "<section class=\"card\"><h2>Decisions of operators</h2>\n");
    grid_begin(&grid, visit, &record_resolution, NULL, NULL);
    for (size_t i = 0; i < trade->half_count; i++)
        grid_row(&grid, &trade->halves[i]);
    grid_end(&grid, "");
    page_put(page, "</section>\n");
}

static void history(struct visit *visit, const struct trade *trade)
{
    struct page *page = &visit->answer->page;
    struct step_teller teller = {.first_us = 0};
    struct grid grid;

    page_put(page, "<details class=\"card\"><summary>Every step</summary>\n");
    grid_begin(&grid, visit, &record_step, NULL, NULL);
    for (size_t i = 0; i < trade->step_count; i++) {
        const struct told_step told = step_tell(&teller, &trade->steps[i]);

        grid_row(&grid, &told);
    }
    grid_end(&grid, "Nothing is on record.");
    if (trade->cut)
        page_put(page, "<p class=\"quiet\">There is more than stands here; <code>tradelock show"
                       "</code> prints all of it.</p>\n");
    page_put(page, "</details>\n");
}

static void raw(struct page *page, const struct trade *trade, const char *shard)
{
    char *text = house_json(trade, shard);

    page_put(page, "<details class=\"card\"><summary>Raw JSON</summary><pre tabindex=\"0\">");
    page_text(page, text != NULL ? text : "out of memory");
    page_put(page, "</pre></details>\n");
    free(text);
}

/* ------------------------------------------------------------------ the page -- */

static void way_to_decide(struct visit *visit, const struct trade *trade)
{
    struct page *page = &visit->answer->page;
    int may_confirm = 0;

    for (size_t i = 0; i < trade->half_count; i++) {
        const tl_resolution_row *proposal = &trade->halves[i];

        if (!proposal->stands)
            continue;
        may_confirm |= !proposal->own;
        page_format(page,
                    "<p class=\"notice warn\" role=\"status\"><strong>%s proposed “%s”</strong> "
                    "(%s). %s</p>\n",
                    proposal->account, tl_decision_name(proposal->decision), proposal->reason,
                    proposal->own ? "Another operator has to confirm it."
                                  : "It waits for a second operator.");
    }
    if (!visit->account.may_decide || trade_view(trade)->status == 'Y')
        return;
    page_format(
        page, "<p class=\"acts\"><a class=\"button main\" href=\"/decide?r=%s\">%s</a></p>\n",
        form_get(&visit->request->query, "r"), may_confirm ? "Look at the proposal" : "Decide");
}

/* The trade as it is, or as it was; `all` has the whole history. */
static void write_trade(struct visit *visit, const struct trade *trade, const struct trade *all,
                        const struct moments *moments)
{
    struct page *page = &visit->answer->page;
    const tl_view *view = trade_view(trade);
    char when[TL_MOMENT_TEXT] = "";

    layout_begin(visit, 200, "A trade", PLACE_TRADES,
                 trade->as_of_us == 0 && view->status == 'P' ? 10 : 0);
    page_put(page, "<div class=\"part\" data-part>\n");
    if (trade->as_of_us != 0)
        page_format(
            page,
            "<p class=\"notice warn\" role=\"status\"><strong>As it was at %s</strong> by its "
            "history. What came later is left out.</p>\n",
            tl_moment_text(when, trade->as_of_us, 6));
    trade_head(visit, trade);
    if (trade->as_of_us == 0)
        way_to_decide(visit, trade);
    page_put(page, "</div>\n");
    moments_write(page, moments, trade->as_of_us, form_get(&visit->request->query, "r"));
    page_put(page, "<div class=\"part\" data-part>\n");
    trade_timeline(page, all, trade->as_of_us);
    trade_attempts(page, trade);
    evidence(visit, trade);
    decisions(visit, trade);
    all_sentences(page, trade);
    facts(page, view, visit_shard(visit));
    history(visit, trade);
    part_command(page, "show", view->serial_no, view->cust_no, view->op_code, "--as-of", when);
    raw(page, trade, visit_shard(visit));
    page_put(page, "</div>\n");
    layout_end(visit);
}

static void write_past(struct visit *visit, const struct ref *ref, const struct trade *all,
                       const struct moments *moments, int64_t as_of_us)
{
    struct trade past = {.step_count = 0};
    tl_status status = house_trade(visit->client, ref, as_of_us, &past);

    if (status == TL_OK)
        write_trade(visit, &past, all, moments);
    else
        layout_sentence(visit, http_of(status),
                        status == TL_NOT_FOUND ? "Not there yet" : "This cannot be read now",
                        said_by(status));
    trade_free(&past);
}

/* Microseconds since 1970, as our links have them, or what people type; 0: it is none. */
static int read_at(const char *text, int64_t *us)
{
    const size_t size = strlen(text);

    if (size != strspn(text, "0123456789") || size < 13)
        return read_moment_us(text, us);
    *us = size < 18 ? strtoll(text, NULL, 10) : 0;
    return *us > 0;
}

/* A place of the slider becomes the moment that stands there, since a link with it can be sent. */
static void redirect_to(struct visit *visit, int64_t as_of_us)
{
    char *location = visit->answer->location;
    size_t size;

    layout_redirect(visit->answer, "/trade", form_get(&visit->request->query, "r"));
    size = strlen(location);
    if (as_of_us != 0)
        snprintf(location + size, sizeof visit->answer->location - size, "&at=%lld",
                 (long long)as_of_us);
}

static void write_asked(struct visit *visit, const struct ref *ref, const struct trade *trade)
{
    const struct form *query = &visit->request->query;
    struct moments moments;
    int64_t as_of_us = 0;

    if (!moments_of(&moments, trade))
        layout_sentence(visit, 503, "This cannot be read now", "Out of memory.");
    else if (form_get(query, "step")[0] != '\0')
        redirect_to(visit, moments_at(&moments, form_get(query, "step")));
    else if (form_get(query, "at")[0] == '\0')
        write_trade(visit, trade, trade, &moments);
    else if (!read_at(form_get(query, "at"), &as_of_us))
        layout_sentence(visit, 400, "Not a moment",
                        "A moment is written as 2026-03-01 09:30, in UTC, or how long ago, as 2h.");
    else if (as_of_us >= trade_view(trade)->now_us)
        redirect_to(visit, 0);
    else
        write_past(visit, ref, trade, &moments, as_of_us);
    moments_free(&moments);
}

void page_trade(struct visit *visit)
{
    struct trade trade = {.step_count = 0};
    struct ref ref;

    if (!trade_read(visit, &visit->request->query, &ref, &trade))
        return;
    write_asked(visit, &ref, &trade);
    trade_free(&trade);
}
