/*
 * Compares the types of a statement's values with the columns that they meet: the value that a row
 * puts there, and `column = :value` in SET and WHERE.  What stands in an expression is not judged.
 * Touches no state.
 *
 * A value of another type would not only be converted: a text that is compared with a number uses
 * no key, so that the statement locks every row of its table.
 */
#include "books/check.h"

#include "base/error.h"
#include "base/text.h"

#include <string.h>
#include <strings.h>

/* The columns, as declared_types tells them. */
enum { COLUMN_NAME, COLUMN_TYPE, COLUMN_INVISIBLE, COLUMN_NEEDED, COLUMN_DERIVED };

enum takes { TAKES_INT = 1, TAKES_TEXT = 2, TAKES_BYTES = 4 };

/* What a type takes; of one that stands nowhere here nothing is known. */
static const struct {
    unsigned takes;
    const char *types; /* blank, name, blank ... */
} taken[] = {
    {TAKES_INT, " tinyint smallint mediumint int bigint decimal float double year "},
    {TAKES_TEXT, " char varchar tinytext text mediumtext longtext enum set "
                 "date time datetime timestamp "},
    {TAKES_TEXT | TAKES_BYTES, " binary varbinary tinyblob blob mediumblob longblob "
                               "uuid inet4 inet6 "},
};

/* Whether the type stands there between blanks. */
static int is_listed(const char *types, const char *type)
{
    const size_t size = strlen(type);

    for (const char *at = types; (at = strstr(at, type)) != NULL; at += size)
        if (at[-1] == ' ' && at[size] == ' ')
            return 1;
    return 0;
}

static unsigned takes_of(const char *type)
{
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (is_listed(taken[i].types, type))
            return taken[i].takes;
    return TAKES_INT | TAKES_TEXT | TAKES_BYTES;
}

static tl_status compare(const book_statement *statement, const token *value,
                         const db_result *columns, size_t column)
{
    static const unsigned is[] = {
        [BOOK_INT] = TAKES_INT, [BOOK_TEXT] = TAKES_TEXT, [BOOK_BYTES] = TAKES_BYTES};
    const char *type = db_get_text(columns, column, COLUMN_TYPE);
    const book_type of_value = book_value_type(statement, value->value);

    if (takes_of(type) & is[of_value])
        return TL_OK;
    return error_set(TL_INVALID, "the value \"%s\" is %s, and the column \"%s\" is %s",
                     book_value_name(statement, value->value), book_type_name(of_value),
                     db_get_text(columns, column, COLUMN_NAME), type);
}

/* Its number, or that of the rows if the account sees no such column. */
static size_t find_column(const db_result *columns, const token *name)
{
    char wanted[256];
    size_t i = columns->rows;

    if (token_is_name(name) && token_name(name, wanted, sizeof wanted))
        for (i = 0; i < columns->rows; i++)
            if (strcasecmp(db_get_text(columns, i, COLUMN_NAME), wanted) == 0)
                break;
    return i;
}

/* A column that the account does not see, or anything else that has a name, is not judged. */
static tl_status compare_named(const book_statement *statement, const token *value,
                               const db_result *columns, const token *name)
{
    const size_t column = find_column(columns, name);

    return column < columns->rows ? compare(statement, value, columns, column) : TL_OK;
}

/* ----------------------------------------------------------------------------- an INSERT -- */

/* The comma or parenthesis behind the item that begins here. */
static const token *item_end(const token *item, unsigned depth)
{
    while (item->depth >= depth && !(item->depth == depth && token_is(item, ",")))
        item++;
    return item;
}

/* Whether the account sees as many columns as a row of an INSERT has that lists none. */
static int sees_all_columns(const book_statement *statement, const db_result *columns)
{
    const token *item = statement->text.row;
    const unsigned depth = item->depth + 1;
    size_t items = 0, visible = 0;

    do
        item = item_end(item + 1, depth), items++;
    while (token_is(item, ","));
    for (size_t i = 0; i < columns->rows; i++)
        visible += !db_get_int(columns, i, COLUMN_INVISIBLE);
    return items == visible;
}

static int lists(const token *columns, const char *name)
{
    char listed[256];
    const token *end = columns;

    do {
        end = item_end(end + 1, columns->depth + 1);
        if (token_is_name(end - 1) && token_name(end - 1, listed, sizeof listed) &&
            strcasecmp(listed, name) == 0)
            return 1;
    } while (token_is(end, ","));
    return 0;
}

/* Also of a table with a trigger that would give the value: no service may see triggers. */
static tl_status check_needed(const book_text *text, const db_result *columns)
{
    for (size_t i = 0; i < columns->rows && text->columns != NULL; i++) {
        const char *name = db_get_text(columns, i, COLUMN_NAME);

        if (db_get_int(columns, i, COLUMN_NEEDED) && !lists(text->columns, name))
            return error_set(TL_INVALID,
                             "gives no value to the column \"%s\", which has no default", name);
    }
    return TL_OK;
}

