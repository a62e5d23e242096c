/*
 * Listing rows.  However large the table is, no statement reads more than one page: a
 * scan in one statement would hold a view of the past open that the server must keep for
 * it.  Rows are found
 *   - by customer, in the order of the primary key, or
 *   - by operation, in the order of the index of due work: first the rows with a next
 *     moment, then those that are merely held, then those that nobody works on.
 * What is in process stands in the first two, so that asking for it does not read the
 * finished trades.  A sync row without a holder has no next moment of its own; it is found
 * through its retry row.  That one has a next moment, or is parked; parked rows stand in
 * the third part, among the closed retry rows of trades that once needed one.
 */
#include "operator/read.h"

#include "base/error.h"
#include "base/text.h"
#include "store/store.h"
#include "store/store_operator.h"
#include "store/view.h"

#include <string.h>

#define LIST_DEFAULT 100
#define LIST_PAGE 512

struct list {
    const tl_filter *filter;
    tl_view_fn each;
    void *context;
    db *connection;
    unsigned left;
    int stopped;
    db_result row; /* the row that is shown */
};

/* ------------------------------------------------------------------ filter -- */

static int is_retry_op(const char *op_code)
{
    const size_t size = strlen(op_code), suffix = strlen(TL_RETRY_SUFFIX);

    return size > suffix && strcmp(op_code + size - suffix, TL_RETRY_SUFFIX) == 0;
}

/* Whether op_code is the filter's operation, on either lane. */
static int op_matches(const char *wanted, const char *op_code)
{
    const size_t size = strlen(wanted);

    return strncmp(op_code, wanted, size) == 0 &&
           (op_code[size] == '\0' || strcmp(op_code + size, TL_RETRY_SUFFIX) == 0);
}

/* Only trades in process can pass. */
static int wants_open(const tl_filter *filter)
{
    return filter->status == 'P' || filter->parked || filter->in_doubt;
}

static int page_row_passes(const tl_filter *f, const db_result *page, size_t row)
{
    return (f->lane == 0 || f->lane == db_get_text(page, row, LIST_LANE)[0]) &&
           (f->status == 0 || f->status == db_get_text(page, row, LIST_STATUS)[0]) &&
           (f->op == NULL || op_matches(f->op, db_get_text(page, row, LIST_OP))) &&
           (f->serial == NULL ||
            strcmp(f->serial, db_get_text(page, row, LIST_SERIAL)) == 0) &&
           db_get_int(page, row, LIST_AGE_MS) >= f->older_ms &&
           (!f->conflict || db_get_int(page, row, LIST_CONFLICT));
}

/* The row may have moved on since its page was read; what counts is what is shown. */
static int view_passes(const tl_filter *f, const tl_view *view)
{
    return (f->status == 0 || f->status == view->status) &&
           (f->lane == 0 || f->lane == view->lane) &&
           (f->serial == NULL || strcmp(f->serial, view->serial_no) == 0) &&
           (view->now_us - view->updated_us) / 1000 >= f->older_ms &&
           (!f->parked || view->parked[0] != '\0') &&
           (!f->in_doubt || view->state == TL_STATE_IN_DOUBT) &&
           (!f->conflict || view->conflict);
}

static tl_status filter_check(const tl_filter *filter)
{
    tl_status status = TL_OK;

    if (filter == NULL || filter->version != TL_FILTER_VERSION)
        return error_set(TL_INVALID, "the filter is NULL or its version is not set");
    if (filter->lane != 0 && filter->lane != 'S' && filter->lane != 'R')
        return error_set(TL_INVALID, "the lane is S (sync) or R (retry)");
    if (filter->status != 0 && strchr("PFY", filter->status) == NULL)
        return error_set(TL_INVALID, "the status is P, F or Y");
    if (filter->older_ms < 0)
        return error_set(TL_INVALID, "an age is not negative");
    if (filter->op != NULL)
        status =
            text_check_name("operation", filter->op, TL_OP_MAX - strlen(TL_RETRY_SUFFIX));
    if (status == TL_OK && filter->op != NULL && is_retry_op(filter->op))
        status = error_set(TL_INVALID,
                           "operation %s: name the business operation, without "
                           "%s",
                           filter->op, TL_RETRY_SUFFIX);
    if (status == TL_OK && filter->cust != NULL)
        status = text_check_name("customer", filter->cust, TL_CUST_MAX);
    if (status == TL_OK && filter->serial != NULL)
        status = text_check_name("serial number", filter->serial, TL_SERIAL_MAX);
    return status;
}

/* ----------------------------------------------------------------- showing -- */

/* Only rows without a holder: the others are found by their own next moment. */
#define UNHELD 1

static tl_status show(struct list *list, const char *cust_no, const char *serial_no,
                      const char *op_code, int which)
{
    view_inside inside;
    tl_view view;
    tl_status status =
        read_status(list->connection,
                    store_view(list->connection, cust_no, serial_no, op_code, &list->row),
                    "reading a row");

    if (status != TL_OK || list->row.rows == 0)
        return status;
    view_read(&view, &inside, &list->row, 0);
    if ((which == UNHELD && view.session_id[0] != '\0') ||
        !view_passes(list->filter, &view))
        return TL_OK;
    if (list->each(list->context, &view) != 0 || --list->left == 0)
        list->stopped = 1;
    return TL_OK;
}

/* The sync row of an open retry row. */
static tl_status show_sync_of(struct list *list, const db_result *page, size_t row)
{
    char op_code[TL_OP_MAX + 1];

    text_copy(op_code, sizeof op_code, db_get_text(page, row, LIST_OP));
    op_code[strlen(op_code) - strlen(TL_RETRY_SUFFIX)] = '\0';
    return show(list, db_get_text(page, row, LIST_CUST),
                db_get_text(page, row, LIST_SERIAL), op_code, UNHELD);
}

