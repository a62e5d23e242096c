/*
 * Lists what operators did, the latest first, page by page, by index; and the rows of an act.  A
 * page is read whole from the tables that tell acts, and says which of its acts pass the filter.
 * Reads only.
 */
#include "admin/list.h"

#include "base/memory.h"
#include "client/read.h"

#include "base/error.h"
#include "base/text.h"
#include "store/bind.h"
#include "store/record.h"
#include "store/rows.h"

#include "sql_text.h"

#include <tradelock/admin/acts.h>

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACTS_TIE_MAX 191
/* Behind which act a page starts. */
typedef struct store_acts_place {
    int64_t us;
    char origin[2], tie[ACTS_TIE_MAX + 1];
} store_acts_place;

static db_answer store_evidence_known(db *connection, const tl_payment *payments, size_t first,
                                      size_t count, db_result *result)
{
    struct sql_evidence_known_row *values = memory_new_array(count, sizeof *values);
    const store_rows rows = {.rows = (const db_value *)values, .count = count};
    db_answer answer;

    if (values == NULL)
        return DB_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        values[i] = SQL_ROW(
            evidence_known, .number = db_uint(first + i), .cust_no = db_ascii(payments[i].cust_no),
            .serial_no = db_ascii(payments[i].serial_no), .op_code = db_ascii(payments[i].op_code),
            .channel_key = db_ascii(payments[i].channel_key),
            .channel_ref = db_text(payments[i].channel_ref),
            .amount_minor =
                payments[i].amount.is_told ? db_int(payments[i].amount.amount_minor) : db_null(),
            .currency = db_ascii(payments[i].amount.currency));
    answer = store_run_rows(connection, &sql_evidence_known, &rows, result);
    memory_free(values);
    return answer;
}

#define PAGE_ROWS 256
#define LIMIT_DEFAULT 100
#define NAME_MAX_BYTES 384
#define PAYMENTS 64

/* ------------------------------------------------------------------- place -- */

/* "1795175922322971.a.tie": the moment, the table, and what orders acts of one moment. */
static void write_next(char next[TL_NEXT_TEXT], const store_acts_place *place)
{
    char *end = next + sprintf(next, "%" PRId64, place->us);

    _Static_assert(21 + 4 + 1 + 3 * ACTS_TIE_MAX < TL_NEXT_TEXT,
                   "there is room for every byte as three");
    end = list_next_put(end, place->origin);
    list_next_put(end, place->tie);
}

static int read_next(const char *next, store_acts_place *place)
{
    char *end;

    if (next[0] < '0' || next[0] > '9')
        return 0;
    place->us = strtoll(next, &end, 10);
    next = list_next_take(end, place->origin, sizeof place->origin);
    next = list_next_take(next, place->tie, sizeof place->tie);
    return next != NULL && *next == '\0' && place->us <= STRETCH_END_US;
}

/* -------------------------------------------------------------------- acts -- */

struct acts {
    const tl_act_filter *filter;
    tl_act_fn each;
    void *context;
    char *next;
    db *connection;
    store_acts_place place;
    unsigned left;
    int stopped; /* by each(), or at the limit */
};

#define AT(member) COLUMN_acts_##member

static void show(struct acts *list, const db_result *result, size_t row)
{
    tl_act_view act, *to = &act;

    TL_ACT_MAP(RECORD_READ)
    list->left--;
    if (list->each(list->context, &act) != 0)
        list->stopped = 1;
}

#undef AT

/* One that passes and finds no room any more tells that there are more. */
static void show_page(struct acts *list, const db_result *r)
{
    for (size_t row = 0; row < r->rows && !list->stopped; row++) {
        const int passes = db_get_int(r, row, COLUMN_acts_passes) != 0;

        if (passes && list->left == 0) {
            list->stopped = 1;
            break;
        }
        list->place.us = db_get_int(r, row, COLUMN_acts_begun_us);
        text_copy(list->place.origin, sizeof list->place.origin,
                  db_get_text(r, row, COLUMN_acts_origin));
        text_copy(list->place.tie, sizeof list->place.tie, db_get_text(r, row, COLUMN_acts_tie));
        if (passes)
            show(list, r, row);
    }
    if (list->stopped && list->next != NULL)
        write_next(list->next, &list->place);
}

