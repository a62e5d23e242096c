/* A primary that waits for its replica at each commit, and is cut off from it.  With AFTER_COMMIT, and
 * wherever somebody ends the commit that waits, it shows what the replica never had; whoever is
 * promoted lacks it. */
#include "fixture.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/books.h>
#include <tradelock/callback.h>
#include <tradelock/lane.h>
#include <tradelock/row_lock.h>

#include <pthread.h>
#include <stdatomic.h>

/* No beat comes meanwhile: what is committed behind one that waits would be seen by nobody. */
#define SETTINGS "beat_ms=1m\nsession_ms=10m\nread_timeout_s=2\ncommit_ms=1s\npool_wait_ms=1s\n"

/* Sessions end, and are begun anew. */
#define SHORT_SETTINGS                                                                             \
    "beat_ms=200ms\nsession_ms=2s\nmax_hold_ms=4s\nread_timeout_s=2\ncommit_ms=1s\npool_wait_ms="  \
    "1s\n"

static server *primary, *replica;
static fixture f;

static void start_primary(const char *wait_point, unsigned port)
{
    char at[64], point[64];
    const char *const options[] = {"--log-bin=binlog",
                                   "--sync-binlog=1",
                                   "--server-id=1",
                                   "--skip-networking=0",
                                   "--bind-address=127.0.0.1",
                                   "--rpl-semi-sync-master-timeout=3600000",
                                   at,
                                   point,
                                   NULL};

    snprintf(at, sizeof at, "--port=%u", port);
    snprintf(point, sizeof point, "--rpl-semi-sync-master-wait-point=%s", wait_point);
    primary = server_start(options);
}

static void start_replica(unsigned port)
{
    static const char *const options[] = {"--server-id=2", "--rpl-semi-sync-slave-enabled=1", NULL};
    MYSQL *sql;

    replica = server_start(options);
    sql = server_connect(replica);
    database_run(sql,
                 "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %u, "
                 "MASTER_SSL = 0, MASTER_USER = 'replica', MASTER_USE_GTID = slave_pos; "
                 "START SLAVE",
                 port);
    mysql_close(sql);
}

static int64_t status_of(const char *name)
{
    return database_number(f.sql,
                           "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "
                           "WHERE VARIABLE_NAME = '%s'",
                           name);
}

static void await_replica(void)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;

    while (status_of("Rpl_semi_sync_master_clients") != 1) {
        if (crew_now_ms() > end_ms)
            server_panic("the replica does not come");
        usleep(10000);
    }
}

static void open_pair_with(const char *wait_point, const char *settings)
{
    const unsigned port = server_free_port();
    MYSQL *sql;

    start_primary(wait_point, port);
    sql = server_connect(primary);
    database_run(sql, "CREATE USER replica@'127.0.0.1'; "
                      "GRANT REPLICATION SLAVE ON *.* TO replica@'127.0.0.1'");
    start_replica(port);
    f.db = database_new(primary, settings);
    f.client = client_new(&f, TL_CLIENT_NO_JANITOR);
    f.other = client_new(&f, TL_CLIENT_NO_JANITOR);
    f.sql = database_connect(f.db);
    /* Not earlier: it waits for a replica from then on. */
    database_run(sql, "SET GLOBAL rpl_semi_sync_master_enabled = 1");
    mysql_close(sql);
    await_replica();
}

static void open_pair(const char *wait_point)
{
    open_pair_with(wait_point, SETTINGS);
}

static void close_pair(void)
{
    assert_log_whole(&f);
    fixture_close(&f);
    server_free(replica);
    server_free(primary);
}

static int is_open(tl_status status)
{
    const tl_class class_ = tl_status_class(status);

    return class_ == TL_CLASS_UNKNOWN || class_ == TL_CLASS_RETRY;
}

typedef tl_status (*call)(tl_lock *lock);

static tl_status ask_again(tl_lock *lock)
{
    return tl_lock_ask(lock, 0);
}

static tl_status end_again(tl_lock *lock)
{
    return finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE);
}

static tl_status arm_again(tl_lock *lock)
{
    return tl_lock_arm(lock, 600000);
}

static char asked[] = "asked", ended[] = "ended";

static tl_status write_note(void *note, struct st_mysql *connection)
{
    database_run(connection, "INSERT INTO note VALUES ('%s')", (const char *)note);
    return TL_OK;
}

static tl_status ask_with_again(tl_lock *lock)
{
    return tl_lock_ask_with(lock, write_note, asked, 0);
}

