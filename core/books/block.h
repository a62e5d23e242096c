/*
 * Lines of one trade as one statement: a block in which each line is followed by a look at how many
 * rows it changed.  A line that changed another number than declared ends the block with an error,
 * as an error of the server's does.  The block only says that something went wrong, not in which
 * line: whoever wants to know that writes the lines again, one by one.
 */
#ifndef TL_BOOKS_BLOCK_H
#define TL_BOOKS_BLOCK_H

#include "books/books.h"

/* The block of so many lines of the book.  NULL: they have to go one by one, since there are too
 * many values, too many blocks, or no memory. */
const book_block *book_block_of(const tl_book *book, size_t first, size_t count);
/* Writes them, on a connection of POOL_BOOKS, in a transaction.  DB_DONE: each changed as many rows
 * as declared. */
db_answer book_block_run(db *connection, const book_block *block, const tl_book *book,
                         size_t first);
void book_blocks_free(tl_books *books);

#endif
