/* Statements that carry any number of rows. */
#ifndef TL_STORE_ROWS_H
#define TL_STORE_ROWS_H

#include "db/db.h"

/* The values of a statement whose group of rows is repeated.  `outside`: those outside the group,
 * as many as the statement has there.  `rows`: those of each row, one row after the other. */
typedef struct store_rows {
    const db_value *outside, *rows;
    size_t count; /* of rows */
    int nowait;   /* on a connection whose statements wait for row locks, this one does not */
} store_rows;

/* One row runs as a prepared statement; several run as one text.  result may be NULL.  Needs: a
 * connection of the library's own, since the text is quoted for its settings. */
db_answer store_run_rows(db *connection, const struct sql_text *statement, const store_rows *values,
                         db_result *result);

/* One execution of a prepared statement for all rows, which returns one for each, in their order.
 * values NULL: DB_NO_MEMORY. */
db_answer store_run_each(db *connection, const struct sql_text *statement, const db_value *values,
                         size_t count, db_result *result);

#endif
