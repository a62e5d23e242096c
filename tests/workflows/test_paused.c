/*
 * A channel that operators have paused: nothing new is sent through it by any process, nothing is
 * used up, and all of it goes on after the resume.  And a drain, which is the pause of all channels
 * and of what names none.
 */
#include "house.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/lane.h>
#include <tradelock/layer.h>
#include <tradelock/resource.h>
#include <tradelock/rw_lock.h>

#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define CHANNEL (self.kind == WITHDRAW_WINDOW ? "window" : "idempotent")
#define PROCESSES 3
#define CALLERS 4

static house self;
static int all; /* what decide() decides about is the whole installation */

FIXTURE(open_house)
{
    house_open(&self, WITHDRAW_IDEMPOTENT, NULL, NULL);
    house_account(&self, "C1", 1000000);
}

FIXTURE(open_window)
{
    house_open(&self, WITHDRAW_WINDOW, NULL, NULL);
    house_account(&self, "C1", 1000000);
}

FIXTURE(close_house)
{
    all = 0;
    house_close(&self);
}

static tl_status decide(tl_client *client, const char *op_code, int pauses)
{
    tl_pause pause = TL_PAUSE_INIT;

    pause.channel = all ? TL_CHANNEL_ALL : CHANNEL;
    pause.op_code = op_code;
    pause.actor = "ann";
    pause.reason = pauses ? "maintenance" : "maintenance is over";
    return pauses ? tl_channel_pause(client, &pause) : tl_channel_resume(client, &pause);
}

/* Until this process has heard of it. */
static void await(tl_status status)
{
    AWAIT_WHILE(tl_channel_check(self.client, CHANNEL, WITHDRAW_OP) != status);
}

static void pause_now(const char *op_code)
{
    assert_status(decide(self.client, op_code, 1), TL_OK);
    await(TL_OVERLOADED);
}

static void resume_now(const char *op_code)
{
    assert_status(decide(self.client, op_code, 0), TL_OK);
    await(TL_OK);
}

/* How many requests the channel has had, of "pay" or "query". */
static json_int_t requests(const char *endpoint)
{
    struct answer stats = sim_ask(&self.sim, NULL, "/v1/stats", NULL, 10000);
    json_t *by_kind = json_object_get(stats.json, "requests");
    json_int_t count = json_integer_value(json_object_get(by_kind, endpoint));

    answer_free(&stats);
    return count;
}

/* Everything of all rows that a step changes, as one number. */
static long long revisions(void)
{
    return database_number(self.sql, "SELECT SUM(rev - fence DIV 1000000 * 1000000) + COUNT(*) + "
                                     "SUM(attempts) FROM trade_lock");
}

/* ------------------------------------------------------------------------- one process -- */

TEST_IN(a_new_payment_is_told_to_come_again, open_house, close_house)
{
    pause_now(NULL);
    house_expect(&self, "W1", "C1", 100, TL_OVERLOADED);
    assert_int_equal(tl_status_class(TL_OVERLOADED), TL_CLASS_RETRY);
    assert_non_null(strstr(tl_error_message(), "operators have paused channel idempotent"));
    /* No customer hears why. */
    assert_null(strstr(tl_error_message(), "maintenance"));
    house_row(&self, "W1", "none");
    house_balance(&self, "C1", "1000000 0");
    resume_now(NULL);
    house_expect(&self, "W1", "C1", 100, TL_SUCCEEDED);
    house_books(&self, 1);
}

TEST_IN(one_operation_may_be_paused_alone, open_house, close_house)
{
    pause_now(WITHDRAW_OP);
    assert_status(tl_channel_check(self.client, CHANNEL, "OTHER"), TL_OK);
    assert_status(tl_channel_check(self.client, "other", WITHDRAW_OP), TL_OK);
    assert_status(tl_channel_check(self.client, NULL, WITHDRAW_OP), TL_OVERLOADED);
    house_expect(&self, "W1", "C1", 100, TL_OVERLOADED);
    /* As a whole besides: each is a decision of its own. */
    assert_status(decide(self.client, NULL, 1), TL_OK);
    assert_status(decide(self.client, WITHDRAW_OP, 0), TL_OK);
    usleep(500000);
    house_expect(&self, "W1", "C1", 100, TL_OVERLOADED);
    assert_status(decide(self.client, WITHDRAW_OP, 0), TL_ALREADY_DONE);
    assert_non_null(strstr(tl_error_message(), "paused as a whole"));
    resume_now(NULL);
    house_expect(&self, "W1", "C1", 100, TL_SUCCEEDED);
}

