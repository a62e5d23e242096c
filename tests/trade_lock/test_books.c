/*
 * Declared books with bare locks: one trade alone, and many that share a transaction.  Each gets
 * exactly its own answer, its neighbours are unharmed, and the sums agree.
 */
#include "fixture.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/books.h>

#include <stdatomic.h>

#define SETTINGS "session_ms=2m\npool_wait_ms=2m\ncommit_ms=2m\n"
#define AMOUNT 10
#define RICH 1000000

static struct {
    fixture f;
    tl_books *books;
} scene;

#define SQL scene.f.sql

static const tl_statement statements[] = {
    {.name = "freeze",
     .sql = "UPDATE account SET frozen = frozen + :amount_minor WHERE cust_no = :cust_no"
            " AND balance - frozen >= :amount_minor",
     .refused = "too little money"},
    {.name = "take two",
     .sql = "UPDATE places SET n = n + step WHERE name = :name",
     .values = "name text",
     .rows = 2,
     .refused = "not two places"},
    {.name = "pay",
     .sql = "UPDATE account SET balance = balance - :amount_minor, frozen = frozen - :amount_minor"
            " WHERE cust_no = :cust_no"},
    {.name = "order",
     .sql = "INSERT INTO orders (cust_no, serial_no, epoch, note) VALUES (:cust_no, :serial_no,"
            " :epoch, :note)",
     .values = "note text"},
    {.name = "end order",
     .sql = "UPDATE orders SET state = :state WHERE cust_no = :cust_no AND serial_no = :serial_no"
            " AND epoch = :epoch AND state = 'OPEN'",
     .values = "state text"},
    {.name = "mark", .sql = "UPDATE marks SET n = n + 1 WHERE name = :name", .values = "name text"},
    {.name = "unmark", .sql = "DELETE FROM marks WHERE name = :name", .values = "name text"},
    {.name = "mark two",
     .sql = "UPDATE places SET n = n + step WHERE name = :name",
     .values = "name text",
     .rows = 2},
    {.name = "unmark two",
     .sql = "DELETE FROM places WHERE name = :name",
     .values = "name text",
     .rows = 2},
    {.name = "set",
     .sql = "UPDATE marks SET n = :n WHERE name = :name",
     .values = "name text, n int"},
    {.name = "fee",
     .sql = "UPDATE account SET balance = balance - :fee WHERE cust_no = :cust_no",
     .values = "fee int"},
    {.name = "freeze the rest",
     .sql = "UPDATE account SET frozen = frozen + :amount_minor WHERE cust_no = :cust_no"
            " AND balance - frozen >= :amount_minor",
     .refused = "too little money is left"},
    {.name = "treasury",
     .sql = "UPDATE treasury SET balance = balance - :amount_minor WHERE id = 1",
     .shared = 1,
     .summed = 1},
    {.name = "transfer",
     .sql = "UPDATE treasury SET balance = balance + :sum WHERE id = :id",
     .values = "sum int, id int",
     .shared = 1,
     .summed = 1},
    {.name = "wei",
     .sql = "UPDATE vault SET wei = wei + :wei WHERE id = 1",
     .values = "wei int",
     .shared = 1,
     .summed = 1},
};

FIXTURE(set_up)
{
    fixture_open(&scene.f, SETTINGS);
    database_run(SQL,
                 "CREATE TABLE account (cust_no VARCHAR(64) PRIMARY KEY, balance BIGINT NOT NULL,"
                 " frozen BIGINT NOT NULL DEFAULT 0) ENGINE = InnoDB;"
                 "CREATE TABLE orders (cust_no VARCHAR(64), serial_no VARCHAR(64), epoch INT,"
                 " state VARCHAR(16) NOT NULL DEFAULT 'OPEN', note VARCHAR(16) NOT NULL,"
                 " PRIMARY KEY (cust_no, serial_no, epoch)) ENGINE = InnoDB;"
                 "CREATE TABLE marks (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(16), n INT"
                 " NOT NULL DEFAULT 0, KEY (name)) ENGINE = InnoDB;"
                 "CREATE TABLE places (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(16), n INT"
                 " NOT NULL DEFAULT 0, step INT NOT NULL DEFAULT 1, KEY (name)) ENGINE = InnoDB;"
                 "CREATE TABLE treasury (id INT PRIMARY KEY, balance BIGINT NOT NULL)"
                 " ENGINE = InnoDB;"
                 "INSERT INTO treasury VALUES (1, 0);"
                 "CREATE TABLE vault (id INT PRIMARY KEY, wei DECIMAL(38) NOT NULL)"
                 " ENGINE = InnoDB;"
                 "INSERT INTO vault VALUES (1, 0);"
                 "INSERT INTO account (cust_no, balance) SELECT CONCAT('c', seq), %d"
                 " FROM seq_0_to_199;"
                 "UPDATE account SET balance = 0 WHERE MOD(SUBSTR(cust_no, 2), 10) = 9",
                 RICH);
    assert_int_equal(tl_books_new(&scene.books, scene.f.client, statements,
                                  sizeof statements / sizeof statements[0]),
                     TL_OK);
}

FIXTURE(tear_down)
{
    fixture_close(&scene.f);
}

static tl_lock_options options(void)
{
    tl_lock_options o = sync_options("x");

    o.amount_minor = AMOUNT;
    o.currency = "EUR";
    return o;
}

static tl_lock *new_lock(const char *serial, const char *cust)
{
    tl_lock_options o = options();

    return lock_new(scene.f.client, serial, cust, &o);
}

static tl_book *new_book(void)
{
    tl_book *book = NULL;

    if (tl_book_new(&book, scene.books) != TL_OK)
        crew_fail(__FILE__, __LINE__, "no book: %s", tl_error_message());
    return book;
}

static tl_book *ask_book(void)
{
    tl_book *book = new_book();

    /* Written in another order than they are declared in. */
    tl_book_line(book, "order");
    tl_book_text(book, "note", "n");
    tl_book_line(book, "freeze");
    return book;
}

