/* Sessions: heartbeats, observers, the janitor, and processes that sleep or die. */
#include "fixture.h"

#include "support/crew.h"
#include "support/tap.h"
#include "support/theme.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#define BEAT_MS 50
#define SESSION_MS 4000
#define COMMON "pool_wait_ms=500ms\ncommit_ms=500ms\nconnect_timeout_s=10\nread_timeout_s=30\n"
/* Who is to die does so soon; who looks on must not, on however slow a machine, nor begin anew to
 * count because two beats of its own were a moment too far apart. */
#define MORTAL COMMON "beat_ms=50ms\nsession_ms=4s\n"
#define LASTING COMMON "beat_ms=1s\nsession_ms=30s\n"
/* Over before a heartbeat that is not answered is given up and sent again. */
#define BRIEF COMMON "beat_ms=50ms\nsession_ms=800ms\n"

static database *base;
static char *mortal_file;
static MYSQL *sql;

FIXTURE(setup)
{
    base = database_new(server_shared(), LASTING);
    mortal_file = database_option_file_at(base, server_socket(server_shared()), MORTAL);
    sql = database_connect(base);
}

FIXTURE(teardown)
{
    fixture f = {.db = base, .sql = sql};

    assert_log_whole(&f);
    mysql_close(sql);
    remove(mortal_file);
    free(mortal_file);
    database_free(base);
}

struct losses {
    int count;
};

static void count_loss(void *context)
{
    __atomic_add_fetch(&((struct losses *)context)->count, 1, __ATOMIC_SEQ_CST);
}

static tl_client *open_client(const char *file, unsigned flags, struct losses *losses)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = file;
    options.flags = flags;
    options.program = "session";
    options.loss = losses != NULL ? count_loss : NULL;
    options.loss_context = losses;
    CREW_STATUS(tl_client_open(&client, &options), TL_OK);
    return client;
}

static tl_client *near(unsigned flags)
{
    return open_client(database_option_file(base), flags, NULL);
}

static tl_client *mortal(void)
{
    return open_client(mortal_file, TL_CLIENT_NO_JANITOR, NULL);
}

static tl_lock_options mutex_options(void)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;

    options.flags = TL_ASK_REPEATABLE;
    options.max_hold_ms = 60000;
    return options;
}

static void await_ended(const char *session)
{
    database_await(sql, 1, "SELECT ended_at IS NOT NULL FROM tl_session WHERE session_id='%s'",
                   session);
}

static int is_readable(int fd)
{
    struct pollfd watched = {fd, POLLIN, 0};

    return poll(&watched, 1, 0) == 1;
}

static tl_stats stats_of(const tl_client *client)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    assert_status(tl_client_stats(client, &stats), TL_OK);
    return stats;
}

static void await_loss(const tl_client *client, const struct losses *losses)
{
    AWAIT_WHILE(__atomic_load_n(&losses->count, __ATOMIC_SEQ_CST) == 0);
    assert_true(is_readable(tl_client_loss_fd(client)));
}

/* It goes on under another session. */
static void expect_it_goes_on(tl_client *far, const char *session)
{
    tl_lock *asked = lock_new(far, "h2", "c1", SYNC);
    int64_t end_ms = crew_now_ms() + 2 * PATIENCE_MS;
    tl_status status;

    do
        status = tl_lock_ask(asked, 0);
    while (tl_status_class(status) == TL_CLASS_RETRY && crew_now_ms() < end_ms);
    assert_status(status, TL_GRANTED);
    assert_string_not_equal(tl_lock_view(asked)->session_id, session);
    assert_true(tl_may_send(asked, 1));
    end_paid(asked);
}

/* From now on no heartbeat arrives, however long it takes until somebody minds. */
static void stall_beats(tap *line, const char *session)
{
    tap_rule(line, session, 0, TAP_STALL_ALL, 0);
}

struct delayed {
    tl_lock *lock;
    tl_status status;
};

static void ask_delayed(void *context, int number)
{
    struct delayed *one = context;
    (void)number;

    one->status = tl_lock_ask(one->lock, 0);
}

static tap *delaying;
static const char *delayed_session;

