/*
 * A channel that operators limit: so many sends at a time and a second, of all processes together.
 * Nothing is used up, nothing is written for whoever is told to come again, and what a process had
 * that was killed is free again once its sends are over.
 */
#include "house.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/lane.h>
#include <tradelock/layer.h>
#include <tradelock/metrics.h>

#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define OP "PAYOUT"
#define CHANNEL "narrow"
#define PROCESSES 3
#define CALLERS 8
#define MOMENTS 4000
#define HOLD_MS 4000

#define SETTINGS(beat, session)                                                                    \
    "site=test\nbeat_ms=" beat "\nsession_ms=" session                                             \
    "\nmax_hold_ms=4s\nexecute_ms=2s\ncommit_ms=1s\ndeadline_ms=600s\nschedule=50ms,100ms\n"       \
    "attempts=3\ngrace_ms=200ms\nclock_margin_ms=50ms\n"

/* What the channel sees, of all processes. */
struct shared {
    atomic_int stop, inside, most, hangs;
    atomic_long serial, sent, paid[PROCESSES], refused;
    /* Of each send: when it was asked for, and when it began. */
    _Atomic int64_t asked_us[MOMENTS], moments_us[MOMENTS];
};

static house self;
static struct shared *shared;
static tl_workflows *workflows;
static useconds_t takes_us;

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static _Thread_local int64_t asked_at_us;

static tl_execute pay(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    const int inside = atomic_fetch_add(&shared->inside, 1) + 1;
    const long number = atomic_fetch_add(&shared->sent, 1);
    int most = atomic_load(&shared->most);

    (void)context;
    (void)attempt;
    (void)reply;
    if (number < MOMENTS) {
        atomic_store(&shared->asked_us[number], asked_at_us);
        atomic_store(&shared->moments_us[number], now_us());
    }
    while (inside > most && !atomic_compare_exchange_weak(&shared->most, &most, inside))
        continue;
    usleep(takes_us);
    while (atomic_load(&shared->hangs) == getpid())
        usleep(1000);
    atomic_fetch_sub(&shared->inside, 1);
    return TL_EXECUTE_SUCCEEDED;
}

static tl_status register_one(void)
{
    tl_workflow w = TL_WORKFLOW_INIT;
    tl_status status = tl_workflows_new(&workflows, self.client);

    w.op_code = OP;
    w.channel.name = CHANNEL;
    w.channel.idempotent = 1;
    w.execute = pay;
    return status == TL_OK ? tl_workflow_register(workflows, &w) : status;
}

static tl_status run_one(const char *serial, tl_answer *answer)
{
    tl_request request = TL_REQUEST_INIT;

    request.key = (tl_key){serial, "C1", OP};
    request.payload = "x";
    request.payload_size = 1;
    asked_at_us = now_us();
    return tl_workflow_run(workflows, &request, answer);
}

static void expect_one(const char *serial, tl_status expected)
{
    tl_answer answer = TL_ANSWER_INIT;

    assert_status(run_one(serial, &answer), expected);
    tl_answer_clear(&answer);
}

static tl_client *open_operator(void)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = database_option_file(self.db);
    options.flags = TL_CLIENT_NO_SESSION;
    assert_status(tl_client_open(&client, &options), TL_OK);
    return client;
}

static void limit_to(const char *op_code, int64_t sends, int64_t per_second)
{
    tl_client *client = open_operator();
    tl_limit limit = TL_LIMIT_INIT;

    limit.channel = CHANNEL;
    limit.op_code = op_code;
    limit.sends = sends;
    limit.per_second = per_second;
    limit.actor = "ann";
    limit.reason = "the contract";
    assert_status(tl_channel_limit(client, &limit), TL_OK);
    tl_client_close(client);
}

static void open_with(const char *settings)
{
    shared = crew_share(sizeof *shared);
    takes_us = 10000;
    house_open(&self, WITHDRAW_IDEMPOTENT, settings, NULL);
    assert_status(register_one(), TL_OK);
}

FIXTURE(open_house)
{
    open_with(SETTINGS("100ms", "30s"));
}

/* One in which a process is soon found dead, and another one in which no beat comes. */
FIXTURE(open_mortal)
{
    open_with(SETTINGS("100ms", "2s"));
}

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

/* ------------------------------------------------------------------- several processes -- */