static tl_status end_with_again(tl_lock *lock)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = TL_OUTCOME_SUCCESS;
    return tl_lock_finish_with(lock, &ending, write_note, ended, 1000);
}

static const tl_statement statements[] = {
    {.name = "note", .sql = "INSERT INTO note VALUES (:note)", .values = "note text"},
};

static tl_books *books;

static tl_book *note_book(const char *note)
{
    tl_book *book = NULL;

    assert_status(tl_book_new(&book, books), TL_OK);
    tl_book_line(book, "note");
    tl_book_text(book, "note", note);
    return book;
}

static tl_status ask_book_again(tl_lock *lock)
{
    tl_book *book = note_book(asked);
    tl_status status = tl_lock_ask_book(lock, book, 0);

    tl_book_free(book);
    return status;
}

static tl_status end_book_again(tl_lock *lock)
{
    tl_ending ending = TL_ENDING_INIT;
    tl_book *book = note_book(ended);
    tl_status status;

    ending.outcome = TL_OUTCOME_SUCCESS;
    status = tl_lock_finish_book(lock, &ending, book, 1000);
    tl_book_free(book);
    return status;
}

/* The same call until somebody can tell. */
static tl_status call_on(call again, tl_lock *lock)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_status status;

    do
        status = again(lock);
    while (is_open(status) && crew_now_ms() < end_ms);
    return status;
}

/* An administrator who tidies up: ends each commit that waits for its replica, which the primary
 * shows then. */
static atomic_int tidies;

static void *tidy_up(void *connection)
{
    while (atomic_load(&tidies)) {
        database_kill(connection, "STATE LIKE 'Waiting for semi-sync ACK%'");
        crew_sleep_ms(20);
    }
    return NULL;
}

struct administrator {
    pthread_t thread;
    MYSQL *sql;
};

static void tidier_begin(struct administrator *self)
{
    self->sql = server_connect(primary);
    atomic_store(&tidies, 1);
    assert_int_equal(pthread_create(&self->thread, NULL, tidy_up, self->sql), 0);
}

static void tidier_end(struct administrator *self)
{
    atomic_store(&tidies, 0);
    pthread_join(self->thread, NULL);
    mysql_close(self->sql);
}

static int is_shown(const char *rows)
{
    return database_number(f.sql, "SELECT EXISTS (SELECT 1 FROM %s)", rows) == 1;
}

/* The same call for some seconds, and until the primary shows what it did, and once more.  Nobody
 * can tell, since nobody else has it. */
static void call_alone(call again, tl_lock *lock, const char *rows, int shows)
{
    const int64_t begin_ms = crew_now_ms(), end_ms = begin_ms + PATIENCE_MS;
    int showed = !shows;
    tl_status status;

    for (;;) {
        status = again(lock);
        if (!is_open(status))
            fail_msg("%s, and nobody else has it", tl_status_name(status));
        if (showed && crew_now_ms() > begin_ms + 3000)
            return;
        if (!shows)
            assert_false(is_shown(rows));
        else
            showed = is_shown(rows);
        if (crew_now_ms() > end_ms)
            fail_msg("the primary does not show %s: %s, %s", rows, tl_status_name(status),
                     tl_error_message());
    }
}

static int find_wait(void *found, const tl_sentence *sentence)
{
    *(int *)found += strstr(sentence->text, "waiting for the replica") != NULL;
    return 0;
}

/* What an operator hears who asks why it hangs. */
static void expect_explained(void)
{
    const tl_key key = {"CUT", "C1", "WITHDRAW"};
    tl_trade_each each = TL_TRADE_EACH_INIT;
    int found = 0;

    each.sentence = find_wait;
    assert_status(tl_trade_read(f.other, &key, &each, &found, NULL), TL_OK);
    assert_int_equal(found, 1);
}

static int is_ending(call again)
{
    return again == end_again || again == end_with_again || again == end_book_again;
}

enum { WAITS, SHOWS, IS_ENDED };

static void cut_off(call again, tl_lock *lock, const char *rows, int how, tl_status answer)
{
    struct administrator tidier;

    server_freeze(replica);
    if (how == IS_ENDED)
        tidier_begin(&tidier);
    call_alone(again, lock, rows, how != WAITS);
    if (how == IS_ENDED)
        tidier_end(&tidier);
    if (!is_ending(again))
        assert_false(tl_may_send(lock, 1000));
    else if (how == WAITS)
        expect_explained();
    server_thaw(replica);
    assert_status(call_on(again, lock), answer);
}

