/* The lines of a book, and each error that a book keeps, without a server. */
#include "books/books.h"
#include "support/theme.h"

static book_statement statements[3];
static tl_books books = {.statements = statements, .count = 3};
static tl_book *book;

FIXTURE(setup)
{
    static const tl_statement given[] = {
        {.name = "freeze", .sql = "UPDATE account SET a = :epoch WHERE b = :cust_no"},
        {.name = "order",
         .sql = "INSERT INTO orders VALUES (:payee, :fee, :proof)",
         .values = "payee text, fee int, proof bytes"},
        {.name = "fee", .sql = "DELETE FROM fee WHERE fee = :fee", .values = "fee int"},
    };

    for (size_t i = 0; i < books.count; i++)
        assert_int_equal(book_declare(&statements[i], &given[i]), TL_OK);
}

FIXTURE(teardown)
{
    for (size_t i = 0; i < books.count; i++)
        book_statement_free(&statements[i]);
}

FIXTURE(new_book)
{
    assert_int_equal(tl_book_new(&book, &books), TL_OK);
}

FIXTURE(free_book)
{
    tl_book_free(book);
}

static void order(const char *payee, int64_t fee, const char *proof)
{
    tl_book_line(book, "order");
    tl_book_text(book, "payee", payee);
    tl_book_int(book, "fee", fee);
    tl_book_bytes(book, "proof", proof, proof != NULL ? strlen(proof) : 0);
}

static void expect_finish(tl_status status, const char *sentence)
{
    if (book_finish(book) != status)
        fail_msg("got %s, expected %s", tl_error_message(), sentence);
    assert_int_equal(tl_book_check(book), status);
    assert_string_equal(tl_error_message(), sentence);
}

static void assert_value(const db_value *value, db_type type, const char *text)
{
    assert_int_equal(value->type, type);
    assert_int_equal(value->size, strlen(text));
    assert_memory_equal(value->data, text, value->size);
}

/* ----------------------------------------------------------------------------------- lines -- */

TEST_IN(test_lines, new_book, free_book)
{
    char payee[] = "J\xc3\xbcrgen \x01";
    const book_line *line;

    tl_book_line(book, "fee");
    tl_book_int(book, "fee", INT64_MIN);
    order(payee, -1, "");
    tl_book_line(book, "freeze");
    order(NULL, INT64_MAX, NULL);
    tl_book_line(book, "fee");
    tl_book_null(book, "fee");
    memset(payee, 'x', sizeof payee - 1);
    assert_int_equal(tl_book_check(book), TL_OK);
    expect_finish(TL_OK, "");
    assert_int_equal(book->count, 5);
    /* By statement, and then as they were written. */
    line = book->lines;
    assert_ptr_equal(line[0].statement, &statements[0]);
    assert_int_equal(line[0].order, 2);
    assert_ptr_equal(line[1].statement, &statements[1]);
    assert_int_equal(line[1].order, 1);
    assert_value(&line[1].values[0], DB_TEXT, "J\xc3\xbcrgen \x01");
    assert_int_equal(line[1].values[1].type, DB_INT);
    assert_int_equal(line[1].values[1].int_value, -1);
    assert_value(&line[1].values[2], DB_BYTES, "");
    assert_non_null(line[1].values[2].data);
    assert_int_equal(line[2].order, 3);
    assert_int_equal(line[2].values[0].type, DB_NULL);
    assert_int_equal(line[2].values[1].int_value, INT64_MAX);
    assert_int_equal(line[2].values[2].type, DB_NULL);
    assert_ptr_equal(line[3].statement, &statements[2]);
    assert_int_equal(line[3].order, 0);
    assert_int_equal(line[3].values[0].int_value, INT64_MIN);
    assert_int_equal(line[4].order, 4);
    assert_int_equal(line[4].values[0].type, DB_NULL);
}

TEST_IN(test_bytes_may_be_anything, new_book, free_book)
{
    static const char bytes[] = {0, '\xff', 0, 1};

    tl_book_line(book, "order");
    tl_book_bytes(book, "proof", bytes, sizeof bytes);
    tl_book_int(book, "fee", 0);
    tl_book_text(book, "payee", "");
    expect_finish(TL_OK, "");
    assert_int_equal(book->lines[0].values[2].size, sizeof bytes);
    assert_memory_equal(book->lines[0].values[2].data, bytes, sizeof bytes);
    assert_value(&book->lines[0].values[0], DB_TEXT, "");
}

