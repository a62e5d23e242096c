/*
 * Lists rows, those in process first, so that a limit cuts off what nobody has to look at.  Reads
 * only.
 *
 * No statement reads more than one page, however large the table is: a scan in one statement would
 * make the server keep a view of the past for it.  Rows are found
 *   - by customer, in the order of the primary key, or
 *   - by operation, in the order of the index of due work: first rows with a next moment, then
 *     rows that are merely held, then rows that nobody works on.
 *
 * Rows in process stand in the first two groups.  Finished trades keep their moment, so looking for
 * rows in process reads only the finished ones from the low-water mark on.
 *
 * A sync row without a holder has no next moment of its own, and is found through its retry row.  A
 * repeatable trade in doubt has none; it stands at a moment that is never due.  A retry row has a
 * next moment, or is parked, or is a standalone lock in doubt.  The last two stand in the third
 * group, among the closed retry rows of trades that once needed one.
 */
#include "client/read.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "store/store.h"
#include "admin/statements.h"
#include "store/view.h"

#include <tradelock/admin/trades.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define LIST_DEFAULT 100
#define LIST_PAGE 512

struct list {
    const tl_filter *filter;
    tl_view_fn each;
    void *context;
    db *connection;
    unsigned left;
    int stopped;
    /* Read once: a mark that moves between the two halves of a list would hide a row from both. */
    store_operation *operations;
    size_t operation_count, operation_space;
    int64_t low_water_us; /* of the operation that is being listed */
    db_result row;        /* the row that is shown */
    db_result of_work;    /* keys of the page's rows that the log UUID leads to */
};

/* ------------------------------------------------------------------ filter -- */

/* Whether op_code is the filter's operation, on either lane. */
static int op_matches(const char *wanted, const char *op_code)
{
    const size_t size = strlen(wanted);

    return strncmp(op_code, wanted, size) == 0 &&
           (op_code[size] == '\0' || strcmp(op_code + size, TL_RETRY_SUFFIX) == 0);
}

/* Whether only trades in process can pass. */
static int wants_open(const tl_filter *filter)
{
    return filter->status == 'P' || filter->parked || filter->in_doubt;
}

/* Whether only finished trades can pass.  A retry row that waits is F too. */
static int wants_finished(const tl_filter *filter, int retry)
{
    return filter->status == 'Y' || (filter->status == 'F' && !retry);
}

/* The first half of a list, or the second. */
enum half { HALF_OPEN, HALF_FINISHED };

static int is_open(const tl_view *view)
{
    return view->state != TL_STATE_SUCCEEDED && view->state != TL_STATE_FAILED &&
           view->state != TL_STATE_CLOSED;
}

/* Whether it is a sync row in process that neither its holder nor its retry row leads to.  Only SQL
 * typed by hand makes one. */
static int is_astray(const tl_view *view, int64_t low_water_us)
{
    if (view->status == 'P' && view->lane == 'S' && view->session_id[0] != '\0')
        return view->next_run_us != 0 && view->next_run_us < low_water_us;
    return view->status == 'P' && view->lane == 'S' && view->session_id[0] == '\0' &&
           view->next_run_us == 0 && view->parked[0] == '\0' && !view->repeatable &&
           view->retry_status != 'P';
}

static int page_row_passes(const tl_filter *f, const db_result *page, size_t row)
{
    return (f->lane == 0 || f->lane == db_get_text(page, row, LIST_LANE)[0]) &&
           (f->status == 0 || f->status == db_get_text(page, row, LIST_STATUS)[0]) &&
           (f->op == NULL || op_matches(f->op, db_get_text(page, row, LIST_OP))) &&
           (f->serial == NULL || strcmp(f->serial, db_get_text(page, row, LIST_SERIAL)) == 0) &&
           db_get_int(page, row, LIST_AGE_MS) >= f->older_ms &&
           (!f->conflict || db_get_int(page, row, LIST_CONFLICT));
}

/* Whether the row is shown.  It may have changed since its page was read; what counts is the row as
 * it is shown. */
