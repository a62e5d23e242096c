/*
 * Releases with other channels while trades are in doubt: a trade goes to the channel that its row
 * names, or to nobody.  Two real channels, of which each pays what it is sent.
 */
#include "release.h"

#include "support/crew.h"
#include "support/metric.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/lane.h>
#include <tradelock/layer.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>

static house self; /* its simulator is bank A, and it runs no client of its own */
static struct sim other;
static release now;

#define A(kind_of) ((bank){"bank-a", kind_of, &self.sim, 0, 0})
#define B(kind_of) ((bank){"bank-b", kind_of, &other, 0, 0})

static const char *const plain[] = {"--kind", "plain", "--settle-ms", "100", NULL};

FIXTURE(open_banks)
{
    house_open(&self, WITHDRAW_PLAIN, NULL, NULL);
    house_leave(&self);
    house_account(&self, "C1", 1000000);
    sim_prepare(&other);
    sim_start(&other, plain);
}

/* B pays a key once, and many trades wait for many attempts. */
FIXTURE(open_chaos)
{
    static const char *const idempotent[] = {"--kind", "idempotent", "--settle-ms", "100", NULL};

    house_open(&self, WITHDRAW_PLAIN,
               "site=test\nbeat_ms=100ms\nsession_ms=3s\nmax_hold_ms=5s\nexecute_ms=800ms\n"
               "commit_ms=1s\ndeadline_ms=10m\nschedule=50ms,100ms\nattempts=1000\npoison=100\n"
               "grace_ms=200ms\nclock_margin_ms=50ms\nbusiness_lock_wait_s=1\n",
               NULL);
    house_leave(&self);
    house_account(&self, "C1", 100000000);
    sim_prepare(&other);
    sim_start(&other, idempotent);
}

FIXTURE(close_banks)
{
    release_close(&now);
    sim_remove(&other);
    house_close(&self);
}

/* Alarms are kept in the house. */
static void keep_alarm(void *context, const tl_log_line *line)
{
    (void)context;
    if (line->level != TL_ALARM)
        return;
    pthread_mutex_lock(&self.mutex);
    if (self.alarm_count < ALARMS_MAX)
        snprintf(self.alarms[self.alarm_count++], sizeof self.alarms[0], "%s", line->message);
    pthread_mutex_unlock(&self.mutex);
}

/* The release before ends, and this one begins. */
static void begin(bank of, const bank *former)
{
    release_close(&now);
    if (release_open(&now, database_option_file(self.db), &of, former, keep_alarm, NULL) != TL_OK)
        fail_msg("%s", tl_error_message());
}

static void pay(const char *serial, tl_status expected)
{
    tl_answer answer = TL_ANSWER_INIT;

    assert_status(release_pay(&now, serial, "C1", 100, 0, &answer), expected);
    tl_answer_clear(&answer);
}

static json_int_t requests(const struct sim *sim, const char *endpoint)
{
    struct answer stats = sim_ask(sim, NULL, "/v1/stats", NULL, 10000);
    json_int_t count =
        json_integer_value(json_object_get(json_object_get(stats.json, "requests"), endpoint));

    answer_free(&stats);
    return count;
}

static json_int_t all_requests(const struct sim *sim)
{
    return requests(sim, "pay") + requests(sim, "query") + requests(sim, "cancel");
}

static void stop_worker(tl_worker *worker)
{
    tl_worker_stop(worker);
    assert_status(tl_worker_wait(worker, PATIENCE_MS), TL_OK);
    tl_worker_free(worker);
}

static void await_number(long long least, const char *query)
{
    AWAIT_WHILE(database_number(self.sql, "%s", query) < least);
}

#define REV_OF(serial)                                                                             \
    "SELECT COALESCE(SUM(rev), 0) FROM trade_lock WHERE serial_no = '" serial "' AND lane = 'R'"

/* A worker of today's release claims the trade several times. */
static void work_on(const char *query)
{
    const long long before = database_number(self.sql, "%s", query);
    tl_worker *worker = house_worker(now.workflows, 2);

    await_number(before + 8, query);
    stop_worker(worker);
}

static void work_until(const char *query)
{
    tl_worker *worker = house_worker(now.workflows, 2);

    await_number(1, query);
    stop_worker(worker);
}

