/*
 * Holders that sleep for longer than they are allowed to live, and wake up.  A real service is
 * stopped at a point, a worker resolves its trade meanwhile, and the service goes on.
 */
#include "town.h"

#include "support/theme.h"

#include <tradelock/tradelock.h>

#include <signal.h>
#include <sys/wait.h>

static town self;

FIXTURE(set_up)
{
    town_open(&self, "plain", NULL);
}

/* Where nothing is cancelled: "not found" is final, since every request says until when it may be
 * paid. */
FIXTURE(set_up_window)
{
    town_open(&self, "window", NULL);
}

FIXTURE(tear_down)
{
    assert_int_equal(town_check(&self, NULL), 0);
    town_close(&self);
}

static void wait_stopped(const child *of)
{
    int status;

    assert_int_equal(waitpid(of->pid, &status, WUNTRACED), of->pid);
    assert_true(WIFSTOPPED(status));
}

/* "status proof", and what the woken one filed. */
static void expect_trade(const char *row, const char *evidence)
{
    char serial[32], *found;

    snprintf(serial, sizeof serial, "W%llu", self.serial);
    found = database_text(self.sql,
                          "SELECT CONCAT(status, ' ', proof) FROM trade_lock WHERE "
                          "serial_no = '%s' AND lane = 'S'",
                          serial);
    assert_string_equal(found, row);
    free(found);
    found = database_text(self.sql,
                          "SELECT GROUP_CONCAT(outcome, ' by ', source) FROM "
                          "trade_evidence WHERE serial_no = '%s'",
                          serial);
    assert_string_equal(found != NULL ? found : "none", evidence);
    free(found);
}

/* Stops a service there, lets a worker end its trade, wakes it, and sees what it wrote and what it
 * says. */
static void sleep_at(const char *only, const char *says, const char *row, const char *evidence)
{
    const char *const environment[] = {only, "TL_FAULT_STOP=1", NULL};
    char *rows = town_rows(&self, 1), *text;
    child zombie = town_service(&self, self.service_config, rows, 1, environment);
    long long steps;

    wait_stopped(&zombie);
    town_finish(&self, 30000);
    steps = database_number(self.sql, "SELECT COUNT(*) FROM trade_lock_log");
    child_signal(&zombie, SIGCONT);
    assert_int_not_equal(child_wait(&zombie, PATIENCE_MS), -1);
    /* Nothing was written: not one step more, whatever it believed. */
    assert_int_equal(database_number(self.sql, "SELECT COUNT(*) FROM trade_lock_log"), steps);
    text = file_read(zombie.output);
    if (strstr(text, says) == NULL)
        fail_msg("it does not say \"%s\": %s", says, text);
    free(text);
    expect_trade(row, evidence);
    free(rows);
}

#define LOST "taken over: nothing was written"

/* Its ask was committed, and is worth nothing when it is answered: it was never granted. */
static void woken_within_the_ask(void **state)
{
    long long payments = sim_stat(&self.sim, "payments");

    (void)state;
    sleep_at("TL_FAULT_ONLY=COMMIT/after", "new 0 + repeated 1", "F C", "none");
    assert_int_equal(sim_stat(&self.sim, "payments"), payments);
}

static void woken_before_the_send(void **state)
{
    long long payments = sim_stat(&self.sim, "payments");

    (void)state;
    sleep_at("TL_FAULT_ONLY=granted/after", LOST, "F C", "NOT_SENT by fenced-out holder");
    assert_int_equal(sim_stat(&self.sim, "payments"), payments);
}

/* The pause between the check and the socket: what it had to send by is over. */
static void woken_within_the_send(void **state)
{
    long long payments = sim_stat(&self.sim, "payments");

    (void)state;
    sleep_at("TL_FAULT_ONLY=execute/before", LOST, "F C", "NOT_SENT by fenced-out holder");
    assert_int_equal(sim_stat(&self.sim, "payments"), payments);
}

static void woken_with_the_answer(void **state)
{
    long long payments = sim_stat(&self.sim, "payments");

    (void)state;
    sleep_at("TL_FAULT_ONLY=pay/after", LOST, "Y -", "SUCCEEDED by fenced-out holder");
    assert_int_equal(sim_stat(&self.sim, "payments"), payments + 1);
}

/* The failure is final while it sleeps; what it sends then must not be paid, so it sends nothing:
 * what it had to send by is over, since before it was allowed to. */
static void woken_within_the_send_after_not_found(void **state)
{
    long long payments = sim_stat(&self.sim, "payments");

    (void)state;
    sleep_at("TL_FAULT_ONLY=execute/before", LOST, "F N", "NOT_SENT by fenced-out holder");
    assert_int_equal(sim_stat(&self.sim, "payments"), payments);
}

/* The same one step later, with the request made and its expiry in it. */
static void woken_within_the_exchange_after_not_found(void **state)
{
    long long payments = sim_stat(&self.sim, "payments");

    (void)state;
    sleep_at("TL_FAULT_ONLY=pay/before", LOST, "F N", "NOT_SENT by fenced-out holder");
    assert_int_equal(sim_stat(&self.sim, "payments"), payments);
}

