/*
 * What a worker holds when it dies, and when it is stopped for a while.
 *
 * Run with the word "held" it is such a worker itself.  Its channel never answers, or its process
 * stops itself.
 */
#include "house.h"

#include "compensate_now.h"
#include "schedule.h"

#include "support/theme.h"

#include <tradelock/lane.h>

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define EXECUTE_MS 800
#define COMMIT_MS 1000

FIXTURE(open_house)
{
    static house self;

    house_open_bare(&self, NULL, NULL);
    *state = &self;
}

FIXTURE(close_house)
{
    house_close(*state);
}

/* ------------------------------------------------------------------- the workflows -- */

static tl_execute_result never_executed(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)attempt;
    (void)reply;
    return TL_EXECUTE_UNKNOWN;
}

/* Answers after as many microseconds as its context says. */
static tl_query_result answering(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    usleep(*(const useconds_t *)context);
    tl_reply_ref(reply, attempt->key.serial_no);
    return TL_QUERY_SUCCEEDED;
}

/* Each takes another time, so that the threads are never free together by themselves. */
static tl_query_result unevenly_answering(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    static atomic_uint asked;

    (void)context;
    usleep(400000 + atomic_fetch_add(&asked, 1) % 11 * 53000);
    tl_reply_ref(reply, attempt->key.serial_no);
    return TL_QUERY_SUCCEEDED;
}

static tl_query_result never_answering(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)attempt;
    (void)reply;
    pause();
    return TL_QUERY_UNREACHABLE;
}

/* Of one trade alone there is never an answer. */
static tl_query_result hanging(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    if (strncmp(attempt->key.serial_no, "DIED", 4) == 0)
        pause();
    tl_reply_ref(reply, attempt->key.serial_no);
    return TL_QUERY_SUCCEEDED;
}

/* As long as its context says so. */
static tl_query_result hanging_on(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    while (atomic_load((atomic_int *)context))
        usleep(5000);
    tl_reply_ref(reply, attempt->key.serial_no);
    return TL_QUERY_SUCCEEDED;
}

#define STOPS_AT 100

static _Atomic(tl_worker *) worker_that_stops;

static int has_claimed_ahead(void)
{
    tl_worker_counts counts = TL_WORKER_COUNTS_INIT;
    tl_worker *worker = atomic_load(&worker_that_stops);

    return worker != NULL && tl_worker_count(worker, &counts) == TL_OK &&
           counts.claimed > counts.succeeded + counts.waiting + 1;
}

/* Stops its own process once, as a debugger or a full machine would.  No attempt may begin so late
 * that its calls get less time than the policy says. */
static tl_query_result stopping(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    static int asked;

    (void)context;
    if (attempt->timeout_ms < EXECUTE_MS) {
        fprintf(stderr, "call %d of %s had %" PRId64 " ms\n", asked, attempt->key.serial_no,
                attempt->timeout_ms);
        _exit(9);
    }
    asked++;
    if (asked >= STOPS_AT && has_claimed_ahead()) {
        asked = INT_MIN;
        raise(SIGSTOP);
    }
    tl_reply_ref(reply, attempt->key.serial_no);
    return TL_QUERY_SUCCEEDED;
}

typedef tl_query_result (*query_fn)(void *context, const tl_attempt *attempt, tl_reply *reply);

static tl_status register_query(tl_workflows *workflows, const char *op_code, query_fn query,
                                useconds_t *answers_us, int64_t max_hold_ms)
{
    tl_workflow w = TL_WORKFLOW_INIT;

    w.op_code = op_code;
    w.channel.name = "c";
    w.channel.idempotent = 1;
    w.channel.can_query = 1;
    w.execute = never_executed;
    w.query = query;
    w.context = answers_us;
    w.policy.execute_ms = EXECUTE_MS;
    w.policy.commit_ms = COMMIT_MS;
    w.policy.max_hold_ms = max_hold_ms;
    return tl_workflow_register(workflows, &w);
}

/* ---------------------------------------------------------------- a process of its own -- */

#define HOLD_MS 8000
/* An attempt begins with half of it at least.  A busy machine may stand still for seconds then,
 * before the call. */
#define STOPPED_HOLD_MS 24000

