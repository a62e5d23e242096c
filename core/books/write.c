/*
 * Writes lines: those of one trade by a prepared statement each, several in one round trip, those of
 * a group by one execution a statement, bound to all of them.  Touches what the statements name, on
 * one connection.
 *
 * The server tells of an array-bound statement only how many rows were changed in all.  So an
 * UPDATE or DELETE of a group appends the number of a line to @tl_changed for each row that the
 * line finds (declare.c).  A line cannot change more rows than it finds.  If each line found as
 * many as declared, and all of them together changed as many as declared, then each changed its
 * own.
 *
 * No line waits for a row or a table that somebody holds, since those of others would wait behind
 * it; only a shared one does.
 *
 * Lines of a summed statement that differ in nothing but what they add are one line there, with
 * their sum.  What it found each of them found.
 */
#include "books/write.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const db_value *value_of(const tl_book *book, const book_line *line, unsigned value)
{
    return value < BOOK_OWN_COUNT ? &book->own[value] : &line->values[value - BOOK_OWN_COUNT];
}

/* The values of a statement for one line: the trade's own, then the declared ones. */
static void fill(db_value *to, const tl_book *book, const book_line *line)
{
    memcpy(to, book->own, sizeof book->own);
    if (line->statement->value_count > 0)
        memcpy(to + BOOK_OWN_COUNT, line->values, line->statement->value_count * sizeof *to);
}

/* --------------------------------------------------------------------------- one trade -- */

#define VALUES_MAX (BOOK_OWN_COUNT + TL_BOOK_VALUES)
#define TOGETHER_MAX (DB_AHEAD_MAX - 1) /* one place is for the lock's statement */

static enum db_wait wait_of(const book_line *line, int waits)
{
    return waits && line->statement->shared ? DB_WAIT_LONG : DB_WAIT_NEVER;
}

/* How many lines go together, from this one on.  A row that is waited for is not locked for a trade
 * that an earlier line refuses. */
static size_t count_together(const tl_book *book, size_t first, int waits)
{
    size_t count = 1;

    for (; count < TOGETHER_MAX && first + count < book->count; count++) {
        const book_line *line = &book->lines[first + count];

        if (wait_of(line, waits) == DB_WAIT_LONG)
            break;
        for (size_t i = first; i < first + count; i++)
            if (book->lines[i].statement == line->statement)
                return count;
    }
    return count;
}

/* The first one that is wrong counts. */
static db_answer judge_together(const book_line *lines, const db_request *requests, size_t count,
                                size_t done, db_answer answer, book_fault *fault)
{
    for (size_t i = 0; i < done; i++)
        if (requests[i].affected != lines[i].statement->rows) {
            fault->line = &lines[i];
            fault->changed = requests[i].affected;
            return answer == DB_ERROR ? DB_DONE : answer;
        }
    if (answer != DB_DONE && done < count)
        fault->line = &lines[done];
    return answer;
}

static void fill_requests(db_request *requests, db_value (*values)[VALUES_MAX], const tl_book *book,
                          size_t first, size_t count, int waits)
{
    for (size_t i = 0; i < count; i++) {
        const book_line *line = &book->lines[first + i];

        fill(values[i], book, line);
        requests[i] = (db_request){.statement = &line->statement->one,
                                   .values = values[i],
                                   .count = line->statement->one.values,
                                   .wait = wait_of(line, waits)};
    }
}

db_answer book_write_first(db *connection, const tl_book *book, const db_request *lead, int waits,
                           size_t *written, book_fault *fault)
{
    db_value values[TOGETHER_MAX][VALUES_MAX];
    db_request requests[DB_AHEAD_MAX] = {*lead};
    db_answer answer;
    size_t done;

    *fault = (book_fault){.line = NULL};
    *written = book->count > 0 && wait_of(&book->lines[0], waits) != DB_WAIT_LONG
                   ? count_together(book, 0, waits)
                   : 0;
    fill_requests(requests + 1, values, book, 0, *written, waits);
    answer = db_books_tx_begin(connection, requests, 1 + *written, &done);
    fault->led = done > 0;
    if (done == 0)
        return answer;
    return judge_together(book->lines, requests + 1, *written, done - 1, answer, fault);
}

