/* Rules that are easily broken in corners: precedence, what a send counts, what callbacks may do,
 * who holds whose row. */
#include "fixture.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/callback.h>
#include <tradelock/lane.h>

#include <pthread.h>

WHOLE_FIXTURE_OF_ALL(NULL)

static tl_lock *refused(const char *serial, const tl_lock_options *options, tl_status expected)
{
    tl_status status;
    tl_lock *lock = ask(f.other, serial, "c1", options, &status);

    assert_status(status, expected);
    return lock;
}

/* A compensating attempt that never armed has no send to take back. */
TEST(test_only_an_own_send_is_taken_back)
{
    static const tl_outcome outcomes[] = {TL_OUTCOME_NOT_SENT, TL_OUTCOME_RETRY_LATER};
    tl_lock_options options = sync_options("x"), retry = retry_options();

    for (int i = 0; i < 2; i++) {
        char serial[] = {'u', (char)('0' + i), '\0'};
        tl_lock *lock = granted(f.client, serial, "c1", &options);

        end_in_doubt(lock);
        lock = granted(f.other, serial, "c1", &retry);
        assert_status(finish(lock, outcomes[i], TL_PROOF_NONE), TL_IN_DOUBT);
        assert_row(&f, serial, "c1", "WITHDRAW", "P 1 1");
        tl_lock_free(lock);
        lock = granted(f.other, serial, "c1", &retry);
        assert_status(tl_lock_arm(lock, 60000), TL_OK);
        assert_row(&f, serial, "c1", "WITHDRAW", "P 1 2");
        assert_status(finish(lock, outcomes[i], TL_PROOF_NONE), TL_IN_DOUBT);
        assert_row(&f, serial, "c1", "WITHDRAW", "P 1 1");
        tl_lock_free(lock);
    }
}

/* ------------------------------------------------------- until when somebody may send -- */

static char *send_until(const char *serial)
{
    return database_text(f.sql,
                         "SELECT CONCAT(COALESCE(send_until, 'none')) FROM trade_lock "
                         "WHERE serial_no = '%s' AND lane = 'S'",
                         serial);
}

static void assert_send_until(const char *serial, const char *expected)
{
    char *found = send_until(serial);

    assert_string_equal(found, expected);
    free(found);
}

static tl_lock *armed(const char *serial, int64_t hold_ms)
{
    tl_lock_options retry = retry_options();
    tl_lock *lock = granted(f.other, serial, "c1", &retry);

    assert_status(tl_lock_arm(lock, hold_ms), TL_OK);
    return lock;
}

/* Leaves it in doubt; the moment until which that first send counts. */
static char *in_doubt(const char *serial)
{
    end_in_doubt(granted(f.client, serial, "c1", SYNC));
    return send_until(serial);
}

/* Whoever proves that its send did not happen leaves the row as it was before: until when the
 * others may send is theirs. */
TEST(test_a_send_that_did_not_happen_takes_no_time)
{
    static const tl_outcome outcomes[] = {TL_OUTCOME_NOT_SENT, TL_OUTCOME_RETRY_LATER};
    tl_lock *lock;

    for (int i = 0; i < 2; i++) {
        char serial[] = {'t', (char)('0' + i), '\0'}, *before = in_doubt(serial);

        lock = armed(serial, 3600000);
        assert_status(finish(lock, outcomes[i], TL_PROOF_NONE), TL_IN_DOUBT);
        assert_send_until(serial, before);
        tl_lock_free(lock);
        /* One that was shorter than what is left to others. */
        lock = armed(serial, 1000);
        assert_send_until(serial, before);
        assert_status(finish(lock, outcomes[i], TL_PROOF_NONE), TL_IN_DOUBT);
        assert_send_until(serial, before);
        tl_lock_free(lock);
        free(before);
    }
    lock = granted(f.client, "t2", "c1", SYNC);
    assert_status(finish(lock, TL_OUTCOME_NOT_SENT, TL_PROOF_NONE), TL_QUEUED);
    assert_send_until("t2", "none");
    tl_lock_free(lock);
    lock = armed("t2", 60000);
    assert_status(finish(lock, TL_OUTCOME_RETRY_LATER, TL_PROOF_NONE), TL_QUEUED);
    assert_send_until("t2", "none");
    tl_lock_free(lock);
}