static int list_all(void *context)
{
    struct acts *list = context;
    RESULT r = DB_RESULT_INIT;
    tl_status status;

    do {
        status = read_status(
            list->connection,
            SQL_RUN(list->connection, &r, acts, .since_us = db_int(list->filter->since_us),
                    .person = db_text(list->filter->by != NULL ? list->filter->by : ""),
                    .after_us = db_int(list->place.us), .after_origin = db_text(list->place.origin),
                    .after_tie = db_text(list->place.tie), .most = db_uint(PAGE_ROWS)),
            "reading what operators did");
        if (status == TL_OK)
            show_page(list, &r);
    } while (status == TL_OK && !list->stopped && r.rows == PAGE_ROWS);
    return (int)status;
}

static tl_status check(const tl_act_filter *filter, store_acts_place *place)
{
    if (filter == NULL || filter->version != TL_ACT_FILTER_VERSION)
        return error_set(TL_INVALID, "the filter is NULL or its version is not set");
    if (filter->since_us < 0 || filter->since_us > STRETCH_END_US)
        return error_set(TL_INVALID, "a moment lies between the years 1970 and 9998");
    if (filter->by != NULL && (filter->by[0] == '\0' || strlen(filter->by) > NAME_MAX_BYTES ||
                               text_check_utf8("the account's name", filter->by) != TL_OK))
        return error_set(TL_INVALID, "acts are by an account, named without its host");
    if (filter->after != NULL && !read_next(filter->after, place))
        return error_set(TL_INVALID, "the place to go on from is not one that a list of acts ended "
                                     "with");
    return TL_OK;
}

tl_status tl_act_list(tl_client *client, const tl_act_filter *filter, tl_act_fn each, void *context,
                      char *next)
{
    struct acts list = {.filter = filter,
                        .each = each,
                        .context = context,
                        .next = next,
                        .place = {.us = STRETCH_END_US}};
    READING at = {.client = client};

    TRY(read_begin(&at));
    TRY(read_check_each(each != NULL));
    TRY(check(filter, &list.place));
    if (next != NULL)
        next[0] = '\0';
    list.connection = at.connection;
    list.left = filter->limit > 0 ? filter->limit : LIMIT_DEFAULT;
    return read_and_show(list_all, &list);
}

/* -------------------------------------------------------------------- rows -- */

struct rows {
    uint64_t act_no, after;
    unsigned left;
    tl_acted_fn each;             /* or */
    tl_proposed_fn each_proposal; /* of all rows */
    void *context;
    db *connection;
};

#define AT(member) COLUMN_act_rows_##member

static int show_rows(struct rows *list, const db_result *result)
{
    for (size_t row = 0; row < result->rows; row++) {
        tl_act_row one, *to = &one;

        TL_ACT_ROW_MAP(RECORD_READ)
        list->after = one.row_no;
        list->left--;
        if (list->each(list->context, &one) != 0)
            return 1;
    }
    return 0;
}

#undef AT

#define AT(member) COLUMN_act_proposals_##member

static int show_proposals(struct rows *list, const db_result *result)
{
    for (size_t row = 0; row < result->rows; row++) {
        tl_proposed one, *to = &one;

        TL_PROPOSED_MAP(RECORD_READ)
        one.stands = one.stands && !one.confirmed;
        list->after = one.row_no;
        if (list->each_proposal(list->context, &one) != 0)
            return 1;
    }
    return 0;
}

#undef AT

static db_answer read_rows(const struct rows *list, unsigned most, db_result *r)
{
    return list->each != NULL
               ? SQL_RUN(list->connection, r, act_rows, .act_no = db_uint(list->act_no),
                         .after_row = db_uint(list->after), .most = db_uint(most))
               : SQL_RUN(list->connection, r, act_proposals, .act_no = db_uint(list->act_no),
                         .after_row = db_uint(list->after), .most = db_uint(most));
}

