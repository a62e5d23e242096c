/*
 * The page File: what the payments of the last statement would file as evidence, and filing it.
 *
 * The page shows the payments, and its form has a digest of them and of their trades.  What is sent
 * is done only if both are still so, each payment under what was seen of its trade.
 */
#include "act_run.h"
#include "audit_run.h"
#include "filing.h"
#include "now.h"
#include "parts.h"
#include "print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct file {
    struct compared *compared;
    struct statement statement; /* its payments as they are filed; the texts are not its own */
    struct filing filing;
    size_t *first, *row; /* payment and row of each shard, and behind all */
    size_t count;        /* rows that are filed at once */
    uint64_t digest;
};

/* ------------------------------------------------------------------- reading -- */

static void digest_rows(struct file *file)
{
    char text[128];

    snprintf(text, sizeof text, "%zu", file->filing.count);
    file->digest = part_seen(part_seen(PART_SEEN, file->compared->name), text);
    for (size_t i = 0; i < file->count; i++) {
        const struct filing_row *row = &file->filing.rows[i];
        const char *const texts[] = {row->serial_no,   row->cust_no,
                                     row->op_code,     row->payment->channel_key,
                                     row->channel_ref, row->paid_currency};

        for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
            file->digest = part_seen(file->digest, texts[k] != NULL ? texts[k] : "");
        snprintf(text, sizeof text, "%" PRId64 " %" PRIu64 " %" PRIu32 " %c %d", row->paid_minor,
                 row->fence, row->seen.epoch, row->seen.status, row->seen.contradicts);
        file->digest = part_seen(file->digest, text);
    }
}

/* What this shard has; who may not decide there files nothing. */
static tl_status look_at(struct visit *visit, struct file *file, size_t shard, int *may)
{
    const size_t *first = &file->first[shard];
    tl_status status = TL_OK;

    file->row[shard] = file->filing.count;
    if (first[1] == first[0])
        return TL_OK;
    status = visit_go_to(visit, shard);
    if (status == TL_OK)
        status = filing_look(&file->filing, visit->client, file->statement.payments + first[0],
                             first[1] - first[0]);
    if (file->filing.count > file->row[shard])
        *may &= visit->account.may_decide;
    return status;
}

static tl_status look(struct visit *visit, struct file *file)
{
    struct shards *shards = visit->session->shards;
    const size_t all = shards_count(shards), payments = file->compared->statement.count;
    int may = visit->account.may_decide;
    tl_status status = TL_OK;

    file->statement = file->compared->statement;
    file->first = calloc(all + 2, sizeof *file->first);
    file->row = calloc(all + 1, sizeof *file->row);
    file->statement.payments = calloc(payments + 1, sizeof *file->statement.payments);
    if (file->first == NULL || file->row == NULL || file->statement.payments == NULL)
        return tl_error_report(TL_NO_MEMORY, "out of memory for the payments");
    memcpy(file->statement.payments, file->compared->statement.payments,
           payments * sizeof *file->statement.payments);
    if (filing_begin(&file->filing, &file->statement) != 0 ||
        split_payments(shards, &file->statement, file->first) != 0)
        return tl_error_report(TL_NO_MEMORY, "out of memory for the payments");
    file->filing.unknown += file->first[all + 1] - file->first[all];
    for (size_t i = 0; status == TL_OK && i < all; i++)
        status = look_at(visit, file, i, &may);
    visit->account.may_decide = may;
    file->row[all] = file->filing.count;
    file->count = file->filing.count < MANY_MOST ? file->filing.count : MANY_MOST;
    digest_rows(file);
    return status;
}

static void done_with(struct visit *visit, struct file *file)
{
    filing_free(&file->filing);
    free(file->statement.payments);
    free(file->first);
    free(file->row);
    audit_put(visit->desk->audit, file->compared);
}

/* 0: there is nothing that could be filed, and that was answered. */
static int find(struct visit *visit, struct file *file)
{
    char said[800];
    tl_status status;

    *file = (struct file){.compared = audit_compared(visit->desk->audit)};
    if (file->compared == NULL) {
        layout_sentence(visit, 404, "No statement",
                        "No statement was compared since the desk began. Nothing was done.");
        return 0;
    }
    if (file->compared->unfiled[0] != '\0') {
        snprintf(said, sizeof said, "Its payments cannot be filed: %s. Nothing was done.",
                 file->compared->unfiled);
        layout_sentence(visit, 409, "It cannot be filed", said);
    } else if ((status = look(visit, file)) != TL_OK) {
        layout_not_now(visit, status);
    } else {
        return 1;
    }
    done_with(visit, file);
    return 0;
}