/* Arguments: settings, what the channel does, threads. */
static int held_main(char **argv)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_worker_options with = TL_WORKER_OPTIONS_INIT;
    const int stops = strcmp(argv[1], "stops") == 0, hangs = strcmp(argv[1], "hangs") == 0;
    tl_workflows *workflows = NULL;
    tl_worker *worker = NULL;
    tl_client *client = NULL;
    sigset_t signals;
    int signal_number;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    options.config_file = argv[0];
    options.program = "held";
    with.threads = (unsigned)atoi(argv[2]);
    with.idle_max_ms = 50;
    if (tl_client_open(&client, &options) != TL_OK ||
        tl_workflows_new(&workflows, client) != TL_OK ||
        register_query(workflows, "PAYOUT",
                       stops   ? stopping
                       : hangs ? hanging
                               : never_answering,
                       NULL,
                       stops   ? STOPPED_HOLD_MS
                       : hangs ? HOLD_MS
                               : PATIENCE_MS) != TL_OK ||
        tl_worker_start(&worker, workflows, &with) != TL_OK) {
        fprintf(stderr, "%s\n", tl_error_message());
        return 3;
    }
    atomic_store(&worker_that_stops, worker);
    sigwait(&signals, &signal_number);
    tl_worker_free(worker);
    tl_workflows_free(workflows);
    tl_client_close(client);
    return 0;
}

static pid_t start_held(house *self, const char *does, const char *threads)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
        execl("/proc/self/exe", "test", "worker_held", "held", database_option_file(self->db), does,
              threads, (char *)NULL);
        _exit(5);
    }
    return pid;
}

/* ------------------------------------------------------------------ what a death leaves -- */

#define SUSPECTS 16
#define OTHERS 40
#define SUSPECT "s.op_code = 'PAYOUT' AND LEFT(s.serial_no, 4) = 'DIED'"
#define OTHER "s.op_code = 'PAYOUT' AND LEFT(s.serial_no, 4) = 'GOOD'"

/* A worker dies with so many trades in its hands, each of which may have killed it. */
static void die_with_suspects(house *self)
{
    int status = 0;
    pid_t pid;

    house_leave_in_doubt(self, "PAYOUT", "c", "DIED", SUSPECTS);
    database_set(self->db, HOUSE_SETTINGS_OF("2s"));
    pid = start_held(self, "never", "16");
    database_await(self->sql, SUSPECTS,
                   "SELECT COUNT(*) FROM trade_lock WHERE lane = 'R' AND status = 'P'");
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    database_await(
        self->sql, SUSPECTS,
        "SELECT COUNT(*) FROM trade_lock WHERE lane = 'R' AND status = 'F' AND claims = 1");
    house_leave_in_doubt(self, "PAYOUT", "c", "GOOD", OTHERS);
    database_await(
        self->sql, SUSPECTS + OTHERS,
        "SELECT COUNT(*) FROM trade_lock WHERE lane = 'R' AND next_run_at <= UTC_TIMESTAMP(6)");
}

static void serve_all(house *self, useconds_t answers_us)
{
    tl_workflows *workflows = NULL;
    tl_worker *worker = NULL;

    assert_status(tl_workflows_new(&workflows, self->client), TL_OK);
    assert_status(register_query(workflows, "PAYOUT", answering, &answers_us, PATIENCE_MS), TL_OK);
    worker = house_worker(workflows, 0);
    database_await(self->sql, SUSPECTS + OTHERS,
                   "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'Y'");
    tl_worker_free(worker);
    tl_workflows_free(workflows);
    /* Each was alone: none began before the one before it was over. */
    database_expect(self->sql, 0,
                    "SELECT COUNT(*) FROM trade_lock_log s JOIN trade_lock_log c"
                    " ON c.cust_no = s.cust_no AND c.serial_no = s.serial_no"
                    " AND c.op_code = s.op_code AND c.rev = s.rev - 1"
                    " JOIN trade_lock o ON o.lane = 'S' AND o.serial_no <> s.serial_no"
                    " AND o.updated_at > c.logged_at AND o.updated_at < s.logged_at"
                    " WHERE " SUSPECT " AND s.status = 'Y' AND c.step = 'claim'");
}

