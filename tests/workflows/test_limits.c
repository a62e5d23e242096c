/*
 * A channel that operators limit: so many sends at a time and a second, of all processes together.
 * Nothing is used up, nothing is written for whoever is told to come again, and what a process had
 * that was killed is free again once its sends are over.
 */
#include "gate.h"

#include "support/metric.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/lane.h>
#include <tradelock/layer.h>

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#define OP GATE_OP
#define CHANNEL "narrow"
#define CALLERS 8
#define MOMENTS 4000
#define HOLD_MS 4000

/* Of each send of all processes: when it was asked for, and when it began. */
static struct moments {
    _Atomic int64_t asked_us[MOMENTS], began_us[MOMENTS];
} *moments;

static tl_execute_result pay(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    const long number = atomic_fetch_add(&gate.shared->sends, 1);

    (void)context;
    (void)attempt;
    (void)reply;
    if (number < MOMENTS) {
        atomic_store(&moments->asked_us[number], gate_asked_us);
        atomic_store(&moments->began_us[number], gate_now_us());
    }
    gate_come_in();
    return TL_EXECUTE_SUCCEEDED;
}

static void limit_to(const char *op_code, int64_t sends, int64_t per_second)
{
    tl_client *client = house_operator(&gate.house);
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

/* ------------------------------------------------------------------- several processes -- */

/* All processes pay for so long; each is heard of. */
static void serve_all(int64_t run_ms)
{
    struct gate_shared *shared = gate.shared;
    pid_t children[GATE_PROCESSES];

    house_leave(&gate.house);
    for (int i = 0; i < GATE_PROCESSES; i++)
        children[i] = gate_serve(i);
    for (int i = 0; i < GATE_PROCESSES; i++)
        AWAIT_WHILE(atomic_load(&shared->paid[i]) < 5);
    usleep((useconds_t)run_ms * 1000);
    atomic_store(&shared->stop, 1);
    for (int i = 0; i < GATE_PROCESSES; i++) {
        assert_int_equal(crew_wait(children[i]), 0);
        printf("process %d: %ld paid, %ld refused\n", i, atomic_load(&shared->paid[i]),
               atomic_load(&shared->refused[i]));
    }
    /* What was refused is nowhere. */
    database_expect(gate.house.sql, atomic_load(&shared->sends),
                    "SELECT COUNT(*) FROM trade_lock WHERE op_code = '" OP "'");
    /* Who ended in order left nothing behind. */
    database_expect(gate.house.sql, 0, "SELECT COUNT(*) FROM trade_channel_permit");
    gate_come_back();
}

TEST_IN(no_more_at_a_time, gate_open_patient, gate_close)
{
    limit_to(OP, 5, 0);
    serve_all(4000);
    assert_int_equal(atomic_load(&gate.shared->most), 5);
}

/* Fewer than processes: each has its turn. */
TEST_IN(one_at_a_time, gate_open_patient, gate_close)
{
    limit_to(NULL, 1, 0);
    serve_all(2000);
    assert_int_equal(atomic_load(&gate.shared->most), 1);
}

#define RATE 40

TEST_IN(no_more_a_second, gate_open_patient, gate_close)
{
    long most = 0, sent;

    gate.takes_us = 1000;
    limit_to(OP, 0, RATE);
    serve_all(6000);
    sent = atomic_load(&gate.shared->sends);
    assert_true(sent < MOMENTS);
    for (long first = 0; first < sent; first++) {
        const int64_t from_us = moments->asked_us[first];
        long count = 0;

        /* Whoever was let through within this second: a machine that stands still may hold up a
         * send afterwards. */
        for (long i = 0; i < sent; i++)
            count += moments->asked_us[i] >= from_us && moments->began_us[i] < from_us + 1000000;
        most = count > most ? count : most;
    }
    /* A moment may be used a tenth of a second late, in each process. */
    if (most > RATE + RATE / 10 + GATE_PROCESSES)
        fail_msg("%ld sends in a second", most);
    printf("sent %ld, %ld within a second\n", sent, most);
    assert_true(sent >= 5 * RATE / 2);
}

TEST_IN(both_at_once, gate_open_patient, gate_close)
{
    limit_to(OP, 4, 0);
    limit_to(NULL, 3, 60);
    gate.takes_us = 50000;
    serve_all(2000);
    assert_in_range(atomic_load(&gate.shared->most), 1, 3);
}

/* -------------------------------------------------------------------- a process that dies -- */

static void hang(void *context, int caller)
{
    (void)gate_run(text_of("H%d-%d", *(const int *)context, caller).is, NULL);
}

static void hang_all(void *context, int process)
{
    (void)context;
    gate_come_as_child();
    atomic_store(&gate.shared->hangs, getpid());
    crew_threads(2, hang, &process);
}

static void kill_process(pid_t child)
{
    int status;

    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
}

TEST_IN(what_a_dead_process_had_comes_free, gate_open_mortal, gate_close)
{
    tl_status answered = TL_OVERLOADED;
    int64_t killed_ms;
    pid_t child;

    limit_to(OP, 2, 0);
    house_leave(&gate.house);
    child = crew_fork(hang_all, NULL, 0);
    gate_come_back();
    AWAIT_WHILE(atomic_load(&gate.shared->inside) < 2);
    gate_expect("W1", TL_OVERLOADED);
    house_row(&gate.house, "W1", "none");
    killed_ms = now_ms();
    kill_process(child);
    AWAIT_WHILE((answered = gate_run("W2", NULL)) == TL_OVERLOADED);
    assert_status(answered, TL_SUCCEEDED);
    /* What it had sent may have been under way for so long. */
    printf("free after %lld ms\n", (long long)(now_ms() - killed_ms));
    assert_true(now_ms() - killed_ms >= HOLD_MS);
}

static long long rows_of_others(void)
{
    return database_number(gate.house.sql,
                           "SELECT COUNT(*) FROM trade_channel_permit WHERE session_id "
                           "NOT IN (SELECT session_id FROM tl_session "
                           "WHERE ended_at IS NULL)");
}

static void await_rows_of_others(long long count, const char *prefix)
{
    for (int i = 0; rows_of_others() != count; i++) {
        gate_expect(text_of("%s%d", prefix, i).is, TL_SUCCEEDED);
        usleep(20000);
    }
}

/* What counts for nothing any more is removed a day later by who takes a share next, and that of a
 * channel that nothing limits any more with the session's row. */
TEST_IN(rows_of_the_dead_go, gate_open_mortal, gate_close)
{
    tl_purge_options options = TL_PURGE_OPTIONS_INIT;
    tl_client *client;

    options.older_ms = INT64_C(1000) * 86400000;
    limit_to(OP, 9, 0);
    house_leave(&gate.house);
    for (int i = 0; i < 3; i++) {
        const pid_t child = crew_fork(hang_all, NULL, i);

        AWAIT_WHILE(atomic_load(&gate.shared->inside) < 2 * (i + 1));
        kill_process(child);
    }
    gate_come_back();
    AWAIT_WHILE(rows_of_others() < 3);
    /* Their sends are over, and that was less than a day ago. */
    database_run(gate.house.sql, "UPDATE tl_session SET ended_at = ended_at - INTERVAL 23 HOUR "
                                 "WHERE ended_at IS NOT NULL");
    for (int i = 0; i < 8; i++) {
        gate_expect(text_of("EARLY%d", i).is, TL_SUCCEEDED);
        usleep(150000); /* a beat gives the permit back, so the next one takes a share */
    }
    assert_int_equal(rows_of_others(), 3);
    database_run(gate.house.sql, "UPDATE tl_session SET ended_at = ended_at - INTERVAL 2 HOUR "
                                 "WHERE ended_at IS NOT NULL AND session_id IN "
                                 "(SELECT session_id FROM trade_channel_permit) LIMIT 2");
    await_rows_of_others(1, "LATE");
    /* Nobody takes a share of it any more. */
    limit_to(OP, 0, 0);
    database_run(gate.house.sql, "UPDATE tl_session SET ended_at = ended_at - INTERVAL 3000 DAY, "
                                 "swept_at = ended_at WHERE ended_at IS NOT NULL");
    client = house_operator(&gate.house);
    assert_status(tl_purge(client, &options, NULL), TL_OK);
    tl_client_close(client);
    assert_int_equal(rows_of_others(), 0);
}

/* ------------------------------------------------------------------------ one process -- */

/* A send that is under way. */
static void take_only_permit(tl_lock **held, const char *serial)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    const tl_key key = {serial, "C1", OP};

    options.max_hold_ms = 60000;
    options.channel = CHANNEL;
    assert_status(tl_lock_new(held, gate.house.client, &key, &options), TL_OK);
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
TEST_IN(a_limit_that_is_lifted_and_set_again, gate_open, gate_close)
{
    limit_to(OP, 1, 0);
    gate_await_beats();
    gate_expect("FIRST", TL_SUCCEEDED);
    database_expect(gate.house.sql, 1, "SELECT COUNT(*) FROM trade_channel_permit");
    limit_to(OP, 0, 0);
    AWAIT_WHILE(database_number(gate.house.sql, "SELECT COUNT(*) FROM trade_channel_permit") > 0);
}

static long long metric(const char *name)
{
    return (long long)metric_of(gate.house.client, name);
}

#define OF_LIMIT "{channel=\"" CHANNEL "\",operation=\"" OP "\""
#define REFUSED(lane, limit)                                                                       \
    metric("tradelock_channel_limit_refusals_total" OF_LIMIT ",lane=\"" lane "\",limit=\"" limit   \
           "\"}")

/* The limit is full: what is due is claimed, not sent, and has used up no attempt. */
TEST_IN(the_retry_lane_obeys, gate_open, gate_close)
{
    tl_worker *worker = NULL;
    tl_lock *held = NULL;

    house_leave_in_doubt(&gate.house, OP, CHANNEL, "D", 6);
    limit_to(NULL, 1, 0);
    gate_await_beats();
    take_only_permit(&held, "HELD");
    gate_expect("W1", TL_OVERLOADED);
    worker = house_worker(gate.house.workflows, 0);
    usleep(3000000);
    assert_int_equal(atomic_load(&gate.shared->sends), 0);
    assert_true(metric("tradelock_channel_limit_refusals_total{channel=\"" CHANNEL
                       "\",operation=\"\",lane=\"retry\",limit=\"sends\"}") > 0);
    /* A claim counts its attempt until it is put back. */
    database_expect(
        gate.house.sql, 0,
        "SELECT COALESCE(SUM(attempts), 0) FROM trade_lock WHERE lane = 'R' AND status = 'F'");
    database_expect(gate.house.sql, 0, "SELECT COUNT(*) FROM trade_lock WHERE parked IS NOT NULL");
    end_only_permit(held);
    AWAIT_WHILE(database_number(gate.house.sql,
                                "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND "
                                "status = 'Y'") < 7);
    assert_int_equal(atomic_load(&gate.shared->most), 1);
    tl_worker_free(worker);
}

/* What a process lets through, and what it does not. */
TEST_IN(a_process_counts, gate_open, gate_close)
{
    tl_lock *held = NULL;

    gate_await_beats();
    assert_int_equal(REFUSED("sync", "sends"), -1);
    limit_to(OP, 1, 1);
    gate_await_beats();
    assert_int_equal(REFUSED("sync", "sends"), 0);
    assert_int_equal(metric("tradelock_channel_sends_under_way" OF_LIMIT "}"), 0);
    take_only_permit(&held, "HELD");
    assert_int_equal(metric("tradelock_channel_sends_under_way" OF_LIMIT "}"), 1);
    gate_expect("W1", TL_OVERLOADED);
    gate_expect("W2", TL_OVERLOADED);
    assert_int_equal(REFUSED("sync", "sends"), 2);
    assert_int_equal(REFUSED("sync", "per_second"), 0);
    end_only_permit(held);
    for (int i = 0; i < 3; i++)
        (void)gate_run(text_of("R%d", i).is, NULL);
    assert_int_equal(metric("tradelock_channel_sends_under_way" OF_LIMIT "}"), 0);
    assert_true(REFUSED("sync", "per_second") > 0);
    assert_int_equal(REFUSED("sync", "sends"), 2);
    assert_int_equal(REFUSED("retry", "sends") + REFUSED("retry", "per_second"), 0);
}

/* What is there answers as ever, and a limit that is lifted holds nobody up. */
TEST_IN(a_trade_that_is_there_answers_as_ever, gate_open, gate_close)
{
    tl_lock *held = NULL;

    gate_expect("PAID", TL_SUCCEEDED);
    limit_to(OP, 1, 0);
    gate_await_beats();
    take_only_permit(&held, "HELD");
    gate_expect("PAID", TL_ALREADY_DONE);
    gate_expect("HELD", TL_MISMATCH);
    gate_expect("NEW", TL_OVERLOADED);
    assert_non_null(strstr(tl_error_message(), "at the limit that operators set"));
    assert_null(strstr(tl_error_message(), "contract"));
    limit_to(OP, 0, 0);
    gate_await_beats();
    gate_expect("NEW", TL_SUCCEEDED);
    end_only_permit(held);
}

/* A lock that was refused has no permit, and one that is freed gives it back. */
TEST_IN(permits_come_back, gate_open, gate_close)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    const tl_key key = {"TWICE", "C1", OP};
    tl_lock *held = NULL, *lock = NULL;

    limit_to(OP, 1, 0);
    gate_await_beats();
    options.max_hold_ms = 60000;
    assert_status(tl_lock_new(&held, gate.house.client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(held, 0), TL_GRANTED); /* it names no channel */
    options.channel = CHANNEL;
    for (int i = 0; i < 20; i++) {
        assert_status(tl_lock_new(&lock, gate.house.client, &key, &options), TL_OK);
        assert_status(tl_lock_ask(lock, 0), TL_BUSY);
        if (i % 2)
            assert_status(tl_lock_ask(lock, 50), TL_BUSY);
        tl_lock_free(lock);
    }
    gate_expect("NEW", TL_SUCCEEDED);
    take_only_permit(&lock, "LEFT");
    gate_expect("OTHER", TL_OVERLOADED);
    tl_lock_free(lock);
    gate_expect("OTHER", TL_SUCCEEDED);
    tl_lock_free(held);
}

/* Gives the permit back once this process has read the pause. */
static void *end_once_paused(void *held)
{
    while (tl_channel_check(gate.house.client, CHANNEL, OP) == TL_OK)
        usleep(1000);
    end_only_permit(held);
    return NULL;
}

/* A pause that is read while a compensating attempt waits for its permit holds for it, too. */
TEST_IN(a_pause_comes_while_one_waits, gate_open, gate_close)
{
    tl_client *operators = house_operator(&gate.house);
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    const tl_key key = {"DOUBT", "C1", OP};
    tl_ending ending = TL_ENDING_INIT;
    tl_pause pause = TL_PAUSE_INIT;
    tl_lock *lock = NULL, *held = NULL;
    pthread_t thread;

    limit_to(OP, 1, 0);
    gate_await_beats();
    take_only_permit(&lock, "DOUBT");
    ending.outcome = TL_OUTCOME_UNKNOWN;
    assert_status(tl_lock_finish(lock, &ending), TL_IN_DOUBT);
    tl_lock_free(lock);
    options.max_hold_ms = 60000;
    options.lane = TL_LANE_RETRY;
    assert_status(tl_lock_new(&lock, gate.house.client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    take_only_permit(&held, "HELD");
    assert_int_equal(pthread_create(&thread, NULL, end_once_paused, held), 0);
    pause.channel = CHANNEL;
    pause.op_code = OP;
    pause.actor = "ann";
    pause.reason = "maintenance";
    assert_status(tl_channel_pause(operators, &pause), TL_OK);
    assert_status(tl_lock_arm(lock, 1000), TL_OVERLOADED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    database_expect(gate.house.sql, 1,
                    "SELECT sends FROM trade_lock WHERE serial_no = 'DOUBT' AND lane = 'S'");
    assert_status(tl_lock_put_back(lock, &ending, NULL), TL_IN_DOUBT);
    tl_lock_free(lock);
    tl_client_close(operators);
}

struct waiting {
    tl_client *client;
    atomic_int asks, stop;
};

static void *wait_for_permits(void *context)
{
    struct waiting *w = context;
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;

    options.channel = CHANNEL;
    options.max_hold_ms = HOLD_MS;
    while (!atomic_load(&w->stop)) {
        const struct text serial = text_of("WAITS-%d", atomic_fetch_add(&w->asks, 1));
        const tl_key key = {serial.is, "C1", OP};
        tl_lock *lock = NULL;

        CREW_STATUS(tl_lock_new(&lock, w->client, &key, &options), TL_OK);
        CREW_STATUS(tl_lock_ask(lock, 0), TL_OVERLOADED);
        tl_lock_free(lock);
    }
    return NULL;
}

/* A child frees what it has copies of, though threads that it does not have wait for a permit. */
TEST_IN(a_child_waits_for_nobody, gate_open, gate_close)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    struct waiting w = {.client = NULL};
    pthread_t threads[2];
    tl_lock *held = NULL;

    limit_to(OP, 1, 0);
    gate_await_beats();
    take_only_permit(&held, "HELD");
    options.config_file = database_option_file(gate.house.db);
    assert_status(tl_client_open(&w.client, &options), TL_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_permits, &w), 0);
    /* Each ask but the first few moments of it is such a wait. */
    for (int i = 0; i < 10; i++) {
        const int asks = atomic_load(&w.asks);
        pid_t child;

        AWAIT_WHILE(atomic_load(&w.asks) == asks);
        usleep(100000);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(10);
            tl_client_close(w.client);
            _exit(0);
        }
        assert_int_equal(crew_wait(child), 0);
    }
    atomic_store(&w.stop, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    tl_client_close(w.client);
    end_only_permit(held);
}

/* An ask and an ending, whatever another channel's limits are; and with limits a block of permits
 * now and then. */
TEST_IN(who_has_no_limit_pays_nothing, gate_open_silent, gate_close)
{
    tl_client *client;
    tl_limit limit = TL_LIMIT_INIT;
    uint64_t limited;

    gate.takes_us = 0;
    (void)gate_cost("WARM");
    assert_int_equal(gate_cost("A"), 200);
    client = house_operator(&gate.house);
    assert_status(tl_channel_add(gate.house.client, "other", OP, NULL), TL_OK);
    limit.channel = "other";
    limit.sends = limit.per_second = 1;
    limit.actor = limit.reason = "r";
    assert_status(tl_channel_limit(client, &limit), TL_OK);
    tl_client_close(client);
    house_leave(&gate.house);
    gate_come_back();
    (void)gate_cost("COLD");
    assert_int_equal(gate_cost("B"), 200);
    limit_to(OP, 100, 0);
    house_leave(&gate.house);
    gate_come_back();
    (void)gate_cost("COLDER");
    limited = gate_cost("C");
    printf("100 payments of a limited channel: %d statements\n", (int)limited);
    assert_in_range(limited, 200, 204);
}

TEST_MAIN(limits)
{
    int failures;

    moments = crew_share(sizeof *moments);
    gate.callers = CALLERS;
    gate.hang_most = 2 * GATE_PROCESSES;
    gate_of(CHANNEL, pay, NULL);
    failures = tests_run(NULL, NULL);
    crew_unshare(moments, sizeof *moments);
    return failures;
}
