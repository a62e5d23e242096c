/*
 * The page Many: one decision about all trades of a list, or the confirmation of such an act.
 *
 * The page shows the trades, and its form has their number and a digest of their keys and fences.
 * What is sent is done only if the list is still that one, each trade under the fence that was seen.
 */
#include "act_run.h"
#include "command.h"
#include "judge.h"
#include "now.h"
#include "parts.h"
#include "print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct many {
    enum act act; /* retry, propose, confirm */
    tl_decision as;
    uint64_t act_no;   /* of a confirmation: what is confirmed */
    struct ref search; /* of the list; of a confirmation empty */
    /* What was found. */
    struct rows rows;
    const struct visit *visit;
    uint64_t left_out, digest;
    int more, is_own;
    tl_status status;
    char said[512]; /* who proposed it, and why */
};

/* ------------------------------------------------------------------- reading -- */

static void digest_all(struct many *many)
{
    many->digest = PART_SEEN;
    for (size_t i = 0; i < many->rows.count; i++) {
        const tl_view *view = &many->rows.views[i];
        char fence[24];

        snprintf(fence, sizeof fence, "%" PRIu64, view->fence);
        many->digest = part_seen(many->digest, view->serial_no);
        many->digest = part_seen(many->digest, view->cust_no);
        many->digest = part_seen(many->digest, view->op_code);
        many->digest = part_seen(many->digest, fence);
    }
}

static int add(void *context, const tl_view *view)
{
    struct many *many = context;

    if (many->rows.count == MANY_MOST)
        many->status = rows_leave_copies(&many->rows, many->visit);
    many->more = many->rows.count == MANY_MOST;
    if (many->status != TL_OK || many->more)
        return 1;
    if (rows_add(&many->rows, view))
        many->status = many->rows.failed;
    return many->status != TL_OK;
}

static int take(void *context, const tl_view *view)
{
    struct many *many = context;
    const tl_key key = {view->serial_no, view->cust_no, view->op_code};
    int why = !house_is_of_cause(&many->search, view) ? JUDGE_OTHER
              : many->act == ACT_RETRY                ? judge_retry(view)
                                                      : judge_proposal(many->as, view);

    if (why == JUDGE_MEANT && many->act == ACT_PROPOSE)
        why = judge_proposed(many->visit->client, many->as, &key, &many->status);
    if (why == JUDGE_MEANT)
        return add(many, view);
    many->left_out += why != JUDGE_OTHER;
    return many->status != TL_OK;
}

static int take_proposed(void *context, const tl_proposed *proposed)
{
    struct many *many = context;

    many->as = proposed->decision;
    many->is_own |= proposed->own;
    snprintf(many->said, sizeof many->said, "%.200s proposed it, because: %.255s.",
             proposed->account, proposed->reason);
    many->left_out += !proposed->stands && !proposed->confirmed;
    if (proposed->stands && many->status == TL_OK)
        many->status = tl_show(many->visit->client, &proposed->key, TL_LANE_SYNC, add, many);
    return many->status != TL_OK || many->more;
}

static tl_status gather(struct visit *visit, struct many *many)
{
    tl_filter filter = TL_FILTER_INIT;
    tl_status status;

    many->visit = visit;
    if (many->act == ACT_CONFIRM) {
        status = tl_proposed_list(visit->client, many->act_no, take_proposed, many);
    } else {
        house_filter(&filter, part_show_of(many->search.show), &many->search);
        filter.limit = UINT32_MAX;
        filter.status = many->act == ACT_RETRY ? 'P' : judge_status(many->as);
        filter.conflict |= many->act == ACT_PROPOSE && many->as != TL_DECISION_FAILED;
        status = tl_list(visit->client, &filter, take, many);
    }
    if (status == TL_OK)
        status = many->status;
    if (status == TL_OK)
        status = rows_leave_copies(&many->rows, visit);
    digest_all(many);
    return status;
}

/* 0: no page of ours asks so. */
static int read_many(struct visit *visit, const struct form *form, struct many *many)
{
    memset(many, 0, sizeof *many);
    for (enum act act = ACT_RETRY; act <= ACT_CONFIRM; act++)
        if (strcmp(act_word(act), form_get(form, "act")) == 0)
            many->act = act;
    if (many->act == ACT_CONFIRM)
        return read_number(form_get(form, "no"), INT64_MAX, &many->act_no) && many->act_no != 0;
    return refs_find(visit->desk->refs, form_get(form, "r"), &many->search) &&
           (many->act == ACT_RETRY ||
            (many->act == ACT_PROPOSE && read_as(&many->as, form_get(form, "as"))));
}

void many_keep(struct now *now, const tl_proposal *proposal)
{
    struct many_proposed *many = &now->many[now->many_count];

    if (now->many_count == MANY_PROPOSED)
        return;
    now->many_count++;
    many->act_no = proposal->act_no;
    many->trades = proposal->trades;
    snprintf(many->by, sizeof many->by, "%s", proposal->account);
    snprintf(many->said, sizeof many->said, "%s", proposal->said);
}