#define IS(serial, status)                                                                         \
    "SELECT COUNT(*) FROM trade_lock WHERE serial_no = '" serial                                   \
    "' AND lane = 'S' AND status = '" status "'"

/* Bank A paid, and its answer was lost. */
static void pay_in_doubt(const char *serial)
{
    house_rule(&self, "{\"kind\":\"drop_after\",\"endpoint\":\"pay\",\"count\":1}");
    pay(serial, TL_IN_DOUBT);
}

/* It was asked to do nothing, so that nothing was sent. */
static void pay_later(const char *serial)
{
    house_rule(&self, "{\"kind\":\"rate_limit\",\"endpoint\":\"pay\",\"count\":1}");
    pay(serial, TL_QUEUED);
}

/* -------------------------------------------------------------------- another name -- */

TEST_IN(nobody_else_is_called, open_banks, close_banks)
{
    begin(A(WITHDRAW_PLAIN), NULL);
    pay_in_doubt("W1");
    begin(B(WITHDRAW_IDEMPOTENT), NULL);
    work_on(REV_OF("W1"));
    house_row(&self, "W1", "P 1 1 -");
    assert_int_equal(all_requests(&other), 0);
    assert_int_equal(requests(&self.sim, "query"), 0);
    /* It used up no attempt, and is not parked. */
    database_expect(self.sql, 0, "SELECT attempts FROM trade_lock WHERE lane = 'R'");
    house_retry_row(&self, "W1", "F", "");
    assert_true(house_alarmed(&self, "a trade of channel \"bank-a\" waits"));
    assert_true(metric_of(now.client, "tradelock_channel_answers_total{channel=\"bank-a\","
                                      "operation=\"WITHDRAW\",call=\"nobody\","
                                      "answer=\"not_registered\"}") > 1);
    /* What is new goes to the new one meanwhile. */
    pay("W2", TL_SUCCEEDED);
    assert_int_equal(requests(&other, "pay"), 1);
    /* The release before is there again: it brings the trade to its end. */
    begin(A(WITHDRAW_PLAIN), NULL);
    work_until(IS("W1", "Y"));
    assert_int_equal(sim_stat(&self.sim, "payments"), 1);
    assert_int_equal(sim_stat(&other, "payments"), 1);
}

TEST_IN(a_former_channel_is_asked, open_banks, close_banks)
{
    const bank former[] = {A(WITHDRAW_PLAIN), {0}};

    begin(A(WITHDRAW_PLAIN), NULL);
    pay_in_doubt("W1");
    pay_later("W2");
    begin(B(WITHDRAW_IDEMPOTENT), former);
    work_until(IS("W1", "Y"));
    work_until(IS("W2", "Y"));
    pay("W3", TL_SUCCEEDED);
    assert_int_equal(sim_stat(&self.sim, "payments"), 2);
    assert_int_equal(sim_stat(&other, "payments"), 1);
    house_balance(&self, "C1", "999700 0");
}

TEST_IN(what_never_left_is_not_sent_to_one_that_is_only_asked, open_banks, close_banks)
{
    bank former[] = {A(WITHDRAW_PLAIN), {0}};

    former[0].only_asked = 1;
    begin(A(WITHDRAW_PLAIN), NULL);
    pay_in_doubt("W1");
    pay_later("W2");
    begin(B(WITHDRAW_IDEMPOTENT), former);
    work_until(IS("W1", "Y"));
    work_until(IS("W2", "F"));
    house_row(&self, "W2", "F 1 0 L");
    assert_int_equal(requests(&self.sim, "pay"), 2);
    assert_int_equal(all_requests(&other), 0);
    house_balance(&self, "C1", "999900 0");
}

/* What one of the operators' readers says. */
static int take_sentence(void *context, const tl_sentence *sentence)
{
    *(int *)context |=
        strstr(sentence->text, "no process that lives has registered for WITHDRAW") != NULL;
    return 0;
}

static int take_finding(void *context, const tl_finding *finding)
{
    struct {
        const char *what, *found, *advice;
        int is_met;
    } *wanted = context;

    wanted->is_met |= strcmp(finding->check, wanted->what) == 0 &&
                      strstr(finding->found, wanted->found) != NULL &&
                      strstr(finding->sentence, wanted->advice) != NULL;
    return 0;
}