static void pay_on(void *context, int caller)
{
    const int process = *(const int *)context;

    (void)caller;
    while (!atomic_load(&shared->stop)) {
        tl_answer answer = TL_ANSWER_INIT;
        char serial[32];
        tl_status status;

        snprintf(serial, sizeof serial, "L%ld", atomic_fetch_add(&shared->serial, 1));
        status = run_one(serial, &answer);
        if (status == TL_OVERLOADED) {
            CREW_CHECK(answer.next_look_ms > 0);
            atomic_fetch_add(&shared->refused, 1);
        } else {
            CREW_STATUS(status, TL_SUCCEEDED);
            atomic_fetch_add(&shared->paid[process], 1);
        }
        tl_answer_clear(&answer);
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

/* All processes pay for so long; each is heard of. */
static void serve_all(int64_t run_ms)
{
    pid_t children[PROCESSES];
    const int64_t end_ms = now_ms() + PATIENCE_MS;

    leave();
    for (int i = 0; i < PROCESSES; i++)
        children[i] = crew_fork(serve, NULL, i);
    for (int i = 0; i < PROCESSES; i++)
        while (atomic_load(&shared->paid[i]) < 5) {
            if (now_ms() > end_ms)
                fail_msg("process %d paid %ld", i, atomic_load(&shared->paid[i]));
            usleep(10000);
        }
    usleep((useconds_t)run_ms * 1000);
    atomic_store(&shared->stop, 1);
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(crew_wait(children[i]), 0);
    /* What was refused is nowhere. */
    assert_int_equal(
        database_number(self.sql, "SELECT COUNT(*) FROM trade_lock WHERE op_code = '" OP "'"),
        atomic_load(&shared->sent));
    /* Who ended in order left nothing behind. */
    assert_int_equal(database_number(self.sql, "SELECT COUNT(*) FROM trade_channel_permit"), 0);
    come_back();
}

TEST_IN(no_more_at_a_time, open_house, close_house)
{
    limit_to(OP, 5, 0);
    serve_all(4000);
    printf("sent %ld, refused %ld, most at a time %d\n", atomic_load(&shared->sent),
           atomic_load(&shared->refused), atomic_load(&shared->most));
    assert_int_equal(atomic_load(&shared->most), 5);
}

/* Fewer than processes: each has its turn. */
TEST_IN(one_at_a_time, open_house, close_house)
{
    limit_to(NULL, 1, 0);
    serve_all(2000);
    assert_int_equal(atomic_load(&shared->most), 1);
}

#define RATE 40

TEST_IN(no_more_a_second, open_house, close_house)
{
    long most = 0, sent;

    takes_us = 1000;
    limit_to(OP, 0, RATE);
    serve_all(6000);
    sent = atomic_load(&shared->sent);
    assert_true(sent < MOMENTS);
    for (long first = 0; first < sent; first++) {
        const int64_t from_us = shared->asked_us[first];
        long count = 0;

        /* Whoever was let through within this second: a machine that stands still may hold up a
         * send afterwards. */
        for (long i = 0; i < sent; i++)
            count += shared->asked_us[i] >= from_us && shared->moments_us[i] < from_us + 1000000;
        most = count > most ? count : most;
    }
    /* A moment may be used a tenth of a second late, in each process. */
    if (most > RATE + RATE / 10 + PROCESSES)
        fail_msg("%ld sends in a second", most);
    printf("sent %ld in %lld ms, %ld within a second, refused %ld\n", sent,
           (long long)(shared->moments_us[sent - 1] - shared->moments_us[0]) / 1000, most,
           atomic_load(&shared->refused));
    assert_true(sent >= 5 * RATE / 2);
}

TEST_IN(both_at_once, open_house, close_house)
{
    limit_to(OP, 4, 0);
    limit_to(NULL, 3, 60);
    takes_us = 50000;
    serve_all(2000);
    assert_in_range(atomic_load(&shared->most), 1, 3);
}

/* -------------------------------------------------------------------- a process that dies -- */

static void hang(void *context, int caller)
{
    char serial[32];
    tl_answer answer = TL_ANSWER_INIT;

    snprintf(serial, sizeof serial, "H%d-%d", *(const int *)context, caller);
    (void)run_one(serial, &answer);
}

static void hang_all(void *context, int process)
{
    (void)context;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    house_reopen(&self);
    CREW_STATUS(register_one(), TL_OK);
    atomic_store(&shared->hangs, getpid());
    crew_threads(2, hang, &process);
}

TEST_IN(what_a_dead_process_had_comes_free, open_mortal, close_house)
{
    const int64_t end_ms = now_ms() + PATIENCE_MS;
    tl_status answered = TL_OVERLOADED;
    int64_t killed_ms;
    pid_t child;
    int status;

    limit_to(OP, 2, 0);
    leave();
    child = crew_fork(hang_all, NULL, 0);
    come_back();
    while (atomic_load(&shared->inside) < 2) {
        assert_true(now_ms() < end_ms);
        usleep(5000);
    }
    expect_one("W1", TL_OVERLOADED);
    house_row(&self, "W1", "none");
    killed_ms = now_ms();
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    for (int i = 0; answered == TL_OVERLOADED; i++) {
        tl_answer answer = TL_ANSWER_INIT;
        char serial[32];

        assert_true(now_ms() < end_ms);
        snprintf(serial, sizeof serial, "A%d", i);
        answered = run_one(serial, &answer);
        tl_answer_clear(&answer);
    }
    assert_status(answered, TL_SUCCEEDED);
    /* What it had sent may have been under way for so long. */
    printf("free after %lld ms\n", (long long)(now_ms() - killed_ms));
    assert_true(now_ms() - killed_ms >= HOLD_MS);
}

static long long rows_of_others(void)
{
    return database_number(self.sql, "SELECT COUNT(*) FROM trade_channel_permit WHERE session_id "
                                     "NOT IN (SELECT session_id FROM tl_session "
                                     "WHERE ended_at IS NULL)");
}

static void await_rows_of_others(long long count, const char *prefix)
{
    const int64_t end_ms = now_ms() + PATIENCE_MS;

    for (int i = 0; rows_of_others() != count; i++) {
        char serial[32];

        assert_true(now_ms() < end_ms);
        snprintf(serial, sizeof serial, "%s%d", prefix, i);
        expect_one(serial, TL_SUCCEEDED);
        usleep(20000);
    }
}

/* What counts for nothing any more is removed a day later by who takes a share next, and that of a
 * channel that nothing limits any more with the session's row. */
TEST_IN(rows_of_the_dead_go, open_mortal, close_house)
{
    tl_client *client;
    int status;

    limit_to(OP, 9, 0);
    leave();
    for (int i = 0; i < 3; i++) {
        pid_t child = crew_fork(hang_all, NULL, i);

        AWAIT_WHILE(atomic_load(&shared->inside) < 2 * (i + 1));
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
    }
    come_back();
    AWAIT_WHILE(rows_of_others() < 3);
    /* Their sends are over, and that was less than a day ago. */
    database_run(self.sql, "UPDATE tl_session SET ended_at = ended_at - INTERVAL 23 HOUR "
                           "WHERE ended_at IS NOT NULL");
    for (int i = 0; i < 8; i++) {
        char serial[32];

        snprintf(serial, sizeof serial, "EARLY%d", i);
        expect_one(serial, TL_SUCCEEDED);
        usleep(150000); /* a beat gives the permit back, so the next one takes a share */
    }
    assert_int_equal(rows_of_others(), 3);
    database_run(self.sql, "UPDATE tl_session SET ended_at = ended_at - INTERVAL 2 HOUR "
                           "WHERE ended_at IS NOT NULL AND session_id IN "
                           "(SELECT session_id FROM trade_channel_permit) LIMIT 2");
    await_rows_of_others(1, "LATE");
    /* Nobody takes a share of it any more. */
    limit_to(OP, 0, 0);
    database_run(self.sql, "UPDATE tl_session SET ended_at = ended_at - INTERVAL 3000 DAY, "
                           "swept_at = ended_at WHERE ended_at IS NOT NULL");
    client = open_operator();
    assert_status(tl_purge(client, INT64_C(1000) * 86400000, NULL), TL_OK);
    tl_client_close(client);
    assert_int_equal(rows_of_others(), 0);
}

/* ------------------------------------------------------------------------ one process -- */

/* Until this process has heard of it: ten beats. */
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

/* A send that is under way. */
static void take_only_permit(tl_lock **held, const char *serial)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    const tl_key key = {serial, "C1", OP};

    options.max_hold_ms = 60000;
    options.channel = CHANNEL;
    assert_status(tl_lock_new(held, self.client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(*held, 0), TL_GRANTED);
}

static void end_only_permit(tl_lock *held)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = TL_OUTCOME_SUCCESS;
    assert_status(tl_lock_finish(held, &ending), TL_SUCCEEDED);
    tl_lock_free(held);
}

/* What this process had is forgotten with the limit: another one later begins with all of it. */
TEST_IN(a_limit_that_is_lifted_and_set_again, open_house, close_house)
{
    limit_to(OP, 1, 0);
    await_beats();
    expect_one("FIRST", TL_SUCCEEDED);
    assert_int_equal(database_number(self.sql, "SELECT COUNT(*) FROM trade_channel_permit"), 1);
    limit_to(OP, 0, 0);
    AWAIT_WHILE(database_number(self.sql, "SELECT COUNT(*) FROM trade_channel_permit") > 0);
}

struct told {
    char text[65536];
    size_t size;
};

static int take_text(void *context, const char *text, size_t size)
{
    struct told *told = context;

    assert_true(told->size + size < sizeof told->text);
    memcpy(told->text + told->size, text, size);
    told->size += size;
    told->text[told->size] = '\0';
    return 0;
}

/* The value of a line of this process's metrics; -1: there is none. */
static long long metric(const char *line)
{
    struct told *told = calloc(1, sizeof *told);
    const char *found;
    long long value = -1;

    assert_non_null(told);
    assert_status(tl_metrics_write(self.client, take_text, told), TL_OK);
    found = strstr(told->text, line);
    if (found != NULL)
        value = strtoll(found + strlen(line), NULL, 10);
    free(told);
    return value;
}

#define OF_LIMIT "{channel=\"" CHANNEL "\",operation=\"" OP "\""
#define REFUSED(lane, limit)                                                                       \
    metric("tradelock_channel_limit_refusals_total" OF_LIMIT ",lane=\"" lane "\",limit=\"" limit   \
           "\"} ")

/* The limit is full: what is due is claimed, not sent, and has used up no attempt. */
TEST_IN(the_retry_lane_obeys, open_house, close_house)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker *worker = NULL;
    tl_lock *held = NULL;

    for (int i = 0; i < 6; i++) {
        tl_lock_options with = TL_LOCK_OPTIONS_INIT;
        tl_ending ending = TL_ENDING_INIT;
        char serial[16];
        const tl_key key = {serial, "C1", OP};
        tl_lock *lock = NULL;

        snprintf(serial, sizeof serial, "D%d", i);
        with.max_hold_ms = HOLD_MS;
        with.payload = "x";
        with.payload_size = 1;
        with.channel = CHANNEL;
        assert_status(tl_lock_new(&lock, self.client, &key, &with), TL_OK);
        assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
        assert_status(tl_lock_finish(lock, &ending), TL_IN_DOUBT);
        tl_lock_free(lock);
    }
    limit_to(NULL, 1, 0);
    await_beats();
    take_only_permit(&held, "HELD");
    expect_one("W1", TL_OVERLOADED);
    options.idle_max_ms = 50;
    assert_status(tl_worker_start(&worker, workflows, &options), TL_OK);
    usleep(3000000);
    assert_int_equal(atomic_load(&shared->sent), 0);
    assert_true(metric("tradelock_channel_limit_refusals_total{channel=\"" CHANNEL
                       "\",operation=\"\",lane=\"retry\",limit=\"sends\"} ") > 0);
    /* A claim counts its attempt until it is put back. */
    assert_int_equal(database_number(self.sql, "SELECT COALESCE(SUM(attempts), 0) FROM trade_lock "
                                               "WHERE lane = 'R' AND status = 'F'"),
                     0);
    assert_int_equal(
        database_number(self.sql, "SELECT COUNT(*) FROM trade_lock WHERE parked IS NOT NULL"), 0);
    end_only_permit(held);
    AWAIT_WHILE(database_number(self.sql, "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND "
                                          "status = 'Y'") < 7);
    assert_int_equal(atomic_load(&shared->most), 1);
    tl_worker_free(worker);
}

