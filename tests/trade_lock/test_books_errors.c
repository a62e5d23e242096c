/*
 * What the server and other sessions do to transactions that many trades with books share: a
 * deadlock with a heavier transaction, rows that are held for longer than anybody waits, snapshots
 * that are too old, queries and connections that are killed, tables that are dropped, altered and
 * locked.  Each trade gets its own right answer, those that have nothing to do with it are
 * unharmed, the sums agree, and no transaction is left open.
 */
#include "fixture.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/books.h>

#include <stdatomic.h>

#define SETTINGS                                                                                   \
    "session_ms=2m\npool_wait_ms=1m\ncommit_ms=2m\nbusiness_lock_wait_s=1\npool_size=8\n"
#define THREADS 20
#define ROUNDS 12
#define AMOUNT 10

/* Roles of threads, which are those of their customers too. */
#define POOR 5
#define IS_QUIET(number) ((number) % 4 == 1) /* touches neither treasury nor orders */

static struct {
    server *own;
    fixture f;
    tl_books *books;
    int tests; /* that have begun; part of the names of their trades */
} scene;

#define SQL scene.f.sql
#define NUMBER(...) (database_number(SQL, __VA_ARGS__))

static const tl_statement statements[] = {
    {.name = "freeze",
     .sql = "UPDATE account SET frozen = frozen + :amount_minor WHERE cust_no = :cust_no"
            " AND balance - frozen >= :amount_minor",
     .refused = "too little money"},
    {.name = "pay",
     .sql = "UPDATE account SET balance = balance - :amount_minor, frozen = frozen - :amount_minor"
            " WHERE cust_no = :cust_no"},
    {.name = "order",
     .sql = "INSERT INTO orders (cust_no, serial_no, epoch) VALUES (:cust_no, :serial_no, :epoch)"},
    {.name = "end order",
     .sql = "UPDATE orders SET state = 'PAID' WHERE cust_no = :cust_no AND serial_no = :serial_no"
            " AND epoch = :epoch AND state = 'OPEN'"},
    {.name = "treasury",
     .sql = "UPDATE treasury SET balance = balance + :amount_minor WHERE id = 1",
     .shared = 1,
     .summed = 1},
};

FIXTURE(set_up)
{
    const char *const options[] = {"--innodb-snapshot-isolation=ON", NULL};

    scene.own = server_start(options);
    scene.f.db = database_new(scene.own, SETTINGS);
    scene.f.client = client_new(&scene.f, TL_CLIENT_NO_JANITOR);
    scene.f.sql = database_connect(scene.f.db);
    database_run(SQL,
                 "CREATE TABLE account (cust_no VARCHAR(64) PRIMARY KEY, balance BIGINT NOT NULL,"
                 " frozen BIGINT NOT NULL DEFAULT 0, touched INT NOT NULL DEFAULT 0)"
                 " ENGINE = InnoDB;"
                 "CREATE TABLE orders (cust_no VARCHAR(64), serial_no VARCHAR(64), epoch INT,"
                 " state VARCHAR(16) NOT NULL DEFAULT 'OPEN',"
                 " PRIMARY KEY (cust_no, serial_no, epoch)) ENGINE = InnoDB;"
                 "CREATE TABLE treasury (id INT PRIMARY KEY, balance BIGINT NOT NULL,"
                 " touched INT NOT NULL DEFAULT 0) ENGINE = InnoDB;"
                 "CREATE TABLE weight (id INT PRIMARY KEY) ENGINE = InnoDB;"
                 "INSERT INTO treasury (id, balance) VALUES (1, 0);"
                 "INSERT INTO account (cust_no, balance) SELECT CONCAT('c', seq), IF(seq = %d, 0,"
                 " 1000000) FROM seq_0_to_%d",
                 POOR, THREADS);
    assert_status(tl_books_new(&scene.books, scene.f.client, statements,
                               sizeof statements / sizeof statements[0]),
                  TL_OK);
}

FIXTURE(tear_down)
{
    tl_client_close(scene.f.client);
    mysql_close(SQL);
    database_free(scene.f.db);
    server_free(scene.own);
}

/* --------------------------------------------------------------------- the trades -- */

