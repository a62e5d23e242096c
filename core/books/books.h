/*
 * Declared statements and the lines of a transaction, as the files of this room and the trade lock
 * share them.
 *
 *     tokens.c    takes the text of a statement apart
 *     declare.c   judges a declaration: names become question marks, values get their places
 *     check.c     asks the server whether it can be run
 *     columns.c   compares the types of its values with those of the columns that they meet
 *     books.c     makes and frees both, for a client
 *     book.c      the lines
 *     write.c     writes lines: those of one trade, or of a group
 */
#ifndef TL_BOOKS_BOOKS_H
#define TL_BOOKS_BOOKS_H

#include "base/error.h"
#include "books/tokens.h"
#include "client/client.h"
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

/* The text, as it was given, and where its parts are. */
typedef struct book_text {
    char *sql;
    token *tokens;
    const token *verb;
    const token *database; /* or NULL */
    const token *table;
    const token *columns; /* of an INSERT: the parenthesis of its list of columns, or NULL */
    const token *row;     /* of an INSERT: the parenthesis behind VALUES */
    const token *set;     /* of an UPDATE: this word */
    const token *where;   /* of an UPDATE or a DELETE: this word */
} book_text;

/* A declared statement.  Its values are the trade's own, then the declared ones, and for `many` a
 * last one: the number of the line. */
typedef struct book_statement {
    char *name, *refused; /* refused: or NULL */
    unsigned rows;        /* that each line changes; at least 1 */
    int shared;
    int summed;         /* a group writes lines that differ in `addend` alone as one */
    unsigned addend;    /* of a summed statement: the value that is added or taken */
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
    /* Of declare.c and those who check. */
    book_text text;
    char *one_text, *many_text; /* what `one` and `many` point to, and the marks of both */
    unsigned char *marks;
} book_statement;

struct tl_books {
    client_part part; /* of the client: free_all() of books.c */
    struct tl_client *client;
    book_statement *statements;
    size_t count;
    /* In which trades with these books meet: those that wait nowhere, and those with a line of a
     * shared statement. */
    struct group_queue *groups, *waiting_groups;
    /* Atomic: not 0 while statements that may refuse run before the lock rows
     * (trade_lock/books.c). */
    atomic_int refusing_first;
    /* Atomic: not 0 while the lock row of a trade alone goes by itself, since one was refused. */
    atomic_int lock_apart;
    struct tl_books *next; /* of the client; fixed */
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
    size_t bytes;    /* about how many bytes its values have */
    atomic_int used; /* an ask or an ending has it now */
    tl_status status;
    char sentence[ERROR_MAX];
    /* Set when it is used, for BOOK_OWN_MAP. */
    db_value own[BOOK_OWN_COUNT];
    /* Of book.c. */
    struct book_piece *pieces;           /* what values point into */
    int taking;                          /* the last line takes values */
    unsigned char given[TL_BOOK_VALUES]; /* which of its values were given */
};

/* declare.c: TL_OK, TL_NO_MEMORY, or TL_INVALID with a sentence that names the statement.  In any
 * case book_statement_free() frees what it has. */
tl_status book_declare(book_statement *out, const tl_statement *given);
void book_statement_free(book_statement *statement);
/* Of any value of the statement, the trade's own included. */
const char *book_value_name(const book_statement *statement, unsigned value);
const char *book_type_name(book_type type);
book_type book_value_type(const book_statement *statement, unsigned value);

/* check.c: prepares it (both texts), and compares its values with its table's columns. */
tl_status book_check_schema(struct tl_client *client, const book_statement *statement);

/* book.c: checks that the last line is complete, and sorts the lines by the order of their
 * statements; lines of one statement stay as written.  The same status as tl_book_check(). */
tl_status book_finish(tl_book *book);

#endif
