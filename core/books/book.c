/*
 * The lines of one transaction.  Values are copied into memory that does not move.  The first error
 * stays, and makes every later call do nothing.  Touches no database.
 */
#include "books/books.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdalign.h>
#include <string.h>

/* What one piece of a book's memory has at least. */
#define PIECE_BYTES 2048
#define FIRST_LINES 8

struct book_piece {
    struct book_piece *next;
    size_t used, space;
    max_align_t data[];
};

/* ---------------------------------------------------------------------------------- errors -- */

/* Keeps the thread's sentence. */
static void fail(tl_book *book, tl_status status)
{
    book->status = status;
    text_copy(book->sentence, sizeof book->sentence, tl_error_message());
}

/* Keeps it, and in which line it was. */
static void fail_in_line(tl_book *book, tl_status status)
{
    const book_line *line = &book->lines[book->count - 1];

    fail(book,
         error_prefix(status, "line %zu of the book, \"%s\"", book->count, line->statement->name));
}

static void no_memory(tl_book *book)
{
    fail(book, error_set(TL_NO_MEMORY, "out of memory for the book"));
}

/* ---------------------------------------------------------------------------------- memory -- */

static struct book_piece *piece_new(size_t space)
{
    struct book_piece *piece = memory_new(sizeof *piece + space);

    if (piece != NULL)
        piece->space = space;
    return piece;
}

