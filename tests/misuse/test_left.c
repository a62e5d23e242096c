/*
 * Callbacks that do not return: an exception, a longjmp, the end of the thread.  There is one
 * connection for business rows, and one for all else: whatever is not given back is missed.
 */
#include "leaving.h"
#include "support/crew.h"
#include "support/database.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/callback.h>

#include <pthread.h>
#include <stdatomic.h>

static database *db;
static MYSQL *sql;
static tl_client *client;
static atomic_int alarms;

static void keep_alarms(void *context, const tl_log_line *line)
{
    (void)context;
    if (line->level == TL_ALARM && strstr(line->message, "a callback was left") != NULL)
        atomic_fetch_add(&alarms, 1);
}

FIXTURE(setup)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;

    db = database_new(server_shared(), "pool_size=1\nbusiness_pool_size=1\n"
                                       "pool_wait_ms=10s\nbusiness_lock_wait_s=10s\n");
    sql = database_connect(db);
    database_run(sql, "CREATE TABLE ledger (note VARCHAR(40) NOT NULL) ENGINE=InnoDB");
    options.config_file = database_option_file(db);
    options.flags = TL_CLIENT_NO_JANITOR;
    options.log = keep_alarms;
    CREW_STATUS(tl_client_open(&client, &options), TL_OK);
}

FIXTURE(teardown)
{
    tl_client_close(client);
    assert_string_equal(tl_error_message(), "");
    mysql_close(sql);
    database_free(db);
}

/* ---------------------------------------------------------------------- one trade -- */

struct trade {
    tl_lock *lock;
    char serial[40];
    leave_way way;
    int leaves;  /* so many times */
    int commits; /* before it leaves */
    int64_t wait_ms;
    tl_status status;
};

static long long notes(const struct trade *t)
{
    return database_number(sql, "SELECT COUNT(*) FROM ledger WHERE note = '%s'", t->serial);
}

static long long rows(const struct trade *t, char status)
{
    return database_number(
        sql, "SELECT COUNT(*) FROM trade_lock WHERE serial_no = '%s' AND status = '%c'", t->serial,
        status);
}

static tl_status write_note(void *context, struct st_mysql *connection)
{
    struct trade *t = context;
    char text[100];

    snprintf(text, sizeof text, "INSERT INTO ledger VALUES ('%s')", t->serial);
    if (t->commits)
        CREW_CHECK(mysql_commit(connection) == 0);
    CREW_CHECK(mysql_query(connection, text) == 0);
    if (t->leaves-- > 0)
        leave_now(t->way);
    return TL_OK;
}

static void begin(struct trade *t, leave_way way)
{
    static int number;
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_key key = {t->serial, "C-1", "WITHDRAW"};

    memset(t, 0, sizeof *t);
    snprintf(t->serial, sizeof t->serial, "S-%d", ++number);
    options.max_hold_ms = 60000;
    options.payload = "1";
    options.payload_size = 1;
    t->way = way;
    CREW_STATUS(tl_lock_new(&t->lock, client, &key, &options), TL_OK);
}

static void ask(void *context)
{
    struct trade *t = context;

    t->status = tl_lock_ask_with(t->lock, write_note, t, t->wait_ms);
}

static void finish(void *context)
{
    struct trade *t = context;
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = TL_OUTCOME_SUCCESS;
    t->status = tl_lock_finish_with(t->lock, &ending, write_note, t, 10000);
}

static void *ask_elsewhere(void *context)
{
    ask(context);
    return NULL;
}

/* The one connection is there for another thread, as soon as this one has come in again. */
static void assert_others_can(leave_way way)
{
    struct trade other;
    pthread_t thread;

    begin(&other, way); /* comes in */
    assert_int_equal(pthread_create(&thread, NULL, ask_elsewhere, &other), 0);
    pthread_join(thread, NULL);
    CREW_STATUS(other.status, TL_GRANTED);
    finish(&other);
    CREW_STATUS(other.status, TL_SUCCEEDED);
    tl_lock_free(other.lock);
}

/* ------------------------------------------------------------------------- the tests -- */