/* What a process lets through, and what it does not. */
TEST_IN(a_process_counts, open_house, close_house)
{
    tl_lock *held = NULL;

    await_beats();
    assert_int_equal(REFUSED("sync", "sends"), -1);
    limit_to(OP, 1, 1);
    await_beats();
    assert_int_equal(REFUSED("sync", "sends"), 0);
    assert_int_equal(metric("tradelock_channel_sends_under_way" OF_LIMIT "} "), 0);
    take_only_permit(&held, "HELD");
    assert_int_equal(metric("tradelock_channel_sends_under_way" OF_LIMIT "} "), 1);
    expect_one("W1", TL_OVERLOADED);
    expect_one("W2", TL_OVERLOADED);
    assert_int_equal(REFUSED("sync", "sends"), 2);
    assert_int_equal(REFUSED("sync", "per_second"), 0);
    end_only_permit(held);
    for (int i = 0; i < 3; i++) {
        tl_answer answer = TL_ANSWER_INIT;
        char serial[16];

        snprintf(serial, sizeof serial, "R%d", i);
        (void)run_one(serial, &answer);
        tl_answer_clear(&answer);
    }
    assert_int_equal(metric("tradelock_channel_sends_under_way" OF_LIMIT "} "), 0);
    assert_true(REFUSED("sync", "per_second") > 0);
    assert_int_equal(REFUSED("sync", "sends"), 2);
    assert_int_equal(REFUSED("retry", "sends") + REFUSED("retry", "per_second"), 0);
}