/* What may have left stays counted: another answer, a holder that says nothing, and of two armings
 * the first. */
TEST(test_a_send_that_may_have_left_keeps_its_time)
{
    char *first = in_doubt("kept0"), *after;
    tl_lock *lock = armed("kept0", 3600000);

    after = send_until("kept0");
    assert_string_not_equal(after, first);
    assert_status(finish(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_IN_DOUBT);
    assert_send_until("kept0", after);
    tl_lock_free(lock);
    free(first);
    free(after);

    free(in_doubt("kept1"));
    lock = armed("kept1", 1800000);
    assert_status(tl_lock_arm(lock, 3600000), TL_OK);
    after = send_until("kept1");
    assert_status(finish(lock, TL_OUTCOME_NOT_SENT, TL_PROOF_NONE), TL_IN_DOUBT);
    assert_row(&f, "kept1", "c1", "WITHDRAW", "P 1 2");
    assert_send_until("kept1", after);
    tl_lock_free(lock);
    free(after);
}

#define TOGETHER 5

static struct {
    tl_lock *locks[TOGETHER];
    tl_ending endings[TOGETHER];
} together;

static void put_back_together(void *context, tl_lock *lock, tl_status status)
{
    (void)context;
    (void)lock;
    if (status != TL_SUCCEEDED)
        return;
    for (int i = 0; i < TOGETHER; i++)
        tl_lock_finish_submit(together.locks[i], &together.endings[i], NULL, NULL);
}

static void await_together(void)
{
    tl_completion done;
    int left = TOGETHER;

    for (int i = 0; i < PATIENCE_MS && left > 0; i++) {
        while (tl_client_completed(f.other, &done, 1) == 1) {
            assert_status(done.status, TL_IN_DOUBT);
            left--;
        }
        usleep(1000);
    }
    assert_int_equal(left, 0);
}

/* The same in one statement for many, of whom every other one did send.  What is submitted while an
 * ending is completed is carried out together. */
TEST(test_the_same_in_a_group)
{
    tl_lock *first = granted(f.other, "v-first", "c1", SYNC);
    tl_ending success = TL_ENDING_INIT;
    tl_stats before = {.version = TL_STATS_VERSION}, after = before;
    char serials[TOGETHER][8], *expected[TOGETHER];

    for (int i = 0; i < TOGETHER; i++) {
        snprintf(serials[i], sizeof serials[i], "v%d", i);
        expected[i] = in_doubt(serials[i]);
        together.locks[i] = armed(serials[i], 3600000);
        together.endings[i] = (tl_ending)TL_ENDING_INIT;
        together.endings[i].outcome = i % 2 ? TL_OUTCOME_NOT_SENT : TL_OUTCOME_UNKNOWN;
        if (i % 2 == 0) {
            free(expected[i]);
            expected[i] = send_until(serials[i]);
        }
    }
    assert_status(tl_client_stats(f.other, &before), TL_OK);
    success.outcome = TL_OUTCOME_SUCCESS;
    assert_status(tl_lock_finish_submit(first, &success, put_back_together, NULL), TL_OK);
    await_together();
    assert_status(tl_client_stats(f.other, &after), TL_OK);
    assert_int_equal(after.groups - before.groups, 1);
    assert_int_equal(after.grouped - before.grouped, TOGETHER);
    for (int i = 0; i < TOGETHER; i++) {
        assert_row(&f, serials[i], "c1", "WITHDRAW", i % 2 ? "P 1 1" : "P 1 2");
        assert_send_until(serials[i], expected[i]);
        tl_lock_free(together.locks[i]);
        free(expected[i]);
    }
    tl_lock_free(first);
}

/* The server's sentence about a duplicate key quotes the key; a serial may look like the name of an
 * index or of a table. */
TEST(test_serials_that_look_like_names)
{
    static const char *const serials[] = {"one_per_customer", "trade_lock_log", "PRIMARY"};

    for (size_t i = 0; i < 3; i++) {
        tl_lock *lock = granted(f.client, serials[i], "c1", SYNC);

        tl_lock_free(refused(serials[i], SYNC, TL_BUSY));
        assert_status(finish(lock, TL_OUTCOME_FAILURE, TL_PROOF_DECLINED), TL_FAILED);
        tl_lock_free(refused(serials[i], SYNC, TL_FAILED));
        tl_lock_free(lock);
    }
}

/* Another fingerprint comes first, whoever is at the row now. */
TEST(test_mismatch_comes_before_being_decided)
{
    tl_lock_options options = sync_options("x"), other = sync_options("y");
    tl_lock *lock = granted(f.client, "m1", "c1", &options), *asked;
    MYSQL *holder = database_connect(f.db);

    database_run(holder, "BEGIN; SELECT * FROM trade_lock WHERE serial_no = 'm1' FOR UPDATE");
    tl_lock_free(refused("m1", &other, TL_MISMATCH));
    asked = refused("m1", &options, TL_BUSY);
    assert_true(tl_lock_view(asked)->being_decided);
    tl_lock_free(asked);
    database_run(holder, "ROLLBACK");
    mysql_close(holder);
    tl_lock_free(lock);
}

static tl_status nothing(void *context, struct st_mysql *connection)
{
    (void)context;
    (void)connection;
    return TL_OK;
}

/* Reclaiming what was never there is a first ask, with and without business rows. */
TEST(test_reclaiming_an_absent_trade)
{
    tl_lock_options options = sync_options("x");
    char wanted[TL_CHANNEL_KEY_MAX + 1];
    tl_lock *lock;

    options.flags = TL_ASK_RECLAIM;
    options.reclaim_epoch = 3;
    lock = granted(f.client, "a1", "c1", &options);
    assert_status(tl_channel_key(wanted, TL_CHANNEL_KEY_MAX, tl_client_site(f.client), "fastpay",
                                 &(tl_key){"a1", "c1", "WITHDRAW"}, 1),
                  TL_OK);
    assert_string_equal(tl_lock_view(lock)->channel_key, wanted);
    tl_lock_free(lock);
    lock = lock_new(f.client, "a2", "c1", &options);
    assert_status(tl_lock_ask_with(lock, nothing, NULL, 0), TL_GRANTED);
    assert_int_equal(tl_lock_view(lock)->epoch, 1);
    assert_row(&f, "a2", "c1", "WITHDRAW", "P 1 1");
    tl_lock_free(lock);
}

static tl_status commit_and_refuse(void *context, struct st_mysql *connection)
{
    (void)context;
    assert_int_equal(mysql_query(connection, "COMMIT"), 0);
    return TL_REFUSED;
}

/* "No row was left" is only said when it is true. */
TEST(test_a_refusal_that_committed)
{
    tl_lock *lock = lock_new(f.client, "k1", "c1", SYNC);

    assert_status(tl_lock_ask_with(lock, commit_and_refuse, NULL, 0), TL_CALLBACK_FAILED);
    assert_non_null(strstr(tl_error_message(), "must not commit"));
    tl_lock_free(lock);
}

TEST(test_bad_arguments)
{
    tl_claim_options wanted = TL_CLAIM_OPTIONS_INIT;
    tl_ending ending = TL_ENDING_INIT;
    char reason[80], word[TL_OP_MAX * 3];
    tl_lock *lock = granted(f.client, "b1", "c1", SYNC), *locks[4];
    size_t count = 4;

    memset(reason, 'r', sizeof reason);
    reason[64] = '\0';
    ending.park_reason = reason;
    assert_status(tl_lock_finish(lock, &ending), TL_INVALID);
    assert_non_null(strstr(tl_error_message(), "reason"));
    ending.park_reason = NULL;
    ending.actor = reason;
    assert_status(tl_lock_finish(lock, &ending), TL_INVALID);
    assert_row(&f, "b1", "c1", "WITHDRAW", "P 1 1");
    memset(word, 'W', sizeof word);
    word[sizeof word - 1] = '\0';
    wanted.op_code = word;
    wanted.max_hold_ms = 1000;
    assert_status(tl_claim_due(f.client, &wanted, locks, &count), TL_INVALID);
    assert_non_null(strstr(tl_error_message(), "op_code"));
    tl_lock_free(lock);
}

/* Text that the server would refuse is refused before, and times that it cannot count. */
TEST(test_bad_text_and_times)
{
    tl_lock_options options = sync_options("x"), bad = options;
    tl_lock *lock = NULL, *held = granted(f.client, "b2", "c1", &options);
    tl_key key = {"b3", "c1", "WITHDRAW"};
    tl_ending ending = TL_ENDING_INIT;

    bad.remark = "R\xe9sum\xe9";
    assert_status(tl_lock_new(&lock, f.client, &key, &bad), TL_INVALID);
    bad = options;
    bad.actor = "\xff";
    assert_status(tl_lock_new(&lock, f.client, &key, &bad), TL_INVALID);
    bad = options;
    bad.deadline_ms = INT64_MAX;
    assert_status(tl_lock_new(&lock, f.client, &key, &bad), TL_INVALID);
    assert_non_null(strstr(tl_error_message(), "deadline_ms"));
    assert_null(lock);
    ending.remark = "R\xe9sum\xe9";
    assert_status(tl_lock_finish(held, &ending), TL_INVALID);
    assert_string_equal(tl_error_message(), "remark: byte 2 is not UTF-8 (0xe9)");
    ending.remark = NULL;
    ending.channel_ref = "\xff";
    assert_status(tl_lock_finish(held, &ending), TL_INVALID);
    ending.channel_ref = NULL;
    ending.actor = "\xff";
    assert_status(tl_lock_finish(held, &ending), TL_INVALID);
    assert_row(&f, "b2", "c1", "WITHDRAW", "P 1 1");
    tl_lock_free(held);
}

/* Nothing becomes F by a proof that there is not. */
TEST(test_unknown_proofs)
{
    static const int proofs[] = {'-', 0, 'Z', 'd', 300, -1};
    tl_lock_options options = sync_options("x"), retry = retry_options();
    tl_lock *lock = granted(f.client, "p1", "c1", &options);

    for (size_t i = 0; i < sizeof proofs / sizeof proofs[0]; i++)
        assert_status(finish(lock, TL_OUTCOME_FAILURE, (tl_proof)proofs[i]), TL_INVALID);
    assert_row(&f, "p1", "c1", "WITHDRAW", "P 1 1");
    end_in_doubt(lock);
    lock = granted(f.other, "p1", "c1", &retry);
    for (size_t i = 1; i < sizeof proofs / sizeof proofs[0]; i++)
        assert_status(finish(lock, TL_OUTCOME_FAILURE, (tl_proof)proofs[i]), TL_INVALID);
    assert_row(&f, "p1", "c1", "WITHDRAW", "P 1 1");
    tl_lock_free(lock);
}

struct finisher {
    tl_lock *lock;
    tl_status status;
};

static void *finish_waiting(void *argument)
{
    struct finisher *one = argument;

    one->status = finish(one->lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE);
    return NULL;
}

/* Endings that wait for somebody's row lock are no obstacle to other trades. */
TEST(test_a_waiting_ending_stops_nobody_else)
{
    enum { WAITING = 6 };
    struct finisher ones[WAITING];
    pthread_t threads[WAITING];
    MYSQL *holder = database_connect(f.db);
    int64_t start_ms;

    for (int i = 0; i < WAITING; i++) {
        char serial[] = {'o', (char)('0' + i), '\0'};

        ones[i].lock = granted(f.client, serial, "c6", SYNC);
    }
    database_run(holder, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; BEGIN; "
                         "SELECT * FROM trade_lock WHERE cust_no = 'c6' FOR UPDATE");
    for (int i = 0; i < WAITING; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, finish_waiting, &ones[i]), 0);
    crew_sleep_ms(200);
    start_ms = crew_now_ms();
    for (int i = 0; i < 10; i++) {
        char serial[] = {'n', (char)('0' + i), '\0'};

        tl_lock_free(granted(f.client, serial, "c7", SYNC));
    }
    assert_in_range(crew_now_ms() - start_ms, 0, 1500);
    database_run(holder, "ROLLBACK");
    for (int i = 0; i < WAITING; i++) {
        pthread_join(threads[i], NULL);
        assert_status(ones[i].status, TL_SUCCEEDED);
        tl_lock_free(ones[i].lock);
    }
    mysql_close(holder);
}

