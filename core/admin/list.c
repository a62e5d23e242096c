/*
 * Lists rows, those that somebody has to look at first, so that a limit cuts off what nobody has
 * to. Reads only.
 *
 * A list is a row of sources (list.h), each of which is read by an index in pages, from the last
 * row of the page before on.  So no statement reads more than a page, however large the table is: a
 * scan in one statement would make the server keep a view of the past for it.  A page says which of
 * its rows pass the filter; those are read whole, a few dozen at a time, and shown.
 *
 * Rows in process are found
 *   - in conflict, and parked, by the index `serial`,
 *   - waiting, by the moment at which their retry row is due, and
 *   - held, by the moment at which the hold ends, from the low-water mark on: finished trades keep
 *     that moment, so before the mark stand only those.  Of a busy service these are all that it
 *     finished within a hold, so who wants news reads them from the other end.
 * What is finished comes last, the latest first: by that same moment.  So do rows in process that
 * only SQL typed by hand makes.
 */
#include "admin/list.h"
#include "admin/money_read.h"

#include "client/read.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "store/bind.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define LIST_DEFAULT 100
#define PAGE_MOST 4096
/* Behind the last row that is shown, so many are looked at for one more. */
#define LOOK_BEHIND 2000

/* The next rows of one operation, of several that are merged. */
struct stream {
    const store_operation *operation;
    db_result page;
    size_t next;
    store_list_place place; /* of the page's last row */
    int is_last;
};

/* ----------------------------------------------------------------- walking -- */

/* Pages grow, so that the first rows come soon and many cost few statements. */
static void grow_page(struct list *list, size_t rows)
{
    const unsigned most = list->filter->look_most;

    list->looked_at += rows;
    if (most > 0 && list->looked_at >= most && rows > 0 && !list->stopped) {
        list_stands_at(list, &list->rows[rows - 1]);
        list->end->more = list->stopped = 1;
    }
    if (list->left == 0 && !list->stopped) {
        list->behind += (unsigned)rows;
        if (list->behind > LOOK_BEHIND)
            list->end->more = list->stopped = 1;
    }
    if (rows > 0 && list->page < PAGE_MOST)
        list->page *= 2;
    if (most > 0 && list->looked_at < most && list->page > most - list->looked_at)
        list->page = (unsigned)(most - list->looked_at);
}