static int doctor_says(const char *what, const char *found, const char *advice)
{
    struct {
        const char *what, *found, *advice;
        int is_met;
    } wanted = {what, found, advice, 0};

    (void)tl_doctor(now.client, take_finding, &wanted);
    return wanted.is_met;
}

TEST_IN(explain_and_doctor_say_so, open_banks, close_banks)
{
    const tl_key key = {"W1", "C1", WITHDRAW_OP};
    tl_trade_each each = TL_TRADE_EACH_INIT;
    int is_said = 0;

    each.sentence = take_sentence;
    begin(A(WITHDRAW_PLAIN), NULL);
    pay_in_doubt("W1");
    assert_status(tl_trade_read(now.client, &key, &each, &is_said, NULL), TL_OK);
    assert_false(is_said);
    assert_true(doctor_says("channel", "bank-a for WITHDRAW", "idempotent=0 window_ms=0"));
    assert_true(doctor_says("site", "test", "all channel keys"));
    begin(B(WITHDRAW_IDEMPOTENT), NULL);
    assert_status(tl_trade_read(now.client, &key, &each, &is_said, NULL), TL_OK);
    assert_true(is_said);
    assert_true(doctor_says("channel", "bank-a for WITHDRAW", "such as W1 of C1"));
    /* A program that is older than breakers. */
    assert_false(doctor_says("decisions", "breaker", "bank-b"));
    database_run(self.sql, "UPDATE tl_session SET obeys = 'pause limit' WHERE program = 'bank-b'");
    assert_true(doctor_says("decisions", "breaker", "bank-b"));
    assert_false(doctor_says("decisions", "limit", "bank-b"));
}

/* A decision needs no channel. */
TEST_IN(evidence_ends_it, open_banks, close_banks)
{
    tl_evidence evidence = TL_EVIDENCE_INIT;
    char key[TL_CHANNEL_KEY_MAX + 1];

    begin(A(WITHDRAW_PLAIN), NULL);
    pay_in_doubt("W1");
    begin(B(WITHDRAW_IDEMPOTENT), NULL);
    house_key(&self, "W1", key);
    evidence.key = (tl_key){"W1", "C1", WITHDRAW_OP};
    evidence.epoch = 1;
    evidence.channel_key = key;
    evidence.outcome = "SUCCEEDED";
    evidence.final = 1;
    evidence.channel_ref = "R-1";
    evidence.source = "statement";
    assert_status(tl_evidence_add(now.client, &evidence), TL_OK);
    work_until(IS("W1", "Y"));
    assert_int_equal(all_requests(&other), 0);
}

TEST_IN(a_failure_is_not_tried_anew_elsewhere, open_banks, close_banks)
{
    tl_answer answer = TL_ANSWER_INIT;

    begin(A(WITHDRAW_PLAIN), NULL);
    house_rule(&self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\",\"count\":1}");
    pay("W1", TL_IN_DOUBT);
    work_until(IS("W1", "F"));
    begin(B(WITHDRAW_IDEMPOTENT), NULL);
    assert_status(release_pay(&now, "W1", "C1", 100, 1, &answer), TL_FAILED);
    assert_int_equal(answer.view.retryable, 0);
    tl_answer_clear(&answer);
    assert_int_equal(all_requests(&other), 0);
    database_expect(self.sql, 1, "SELECT epoch FROM trade_lock WHERE lane = 'S'");
}

/* ---------------------------------------------------------------------- its pauses -- */

static void decide(const char *channel, int pauses)
{
    tl_pause pause = TL_PAUSE_INIT;

    pause.channel = channel;
    pause.actor = "ann";
    pause.reason = "test";
    assert_status(pauses ? tl_channel_pause(now.client, &pause)
                         : tl_channel_resume(now.client, &pause),
                  TL_OK);
    AWAIT_WHILE((tl_channel_check(now.client, channel, WITHDRAW_OP) != TL_OK) != pauses);
}

