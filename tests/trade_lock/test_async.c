/* Asks and endings from an event loop: submitted, carried out together, completed. */
#include "fixture.h"
#include "support/theme.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>

enum { MANY = 300 };

WHOLE_FIXTURE_OF_ALL("commit_ms=30s\n")

/* Waits, as an event loop does, until so many completions were taken. */
static void complete_all(size_t wanted, tl_status expected)
{
    tl_completion done[64];
    struct pollfd readable = {.fd = tl_client_completed_fd(f.client), .events = POLLIN};
    size_t taken = 0;

    while (taken < wanted) {
        size_t count;

        assert_int_equal(poll(&readable, 1, 20000), 1);
        count = tl_client_completed(f.client, done, 64);
        for (size_t i = 0; i < count; i++) {
            assert_status(done[i].status, expected);
            assert_non_null(done[i].lock);
        }
        taken += count;
    }
    assert_int_equal(taken, wanted);
    assert_int_equal(tl_client_completed(f.client, done, 64), 0);
    assert_int_equal(poll(&readable, 1, 0), 0);
}

TEST(test_many_share_statements)
{
    static tl_lock *locks[MANY];
    tl_ending ending = TL_ENDING_INIT;
    tl_stats before = {.version = TL_STATS_VERSION}, after = before;

    ending.outcome = TL_OUTCOME_SUCCESS;
    tl_client_stats(f.client, &before);
    for (int i = 0; i < MANY; i++) {
        locks[i] = lock_new(f.client, text_of("a%d", i).is, "c1", SYNC);
        assert_status(tl_lock_ask_submit(locks[i], NULL, NULL), TL_OK);
    }
    complete_all(MANY, TL_GRANTED);
    for (int i = 0; i < MANY; i++)
        assert_status(tl_lock_finish_submit(locks[i], &ending, NULL, NULL), TL_OK);
    complete_all(MANY, TL_SUCCEEDED);
    tl_client_stats(f.client, &after);
    assert_true(after.statements - before.statements < 2 * MANY / 4);
    database_expect(f.sql, MANY, "SELECT COUNT(*) FROM trade_lock WHERE status = 'Y'");
    for (int i = 0; i < MANY; i++)
        tl_lock_free(locks[i]);
}

TEST(test_refusals_and_endings_that_open)
{
    tl_lock_options options = sync_options("x"), other = sync_options("y");
    tl_ending unknown = TL_ENDING_INIT;
    tl_lock *lock = granted(f.client, "b1", "c1", &options), *again;

    again = lock_new(f.client, "b1", "c1", &other);
    assert_status(tl_lock_ask_submit(again, NULL, NULL), TL_OK);
    complete_all(1, TL_MISMATCH);
    assert_status(tl_lock_finish_submit(again, &unknown, NULL, NULL), TL_NOT_HELD);
    assert_status(tl_lock_finish_submit(lock, &unknown, NULL, NULL), TL_OK);
    complete_all(1, TL_IN_DOUBT);
    assert_row(&f, "b1", "c1", "WITHDRAW_RETRY", "F 1 0");
    tl_lock_free(lock);
    tl_lock_free(again);
}

/* Two calls of one handle at once would each judge the other's step: the second one is refused. */
TEST(test_one_call_at_a_time)
{
    tl_ending ending = TL_ENDING_INIT;
    tl_lock *lock = lock_new(f.client, "once", "c1", SYNC);

    ending.outcome = TL_OUTCOME_SUCCESS;
    assert_status(tl_lock_ask_submit(lock, NULL, NULL), TL_OK);
    assert_status(tl_lock_ask_submit(lock, NULL, NULL), TL_WRONG_STATE);
    assert_status(tl_lock_ask(lock, 0), TL_WRONG_STATE);
    complete_all(1, TL_GRANTED);
    assert_status(tl_lock_finish_submit(lock, &ending, NULL, NULL), TL_OK);
    assert_status(tl_lock_finish_submit(lock, &ending, NULL, NULL), TL_WRONG_STATE);
    assert_status(tl_lock_finish(lock, &ending), TL_WRONG_STATE);
    assert_status(tl_lock_settle(lock), TL_WRONG_STATE);
    complete_all(1, TL_SUCCEEDED);
    assert_status(tl_lock_finish_submit(lock, &ending, NULL, NULL), TL_RELEASED);
    tl_lock_free(lock);
}

static atomic_int called;

static void note_call(void *context, tl_lock *lock, tl_status status)
{
    (void)lock;
    atomic_store(&called, status == TL_GRANTED ? *(int *)context : -1);
}