static tl_lock *long_lock(const char *serial)
{
    tl_lock_options options = sync_options("x");

    options.max_hold_ms = 600000;
    return lock_new(f.client, serial, "C1", &options);
}

static void nothing_counts_that_only_one_has(const char *wait_point, int how)
{
    tl_lock *lock;

    open_pair(wait_point);
    lock = long_lock("CUT");
    cut_off(ask_again, lock, "trade_lock WHERE status = 'P'", how, TL_GRANTED);
    assert_true(tl_may_send(lock, 1000));
    cut_off(end_again, lock, "trade_lock WHERE status = 'Y'", how, TL_SUCCEEDED);
    tl_lock_free(lock);
    close_pair();
}

TEST(after_sync)
{
    nothing_counts_that_only_one_has("AFTER_SYNC", WAITS);
}

TEST(after_commit)
{
    nothing_counts_that_only_one_has("AFTER_COMMIT", SHOWS);
}

TEST(after_sync_and_ended)
{
    nothing_counts_that_only_one_has("AFTER_SYNC", IS_ENDED);
}

static void open_pair_with_notes(void)
{
    open_pair("AFTER_SYNC");
    database_run(f.sql, "CREATE TABLE note (note VARCHAR(20) NOT NULL) ENGINE = InnoDB");
}

static void rows_do_not_count(call ask_rows, call end_rows)
{
    tl_lock *lock = long_lock("CUT");

    cut_off(ask_rows, lock, "note WHERE note = 'asked'", IS_ENDED, TL_GRANTED);
    assert_true(tl_may_send(lock, 1000));
    cut_off(end_rows, lock, "note WHERE note = 'ended'", IS_ENDED, TL_SUCCEEDED);
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM note"), 2);
    tl_lock_free(lock);
    close_pair();
}

TEST(business_rows)
{
    open_pair_with_notes();
    rows_do_not_count(ask_with_again, end_with_again);
}

TEST(declared_books)
{
    open_pair_with_notes();
    assert_status(tl_books_new(&books, f.client, statements, 1), TL_OK);
    rows_do_not_count(ask_book_again, end_book_again);
}

static void make_due(const char *serial)
{
    tl_lock *lock = long_lock(serial);

    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    assert_status(finish(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_IN_DOUBT);
    tl_lock_free(lock);
    database_run(f.sql,
                 "UPDATE trade_lock SET next_run_at = UTC_TIMESTAMP(6) WHERE serial_no = '%s' AND "
                 "lane = 'R'",
                 serial);
}

/* A claim, the arming of its send, and both rows' ending. */
TEST(the_retry_lane)
{
    tl_lock_options retry = retry_options();
    tl_lock *lock;

    open_pair("AFTER_SYNC");
    make_due("CUT");
    retry.max_hold_ms = 600000;
    lock = lock_new(f.client, "CUT", "C1", &retry);
    cut_off(ask_again, lock, "trade_lock WHERE lane = 'R' AND status = 'P'", IS_ENDED, TL_GRANTED);
    cut_off(arm_again, lock, "trade_lock WHERE step = 'arm'", IS_ENDED, TL_OK);
    assert_true(tl_may_send(lock, 1000));
    cut_off(end_again, lock, "trade_lock WHERE lane = 'S' AND status = 'Y'", IS_ENDED,
            TL_SUCCEEDED);
    tl_lock_free(lock);
    close_pair();
}

/* A worker's claim of what is due reads the rows after they were claimed. */
TEST(a_batch_of_claims)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_claim_options wanted = TL_CLAIM_OPTIONS_INIT;
    struct administrator tidier;
    tl_lock *locks[4];
    size_t count;
    int shows = 0;

    open_pair("AFTER_SYNC");
    make_due("CUT1");
    make_due("CUT2");
    wanted.op_code = "WITHDRAW";
    wanted.max_hold_ms = 600000;
    server_freeze(replica);
    tidier_begin(&tidier);
    for (int i = 0; i < 3 || !shows; i++) {
        count = sizeof locks / sizeof locks[0];
        assert_true(is_open(tl_claim_due(f.client, &wanted, locks, &count)));
        shows = database_number(f.sql, "SELECT COUNT(*) FROM trade_lock WHERE lane = 'R' AND "
                                       "status = 'P'") == 2;
        assert_true(crew_now_ms() < end_ms);
    }
    tidier_end(&tidier);
    server_thaw(replica);
    do {
        assert_true(crew_now_ms() < end_ms);
        count = sizeof locks / sizeof locks[0];
    } while (tl_claim_due(f.client, &wanted, locks, &count) != TL_OK);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        assert_status(tl_lock_arm(locks[i], 600000), TL_OK);
        assert_true(tl_may_send(locks[i], 1000));
        tl_lock_free(locks[i]);
    }
    close_pair();
}