static tl_book *success_book(int hot)
{
    tl_book *book = new_book();

    tl_book_line(book, "pay");
    tl_book_line(book, "end order");
    tl_book_text(book, "state", "PAID");
    if (hot)
        tl_book_line(book, "treasury");
    return book;
}

static tl_status ask_with(tl_lock *lock, tl_book *book)
{
    tl_status status;

    do
        status = tl_lock_ask_book(lock, book, 0);
    while (tl_status_class(status) == TL_CLASS_RETRY);
    tl_book_free(book);
    return status;
}

static tl_status succeed_with(tl_lock *lock, tl_book *book)
{
    tl_ending ending = TL_ENDING_INIT;
    tl_status status;

    ending.outcome = TL_OUTCOME_SUCCESS;
    do
        status = tl_lock_finish_book(lock, &ending, book, 60000);
    while (tl_status_class(status) == TL_CLASS_RETRY);
    tl_book_free(book);
    return status;
}

#define NUMBER(...) (database_number(SQL, __VA_ARGS__))

/* Frozen is what open orders say, and what left the accounts is what paid orders say. */
static void check_sums(void)
{
    assert_int_equal(NUMBER("SELECT SUM(frozen) FROM account"),
                     AMOUNT * NUMBER("SELECT COUNT(*) FROM orders WHERE state = 'OPEN'"));
    /* Converted on this side, each order is found by its key. */
    assert_int_equal(NUMBER("SELECT COUNT(*) FROM trade_lock t JOIN orders o ON o.cust_no ="
                            " CONVERT(t.cust_no USING utf8mb4) AND o.serial_no ="
                            " CONVERT(t.serial_no USING utf8mb4) WHERE (o.state = 'PAID') ="
                            " (t.status = 'Y')"),
                     NUMBER("SELECT COUNT(*) FROM orders"));
    assert_log_whole(&scene.f);
}

/* ---------------------------------------------------------------------------- alone -- */

TEST(test_paid)
{
    tl_lock *lock = new_lock("a1", "c1");

    assert_status(ask_with(lock, ask_book()), TL_GRANTED);
    assert_int_equal(NUMBER("SELECT frozen FROM account WHERE cust_no = 'c1'"), AMOUNT);
    assert_int_equal(NUMBER("SELECT epoch FROM orders WHERE serial_no = 'a1'"), 1);
    assert_row(&scene.f, "a1", "c1", "WITHDRAW", "P 1 1");
    assert_status(succeed_with(lock, success_book(0)), TL_SUCCEEDED);
    assert_int_equal(NUMBER("SELECT balance FROM account WHERE cust_no = 'c1'"), RICH - AMOUNT);
    assert_row(&scene.f, "a1", "c1", "WITHDRAW", "Y 1 1");
    tl_lock_free(lock);
    check_sums();
}

TEST(test_refused)
{
    tl_lock *lock = new_lock("a2", "c9");

    assert_status(ask_with(lock, ask_book()), TL_REFUSED);
    assert_string_equal(tl_error_message(), "too little money");
    assert_row(&scene.f, "a2", "c9", "WITHDRAW", "-");
    database_run(SQL, "UPDATE account SET balance = %d WHERE cust_no = 'c9'", AMOUNT);
    assert_status(ask_with(lock, ask_book()), TL_GRANTED);
    assert_status(succeed_with(lock, success_book(0)), TL_SUCCEEDED);
    tl_lock_free(lock);
    /* What was paid is told, whatever the customer has now. */
    lock = new_lock("a2", "c9");
    assert_status(ask_with(lock, ask_book()), TL_ALREADY_DONE);
    tl_lock_free(lock);
    check_sums();
}

static void lose(const char *serial, tl_book *book)
{
    tl_lock *lock = new_lock(serial, "c5");

    assert_status(ask_with(lock, ask_book()), TL_GRANTED);
    database_run(SQL,
                 "UPDATE trade_lock SET fence = fence + 1, rev = rev + 1, step = 'open',"
                 " token = RANDOM_BYTES(16) WHERE serial_no = '%s'",
                 serial);
    assert_status(succeed_with(lock, book), TL_LOST);
    assert_row(&scene.f, serial, "c5", "WITHDRAW", "P 1 1");
    assert_int_equal(NUMBER("SELECT balance FROM account WHERE cust_no = 'c5'"), RICH);
    assert_int_equal(
        NUMBER("SELECT COUNT(*) FROM orders WHERE serial_no = '%s' AND state = 'OPEN'", serial), 1);
    tl_lock_free(lock);
}

/* The lines are sent behind the lock's statement: of a lock that was taken over nothing is left, and
 * a line that fails says nothing. */
TEST(test_lost)
{
    tl_book *book = success_book(0);

    lose("a8", success_book(0));
    tl_book_line(book, "fee"); /* out of the column's range */
    tl_book_int(book, "fee", INT64_MIN);
    lose("a9", book);
    check_sums();
}

TEST(test_broken)
{
    tl_lock *lock = new_lock("a3", "c3");
    tl_book *book = success_book(0);

    assert_status(ask_with(lock, ask_book()), TL_GRANTED);
    database_run(SQL, "UPDATE orders SET state = 'GONE' WHERE serial_no = 'a3'");
    assert_status(succeed_with(lock, book), TL_CALLBACK_FAILED);
    assert_non_null(strstr(tl_error_message(), "'end order' changed 0 rows instead of 1"));
    assert_row(&scene.f, "a3", "c3", "WITHDRAW", "P 1 1");
    assert_int_equal(NUMBER("SELECT frozen FROM account WHERE cust_no = 'c3'"), AMOUNT);
    database_run(SQL, "UPDATE orders SET state = 'OPEN' WHERE serial_no = 'a3'");
    assert_status(succeed_with(lock, success_book(0)), TL_SUCCEEDED);
    tl_lock_free(lock);
    /* Nobody can be refused once money has moved. */
    lock = new_lock("a3b", "c3");
    assert_status(ask_with(lock, ask_book()), TL_GRANTED);
    database_run(SQL, "UPDATE account SET frozen = balance WHERE cust_no = 'c3'");
    book = success_book(0);
    tl_book_line(book, "freeze");
    assert_status(succeed_with(lock, book), TL_CALLBACK_FAILED);
    assert_non_null(strstr(tl_error_message(), "'freeze' changed 0 rows instead of 1"));
    database_run(SQL, "UPDATE account SET frozen = %d WHERE cust_no = 'c3'", AMOUNT);
    assert_status(succeed_with(lock, success_book(0)), TL_SUCCEEDED);
    tl_lock_free(lock);
    check_sums();
}

