/*
 * The retry worker as a process meets it: told to stop, killed by a trade, beside other workers,
 * with work that nobody serves, and with a server that dies while money moves.
 *
 * Run with the word "poison" it is such a worker itself: it dies at the serial "POISON".
 */
#include "house.h"

#include "support/theme.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

FIXTURE(open_house)
{
    static house self;

    house_open(&self, WITHDRAW_IDEMPOTENT, NULL, NULL);
    house_account(&self, "C1", 1000000);
    *state = &self;
}

FIXTURE(close_house)
{
    house_close(*state);
}

/* ----------------------------------------------------------------- a poisoned trade -- */

static tl_execute_result never_executed(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)attempt;
    (void)reply;
    return TL_EXECUTE_UNKNOWN;
}

static tl_query_result dying_query(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    if (strcmp(attempt->key.serial_no, "POISON") == 0)
        raise(SIGKILL);
    /* Long enough that the poisoned one kills while others are in flight. */
    usleep(100000);
    tl_reply_ref(reply, attempt->key.serial_no);
    return TL_QUERY_SUCCEEDED;
}

static void register_dying(tl_workflows *workflows)
{
    tl_workflow workflow = TL_WORKFLOW_INIT;

    workflow.op_code = WITHDRAW_OP;
    withdraw_contract(&workflow.channel, WITHDRAW_IDEMPOTENT, 0);
    workflow.execute = never_executed;
    workflow.query = dying_query;
    if (tl_workflow_register(workflows, &workflow) != TL_OK)
        _exit(4);
}

/* Ends by itself when told to stop; dies of POISON. */
static int poison_main(const char *config_file)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_worker_options with = TL_WORKER_OPTIONS_INIT;
    tl_workflows *workflows = NULL;
    tl_worker *worker = NULL;
    tl_client *client = NULL;
    sigset_t signals;
    int signal_number;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    options.config_file = config_file;
    options.program = "poisoned";
    with.threads = 4;
    with.idle_max_ms = 50;
    if (tl_client_open(&client, &options) != TL_OK || tl_workflows_new(&workflows, client) != TL_OK)
        return 3;
    register_dying(workflows);
    if (tl_worker_start(&worker, workflows, &with) != TL_OK)
        return 3;
    sigwait(&signals, &signal_number);
    tl_worker_free(worker);
    tl_workflows_free(workflows);
    tl_client_close(client);
    return 0;
}

static pid_t start_poisoned(house *self)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        execl("/proc/self/exe", "test", "worker", "poison", database_option_file(self->db),
              (char *)NULL);
        _exit(5);
    }
    return pid;
}

TEST_IN(only_the_poisoned_trade_is_parked, open_house, close_house)
{
    house *self = *state;
    int deaths = 0, status = 0;
    int64_t end_ms = now_ms() + 2 * PATIENCE_MS;
    pid_t pid;

    house_rule(self, "{\"kind\":\"drop_after\",\"count\":0}");
    for (int i = 0; i < 6; i++)
        house_expect(self, text_of("GOOD%d", i).is, "C1", 10, TL_IN_DOUBT);
    house_expect(self, "POISON", "C1", 10, TL_IN_DOUBT);
    database_set(self->db, HOUSE_SETTINGS_OF("2s"));
    pid = start_poisoned(self);
    while (database_number(self->sql, "SELECT COUNT(*) FROM trade_lock_state WHERE "
                                      "lane = 'S' AND state IN ('SUCCEEDED', 'PARKED')") < 7) {
        assert_true(now_ms() < end_ms);
        if (waitpid(pid, &status, WNOHANG) == pid) {
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
            deaths++;
            pid = start_poisoned(self);
        }
        usleep(20000);
    }
    kill(pid, SIGTERM);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    house_retry_row(self, "POISON", "F", "poison");
    database_expect(self->sql, 1, "SELECT COUNT(*) FROM trade_lock WHERE parked IS NOT NULL");
    /* The first death may be with others in flight; then three alone. */
    assert_in_range(deaths, 3, 5);
}

/* --------------------------------------------------------------------- being told to -- */

