/* The page Audit: the last run and what it found, and a bank's statement beside the trades. */
#include "audit_run.h"
#include "options.h"
#include "parts.h"
#include "print.h"
#include "upload.h"

#include <tradelock/money.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a statement that comes here: each takes some 300 bytes while it is compared. */
#define PAYMENTS_MOST 100000u

/* -------------------------------------------------------------- violations -- */

/* A payment of nobody has no trade, and one without an operation may be of several. */
static void cell_serial(struct visit *visit, const void *row)
{
    const tl_violation *found = row;

    if (strcmp(found->rule, "unknown-payment") == 0)
        page_format(&visit->answer->page, "<span class=\"serial\">%s</span>", found->key.serial_no);
    else
        part_link(visit, &found->key, found->key.op_code[0] != '\0' ? "/trade" : "/trades");
}

static void cell_finding(struct visit *visit, const void *row)
{
    const struct violation *kept = row;
    struct page *page = &visit->answer->page;

    page_put(page, "<a href=\"/finding?");
    if (kept->shard[0] != '\0')
        page_format(page, "shard=%s&amp;", kept->shard);
    page_format(page, "f=%s\"><code>", kept->found.finding);
    page_bytes(page, kept->found.finding, strnlen(kept->found.finding, FINDING_SHOWN));
    page_put(page, "</code></a>");
}

/* Those of one rule, or with rule NULL all but those of except. */
static void violations(struct visit *visit, const struct audit_run *run, const char *rule,
                       const char *except)
{
    static const struct drawn drawn[] = {
        {"serial", cell_serial}, {"finding", cell_finding}, {NULL, NULL}};
    struct grid grid;

    grid_begin(&grid, visit, &record_violation,
               "rule,serial,customer,sentence,closing,account,finding", drawn);
    for (unsigned i = 0; i < run->violation_count; i++) {
        struct violation kept = run->violations[i];

        if (rule != NULL ? strcmp(kept.rule, rule) != 0 : strcmp(kept.rule, except) == 0)
            continue;
        violation_point(&kept);
        grid_row_at(&grid, kept.shard, &kept);
    }
    grid_end(&grid, "None.");
}

static void cut_line(struct page *page, const struct audit_run *run)
{
    if (run->open > run->violation_count)
        page_format(page,
                    "<p class=\"quiet\">%s more were found; <code>tradelock audit</code> prints "
                    "all.</p>\n",
                    COUNT_TEXT(run->open - run->violation_count));
}

/* -------------------------------------------------------------------- runs -- */

/* Some shards of several may have come to the end.  0: none has, and the card is closed. */
static int run_problem(struct page *page, const struct audit_run *run)
{
    if (run->status == TL_OK)
        return 1;
    page_format(page,
                "<p class=\"notice bad\" role=\"alert\"><strong>It did not come to its end%s, and "
                "proves nothing%s.</strong> %s</p>\n",
                run->done > 0 ? " everywhere" : "", run->done > 0 ? " there" : "", run->problem);
    if (run->done == 0)
        page_put(page, "</section>\n");
    return run->done > 0;
}

/* 0: there is no more to say, and the card is closed. */
static int run_begin(struct page *page, const struct audit_run *run, const char *title,
                     const char *of_all, const char *good, const char *bad)
{
    page_format(page, "<section class=\"card\"><h2>%s%s%s</h2>\n", title,
                !run->is_of_fleet       ? ""
                : run->shard[0] != '\0' ? " of shard "
                                        : of_all,
                run->shard);
    if (!run_problem(page, run))
        return 0;
    if (run->open > 0)
        page_format(page, "<p class=\"verdict bad\"><strong>%s %s%s.</strong></p>\n",
                    COUNT_TEXT(run->open), bad, run->open == 1 ? "" : "s");
    else if (run->status == TL_OK)
        page_format(page, "<p class=\"verdict good\"><strong>%s</strong></p>\n", good);
    return 1;
}

static void run_facts(struct page *page, const struct audit_run *run)
{
    page_format(page, "read by %s in %lld ms, ", run->counts.account, (long long)run->took_ms);
    page_moment(page, run->counts.at_us);
    if (run->closed > 0)
        page_format(page, "; %s closed by two operators", COUNT_TEXT(run->closed));
    page_format(page, "; %s</p>\n",
                run->counts.noted == TL_OK ? "on record"
                : run->counts.noted == TL_ACCESS_DENIED
                    ? "not on record, which an operator’s account could write"
                    : "not on record, which could not be written");
}

static void sums(struct page *page, const struct audit_run *run)
{
    part_sum_line(page, "Payments of the file:", &run->paid);
    part_sum_line(page, "Trades that they are of:", &run->trades);
    if (run->returned.trades > 0)
        part_sum_line(page, "Payments that came back:", &run->returned);
    if (run->aside[0] != '\0')
        page_format(page, "<p>Lines that were left out: %s</p>\n", run->aside);
}