static void release_later(void *context, int number)
{
    if (number == 0) {
        ask_delayed(context, 0);
        return;
    }
    while (!tap_done(delaying)) /* the ask is on its way: now the beats */
        crew_sleep_ms(1);
    stall_beats(delaying, delayed_session);
    await_ended(delayed_session);
    tap_release(delaying);
}

static void end_meanwhile(void *context, int number)
{
    tl_lock_options retry = retry_options();
    tl_client *other;
    tl_lock *lock;

    if (number == 0) {
        ask_delayed(context, 0);
        return;
    }
    while (!tap_done(delaying))
        crew_sleep_ms(1);
    crew_sleep_ms(310);
    other = near(TL_CLIENT_NO_JANITOR);
    lock = granted(other, "slow", "c1", &retry);
    CREW_STATUS(finish(lock, TL_OUTCOME_FAILURE, TL_PROOF_NOT_FOUND), TL_FAILED);
    tl_lock_free(lock);
    tl_client_close(other);
    tap_release(delaying);
}

/* Until the child says so; one that ends before never will. */
static void await_child(pid_t child, const volatile int *said)
{
    while (!*said) {
        if (waitpid(child, NULL, WNOHANG) == child)
            server_panic("a child ended early");
        crew_sleep_ms(1);
    }
}

/* What a child and its parent tell each other. */
struct told {
    volatile int holding, go_on, may_send, ask_class, anew;
    volatile tl_status finished;
};

static void sleeper(void *context, int number)
{
    struct told *told = context;
    tl_client *client = mortal();
    tl_lock_options options = sync_options("x"), mutex = mutex_options();
    tl_lock *lock = granted(client, "z1", "c1", &options), *asked;
    char session[64];

    (void)number;
    snprintf(session, sizeof session, "%s", tl_client_session(client));
    asked = lock_new(client, "z2", "c1", &mutex);
    CREW_CHECK(tl_may_send(lock, 1));
    told->holding = 1;
    while (!told->go_on)
        crew_sleep_ms(1);
    told->may_send = tl_may_send(lock, 0);
    told->ask_class = (int)tl_status_class(tl_lock_ask(asked, 0));
    told->anew = strcmp(session, tl_client_session(client)) != 0;
    told->finished = finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE);
    tl_lock_free(asked);
    tl_lock_free(lock);
    tl_client_close(client);
}

TEST(test_a_stopped_process)
{
    struct told *told = crew_share(sizeof *told);
    pid_t child = crew_fork(sleeper, told, 0);
    tl_client *observer;

    await_child(child, &told->holding);
    kill(child, SIGSTOP);
    observer = near(0);
    /* Observed, ended, opened. */
    database_await(sql, 1, "SELECT COUNT(*) FROM trade_lock WHERE serial_no='%s' AND lane='R'",
                   "z1");
    database_expect(sql, 1,
                    "SELECT COUNT(*) FROM tl_session WHERE ended_at IS NOT NULL AND ended_by='%s'",
                    tl_client_session(observer));
    told->go_on = 1;
    kill(child, SIGCONT);
    assert_int_equal(crew_wait(child), 0);
    assert_false(told->may_send);
    /* Only a heartbeat that was faster, and took another session, lets it ask. */
    assert_true(told->ask_class != TL_CLASS_DONE || told->anew);
    assert_status(told->finished, TL_LOST);
    database_expect(
        sql, 1, "SELECT COUNT(*) FROM trade_lock WHERE serial_no='z1' AND status='P' AND lane='S'");
    database_expect(
        sql, 1, "SELECT COUNT(*) FROM trade_evidence WHERE serial_no='z1' AND outcome='SUCCEEDED'");
    tl_client_close(observer);
    crew_unshare(told, sizeof *told);
}