/* What is there answers as ever, and a limit that is lifted holds nobody up. */
TEST_IN(a_trade_that_is_there_answers_as_ever, open_house, close_house)
{
    tl_lock *held = NULL;

    expect_one("PAID", TL_SUCCEEDED);
    limit_to(OP, 1, 0);
    await_beats();
    take_only_permit(&held, "HELD");
    expect_one("PAID", TL_ALREADY_DONE);
    expect_one("HELD", TL_MISMATCH);
    expect_one("NEW", TL_OVERLOADED);
    assert_non_null(strstr(tl_error_message(), "at the limit that operators set"));
    assert_null(strstr(tl_error_message(), "contract"));
    limit_to(OP, 0, 0);
    await_beats();
    expect_one("NEW", TL_SUCCEEDED);
    end_only_permit(held);
}

/* A lock that was refused has no permit, and one that is freed gives it back. */
TEST_IN(permits_come_back, open_house, close_house)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    const tl_key key = {"TWICE", "C1", OP};
    tl_lock *held = NULL, *lock = NULL;

    limit_to(OP, 1, 0);
    await_beats();
    options.max_hold_ms = 60000;
    assert_status(tl_lock_new(&held, self.client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(held, 0), TL_GRANTED); /* it names no channel */
    options.channel = CHANNEL;
    for (int i = 0; i < 20; i++) {
        assert_status(tl_lock_new(&lock, self.client, &key, &options), TL_OK);
        assert_status(tl_lock_ask(lock, 0), TL_BUSY);
        if (i % 2)
            assert_status(tl_lock_ask(lock, 50), TL_BUSY);
        tl_lock_free(lock);
    }
    expect_one("NEW", TL_SUCCEEDED);
    take_only_permit(&lock, "LEFT");
    expect_one("OTHER", TL_OVERLOADED);
    tl_lock_free(lock);
    expect_one("OTHER", TL_SUCCEEDED);
    tl_lock_free(held);
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

    for (int i = 0; i < 100; i++) {
        char serial[32];

        snprintf(serial, sizeof serial, "%s%d", prefix, i);
        expect_one(serial, TL_SUCCEEDED);
    }
    return statements() - before;
}

/* An ask and an ending, whatever another channel's limits are; and with limits a block of permits
 * now and then. */
TEST_IN(who_has_no_limit_pays_nothing, open_silent, close_house)
{
    tl_client *client;
    tl_limit limit = TL_LIMIT_INIT;
    uint64_t limited;

    takes_us = 0;
    (void)cost("WARM");
    assert_int_equal(cost("A"), 200);
    client = open_operator();
    assert_status(tl_channel_add(self.client, "other", OP, NULL), TL_OK);
    limit.channel = "other";
    limit.sends = limit.per_second = 1;
    limit.actor = limit.reason = "r";
    assert_status(tl_channel_limit(client, &limit), TL_OK);
    tl_client_close(client);
    leave();
    come_back();
    (void)cost("COLD");
    assert_int_equal(cost("B"), 200);
    limit_to(OP, 100, 0);
    leave();
    come_back();
    (void)cost("COLDER");
    limited = cost("C");
    printf("100 payments of a limited channel: %d statements\n", (int)limited);
    assert_in_range(limited, 200, 204);
}

TESTS_OF(limits, NULL, NULL)