/* A pause hides from nobody what became of a trade that is there. */
TEST_IN(a_trade_that_is_there_answers_as_ever, open_house, close_house)
{
    house_expect(&self, "PAID", "C1", 100, TL_SUCCEEDED);
    house_rule(&self, "{\"kind\":\"decline\"}");
    house_expect(&self, "DECLINED", "C1", 100, TL_FAILED);
    house_rule(&self, "{\"kind\":\"drop_after\",\"count\":1}");
    house_expect(&self, "DOUBT", "C1", 100, TL_IN_DOUBT);
    pause_now(NULL);
    house_expect(&self, "PAID", "C1", 100, TL_ALREADY_DONE);
    house_expect(&self, "PAID", "C1", 101, TL_MISMATCH);
    house_expect(&self, "DECLINED", "C1", 100, TL_FAILED);
    house_expect(&self, "DOUBT", "C1", 100, TL_IN_DOUBT);
    assert_status(tl_restore_declare(self.client, "ann", "a restore"), TL_OK);
    for (int i = 0; i < PATIENCE_MS / 20; i++) {
        tl_answer answer = TL_ANSWER_INIT;
        tl_status status = house_run(&self, "NEW", "C1", 100, 0, &answer);

        tl_answer_clear(&answer);
        if (status == TL_ASK_CHANNEL)
            return;
        assert_status(status, TL_OVERLOADED);
        usleep(20000);
    }
    fail_msg("%s", "nobody heard of the restore");
}

TEST_IN(nothing_is_tried_anew_and_the_channel_not_asked, open_window, close_house)
{
    tl_answer answer = TL_ANSWER_INIT;
    json_int_t queries;

    house_rule(&self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\"}");
    house_expect(&self, "LOST", "C1", 100, TL_IN_DOUBT);
    (void)house_work(&self, 1, PATIENCE_MS);
    house_row(&self, "LOST", "F 1 1 N");
    pause_now(NULL);
    queries = requests("query");
    assert_status(house_run(&self, "LOST", "C1", 100, 1, &answer), TL_OVERLOADED);
    tl_answer_clear(&answer);
    assert_int_equal(requests("query"), queries);
    house_row(&self, "LOST", "F 1 1 N");
    resume_now(NULL);
    assert_status(house_run(&self, "LOST", "C1", 100, 1, &answer), TL_SUCCEEDED);
    tl_answer_clear(&answer);
    house_books(&self, 1);
}

TEST_IN(what_is_due_waits_and_goes_on, open_house, close_house)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker_counts counts = {.version = TL_WORKER_COUNTS_VERSION};
    tl_worker *worker = NULL;
    long long before;
    tl_stats stats = {.version = TL_STATS_VERSION};
    uint64_t statements, beats;

    house_rule(&self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\",\"count\":1}");
    house_expect(&self, "DUE", "C1", 100, TL_IN_DOUBT);
    pause_now(NULL);
    usleep(300000); /* it is due */
    before = revisions();
    options.idle_max_ms = 50;
    options.unclaimed_ms = 100;
    assert_status(tl_worker_start(&worker, self.workflows, &options), TL_OK);
    assert_status(tl_client_stats(self.client, &stats), TL_OK);
    statements = stats.statements, beats = stats.beats;
    usleep(1500000);
    assert_status(tl_client_stats(self.client, &stats), TL_OK);
    assert_int_equal(revisions(), before);
    assert_status(tl_worker_count(worker, &counts), TL_OK);
    assert_int_equal(counts.claimed, 0);
    assert_false(house_alarmed(&self, "nobody claims them"));
    /* No busy loop: what there is comes with each beat, and with each look for overdue work. */
    assert_true(stats.statements - statements < 40 * (stats.beats - beats + 1));
    assert_status(decide(self.client, NULL, 0), TL_OK);
    AWAIT_WHILE(database_number(self.sql,
                                "SELECT COUNT(*) FROM trade_lock WHERE serial_no = 'DUE' AND "
                                "lane = 'S' AND status = 'Y'") == 0);
    tl_worker_free(worker);
    house_books(&self, 1);
}