static tl_worker *start_worker(house *self, unsigned threads, int64_t unclaimed_ms)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker *worker = NULL;

    options.threads = threads;
    options.idle_max_ms = 50;
    options.unclaimed_ms = unclaimed_ms;
    assert_status(tl_worker_start(&worker, self->workflows, &options), TL_OK);
    return worker;
}

static void wait_for_check(tl_worker *worker, int works)
{
    AWAIT_WHILE((tl_worker_check(worker) == TL_OK) != works);
}

/* Heartbeats go on, so they alone would tell of a worker that is well. */
TEST_IN(claims_that_do_not_go_through_are_told, open_house, close_house)
{
    house *self = *state;
    tl_worker *worker = start_worker(self, 2, 0);
    tl_status status;

    wait_for_check(worker, 1);
    database_run(self->sql, "LOCK TABLES trade_lock WRITE");
    wait_for_check(worker, 0);
    status = tl_worker_check(worker);
    assert_true(status == TL_UNREACHABLE || status == TL_TIMEOUT);
    assert_true(strstr(tl_error_message(), "claiming") != NULL);
    assert_true(tl_client_alive_ms(self->client) > 0);
    database_run(self->sql, "UNLOCK TABLES");
    wait_for_check(worker, 1);
    tl_worker_free(worker);
}

TEST_IN(what_is_held_is_finished_and_nothing_new_taken, open_house, close_house)
{
    house *self = *state;
    tl_worker_counts counts = {.version = TL_WORKER_COUNTS_VERSION};
    tl_worker *worker;

    house_rule(self, "{\"kind\":\"drop_after\",\"count\":6}");
    for (int i = 0; i < 6; i++)
        house_expect(self, text_of("W%d", i).is, "C1", 10, TL_IN_DOUBT);
    house_rule(self, "{\"kind\":\"slow\",\"endpoint\":\"query\",\"count\":0,"
                     "\"delay_ms\":400}");
    worker = start_worker(self, 2, 0);
    database_await(self->sql, 2,
                   "SELECT COUNT(*) FROM trade_lock WHERE lane = 'R' AND status = 'P'");
    assert_status(tl_worker_check(worker), TL_OK);
    tl_worker_stop(worker);
    assert_status(tl_worker_check(worker), TL_WRONG_STATE);
    assert_status(tl_worker_wait(worker, 0), TL_TIMEOUT);
    assert_status(tl_worker_wait(worker, PATIENCE_MS), TL_OK);
    assert_status(tl_worker_count(worker, &counts), TL_OK);
    assert_int_equal(counts.claimed, 2);
    assert_int_equal(counts.succeeded, 2);
    tl_worker_free(worker);
    database_expect(self->sql, 4,
                    "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'P'");
    house_work(self, 4, PATIENCE_MS);
    house_books(self, 6);
}

TEST_IN(two_workers_share_the_work, open_house, close_house)
{
    house *self = *state;
    tl_worker_counts one = {.version = TL_WORKER_COUNTS_VERSION}, two = one;
    tl_worker *first, *second;

    house_rule(self, "{\"kind\":\"drop_after\",\"count\":40}");
    for (int i = 0; i < 40; i++)
        house_expect(self, text_of("W%d", i).is, "C1", 10, TL_IN_DOUBT);
    first = start_worker(self, 4, 0);
    second = start_worker(self, 4, 0);
    database_await(self->sql, 40,
                   "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'Y'");
    tl_worker_stop(first);
    tl_worker_stop(second);
    assert_status(tl_worker_wait(first, PATIENCE_MS), TL_OK);
    assert_status(tl_worker_wait(second, PATIENCE_MS), TL_OK);
    tl_worker_count(first, &one);
    tl_worker_count(second, &two);
    assert_int_equal(one.claimed + two.claimed, 40);
    assert_int_equal(one.lost + two.lost, 0);
    tl_worker_free(first);
    tl_worker_free(second);
    database_expect(self->sql, 1, "SELECT MAX(attempts) FROM trade_lock");
    house_books(self, 40);
}

/* ------------------------------------------------------------- a channel that gets stuck -- */

