/*
 * Statements are killed while the server opens the table.  It keeps a copy of the table whose
 * triggers are broken, and whoever gets that copy hears that "the trigger has an error in its
 * body", until somebody flushes the table.  An ask is repeated, and gets another copy; one that
 * does not is told what to do.
 *
 * Connections are killed while they roll back: the rows are free before anybody hears of it.
 */
#include "fixture.h"

#include "support/crew.h"
#include "support/tap.h"
#include "support/theme.h"

#include <tradelock/callback.h>

#include <stdatomic.h>

#define THREADS 8
#define KILLER THREADS
#define FLUSHER (THREADS + 1)
#define TRADES 40

static struct {
    server *own;
    fixture f;
    atomic_ullong ids[THREADS];
    atomic_int broken, over;
    atomic_int granted, again, wrong;
    int64_t end_ms;
} scene;

FIXTURE(set_up)
{
    scene.own = server_start(NULL);
    scene.f.db = database_new(scene.own, "commit_ms=2m\n");
    scene.f.client = client_new(&scene.f, TL_CLIENT_NO_JANITOR);
    scene.f.sql = database_connect(scene.f.db);
}

FIXTURE(tear_down)
{
    fixture_close(&scene.f);
    server_free(scene.own);
}

static int goes_on(void)
{
    return !atomic_load(&scene.broken) && crew_now_ms() < scene.end_ms;
}

/* Writes a row by hand, as each step does, until it meets a broken trigger. */
static void write_rows(int number)
{
    MYSQL *sql = database_connect(scene.f.db);
    char text[160];

    snprintf(text, sizeof text,
             "UPDATE trade_lock SET rev = rev + 1, fence = fence + 1, token = RANDOM_BYTES(16)"
             " WHERE cust_no = 'k%d'",
             number);
    atomic_store(&scene.ids[number], mysql_thread_id(sql));
    while (goes_on())
        if (mysql_query(sql, text) != 0 &&
            strstr(mysql_error(sql), "has an error in its body") != NULL)
            atomic_store(&scene.broken, 1);
    mysql_close(sql);
}

static void kill_or_flush(int number)
{
    MYSQL *sql = database_connect(scene.f.db);
    unsigned turn = 0;

    while (goes_on()) {
        (void)mysql_query(sql,
                          text_of(number == FLUSHER ? "FLUSH TABLES trade_lock" : "KILL QUERY %llu",
                                  (unsigned long long)atomic_load(&scene.ids[turn++ % THREADS]))
                              .is);
        usleep(number == FLUSHER ? 5000 : 50 + turn * 37 % 150);
    }
    mysql_close(sql);
}

static void break_or_be_broken(void *context, int number)
{
    (void)context;
    if (number < THREADS)
        write_rows(number);
    else
        kill_or_flush(number);
}

static void ask_again_and_again(void *context, int number)
{
    const int round = *(int *)context;

    for (int i = 0; i < TRADES; i++) {
        tl_status status;

        tl_lock_free(
            ask(scene.f.client, text_of("t%d-%d-%d", round, number, i).is, "c1", SYNC, &status));
        if (status == TL_GRANTED)
            atomic_fetch_add(&scene.granted, 1);
        else if (status == TL_TRY_AGAIN && strstr(tl_error_message(), "FLUSH TABLES") != NULL)
            atomic_fetch_add(&scene.again, 1);
        else if (atomic_fetch_add(&scene.wrong, 1) == 0)
            print_message("%s: %s\n", tl_status_name(status), tl_error_message());
    }
}

