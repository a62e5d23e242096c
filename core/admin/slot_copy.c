/*
 * Copies the rows of a slot's customers from one database to another.
 *
 * A row goes as the text of its literals, which the source writes (slot_table): what was read
 * at the one and what is read at the other afterwards are compared as they are.  So no column can be
 * forgotten here, nor one of a business table that nobody knows.  The statements are made from the
 * names of columns; whose rows they touch is said by the names of customers.
 */
#include "admin/slot_copy.h"
#include "admin/words.h"

#include "base/error.h"
#include "base/memory.h"
#include "store/bind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A statement with rows is not made longer than this, but for one long row. */
#define STATEMENT_BYTES (512 * 1024)

/* Findings may be closed where the slot never was, and nobody can take that back. */
#define OWN_CLOSINGS "audit_closing"
/* Removed in this order: the trigger of the first writes into the second. */
static const char *const own_tables[] = {"trade_lock", "trade_lock_past", "trade_evidence",
                                         "trade_resolution", OWN_CLOSINGS};
#define OWN_TABLES (sizeof own_tables / sizeof own_tables[0])

enum {
    TABLE_ENGINE,
    TABLE_READ,
    TABLE_INSERT,
    TABLE_REMOVE,
    TABLE_CUSTOMERS,
    TABLE_HAS_CUST,
    TABLE_COUNT
};

struct slot_table {
    char name[SLOT_TABLE_NAME_MAX + 1];
    char *read, *insert, *remove, *customers, *counting;
    uint64_t rows; /* counted */
    int is_own;
    int is_strange; /* what is at the target is not known to be a copy of this slot's rows */
};

static tl_status no_memory(void)
{
    return error_set(TL_NO_MEMORY, "out of memory for moving a slot");
}

/* --------------------------------------------------------------------------- tables -- */

static tl_status take_texts(struct slot_table *t, const db_result *r)
{
    if (r->rows == 0)
        return error_set(TL_INVALID, "there is no table %s", t->name);
    if (db_get_int(r, 0, TABLE_HAS_CUST) == 0)
        return error_set(TL_INVALID,
                         "table %s has no column cust_no, by which its rows belong to "
                         "customers",
                         t->name);
    if (strcmp(db_get_text(r, 0, TABLE_ENGINE), "InnoDB") != 0)
        return error_set(TL_INVALID, "table %s is not of InnoDB", t->name);
    t->read = memory_dup_text(db_get_text(r, 0, TABLE_READ));
    t->insert = memory_dup_text(db_get_text(r, 0, TABLE_INSERT));
    t->remove = memory_dup_text(db_get_text(r, 0, TABLE_REMOVE));
    t->customers = memory_dup_text(db_get_text(r, 0, TABLE_CUSTOMERS));
    t->counting = memory_dup_text(db_get_text(r, 0, TABLE_COUNT));
    return t->read != NULL && t->insert != NULL && t->remove != NULL && t->customers != NULL &&
                   t->counting != NULL
               ? TL_OK
               : no_memory();
}

static tl_status open_table(struct slot_table *t, db *from, const char *name)
{
    RESULT r = DB_RESULT_INIT;

    text_copy(t->name, sizeof t->name, name);
    TRY(db_error_status(from, SQL_RUN(from, &r, slot_table, .table_name = db_text(name)),
                        "looking at a table"));
    return take_texts(t, &r);
}

tl_status slot_copy_open(slot_copy *copy, db *from, unsigned slot, const slot_tables *named)
{
    *copy = (slot_copy){.slot = slot};
    copy->tables = memory_new_array(OWN_TABLES + named->count, sizeof *copy->tables);
    if (copy->tables == NULL)
        return no_memory();
    for (size_t i = 0; i < OWN_TABLES; i++) {
        copy->tables[i].is_own = 1;
        copy->count++;
        TRY(open_table(&copy->tables[i], from, own_tables[i]));
    }
    for (size_t i = 0; i < named->count; i++) {
        copy->count++;
        TRY(open_table(&copy->tables[copy->count - 1], from, named->name[i]));
    }
    return TL_OK;
}

void slot_copy_estrange(slot_copy *copy, const slot_tables *known)
{
    for (size_t i = 0; i < copy->count; i++) {
        struct slot_table *t = &copy->tables[i];

        if (t->is_own)
            t->is_strange = known == NULL && strcmp(t->name, OWN_CLOSINGS) != 0;
        else
            t->is_strange = known == NULL || !slot_tables_has(known, t->name);
    }
}