#define STUCK_THREADS 2
#define STUCK_FROM 80
#define STUCK_TRADES 110

static atomic_int asked, may_answer;

/* At once at first; later nobody hears anything until may_answer. */
static tl_query_result stuck_query(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    const int number = atomic_fetch_add(&asked, 1);

    (void)context;
    while (number >= STUCK_FROM && !atomic_load(&may_answer))
        usleep(1000);
    tl_reply_ref(reply, attempt->key.serial_no);
    return TL_QUERY_SUCCEEDED;
}

static tl_worker *start_stuck(tl_workflows *workflows)
{
    tl_workflow workflow = TL_WORKFLOW_INIT;

    workflow.op_code = "PAYOUT";
    workflow.channel.name = "c";
    workflow.channel.idempotent = 1;
    workflow.channel.can_query = 1;
    workflow.execute = never_executed;
    workflow.query = stuck_query;
    workflow.policy.max_hold_ms = 4 * PATIENCE_MS; /* nobody opens the lanes meanwhile */
    assert_status(tl_workflow_register(workflows, &workflow), TL_OK);
    return house_worker(workflows, STUCK_THREADS);
}

/* While attempts are short a worker claims ahead.  Once its threads are stuck, what waits for them
 * is given back: it counts as no attempt, and another worker may take it. */
TEST_IN(what_waits_for_stuck_threads_is_given_back, open_house, close_house)
{
    house *self = *state;
    tl_worker_counts counts = TL_WORKER_COUNTS_INIT;
    tl_workflows *workflows = NULL;
    tl_worker *worker;

    house_leave_in_doubt(self, "PAYOUT", "c", "S", STUCK_TRADES);
    assert_status(tl_workflows_new(&workflows, self->client), TL_OK);
    worker = start_stuck(workflows);
    database_await(self->sql, STUCK_FROM,
                   "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'Y'");
    database_await(self->sql, STUCK_THREADS,
                   "SELECT COUNT(*) FROM trade_lock WHERE lane = 'R' AND status = 'P'");
    database_expect(
        self->sql, 0,
        "SELECT MAX(attempts) FROM trade_lock WHERE next_run_at IS NOT NULL AND lane = 'R'");
    atomic_store(&may_answer, 1);
    database_await(self->sql, STUCK_TRADES,
                   "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'Y'");
    database_expect(self->sql, 1, "SELECT MAX(attempts) FROM trade_lock");
    /* A job counts itself after its trade is over. */
    for (int waited_ms = 0; waited_ms < PATIENCE_MS; waited_ms += 5) {
        counts = (tl_worker_counts)TL_WORKER_COUNTS_INIT;
        assert_status(tl_worker_count(worker, &counts), TL_OK);
        if (counts.succeeded == STUCK_TRADES)
            break;
        usleep(5000);
    }
    print_message("given back: %d\n", (int)counts.waiting);
    assert_int_equal(counts.succeeded, STUCK_TRADES);
    tl_worker_free(worker);
    tl_workflows_free(workflows);
}

/* ------------------------------------------------------------------- nobody serves it -- */

