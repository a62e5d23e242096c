/* The page Trades: lists by what is shown and by what somebody looks for. */
#include "parts.h"
#include "print.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct shown {
    const char *word, *name;
    enum show show;
} shown[] = {
    {"all", "All", SHOW_ALL},
    {"process", "In process", SHOW_PROCESS},
    {"doubt", "In doubt", SHOW_DOUBT},
    {"parked", "Waits for a person", SHOW_PARKED},
    {"conflict", "In conflict", SHOW_CONFLICT},
    {"failed", "Failed", SHOW_FAILED},
    {"paid", "Paid", SHOW_PAID},
};

static const struct shown *shown_of(const char *word)
{
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
        if (strcmp(shown[i].word, word) == 0)
            return &shown[i];
    return &shown[0];
}

enum show part_show_of(const char *word)
{
    return shown_of(word)->show;
}

/* ------------------------------------------------------------------ search -- */

static tl_filter filter_of(const struct ref *search)
{
    tl_filter filter = TL_FILTER_INIT;

    filter.find = search->find;
    return filter;
}

void page_search(struct visit *visit)
{
    const struct form *form = &visit->request->body;
    char text[SECRET_TEXT], kinds[TL_FIND_KINDS_TEXT];
    struct ref search;
    tl_filter filter;

    memset(&search, 0, sizeof search);
    if (snprintf(search.find, sizeof search.find, "%s", form_get(form, "find")) >=
        (int)sizeof search.find) {
        layout_sentence(visit, 400, "Not to be found",
                        "What you look for is longer than any such name can be.");
        return;
    }
    filter = filter_of(&search);
    if (search.find[0] != '\0' && tl_find_kinds(&filter, kinds) != TL_OK) {
        layout_sentence(visit, 400, "Not to be found", said_by(TL_INVALID));
        return;
    }
    snprintf(search.show, sizeof search.show, "%s", shown_of(form_get(form, "show"))->word);
    refs_keep(visit->desk->refs, &search, text);
    layout_redirect(visit->answer, "/trades", text);
}

static void look_link(struct visit *visit, const struct ref *other, const char *words,
                      const char *name)
{
    char text[SECRET_TEXT];

    refs_keep(visit->desk->refs, other, text);
    page_format(&visit->answer->page, "<p>%s<a href=\"/trades?r=%s\">%s</a></p>\n", words, text,
                name);
}

/* No index leads from a log UUID to its trade, so it is looked for when somebody asks for that. */
static void log_link(struct visit *visit, const char *text)
{
    struct ref other = {.show = "all"};

    if (!text_is_uuid(text))
        return;
    snprintf(other.log_no, sizeof other.log_no, "%.*s", TL_UUID_TEXT - 1, text);
    look_link(visit, &other, "", "Look for it as a log UUID");
}

/* How it was looked for, and what is nearly called so, at whatever shard. */
static void not_found(struct visit *visit, const struct ref *search)
{
    struct page *page = &visit->answer->page;
    const tl_filter filter = filter_of(search);
    char kinds[TL_FIND_KINDS_TEXT], near[TL_SERIAL_MAX + 1] = "";
    struct ref other = {.show = "all"};

    if (tl_find_kinds(&filter, kinds) != TL_OK)
        return;
    page_format(page,
                "<p class=\"quiet\">It was looked for in these capital and small letters, as: "
                "%s.</p>\n",
                kinds);
    log_link(visit, search->find);
    for (size_t i = 0; i < shards_count(visit->session->shards) && near[0] == '\0'; i++)
        if (visit_go_to(visit, i) != TL_OK || tl_find_near(visit->client, &filter, near) != TL_OK)
            near[0] = '\0';
    if (near[0] == '\0')
        return;
    snprintf(other.find, sizeof other.find, "%s", near);
    look_link(visit, &other, "A serial number differs in blanks or letters alone: ", near);
}

/* -------------------------------------------------------------------- list -- */

static void cell_part_state(struct visit *visit, const void *row)
{
    const tl_batch_part *part = row;

    page_format(&visit->answer->page, "%s", part_state_words(part->state));
    page_put(&visit->answer->page, part->conflict ? ", in conflict" : "");
}

