/*
 * Declared statements and the lines of a transaction, as the files of this room and the trade lock
 * share them.
 *
 *     declare.c   takes a declaration apart: names become question marks, values get their places
 *     check.c     asks the server whether it can be run, and what its columns take
 *     books.c     makes and frees both, for a client
 *     book.c      the lines
 *     write.c     writes lines: those of one trade, or of a group
 */
#ifndef TL_BOOKS_BOOKS_H
#define TL_BOOKS_BOOKS_H

#include "base/error.h"
#include "db/db.h"
#include "sql_text.h"
#include "transition/task.h"

#include <tradelock/books.h>

/* What the trade itself knows; each statement has these as its first values, in this order. */
#define BOOK_OWN_MAP(OWN)                                                                          \
    OWN(serial_no, BOOK_TEXT)                                                                      \
    OWN(cust_no, BOOK_TEXT)                                                                        \
    OWN(op_code, BOOK_TEXT)                                                                        \
    OWN(epoch, BOOK_INT)                                                                           \
    OWN(channel_key, BOOK_TEXT)                                                                    \
    OWN(channel_ref, BOOK_TEXT)                                                                    \
    OWN(amount_minor, BOOK_INT)                                                                    \
    OWN(currency, BOOK_TEXT)

#define BOOK_OWN_INDEX(name, type) BOOK_OWN_##name,
enum book_own { BOOK_OWN_MAP(BOOK_OWN_INDEX) BOOK_OWN_COUNT };
#undef BOOK_OWN_INDEX

typedef enum book_type { BOOK_INT, BOOK_TEXT, BOOK_BYTES } book_type;

typedef struct book_value {
    char *name;
    book_type type;
} book_value;

/* A declared statement.  Its values are the trade's own, then the declared ones, and for `many` a
 * last one: the number of the line. */
typedef struct book_statement {
    char *name, *refused; /* refused: or NULL */
    unsigned rows;        /* that each line changes; at least 1 */
    int shared;
    book_value *values; /* declared */
    unsigned value_count;
    struct sql_text one; /* for one trade */
    /* For a group: an UPDATE or DELETE also appends the number of each line, with a blank, to
     * @tl_changed for each row that it finds.  Else the same text as `one`. */
    struct sql_text many;
    int notes_lines; /* many does that */
    /* The values by which lines are sorted, the first one counting most: those behind WHERE, then
     * the others. */
    unsigned char *sort;
    unsigned sort_count;
} book_statement;

struct tl_books {
    struct tl_client *client;
    book_statement *statements;
    size_t count;
    group_queue *groups; /* in which trades with these books meet */
    /* Atomic: not 0 while statements that may refuse run before the lock rows (trade_lock/books.c). */
    atomic_int refusing_first;
    struct tl_books *next; /* of the client */
};

/* One line: its statement, and the declared values. */
typedef struct book_line {
    const book_statement *statement;
    db_value *values; /* statement->value_count of them */
    size_t order;     /* as written */
} book_line;

struct tl_book {
    tl_books *books;
    book_line *lines; /* as written; sorted by statement once it is complete (book_finish) */
    size_t count, space;
    size_t bytes; /* about how many bytes its values have */
    tl_status status;
    char sentence[ERROR_MAX];
    /* Set when it is used, for BOOK_OWN_MAP. */
    db_value own[BOOK_OWN_COUNT];
    /* ... and what else book.c needs: memory of texts, which values of the line are given */
};

/* declare.c: TL_OK, or TL_INVALID with a sentence that names the statement. */
tl_status book_declare(book_statement *out, const tl_statement *given);
void book_statement_free(book_statement *statement);

/* check.c: prepares it (both texts), and compares its values with its table's columns. */
tl_status book_check_schema(struct tl_client *client, const book_statement *statement);

/* book.c: checks that the last line is complete, and sorts the lines by the order of their
 * statements; lines of one statement stay as written.  The same status as tl_book_check(). */
tl_status book_finish(tl_book *book);

#endif