/* ------------------------------------------------------------------- writing -- */

static void write_form(struct visit *visit, const struct file *file)
{
    const struct form *form = &visit->request->body;
    char seen[24], count[24], button[64];

    snprintf(seen, sizeof seen, "%" PRIx64, file->digest);
    snprintf(count, sizeof count, "%zu", file->count);
    snprintf(button, sizeof button, "File %s payment%s", COUNT_TEXT(file->count),
             file->count == 1 ? "" : "s");
    part_form(visit, "/file", "seen", seen, "count", count);
    page_format(&visit->answer->page,
                "<label for=\"source\">Who says so</label><input id=\"source\" name=\"source\" "
                "maxlength=\"63\" required autocomplete=\"off\" placeholder=\"statement "
                "2026-03-01\" value=\"%s\">\n",
                form_get(form, "source"));
    part_form_end(&visit->answer->page, "reason", form_get(form, "reason"), button);
    part_command(&visit->answer->page, "evidence", "add", "--statement", "FILE.csv", "--source",
                 "TEXT", "--reason", "TEXT");
}

static void write_sums(struct page *page, const struct file *file)
{
    const struct filing *filing = &file->filing;
    tl_list_end paid = TL_LIST_END_INIT, returned = TL_LIST_END_INIT, taken = filing->money;
    char apart[FILING_APART];

    statement_sum(file->statement.payments, file->statement.count, &paid, &returned);
    part_sum_line(page, "Payments of the file:", &paid);
    part_sum_line(page, "Trades that they are of:", &filing->trades);
    if (returned.trades > 0)
        part_sum_line(page, "Payments that came back:", &returned);
    taken.trades -= filing->contradicting;
    part_sum_line(page, "Trades that are taken for paid:", &taken);
    page_format(page, "<p>%s</p>\n", filing_apart(apart, filing));
    if (filing->count > file->count)
        page_format(page,
                    "<p class=\"quiet\">At once the first %u are filed; the same again does the "
                    "rest.</p>\n",
                    MANY_MOST);
}

static void cell_serial(struct visit *visit, const void *row)
{
    const struct filing_row *filed = row;

    part_link(visit, &(tl_key){filed->serial_no, filed->cust_no, filed->op_code}, "/trade");
}

static void write_rows(struct visit *visit, const struct file *file)
{
    static const struct drawn drawn[] = {{"serial", cell_serial}, {NULL, NULL}};
    struct grid grid;
    size_t shard = 0;

    page_put(&visit->answer->page, "<section class=\"card\">\n");
    grid_begin(&grid, visit, &record_filing, NULL, drawn);
    for (size_t i = 0; i < file->count && i < MANY_SHOWN; i++) {
        while (file->row[shard + 1] <= i)
            shard++;
        grid_row_at(&grid, shards_name(visit->session->shards, shard), &file->filing.rows[i]);
    }
    grid_end(&grid, "Nothing of it is new.");
    if (file->filing.count > MANY_SHOWN)
        page_format(&visit->answer->page, "<p class=\"quiet\">and %s more</p>\n",
                    COUNT_TEXT(file->filing.count - MANY_SHOWN));
    page_put(&visit->answer->page, "</section>\n");
}

static void write_file(struct visit *visit, unsigned http, const struct file *file,
                       const char *problem)
{
    struct page *page = &visit->answer->page;
    const uint64_t count = file->filing.count;

    layout_begin(visit, http, "File a statement", PLACE_AUDIT, 0);
    page_format(page, "<div class=\"title\"><h1>File %s</h1></div>\n", file->compared->name);
    part_problem(page, problem, "This is what would be filed now.");
    page_format(page, "<section class=\"card offer\"><h2>%s payment%s would be filed</h2>\n",
                COUNT_TEXT(count), count == 1 ? "" : "s");
    page_put(page, "<p>It is kept for good and nobody can change it. A trade in process is "
                   "looked at at once, and success ends it as paid.</p>\n");
    write_sums(page, file);
    if (part_may_decide(visit) && count > 0)
        write_form(visit, file);
    page_put(page, "</section>\n");
    write_rows(visit, file);
    layout_end(visit);
}

void page_file(struct visit *visit)
{
    struct file file;

    if (!find(visit, &file))
        return;
    write_file(visit, 200, &file, NULL);
    done_with(visit, &file);
}