void slot_copy_close(slot_copy *copy)
{
    for (size_t i = 0; i < copy->count; i++) {
        memory_free(copy->tables[i].read);
        memory_free(copy->tables[i].insert);
        memory_free(copy->tables[i].remove);
        memory_free(copy->tables[i].customers);
        memory_free(copy->tables[i].counting);
    }
    memory_free(copy->tables);
    *copy = (slot_copy){.slot = 0};
}

/* ------------------------------------------------------------------------ customers -- */

static tl_status add_customer(slot_customers *all, const db_result *r, size_t row)
{
    slot_customer *one;

    if (!memory_room(&all->of, all->count, sizeof *all->of))
        return no_memory();
    one = &all->of[all->count++];
    one->name = memory_dup_text(db_get_text(r, row, 0));
    one->quoted = memory_dup_text(db_get_text(r, row, 1));
    one->json = memory_dup_text(db_get_text(r, row, 2));
    return one->name != NULL && one->quoted != NULL && one->json != NULL ? TL_OK : no_memory();
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const slot_customer *)left)->name, ((const slot_customer *)right)->name);
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static void free_customer(slot_customer *one)
{
    memory_free(one->name);
    memory_free(one->quoted);
    memory_free(one->json);
}

static void make_unique(slot_customers *all)
{
    size_t kept = 0;

    if (all->count > 0)
        qsort(all->of, all->count, sizeof *all->of, by_name);
    for (size_t i = 0; i < all->count; i++) {
        if (kept > 0 && strcmp(all->of[kept - 1].name, all->of[i].name) == 0)
            free_customer(&all->of[i]);
        else
            all->of[kept++] = all->of[i];
    }
    all->count = kept;
}

static tl_status read_customers_of(slot_customers *all, const slot_copy *copy,
                                   const struct slot_table *t, db *connection)
{
    TEXT sql = {.size = 0};
    RESULT r = DB_RESULT_INIT;

    text_buffer_append_format(&sql, "%s%u", t->customers, copy->slot);
    TRY(sql.failed ? no_memory()
                   : db_error_status(
                         connection,
                         db_run_text(connection, "customers of a slot", sql.data, sql.size, &r),
                         "looking for the customers of a slot"));
    for (size_t row = 0; row < r.rows; row++)
        TRY(add_customer(all, &r, row));
    return TL_OK;
}

tl_status slot_customers_read(slot_customers *all, const slot_copy *copy, db *connection)
{
    *all = (slot_customers){.count = 0};
    for (size_t i = 0; i < copy->count; i++)
        TRY(read_customers_of(all, copy, &copy->tables[i], connection));
    make_unique(all);
    return TL_OK;
}

tl_status slot_customers_read_others(slot_customers *all, const slot_copy *copy, db *connection,
                                     tl_status (*read)(void *context), void *context)
{
    *all = (slot_customers){.count = 0};
    for (size_t i = OWN_TABLES; i < copy->count; i++) {
        TRY(read_customers_of(all, copy, &copy->tables[i], connection));
        TRY(read(context));
    }
    make_unique(all);
    return TL_OK;
}

void slot_customers_free(slot_customers *all)
{
    for (size_t i = 0; i < all->count; i++)
        free_customer(&all->of[i]);
    memory_free(all->of);
    *all = (slot_customers){.count = 0};
}

static size_t end_of_page(const slot_customers *all, size_t first)
{
    return first + SLOT_CUSTOMERS < all->count ? first + SLOT_CUSTOMERS : all->count;
}

tl_status slot_customers_json(const slot_customers *all, size_t first, struct text_buffer *to)
{
    text_buffer_clear(to);
    text_buffer_append_text(to, "[");
    for (size_t i = first; i < end_of_page(all, first); i++)
        text_buffer_append_format(to, "%s%s", i > first ? "," : "", all->of[i].json);
    text_buffer_append_text(to, "]");
    return to->failed ? no_memory() : TL_OK;
}

static void append_names(struct text_buffer *to, const slot_customers *all, size_t first)
{
    for (size_t i = first; i < end_of_page(all, first); i++)
        text_buffer_append_format(to, "%s%s", i > first ? "," : "", all->of[i].quoted);
    text_buffer_append_text(to, ")");
}

/* "SELECT ... WHERE cust_no IN (" with the names and the end.  The first condition may be answered
 * by an index, for which 'a' and 'A' are one in a business table; the second tells them apart. */