static db_answer write_together(db *connection, const tl_book *book, size_t first, size_t count,
                                int waits, book_fault *fault)
{
    db_value values[TOGETHER_MAX][VALUES_MAX];
    db_request requests[TOGETHER_MAX];
    db_answer answer;
    size_t done;

    fill_requests(requests, values, book, first, count, waits);
    answer = db_run_ahead(connection, requests, count, &done);
    return judge_together(book->lines + first, requests, count, done, answer, fault);
}

db_answer book_write(db *connection, const tl_book *book, size_t first, int waits,
                     book_fault *fault)
{
    db_answer answer = DB_DONE;
    size_t count;

    *fault = (book_fault){.line = NULL};
    for (size_t i = first; i < book->count && answer == DB_DONE && fault->line == NULL;
         i += count) {
        count = count_together(book, i, waits);
        answer = write_together(connection, book, i, count, waits, fault);
    }
    return answer;
}

tl_status book_fault_status(const book_fault *fault, int may_refuse)
{
    const book_statement *statement = fault->line->statement;

    if (statement->refused != NULL && may_refuse)
        return error_set(TL_REFUSED, "%s", statement->refused);
    return error_set(TL_CALLBACK_FAILED,
                     "the books are broken: '%s' changed %" PRIu64 " rows instead of %u",
                     statement->name, fault->changed, statement->rows);
}

/* ------------------------------------------------------------------------------ a group -- */

db_answer book_group_begin(book_group *self, db *connection, tl_book *const *books, size_t count)
{
    size_t lines = 0;

    for (size_t i = 0; i < count; i++)
        lines += books[i]->count;
    *self = (book_group){.connection = connection, .books = books, .count = count};
    self->states = memory_new(count);
    self->written = memory_new_array(lines + 1, sizeof *self->written);
    if (self->states == NULL || self->written == NULL)
        return DB_NO_MEMORY;
    return db_group_tx_begin(connection);
}

void book_group_end(book_group *self)
{
    memory_free(self->states);
    memory_free(self->written);
}

void book_group_leave_out(book_group *self, size_t book)
{
    self->states[book] = BOOK_LEFT_OUT;
}

/* "0 1 1 7 ": a line's number for each row that it found. */
static void take_found(book_group *self, const char *text)
{
    char *end;

    for (size_t i = 0; i < self->written_count; i++)
        self->written[i].found = 0;
    for (; *text != '\0'; text = end) {
        const unsigned long line = strtoul(text, &end, 10);

        if (end == text)
            break;
        if (line < self->written_count)
            self->written[line].found++;
        while (*end == ' ')
            end++;
    }
    for (size_t i = 0; i < self->written_count; i++)
        self->written[i].found = self->written[self->written[i].with].found;
}

/* Reads how many rows each line found, so far. */
static db_answer read_found(book_group *self)
{
    static const char sql[] = "SELECT @tl_changed";
    RESULT result = DB_RESULT_INIT;
    db_answer answer = db_run_text(self->connection, "books found", sql, sizeof sql - 1, &result);

    if (answer == DB_DONE && result.rows == 1)
        take_found(self, db_get_text(&result, 0, 0));
    return answer;
}