static void batch_table(struct visit *visit, const struct batch *batches, size_t count)
{
    static const struct drawn drawn[] = {{"state", cell_part_state}, {NULL, NULL}};
    struct grid grid;

    grid_begin(&grid, visit, &record_batch_part, NULL, drawn);
    for (size_t at = 0; at < count; at++)
        for (size_t i = 0; i < batches[at].count; i++)
            grid_row_at(&grid, shards_name(visit->session->shards, at), &batches[at].part[i]);
    grid_end(&grid, "");
}

/* What all of them have; its parts are not added.  A status but TL_OK says why nothing is told. */
static struct batch batch_sum(const struct batch *batches, size_t count)
{
    struct batch sum = {.status = TL_NOT_FOUND};

    for (size_t i = 0; i < count; i++) {
        if (sum.status == TL_OK || sum.status == TL_NOT_FOUND)
            sum.status = batches[i].status == TL_NOT_FOUND ? sum.status : batches[i].status;
        sum.trades += batches[i].trades;
        sum.open += batches[i].open;
        sum.count += batches[i].count;
    }
    return sum;
}

static void batch_lead(struct page *page, const struct batch *sum, const char *why)
{
    if (sum->status == TL_OVERLOADED)
        page_format(page, "<p>More than %s trades are of it. They are counted by:</p>\n",
                    COUNT_TEXT(BATCH_MOST));
    else if (sum->status != TL_OK)
        page_format(page, "<p>%s</p>\n", why);
    else if (sum->open == 0)
        page_format(page, "<p class=\"lead\">Complete: none of %s is open.</p>\n",
                    COUNT_TEXT(sum->trades));
    else
        page_format(page, "<p class=\"lead\">Not complete: %s of %s are open.</p>\n",
                    COUNT_TEXT(sum->open), COUNT_TEXT(sum->trades));
}

/* How far the whole batch is, whatever of it is listed, and at whatever shard. */
static void batch_totals(struct visit *visit, const struct ref *search)
{
    struct page *page = &visit->answer->page;
    const size_t count = shards_count(visit->session->shards);
    struct batch *batches, sum;
    char why[512] = "";

    if (search->find[0] == '\0' || search->page[0] != '\0')
        return;
    batches = calloc(count, sizeof *batches);
    for (size_t i = 0; batches != NULL && i < count; i++) {
        house_batch(visit, i, search->find, &batches[i]);
        if (batches[i].status != TL_OK && (why[0] == '\0' || batches[i].status != TL_NOT_FOUND))
            snprintf(why, sizeof why, "%s", said_by(batches[i].status));
    }
    if (batches != NULL)
        sum = batch_sum(batches, count);
    if (batches != NULL && (sum.count > 0 || sum.status == TL_OVERLOADED)) {
        page_format(page, "<section class=\"card\"><h2>Batch %s</h2>\n", search->find);
        batch_lead(page, &sum, why);
        if (sum.count > 0)
            batch_table(visit, batches, count);
        part_command(page, "ls", "--batch", search->find);
        page_put(page, "</section>\n");
    }
    for (size_t i = 0; batches != NULL && i < count; i++)
        batch_free(&batches[i]);
    free(batches);
}

static void first_page(struct ref *search)
{
    memset(search->page, 0, sizeof search->page);
    memset(search->after, 0, sizeof search->after);
    memset(search->skip, 0, sizeof search->skip);
    memset(search->before, 0, sizeof search->before);
}

static void tab(struct visit *visit, const struct ref *search, const char *name, int is_here)
{
    struct page *page = &visit->answer->page;
    char text[SECRET_TEXT];

    refs_keep(visit->desk->refs, search, text);
    page_format(page, "<a href=\"/trades?r=%s\"", text);
    page_put(page, is_here ? " aria-current=\"true\">" : ">");
    page_format(page, "%s</a>\n", name);
}