static int view_passes(const tl_filter *f, const tl_view *view)
{
    return (f->status == 0 || f->status == view->status) &&
           (f->lane == 0 || f->lane == view->lane) &&
           (f->serial == NULL || strcmp(f->serial, view->serial_no) == 0) &&
           (view->now_us - view->updated_us) / 1000 >= f->older_ms &&
           (!f->parked || view->parked[0] != '\0') &&
           (!f->in_doubt || view->state == TL_STATE_IN_DOUBT) && (!f->conflict || view->conflict);
}

static tl_status filter_check(const tl_filter *filter)
{
    uint8_t uuid[TEXT_UUID];
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
        status = text_check_name("operation", filter->op, TL_OP_MAX - strlen(TL_RETRY_SUFFIX));
    if (status == TL_OK && filter->op != NULL && text_is_retry_op(filter->op))
        status = error_set(TL_INVALID,
                           "operation %s: name the business operation, without "
                           "%s",
                           filter->op, TL_RETRY_SUFFIX);
    if (status == TL_OK && filter->cust != NULL)
        status = text_check_name("customer", filter->cust, TL_CUST_MAX);
    if (status == TL_OK && filter->serial != NULL)
        status = text_check_name("serial number", filter->serial, TL_SERIAL_MAX);
    if (status == TL_OK && filter->log_uuid != NULL && !text_from_uuid(uuid, filter->log_uuid))
        status = error_set(TL_INVALID, "the log UUID is not a UUID as log lines and rows have it");
    return status;
}

/* --------------------------------------------------------- by log UUID -- */

/* Writes the operation code of a retry row's trade: that without "_RETRY". */
static const char *sync_op_of(char to[TL_OP_MAX + 1], const db_result *page, size_t row)
{
    text_copy(to, TL_OP_MAX + 1, db_get_text(page, row, LIST_OP));
    to[strlen(to) - strlen(TL_RETRY_SUFFIX)] = '\0';
    return to;
}

/* Whether the row is of that piece of work, or has a history that may be. */
static int may_be_of_work(const tl_filter *f, const db_result *page, size_t row)
{
    return strcasecmp(f->log_uuid, db_get_text(page, row, LIST_LOG)) == 0 ||
           strcasecmp(f->log_uuid, db_get_text(page, row, LIST_FIRST_LOG)) == 0 ||
           db_get_int(page, row, LIST_HAS_PAST);
}

/* Collects the keys of the page's rows that may be of the work, and of their retry rows' sync
 * rows. */
static size_t put_keys(const struct list *list, const db_result *page, tl_key *keys,
                       char (*sync_ops)[TL_OP_MAX + 1])
{
    size_t count = 0;

    for (size_t row = 0; row < page->rows; row++) {
        tl_key key = {.cust_no = db_get_text(page, row, LIST_CUST),
                      .serial_no = db_get_text(page, row, LIST_SERIAL),
                      .op_code = db_get_text(page, row, LIST_OP)};

        if (may_be_of_work(list->filter, page, row))
            keys[count++] = key;
        if (text_is_retry_op(key.op_code)) {
            key.op_code = sync_op_of(sync_ops[row], page, row);
            keys[count++] = key;
        }
    }
    return count;
}

/* Reads with one statement which rows of a page are of the work, however many have a history. */
static tl_status read_work(struct list *list, const db_result *page)
{
    tl_key *keys = memory_new_array(page->rows, 2 * sizeof *keys);
    char(*sync_ops)[TL_OP_MAX + 1] = memory_new_array(page->rows, sizeof *sync_ops);
    tl_status status = TL_OK;
    size_t count;

    db_result_free(&list->of_work);
    if (keys == NULL || sync_ops == NULL) {
        status = error_set(TL_NO_MEMORY, "out of memory for looking for a log UUID");
    } else if ((count = put_keys(list, page, keys, sync_ops)) > 0) {
        status = read_status(
            list->connection,
            store_log_seen(list->connection, keys, count, list->filter->log_uuid, &list->of_work),
            "looking for the log UUID in the history");
    }
    memory_free(sync_ops);
    memory_free(keys);
    return status;
}

static int is_of_work(const struct list *list, const char *cust_no, const char *serial_no,
                      const char *op_code)
{
    const db_result *keys = &list->of_work;

    if (list->filter->log_uuid == NULL)
        return 1;
    for (size_t row = 0; row < keys->rows; row++)
        if (strcmp(db_get_text(keys, row, LIST_SERIAL), serial_no) == 0 &&
            strcmp(db_get_text(keys, row, LIST_CUST), cust_no) == 0 &&
            strcmp(db_get_text(keys, row, LIST_OP), op_code) == 0)
            return 1;
    return 0;
}