/* ------------------------------------------------------------------- writing -- */

static void many_link(struct visit *visit, const char *act, const char *as, const char *ref,
                      const char *shard, const char *words)
{
    page_format(
        &visit->answer->page,
        "<a class=\"button\" href=\"/many?act=%s&amp;as=%s&amp;r=%s&amp;shard=%s\">%s</a>\n", act,
        as, ref, shard, words);
}

void part_many_links(struct visit *visit, enum show show, const char *ref, const char *shard)
{
    if (!visit->account.may_decide)
        return;
    if (show == SHOW_PARKED)
        many_link(visit, "retry", "", ref, shard, "Look again at all");
    if (show == SHOW_PARKED || show == SHOW_DOUBT)
        many_link(visit, "propose", "failed", ref, shard, "Propose “failed” for all");
    if (show == SHOW_CONFLICT) {
        many_link(visit, "propose", "paid", ref, shard, "Propose “paid” for all");
        many_link(visit, "propose", "clear", ref, shard, "Propose “clear” for all");
    }
}

static const char *happens(const struct many *many)
{
    return many->act == ACT_RETRY ? "The retry lanes run at once, and parked ones are unparked. A "
                                    "worker asks the channel before anything is sent."
           : many->act == ACT_PROPOSE ? "Now nothing happens but that it stands on record: another "
                                        "operator has to confirm "
                                        "it."
                                      : happens_then(many->as);
}

static void write_form(struct visit *visit, const struct many *many)
{
    struct page *page = &visit->answer->page;
    const struct form *from =
        visit->request->body.count > 0 ? &visit->request->body : &visit->request->query;
    const char *as = many->act == ACT_RETRY ? "" : tl_decision_name(many->as);
    char seen[24], count[16], no[24], button[64];

    snprintf(seen, sizeof seen, "%" PRIx64, many->digest);
    snprintf(count, sizeof count, "%zu", many->rows.count);
    snprintf(no, sizeof no, "%" PRIu64, many->act_no);
    snprintf(button, sizeof button, "%s %s: %s trade%s",
             many->act == ACT_RETRY     ? "Make due now"
             : many->act == ACT_PROPOSE ? "Propose"
                                        : "Confirm",
             as, COUNT_TEXT(many->rows.count), many->rows.count == 1 ? "" : "s");
    part_form(visit, "/many", "shard", visit_shard(visit), "act", act_word(many->act), "as", as,
              "no", many->act == ACT_CONFIRM ? no : "", "r", form_get(from, "r"), "seen", seen,
              "count", count);
    part_form_end(page, "reason-many", form_get(&visit->request->body, "reason"), button);
}

static void write_many(struct visit *visit, unsigned http, const struct many *many,
                       const char *problem)
{
    static const struct drawn drawn[] = {
        {"serial", part_trade_link}, {"state", part_state}, {NULL, NULL}};
    struct page *page = &visit->answer->page;
    const int acts = many->rows.count > 0 && !(many->act == ACT_CONFIRM && many->is_own);
    struct grid grid;

    layout_begin(visit, http, "Many at once", PLACE_TRADES, 0);
    page_put(page, "<div class=\"title\"><h1>Many at once</h1></div>\n");
    part_problem(page, problem, "This is the list as it is now.");
    page_format(page, "<section class=\"card offer%s\"><h2>%s %s: %s trade%s",
                many->act == ACT_CONFIRM ? " last" : "",
                many->act == ACT_RETRY     ? "Look again now"
                : many->act == ACT_PROPOSE ? "Propose"
                                           : "Confirm",
                many->act == ACT_RETRY ? "" : tl_decision_name(many->as),
                COUNT_TEXT(many->rows.count), many->rows.count == 1 ? "" : "s");
    part_sums(page, &many->rows.sums);
    page_format(page, "</h2>\n<p>%s %s</p>\n", many->said, happens(many));
    if (many->left_out > 0)
        page_format(page,
                    "<p class=\"notice warn\">%s more are left alone: somebody holds them, "
                    "they moved on since, or it was done already.</p>\n",
                    COUNT_TEXT(many->left_out));
    if (many->more)
        page_format(page,
                    "<p class=\"quiet\">These are the first %u; the same again does the "
                    "rest.</p>\n",
                    MANY_MOST);
    if (many->act == ACT_CONFIRM && many->is_own)
        page_put(page,
                 "<p class=\"notice warn\">You proposed it. Another operator, with an account "
                 "of their own, has to confirm it.</p>\n");
    if (part_may_decide(visit) && acts)
        write_form(visit, many);
    page_put(page, "</section>\n<section class=\"card\">\n");
    grid_begin(&grid, visit, &record_view, "serial,customer,operation,state,amount,created,parked",
               drawn);
    for (size_t i = 0; i < many->rows.count && i < MANY_SHOWN; i++)
        grid_row(&grid, &many->rows.views[i]);
    grid_end(&grid, "No trade is like that.");
    if (many->rows.count > MANY_SHOWN)
        page_format(page, "<p class=\"quiet\">and %zu more</p>\n", many->rows.count - MANY_SHOWN);
    page_put(page, "</section>\n");
    layout_end(visit);
}