static void shard_tabs(struct visit *visit, const struct ref *search)
{
    struct page *page = &visit->answer->page;
    const struct shards *shards = visit->session->shards;

    if (!visit_is_of_fleet(visit))
        return;
    page_put(page, "<nav class=\"tabs\" aria-label=\"Shards\">\n");
    for (size_t i = 0; i <= shards_count(shards); i++) {
        const char *name = i > 0 ? shards_name(shards, i - 1) : "";
        struct ref other = *search;

        first_page(&other);
        memset(other.shard, 0, sizeof other.shard);
        snprintf(other.shard, sizeof other.shard, "%s", name);
        tab(visit, &other, i > 0 ? name : "All shards", strcmp(search->shard, name) == 0);
    }
    page_put(page, "</nav>\n");
}

/* Links that keep what is looked for, which stands behind their reference. */
static void tabs(struct visit *visit, const struct ref *search)
{
    struct page *page = &visit->answer->page;
    const struct shown *here = shown_of(search->show);

    page_put(page, "<nav class=\"tabs\" aria-label=\"Filters\">\n");
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        struct ref other = *search;

        first_page(&other);
        memset(other.show, 0, sizeof other.show);
        memset(other.cause, 0, sizeof other.cause);
        snprintf(other.show, sizeof other.show, "%s", shown[i].word);
        tab(visit, &other, shown[i].name, &shown[i] == here);
    }
    page_put(page, "</nav>\n");
}

static void page_link(struct page *page, const char *rel, const char *ref, const char *name)
{
    page_format(page, "<a class=\"button\" rel=\"%s\" href=\"/trades?r=%s\">%s</a>", rel, ref,
                name);
}

/* The first page has no number yet. */
static unsigned number_of(const struct ref *search)
{
    return search->page[0] != '\0' ? (unsigned)strtoul(search->page, NULL, 10) : 1;
}

/* The pages behind the first are of one shard. */
static void next_link(struct visit *visit, const struct ref *search, const char *text,
                      const struct listed *listed)
{
    const char *shard = shards_name(visit->session->shards, listed->shard);
    const char *words = listed->rows.count < PAGE_ROWS ? "Look further" : "Next page";
    struct ref next = *search;
    char to[SECRET_TEXT], name[64];

    first_page(&next);
    memset(next.shard, 0, sizeof next.shard);
    snprintf(next.shard, sizeof next.shard, "%s", shard);
    snprintf(next.page, sizeof next.page, "%u", number_of(search) + 1);
    snprintf(next.after, sizeof next.after, "%s", listed->rows.next);
    if (listed->rows.skip > 0)
        snprintf(next.skip, sizeof next.skip, "%zu", listed->rows.skip);
    snprintf(next.before, sizeof next.before, "%s", text);
    refs_keep(visit->desk->refs, &next, to);
    snprintf(name, sizeof name, shard[0] != '\0' ? "%s of shard %s" : "%s", words, shard);
    page_link(&visit->answer->page, "next", to, name);
}

static void pages(struct visit *visit, const struct ref *search, const char *text,
                  const struct listed *listed, size_t count)
{
    struct page *page = &visit->answer->page;
    int more = 0, looked = 0;

    for (size_t i = 0; i < count; i++) {
        more |= listed[i].rows.more;
        looked |= listed[i].rows.more && listed[i].rows.count < PAGE_ROWS;
    }
    if (looked)
        page_format(page,
                    "<p class=\"quiet\">About %s rows were looked at for this page; there are more."
                    "</p>\n",
                    COUNT_TEXT(PAGE_LOOKS));
    page_put(page, "<nav class=\"pages\" aria-label=\"Pages of the list\">");
    if (search->before[0] != '\0')
        page_link(page, "prev", search->before, "Previous page");
    if (search->before[0] != '\0' || more)
        page_format(page, "<span class=\"quiet\">Page %u</span>", number_of(search));
    for (size_t i = 0; i < count; i++)
        if (listed[i].rows.more)
            next_link(visit, search, text, &listed[i]);
    page_put(page, "</nav>\n");
}

static void cell_next(struct visit *visit, const void *row)
{
    struct page *page = &visit->answer->page;
    const tl_view *view = row;

    if (view->parked[0] != '\0')
        page_format(page, "a person: %s", view->parked);
    else if (view->status == 'P' && view->next_run_us != 0)
        page_ago(page, view->next_run_us, view->now_us);
}