TEST_IN(a_pause_is_of_the_rows_channel, open_banks, close_banks)
{
    const bank former[] = {A(WITHDRAW_PLAIN), {0}};
    json_int_t queries;

    begin(A(WITHDRAW_PLAIN), NULL);
    pay_in_doubt("W1");
    begin(B(WITHDRAW_IDEMPOTENT), former);
    decide("bank-a", 1);
    queries = all_requests(&self.sim);
    work_on(REV_OF("W1"));
    house_row(&self, "W1", "P 1 1 -");
    assert_int_equal(all_requests(&self.sim), queries);
    pay("W2", TL_SUCCEEDED);
    decide("bank-a", 0);
    /* That of the other one holds up nothing of it. */
    decide("bank-b", 1);
    pay("W3", TL_OVERLOADED);
    work_until(IS("W1", "Y"));
    assert_int_equal(sim_stat(&self.sim, "payments"), 1);
    assert_int_equal(sim_stat(&other, "payments"), 1);
}

/* --------------------------------------------- its limits, its breakers, its cancels -- */

/* Until today's release has told and heard. */
static void await_beats(void)
{
    tl_stats stats = {.version = TL_STATS_VERSION};
    uint64_t before;

    assert_status(tl_client_stats(now.client, &stats), TL_OK);
    before = stats.beats;
    AWAIT_WHILE(tl_client_stats(now.client, &stats) == TL_OK && stats.beats < before + 10);
}