/* What was asked for is shown as it is; 0: that was answered otherwise. */
static int find(struct visit *visit, const struct form *form, struct many *many)
{
    const size_t shard = shards_find(visit->session->shards, form_get(form, "shard"));
    tl_status status = TL_OK;

    if (!read_many(visit, form, many) || (visit_is_of_fleet(visit) && shard == SHARD_NOBODY)) {
        layout_sentence(visit, 404, "No such list",
                        "This link is of no list that can be decided about. Nothing was done.");
        return 0;
    }
    if (visit_is_of_fleet(visit))
        status = visit_go_to(visit, shard);
    if (status == TL_OK)
        status = gather(visit, many);
    if (status == TL_OK)
        return 1;
    layout_not_now(visit, status);
    rows_free(&many->rows);
    return 0;
}

void page_many(struct visit *visit)
{
    struct many many;

    if (!find(visit, &visit->request->query, &many))
        return;
    write_many(visit, 200, &many, NULL);
    rows_free(&many.rows);
}

/* ------------------------------------------------------------------ deciding -- */

static tl_status do_one(void *context, tl_client *client, uint64_t act_no, uint64_t row)
{
    const struct many *many = context;
    const tl_view *view = &many->rows.views[row];
    tl_resolution one = TL_RESOLUTION_INIT;

    one.key = (tl_key){view->serial_no, view->cust_no, view->op_code};
    if (many->act == ACT_RETRY)
        return tl_act_retry(client, act_no, row + 1, &one.key, view->fence);
    one.fence = view->fence;
    one.decision = many->as;
    one.actor = many->visit->session->user;
    one.reason = form_get(&many->visit->request->body, "reason");
    return tl_act_resolve(client, act_no, row + 1, &one, many->act_no);
}

/* Of which list it is, for the record. */
static void say_list(char *to, size_t space, const struct ref *search)
{
    const char *const parts[][2] = {{" channel=", search->channel},
                                    {" find=", search->find},
                                    {" log=", search->log_no},
                                    {" cause=", search->cause}};
    size_t size = (size_t)snprintf(to, space, "desk: %s", search->show);

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i][1][0] != '\0')
            size += (size_t)snprintf(to + size, space - size, "%s%s", parts[i][0], parts[i][1]);
}

/* Each under the fence that was seen, as rows of one act. */
static void do_all(struct visit *visit, struct many *many)
{
    static const char *const whats[] = {"", "retry", "resolve propose", "resolve confirm"};
    const char *ref = form_get(&visit->request->body, "r");
    char list[800], said[1024], sentence[NOTICE_TEXT];
    struct act_run run = {.act = {.version = TL_ACT_VERSION,
                                  .what = whats[many->act],
                                  .said = said,
                                  .actor = visit->session->user,
                                  .reason = form_get(&visit->request->body, "reason"),
                                  .planned = many->rows.count},
                          .each = do_one,
                          .is_of_row = judge_is_of_row,
                          .context = many};
    tl_status status;

    say_list(list, sizeof list, &many->search);
    if (many->act == ACT_RETRY)
        snprintf(said, sizeof said, "%s", list);
    else if (many->act == ACT_PROPOSE)
        snprintf(said, sizeof said, "--as %s %s", tl_decision_name(many->as), list);
    else
        snprintf(said, sizeof said, "--as %s --act %" PRIu64, tl_decision_name(many->as),
                 many->act_no);
    status = act_run(&run, visit->client);
    if (status != TL_OK && run.done == 0) {
        write_many(visit, http_of(status), many, said_by(status));
        return;
    }
    now_forget(visit->desk->now);
    snprintf(sentence, sizeof sentence,
             "%" PRIu64 " of %zu done, on record as act %" PRIu64
             "%s. The page Acts names what was left alone.",
             run.done, many->rows.count, run.act_no,
             many->act == ACT_PROPOSE ? "; another operator has to confirm it" : "");
    session_tell(visit->desk->sessions, visit->session, sentence);
    if (many->act == ACT_CONFIRM)
        layout_redirect(visit->answer, "/", NULL);
    else
        layout_redirect(visit->answer, "/trades", ref);
}

void page_many_decided(struct visit *visit)
{
    const struct form *form = &visit->request->body;
    struct many many;
    char seen[24], problem[128];

    if (!find(visit, form, &many))
        return;
    snprintf(seen, sizeof seen, "%" PRIx64, many.digest);
    if (strcmp(seen, form_get(form, "seen")) != 0) {
        snprintf(problem, sizeof problem, "The list was of %.10s trades, and has changed since.",
                 form_get(form, "count"));
        write_many(visit, 409, &many, problem);
    } else if (visit_may_decide(visit)) {
        do_all(visit, &many);
    }
    rows_free(&many.rows);
}