static pthread_barrier_t barrier;
static atomic_int ended, quiet_ended, paid, over;
static atomic_int flushed;    /* how often somebody was told to */
static atomic_int go, enough; /* the trades may begin; more than ROUNDS are not asked for */

static tl_lock *new_lock(int number, int round)
{
    tl_lock_options options = sync_options("x");

    options.amount_minor = AMOUNT;
    options.currency = "EUR";
    options.max_hold_ms = 10 * PATIENCE_MS;
    const struct text serial = text_of("%d-%d-%d", scene.tests, number, round);
    return lock_new(scene.f.client, serial.is, text_of("c%d", number).is, &options);
}

static tl_book *new_book(const char *const lines[])
{
    tl_book *book = NULL;

    CREW_STATUS(tl_book_new(&book, scene.books), TL_OK);
    for (; *lines != NULL; lines++)
        tl_book_line(book, *lines);
    return book;
}

static tl_book *ask_book(int number)
{
    static const char *const quiet[] = {"freeze", NULL}, *const usual[] = {"freeze", "order", NULL};

    return new_book(IS_QUIET(number) ? quiet : usual);
}

static tl_book *success_book(int number)
{
    static const char *const quiet[] = {"pay", NULL};
    static const char *const usual[] = {"pay", "end order", "treasury", NULL};

    return new_book(IS_QUIET(number) ? quiet : usual);
}

static int is_undecided(tl_status status)
{
    return tl_status_class(status) == TL_CLASS_RETRY || tl_status_class(status) == TL_CLASS_UNKNOWN;
}

static tl_status ask_once(tl_lock *lock, int number)
{
    tl_book *book = ask_book(number);
    tl_status status = tl_lock_ask_book(lock, book, 0);

    tl_book_free(book);
    return status;
}

static tl_status succeed_once(tl_lock *lock, int number)
{
    tl_ending ending = TL_ENDING_INIT;
    tl_book *book = success_book(number);
    tl_status status;

    ending.outcome = TL_OUTCOME_SUCCESS;
    status = tl_lock_finish_book(lock, &ending, book, 5000);
    tl_book_free(book);
    return status;
}

/* As an operator who was told to: a killed statement left a copy of the table with a broken trigger,
 * and the server gives a caller who is alone the same copy each time. */
static void flush_broken_copies(void)
{
    MYSQL *sql = database_connect(scene.f.db);

    if (mysql_query(sql, "FLUSH TABLES") == 0) /* else it was killed too */
        atomic_fetch_add(&flushed, 1);
    mysql_close(sql);
}

static tl_status until_decided(tl_status (*once)(tl_lock *, int), tl_lock *lock, int number)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_status status;

    for (;;) {
        status = once(lock, number);
        if (!is_undecided(status) || crew_now_ms() >= end_ms)
            return status;
        if (strstr(tl_error_message(), "FLUSH TABLES mends that") != NULL)
            flush_broken_copies();
    }
}

static void withdraw(int number, int round)
{
    tl_lock *lock = new_lock(number, round);

    if (number == POOR) {
        CREW_STATUS(until_decided(ask_once, lock, number), TL_REFUSED);
        CREW_CHECK(strcmp(tl_error_message(), "too little money") == 0);
    } else {
        CREW_STATUS(until_decided(ask_once, lock, number), TL_GRANTED);
        CREW_STATUS(until_decided(succeed_once, lock, number), TL_SUCCEEDED);
        atomic_fetch_add(&paid, 1);
    }
    tl_lock_free(lock);
    atomic_fetch_add(IS_QUIET(number) ? &quiet_ended : &ended, 1);
}

static void withdraw_all(int number)
{
    while (!atomic_load(&go))
        crew_sleep_ms(1);
    for (int round = 0; round < ROUNDS || !atomic_load(&enough); round++)
        withdraw(number, round);
    atomic_fetch_add(&over, 1);
}

/* Somebody else, on a connection of his own.  He sets `go`, and `enough`. */
typedef void (*disturb_fn)(MYSQL *sql);

