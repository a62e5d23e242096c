/*
 * A channel with a circuit breaker, which all processes share: it opens by what they all hear, lets
 * one call through at a time until there is an answer, and a process that is killed at its probe
 * does not keep it.  Nothing is written for whoever is told to come again, and no attempt is used
 * up.
 */
#include "house.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/lane.h>
#include <tradelock/layer.h>

#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define OP "PAYOUT"
#define CHANNEL "frail"
#define PROCESSES 3
#define CALLERS 4

#define SETTINGS(beat, session)                                                                    \
    "site=test\nbeat_ms=" beat "\nsession_ms=" session                                             \
    "\nmax_hold_ms=4s\nexecute_ms=2s\ncommit_ms=1s\ndeadline_ms=600s\nschedule=50ms,100ms\n"       \
    "attempts=3\ngrace_ms=200ms\nclock_margin_ms=50ms\n"

/* POISON: trades that begin with D hear nothing, and all else is well.  HALF: a send is declined,
 * and whoever asks after one hears nothing. */
enum { UP, SILENT, DECLINES, POISON, HALF };

/* What the channel sees, of all processes. */
struct shared {
    atomic_int stop, inside, most, mood, hangs, hung;
    atomic_long serial, sends, queries, refused[PROCESSES];
};

static house self;
static struct shared *shared;
static tl_workflows *workflows;

static void come_in(void)
{
    const int inside = atomic_fetch_add(&shared->inside, 1) + 1;
    int most = atomic_load(&shared->most);

    while (inside > most && !atomic_compare_exchange_weak(&shared->most, &most, inside))
        continue;
    usleep(20000);
    if (atomic_load(&shared->hangs) == getpid() && atomic_exchange(&shared->hung, 1) == 0)
        while (atomic_load(&shared->hangs) == getpid())
            usleep(1000);
    atomic_fetch_sub(&shared->inside, 1);
}

static int is_poison(const tl_attempt *attempt)
{
    return atomic_load(&shared->mood) == POISON && attempt->key.serial_no[0] == 'D';
}

static tl_execute pay(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)reply;
    atomic_fetch_add(&shared->sends, 1);
    come_in();
    if (is_poison(attempt))
        return TL_EXECUTE_UNKNOWN;
    switch (atomic_load(&shared->mood)) {
    case UP:
    case POISON:
        return TL_EXECUTE_SUCCEEDED;
    case DECLINES:
    case HALF:
        return TL_EXECUTE_DECLINED;
    default:
        return TL_EXECUTE_UNKNOWN;
    }
}

static int is_silent(const tl_attempt *attempt)
{
    const int mood = atomic_load(&shared->mood);

    return mood == SILENT || is_poison(attempt) ||
           (mood == HALF && atomic_load(&shared->sends) > 1);
}

static tl_query look_up(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)reply;
    atomic_fetch_add(&shared->queries, 1);
    come_in();
    return is_silent(attempt) ? TL_QUERY_UNREACHABLE : TL_QUERY_NOT_FOUND;
}

static tl_status register_one(void)
{
    tl_workflow w = TL_WORKFLOW_INIT;
    tl_status status = tl_workflows_new(&workflows, self.client);

    w.op_code = OP;
    w.channel.name = CHANNEL;
    w.channel.idempotent = 1;
    w.channel.can_query = 1;
    w.execute = pay;
    w.query = look_up;
    return status == TL_OK ? tl_workflow_register(workflows, &w) : status;
}

static tl_status run_one(const char *serial, int64_t *again_ms)
{
    tl_answer answer = TL_ANSWER_INIT;
    tl_request request = TL_REQUEST_INIT;
    tl_status status;

    request.key = (tl_key){serial, "C1", OP};
    request.payload = "x";
    request.payload_size = 1;
    status = tl_workflow_run(workflows, &request, &answer);
    if (again_ms != NULL)
        *again_ms = answer.next_look_ms;
    tl_answer_clear(&answer);
    return status;
}

static void expect_one(const char *serial, tl_status expected)
{
    assert_status(run_one(serial, NULL), expected);
}