/* Deadlines go on.  What was paid is found out by asking; what the channel does not know is never
 * sent again, and waits for a person. */
TEST_IN(a_pause_beyond_the_deadline_fails_nothing, open_house, close_house)
{
    house_rule(&self, "{\"kind\":\"drop_after\",\"endpoint\":\"pay\",\"count\":1}");
    house_expect(&self, "PAID", "C1", 100, TL_IN_DOUBT);
    house_rule(&self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\",\"count\":1}");
    house_expect(&self, "DOUBT", "C1", 100, TL_IN_DOUBT);
    pause_now(NULL);
    database_run(self.sql, "UPDATE trade_lock SET deadline_at = UTC_TIMESTAMP(6), rev = rev + 1 "
                           "WHERE lane = 'S'");
    resume_now(NULL);
    (void)house_work(&self, 1, PATIENCE_MS);
    house_row(&self, "PAID", "Y 1 1 -");
    house_row(&self, "DOUBT", "P 1 1 -");
    house_retry_row(&self, "DOUBT", "F", "in doubt after the deadline");
    house_books(&self, 1);
}

/* Claimed before this process knew of the pause. */
TEST_IN(what_is_claimed_is_not_armed, open_house, close_house)
{
    tl_claim_options options = TL_CLAIM_OPTIONS_INIT;
    tl_ending ending = TL_ENDING_INIT;
    const tl_findings findings = {.not_counted = 1};
    tl_lock *lock = NULL;
    size_t count = 1;

    house_rule(&self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\"}");
    house_expect(&self, "CLAIMED", "C1", 100, TL_IN_DOUBT);
    options.op_code = WITHDRAW_OP;
    options.max_hold_ms = 60000;
    do {
        count = 1;
        assert_status(tl_claim_due(self.client, &options, &lock, &count), TL_OK);
    } while (count == 0);
    pause_now(NULL);
    assert_status(tl_lock_arm(lock, 60000), TL_OVERLOADED);
    ending.outcome = TL_OUTCOME_UNKNOWN;
    assert_status(tl_lock_put_back(lock, &ending, &findings), TL_IN_DOUBT);
    tl_lock_free(lock);
    database_expect(self.sql, 0, "SELECT attempts FROM trade_lock WHERE lane = 'R'");
    house_row(&self, "CLAIMED", "P 1 1 -");
    resume_now(NULL);
    (void)house_work(&self, 1, PATIENCE_MS);
    house_row(&self, "CLAIMED", "Y 1 2 -");
    house_books(&self, 1);
}

TEST_IN(bare_locks_obey, open_house, close_house)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    const tl_key key = {"BARE", "C1", WITHDRAW_OP};
    tl_ending ending = TL_ENDING_INIT;
    tl_lock *lock = NULL;

    options.max_hold_ms = 10000;
    options.channel = CHANNEL;
    assert_status(tl_lock_new(&lock, self.client, &key, &options), TL_OK);
    pause_now(NULL);
    assert_status(tl_lock_ask(lock, 0), TL_OVERLOADED);
    assert_status(tl_lock_ask(lock, 200), TL_OVERLOADED);
    house_row(&self, "BARE", "none");
    resume_now(NULL);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    ending.outcome = TL_OUTCOME_SUCCESS;
    assert_status(tl_lock_finish(lock, &ending), TL_SUCCEEDED);
    tl_lock_free(lock);
    assert_status(tl_channel_add(self.client, "by hand", "X", NULL), TL_OK);
    assert_status(tl_channel_add(self.client, "", "X", NULL), TL_INVALID);
    assert_status(tl_channel_add(self.client, "a name that is far too long for it", "X", NULL),
                  TL_INVALID);
}

/* ---------------------------------------------------------------------------- a drain -- */

static tl_lock *new_lock(const char *serial, unsigned flags, tl_lane lane)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    const tl_key key = {serial, "C1", flags & TL_ASK_REPEATABLE ? "REPEATED" : "BARE"};
    tl_lock *lock = NULL;

    options.max_hold_ms = 10000;
    options.flags = flags;
    options.lane = lane;
    assert_status(tl_lock_new(&lock, self.client, &key, &options), TL_OK);
    return lock;
}

static void finish(tl_lock *lock)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = TL_OUTCOME_SUCCESS;
    assert_status(tl_lock_finish(lock, &ending), TL_SUCCEEDED);
    tl_lock_free(lock);
}