static int rows_all(void *context)
{
    struct rows *list = context;
    RESULT r = DB_RESULT_INIT;
    tl_status status = TL_OK;
    int stopped = 0;

    while (status == TL_OK && !stopped && list->left > 0) {
        const unsigned most = list->left < PAGE_ROWS ? list->left : PAGE_ROWS;

        status =
            read_status(list->connection, read_rows(list, most, &r), "reading the rows of an act");
        if (status == TL_OK)
            stopped = (list->each != NULL ? show_rows(list, &r) : show_proposals(list, &r)) ||
                      r.rows < most;
    }
    return (int)status;
}

static tl_status list_rows(tl_client *client, struct rows *list)
{
    READING at = {.client = client};

    TRY(read_begin(&at));
    TRY(read_check_each(list->each != NULL || list->each_proposal != NULL));
    list->connection = at.connection;
    return read_and_show(rows_all, list);
}

tl_status tl_act_row_list(tl_client *client, uint64_t act_no, uint64_t after_row, unsigned limit,
                          tl_acted_fn each, void *context)
{
    struct rows list = {.act_no = act_no,
                        .after = after_row,
                        .left = limit > 0 ? limit : LIMIT_DEFAULT,
                        .each = each,
                        .context = context};

    return list_rows(client, &list);
}

tl_status tl_proposed_list(tl_client *client, uint64_t act_no, tl_proposed_fn each, void *context)
{
    struct rows list = {
        .act_no = act_no, .left = UINT_MAX, .each_proposal = each, .context = context};

    return list_rows(client, &list);
}

/* ---------------------------------------------------------------- payments -- */

struct paid {
    const tl_payment *payments;
    size_t count;
    tl_paid_fn each;
    void *context;
    db *connection;
};

static int show_paid(const struct paid *list, const db_result *r)
{
    for (size_t row = 0; row < r->rows; row++) {
        const char *status = db_get_text(r, row, COLUMN_evidence_known_status);
        const tl_payment_view one = {
            .number = (size_t)db_get_uint(r, row, COLUMN_evidence_known_number),
            .fence = db_get_uint(r, row, COLUMN_evidence_known_fence),
            .status = status[0] != '\0' ? status[0] : ' ',
            .epoch = (uint32_t)db_get_uint(r, row, COLUMN_evidence_known_epoch),
            .contradicts = db_get_int(r, row, COLUMN_evidence_known_contradicts) != 0,
            .known = db_get_int(r, row, COLUMN_evidence_known_filed) ||
                     (status[0] == 'Y' && !db_get_int(r, row, COLUMN_evidence_known_contradicts)),
            .amount_minor = db_get_int(r, row, COLUMN_evidence_known_amount_minor),
            .currency = db_get_text(r, row, COLUMN_evidence_known_currency),
        };

        if (list->each(list->context, &one) != 0)
            return 1;
    }
    return 0;
}

static int paid_all(void *context)
{
    const struct paid *list = context;
    RESULT r = DB_RESULT_INIT;
    tl_status status = TL_OK;

    for (size_t first = 0; status == TL_OK && first < list->count; first += PAYMENTS) {
        const size_t count = list->count - first < PAYMENTS ? list->count - first : PAYMENTS;

        status = read_status(
            list->connection,
            store_evidence_known(list->connection, list->payments + first, first, count, &r),
            "looking payments up");
        if (status == TL_OK && show_paid(list, &r))
            break;
    }
    return (int)status;
}

static tl_status check_payments(const tl_payment *payments, size_t count)
{
    if (payments == NULL && count > 0)
        return error_set(TL_INVALID, "payments is NULL");
    for (size_t i = 0; i < count; i++) {
        const tl_key key = {payments[i].serial_no, payments[i].cust_no, payments[i].op_code};
        char retry_op[TL_OP_MAX + 1];
        const tl_status status = read_key(&key, retry_op);

        if (status != TL_OK)
            return error_prefix(status, "payment %zu", i + 1);
    }
    return TL_OK;
}

tl_status tl_paid_list(tl_client *client, const tl_payment *payments, size_t count, tl_paid_fn each,
                       void *context)
{
    struct paid list = {.payments = payments, .count = count, .each = each, .context = context};
    READING at = {.client = client};

    TRY(read_begin(&at));
    TRY(read_check_each(each != NULL));
    TRY(check_payments(payments, count));
    list.connection = at.connection;
    return read_and_show(paid_all, &list);
}
