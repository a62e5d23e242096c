/*
 * Death within a group: SIGKILL before and after the statement that many threads share, and the
 * server's death under it.
 *
 * The threads pay into a ledger in shared memory, which stands for the channel: what it says
 * outlives every process.  What a process was told before it died must be on the rows, and in the
 * end every trade was paid once, or never where it failed.
 *
 * The same with declared books: account, treasury and orders must follow the rows, whoever died.
 */
#include "support/crew.h"
#include "support/database.h"
#include "support/theme.h"

#include "base/fault.h"

#include <tradelock/admin.h>
#include <tradelock/books.h>

#include <signal.h>
#include <sys/wait.h>

#define THREADS 16
#define TRADES 60 /* of each thread, unless the process dies before */
#define CHILDREN 256
#define LIMIT_MS 120000
#define SETTINGS "beat_ms=100ms\nsession_ms=3s\nconnect_timeout_s=2\npool_size=3\n"

/* What is known outside of the database. */
struct trade {
    int granted, paid, ended; /* the library said so; the channel did; the library */
};

static struct board {
    struct trade trades[CHILDREN][THREADS][TRADES];
    uint64_t groups, grouped, settled;
} *board;

static struct {
    server *own;
    database *db;
    MYSQL *sql;
    int children;
    int booked; /* the trades have books */
} scene;

static struct {
    tl_client *client;
    tl_books *books; /* if the trades have them */
    int child;
} mine; /* of a child */

/* ----------------------------------------------------------------------- the books -- */

#define AMOUNT 10

static const tl_statement statements[] = {
    {.name = "freeze",
     .sql = "UPDATE account SET frozen = frozen + :amount_minor WHERE cust_no = :cust_no"
            " AND balance - frozen >= :amount_minor",
     .refused = "too little money"},
    {.name = "pay",
     .sql = "UPDATE account SET balance = balance - :amount_minor, frozen = frozen - :amount_minor"
            " WHERE cust_no = :cust_no"},
    {.name = "unfreeze",
     .sql = "UPDATE account SET frozen = frozen - :amount_minor WHERE cust_no = :cust_no"
            " AND frozen >= :amount_minor"},
    {.name = "order",
     .sql = "INSERT INTO orders (serial_no, cust_no) VALUES (:serial_no, :cust_no)"},
    {.name = "end order",
     .sql = "UPDATE orders SET state = :state WHERE serial_no = :serial_no AND state = 'OPEN'",
     .values = "state text"},
    {.name = "treasury",
     .sql = "UPDATE treasury SET balance = balance + :amount_minor WHERE id = 1",
     .shared = 1,
     .summed = 1},
};

static void make_tables(void)
{
    database_run(scene.sql,
                 "CREATE TABLE account (cust_no VARCHAR(64) PRIMARY KEY, balance BIGINT NOT NULL,"
                 " frozen BIGINT NOT NULL DEFAULT 0) ENGINE = InnoDB;"
                 "CREATE TABLE orders (serial_no VARCHAR(64) PRIMARY KEY, cust_no VARCHAR(64) NOT"
                 " NULL, state VARCHAR(16) NOT NULL DEFAULT 'OPEN') ENGINE = InnoDB;"
                 "CREATE TABLE treasury (id INT PRIMARY KEY, balance BIGINT NOT NULL)"
                 " ENGINE = InnoDB;"
                 "INSERT INTO treasury VALUES (1, 0);"
                 "INSERT INTO account (cust_no, balance) SELECT CONCAT('c', seq), 100000000 FROM"
                 " seq_0_to_%d",
                 THREADS - 1);
}

/* lines: names of statements; state: for the one that needs it. */
static tl_book *new_book(const char *const lines[], const char *state)
{
    tl_book *book = NULL;

    CREW_STATUS(tl_book_new(&book, mine.books), TL_OK);
    for (; *lines != NULL; lines++) {
        tl_book_line(book, *lines);
        if (strcmp(*lines, "end order") == 0)
            tl_book_text(book, "state", state);
    }
    CREW_STATUS(tl_book_check(book), TL_OK);
    return book;
}

static tl_book *ask_book(void)
{
    static const char *const lines[] = {"freeze", "order", NULL};

    return new_book(lines, NULL);
}

static tl_book *end_book(const tl_ending *ending)
{
    static const char *const paid[] = {"pay", "end order", "treasury", NULL};
    static const char *const failed[] = {"unfreeze", "end order", NULL};

    return ending->outcome == TL_OUTCOME_SUCCESS ? new_book(paid, "PAID")
                                                 : new_book(failed, "FAILED");
}