/* Memory grows; what lies there stays where it is. */
TEST_IN(test_many_lines, new_book, free_book)
{
    const db_value *first;
    char payee[200];

    for (int round = 0; round < 3; round++) {
        first = NULL;
        for (int i = 0; i < TL_BOOK_LINES; i++) {
            snprintf(payee, sizeof payee, "%0150d", i);
            order(payee, i, "p");
            if (i == 0)
                first = book->lines[0].values;
        }
        expect_finish(TL_OK, "");
        assert_int_equal(book->count, TL_BOOK_LINES);
        assert_ptr_equal(book->lines[0].values, first);
        for (int i = 0; i < TL_BOOK_LINES; i++) {
            snprintf(payee, sizeof payee, "%0150d", i);
            assert_value(&book->lines[i].values[0], DB_TEXT, payee);
            assert_int_equal(book->lines[i].values[1].int_value, i);
        }
        assert_int_equal(book->bytes, TL_BOOK_LINES * (150 + 8 + 1));
        tl_book_clear(book);
        assert_int_equal(book->count, 0);
        assert_int_equal(book->bytes, 0);
    }
}

/* A book that was used can be used again, and takes more lines. */
TEST_IN(test_again, new_book, free_book)
{
    order("a", 1, NULL);
    tl_book_line(book, "freeze");
    expect_finish(TL_OK, "");
    expect_finish(TL_OK, "");
    order("b", 2, NULL);
    expect_finish(TL_OK, "");
    assert_int_equal(book->count, 3);
    assert_value(&book->lines[1].values[0], DB_TEXT, "a");
    assert_value(&book->lines[2].values[0], DB_TEXT, "b");
    tl_book_text(book, "payee", "c");
    expect_finish(TL_INVALID, "a value is given before a line was begun");
}

/* ---------------------------------------------------------------------------------- errors -- */

#define SECOND "line 2 of the book, \"order\": "

enum what { LINE, INT, TEXT, BYTES, NOTHING, SIZED };

static const struct {
    enum what what;
    const char *name, *sentence;
} bad[] = {
    {LINE, "freese", "line 3 of the book: the statement \"freese\" is not declared"},
    {LINE, "", "line 3 of the book: the statement \"\" is not declared"},
    {LINE, "Fee", "line 3 of the book: the statement \"Fee\" is not declared"},
    {LINE, NULL, "line 3 of the book: its statement is NULL, or not UTF-8"},
    {LINE, "\xff", "line 3 of the book: its statement is NULL, or not UTF-8"},
    {LINE, "freeze", SECOND "the value \"proof\" is missing"},
    {INT, "fees", SECOND "the value \"fees\" is not declared"},
    {INT, NULL, SECOND "the name of a value is NULL, or not UTF-8"},
    {TEXT, "\xff", SECOND "the name of a value is NULL, or not UTF-8"},
    {TEXT, "cust_no", SECOND "the value \"cust_no\" is known from the trade, and not to be given"},
    {INT, "amount_minor",
     SECOND "the value \"amount_minor\" is known from the trade, and not to be given"},
    {INT, "fee", SECOND "the value \"fee\" is given twice"},
    {TEXT, "fee", SECOND "the value \"fee\" is given twice"},
    {NOTHING, "payee", SECOND "the value \"payee\" is given twice"},
    {INT, "proof", SECOND "the value \"proof\" is declared as bytes, and given as int"},
    {TEXT, "proof", SECOND "the value \"proof\" is declared as bytes, and given as text"},
    {SIZED, "proof", SECOND "the value \"proof\" is NULL with a size"},
};

static void do_bad(enum what what, const char *name)
{
    switch (what) {
    case LINE:
        tl_book_line(book, name);
        break;
    case INT:
        tl_book_int(book, name, 1);
        break;
    case TEXT:
        tl_book_text(book, name, "x");
        break;
    case BYTES:
        tl_book_bytes(book, name, "x", 1);
        break;
    case NOTHING:
        tl_book_null(book, name);
        break;
    case SIZED:
        tl_book_bytes(book, name, NULL, 1);
        break;
    }
}

/* The first error stays, whatever follows; a clear removes it. */
TEST_IN(test_errors, new_book, free_book)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tl_book_line(book, "freeze");
        tl_book_line(book, "order");
        tl_book_int(book, "fee", 1);
        tl_book_text(book, "payee", "x");
        /* One that is missing is found when the line ends. */
        if (bad[i].what == LINE && (bad[i].name == NULL || strcmp(bad[i].name, "freeze") != 0))
            tl_book_bytes(book, "proof", "x", 1);
        do_bad(bad[i].what, bad[i].name);
        assert_int_equal(tl_book_check(book), TL_INVALID);
        assert_string_equal(tl_error_message(), bad[i].sentence);
        order("y", 2, NULL);
        tl_book_line(book, "nothing");
        tl_book_refuse(book, TL_REFUSED);
        expect_finish(TL_INVALID, bad[i].sentence);
        tl_book_clear(book);
        order("z", 3, NULL);
        expect_finish(TL_OK, "");
        tl_book_clear(book);
    }
}