static void break_at(const char *op_code, int64_t unknowns, int64_t share, int64_t probe_s)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_breaker breaker = TL_BREAKER_INIT;
    tl_client *client = NULL;

    options.config_file = database_option_file(self.db);
    options.flags = TL_CLIENT_NO_SESSION;
    assert_status(tl_client_open(&client, &options), TL_OK);
    breaker.channel = CHANNEL;
    breaker.op_code = op_code;
    breaker.unknowns = unknowns;
    breaker.share = share;
    breaker.window_s = share > 0 ? 600 : 0;
    breaker.probe_s = probe_s;
    breaker.actor = "ann";
    breaker.reason = "the bank falls silent";
    assert_status(tl_channel_breaker(client, &breaker), TL_OK);
    tl_client_close(client);
}

static void open_with(const char *settings)
{
    shared = crew_share(sizeof *shared);
    house_open(&self, WITHDRAW_IDEMPOTENT, settings, NULL);
    assert_status(register_one(), TL_OK);
}

FIXTURE(open_house)
{
    open_with(SETTINGS("100ms", "30s"));
}

/* One in which no beat comes. */
FIXTURE(open_silent)
{
    open_with(SETTINGS("1m", "10m"));
}

FIXTURE(close_house)
{
    tl_workflows_free(workflows);
    house_close(&self);
    crew_unshare(shared, sizeof *shared);
}

/* A process leaves its own client, so that children may be forked. */
static void leave(void)
{
    tl_workflows_free(workflows);
    workflows = NULL;
    house_leave(&self);
}

static void come_back(void)
{
    house_reopen(&self);
    assert_status(register_one(), TL_OK);
}

static long long number(const char *what)
{
    char sql[512];

    snprintf(sql, sizeof sql, "SELECT %s", what);
    return database_number(self.sql, "%s", sql);
}

#define IS_OPEN "COUNT(*) FROM trade_channel_breaker WHERE opened_at IS NOT NULL"
#define OPENED "COALESCE(SUM(opened), 0) FROM trade_channel_breaker"
#define TRADES "COUNT(*) FROM trade_lock WHERE lane = 'S' AND op_code = '" OP "'"
#define PROBES "COALESCE(SUM(probe_no), 0) FROM trade_channel_breaker"

static void await(const char *what, long long least)
{
    const int64_t end_ms = now_ms() + PATIENCE_MS;

    while (number(what) < least) {
        if (now_ms() > end_ms)
            fail_msg("%s stays below %lld", what, least);
        usleep(10000);
    }
}

static void await_closed(void)
{
    AWAIT_WHILE(number(IS_OPEN) != 0);
}

/* Until this process has told and heard: ten beats. */
static void await_beats(void)
{
    tl_stats stats = {.version = TL_STATS_VERSION};
    const int64_t end_ms = now_ms() + PATIENCE_MS;
    uint64_t before;

    assert_status(tl_client_stats(self.client, &stats), TL_OK);
    before = stats.beats;
    while (stats.beats < before + 10) {
        assert_true(now_ms() < end_ms);
        usleep(20000);
        assert_status(tl_client_stats(self.client, &stats), TL_OK);
    }
}

/* ------------------------------------------------------------------- several processes -- */

static void pay_on(void *context, int caller)
{
    const int process = *(const int *)context;

    (void)caller;
    while (!atomic_load(&shared->stop)) {
        char serial[32];
        int64_t again_ms = 0;
        tl_status status;

        snprintf(serial, sizeof serial, "B%ld", atomic_fetch_add(&shared->serial, 1));
        status = run_one(serial, &again_ms);
        if (status == TL_OVERLOADED) {
            CREW_CHECK(again_ms > 0);
            atomic_fetch_add(&shared->refused[process], 1);
            usleep(5000);
        } else {
            CREW_CHECK(status == TL_IN_DOUBT || status == TL_SUCCEEDED);
        }
    }
}

static void serve(void *context, int process)
{
    (void)context;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
    house_reopen(&self);
    CREW_STATUS(register_one(), TL_OK);
    crew_threads(CALLERS, pay_on, &process);
    tl_workflows_free(workflows);
    house_leave(&self);
}