/* A server that has no room is nobody's fault, least of all the books'. */
TEST(test_no_room)
{
    static const int numbers[] = {1461, 1114};
    tl_lock *lock = new_lock("a6", "c6");
    tl_book *book = ask_book();

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        database_run(SQL,
                     "CREATE TRIGGER no_room BEFORE INSERT ON orders FOR EACH ROW SIGNAL"
                     " SQLSTATE 'HY000' SET MYSQL_ERRNO = %d, MESSAGE_TEXT = 'no room'",
                     numbers[i]);
        assert_status(tl_lock_ask_book(lock, book, 0), TL_OVERLOADED);
        assert_non_null(strstr(tl_error_message(), "no room"));
        assert_row(&scene.f, "a6", "c6", "WITHDRAW", "-");
        database_run(SQL, "DROP TRIGGER no_room");
    }
    assert_status(ask_with(lock, book), TL_GRANTED);
    assert_status(succeed_with(lock, success_book(0)), TL_SUCCEEDED);
    tl_lock_free(lock);
    check_sums();
}

TEST(test_refused_by_the_server)
{
    tl_lock *lock = new_lock("a4", "c4");
    tl_book *book = ask_book();

    tl_book_line(book, "order");
    tl_book_text(book, "note", "twice");
    assert_status(ask_with(lock, book), TL_CALLBACK_FAILED);
    assert_non_null(strstr(tl_error_message(), "'order': the server says: Duplicate entry"));
    assert_row(&scene.f, "a4", "c4", "WITHDRAW", "-");
    book = new_book();
    tl_book_line(book, "order");
    tl_book_text(book, "note", NULL);
    assert_status(ask_with(lock, book), TL_CALLBACK_FAILED);
    assert_non_null(strstr(tl_error_message(), "'note' cannot be null"));
    tl_lock_free(lock);
    check_sums();
}

TEST(test_a_book_that_is_not_written)
{
    tl_lock *lock = new_lock("a5", "c5");
    tl_book *book = ask_book();

    tl_book_line(book, "no such line");
    assert_status(ask_with(lock, book), TL_CALLBACK_FAILED);
    assert_non_null(strstr(tl_error_message(), "no such line"));
    assert_row(&scene.f, "a5", "c5", "WITHDRAW", "-");
    book = new_book();
    tl_book_line(book, "order");
    assert_status(ask_with(lock, book), TL_CALLBACK_FAILED);
    assert_non_null(strstr(tl_error_message(), "note"));
    assert_row(&scene.f, "a5", "c5", "WITHDRAW", "-");
    assert_status(ask_with(lock, ask_book()), TL_GRANTED);
    assert_status(succeed_with(lock, success_book(0)), TL_SUCCEEDED);
    tl_lock_free(lock);
    /* Whoever asks for what is done hears so, and not that his book is bad. */
    lock = new_lock("a5", "c5");
    book = new_book();
    tl_book_line(book, "no such line");
    assert_status(ask_with(lock, book), TL_ALREADY_DONE);
    tl_lock_free(lock);
    check_sums();
}

/* --------------------------------------------------------------------------- groups -- */

#define THREADS 64
#define ROUNDS 6

static pthread_barrier_t barrier;
static atomic_int refused, paid, busy, broken;

/* Of 64: each tenth customer is poor; each eighth trade is asked for twice; each sixteenth's order
 * is there already; the others are paid. */
static void withdraw(void *context, int number)
{
    (void)context;
    for (int round = 0; round < ROUNDS; round++) {
        const int twin = number % 8 == 1;
        const int trade = twin ? number - 1 : number;
        tl_lock *lock;
        tl_status status;
        const struct text serial = text_of("g%d-%d", round, trade);

        lock = new_lock(serial.is, text_of("c%d", trade + 20).is);
        pthread_barrier_wait(&barrier);
        status = ask_with(lock, ask_book());
        if (status == TL_REFUSED) {
            CREW_CHECK((trade + 20) % 10 == 9);
            CREW_CHECK(strcmp(tl_error_message(), "too little money") == 0);
            atomic_fetch_add(&refused, 1);
        } else if (status == TL_CALLBACK_FAILED) {
            CREW_CHECK(trade % 16 == 4);
            CREW_CHECK(strstr(tl_error_message(), "Duplicate entry") != NULL);
            atomic_fetch_add(&broken, 1);
        } else if (status == TL_GRANTED) {
            CREW_CHECK((trade + 20) % 10 != 9 && trade % 16 != 4);
            CREW_STATUS(succeed_with(lock, success_book(round % 2)), TL_SUCCEEDED);
            atomic_fetch_add(&paid, 1);
        } else {
            CREW_CHECK(number % 8 <= 1);
            CREW_CHECK(status == TL_BUSY || status == TL_ALREADY_DONE);
            atomic_fetch_add(&busy, 1);
        }
        tl_lock_free(lock);
        pthread_barrier_wait(&barrier);
    }
}

static void plant_orders(void)
{
    for (int round = 0; round < ROUNDS; round++)
        for (int trade = 4; trade < THREADS; trade += 16)
            database_run(SQL,
                         "INSERT INTO orders (cust_no, serial_no, epoch, note, state) VALUES"
                         " ('c%d', 'g%d-%d', 1, 'planted', 'PLANTED')",
                         trade + 20, round, trade);
}

