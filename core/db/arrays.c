/*
 * Array binding: gives the values of many rows to the server's bulk execution, column by column.
 * The server prepares, checks and opens once and then writes row after row.  That costs it far less
 * than a text with as many rows.  Touches the binds and the memory that it returns.
 */
#include "db/db_internal.h"

#include "base/memory.h"

#include <string.h>

/* The arrays of one column.  A value is a number, or the address of its bytes. */
struct column {
    union {
        const void *from;
        void *to;
        int64_t number;
    } *values;
    unsigned long *sizes;
    char *indicators;
};

/* The whole column has one type: that of its first value that is not NULL. */
static void set_type(MYSQL_BIND *bind, const db_value *values, size_t rows, size_t count)
{
    bind->buffer_type = MYSQL_TYPE_STRING;
    for (size_t row = 0; row < rows; row++) {
        const db_value *value = &values[row * count];

        if (value->type == DB_NULL)
            continue;
        if (value->type == DB_INT || value->type == DB_UINT)
            bind->buffer_type = MYSQL_TYPE_LONGLONG;
        else if (value->type == DB_BYTES)
            bind->buffer_type = MYSQL_TYPE_BLOB;
        bind->is_unsigned = value->type == DB_UINT;
        return;
    }
}

static void fill(struct column *to, const db_value *values, size_t rows, size_t count)
{
    for (size_t row = 0; row < rows; row++) {
        const db_value *value = &values[row * count];

        to->indicators[row] = value->type == DB_NULL ? STMT_INDICATOR_NULL : STMT_INDICATOR_NONE;
        to->sizes[row] = value->size;
        if (value->type == DB_INT || value->type == DB_UINT)
            to->values[row].number = value->int_value;
        else
            to->values[row].from = value->data != NULL ? value->data : "";
    }
}

void *db_bind_arrays(MYSQL_BIND *binds, const db_value *values, size_t rows, size_t count,
                     const unsigned char *marks, size_t mark_count)
{
    struct column column;
    size_t cells = rows * mark_count;
    char *block = memory_new(cells * (sizeof *column.values + sizeof *column.sizes + 1));

    if (block == NULL)
        return NULL;
    column.values = (void *)block;
    column.sizes = (void *)(column.values + cells);
    column.indicators = (char *)(column.sizes + cells);
    memset(binds, 0, mark_count * sizeof *binds);
    for (size_t i = 0; i < mark_count; i++) {
        const db_value *from = values + (marks != NULL ? marks[i] : i);

        set_type(&binds[i], from, rows, count);
        fill(&column, from, rows, count);
        binds[i].buffer = column.values;
        binds[i].length = column.sizes;
        binds[i].u.indicator = column.indicators;
        column.values += rows;
        column.sizes += rows;
        column.indicators += rows;
    }
    return block;
}
