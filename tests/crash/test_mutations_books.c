/*
 * Fence and token switched off within a group of endings with declared books.  A holder stalls, its
 * trade fails by the retry lane and is tried anew by another; then the first one ends what it
 * believes to hold, over the payment under way.  With either rule on, nothing of its book is
 * written; with both off its book and its answer contradict the payment.  The neighbours of its
 * group are unharmed each time.
 */
#include "support/crew.h"
#include "support/database.h"
#include "support/theme.h"

#include "base/fault.h"

#include <tradelock/books.h>

#include <pthread.h>
#include <stdatomic.h>

/* One connection for books: who has it can keep all others waiting. */
#define SETTINGS                                                                                   \
    "beat_ms=5s\nsession_ms=2m\nbusiness_pool_size=1\nbusiness_lock_wait_s=30\npool_wait_ms=1m\n"  \
    "commit_ms=1m\n"
#define NEIGHBOURS 7
#define COMMIT_MS 60000

static struct {
    server *own;
    database *db;
    MYSQL *sql;
    tl_client *clients[2];
    tl_books *books[2];
} scene;

static const tl_statement statements[] = {
    {.name = "order", .sql = "INSERT INTO orders (serial_no) VALUES (:serial_no)"},
    {.name = "reopen",
     .sql = "UPDATE orders SET state = 'OPEN' WHERE serial_no = :serial_no AND state = 'FAILED'"},
    {.name = "end order",
     .sql = "UPDATE orders SET state = :state WHERE serial_no = :serial_no AND state = 'OPEN'",
     .values = "state text"},
    {.name = "treasury", .sql = "UPDATE treasury SET n = n + 1 WHERE id = 1", .shared = 1},
};

static void mutate(const char *rules)
{
    setenv("TL_MUTATION", rules, 1);
    fault_reload();
}

FIXTURE(set_up)
{
    mutate("");
    scene.own = server_start(NULL);
    scene.db = database_new(scene.own, SETTINGS);
    scene.sql = database_connect(scene.db);
    database_run(scene.sql, "CREATE TABLE orders (serial_no VARCHAR(64) PRIMARY KEY, state"
                            " VARCHAR(16) NOT NULL DEFAULT 'OPEN') ENGINE = InnoDB;"
                            "CREATE TABLE treasury (id INT PRIMARY KEY, n INT NOT NULL)"
                            " ENGINE = InnoDB;"
                            "INSERT INTO treasury VALUES (1, 0)");
    for (int i = 0; i < 2; i++) {
        tl_client_options options = TL_CLIENT_OPTIONS_INIT;

        options.config_file = database_option_file(scene.db);
        options.flags = TL_CLIENT_NO_JANITOR;
        CREW_STATUS(tl_client_open(&scene.clients[i], &options), TL_OK);
        CREW_STATUS(tl_books_new(&scene.books[i], scene.clients[i], statements,
                                 sizeof statements / sizeof *statements),
                    TL_OK);
    }
}

FIXTURE(tear_down)
{
    mutate("");
    for (int i = 0; i < 2; i++)
        tl_client_close(scene.clients[i]);
    mysql_close(scene.sql);
    database_free(scene.db);
    server_free(scene.own);
}

/* ------------------------------------------------------------------------ one trade -- */

static tl_lock *new_lock(int client, const char *serial, tl_lane lane, int64_t max_hold_ms,
                         unsigned flags)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_key key = {serial, "C1", "PAYOUT"};
    tl_lock *lock = NULL;

    options.lane = lane;
    options.flags = flags;
    options.max_hold_ms = max_hold_ms;
    if (flags & TL_ASK_RECLAIM)
        options.reclaim_epoch = 1;
    if (lane == TL_LANE_SYNC) {
        options.payload = "x";
        options.payload_size = 1;
        options.channel = "bank";
    }
    CREW_STATUS(tl_lock_new(&lock, scene.clients[client], &key, &options), TL_OK);
    return lock;
}

static tl_book *new_book(int client, const char *line)
{
    tl_book *book = NULL;

    CREW_STATUS(tl_book_new(&book, scene.books[client]), TL_OK);
    tl_book_line(book, line);
    return book;
}

