/* The page Trades: lists by what is shown and by what somebody looks for. */
#include "parts.h"

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
    {"parked", "Parked", SHOW_PARKED},
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

/* ------------------------------------------------------------------ search -- */

/* 0: it is longer than any such name. */
static int copy(char *to, size_t space, const char *from)
{
    return snprintf(to, space, "%s", from) < (int)space;
}

void page_search(struct visit *visit)
{
    const struct form *form = &visit->request->body;
    struct ref search;
    char text[SECRET_TEXT];

    memset(&search, 0, sizeof search);
    if (!copy(search.serial_no, sizeof search.serial_no, form_get(form, "serial")) ||
        !copy(search.cust_no, sizeof search.cust_no, form_get(form, "cust")) ||
        !copy(search.op_code, sizeof search.op_code, form_get(form, "op")) ||
        !copy(search.log_no, sizeof search.log_no, form_get(form, "log")) ||
        !copy(search.channel_ref, sizeof search.channel_ref, form_get(form, "ref")) ||
        !copy(search.batch, sizeof search.batch, form_get(form, "batch"))) {
        layout_sentence(visit, 400, "Not to be found",
                        "What you look for is longer than any such name can be.");
        return;
    }
    snprintf(search.show, sizeof search.show, "%s", shown_of(form_get(form, "show"))->word);
    refs_keep(visit->desk->refs, &search, text);
    layout_redirect(visit->answer, "/trades", text);
}

static void field(struct page *page, const char *name, const char *label, const char *value,
                  unsigned most)
{
    page_format(page,
                "<div class=\"field\"><label for=\"f-%s\">%s</label><input id=\"f-%s\" "
                "name=\"%s\" value=\"%s\" maxlength=\"%u\" autocomplete=\"off\" "
                "autocapitalize=\"none\" spellcheck=\"false\"></div>\n",
                name, label, name, name, value, most);
}

static void search_form(struct visit *visit, const struct ref *search)
{
    struct page *page = &visit->answer->page;

    page_put(page, "<form class=\"card search\" method=\"post\" action=\"/search\" role=\"search\">"
                   "\n");
    layout_token(visit);
    page_format(page, "<input type=\"hidden\" name=\"show\" value=\"%s\">\n",
                shown_of(search->show)->word);
    field(page, "serial", "Serial number", search->serial_no, TL_SERIAL_MAX);
    field(page, "cust", "Customer", search->cust_no, TL_CUST_MAX);
    field(page, "op", "Operation", search->op_code, TL_OP_MAX);
    field(page, "batch", "Batch", search->batch, TL_BATCH_MAX);
    field(page, "ref", "Channel reference", search->channel_ref, TL_REF_MAX);
    field(page, "log", "Log UUID", search->log_no, TL_UUID_TEXT - 1);
    page_put(page, "<div class=\"field\"><button class=\"button main\">Search</button></div>\n"
                   "</form>\n");
}

/* -------------------------------------------------------------------- list -- */

/* Of at most 38 digits, which an __int128 holds. */
static void put_money(struct page *page, const tl_money *money)
{
    __int128 minor = 0;

    for (const char *digit = money->sum_minor; *digit != '\0'; digit++)
        minor = minor * 10 + (*digit - '0');
    page_money(page, minor, money->currency);
}

static void batch_part(struct page *page, const tl_batch_part *part)
{
    page_format(page, "<tr><td>%s%s</td><td class=\"number\">%llu</td><td class=\"number\">",
                tl_state_name(part->state), part->conflict ? ", in conflict" : "",
                (unsigned long long)part->money.trades);
    put_money(page, &part->money);
    page_put(page, "</td></tr>\n");
}

/* How far the whole batch is, whatever of it is listed. */
static void batch_totals(struct visit *visit, const struct ref *search)
{
    struct page *page = &visit->answer->page;
    struct batch batch = {.count = 0};

    if (search->batch[0] == '\0')
        return;
    house_batch(visit->session->client, search->batch, &batch);
    page_format(page, "<section class=\"card\"><h2>Batch %s</h2>\n", search->batch);
    if (batch.status == TL_OVERLOADED)
        page_format(page, "<p>More than %u trades are of it. They are counted by:</p>\n",
                    BATCH_MOST);
    else if (batch.status != TL_OK)
        page_format(page, "<p>%s</p>\n", said_by(batch.status));
    else if (batch.open == 0)
        page_format(page, "<p class=\"lead\">Complete: none of %llu is open.</p>\n",
                    (unsigned long long)batch.trades);
    else
        page_format(page, "<p class=\"lead\">Not complete: %llu of %llu are open.</p>\n",
                    (unsigned long long)batch.open, (unsigned long long)batch.trades);
    if (batch.count > 0) {
        page_put(page, "<table><thead><tr><th scope=\"col\">State</th>"
                       "<th scope=\"col\" class=\"number\">Trades</th>"
                       "<th scope=\"col\" class=\"number\">Money</th></tr></thead><tbody>\n");
        for (size_t i = 0; i < batch.count; i++)
            batch_part(page, &batch.part[i]);
        page_put(page, "</tbody></table>\n");
    }
    part_command(page, "tradelock", "ls", "--batch", search->batch, NULL);
    page_put(page, "</section>\n");
    batch_free(&batch);
}

