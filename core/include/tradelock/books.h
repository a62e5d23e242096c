/*
 * books.h - business rows that are declared, and written by the library together with the lock's.
 *
 * A service declares its statements once.  A transaction's lines then say which statement to run,
 * with which values.  The library writes the lines of many trades at once: the lock rows, then each
 * statement once, bound to the values of all of them, and one commit.  Whoever writes lines has no
 * connection, so nothing can be committed, left unread, or forgotten to be counted.
 *
 *     static const tl_statement statements[] = {
 *         {.name = "freeze funds",
 *          .sql = "UPDATE account SET frozen = frozen + :amount_minor"
 *                 " WHERE cust_no = :cust_no AND balance - frozen >= :amount_minor",
 *          .refused = "too little money"},
 *         {.name = "insert order",
 *          .sql = "INSERT INTO orders (cust_no, serial_no, payee)"
 *                 " VALUES (:cust_no, :serial_no, :payee)",
 *          .values = "payee text"},
 *     };
 *
 *     tl_books_new(&books, client, statements, 2);         once
 *
 *     tl_book_new(&book, books);                           for each transaction
 *     tl_book_line(book, "freeze funds");
 *     tl_book_line(book, "insert order");
 *     tl_book_text(book, "payee", payee);
 *     tl_lock_ask_book(lock, book, 0);
 *     tl_book_free(book);
 *
 * Workflows do all but the lines themselves: see tl_workflow in <tradelock/workflow.h>.
 *
 * THE STATEMENTS
 *
 * Each is one INSERT ... VALUES of one row, or an UPDATE or DELETE of one table with WHERE; without
 * IGNORE, ON DUPLICATE KEY, ORDER BY, LIMIT, RETURNING, variables and comments.  It cannot ask what
 * the statement before it did (LAST_INSERT_ID, ROW_COUNT): in a group that was another trade's.
 *
 * A name with a colon is a value.  These are known from the trade and need not be given:
 * :serial_no, :cust_no, :op_code, :epoch, :channel_key, :channel_ref ("" while there is none),
 * :amount_minor and :currency.  The last two are NULL if the trade was asked for without; a trade
 * that is tried anew keeps those of its first ask.  All others are declared in `values`, with their
 * types: "payee text, fee int, proof bytes".  Any value may be NULL; the table says whether it
 * takes it.
 *
 * Each line must change so many rows as declared (`rows`, usually one).  A row that an UPDATE finds
 * and leaves as it was is not changed.  If another number was changed, then
 *   - the trade is refused, if the statement says with which reason (`refused`): TL_REFUSED, and no
 *     row is left behind.  Such statements are for asks only.
 *   - otherwise the books are broken: the transaction is rolled back, with TL_CALLBACK_FAILED.
 *
 * The lines of a transaction run in the order in which the statements are declared, whatever the
 * order in which they were written.  Declare statements in the order in which rows are to be
 * locked.  Within a group the lines of a statement are sorted by the values behind WHERE, so that
 * groups meet rows in one order.
 *
 * A group's lines are written together, so a line may see what a neighbour's earlier statement
 * wrote: a credit that is declared before a refusing debit covers it, whoever comes first.  Declare
 * the statements that may refuse before all others; that is also the fastest order.
 *
 * Nobody waits in the server for a row that somebody else has: the trade whose row it is goes on
 * alone, and tries again after a pause.  A row that all trades change, such as a treasury's, would
 * send them all alone.  Mark its statement `shared`, and declare it last: those with a line of it
 * wait for each other there, up to business_lock_wait_s, and nobody waits with them.
 *
 * A shared statement that only adds a number to a column, or takes one from it, may be marked
 * `summed`: "UPDATE treasury SET balance = balance - :amount_minor WHERE id = 1".  A group writes
 * its lines that differ in nothing but that number as one line, with their sum.  Numbers of the
 * other sign, zero and NULL are lines of their own.  The column is an integer or a DECIMAL, and the
 * condition only says which values other columns have.  Triggers, CHECK and UNIQUE of the table
 * see the sum alone: no trigger may change a column that the condition names.
 *
 * What triggers and stored functions of the service do is the service's affair: they must not touch
 * tradelock's tables, the session, or @tl_changed.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_BOOKS_H
#define TRADELOCK_BOOKS_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* At most so many statements, values of a statement, and lines of a transaction. */
#define TL_BOOK_STATEMENTS 64
#define TL_BOOK_VALUES 64
#define TL_BOOK_LINES 256
/* The most rows that a line may be declared to change, and the most bytes of the values of all
 * lines of a transaction, of which a number has eight. */
#define TL_BOOK_ROWS 1000
#define TL_BOOK_BYTES 65536

