/* The answers of the trade-sync lock, each against the row. */
#include "fixture.h"

#include "base/random.h"
#include "client/client.h"
#include "store/group.h"
#include "support/theme.h"

WHOLE_FIXTURE_OF_ALL(NULL)

static void refused(const char *serial, const char *cust, const tl_lock_options *options,
                    tl_status expected)
{
    tl_status status;
    tl_lock *lock = ask(f.other, serial, cust, options, &status);

    assert_status(status, expected);
    tl_lock_free(lock);
}

TEST(test_first_time_then_success)
{
    tl_lock_options options = sync_options("100 EUR");
    tl_ending ending = TL_ENDING_INIT;
    tl_lock *lock, *again;
    tl_status status;

    lock = granted(f.client, "s1", "c1", &options);
    assert_row(&f, "s1", "c1", "WITHDRAW", "P 1 1");
    assert_int_equal(strlen(tl_lock_view(lock)->channel_key), 64);
    assert_true(tl_may_send(lock, 1000));
    refused("s1", "c1", &options, TL_BUSY);
    ending.outcome = TL_OUTCOME_SUCCESS;
    ending.result = "receipt 7";
    ending.result_size = 9;
    assert_status(tl_lock_finish(lock, &ending), TL_SUCCEEDED);
    assert_false(tl_may_send(lock, 0));
    assert_row(&f, "s1", "c1", "WITHDRAW", "Y 1 1");
    assert_status(tl_lock_finish(lock, &ending), TL_RELEASED);
    tl_lock_free(lock);

    again = ask(f.other, "s1", "c1", &options, &status);
    assert_status(status, TL_ALREADY_DONE);
    assert_int_equal(tl_lock_view(again)->result_size, 9);
    assert_memory_equal(tl_lock_view(again)->result, "receipt 7", 9);
    tl_lock_free(again);
}

TEST(test_mismatch)
{
    tl_lock_options options = sync_options("100 EUR"), other = sync_options("200 EUR");
    tl_lock *lock;

    lock = granted(f.client, "s2", "c1", &options);
    refused("s2", "c1", &other, TL_MISMATCH);
    end_paid(lock);
    refused("s2", "c1", &other, TL_MISMATCH);
}

TEST(test_failure_needs_a_proof_and_is_reclaimed)
{
    tl_lock_options options = sync_options("x");
    tl_ending ending = TL_ENDING_INIT;
    char first_key[TL_CHANNEL_KEY_MAX + 1];
    uint64_t fence;
    tl_lock *lock;

    lock = granted(f.client, "s3", "c1", &options);
    strcpy(first_key, tl_lock_view(lock)->channel_key);
    assert_status(finish(lock, TL_OUTCOME_FAILURE, TL_PROOF_NONE), TL_INVALID);
    assert_row(&f, "s3", "c1", "WITHDRAW", "P 1 1");
    ending.outcome = TL_OUTCOME_FAILURE;
    ending.proof = TL_PROOF_DECLINED;
    ending.retryable = 1;
    assert_status(tl_lock_finish(lock, &ending), TL_FAILED);
    assert_row(&f, "s3", "c1", "WITHDRAW", "F 1 1");
    tl_lock_free(lock);
    refused("s3", "c1", &options, TL_FAILED);
    fence = (uint64_t)database_number(
        f.sql, "SELECT fence FROM trade_lock WHERE serial_no='s3' AND cust_no='c1'");

    options.flags = TL_ASK_RECLAIM;
    options.reclaim_epoch = 7;
    refused("s3", "c1", &options, TL_FAILED);
    options.reclaim_epoch = 1;
    /* The row as it was seen, and no later failure. */
    options.reclaim_fence = fence - 1;
    refused("s3", "c1", &options, TL_FAILED);
    options.reclaim_fence = fence + 1;
    refused("s3", "c1", &options, TL_FAILED);
    options.reclaim_fence = fence;
    lock = granted(f.client, "s3", "c1", &options);
    assert_row(&f, "s3", "c1", "WITHDRAW", "P 2 1");
    assert_int_equal(tl_lock_view(lock)->epoch, 2);
    assert_string_not_equal(tl_lock_view(lock)->channel_key, first_key);
    refused("s3", "c1", &options, TL_BUSY);
    end_lock(lock, TL_OUTCOME_FAILURE, TL_PROOF_DECLARED, TL_FAILED);
    options.reclaim_epoch = 2;
    options.reclaim_fence = 0;
    refused("s3", "c1", &options, TL_FAILED); /* not retryable */
}