static void work(void *context, int number)
{
    disturb_fn disturb = *(disturb_fn *)context;

    if (number < THREADS) {
        withdraw_all(number);
    } else {
        MYSQL *sql = database_connect(scene.f.db);

        disturb(sql);
        mysql_close(sql);
    }
}

/* For who disturbs the trades so many times, which are all counted once the trades go on. */
static int goes_on(int times, int most)
{
    atomic_store(&go, 1);
    if (times >= most)
        atomic_store(&enough, 1);
    return atomic_load(&over) < THREADS;
}

static void check_nothing_open(void)
{
    const int64_t until_ms = crew_now_ms() + PATIENCE_MS;
    long long open;

    while ((open = database_transactions(SQL, "ACTIVE", "command = 'Sleep'")) > 0 &&
           crew_now_ms() < until_ms)
        crew_sleep_ms(20);
    assert_int_equal(open, 0);
}

static void check_sums(void)
{
    const long long orders_paid = NUMBER("SELECT COUNT(*) FROM orders WHERE state = 'PAID'");

    assert_int_equal(NUMBER("SELECT balance FROM treasury"), AMOUNT * orders_paid);
    assert_int_equal(NUMBER("SELECT SUM(1000000 - balance) FROM account WHERE balance > 0"),
                     AMOUNT * NUMBER("SELECT COUNT(*) FROM trade_lock WHERE status = 'Y'"));
    assert_int_equal(NUMBER("SELECT SUM(frozen) FROM account"),
                     AMOUNT * NUMBER("SELECT COUNT(*) FROM trade_lock WHERE status = 'P'"));
    assert_int_equal(NUMBER("SELECT COUNT(*) FROM trade_lock t JOIN orders o ON o.cust_no ="
                            " CONVERT(t.cust_no USING utf8mb4) AND o.serial_no ="
                            " CONVERT(t.serial_no USING utf8mb4) AND o.state ="
                            " IF(t.status = 'Y', 'PAID', 'OPEN')"),
                     NUMBER("SELECT COUNT(*) FROM orders"));
    assert_log_whole(&scene.f);
    check_nothing_open();
}

static tl_stats stats(void)
{
    tl_stats of = {.version = TL_STATS_VERSION};

    assert_status(tl_client_stats(scene.f.client, &of), TL_OK);
    return of;
}

static void print_since(const char *what, const tl_stats *before, int64_t began_ms)
{
    const tl_stats now = stats();

    print_message("  %s: %llu groups of %llu steps; deadlocks %llu, lock waits %llu, old snapshots "
                  "%llu, settled %llu; flushed %d times; %lld ms\n",
                  what, (unsigned long long)(now.groups - before->groups),
                  (unsigned long long)(now.grouped - before->grouped),
                  (unsigned long long)(now.deadlocks - before->deadlocks),
                  (unsigned long long)(now.lock_waits - before->lock_waits),
                  (unsigned long long)(now.snapshot_conflicts - before->snapshot_conflicts),
                  (unsigned long long)(now.settled - before->settled), atomic_exchange(&flushed, 0),
                  (long long)(crew_now_ms() - began_ms));
    assert_true(now.groups > before->groups);
}

static void run_beside(const char *what, disturb_fn disturb)
{
    const tl_stats before = stats();
    const int64_t began_ms = crew_now_ms();

    scene.tests++;
    ended = quiet_ended = paid = over = go = enough = 0;
    crew_threads(THREADS + 1, work, &disturb);
    print_since(what, &before, began_ms);
    assert_int_equal(NUMBER("SELECT COUNT(*) FROM trade_lock WHERE status = 'Y' AND serial_no LIKE"
                            " '%d-%%'",
                            scene.tests),
                     paid);
    check_sums();
}

/* ------------------------------------------------------------------ refused locks -- */

/* The lines go with the lock row.  But who asks for a trade again and again that has ended meets no
 * other's rows more than once. */