TEST_IN(a_drain_stops_payments_of_every_channel, open_house, close_house)
{
    all = 1;
    house_expect(&self, "PAID", "C1", 100, TL_SUCCEEDED);
    pause_now(NULL);
    assert_status(tl_channel_check(self.client, "other", "OTHER"), TL_OVERLOADED);
    house_expect(&self, "W1", "C1", 100, TL_OVERLOADED);
    assert_int_equal(tl_status_class(TL_OVERLOADED), TL_CLASS_RETRY);
    assert_non_null(strstr(tl_error_message(), "operators drain the installation"));
    /* No customer hears why. */
    assert_null(strstr(tl_error_message(), "maintenance"));
    house_row(&self, "W1", "none");
    house_balance(&self, "C1", "999900 0");
    house_expect(&self, "PAID", "C1", 100, TL_ALREADY_DONE);
    /* A channel's own pause is another decision. */
    all = 0;
    assert_status(decide(self.client, NULL, 1), TL_OK);
    all = 1;
    assert_status(decide(self.client, NULL, 0), TL_OK);
    while (tl_channel_check(self.client, "other", "OTHER") != TL_OK)
        usleep(5000);
    house_expect(&self, "W1", "C1", 100, TL_OVERLOADED);
    all = 0;
    resume_now(NULL);
    house_expect(&self, "W1", "C1", 100, TL_SUCCEEDED);
    house_books(&self, 2);
}

/* Trades that name no channel, those that may be made again, and claims. */
TEST_IN(a_drain_grants_no_trade_at_all, open_house, close_house)
{
    tl_lock *held, *bare, *again, *claim;
    tl_claim_options options = TL_CLAIM_OPTIONS_INIT;
    tl_evidence evidence = TL_EVIDENCE_INIT;
    const tl_key doubtful = {"DOUBT", "C1", WITHDRAW_OP};
    tl_lock_options by_key = TL_LOCK_OPTIONS_INIT;
    tl_lock *due = NULL;
    size_t count = 1;

    all = 1;
    held = new_lock("HELD", 0, TL_LANE_SYNC);
    assert_status(tl_lock_ask(held, 0), TL_GRANTED);
    house_rule(&self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\",\"count\":1}");
    house_expect(&self, "DOUBT", "C1", 100, TL_IN_DOUBT);
    pause_now(NULL);
    usleep(300000); /* it is due */
    bare = new_lock("BARE", 0, TL_LANE_SYNC);
    assert_status(tl_lock_ask(bare, 0), TL_OVERLOADED);
    assert_status(tl_lock_ask(bare, 200), TL_OVERLOADED);
    again = new_lock("AGAIN", TL_ASK_REPEATABLE, TL_LANE_SYNC);
    assert_status(tl_lock_ask(again, 0), TL_OVERLOADED);
    by_key.max_hold_ms = 10000;
    by_key.lane = TL_LANE_RETRY;
    assert_status(tl_lock_new(&claim, self.client, &doubtful, &by_key), TL_OK);
    assert_status(tl_lock_ask(claim, 0), TL_OVERLOADED);
    options.op_code = WITHDRAW_OP;
    options.max_hold_ms = 10000;
    assert_status(tl_claim_due(self.client, &options, &due, &count), TL_OK);
    assert_int_equal(count, 0);
    database_expect(self.sql, 0,
                    "SELECT COUNT(*) FROM trade_lock WHERE serial_no IN ('BARE', 'AGAIN')");
    /* What is held ends as ever, and what somebody knows is filed. */
    finish(held);
    evidence.key = doubtful;
    evidence.outcome = "UNKNOWN";
    evidence.source = "a web-hook";
    assert_status(tl_evidence_add(self.client, &evidence), TL_OK);
    resume_now(NULL);
    assert_status(tl_lock_ask(bare, 0), TL_GRANTED);
    finish(bare);
    assert_status(tl_lock_ask(again, 0), TL_GRANTED);
    finish(again);
    tl_lock_free(claim);
    (void)house_work(&self, 1, PATIENCE_MS);
    house_row(&self, "DOUBT", "Y 1 2 -");
    house_books(&self, 1);
}