/* Where what is not known yet can be filed. */
static void link_to_file(struct visit *visit)
{
    struct page *page = &visit->answer->page;
    struct compared *compared = audit_compared(visit->desk->audit);

    if (compared == NULL)
        return;
    if (compared->unfiled[0] != '\0')
        page_format(page, "<p class=\"quiet\">Its payments cannot be filed: %s.</p>\n",
                    compared->unfiled);
    else if (visit->session->account.may_decide)
        page_put(page, "<p class=\"acts\"><a class=\"button\" href=\"/file\">File its "
                       "payments…</a></p>\n");
    audit_put(visit->desk->audit, compared);
}

static void last_statement(struct visit *visit, const struct audit_run *run)
{
    struct page *page = &visit->answer->page;

    if (!run_begin(page, run, "Last statement", " of all shards",
                   "The statement and the trades agree.", "difference"))
        return;
    page_format(page,
                "<p class=\"quiet\"><span class=\"serial\">%s</span>: %s payments beside %s rows, ",
                run->statement, COUNT_TEXT(run->counts.payments), COUNT_TEXT(run->counts.rows));
    run_facts(page, run);
    sums(page, run);
    link_to_file(visit);
    page_put(page, "<h3>The statement has it, the house has not</h3>\n");
    violations(visit, run, NULL, "unpaid-success");
    page_put(page, "<h3>The house has it, the statement has not</h3>\n");
    violations(visit, run, "unpaid-success", NULL);
    cut_line(page, run);
    page_put(page, "</section>\n");
}

static void last_run(struct visit *visit, const struct audit_run *run)
{
    struct page *page = &visit->answer->page;
    const tl_audit_counts *counts = &run->counts;

    if (!run_begin(page, run, "Last run", " of all shards, each by itself",
                   "The books are in order.", "violation"))
        return;
    page_format(page, "<p class=\"quiet\">%s rows, %s steps and %s grants ",
                COUNT_TEXT(counts->rows), COUNT_TEXT(counts->steps), COUNT_TEXT(counts->grants));
    run_facts(page, run);
    if (run->violation_count > 0)
        violations(visit, run, NULL, "");
    cut_line(page, run);
    page_put(page, "</section>\n");
}

/* -------------------------------------------------------------------- page -- */

static void shard_choice(struct visit *visit)
{
    struct page *page = &visit->answer->page;
    const struct shards *shards = visit->session->shards;

    if (!visit_is_of_fleet(visit))
        return;
    page_put(page, "<label for=\"shard\">Shard</label><select id=\"shard\" name=\"shard\">"
                   "<option value=\"\">All, one after the other</option>");
    for (size_t i = 0; i < shards_count(shards); i++)
        page_format(page, "<option>%s</option>", shards_name(shards, i));
    page_put(page, "</select>\n");
}

static void form_stop(struct visit *visit)
{
    struct page *page = &visit->answer->page;

    page_put(page, "<p class=\"notice\" role=\"status\">An audit is running.</p>\n"
                   "<div class=\"offer\">");
    part_form(visit, "/audit", "stop", "1");
    page_put(page, "<button class=\"button\">Stop it</button></form></div>\n");
}

static void form_run(struct visit *visit)
{
    struct page *page = &visit->answer->page;

    page_put(page, "<div class=\"offer\">");
    part_form(visit, "/audit", NULL);
    shard_choice(visit);
    part_form_end(page, NULL, "", "Run it now");
    page_put(page, "</div>\n<p class=\"quiet\">It walks all tables, with your account, and changes "
                   "nothing. An operator’s audit is put on record.</p>\n");
    if (visit_is_of_fleet(visit))
        page_put(page,
                 "<p class=\"quiet\">What no shard can tell alone, as a trade that is on two, "
                 "tells the command:</p>\n");
    part_command(page, "audit");
}

static void add_profile(void *context, const char *name)
{
    page_format(context, "<option>%s</option>", name);
}

static void form_statement(struct visit *visit)
{
    struct page *page = &visit->answer->page;

    page_put(
        page,
        "<section class=\"card offer\"><h2>Compare a bank’s statement</h2>\n<p>Runs the "
        "audit, and lists what the statement has and the house has not, and the other "
        "way round. No trade changes, and nothing is filed before you have seen what. It is CSV "
        "or camt.053, at most 8 MiB and 100,000 payments. How a bank writes CSV stands in a "
        "section <code>[statement-NAME]</code> of the settings; without one the first line "
        "names the columns as <code>tradelock audit --help</code> lists them. Nothing is "
        "compared until every line is understood or left out.</p>\n"
        "<form method=\"post\" action=\"/statement\" enctype=\"multipart/form-data\">\n");
    layout_token(visit);
    page_put(page, "<label for=\"file\">The statement</label><input id=\"file\" name=\"file\" "
                   "type=\"file\" accept=\".csv,.xml,text/csv,text/xml\" required>"
                   "<label for=\"profile\">The bank’s form</label><select id=\"profile\" "
                   "name=\"profile\"><option value=\"\">by itself</option>");
    statement_profiles(visit->desk->options->config_file, add_profile, page);
    page_put(page, "</select><label for=\"ignored\">Columns that are not compared, with commas "
                   "between</label><input id=\"ignored\" name=\"ignored\" maxlength=\"1000\" "
                   "autocomplete=\"off\">"
                   "<label for=\"aside\">Lines to be left out, as 17,23, and kinds: received, "
                   "returned, unbooked</label><input id=\"aside\" name=\"aside\" "
                   "maxlength=\"400\" autocomplete=\"off\">"
                   "<label for=\"op\">The operation of payments that name none</label>"
                   "<input id=\"op\" name=\"op\" maxlength=\"26\" autocomplete=\"off\">"
                   "<label for=\"channel\">The channel that paid, unless the form says it</label>"
                   "<input id=\"channel\" name=\"channel\" maxlength=\"63\" "
                   "autocomplete=\"off\">"
                   "<button class=\"button main\">Compare</button></form>\n");
    part_command(page, "audit", "--statement", "FILE.csv");
    page_put(page, "</section>\n");
}