static void test_a_broken_trigger(void **state)
{
    tl_stats stats = {.version = TL_STATS_VERSION};
    uint64_t repeats = 0;
    int round;

    (void)state;
    for (int i = 0; i < THREADS; i++)
        tl_lock_free(granted(scene.f.client, "made", text_of("k%d", i).is, SYNC));
    scene.end_ms = crew_now_ms() + PATIENCE_MS;
    for (round = 0; stats.repeats == 0 && scene.wrong == 0 && crew_now_ms() < scene.end_ms;
         round++) {
        atomic_store(&scene.broken, 0);
        crew_threads(THREADS + 2, break_or_be_broken, NULL);
        crew_threads(THREADS, ask_again_and_again, &round);
        assert_status(tl_client_stats(scene.f.client, &stats), TL_OK);
    }
    print_message("  %d times broken; %d asks granted, %d told to try again; %llu repeats\n", round,
                  scene.granted, scene.again, (unsigned long long)stats.repeats);
    assert_int_equal(scene.wrong, 0);
    assert_true(stats.repeats > 0);
    /* All tables: one that the triggers write may have a broken trigger of its own. */
    database_run(scene.f.sql, "FLUSH TABLES");
    scene.again = scene.granted = 0;
    for (int once_more = 0; once_more < 2; once_more++, round++) {
        assert_status(tl_client_stats(scene.f.client, &stats), TL_OK);
        repeats = stats.repeats;
        crew_threads(THREADS, ask_again_and_again, &round);
    }
    assert_int_equal(scene.granted, 2 * THREADS * TRADES);
    /* Nor is a statement left that was prepared while a trigger was broken. */
    assert_status(tl_client_stats(scene.f.client, &stats), TL_OK);
    assert_int_equal(stats.repeats, repeats);
    assert_log_whole(&scene.f); /* no copy left its triggers out without a word */
}

/* ------------------------------------------------------------- while it rolls back -- */

#define MANY_ROWS "300000"

static tl_status write_much_and_refuse(void *context, MYSQL *connection)
{
    (void)context;
    database_run(connection, "INSERT INTO much SELECT seq FROM seq_1_to_" MANY_ROWS);
    return TL_REFUSED;
}

static tl_status ask_and_be_refused(void)
{
    tl_lock *lock = lock_new(scene.f.client, "much", "c1", SYNC);
    tl_status status = tl_lock_ask_with(lock, write_much_and_refuse, NULL, 0);

    tl_lock_free(lock);
    return status;
}

/* Kills one connection that rolls back. */
static void kill_who_rolls_back(void)
{
    MYSQL *sql = database_connect(scene.f.db);
    long long id = 0;

    while (id == 0 && crew_now_ms() < scene.end_ms) {
        id = database_number(sql, "SELECT id FROM information_schema.processlist "
                                  "WHERE db = DATABASE() AND info LIKE '%%ROLLBACK%%' "
                                  "AND id <> CONNECTION_ID()");
        usleep(1000);
    }
    CREW_CHECK(id != 0);
    database_run(sql, "KILL CONNECTION %lld", id);
    mysql_close(sql);
}

static void refuse_or_kill(void *context, int number)
{
    (void)context;
    if (number == 1) {
        kill_who_rolls_back();
        return;
    }
    /* The next one is the same customer, at once. */
    CREW_STATUS(ask_and_be_refused(), TL_REFUSED);
    CREW_STATUS(ask_and_be_refused(), TL_REFUSED);
}

/* Who is refused can ask again: the server has rolled back, though its answer was lost. */
static void test_a_rollback_is_awaited(void **state)
{
    tl_stats before = {.version = TL_STATS_VERSION}, after = before;

    (void)state;
    database_run(scene.f.sql, "CREATE TABLE much (number INT PRIMARY KEY) ENGINE = InnoDB");
    assert_status(tl_client_stats(scene.f.client, &before), TL_OK);
    scene.end_ms = crew_now_ms() + PATIENCE_MS;
    crew_threads(2, refuse_or_kill, NULL);
    assert_status(tl_client_stats(scene.f.client, &after), TL_OK);
    assert_true(after.reconnects > before.reconnects);
    database_expect(scene.f.sql, 0, "SELECT COUNT(*) FROM much");
}

TEST_MAIN(killed)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_broken_trigger),
                                       cmocka_unit_test(test_a_rollback_is_awaited)};

    return server_run_tests(tests, set_up, tear_down);
}
