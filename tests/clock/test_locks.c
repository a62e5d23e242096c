/*
 * The server's clock is set while locks are held, and while sends of a process that died count at a
 * limited channel.  A lock is one holder's until its time is over by a clock that was not set, and
 * what a dead process had is free once its longest send is over: no sooner, and not much later.
 */
#include "stepping.h"

#include "workflows/house.h"
#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/resource.h>
#include <tradelock/rw_lock.h>

#include <signal.h>

#define SETTINGS                                                                                   \
    "site=clock\nbeat_ms=100ms\nsession_ms=2s\nmax_hold_ms=2s\nexecute_ms=800ms\n"                 \
    "commit_ms=1s\nschedule=100ms\nbusiness_lock_wait_s=1\nclock_margin_ms=100ms\n"
/* Of itself such a process looks at nothing while a test lasts. */
#define UNAWARE "site=clock\nbeat_ms=60s\nsession_ms=10m\nclock_margin_ms=100ms\n"
/* Such a process learns of it last. */
#define LATE "site=clock\nbeat_ms=2s\nsession_ms=30s\nclock_margin_ms=100ms\n"
#define AWARE "site=clock\nbeat_ms=100ms\nsession_ms=30s\nclock_margin_ms=100ms\n"
#define HOUR_MS 3600000
#define LONG_MS 60000
#define SHORT_MS 4000

static stepping *server_here;
static house self;

FIXTURE(open_house)
{
    server_here = stepping_start();
    house_open(&self, WITHDRAW_IDEMPOTENT, SETTINGS, stepping_server(server_here));
}

FIXTURE(close_house)
{
    house_close(&self);
    server_free(stepping_server(server_here));
    stepping_free(server_here);
}

static tl_client *open_client(const char *settings)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    char *file =
        database_option_file_at(self.db, server_socket(stepping_server(server_here)), settings);
    tl_client *client = NULL;

    options.config_file = file;
    if (tl_client_open(&client, &options) != TL_OK)
        fail_msg("%s", tl_error_message());
    free(file);
    return client;
}

static int becomes(const char *condition)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;

    while (!database_number(self.sql, "SELECT %s", condition)) {
        if (crew_now_ms() >= end_ms)
            return 0;
        usleep(10000);
    }
    return 1;
}

/* ----------------------------------------------------------------------- kinds of locks -- */

struct kind {
    const char *name;
    void *(*make)(tl_client *client, int64_t hold_ms);
    tl_status (*ask)(void *lock);
    int64_t (*left_ms)(const void *lock);
    void (*free)(void *lock);
};

static void *make_mutex(tl_client *client, const char *name, int64_t lease_ms, int64_t max_hold_ms)
{
    tl_mutex_options options = TL_MUTEX_OPTIONS_INIT;
    tl_mutex *mutex = NULL;

    options.lease_ms = lease_ms;
    options.max_hold_ms = max_hold_ms;
    assert_status(tl_mutex_new(&mutex, client, name, &options), TL_OK);
    return mutex;
}

static void *make_session_mutex(tl_client *client, int64_t hold_ms)
{
    return make_mutex(client, "account/17", 0, hold_ms);
}

static void *make_lease_mutex(tl_client *client, int64_t hold_ms)
{
    return make_mutex(client, "account/42", hold_ms, HOUR_MS);
}

static tl_status ask_mutex(void *lock)
{
    return tl_mutex_lock(lock, 0);
}

static int64_t mutex_left_ms(const void *lock)
{
    return tl_mutex_remaining_ms(lock);
}

static void free_mutex(void *lock)
{
    tl_mutex_free(lock);
}

static void *make_rw(tl_client *client, const char *name, int64_t lease_ms, int64_t max_hold_ms)
{
    tl_rw_options options = TL_RW_OPTIONS_INIT;
    tl_rw *rw = NULL;

    options.lease_ms = lease_ms;
    options.max_hold_ms = max_hold_ms;
    assert_status(tl_rw_new(&rw, client, name, &options), TL_OK);
    return rw;
}

static void *make_session_rw(tl_client *client, int64_t hold_ms)
{
    return make_rw(client, "account/17", 0, hold_ms);
}

static void *make_lease_rw(tl_client *client, int64_t hold_ms)
{
    return make_rw(client, "account/42", hold_ms, HOUR_MS);
}