#define CALLERS 32

struct caller {
    pthread_t thread;
    tl_lock *lock;
    tl_status status;
};

static atomic_int joined;

static void *ask_on(void *argument)
{
    struct caller *self = argument;

    while (!atomic_load(&joined)) {
        self->status = tl_lock_ask(self->lock, 0);
        if (!is_open(self->status))
            return NULL;
    }
    self->status = call_on(ask_again, self->lock);
    return NULL;
}

/* Commits of several connections wait together.  What ends one of them must not have the others
 * answered; and each handle leaves at most one behind that waits. */
TEST(many_callers)
{
    struct caller callers[CALLERS];

    open_pair("AFTER_SYNC");
    atomic_store(&joined, 0);
    server_freeze(replica);
    for (int i = 0; i < CALLERS; i++) {
        char serial[16];

        snprintf(serial, sizeof serial, "CUT%d", i);
        callers[i].lock = long_lock(serial);
        assert_int_equal(pthread_create(&callers[i].thread, NULL, ask_on, &callers[i]), 0);
    }
    crew_sleep_ms(6000);
    assert_in_range(database_number(f.sql, "SELECT COUNT(*) FROM information_schema.PROCESSLIST "
                                           "WHERE STATE = 'Commit' OR "
                                           "STATE LIKE 'Waiting for semi-sync ACK%%'"),
                    1, CALLERS);
    assert_int_not_equal(ask_now(f.other, "CUT0"), TL_GRANTED);
    for (int i = 0; i < CALLERS; i++)
        assert_false(tl_may_send(callers[i].lock, 1000));
    server_thaw(replica);
    atomic_store(&joined, 1);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        assert_status(callers[i].status, TL_GRANTED);
        assert_true(tl_may_send(callers[i].lock, 1000));
        tl_lock_free(callers[i].lock);
    }
    close_pair();
}

/* How many have waited for longer than any that is answered. */
static int64_t waiting(void)
{
    return database_number(f.sql, "SELECT COUNT(*) FROM information_schema.PROCESSLIST "
                                  "WHERE TIME_MS > 1500 AND (STATE = 'Commit' OR "
                                  "STATE LIKE 'Waiting for semi-sync ACK%%')");
}

#define TRADES 100

/* Each call is about another row, so that none meets what an earlier one has locked. */
static void call_anew(int seconds)
{
    const int64_t end_ms = crew_now_ms() + (int64_t)seconds * 1000;
    static int trade;
    MYSQL *own = database_connect(f.db);
    char name[16];

    while (crew_now_ms() < end_ms) {
        tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                                .key = {name, "C1", "WITHDRAW"},
                                .outcome = "PENDING",
                                .source = "hook"};

        snprintf(name, sizeof name, "DUE%d", trade++ % TRADES);
        assert_int_not_equal(tl_evidence_add(f.client, &evidence), TL_OK);
        database_run(own, "BEGIN");
        assert_int_not_equal(tl_row_lock(f.client, name, own, 0, 0), TL_GRANTED);
        database_run(own, "ROLLBACK");
        assert_int_not_equal(ask_now(f.client, name), TL_GRANTED);
    }
    mysql_close(own);
}

/* A commit that waits cannot be ended, and keeps its connection.  However long callers go on, the
 * server keeps some for those who look at it, and for the replica. */
static void few_are_left_behind(const char *wait_point)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    char serial[16];
    int64_t before;

    open_pair_with(wait_point, SHORT_SETTINGS);
    for (int i = 0; i < TRADES; i++) {
        snprintf(serial, sizeof serial, "DUE%d", i);
        make_due(serial);
    }
    server_freeze(replica);
    call_anew(8);
    before = waiting();
    call_anew(10);
    print_message("%lld connections waited, then %lld\n", (long long)before, (long long)waiting());
    assert_true(waiting() <= before);
    server_thaw(replica);
    while (ask_now(f.client, "LATER") != TL_GRANTED)
        assert_true(crew_now_ms() < end_ms);
    assert_int_equal(waiting(), 0);
    close_pair();
}

TEST(few_are_left_after_sync)
{
    few_are_left_behind("AFTER_SYNC");
}

TEST(few_are_left_after_commit)
{
    few_are_left_behind("AFTER_COMMIT");
}

TESTS_OF(semi_sync, NULL, NULL)