static void lose_by_hand(const char *serial, const char *statement)
{
    struct losses losses = {0};
    tl_client *client = open_client(database_option_file(base), TL_CLIENT_NO_JANITOR, &losses);
    tl_client *other = near(TL_CLIENT_NO_JANITOR);
    tl_lock_options options = sync_options("x"), mutex = mutex_options();
    tl_lock *lock = granted(client, serial, "c1", &options), *asked;
    tl_lock *held = granted(client, serial, "c2", &mutex);
    tl_status status;

    (void)tl_lock_view(held);
    database_run(sql, "%s '%s'", statement, tl_client_session(client));
    await_loss(client, &losses);
    asked = ask(other, serial, "c1", &options, &status);
    assert_status(status, TL_IN_DOUBT);
    tl_lock_free(asked);
    asked = ask(other, serial, "c2", &mutex, &status);
    assert_status(status, TL_GRANTED);
    assert_status(finish(held, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_LOST);
    end_paid(asked);
    tl_lock_free(held);
    tl_lock_free(lock);
    tl_client_close(client);
    tl_client_close(other);
}

struct holder {
    volatile int holding;
    long locks;
};

static void hold_many(void *context, int number)
{
    struct holder *holder = context;
    tl_client *client = mortal();

    (void)number;
    for (long i = 0; i < holder->locks; i++)
        tl_lock_free(granted(client, text_of("many-%ld", i).is, "m", SYNC));
    holder->holding = 1;
    for (;;)
        pause();
}

/* More P rows of the same session than asking for one by one would make in time. */
static void add_rows(const char *session, long rows)
{
    database_run(sql,
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                 "thread_no, session_id, token, fence, rev, sends, max_hold_until, "
                 "next_run_at, created_at, updated_at) SELECT 'm', CONCAT('more-', seq), "
                 "'WITHDRAW', 'S', 'P', 'ask', UUID(), '%s', RANDOM_BYTES(16), 1, 1, 1, "
                 "UTC_TIMESTAMP() + INTERVAL 1 DAY, UTC_TIMESTAMP() + INTERVAL 1 DAY, "
                 "UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) FROM seq_1_to_%ld",
                 session, rows);
}

/* An heir counts what it opened at the end of its round, which another heir that finds nothing left
 * does not wait for. */
static void await_opened(tl_client *const heirs[2], uint64_t wanted)
{
    AWAIT_WHILE(stats_of(heirs[0]).opened + stats_of(heirs[1]).opened != wanted);
}

/* Two heirs of a process that died with many locks: each lane is opened once, nothing is left
 * behind, and neither heir looks dead meanwhile. */
TEST(test_a_dead_process_with_many_locks)
{
    struct holder *holder = crew_share(sizeof *holder);
    tl_client *heirs[2];
    long more = crew_number("rows", 400);
    int64_t least_ms = INT64_MAX;
    char *session;
    pid_t child;

    database_run(sql, "DELETE FROM tl_session");
    holder->locks = 20;
    child = crew_fork(hold_many, holder, 0);
    await_child(child, &holder->holding);
    session = database_text(sql, "SELECT session_id FROM tl_session");
    add_rows(session, more);
    kill(child, SIGKILL);
    (void)crew_wait(child);
    for (int i = 0; i < 2; i++)
        heirs[i] = near(0);
    while (database_number(sql,
                           "SELECT swept_at IS NULL FROM tl_session WHERE "
                           "session_id='%s'",
                           session)) {
        for (int i = 0; i < 2; i++)
            if (tl_client_alive_ms(heirs[i]) < least_ms)
                least_ms = tl_client_alive_ms(heirs[i]);
        crew_sleep_ms(5);
    }
    database_expect(sql, 0,
                    "SELECT COUNT(*) FROM trade_lock WHERE cust_no='m' AND session_id IS NOT NULL");
    database_expect(sql, holder->locks + more,
                    "SELECT COUNT(*) FROM trade_lock WHERE cust_no='m' AND lane='R' AND "
                    "next_run_at IS NOT NULL");
    database_expect(sql, holder->locks + more,
                    "SELECT COUNT(*) FROM trade_lock_log WHERE cust_no='m' AND step='reap' AND "
                    "op_code='WITHDRAW'");
    assert_true(least_ms > 0);
    await_opened(heirs, (uint64_t)(holder->locks + more));
    for (int i = 0; i < 2; i++)
        tl_client_close(heirs[i]);
    free(session);
    crew_unshare(holder, sizeof *holder);
}

TEST(test_confirmed_unreachable_lost)
{
    tap *line = tap_start(server_socket(server_shared()));
    char *file = database_option_file_at(base, tap_socket(line), MORTAL);
    struct losses losses = {0};
    tl_client *far = open_client(file, TL_CLIENT_NO_JANITOR, &losses);
    tl_client *observer;
    tl_lock *lock = granted(far, "h1", "c1", SYNC), *asked;
    tl_status status;
    char session[TL_UUID_TEXT];
    tl_stats before;
    int64_t end_ms = crew_now_ms() + 2 * PATIENCE_MS;

    strcpy(session, tl_client_session(far));
    while (stats_of(far).beats < 3)
        crew_sleep_ms(5);
    assert_in_range(tl_client_alive_ms(far), 1, SESSION_MS);
    assert_true(tl_may_send(lock, 1));

    before = stats_of(far);
    tap_down(line, 1);
    observer = near(0);
    while (tl_client_alive_ms(far) > 0) {
        assert_true(crew_now_ms() < end_ms);
        crew_sleep_ms(5);
    }
    /* Not certain any more, and not lost either. */
    assert_false(tl_may_send(lock, 0));
    assert_int_equal(tl_lock_remaining_ms(lock), 0);
    assert_true(stats_of(far).beats_unreachable > before.beats_unreachable);
    asked = ask(far, "h2", "c1", SYNC, &status);
    assert_status(status, TL_UNREACHABLE);
    tl_lock_free(asked);
    assert_int_equal(losses.count, 0);
    assert_false(is_readable(tl_client_loss_fd(far)));

    await_ended(session);
    database_await(sql, 1, "SELECT COUNT(*) FROM trade_lock WHERE serial_no='%s' AND lane='R'",
                   "h1");
    tap_down(line, 0);
    await_loss(far, &losses);
    assert_false(tl_may_send(lock, 0));
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_LOST);
    database_expect(
        sql, 1, "SELECT COUNT(*) FROM trade_evidence WHERE serial_no='h1' AND outcome='SUCCEEDED'");
    expect_it_goes_on(far, session);
    crew_sleep_ms(3 * BEAT_MS);
    assert_int_equal(losses.count, 1);
    tl_lock_free(lock);
    tl_client_close(far);
    tl_client_close(observer);
    tap_free(line);
    remove(file);
    free(file);
}

