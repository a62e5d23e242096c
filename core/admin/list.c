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

#include "client/read.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "store/bind.h"
#include "store/view.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The values of list_columns. */
#define LIST_FILTER(f)                                                                             \
    .cust = db_text((f)->cust), .op = db_text((f)->op), .retry_op = db_text((f)->retry_op),        \
    .lane = db_text((f)->lane), .status = db_text((f)->status), .channel = db_text((f)->channel),  \
    .batch = db_text((f)->batch), .channel_ref = db_text((f)->channel_ref),                        \
    .log_no = db_text((f)->log_no), .amount_over = db_int((f)->amount_over),                       \
    .since_us = db_int((f)->since_us), .until_us = db_int((f)->until_us),                          \
    .as_of_us = db_int((f)->as_of_us), .older_ms = db_int((f)->older_ms),                          \
    .idle_ms = db_int((f)->idle_ms)
#define LIST_AFTER_KEY(place)                                                                      \
    .after_cust = db_text((place)->cust_no), .after_serial = db_text((place)->serial_no)

static db_answer store_list_recent(db *connection, const store_list_page *page, const char *op_code,
                                   int64_t from_us, db_result *result)
{
    return SQL_RUN(connection, result, list_recent, LIST_FILTER(page->filter),
                   .due_op = db_text(op_code), .from_us = db_int(from_us),
                   .after_us = db_int(page->after->us), .after_text = db_text(page->after->text),
                   LIST_AFTER_KEY(page->after), .most = db_uint(page->most));
}

static db_answer store_list_due(db *connection, const store_list_page *page, const char *op_code,
                                int64_t end_us, db_result *result)
{
    return SQL_RUN(connection, result, list_due, LIST_FILTER(page->filter),
                   .due_op = db_text(op_code), .end_us = db_int(end_us),
                   .after_us = db_int(page->after->us), .after_text = db_text(page->after->text),
                   LIST_AFTER_KEY(page->after), .most = db_uint(page->most));
}

#define LIST_DEFAULT 100
#define PAGE_MOST 4096
/* Behind the last row that is shown, so many are looked at for one more. */
#define LOOK_BEHIND 2000

#define FIRST_SESSION "00000000-0000-0000-0000-000000000000"
/* After every key and every reason. */
#define LAST_TEXT "\x7f"

/* The next rows of one operation, of several that are merged. */
struct stream {
    const store_operation *operation;
    db_result page;
    size_t next;
    store_list_place place; /* of the page's last row */
    int is_last;
};

/* ----------------------------------------------------------------- walking -- */

/* What a page asks of its rows.  A retry row knows neither state, amount nor age of the sync row to
 * which it leads; nor does a row know what it was. */
static store_list_filter asked_of(const struct list *list)
{
    store_list_filter asked = list->asked;

    if (!list_is_of_sync(list->source) && list->filter->as_of_us == 0)
        return asked;
    asked.status = "";
    asked.older_ms = asked.idle_ms = 0;
    if (!list_is_of_sync(list->source))
        return asked;
    asked.lane = asked.channel = asked.log_no = asked.batch = asked.channel_ref = "";
    asked.amount_over = -1;
    asked.since_us = 0;
    asked.until_us = STRETCH_END_US;
    return asked;
}

static int is_latest_first(const struct list *list)
{
    return list->source == LIST_RECENT ||
           (list->source == LIST_HELD && list->filter->newest_first && !list->filter->in_doubt);
}

/* A hold ends after its trade was made. */
static int64_t held_from(const struct list *list, const store_operation *operation)
{
    return list->asked.since_us > operation->low_water_us ? list->asked.since_us
                                                          : operation->low_water_us;
}

