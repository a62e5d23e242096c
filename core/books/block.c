/*
 * Makes and runs blocks.  The books keep a block for each sequence of statements that trades have,
 * since a connection prepares each of them once.  Touches the books' list of blocks, and what the
 * statements name.
 *
 * A block saves a trade that goes alone a round trip for each of its lines but one.  It begins and
 * ends no transaction, and the lock's statement and the commit are not in it.  So an error of it
 * leaves nothing in doubt: all of it is rolled back.
 */
#include "books/block.h"

#include "base/memory.h"
#include "base/text.h"

#include <string.h>

/* Of one tl_books: a service has a few kinds of transactions. */
#define BLOCKS_MAX 16
/* Each value is one byte of sql_text.marks. */
#define VALUES_MAX 255

struct book_block {
    book_block *next; /* fixed */
    struct sql_text sql;
    char *text;
    unsigned char *marks;
    size_t count;
    const book_statement *statements[];
};

static void block_free(book_block *block)
{
    if (block == NULL)
        return;
    memory_free(block->text);
    memory_free(block->marks);
    memory_free(block);
}

void book_blocks_free(tl_books *books)
{
    book_block *block = atomic_load(&books->blocks);

    while (block != NULL) {
        book_block *next = block->next;

        block_free(block);
        block = next;
    }
}

/* --------------------------------------------------------------------------------- making it -- */

/* Its values are the trade's own, then the declared ones of line after line. */
static int count_values(struct sql_text *to, const book_line *lines, size_t count)
{
    to->values = BOOK_OWN_COUNT;
    to->mark_count = 0;
    for (size_t i = 0; i < count; i++) {
        to->values += lines[i].statement->value_count;
        to->mark_count += lines[i].statement->one.mark_count;
        if (to->values > VALUES_MAX || to->mark_count > VALUES_MAX)
            return 0;
    }
    to->outside = to->values;
    return 1;
}

static void set_marks(unsigned char *to, const book_line *lines, size_t count)
{
    unsigned declared = 0; /* values of the lines before */

    for (size_t i = 0; i < count; i++) {
        const book_statement *statement = lines[i].statement;

        for (unsigned n = 0; n < statement->one.mark_count; n++) {
            const unsigned mark = statement->one.marks[n];

            *to++ = (unsigned char)(mark < BOOK_OWN_COUNT ? mark : mark + declared);
        }
        declared += statement->value_count;
    }
}

static char *make_text(const book_line *lines, size_t count)
{
    struct text_buffer made;

    text_buffer_init(&made);
    text_buffer_append_text(&made, "BEGIN NOT ATOMIC ");
    for (size_t i = 0; i < count; i++) {
        text_buffer_append_text(&made, lines[i].statement->one.text);
        text_buffer_append_format(&made,
                                  "; IF ROW_COUNT() <> %u THEN SIGNAL SQLSTATE '45000'; END IF; ",
                                  lines[i].statement->rows);
    }
    text_buffer_append_text(&made, "END");
    if (!made.failed)
        return made.data;
    text_buffer_free(&made);
    return NULL;
}

static book_block *block_new(const book_line *lines, size_t count)
{
    struct sql_text sql = {.name = "lines"};
    book_block *block;

    if (!count_values(&sql, lines, count))
        return NULL;
    block = memory_new(sizeof *block + count * sizeof(void *));
    if (block == NULL)
        return NULL;
    block->text = make_text(lines, count);
    block->marks = memory_new(sql.mark_count + 1u);
    if (block->text == NULL || block->marks == NULL) {
        block_free(block);
        return NULL;
    }
    set_marks(block->marks, lines, count);
    sql.text = block->text;
    sql.marks = block->marks;
    block->sql = sql;
    block->count = count;
    for (size_t i = 0; i < count; i++)
        block->statements[i] = lines[i].statement;
    return block;
}

/* -------------------------------------------------------------------------------- finding it -- */

static int is_of(const book_block *block, const book_line *lines, size_t count)
{
    if (block->count != count)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (block->statements[i] != lines[i].statement)
            return 0;
    return 1;
}

/* *length: how many there are, if none is found. */
static book_block *find(book_block *from, const book_line *lines, size_t count, size_t *length)
{
    *length = 0;
    for (; from != NULL; from = from->next, ++*length)
        if (is_of(from, lines, count))
            return from;
    return NULL;
}

const book_block *book_block_of(const tl_book *book, size_t first, size_t count)
{
    const book_line *lines = book->lines + first;
    book_block *head = atomic_load(&book->books->blocks), *made = NULL, *found;
    size_t length;

    for (;;) {
        found = find(head, lines, count, &length);
        if (found != NULL || length >= BLOCKS_MAX)
            break;
        if (made == NULL)
            made = block_new(lines, count);
        if (made == NULL)
            break;
        made->next = head;
        if (atomic_compare_exchange_strong(&book->books->blocks, &head, made))
            return made;
    }
    block_free(made);
    return found;
}

db_answer book_block_run(db *connection, const book_block *block, const tl_book *book, size_t first)
{
    const book_line *line = book->lines + first;
    db_value values[VALUES_MAX], *to = values + BOOK_OWN_COUNT;

    memcpy(values, book->own, sizeof book->own);
    for (size_t i = 0; i < block->count; i++, line++) {
        memcpy(to, line->values, line->statement->value_count * sizeof *to);
        to += line->statement->value_count;
    }
    return db_run(connection, &block->sql, values, block->sql.values, NULL);
}