/* Links that keep what is looked for, which stands behind their reference. */
static void tabs(struct visit *visit, const struct ref *search)
{
    struct page *page = &visit->answer->page;
    const struct shown *here = shown_of(search->show);

    page_put(page, "<nav class=\"tabs\" aria-label=\"Filters\">\n");
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        struct ref other = *search;
        char text[SECRET_TEXT];

        memset(other.show, 0, sizeof other.show);
        memset(other.page, 0, sizeof other.page);
        memset(other.after, 0, sizeof other.after);
        memset(other.before, 0, sizeof other.before);
        snprintf(other.show, sizeof other.show, "%s", shown[i].word);
        refs_keep(visit->desk->refs, &other, text);
        page_format(page, "<a href=\"/trades?r=%s\"", text);
        page_put(page, &shown[i] == here ? " aria-current=\"true\">" : ">");
        page_format(page, "%s</a>\n", shown[i].name);
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

static void next_link(struct visit *visit, const struct ref *search, const char *text,
                      const struct rows *rows)
{
    struct ref next = *search;
    char to[SECRET_TEXT];

    memset(next.page, 0, sizeof next.page);
    memset(next.after, 0, sizeof next.after);
    memset(next.before, 0, sizeof next.before);
    snprintf(next.page, sizeof next.page, "%u", number_of(search) + 1);
    snprintf(next.after, sizeof next.after, "%s", rows->next);
    snprintf(next.before, sizeof next.before, "%s", text);
    refs_keep(visit->desk->refs, &next, to);
    page_link(&visit->answer->page, "next", to,
              rows->count < PAGE_ROWS ? "Look further" : "Next page");
}

static void pages(struct visit *visit, const struct ref *search, const char *text,
                  const struct rows *rows)
{
    struct page *page = &visit->answer->page;

    if (rows->more && rows->count < PAGE_ROWS)
        page_format(page,
                    "<p class=\"quiet\">About %u rows were looked at for this page; there are more."
                    "</p>\n",
                    PAGE_LOOKS);
    page_put(page, "<nav class=\"pages\" aria-label=\"Pages of the list\">");
    if (search->before[0] != '\0')
        page_link(page, "prev", search->before, "Previous page");
    if (search->before[0] != '\0' || rows->more)
        page_format(page, "<span class=\"quiet\">Page %u</span>", number_of(search));
    if (rows->more)
        next_link(visit, search, text, rows);
    page_put(page, "</nav>\n");
}

static void write_list(struct visit *visit, const struct ref *search, const struct rows *rows)
{
    struct page *page = &visit->answer->page;
    char text[SECRET_TEXT];

    refs_keep(visit->desk->refs, search, text);
    layout_begin(visit, 200, "Trades", PLACE_TRADES, 0);
    page_put(page, "<div class=\"title\"><h1>Trades</h1></div>\n");
    search_form(visit, search);
    batch_totals(visit, search);
    tabs(visit, search);
    page_put(page, "<section class=\"card\">\n");
    if (rows->count > 0)
        part_rows(visit, rows);
    else
        page_put(page, rows->more || search->before[0] != '\0'
                           ? "<p class=\"calm-line\">No trade of this page is like that.</p>\n"
                           : "<p class=\"calm-line\">No trade is like that.</p>\n");
    pages(visit, search, text, rows);
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

void page_trades(struct visit *visit)
{
    struct rows rows = {.count = 0};
    struct ref search;
    tl_status status;

    if (!read_search(visit, &search)) {
        layout_sentence(
            visit, 404, "No such list",
            "This link is older than the desk, or was not used for long. Search again.");
        return;
    }
    status = house_list(visit->session->client, shown_of(search.show)->show, &search, &rows);
    if (status == TL_OK)
        write_list(visit, &search, &rows);
    else
        layout_sentence(visit, http_of(status), "This cannot be listed", said_by(status));
    rows_free(&rows);
}