static tl_lock *ask(int client, const char *serial, int64_t max_hold_ms, unsigned flags)
{
    tl_lock *lock = new_lock(client, serial, TL_LANE_SYNC, max_hold_ms, flags);
    tl_book *book = new_book(client, flags & TL_ASK_RECLAIM ? "reopen" : "order");

    CREW_STATUS(tl_lock_ask_book(lock, book, 0), TL_GRANTED);
    tl_book_free(book);
    return lock;
}

/* The compensating attempt of a trade whose holder is silent, or that was left in doubt. */
static tl_lock *claim(int client, const char *serial, int64_t max_hold_ms)
{
    tl_lock *lock = new_lock(client, serial, TL_LANE_RETRY, max_hold_ms, 0);

    CREW_STATUS(tl_lock_ask(lock, 0), TL_GRANTED);
    return lock;
}

static tl_status end(int client, tl_lock *lock, tl_outcome outcome, const char *more)
{
    const int fails = outcome == TL_OUTCOME_FAILURE;
    tl_ending ending = TL_ENDING_INIT;
    tl_book *book = new_book(client, "end order");
    tl_status status;

    tl_book_text(book, "state", fails ? "FAILED" : "PAID");
    if (more != NULL)
        tl_book_line(book, more);
    ending.outcome = outcome;
    ending.proof = fails ? TL_PROOF_DECLINED : TL_PROOF_NONE;
    ending.retryable = fails;
    status = tl_lock_finish_book(lock, &ending, book, COMMIT_MS);
    tl_book_free(book);
    return status;
}

static void assert_order(const char *serial, const char *state)
{
    char *found =
        database_text(scene.sql, "SELECT state FROM orders WHERE serial_no = '%s'", serial);

    assert_non_null(found);
    assert_string_equal(found, state);
    free(found);
}

#define assert_status(got, expected)                                                               \
    assert_string_equal(tl_status_name(got), tl_status_name(expected))

/* ---------------------------------------------------------------------- the group -- */

static struct member {
    pthread_t thread;
    tl_lock *lock;
    tl_outcome outcome;
    const char *more;
    tl_status answer;
} members[NEIGHBOURS + 2];

/* The last one leads. */
static struct member *const blocker = &members[0], *const stalled = &members[1],
                            *const leader = &members[NEIGHBOURS + 1];

static void *end_member(void *context)
{
    struct member *m = context;

    m->answer = end(0, m->lock, m->outcome, m->more);
    return NULL;
}

static void begin(struct member *m)
{
    assert_int_equal(pthread_create(&m->thread, NULL, end_member, m), 0);
}

/* The blocker waits for the treasury, which the test has, with the one connection.  The leader
 * waits for that, and the others, in groups, for the leader. */
static tl_status end_in_group(tl_lock *lock, tl_outcome outcome)
{
    tl_stats before = {.version = TL_STATS_VERSION}, after = before;
    MYSQL *holder = database_connect(scene.db);

    stalled->lock = lock;
    stalled->outcome = outcome;
    assert_status(tl_client_stats(scene.clients[0], &before), TL_OK);
    database_run(holder, "BEGIN; UPDATE treasury SET n = n + 1");
    begin(blocker);
    while (database_transactions(scene.sql, "LOCK WAIT", "1") == 0)
        crew_sleep_ms(5);
    begin(leader);
    crew_sleep_ms(300);
    for (struct member *m = stalled; m < leader; m++)
        begin(m);
    crew_sleep_ms(500); /* they are all there */
    database_run(holder, "ROLLBACK");
    mysql_close(holder);
    for (struct member *m = members; m < members + NEIGHBOURS + 2; m++) {
        pthread_join(m->thread, NULL);
        if (m != stalled)
            assert_status(m->answer, TL_SUCCEEDED);
        tl_lock_free(m->lock);
    }
    assert_status(tl_client_stats(scene.clients[0], &after), TL_OK);
    /* All of them, but for blocker and leader: so the stalled one was not alone. */
    assert_int_equal(after.grouped - before.grouped, NEIGHBOURS);
    return stalled->answer;
}

static void assert_neighbours_are_paid(const char *serial)
{
    assert_int_equal(database_number(scene.sql,
                                     "SELECT COUNT(*) FROM orders WHERE serial_no LIKE '_%s-%%'"
                                     " AND state = 'PAID'",
                                     serial),
                     NEIGHBOURS + 1);
}

