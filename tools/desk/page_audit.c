/* The page Audit: the last run and what it found. */
#include "audit_run.h"
#include "parts.h"

#include <stdlib.h>
#include <string.h>

static void trade_cell(struct visit *visit, const struct violation *found)
{
    char text[SECRET_TEXT];
    struct ref ref;

    ref_of_trade(&ref, found->serial_no, found->cust_no, found->op_code);
    refs_keep(visit->desk->refs, &ref, text);
    page_format(&visit->answer->page, "<a class=\"serial\" href=\"/trade?r=%s\">%s</a>", text,
                found->serial_no);
}

static void violations(struct visit *visit, const struct audit_report *report)
{
    struct page *page = &visit->answer->page;

    page_put(page, "<div class=\"scroll\"><table class=\"rows\"><thead><tr><th scope=\"col\">Rule"
                   "</th><th scope=\"col\">Serial</th><th scope=\"col\">What</th>"
                   "<th scope=\"col\">By</th><th scope=\"col\">Finding</th></tr></thead><tbody>\n");
    for (unsigned i = 0; i < report->violation_count; i++) {
        const struct violation *found = &report->violations[i];

        page_format(page, "<tr><td data-l=\"Rule\">%s</td><td data-l=\"Serial\">", found->rule);
        trade_cell(visit, found);
        page_format(page,
                    "</td><td data-l=\"What\">%s%s%s</td><td data-l=\"By\">%s</td>"
                    "<td data-l=\"Finding\"><code>%s</code></td></tr>\n",
                    found->sentence, found->proposed_by[0] != '\0' ? " Proposed to close it: " : "",
                    found->proposed_by, found->account, found->finding);
    }
    page_put(page, "</tbody></table></div>\n");
    if (report->cut)
        page_put(page, "<p class=\"quiet\">There are more; <code>tradelock audit</code> prints all."
                       "</p>\n");
    part_command(page, "tradelock", "audit", "--help", NULL);
    page_put(page,
             "<p class=\"quiet\">Two operators close a finding with the command above.</p>\n");
}

static void last_run(struct visit *visit, const struct audit_report *report)
{
    struct page *page = &visit->answer->page;
    const tl_audit_counts *counts = &report->counts;

    page_put(page, "<section class=\"card\"><h2>Last run</h2>\n");
    if (report->status != TL_OK) {
        page_format(
            page,
            "<p class=\"notice bad\" role=\"alert\"><strong>It did not come to its end, and "
            "proves nothing.</strong> %s</p></section>\n",
            report->problem);
        return;
    }
    page_put(page, counts->violations == 0
                       ? "<p class=\"verdict good\"><strong>The books are in order.</strong></p>\n"
                       : "<p class=\"verdict bad\"><strong>");
    if (counts->violations > 0)
        page_format(page, "%llu %s.</strong></p>\n", (unsigned long long)counts->violations,
                    counts->violations == 1 ? "violation" : "violations");
    page_format(page,
                "<p class=\"quiet\">%llu rows, %llu steps and %llu grants read by %s in %lld ms, ",
                (unsigned long long)counts->rows, (unsigned long long)counts->steps,
                (unsigned long long)counts->grants, counts->account, (long long)report->took_ms);
    page_moment(page, counts->at_us);
    page_put(page, " UTC");
    if (counts->closed > 0)
        page_format(page, "; %llu closed by two operators", (unsigned long long)counts->closed);
    page_put(page, "</p>\n");
    if (report->violation_count > 0)
        violations(visit, report);
    page_put(page, "</section>\n");
}

void page_audit(struct visit *visit)
{
    struct page *page = &visit->answer->page;
    struct audit_report *report = malloc(sizeof *report);

    if (report == NULL) {
        layout_sentence(visit, 500, "No memory", "There is no memory for the report.");
        return;
    }
    audit_look(visit->desk->audit, report);
    layout_begin(visit, 200, "Audit", PLACE_AUDIT, report->is_running ? 2 : 0);
    page_put(page, "<div class=\"title\"><h1>Audit</h1></div>\n<section class=\"card\">"
                   "<p class=\"lead\">Reads every row with its history and proves that no trade "
                   "succeeded twice, failed without proof, or was changed by hand.</p>\n");
    if (report->is_running) {
        page_put(page, "<p class=\"notice\" role=\"status\">An audit is running.</p>\n");
    } else {
        page_put(page, "<form method=\"post\" action=\"/audit\">");
        layout_token(visit);
        page_put(page, "<button class=\"button main\">Run it now</button></form>\n");
    }
    page_put(page,
             "<p class=\"quiet\">It walks all tables, with your account. Bank statements are "
             "compared by <code>tradelock audit --statement FILE.csv</code>.</p></section>\n");
    if (report->has_run)
        last_run(visit, report);
    layout_end(visit);
    free(report);
}

void page_audit_start(struct visit *visit)
{
    if (!audit_start(visit->desk->audit, visit->session))
        session_tell(visit->desk->sessions, visit->session, "An audit is running already.");
    layout_redirect(visit->answer, "/audit", NULL);
}
