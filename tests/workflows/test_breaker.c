/*
 * A channel with a circuit breaker, which all processes share: it opens by what they all hear, lets
 * one call through at a time until there is an answer, and a process that is killed at its probe
 * does not keep it.  Nothing is written for whoever is told to come again, and no attempt is used
 * up.
 */
#include "gate.h"

#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/lane.h>
#include <tradelock/layer.h>

#include <signal.h>
#include <sys/wait.h>

#define OP GATE_OP
#define CHANNEL "frail"
#define CALLERS 4

/* POISON: trades that begin with D hear nothing, and all else is well.  HALF: a send is declined,
 * and whoever asks after one hears nothing. */
enum { UP, SILENT, DECLINES, POISON, HALF };

static int is_poison(const tl_attempt *attempt)
{
    return atomic_load(&gate.shared->mood) == POISON && attempt->key.serial_no[0] == 'D';
}

static tl_execute_result pay(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)reply;
    atomic_fetch_add(&gate.shared->sends, 1);
    gate_come_in();
    if (is_poison(attempt))
        return TL_EXECUTE_UNKNOWN;
    switch (atomic_load(&gate.shared->mood)) {
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
    const int mood = atomic_load(&gate.shared->mood);

    return mood == SILENT || is_poison(attempt) ||
           (mood == HALF && atomic_load(&gate.shared->sends) > 1);
}

static tl_query_result look_up(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)reply;
    atomic_fetch_add(&gate.shared->queries, 1);
    gate_come_in();
    return is_silent(attempt) ? TL_QUERY_UNREACHABLE : TL_QUERY_NOT_FOUND;
}

