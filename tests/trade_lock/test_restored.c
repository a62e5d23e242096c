/* A restored database grants nothing until it is accepted. */
#include "fixture.h"

#include "support/crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Nothing here is expected to take long; machines are slow sometimes. */
#define PATIENCE_MS 60000
#define TOGETHER 8

static fixture f;

static int setup(void **state)
{
    (void)state;
    fixture_open(&f, "beat_ms=100\nsession_ms=60s\n");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_log_whole(&f);
    fixture_close(&f);
    return 0;
}

/* Asks for fresh trades until the answer is the expected one; gives the last one. */
static tl_status ask_until(const char *cust, tl_status expected)
{
    tl_lock_options options = sync_options("x");
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_status status = TL_OK;

    for (unsigned i = 0; status != expected && crew_now_ms() < end_ms; i++) {
        char serial[16];

        snprintf(serial, sizeof serial, "w%u", i);
        tl_lock_free(ask(f.client, serial, cust, &options, &status));
        usleep(50 * 1000);
    }
    return status;
}

static void await_answer(const char *cust, tl_status expected)
{
    assert_status(ask_until(cust, expected), expected);
}

static uint64_t in_process(void)
{
    return (uint64_t)database_number(f.sql, "SELECT COUNT(*) FROM trade_lock WHERE "
                                            "lane = 'S' AND status = 'P' AND "
                                            "repeatable = 0");
}

static tl_lock *queued_then_claimed(const char *serial)
{
    tl_lock_options options = sync_options("x"), retry = retry_options();
    tl_lock *lock = granted(f.client, serial, "c1", &options);

    assert_status(finish(lock, TL_OUTCOME_NOT_SENT, TL_PROOF_NONE), TL_QUEUED);
    tl_lock_free(lock);
    return granted(f.client, serial, "c1", &retry);
}

static void test_declared_and_accepted(void **state)
{
    tl_lock *claimed = queued_then_claimed("q1");
    tl_lock_options mutex = TL_LOCK_OPTIONS_INIT;
    uint64_t doubtful = 0, expected;

    (void)state;
    assert_status(tl_restore_declare(f.other, "ann", ""), TL_INVALID);
    assert_status(tl_restore_declare(f.other, "ann", "backup of monday"), TL_OK);
    await_answer("declared", TL_ASK_CHANNEL);
    /* The lane looks, and sends nothing. */
    assert_status(tl_lock_arm(claimed, 1000), TL_ASK_CHANNEL);
    assert_status(finish(claimed, TL_OUTCOME_NOT_SENT, TL_PROOF_NONE), TL_QUEUED);
    tl_lock_free(claimed);
    mutex.flags = TL_ASK_REPEATABLE;
    mutex.max_hold_ms = 1000;
    tl_lock_free(granted(f.client, "m1", "c1", &mutex));

    expected = in_process();
    assert_status(tl_restore_accept(f.other, "bob", "statements agree", &doubtful),
                  TL_OK);
    assert_int_equal(doubtful, expected);
    assert_row(&f, "q1", "c1", "WITHDRAW", "P 1 1");
    await_answer("accepted", TL_GRANTED);
}

/* A worker's claim came through and its arming did not: what it sent is not known here,
 * whether it lives or not, and whoever comes next must ask the channel. */
/* What is lost may be an arming: one send more than the row tells of, still under way, and
 * later than the sighting of nothing. */