/* They send nothing, and may be held for days. */
TEST_IN(a_drain_leaves_other_locks_alone, open_house, close_house)
{
    tl_mutex_options options = TL_MUTEX_OPTIONS_INIT;
    tl_rw_options of_rw = TL_RW_OPTIONS_INIT;
    tl_mutex *mutex = NULL;
    tl_rw *rw = NULL;

    all = 1;
    pause_now(NULL);
    options.lease_ms = 10000;
    assert_status(tl_mutex_new(&mutex, self.client, "leader", &options), TL_OK);
    assert_status(tl_mutex_lock(mutex, 0), TL_GRANTED);
    assert_status(tl_mutex_unlock(mutex), TL_OK);
    tl_mutex_free(mutex);
    of_rw.lease_ms = 10000;
    assert_status(tl_rw_new(&rw, self.client, "ledger", &of_rw), TL_OK);
    assert_status(tl_rw_read(rw, 0), TL_GRANTED);
    assert_status(tl_rw_unlock(rw), TL_OK);
    tl_rw_free(rw);
    resume_now(NULL);
}

TEST_IN(what_is_no_drain_is_refused, open_house, close_house)
{
    tl_limit limit = TL_LIMIT_INIT;
    tl_filter filter = TL_FILTER_INIT;

    all = 1;
    assert_status(decide(self.client, WITHDRAW_OP, 1), TL_INVALID);
    assert_status(decide(self.client, NULL, 0), TL_ALREADY_DONE);
    assert_non_null(strstr(tl_error_message(), "the installation does not drain"));
    database_expect(self.sql, 0, "SELECT COUNT(*) FROM trade_channel WHERE channel = '*'");
    assert_status(tl_channel_add(self.client, TL_CHANNEL_ALL, "X", NULL), TL_INVALID);
    limit.channel = TL_CHANNEL_ALL;
    limit.actor = limit.reason = "ann";
    limit.sends = 1;
    assert_status(tl_channel_limit(self.client, &limit), TL_INVALID);
    filter.held = filter.newest_first = 1;
    assert_status(tl_list_page(self.client, &filter, NULL, NULL, NULL), TL_INVALID);
    house_expect(&self, "W1", "C1", 100, TL_SUCCEEDED);
}

/* The last state that was read holds. */
TEST_IN(what_cannot_be_read_changes_nothing, open_house, close_house)
{
    pause_now(NULL);
    database_run(self.sql, "RENAME TABLE trade_channel TO elsewhere");
    AWAIT_WHILE(!house_alarmed(&self, "cannot be read"));
    house_expect(&self, "W1", "C1", 100, TL_OVERLOADED);
    database_run(self.sql, "RENAME TABLE elsewhere TO trade_channel");
    resume_now(NULL);
    house_expect(&self, "W1", "C1", 100, TL_SUCCEEDED);
}

/* ------------------------------------------------------------------ many, under load -- */

struct shared {
    atomic_int stop;
    atomic_long answered[PROCESSES]; /* calls that came back */
    atomic_long refused[PROCESSES];  /* of them TL_OVERLOADED in a row */
    atomic_long serial;
};
static struct shared *shared;

static void pay_on(void *context, int caller)
{
    const int process = *(const int *)context;

    (void)caller;
    while (!atomic_load(&shared->stop)) {
        tl_answer answer = TL_ANSWER_INIT;
        const long number = atomic_fetch_add(&shared->serial, 1);
        tl_status status;

        /* The first send of each of C2's is lost. */
        status = house_run(&self, text_of("L%ld", number).is, number % 5 == 0 ? "C2" : "C1", 1, 0,
                           &answer);
        tl_answer_clear(&answer);
        atomic_fetch_add(&shared->answered[process], 1);
        if (status == TL_OVERLOADED) {
            atomic_fetch_add(&shared->refused[process], 1);
            usleep(10000);
        } else {
            atomic_store(&shared->refused[process], 0);
        }
    }
}

/* Waits, after the callers are done, until the lane is empty. */
static void serve(void *context, int process)
{
    tl_worker *worker = NULL;

    (void)context;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
    house_reopen(&self);
    worker = house_worker(self.workflows, 0);
    crew_threads(CALLERS, pay_on, &process);
    while (atomic_load(&shared->stop) < 2)
        usleep(20000);
    tl_worker_free(worker);
    house_leave(&self);
}

static void await_refusals(int process)
{
    AWAIT_WHILE(atomic_load(&shared->refused[process]) < 2L * CALLERS);
}

