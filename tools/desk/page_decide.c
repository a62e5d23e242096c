/*
 * The page Decide: proposing, confirming, looking again, filing evidence.
 *
 * Each form says what will happen, has the fence that its page showed, and shows the command that
 * does the same.  Whether it may happen is for the library and the server to say.
 */
#include "command.h"
#include "now.h"
#include "page_trade.h"
#include "parts.h"

#include <tradelock/money.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A form of this page. */
struct offer {
    enum act act;
    tl_decision as;
    const char *title, *happens, *button;
};

const char *act_word(enum act act)
{
    static const char *const words[] = {"", "retry", "propose", "confirm", "evidence"};

    return words[act];
}

/* ------------------------------------------------------------------- forms -- */

static const char *as_of(const struct offer *offer)
{
    return offer->act == ACT_PROPOSE || offer->act == ACT_CONFIRM ? tl_decision_name(offer->as)
                                                                  : "";
}

/* Whether it is the form that was sent. */
static int is_sent(const struct visit *visit, const struct offer *offer)
{
    const struct form *form = &visit->request->body;

    return strcmp(form_get(form, "act"), act_word(offer->act)) == 0 &&
           strcmp(form_get(form, "as"), as_of(offer)) == 0;
}

/* What was typed into this form of the page that was sent; else what is said, which a person
 * confirms. */
static const char *typed(struct visit *visit, const struct offer *offer, const char *name,
                         const char *said)
{
    return is_sent(visit, offer) ? form_get(&visit->request->body, name) : said;
}

static void evidence_fields(struct visit *visit, const struct offer *offer, const tl_view *view)
{
    struct page *page = &visit->answer->page;
    char amount[TL_AMOUNT_TEXT];
    static const char *const outcomes[] = {"SUCCEEDED", "FAILED",  "DECLINED", "ACCEPTED",
                                           "PENDING",   "UNKNOWN", "NOT_SENT"};

    page_put(page, "<label for=\"outcome\">What it says</label><select id=\"outcome\" "
                   "name=\"outcome\" required><option value=\"\">choose</option>");
    for (size_t i = 0; i < sizeof outcomes / sizeof outcomes[0]; i++)
        page_format(page, "<option%s>%s</option>",
                    strcmp(typed(visit, offer, "outcome", ""), outcomes[i]) == 0 ? " selected" : "",
                    outcomes[i]);
    page_put(page, "</select>\n");
    (void)tl_amount_text(amount, view->amount_minor, view->currency);
    page_format(page,
                "<label for=\"paid\">SUCCEEDED: how much was paid</label>"
                "<input id=\"paid\" maxlength=\"%d\" autocomplete=\"off\" "
                "placeholder=\"1,250.00 EUR\" name=\"amount\" value=\"%s\">\n",
                TL_AMOUNT_TEXT - 1, typed(visit, offer, "amount", amount));
    if (amount[0] != '\0')
        page_format(page, "<p>The trade is of %s: whatever else was paid is a conflict.</p>\n",
                    amount);
    page_format(page,
                "<label for=\"source\">Who says so</label><input id=\"source\" name=\"source\" "
                "maxlength=\"63\" required autocomplete=\"off\" placeholder=\"statement "
                "2026-03-01\" value=\"%s\">\n<label for=\"channel-ref\">The channel’s reference, "
                "if known</label>"
                "<input id=\"channel-ref\" name=\"ref\" maxlength=\"%d\" autocomplete=\"off\" "
                "value=\"%s\">\n"
                "<label for=\"reason-evidence\">Remark</label><input id=\"reason-evidence\" "
                "name=\"reason\" maxlength=\"%d\" autocomplete=\"off\" value=\"%s\">\n",
                typed(visit, offer, "source", ""), TL_REF_MAX, typed(visit, offer, "ref", ""),
                TL_REMARK_MAX, typed(visit, offer, "reason", ""));
    page_put(page, "<p class=\"check\"><input type=\"checkbox\" id=\"final\" name=\"final\" "
                   "value=\"1\"><label for=\"final\">FAILED: the channel documents this answer as "
                   "final</label></p>\n");
}