static tl_status statement_of(struct text_buffer *to, const char *begin, const slot_customers *all,
                              size_t first, const char *end)
{
    text_buffer_clear(to);
    text_buffer_append_text(to, begin);
    append_names(to, all, first);
    text_buffer_append_text(to, " AND CONVERT(cust_no USING ascii) COLLATE ascii_nopad_bin IN (");
    append_names(to, all, first);
    text_buffer_append_text(to, end);
    return to->failed ? no_memory() : TL_OK;
}

/* --------------------------------------------------------------------------- copying -- */

static tl_status read_rows(const struct slot_table *t, db *connection, const slot_customers *all,
                           size_t first, const char *end, db_result *rows)
{
    TEXT sql = {.size = 0};

    TRY(statement_of(&sql, t->read, all, first, end));
    TRY(db_error_status(connection, db_run_text(connection, t->name, sql.data, sql.size, rows),
                        "reading the rows of a slot"));
    for (size_t row = 0; row < rows->rows; row++)
        if (db_is_null(rows, row, 0))
            return error_set(TL_REFUSED, "a row of table %s is too long to be moved", t->name);
    return TL_OK;
}

/* The rows from *row on, as many as one statement takes. */
static tl_status insert_some(const struct slot_table *t, db *to, const db_result *rows, size_t *row,
                             struct text_buffer *sql)
{
    const size_t first = *row;

    text_buffer_clear(sql);
    text_buffer_append_text(sql, t->insert);
    while (*row < rows->rows && *row - first < SLOT_ROWS &&
           (*row == first || sql->size < STATEMENT_BYTES)) {
        text_buffer_append_text(sql, *row > first ? ",(" : "(");
        text_buffer_append_text(sql, db_get_text(rows, *row, 0));
        text_buffer_append_text(sql, ")");
        ++*row;
    }
    if (sql->failed)
        return no_memory();
    return db_error_status(to, db_run_text(to, t->name, sql->data, sql->size, NULL),
                           "writing the rows of a slot");
}

static const char *order_of(const struct slot_table *t)
{
    return strcmp(t->name, "trade_evidence") == 0 ? " ORDER BY evidence_id" : "";
}

tl_status slot_copy_page(slot_copy *copy, db *from, db *to, const slot_customers *all, size_t first,
                         const slot_writing *writing)
{
    TEXT sql = {.size = 0};
    RESULT rows = DB_RESULT_INIT;
    tl_status status = TL_OK;

    for (size_t i = 0; i < copy->count && status == TL_OK; i++) {
        const struct slot_table *t = &copy->tables[i];
        size_t row = 0;

        status = read_rows(t, from, all, first, order_of(t), &rows);
        while (status == TL_OK && row < rows.rows) {
            status = writing->begin(writing->context);
            if (status == TL_OK)
                status = writing->end(writing->context, insert_some(t, to, &rows, &row, &sql));
        }
        if (status == TL_OK)
            copy->rows += rows.rows;
        else if (status != TL_REFUSED)
            status = error_prefix(status, "table %s", t->name);
    }
    return status;
}

static tl_status wipe_some(const struct slot_table *t, db *at, const struct text_buffer *sql,
                           uint64_t *removed)
{
    RESULT r = DB_RESULT_INIT;

    *removed = 0;
    TRY(db_error_status(at, db_run_text(at, t->name, sql->data, sql->size, &r),
                        "removing the rows of a slot"));
    *removed = r.affected;
    return TL_OK;
}

static tl_status wipe_table(const struct slot_table *t, db *at, const slot_customers *all,
                            size_t first, const slot_writing *writing)
{
    TEXT sql = {.size = 0};
    char limit[32];
    uint64_t removed = SLOT_ROWS;

    snprintf(limit, sizeof limit, " LIMIT %d", SLOT_ROWS);
    TRY(statement_of(&sql, t->remove, all, first, limit));
    while (removed == SLOT_ROWS) {
        TRY(writing->begin(writing->context));
        TRY(writing->end(writing->context, wipe_some(t, at, &sql, &removed)));
    }
    return TL_OK;
}

tl_status slot_copy_wipe(slot_copy *copy, db *at, const slot_customers *all, size_t first,
                         const slot_writing *writing)
{
    for (size_t i = copy->count; i > OWN_TABLES; i--)
        TRY(wipe_table(&copy->tables[i - 1], at, all, first, writing));
    for (size_t i = 0; i < OWN_TABLES; i++)
        TRY(wipe_table(&copy->tables[i], at, all, first, writing));
    return TL_OK;
}