static void test_another_send_may_be_lost(void **state)
{
    tl_lock_options options = sync_options("x"), retry = retry_options();
    tl_ending ending = TL_ENDING_INIT;
    tl_findings findings = {.not_found_first = 1};
    tl_lock *lock = granted(f.client, "q3", "c1", &options), *held;

    (void)state;
    options.max_hold_ms = 3600000;
    held = granted(f.client, "q4", "c1", &options);
    assert_status(finish(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_IN_DOUBT);
    tl_lock_free(lock);
    lock = granted(f.client, "q3", "c1", &retry);
    ending.outcome = TL_OUTCOME_UNKNOWN;
    assert_status(tl_lock_put_back(lock, &ending, &findings), TL_IN_DOUBT);
    tl_lock_free(lock);
    database_run(f.sql,
                 "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6) - INTERVAL 1 "
                 "HOUR WHERE serial_no = 'q3' AND lane = 'S'");
    assert_status(tl_restore_declare(f.other, "ann", "promoted"), TL_OK);
    assert_status(tl_restore_accept(f.other, "bob", "promoted", NULL), TL_OK);
    assert_row(&f, "q3", "c1", "WITHDRAW", "P 1 2");
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM trade_lock WHERE "
                                            "serial_no = 'q3' AND lane = 'S' AND "
                                            "not_found_since IS NULL AND send_until > "
                                            "UTC_TIMESTAMP(6)"),
                     1);
    /* A longer window stays, and who has sent may say what came of it. */
    assert_row(&f, "q4", "c1", "WITHDRAW", "P 1 2");
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM trade_lock WHERE "
                                            "serial_no = 'q4' AND send_until > "
                                            "UTC_TIMESTAMP(6) + INTERVAL 50 MINUTE"),
                     1);
    await_answer("lost-sends", TL_GRANTED);
    assert_status(finish(held, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(held);
}

static char *send_until(const char *serial)
{
    return database_text(f.sql,
                         "SELECT CONCAT(send_until) FROM trade_lock WHERE serial_no = "
                         "'%s' AND lane = 'S'",
                         serial);
}

/* A holder takes its own send off, and no time with it: the restore counted another one,
 * before that send was armed or after. */
static void test_a_send_taken_off_after_a_restore(void **state)
{
    tl_lock_options options = sync_options("x"), retry = retry_options();
    tl_lock *early, *late, *lock;
    char *before[2], *after[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        lock = granted(f.client, i == 0 ? "q5" : "q6", "c1", &options);
        assert_status(finish(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_IN_DOUBT);
        tl_lock_free(lock);
    }
    early = granted(f.client, "q5", "c1", &retry);
    late = granted(f.client, "q6", "c1", &retry);
    assert_status(tl_lock_arm(early, 3600000), TL_OK);
    assert_status(tl_restore_declare(f.other, "ann", "promoted"), TL_OK);
    assert_status(tl_restore_accept(f.other, "bob", "promoted", NULL), TL_OK);
    await_answer("taken-off", TL_GRANTED);
    assert_status(tl_lock_arm(late, 3600000), TL_OK);
    before[0] = send_until("q5");
    before[1] = send_until("q6");
    assert_status(finish(early, TL_OUTCOME_NOT_SENT, TL_PROOF_NONE), TL_IN_DOUBT);
    assert_status(finish(late, TL_OUTCOME_NOT_SENT, TL_PROOF_NONE), TL_IN_DOUBT);
    after[0] = send_until("q5");
    after[1] = send_until("q6");
    for (int i = 0; i < 2; i++) {
        assert_row(&f, i == 0 ? "q5" : "q6", "c1", "WITHDRAW", "P 1 2");
        assert_string_equal(after[i], before[i]);
        free(before[i]);
        free(after[i]);
    }
    tl_lock_free(early);
    tl_lock_free(late);
}

static void test_a_claim_without_its_arming(void **state)
{
    tl_lock *claimed = queued_then_claimed("q2");
    (void)state;
    assert_status(tl_restore_declare(f.other, "ann", "promoted"), TL_OK);
    assert_status(tl_restore_accept(f.other, "bob", "promoted", NULL), TL_OK);
    assert_row(&f, "q2", "c1", "WITHDRAW", "P 1 1");
    await_answer("promoted", TL_GRANTED);
    assert_status(tl_lock_arm(claimed, 1000), TL_LOST);
    tl_lock_free(claimed);
}

static void test_another_server_is_noticed(void **state)
{
    tl_client *late;
    tl_lock_options options = sync_options("x");
    tl_status status;

    (void)state;
    database_run(f.sql, "UPDATE tl_schema SET server_identity = 'the old one'");
    late = client_new(&f, TL_CLIENT_NO_JANITOR);
    tl_lock_free(ask(late, "x1", "c1", &options, &status));
    assert_status(status, TL_ASK_CHANNEL);
    assert_status(tl_restore_accept(f.other, "bob", "promoted", NULL), TL_OK);
    await_answer("promoted", TL_GRANTED);
    tl_client_close(late);
}

/* A client whose next heartbeat is far away, so that it is a new connection that shows
 * where it leads. */
static tl_client *slow_client(char **file)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    *file = database_option_file_at(f.db, server_socket(server_shared()),
                                    "beat_ms=60s\nsession_ms=10m\n");
    options.config_file = *file;
    options.flags = TL_CLIENT_NO_JANITOR;
    assert_status(tl_client_open(&client, &options), TL_OK);
    return client;
}

static tl_status prepare_nothing(void *context, struct st_mysql *connection)
{
    (void)context;
    (void)connection;
    return TL_OK;
}

static tl_status ask_plainly(tl_lock *lock)
{
    return tl_lock_ask(lock, 0);
}

static tl_status ask_with_rows(tl_lock *lock)
{
    return tl_lock_ask_with(lock, prepare_nothing, NULL, 0);
}

/* From now on the client's connections lead to another server, and nothing has told it. */
static void fail_over(void)
{
    database_run(f.sql, "UPDATE tl_schema SET server_identity = 'the old one'");
    database_cut(f.sql);
}

static void accept_and_close(tl_client *client, char *file)
{
    assert_status(tl_restore_accept(f.other, "bob", "promoted", NULL), TL_OK);
    tl_client_close(client);
    remove(file);
    free(file);
}

/* What the first ask hears that meets the promoted server. */
static void ask_first(const char *serial, tl_status (*ask_it)(tl_lock *lock))
{
    char *file;
    tl_client *client = slow_client(&file);
    tl_lock_options options = sync_options("x");
    tl_lock *lock = lock_new(client, serial, "over", &options);

    fail_over();
    assert_status(ask_it(lock), TL_ASK_CHANNEL);
    tl_lock_free(lock);
    accept_and_close(client, file);
}

/* A client that was looking while the server was accepted hears of it a beat later. */
static tl_lock *granted_at_last(tl_client *client, const char *serial, const char *cust)
{
    tl_lock_options options = sync_options("x");
    tl_lock *lock = lock_new(client, serial, cust, &options);
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_status status;

    while ((status = tl_lock_ask(lock, 0)) == TL_ASK_CHANNEL && crew_now_ms() < end_ms)
        usleep(1000);
    assert_status(status, TL_GRANTED);
    return lock;
}

static void test_the_first_ask_after_a_failover(void **state)
{
    tl_lock *lock = granted_at_last(f.client, "failed", "over");

    (void)state;
    assert_status(finish(lock, TL_OUTCOME_FAILURE, TL_PROOF_DECLINED), TL_FAILED);
    tl_lock_free(lock);
    ask_first("absent", ask_plainly);
    assert_row(&f, "absent", "over", "WITHDRAW", "-");
    ask_first("with", ask_with_rows);
    assert_row(&f, "with", "over", "WITHDRAW", "-");
    /* What it became since then may be lost. */
    ask_first("failed", ask_plainly);
}

/* The same of asks that share a statement. */
static void test_the_first_asks_together(void **state)
{
    char *file;
    tl_client *client = slow_client(&file);
    tl_lock_options options = sync_options("x");
    tl_completion completions[TOGETHER];
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    size_t count = 0;

    (void)state;
    fail_over();
    for (int i = 0; i < TOGETHER; i++) {
        char serial[16];

        snprintf(serial, sizeof serial, "together%d", i);
        assert_status(
            tl_lock_ask_submit(lock_new(client, serial, "over", &options), NULL, NULL),
            TL_OK);
    }
    while (count < TOGETHER) {
        count += tl_client_completed(client, completions + count, TOGETHER - count);
        assert_true(crew_now_ms() < end_ms);
        usleep(1000);
    }
    for (int i = 0; i < TOGETHER; i++) {
        assert_status(completions[i].status, TL_ASK_CHANNEL);
        tl_lock_free(completions[i].lock);
    }
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM trade_lock WHERE "
                                            "serial_no LIKE 'together%%'"),
                     0);
    accept_and_close(client, file);
}

