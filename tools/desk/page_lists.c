/* The pages Inbox, Acts and Doctor: what the commands of these names list, shard by shard. */
#include "command.h"
#include "parts.h"
#include "print.h"
#include "proposals.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ACTS_SHOWN 50u

/* A list while it is written. */
struct writing {
    struct visit *visit;
    struct grid grid;
    const char *after;       /* of acts: where this page begins, or NULL */
    uint64_t act_no, number; /* of an act's rows: which act, and the row before the next one */
    char next[TL_NEXT_TEXT]; /* of acts: where the next page begins; "": there is none */
};

struct list {
    enum place place;
    const char *title, *says, *columns, *nothing;
    const struct record *record;
    struct drawn drawn[3];
    tl_status (*read)(struct writing *w);
    void (*end)(struct writing *w); /* below the table; or NULL */
};

static void write_shard(struct writing *w, const struct list *list, size_t shard)
{
    struct visit *visit = w->visit;
    struct page *page = &visit->answer->page;
    tl_status status = visit_go_to(visit, shard);

    page_put(page, "<section class=\"card\">\n");
    if (visit_is_of_fleet(visit))
        page_format(page, "<h2>Shard %s</h2>\n", visit_shard(visit));
    grid_begin(&w->grid, visit, list->record, list->columns, list->drawn);
    if (status == TL_OK)
        status = list->read(w);
    if (status == TL_OK || w->grid.rows > 0)
        grid_end(&w->grid, list->nothing);
    if (status != TL_OK)
        page_format(page, "<p class=\"notice bad\">This cannot be read now: %s</p>\n",
                    said_at(visit_shard(visit), status));
    else if (list->end != NULL)
        list->end(w);
    page_put(page, "</section>\n");
}

/* Of this shard, or of all (SHARD_NOBODY). */
static void write_list(struct writing *w, const struct list *list, const char *title, size_t only)
{
    struct visit *visit = w->visit;
    struct page *page = &visit->answer->page;

    layout_begin(visit, 200, list->title, list->place, 0);
    page_format(page, "<div class=\"title\"><h1>%s</h1></div>\n<p>", title);
    page_words(page, list->says);
    page_put(page, "</p>\n");
    for (size_t i = 0; i < shards_count(visit->session->shards); i++)
        if (only == SHARD_NOBODY || only == i)
            write_shard(w, list, i);
    layout_end(visit);
}

/* -------------------------------------------------------------------- inbox -- */

/* Where it is decided on, if the desk can. */
static void cell_proposed(struct visit *visit, const void *row)
{
    struct page *page = &visit->answer->page;
    const tl_proposal *proposal = row;
    char text[CELL];

    if (proposal->act_no != 0) {
        page_format(page, "<a href=\"/many?act=confirm&amp;no=%llu&amp;shard=%s\">",
                    (unsigned long long)proposal->act_no, visit_shard(visit));
        record_cell(text, record_column(&record_proposal, "trade", 5), row, 0);
        page_format(page, "%s</a>", text);
    } else if (strcmp(proposal->what, "resolve") == 0) {
        part_link(visit, &proposal->key, "/decide");
    } else {
        page_text(page, proposal->key.serial_no);
    }
}

static int add_proposal(void *context, const tl_proposal *proposal)
{
    struct writing *w = context;

    grid_row(&w->grid, proposal);
    return 0;
}

static tl_status read_inbox(struct writing *w)
{
    return proposals_list(w->visit->client, add_proposal, w);
}

void page_inbox(struct visit *visit)
{
    static const struct list inbox = {
        .place = PLACE_INBOX,
        .title = "Inbox",
        .says = "What one operator proposed and nobody confirmed. Whoever proposed it cannot "
                "confirm it. A finding is closed on the page Audit, a restored server is accepted "
                "by `tradelock restore accept`.",
        .columns = "proposed,what,said,trade,account,may,reason",
        .nothing = "Nothing waits for a second person.",
        .record = &record_proposal,
        .drawn = {{"trade", cell_proposed}, {NULL, NULL}},
        .read = read_inbox};
    struct writing w = {.visit = visit};

    write_list(&w, &inbox, inbox.title, SHARD_NOBODY);
}

/* --------------------------------------------------------------------- acts -- */

static void cell_act(struct visit *visit, const void *row)
{
    const tl_act_view *act = row;

    if (act->act_no != 0)
        page_format(&visit->answer->page, "<a href=\"/acts?no=%llu&amp;shard=%s\">%llu</a>",
                    (unsigned long long)act->act_no, visit_shard(visit),
                    (unsigned long long)act->act_no);
}

static int add_act(void *context, const tl_act_view *act)
{
    struct writing *w = context;

    grid_row(&w->grid, act);
    return 0;
}

static tl_status read_acts(struct writing *w)
{
    tl_act_filter filter = TL_ACT_FILTER_INIT;

    filter.limit = ACTS_SHOWN;
    filter.after = w->after;
    return tl_act_list(w->visit->client, &filter, add_act, w, w->next);
}

