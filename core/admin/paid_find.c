/* Finds whose trades payments are of which a bank names no customer: walks all trades, and compares
 * them with the names that were given.  Reads only. */
#include "admin/statements.h"
#include "admin/sorted.h"

#include "client/read.h"

#include "base/error.h"
#include "base/memory.h"
#include "store/bind.h"

#include "sql_text.h"

#include <tradelock/admin/acts.h>

#include <stdlib.h>
#include <string.h>

#define PAGE 2000

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
    struct name *names; /* sorted */
    size_t count;
    tl_payment_trade_fn each;
    void *context;
    db *connection;
};

static int compare_names(const void *left, const void *right)
{
    const struct name *a = left, *b = right;

    return a->by != b->by ? (int)a->by - (int)b->by : strcmp(a->text, b->text);
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

/* 0: go on. */
static int show_named(const struct search *s, enum named_by by, const char *text, const tl_key *key)
{
    const struct name wanted = {by, text, 0};
    size_t from = sorted_place(&wanted, s->names, s->count, sizeof wanted, compare_names);

    for (; from < s->count && compare_names(&s->names[from], &wanted) == 0; from++) {
        const tl_payment *p = &s->payments[s->names[from].number];

        if ((!is_given(p->op_code) || strcmp(p->op_code, key->op_code) == 0) &&
            (!is_given(p->serial_no) || strcmp(p->serial_no, key->serial_no) == 0) &&
            s->each(s->context, s->names[from].number, key) != 0)
            return 1;
    }
    return 0;
}

static int show_page(const struct search *s, const db_result *r)
{
    for (size_t row = 0; row < r->rows; row++) {
        const tl_key key = {db_get_text(r, row, COLUMN_paid_trades_serial_no),
                            db_get_text(r, row, COLUMN_paid_trades_cust_no),
                            db_get_text(r, row, COLUMN_paid_trades_op_code)};

        if (show_named(s, BY_KEY, db_get_text(r, row, COLUMN_paid_trades_channel_key), &key) ||
            show_named(s, BY_REF, db_get_text(r, row, COLUMN_paid_trades_channel_ref), &key) ||
            show_named(s, BY_SERIAL, key.serial_no, &key))
            return 1;
    }
    return 0;
}

static int find_all(void *context)
{
    const struct search *s = context;
    store_list_place last = {.us = 0};
    RESULT r = DB_RESULT_INIT;
    tl_status status;

    do {
        status = read_status(
            s->connection,
            SQL_RUN(s->connection, &r, paid_trades, .cust_no = db_ascii(last.cust_no),
                    .serial_no = db_ascii(last.serial_no), .op_code = db_ascii(last.op_code),
                    .channel = db_ascii(s->channel), .most = db_uint(PAGE)),
            "looking for the trades of payments");
        if (status != TL_OK || show_page(s, &r))
            break;
        if (r.rows > 0) {
            text_copy(last.cust_no, sizeof last.cust_no,
                      db_get_text(&r, r.rows - 1, COLUMN_paid_trades_cust_no));
            text_copy(last.serial_no, sizeof last.serial_no,
                      db_get_text(&r, r.rows - 1, COLUMN_paid_trades_serial_no));
            text_copy(last.op_code, sizeof last.op_code,
                      db_get_text(&r, r.rows - 1, COLUMN_paid_trades_op_code));
        }
    } while (r.rows >= PAGE);
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