/* How many of the others were ended before the last suspect, and after the first. */
static long long ended_between(house *self)
{
    return database_number(self->sql,
                           "SELECT COUNT(*) FROM trade_lock s WHERE " OTHER " AND s.updated_at"
                           " BETWEEN (SELECT MIN(s.updated_at) FROM trade_lock s WHERE " SUSPECT
                           ") AND (SELECT MAX(s.updated_at) FROM trade_lock s WHERE " SUSPECT ")");
}

/* One operation's channel never answers.  The other one is served by the same worker. */
TEST_IN(one_that_hangs_leaves_the_others_their_share, open_house, close_house)
{
    house *self = *state;
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_workflows *workflows = NULL;
    tl_worker *worker = NULL;
    useconds_t answers_us = 2000;
    atomic_int hangs = 1;
    tl_stats stats = {.version = TL_STATS_VERSION};
    uint64_t statements, a_second;
    int64_t since_ms;

    house_leave_in_doubt(self, "HANGS", "c", "H", 20);
    database_await(
        self->sql, 20,
        "SELECT COUNT(*) FROM trade_lock WHERE lane = 'R' AND next_run_at <= UTC_TIMESTAMP(6)");
    assert_status(tl_workflows_new(&workflows, self->client), TL_OK);
    assert_status(register_query(workflows, "HANGS", hanging_on, (void *)&hangs, PATIENCE_MS),
                  TL_OK);
    assert_status(register_query(workflows, "PAYOUT", answering, &answers_us, PATIENCE_MS), TL_OK);
    options.idle_max_ms = 500;
    options.threads = 4;
    assert_status(tl_worker_start(&worker, workflows, &options), TL_OK);
    database_await(self->sql, 3,
                   "SELECT COUNT(*) FROM trade_lock WHERE lane = 'R' AND status = 'P'");
    house_leave_in_doubt(self, "PAYOUT", "c", "GOOD", 100);
    database_await(
        self->sql, 100,
        "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'Y' AND op_code = 'PAYOUT'");
    database_expect(self->sql, 3,
                    "SELECT COUNT(*) FROM trade_lock WHERE lane = 'R' AND status = 'P'");
    /* What hangs is no busy loop, which would run thousands; beats and looks take some 180. */
    assert_status(tl_client_stats(self->client, &stats), TL_OK);
    statements = stats.statements;
    since_ms = schedule_now_ms();
    usleep(1000000);
    assert_status(tl_client_stats(self->client, &stats), TL_OK);
    a_second = (stats.statements - statements) * 1000 / (uint64_t)(schedule_now_ms() - since_ms);
    print_message("%d statements a second\n", (int)a_second);
    assert_true(a_second < 600);
    atomic_store(&hangs, 0);
    database_await(self->sql, 120,
                   "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'Y'");
    tl_worker_free(worker);
    tl_workflows_free(workflows);
}

TEST_IN(suspects_follow_each_other, open_house, close_house)
{
    house *self = *state;

    die_with_suspects(self);
    serve_all(self, 10000);
    assert_int_equal(ended_between(self), 0);
}

TEST_IN(slow_suspects_leave_the_others_their_time, open_house, close_house)
{
    house *self = *state;

    die_with_suspects(self);
    serve_all(self, 400000);
    assert_true(ended_between(self) > 0);
}

/* Makes trades suspects by hand, as of a holder that died, due in so many seconds. */
static void leave_suspects(house *self, int count, int due_s)
{
    house_leave_in_doubt(self, "PAYOUT", "c", "DIED", count);
    database_run(self->sql,
                 "UPDATE trade_lock SET claims = 1, rev = rev + 1, step = 'died',"
                 " next_run_at = UTC_TIMESTAMP(6) + INTERVAL %d SECOND"
                 " WHERE lane = 'R' AND LEFT(serial_no, 4) = 'DIED'",
                 due_s);
}

#define ENDED(prefix)                                                                              \
    "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'Y' AND LEFT(serial_no, 4) = "  \
    "'" prefix "'"

static tl_worker *start_worker(tl_workflows *workflows, query_fn query, useconds_t *answers_us)
{
    assert_status(register_query(workflows, "PAYOUT", query, answers_us, PATIENCE_MS), TL_OK);
    return house_worker(workflows, 6);
}

