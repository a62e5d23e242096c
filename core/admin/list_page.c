/* Where each source of a list begins, and its pages, each read by an index.  Reads only. */
#include "admin/list.h"

#include "base/text.h"
#include "store/bind.h"

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

#define FIRST_SESSION "00000000-0000-0000-0000-000000000000"

static db_answer read_recent(const struct list *list, const store_list_filter *asked,
                             const store_list_place *after, const char *op_code, int64_t from_us,
                             db_result *rows)
{
    return SQL_RUN(list->connection, rows, list_recent, LIST_FILTER(asked),
                   .due_op = db_text(op_code), .from_us = db_int(from_us),
                   .after_us = db_int(after->us), .after_text = db_text(after->text),
                   LIST_AFTER_KEY(after), .most = db_uint(list->page));
}

static db_answer read_due(const struct list *list, const store_list_filter *asked,
                          const store_list_place *after, const char *op_code, int64_t end_us,
                          db_result *rows)
{
    return SQL_RUN(list->connection, rows, list_due, LIST_FILTER(asked), .due_op = db_text(op_code),
                   .end_us = db_int(end_us), .after_us = db_int(after->us),
                   .after_text = db_text(after->text), LIST_AFTER_KEY(after),
                   .most = db_uint(list->page));
}

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

int list_is_latest_first(const struct list *list)
{
    return list->source == LIST_RECENT ||
           (list->source == LIST_HELD && list->filter->newest_first && !list->filter->in_doubt);
}

/* A hold ends after its trade was made. */
static int64_t held_from(const struct list *list, const store_operation *operation)
{
    const int64_t low_water_us = operation != NULL ? operation->low_water_us : 0;

    return list->asked.since_us > low_water_us ? list->asked.since_us : low_water_us;
}

/* The sources that are read by a name. */
static db_answer read_named(const struct list *list, const store_list_filter *asked,
                            const store_list_place *after, db_result *rows)
{
    const tl_filter *f = list->filter;
    const db_value after_op = db_text(after->op_code), most = db_uint(list->page);
    db *connection = list->connection;

    switch (list->source) {
    case LIST_BY_REF:
        return SQL_RUN(connection, rows, list_ref, LIST_FILTER(asked), LIST_AFTER_KEY(after),
                       .after_op = after_op, .most = most);
    case LIST_BY_LABEL:
        return SQL_RUN(connection, rows, list_label, LIST_FILTER(asked), .label = db_text(f->label),
                       LIST_AFTER_KEY(after), .after_op = after_op, .most = most);
    case LIST_BY_TRACE:
        return SQL_RUN(connection, rows, list_trace, LIST_FILTER(asked), .trace = db_text(f->trace),
                       .after_text = db_text(after->text), LIST_AFTER_KEY(after),
                       .after_op = after_op, .most = most);
    case LIST_BY_AMOUNT:
        return SQL_RUN(connection, rows, list_amount, LIST_FILTER(asked),
                       .currency = db_text(list->currency), .amount = db_int(list->amount_minor),
                       .after_us = db_int(after->us), LIST_AFTER_KEY(after), .after_op = after_op,
                       .most = most);
    default:
        return SQL_RUN(connection, rows, list_batch, LIST_FILTER(asked), LIST_AFTER_KEY(after),
                       .after_op = after_op, .most = most);
    }
}

db_answer list_read_page(const struct list *list, const store_operation *operation,
                         const store_list_place *after, db_result *rows)
{
    const store_list_filter asked = asked_of(list);
    const char *op_code = operation != NULL ? operation->op_code : "";
    db *connection = list->connection;

    switch (list->source) {
    case LIST_CONFLICT:
    case LIST_BY_SERIAL:
        return SQL_RUN(connection, rows, list_serial, LIST_FILTER(&asked),
                       .conflict = db_int(list->source == LIST_CONFLICT),
                       .first_serial = db_text(list->serials.first),
                       .last_serial = db_text(list->serials.last), LIST_AFTER_KEY(after),
                       .after_op = db_text(after->op_code), .most = db_uint(list->page));
    case LIST_CONFLICT_PARKED:
    case LIST_PARKED_SYNC:
    case LIST_PARKED:
        return SQL_RUN(connection, rows, list_parked, LIST_FILTER(&asked),
                       .conflict = db_int(list->source == LIST_CONFLICT_PARKED),
                       .first_serial = db_text(list->serials.first),
                       .last_serial = db_text(list->serials.last),
                       .after_text = db_text(after->text), LIST_AFTER_KEY(after),
                       .after_op = db_text(after->op_code), .most = db_uint(list->page));
    case LIST_HELD_REST:
        return SQL_RUN(connection, rows, list_held, LIST_FILTER(&asked), .due_op = db_text(op_code),
                       .after_text = db_text(after->text), LIST_AFTER_KEY(after),
                       .most = db_uint(list->page));
    case LIST_RECENT:
        return read_recent(list, &asked, after, op_code, list->asked.since_us, rows);
    case LIST_IDLE:
        return SQL_RUN(connection, rows, list_idle, LIST_FILTER(&asked), .due_op = db_text(op_code),
                       LIST_AFTER_KEY(after), .most = db_uint(list->page));
    case LIST_MADE:
        return SQL_RUN(connection, rows, list_made, LIST_FILTER(&asked),
                       .after_us = db_int(after->us), LIST_AFTER_KEY(after),
                       .after_op = db_text(after->op_code), .most = db_uint(list->page));
    case LIST_HELD:
        if (list_is_latest_first(list))
            return read_recent(list, &asked, after, op_code, held_from(list, operation), rows);
        return read_due(list, &asked, after, op_code, list->held_end_us, rows);
    case LIST_CUSTOMER_OPEN:
    case LIST_CUSTOMER_REST:
        return SQL_RUN(connection, rows, list_customer, LIST_FILTER(&asked), LIST_AFTER_KEY(after),
                       .after_op = db_text(after->op_code), .most = db_uint(list->page));
    case LIST_BY_REF:
    case LIST_BY_LABEL:
    case LIST_BY_TRACE:
    case LIST_BY_AMOUNT:
    case LIST_BATCH_OPEN:
    case LIST_BATCH_REST:
        return read_named(list, &asked, after, rows);
    default:
        return read_due(list, &asked, after, op_code,
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

void list_place_first(const struct list *list, const store_operation *operation,
                      store_list_place *place)
{
    memset(place, 0, sizeof *place);
    switch (list->source) {
    case LIST_CONFLICT:
    case LIST_BY_SERIAL:
    case LIST_BY_REF:
    case LIST_BY_LABEL:
    case LIST_BATCH_OPEN:
    case LIST_BATCH_REST:
        text_copy(place->serial_no, sizeof place->serial_no, LIST_LAST_TEXT);
        break;
    case LIST_BY_AMOUNT:
        place->us = list->asked.until_us;
        text_copy(place->cust_no, sizeof place->cust_no, LIST_LAST_TEXT);
        break;
    case LIST_BY_TRACE:
    case LIST_CONFLICT_PARKED:
    case LIST_PARKED_SYNC:
    case LIST_PARKED:
        text_copy(place->text, sizeof place->text, LIST_LAST_TEXT);
        break;
    case LIST_HELD:
        place->us = list_is_latest_first(list) ? STRETCH_END_US : operation->low_water_us;
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
        text_copy(place->serial_no, sizeof place->serial_no, LIST_LAST_TEXT);
        break;
    default:
        break;
    }
}