/* -------------------------------------------------------------------- filing -- */

struct done {
    struct visit *visit;
    const struct file *file;
    uint64_t filed, conflicts;
    tl_status status; /* why it broke off */
    char why[512];
    char acts[256]; /* "act 7 at shard a, act 3 at shard b" */
};

static const char *source_of(const struct visit *visit)
{
    return form_get(&visit->request->body, "source");
}

static tl_status file_one(void *context, tl_client *client, uint64_t act_no, uint64_t row)
{
    const struct done *done = context;

    return filing_one(&done->file->filing.rows[row], client, act_no, row + 1,
                      source_of(done->visit));
}

static void say_act(struct done *done, uint64_t act_no, const char *shard)
{
    const size_t size = strlen(done->acts);

    snprintf(done->acts + size, sizeof done->acts - size, "%sact %" PRIu64 "%s%s",
             size > 0 ? ", " : "", act_no, shard[0] != '\0' ? " at shard " : "", shard);
}

/* Those of one shard, as rows of one act. */
static void file_shard(struct done *done, size_t shard)
{
    const struct file *file = done->file;
    struct visit *visit = done->visit;
    const size_t first = file->row[shard];
    const size_t end = file->row[shard + 1] < file->count ? file->row[shard + 1] : file->count;
    char said[1024];
    struct act_run run = {.act = {.version = TL_ACT_VERSION,
                                  .what = "evidence add",
                                  .said = said,
                                  .actor = visit->session->user,
                                  .reason = form_get(&visit->request->body, "reason"),
                                  .planned = end - first},
                          .first = first,
                          .each = file_one,
                          .is_of_row = filing_is_of_row,
                          .context = done};

    if (first >= end)
        return;
    snprintf(said, sizeof said, "desk: --statement %s --source %s", file->compared->name,
             source_of(visit));
    done->status = visit_go_to(visit, shard);
    if (done->status == TL_OK)
        done->status = act_run(&run, visit->client);
    if (done->status != TL_OK)
        snprintf(done->why, sizeof done->why, "%s", said_by(done->status));
    if (run.act_no != 0)
        say_act(done, run.act_no, visit_shard(visit));
    done->filed += run.done;
    done->conflicts += run.conflicts;
}

static void file_all(struct visit *visit, const struct file *file)
{
    struct done done = {.visit = visit, .file = file, .status = TL_OK};
    char sentence[NOTICE_TEXT];
    size_t size;

    for (size_t i = 0; done.status == TL_OK && i < shards_count(visit->session->shards); i++)
        file_shard(&done, i);
    if (done.status != TL_OK && done.filed == 0) {
        write_file(visit, http_of(done.status), file, done.why);
        return;
    }
    now_forget(visit->desk->now);
    size = (size_t)snprintf(sentence, sizeof sentence, "%s of %s filed, on record as %.150s.",
                            COUNT_TEXT(done.filed), COUNT_TEXT(file->count), done.acts);
    if (done.conflicts > 0)
        size += (size_t)snprintf(sentence + size, sizeof sentence - size,
                                 " %s contradict%s the row: two operators have to decide.",
                                 COUNT_TEXT(done.conflicts), done.conflicts == 1 ? "s" : "");
    if (done.filed < file->count)
        size += (size_t)snprintf(sentence + size, sizeof sentence - size,
                                 " The page Acts names what was left alone.");
    if (done.status != TL_OK)
        snprintf(sentence + size, sizeof sentence - size, " It stopped there: %.200s.", done.why);
    session_tell(visit->desk->sessions, visit->session, sentence);
    layout_redirect(visit->answer, "/file", NULL);
}

void page_filed(struct visit *visit)
{
    const struct form *form = &visit->request->body;
    struct file file;
    char seen[24], problem[128];

    if (!visit_may_decide(visit) || !find(visit, &file))
        return;
    snprintf(seen, sizeof seen, "%" PRIx64, file.digest);
    if (strcmp(seen, form_get(form, "seen")) != 0) {
        snprintf(
            problem, sizeof problem,
            "The page showed %.10s payments, and the statement or its trades are others since.",
            form_get(form, "count"));
        write_file(visit, 409, &file, problem);
    } else if (form_get(form, "source")[0] == '\0') {
        write_file(visit, 400, &file, "Nobody is named who says so.");
    } else if (visit_may_decide(visit)) {
        file_all(visit, &file);
    }
    done_with(visit, &file);
}