/* No process alone has heard so many: they count together. */
TEST_IN(all_processes_open_it_together, open_house, close_house)
{
    pid_t children[PROCESSES];
    long sends, refused;

    atomic_store(&shared->mood, SILENT);
    break_at(OP, 20, 0, 600);
    leave();
    for (int i = 0; i < PROCESSES; i++)
        children[i] = crew_fork(serve, NULL, i);
    for (int i = 0; i < PROCESSES; i++)
        AWAIT_WHILE(atomic_load(&shared->refused[i]) < 20);
    assert_int_equal(number(IS_OPEN), 1);
    assert_int_equal(number(OPENED), 1);
    while (atomic_load(&shared->inside) > 0)
        usleep(1000);
    sends = atomic_load(&shared->sends);
    refused = atomic_load(&shared->refused[0]);
    usleep(1000000);
    /* Nothing more is sent, however many ask. */
    assert_int_equal(atomic_load(&shared->sends), sends);
    assert_true(atomic_load(&shared->refused[0]) > refused);
    atomic_store(&shared->stop, 1);
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(crew_wait(children[i]), 0);
    printf("open after %ld sends of %d processes\n", sends, PROCESSES);
    assert_true(sends >= 20);
    /* What was refused is nowhere. */
    assert_int_equal(number(TRADES), sends);
    come_back();
}

static void work(void *context, int process)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker *worker = NULL;

    (void)context;
    (void)process;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    house_reopen(&self);
    CREW_STATUS(register_one(), TL_OK);
    options.idle_max_ms = 50;
    CREW_STATUS(tl_worker_start(&worker, workflows, &options), TL_OK);
    while (!atomic_load(&shared->stop))
        usleep(5000);
    tl_worker_free(worker);
    tl_workflows_free(workflows);
    house_leave(&self);
}

/* So many in doubt, and the breaker is open. */
static void leave_in_doubt(const char *op_code, int count)
{
    atomic_store(&shared->mood, SILENT);
    break_at(op_code, count, 0, 1);
    await_beats();
    for (int i = 0; i < count; i++) {
        char serial[32];

        snprintf(serial, sizeof serial, "D%d", i);
        expect_one(serial, TL_IN_DOUBT);
    }
    await(IS_OPEN, 1);
    await_beats();
    expect_one("NEW", TL_OVERLOADED);
    house_row(&self, "NEW", "none");
    atomic_store(&shared->most, 0);
}

static void end_workers(pid_t *children, int count)
{
    atomic_store(&shared->stop, 1);
    for (int i = 0; i < count; i++)
        if (children[i] > 0)
            assert_int_equal(crew_wait(children[i]), 0);
}

/* One call at a time, by three processes; none uses up an attempt, and none parks a trade. */
TEST_IN(the_lane_probes_with_one, open_house, close_house)
{
    pid_t children[PROCESSES];
    long calls;

    leave_in_doubt(OP, 12);
    calls = atomic_load(&shared->sends) + atomic_load(&shared->queries);
    leave();
    for (int i = 0; i < PROCESSES; i++)
        children[i] = crew_fork(work, NULL, i);
    await(PROBES, 5);
    assert_int_equal(number(IS_OPEN), 1);
    calls = atomic_load(&shared->sends) + atomic_load(&shared->queries) - calls;
    printf("%lld probes, %ld calls, most at a time %d\n", number(PROBES), calls,
           atomic_load(&shared->most));
    assert_int_equal(atomic_load(&shared->most), 1);
    assert_true(calls >= 4);
    assert_int_equal(number("COUNT(*) FROM trade_lock WHERE parked IS NOT NULL"), 0);
    assert_int_equal(number("COALESCE(SUM(attempts), 0) FROM trade_lock WHERE lane = 'R' AND "
                            "status = 'F'"),
                     0);
    atomic_store(&shared->mood, UP);
    await_closed();
    await("COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'Y'", 12);
    end_workers(children, PROCESSES);
    come_back();
    expect_one("NEW", TL_SUCCEEDED);
    assert_int_equal(number(OPENED), 1);
}