/* Heartbeats do not arrive while asks do: what is asked for now could be somebody else's already,
 * before the ask or while it travels. */
TEST(test_nothing_is_granted_to_a_dead_session)
{
    tap *line = tap_start(server_socket(server_shared()));
    char *file = database_option_file_at(base, tap_socket(line), BRIEF);
    tl_client *far = open_client(file, TL_CLIENT_NO_JANITOR, NULL);
    tl_client *observer = near(0);
    tl_lock_options options = mutex_options();
    tl_lock *before, *after, *taken;

    before = lock_new(far, "d1", "c1", &options);
    after = lock_new(far, "d2", "c1", &options);
    stall_beats(line, tl_client_session(far));
    await_ended(tl_client_session(far));
    assert_int_equal(tl_client_alive_ms(far), 0);
    assert_status(tl_lock_ask(after, 0), TL_UNREACHABLE);
    taken = granted(observer, "d2", "c1", &options);
    tl_lock_free(taken);
    tl_lock_free(before);
    tl_lock_free(after);
    tl_client_close(far);
    tl_client_close(observer);
    tap_free(line);
    remove(file);
    free(file);
}

TEST(test_an_ask_that_outlives_its_session)
{
    tap *line = tap_start(server_socket(server_shared()));
    char *file =
        database_option_file_at(base, tap_socket(line), "beat_ms=50ms\nsession_ms=800ms\n");
    tl_client *far = open_client(file, TL_CLIENT_NO_JANITOR, NULL);
    tl_client *observer = near(TL_CLIENT_NO_JANITOR);
    tl_lock_options options = mutex_options();
    struct delayed one = {.lock = lock_new(far, "travels", "c1", &options)};
    tl_lock *taken;

    delaying = line;
    delayed_session = tl_client_session(far);
    tap_rule(line, "travels", 0, TAP_DELAY_REQUEST, 0);
    crew_threads(2, release_later, &one);
    /* The row was written, under a session that is dead. */
    database_expect(sql, 1, "SELECT COUNT(*) FROM trade_lock_log WHERE serial_no='travels'");
    assert_int_equal(tl_status_class(one.status), TL_CLASS_CONFLICT);
    assert_false(tl_may_send(one.lock, 0));
    taken = granted(observer, "travels", "c1", &options);
    tl_lock_free(taken);
    tl_lock_free(one.lock);
    tl_client_close(far);
    tl_client_close(observer);
    tap_free(line);
    remove(file);
    free(file);
}