static tl_status ask_rw(void *lock)
{
    return tl_rw_write(lock, 0);
}

static int64_t rw_left_ms(const void *lock)
{
    return tl_rw_remaining_ms(lock);
}

static void free_rw(void *lock)
{
    tl_rw_free(lock);
}

static void *make_trade(tl_client *client, int64_t hold_ms)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_key key = {"NIGHTLY", "C1", "JOB"};
    tl_lock *lock = NULL;

    options.flags = TL_ASK_REPEATABLE;
    options.max_hold_ms = hold_ms;
    assert_status(tl_lock_new(&lock, client, &key, &options), TL_OK);
    return lock;
}

static tl_status ask_trade(void *lock)
{
    return tl_lock_ask(lock, 0);
}

static int64_t trade_left_ms(const void *lock)
{
    return tl_lock_remaining_ms(lock);
}

static void free_trade(void *lock)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = TL_OUTCOME_SUCCESS;
    (void)tl_lock_finish(lock, &ending);
    tl_lock_free(lock);
}

static const struct kind kinds[] = {
    {"a mutex of the session", make_session_mutex, ask_mutex, mutex_left_ms, free_mutex},
    {"a mutex with a lease", make_lease_mutex, ask_mutex, mutex_left_ms, free_mutex},
    {"a writer of the session", make_session_rw, ask_rw, rw_left_ms, free_rw},
    {"a writer with a lease", make_lease_rw, ask_rw, rw_left_ms, free_rw},
    {"a repeatable trade", make_trade, ask_trade, trade_left_ms, free_trade},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

/* Needs: the first one holds its lock certainly. */
static void expect_busy(const struct kind *kind, const void *first, tl_client *client, int64_t hold)
{
    void *second = kind->make(client, hold);
    const tl_status status = kind->ask(second);

    if (kind->left_ms(first) > 0 && status != TL_BUSY)
        fail_msg("%s: %s beside a holder that has %lld ms", kind->name, tl_status_name(status),
                 (long long)kind->left_ms(first));
    kind->free(second);
}

/* Forward by an hour, which is longer than any hold. */
TEST_IN(two_never_hold, open_house, close_house)
{
    tl_client *holding, *unaware;
    void *first[KINDS];

    holding = open_client(AWARE);
    unaware = open_client(UNAWARE);
    for (size_t i = 0; i < KINDS; i++) {
        first[i] = kinds[i].make(holding, LONG_MS);
        assert_status(kinds[i].ask(first[i]), TL_GRANTED);
    }
    for (int jump = 1; jump <= 2; jump++) {
        tl_client *fresh;
        char settled[80];

        stepping_set(server_here, jump * 2 * (int64_t)HOUR_MS);
        fresh = open_client(UNAWARE);
        for (size_t i = 0; i < KINDS; i++) {
            expect_busy(&kinds[i], first[i], unaware, LONG_MS);
            expect_busy(&kinds[i], first[i], fresh, LONG_MS);
        }
        snprintf(settled, sizeof settled, "steps = %d AND settled = %d FROM tl_clock", jump, jump);
        assert_true(becomes(settled));
        for (size_t i = 0; i < KINDS; i++) {
            assert_true(kinds[i].left_ms(first[i]) > 0);
            expect_busy(&kinds[i], first[i], unaware, LONG_MS);
            expect_busy(&kinds[i], first[i], holding, LONG_MS);
        }
        tl_client_close(fresh);
    }
    for (size_t i = 0; i < KINDS; i++) {
        void *next = kinds[i].make(unaware, LONG_MS);

        kinds[i].free(first[i]);
        if (kinds[i].ask(next) != TL_GRANTED)
            fail_msg("%s: %s", kinds[i].name, tl_error_message());
        kinds[i].free(next);
    }
    tl_client_close(unaware);
    tl_client_close(holding);
}

/* The holder stays, and its time is over: by its own clock before anybody else comes in, and no
 * later than a hold after the clock was set, whichever way. */
static void a_hold_ends(int64_t ahead_ms)
{
    tl_client *holding = open_client(AWARE), *asking = open_client(AWARE);
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    void *first[KINDS], *next[KINDS];

    for (size_t i = 0; i < KINDS; i++) {
        first[i] = kinds[i].make(holding, SHORT_MS);
        next[i] = kinds[i].make(asking, SHORT_MS);
        assert_status(kinds[i].ask(first[i]), TL_GRANTED);
    }
    stepping_set(server_here, ahead_ms);
    for (size_t i = 0; i < KINDS; i++) {
        int64_t left_ms;
        tl_status status;

        do {
            left_ms = kinds[i].left_ms(first[i]);
            status = kinds[i].ask(next[i]);
            if (left_ms > 0 && status == TL_GRANTED)
                left_ms = kinds[i].left_ms(first[i]);
            usleep(10000);
        } while (status == TL_BUSY && crew_now_ms() < end_ms);
        if (status != TL_GRANTED || left_ms > 0)
            fail_msg("%s: %s beside a holder that has %lld ms", kinds[i].name,
                     tl_status_name(status), (long long)left_ms);
    }
    for (size_t i = 0; i < KINDS; i++) {
        kinds[i].free(first[i]);
        kinds[i].free(next[i]);
    }
    tl_client_close(asking);
    tl_client_close(holding);
}

TEST_IN(a_hold_ends_forward, open_house, close_house)
{
    a_hold_ends(HOUR_MS);
}

TEST_IN(a_hold_ends_backward, open_house, close_house)
{
    a_hold_ends(-HOUR_MS);
}

/* What is kept for a while after an unlock is kept so long. */
static void a_minimum_hold_stands(int64_t ahead_ms)
{
    tl_client *client = open_client(AWARE), *late = open_client(LATE);
    tl_mutex_options options = TL_MUTEX_OPTIONS_INIT;
    const int64_t begun_ms = crew_now_ms();
    tl_mutex *job = NULL, *again = NULL;
    tl_status status;

    options.max_hold_ms = SHORT_MS;
    options.min_hold_ms = SHORT_MS;
    assert_status(tl_mutex_new(&job, client, "nightly", &options), TL_OK);
    assert_status(tl_mutex_new(&again, late, "nightly", &options), TL_OK);
    assert_status(tl_mutex_lock(job, 0), TL_GRANTED);
    assert_status(tl_mutex_unlock(job), TL_OK);
    stepping_set(server_here, ahead_ms);
    status = tl_mutex_lock(again, PATIENCE_MS);
    if (status != TL_GRANTED || crew_now_ms() - begun_ms < SHORT_MS)
        fail_msg("%s after %lld ms", tl_status_name(status), (long long)(crew_now_ms() - begun_ms));
    tl_mutex_free(job);
    tl_mutex_free(again);
    tl_client_close(late);
    tl_client_close(client);
}

TEST_IN(a_minimum_hold_stands_forward, open_house, close_house)
{
    a_minimum_hold_stands(HOUR_MS);
}

TEST_IN(a_minimum_hold_stands_backward, open_house, close_house)
{
    a_minimum_hold_stands(-HOUR_MS);
}

/* A holder that died with its lease long before the clock was set does not come to life by that. */
TEST_IN(the_dead_stay_dead, open_house, close_house)
{
    tl_client *client = open_client(AWARE);
    void *mutex = make_mutex(client, "old", 50, HOUR_MS);
    void *next;

    assert_status(ask_mutex(mutex), TL_GRANTED);
    database_run(self.sql, "UPDATE resource_lock SET rev = rev + 1, "
                           "locked_at = locked_at - INTERVAL 20 MINUTE, updated_at = locked_at, "
                           "lease_until = lease_until - INTERVAL 20 MINUTE, "
                           "max_hold_until = max_hold_until - INTERVAL 20 MINUTE");
    stepping_set(server_here, HOUR_MS);
    assert_true(becomes("steps = 1 AND settled = 1 FROM tl_clock"));
    next = make_mutex(client, "old", 0, LONG_MS);
    assert_status(tl_mutex_lock(next, PATIENCE_MS / 10), TL_GRANTED);
    free_mutex(next);
    free_mutex(mutex);
    tl_client_close(client);
}

/* ------------------------------------------------------- what a dead process had -- */

#define NARROW "narrow"
#define SEND_MS 6000

static tl_lock *new_send(tl_client *client, const char *serial)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_key key = {serial, "C1", "PAYOUT"};
    tl_lock *lock = NULL;

    options.channel = NARROW;
    options.max_hold_ms = SEND_MS;
    assert_status(tl_lock_new(&lock, client, &key, &options), TL_OK);
    return lock;
}