/* kill -9 in the middle of a probe: others probe once its hold is over, and no sooner. */
TEST_IN(a_prober_that_is_killed, open_house, close_house)
{
    pid_t children[2] = {0, 0};
    long long probes;
    int64_t killed_ms;
    int status;

    leave_in_doubt(NULL, 4);
    leave();
    children[0] = crew_fork(work, NULL, 0);
    atomic_store(&shared->hangs, children[0]);
    AWAIT_WHILE(!atomic_load(&shared->hung));
    probes = number(PROBES);
    children[1] = crew_fork(work, NULL, 1);
    kill(children[0], SIGKILL);
    assert_int_equal(waitpid(children[0], &status, 0), children[0]);
    killed_ms = now_ms();
    children[0] = 0;
    atomic_store(&shared->inside, 0);
    await(PROBES, probes + 1);
    printf("the next probe after %lld ms\n", (long long)(now_ms() - killed_ms));
    assert_true(now_ms() - killed_ms >= 2000);
    atomic_store(&shared->mood, UP);
    await_closed();
    assert_int_equal(atomic_load(&shared->most), 1);
    await("COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'Y'", 4);
    end_workers(children, 2);
    come_back();
    expect_one("NEW", TL_SUCCEEDED);
}

/* ------------------------------------------------------------------------ one process -- */

static void run_many(const char *prefix, int count, tl_status expected)
{
    for (int i = 0; i < count; i++) {
        char serial[32];

        snprintf(serial, sizeof serial, "%s%d", prefix, i);
        expect_one(serial, expected);
    }
}

/* An answer ends the row, also one that declines; one more opens it. */
TEST_IN(an_answer_ends_the_row, open_house, close_house)
{
    break_at(OP, 4, 0, 600);
    await_beats();
    for (int round = 0; round < 3; round++) {
        char prefix[16];

        atomic_store(&shared->mood, SILENT);
        snprintf(prefix, sizeof prefix, "U%d-", round);
        run_many(prefix, 3, TL_IN_DOUBT);
        if (round == 1)
            await_beats(); /* told already */
        atomic_store(&shared->mood, round == 0 ? DECLINES : UP);
        snprintf(prefix, sizeof prefix, "A%d-", round);
        run_many(prefix, 1, round == 0 ? TL_FAILED : TL_SUCCEEDED);
        await_beats();
        assert_int_equal(number(IS_OPEN), 0);
    }
    atomic_store(&shared->mood, SILENT);
    run_many("LAST", 4, TL_IN_DOUBT);
    /* At once, though it was not told yet. */
    expect_one("NEW", TL_OVERLOADED);
    assert_non_null(strstr(tl_error_message(), "its breaker is open"));
    assert_null(strstr(tl_error_message(), "falls silent"));
    await(IS_OPEN, 1);
    expect_one("NEW", TL_OVERLOADED);
    /* What is there answers as ever. */
    expect_one("A1-0", TL_ALREADY_DONE);
    /* Without a breaker it is open to all. */
    break_at(OP, 0, 0, 0);
    await_beats();
    atomic_store(&shared->mood, UP);
    expect_one("NEW", TL_SUCCEEDED);
}

/* Never four in a row, but half of them. */
TEST_IN(a_share_opens_it, open_house, close_house)
{
    break_at(NULL, 4, 50, 600);
    await_beats();
    for (int i = 0; i < 4; i++) {
        char prefix[16];

        assert_int_equal(number(IS_OPEN), 0);
        atomic_store(&shared->mood, UP);
        snprintf(prefix, sizeof prefix, "Y%d-", i);
        run_many(prefix, 1, TL_SUCCEEDED);
        atomic_store(&shared->mood, SILENT);
        snprintf(prefix, sizeof prefix, "U%d-", i);
        run_many(prefix, 1, TL_IN_DOUBT);
        if (i < 3)
            await_beats();
    }
    await(IS_OPEN, 1);
    await_beats();
    expect_one("NEW", TL_OVERLOADED);
}

/* Nothing is due in the retry lane, and no worker runs: an ask is the probe. */
TEST_IN(an_ask_probes_where_nobody_does, open_house, close_house)
{
    tl_status status;

    leave_in_doubt(OP, 2);
    atomic_store(&shared->mood, UP);
    AWAIT_WHILE((status = run_one("NEW", NULL)) == TL_OVERLOADED);
    assert_status(status, TL_SUCCEEDED);
    await_closed();
    assert_int_equal(number(PROBES), 1);
    await_beats();
    expect_one("NEXT", TL_SUCCEEDED);
}