TEST(test_in_doubt_and_queued)
{
    tl_lock *lock;

    lock = granted(f.client, "s4", "c1", SYNC);
    end_in_doubt(lock);
    assert_row(&f, "s4", "c1", "WITHDRAW", "P 1 1");
    assert_row(&f, "s4", "c1", "WITHDRAW_RETRY", "F 1 0");
    refused("s4", "c1", SYNC, TL_IN_DOUBT);

    lock = granted(f.client, "s5", "c1", SYNC);
    end_lock(lock, TL_OUTCOME_NOT_SENT, TL_PROOF_NONE, TL_QUEUED);
    assert_row(&f, "s5", "c1", "WITHDRAW", "P 1 0");
    refused("s5", "c1", SYNC, TL_QUEUED);
}

TEST(test_exclusive_per_customer)
{
    tl_lock_options options = sync_options("x");
    tl_lock *lock, *other;
    tl_status status;

    options.flags = TL_ASK_EXCLUSIVE;
    lock = granted(f.client, "e1", "c2", &options);
    other = ask(f.other, "e2", "c2", &options, &status);
    assert_status(status, TL_CUSTOMER_BUSY);
    assert_string_equal(tl_lock_view(other)->other_serial, "e1");
    assert_int_equal(tl_lock_view(other)->other_state, TL_STATE_LIVE);
    tl_lock_free(other);
    assert_row(&f, "e2", "c2", "WITHDRAW", "-");
    refused("e1", "c2", &options, TL_BUSY);
    tl_lock_free(granted(f.other, "e3", "c3", &options));
    end_paid(lock);
    tl_lock_free(granted(f.other, "e2", "c2", &options));
}

TEST(test_repeatable)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_lock *lock;
    tl_outcome outcomes[] = {TL_OUTCOME_SUCCESS, TL_OUTCOME_FAILURE, TL_OUTCOME_UNKNOWN,
                             TL_OUTCOME_SUCCESS};

    options.flags = TL_ASK_REPEATABLE;
    options.max_hold_ms = 5000;
    for (size_t i = 0; i < 4; i++) {
        lock = granted(f.client, "m1", "c1", &options);
        assert_int_equal(tl_lock_view(lock)->epoch, i + 1);
        refused("m1", "c1", &options, TL_BUSY);
        assert_status(finish(lock, outcomes[i], i == 1 ? TL_PROOF_DECLARED : TL_PROOF_NONE),
                      i == 1   ? TL_FAILED
                      : i == 2 ? TL_IN_DOUBT
                               : TL_SUCCEEDED);
        tl_lock_free(lock);
    }
    assert_row(&f, "m1", "c1", "WITHDRAW_RETRY", "-");
}

TEST(test_expired_mutex_is_taken_over)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_lock *lock, *next;

    options.flags = TL_ASK_REPEATABLE;
    options.max_hold_ms = 200;
    lock = granted(f.client, "m2", "c1", &options);
    next = lock_new(f.other, "m2", "c1", &options);
    assert_status(tl_lock_ask(next, 5000), TL_GRANTED);
    assert_false(tl_may_send(lock, 0));
    end_lock(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE, TL_LOST);
    end_paid(next);
}

