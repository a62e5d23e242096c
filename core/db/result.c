/* Stores a result and gives out its rows, columns and values.  Touches the memory of the result
 * only. */
#include "db/db_internal.h"

#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void db_result_free(db_result *result)
{
    if (!result)
        return;
    memory_free(result->cells);
    memory_free(result->data);
    memset(result, 0, sizeof(*result));
}

db_answer db_result_copy_row(db_result *to, const db_result *from, size_t row)
{
    const struct db_cell *cells = from->cells + row * from->columns;
    const struct db_cell *end = cells + from->columns;
    size_t begin = cells->offset, size = 0;

    db_result_clear(to);
    if (from->columns == 0 || db_result_shape(to, 1, from->columns))
        return DB_NO_MEMORY;
    size = (end - 1)->offset + (end - 1)->size + ((end - 1)->is_null ? 0 : 1) - begin;
    if (size > to->data_space) {
        char *grown = memory_resize(to->data, size);

        if (!grown) {
            db_result_clear(to);
            return DB_NO_MEMORY;
        }
        to->data = grown;
        to->data_space = size;
    }
    if (size > 0)
        memcpy(to->data, from->data + begin, size);
    for (size_t i = 0; i < from->columns; i++) {
        to->cells[i] = cells[i];
        to->cells[i].offset -= begin;
    }
    return DB_DONE;
}

/* data_space is how much is allocated.  How much of it is used follows from the last cell that was
 * written, which keeps the structure small. */
static size_t data_used(const db_result *result, size_t index)
{
    const struct db_cell *last;

    if (!index)
        return 0;
    last = &result->cells[index - 1];
    return last->offset + last->size + (last->is_null ? 0 : 1);
}

void db_result_clear(db_result *result)
{
    result->rows = 0;
    result->columns = 0;
    result->affected = 0;
    result->insert_id = 0;
}

int db_result_shape(db_result *result, size_t rows, size_t columns)
{
    size_t cells;
    struct db_cell *grown;

    if (columns && rows > SIZE_MAX / columns / sizeof(*grown))
        return 1;
    cells = rows * columns;
    if (cells > result->cell_space) {
        grown = memory_resize(result->cells, cells * sizeof(*grown));
        if (!grown)
            return 1;
        result->cells = grown;
        result->cell_space = cells;
    }
    result->rows = rows;
    result->columns = columns;
    return 0;
}

char *db_result_room(db_result *result, size_t row, size_t column, size_t size)
{
    size_t index = row * result->columns + column;
    size_t used = data_used(result, index);
    struct db_cell *cell = &result->cells[index];

    if (size + 1 > result->data_space - used) {
        size_t space = (used + size + 1) * 2 + 256;
        char *grown = memory_resize(result->data, space);

        if (!grown)
            return NULL;
        result->data = grown;
        result->data_space = space;
    }
    cell->offset = used;
    cell->size = size;
    cell->number = 0;
    cell->is_null = 0;
    cell->is_number = 0;
    result->data[used + size] = '\0';
    return result->data + used;
}

void db_result_put_null(db_result *result, size_t row, size_t column)
{
    size_t index = row * result->columns + column;
    struct db_cell *cell = &result->cells[index];

    cell->offset = data_used(result, index);
    cell->size = 0;
    cell->number = 0;
    cell->is_null = 1;
    cell->is_number = 0;
}

int db_result_put(db_result *result, size_t row, size_t column, const void *data, size_t size,
                  int is_number)
{
    char *to = db_result_room(result, row, column, size);
    struct db_cell *cell;

    if (!to)
        return 1;
    memcpy(to, data, size);
    if (is_number) {
        cell = &result->cells[row * result->columns + column];
        cell->is_number = 1;
        cell->number =
            to[0] == '-' ? (int64_t)strtoll(to, NULL, 10) : (int64_t)strtoull(to, NULL, 10);
    }
    return 0;
}

int db_result_put_number(db_result *result, size_t row, size_t column, int64_t number,
                         int is_unsigned)
{
    const int negative = !is_unsigned && number < 0;
    uint64_t left = negative ? 0 - (uint64_t)number : (uint64_t)number;
    char digits[24], *at = digits + sizeof digits;
    struct db_cell *cell;

    do
        *--at = (char)('0' + left % 10);
    while ((left /= 10) != 0);
    if (negative)
        *--at = '-';
    if (db_result_put(result, row, column, at, (size_t)(digits + sizeof digits - at), 0))
        return 1;
    cell = &result->cells[row * result->columns + column];
    cell->is_number = 1;
    cell->number = number;
    return 0;
}

int db_type_is_number(enum enum_field_types type)
{
    switch (type) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
    case MYSQL_TYPE_YEAR:
        return 1;
    default:
        return 0;
    }
}

static const struct db_cell *cell_at(const db_result *result, size_t row, size_t column)
{
    if (row >= result->rows || column >= result->columns)
        return NULL;
    return &result->cells[row * result->columns + column];
}

int db_is_null(const db_result *result, size_t row, size_t column)
{
    const struct db_cell *cell = cell_at(result, row, column);

    return !cell || cell->is_null;
}

int64_t db_get_int(const db_result *result, size_t row, size_t column)
{
    const struct db_cell *cell = cell_at(result, row, column);

    if (!cell || cell->is_null)
        return 0;
    if (cell->is_number)
        return cell->number;
    /* SUM() and the like answer a DECIMAL, which arrives as text. */
    return strtoll(result->data + cell->offset, NULL, 10);
}

uint64_t db_get_uint(const db_result *result, size_t row, size_t column)
{
    const struct db_cell *cell = cell_at(result, row, column);

    if (!cell || cell->is_null)
        return 0;
    if (cell->is_number)
        return (uint64_t)cell->number;
    return strtoull(result->data + cell->offset, NULL, 10);
}

const char *db_get_text(const db_result *result, size_t row, size_t column)
{
    const struct db_cell *cell = cell_at(result, row, column);

    if (!cell || cell->is_null)
        return "";
    return result->data + cell->offset;
}

const void *db_get_bytes(const db_result *result, size_t row, size_t column, size_t *size)
{
    const struct db_cell *cell = cell_at(result, row, column);

    if (!cell || cell->is_null) {
        *size = 0;
        return "";
    }
    *size = cell->size;
    return result->data + cell->offset;
}

int db_is_bytes(const db_result *result, size_t row, size_t column, const void *bytes, size_t size)
{
    size_t there;
    const void *data = db_get_bytes(result, row, column, &there);

    return there == size && memcmp(data, bytes, size) == 0;
}