/* ----------------------------------------------------------------- showing -- */

/* Which rows are shown, of those that pass the filter. */
enum which {
    ANY,
    UNHELD,   /* without a holder: the others are found by their own next moment */
    OPEN,     /* in process */
    FINISHED, /* not in process */
    ASTRAY    /* not in process, or else not found */
};

static int is_wanted(const struct list *list, const tl_view *view, enum which which)
{
    switch (which) {
    case UNHELD:
        return view->session_id[0] == '\0';
    case OPEN:
        return is_open(view);
    case FINISHED:
        return !is_open(view);
    case ASTRAY:
        return !is_open(view) || is_astray(view, list->low_water_us);
    default:
        return 1;
    }
}

static tl_status show(struct list *list, const char *cust_no, const char *serial_no,
                      const char *op_code, enum which which)
{
    view_inside inside;
    tl_view view;
    tl_status status;

    if (!is_of_work(list, cust_no, serial_no, op_code))
        return TL_OK;
    status = read_status(list->connection,
                         store_view(list->connection, cust_no, serial_no, op_code, &list->row),
                         "reading a row");

    if (status != TL_OK || list->row.rows == 0)
        return status;
    view_read(&view, &inside, &list->row, 0);
    if (!is_wanted(list, &view, which) || !view_passes(list->filter, &view))
        return TL_OK;
    if (list->each(list->context, &view) != 0 || --list->left == 0)
        list->stopped = 1;
    return TL_OK;
}

/* Shows the sync row of an open retry row. */
static tl_status show_sync_of(struct list *list, const db_result *page, size_t row)
{
    char op_code[TL_OP_MAX + 1];

    return show(list, db_get_text(page, row, LIST_CUST), db_get_text(page, row, LIST_SERIAL),
                sync_op_of(op_code, page, row), UNHELD);
}

static tl_status show_row(struct list *list, const db_result *page, size_t row, enum which which)
{
    return show(list, db_get_text(page, row, LIST_CUST), db_get_text(page, row, LIST_SERIAL),
                db_get_text(page, row, LIST_OP), which);
}

/* What is shown of a page. */
enum use {
    USE_ROWS,       /* its rows */
    USE_BOTH_LANES, /* its retry rows, and their sync rows */
    USE_PARKED,     /* the same, only of parked rows and of rows with status P */
    USE_REST,       /* the rows that HALF_OPEN did not show */
    USE_CUSTOMER_OPEN,
    USE_CUSTOMER_FINISHED
};

/* Whether the row can belong to this half, by its status alone: F may be a retry row that waits, Y
 * is finished. */
static int page_row_may_be(enum half half, const db_result *page, size_t row)
{
    const char status = db_get_text(page, row, LIST_STATUS)[0];
    const int retry = db_get_text(page, row, LIST_LANE)[0] == 'R';

    return half == HALF_OPEN ? status == 'P' || (status == 'F' && retry) : status != 'P';
}

static tl_status use_row(struct list *list, const db_result *page, size_t row, enum use use)
{
    const int parked = db_get_int(page, row, LIST_PARKED) != 0;
    tl_status status = TL_OK;

    if (use == USE_PARKED && !parked && db_get_text(page, row, LIST_STATUS)[0] != 'P')
        return TL_OK;
    if ((use == USE_BOTH_LANES || (use == USE_PARKED && parked)) && list->filter->lane != 'R')
        status = show_sync_of(list, page, row);
    if (status != TL_OK || list->stopped || !page_row_passes(list->filter, page, row))
        return status;
    switch (use) {
    case USE_REST:
        return show_row(list, page, row, ASTRAY);
    case USE_CUSTOMER_OPEN:
        return page_row_may_be(HALF_OPEN, page, row) ? show_row(list, page, row, OPEN) : TL_OK;
    case USE_CUSTOMER_FINISHED:
        return page_row_may_be(HALF_FINISHED, page, row) ? show_row(list, page, row, FINISHED)
                                                         : TL_OK;
    default:
        return show_row(list, page, row, ANY);
    }
}