static tl_status count_table(struct slot_table *t, db *at, const slot_customers *all, size_t first)
{
    TEXT sql = {.size = 0};
    RESULT r = DB_RESULT_INIT;

    TRY(statement_of(&sql, t->counting, all, first, ""));
    TRY(db_error_status(at, db_run_text(at, t->name, sql.data, sql.size, &r),
                        "counting the rows of a slot"));
    if (r.rows == 1)
        t->rows += db_get_uint(&r, 0, 0);
    return TL_OK;
}

tl_status slot_copy_count(slot_copy *copy, db *at, const slot_customers *all)
{
    copy->rows = 0;
    for (size_t i = 0; i < copy->count; i++) {
        copy->tables[i].rows = 0;
        for (size_t first = 0; first < all->count; first += SLOT_CUSTOMERS)
            TRY(count_table(&copy->tables[i], at, all, first));
        copy->rows += copy->tables[i].rows;
    }
    return TL_OK;
}

void slot_copy_tell(const slot_copy *copy, slot_counted_fn tell, void *context)
{
    for (size_t i = 0; i < copy->count; i++)
        if (copy->tables[i].rows > 0)
            tell(context, copy->tables[i].name, copy->tables[i].rows);
}

tl_status slot_copy_closings(const slot_copy *copy, db *at, const slot_customers *all, size_t first,
                             uint64_t *count)
{
    RESULT rows = DB_RESULT_INIT;

    TRY(read_rows(&copy->tables[OWN_TABLES - 1], at, all, first, "", &rows));
    *count += rows.rows;
    return TL_OK;
}

/* ------------------------------------------------------------------------- comparing -- */

static const char **sorted(const db_result *rows)
{
    const char **texts = memory_new_array(rows->rows + 1, sizeof *texts);

    for (size_t row = 0; texts != NULL && row < rows->rows; row++)
        texts[row] = db_get_text(rows, row, 0);
    if (texts != NULL && rows->rows > 0)
        qsort(texts, rows->rows, sizeof *texts, by_text);
    return texts;
}

/* No value stands in the sentence: it may be a name or an account. */
static tl_status differs(const struct slot_table *t, const char *which)
{
    return error_set(TL_REFUSED,
                     "table %s: a row of a customer of the slot is at the %s alone, or differs "
                     "there; nothing was handed over",
                     t->name, which);
}

static tl_status compare_texts(const struct slot_table *t, const char **source, size_t source_count,
                               const char **target, size_t target_count, int all_there)
{
    size_t at = 0;

    for (size_t i = 0; i < target_count; i++) {
        int order = -1;

        while (at < source_count && (order = strcmp(source[at], target[i])) < 0) {
            if (all_there)
                return differs(t, "source");
            at++;
        }
        if (at == source_count || order != 0)
            return differs(t, "target");
        at++;
    }
    return all_there && at < source_count ? differs(t, "source") : TL_OK;
}

static tl_status compare_rows(const struct slot_table *t, const db_result *source,
                              const db_result *target, int all_there)
{
    const char **left = sorted(source), **right = sorted(target);
    tl_status status = left != NULL && right != NULL
                           ? compare_texts(t, left, source->rows, right, target->rows, all_there)
                           : no_memory();

    memory_free(left);
    memory_free(right);
    return status;
}

tl_status slot_copy_compare(slot_copy *copy, db *from, db *to, const slot_customers *all,
                            size_t first, unsigned how)
{
    const int all_there = (how & SLOT_ALL_THERE) != 0, locks = (how & SLOT_LOCKS) != 0;
    RESULT source = DB_RESULT_INIT, target = DB_RESULT_INIT;

    for (size_t i = 0; i < copy->count; i++) {
        const struct slot_table *t = &copy->tables[i];

        if (((how & SLOT_STRANGE) != 0 && !t->is_strange) ||
            ((how & SLOT_OTHERS) != 0 && t->is_own))
            continue;
        TRY(read_rows(t, to, all, first, "", &target));
        TRY(read_rows(t, from, all, first, locks && !t->is_own ? " LOCK IN SHARE MODE" : "",
                      &source));
        TRY(compare_rows(t, &source, &target, all_there));
        copy->rows += target.rows;
    }
    return TL_OK;
}