/* A mutex reads its holder's session without a lock: neither does a heartbeat under way make it
 * busy, nor can asking delay a heartbeat. */
TEST(test_a_mutex_locks_no_session)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    MYSQL *beating = database_connect(f.db);
    tl_lock *lock, *asked;

    options.flags = TL_ASK_REPEATABLE;
    options.max_hold_ms = 60000;
    lock = granted(f.client, "s1", "c1", &options);
    database_run(beating, "BEGIN; SELECT * FROM tl_session FOR UPDATE");
    asked = refused("s1", &options, TL_BUSY);
    assert_false(tl_lock_view(asked)->being_decided);
    assert_string_equal(tl_lock_view(asked)->session_id, tl_client_session(f.client));
    tl_lock_free(asked);
    database_run(beating, "ROLLBACK");
    mysql_close(beating);
    tl_lock_free(lock);
}

/* ... and a mutex of a dead session is taken over in the same ask. */
TEST(test_a_dead_sessions_mutex_is_taken_over)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT, standalone = retry_options();
    tl_client *dying = client_new(&f, TL_CLIENT_NO_JANITOR);
    tl_lock *first, *second;

    options.flags = TL_ASK_REPEATABLE;
    options.max_hold_ms = 60000;
    standalone.flags = TL_ASK_STANDALONE;
    first = granted(dying, "s2", "c1", &options);
    second = granted(dying, "s2", "c1", &standalone);
    tl_lock_free(refused("s2", &options, TL_BUSY));
    tl_lock_free(refused("s2", &standalone, TL_BUSY));
    tl_lock_free(first);
    tl_lock_free(second);
    tl_client_close(dying);
    first = granted(f.client, "s2", "c1", &options);
    assert_int_equal(tl_lock_view(first)->epoch, 2);
    second = granted(f.client, "s2", "c1", &standalone);
    assert_status(finish(first, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    assert_status(finish(second, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(first);
    tl_lock_free(second);
}

static uint64_t failures(const tl_stats *s)
{
    return s->asks - s->grants - s->refusals - s->unknown;
}

/* An ask is counted once however often it was repeated while it waited. */
TEST(test_counters_add_up)
{
    tl_stats before = {.version = TL_STATS_VERSION}, after = before;
    tl_client *client = client_new(&f, TL_CLIENT_NO_JANITOR);
    tl_lock *lock, *asked;

    assert_status(tl_client_stats(client, &before), TL_OK);
    lock = granted(client, "q1", "c1", SYNC);
    asked = lock_new(client, "q1", "c1", SYNC);
    assert_status(tl_lock_ask(asked, 100), TL_BUSY);
    assert_status(finish(lock, TL_OUTCOME_FAILURE, TL_PROOF_DECLINED), TL_FAILED);
    assert_status(tl_lock_ask(asked, 100), TL_FAILED);
    assert_status(tl_client_stats(client, &after), TL_OK);
    assert_int_equal(after.asks, 3);
    assert_int_equal(after.grants, 1);
    assert_int_equal(after.refusals, 2);
    assert_int_equal(after.finishes, 1);
    assert_int_equal(failures(&after), 0);
    tl_lock_free(asked);
    tl_lock_free(lock);
    tl_client_close(client);
}

TESTS_OF(rules, open_all, close_all)