/* Every trade with its order, as its row says; what is frozen is what is open. */
static void check_accounts(void)
{
    MYSQL *sql = scene.sql;

    assert_int_equal(database_number(sql, "SELECT COUNT(*) FROM orders"),
                     database_number(sql, "SELECT COUNT(*) FROM trade_lock WHERE op_code = 'PAYOUT'"
                                          " AND lane = 'S'"));
    assert_int_equal(database_number(sql, "SELECT COUNT(*) FROM trade_lock t LEFT JOIN orders o ON"
                                          " o.serial_no = CONVERT(t.serial_no USING utf8mb4) WHERE"
                                          " t.op_code = 'PAYOUT' AND t.lane = 'S' AND NOT o.state"
                                          " <=> CASE t.status WHEN 'Y' THEN 'PAID' WHEN 'F' THEN"
                                          " 'FAILED' ELSE 'OPEN' END"),
                     0);
    assert_int_equal(
        database_number(sql,
                        "SELECT COUNT(*) FROM (SELECT a.frozen, 100000000 - a.balance AS paid,"
                        " %d * COALESCE(SUM(o.state = 'OPEN'), 0) AS open_orders,"
                        " %d * COALESCE(SUM(o.state = 'PAID'), 0) AS paid_orders"
                        " FROM account a LEFT JOIN orders o USING (cust_no) GROUP BY a.cust_no)"
                        " x WHERE frozen <> open_orders OR paid <> paid_orders",
                        AMOUNT, AMOUNT),
        0);
    assert_int_equal(database_number(sql, "SELECT balance FROM treasury"),
                     AMOUNT *
                         database_number(sql, "SELECT COUNT(*) FROM orders WHERE state = 'PAID'"));
}

/* ---------------------------------------------------------------- who will die -- */

static int is_decline(int thread)
{
    return thread % 3 == 2;
}

static int is_open(tl_status status)
{
    return tl_status_class(status) == TL_CLASS_RETRY || tl_status_class(status) == TL_CLASS_UNKNOWN;
}

static tl_client *open_client(void)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = database_option_file(scene.db);
    CREW_STATUS(tl_client_open(&client, &options), TL_OK);
    if (scene.booked)
        CREW_STATUS(
            tl_books_new(&mine.books, client, statements, sizeof statements / sizeof *statements),
            TL_OK);
    return client;
}

static tl_lock *new_lock(const char *serial, const char *cust, const char *op, tl_lane lane,
                         unsigned flags)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_key key = {serial, cust, op};
    tl_lock *lock = NULL;

    options.lane = lane;
    options.flags = flags;
    options.max_hold_ms = LIMIT_MS;
    if (lane == TL_LANE_SYNC) {
        options.payload = "x";
        options.payload_size = 1;
    }
    if (scene.booked && lane == TL_LANE_SYNC && !(flags & TL_ASK_REPEATABLE)) {
        options.amount_minor = AMOUNT;
        options.currency = "EUR";
    }
    CREW_STATUS(tl_lock_new(&lock, mine.client, &key, &options), TL_OK);
    return lock;
}

static void pay(struct trade *t)
{
    __atomic_add_fetch(&t->paid, 1, __ATOMIC_SEQ_CST);
}

static tl_ending ending_of(int thread)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = is_decline(thread) ? TL_OUTCOME_FAILURE : TL_OUTCOME_SUCCESS;
    ending.proof = is_decline(thread) ? TL_PROOF_DECLARED : TL_PROOF_NONE;
    return ending;
}

/* book: or NULL. */
static void get(tl_lock *lock, tl_book *book)
{
    int64_t end_ms = crew_now_ms() + LIMIT_MS;
    tl_status status;

    do
        status = book != NULL ? tl_lock_ask_book(lock, book, 0) : tl_lock_ask(lock, 0);
    while (is_open(status) && crew_now_ms() < end_ms);
    CREW_STATUS(status, TL_GRANTED);
    tl_book_free(book);
}

static tl_status answer_to(const tl_ending *ending)
{
    switch (ending->outcome) {
    case TL_OUTCOME_SUCCESS:
        return TL_SUCCEEDED;
    case TL_OUTCOME_FAILURE:
        return TL_FAILED;
    default:
        return TL_IN_DOUBT;
    }
}