TEST(test_refused_again_and_again)
{
    tl_lock *lock;

    scene.tests++;
    withdraw(1, 0);
    database_run(SQL, "SET GLOBAL userstat = ON; FLUSH TABLE_STATISTICS");
    lock = new_lock(1, 0);
    for (int i = 0; i < 20; i++)
        assert_status(ask_once(lock, 1), TL_ALREADY_DONE);
    tl_lock_free(lock);
    assert_int_equal(NUMBER("SELECT COALESCE(SUM(rows_changed), 0) FROM"
                            " information_schema.table_statistics WHERE table_schema = DATABASE()"
                            " AND table_name = 'account'"),
                     1);
    database_run(SQL, "SET GLOBAL userstat = OFF");
    withdraw(1, 1);
    check_sums();
}

/* ------------------------------------------------------------------------ deadlocks -- */

static long long waiting(MYSQL *sql)
{
    return database_transactions(sql, "LOCK WAIT", "1");
}

/* Has the treasury, and wants the accounts of a group that waits for it.  It has written more than
 * any group, so it is the group that is rolled back. */
static void meet_in_deadlocks(MYSQL *sql)
{
    MYSQL *look = database_connect(scene.f.db);

    for (int times = 0; goes_on(times, 8); times++) {
        database_run(sql, "BEGIN; INSERT INTO weight SELECT seq FROM seq_1_to_3000;"
                          " UPDATE treasury SET touched = touched + 1");
        while (goes_on(times, 8) && waiting(look) == 0)
            crew_sleep_ms(2);
        database_run(sql, "UPDATE account SET touched = touched + 1");
        database_run(sql, "ROLLBACK");
        crew_sleep_ms(5);
    }
    mysql_close(look);
}

TEST(test_deadlocks)
{
    const tl_stats before = stats();

    run_beside("deadlocks", meet_in_deadlocks);
    assert_true(stats().deadlocks > before.deadlocks);
}

/* ------------------------------------------------------------------------ held rows -- */

/* Lets the trades go, and waits until so many are through; then so long in all that everybody's
 * wait in the server has come to its end. */
static void hold_on(const char *what, atomic_int *through, int most)
{
    const int64_t began_ms = crew_now_ms();
    int64_t took_ms;

    atomic_store(&enough, 1);
    atomic_store(&go, 1);
    while (atomic_load(through) < most && crew_now_ms() < began_ms + PATIENCE_MS)
        crew_sleep_ms(5);
    took_ms = crew_now_ms() - began_ms;
    print_message("  %s: who does not touch it is through after %lld ms\n", what,
                  (long long)took_ms);
    CREW_CHECK(atomic_load(through) == most);
    if (took_ms < 2500)
        crew_sleep_ms(2500 - took_ms);
}

static void hold_an_account(MYSQL *sql)
{
    database_run(sql, "BEGIN; UPDATE account SET touched = touched + 1 WHERE cust_no = 'c7'");
    hold_on("a held account", &over, THREADS - 1);
    database_run(sql, "ROLLBACK");
}

TEST(test_a_held_account)
{
    run_beside("a held account", hold_an_account);
}

/* The others stand at their first ending. */
static void hold_the_treasury(MYSQL *sql)
{
    database_run(sql, "BEGIN; UPDATE treasury SET touched = touched + 1");
    hold_on("a held treasury", &quiet_ended, ROUNDS * THREADS / 4);
    CREW_CHECK(atomic_load(&ended) == 0);
    database_run(sql, "ROLLBACK");
}

TEST(test_a_held_treasury)
{
    run_beside("a held treasury", hold_the_treasury);
}

/* --------------------------------------------- rows that are held for longer than a session */

/* Who waits in the server for a row waits longer than anybody holds it. */
#define SESSION_MS 3000
#define SHORT_SETTINGS                                                                             \
    "session_ms=3s\nbeat_ms=200ms\npool_wait_ms=1m\ncommit_ms=2m\nbusiness_lock_wait_s=50\n"       \
    "pool_size=8\nbusiness_pool_size=4\n"
#define BARE 4        /* threads that have no books */
#define BARE_LOCKS 80 /* at least so many locks of theirs while a row is held */
#define BEATS 10      /* likewise */

static atomic_int bare, let_go;

typedef struct held {
    const char *what, *hold;
    atomic_int *through; /* who has nothing to do with it; so many */
    int most;
    atomic_int *nobody; /* of whoever waits for it; or NULL */
} held;