#define BACKLOG 150

/* They become due while the worker has enough to do for a quarter of a minute. */
TEST_IN(suspects_need_not_wait_for_the_backlog, open_house, close_house)
{
    house *self = *state;
    tl_workflows *workflows = NULL;
    tl_worker *worker;

    leave_suspects(self, 2, 2);
    house_leave_in_doubt(self, "PAYOUT", "c", "GOOD", BACKLOG);
    assert_status(tl_workflows_new(&workflows, self->client), TL_OK);
    worker = start_worker(workflows, unevenly_answering, NULL);
    database_await(self->sql, 2, ENDED("DIED"));
    assert_true(database_number(self->sql, ENDED("GOOD")) < BACKLOG);
    tl_worker_free(worker);
    tl_workflows_free(workflows);
}

#ifndef TL_SANITIZED
/* More than any machine has. */
static void want_too_much_memory(const tl_lock *lock)
{
    ((tl_view *)tl_lock_view(lock))->payload_size = SIZE_MAX / 4;
}

/* An attempt for which there is no memory is none, and accuses nobody; it is made later. */
TEST_IN(without_memory_nothing_is_counted, open_house, close_house)
{
    house *self = *state;
    tl_workflows *workflows = NULL;
    tl_claim_options options = TL_CLAIM_OPTIONS_INIT;
    compensate_calls calls = {0};
    tl_lock *lock = NULL;
    size_t count = 1;

    leave_suspects(self, 1, 0);
    assert_status(tl_workflows_new(&workflows, self->client), TL_OK);
    assert_status(register_query(workflows, "PAYOUT", answering, NULL, PATIENCE_MS), TL_OK);
    options.op_code = "PAYOUT";
    options.max_hold_ms = PATIENCE_MS;
    options.suspects = 1;
    assert_status(tl_claim_due(self->client, &options, &lock, &count), TL_OK);
    assert_int_equal(count, 1);
    want_too_much_memory(lock);
    assert_status(compensate_now(self->client, workflows_find(workflows, "PAYOUT"), lock, &calls),
                  TL_IN_DOUBT);
    database_expect(self->sql, 11,
                    "SELECT 100 * attempts + 10 * claims + (next_run_at > updated_at) FROM "
                    "trade_lock WHERE lane = 'R'");
    tl_lock_free(lock);
    tl_workflows_free(workflows);
}
#endif