static void end(tl_lock *lock, const tl_ending *ending, tl_book *book)
{
    int64_t end_ms = crew_now_ms() + LIMIT_MS;
    tl_status status;

    do
        status = book != NULL ? tl_lock_finish_book(lock, ending, book, 5000)
                              : tl_lock_finish(lock, ending);
    while (status != answer_to(ending) && is_open(status) && crew_now_ms() < end_ms);
    CREW_STATUS(status, answer_to(ending));
    tl_book_free(book);
    tl_lock_free(lock);
}

/* The channel does not answer; what comes of it is for a compensating attempt. */
static tl_lock *compensating(tl_lock *lock, const char *serial, const char *cust)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = TL_OUTCOME_UNKNOWN;
    end(lock, &ending, NULL);
    lock = new_lock(serial, cust, "PAYOUT", TL_LANE_RETRY, 0);
    get(lock, NULL);
    return lock;
}

static void one_trade(int thread, int number)
{
    struct trade *t = &board->trades[mine.child][thread][number];
    tl_ending ending = ending_of(thread);
    char serial[64], cust[16];
    tl_lock *lock;

    snprintf(serial, sizeof serial, "%d-%d-%d", mine.child, thread, number);
    /* With books each has an account of its own: nobody waits for another's row. */
    snprintf(cust, sizeof cust, "c%d", scene.booked ? thread : thread % 5);
    lock = new_lock(serial, cust, "PAYOUT", TL_LANE_SYNC, 0);
    get(lock, scene.booked ? ask_book() : NULL);
    t->granted = 1;
    if (number % 4 == 3)
        lock = compensating(lock, serial, cust);
    if (!is_decline(thread))
        pay(t);
    end(lock, &ending, scene.booked ? end_book(&ending) : NULL);
    t->ended = 1;
}

/* Again and again the same one, which makes the group's statement the one with repeatables. */
static void one_mutex(void)
{
    tl_ending ending = TL_ENDING_INIT;
    char serial[32];
    tl_lock *lock;

    snprintf(serial, sizeof serial, "%d", mine.child);
    lock = new_lock(serial, "m", "MUTEX", TL_LANE_SYNC, TL_ASK_REPEATABLE);
    ending.outcome = TL_OUTCOME_SUCCESS;
    get(lock, NULL);
    end(lock, &ending, NULL);
}

static void trade_on(void *context, int thread)
{
    (void)context;
    for (int number = 0; number < TRADES; number++) {
        one_trade(thread, number);
        if (thread == 0)
            one_mutex();
    }
}

/* A service of many threads, in a process of its own. */
static void live(void *context, int child)
{
    const char *const *environment = context; /* name, value, ..., NULL */
    tl_stats stats = {.version = TL_STATS_VERSION};

    for (; *environment != NULL; environment += 2)
        setenv(environment[0], environment[1], 1);
    fault_reload();
    mine.child = child;
    mine.client = open_client();
    crew_threads(THREADS, trade_on, NULL);
    CREW_STATUS(tl_client_stats(mine.client, &stats), TL_OK);
    board->groups += stats.groups;
    board->grouped += stats.grouped;
    board->settled += stats.settled;
    tl_client_close(mine.client);
}

static pid_t start(const char *const environment[])
{
    assert_true(scene.children < CHILDREN);
    return crew_fork(live, (void *)(uintptr_t)environment, scene.children++);
}

/* ------------------------------------------------------------ what must be true -- */

/* The status of each trade of this process; 0 where there is no row. */
static void read_rows(int child, char found[THREADS][TRADES])
{
    MYSQL_RES *result;
    MYSQL_ROW row;
    char sql[160];

    memset(found, 0, (size_t)THREADS * TRADES);
    snprintf(sql, sizeof sql,
             "SELECT serial_no, status FROM trade_lock WHERE op_code = 'PAYOUT' AND "
             "serial_no LIKE '%d-%%'",
             child);
    assert_int_equal(mysql_query(scene.sql, sql), 0);
    result = mysql_store_result(scene.sql);
    assert_non_null(result);
    while ((row = mysql_fetch_row(result)) != NULL) {
        int thread, number;

        assert_int_equal(sscanf(row[0], "%*d-%d-%d", &thread, &number), 2);
        found[thread][number] = row[1][0];
    }
    mysql_free_result(result);
}