TEST_IN(unserved_work_raises_an_alarm, open_house, close_house)
{
    house *self = *state;
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_ending ending = TL_ENDING_INIT;
    tl_key key = {"T1", "C1", "TRANSFER"};
    tl_lock *lock = NULL;
    tl_worker *worker;

    options.max_hold_ms = 1000;
    options.payload = "x";
    options.payload_size = 1;
    assert_status(tl_lock_new(&lock, self->client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    assert_status(tl_lock_finish(lock, &ending), TL_IN_DOUBT);
    tl_lock_free(lock);
    worker = start_worker(self, 1, 200);
    AWAIT_WHILE(!house_alarmed(self, "TRANSFER: 1 compensating attempts are due and nobody"));
    tl_worker_free(worker);
    database_expect(self->sql, 0,
                    "SELECT COUNT(*) FROM trade_lock WHERE lane = 'R' AND attempts > 0");
}

/* ------------------------------------------------------------------------- deadlines -- */

TEST_IN(what_never_left_fails_after_the_deadline, open_house, close_house)
{
    house *self = *state;
    tl_worker_counts counts;

    house_rule(self, "{\"kind\":\"rate_limit\",\"endpoint\":\"pay\",\"count\":0}");
    house_expect(self, "W1", "C1", 100, TL_QUEUED);
    database_run(self->sql, "UPDATE trade_lock SET deadline_at = UTC_TIMESTAMP(6) WHERE "
                            "lane = 'S'");
    counts = house_work(self, 1, PATIENCE_MS);
    assert_int_equal(counts.sends + counts.queries, 0);
    house_row(self, "W1", "F 1 0 L");
    house_balance(self, "C1", "1000000 0");
    house_books(self, 0);
}

TEST_IN(attempts_used_up_are_parked, open_house, close_house)
{
    house *self = *state;
    tl_worker_counts counts;

    house_rule(self, "{\"kind\":\"drop_after\"}");
    house_rule(self, "{\"kind\":\"unreachable\",\"count\":0}");
    house_expect(self, "W1", "C1", 100, TL_IN_DOUBT);
    counts = house_work(self, 1, PATIENCE_MS);
    assert_int_equal(counts.queries, 8);
    house_row(self, "W1", "P 1 1 -");
    house_retry_row(self, "W1", "F", "attempts used up");
    house_balance(self, "C1", "1000000 100");
    assert_true(house_alarmed(self, "the trade waits for a person: attempts used up"));
}

/* ----------------------------------------------------------- the server dies meanwhile -- */

static server *dying;

static tl_execute_result kill_server_then_pay(void *context, const tl_attempt *attempt,
                                              tl_reply *reply)
{
    (void)context;
    (void)attempt;
    server_kill9(dying);
    tl_reply_ref(reply, "R1");
    tl_reply_result(reply, "paid", 4);
    return TL_EXECUTE_SUCCEEDED;
}

TEST(an_ending_is_settled_when_the_server_is_back)
{
    static house self;
    tl_workflow workflow = TL_WORKFLOW_INIT;
    tl_request request = TL_REQUEST_INIT;
    tl_answer answer = TL_ANSWER_INIT;
    tl_workflows *workflows = NULL;
    tl_status status;
    int64_t end_ms;

    dying = server_start(NULL);
    house_open(&self, WITHDRAW_IDEMPOTENT,
               "beat_ms=100ms\nsession_ms=30s\nmax_hold_ms=60s\nexecute_ms=1s\n"
               "commit_ms=300ms\npool_wait_ms=200ms\n",
               dying);
    workflow.op_code = "PAYOUT";
    workflow.channel.name = "c";
    workflow.channel.idempotent = 1;
    workflow.execute = kill_server_then_pay;
    assert_status(tl_workflows_new(&workflows, self.client), TL_OK);
    assert_status(tl_workflow_register(workflows, &workflow), TL_OK);
    request.key = (tl_key){"W1", "C1", "PAYOUT"};
    request.payload = "x";
    request.payload_size = 1;
    assert_status(tl_workflow_run(workflows, &request, &answer), TL_UNKNOWN);
    assert_true(answer.own);
    server_restart(dying);
    end_ms = now_ms() + PATIENCE_MS;
    do {
        status = tl_workflow_settle(workflows, &answer);
    } while (status == TL_UNKNOWN && now_ms() < end_ms);
    assert_status(status, TL_SUCCEEDED);
    assert_int_equal(answer.view.result_size, 4);
    assert_memory_equal(answer.view.result, "paid", 4);
    assert_status(tl_workflow_settle(workflows, &answer), TL_WRONG_STATE);
    tl_answer_clear(&answer);
    mysql_close(self.sql);
    self.sql = database_connect(self.db);
    house_row(&self, "W1", "Y 1 1 -");
    tl_workflows_free(workflows);
    house_close(&self);
    server_free(dying);
}

TEST_MAIN(worker)
{
    if (argc == 3 && strcmp(argv[1], "poison") == 0)
        return poison_main(argv[2]);
    return tests_run(NULL, NULL);
}