/* The form, and the command that does the same; whether it is the form that was sent. */
static int write_offer(struct visit *visit, const struct offer *offer, const tl_view *view,
                       const char *ref)
{
    struct page *page = &visit->answer->page;
    const char *as = as_of(offer);
    const char *act = act_word(offer->act);
    char fence[24], epoch[16], id[64], amount[TL_AMOUNT_TEXT];

    snprintf(fence, sizeof fence, "%" PRIu64, view->fence);
    snprintf(epoch, sizeof epoch, "%" PRIu32, view->epoch);
    snprintf(id, sizeof id, "reason-%s%s", act, as);
    page_format(page, "<section class=\"card offer%s\"><h2>%s</h2><p>%s</p>\n",
                offer->act == ACT_CONFIRM ? " last" : "", offer->title, offer->happens);
    part_form(visit, "/decide", "shard", visit_shard(visit), "r", ref, "act", act, "fence", fence,
              "epoch", epoch, "as", as);
    if (offer->act == ACT_EVIDENCE)
        evidence_fields(visit, offer, view);
    if (offer->act == ACT_CONFIRM && offer->as == TL_DECISION_FAILED)
        page_put(page, "<p class=\"check\"><input type=\"checkbox\" id=\"although\" "
                       "name=\"although\" value=\"1\"><label for=\"although\">Book it also if the "
                       "channel calls the payment pending</label></p>\n");
    part_form_end(page, offer->act == ACT_EVIDENCE ? NULL : id, typed(visit, offer, "reason", ""),
                  offer->button);
    if (offer->act == ACT_EVIDENCE)
        part_command(page, "evidence", "add", view->serial_no, view->cust_no, view->op_code,
                     "--epoch", epoch, "--outcome", "WORD", "--source", "TEXT", "--amount",
                     tl_amount_text(amount, view->amount_minor, view->currency));
    else if (offer->act == ACT_RETRY)
        part_command(page, "retry", view->serial_no, view->cust_no, view->op_code, "--fence", fence,
                     "--reason", "TEXT");
    else
        part_command(page, "resolve", act, view->serial_no, view->cust_no, view->op_code, "--as",
                     as, "--fence", fence, "--reason", "TEXT");
    page_put(page, "</section>\n");
    return is_sent(visit, offer);
}

static const struct offer offer_retry = {
    ACT_RETRY, TL_DECISION_CLEAR, "Look again now",
    "The retry lane runs at once, and a parked one is unparked. A worker asks the channel "
    "before anything is sent; after the deadline nothing is sent at all.",
    "Make it due now"};

static const struct offer offer_evidence = {
    ACT_EVIDENCE, TL_DECISION_CLEAR, "File what the channel or a statement says",
    "It is kept for good and nobody can change it. A trade in process is looked at at once, "
    "and success ends it as paid. Success for a trade that failed is a conflict, about which "
    "two operators decide.",
    "File it"};

/* ------------------------------------------------------------------- offers -- */

const char *happens_then(tl_decision as)
{
    switch (as) {
    case TL_DECISION_FAILED:
        return "A worker asks the channel, where that can be, and books the failure with all "
               "business rows. If the channel says it paid, the trade becomes paid instead. "
               "Nothing is sent any more.";
    case TL_DECISION_PAID:
        return "The failure was paid after all: a worker books the success with all business "
               "rows. Nothing is sent any more.";
    default:
        return "The evidence was wrong, or is dealt with elsewhere: the conflict is over, and the "
               "row stays as it is.";
    }
}