static int compare_values(const db_value *a, const db_value *b)
{
    const size_t size = a->size < b->size ? a->size : b->size;
    int order;

    if (a->type == DB_NULL || b->type == DB_NULL)
        return (a->type != DB_NULL) - (b->type != DB_NULL);
    if (a->type == DB_INT)
        return (a->int_value > b->int_value) - (a->int_value < b->int_value);
    order = size > 0 ? memcmp(a->data, b->data, size) : 0;
    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

/* A line, while those of its statement are sorted. */
struct sorted {
    const tl_book *book;
    book_written written;
};

static int in_order(const void *left, const void *right)
{
    const struct sorted *a = left, *b = right;
    const book_line *line = a->written.line, *other = b->written.line;

    for (unsigned i = 0; i < line->statement->sort_count; i++) {
        const unsigned value = line->statement->sort[i];
        const int order =
            compare_values(value_of(a->book, line, value), value_of(b->book, other, value));

        if (order != 0)
            return order;
    }
    /* Lines of one trade stay as they were written. */
    if (a->written.book != b->written.book)
        return a->written.book < b->written.book ? -1 : 1;
    return line->order < other->order ? -1 : 1;
}

/* The lines of one statement, while it is run for a group. */
struct lines {
    const book_statement *statement;
    struct sorted *sorted;
    db_value *values; /* of `many`, row after row */
    size_t count;
    size_t rows; /* of the values: sums are one */
};

static size_t count_lines(const book_group *self, const book_statement *statement)
{
    size_t count = 0;

    for (size_t i = 0; i < self->count; i++)
        for (size_t n = 0; self->states[i] == BOOK_RIGHT && n < self->books[i]->count; n++)
            count += self->books[i]->lines[n].statement == statement;
    return count;
}

static void collect(const book_group *self, struct lines *lines)
{
    size_t count = 0;

    for (size_t i = 0; i < self->count; i++) {
        const tl_book *book = self->books[i];

        for (size_t n = 0; self->states[i] == BOOK_RIGHT && n < book->count; n++)
            if (book->lines[n].statement == lines->statement)
                lines->sorted[count++] =
                    (struct sorted){book, {.line = &book->lines[n], .book = (uint32_t)i}};
    }
}

/* 0: of zero and NULL. */
static int sign_of(const db_value *value)
{
    return value->type == DB_INT ? (value->int_value > 0) - (value->int_value < 0) : 0;
}

/* Adds what this row adds to the row before, if they differ in nothing else.  Of one sign, so that
 * the sum changes the row as well as each of them would. */
static int add_to_last(const struct lines *lines, const db_value *row)
{
    const size_t columns = lines->statement->many.values;
    const unsigned addend = lines->statement->addend;
    db_value *last = lines->values + (lines->rows - 1) * columns;
    int64_t sum;

    if (sign_of(&row[addend]) == 0 || sign_of(&row[addend]) != sign_of(&last[addend]))
        return 0;
    for (unsigned i = 0; i < lines->statement->sort_count; i++) {
        const unsigned value = lines->statement->sort[i];

        if (compare_values(&row[value], &last[value]) != 0)
            return 0;
    }
    if (__builtin_add_overflow(last[addend].int_value, row[addend].int_value, &sum))
        return 0;
    last[addend].int_value = sum;
    return 1;
}

/* In their order, each with its number. */
static void number(book_group *self, struct lines *lines)
{
    const size_t columns = lines->statement->many.values;

    qsort(lines->sorted, lines->count, sizeof *lines->sorted, in_order);
    for (size_t i = 0; i < lines->count; i++) {
        db_value *to = lines->values + lines->rows * columns;
        book_written *written = &self->written[self->written_count];
        const uint32_t number = (uint32_t)self->written_count++;

        *written = lines->sorted[i].written;
        written->with = number;
        fill(to, lines->sorted[i].book, lines->sorted[i].written.line);
        if (lines->statement->summed && lines->rows > 0 && add_to_last(lines, to)) {
            written->with = written[-1].with;
            continue;
        }
        if (lines->statement->notes_lines)
            to[columns - 1] = db_int(number);
        lines->rows++;
    }
}

/*
 * The server ran the lines in the order of their numbers, up to one whose row somebody else has; of
 * a locked table it ran none.  The first one behind the last that found a row is that line, or is
 * at fault too.
 */
static db_answer find_blocked(book_group *self, size_t first)
{
    db_answer answer = read_found(self);
    size_t blocked = first;

    for (size_t i = first; i < self->written_count; i++)
        if (self->written[i].found > 0)
            blocked = i + 1;
    if (answer != DB_DONE)
        return answer;
    if (blocked == self->written_count)
        return DB_ERROR;
    self->states[self->written[blocked].book] = BOOK_AT_FAULT;
    self->blocked = 1;
    return DB_DONE;
}

static db_answer run_lines(book_group *self, struct lines *lines)
{
    const book_statement *statement = lines->statement;
    const size_t first = self->written_count;
    RESULT result = DB_RESULT_INIT;
    db_answer answer;

    collect(self, lines);
    number(self, lines);
    answer = db_run_rows(self->connection, &statement->many,
                         &(db_rows){lines->values, lines->rows, statement->many.values,
                                    statement->shared ? DB_WAIT_LONG : DB_WAIT_NEVER},
                         &result);
    self->affected += result.affected;
    if (answer == DB_ERROR && statement->notes_lines && !statement->shared &&
        db_row_is_taken(self->connection))
        answer = find_blocked(self, first);
    return answer;
}

static db_answer write_statement(book_group *self, const book_statement *statement)
{
    struct lines lines = {.statement = statement, .count = count_lines(self, statement)};
    db_answer answer = DB_NO_MEMORY;

    if (lines.count == 0)
        return DB_DONE;
    lines.sorted = memory_new_array(lines.count, sizeof *lines.sorted);
    lines.values = memory_new_array(lines.count * statement->many.values, sizeof(db_value));
    if (lines.sorted != NULL && lines.values != NULL)
        answer = run_lines(self, &lines);
    memory_free(lines.sorted);
    memory_free(lines.values);
    return answer;
}

db_answer book_group_write(book_group *self, enum book_which which)
{
    const tl_books *books = self->books[0]->books;
    db_answer answer = DB_DONE;
    int leading = 1;

    for (size_t i = 0; i < books->count && answer == DB_DONE && !self->blocked; i++) {
        const book_statement *statement = &books->statements[i];

        leading = leading && statement->refused != NULL;
        if (which & (leading ? BOOK_LEADING_STATEMENTS : BOOK_OTHER_STATEMENTS))
            answer = write_statement(self, statement);
    }
    return answer;
}

/* ------------------------------------------------------------------------ right or not -- */

/* Of a line that is written as one of its own, and of which nothing else is known. */
static int counts(const book_group *self, size_t i)
{
    const book_written *w = &self->written[i];

    return self->states[w->book] == BOOK_RIGHT && w->with == i;
}

int book_group_sum_is_right(const book_group *self)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < self->written_count; i++)
        if (counts(self, i))
            sum += self->written[i].line->statement->rows;
    return sum == self->affected;
}