TEST_IN(test_missing_in_the_last_line, new_book, free_book)
{
    tl_book_line(book, "freeze");
    tl_book_line(book, "order");
    tl_book_int(book, "fee", 1);
    assert_int_equal(tl_book_check(book), TL_OK);
    expect_finish(TL_INVALID, SECOND "the value \"payee\" is missing");
}

TEST_IN(test_no_line, new_book, free_book)
{
    expect_finish(TL_OK, "");
    tl_book_int(book, "fee", 1);
    expect_finish(TL_INVALID, "a value is given before a line was begun");
}

TEST_IN(test_not_utf8, new_book, free_book)
{
    static const char *const texts[] = {"a\xff", "a\xc3", "a\xc0\x80", "a\xed\xa0\x80"};
    char sentence[200];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        tl_book_line(book, "order");
        tl_book_text(book, "payee", texts[i]);
        snprintf(sentence, sizeof sentence,
                 "line 1 of the book, \"order\": payee: byte 2 is not UTF-8 (0x%02x)",
                 (unsigned char)texts[i][1]);
        expect_finish(TL_INVALID, sentence);
        tl_book_clear(book);
    }
}

TEST_IN(test_too_many_lines, new_book, free_book)
{
    for (int i = 0; i <= TL_BOOK_LINES; i++)
        tl_book_line(book, "freeze");
    expect_finish(TL_INVALID, "the book has more than 256 lines");
}

TEST_IN(test_too_many_bytes, new_book, free_book)
{
    static char bytes[TL_BOOK_BYTES + 1];

    for (size_t more = 0; more <= 1; more++) {
        tl_book_line(book, "order");
        tl_book_int(book, "fee", 1);
        tl_book_text(book, "payee", "12");
        tl_book_bytes(book, "proof", bytes, TL_BOOK_BYTES - 10 + more);
        expect_finish(more ? TL_INVALID : TL_OK,
                      more ? "line 1 of the book, \"order\": the values of the book have more than "
                             "65536 bytes"
                           : "");
        tl_book_clear(book);
    }
}

/* --------------------------------------------------------------------------------- refusal -- */

TEST_IN(test_refuse, new_book, free_book)
{
    tl_book_refuse(book, TL_OK);
    expect_finish(TL_OK, "");
    tl_error_report(TL_REFUSED, "the customer is %s", "blocked");
    tl_book_line(book, "freeze");
    tl_book_refuse(book, TL_REFUSED);
    tl_error_report(TL_BUSY, "another one");
    tl_book_refuse(book, TL_BUSY);
    expect_finish(TL_REFUSED, "the customer is blocked");
    tl_book_clear(book);
    assert_int_equal(tl_book_check(book), TL_OK); /* clears the thread's sentence */
    tl_book_refuse(book, TL_REFUSED);
    expect_finish(TL_REFUSED, "the book was refused: the workflow refused; no row was left");
}

/* Nobody is told of a lock, or of an end, that there is not. */
TEST_IN(test_refuse_is_no_success, new_book, free_book)
{
    tl_book_refuse(book, TL_GRANTED);
    expect_finish(TL_INVALID, "a book was refused with TL_GRANTED, which is no refusal");
    tl_book_clear(book);
    tl_book_refuse(book, TL_SUCCEEDED);
    expect_finish(TL_INVALID, "a book was refused with TL_SUCCEEDED, which is no refusal");
}

TEST(test_null)
{
    tl_book *none = NULL;

    assert_int_equal(tl_book_new(NULL, &books), TL_INVALID);
    assert_int_equal(tl_book_new(&none, NULL), TL_INVALID);
    assert_string_equal(tl_error_message(), "tl_book_new: out or books is NULL");
    assert_null(none);
    tl_book_free(NULL);
    tl_book_clear(NULL);
    tl_book_line(NULL, "freeze");
    tl_book_int(NULL, "fee", 1);
    tl_book_text(NULL, "payee", "x");
    tl_book_bytes(NULL, "proof", "x", 1);
    tl_book_null(NULL, "fee");
    tl_book_refuse(NULL, TL_REFUSED);
    assert_int_equal(tl_book_check(NULL), TL_INVALID);
}

TESTS_OF(book, setup, teardown)