/* One declared statement, and what it promises. */
typedef struct tl_statement {
    const char *name;    /* by which lines and messages name it; unique */
    const char *sql;     /* with :values */
    const char *values;  /* those that a line gives: "name type, ...", type int, text or bytes */
    unsigned rows;       /* how many each line changes; 0 is 1 */
    const char *refused; /* what the caller hears when another number was changed; or NULL */
    int shared;          /* its rows are many trades': groups wait for each other there */
    int summed;          /* a group writes the sum of its lines; of shared statements only */
} tl_statement;

/* The declared statements of an operation. */
typedef struct tl_books tl_books;

/*
 * Checks the statements against the schema, with the account of the client, and copies them.  They
 * belong to the client, which frees them when it is closed.
 *
 *     TL_OK        They are checked.
 *     TL_INVALID   One cannot be used; the message says which one, and why: the server does not
 *                  prepare it (a typo, a missing column, table or right), a value is not declared,
 *                  declared twice or of a type that its column does not take, a column without a
 *                  default is given no value, its table is not transactional or tradelock's own,
 *                  or it is no statement of the kinds above.
 *
 * And what any look at the database may answer, such as TL_UNREACHABLE and TL_OVERLOADED.
 */
TL_EXPORT tl_status tl_books_new(tl_books **out, tl_client *client, const tl_statement *statements,
                                 size_t count);

/* The lines of one transaction.  One thread uses a book at a time. */
typedef struct tl_book tl_book;

/* Makes a book without lines.  TL_OK or TL_NO_MEMORY.  tl_book_free() frees it. */
TL_EXPORT tl_status tl_book_new(tl_book **out, tl_books *books);
TL_EXPORT void tl_book_free(tl_book *book);
/* Removes its lines and its error. */
TL_EXPORT void tl_book_clear(tl_book *book);

/*
 * Begins a line, to which the values that follow belong.  Texts and bytes are copied.  NULL as text
 * or as bytes is NULL.
 *
 * These report nothing: a book keeps its first error, such as a statement or value that was not
 * declared, a value given twice or of another type, text that is not UTF-8, or too many lines.  A
 * value that is missing is found when the book is used.  Such a book is not written: whoever uses
 * it hears TL_CALLBACK_FAILED with the sentence.
 */
TL_EXPORT void tl_book_line(tl_book *book, const char *statement);
TL_EXPORT void tl_book_int(tl_book *book, const char *value, int64_t number);
TL_EXPORT void tl_book_text(tl_book *book, const char *value, const char *text);
TL_EXPORT void tl_book_bytes(tl_book *book, const char *value, const void *bytes, size_t size);
TL_EXPORT void tl_book_null(tl_book *book, const char *value);

/* Makes the book one that is not written: whoever uses it answers this status, with the thread's
 * sentence.  TL_REFUSED: of an ask only.  TL_OK changes nothing. */
TL_EXPORT void tl_book_refuse(tl_book *book, tl_status status);
/* TL_OK, or the first error with its sentence. */
TL_EXPORT tl_status tl_book_check(tl_book *book);

/*
 * tl_lock_ask() with the book's lines written in the transaction that makes P, and with the same
 * wait.  Once-only trades of the sync lane.  The book may be used again afterwards, and must live
 * until the call returns.  Any answer of tl_lock_ask(), and:
 *
 *     TL_REFUSED           A line that may refuse changed another number of rows than declared; the
 *                          message is its reason.  Nothing was written.
 *     TL_CALLBACK_FAILED   The book is not to be written, or broken.  Nothing was written.
 */
TL_EXPORT tl_status tl_lock_ask_book(tl_lock *lock, tl_book *book, int64_t wait_ms);

/*
 * tl_lock_finish() with the book's lines written in the transaction that ends the hold.  Outcomes:
 * SUCCESS and FAILURE.  After 1213, 1205 and 1020 the transaction is repeated, for commit_ms at
 * most.  Any answer of tl_lock_finish(), and:
 *
 *     TL_CALLBACK_FAILED   The book is not to be written, or broken.  Nothing was written, and the
 *                          lock is still held.
 */
TL_EXPORT tl_status tl_lock_finish_book(tl_lock *lock, const tl_ending *ending, tl_book *book,
                                        int64_t commit_ms);

/*
 * The same for event loops: submitted now and completed later, as tl_lock_ask_submit() and
 * tl_lock_finish_submit() are (<tradelock/tradelock.h>), together with others in one transaction.
 * Until the completion the library owns the book, too.  The status is any answer of
 * tl_lock_ask_book() without a wait, or of tl_lock_finish_book() within the client's commit_ms.
 */
TL_EXPORT tl_status tl_lock_ask_book_submit(tl_lock *lock, tl_book *book, tl_done_fn done,
                                            void *context);
TL_EXPORT tl_status tl_lock_finish_book_submit(tl_lock *lock, const tl_ending *ending,
                                               tl_book *book, tl_done_fn done, void *context);

#ifdef __cplusplus
}
#endif
#endif