static int offer_proposal(struct visit *visit, const tl_view *view, const char *ref, tl_decision as)
{
    char title[64], happens[512];
    struct offer offer = {ACT_PROPOSE, as, title, happens, "Propose"};

    snprintf(title, sizeof title, "Propose “%s”", tl_decision_name(as));
    snprintf(
        happens, sizeof happens,
        "Now nothing happens but that it stands on record: another operator has to confirm it. "
        "Then: %s",
        happens_then(as));
    return write_offer(visit, &offer, view, ref);
}

static int offer_confirmation(struct visit *visit, const tl_view *view, const char *ref,
                              const tl_resolution_row *proposal)
{
    const int is_failed = proposal->decision == TL_DECISION_FAILED;
    char title[160], happens[1200], amount[TL_AMOUNT_TEXT];
    struct offer offer = {ACT_CONFIRM, proposal->decision, title, happens, "Confirm"};

    if (tl_amount_text(amount, view->amount_minor, view->currency)[0] == '\0')
        snprintf(amount, sizeof amount, "what was asked for");
    snprintf(title, sizeof title, "Confirm: %s%s %s", amount,
             is_failed                                ? " goes back to"
             : proposal->decision == TL_DECISION_PAID ? " was paid for"
                                                      : " is in no conflict, of",
             view->cust_no);
    snprintf(happens, sizeof happens, "%.300s proposed it, because: %.255s. If you confirm it: %s",
             proposal->account, proposal->reason, happens_then(proposal->decision));
    return write_offer(visit, &offer, view, ref);
}

static int nobody_is_at_it(const tl_view *view)
{
    return view->status == 'P' && view->session_id[0] == '\0' && !view->repeatable;
}

static int may_be_sent(const tl_view *view)
{
    return view->send_until_us > view->now_us;
}

static int is_proposed(const struct trade *trade, tl_decision as)
{
    for (size_t i = 0; i < trade->half_count; i++)
        if (trade->halves[i].stands && trade->halves[i].decision == as)
            return 1;
    return 0;
}

static int offer_confirmations(struct visit *visit, const struct trade *trade, const char *ref)
{
    int sent = 0;

    for (size_t i = 0; i < trade->half_count; i++) {
        const tl_resolution_row *proposal = &trade->halves[i];

        if (proposal->stands && proposal->own)
            page_format(&visit->answer->page,
                        "<p class=\"notice warn\">You proposed “%s”. Another operator, with an "
                        "account of their own, has to confirm it.</p>\n",
                        tl_decision_name(proposal->decision));
        else if (proposal->stands)
            sent |= offer_confirmation(visit, trade_view(trade), ref, proposal);
    }
    return sent;
}

/* Whether one of them is the form that was sent, and has what was typed. */
static int offers(struct visit *visit, const struct trade *trade, const char *ref)
{
    struct page *page = &visit->answer->page;
    const tl_view *view = trade_view(trade);
    int sent;

    if (!part_may_decide(visit))
        return 0;
    sent = offer_confirmations(visit, trade, ref);
    if (view->status == 'P' && view->session_id[0] != '\0')
        page_put(page, "<p class=\"notice\">Somebody is at it now; there is nothing to decide "
                       "before that ends.</p>\n");
    if (nobody_is_at_it(view) && may_be_sent(view)) {
        page_put(page,
                 "<p class=\"notice warn\">A sender that was given this trade may still send: "
                 "whether it failed can be decided ");
        page_ago(page, view->send_until_us, view->now_us);
        page_put(page, ".</p>\n");
    }
    if (nobody_is_at_it(view) && view->next_run_us + (view->parked[0] != '\0') != 0)
        sent |= write_offer(visit, &offer_retry, view, ref);
    if (nobody_is_at_it(view) && !may_be_sent(view) && !is_proposed(trade, TL_DECISION_FAILED))
        sent |= offer_proposal(visit, view, ref, TL_DECISION_FAILED);
    if (view->conflict && view->status == 'F' && !is_proposed(trade, TL_DECISION_PAID))
        sent |= offer_proposal(visit, view, ref, TL_DECISION_PAID);
    if (view->conflict && !is_proposed(trade, TL_DECISION_CLEAR))
        sent |= offer_proposal(visit, view, ref, TL_DECISION_CLEAR);
    if (view->status != 'Y')
        sent |= write_offer(visit, &offer_evidence, view, ref);
    else
        page_put(page, "<p class=\"notice good\">It succeeded, which is final.</p>\n");
    return sent;
}