static void send_and_die(void *context, int number)
{
    tl_lock *lock = new_send(open_client("site=clock\nbeat_ms=100ms\nsession_ms=1s\n"), "DIES");

    (void)context;
    (void)number;
    CREW_STATUS(tl_lock_ask(lock, 0), TL_GRANTED);
    raise(SIGKILL);
}

static int64_t killed_ms;

/* A process dies with all the permits of the channel.  The house has left meanwhile. */
static void leave_a_dead_sender(void)
{
    pid_t child;

    database_run(self.sql, "INSERT INTO trade_channel_limit (channel, op_code, sends, decided_at, "
                           "reason, actor, account) VALUES ('" NARROW "', 'PAYOUT', 1, "
                           "UTC_TIMESTAMP(6), 'contract', 'ann', 'ann@%%')");
    house_leave(&self);
    child = crew_fork(send_and_die, NULL, 0);
    assert_int_not_equal(crew_wait(child), 0);
    killed_ms = crew_now_ms();
    house_reopen(&self);
    assert_true(becomes("ended_at IS NOT NULL FROM tl_session JOIN trade_channel_permit "
                        "USING (session_id)"));
}

/* Whoever would send begins when the last send can be over, and not much later. */
static void expect_begin(const char *what, tl_client *client, int64_t begun_ms)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_status status = TL_OVERLOADED;

    for (int i = 0; status == TL_OVERLOADED && crew_now_ms() < end_ms; i++) {
        char serial[16];
        tl_lock *lock;

        snprintf(serial, sizeof serial, "A%d", i);
        lock = new_send(client, serial);
        status = tl_lock_ask(lock, 0);
        tl_lock_free(lock);
        usleep(10000);
    }
    if (status != TL_GRANTED || crew_now_ms() - begun_ms < SEND_MS)
        fail_msg("%s: %s after %lld ms", what, tl_status_name(status),
                 (long long)(crew_now_ms() - begun_ms));
    printf("%s: after %lld ms\n", what, (long long)(crew_now_ms() - begun_ms));
}