/* What @tl_changed is if each line found as many rows as declared: the lines ran in the order of
 * their numbers. */
static void append_right_finds(const book_group *self, struct text_buffer *to)
{
    for (size_t i = 0; i < self->written_count; i++) {
        const book_statement *statement = self->written[i].line->statement;

        for (unsigned row = 0; counts(self, i) && statement->notes_lines && row < statement->rows;
             row++)
            text_buffer_append_format(to, "%zu ", i);
    }
}

db_answer book_group_commit(book_group *self, int *committed)
{
    struct text_buffer finds;
    db_answer answer = DB_NO_MEMORY;

    *committed = 0;
    if (!book_group_sum_is_right(self))
        return DB_DONE;
    text_buffer_init(&finds);
    append_right_finds(self, &finds);
    if (!finds.failed)
        answer = db_group_tx_commit(self->connection, text_buffer_text(&finds), committed);
    text_buffer_free(&finds);
    return answer;
}

/* ---------------------------------------------------------------------- whose fault it is -- */

/* What a line that notes nothing, an INSERT, changed is not known singly. */
static void judge_line(book_group *self, const book_written *w)
{
    const book_statement *statement = w->line->statement;
    unsigned char *state = &self->states[w->book];

    if (!statement->notes_lines || w->found == statement->rows)
        return;
    *state = BOOK_AT_FAULT;
    self->refused |= statement->refused != NULL;
}

/* A book of which no line found a row, and none was inserted, changed nothing. */
static void forgive(book_group *self)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->states[i] == BOOK_AT_FAULT)
            self->states[i] = BOOK_UNCHANGED;
    for (size_t i = 0; i < self->written_count; i++) {
        const book_written *w = &self->written[i];

        if (self->states[w->book] == BOOK_UNCHANGED &&
            (w->found > 0 || !w->line->statement->notes_lines))
            self->states[w->book] = BOOK_AT_FAULT;
    }
}

static int any(const book_group *self, enum book_state state)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->states[i] == state)
            return 1;
    return 0;
}

db_answer book_group_check(book_group *self)
{
    TRY(read_found(self));
    for (size_t i = 0; i < self->written_count; i++)
        judge_line(self, &self->written[i]);
    forgive(self);
    /* Without those that changed nothing, the others must have changed theirs. */
    self->unexplained =
        !any(self, BOOK_AT_FAULT) && (!any(self, BOOK_UNCHANGED) || !book_group_sum_is_right(self));
    return DB_DONE;
}