/* The place names a row, so that it stands behind a reference. */
static void link_older(struct writing *w)
{
    char text[SECRET_TEXT];
    struct ref ref;

    if (w->next[0] == '\0')
        return;
    memset(&ref, 0, sizeof ref);
    snprintf(ref.show, sizeof ref.show, "acts");
    snprintf(ref.shard, sizeof ref.shard, "%s", visit_shard(w->visit));
    snprintf(ref.after, sizeof ref.after, "%s", w->next);
    refs_keep(w->visit->desk->refs, &ref, text);
    page_format(&w->visit->answer->page,
                "<nav class=\"pages\" aria-label=\"Pages of the list\"><a class=\"button\" "
                "rel=\"next\" href=\"/acts?r=%s\">Earlier ones</a></nav>\n",
                text);
}

static void cell_serial(struct visit *visit, const void *row)
{
    const tl_act_row *act = row;

    part_link(visit, &act->key, "/trade");
}

static int add_row(void *context, const tl_act_row *row)
{
    struct writing *w = context;

    grid_row(&w->grid, row);
    w->number = row->row_no;
    return 0;
}

static tl_status read_rows(struct writing *w)
{
    return tl_act_row_list(w->visit->client, w->act_no, w->number, ACTS_SHOWN, add_row, w);
}

static void link_further(struct writing *w)
{
    if (w->grid.rows == ACTS_SHOWN)
        page_format(&w->visit->answer->page,
                    "<nav class=\"pages\" aria-label=\"Pages of the list\"><a class=\"button\" "
                    "rel=\"next\" href=\"/acts?no=%llu&amp;after=%llu&amp;shard=%s\">Further ones"
                    "</a></nav>\n",
                    (unsigned long long)w->act_no, (unsigned long long)w->number,
                    visit_shard(w->visit));
}

static void write_rows(struct writing *w, size_t shard)
{
    static const struct list rows = {.place = PLACE_ACTS,
                                     .title = "An act",
                                     .says = "What became of each of its trades.",
                                     .columns = "row,acted,serial,customer,operation,fence,result",
                                     .nothing = "No such act has rows.",
                                     .record = &record_act_row,
                                     .drawn = {{"serial", cell_serial}, {NULL, NULL}},
                                     .read = read_rows,
                                     .end = link_further};
    char title[32];

    snprintf(title, sizeof title, "Act %" PRIu64, w->act_no);
    write_list(w, &rows, title, shard);
}

void page_acts(struct visit *visit)
{
    static const struct list acts = {
        .place = PLACE_ACTS,
        .title = "Acts",
        .says = "What operators did, the latest first: who by the server’s word, when, what and "
                "why. `tradelock acts --since 1d --by NAME` lists some of them.",
        .columns = "act,begun,by,what",
        .nothing = "Nobody did anything.",
        .record = &record_act,
        .drawn = {{"act", cell_act}, {NULL, NULL}},
        .read = read_acts,
        .end = link_older};
    const struct form *query = &visit->request->query;
    const char *no = form_get(query, "no"), *after = form_get(query, "after");
    const size_t count = shards_count(visit->session->shards);
    const size_t shard = visit_is_of_fleet(visit)
                             ? shards_find(visit->session->shards, form_get(query, "shard"))
                             : 0;
    struct writing w = {.visit = visit};
    struct ref ref;

    if (no[0] != '\0') {
        if (!read_number(no, INT64_MAX, &w.act_no) || w.act_no == 0 || shard >= count ||
            (after[0] != '\0' && !read_number(after, INT64_MAX, &w.number)))
            layout_sentence(visit, 404, "No such act", "This link is of no act.");
        else
            write_rows(&w, shard);
    } else if (form_get(query, "r")[0] == '\0') {
        write_list(&w, &acts, acts.title, SHARD_NOBODY);
    } else if (!refs_find(visit->desk->refs, form_get(query, "r"), &ref) ||
               strcmp(ref.show, "acts") != 0) {
        layout_sentence(visit, 404, "No such page", "This page is older than the desk.");
    } else {
        w.after = ref.after;
        write_list(&w, &acts, acts.title, shards_find(visit->session->shards, ref.shard));
    }
}

/* ------------------------------------------------------------------- doctor -- */

static int add_finding(void *context, const tl_finding *finding)
{
    struct writing *w = context;

    grid_row(&w->grid, finding);
    return 0;
}

static void cell_level(struct visit *visit, const void *row)
{
    static const char *const looks[] = {"good", "doubt", "bad"};
    const tl_finding *finding = row;

    page_format(&visit->answer->page, "<span class=\"state %s\">%s</span>", looks[finding->level],
                level_name(finding->level));
}

/* What is unsafe has told what it is. */
static tl_status read_findings(struct writing *w)
{
    const tl_status status = tl_doctor(w->visit->client, add_finding, w);

    return status == TL_SERVER_UNSAFE ? TL_OK : status;
}

void page_doctor(struct visit *visit)
{
    static const struct list doctor = {
        .place = PLACE_DOCTOR,
        .title = "Doctor",
        .says = "Everything that the guarantees rest on, asked of the server with your account. "
                "`tradelock doctor` with a service’s account also proves that its steps are "
                "recorded, and compares the shards of a fleet.",
        .columns = "level,check,found,sentence=What it means",
        .nothing = "Nothing was found.",
        .record = &record_finding,
        .drawn = {{"level", cell_level}, {NULL, NULL}},
        .read = read_findings};
    struct writing w = {.visit = visit};

    write_list(&w, &doctor, doctor.title, SHARD_NOBODY);
}
