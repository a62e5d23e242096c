#include "scene_books.h"

#include <stdio.h>
#include <stdlib.h>

#define COMMIT_MS 3000

static const tl_statement statements[] = {
    {.name = "freeze",
     .sql = "UPDATE account SET frozen = frozen + :amount_minor WHERE cust_no = :cust_no"
            " AND balance - frozen >= :amount_minor",
     .refused = "too little money"},
    {.name = "pay",
     .sql = "UPDATE account SET balance = balance - :amount_minor, frozen = frozen - :amount_minor"
            " WHERE cust_no = :cust_no AND frozen >= :amount_minor"},
    {.name = "unfreeze",
     .sql = "UPDATE account SET frozen = frozen - :amount_minor WHERE cust_no = :cust_no"
            " AND frozen >= :amount_minor"},
    {.name = "ledger",
     .sql = "INSERT INTO ledger (serial_no, note) VALUES (:serial_no, :note)",
     .values = "note text"},
    /* There never is such a row. */
    {.name = "strike out",
     .sql = "DELETE FROM ledger WHERE serial_no = :serial_no AND note = 'to be struck out'"},
    {.name = "treasury",
     .sql = "UPDATE treasury SET balance = balance + :amount_minor WHERE id = 1",
     .shared = 1,
     .summed = 1},
};

void scene_books_open(scene *s)
{
    database_run(s->sql,
                 "CREATE TABLE account (cust_no VARCHAR(64) PRIMARY KEY, first BIGINT NOT NULL,"
                 " balance BIGINT NOT NULL, frozen BIGINT NOT NULL DEFAULT 0) ENGINE=InnoDB;"
                 "CREATE TABLE treasury (id INT PRIMARY KEY, balance BIGINT NOT NULL)"
                 " ENGINE=InnoDB;"
                 "INSERT INTO treasury VALUES (1, 0)");
}

tl_status scene_declare(tl_books **out, tl_client *client)
{
    return tl_books_new(out, client, statements, sizeof statements / sizeof *statements);
}

static void declare(tl_books **books, tl_client *client)
{
    if (*books == NULL && scene_declare(books, client) != TL_OK)
        server_panic("no books: %s", tl_error_message());
}

void scene_open_account(scene *s, int64_t balance)
{
    declare(&s->near_books, s->near);
    declare(&s->far_books, s->far);
    database_run(s->sql, "INSERT INTO account (cust_no, first, balance) VALUES ('%s', %lld, %lld)",
                 s->cust, (long long)balance, (long long)balance);
    s->ledger_was = database_number(s->sql, "SELECT COALESCE(MAX(id), 0) FROM ledger");
    s->treasury_was =
        database_number(s->sql,
                        "SELECT balance - %d * (SELECT COUNT(*) FROM ledger WHERE id > %lld AND"
                        " note = 'success') FROM treasury",
                        SCENE_AMOUNT, s->ledger_was);
}

tl_book *scene_pages(tl_books *books, enum scene_pages which)
{
    static const char *const notes[] = {"ask", "success", "failure"};
    static const char *const moves[] = {"freeze", "pay", "unfreeze"};
    tl_book *book = NULL;

    if (tl_book_new(&book, books) != TL_OK)
        return NULL;
    /* In another order than they are declared in. */
    if (which == PAGES_SUCCESS)
        tl_book_line(book, "treasury");
    tl_book_line(book, "ledger");
    tl_book_text(book, "note", notes[which]);
    tl_book_line(book, moves[which]);
    return book;
}

tl_status scene_ask_book(tl_lock *lock, tl_books *books)
{
    tl_book *book = scene_pages(books, PAGES_ASK);
    tl_status status = book != NULL ? tl_lock_ask_book(lock, book, 0) : TL_NO_MEMORY;

    tl_book_free(book);
    return status;
}

tl_status scene_finish_book(tl_lock *lock, tl_books *books, const tl_ending *ending)
{
    tl_book *book =
        scene_pages(books, ending->outcome == TL_OUTCOME_SUCCESS ? PAGES_SUCCESS : PAGES_FAILURE);
    tl_status status =
        book != NULL ? tl_lock_finish_book(lock, ending, book, COMMIT_MS) : TL_NO_MEMORY;

    tl_book_free(book);
    return status;
}

void scene_booked_past(scene *s, tl_outcome outcome)
{
    tl_ending ending = scene_ending(outcome);
    tl_lock *lock = scene_lock(s, s->near, TL_LANE_SYNC, SCENE_PRICED);
    tl_status status = scene_ask_book(lock, s->near_books);

    if (status == TL_GRANTED)
        status = outcome == TL_OUTCOME_UNKNOWN ? tl_lock_finish(lock, &ending)
                                               : scene_finish_book(lock, s->near_books, &ending);
    if (status != TL_SUCCEEDED && status != TL_FAILED && status != TL_IN_DOUBT)
        server_panic("the past did not happen: %s", tl_error_message());
    tl_lock_free(lock);
}

const char *scene_books_problem(scene *s)
{
    static char problem[200];
    char *sums = database_text(
        s->sql,
        "SELECT IF(a.frozen = %d * (l.asks - l.successes - l.failures) AND a.balance = a.first -"
        " %d * l.successes, NULL, CONCAT('frozen ', a.frozen, ', paid ', a.first - a.balance,"
        " '; asks ', l.asks, ', successes ', l.successes, ', failures ', l.failures))"
        " FROM account a, (SELECT COALESCE(SUM(note = 'ask'), 0) asks,"
        " COALESCE(SUM(note = 'success'), 0) successes, COALESCE(SUM(note = 'failure'), 0) failures"
        " FROM ledger WHERE serial_no = '%s') l WHERE a.cust_no = '%s'",
        SCENE_AMOUNT, SCENE_AMOUNT, s->serial, s->cust);

    problem[0] = '\0';
    if (sums != NULL)
        snprintf(problem, sizeof problem, "the account says something else than the ledger: %s",
                 sums);
    else if (database_number(s->sql,
                             "SELECT balance - %lld <> %d * (SELECT COUNT(*) FROM ledger WHERE"
                             " id > %lld AND note = 'success') FROM treasury",
                             s->treasury_was, SCENE_AMOUNT, s->ledger_was) != 0)
        snprintf(problem, sizeof problem, "the treasury says something else than the ledger");
    free(sums);
    return problem;
}