/* How many rows it has, and 1 if there may be more. */
static size_t table(struct visit *visit, const struct ref *search, const struct listed *listed,
                    size_t count)
{
    const struct shards *shards = visit->session->shards;
    size_t rows = 0;
    int more = search->before[0] != '\0', missing = 0;
    static const struct drawn drawn[] = {
        {"serial", part_trade_link}, {"state", part_state}, {"next_at", cell_next}, {NULL, NULL}};
    struct grid grid;

    grid_begin(&grid, visit, &record_view,
               "serial,customer,operation,state,amount,created,updated,next_at=Next", drawn);
    for (size_t i = 0; i < count; i++) {
        const struct listed *here = &listed[i];

        more |= here->rows.more;
        missing |= here->missing.is;
        rows += here->rows.count;
        for (size_t row = 0; row < here->rows.count; row++)
            grid_row_at(&grid, shards_name(shards, here->shard), &here->rows.views[row]);
    }
    grid_end(&grid, missing ? "No trade of the shards that answer is like that."
                    : more  ? "No trade of this page is like that."
                            : "No trade is like that.");
    return rows + (size_t)more;
}

/* What was read of what waits, with its money, and whether that is all. */
static void totals(struct visit *visit, const struct ref *search, const struct listed *listed,
                   size_t count, const char *text)
{
    struct page *page = &visit->answer->page;

    for (size_t i = 0; i < count; i++) {
        const struct rows *rows = &listed[i].rows;
        const char *shard = shards_name(visit->session->shards, listed[i].shard);

        if (!house_waits(search) || rows->sums.trades == 0)
            continue;
        page_format(page, "<p class=\"lead\">%s%s%s trade%s", shard, shard[0] != '\0' ? ": " : "",
                    COUNT_TEXT(rows->sums.trades),
                    rows->is_part            ? "s of more"
                    : rows->sums.trades == 1 ? ""
                                             : "s");
        part_sums(page, &rows->sums);
        page_format(page,
                    ", the oldest %sfirst. <a download=\"trades.csv\" "
                    "href=\"/trades?r=%s&amp;csv=1\">CSV%s</a></p>\n",
                    rows->is_part ? "of these " : "", text, rows->is_part ? " of all" : "");
    }
}

#define CSV_COLUMNS "serial,customer,operation,state,amount,currency,channel,created,parked"

static void put_csv(struct page *page, const struct rows *rows)
{
    struct columns columns;
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    record_columns(&columns, &record_view, CSV_COLUMNS);
    for (size_t row = 0; to != NULL && row < rows->count; row++) {
        char text_of[LISTING_COLUMNS][CELL];
        const char *cells[LISTING_COLUMNS];

        for (size_t i = 0; i < columns.count; i++) {
            record_cell(text_of[i], columns.column[i], &rows->views[row], 1);
            cells[i] = text_of[i];
        }
        csv_print(to, cells, columns.count);
    }
    page->failed |= to == NULL || fclose(to) != 0;
    if (!page->failed)
        page_put(page, text);
    free(text);
}

/* Whatever else of what waits the shard has behind the place; the access log says how much. */
static tl_status csv_of_shard(struct visit *visit, const struct ref *from, size_t shard)
{
    struct page *page = &visit->answer->page;
    struct rows rows = {.more = 1};
    struct ref search = *from;
    size_t count = 0;
    tl_status status = visit_go_to(visit, shard);

    while (status == TL_OK && rows.more && !page->failed) {
        rows_free(&rows);
        status = house_list(visit, &search, &rows);
        put_csv(page, &rows);
        count += rows.count;
        snprintf(search.after, sizeof search.after, "%s", rows.next);
    }
    rows_free(&rows);
    if (status == TL_OK)
        tl_client_log(visit->client, TL_INFO, NULL, 0,
                      SHARDS_ACCESS "%s to a CSV of so many trades: %zu", visit->account.name,
                      count);
    return status;
}