static void leave_prepare(leave_way way, int64_t wait_ms)
{
    struct trade t;
    int before = atomic_load(&alarms);

    begin(&t, way);
    t.leaves = 1;
    t.wait_ms = wait_ms;
    leave_by(way, ask, &t);
    assert_others_can(way);
    assert_int_equal(atomic_load(&alarms), before + 1);
    assert_int_equal(rows(&t, 'P'), 0);
    assert_int_equal(notes(&t), 0);
    /* The handle settles what became of its step, and goes on. */
    ask(&t);
    CREW_STATUS(t.status, TL_GRANTED);
    assert_int_equal(notes(&t), 1);
    finish(&t);
    CREW_STATUS(t.status, TL_SUCCEEDED);
    assert_int_equal(notes(&t), 2);
    tl_lock_free(t.lock);
}

TEST(test_prepare_is_left)
{
    for (leave_way way = BY_LONGJMP; way < WAYS; way++) {
        print_message("%s\n", way_name(way));
        leave_prepare(way, 0);
    }
}

/* With its turn among those who wait for the same key. */
TEST(test_prepare_is_left_while_waiting)
{
    for (leave_way way = BY_LONGJMP; way < WAYS; way++) {
        print_message("%s\n", way_name(way));
        leave_prepare(way, 60000);
    }
}

TEST(test_an_ending_is_left)
{
    for (leave_way way = BY_LONGJMP; way < WAYS; way++) {
        struct trade t;

        print_message("%s\n", way_name(way));
        begin(&t, way);
        ask(&t);
        CREW_STATUS(t.status, TL_GRANTED);
        t.leaves = 1;
        leave_by(way, finish, &t);
        assert_others_can(way);
        assert_int_equal(rows(&t, 'P'), 1);
        finish(&t);
        CREW_STATUS(t.status, TL_SUCCEEDED);
        assert_int_equal(rows(&t, 'Y'), 1);
        assert_int_equal(notes(&t), 2);
        tl_lock_free(t.lock);
    }
}

/* What was committed before is told, and not done again. */
TEST(test_an_ending_is_committed_and_left)
{
    for (leave_way way = BY_LONGJMP; way < WAYS; way++) {
        struct trade t;

        print_message("%s\n", way_name(way));
        begin(&t, way);
        ask(&t);
        CREW_STATUS(t.status, TL_GRANTED);
        t.leaves = t.commits = 1;
        leave_by(way, finish, &t);
        assert_others_can(way);
        assert_int_equal(rows(&t, 'Y'), 1);
        finish(&t);
        CREW_STATUS(t.status, TL_CALLBACK_FAILED);
        assert_int_equal(notes(&t), 1);
        tl_lock_free(t.lock);
    }
}

/* Freed without another word, and the client is closed afterwards: by teardown. */
TEST(test_a_handle_is_freed)
{
    for (leave_way way = BY_LONGJMP; way < WAYS; way++) {
        struct trade t;

        begin(&t, way);
        t.leaves = 1;
        leave_by(way, ask, &t);
        tl_lock_free(t.lock);
        assert_others_can(way);
    }
}

static void *jump_and_end(void *context)
{
    leave_by(BY_LONGJMP, ask, context);
    return NULL;
}

TEST(test_a_thread_jumps_and_ends)
{
    struct trade t;
    pthread_t thread;

    begin(&t, BY_LONGJMP);
    t.leaves = 1;
    assert_int_equal(pthread_create(&thread, NULL, jump_and_end, &t), 0);
    pthread_join(thread, NULL);
    assert_others_can(BY_LONGJMP);
    tl_lock_free(t.lock);
}

/* ------------------------------------------------------------------------ the lists -- */

static int leave_list(void *context, const tl_view *view)
{
    (void)view;
    leave_now(*(const leave_way *)context);
}

static void list(void *context)
{
    tl_filter filter = {.version = TL_FILTER_VERSION, .cust = "C-1"};

    (void)tl_list(client, &filter, leave_list, context);
    fail_msg("nothing to list");
}

static int leave_doctor(void *context, const tl_finding *finding)
{
    (void)finding;
    leave_now(*(const leave_way *)context);
}

static void doctor(void *context)
{
    (void)tl_doctor(client, leave_doctor, context);
    fail_msg("nothing was found");
}

TEST(test_a_list_is_left)
{
    for (leave_way way = BY_LONGJMP; way < WAYS; way++) {
        int64_t due_ms;

        leave_by(way, list, &way);
        CREW_STATUS(tl_next_due_ms(client, "WITHDRAW", &due_ms), TL_OK);
        leave_by(way, doctor, &way);
        CREW_STATUS(tl_next_due_ms(client, "WITHDRAW", &due_ms), TL_OK);
    }
}

TESTS_OF(left, setup, teardown)