/* What a page gives: its rows; the sync rows of its retry rows too; or both, for the parked
 * ones among them alone. */
enum page_use { USE_ROWS, USE_BOTH_LANES, USE_PARKED };

static tl_status show_page(struct list *list, const db_result *page, enum page_use use)
{
    tl_status status = TL_OK;

    for (size_t row = 0; row < page->rows && status == TL_OK && !list->stopped; row++) {
        if (use == USE_PARKED && !db_get_int(page, row, LIST_PARKED))
            continue;
        if (use != USE_ROWS && list->filter->lane != 'R')
            status = show_sync_of(list, page, row);
        if (status == TL_OK && !list->stopped && page_row_passes(list->filter, page, row))
            status = show(list, db_get_text(page, row, LIST_CUST),
                          db_get_text(page, row, LIST_SERIAL),
                          db_get_text(page, row, LIST_OP), 0);
    }
    return status;
}

/* ----------------------------------------------------------------- walking -- */

typedef db_answer (*page_fn)(db *connection, const char *op_code,
                             const store_list_start *start, unsigned limit,
                             db_result *page);

static db_answer customer_page(db *connection, const char *op_code,
                               const store_list_start *start, unsigned limit,
                               db_result *page)
{
    (void)op_code;
    return store_list_customer(connection, start, limit, page);
}

/* Moves the start behind the page.  Where a place is shared by many rows (the same moment,
 * the same session), the next page begins at that place and steps over those seen. */
static void advance(store_list_start *start, const db_result *page)
{
    const size_t last = page->rows - 1;
    const char *place;
    unsigned same = 0;

    text_copy(start->cust_no, sizeof start->cust_no, db_get_text(page, last, LIST_CUST));
    text_copy(start->serial_no, sizeof start->serial_no,
              db_get_text(page, last, LIST_SERIAL));
    text_copy(start->op_code, sizeof start->op_code, db_get_text(page, last, LIST_OP));
    if (page->columns <= LIST_PLACE)
        return;
    place = db_get_text(page, last, LIST_PLACE);
    while (same < page->rows &&
           strcmp(db_get_text(page, last - same, LIST_PLACE), place) == 0)
        same++;
    if (same == page->rows && strcmp(start->place, place) == 0)
        start->skip += same;
    else
        start->skip = same;
    text_copy(start->place, sizeof start->place, place);
}

static tl_status walk(struct list *list, const char *op_code, page_fn read,
                      enum page_use use)
{
    store_list_start start = {.skip = 0};
    db_result page = DB_RESULT_INIT;
    tl_status status;

    if (list->filter->cust != NULL)
        text_copy(start.cust_no, sizeof start.cust_no, list->filter->cust);
    do {
        status = read_status(list->connection,
                             read(list->connection, op_code, &start, LIST_PAGE, &page),
                             "reading a page of rows");
        if (status == TL_OK)
            status = show_page(list, &page, use);
        if (status == TL_OK && page.rows > 0)
            advance(&start, &page);
    } while (status == TL_OK && !list->stopped && page.rows == LIST_PAGE);
    db_result_free(&page);
    return status;
}

/* Rows of a retry lane in process, and their sync rows. */
static tl_status list_open_retry(struct list *list, const char *op_code)
{
    tl_status status = walk(list, op_code, store_list_due, USE_BOTH_LANES);

    if (status == TL_OK && !list->stopped)
        status = walk(list, op_code, store_list_held, USE_ROWS);
    if (status == TL_OK && !list->stopped)
        status = walk(list, op_code, store_list_idle, USE_PARKED);
    return status;
}

/* The rows of one operation code, which is of one lane. */
static tl_status list_operation(struct list *list, const char *op_code)
{
    const tl_filter *f = list->filter;
    const int retry = is_retry_op(op_code);
    /* A finished row has neither a holder nor a next moment; a waiting one is F. */
    const int finished_only = f->status == 'Y' || (f->status == 'F' && !retry);
    tl_status status = TL_OK;

    if (retry && wants_open(f))
        return list_open_retry(list, op_code);
    if (f->lane != 0 && (f->lane == 'R') != retry)
        return TL_OK;
    if (!finished_only)
        status = walk(list, op_code, store_list_due, USE_ROWS);
    if (status == TL_OK && !finished_only && !list->stopped)
        status = walk(list, op_code, store_list_held, USE_ROWS);
    if (status == TL_OK && !wants_open(f) && !list->stopped)
        status = walk(list, op_code, store_list_idle, USE_ROWS);
    return status;
}

static tl_status list_operations(struct list *list)
{
    db_result operations = DB_RESULT_INIT;
    tl_status status =
        read_status(list->connection, store_operations(list->connection, &operations),
                    "reading the operations");

    for (size_t row = 0; row < operations.rows && status == TL_OK && !list->stopped;
         row++)
        if (list->filter->op == NULL ||
            op_matches(list->filter->op, db_get_text(&operations, row, 0)))
            status = list_operation(list, db_get_text(&operations, row, 0));
    db_result_free(&operations);
    return status;
}

tl_status tl_list(tl_client *client, const tl_filter *filter, tl_view_fn each,
                  void *context)
{
    struct list list = {.filter = filter, .each = each, .context = context};
    tl_status status = read_begin(client, &list.connection);

    if (status == TL_OK)
        status = filter_check(filter);
    if (status == TL_OK) {
        list.left = filter->limit > 0 ? filter->limit : LIST_DEFAULT;
        status = filter->cust != NULL ? walk(&list, NULL, customer_page, USE_ROWS)
                                      : list_operations(&list);
    }
    db_result_free(&list.row);
    read_end(client, list.connection);
    return status;
}