/* --------------------------------------------------------------------- page -- */

static void write_decide(struct visit *visit, unsigned status, const struct trade *trade,
                         const char *ref, const char *problem)
{
    struct page *page = &visit->answer->page;
    const char *reason = form_get(&visit->request->body, "reason");

    layout_begin(visit, status, "Decide", PLACE_TRADES, 0);
    part_problem(page, problem, "This is the trade as it is now.");
    trade_head(visit, trade);
    page_format(page,
                "<p class=\"acts\"><a class=\"button\" href=\"/trade?r=%s\">The whole trade"
                "</a></p>\n<div class=\"offers\">\n",
                ref);
    if (!offers(visit, trade, ref) && reason[0] != '\0')
        page_format(page, "<p class=\"notice\">You wrote: “%s”</p>\n", reason);
    page_put(page, "</div>\n");
    layout_end(visit);
}

void page_decide(struct visit *visit)
{
    struct trade trade = {.step_count = 0};
    struct ref ref;

    if (!trade_read(visit, &visit->request->query, &ref, &trade))
        return;
    write_decide(visit, 200, &trade, form_get(&visit->request->query, "r"), NULL);
    trade_free(&trade);
}

/* ----------------------------------------------------------------- deciding -- */

int read_as(tl_decision *as, const char *word)
{
    static const tl_decision all[] = {TL_DECISION_CLEAR, TL_DECISION_PAID, TL_DECISION_FAILED};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(word, tl_decision_name(all[i])) == 0) {
            *as = all[i];
            return 1;
        }
    return 0;
}

/* What success is told to have moved. */
static tl_status read_amount(const struct form *form, struct decision *decision)
{
    tl_payment_amount *amount = &decision->amount;
    const char *text = form_get(form, "amount");

    if (strcmp(decision->outcome, "SUCCEEDED") != 0 || text[0] == '\0')
        return TL_OK;
    amount->is_told = 1;
    amount->currency = decision->currency;
    return tl_amount_read(text, NULL, &amount->amount_minor, decision->currency);
}

/* 0: no page of ours sends such a form. */
static int read_decision(struct visit *visit, struct decision *decision)
{
    const struct form *form = &visit->request->body;
    uint64_t epoch;

    memset(decision, 0, sizeof *decision);
    for (enum act act = ACT_RETRY; act <= ACT_EVIDENCE; act++)
        if (strcmp(act_word(act), form_get(form, "act")) == 0)
            decision->act = act;
    decision->actor = visit->session->user;
    decision->reason = form_get(form, "reason");
    decision->although_pending = form_get(form, "although")[0] != '\0';
    decision->outcome = form_get(form, "outcome");
    decision->channel_ref = form_get(form, "ref");
    decision->source = form_get(form, "source");
    decision->final = form_get(form, "final")[0] != '\0';
    if (!read_number(form_get(form, "fence"), INT64_MAX, &decision->fence) ||
        !read_number(form_get(form, "epoch"), UINT32_MAX, &epoch))
        return 0;
    decision->epoch = (uint32_t)epoch;
    if (decision->act == ACT_PROPOSE || decision->act == ACT_CONFIRM)
        return read_as(&decision->as, form_get(form, "as"));
    return decision->act != ACT_NONE;
}