static void write_audit(struct visit *visit, unsigned status, const char *problem)
{
    struct page *page = &visit->answer->page;
    struct audit_report *report = malloc(sizeof *report);

    if (report == NULL) {
        layout_sentence(visit, 500, "No memory", "There is no memory for the report.");
        return;
    }
    audit_look(visit->desk->audit, report);
    layout_begin(visit, status, "Audit", PLACE_AUDIT, report->is_running ? 2 : 0);
    page_put(page, "<div class=\"title\"><h1>Audit</h1></div>\n");
    part_problem(page, problem, "");
    page_put(page, "<section class=\"card\">"
                   "<p class=\"lead\">Reads every row with its history and proves that no trade "
                   "succeeded twice, failed without proof, or was changed by hand.</p>\n");
    if (report->is_running)
        form_stop(visit);
    else
        form_run(visit);
    page_put(page, "</section>\n");
    if (!report->is_running)
        form_statement(visit);
    if (report->statement.has_run)
        last_statement(visit, &report->statement);
    if (report->books.has_run)
        last_run(visit, &report->books);
    layout_end(visit);
    free(report);
}

void page_audit(struct visit *visit)
{
    write_audit(visit, 200, NULL);
}

static const char runs_already[] = "An audit is running already. Wait for its end.";

void page_audit_start(struct visit *visit)
{
    const char *name = form_get(&visit->request->body, "shard");
    const size_t shard = name[0] != '\0' ? shards_find(visit->session->shards, name) : SHARD_NOBODY;

    if (form_get(&visit->request->body, "stop")[0] != '\0') {
        audit_stop(visit->desk->audit);
        layout_redirect(visit->answer, "/audit", NULL);
        return;
    }
    if (name[0] != '\0' && shard == SHARD_NOBODY)
        layout_no_form(visit, "What was sent names no shard of this fleet.");
    else if (audit_start(visit->desk->audit, visit, shard, NULL))
        layout_redirect(visit->answer, "/audit", NULL);
    else
        write_audit(visit, 409, runs_already);
}

/* NULL where nothing was typed. */
static const char *typed(const struct visit *visit, const char *name)
{
    const char *text = form_get(&visit->request->body, name);

    return text[0] != '\0' ? text : NULL;
}

/* Of which no evidence can be made may be compared all the same. */
static int read_statement(struct visit *visit, struct compared *to, const char *text, size_t size,
                          char *problem, size_t space)
{
    struct statement_rules rules = {.ignored = typed(visit, "ignored"),
                                    .profile = typed(visit, "profile"),
                                    .aside = typed(visit, "aside"),
                                    .op_code = typed(visit, "op"),
                                    .channel = typed(visit, "channel"),
                                    .config_file = visit->desk->options->config_file,
                                    .is_filed = 1,
                                    .most = PAYMENTS_MOST};

    if (statement_read_bytes(&to->statement, text, size, to->name, &rules, to->unfiled,
                             sizeof to->unfiled) == 0)
        return 0;
    rules.is_filed = 0;
    return statement_read_bytes(&to->statement, text, size, to->name, &rules, problem, space);
}

void page_statement(struct visit *visit)
{
    const struct upload *upload = visit->request->upload;
    struct compared *compared = calloc(1, sizeof *compared);
    size_t size = 0;
    const char *text = upload != NULL ? upload_file(upload, &size) : NULL;
    char problem[640] = "There is no memory for it.";

    if (compared != NULL && text != NULL)
        snprintf(compared->name, sizeof compared->name, "%s", upload_name(upload));
    if (text == NULL) {
        write_audit(visit, 400, "Choose the file of the statement first.");
    } else if (compared == NULL ||
               read_statement(visit, compared, text, size, problem, sizeof problem) != 0) {
        write_audit(visit, 400, problem);
    } else if (audit_start(visit->desk->audit, visit, SHARD_NOBODY, compared)) {
        layout_redirect(visit->answer, "/audit", NULL);
        return;
    } else {
        write_audit(visit, 409, runs_already);
    }
    compared_free(compared);
}