static void break_at(const char *op_code, int64_t unknowns, int64_t share, int64_t probe_s)
{
    tl_client *client = house_operator(&gate.house);
    tl_breaker breaker = TL_BREAKER_INIT;

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

static long long number(const char *what)
{
    char sql[512];

    snprintf(sql, sizeof sql, "SELECT %s", what);
    return database_number(gate.house.sql, "%s", sql);
}

#define IS_OPEN "COUNT(*) FROM trade_channel_breaker WHERE opened_at IS NOT NULL"
#define OPENED "COALESCE(SUM(opened), 0) FROM trade_channel_breaker"
#define TRADES "COUNT(*) FROM trade_lock WHERE lane = 'S' AND op_code = '" OP "'"
#define PROBES "COALESCE(SUM(probe_no), 0) FROM trade_channel_breaker"

static void await(const char *what, long long least)
{
    AWAIT_WHILE(number(what) < least);
}

static void await_closed(void)
{
    AWAIT_WHILE(number(IS_OPEN) != 0);
}

/* ------------------------------------------------------------------- several processes -- */

/* No process alone has heard so many: they count together. */
TEST_IN(all_processes_open_it_together, gate_open_patient, gate_close)
{
    pid_t children[GATE_PROCESSES];
    long sends, refused;

    atomic_store(&gate.shared->mood, SILENT);
    break_at(OP, 20, 0, 600);
    house_leave(&gate.house);
    for (int i = 0; i < GATE_PROCESSES; i++)
        children[i] = gate_serve(i);
    for (int i = 0; i < GATE_PROCESSES; i++)
        AWAIT_WHILE(atomic_load(&gate.shared->refused[i]) < 20);
    assert_int_equal(number(IS_OPEN), 1);
    assert_int_equal(number(OPENED), 1);
    while (atomic_load(&gate.shared->inside) > 0)
        usleep(1000);
    sends = atomic_load(&gate.shared->sends);
    refused = atomic_load(&gate.shared->refused[0]);
    usleep(1000000);
    /* Nothing more is sent, however many ask. */
    assert_int_equal(atomic_load(&gate.shared->sends), sends);
    assert_true(atomic_load(&gate.shared->refused[0]) > refused);
    atomic_store(&gate.shared->stop, 1);
    for (int i = 0; i < GATE_PROCESSES; i++)
        assert_int_equal(crew_wait(children[i]), 0);
    printf("open after %ld sends of %d processes\n", sends, GATE_PROCESSES);
    assert_true(sends >= 20);
    /* What was refused is nowhere. */
    assert_int_equal(number(TRADES), sends);
    gate_come_back();
}

static void work(void *context, int process)
{
    tl_worker *worker = NULL;

    (void)context;
    (void)process;
    gate_come_as_child();
    worker = house_worker(gate.house.workflows, 0);
    while (!atomic_load(&gate.shared->stop))
        usleep(5000);
    tl_worker_free(worker);
    house_leave(&gate.house);
}

/* So many in doubt, and the breaker is open. */
static void leave_in_doubt(const char *op_code, int count)
{
    atomic_store(&gate.shared->mood, SILENT);
    break_at(op_code, count, 0, 1);
    gate_await_beats();
    for (int i = 0; i < count; i++)
        gate_expect(text_of("D%d", i).is, TL_IN_DOUBT);
    await(IS_OPEN, 1);
    gate_await_beats();
    atomic_store(&gate.shared->most, 0);
}

static void end_workers(pid_t *children, int count)
{
    atomic_store(&gate.shared->stop, 1);
    for (int i = 0; i < count; i++)
        if (children[i] > 0)
            assert_int_equal(crew_wait(children[i]), 0);
}

/* One call at a time, by three processes; none uses up an attempt, and none parks a trade. */
TEST_IN(the_lane_probes_with_one, gate_open, gate_close)
{
    pid_t children[GATE_PROCESSES];
    long calls;

    leave_in_doubt(OP, 12);
    calls = atomic_load(&gate.shared->sends) + atomic_load(&gate.shared->queries);
    house_leave(&gate.house);
    for (int i = 0; i < GATE_PROCESSES; i++)
        children[i] = crew_fork(work, NULL, i);
    await(PROBES, 5);
    assert_int_equal(number(IS_OPEN), 1);
    calls = atomic_load(&gate.shared->sends) + atomic_load(&gate.shared->queries) - calls;
    printf("%lld probes, %ld calls, most at a time %d\n", number(PROBES), calls,
           atomic_load(&gate.shared->most));
    assert_int_equal(atomic_load(&gate.shared->most), 1);
    assert_true(calls >= 4);
    assert_int_equal(number("COUNT(*) FROM trade_lock WHERE parked IS NOT NULL"), 0);
    assert_int_equal(number("COALESCE(SUM(attempts), 0) FROM trade_lock WHERE lane = 'R' AND "
                            "status = 'F'"),
                     0);
    atomic_store(&gate.shared->mood, UP);
    await_closed();
    await("COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'Y'", 12);
    end_workers(children, GATE_PROCESSES);
    gate_come_back();
    gate_expect("NEW", TL_SUCCEEDED);
    assert_int_equal(number(OPENED), 1);
}

/* kill -9 in the middle of a probe: others probe once its hold is over, and no sooner. */
TEST_IN(a_prober_that_is_killed, gate_open, gate_close)
{
    pid_t children[2] = {0, 0};
    long long probes;
    int64_t killed_ms;
    int status;

    leave_in_doubt(NULL, 4);
    house_leave(&gate.house);
    children[0] = crew_fork(work, NULL, 0);
    atomic_store(&gate.shared->hangs, children[0]);
    AWAIT_WHILE(!atomic_load(&gate.shared->hung));
    probes = number(PROBES);
    children[1] = crew_fork(work, NULL, 1);
    kill(children[0], SIGKILL);
    assert_int_equal(waitpid(children[0], &status, 0), children[0]);
    killed_ms = now_ms();
    children[0] = 0;
    atomic_store(&gate.shared->inside, 0);
    await(PROBES, probes + 1);
    printf("the next probe after %lld ms\n", (long long)(now_ms() - killed_ms));
    assert_true(now_ms() - killed_ms >= 2000);
    /* Once it is closed, they call together. */
    assert_int_equal(atomic_load(&gate.shared->most), 1);
    atomic_store(&gate.shared->mood, UP);
    await_closed();
    await("COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'Y'", 4);
    end_workers(children, 2);
    gate_come_back();
    gate_expect("NEW", TL_SUCCEEDED);
}

/* ------------------------------------------------------------------------ one process -- */

/* An answer ends the row, also one that declines; one more opens it. */
TEST_IN(an_answer_ends_the_row, gate_open, gate_close)
{
    break_at(OP, 4, 0, 600);
    gate_await_beats();
    for (int round = 0; round < 3; round++) {
        char prefix[16];

        atomic_store(&gate.shared->mood, SILENT);
        snprintf(prefix, sizeof prefix, "U%d-", round);
        gate_expect_many(prefix, 3, TL_IN_DOUBT);
        if (round == 1)
            gate_await_beats(); /* told already */
        atomic_store(&gate.shared->mood, round == 0 ? DECLINES : UP);
        snprintf(prefix, sizeof prefix, "A%d-", round);
        gate_expect_many(prefix, 1, round == 0 ? TL_FAILED : TL_SUCCEEDED);
        gate_await_beats();
        assert_int_equal(number(IS_OPEN), 0);
    }
    atomic_store(&gate.shared->mood, SILENT);
    gate_expect_many("LAST", 4, TL_IN_DOUBT);
    /* At once, though it was not told yet. */
    gate_expect("NEW", TL_OVERLOADED);
    assert_non_null(strstr(tl_error_message(), "its breaker is open"));
    assert_null(strstr(tl_error_message(), "falls silent"));
    house_row(&gate.house, "NEW", "none");
    await(IS_OPEN, 1);
    gate_expect("NEW", TL_OVERLOADED);
    /* What is there answers as ever. */
    gate_expect("A1-0", TL_ALREADY_DONE);
    /* Without a breaker it is open to all. */
    break_at(OP, 0, 0, 0);
    gate_await_beats();
    atomic_store(&gate.shared->mood, UP);
    gate_expect("NEW", TL_SUCCEEDED);
}

/* Never four in a row, but half of them. */
TEST_IN(a_share_opens_it, gate_open, gate_close)
{
    break_at(NULL, 4, 50, 600);
    gate_await_beats();
    for (int i = 0; i < 4; i++) {
        char prefix[16];

        assert_int_equal(number(IS_OPEN), 0);
        atomic_store(&gate.shared->mood, UP);
        snprintf(prefix, sizeof prefix, "Y%d-", i);
        gate_expect_many(prefix, 1, TL_SUCCEEDED);
        atomic_store(&gate.shared->mood, SILENT);
        snprintf(prefix, sizeof prefix, "U%d-", i);
        gate_expect_many(prefix, 1, TL_IN_DOUBT);
        if (i < 3)
            gate_await_beats();
    }
    await(IS_OPEN, 1);
    gate_await_beats();
    gate_expect("NEW", TL_OVERLOADED);
}

/* Nothing is due in the retry lane, and no worker runs: an ask is the probe. */
TEST_IN(an_ask_probes_where_nobody_does, gate_open, gate_close)
{
    tl_status status;

    leave_in_doubt(OP, 2);
    atomic_store(&gate.shared->mood, UP);
    AWAIT_WHILE((status = gate_run("NEW", NULL)) == TL_OVERLOADED);
    assert_status(status, TL_SUCCEEDED);
    await_closed();
    assert_int_equal(number(PROBES), 1);
    gate_await_beats();
    gate_expect("NEXT", TL_SUCCEEDED);
}

/* One trade that never hears anything is the only one that is due, and so has each probe of the
 * lane: asks have a turn too, and one of them closes the breaker. */
TEST_IN(a_poisoned_trade_does_not_keep_it_open, gate_open, gate_close)
{
    const int64_t end_ms = now_ms() + PATIENCE_MS;
    tl_worker *worker;
    tl_status status;

    leave_in_doubt(OP, 1);
    atomic_store(&gate.shared->mood, POISON);
    worker = house_worker(gate.house.workflows, 0);
    while ((status = gate_run("NEW", NULL)) == TL_OVERLOADED && now_ms() < end_ms)
        usleep(20000);
    tl_worker_free(worker);
    assert_status(status, TL_SUCCEEDED);
    /* The lane had its turns first. */
    printf("closed by probe %lld\n", number(PROBES));
    assert_true(number(PROBES) >= 4);
}

/* The lane's own send is declined, and nobody knows yet of the one before: the trade stays in
 * doubt, but the channel answered. */
TEST_IN(a_decline_in_doubt_is_an_answer, gate_open, gate_close)
{
    const int64_t end_ms = now_ms() + PATIENCE_MS;
    tl_worker *worker;

    leave_in_doubt(OP, 1);
    atomic_store(&gate.shared->mood, HALF);
    worker = house_worker(gate.house.workflows, 0);
    while (atomic_load(&gate.shared->sends) < 2 && now_ms() < end_ms)
        usleep(5000);
    gate_await_beats();
    tl_worker_free(worker);
    assert_int_equal(atomic_load(&gate.shared->sends), 2);
    assert_int_equal(number(OPENED), 1);
    assert_int_equal(number(IS_OPEN), 0);
}

/* A callback that hangs has the probe for as long as its hold: then this process probes again. */
TEST_IN(a_probe_that_hangs, gate_open, gate_close)
{
    const int64_t end_ms = now_ms() + PATIENCE_MS;
    tl_worker *worker;
    tl_status status;

    leave_in_doubt(OP, 1);
    atomic_store(&gate.shared->hangs, getpid());
    worker = house_worker(gate.house.workflows, 0);
    AWAIT_WHILE(!atomic_load(&gate.shared->hung));
    atomic_store(&gate.shared->mood, UP);
    while ((status = gate_run("NEW", NULL)) == TL_OVERLOADED && now_ms() < end_ms)
        usleep(20000);
    atomic_store(&gate.shared->hangs, 0);
    tl_worker_free(worker);
    assert_status(status, TL_SUCCEEDED);
}

/* The server's clock is set back while the breaker is open: the next probe is an hour away by
 * it. */
TEST_IN(a_clock_that_is_set_back, gate_open, gate_close)
{
    tl_worker *worker;

    leave_in_doubt(OP, 2);
    database_run(gate.house.sql,
                 "UPDATE trade_channel_breaker SET next_at = next_at + INTERVAL 1 HOUR");
    gate_await_beats();
    atomic_store(&gate.shared->mood, UP);
    worker = house_worker(gate.house.workflows, 0);
    await_closed();
    tl_worker_free(worker);
}

/* An ask and an ending, with a breaker or without. */
TEST_IN(a_trade_pays_no_statement, gate_open_silent, gate_close)
{
    (void)gate_cost("WARM");
    assert_int_equal(gate_cost("A"), 200);
    break_at(OP, 3, 50, 1);
    house_leave(&gate.house);
    gate_come_back();
    (void)gate_cost("COLD");
    assert_int_equal(gate_cost("B"), 200);
}

TEST_MAIN(breaker)
{
    gate.callers = CALLERS;
    gate.hang_most = 1;
    gate_of(CHANNEL, pay, look_up);
    return tests_run(NULL, NULL);
}