TEST(test_open_transaction_answers_at_once)
{
    tl_lock_options options = sync_options("x");
    tl_lock *lock;
    tl_status status;
    MYSQL *holder = database_connect(f.db);

    database_run(holder,
                 "BEGIN; INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, "
                 "step, thread_no, token, fence, rev, created_at, updated_at) VALUES "
                 "('c1','d1','WITHDRAW','S','P','ask',UUID(),'1234567890123456',1,1,"
                 "NOW(6),NOW(6))");
    lock = ask(f.client, "d1", "c1", &options, &status);
    assert_status(status, TL_BUSY);
    assert_true(tl_lock_view(lock)->being_decided);
    tl_lock_free(lock);
    options.flags = TL_ASK_REPEATABLE;
    lock = ask(f.client, "d1", "c1", &options, &status);
    assert_status(status, TL_BUSY);
    tl_lock_free(lock);
    database_run(holder, "ROLLBACK");
    mysql_close(holder);
}

TEST(test_keys_never_meet)
{
    const char *serials[] = {"k", "K", "k-", "k."};

    for (size_t i = 0; i < 4; i++)
        tl_lock_free(granted(f.client, serials[i], "a", SYNC));
    tl_lock_free(granted(f.client, "k", "A", SYNC));
    database_expect(f.sql, 5, "SELECT COUNT(*) FROM trade_lock WHERE cust_no IN ('a','A')");
    database_run(f.sql, "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                        "thread_no, token, fence, rev, created_at, updated_at) VALUES "
                        "('a ','k','WITHDRAW','S','P','ask',UUID(),'1234567890123456',1,1,"
                        "NOW(6),NOW(6))");
    database_expect(f.sql, 1, "SELECT COUNT(*) FROM trade_lock WHERE cust_no='a ' ");
}

TEST(test_unknown_flags_of_a_client)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = database_option_file(f.db);
    options.flags = TL_CLIENT_NO_SESSION | 0x40;
    assert_status(tl_client_open(&client, &options), TL_INVALID);
    assert_non_null(strstr(tl_error_message(), "0x40"));
    assert_null(client);
}

/* A number that every change of a row or of the history changes. */
static long long written(void)
{
    return database_number(f.sql, "SELECT (SELECT SUM(CRC32(CONCAT_WS('|', rev, status, "
                                  "HEX(token), fence, session_id, updated_at))) FROM trade_lock) "
                                  "+ (SELECT COUNT(*) FROM trade_lock_log)");
}

TEST(test_a_refusal_writes_nothing)
{
    tl_lock_options mutex = TL_LOCK_OPTIONS_INIT;
    tl_lock *lock, *held;
    long long before = written();

    mutex.flags = TL_ASK_REPEATABLE;
    mutex.max_hold_ms = 60000;
    lock = granted(f.client, "w1", "c1", SYNC);
    assert_true(written() != before);
    held = granted(f.client, "w2", "c1", &mutex);
    before = written();
    for (int i = 0; i < 20; i++) {
        refused("w1", "c1", SYNC, TL_BUSY);
        refused("w2", "c1", &mutex, TL_BUSY);
    }
    assert_int_equal(written(), before);
    tl_lock_free(lock);
    tl_lock_free(held);
}

/* ------------------------------------------- a trade is no mutex, a mutex no trade -- */

static tl_lock_options mutex_options(void)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;

    options.flags = TL_ASK_REPEATABLE;
    options.max_hold_ms = 60000;
    return options;
}

/* Ends a fresh hold so that its row is what the letter says: Y, F, O opened, L live, D its holder's
 * time over. */
