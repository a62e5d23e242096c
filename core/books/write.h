/* Writing the lines of books: of one trade, or of a group. */
#ifndef TL_BOOKS_WRITE_H
#define TL_BOOKS_WRITE_H

#include "books/books.h"

/* A line that changed another number of rows than declared; line NULL: there is none. */
typedef struct book_fault {
    const book_line *line;
    uint64_t changed;
    int led; /* what goes before the lines was carried out (book_write_first) */
} book_fault;

/*
 * Writes the lines of one trade in their order, without waiting for rows; waits: but for those of
 * shared statements.  Several are sent before the first is answered, so lines after the first fault
 * may be written too: then the transaction is to be rolled back.  After an error `fault->line` is
 * the line that met it.  Needs: a finished book, on a connection of POOL_BOOKS.
 *
 * The first of the two begins the transaction with what goes before the lines, the lock's statement,
 * in one round trip with as many lines as *written says; the second writes those from `first` on.
 */
db_answer book_write_first(db *connection, const tl_book *book, const db_request *lead, int waits,
                           size_t *written, book_fault *fault);
db_answer book_write(db *connection, const tl_book *book, size_t first, int waits,
                     book_fault *fault);

/* The sentence of a fault: the statement's reason, or that the books are broken.  TL_REFUSED or
 * TL_CALLBACK_FAILED. */
tl_status book_fault_status(const book_fault *fault, int may_refuse);

/*
 * Writes the lines of many books: each statement once, in declared order.  It waits for no row but
 * those of shared statements.
 *
 *     book_group_begin(&group, connection, books, count);
 *     book_group_write(&group, BOOK_LEADING_STATEMENTS);
 *     book_group_leave_out(&group, 3);
 *     book_group_write(&group, BOOK_OTHER_STATEMENTS);
 *     book_group_commit(&group, &committed);
 *     if (!committed)
 *         book_group_check(&group);      group.states says whose fault it is
 *     book_group_end(&group);
 *
 * Needs: a connection of POOL_BOOKS; the books finished, and all of the same tl_books.
 */
enum book_which {
    BOOK_LEADING_STATEMENTS = 1, /* those that may refuse, and are declared before all others */
    BOOK_OTHER_STATEMENTS = 2,
    BOOK_ALL_STATEMENTS = 3
};

enum book_state {
    BOOK_RIGHT,
    BOOK_LEFT_OUT,  /* it is not written */
    BOOK_UNCHANGED, /* one of its lines is at fault, and none of its lines changed anything */
    BOOK_AT_FAULT   /* one of its lines is at fault, or its row is somebody else's; others may have
                       changed rows */
};

/* A line that was written, by its number. */
typedef struct book_written {
    const book_line *line;
    uint32_t book;
    uint32_t with;  /* the line with whose number it was written: its own, but for sums */
    uint32_t found; /* rows that it found */
} book_written;

typedef struct book_group {
    db *connection;
    tl_book *const *books;
    size_t count;
    unsigned char *states; /* enum book_state, of each book */
    book_written *written;
    size_t written_count;
    uint64_t affected; /* rows that were changed in all */
    int blocked;       /* a line met a row that somebody else has */
    int refused;       /* one of the faults may refuse its trade */
    int unexplained;   /* not committed, and no book is known to be at fault */
} book_group;

/* Begins a transaction.  DB_NO_MEMORY, or what came of making the connection ready. */
db_answer book_group_begin(book_group *self, db *connection, tl_book *const *books, size_t count);
void book_group_end(book_group *self);
void book_group_leave_out(book_group *self, size_t book);
/* DB_DONE with `blocked` set: a line of the book that is BOOK_AT_FAULT met a row that somebody else
 * has, and the transaction is only good for being rolled back. */
db_answer book_group_write(book_group *self, enum book_which which);
/* Whether all lines together changed as many rows as declared. */
int book_group_sum_is_right(const book_group *self);
/* Commits, if each line changed as many rows as declared; else the transaction stays open. */
db_answer book_group_commit(book_group *self, int *committed);
/* Finds the books at fault.  Needs: an open transaction. */
db_answer book_group_check(book_group *self);

#endif