static db_answer read_page(struct list *list, const store_operation *operation,
                           const store_list_place *after, db_result *rows)
{
    const store_list_filter asked = asked_of(list);
    const store_list_page page = {&asked, after, list->page};
    const char *op_code = operation != NULL ? operation->op_code : "";
    db *connection = list->connection;

    switch (list->source) {
    case LIST_CONFLICT:
    case LIST_BY_SERIAL:
        return SQL_RUN(connection, rows, list_serial, LIST_FILTER(page.filter),
                       .conflict = db_int(list->source == LIST_CONFLICT),
                       .first_serial = db_text(list->serials.first),
                       .last_serial = db_text(list->serials.last), LIST_AFTER_KEY(page.after),
                       .after_op = db_text(page.after->op_code), .most = db_uint(page.most));
    case LIST_CONFLICT_PARKED:
    case LIST_PARKED_SYNC:
    case LIST_PARKED:
        return SQL_RUN(connection, rows, list_parked, LIST_FILTER(page.filter),
                       .conflict = db_int(list->source == LIST_CONFLICT_PARKED),
                       .first_serial = db_text(list->serials.first),
                       .last_serial = db_text(list->serials.last),
                       .after_text = db_text(page.after->text), LIST_AFTER_KEY(page.after),
                       .after_op = db_text(page.after->op_code), .most = db_uint(page.most));
    case LIST_HELD_REST:
        return SQL_RUN(connection, rows, list_held, LIST_FILTER(page.filter),
                       .due_op = db_text(op_code), .after_text = db_text(page.after->text),
                       LIST_AFTER_KEY(page.after), .most = db_uint(page.most));
    case LIST_RECENT:
        return store_list_recent(connection, &page, op_code, list->asked.since_us, rows);
    case LIST_IDLE:
        return SQL_RUN(connection, rows, list_idle, LIST_FILTER(page.filter),
                       .due_op = db_text(op_code), LIST_AFTER_KEY(page.after),
                       .most = db_uint(page.most));
    case LIST_MADE:
        return SQL_RUN(connection, rows, list_made, LIST_FILTER(page.filter),
                       .after_us = db_int(page.after->us), LIST_AFTER_KEY(page.after),
                       .after_op = db_text(page.after->op_code), .most = db_uint(page.most));
    case LIST_HELD:
        if (is_latest_first(list))
            return store_list_recent(connection, &page, op_code, held_from(list, operation), rows);
        return store_list_due(connection, &page, op_code, list->held_end_us, rows);
    case LIST_CUSTOMER_OPEN:
    case LIST_CUSTOMER_REST:
        return SQL_RUN(connection, rows, list_customer, LIST_FILTER(page.filter),
                       LIST_AFTER_KEY(page.after), .after_op = db_text(page.after->op_code),
                       .most = db_uint(page.most));
    case LIST_BY_REF:
        return SQL_RUN(connection, rows, list_ref, LIST_FILTER(page.filter),
                       LIST_AFTER_KEY(page.after), .after_op = db_text(page.after->op_code),
                       .most = db_uint(page.most));
    case LIST_BATCH_OPEN:
    case LIST_BATCH_REST:
        return SQL_RUN(connection, rows, list_batch, LIST_FILTER(page.filter),
                       LIST_AFTER_KEY(page.after), .after_op = db_text(page.after->op_code),
                       .most = db_uint(page.most));
    default:
        return store_list_due(connection, &page, op_code,
                              list->source == LIST_LEFT ? 1 : STRETCH_END_US, rows);
    }
}

/* Before which moment a row was made that passes: it has not changed before. */
static int64_t made_before(const struct list *list)
{
    const store_list_filter *f = &list->asked;
    const int64_t ms = f->idle_ms > f->older_ms ? f->idle_ms : f->older_ms;
    const int64_t us = list->operation_count > 0 && ms > 0
                           ? list->operations[0].now_us - ms * 1000 + 1
                           : INT64_MAX;

    return us < f->until_us ? us : f->until_us;
}