/* All that waits, as `tradelock ls -o csv` prints it; nothing of it, if that is not to be had. */
static void write_csv(struct visit *visit, const struct ref *search)
{
    const struct shards *shards = visit->session->shards;
    struct ref all = *search;
    tl_status status = TL_OK;

    first_page(&all);
    page_put(&visit->answer->page, CSV_COLUMNS "\n");
    for (size_t i = 0; i < shards_count(shards) && status == TL_OK; i++)
        if (all.shard[0] == '\0' || strcmp(all.shard, shards_name(shards, i)) == 0)
            status = csv_of_shard(visit, &all, i);
    visit->answer->status = 200;
    visit->answer->type = "text/csv; charset=utf-8";
    if (status == TL_OK)
        return;
    page_free(&visit->answer->page);
    visit->answer->type = NULL;
    layout_sentence(visit, http_of(status), "This cannot be listed", said_by(status));
}

static void write_list(struct visit *visit, const struct ref *search, const struct listed *listed,
                       size_t count)
{
    struct page *page = &visit->answer->page;
    char text[SECRET_TEXT];

    refs_keep(visit->desk->refs, search, text);
    visit->find = search->log_no[0] != '\0' ? search->log_no : search->find;
    layout_begin(visit, 200, "Trades", PLACE_TRADES, 0);
    page_format(page, "<div class=\"title\"><h1>Trades%s%s%s%s</h1></div>\n",
                search->channel[0] != '\0' ? " of channel " : "", search->channel,
                search->cause[0] != '\0' ? ": " : "", search->cause);
    for (size_t i = 0; i < count; i++)
        missing_tell(visit, listed[i].shard, &listed[i].missing);
    batch_totals(visit, search);
    shard_tabs(visit, search);
    tabs(visit, search);
    page_put(page, "<p class=\"acts\">");
    if (!visit_is_of_fleet(visit) || search->shard[0] != '\0')
        part_many_links(visit, shown_of(search->show)->show, text, search->shard);
    page_put(page, "</p>\n");
    page_put(page, "<section class=\"card\">\n");
    totals(visit, search, listed, count, text);
    if (table(visit, search, listed, count) == 0 && search->find[0] != '\0')
        not_found(visit, search);
    pages(visit, search, text, listed, count);
    page_put(page, "</section>\n");
    layout_end(visit);
}

static int read_search(struct visit *visit, struct ref *search)
{
    const struct form *query = &visit->request->query;
    const char *text = form_get(query, "r");

    memset(search, 0, sizeof *search);
    if (text[0] != '\0')
        return refs_find(visit->desk->refs, text, search);
    snprintf(search->show, sizeof search->show, "%s", shown_of(form_get(query, "show"))->word);
    return 1;
}

/* Shard by shard, each as in one database, as `tradelock ls` lists them: merged rows would have to be
 * read of all before the first is shown. */
static void list(struct visit *visit, const struct ref *search)
{
    const struct shards *shards = visit->session->shards;
    const int all = search->shard[0] == '\0';
    const size_t count = all ? shards_count(shards) : 1;
    struct listed *listed = calloc(count, sizeof *listed);
    tl_status status = listed != NULL ? TL_OK : TL_NO_MEMORY;

    for (size_t i = 0; listed != NULL && i < count; i++) {
        tl_status one;

        listed[i].shard = all ? i : shards_find(shards, search->shard);
        one = listed_read(&listed[i], visit, search);
        status = status == TL_OK ? one : status;
    }
    if (status == TL_OK || (listed != NULL && visit_is_of_fleet(visit)))
        write_list(visit, search, listed, count);
    else
        layout_sentence(visit, http_of(status), "This cannot be listed", said_by(status));
    for (size_t i = 0; listed != NULL && i < count; i++)
        rows_free(&listed[i].rows);
    free(listed);
}

void page_trades(struct visit *visit)
{
    struct ref search;

    if (!read_search(visit, &search) ||
        (search.shard[0] != '\0' &&
         shards_find(visit->session->shards, search.shard) == SHARD_NOBODY)) {
        layout_sentence(
            visit, 404, "No such list",
            "This link is older than the desk, or was not used for long. Search again.");
        return;
    }
    if (house_waits(&search) && form_get(&visit->request->query, "csv")[0] != '\0')
        write_csv(visit, &search);
    else
        list(visit, &search);
}