/* ----------------------------------------------------- awake, and at work again -- */

#define LINES 3000

/* Until so many trades have succeeded. */
static void await_paid(long long wanted)
{
    for (int i = 0; i < PATIENCE_MS / 5; i++) {
        if (database_number(self.sql, "SELECT COUNT(*) FROM trade_lock WHERE "
                                      "status = 'Y' AND lane = 'S'") >= wanted)
            return;
        usleep(5000);
    }
    fail_msg("the service does not come to pay %lld trades", wanted);
}

static long long sessions_of(const char *program)
{
    return database_number(self.sql,
                           "SELECT COUNT(*) FROM tl_session WHERE program = '%s' AND "
                           "ended_at IS NULL",
                           program);
}

/* Everybody sleeps, for longer than a session; somebody who looks in ends them all. */
static void end_the_sleeping(const char *program)
{
    const char *const arguments[] = {"reap", "--config", self.service_config, NULL};

    for (int i = 0; i < 20 && sessions_of(program) > 0; i++) {
        child janitor = town_start(&self, "tradelock", arguments, NULL);

        assert_int_equal(child_wait(&janitor, PATIENCE_MS), 0);
    }
    assert_int_equal(sessions_of(program), 0);
}

static long long count_paid(void)
{
    return database_number(self.sql, "SELECT COUNT(*) FROM trade_lock WHERE "
                                     "status = 'Y' AND lane = 'S'");
}

/* What it says of its lines is what it would have said, but for those that were in flight. */
static void wake(child *zombie, unsigned threads)
{
    unsigned repeated = 0;
    char *text, *at;

    child_signal(zombie, SIGCONT);
    assert_int_not_equal(child_wait(zombie, PATIENCE_MS), -1);
    text = file_read(zombie->output);
    at = strstr(text, "repeated ");
    if (at == NULL || sscanf(at, "repeated %u", &repeated) != 1 ||
        strstr(text, "error 0 + open 0\n") == NULL)
        fail_msg("of its lines it says: %s", text);
    assert_in_range(repeated, 0, threads);
    free(text);
    town_finish(&self, 30000);
    assert_int_equal(count_paid(), sim_stat(&self.sim, "payments"));
}

/* A real service sleeps for longer than its session, with work in flight, and goes on. */
static void a_service_goes_on(void **state)
{
    const unsigned threads = 8;
    const long long paid = count_paid();
    char *rows = town_rows(&self, LINES);
    child zombie = town_service(&self, self.service_config, rows, threads, NULL);

    (void)state;
    await_paid(paid + 50);
    child_signal(&zombie, SIGSTOP);
    wait_stopped(&zombie);
    end_the_sleeping("tradelock-withdraw");
    assert_in_range(count_paid(), paid + 50, paid + LINES / 2); /* it was not done */
    wake(&zombie, threads);
    free(rows);
}

static long long steps_of_slept(void)
{
    return database_number(self.sql, "SELECT COUNT(*) FROM trade_lock_log JOIN slept USING "
                                     "(cust_no, serial_no)");
}

/* The same within a transaction that trades with declared books share.  A worker ends them meanwhile,
 * once the server has ended the transaction, and nothing is written over that. */
static void sleep_within_a_group(const char *only)
{
    const char *const environment[] = {only, "TL_FAULT_STOP=15", NULL};
    const unsigned threads = 16;
    char *config = town_config(&self, TOWN_SETTINGS "beat_ms=300ms\nsession_ms=1s\n"
                                                    "janitor=0\nidle_transaction_s=2s\n");
    char *rows = town_rows(&self, LINES / 10);
    child zombie = town_service(&self, config, rows, threads, environment);
    long long steps;

    wait_stopped(&zombie);
    end_the_sleeping("tradelock-withdraw");
    town_finish(&self, 30000);
    database_run(self.sql,
                 "CREATE TABLE slept AS SELECT cust_no, serial_no FROM trade_lock WHERE lane = "
                 "'S'; ALTER TABLE slept ADD PRIMARY KEY (cust_no, serial_no)");
    steps = steps_of_slept();
    wake(&zombie, threads);
    assert_int_equal(steps_of_slept(), steps);
    database_run(self.sql, "DROP TABLE slept");
    remove(config);
    free(config);
    free(rows);
}

/* Statements of this name are those of several lock rows. */
static void a_group_goes_on(void **state)
{
    (void)state;
    sleep_within_a_group("TL_FAULT_ONLY=group/before");
    sleep_within_a_group("TL_FAULT_ONLY=group/after");
}

/* With so many threads few commit alone.  Where "not found" is final, those whose ask was committed
 * have failed by then, and must not be paid. */