static int64_t cpu_ms(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

/* Whoever waits for it sleeps. */
TEST_IN(a_stop_waits_for_a_suspect, open_house, close_house)
{
    useconds_t answers_us = 3000000;
    house *self = *state;
    tl_workflows *workflows = NULL;
    tl_worker *worker;
    int64_t used_ms;

    leave_suspects(self, 1, 0);
    assert_status(tl_workflows_new(&workflows, self->client), TL_OK);
    worker = start_worker(workflows, answering, &answers_us);
    database_await(self->sql, 1,
                   "SELECT COUNT(*) FROM trade_lock WHERE lane = 'R' AND status = 'P'");
    tl_worker_stop(worker);
    used_ms = cpu_ms();
    usleep(2000000);
    used_ms = cpu_ms() - used_ms;
    if (used_ms > 500)
        fail_msg("a worker that waits for two seconds computed for %d ms", (int)used_ms);
    assert_status(tl_worker_wait(worker, PATIENCE_MS), TL_OK);
    database_expect(self->sql, 1, ENDED("DIED"));
    tl_worker_free(worker);
    tl_workflows_free(workflows);
}

/* Beyond its hold nobody waits for it. */
TEST_IN(a_suspect_that_hangs_stops_no_others, open_house, close_house)
{
    house *self = *state;
    int status = 0;
    pid_t pid;

    leave_suspects(self, 1, 0);
    house_leave_in_doubt(self, "PAYOUT", "c", "GOOD", OTHERS);
    pid = start_held(self, "hangs", "2");
    database_await(self->sql, OTHERS, ENDED("GOOD"));
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* ------------------------------------------------------------- a process that was stopped -- */

/* What waited in a stopped process is given back, and is no attempt that comes to nothing. */
TEST_IN(nothing_is_begun_with_half_a_hold, open_house, close_house)
{
    house *self = *state;
    int status = 0;
    pid_t pid, ended;

    house_leave_in_doubt(self, "PAYOUT", "c", "T", 2 * STOPS_AT);
    database_set(self->db, "site=test\nsession_ms=60s\n"); /* it outlives the stop with ease */
    pid = start_held(self, "stops", "1");
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    if (!WIFSTOPPED(status))
        fail_msg("it ended with %d in place of stopping", WEXITSTATUS(status));
    assert_true(database_number(self->sql, "SELECT COUNT(*) FROM trade_lock WHERE lane = 'R' AND "
                                           "status = 'P'") > 1);
    schedule_sleep_ms(STOPPED_HOLD_MS - COMMIT_MS - EXECUTE_MS / 2);
    kill(pid, SIGCONT);
    while ((ended = waitpid(pid, &status, WNOHANG)) == 0 &&
           database_number(self->sql, "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND "
                                      "status = 'Y'") < 2 * STOPS_AT)
        usleep(10000);
    if (ended == 0) {
        kill(pid, SIGTERM);
        ended = waitpid(pid, &status, 0);
    }
    assert_int_equal(ended, pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ------------------------------------------------- what waits for threads that are held */

static atomic_int is_held, may_answer;

/* Answers at once, until trades wait behind it; that call holds its thread. */
static tl_query_result holding(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    static atomic_int asked;

    (void)context;
    if (atomic_fetch_add(&asked, 1) >= STOPS_AT && has_claimed_ahead()) {
        atomic_store(&is_held, 1);
        while (!atomic_load(&may_answer))
            usleep(1000);
    }
    tl_reply_ref(reply, attempt->key.serial_no);
    return TL_QUERY_SUCCEEDED;
}

static void await_held(void)
{
    AWAIT_WHILE(!atomic_load(&is_held));
}

/* Another worker ends what was claimed ahead, while the thread is held and long before the holds
 * are over.  What was given back is no attempt. */
TEST_IN(what_waits_for_held_threads_is_given_back, open_house, close_house)
{
    house *self = *state;
    tl_client_options other = TL_CLIENT_OPTIONS_INIT;
    tl_worker_counts counts = TL_WORKER_COUNTS_INIT;
    useconds_t at_once = 0;
    tl_client *client = NULL;
    tl_workflows *held = NULL, *free_ones = NULL;
    tl_worker *holds = NULL, *helps = NULL;

    house_leave_in_doubt(self, "PAYOUT", "c", "T", 2 * STOPS_AT);
    assert_status(tl_workflows_new(&held, self->client), TL_OK);
    assert_status(register_query(held, "PAYOUT", holding, NULL, 10 * PATIENCE_MS), TL_OK);
    holds = house_worker(held, 1);
    atomic_store(&worker_that_stops, holds);
    await_held();
    other.config_file = database_option_file(self->db);
    assert_status(tl_client_open(&client, &other), TL_OK);
    assert_status(tl_workflows_new(&free_ones, client), TL_OK);
    assert_status(register_query(free_ones, "PAYOUT", answering, &at_once, PATIENCE_MS), TL_OK);
    helps = house_worker(free_ones, 1);
    database_await(self->sql, 2 * STOPS_AT - 1,
                   "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'Y'");
    assert_status(tl_worker_count(holds, &counts), TL_OK);
    assert_true(counts.waiting > 0);
    assert_int_equal(counts.claimed, counts.succeeded + counts.waiting + 1);
    atomic_store(&may_answer, 1);
    database_await(self->sql, 2 * STOPS_AT,
                   "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'Y'");
    database_expect(self->sql, 2 * STOPS_AT,
                    "SELECT COUNT(*) FROM trade_lock WHERE lane = 'R' AND attempts = 1");
    atomic_store(&worker_that_stops, NULL);
    tl_worker_free(holds);
    tl_worker_free(helps);
    tl_workflows_free(held);
    tl_workflows_free(free_ones);
    tl_client_close(client);
}

TEST_MAIN(worker_held)
{
    if (argc == 5 && strcmp(argv[1], "held") == 0)
        return held_main(argv + 2);
    return tests_run(NULL, NULL);
}