TEST(test_each_gets_its_own_answer)
{
    tl_stats before = {.version = TL_STATS_VERSION}, after = {.version = TL_STATS_VERSION};
    long long treasury = NUMBER("SELECT balance FROM treasury");

    plant_orders();
    pthread_barrier_init(&barrier, NULL, THREADS);
    assert_status(tl_client_stats(scene.f.client, &before), TL_OK);
    crew_threads(THREADS, withdraw, NULL);
    assert_status(tl_client_stats(scene.f.client, &after), TL_OK);
    pthread_barrier_destroy(&barrier);
    database_run(SQL, "DELETE FROM orders WHERE state = 'PLANTED'");
    check_sums();
    assert_true(after.groups > before.groups + ROUNDS);
    assert_int_equal(broken, ROUNDS * THREADS / 16);
    assert_int_equal(paid, NUMBER("SELECT COUNT(*) FROM trade_lock WHERE serial_no LIKE 'g%%' AND"
                                  " status = 'Y'"));
    assert_int_equal(paid + refused + busy + broken, ROUNDS * THREADS);
    assert_int_equal(refused, ROUNDS * 4);
    assert_int_equal(treasury - NUMBER("SELECT balance FROM treasury"),
                     AMOUNT * NUMBER("SELECT COUNT(*) FROM trade_lock WHERE status = 'Y' AND"
                                     " serial_no REGEXP '^g[135]-'"));
}

/* ---------------------------------------------------------------- often refused -- */

#define ASKERS 60
#define ASK_ROUNDS 12

/* Each tenth asks for a poor customer, or for a rich one in his place. */
struct asking {
    const char *name;
    int poor, rounds;
};

static void ask_at_once(void *context, int number)
{
    const struct asking *a = context;
    const int tenth = number % 10 == 9, poor = tenth && a->poor;
    const struct text cust = text_of("c%d", tenth && !poor ? 110 + number / 10 : 20 + number);

    for (int round = 0; round < a->rounds; round++) {
        tl_lock *lock;

        lock = new_lock(text_of("%s%d-%d", a->name, round, number).is, cust.is);
        pthread_barrier_wait(&barrier);
        CREW_STATUS(ask_with(lock, ask_book()), poor ? TL_REFUSED : TL_GRANTED);
        tl_lock_free(lock);
    }
}

/* What the server did for them. */
static tl_stats cost_of(const char *name, int poor, int rounds)
{
    struct asking a = {name, poor, rounds};
    tl_stats before = {.version = TL_STATS_VERSION}, after = {.version = TL_STATS_VERSION};

    pthread_barrier_init(&barrier, NULL, ASKERS);
    assert_status(tl_client_stats(scene.f.client, &before), TL_OK);
    crew_threads(ASKERS, ask_at_once, &a);
    assert_status(tl_client_stats(scene.f.client, &after), TL_OK);
    pthread_barrier_destroy(&barrier);
    after.statements -= before.statements;
    after.commits -= before.commits;
    after.rollbacks -= before.rollbacks;
    after.groups -= before.groups;
    after.grouped -= before.grouped;
    print_message("  %s: %d trades, %llu statements, %llu commits, %llu rollbacks, %llu groups of "
                  "%llu\n",
                  name, rounds * ASKERS, (unsigned long long)after.statements,
                  (unsigned long long)after.commits, (unsigned long long)after.rollbacks,
                  (unsigned long long)after.groups, (unsigned long long)after.grouped);
    return after;
}

/* Each refused trade costs its own round trip and rollback.  The groups that it leaves cost what they
 * cost without it: none is rolled back once it is remembered that statements refuse. */
TEST(test_often_refused)
{
    const uint64_t refusals = ASK_ROUNDS * ASKERS / 10;
    tl_stats rich, poor;
    uint64_t others;

    rich = cost_of("rich", 0, ASK_ROUNDS);
    (void)cost_of("first", 1, 1);
    poor = cost_of("poor", 1, ASK_ROUNDS);
    assert_true(rich.groups >= ASK_ROUNDS && poor.groups >= ASK_ROUNDS);
    assert_true(2 * rich.grouped > ASK_ROUNDS * ASKERS && 2 * poor.grouped > ASK_ROUNDS * ASKERS);
    assert_in_range(poor.rollbacks, refusals, refusals + poor.groups / 4);
    assert_in_range(poor.commits, 1, 3 * rich.commits / 2);
    /* The lock row and the two lines of each refused trade, alone.  A group that they leave may
     * have one statement more. */
    others = poor.statements - 3 * refusals;
    assert_true(10 * others * rich.commits <= 11 * (rich.statements + rich.commits) * poor.commits);
    check_sums();
}

/* ------------------------------------------------------------------ somebody else's rows -- */

static atomic_int through, held_through;

static void beside_a_held_row(void *context, int number)
{
    tl_lock *lock;
    const struct text serial = text_of("h-%d", number);

    lock = new_lock(serial.is, text_of("c%d", 100 + number % 8).is);
    if (number == THREADS) {
        /* Everybody comes through but those whose account it is. */
        while (atomic_load(&through) < THREADS - THREADS / 8)
            crew_sleep_ms(5);
        CREW_CHECK(atomic_load(&held_through) == 0);
        database_run(context, "ROLLBACK");
    } else {
        CREW_STATUS(ask_with(lock, ask_book()), TL_GRANTED);
        CREW_STATUS(succeed_with(lock, success_book(1)), TL_SUCCEEDED);
        atomic_fetch_add(number % 8 == 3 ? &held_through : &through, 1);
    }
    tl_lock_free(lock);
}

TEST(test_nobody_waits_for_another_ones_row)
{
    MYSQL *holder = database_connect(scene.f.db);

    database_run(holder, "BEGIN; UPDATE account SET balance = balance + 1 WHERE cust_no = 'c103'");
    crew_threads(THREADS + 1, beside_a_held_row, holder);
    assert_int_equal(held_through, THREADS / 8);
    mysql_close(holder);
    check_sums();
}

/* --------------------------------------------------------------- a sum that looks right -- */