/* Nothing that was answered is forgotten. */
static void check_promises(int child)
{
    static char found[THREADS][TRADES];

    read_rows(child, found);
    for (int thread = 0; thread < THREADS; thread++)
        for (int number = 0; number < TRADES; number++) {
            const struct trade *t = &board->trades[child][thread][number];
            char status = found[thread][number];

            if (t->ended && status != (is_decline(thread) ? 'F' : 'Y'))
                fail_msg("%d-%d-%d was ended, and is not", child, thread, number);
            if (t->granted && status == 0)
                fail_msg("%d-%d-%d was granted, and is gone", child, thread, number);
        }
}

/* The compensating job: asks the ledger, pays what was not paid, ends. */
static void compensate(tl_lock *lock)
{
    int child, thread, number;
    struct trade *t;
    tl_ending ending;

    assert_int_equal(sscanf(tl_lock_view(lock)->serial_no, "%d-%d-%d", &child, &thread, &number),
                     3);
    t = &board->trades[child][thread][number];
    ending = ending_of(thread);
    if (!is_decline(thread) && t->paid == 0)
        pay(t);
    end(lock, &ending, scene.booked ? end_book(&ending) : NULL);
}

static long long in_process(void)
{
    return database_number(scene.sql, "SELECT COUNT(*) FROM trade_lock WHERE status = 'P' AND "
                                      "op_code <> 'MUTEX'");
}

/* Another process finds the dead and finishes what they left, also what they had claimed. */
static void recover(void)
{
    int64_t end_ms = crew_now_ms() + LIMIT_MS;
    long long left, before = -1;
    int suspects = 0;

    mine.client = open_client();
    while ((left = in_process()) > 0) {
        tl_claim_options options = TL_CLAIM_OPTIONS_INIT;
        tl_lock *locks[TL_CLAIM_MAX];
        size_t count = TL_CLAIM_MAX;
        tl_status status;

        /* As long as it goes on, however slowly. */
        if (left != before)
            end_ms = crew_now_ms() + LIMIT_MS;
        before = left;
        assert_true(crew_now_ms() < end_ms);
        options.op_code = "PAYOUT";
        options.max_hold_ms = LIMIT_MS;
        options.suspects = suspects;
        suspects = !suspects;
        status = tl_claim_due(mine.client, &options, locks, &count);
        if (status != TL_OK || count == 0)
            crew_sleep_ms(50);
        for (size_t i = 0; status == TL_OK && i < count; i++)
            compensate(locks[i]);
    }
}

static int print_violation(void *context, const tl_violation *violation)
{
    (void)context;
    print_error("%s: %s\n", violation->rule, violation->sentence);
    return 0;
}

/* Paid once, or never; and the history agrees. */
static void check_books(void)
{
    tl_audit_counts counts = {.version = TL_AUDIT_COUNTS_VERSION};
    const tl_audit_scope scope = TL_AUDIT_SCOPE_INIT;
    long long paid = 0, succeeded;

    for (int child = 0; child < scene.children; child++)
        for (int i = 0; i < THREADS * TRADES; i++) {
            const struct trade *t = &board->trades[child][0][0] + i;

            assert_in_range(t->paid, 0, is_decline(i / TRADES) ? 0 : 1);
            paid += t->paid;
        }
    succeeded = database_number(scene.sql, "SELECT COUNT(*) FROM trade_lock WHERE op_code "
                                           "= 'PAYOUT' AND status = 'Y'");
    assert_int_equal(paid, succeeded);
    assert_string_equal(
        tl_status_name(tl_audit(mine.client, &scope, print_violation, NULL, NULL, &counts, NULL)),
        "TL_OK");
    assert_int_equal(counts.violations, 0);
    tl_client_close(mine.client);
    if (scene.booked)
        check_accounts();
    print_message("  %d processes; %lld trades paid, each once; %llu rows and %llu steps "
                  "audited\n",
                  scene.children, paid, (unsigned long long)counts.rows,
                  (unsigned long long)counts.steps);
}

/* -------------------------------------------------------------------- the tests -- */

FIXTURE(setup)
{
    board = crew_share(sizeof *board);
    scene.own = server_start(NULL);
    scene.db = database_new(scene.own, SETTINGS);
    scene.sql = database_connect(scene.db);
    scene.children = 0;
    scene.booked = 0;
}

FIXTURE(setup_booked)
{
    setup(state);
    scene.booked = 1;
    make_tables();
}

FIXTURE(teardown)
{
    mysql_close(scene.sql);
    database_free(scene.db);
    server_free(scene.own);
    crew_unshare(board, sizeof *board);
}

