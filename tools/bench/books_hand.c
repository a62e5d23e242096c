/* The transactions of `books` as a careful team writes them by hand: prepared, with autocommit off
 * for good, so that nothing is sent but what must be: each statement, and COMMIT. */
#include "books.h"
#include "handwritten.h"

/* Of each connection. */
enum { FREEZE, ORDER, TAKE, PAID, LEDGER, TREASURY, STATEMENTS };
static const char *const texts[STATEMENTS] = {
    "UPDATE account SET frozen = frozen + ? WHERE cust_no = ? AND balance - frozen >= ?",
    "INSERT INTO orders (cust_no, serial_no, amount, state) VALUES (?, ?, ?, 'new')",
    "UPDATE account SET frozen = frozen - ?, balance = balance - ? WHERE cust_no = ?",
    "UPDATE orders SET state = 'paid' WHERE cust_no = ? AND serial_no = ? AND state = 'new'",
    "INSERT INTO ledger (cust_no, serial_no, amount) VALUES (?, ?, ?)",
    "UPDATE treasury SET balance = balance - ? WHERE id = 1",
};
static MYSQL_STMT *statements[HAND_CONNECTIONS_MAX][STATEMENTS];

static books_run run;

static int prepare(MYSQL *connection, unsigned number)
{
    if (mysql_autocommit(connection, 0) != 0)
        bench_fail("autocommit: %s", mysql_error(connection));
    for (int i = 0; i < STATEMENTS; i++)
        statements[number][i] = hand_prepare(connection, texts[i]);
    return 0;
}

static int open_hand(const bench_options *options)
{
    books_begin(&run, options);
    return hand_open(options, prepare);
}

/* How many rows were changed. */
static unsigned change(unsigned at, int which, MYSQL_BIND *binds)
{
    hand_execute(statements[at][which], binds);
    return (unsigned)mysql_stmt_affected_rows(statements[at][which]);
}

static void change_one(unsigned at, int which, MYSQL_BIND *binds)
{
    if (change(at, which, binds) != 1)
        bench_fail("not one row was changed: %s", texts[which]);
}

static void commit(MYSQL *connection)
{
    if (mysql_commit(connection) != 0)
        bench_fail("COMMIT: %s", mysql_error(connection));
}

/* What the statements bind. */
typedef struct values {
    long long amount;
    unsigned long sizes[2];
    MYSQL_BIND cust, serial, money;
} values;

static void bind_values(values *v, trade *t)
{
    v->amount = BOOKS_AMOUNT;
    v->cust = hand_text(t->cust, &v->sizes[0]);
    v->serial = hand_text(t->serial, &v->sizes[1]);
    v->money = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &v->amount};
}

/* 0: too little money. */
static int ask(trade *t)
{
    MYSQL *connection;
    unsigned at = sql_take(&connection), frozen;
    values v;

    bind_values(&v, t);
    hand_insert_payment(at, t);
    frozen = change(at, FREEZE, (MYSQL_BIND[]){v.money, v.cust, v.money});
    if (frozen == 1) {
        change_one(at, ORDER, (MYSQL_BIND[]){v.cust, v.serial, v.money});
        commit(connection);
    } else if (mysql_rollback(connection) != 0) {
        bench_fail("ROLLBACK: %s", mysql_error(connection));
    }
    sql_give(at);
    return frozen == 1;
}

static void end(trade *t)
{
    MYSQL *connection;
    unsigned at = sql_take(&connection);
    values v;

    bind_values(&v, t);
    hand_end(at, t);
    change_one(at, TAKE, (MYSQL_BIND[]){v.money, v.money, v.cust});
    change_one(at, PAID, (MYSQL_BIND[]){v.cust, v.serial});
    change_one(at, LEDGER, (MYSQL_BIND[]){v.cust, v.serial, v.money});
    /* Last, so that its row is held for the commit alone. */
    if (bench.treasury)
        change_one(at, TREASURY, &v.money);
    commit(connection);
    sql_give(at);
}

static int cycle(unsigned caller, uint64_t number)
{
    int rich;
    trade t;

    hand_trade(&t, caller, number);
    rich = books_key(caller, number, t.serial, t.cust);
    if (ask(&t) != rich)
        bench_fail("%s has %s money", t.cust, rich ? "no" : "some");
    if (!rich) {
        bench_count_refused();
        return 1;
    }
    end(&t);
    atomic_fetch_add(&run.paid, 1);
    return 1;
}

static void check(void)
{
    books_check(&run);
}

static void close_hand(void)
{
    for (unsigned i = 0; i < bench.connections; i++)
        for (int j = 0; j < STATEMENTS; j++)
            mysql_stmt_close(statements[i][j]);
    hand_close();
}

const contestant contestant_books_hand = {.name = "books-hand",
                                          .what = "the transactions of `books`, hand-written",
                                          .open = open_hand,
                                          .cycle = cycle,
                                          .close = close_hand,
                                          .after = check};
