/*
 * A finding of the last audit, and closing it by two operators.
 *
 * The form has the finding's whole name, which is the hash of its facts: whoever confirms confirms
 * what the page showed.  Whether it may happen is for the library and the server to say.
 */
#include "audit_run.h"
#include "parts.h"

#include <stdio.h>
#include <string.h>

/* A finding as this page shows it. */
struct shown {
    struct violation found;
    char statement[STATEMENT_NAME]; /* that showed it; "": rows and history did */
    struct closing_proposal proposal;
};

static void facts(struct visit *visit, const struct shown *shown)
{
    struct page *page = &visit->answer->page;
    const struct violation *found = &shown->found;
    char digits[FINDING_SHOWN + 1], text[SECRET_TEXT];

    page_format(page, "<section class=\"card\"><h2>%s</h2><p class=\"lead\">%s: %s.</p>\n",
                found->rule, found->serial_no, found->sentence);
    page_format(page, "<p class=\"quiet\">Customer %s, operation %s", found->cust_no,
                found->op_code[0] != '\0' ? found->op_code : "not told");
    if (found->found.rev != 0)
        page_format(page, ", revision %llu", (unsigned long long)found->found.rev);
    if (found->account[0] != '\0') {
        page_format(page, "; written by %s, ", found->account);
        page_moment(page, found->found.logged_us);
    }
    if (shown->statement[0] != '\0')
        page_format(page, "; the statement is %s", shown->statement);
    if (found->shard[0] != '\0')
        page_format(page, "; shard %s", found->shard);
    snprintf(digits, sizeof digits, "%.*s", FINDING_SHOWN, found->finding);
    page_format(page, ". Finding <code>%s</code></p>\n", digits);
    if (strcmp(found->rule, "unknown-payment") != 0 && found->op_code[0] != '\0') {
        part_ref(visit, &(tl_key){found->serial_no, found->cust_no, found->op_code}, text);
        page_format(page,
                    "<p class=\"acts\"><a class=\"button\" href=\"/trade?r=%s\">The whole "
                    "trade</a></p>\n",
                    text);
    }
    page_put(page, "</section>\n");
}

static void offer(struct visit *visit, const struct shown *shown)
{
    struct page *page = &visit->answer->page;
    const int confirms = shown->proposal.account[0] != '\0';
    const char *verb = confirms ? "confirm" : "propose";
    const int of_statement = shown->statement[0] != '\0';
    char name[FINDING_SHOWN + 1];

    snprintf(name, sizeof name, "%.*s", FINDING_SHOWN, shown->found.finding);
    page_put(page, "<section class=\"card offer\">");
    if (confirms)
        page_format(page,
                    "<h2>Confirm to close it</h2><p>%s proposed it, because: %s. If you confirm "
                    "it, ",
                    shown->proposal.account, shown->proposal.reason);
    else
        page_put(page, "<h2>Propose to close it</h2><p>Now nothing happens but that it stands on "
                       "record: another operator has to confirm it. Then ");
    page_put(page, "audits count this finding as closed, and no longer as a violation. The trade "
                   "stays as it is. Other facts, or another change of the row, are another finding."
                   "</p>\n");
    part_form(visit, "/finding", "shard", shown->found.shard, "f", shown->found.finding, "act",
              verb);
    part_form_end(page, "reason", form_get(&visit->request->body, "reason"),
                  confirms ? "Confirm" : "Propose");
    part_command(page, "audit", "close", verb, name, "--reason", "TEXT", "--statement",
                 of_statement ? "FILE.csv" : "", "--shard", of_statement ? "" : visit_shard(visit));
    page_put(page, "</section>\n");
}

static void write_finding(struct visit *visit, unsigned status, const struct shown *shown,
                          const char *problem)
{
    struct page *page = &visit->answer->page;

    layout_begin(visit, status, "Finding", PLACE_AUDIT, 0);
    page_put(page, "<div class=\"title\"><h1>A finding of the audit</h1></div>\n");
    if (problem != NULL)
        page_format(page, "<p class=\"notice bad\" role=\"alert\">%s</p>\n", problem);
    facts(visit, shown);
    if (part_may_decide(visit) && shown->proposal.own)
        page_put(page, "<p class=\"notice warn\">You proposed to close it. Another operator, with "
                       "an account of their own, has to confirm it.</p>\n");
    else if (visit->account.may_decide)
        offer(visit, shown);
    layout_end(visit);
}

/* What was asked or sent names it.  0: it is not there, or cannot be read, and that was answered. */
static int look(struct visit *visit, const struct form *form, struct shown *shown)
{
    tl_status status;

    if (!audit_find(visit->desk->audit, form_get(form, "f"), form_get(form, "shard"), &shown->found,
                    shown->statement)) {
        layout_sentence(visit, 404, "No such finding",
                        "The last audit did not find it, or two operators have closed it. Run the "
                        "audit, and look again. Nothing was done.");
        return 0;
    }
    status = visit_go_to(visit, shards_find(visit->session->shards, shown->found.shard));
    if (status == TL_OK)
        status = audit_proposal(visit, shown->found.finding, &shown->proposal);
    if (status != TL_OK)
        layout_sentence(visit, http_of(status), "This cannot be read", said_by(status));
    return status == TL_OK;
}

void page_finding(struct visit *visit)
{
    struct shown shown;

    if (look(visit, &visit->request->query, &shown))
        write_finding(visit, 200, &shown, NULL);
}

static void refuse(struct visit *visit, tl_status status)
{
    char said[1024];
    struct shown shown;

    if (status == TL_UNKNOWN)
        snprintf(said, sizeof said,
                 "The answer of the server was lost, so perhaps it was done. The same again is "
                 "harmless.");
    else
        snprintf(said, sizeof said, "Nothing was done. It was refused: %s.", said_by(status));
    if (status == TL_ALREADY_DONE)
        layout_sentence(visit, 409, "Closed already", said);
    else if (look(visit, &visit->request->body, &shown))
        write_finding(visit, http_of(status), &shown, said);
}

void page_finding_closed(struct visit *visit)
{
    const struct form *form = &visit->request->body;
    const char *act = form_get(form, "act");
    const int confirms = strcmp(act, "confirm") == 0;
    struct shown shown;
    tl_status status;

    if (!visit_may_decide(visit))
        return;
    if (!confirms && strcmp(act, "propose") != 0) {
        layout_no_form(visit, "What was sent closes no finding.");
        return;
    }
    if (!look(visit, form, &shown) || !visit_may_decide(visit))
        return;
    status =
        audit_close(visit->desk->audit, visit, &shown.found, confirms, form_get(form, "reason"));
    if (status != TL_OK) {
        refuse(visit, status);
        return;
    }
    session_tell(visit->desk->sessions, visit->session,
                 confirms ? "Closed: audits count it no longer, until its facts change."
                          : "Proposed: another operator has to confirm it, or nothing happens.");
    layout_redirect(visit->answer, "/audit", NULL);
}