/* Their keys surround the stalled one's. */
static void make_neighbours(const char *serial, tl_lane lane)
{
    char name[64];

    for (int i = 0; i < NEIGHBOURS + 2; i++) {
        struct member *m = &members[i];

        if (m == stalled)
            continue;
        snprintf(name, sizeof name, "%c%s-%d", i % 2 == 0 ? 'A' : 'Z', serial, i);
        *m = (struct member){.outcome = TL_OUTCOME_SUCCESS, .more = i == 0 ? "treasury" : NULL};
        m->lock = ask(0, name, 60000, 0);
        if (lane == TL_LANE_RETRY) {
            tl_ending ending = TL_ENDING_INIT;

            assert_status(tl_lock_finish(m->lock, &ending), TL_IN_DOUBT);
            tl_lock_free(m->lock);
            m->lock = claim(0, name, 60000);
        }
    }
}

/* ----------------------------------------------------------------------- the tests -- */

static const char *state_of(tl_outcome outcome)
{
    return outcome == TL_OUTCOME_FAILURE ? "FAILED" : "PAID";
}

/* Either of fence and token keeps row and order for the holder. */
static void expect_of_next(const char *serial, const char *rules, tl_outcome outcome, tl_lock *next)
{
    const int all_off = strcmp(rules, "fence,token") == 0;

    assert_order(serial, all_off ? state_of(outcome) : "OPEN");
    assert_status(end(1, next, TL_OUTCOME_SUCCESS, NULL), all_off ? TL_LOST : TL_SUCCEEDED);
    assert_order(serial, all_off ? state_of(outcome) : "PAID");
    tl_lock_free(next);
    assert_neighbours_are_paid(serial);
}

static tl_status over_the_next(const char *serial, const char *rules, tl_outcome outcome)
{
    tl_lock *late = ask(0, serial, 50, 0), *worker, *next;
    tl_status status;

    crew_sleep_ms(80);
    worker = claim(1, serial, 60000);
    assert_status(end(1, worker, TL_OUTCOME_FAILURE, NULL), TL_FAILED);
    tl_lock_free(worker);
    next = ask(1, serial, 60000, TL_ASK_RECLAIM);
    make_neighbours(serial, TL_LANE_SYNC);
    mutate(rules);
    status = end_in_group(late, outcome);
    mutate("");
    expect_of_next(serial, rules, outcome, next);
    return status;
}

/* The same with compensating attempts: the one that stalls is followed by another. */
static tl_status over_the_next_attempt(const char *serial, const char *rules, tl_outcome outcome)
{
    tl_ending doubt = TL_ENDING_INIT;
    tl_lock *lock = ask(0, serial, 60000, 0), *late, *next;
    tl_status status;

    assert_status(tl_lock_finish(lock, &doubt), TL_IN_DOUBT);
    tl_lock_free(lock);
    late = claim(0, serial, 50);
    crew_sleep_ms(80);
    next = claim(1, serial, 60000);
    make_neighbours(serial, TL_LANE_RETRY);
    mutate(rules);
    status = end_in_group(late, outcome);
    mutate("");
    expect_of_next(serial, rules, outcome, next);
    return status;
}

/* With the fence alone the row is not written.  The late one takes it for its own, and hears that
 * its business rows are missing. */
static void expect(tl_status (*end_over)(const char *, const char *, tl_outcome),
                   const char *serial, tl_outcome outcome)
{
    const struct {
        const char *rules; /* that are off */
        tl_status answer;
    } cases[] = {{"", TL_LOST},
                 {"fence", TL_LOST},
                 {"token", TL_CALLBACK_FAILED},
                 {"fence,token", outcome == TL_OUTCOME_FAILURE ? TL_FAILED : TL_SUCCEEDED}};
    char name[16];

    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s%d", serial, i + 1);
        assert_status(end_over(name, cases[i].rules, outcome), cases[i].answer);
    }
}

TEST(on_the_sync_lane)
{
    expect(over_the_next, "F", TL_OUTCOME_FAILURE);
    expect(over_the_next, "S", TL_OUTCOME_SUCCESS);
    print_message("without fence and token, with books: paid, and booked as failed\n");
}

TEST(on_the_retry_lane)
{
    expect(over_the_next_attempt, "RF", TL_OUTCOME_FAILURE);
    expect(over_the_next_attempt, "RS", TL_OUTCOME_SUCCESS);
    print_message("the same of compensating attempts\n");
}

TESTS_OF(mutations_books, set_up, tear_down)