static tl_status show_page(struct list *list, const db_result *page, enum use use)
{
    tl_status status =
        list->filter->log_uuid != NULL && page->rows > 0 ? read_work(list, page) : TL_OK;

    for (size_t row = 0; row < page->rows && status == TL_OK && !list->stopped; row++)
        status = use_row(list, page, row, use);
    return status;
}

/* ----------------------------------------------------------------- walking -- */

typedef db_answer (*page_fn)(db *connection, const char *op_code, const store_list_start *start,
                             unsigned limit, db_result *page);

static db_answer customer_page(db *connection, const char *op_code, const store_list_start *start,
                               unsigned limit, db_result *page)
{
    (void)op_code;
    return store_list_customer(connection, start, limit, page);
}

/* Moves the start behind the page.  If many rows share a moment or a session, the next page begins
 * there and skips those that were seen. */
static void advance(store_list_start *start, const db_result *page)
{
    const size_t last = page->rows - 1;
    const char *place;
    unsigned same = 0;

    text_copy(start->cust_no, sizeof start->cust_no, db_get_text(page, last, LIST_CUST));
    text_copy(start->serial_no, sizeof start->serial_no, db_get_text(page, last, LIST_SERIAL));
    text_copy(start->op_code, sizeof start->op_code, db_get_text(page, last, LIST_OP));
    if (page->columns <= LIST_PLACE)
        return;
    place = db_get_text(page, last, LIST_PLACE);
    while (same < page->rows && strcmp(db_get_text(page, last - same, LIST_PLACE), place) == 0)
        same++;
    if (same == page->rows && strcmp(start->place, place) == 0)
        start->skip += same;
    else
        start->skip = same;
    text_copy(start->place, sizeof start->place, place);
}

static tl_status walk_from(struct list *list, const char *op_code, store_list_start *start,
                           page_fn read, enum use use)
{
    db_result page = DB_RESULT_INIT;
    tl_status status;

    do {
        status =
            read_status(list->connection, read(list->connection, op_code, start, LIST_PAGE, &page),
                        "reading a page of rows");
        if (status == TL_OK)
            status = show_page(list, &page, use);
        if (status == TL_OK && page.rows > 0)
            advance(start, &page);
    } while (status == TL_OK && !list->stopped && page.rows == LIST_PAGE);
    db_result_free(&page);
    return status;
}

static tl_status walk(struct list *list, const char *op_code, page_fn read, enum use use)
{
    store_list_start start = {.skip = 0};

    if (list->filter->cust != NULL)
        text_copy(start.cust_no, sizeof start.cust_no, list->filter->cust);
    return walk_from(list, op_code, &start, read, use);
}

/* Lists the rows whose next moment is from_us or later, and before end_us. */
static tl_status walk_due(struct list *list, const char *op_code, int64_t from_us, int64_t end_us,
                          enum use use)
{
    store_stretch stretch = {.from_us = from_us};
    tl_status status = TL_OK;
    int empty;

    while (status == TL_OK && !list->stopped && stretch.from_us < end_us) {
        store_list_start start = {.finished = use == USE_REST,
                                  .open = use != USE_REST || end_us <= list->low_water_us};

        stretch.to_us = end_us;
        status = read_status(list->connection,
                             store_low_water_stretch(list->connection, op_code, &stretch, &empty),
                             "looking for rows");
        if (status != TL_OK || empty)
            break;
        start.end_us = stretch.to_us;
        snprintf(start.place, sizeof start.place, "%lld", (long long)stretch.from_us);
        status = walk_from(list, op_code, &start, store_list_due, use);
        stretch.from_us = stretch.to_us;
    }
    return status;
}

/* Lists the rows of a retry lane that are in process, and their sync rows. */
static tl_status list_open_retry(struct list *list, const char *op_code)
{
    tl_status status = walk_due(list, op_code, 0, STRETCH_END_US, USE_BOTH_LANES);

    if (status == TL_OK && !list->stopped)
        status = walk(list, op_code, store_list_held, USE_ROWS);
    if (status == TL_OK && !list->stopped)
        status = walk(list, op_code, store_list_idle, USE_PARKED);
    return status;
}