/* Aligned for anything, and not filled. */
static void *take(tl_book *book, size_t size)
{
    struct book_piece *piece = book->pieces;
    const size_t whole =
        (size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
    char *taken;

    if (piece == NULL || piece->space - piece->used < whole) {
        piece = piece_new(whole > PIECE_BYTES ? whole : PIECE_BYTES);
        if (piece == NULL) {
            no_memory(book);
            return NULL;
        }
        piece->next = book->pieces;
        book->pieces = piece;
    }
    taken = (char *)piece->data + piece->used;
    piece->used += whole;
    return taken;
}

static void free_pieces(struct book_piece *piece)
{
    while (piece != NULL) {
        struct book_piece *next = piece->next;

        memory_free(piece);
        piece = next;
    }
}

tl_status tl_book_new(tl_book **out, tl_books *books)
{
    tl_book *book;

    error_clear();
    if (out == NULL || books == NULL)
        return error_set(TL_INVALID, "tl_book_new: out or books is NULL");
    book = memory_new(sizeof *book);
    if (book == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for the book");
    book->books = books;
    *out = book;
    return TL_OK;
}

void tl_book_free(tl_book *book)
{
    if (book == NULL)
        return;
    free_pieces(book->pieces);
    memory_free(book->lines);
    memory_free(book);
}

void tl_book_clear(tl_book *book)
{
    struct book_piece *kept;

    if (book == NULL)
        return;
    kept = book->pieces;
    if (kept != NULL) {
        free_pieces(kept->next);
        kept->next = NULL;
        kept->used = 0;
    }
    book->count = book->bytes = 0;
    book->taking = 0;
    book->status = TL_OK;
    book->sentence[0] = '\0';
}

/* ----------------------------------------------------------------------------------- lines -- */

/* Whether each value of the line that takes values was given. */
static void end_line(tl_book *book)
{
    const book_statement *statement;

    if (!book->taking || book->status != TL_OK)
        return;
    statement = book->lines[book->count - 1].statement;
    for (unsigned i = 0; i < statement->value_count; i++)
        if (!book->given[i]) {
            fail_in_line(book, error_set(TL_INVALID, "the value \"%s\" is missing",
                                         statement->values[i].name));
            return;
        }
    book->taking = 0;
}

static const book_statement *find_statement(const tl_books *books, const char *name)
{
    for (size_t i = 0; i < books->count; i++)
        if (strcmp(books->statements[i].name, name) == 0)
            return &books->statements[i];
    return NULL;
}

static int grow(tl_book *book)
{
    const size_t space = book->space > 0 ? book->space * 2 : FIRST_LINES;
    book_line *grown;

    if (book->count < book->space)
        return 1;
    grown = memory_resize(book->lines, space * sizeof *grown);
    if (grown == NULL) {
        no_memory(book);
        return 0;
    }
    book->lines = grown;
    book->space = space;
    return 1;
}

static void add_line(tl_book *book, const book_statement *statement)
{
    book_line line = {.statement = statement, .order = book->count};

    if (!grow(book))
        return;
    line.values = take(book, statement->value_count * sizeof *line.values);
    if (line.values == NULL)
        return;
    memset(book->given, 0, sizeof book->given);
    book->lines[book->count++] = line;
    book->taking = 1;
}

/* What was written by mistake may be long. */
#define SHOWN "%.64s"

void tl_book_line(tl_book *book, const char *statement)
{
    const book_statement *found;

    if (book == NULL)
        return;
    end_line(book);
    if (book->status != TL_OK)
        return;
    if (statement == NULL || text_check_utf8("a statement", statement) != TL_OK) {
        fail(book, error_set(TL_INVALID,
                             "line %zu of the book: its statement is NULL, or not "
                             "UTF-8",
                             book->count + 1));
        return;
    }
    found = find_statement(book->books, statement);
    if (found == NULL)
        fail(book, error_set(TL_INVALID,
                             "line %zu of the book: the statement \"" SHOWN "\" is not declared",
                             book->count + 1, statement));
    else if (book->count == TL_BOOK_LINES)
        fail(book, error_set(TL_INVALID, "the book has more than %d lines", TL_BOOK_LINES));
    else
        add_line(book, found);
}

/* ---------------------------------------------------------------------------------- values -- */

static int is_own(const char *name)
{
#define OWN_IS(own, type) || strcmp(name, #own) == 0
    return 0 BOOK_OWN_MAP(OWN_IS);
#undef OWN_IS
}

static tl_status find_value(const book_statement *statement, const char *name, unsigned *out)
{
    if (name == NULL || text_check_utf8("a value", name) != TL_OK)
        return error_set(TL_INVALID, "the name of a value is NULL, or not UTF-8");
    for (unsigned i = 0; i < statement->value_count; i++)
        if (strcmp(statement->values[i].name, name) == 0) {
            *out = i;
            return TL_OK;
        }
    if (is_own(name))
        return error_set(TL_INVALID,
                         "the value \"%s\" is known from the trade, and not to be given", name);
    return error_set(TL_INVALID, "the value \"" SHOWN "\" is not declared", name);
}

/* Where the value goes; NULL: it is not taken, and the book has an error. */
static db_value *place(tl_book *book, const char *name, const book_type *type)
{
    const book_statement *statement;
    unsigned i = 0;
    tl_status status;

    if (book == NULL || book->status != TL_OK)
        return NULL;
    if (!book->taking) {
        fail(book, error_set(TL_INVALID, "a value is given before a line was begun"));
        return NULL;
    }
    statement = book->lines[book->count - 1].statement;
    status = find_value(statement, name, &i);
    if (status == TL_OK && book->given[i])
        status = error_set(TL_INVALID, "the value \"%s\" is given twice", name);
    if (status == TL_OK && type != NULL && *type != statement->values[i].type)
        status = error_set(TL_INVALID, "the value \"%s\" is declared as %s, and given as %s", name,
                           book_type_name(statement->values[i].type), book_type_name(*type));
    if (status != TL_OK) {
        fail_in_line(book, status);
        return NULL;
    }
    book->given[i] = 1;
    return &book->lines[book->count - 1].values[i];
}

/* Whether so much more fits into the book. */
static int count_bytes(tl_book *book, size_t size)
{
    if (size <= TL_BOOK_BYTES - book->bytes) {
        book->bytes += size;
        return 1;
    }
    fail_in_line(book, error_set(TL_INVALID, "the values of the book have more than %d bytes",
                                 TL_BOOK_BYTES));
    return 0;
}

void tl_book_int(tl_book *book, const char *value, int64_t number)
{
    const book_type type = BOOK_INT;
    db_value *to = place(book, value, &type);

    if (to != NULL && count_bytes(book, sizeof number))
        *to = db_int(number);
}

static void put_copy(tl_book *book, db_value *to, db_type type, const void *from, size_t size)
{
    char *copy;

    if (!count_bytes(book, size))
        return;
    copy = take(book, size + 1);
    if (copy == NULL)
        return;
    memcpy(copy, from, size);
    copy[size] = '\0';
    *to = (db_value){.type = type, .data = copy, .size = size};
}

static void put_text(tl_book *book, db_value *to, const char *name, const char *text)
{
    if (text == NULL)
        *to = db_null();
    else if (text_check_utf8(name, text) != TL_OK)
        fail_in_line(book, TL_INVALID);
    else
        put_copy(book, to, DB_TEXT, text, strlen(text));
}

void tl_book_text(tl_book *book, const char *value, const char *text)
{
    const book_type type = BOOK_TEXT;
    db_value *to = place(book, value, &type);

    if (to != NULL)
        put_text(book, to, value, text);
}

void tl_book_bytes(tl_book *book, const char *value, const void *bytes, size_t size)
{
    const book_type type = BOOK_BYTES;
    db_value *to = place(book, value, &type);

    if (to == NULL)
        return;
    if (bytes == NULL && size > 0)
        fail_in_line(book, error_set(TL_INVALID, "the value \"%s\" is NULL with a size", value));
    else if (bytes == NULL)
        *to = db_null();
    else
        put_copy(book, to, DB_BYTES, bytes, size);
}

void tl_book_null(tl_book *book, const char *value)
{
    db_value *to = place(book, value, NULL);

    if (to != NULL)
        *to = db_null();
}

/* ------------------------------------------------------------------------------- all of it -- */

void tl_book_refuse(tl_book *book, tl_status status)
{
    if (book == NULL || book->status != TL_OK || status == TL_OK)
        return;
    /* Such an answer would tell of a lock that nobody has. */
    if (tl_status_class(status) == TL_CLASS_DONE)
        status = error_set(TL_INVALID, "a book was refused with %s, which is no refusal",
                           tl_status_name(status));
    else if (tl_error_message()[0] == '\0')
        (void)error_set(status, "the book was refused: %s", tl_status_text(status));
    fail(book, status);
}

static tl_status answer(const tl_book *book)
{
    if (book->status == TL_OK)
        return TL_OK;
    return error_set(book->status, "%s", book->sentence);
}

tl_status tl_book_check(tl_book *book)
{
    error_clear();
    if (book == NULL)
        return error_set(TL_INVALID, "tl_book_check: book is NULL");
    return answer(book);
}

/* Stable, and done at once where lines were written in the declared order. */
static void sort_lines(book_line *lines, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const book_line line = lines[i];
        size_t at = i;

        for (; at > 0 && lines[at - 1].statement > line.statement; at--)
            lines[at] = lines[at - 1];
        lines[at] = line;
    }
}

tl_status book_finish(tl_book *book)
{
    end_line(book);
    if (book->status == TL_OK)
        sort_lines(book->lines, book->count);
    return answer(book);
}