/* The answer comes after the lock's whole max_hold, and after somebody else has ended the trade;
 * the session lives.  "Granted" was true once, and is not true now. */
TEST(test_a_grant_that_is_answered_too_late)
{
    tap *line = tap_start(server_socket(server_shared()));
    char *file = database_option_file_at(base, tap_socket(line),
                                         "beat_ms=50ms\nsession_ms=30s\nread_timeout_s=60\n");
    tl_client *far = open_client(file, TL_CLIENT_NO_JANITOR, NULL);
    tl_lock_options options = sync_options("x");
    struct delayed one = {.status = TL_OK};

    options.max_hold_ms = 300;
    one.lock = lock_new(far, "slow", "c1", &options);
    delaying = line;
    tap_rule(line, "slow", 0, TAP_DELAY_ANSWER, 0);
    crew_threads(2, end_meanwhile, &one);
    assert_true(tl_client_alive_ms(far) > 0);
    assert_status(one.status, TL_FAILED);
    assert_false(tl_may_send(one.lock, 0));
    tl_lock_free(one.lock);
    tl_client_close(far);
    tap_free(line);
    remove(file);
    free(file);
}

/* A janitor whose statement is never answered delays no beat. */
TEST(test_a_stalled_janitor)
{
    tap *line = tap_start(server_socket(server_shared()));
    char *file = database_option_file_at(
        base, tap_socket(line), "beat_ms=50ms\nsession_ms=30s\nread_timeout_s=600\npool_size=1\n");
    tl_client *far = open_client(file, 0, NULL), *dying = near(TL_CLIENT_NO_JANITOR);
    uint64_t beats;

    /* The janitor alone asks for what a dead session left. */
    tap_rule(line, tl_client_session(dying), 0, TAP_DELAY_REQUEST, 0);
    tl_lock_free(granted(dying, "left", "c1", SYNC));
    tl_client_close(dying);
    AWAIT_WHILE(!tap_done(line));
    beats = stats_of(far).beats;
    AWAIT_WHILE(stats_of(far).beats < beats + 20);
    tap_release(line);
    tl_client_close(far);
    tap_free(line);
    remove(file);
    free(file);
}

TEST(test_a_session_ended_by_hand)
{
    /* One whose row is removed finds that the database was restored (test_restored.c). */
    lose_by_hand("r2", "UPDATE tl_session SET ended_at=UTC_TIMESTAMP(6) WHERE session_id =");
}

/* A pool of one connection is small, and enough. */
TEST(test_a_janitor_with_one_connection)
{
    tl_client *dying = near(TL_CLIENT_NO_JANITOR), *heir;
    char *file =
        database_option_file_at(base, server_socket(server_shared()), LASTING "pool_size=1\n");

    tl_lock_free(granted(dying, "one", "c1", SYNC));
    tl_client_close(dying);
    heir = open_client(file, 0, NULL);
    database_await(sql, 1, "SELECT COUNT(*) FROM trade_lock WHERE serial_no='%s' AND lane='R'",
                   "one");
    tl_client_close(heir);
    remove(file);
    free(file);
}

/* What a send that is on its way has locked is left to a later round; the others go. */
TEST(test_a_round_passes_over_what_is_locked)
{
    tl_client *client = near(0);
    MYSQL *other = database_connect(base);
    tl_lock *lock = lock_new(client, "locked", "c1", SYNC);
    long long rounds;

    database_run(other, "START TRANSACTION");
    database_run(other, "INSERT INTO tl_receipt SELECT session_id, RANDOM_BYTES(16) FROM"
                        " tl_session WHERE ended_at IS NULL");
    rounds = database_number(sql, "SELECT SUM(rounds) FROM tl_beat");
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    end_paid(lock);
    database_await(sql, 1, "SELECT SUM(rounds) > %lld FROM tl_beat", rounds);
    database_await(sql, 0, "SELECT COUNT(*) FROM tl_receipt");
    database_run(other, "ROLLBACK");
    mysql_close(other);
    tl_client_close(client);
}

TESTS_OF(session, setup, teardown)