/* The place before the source's first row. */
static void place_first(const struct list *list, const store_operation *operation,
                        store_list_place *place)
{
    memset(place, 0, sizeof *place);
    switch (list->source) {
    case LIST_CONFLICT:
    case LIST_BY_SERIAL:
    case LIST_BY_REF:
    case LIST_BATCH_OPEN:
    case LIST_BATCH_REST:
        text_copy(place->serial_no, sizeof place->serial_no, LAST_TEXT);
        break;
    case LIST_CONFLICT_PARKED:
    case LIST_PARKED_SYNC:
    case LIST_PARKED:
        text_copy(place->text, sizeof place->text, LAST_TEXT);
        break;
    case LIST_HELD:
        place->us = is_latest_first(list) ? STRETCH_END_US : operation->low_water_us;
        break;
    case LIST_HELD_REST:
        text_copy(place->text, sizeof place->text, FIRST_SESSION);
        break;
    case LIST_RECENT:
        place->us = STRETCH_END_US;
        break;
    case LIST_MADE:
        place->us = made_before(list);
        break;
    case LIST_CUSTOMER_OPEN:
    case LIST_CUSTOMER_REST:
        text_copy(place->cust_no, sizeof place->cust_no, list->filter->cust);
        text_copy(place->serial_no, sizeof place->serial_no, LAST_TEXT);
        break;
    default:
        break;
    }
}

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

    READ_REPEATED(status, read_status(list->connection, read_page(list, operation, place, page),
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
        place_first(list, operation, &place);
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
        place_first(list, stream->operation, &stream->place);
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
    if (is_latest_first(list))
        return walk_merged(list);
    return list_is_by_operation(list->source) ? walk_operations(list) : walk(list, NULL);
}

static int list_all(void *context)
{
    struct list *list = context;
    const int from = list->resumes ? (int)list->resumed : 0;
    tl_status status = TL_OK;

    for (int source = from; source < LIST_SOURCES && status == TL_OK && !list->stopped; source++) {
        list->source = (enum list_source)source;
        if (list_filter_uses(list->filter, list->source))
            status = walk_source(list);
    }
    return (int)status;
}

/* ------------------------------------------------------------------ a list -- */

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

    if (!list_filter_uses(list->filter, LIST_HELD) && !list_filter_uses(list->filter, LIST_IDLE) &&
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
    db_result end = DB_RESULT_INIT;
    tl_status status = TL_OK;

    list->held_end_us = STRETCH_END_US;
    if (!list->filter->in_doubt || list->filter->look_most == 0 ||
        !list_filter_uses(list->filter, LIST_HELD))
        return TL_OK;
    READ_REPEATED(status, read_run(list->connection, &sql_list_doubt, &end,
                                   "reading until when held trades may be in doubt"));
    if (status == TL_OK && end.rows == 1 && !db_is_null(&end, 0, 0))
        list->held_end_us = db_get_int(&end, 0, 0);
    db_result_free(&end);
    return status;
}

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static void prepare(struct list *list)
{
    const tl_filter *f = list->filter;

    list->left = f->limit > 0 ? f->limit : LIST_DEFAULT;
    list->page = list->left < 240 ? list->left + 16 : 256;
    list->lane[0] = f->lane;
    list->status[0] = f->status;
    if (f->op != NULL)
        snprintf(list->retry_op, sizeof list->retry_op, "%s%s", f->op, TL_RETRY_SUFFIX);
    list->serials = (store_serials){"", LAST_TEXT};
    if (f->serial != NULL) {
        list->serials = (store_serials){f->serial, f->serial};
    } else if (f->serial_prefix != NULL) {
        snprintf(list->last_serial, sizeof list->last_serial, "%s%s", f->serial_prefix, LAST_TEXT);
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
                                      .amount_over = f->amount_over > 0 ? f->amount_over : -1,
                                      .since_us = f->since_us,
                                      .until_us = f->until_us != 0 ? f->until_us : STRETCH_END_US,
                                      .as_of_us = f->as_of_us,
                                      .older_ms = f->older_ms,
                                      .idle_ms = f->idle_ms};
    list->resumes = f->after != NULL && list_next_read(f->after, &list->resumed, &list->from);
}

static tl_status run(tl_client *client, struct list *list)
{
    tl_status status;

    prepare(list);
    db_only_reads(list->connection, 1);
    status = read_operations(list);
    if (status == TL_OK)
        status = read_held_end(list);
    if (status == TL_OK)
        status = read_and_show(client, list->connection, list_all, list);
    db_only_reads(list->connection, 0);
    if (status != TL_OK && list->end->rows > 0)
        list->end->more = 1;
    if (list->end->more && list->has_last)
        list_next_write(list->end->next, list->last_source, &list->last);
    memory_free(list->operations);
    memory_free(list->rows);
    memory_free(list->keys);
    memory_free(list->found);
    db_result_free(&list->views);
    db_result_free(&list->of_work);
    return status;
}

tl_status tl_list_page(tl_client *client, const tl_filter *filter, tl_view_fn each, void *context,
                       tl_list_end *end)
{
    tl_list_end *unasked = NULL;
    struct list *list = memory_new(sizeof *list);
    db *connection = NULL;
    tl_status status = read_begin(client, &connection);

    if (end == NULL)
        end = unasked = memory_new(sizeof *unasked);
    if (status == TL_OK)
        status = read_check_each(each != NULL);
    if (status == TL_OK)
        status = list_filter_check(filter);
    if (status == TL_OK && (list == NULL || end == NULL))
        status = error_set(TL_NO_MEMORY, "out of memory for a list");
    if (status == TL_OK && unasked == NULL && end->version != TL_LIST_END_VERSION)
        status = error_set(TL_INVALID, "end was not made with TL_LIST_END_INIT");
    if (status == TL_OK) {
        *end = (tl_list_end){.version = TL_LIST_END_VERSION};
        list->filter = filter;
        list->each = each;
        list->context = context;
        list->connection = connection;
        list->end = end;
        status = run(client, list);
    }
    memory_free(unasked);
    memory_free(list);
    read_end(client, connection);
    return status;
}

tl_status tl_list(tl_client *client, const tl_filter *filter, tl_view_fn each, void *context)
{
    return tl_list_page(client, filter, each, context, NULL);
}