static void check_groups_formed(void)
{
    print_message("  %llu steps in %llu groups, %llu settled\n", (unsigned long long)board->grouped,
                  (unsigned long long)board->groups, (unsigned long long)board->settled);
    assert_true(board->grouped > 2 * board->groups);
}

static int die_at(const char *statement, const char *when, int nth)
{
    char only[40], kill_at[16];
    const char *const environment[] = {"TL_FAULT_ONLY", only, "TL_FAULT_KILL", kill_at, NULL};
    int status;
    pid_t child;

    snprintf(only, sizeof only, "%s/%s", statement, when);
    snprintf(kill_at, sizeof kill_at, "%d", nth);
    child = start(environment);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    check_promises(scene.children - 1);
    return 1;
}

/* Only statements of several rows have these names: who dies at one dies in a group. */
static void death_within_a_group(void **state)
{
    static const char *const undisturbed[] = {NULL};
    int deaths = 0, most = (int)tier_pick(1, 4, 50);

    (void)state;
    assert_int_equal(crew_wait(start(undisturbed)), 0);
    check_promises(0);
    check_groups_formed();
    for (int nth = 1; nth <= most; nth++)
        deaths += die_at("group", "before", nth * nth % 29 + 1) +
                  die_at("group", "after", nth * nth % 31 + 1) +
                  die_at("group_repeatable", nth % 2 == 0 ? "before" : "after", nth % 16 + 1) +
                  die_at("claim_many", nth % 2 == 0 ? "before" : "after", nth % 5 + 1) +
                  die_at("finish_retry_many", nth % 2 == 0 ? "after" : "before", nth % 5 + 1);
    print_message("  %d deaths at the statement of a group\n", deaths);
    recover();
    check_books();
}

/* The lock rows of a group, with which its transaction begins, each statement of the books, and its
 * commit.  A trade alone runs statements of these names too; with so many threads few are alone. */
static void death_within_books(void **state)
{
    static const char *const undisturbed[] = {NULL};
    static const char *const points[] = {"group", "finish_retry_many", "freeze",    "order",
                                         "pay",   "unfreeze",          "end order", "treasury",
                                         "COMMIT"};
    int deaths = 0, most = (int)tier_pick(1, 1, 12);

    (void)state;
    assert_int_equal(crew_wait(start(undisturbed)), 0);
    check_promises(0);
    check_groups_formed();
    check_accounts();
    for (int round = 0; round < most; round++)
        for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
            deaths += die_at(points[i], "before", (round * 7 + (int)i * 3) % 11 + 1) +
                      die_at(points[i], "after", (round * 5 + (int)i * 4) % 11 + 1);
            check_accounts();
        }
    print_message("  %d deaths within a group with books\n", deaths);
    recover();
    check_books();
}

static long long trades(void)
{
    return database_number(scene.sql, "SELECT COUNT(*) FROM trade_lock");
}

/* Waits until more was asked for; 0 when all has been. */
static int is_under_way(void)
{
    long long before = trades(), now = before;
    int64_t end_ms = crew_now_ms() + LIMIT_MS;

    while (now < before + 40 && now < (long long)THREADS * TRADES) {
        assert_true(crew_now_ms() < end_ms);
        now = trades();
    }
    return now < (long long)THREADS * TRADES;
}

/* The threads live on, and find out what became of each of their steps. */
static void death_of_the_server(void **state)
{
    static const char *const undisturbed[] = {NULL};
    int kills = 0, most = (int)tier_pick(1, 2, 20);
    pid_t child;

    (void)state;
    child = start(undisturbed);
    while (kills < most && is_under_way()) {
        mysql_close(scene.sql);
        server_kill9(scene.own);
        server_restart(scene.own);
        scene.sql = database_connect(scene.db);
        kills++;
    }
    assert_int_equal(crew_wait(child), 0);
    print_message("  %d kills of the server\n", kills);
    assert_true(kills > 0);
    check_promises(0);
    check_groups_formed();
    recover();
    check_books();
}

TEST_MAIN(groups)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(death_within_a_group, setup, teardown),
        cmocka_unit_test_setup_teardown(death_of_the_server, setup, teardown),
        cmocka_unit_test_setup_teardown(death_within_books, setup_booked, teardown),
        cmocka_unit_test_setup_teardown(death_of_the_server, setup_booked, teardown),
    };

    return server_report(cmocka_run_group_tests(tests, NULL, NULL));
}