static void pause_and_see(tl_client *client, pid_t killed)
{
    const int64_t end_ms = now_ms() + PATIENCE_MS;
    long long attempts, rows, parked;
    json_int_t sent;
    int status;

    assert_status(decide(client, NULL, 1), TL_OK);
    kill(killed, SIGKILL);
    assert_int_equal(waitpid(killed, &status, 0), killed);
    for (int i = 1; i < PROCESSES; i++)
        await_refusals(i);
    /* What was granted or armed before has ended, or is given back by a janitor. */
    database_await(self.sql, 0,
                   "SELECT COUNT(*) FROM trade_lock WHERE status = 'P' AND session_id IS NOT NULL");
    /* A request of the process that was killed may be with the channel still. */
    do {
        sent = requests("pay");
        usleep(500000);
    } while (requests("pay") != sent && now_ms() < end_ms);
    rows = database_number(self.sql, "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S'");
    attempts = database_number(self.sql, "SELECT SUM(attempts) FROM trade_lock");
    parked = database_number(self.sql, "SELECT COUNT(*) FROM trade_lock WHERE parked IS NOT NULL");
    assert_true(database_number(self.sql, "SELECT COUNT(*) FROM trade_lock WHERE lane = 'R' AND "
                                          "status = 'F' AND next_run_at IS NOT NULL") > 0);
    usleep(2000000);
    assert_int_equal(requests("pay"), sent);
    database_expect(self.sql, rows, "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S'");
    database_expect(self.sql, attempts, "SELECT SUM(attempts) FROM trade_lock");
    assert_int_equal(parked, 0);
    database_expect(self.sql, 0, "SELECT COUNT(*) FROM trade_lock WHERE parked IS NOT NULL");
}

static void nothing_new_leaves_any_process_of(const char *said)
{
    pid_t children[PROCESSES];
    tl_client *client;

    house_leave(&self);
    database_set(self.db, "site=test\nbeat_ms=100ms\nsession_ms=5s\nmax_hold_ms=2s\n"
                          "execute_ms=800ms\ncommit_ms=1s\nschedule=50ms,100ms\nattempts=1000\n"
                          "deadline_ms=600s\ngrace_ms=200ms\nclock_margin_ms=50ms\n");
    house_account(&self, "C2", 1000000);
    house_rule(
        &self,
        "{\"kind\":\"drop_before\",\"endpoint\":\"pay\",\"cust_no\":\"C2\",\"per_key\":true}");
    shared = crew_share(sizeof *shared);
    for (int i = 0; i < PROCESSES; i++)
        children[i] = crew_fork(serve, NULL, i);
    client = house_operator(&self);
    for (int i = 0; i < PROCESSES; i++)
        AWAIT_WHILE(atomic_load(&shared->answered[i]) < 20);
    pause_and_see(client, children[0]);
    assert_status(decide(client, NULL, 0), TL_OK);
    for (int i = 1; i < PROCESSES; i++) {
        const long before = atomic_load(&shared->answered[i]);

        while (atomic_load(&shared->refused[i]) > 0 ||
               atomic_load(&shared->answered[i]) < before + 20)
            usleep(10000);
    }
    atomic_store(&shared->stop, 1);
    database_await(self.sql, 0,
                   "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'P'");
    atomic_store(&shared->stop, 2);
    for (int i = 1; i < PROCESSES; i++)
        assert_int_equal(crew_wait(children[i]), 0);
    database_await(self.sql, 0, "SELECT COUNT(*) FROM trade_lock WHERE status = 'P'");
    house_books(&self, database_number(self.sql, "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' "
                                                 "AND status = 'Y'"));
    database_expect(self.sql, 2,
                    "SELECT COUNT(*) FROM tl_act WHERE what IN ('pause', 'resume') AND actor = "
                    "'ann' AND said = '%s'",
                    said);
    tl_client_close(client);
    crew_unshare(shared, sizeof *shared);
}

TEST_IN(nothing_new_leaves_any_process, open_house, close_house)
{
    nothing_new_leaves_any_process_of("channel idempotent");
}

TEST_IN(nothing_new_leaves_any_process_in_a_drain, open_house, close_house)
{
    all = 1;
    nothing_new_leaves_any_process_of("channel *");
}

TESTS_OF(paused, NULL, NULL)