static void a_group_goes_on_at_its_commit(void **state)
{
    (void)state;
    sleep_within_a_group("TL_FAULT_ONLY=COMMIT/before");
    sleep_within_a_group("TL_FAULT_ONLY=COMMIT/after");
}

/* The same of the other lane: the worker's own janitor opens what the worker held. */
static void a_worker_goes_on(void **state)
{
    char *rows = town_rows(&self, 60);
    child service, worker;

    (void)state;
    /* Paid, and the answer lost. */
    town_rule(&self, "{\"kind\":\"drop_after\",\"count\":0}");
    service = town_service(&self, self.service_config, rows, 4, NULL);
    assert_int_not_equal(child_wait(&service, PATIENCE_MS), -1);
    town_no_rules(&self);
    assert_true(town_open_trades(&self) > 0);
    free(rows);
    worker = town_worker(&self, self.worker_config, 4, NULL);
    town_await_ready(&worker);
    child_signal(&worker, SIGSTOP);
    wait_stopped(&worker);
    end_the_sleeping("tradelock-worker");
    child_signal(&worker, SIGCONT);
    AWAIT_WHILE(town_open_trades(&self) > 0);
    assert_int_equal(town_open_trades(&self), 0);
    child_signal(&worker, SIGTERM);
    assert_int_equal(child_wait(&worker, PATIENCE_MS), 0);
}

/* ------------------------------------------------- alive, and forgot its lock -- */

static tl_client *open_client(const char *file)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = file;
    options.program = "forgetful";
    if (tl_client_open(&client, &options) != TL_OK)
        server_panic("%s", tl_error_message());
    return client;
}

static void max_hold_opens_a_forgotten_lock(void **state)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_ending ending = TL_ENDING_INIT;
    char *file = database_option_file_at(self.db, server_socket(self.own),
                                         TOWN_SETTINGS "beat_ms=1s\nsession_ms=30s\njanitor=0\n");
    tl_client *client = open_client(file);
    tl_lock *lock = NULL;
    tl_key key = {"FORGOTTEN", "C1", "PAYOUT"};
    const char *const arguments[] = {"reap", "--config", self.janitor_config, NULL};
    child janitor;

    (void)state;
    options.max_hold_ms = 6000;
    options.payload = "x";
    options.payload_size = 1;
    assert_int_equal(tl_lock_new(&lock, client, &key, &options), TL_OK);
    assert_int_equal(tl_lock_ask(lock, 0), TL_GRANTED);
    assert_true(tl_may_send(lock, 1));
    while (tl_lock_remaining_ms(lock) > 0)
        usleep(10000);
    usleep(20000);
    assert_false(tl_may_send(lock, 1));
    assert_int_equal(tl_lock_remaining_ms(lock), 0);
    janitor = town_start(&self, "tradelock", arguments, NULL);
    assert_int_equal(child_wait(&janitor, PATIENCE_MS), 0);
    assert_int_equal(database_number(self.sql, "SELECT COUNT(*) FROM trade_lock_state WHERE "
                                               "serial_no = 'FORGOTTEN' AND state = 'in doubt'"),
                     1);
    assert_int_equal(database_number(self.sql,
                                     "SELECT ended_at IS NULL FROM tl_session WHERE "
                                     "session_id = '%s'",
                                     tl_client_session(client)),
                     1);
    ending.outcome = TL_OUTCOME_SUCCESS;
    assert_int_equal(tl_lock_finish(lock, &ending), TL_LOST);
    assert_false(tl_may_send(lock, 1));
    assert_int_equal(database_number(self.sql,
                                     "SELECT COUNT(*) FROM trade_evidence WHERE serial_no = "
                                     "'FORGOTTEN' AND outcome = 'SUCCEEDED'"),
                     1);
    tl_lock_free(lock);
    tl_client_close(client);
    remove(file);
    free(file);
    /* Nobody serves this operation here; two operators would decide. */
    database_run(self.sql, "DELETE FROM trade_lock WHERE serial_no = 'FORGOTTEN'; "
                           "DELETE FROM trade_lock_past WHERE serial_no = 'FORGOTTEN'");
}

TEST_MAIN(zombies)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(woken_within_the_ask),
        cmocka_unit_test(woken_before_the_send),
        cmocka_unit_test(woken_within_the_send),
        cmocka_unit_test(woken_with_the_answer),
        cmocka_unit_test(a_service_goes_on),
        cmocka_unit_test(a_group_goes_on),
        cmocka_unit_test(a_group_goes_on_at_its_commit),
        cmocka_unit_test(a_worker_goes_on),
        cmocka_unit_test(max_hold_opens_a_forgotten_lock),
    };

    const struct CMUnitTest window_tests[] = {
        cmocka_unit_test(woken_within_the_send_after_not_found),
        cmocka_unit_test(woken_within_the_exchange_after_not_found),
        cmocka_unit_test(a_group_goes_on_at_its_commit),
    };
    int wrong = server_run_tests(tests, set_up, tear_down);

    return wrong + server_run_tests(window_tests, set_up_window, tear_down);
}