static void leave_as(const char *serial, tl_lock_options options, char state)
{
    tl_lock *lock = granted(f.client, serial, "k", &options);

    if (state == 'Y')
        assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    if (state == 'F') {
        tl_ending ending = TL_ENDING_INIT;

        ending.outcome = TL_OUTCOME_FAILURE;
        ending.proof = TL_PROOF_DECLARED;
        ending.retryable = 1;
        assert_status(tl_lock_finish(lock, &ending), TL_FAILED);
    }
    if (state == 'O')
        assert_status(finish(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_IN_DOUBT);
    tl_lock_free(lock);
    if (state == 'D')
        database_run(f.sql,
                     "UPDATE trade_lock SET max_hold_until = UTC_TIMESTAMP(6), "
                     "rev = rev + 1, step = 'test' WHERE serial_no = '%s'",
                     serial);
}

static long long revisions(const char *serial)
{
    return database_number(f.sql, "SELECT SUM(rev) FROM trade_lock WHERE serial_no = '%s'", serial);
}

static void mismatch(const char *serial, const tl_lock_options *options)
{
    long long before = revisions(serial);

    refused(serial, "k", options, TL_MISMATCH);
    assert_true(revisions(serial) == before);
}

TEST(test_a_trade_is_no_mutex)
{
    tl_lock_options trade = sync_options("pay"), mutex = mutex_options();
    tl_lock_options alone = retry_options();

    alone.flags = TL_ASK_STANDALONE;
    for (const char *as = "YFOLD"; *as != '\0'; as++) {
        char serial[] = {'k', 't', *as, '\0'};

        leave_as(serial, trade, *as);
        mismatch(serial, &mutex);
        if (*as == 'O')
            mismatch(serial, &alone); /* the retry row of the trade */
    }
}

TEST(test_a_mutex_is_no_trade)
{
    tl_lock_options trade = sync_options(NULL), mutex = mutex_options();
    tl_lock_options retry = retry_options();

    trade.channel = NULL;
    for (const char *as = "YFOLD"; *as != '\0'; as++) {
        char serial[] = {'k', 'm', *as, '\0'};

        leave_as(serial, mutex, *as);
        trade.flags = 0;
        mismatch(serial, &trade);
        trade.flags = TL_ASK_EXCLUSIVE;
        mismatch(serial, &trade);
        trade.flags = TL_ASK_RECLAIM;
        trade.reclaim_epoch = 1;
        mismatch(serial, &trade);
        mismatch(serial, &retry);
        database_expect(f.sql, 1, "SELECT COUNT(*) FROM trade_lock WHERE serial_no = '%s'", serial);
    }
}

static void run_together(step **steps, size_t count)
{
    db *connection = NULL;

    for (size_t i = 0; i < count; i++)
        random_token(steps[i]->token);
    assert_status(pool_get(f.client->connections, POOL_QUICK, 5000, &connection), TL_OK);
    assert_int_equal(store_group(connection, steps, count), DB_DONE);
    pool_put(f.client->connections, connection);
}

/* The statement of groups in which no mutex is asked for meets mutexes all the same: their endings
 * are in it, and a trade's ask with a mutex's key. */
static void mutexes_among_trades(const step *held)
{
    step trade = *held, mutex = *held, other = *held, *steps[] = {&mutex, &trade, &other};

    trade.kind = STEP_ASK;
    trade.serial_no = "kmY";
    mutex.kind = other.kind = STEP_FINISH_SYNC;
    mutex.status = other.status = 'Y';
    mutex.held_fence = other.held_fence = held->fence;
    memcpy(mutex.held_token, held->token, STEP_TOKEN);
    memcpy(other.held_token, held->token, STEP_TOKEN);
    other.serial_no = "ktY"; /* has another holder's fence and token */
    run_together(steps, 3);
    assert_false(trade.changed);
    assert_true(mutex.changed);
    assert_false(other.changed);
    assert_row(&f, "ktY", "k", "WITHDRAW", "Y 1 1");
    assert_row(&f, "kmY", "k", "WITHDRAW", "Y 1 1");
    assert_row(&f, "kg", "k", "WITHDRAW", "Y 1 1");
    database_expect(f.sql, 1,
                    "SELECT repeatable = 1 AND session_id IS NULL AND next_run_at IS NULL FROM "
                    "trade_lock WHERE serial_no = 'kg'");
}

/* The same where the asks of many threads share a statement. */
TEST(test_kinds_do_not_meet_in_a_group)
{
    step trade = {.kind = STEP_ASK,
                  .cust_no = "k",
                  .serial_no = "ktY",
                  .op_code = "WITHDRAW",
                  .thread_no = tl_thread_uuid(),
                  .lane = 'S',
                  .proof = '-',
                  .max_hold_ms = 1000,
                  .deadline_ms = -1,
                  .sends = 1};
    step mutex = trade, fresh = trade, *steps[] = {&mutex, &fresh, &trade};

    mutex.kind = fresh.kind = STEP_ASK_REPEATABLE;
    fresh.serial_no = "kg";
    fresh.session_id = tl_client_session(f.client);
    trade.serial_no = "kmY";
    run_together(steps, 3);
    assert_false(mutex.changed);
    assert_true(fresh.changed);
    assert_false(trade.changed);
    assert_row(&f, "ktY", "k", "WITHDRAW", "Y 1 1");
    assert_row(&f, "kmY", "k", "WITHDRAW", "Y 1 1");
    database_expect(
        f.sql, 1,
        "SELECT repeatable = 1 AND session_id IS NOT NULL FROM trade_lock WHERE serial_no = 'kg'");
    mutexes_among_trades(&fresh);
}

TEST(test_a_kind_that_was_changed_is_on_record)
{
    database_run(f.sql, "UPDATE trade_lock SET repeatable = 1 WHERE serial_no = 'ktY'");
    database_expect(
        f.sql, 1,
        "SELECT COUNT(*) FROM trade_lock_log WHERE serial_no = 'ktY' AND step = 'by hand'");
}

TEST(test_bad_arguments_change_nothing)
{
    tl_lock_options options = sync_options("x");
    tl_key key = {"s", "c", "WITHDRAW"}, bad = {"s", "c ", "WITHDRAW"};
    tl_lock *lock = NULL;

    assert_status(tl_lock_new(&lock, f.client, &bad, &options), TL_INVALID);
    assert_non_null(strstr(tl_error_message(), "cust_no"));
    options.max_hold_ms = 0;
    assert_status(tl_lock_new(&lock, f.client, &key, &options), TL_INVALID);
    options = sync_options("x");
    options.payload_size = TL_PAYLOAD_MAX + 1;
    assert_status(tl_lock_new(&lock, f.client, &key, &options), TL_INVALID);
    options = sync_options("x");
    options.flags = 4096;
    assert_status(tl_lock_new(&lock, f.client, &key, &options), TL_INVALID);
    assert_null(lock);
    assert_status(tl_lock_ask(NULL, 0), TL_INVALID);
    assert_row(&f, "s", "c", "WITHDRAW", "-");
}

TEST(test_large_payload_and_result)
{
    tl_lock_options options = sync_options(NULL);
    tl_ending ending = TL_ENDING_INIT;
    char *payload = malloc(TL_PAYLOAD_MAX), result[TL_RESULT_MAX + 1];
    tl_lock *lock, *again;
    tl_status status;

    assert_non_null(payload);
    memset(payload, 0xA5, TL_PAYLOAD_MAX);
    memset(result, 'r', sizeof result);
    options.payload = payload;
    options.payload_size = TL_PAYLOAD_MAX;
    lock = granted(f.client, "big", "c1", &options);
    ending.outcome = TL_OUTCOME_SUCCESS;
    ending.result = result;
    ending.result_size = TL_RESULT_MAX + 1;
    assert_status(tl_lock_finish(lock, &ending), TL_INVALID);
    ending.result_size = TL_RESULT_MAX;
    assert_status(tl_lock_finish(lock, &ending), TL_SUCCEEDED);
    again = ask(f.other, "big", "c1", &options, &status);
    assert_status(status, TL_ALREADY_DONE);
    assert_int_equal(tl_lock_view(again)->payload_size, TL_PAYLOAD_MAX);
    assert_memory_equal(tl_lock_view(again)->payload, payload, TL_PAYLOAD_MAX);
    assert_int_equal(tl_lock_view(again)->result_size, TL_RESULT_MAX);
    tl_lock_free(lock);
    tl_lock_free(again);
    free(payload);
}

TESTS_OF(ask, open_all, close_all)