static tl_status make_space(struct list *list, size_t rows)
{
    if (list->space >= rows)
        return TL_OK;
    memory_free(list->rows);
    memory_free(list->keys);
    memory_free(list->found);
    list->space = 0;
    list->rows = memory_new_array(rows, sizeof *list->rows);
    list->keys = memory_new_array(rows, sizeof *list->keys);
    list->found = memory_new_array(rows, sizeof *list->found);
    if (list->rows == NULL || list->keys == NULL || list->found == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for a page of rows");
    list->space = rows;
    return TL_OK;
}

/* Reads the page behind the place, and moves the place behind it. */
static tl_status next_page(struct list *list, const store_operation *operation,
                           store_list_place *place, db_result *page, int *is_last)
{
    const unsigned most = list->page;
    tl_status status;

    READ_REPEATED(status,
                  read_status(list->connection, list_read_page(list, operation, place, page),
                              "reading a page of rows"));
    *is_last = status != TL_OK || page->rows < most;
    if (status == TL_OK && page->rows > 0)
        list_place_of(place, page, page->rows - 1);
    return status;
}

static tl_status walk(struct list *list, const store_operation *operation)
{
    RESULT page = DB_RESULT_INIT;
    store_list_place place;
    int is_last;

    if (list->resumes)
        place = list->from;
    else
        list_place_first(list, operation, &place);
    list->resumes = 0;
    do {
        TRY(next_page(list, operation, &place, &page, &is_last));
        TRY(make_space(list, page.rows));
        for (size_t row = 0; row < page.rows; row++)
            list->rows[row] = (struct list_row){&page, row};
        TRY(list_show_rows(list, page.rows));
        grow_page(list, page.rows);
    } while (!is_last && !list->stopped);
    return TL_OK;
}

/* The next currency in which a trade has an amount; "": there is none. */
static tl_status next_currency(struct list *list)
{
    RESULT next = DB_RESULT_INIT;
    tl_status status;

    READ_REPEATED(status, read_status(list->connection,
                                      SQL_RUN(list->connection, &next, list_currency,
                                              .currency = db_text(list->currency)),
                                      "reading the currencies"));
    text_copy(list->currency, sizeof list->currency,
              status == TL_OK && next.rows > 0 ? db_get_text(&next, 0, 0) : "");
    return status;
}

/* One currency after the other, unless one is named. */
static tl_status walk_currencies(struct list *list)
{
    struct money money;
    const int is_one = (money_read(&money, list->filter->amount) && money.currency[0] != '\0') ||
                       list->filter->currency != NULL;

    text_copy(list->currency, sizeof list->currency,
              list->resumes               ? list->from.text
              : money.currency[0] != '\0' ? money.currency
                                          : list->filter->currency);
    if (list->currency[0] == '\0')
        TRY(next_currency(list));
    while (list->currency[0] != '\0') {
        list->amount_minor = money_minor(&money, list->currency);
        if (list->amount_minor >= 0)
            TRY(walk(list, NULL));
        if (list->stopped || is_one)
            break;
        TRY(next_currency(list));
    }
    return TL_OK;
}

/* ----------------------------------------------------------------- merging -- */

/* Whether the next row of a stands before that of b: it is later, or else by its operation. */
static int is_before(const struct stream *a, const struct stream *b)
{
    const int64_t a_us = db_get_int(&a->page, a->next, LIST_PLACE_US);
    const int64_t b_us = db_get_int(&b->page, b->next, LIST_PLACE_US);

    return a_us > b_us ||
           (a_us == b_us && strcmp(a->operation->op_code, b->operation->op_code) > 0);
}

static int has_next(const struct stream *stream)
{
    return stream->next < stream->page.rows;
}

static tl_status refill(struct list *list, struct stream *streams, size_t count)
{
    size_t rows = 0;

    for (size_t i = 0; i < count; i++) {
        struct stream *stream = &streams[i];

        if (!has_next(stream) && !stream->is_last) {
            TRY(next_page(list, stream->operation, &stream->place, &stream->page,
                          &stream->is_last));
            stream->next = 0;
        }
        rows += stream->page.rows;
    }
    return make_space(list, rows);
}

/* Takes rows in their order until a stream has to be read on. */
static size_t merge(struct list *list, struct stream *streams, size_t count)
{
    size_t rows = 0;

    for (;;) {
        struct stream *first = NULL;

        for (size_t i = 0; i < count; i++) {
            if (!has_next(&streams[i]) && !streams[i].is_last)
                return rows;
            if (has_next(&streams[i]) && (first == NULL || is_before(&streams[i], first)))
                first = &streams[i];
        }
        if (first == NULL)
            return rows;
        list->rows[rows++] = (struct list_row){&first->page, first->next++};
    }
}

static int are_over(const struct stream *streams, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (has_next(&streams[i]) || !streams[i].is_last)
            return 0;
    return 1;
}

static tl_status walk_streams(struct list *list, struct stream *streams, size_t count)
{
    while (!list->stopped && !are_over(streams, count)) {
        size_t rows = 0;

        TRY(refill(list, streams, count));
        rows = merge(list, streams, count);
        TRY(list_show_rows(list, rows));
        grow_page(list, rows);
    }
    return TL_OK;
}

/* Whether the source has rows under this operation code, which is of one lane. */
static int is_of_operation(const struct list *list, const char *op_code)
{
    const int retry = text_is_retry_op(op_code);
    const char lane = list->filter->lane;

    switch (list->source) {
    case LIST_LEFT:
    case LIST_HELD:
    case LIST_RECENT:
        return !retry;
    case LIST_WAITING_SYNC:
    case LIST_WAITING:
        return retry;
    default:
        return (lane == 0 || (lane == 'R') == retry) && !(retry && list->filter->in_doubt);
    }
}

static tl_status walk_operations(struct list *list)
{
    for (size_t i = 0; i < list->operation_count && !list->stopped; i++) {
        const store_operation *operation = &list->operations[i];

        if (list->resumes) {
            const int order = strcmp(operation->op_code, list->from.op_code);

            if (order < 0)
                continue;
            list->resumes = order == 0;
        }
        if (is_of_operation(list, operation->op_code))
            TRY(walk(list, operation));
    }
    list->resumes = 0;
    return TL_OK;
}

/* Where an operation's rows go on behind a row that may be another's: of two at one moment the one
 * with the greater operation stands first. */
static void place_stream(const struct list *list, struct stream *stream)
{
    const int order = strcmp(stream->operation->op_code, list->from.op_code);

    if (!list->resumes) {
        list_place_first(list, stream->operation, &stream->place);
    } else if (order == 0) {
        stream->place = list->from;
    } else {
        memset(&stream->place, 0, sizeof stream->place);
        stream->place.us = list->from.us + (order < 0);
    }
}

/* The rows of all operations, the latest first: each is read by itself, and they are merged. */
static tl_status walk_merged(struct list *list)
{
    struct stream *streams = memory_new_array(list->operation_count + 1, sizeof *streams);
    tl_status status = TL_OK;
    size_t count = 0;

    if (streams == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for listing operations");
    for (size_t i = 0; i < list->operation_count; i++)
        if (is_of_operation(list, list->operations[i].op_code)) {
            struct stream *stream = &streams[count++];

            stream->operation = &list->operations[i];
            place_stream(list, stream);
        }
    list->resumes = 0;
    status = walk_streams(list, streams, count);
    for (size_t i = 0; i < count; i++)
        db_result_free(&streams[i].page);
    memory_free(streams);
    return status;
}

static tl_status walk_source(struct list *list)
{
    if (list->source == LIST_BY_AMOUNT)
        return walk_currencies(list);
    if (list_is_latest_first(list))
        return walk_merged(list);
    return list_is_by_operation(list->source) ? walk_operations(list) : walk(list, NULL);
}

/* ------------------------------------------------------------------ a list -- */

static tl_status keep_operation(struct list *list, const store_operation *operation)
{
    if (!memory_room(&list->operations, list->operation_count, sizeof *list->operations))
        return error_set(TL_NO_MEMORY, "out of memory for listing operations");
    list->operations[list->operation_count++] = *operation;
    return TL_OK;
}

static tl_status read_operations(struct list *list)
{
    const char *wanted = list->filter->op;
    store_operation operation = {.op_code = ""};
    tl_status status;

    /* Whether the text of a search is an operation is known by them alone. */
    if ((list->search == NULL || wanted == NULL) && !list_filter_uses(list->filter, LIST_HELD) &&
        !list_filter_uses(list->filter, LIST_IDLE) &&
        !list_filter_uses(list->filter, LIST_WAITING) &&
        !list_filter_uses(list->filter, LIST_HELD_REST) &&
        !list_filter_uses(list->filter, LIST_MADE))
        return TL_OK;
    do {
        READ_REPEATED(status, read_status(list->connection,
                                          store_operation_next(list->connection, &operation),
                                          "reading the operations"));
        if (status == TL_OK && operation.op_code[0] != '\0' &&
            (wanted == NULL || list_op_matches(wanted, operation.op_code)))
            status = keep_operation(list, &operation);
    } while (status == TL_OK && operation.op_code[0] != '\0');
    return status;
}

/* Until which end of a hold a held row may be in doubt. */
static tl_status read_held_end(struct list *list)
{
    RESULT end = DB_RESULT_INIT;
    tl_status status = TL_OK;

    list->held_end_us = STRETCH_END_US;
    if (!list->filter->in_doubt || list->filter->look_most == 0 ||
        !list_filter_uses(list->filter, LIST_HELD))
        return TL_OK;
    READ_REPEATED(status, read_run(list->connection, &sql_list_doubt, &end,
                                   "reading until when held trades may be in doubt"));
    if (status == TL_OK && end.rows == 1 && !db_is_null(&end, 0, 0))
        list->held_end_us = db_get_int(&end, 0, 0);
    return status;
}

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static void prepare(struct list *list)
{
    const tl_filter *f = list->filter;
    char currency[TL_CURRENCY + 1];
    int64_t over_minor = -1;

    list->page = list->left < 240 ? list->left + 16 : 256;
    list->operation_count = 0;
    list->lane[0] = f->lane;
    list->status[0] = f->status;
    if (f->op != NULL)
        snprintf(list->retry_op, sizeof list->retry_op, "%s%s", f->op, TL_RETRY_SUFFIX);
    if (f->amount_over != NULL)
        (void)tl_amount_read(f->amount_over, f->currency, &over_minor, currency);
    list->serials = (store_serials){"", LIST_LAST_TEXT};
    if (f->serial != NULL) {
        list->serials = (store_serials){f->serial, f->serial};
    } else if (f->serial_prefix != NULL) {
        snprintf(list->last_serial, sizeof list->last_serial, "%s%s", f->serial_prefix,
                 LIST_LAST_TEXT);
        list->serials = (store_serials){f->serial_prefix, list->last_serial};
    }
    list->asked = (store_list_filter){.cust = or_empty(f->cust),
                                      .op = or_empty(f->op),
                                      .retry_op = list->retry_op,
                                      .lane = list->lane,
                                      .status = list->status,
                                      .channel = or_empty(f->channel),
                                      .log_no = or_empty(f->log_uuid),
                                      .batch = or_empty(f->batch),
                                      .channel_ref = or_empty(f->channel_ref),
                                      .amount_over = over_minor,
                                      .since_us = f->since_us,
                                      .until_us = f->until_us != 0 ? f->until_us : STRETCH_END_US,
                                      .as_of_us = f->as_of_us,
                                      .older_ms = f->older_ms,
                                      .idle_ms = f->idle_ms};
    list->resumes = f->after != NULL && list_next_read(f->after, &list->resumed, &list->from);
}

/* What passes list->filter. */
static tl_status list_filtered(struct list *list)
{
    prepare(list);
    TRY(read_operations(list));
    TRY(read_held_end(list));
    if (list->search != NULL && list->filter->op != NULL && list->search->op == NULL &&
        list->operation_count == 0)
        return TL_OK;
    for (int source = list->resumes ? (int)list->resumed : 0;
         source < LIST_SOURCES && !list->stopped; source++) {
        list->source = (enum list_source)source;
        if (list_filter_uses(list->filter, list->source))
            TRY(walk_source(list));
    }
    return TL_OK;
}

static int list_all(void *context)
{
    struct list *list = context;
    const tl_filter *search = list->search;
    const char *after = search != NULL ? search->after : NULL;
    tl_status status = TL_OK;

    if (search == NULL)
        return (int)list_filtered(list);
    list->filter = &list->part.filter;
    for (unsigned i = after != NULL ? find_goes_on(&after) : 0;
         i < FIND_KINDS && status == TL_OK && !list->stopped; i++, after = NULL) {
        list->kind = i;
        if (!find_part(&list->part, search, i))
            continue;
        list->part.filter.after = after;
        status = list_filtered(list);
    }
    return (int)status;
}

static tl_status run(struct list *list)
{
    tl_status status;

    list->left = list->filter->limit > 0 ? list->filter->limit : LIST_DEFAULT;
    if (list->is_own)
        TRY(shard_copies_read(list->connection, &list->copies));
    db_only_reads(list->connection, 1);
    status = read_and_show(list_all, list);
    db_only_reads(list->connection, 0);
    if (status != TL_OK && list->end->rows > 0)
        list->end->more = 1;
    if (list->end->more && list->has_last) {
        if (list->search != NULL)
            list->end->next[0] = (char)('a' + list->last_kind);
        list_next_write(list->end->next + (list->search != NULL), list->last_source, &list->last);
    }
    memory_free(list->operations);
    memory_free(list->rows);
    memory_free(list->keys);
    memory_free(list->found);
    db_result_free(&list->views);
    db_result_free(&list->of_work);
    return status;
}

static tl_status list_page(tl_client *client, const tl_filter *filter, int is_own, tl_view_fn each,
                           void *context, tl_list_end *end)
{
    READING at = {.client = client};
    tl_list_end *unasked = NULL;
    struct list *list;
    tl_status status = TL_OK;

    TRY(read_begin(&at));
    TRY(read_check_each(each != NULL));
    TRY(list_filter_check(filter));
    if (end != NULL && end->version != TL_LIST_END_VERSION)
        return error_set(TL_INVALID, "end was not made with TL_LIST_END_INIT");
    if (end == NULL)
        end = unasked = memory_new(sizeof *unasked);
    list = memory_new(sizeof *list);
    if (list == NULL || end == NULL) {
        status = error_set(TL_NO_MEMORY, "out of memory for a list");
    } else {
        *end = (tl_list_end){.version = TL_LIST_END_VERSION};
        list->filter = filter;
        list->is_own = is_own;
        list->search = filter->find != NULL ? filter : NULL;
        list->each = each;
        list->context = context;
        list->connection = at.connection;
        list->end = end;
        status = run(list);
    }
    memory_free(unasked);
    memory_free(list);
    return status;
}

tl_status tl_list_page(tl_client *client, const tl_filter *filter, tl_view_fn each, void *context,
                       tl_list_end *end)
{
    return list_page(client, filter, 0, each, context, end);
}

tl_status list_page_own(tl_client *client, const tl_filter *filter, tl_view_fn each, void *context,
                        tl_list_end *end)
{
    return list_page(client, filter, 1, each, context, end);
}

tl_status tl_list(tl_client *client, const tl_filter *filter, tl_view_fn each, void *context)
{
    return tl_list_page(client, filter, each, context, NULL);
}
