/* What the two files share that compare a declared statement with the schema. */
#ifndef TL_BOOKS_CHECK_H
#define TL_BOOKS_CHECK_H

#include "books/books.h"

/* columns.c: TL_OK, or TL_INVALID with a sentence.  columns: of declared_types, those that the
 * account sees; others are not judged. */
tl_status book_check_columns(const book_statement *statement, const db_result *columns);

#endif