/* 60 trades at once, each with one line more: of `statement`, for the name that is its turn. */
struct marking {
    const char *statement;
    const char *const *names; /* three of them, in turn */
    tl_status expected[3];
};

static void mark(void *context, int number)
{
    const struct marking *m = context;
    tl_book *book = ask_book();
    tl_lock *lock;
    const struct text serial = text_of("%s-%s-%d", m->statement, m->names[0], number);

    lock = new_lock(serial.is, text_of("c%d", 120 + number).is);
    tl_book_line(book, m->statement);
    tl_book_text(book, "name", m->names[number % 3]);
    pthread_barrier_wait(&barrier);
    if ((120 + number) % 10 != 9)
        CREW_STATUS(ask_with(lock, book), m->expected[number % 3]);
    else
        tl_book_free(book);
    tl_lock_free(lock);
}

static void mark_all(const char *statement, const char *const *names, const tl_status *expected)
{
    struct marking m = {statement, names, {expected[0], expected[1], expected[2]}};

    pthread_barrier_init(&barrier, NULL, 60);
    crew_threads(60, mark, &m);
    pthread_barrier_destroy(&barrier);
}

/* One line finds no row and another one two: together as many as declared.  Each of the three is
 * the first of its statement once, which the server treats apart. */
TEST(test_sums_are_not_enough)
{
    static const char *const names[][3] = {
        {"a-none", "b-two", "c-one"}, {"b-none", "a-two", "c-one"}, {"c-none", "b-two", "a-one"}};
    static const tl_status expected[] = {TL_CALLBACK_FAILED, TL_CALLBACK_FAILED, TL_GRANTED};

    for (size_t i = 0; i < 3; i++) {
        const char *two = names[i][1], *one = names[i][2];

        database_run(SQL, "TRUNCATE marks; INSERT INTO marks (name) VALUES ('%s'), ('%s'), ('%s')",
                     two, two, one);
        mark_all("mark", names[i], expected);
        assert_int_equal(NUMBER("SELECT SUM(n) FROM marks WHERE name = '%s'", two), 0);
        assert_int_equal(NUMBER("SELECT n FROM marks WHERE name = '%s'", one),
                         NUMBER("SELECT COUNT(*) FROM trade_lock WHERE serial_no LIKE "
                                "'mark-%s-%%'",
                                names[i][0]));
    }
    check_sums();
}

/* The first line of a statement that the server runs for many is treated apart.  Here one finds no
 * row, and that of another statement finds two. */
static void be_first(void *context, int number)
{
    const int poor = number == 5, two = number == 7;
    tl_book *book = ask_book();
    tl_lock *lock;
    const struct text serial = text_of("b%d-%d", *(int *)context, number);

    lock = new_lock(serial.is, poor ? "a-poor" : text_of("c%d", 100 + number % 8).is);
    if (two) {
        tl_book_line(book, "mark");
        tl_book_text(book, "name", "two");
    }
    pthread_barrier_wait(&barrier);
    CREW_STATUS(ask_with(lock, book), poor ? TL_REFUSED : two ? TL_CALLBACK_FAILED : TL_GRANTED);
    tl_lock_free(lock);
}

TEST(test_first_lines)
{
    database_run(SQL, "TRUNCATE marks; INSERT INTO marks (name) VALUES ('two'), ('two');"
                      "INSERT INTO account (cust_no, balance) VALUES ('a-poor', 0)");
    for (int round = 0; round < 20; round++) {
        pthread_barrier_init(&barrier, NULL, 32);
        crew_threads(32, be_first, &round);
        pthread_barrier_destroy(&barrier);
    }
    assert_int_equal(NUMBER("SELECT SUM(n) FROM marks"), 0);
    check_sums();
}

TEST(test_sums_of_deletes)
{
    static const char *const names[][3] = {{"a-none", "b-two", "c-gone"},
                                           {"b-none", "a-two", "c-gone"}};
    static const tl_status expected[] = {TL_CALLBACK_FAILED, TL_CALLBACK_FAILED,
                                         TL_CALLBACK_FAILED};

    for (size_t i = 0; i < 2; i++) {
        database_run(SQL, "TRUNCATE marks; INSERT INTO marks (name) VALUES ('%s'), ('%s')",
                     names[i][1], names[i][1]);
        mark_all("unmark", names[i], expected);
        assert_int_equal(NUMBER("SELECT COUNT(*) FROM marks"), 2);
    }
    check_sums();
}

/* ------------------------------------------------------- a line that must change two rows -- */

/* So many rows have the name; so many of them an UPDATE finds and leaves as they are. */
static const struct kind {
    const char *name;
    int rows, left;
} kinds[] = {{"one", 1, 0}, {"two", 2, 0}, {"three", 3, 0}, {"half", 2, 1}, {"idle", 3, 1}};

#define KINDS ((int)(sizeof kinds / sizeof kinds[0]))

/* A statement of two rows, and what whoever has other rows hears of it. */
struct doubling {
    const char *statement;
    tl_status otherwise;
    int deletes;
    int turn; /* names in another order */
    /* Of this kind, and each fifth of that one; -1: of each kind in turn. */
    int usual, fifth;
};

static int changed_of(const struct doubling *d, const struct kind *k)
{
    return d->deletes ? k->rows : k->rows - k->left;
}

static int kind_of(const struct doubling *d, int number)
{
    if (d->usual < 0)
        return number % KINDS;
    return number % 5 == 0 ? d->fifth : d->usual;
}

/* Each trade has rows of its own, and the kinds are sorted in the order of this turn. */
static void name_places(char name[16], const struct doubling *d, int number)
{
    const int kind = kind_of(d, number);

    snprintf(name, 16, "%c-%s-%d", 'a' + (kind + d->turn) % KINDS, kinds[kind].name, number);
}

static void plant_places(const struct doubling *d, int number)
{
    const struct kind *k = &kinds[kind_of(d, number)];
    char name[16];

    name_places(name, d, number);
    database_run(SQL, "INSERT INTO places (name, step) SELECT '%s', seq > %d FROM seq_1_to_%d",
                 name, k->left, k->rows);
}

