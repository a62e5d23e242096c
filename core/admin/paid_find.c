/* Finds whose trades payments are of which a bank names no customer, by what it names.  Reads only. */
#include "admin/statements.h"

#include "client/read.h"

#include "base/error.h"
#include "base/memory.h"
#include "store/bind.h"
#include "store/rows.h"

#include "sql_text.h"

#include <tradelock/admin/acts.h>

#include <stdlib.h>
#include <string.h>

#define PAGE 64

enum named_by { BY_KEY, BY_REF, BY_SERIAL };

/* What a payment gives of its trade. */
struct name {
    enum named_by by;
    const char *text;
    size_t number;
};

struct search {
    const tl_payment *payments;
    const char *channel;
    struct name *names; /* those of one kind together */
    size_t count;
    tl_payment_trade_fn each;
    void *context;
    db *connection;
};

static int compare_names(const void *left, const void *right)
{
    const struct name *a = left, *b = right;

    return a->by != b->by ? (int)a->by - (int)b->by
                          : (a->number > b->number) - (a->number < b->number);
}

static int is_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static tl_status take_names(struct search *s, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const tl_payment *p = &s->payments[i];
        const struct name name = is_given(p->channel_key) ? (struct name){BY_KEY, p->channel_key, i}
                                 : is_given(p->channel_ref)
                                     ? (struct name){BY_REF, p->channel_ref, i}
                                     : (struct name){BY_SERIAL, p->serial_no, i};

        if (p->cust_no == NULL && !is_given(name.text))
            return error_set(TL_INVALID, "payment %zu names no key, reference or serial number",
                             i + 1);
        if (p->cust_no == NULL)
            s->names[s->count++] = name;
    }
    if (s->count > 1)
        qsort(s->names, s->count, sizeof *s->names, compare_names);
    return TL_OK;
}

/* The three statements take the same values. */
static db_answer look(const struct search *s, const struct name *names, size_t count,
                      db_result *result)
{
    static const struct sql_text *const statements[] = {[BY_KEY] = &sql_paid_by_key,
                                                        [BY_REF] = &sql_paid_by_ref,
                                                        [BY_SERIAL] = &sql_paid_by_serial};
    struct sql_paid_by_key_row row[PAGE];
    const store_rows rows = {.outside = SQL_VALUES(paid_by_key, .channel = db_ascii(s->channel)),
                             .rows = (const db_value *)row,
                             .count = count};

    for (size_t i = 0; i < count; i++)
        row[i] = SQL_ROW(paid_by_key, .number = db_uint(names[i].number),
                         .name = names[i].by == BY_REF ? db_text(names[i].text)
                                                       : db_ascii(names[i].text));
    return store_run_rows(s->connection, statements[names[0].by], &rows, result);
}

/* 0: go on. */
static int show_page(const struct search *s, const db_result *r)
{
    for (size_t row = 0; row < r->rows; row++) {
        const size_t number = (size_t)db_get_uint(r, row, COLUMN_paid_by_key_number);
        const tl_payment *p = &s->payments[number];
        const tl_key key = {db_get_text(r, row, COLUMN_paid_by_key_serial_no),
                            db_get_text(r, row, COLUMN_paid_by_key_cust_no),
                            db_get_text(r, row, COLUMN_paid_by_key_op_code)};

        if ((!is_given(p->op_code) || strcmp(p->op_code, key.op_code) == 0) &&
            (!is_given(p->serial_no) || strcmp(p->serial_no, key.serial_no) == 0) &&
            s->each(s->context, number, &key) != 0)
            return 1;
    }
    return 0;
}

static int find_all(void *context)
{
    const struct search *s = context;
    RESULT r = DB_RESULT_INIT;
    tl_status status = TL_OK;

    for (size_t at = 0, count = 0; at < s->count; at += count) {
        const struct name *names = &s->names[at];

        for (count = 1; count < PAGE && at + count < s->count && names[count].by == names[0].by;)
            count++;
        status = read_status(s->connection, look(s, names, count, &r),
                             "looking for the trades of payments");
        if (status != TL_OK || show_page(s, &r))
            break;
    }
    return (int)status;
}

tl_status tl_payment_find(tl_client *client, const tl_payment *payments, size_t count,
                          const char *channel, tl_payment_trade_fn each, void *context)
{
    struct search s = {.payments = payments,
                       .channel = channel != NULL ? channel : "",
                       .each = each,
                       .context = context};
    READING at = {.client = client};
    tl_status status;

    TRY(read_begin(&at));
    TRY(read_check_each(each != NULL));
    if (payments == NULL && count > 0)
        return error_set(TL_INVALID, "payments is NULL");
    if (count == 0)
        return TL_OK;
    s.connection = at.connection;
    s.names = memory_new_array(count, sizeof *s.names);
    if (s.names == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for %zu payments", count);
    status = take_names(&s, count);
    if (status == TL_OK && s.count > 0)
        status = read_and_show(find_all, &s);
    memory_free(s.names);
    return status;
}