TEST(test_a_callback_instead)
{
    tl_lock *lock = lock_new(f.client, "c1", "c1", SYNC);
    int seven = 7;

    assert_status(tl_lock_ask_submit(lock, note_call, &seven), TL_OK);
    for (int i = 0; i < 2000 && atomic_load(&called) == 0; i++)
        poll(NULL, 0, 5);
    assert_int_equal(atomic_load(&called), 7);
    /* The row names the thread that submitted. */
    database_expect(f.sql, 1, "SELECT thread_no = '%s' FROM trade_lock WHERE serial_no = 'c1'",
                    tl_thread_uuid());
    tl_lock_free(lock);
}

/* What is submitted together, while an ending is completed: an ending whose row somebody holds, an
 * ask, an opening. */
static struct {
    tl_lock *held, *asks, *opens;
    tl_ending success, unknown;
    atomic_int submitted;
} together;

static void submit_together(void *context, tl_lock *lock, tl_status status)
{
    (void)context;
    (void)lock;
    if (status == TL_SUCCEEDED &&
        tl_lock_finish_submit(together.held, &together.success, NULL, NULL) == TL_OK &&
        tl_lock_ask_submit(together.asks, NULL, NULL) == TL_OK &&
        tl_lock_finish_submit(together.opens, &together.unknown, NULL, NULL) == TL_OK)
        atomic_store(&together.submitted, 1);
}

/* The statuses of three completions, in the order of the handles. */
static void complete_three(tl_status statuses[3])
{
    tl_lock *const locks[] = {together.held, together.asks, together.opens};
    struct pollfd readable = {.fd = tl_client_completed_fd(f.client), .events = POLLIN};

    for (int taken = 0; taken < 3; taken++) {
        tl_completion done;

        assert_int_equal(poll(&readable, 1, PATIENCE_MS), 1);
        assert_int_equal(tl_client_completed(f.client, &done, 1), 1);
        for (int i = 0; i < 3; i++)
            if (done.lock == locks[i])
                statuses[i] = done.status;
    }
}

/* A row that is held holds up nothing that was submitted with it. */
TEST(test_what_waits_is_in_nobodys_way)
{
    tl_lock *first = granted(f.client, "w-first", "c1", SYNC);
    MYSQL *holder = database_connect(f.db);
    tl_status statuses[3] = {TL_OK, TL_OK, TL_OK};

    together.success = together.unknown = (tl_ending)TL_ENDING_INIT;
    together.success.outcome = TL_OUTCOME_SUCCESS;
    together.held = granted(f.client, "w-held", "c1", SYNC);
    together.opens = granted(f.client, "w-opens", "c1", SYNC);
    together.asks = lock_new(f.client, "w-later", "c1", SYNC);
    database_run(holder, "START TRANSACTION; SELECT 1 FROM trade_lock WHERE serial_no = "
                         "'w-held' AND cust_no = 'c1' AND op_code = 'WITHDRAW' FOR UPDATE");
    assert_status(tl_lock_finish_submit(first, &together.success, submit_together, NULL), TL_OK);
    while (database_number(f.sql, "SELECT COUNT(*) FROM trade_lock WHERE serial_no IN "
                                  "('w-later', 'w-opens')") < 3)
        usleep(1000);
    assert_int_equal(atomic_load(&together.submitted), 1);
    database_run(holder, "ROLLBACK");
    complete_three(statuses);
    assert_status(statuses[0], TL_SUCCEEDED);
    assert_status(statuses[1], TL_GRANTED);
    assert_status(statuses[2], TL_IN_DOUBT);
    mysql_close(holder);
    tl_lock_free(first);
    tl_lock_free(together.held);
    tl_lock_free(together.asks);
    tl_lock_free(together.opens);
}

static atomic_int again, refused_as;

static void submit_again(void *context, tl_lock *lock, tl_status status)
{
    tl_status submitted;

    (void)context;
    (void)status;
    atomic_fetch_add(&again, 1);
    submitted = tl_lock_ask_submit(lock, submit_again, NULL);
    if (submitted != TL_OK)
        atomic_store(&refused_as, (int)submitted);
}

/* Completions that submit again, as a service that polls, keep no client open. */
TEST(test_a_close_ends_what_submits_again)
{
    tl_client *client = client_new(&f, 0);
    tl_lock *held = granted(f.client, "again", "c1", SYNC);
    tl_lock *lock = lock_new(client, "again", "c1", SYNC);
    struct sigaction action;

    assert_status(tl_lock_ask_submit(lock, submit_again, NULL), TL_OK);
    while (atomic_load(&again) < 3)
        poll(NULL, 0, 5);
    tl_client_close(client);
    assert_status((tl_status)atomic_load(&refused_as), TL_WRONG_STATE);
    tl_lock_free(lock);
    end_paid(held);
    /* And as the header says of an open client: */
    assert_int_equal(sigaction(SIGPIPE, NULL, &action), 0);
    assert_true(action.sa_handler == SIG_IGN);
}

TESTS_OF(async, open_all, close_all)