static void check_answer(const struct doubling *d, int number, tl_status status)
{
    const int changed = changed_of(d, &kinds[kind_of(d, number)]);

    if (changed == 2) {
        CREW_STATUS(status, TL_GRANTED);
        return;
    }
    CREW_STATUS(status, d->otherwise);
    const struct text words = text_of("'%s' changed %d rows instead of 2", d->statement, changed);
    if (d->otherwise == TL_REFUSED)
        CREW_CHECK(strcmp(tl_error_message(), "not two places") == 0);
    else
        CREW_CHECK(strstr(tl_error_message(), words.is) != NULL);
}

/* Customers c120 to c174, but none of the poor ones. */
static tl_lock *lock_two(const struct doubling *d, int number)
{
    const struct text serial = text_of("%c2-%d-%d-%d", d->statement[0], d->turn, d->fifth, number);

    return new_lock(serial.is, text_of("c%d", 120 + number / 9 * 10 + number % 9).is);
}

static tl_book *book_two(tl_book *book, const struct doubling *d, int number)
{
    char name[16];

    name_places(name, d, number);
    tl_book_line(book, d->statement);
    tl_book_text(book, "name", name);
    return book;
}

#define DOUBLERS 50

static void change_two(void *context, int number)
{
    const struct doubling *d = context;
    tl_lock *lock = lock_two(d, number);

    pthread_barrier_wait(&barrier);
    check_answer(d, number, ask_with(lock, book_two(ask_book(), d, number)));
    tl_lock_free(lock);
}

/* Of whoever was granted both rows are changed, and he has his trade; of others there is nothing. */
static void check_places(const struct doubling *d, int count)
{
    int right = 0;

    for (int number = 0; number < count; number++) {
        const struct kind *k = &kinds[kind_of(d, number)];
        const int granted = changed_of(d, k) == 2;
        char name[16];

        name_places(name, d, number);
        right += granted;
        assert_int_equal(NUMBER("SELECT COUNT(*) FROM places WHERE name = '%s'", name),
                         d->deletes && granted ? 0 : k->rows);
        assert_int_equal(NUMBER("SELECT SUM(n) FROM places WHERE name = '%s'", name),
                         d->deletes || !granted ? 0 : 2);
    }
    assert_int_equal(NUMBER("SELECT COUNT(*) FROM trade_lock WHERE serial_no LIKE '%c2-%d-%d-%%'",
                            d->statement[0], d->turn, d->fifth),
                     right);
    check_sums();
}

static const struct doubling doublings[] = {
    {"take two", TL_REFUSED, 0, 0, -1, 9},
    {"mark two", TL_CALLBACK_FAILED, 0, 0, -1, 9},
    {"unmark two", TL_CALLBACK_FAILED, 1, 0, -1, 9},
};

#define DOUBLINGS (sizeof doublings / sizeof doublings[0])

TEST(test_two_rows)
{
    for (size_t i = 0; i < DOUBLINGS; i++) {
        struct doubling d = doublings[i];

        d.turn = 9; /* whose serial numbers no group has */
        database_run(SQL, "TRUNCATE places");
        for (int number = 0; number < KINDS; number++) {
            tl_lock *lock = lock_two(&d, number);

            plant_places(&d, number);
            check_answer(&d, number, ask_with(lock, book_two(ask_book(), &d, number)));
            tl_lock_free(lock);
        }
        check_places(&d, KINDS);
    }
}

/* An ending whose line finds other rows is not written; once it finds two it is. */
TEST(test_two_rows_of_an_ending)
{
    static const int wrong[] = {0, 2}; /* one row, and three */
    const struct doubling *d = &doublings[1];

    database_run(SQL, "TRUNCATE places");
    for (size_t i = 0; i < 2; i++) {
        tl_lock *lock = new_lock(i == 0 ? "two-1" : "two-3", "c14");

        plant_places(d, wrong[i]);
        plant_places(d, 1 + (int)i * KINDS);
        assert_status(ask_with(lock, ask_book()), TL_GRANTED);
        assert_status(succeed_with(lock, book_two(success_book(0), d, wrong[i])),
                      TL_CALLBACK_FAILED);
        assert_non_null(strstr(tl_error_message(), i == 0 ? "changed 1 rows instead of 2"
                                                          : "changed 3 rows instead of 2"));
        assert_row(&scene.f, i == 0 ? "two-1" : "two-3", "c14", "WITHDRAW", "P 1 1");
        assert_int_equal(NUMBER("SELECT SUM(n) FROM places"), 2 * (int)i);
        check_sums();
        assert_status(succeed_with(lock, book_two(success_book(0), d, 1 + (int)i * KINDS)),
                      TL_SUCCEEDED);
        tl_lock_free(lock);
    }
    assert_int_equal(NUMBER("SELECT SUM(n) FROM places"), 4);
    check_sums();
}

static tl_stats stats(void)
{
    tl_stats of = {.version = TL_STATS_VERSION};

    assert_status(tl_client_stats(scene.f.client, &of), TL_OK);
    return of;
}

static void change_two_at_once(struct doubling *d)
{
    database_run(SQL, "TRUNCATE places");
    for (int number = 0; number < DOUBLERS; number++)
        plant_places(d, number);
    pthread_barrier_init(&barrier, NULL, DOUBLERS);
    crew_threads(DOUBLERS, change_two, d);
    pthread_barrier_destroy(&barrier);
    check_places(d, DOUBLERS);
}

TEST(test_two_rows_in_groups)
{
    const tl_stats before = stats();

    for (size_t i = 0; i < DOUBLINGS; i++)
        for (int turn = 0; turn < KINDS; turn++) {
            struct doubling d = doublings[i];

            d.turn = turn;
            change_two_at_once(&d);
        }
    assert_true(stats().groups > before.groups + DOUBLINGS * KINDS);
}

/* Whoever finds two rows stays in his group, and it is committed: at once where all do, and without
 * those who find one or three. */