static void tell_done(struct visit *visit, const struct decision *decision, tl_status status)
{
    char sentence[NOTICE_TEXT];

    if (decision->act == ACT_RETRY)
        snprintf(sentence, sizeof sentence,
                 "It is due now; a retry worker asks the channel before it sends.");
    else if (decision->act == ACT_PROPOSE)
        snprintf(sentence, sizeof sentence,
                 "Proposed: %s. Another operator has to confirm it, or nothing happens.",
                 tl_decision_name(decision->as));
    else if (decision->act == ACT_EVIDENCE)
        snprintf(sentence, sizeof sentence, "%s is on record.%s", decision->outcome,
                 status == TL_IN_CONFLICT ? " It contradicts the row: two operators have to decide."
                                          : "");
    else if (decision->as == TL_DECISION_CLEAR)
        snprintf(sentence, sizeof sentence,
                 "Decided: clear. Nothing contradicts the row any more.");
    else
        snprintf(sentence, sizeof sentence, "Decided: %s. A worker carries it out, with its books.",
                 tl_decision_name(decision->as));
    session_tell(visit->desk->sessions, visit->session, sentence);
}

/* The trade as it is now, and why nothing was done. */
static void show_again(struct visit *visit, unsigned http, const char *said)
{
    const char *text = form_get(&visit->request->body, "r");
    struct trade trade = {.step_count = 0};
    struct ref ref;

    if (!trade_read(visit, &visit->request->body, &ref, &trade))
        return;
    write_decide(visit, http, &trade, text, said);
    trade_free(&trade);
}

/* The sentence is copied: reading the trade again makes another. */
static void refuse(struct visit *visit, tl_status status)
{
    char said[1024];

    if (status == TL_UNKNOWN)
        snprintf(said, sizeof said,
                 "The answer of the server was lost, so perhaps it was done: look at the trade. "
                 "The same again is harmless.");
    else
        snprintf(said, sizeof said, "It was refused: %s.", said_by(status));
    show_again(visit, http_of(status), said);
}

/* Where the customer was when the page was made, it is acted, and nowhere else: what was seen there
 * is not what another shard has.  If the customer goes on its way right afterwards, the database
 * refuses.  0: that was answered. */
static int go_to_shown(struct visit *visit, const struct ref *ref)
{
    const char *shown = form_get(&visit->request->body, "shard");
    char said[512];
    tl_status status;

    if (shards_find(visit->session->shards, shown) == SHARD_NOBODY) {
        layout_no_form(visit, "What was sent names no shard of this fleet.");
        return 0;
    }
    status = visit_go_to_owner(visit, ref->cust_no);
    if (status != TL_OK) {
        layout_not_now(visit, status);
        return 0;
    }
    if (strcmp(shown, visit_shard(visit)) != 0) {
        snprintf(said, sizeof said,
                 "The page that you decided on was made at shard %s, and the customer is at shard "
                 "%s now.",
                 shown, visit_shard(visit));
        show_again(visit, 409, said);
        return 0;
    }
    return visit_may_decide(visit);
}

void page_decided(struct visit *visit)
{
    const char *text = form_get(&visit->request->body, "r");
    struct decision decision;
    struct ref ref;
    tl_status status;

    if (!visit_may_decide(visit))
        return;
    if (!refs_find(visit->desk->refs, text, &ref)) {
        layout_sentence(visit, 404, "No such trade",
                        "This page is older than the desk. Search for the trade again. Nothing "
                        "was done.");
        return;
    }
    if (!read_decision(visit, &decision)) {
        layout_no_form(visit, "What was sent is no decision.");
        return;
    }
    if (visit_is_of_fleet(visit) && !go_to_shown(visit, &ref))
        return;
    status = read_amount(&visit->request->body, &decision);
    if (status == TL_OK)
        status = house_decide(visit->client, &ref, &decision);
    if (status != TL_OK && status != TL_IN_CONFLICT) {
        refuse(visit, status);
        return;
    }
    now_forget(visit->desk->now);
    tell_done(visit, &decision, status);
    layout_redirect(visit->answer, "/trade", text);
}