/* Lists what is in process under one operation code, which is of one lane. */
static tl_status list_open(struct list *list, const char *op_code)
{
    const int retry = text_is_retry_op(op_code);
    tl_status status;

    if (wants_finished(list->filter, retry) || (list->filter->lane == 'R' && !retry))
        return TL_OK;
    if (retry)
        return list_open_retry(list, op_code);
    /* First the repeatable trades in doubt, which stand at a moment that is never due. */
    status = walk_due(list, op_code, 0, 1, USE_ROWS);
    if (status == TL_OK)
        status = walk_due(list, op_code, list->low_water_us, STRETCH_END_US, USE_ROWS);
    return status == TL_OK && !list->stopped ? walk(list, op_code, store_list_held, USE_ROWS)
                                             : status;
}

static tl_status list_finished(struct list *list, const char *op_code)
{
    const char lane = list->filter->lane;
    const int retry = text_is_retry_op(op_code);
    tl_status status = TL_OK;

    if (lane != 0 && (lane == 'R') != retry)
        return TL_OK;
    if (!retry)
        status = walk_due(list, op_code, 1, list->low_water_us, USE_REST);
    if (status == TL_OK && !retry)
        status = walk_due(list, op_code, list->low_water_us, STRETCH_END_US, USE_REST);
    return status == TL_OK && !list->stopped ? walk(list, op_code, store_list_idle, USE_REST)
                                             : status;
}

static tl_status list_half(struct list *list, enum half half)
{
    tl_status status = TL_OK;

    for (size_t i = 0; i < list->operation_count && status == TL_OK && !list->stopped; i++) {
        const char *op_code = list->operations[i].op_code;

        list->low_water_us = list->operations[i].low_water_us;
        status = half == HALF_OPEN ? list_open(list, op_code) : list_finished(list, op_code);
    }
    return status;
}

static tl_status keep_operation(struct list *list, const store_operation *operation)
{
    if (list->operation_count == list->operation_space) {
        size_t space = list->operation_space == 0 ? 16 : list->operation_space * 2;
        store_operation *larger = memory_resize(list->operations, space * sizeof *larger);

        if (larger == NULL)
            return error_set(TL_NO_MEMORY, "out of memory for listing operations");
        list->operations = larger;
        list->operation_space = space;
    }
    list->operations[list->operation_count++] = *operation;
    return TL_OK;
}

static tl_status read_operations(struct list *list)
{
    const char *wanted = list->filter->op;
    store_operation operation = {.op_code = ""};
    tl_status status;

    do {
        status = read_status(list->connection, store_operation_next(list->connection, &operation),
                             "reading the operations");
        if (status == TL_OK && operation.op_code[0] != '\0' &&
            (wanted == NULL || op_matches(wanted, operation.op_code)))
            status = keep_operation(list, &operation);
    } while (status == TL_OK && operation.op_code[0] != '\0');
    return status;
}

static tl_status list_operations(struct list *list)
{
    tl_status status = read_operations(list);

    if (status == TL_OK)
        status = list_half(list, HALF_OPEN);
    if (status == TL_OK && !list->stopped && !wants_open(list->filter))
        status = list_half(list, HALF_FINISHED);
    memory_free(list->operations);
    return status;
}

static tl_status list_customer(struct list *list)
{
    tl_status status = walk(list, NULL, customer_page, USE_CUSTOMER_OPEN);

    return status == TL_OK && !list->stopped && !wants_open(list->filter)
               ? walk(list, NULL, customer_page, USE_CUSTOMER_FINISHED)
               : status;
}

static int list_all(void *context)
{
    struct list *list = context;

    return (int)(list->filter->cust != NULL ? list_customer(list) : list_operations(list));
}

tl_status tl_list(tl_client *client, const tl_filter *filter, tl_view_fn each, void *context)
{
    struct list list = {.filter = filter, .each = each, .context = context};
    tl_status status = read_begin(client, &list.connection);

    if (status == TL_OK)
        status = read_check_each(each != NULL);
    if (status == TL_OK)
        status = filter_check(filter);
    if (status == TL_OK) {
        list.left = filter->limit > 0 ? filter->limit : LIST_DEFAULT;
        status = read_and_show(client, list.connection, list_all, &list);
    }
    db_result_free(&list.row);
    db_result_free(&list.of_work);
    read_end(client, list.connection);
    return status;
}
