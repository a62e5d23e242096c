/* Who asks for how much in the part `books`, and whether all money and all rows are there
 * afterwards: accounts, frozen funds, orders, ledger, treasury and locks. */
#include "books.h"

#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>

#define POOR_CUSTOMERS 5000

int books_key(unsigned caller, uint64_t number, char serial[64], char cust[32])
{
    unsigned customer;

    bench_key(caller, number, serial, cust);
    customer = (unsigned)strtoul(cust + 1, NULL, 10);
    if (customer % 100 >= bench.poor)
        return 1;
    snprintf(cust, 32, "P%06u", customer % POOR_CUSTOMERS);
    return 0;
}

/* Each is 0 whenever no transaction is under way. */
static const struct sum {
    const char *what, *sql;
} sums[] = {
    {"accounts and ledger", "SELECT (SELECT SUM(opened_with - balance) FROM account) - "
                            "(SELECT COALESCE(SUM(amount), 0) FROM ledger)"},
    {"frozen funds and open orders",
     "SELECT (SELECT SUM(frozen) FROM account) - "
     "(SELECT COALESCE(SUM(amount), 0) FROM orders WHERE state = 'new')"},
    {"paid orders and ledger",
     "SELECT (SELECT COALESCE(SUM(amount), 0) FROM orders WHERE state = 'paid') - "
     "(SELECT COALESCE(SUM(amount), 0) FROM ledger)"},
    {"locks held and open orders",
     "SELECT (SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'P') - "
     "(SELECT COUNT(*) FROM orders WHERE state = 'new')"},
    {"locks ended and paid orders",
     "SELECT (SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'Y') - "
     "(SELECT COUNT(*) FROM orders WHERE state = 'paid')"},
};

static int differ(double a, double b)
{
    return a < b || a > b;
}

static MYSQL *connect_to(const books_run *run)
{
    bench_options there = bench;

    there.database = run->database;
    return sql_connect(&there);
}

void books_begin(books_run *run, const bench_options *options)
{
    MYSQL *connection;

    run->database = options->database;
    connection = connect_to(run);
    run->ledger_rows = sql_number(connection, "SELECT COUNT(*) FROM ledger");
    run->treasury = sql_number(connection, "SELECT balance FROM treasury WHERE id = 1");
    mysql_close(connection);
}

void books_check(books_run *run)
{
    const double paid = (double)atomic_load(&run->paid);
    MYSQL *connection = connect_to(run);
    double rows, treasury;

    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
        double difference = sql_number(connection, sums[i].sql);

        if (differ(difference, 0))
            bench_fail("the books are wrong: %s differ by %.0f", sums[i].what, difference);
    }
    rows = sql_number(connection, "SELECT COUNT(*) FROM ledger") - run->ledger_rows;
    if (differ(rows, paid))
        bench_fail("the books are wrong: %.0f paid, %.0f in the ledger", paid, rows);
    treasury = run->treasury - sql_number(connection, "SELECT balance FROM treasury WHERE id = 1");
    if (differ(treasury, bench.treasury ? paid * BOOKS_AMOUNT : 0))
        bench_fail("the books are wrong: the treasury gave %.0f for %.0f paid", treasury, paid);
    mysql_close(connection);
}