TEST_IN(a_permit_comes_free_forward, open_house, close_house)
{
    tl_client *late;

    leave_a_dead_sender();
    late = open_client(LATE);
    stepping_set(server_here, HOUR_MS);
    expect_begin("forward", late, killed_ms);
    tl_client_close(late);
}

TEST_IN(a_permit_is_kept_by_a_new_process, open_house, close_house)
{
    tl_client *fresh;

    leave_a_dead_sender();
    stepping_set(server_here, HOUR_MS);
    fresh = open_client(AWARE);
    expect_begin("a new process", fresh, killed_ms);
    tl_client_close(fresh);
}

TEST_IN(a_permit_comes_free_backward, open_house, close_house)
{
    leave_a_dead_sender();
    stepping_set(server_here, -HOUR_MS);
    expect_begin("backward", self.client, killed_ms);
}

/* The last probe of an open breaker is still under way. */
static void a_probe_is_alone(int64_t ahead_ms)
{
    tl_client *client = open_client(AWARE);
    int64_t begun_ms;

    database_run(self.sql,
                 "INSERT INTO trade_channel_breaker (channel, op_code, unknowns, opened_at, "
                 "probe_s, window_at, window_sends, probe_no, next_at, hold_ms, decided_at, "
                 "reason, actor, account) SELECT '" NARROW "', 'PAYOUT', 3, now, 1, now, 1, 7, "
                 "now + INTERVAL %d MICROSECOND, %d, now, 'down', 'ann', 'ann@%%' "
                 "FROM (SELECT UTC_TIMESTAMP(6) AS now) n",
                 SEND_MS * 1000, SEND_MS);
    begun_ms = crew_now_ms();
    stepping_set(server_here, ahead_ms);
    crew_sleep_ms(300); /* the breaker is read within a beat */
    expect_begin("a probe", client, begun_ms);
    tl_client_close(client);
}

TEST_IN(a_probe_is_alone_forward, open_house, close_house)
{
    a_probe_is_alone(HOUR_MS);
}

TEST_IN(a_probe_is_alone_backward, open_house, close_house)
{
    a_probe_is_alone(-HOUR_MS);
}

TESTS_OF(locks, NULL, NULL)