TEST(test_two_rows_are_right)
{
    static const int fifths[] = {1, 0, 2};

    for (size_t i = 0; i < DOUBLINGS * 3; i++) {
        const tl_stats before = stats();
        struct doubling d = doublings[i / 3];
        tl_stats now;
        uint64_t groups;

        d.usual = 1;
        d.fifth = fifths[i % 3];
        change_two_at_once(&d);
        now = stats();
        groups = now.groups - before.groups;
        assert_true(groups > 0);
        assert_in_range(now.commits - before.commits, 1,
                        groups + DOUBLERS - (now.grouped - before.grouped) + 4);
    }
}

/* ------------------------------------------------------------------- in declared order -- */

/* Customers c180 to c188 have enough for one of the two: the fee is taken first, and then too
 * little is left.  A poor neighbour must not change that. */
static void take_fee(void *context, int number)
{
    const int poor = number % 2;
    tl_book *book = new_book();
    tl_lock *lock;
    const struct text serial = text_of("f%d-%d", *(int *)context, number);

    lock = new_lock(serial.is, text_of("c%d", poor ? 189 : 180 + number / 2 % 9).is);
    if (!poor) {
        tl_book_line(book, "fee");
        tl_book_int(book, "fee", 1);
    }
    tl_book_line(book, poor ? "freeze" : "freeze the rest");
    pthread_barrier_wait(&barrier);
    CREW_STATUS(ask_with(lock, book), TL_REFUSED);
    tl_lock_free(lock);
}

TEST(test_declared_order)
{
    database_run(SQL,
                 "UPDATE account SET balance = frozen + %d WHERE cust_no BETWEEN 'c180' AND "
                 "'c188'",
                 AMOUNT);
    for (int round = 0; round < 5; round++) {
        pthread_barrier_init(&barrier, NULL, 36);
        crew_threads(36, take_fee, &round);
        pthread_barrier_destroy(&barrier);
    }
    assert_int_equal(NUMBER("SELECT COUNT(*) FROM trade_lock WHERE serial_no REGEXP '^f[0-9]-'"),
                     0);
    check_sums();
}

/* Two lines of one statement on one row keep their order, in groups too. */
static void set_twice(void *context, int number)
{
    tl_book *book = ask_book();
    tl_lock *lock;

    (void)context;
    const struct text serial = text_of("s-%d", number);
    const struct text cust = text_of("c%d", 20 + number % 9);
    const struct text name = text_of("s%d", number);
    lock = new_lock(serial.is, cust.is);
    for (int n = 2; n > 0; n--) {
        tl_book_line(book, "set");
        tl_book_text(book, "name", name.is);
        tl_book_int(book, "n", n);
    }
    pthread_barrier_wait(&barrier);
    CREW_STATUS(ask_with(lock, book), TL_GRANTED);
    tl_lock_free(lock);
}

TEST(test_lines_keep_their_order)
{
    database_run(SQL, "TRUNCATE marks; INSERT INTO marks (name) SELECT CONCAT('s', seq) FROM "
                      "seq_0_to_35");
    pthread_barrier_init(&barrier, NULL, 36);
    crew_threads(36, set_twice, NULL);
    pthread_barrier_destroy(&barrier);
    assert_int_equal(NUMBER("SELECT COUNT(*) FROM marks WHERE n <> 1"), 0);
    check_sums();
}

/* --------------------------------------------------------------------------- tried anew -- */

/* Whoever asks again with another amount books the trade's own, as its ending will. */
TEST(test_an_amount_is_the_trades)
{
    tl_ending failure = TL_ENDING_INIT;
    tl_lock_options o = options();
    tl_lock *lock = new_lock("anew", "c11");
    tl_book *book;

    assert_status(ask_with(lock, ask_book()), TL_GRANTED);
    failure.outcome = TL_OUTCOME_FAILURE;
    failure.proof = TL_PROOF_DECLINED;
    failure.retryable = 1;
    database_run(SQL, "DELETE FROM orders WHERE serial_no = 'anew'");
    database_run(SQL, "UPDATE account SET frozen = frozen - %d WHERE cust_no = 'c11'", AMOUNT);
    book = new_book();
    assert_status(tl_lock_finish_book(lock, &failure, book, 60000), TL_FAILED);
    tl_book_free(book);
    tl_lock_free(lock);
    o.flags |= TL_ASK_RECLAIM;
    o.reclaim_epoch = 1;
    o.amount_minor = 7 * AMOUNT;
    lock = lock_new(scene.f.client, "anew", "c11", &o);
    assert_status(ask_with(lock, ask_book()), TL_GRANTED);
    assert_int_equal(NUMBER("SELECT epoch FROM orders WHERE serial_no = 'anew'"), 2);
    check_sums();
    assert_status(succeed_with(lock, success_book(0)), TL_SUCCEEDED);
    tl_lock_free(lock);
    check_sums();
}

/* What was not said is not booked as nothing. */
TEST(test_no_amount)
{
    tl_lock *lock = lock_new(scene.f.client, "unsaid", "c12", SYNC);

    assert_status(ask_with(lock, ask_book()), TL_REFUSED);
    assert_row(&scene.f, "unsaid", "c12", "WITHDRAW", "-");
    tl_lock_free(lock);
    check_sums();
}

/* ------------------------------------------------------------------------------- sums -- */

/* What the trade with this number adds: of both signs, and zero for each eighth. */
static int sum_of(int number)
{
    return number % 8 == 5 ? 0 : number - 20;
}

/* Two trades name no number, and a row that is not there. */
#define NULL_SUM 40
#define NO_ROW 41

static int odd_ones; /* they take part */

/* Two of them are more than an int64_t takes, and the column takes all. */
#define FIVE_ETHER 5000000000000000000

static const char *sum_fault(int number)
{
    if (odd_ones && number == NULL_SUM)
        return "cannot be null";
    if ((odd_ones && number == NO_ROW) || sum_of(number) == 0)
        return "'transfer' changed 0 rows instead of 1";
    return NULL;
}