/* Who was granted the retry lane before does not send after. */
static void test_the_first_arming_after_a_failover(void **state)
{
    char *file;
    tl_client *client = slow_client(&file);
    tl_lock_options retry = retry_options();
    tl_lock *lock = granted_at_last(f.client, "arm", "over");

    (void)state;
    assert_status(finish(lock, TL_OUTCOME_NOT_SENT, TL_PROOF_NONE), TL_QUEUED);
    tl_lock_free(lock);
    lock = granted(client, "arm", "over", &retry);
    fail_over();
    assert_status(tl_lock_arm(lock, 1000), TL_ASK_CHANNEL);
    assert_row(&f, "arm", "over", "WITHDRAW", "P 1 0");
    assert_status(finish(lock, TL_OUTCOME_NOT_SENT, TL_PROOF_NONE), TL_QUEUED);
    tl_lock_free(lock);
    accept_and_close(client, file);
}

static uint64_t asked_before;

static void wait_or_restore(void *context, int number)
{
    tl_status *answer = context;
    tl_lock_options options = sync_options("x");
    tl_lock *lock = NULL;
    tl_stats stats = {.version = TL_STATS_VERSION};

    if (number == 0) {
        lock = lock_new(f.client, "waits", "c1", &options);
        *answer = tl_lock_ask(lock, PATIENCE_MS);
        tl_lock_free(lock);
        return;
    }
    do {
        crew_sleep_ms(1);
        CREW_STATUS(tl_client_stats(f.client, &stats), TL_OK);
    } while (stats.asks == asked_before);
    CREW_STATUS(tl_restore_declare(f.other, "ann", "backup of monday"), TL_OK);
    CREW_STATUS(ask_until("waited", TL_ASK_CHANNEL), TL_ASK_CHANNEL);
    database_run(f.sql, "DELETE FROM trade_lock WHERE serial_no = 'waits'");
}