TEST_IN(a_limit_is_of_the_rows_channel, open_banks, close_banks)
{
    const bank former[] = {A(WITHDRAW_PLAIN), {0}};
    const tl_key key = {"HELD", "C1", "OTHER"};
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_ending ending = TL_ENDING_INIT;
    tl_limit limit = TL_LIMIT_INIT;
    tl_worker *worker;
    tl_lock *held = NULL;

    begin(A(WITHDRAW_PLAIN), NULL);
    pay_later("W1");
    begin(B(WITHDRAW_IDEMPOTENT), former);
    limit.channel = options.channel = "bank-a";
    limit.sends = 1;
    limit.actor = "ann";
    limit.reason = "test";
    assert_status(tl_channel_limit(now.client, &limit), TL_OK);
    await_beats();
    options.max_hold_ms = 60000;
    assert_status(tl_lock_new(&held, now.client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(held, 0), TL_GRANTED);
    worker = house_worker(now.workflows, 2);
    AWAIT_WHILE(metric_of(now.client, "tradelock_channel_limit_refusals_total{channel=\"bank-a\","
                                      "operation=\"\",lane=\"retry\",limit=\"sends\"}") < 1);
    assert_int_equal(requests(&self.sim, "pay"), 1);
    /* It holds up nothing of the other one. */
    pay("W2", TL_SUCCEEDED);
    ending.outcome = TL_OUTCOME_SUCCESS;
    assert_status(tl_lock_finish(held, &ending), TL_SUCCEEDED);
    tl_lock_free(held);
    await_number(1, IS("W1", "Y"));
    stop_worker(worker);
    assert_int_equal(sim_stat(&self.sim, "payments"), 1);
    assert_int_equal(sim_stat(&other, "payments"), 1);
}

TEST_IN(a_breaker_is_of_the_rows_channel, open_banks, close_banks)
{
    const bank former[] = {A(WITHDRAW_PLAIN), {0}};
    tl_breaker breaker = TL_BREAKER_INIT;

    begin(A(WITHDRAW_PLAIN), NULL);
    breaker.channel = "bank-a";
    breaker.unknowns = 1;
    breaker.probe_s = 600;
    breaker.actor = "ann";
    breaker.reason = "test";
    assert_status(tl_channel_breaker(now.client, &breaker), TL_OK);
    await_beats();
    pay_in_doubt("W1");
    await_number(1, "SELECT COUNT(*) FROM trade_channel_breaker WHERE opened_at IS NOT NULL");
    begin(B(WITHDRAW_IDEMPOTENT), former);
    await_beats();
    work_on(REV_OF("W1"));
    house_row(&self, "W1", "P 1 1 -");
    assert_int_equal(requests(&self.sim, "query"), 0);
    pay("W2", TL_SUCCEEDED);
    breaker.unknowns = breaker.probe_s = 0;
    assert_status(tl_channel_breaker(now.client, &breaker), TL_OK);
    work_until(IS("W1", "Y"));
    assert_int_equal(sim_stat(&self.sim, "payments"), 1);
    assert_int_equal(sim_stat(&other, "payments"), 1);
}

TEST_IN(a_cancel_goes_to_the_rows_channel, open_banks, close_banks)
{
    const bank former[] = {A(WITHDRAW_PLAIN), {0}};

    begin(A(WITHDRAW_PLAIN), NULL);
    house_rule(&self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\",\"count\":1}");
    pay("W1", TL_IN_DOUBT);
    begin(B(WITHDRAW_PLAIN), former);
    work_until(IS("W1", "F"));
    house_row(&self, "W1", "F 1 1 C");
    assert_int_equal(requests(&self.sim, "cancel"), 1);
    assert_int_equal(all_requests(&other), 0);
    house_balance(&self, "C1", "1000000 0");
}

/* Bare locks: a handle that was made for another channel arms nothing. */
TEST_IN(an_arming_for_another_channel_is_refused, open_banks, close_banks)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    const tl_key key = {"W1", "C1", WITHDRAW_OP};
    tl_lock *lock = NULL;

    begin(A(WITHDRAW_PLAIN), NULL);
    pay_in_doubt("W1");
    options.lane = TL_LANE_RETRY;
    options.channel = "bank-b";
    options.max_hold_ms = 2000;
    await_number(1, "SELECT COUNT(*) FROM trade_lock WHERE lane = 'R' AND status = 'F'"
                    " AND next_run_at <= UTC_TIMESTAMP(6)");
    assert_status(tl_lock_new(&lock, now.client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    assert_status(tl_lock_arm(lock, 2000), TL_MISMATCH);
    tl_lock_free(lock);
    house_row(&self, "W1", "P 1 1 -");
}

/* --------------------------------------------------------------- contracts and sites -- */

/* Another process would begin. */
static tl_status try_release(bank of, const char *words)
{
    release second;
    const tl_status status =
        release_open(&second, database_option_file(self.db), &of, NULL, keep_alarm, NULL);

    if (status == TL_OK)
        release_close(&second);
    else if (strstr(tl_error_message(), words) == NULL)
        fail_msg("%s", tl_error_message());
    return status;
}

/* One channel whose contract is better from a release on: what was sent under the lesser one is not
 * compensated by the better one. */
TEST_IN(a_contract_rises_once_nothing_is_in_process, open_banks, close_banks)
{
    begin(A(WITHDRAW_PLAIN), NULL);
    pay_in_doubt("W1");
    assert_status(try_release(A(WITHDRAW_IDEMPOTENT), "bank-a "), TL_UNSAFE);
    assert_non_null(strstr(tl_error_message(), "lives and promises something else"));
    release_close(&now);
    assert_status(try_release(A(WITHDRAW_IDEMPOTENT), "such as W1 of C1"), TL_UNSAFE);
    begin(A(WITHDRAW_PLAIN), NULL);
    work_until(IS("W1", "Y"));
    release_close(&now);
    assert_status(try_release(A(WITHDRAW_IDEMPOTENT), ""), TL_OK);
    assert_int_equal(sim_stat(&self.sim, "payments"), 1);
}

/* A process was killed while it sent. */
TEST_IN(what_a_dead_process_sent_counts, open_banks, close_banks)
{
    begin(A(WITHDRAW_PLAIN), NULL);
    pay_in_doubt("W1");
    /* Held until a moment to come. */
    database_run(self.sql, "UPDATE trade_lock SET session_id = UUID(), next_run_at ="
                           " UTC_TIMESTAMP(6) + INTERVAL 1 HOUR WHERE lane = 'S'");
    release_close(&now);
    assert_status(try_release(A(WITHDRAW_IDEMPOTENT), "such as W1 of C1"), TL_UNSAFE);
    assert_status(try_release(A(WITHDRAW_PLAIN), ""), TL_OK);
}

/* Less is taken at once, when nobody lives who goes by more; and then holds. */
TEST_IN(a_contract_falls, open_banks, close_banks)
{
    bank lesser = A(WITHDRAW_IDEMPOTENT);

    lesser.is_lesser = 1;
    begin(A(WITHDRAW_IDEMPOTENT), NULL);
    pay_in_doubt("W1");
    assert_status(try_release(lesser, "lives"), TL_UNSAFE);
    release_close(&now);
    begin(lesser, NULL);
    release_close(&now);
    assert_status(try_release(A(WITHDRAW_IDEMPOTENT), "such as W1"), TL_UNSAFE);
}

/* A process that was taken for dead goes on only by what holds meanwhile. */
TEST_IN(a_process_that_wakes_declares_anew, open_banks, close_banks)
{
    begin(A(WITHDRAW_PLAIN), NULL);
    const struct text first = text_of("%s", tl_client_session(now.client));
    /* In one transaction, so that it cannot go on in between. */
    database_run(self.sql, "UPDATE trade_channel SET contract = REPLACE(contract, 'idempotent=0',"
                           " 'idempotent=1') WHERE channel = 'bank-a'");
    database_run(self.sql, "INSERT INTO tl_session_channel SELECT 'bank-a', 'WITHDRAW', UUID()");
    database_run(self.sql, "INSERT INTO tl_session (session_id, program, host, pid,"
                           " connection_name, timeout_ms, started_at, alive_until)"
                           " SELECT session_id, 'other', 'h', 1, UUID(), 3600000,"
                           " UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 1 HOUR"
                           " FROM tl_session_channel WHERE session_id NOT IN"
                           " (SELECT session_id FROM tl_session)");
    database_run(self.sql,
                 "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6), ended_by = UUID()"
                 " WHERE session_id = '%s'",
                 first.is);
    AWAIT_WHILE(tl_client_alive_ms(now.client) > 0);
    usleep(500000); /* some beats */
    assert_int_equal(tl_client_alive_ms(now.client), 0);
    pay("W1", TL_SESSION_LOST);
    /* The other one ends: this one goes on. */
    database_run(self.sql, "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6)"
                           " WHERE program = 'other'");
    AWAIT_WHILE(tl_client_alive_ms(now.client) == 0);
    pay("W1", TL_SUCCEEDED);
}

/* A start in a thread of its own. */
struct start {
    bank of;
    tl_status status;
    atomic_int over;
};

static void *start_beside(void *argument)
{
    struct start *start = argument;

    start->status = try_release(start->of, "");
    atomic_store(&start->over, 1);
    return NULL;
}

/* It begins while others hold this row, as those do that begin in the same moment. */
static void start_behind(const char *locked)
{
    struct start start = {A(WITHDRAW_PLAIN), TL_INTERNAL, 0};
    MYSQL *others = database_connect(self.db);
    pthread_t thread;

    database_run(others, "START TRANSACTION");
    database_run(others, "%s", locked);
    assert_int_equal(pthread_create(&thread, NULL, start_beside, &start), 0);
    AWAIT_WHILE(!atomic_load(&start.over) &&
                database_number(self.sql,
                                "SELECT COUNT(*) FROM information_schema.processlist WHERE"
                                " db = DATABASE() AND id <> CONNECTION_ID() AND"
                                " info IS NOT NULL AND time_ms > 100") == 0);
    database_run(others, "ROLLBACK");
    pthread_join(thread, NULL);
    mysql_close(others);
    assert_status(start.status, TL_OK);
}

TEST_IN(services_start_together, open_banks, close_banks)
{
    start_behind("SELECT site FROM tl_schema WHERE one = 1 FOR UPDATE");
    start_behind("SELECT contract FROM trade_channel FOR UPDATE");
}

#define SAYERS 16
#define SITE_ROUNDS 50

static pthread_barrier_t together;

static void say_the_site(void *context, int number)
{
    MYSQL *own = database_connect(self.db);

    database_run(own, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"); /* as services */
    for (int round = 0; round < SITE_ROUNDS; round++) {
        if (pthread_barrier_wait(&together) == PTHREAD_BARRIER_SERIAL_THREAD)
            database_run(own, "UPDATE tl_schema SET site = NULL");
        pthread_barrier_wait(&together);
        if (mysql_query(own, "SET STATEMENT innodb_lock_wait_timeout = 5 FOR"
                             " CALL tl_site_is('test', @said)") == 0)
            atomic_fetch_add((atomic_int *)context, 1);
        else
            print_error("%d: %s\n", number, mysql_error(own));
    }
    mysql_close(own);
}

/* On a fresh installation all of them find none. */
TEST_IN(the_first_of_many_says_the_site, open_banks, close_banks)
{
    atomic_int well = 0;

    pthread_barrier_init(&together, NULL, SAYERS);
    crew_threads(SAYERS, say_the_site, &well);
    pthread_barrier_destroy(&together);
    assert_int_equal(well, SAYERS * SITE_ROUNDS);
}

/* A file of settings with another site, beside the one of the house. */
static const char *other_site(void)
{
    static char path[512];
    char *text = file_read(database_option_file(self.db)), *at = strstr(text, "site=test");
    FILE *file;

    assert_non_null(at);
    snprintf(path, sizeof path, "%s.other", database_option_file(self.db));
    memcpy(at, "site=next", 9);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    chmod(path, 0600);
    free(text);
    return path;
}

TEST_IN(another_site_is_refused, open_banks, close_banks)
{
    const bank of = A(WITHDRAW_PLAIN);
    const char *path = other_site();
    release second;

    begin(of, NULL);
    pay_in_doubt("W1");
    assert_status(release_open(&second, path, &of, NULL, keep_alarm, NULL), TL_BAD_CONFIG);
    assert_non_null(strstr(tl_error_message(), "site = next, and this installation's is test"));
    /* On purpose: once nobody lives and nothing is in process. */
    assert_int_not_equal(mysql_query(self.sql, "CALL tl_site_change('next', 'ann', 'moved')"), 0);
    assert_non_null(strstr(mysql_error(self.sql), "processes live"));
    release_close(&now);
    assert_int_not_equal(mysql_query(self.sql, "CALL tl_site_change('next', 'ann', 'moved')"), 0);
    assert_non_null(strstr(mysql_error(self.sql), "trades are in process"));
    begin(of, NULL);
    work_until(IS("W1", "Y"));
    release_close(&now);
    database_run(self.sql, "CALL tl_site_change('next', 'ann', 'moved')");
    assert_status(try_release(of, "is next"), TL_BAD_CONFIG);
    assert_status(release_open(&now, path, &of, NULL, keep_alarm, NULL), TL_OK);
    pay("W1", TL_ALREADY_DONE);
    unlink(path);
}

/* ---------------------------------------------------------------------- registration -- */

TEST_IN(what_is_no_former_channel, open_banks, close_banks)
{
    bank twice[] = {A(WITHDRAW_PLAIN), A(WITHDRAW_PLAIN), {0}};
    const bank same[] = {B(WITHDRAW_PLAIN), {0}};
    const bank of = B(WITHDRAW_IDEMPOTENT);
    release refused;

    assert_status(
        release_open(&refused, database_option_file(self.db), &of, twice, keep_alarm, NULL),
        TL_INVALID);
    assert_status(
        release_open(&refused, database_option_file(self.db), &of, same, keep_alarm, NULL),
        TL_INVALID);
    assert_non_null(strstr(tl_error_message(), "bank-b is named twice"));
}

/* --------------------------------------------------------------------------- chaos -- */

#define CREW 3
#define PAYMENTS 12

static void release_of_chaos(void *context, int number)
{
    unsigned seed = (unsigned)number * 2654435761u + 17;
    const int is_of_b = rand_r(&seed) % 2, has_former = rand_r(&seed) % 3 > 0;
    bank of = is_of_b ? B(WITHDRAW_IDEMPOTENT) : A(WITHDRAW_PLAIN);
    bank former[] = {is_of_b ? A(WITHDRAW_PLAIN) : B(WITHDRAW_IDEMPOTENT), {0}};
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker *worker = NULL;
    release mine;
    tl_status status;

    (void)context;
    of.is_lesser = former[0].is_lesser = rand_r(&seed) % 2;
    former[0].only_asked = rand_r(&seed) % 2;
    status = release_open(&mine, database_option_file(self.db), &of, has_former ? former : NULL,
                          NULL, NULL);
    if (status == TL_UNSAFE)
        return; /* others live, or something is in process, by another contract */
    CREW_STATUS(status, TL_OK);
    options.threads = 2;
    options.idle_max_ms = 20;
    CREW_STATUS(tl_worker_start(&worker, mine.workflows, &options), TL_OK);
    for (int i = 0; i < PAYMENTS; i++) {
        tl_answer answer = TL_ANSWER_INIT;

        (void)release_pay(&mine, text_of("N%d-%d", number, i).is, "C1", 100, 0, &answer);
        tl_answer_clear(&answer);
    }
    tl_worker_stop(worker);
    CREW_STATUS(tl_worker_wait(worker, PATIENCE_MS), TL_OK);
    tl_worker_free(worker);
    release_close(&mine);
}

static void set_faults(const struct sim *sim, const char *how)
{
    struct answer answer = sim_ask(sim, NULL, "/v1/faults", how, 10000);

    assert_int_equal(answer.status, 200);
    answer_free(&answer);
}

/* Once: what one of the banks paid, and each of these is a Y. */
static void assert_paid_once(void)
{
    const long long succeeded = database_number(
        self.sql, "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'Y'");
    char *at_a = ledger_text(&self.sim), *at_b = ledger_text(&other);
    MYSQL_RES *result;
    MYSQL_ROW row;

    assert_int_equal(sim_stat(&self.sim, "paid_twice"), 0);
    assert_int_equal(sim_stat(&other, "paid_twice"), 0);
    assert_int_equal(sim_stat(&self.sim, "payments") + sim_stat(&other, "payments"), succeeded);
    assert_int_equal(mysql_query(self.sql, "SELECT serial_no, status, channel FROM trade_lock WHERE"
                                           " lane = 'S'"),
                     0);
    result = mysql_store_result(self.sql);
    while ((row = mysql_fetch_row(result)) != NULL) {
        const int64_t a = ledger_holds(at_a, row[0]), b = ledger_holds(at_b, row[0]);

        if (a + b != (row[1][0] == 'Y') || (a > 0 && strcmp(row[2], "bank-a") != 0) ||
            (b > 0 && strcmp(row[2], "bank-b") != 0))
            fail_msg("%s is %s at %s, and was paid %d times at A and %d at B", row[0], row[1],
                     row[2], (int)a, (int)b);
    }
    mysql_free_result(result);
    free(at_a);
    free(at_b);
    print_message("%lld trades paid once, at two banks\n", succeeded);
}

/* Processes of all releases at once and one after the other, and some are killed. */
TEST_IN(releases_come_and_go, open_chaos, close_banks)
{
    const long rounds = crew_number("rounds", tier_pick(2, 3, 100));
    const bank former[] = {A(WITHDRAW_PLAIN), {0}};
    bank last = B(WITHDRAW_IDEMPOTENT);
    unsigned seed = (unsigned)crew_number("seed", 1);

    set_faults(&self.sim, "{\"rate\":0.3,\"seed\":7}");
    set_faults(&other, "{\"rate\":0.3,\"seed\":8}");
    for (long round = 0; round < rounds; round++) {
        pid_t crew[CREW];

        for (int i = 0; i < CREW; i++)
            crew[i] = crew_fork(release_of_chaos, NULL, (int)round * CREW + i);
        for (int i = 0; i < CREW; i++) {
            const int is_killed = rand_r(&seed) % 2;

            usleep((useconds_t)(rand_r(&seed) % 700) * 1000);
            if (is_killed)
                kill(crew[i], SIGKILL);
            if (crew_wait(crew[i]) != 0 && !is_killed)
                fail_msg("process %d of round %ld failed", i, round);
        }
    }
    set_faults(&self.sim, "{\"rate\":0,\"seed\":7}");
    set_faults(&other, "{\"rate\":0,\"seed\":8}");
    await_number(1, "SELECT COUNT(*) = 0 FROM tl_session WHERE ended_at IS NULL AND"
                    " alive_until > UTC_TIMESTAMP(6)");
    database_run(self.sql, "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6), ended_by = UUID()"
                           " WHERE ended_at IS NULL");
    last.is_lesser = 1;
    begin(last, former);
    work_until("SELECT COUNT(*) = 0 FROM trade_lock WHERE lane = 'S' AND status = 'P'");
    assert_paid_once();
}

TESTS_OF(channels, NULL, NULL)