static void transfer(void *context, int number)
{
    const char *fault = sum_fault(number);
    tl_book *book = ask_book();
    tl_lock *lock;

    (void)context;
    const struct text serial = text_of("sum%d-%d", odd_ones, number);
    lock = new_lock(serial.is, text_of("c%d", 20 + number % 9).is);
    tl_book_line(book, "transfer");
    if (odd_ones && number == NULL_SUM)
        tl_book_null(book, "sum");
    else
        tl_book_int(book, "sum", sum_of(number));
    tl_book_int(book, "id", odd_ones && number == NO_ROW ? 9 : 1 + number % 2);
    tl_book_line(book, "wei");
    tl_book_int(book, "wei", FIVE_ETHER);
    pthread_barrier_wait(&barrier);
    CREW_STATUS(ask_with(lock, book), fault == NULL ? TL_GRANTED : TL_CALLBACK_FAILED);
    CREW_CHECK(fault == NULL || strstr(tl_error_message(), fault) != NULL);
    tl_lock_free(lock);
}

static void transfer_all(void)
{
    long long before[2], expected[2] = {0, 0};
    int right = 0;

    database_run(SQL, "UPDATE vault SET wei = 0");
    for (int number = 0; number < THREADS; number++)
        if (sum_fault(number) == NULL) {
            expected[number % 2] += sum_of(number);
            right++;
        }
    for (int id = 1; id <= 2; id++)
        before[id - 1] = NUMBER("SELECT balance FROM treasury WHERE id = %d", id);
    pthread_barrier_init(&barrier, NULL, THREADS);
    crew_threads(THREADS, transfer, NULL);
    pthread_barrier_destroy(&barrier);
    for (int id = 1; id <= 2; id++)
        assert_int_equal(NUMBER("SELECT balance FROM treasury WHERE id = %d", id) - before[id - 1],
                         expected[id - 1]);
    assert_int_equal(NUMBER("SELECT wei / %lld FROM vault", (long long)FIVE_ETHER), right);
    check_sums();
}

/* What the lines of each row add up to is written, and whoever's line is at fault hears it alone.
 * A trigger tells how many lines were written. */
TEST(test_sums)
{
    database_run(SQL, "INSERT INTO treasury VALUES (2, 0);"
                      "CREATE TRIGGER written AFTER UPDATE ON treasury FOR EACH ROW"
                      " INSERT INTO marks (name) VALUES ('written')");
    odd_ones = 0;
    transfer_all();
    assert_in_range(NUMBER("SELECT COUNT(*) FROM marks WHERE name = 'written'"), 1, THREADS - 12);
    odd_ones = 1;
    transfer_all();
    database_run(SQL, "DROP TRIGGER written; DELETE FROM marks");
}

/* ------------------------------------------------------------------- a held shared row -- */

static atomic_int without_treasury;

/* Whoever has no line of the treasury's comes through while somebody holds its row. */
static void beside_the_treasury(void *context, int number)
{
    tl_lock *lock;
    const struct text serial = text_of("t-%d", number);

    lock = new_lock(serial.is, text_of("c%d", 20 + number % 9).is);
    if (number == THREADS) {
        while (atomic_load(&without_treasury) < THREADS / 2)
            crew_sleep_ms(5);
        database_run(context, "ROLLBACK");
    } else {
        CREW_STATUS(ask_with(lock, ask_book()), TL_GRANTED);
        CREW_STATUS(succeed_with(lock, success_book(number % 2)), TL_SUCCEEDED);
        if (number % 2 == 0)
            atomic_fetch_add(&without_treasury, 1);
    }
    tl_lock_free(lock);
}

TEST(test_a_held_treasury)
{
    MYSQL *holder = database_connect(scene.f.db);

    database_run(holder, "BEGIN; UPDATE treasury SET balance = balance + 1 WHERE id = 1");
    crew_threads(THREADS + 1, beside_the_treasury, holder);
    mysql_close(holder);
    check_sums();
}

/* -------------------------------------------------------------------- used by two at once -- */

static void use_one(void *context, int number)
{
    tl_lock *lock;
    tl_status status;

    lock = new_lock(text_of("w-%d", number).is, "c13");
    pthread_barrier_wait(&barrier);
    do
        status = tl_lock_ask_book(lock, context, 0);
    while (status == TL_WRONG_STATE || tl_status_class(status) == TL_CLASS_RETRY);
    CREW_STATUS(status, TL_GRANTED);
    tl_lock_free(lock);
}

TEST(test_a_book_is_one_trades_at_a_time)
{
    tl_book *book = ask_book();

    pthread_barrier_init(&barrier, NULL, 16);
    crew_threads(16, use_one, book);
    pthread_barrier_destroy(&barrier);
    tl_book_free(book);
    assert_int_equal(
        NUMBER("SELECT COUNT(DISTINCT serial_no) FROM orders WHERE cust_no = 'c13' AND "
               "serial_no LIKE 'w-%%'"),
        16);
    check_sums();
}

/* A temporary table that a trigger left on a connection hinders no evidence, which asks for a session
 * without one. */
TEST(test_evidence_behind_a_temporary_table)
{
    tl_evidence evidence = TL_EVIDENCE_INIT;
    tl_lock *lock = new_lock("t1", "c14");

    database_run(SQL, "CREATE TRIGGER leaves AFTER UPDATE ON account FOR EACH ROW"
                      " CREATE OR REPLACE TEMPORARY TABLE left_behind (a INT)");
    assert_status(ask_with(lock, ask_book()), TL_GRANTED);
    evidence.key = (tl_key){"t1", "c14", "WITHDRAW"};
    evidence.outcome = "SUCCEEDED";
    evidence.source = "web-hook";
    assert_status(tl_evidence_add(scene.f.client, &evidence), TL_OK);
    database_run(SQL, "DROP TRIGGER leaves");
    assert_status(succeed_with(lock, success_book(0)), TL_SUCCEEDED);
    tl_lock_free(lock);
    check_sums();
}

TESTS_OF(books, set_up, tear_down)