/* Who waited when the restore was declared is not granted what the backup does not have. */
static void test_a_waiter_meets_a_restore(void **state)
{
    tl_lock *held;
    tl_stats stats = {.version = TL_STATS_VERSION};
    tl_status answer = TL_OK;

    (void)state;
    tl_lock_free(granted_at_last(f.client, "before", "c2"));
    held = granted_at_last(f.other, "waits", "c1");
    assert_status(tl_client_stats(f.client, &stats), TL_OK);
    asked_before = stats.asks;
    crew_threads(2, wait_or_restore, &answer);
    assert_status(answer, TL_ASK_CHANNEL);
    assert_row(&f, "waits", "c1", "WITHDRAW", "-");
    tl_lock_free(held);
    assert_status(tl_restore_accept(f.other, "bob", "statements agree", NULL), TL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_declared_and_accepted),
        cmocka_unit_test(test_a_claim_without_its_arming),
        cmocka_unit_test(test_another_send_may_be_lost),
        cmocka_unit_test(test_a_send_taken_off_after_a_restore),
        cmocka_unit_test(test_another_server_is_noticed),
        cmocka_unit_test(test_the_first_ask_after_a_failover),
        cmocka_unit_test(test_the_first_asks_together),
        cmocka_unit_test(test_the_first_arming_after_a_failover),
        cmocka_unit_test(test_a_waiter_meets_a_restore),
    };

    return server_run_tests(tests, setup, teardown);
}