static tl_status check_insert(const book_statement *statement, const db_result *columns)
{
    const book_text *text = &statement->text;
    const unsigned depth = text->row->depth + 1;
    const token *item = text->row + 1, *name = text->columns;
    size_t column = 0;
    tl_status status = check_needed(text, columns);

    if (name == NULL && !sees_all_columns(statement, columns))
        return TL_OK;
    for (; status == TL_OK; item++, column++) {
        const token *end = item_end(item, depth);

        name = name != NULL ? item_end(name + 1, depth) : NULL;
        while (column < columns->rows && db_get_int(columns, column, COLUMN_INVISIBLE))
            column++;
        if (item->kind == TOKEN_VALUE && end == item + 1)
            status = name != NULL ? compare_named(statement, item, columns, name - 1)
                                  : compare(statement, item, columns, column);
        item = end;
        if (!token_is(end, ","))
            break;
    }
    return status;
}

/* ------------------------------------------------------------------- an UPDATE, a DELETE -- */

/* Whether a comparison may begin behind this, or end before it, so that it is all of it. */
static int is_border(const token *t)
{
    static const char *const words[] = {"SET", "WHERE", "AND", "OR", "XOR",
                                        "NOT", "(",     ")",   ",",  NULL};

    return t->kind == TOKEN_END || token_is_one_of(t, words);
}

static int compares(const token *t)
{
    static const char *const signs[] = {"=", "<=>", "<>", "!=", "<", ">", "<=", ">=", NULL};

    return token_is_one_of(t, signs);
}

/* The first token of a name that ends here, with what stands before dots. */
static const token *name_begin(const token *name)
{
    while (token_is(name - 1, ".") && token_is_name(name - 2))
        name -= 2;
    return name;
}

/* The last one of a name that begins here. */
static const token *name_end(const token *name)
{
    while (token_is(name + 1, ".") && token_is_name(name + 2))
        name += 2;
    return name;
}

static tl_status check_comparison(const book_statement *statement, const token *value,
                                  const db_result *columns)
{
    if (compares(value - 1) && token_is_name(value - 2) && is_border(value + 1) &&
        is_border(name_begin(value - 2) - 1))
        return compare_named(statement, value, columns, value - 2);
    if (is_border(value - 1) && compares(value + 1) && token_is_name(value + 2) &&
        is_border(name_end(value + 2) + 1))
        return compare_named(statement, value, columns, name_end(value + 2));
    return TL_OK;
}

static tl_status check_comparisons(const book_statement *statement, const db_result *columns)
{
    const book_text *text = &statement->text;
    const token *t = text->set != NULL ? text->set : text->where;
    tl_status status = TL_OK;

    for (; status == TL_OK && t->kind != TOKEN_END; t++) {
        /* A subquery has other tables. */
        if (token_is(t, "(") && (token_is(t + 1, "SELECT") || token_is(t + 1, "WITH")))
            t = token_closing(t);
        else if (t->kind == TOKEN_VALUE)
            status = check_comparison(statement, t, columns);
    }
    return status;
}

/* ------------------------------------------------------------------------------------- sums -- */

/* Of other types rounding would make another sum of the lines. */
static const char exact_types[] = " tinyint smallint mediumint int bigint decimal ";

/* By a column that changes with another one, a line might not find what the line before found. */
static tl_status check_plain(const db_result *columns, const token *name)
{
    const size_t column = find_column(columns, name);

    if (column == columns->rows)
        return error_set(TL_INVALID, "is summed, and the account does not see its column \"%.*s\"",
                         TOKEN_SHOWN(name));
    if (db_get_int(columns, column, COLUMN_DERIVED))
        return error_set(TL_INVALID,
                         "is summed, and its column \"%.*s\" is generated or changes by itself",
                         TOKEN_SHOWN(name));
    return TL_OK;
}

static tl_status check_sum(const book_text *text, const db_result *columns)
{
    const token *sum = text->set + 1;
    tl_status status = check_plain(columns, sum);

    if (status == TL_OK &&
        !is_listed(exact_types, db_get_text(columns, find_column(columns, sum), COLUMN_TYPE)))
        return error_set(TL_INVALID,
                         "is summed, and its column \"%.*s\" is no integer and no DECIMAL",
                         TOKEN_SHOWN(sum));
    for (const token *t = text->where; status == TL_OK && t->kind != TOKEN_END; t += 4)
        status = check_plain(columns, t + 1);
    return status;
}

tl_status book_check_columns(const book_statement *statement, const db_result *columns)
{
    tl_status status = statement->text.row != NULL ? check_insert(statement, columns)
                                                   : check_comparisons(statement, columns);

    return status == TL_OK && statement->summed ? check_sum(&statement->text, columns) : status;
}