static tl_worker *start_worker(void)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker *worker = NULL;

    options.idle_max_ms = 50;
    assert_status(tl_worker_start(&worker, workflows, &options), TL_OK);
    return worker;
}

/* One trade that never hears anything is the only one that is due, and so has each probe of the
 * lane: asks have a turn too, and one of them closes the breaker. */
TEST_IN(a_poisoned_trade_does_not_keep_it_open, open_house, close_house)
{
    const int64_t end_ms = now_ms() + PATIENCE_MS;
    tl_worker *worker;
    tl_status status;

    leave_in_doubt(OP, 1);
    atomic_store(&shared->mood, POISON);
    worker = start_worker();
    while ((status = run_one("NEW", NULL)) == TL_OVERLOADED && now_ms() < end_ms)
        usleep(20000);
    tl_worker_free(worker);
    assert_status(status, TL_SUCCEEDED);
    /* The lane had its turns first. */
    printf("closed by probe %lld\n", number(PROBES));
    assert_true(number(PROBES) >= 4);
}

/* The lane's own send is declined, and nobody knows yet of the one before: the trade stays in
 * doubt, but the channel answered. */
TEST_IN(a_decline_in_doubt_is_an_answer, open_house, close_house)
{
    const int64_t end_ms = now_ms() + PATIENCE_MS;
    tl_worker *worker;

    leave_in_doubt(OP, 1);
    atomic_store(&shared->mood, HALF);
    worker = start_worker();
    while (atomic_load(&shared->sends) < 2 && now_ms() < end_ms)
        usleep(5000);
    await_beats();
    tl_worker_free(worker);
    assert_int_equal(atomic_load(&shared->sends), 2);
    assert_int_equal(number(OPENED), 1);
    assert_int_equal(number(IS_OPEN), 0);
}

/* A callback that hangs has the probe for as long as its hold: then this process probes again. */
TEST_IN(a_probe_that_hangs, open_house, close_house)
{
    const int64_t end_ms = now_ms() + PATIENCE_MS;
    tl_worker *worker;
    tl_status status;

    leave_in_doubt(OP, 1);
    atomic_store(&shared->hangs, getpid());
    worker = start_worker();
    while (!atomic_load(&shared->hung)) {
        assert_true(now_ms() < end_ms);
        usleep(5000);
    }
    atomic_store(&shared->mood, UP);
    while ((status = run_one("NEW", NULL)) == TL_OVERLOADED && now_ms() < end_ms)
        usleep(20000);
    atomic_store(&shared->hangs, 0);
    tl_worker_free(worker);
    assert_status(status, TL_SUCCEEDED);
}

/* The server's clock is set back while the breaker is open: the next probe is an hour away by
 * it. */
TEST_IN(a_clock_that_is_set_back, open_house, close_house)
{
    tl_worker *worker;

    leave_in_doubt(OP, 2);
    database_run(self.sql, "UPDATE trade_channel_breaker SET next_at = next_at + INTERVAL 1 HOUR");
    await_beats();
    atomic_store(&shared->mood, UP);
    worker = start_worker();
    await_closed();
    tl_worker_free(worker);
}

static uint64_t statements(void)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    assert_status(tl_client_stats(self.client, &stats), TL_OK);
    return stats.statements;
}

/* How many statements so many payments take. */
static uint64_t cost(const char *prefix)
{
    const uint64_t before = statements();

    run_many(prefix, 100, TL_SUCCEEDED);
    return statements() - before;
}

/* An ask and an ending, with a breaker or without. */
TEST_IN(a_trade_pays_no_statement, open_silent, close_house)
{
    (void)cost("WARM");
    assert_int_equal(cost("A"), 200);
    break_at(OP, 3, 50, 1);
    leave();
    come_back();
    (void)cost("COLD");
    assert_int_equal(cost("B"), 200);
}

TESTS_OF(breaker, NULL, NULL)