/* Trades without business rows, beside those with. */
static void lock_without_books(int number)
{
    for (int round = 0; !atomic_load(&let_go); round++) {
        tl_lock *lock;
        const struct text serial = text_of("%d-bare-%d-%d", scene.tests, number, round);

        lock = lock_new(scene.f.client, serial.is, text_of("b%d", number).is, SYNC);
        CREW_STATUS(tl_lock_ask(lock, 0), TL_GRANTED);
        CREW_STATUS(finish(lock, TL_OUTCOME_FAILURE, TL_PROOF_DECLINED), TL_FAILED);
        tl_lock_free(lock);
        atomic_fetch_add(&bare, 1);
        crew_sleep_ms(10);
    }
}

static uint64_t count_beats(void)
{
    tl_stats of = {.version = TL_STATS_VERSION};

    CREW_STATUS(tl_client_stats(scene.f.client, &of), TL_OK);
    return of.beats;
}

/* Until all that shall go on went on, and two sessions are over. */
static void hold_beyond_sessions(const held *h)
{
    const char *session = tl_client_session(scene.f.client);
    MYSQL *sql = database_connect(scene.f.db);
    const int64_t began_ms = crew_now_ms();
    const uint64_t beats = count_beats();

    /* So that a range holds its own rows alone. */
    database_run(sql, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; BEGIN; %s", h->hold);
    atomic_store(&go, 1);
    while ((crew_now_ms() < began_ms + 2 * SESSION_MS || atomic_load(h->through) < h->most ||
            atomic_load(&bare) < BARE_LOCKS || count_beats() < beats + BEATS) &&
           crew_now_ms() < began_ms + PATIENCE_MS / 3)
        crew_sleep_ms(5);
    print_message("  %s: %d of %d through, %d locks without books, %d beats in %d ms\n", h->what,
                  atomic_load(h->through), h->most, atomic_load(&bare),
                  (int)(count_beats() - beats), (int)(crew_now_ms() - began_ms));
    CREW_CHECK(atomic_load(h->through) == h->most);
    CREW_CHECK(h->nobody == NULL || atomic_load(h->nobody) == 0);
    CREW_CHECK(atomic_load(&bare) >= BARE_LOCKS);
    CREW_CHECK(count_beats() >= beats + BEATS);
    CREW_CHECK(tl_client_alive_ms(scene.f.client) > 0);
    CREW_CHECK(strcmp(tl_client_session(scene.f.client), session) == 0);
    atomic_store(&let_go, 1);
    database_run(sql, "ROLLBACK");
    mysql_close(sql);
}

static void work_beside(void *context, int number)
{
    if (number < THREADS)
        withdraw_all(number);
    else if (number < THREADS + BARE)
        lock_without_books(number);
    else
        hold_beyond_sessions(context);
}

static void run_with_short_sessions(const held *h)
{
    tl_client *usual = scene.f.client;
    tl_books *usual_books = scene.books;
    held row = *h;
    tl_stats before;
    int64_t began_ms;

    database_set(scene.f.db, SHORT_SETTINGS);
    scene.f.client = client_new(&scene.f, TL_CLIENT_NO_JANITOR);
    assert_status(tl_books_new(&scene.books, scene.f.client, statements,
                               sizeof statements / sizeof statements[0]),
                  TL_OK);
    before = stats();
    began_ms = crew_now_ms();
    scene.tests++;
    ended = quiet_ended = paid = over = go = bare = let_go = 0;
    enough = 1;
    crew_threads(THREADS + BARE + 1, work_beside, &row);
    print_since(h->what, &before, began_ms);
    assert_int_equal(over, THREADS);
    check_sums();
    tl_client_close(scene.f.client);
    database_set(scene.f.db, SETTINGS);
    scene.f.client = usual;
    scene.books = usual_books;
}

/* More accounts than there are connections for books. */
TEST(test_accounts_held_beyond_a_session)
{
    run_with_short_sessions(
        &(held){"held accounts",
                "UPDATE account SET touched = touched + 1 WHERE cust_no BETWEEN 'c10' AND 'c19'",
                &over, THREADS / 2, NULL});
}

TEST(test_a_treasury_held_beyond_a_session)
{
    run_with_short_sessions(&(held){"a held treasury", "UPDATE treasury SET touched = touched + 1",
                                    &quiet_ended, ROUNDS * THREADS / 4, &ended});
}

/* ------------------------------------------------- errors after which one tries again -- */

static void make_trigger(const char *name, const char *event)
{
    char sql[600];

    snprintf(sql, sizeof sql,
             "CREATE TRIGGER %s BEFORE %s ON orders FOR EACH ROW BEGIN"
             "  DECLARE what INT DEFAULT (SELECT number FROM accident);"
             "  IF what <> 0 THEN SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = what, MESSAGE_TEXT = "
             "'an accident';"
             "  END IF; "
             "END",
             name, event);
    if (mysql_query(SQL, sql) != 0)
        server_panic("no trigger: %s", mysql_error(SQL));
}

/* Again and again for a moment: of one order or more in the midst of a statement, whose transaction
 * the server leaves open. */
static void cause_errors(MYSQL *sql)
{
    static const int numbers[] = {1213, 1205, 1020};

    for (int i = 0; goes_on(i, 90); i++) {
        database_run(sql, "UPDATE accident SET number = %d", numbers[i % 3]);
        crew_sleep_ms(5);
        database_run(sql, "UPDATE accident SET number = 0");
        crew_sleep_ms(10);
    }
}

TEST(test_errors_that_pass)
{
    tl_stats before = stats(), after;

    database_run(SQL, "CREATE TABLE accident (number INT NOT NULL) ENGINE = InnoDB;"
                      "INSERT INTO accident VALUES (0)");
    make_trigger("accident_asked", "INSERT");
    make_trigger("accident_ended", "UPDATE");
    run_beside("errors that pass", cause_errors);
    after = stats();
    database_run(SQL, "DROP TRIGGER accident_asked; DROP TRIGGER accident_ended");
    assert_true(after.deadlocks > before.deadlocks);
    assert_true(after.lock_waits > before.lock_waits);
    assert_true(after.snapshot_conflicts > before.snapshot_conflicts);
}

/* --------------------------------------------------------------- rows that others change -- */

/* A group reads what is committed (READ COMMITTED), so that it has no snapshot that may be old. */
static void change_rows(MYSQL *sql)
{
    for (int i = 0; goes_on(i, 300); i++)
        database_run(sql,
                     i % 3 == 0 ? "UPDATE treasury SET touched = touched + 1"
                                : "UPDATE account SET touched = touched + 1 WHERE cust_no = 'c%d'",
                     i % THREADS);
}

TEST(test_changed_rows)
{
    assert_int_equal(NUMBER("SELECT @@innodb_snapshot_isolation"), 1);
    run_beside("rows that others change", change_rows);
}

/* ------------------------------------------------------------------------- who is killed -- */

/* A connection of the client that has a transaction, or else any that runs something.  The test's own
 * one seems to, for a moment after its last answer. */
static void kill_some(MYSQL *sql, const char *what)
{
    for (int kills = 0; goes_on(kills, 100);) {
        const long long id = database_number(
            sql,
            "SELECT id FROM information_schema.processlist WHERE id NOT IN (CONNECTION_ID(), %lu)"
            " AND db = DATABASE() AND command IN ('Query', 'Execute') AND info IS NOT NULL"
            " ORDER BY info NOT LIKE '%%account%%' AND info NOT LIKE '%%treasury%%', RAND()"
            " LIMIT 1",
            mysql_thread_id(SQL));

        if (id != 0) {
            kills += mysql_query(sql, text_of("KILL %s %lld", what, id).is) ==
                     0; /* else it is gone already */
        }
        crew_sleep_ms(5);
    }
}

static void kill_queries(MYSQL *sql)
{
    kill_some(sql, "QUERY");
}

static void kill_connections(MYSQL *sql)
{
    kill_some(sql, "CONNECTION");
}

TEST(test_killed_queries)
{
    run_beside("killed queries", kill_queries);
}

TEST(test_killed_connections)
{
    run_beside("killed connections", kill_connections);
}

/* ------------------------------------------------------------------------- the tables -- */

static void alter_tables(MYSQL *sql)
{
    for (int i = 0; goes_on(i, 15); i++) {
        database_run(sql, "ALTER TABLE account ADD COLUMN more%d INT, ALGORITHM = COPY", i);
        crew_sleep_ms(20);
        database_run(sql, "ALTER TABLE account DROP COLUMN more%d, ALGORITHM = COPY", i);
        crew_sleep_ms(20);
        database_run(sql, "ALTER TABLE treasury FORCE, ALGORITHM = COPY");
        crew_sleep_ms(20);
    }
}

TEST(test_altered_tables)
{
    run_beside("tables that are altered", alter_tables);
}

/* Whether anybody's connection waits behind it, seen a hundred times: those who have nothing to do
 * with it would wait for that one. */
static void nobody_waits(void)
{
    MYSQL *look = database_connect(scene.f.db);

    for (int i = 0; i < 100; i++) {
        CREW_CHECK(database_number(look, "SELECT COUNT(*) FROM information_schema.processlist "
                                         "WHERE state LIKE 'Waiting for table%%'") == 0);
        crew_sleep_ms(10);
    }
    mysql_close(look);
}

/* As somebody does who alters it, for longer than anybody waits. */
static void lock_a_table(MYSQL *sql)
{
    database_run(sql, "LOCK TABLES orders WRITE");
    atomic_store(&enough, 1);
    atomic_store(&go, 1);
    nobody_waits();
    hold_on("a locked table", &quiet_ended, ROUNDS * THREADS / 4);
    CREW_CHECK(atomic_load(&ended) == 0);
    database_run(sql, "UNLOCK TABLES");
}

TEST(test_a_locked_table)
{
    run_beside("a locked table", lock_a_table);
}

/* What those hear whose table is not as it was declared. */
static const char *complaint;

/* The quiet ones are unharmed; the others hear so, and nothing is written for them. */
static void ask_beside_a_lost_table(void *context, int number)
{
    (void)context;
    for (int round = 0; round < ROUNDS; round++) {
        tl_lock *lock = new_lock(number, round);
        tl_status status;

        pthread_barrier_wait(&barrier);
        status = until_decided(ask_once, lock, number);
        if (number == POOR) {
            CREW_STATUS(status, TL_REFUSED);
        } else if (IS_QUIET(number)) {
            CREW_STATUS(status, TL_GRANTED);
            CREW_STATUS(until_decided(succeed_once, lock, number), TL_SUCCEEDED);
        } else {
            CREW_STATUS(status, TL_CALLBACK_FAILED);
            CREW_CHECK(strstr(tl_error_message(), complaint) != NULL);
        }
        tl_lock_free(lock);
    }
}

static void ask_without(const char *what, const char *words)
{
    const tl_stats before = stats();
    const int64_t began_ms = crew_now_ms();

    complaint = words;
    scene.tests++;
    pthread_barrier_init(&barrier, NULL, THREADS);
    crew_threads(THREADS, ask_beside_a_lost_table, NULL);
    pthread_barrier_destroy(&barrier);
    print_since(what, &before, began_ms);
    assert_int_equal(
        NUMBER("SELECT COUNT(*) FROM trade_lock WHERE serial_no LIKE '%d-%%'", scene.tests),
        ROUNDS * (THREADS / 4 - 1));
    check_nothing_open();
}

TEST(test_changed_tables)
{
    database_run(SQL, "RENAME TABLE orders TO lost_orders");
    ask_without("a table that is gone", "doesn't exist");
    database_run(SQL,
                 "RENAME TABLE lost_orders TO orders; ALTER TABLE orders RENAME COLUMN epoch TO"
                 " try_no");
    ask_without("a column that is gone", "Unknown column");
    database_run(SQL, "ALTER TABLE orders RENAME COLUMN try_no TO epoch; ALTER TABLE orders ADD"
                      " COLUMN payee INT NOT NULL");
    ask_without("a column that wants a value", "'payee' doesn't have a default value");
    database_run(SQL, "ALTER TABLE orders DROP COLUMN payee");
    check_sums();
    run_beside("all as it was", change_rows);
}

TESTS_OF(books_errors, set_up, tear_down)
