/* A process whose session was ended goes on under a new one; what it held under the old one stays
 * lost, however late it is looked at. */
#include "fixture.h"

#include "support/crew.h"
#include "support/tap.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/callback.h>

#include <poll.h>
#include <stdatomic.h>
#include <sys/wait.h>

/* Nobody but the test ends a session here, on however slow a machine. */
#define SETTINGS                                                                                   \
    "beat_ms=50ms\nsession_ms=60s\npool_wait_ms=400ms\ncommit_ms=2s\n"                             \
    "connect_timeout_s=10\n"

static fixture f;
static tap *line;
static char *far_file;

FIXTURE(setup)
{
    fixture_open(&f, SETTINGS);
    line = tap_start(server_socket(server_shared()));
    far_file = database_option_file_at(f.db, tap_socket(line), SETTINGS);
}

FIXTURE(teardown)
{
    assert_log_whole(&f);
    tap_free(line);
    remove(far_file);
    free(far_file);
    fixture_close(&f);
}

/* ------------------------------------------------------------------ a process -- */

/* A client and what it was told. */
struct process {
    tl_client *client;
    _Atomic(tl_client *) opened; /* for the thread that tells */
    atomic_int losses;
    char told_of[TL_UUID_TEXT]; /* the session that it was when it was told */
    int64_t told_alive_ms;
};

static void told(void *context)
{
    struct process *p = context;
    tl_client *client = atomic_load(&p->opened);

    snprintf(p->told_of, sizeof p->told_of, "%s", tl_client_session(client));
    p->told_alive_ms = tl_client_alive_ms(client);
    atomic_fetch_add(&p->losses, 1);
}

static void open_process(struct process *p, const char *file, unsigned flags)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;

    memset(p, 0, sizeof *p);
    options.config_file = file;
    options.flags = flags;
    options.program = "anew";
    options.loss = told;
    options.loss_context = p;
    CREW_STATUS(tl_client_open(&p->client, &options), TL_OK);
    atomic_store(&p->opened, p->client);
}

static void end_session(const char *session)
{
    database_run(f.sql,
                 "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6) WHERE session_id = "
                 "'%s'",
                 session);
}

/* Until the client lives under another session than this. */
static void await_anew(struct process *p, const char *session)
{
    AWAIT_WHILE(strcmp(tl_client_session(p->client), session) == 0 ||
                tl_client_alive_ms(p->client) == 0);
}

/* The process loses its session by hand, and takes another. */
static void lose_session(struct process *p)
{
    const char *old = tl_client_session(p->client);

    end_session(old);
    await_anew(p, old);
}

static int is_readable(int fd)
{
    struct pollfd watched = {fd, POLLIN, 0};

    return poll(&watched, 1, 0) == 1;
}

static int is_alive(const char *session)
{
    return database_number(f.sql,
                           "SELECT COUNT(*) FROM tl_session WHERE session_id = '%s' AND "
                           "ended_at IS NULL",
                           session) == 1;
}

static long long evidence_of(const char *serial)
{
    return database_number(f.sql,
                           "SELECT COUNT(*) FROM trade_evidence WHERE serial_no = '%s' "
                           "AND outcome = 'SUCCEEDED' AND source = 'fenced-out holder'",
                           serial);
}

static void await_opened(const char *serial)
{
    AWAIT_WHILE(database_number(f.sql,
                                "SELECT COUNT(*) FROM trade_lock WHERE serial_no = '%s' AND "
                                "lane = 'R' AND status = 'F' AND next_run_at IS NOT NULL",
                                serial) == 0);
}

/* The new session is as good as the first. */
static void expect_work(tl_client *client, const char *serial)
{
    tl_lock *lock = granted(client, serial, "c9", SYNC);

    assert_string_equal(tl_lock_view(lock)->session_id, tl_client_session(client));
    assert_true(tl_may_send(lock, 1));
    end_paid(lock);
}

static void expect_lost(tl_lock *lock, const char *serial)
{
    assert_false(tl_may_send(lock, 0));
    assert_int_equal(tl_lock_remaining_ms(lock), 0);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_LOST);
    assert_int_equal(evidence_of(serial), 1);
}

/* ---------------------------------------------------------------- trade locks -- */

/* `statement` takes the session away; nobody else is there to open its lanes. */
static void goes_on_after(const char *statement, const char *serial)
{
    struct process p;
    char first[TL_UUID_TEXT];
    const char *old;
    tl_lock *lock;

    open_process(&p, database_option_file(f.db), TL_CLIENT_NO_JANITOR);
    old = tl_client_session(p.client);
    snprintf(first, sizeof first, "%s", old);
    lock = granted(p.client, serial, "c1", SYNC);
    assert_true(tl_may_send(lock, 1));
    database_run(f.sql, "%s '%s'", statement, first);
    await_anew(&p, first);
    assert_string_equal(old, first); /* what was returned stays what it was */
    assert_int_equal(atomic_load(&p.losses), 1);
    assert_string_equal(p.told_of, first);
    assert_int_equal(p.told_alive_ms, 0);
    assert_true(is_readable(tl_client_loss_fd(p.client)));
    assert_true(is_alive(tl_client_session(p.client)));
    /* The row stands as it was: nobody has opened it yet. */
    assert_row(&f, serial, "c1", "WITHDRAW", "P 1 1");
    expect_lost(lock, serial);
    assert_row(&f, serial, "c1", "WITHDRAW", "P 1 1");
    expect_work(p.client, text_of("%s-next", serial).is);
    assert_int_equal(atomic_load(&p.losses), 1);
    tl_lock_free(lock);
    tl_client_close(p.client);
}

#define ENDED "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6) WHERE session_id ="

TEST(test_it_goes_on)
{
    goes_on_after(ENDED, "ended");
}

/* A row that is gone, though a beat of it was confirmed a moment ago, went with a restored
 * database: the process goes on, and is granted nothing until two have accepted that. */
TEST(test_a_row_that_is_gone)
{
    struct process p;
    char first[TL_UUID_TEXT];
    tl_lock *lock;
    tl_status status;

    open_process(&p, database_option_file(f.db), TL_CLIENT_NO_JANITOR);
    snprintf(first, sizeof first, "%s", tl_client_session(p.client));
    lock = granted(p.client, "gone", "c1", SYNC);
    database_run(f.sql, "DELETE FROM tl_session WHERE session_id = '%s'", first);
    await_anew(&p, first);
    expect_lost(lock, "gone");
    tl_lock_free(lock);
    tl_lock_free(ask(p.client, "gone-next", "c1", SYNC, &status));
    assert_status(status, TL_ASK_CHANNEL);
    database_expect(f.sql, 1, "SELECT tl_restored()");
    database_propose(f.sql);
    assert_status(tl_restore_accept(f.other, "bob", "a test", NULL), TL_OK);
    await_granting(p.client, "gone-await", "c1");
    await_granting(f.client, "gone-await-too", "c1");
    expect_work(p.client, "gone-after");
    tl_client_close(p.client);
}

static tl_status not_to_be_called(void *context, struct st_mysql *connection)
{
    (void)connection;
    ++*(int *)context;
    return TL_OK;
}

/* A connection of a caller's own, in a transaction. */
static MYSQL *caller_new(void)
{
    MYSQL *caller = database_connect(f.db);

    database_run(caller, "START TRANSACTION");
    return caller;
}

/* With business rows, in the caller's transaction, and submitted: each time the ending is late. */
TEST(test_every_ending_is_late)
{
    static const char *const serials[] = {"late-with", "late-in", "late-submitted"};
    tl_ending ending = TL_ENDING_INIT;
    tl_completion done = {NULL, NULL, TL_OK};
    tl_lock *locks[3];
    MYSQL *caller;
    struct process p;
    int calls = 0;

    ending.outcome = TL_OUTCOME_SUCCESS;
    open_process(&p, database_option_file(f.db), TL_CLIENT_NO_JANITOR);
    for (int i = 0; i < 3; i++)
        locks[i] = granted(p.client, serials[i], "c1", SYNC);
    lose_session(&p);
    assert_status(tl_lock_finish_with(locks[0], &ending, not_to_be_called, &calls, 2000), TL_LOST);
    assert_int_equal(calls, 0);
    caller = caller_new();
    assert_status(tl_lock_finish_in(locks[1], caller, &ending, TL_GUARD_ANY_IDLE), TL_ROLL_BACK);
    mysql_close(caller);
    expect_lost(locks[1], serials[1]);
    assert_status(tl_lock_finish_submit(locks[2], &ending, NULL, NULL), TL_OK);
    while (tl_client_completed(p.client, &done, 1) == 0)
        crew_sleep_ms(1);
    assert_status(done.status, TL_LOST);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(evidence_of(serials[i]), 1);
        assert_row(&f, serials[i], "c1", "WITHDRAW", "P 1 1");
        tl_lock_free(locks[i]);
    }
    tl_client_close(p.client);
}

/* The child has neither the old session nor the new one. */
TEST(test_a_fork)
{
    struct process p;
    tl_lock *lock;
    pid_t child;
    int status;

    open_process(&p, database_option_file(f.db), TL_CLIENT_NO_JANITOR);
    lose_session(&p);
    lock = granted(p.client, "forked", "c1", SYNC);
    child = fork();
    if (child == 0) {
        int wrong = tl_client_alive_ms(p.client) != 0 || tl_may_send(lock, 0) ||
                    tl_lock_ask(lock, 0) != TL_WRONG_PROCESS;

        tl_lock_free(lock);
        tl_client_close(p.client);
        _exit(wrong);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(tl_may_send(lock, 1));
    end_paid(lock);
    tl_client_close(p.client);
}

/* Its own janitor finds what it held, and the lanes are claimed under the new session. */
TEST(test_ended_again_and_again)
{
    tl_lock *locks[3];
    struct process p;

    open_process(&p, database_option_file(f.db), 0);
    for (int i = 0; i < 3; i++) {
        char serial[16];
        uint64_t told_times;

        snprintf(serial, sizeof serial, "again-%d", i);
        locks[i] = granted(p.client, serial, "c1", SYNC);
        lose_session(&p);
        await_opened(serial);
        assert_int_equal(atomic_load(&p.losses), i + 1);
        /* The descriptor tells of each. */
        assert_int_equal(read(tl_client_loss_fd(p.client), &told_times, sizeof told_times),
                         sizeof told_times);
        assert_int_equal(told_times, 1);
        assert_false(is_readable(tl_client_loss_fd(p.client)));
    }
    for (int i = 0; i < 3; i++) {
        char serial[16];

        snprintf(serial, sizeof serial, "again-%d", i);
        expect_lost(locks[i], serial);
        tl_lock_free(locks[i]);
    }
    expect_work(p.client, "again-next");
    tl_client_close(p.client);
}

TEST(test_ended_while_the_server_is_away)
{
    char first[TL_UUID_TEXT];
    struct process p;
    tl_lock *lock;

    open_process(&p, far_file, TL_CLIENT_NO_JANITOR);
    snprintf(first, sizeof first, "%s", tl_client_session(p.client));
    lock = granted(p.client, "away", "c1", SYNC);
    tap_down(line, 1);
    end_session(first);
    crew_sleep_ms(100); /* a beat or two that do not arrive */
    assert_int_equal(atomic_load(&p.losses), 0);
    tap_down(line, 0);
    await_anew(&p, first);
    assert_int_equal(atomic_load(&p.losses), 1);
    expect_lost(lock, "away");
    expect_work(p.client, "away-next");
    tl_lock_free(lock);
    tl_client_close(p.client);
}

/* ------------------------------------------------------------- what was in flight -- */

struct asking {
    tl_lock *lock;
    struct process *process;
    tl_status status;
};

/* Thread 0 asks; thread 1 ends the session while that travels, and lets it go on when the process
 * lives under the next one. */
static void ask_across(void *context, int number)
{
    struct asking *a = context;

    if (number == 0) {
        a->status = tl_lock_ask(a->lock, 0);
        return;
    }
    while (!tap_done(line))
        crew_sleep_ms(1);
    lose_session(a->process);
    tap_release(line);
}

static void travels(const char *serial, tap_act act)
{
    struct process p;
    struct asking a = {.process = &p};

    open_process(&p, far_file, TL_CLIENT_NO_JANITOR);
    a.lock = lock_new(p.client, serial, "c1", SYNC);
    tap_rule(line, serial, 0, act, 0);
    crew_threads(2, ask_across, &a);
    /* It was carried out, under a session that is over; the process lives. */
    assert_row(&f, serial, "c1", "WITHDRAW", "P 1 1");
    assert_true(tl_client_alive_ms(p.client) > 0);
    assert_status(a.status, TL_IN_DOUBT);
    assert_false(tl_may_send(a.lock, 0));
    assert_status(finish(a.lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_NOT_HELD);
    tl_lock_free(a.lock);
    tl_client_close(p.client);
}

TEST(test_a_grant_that_comes_too_late)
{
    travels("late-answer", TAP_DELAY_ANSWER);
    travels("late-request", TAP_DELAY_REQUEST);
}

/* The answer to an ask is lost, and the server away until the session is over.  first: what the
 * same handle hears from the same process afterwards; second: and then. */
static void settled_anew(const char *serial, tap_act act, tl_status first, tl_status second)
{
    struct process p;
    const char *old;
    tl_lock *lock;

    open_process(&p, far_file, TL_CLIENT_NO_JANITOR);
    old = tl_client_session(p.client);
    lock = lock_new(p.client, serial, "c1", SYNC);
    tap_rule(line, serial, 0, act, 1);
    assert_status(tl_lock_ask(lock, 0), TL_UNKNOWN);
    end_session(old);
    tap_down(line, 0);
    await_anew(&p, old);
    assert_status(tl_lock_ask(lock, 0), first);
    assert_false(tl_may_send(lock, 0));
    assert_status(tl_lock_ask(lock, 0), second);
    assert_int_equal(tl_may_send(lock, 1), second == TL_GRANTED);
    if (second == TL_GRANTED)
        assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
    tl_client_close(p.client);
}

TEST(test_an_ask_that_is_settled_under_the_next)
{
    settled_anew("was-written", TAP_LOSE_ANSWER, TL_IN_DOUBT, TL_IN_DOUBT);
    /* It never came to be: nothing is written under a session that is over. */
    settled_anew("was-not-written", TAP_LOSE_REQUEST, TL_SESSION_LOST, TL_GRANTED);
}

/* -------------------------------------------------------------- compensating -- */

static void make_due(const char *serial)
{
    end_in_doubt(granted(f.client, serial, "c1", SYNC));
    database_run(f.sql,
                 "UPDATE trade_lock SET next_run_at = UTC_TIMESTAMP(6) WHERE serial_no = "
                 "'%s' AND lane = 'R'",
                 serial);
}

TEST(test_a_claim_is_not_armed)
{
    tl_lock_options retry = retry_options();
    struct process p;
    tl_lock *lock;

    open_process(&p, database_option_file(f.db), TL_CLIENT_NO_JANITOR);
    make_due("claim");
    lock = granted(p.client, "claim", "c1", &retry);
    lose_session(&p);
    assert_status(tl_lock_arm(lock, 1000), TL_LOST);
    assert_row(&f, "claim", "c1", "WITHDRAW", "P 1 1");
    expect_lost(lock, "claim");
    tl_lock_free(lock);
    tl_client_close(p.client);
}

/* The one, among what other tests left to do. */
static tl_lock *claim_kept(tl_client *client)
{
    tl_claim_options wanted = TL_CLAIM_OPTIONS_INIT;
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_lock *locks[TL_CLAIM_MAX], *kept = NULL;

    wanted.op_code = "WITHDRAW";
    wanted.max_hold_ms = 60000;
    while (kept == NULL) {
        size_t count = TL_CLAIM_MAX;

        assert_true(crew_now_ms() < end_ms);
        database_run(f.sql, "UPDATE trade_lock SET next_run_at = UTC_TIMESTAMP(6) WHERE "
                            "serial_no = 'kept' AND lane = 'R' AND status = 'F'");
        assert_status(tl_claim_due(client, &wanted, locks, &count), TL_OK);
        for (size_t i = 0; i < count; i++) {
            if (strcmp(tl_lock_view(locks[i])->serial_no, "kept") != 0)
                tl_lock_free(locks[i]);
            else
                kept = locks[i];
        }
        wanted.suspects = !wanted.suspects;
    }
    return kept;
}

/* Claims whose commit was not answered stay with the client: granted never, since their session is
 * over when it is asked again. */
TEST(test_claims_that_were_kept)
{
    tl_claim_options wanted = TL_CLAIM_OPTIONS_INIT;
    tl_client *janitor = client_new(&f, 0);
    tl_lock *locks[4], *kept;
    size_t count = 4;
    struct process p;
    const char *old;

    wanted.op_code = "WITHDRAW";
    wanted.max_hold_ms = 60000;
    open_process(&p, far_file, TL_CLIENT_NO_JANITOR);
    old = tl_client_session(p.client);
    assert_status(tl_claim_due(p.client, &wanted, locks, &count), TL_OK);
    for (size_t i = 0; i < count; i++)
        tl_lock_free(locks[i]);
    count = 4; /* the connection is there: the next COMMIT is the claims' own */
    make_due("kept");
    tap_rule(line, "COMMIT", 0, TAP_LOSE_ANSWER, 1);
    assert_status(tl_claim_due(p.client, &wanted, locks, &count), TL_UNKNOWN);
    end_session(old);
    tap_down(line, 0);
    await_anew(&p, old);
    await_opened("kept");
    kept = claim_kept(p.client);
    assert_string_equal(tl_lock_view(kept)->session_id, tl_client_session(p.client));
    assert_true(tl_may_send(kept, 1));
    end_paid(kept);
    tl_client_close(p.client);
    tl_client_close(janitor);
}

/* ------------------------------------------------------------------ the other locks -- */

struct loss {
    atomic_int count;
    tl_status why;
};

static void lost_mutex(void *context, const char *resource, tl_status why)
{
    struct loss *loss = context;

    (void)resource;
    loss->why = why;
    atomic_fetch_add(&loss->count, 1);
}

static tl_mutex *mutex_of(tl_client *client, const char *resource, unsigned flags, int64_t lease_ms,
                          struct loss *loss)
{
    tl_mutex_options options = TL_MUTEX_OPTIONS_INIT;
    tl_mutex *mutex = NULL;

    options.flags = flags;
    options.lease_ms = lease_ms;
    options.max_hold_ms = 3600000;
    options.loss = loss != NULL ? lost_mutex : NULL;
    options.loss_context = loss;
    assert_status(tl_mutex_new(&mutex, client, resource, &options), TL_OK);
    return mutex;
}

static tl_rw *rw_of(tl_client *client, const char *resource)
{
    tl_rw_options options = TL_RW_OPTIONS_INIT;
    tl_rw *rw = NULL;

    options.max_hold_ms = 3600000;
    assert_status(tl_rw_new(&rw, client, resource, &options), TL_OK);
    return rw;
}

static void expect_mutex_lost(tl_mutex *mutex)
{
    assert_int_equal(tl_mutex_remaining_ms(mutex), 0);
    assert_status(tl_mutex_renew(mutex, 1000), TL_LOST);
    assert_status(tl_mutex_lock(mutex, 0), TL_LOST);
}

TEST(test_mutexes)
{
    struct loss loss = {0};
    struct process p;
    tl_mutex *watched, *mine, *same, *leased, *other;
    MYSQL *caller;

    open_process(&p, database_option_file(f.db), TL_CLIENT_NO_JANITOR);
    watched = mutex_of(p.client, "watched", 0, 0, &loss);
    mine = mutex_of(p.client, "mine", TL_MUTEX_BY_THREAD, 0, NULL);
    same = mutex_of(p.client, "mine", TL_MUTEX_BY_THREAD, 0, NULL);
    leased = mutex_of(p.client, "leased", 0, 600000, NULL);
    other = mutex_of(f.client, "watched", 0, 0, NULL);
    assert_status(tl_mutex_lock(watched, 0), TL_GRANTED);
    assert_status(tl_mutex_lock(mine, 0), TL_GRANTED);
    assert_status(tl_mutex_lock(leased, 0), TL_GRANTED);
    lose_session(&p);
    AWAIT_WHILE(atomic_load(&loss.count) == 0);
    assert_status(loss.why, TL_SESSION_LOST);
    expect_mutex_lost(watched);
    expect_mutex_lost(mine);
    caller = caller_new();
    assert_status(tl_mutex_guard(watched, caller, TL_GUARD_ANY_IDLE), TL_ROLL_BACK);
    assert_status(tl_mutex_guard(leased, caller, TL_GUARD_ANY_IDLE), TL_OK);
    mysql_close(caller);
    assert_status(tl_mutex_lock(same, 0), TL_LOST); /* by the thread's own hold */
    /* A lease of its own is no session's. */
    assert_true(tl_mutex_remaining_ms(leased) > 0);
    assert_status(tl_mutex_renew(leased, 600000), TL_OK);
    assert_status(tl_mutex_lock(other, 0), TL_GRANTED);
    assert_status(tl_mutex_unlock(watched), TL_LOST);
    assert_status(tl_mutex_lock(watched, 0), TL_BUSY);
    assert_status(tl_mutex_unlock(other), TL_OK);
    assert_status(tl_mutex_lock(watched, 0), TL_GRANTED);
    assert_true(tl_mutex_remaining_ms(watched) > 0);
    assert_int_equal(atomic_load(&loss.count), 1);
    tl_mutex_free(other);
    tl_mutex_free(watched);
    tl_mutex_free(same);
    tl_mutex_free(mine);
    tl_mutex_free(leased);
    tl_client_close(p.client);
}

TEST(test_readers_and_writers)
{
    struct process p;
    tl_rw *reader, *writer, *other;
    MYSQL *caller;

    open_process(&p, database_option_file(f.db), TL_CLIENT_NO_JANITOR);
    reader = rw_of(p.client, "read");
    writer = rw_of(p.client, "written");
    other = rw_of(f.client, "read");
    assert_status(tl_rw_read(reader, 0), TL_GRANTED);
    assert_status(tl_rw_write(writer, 0), TL_GRANTED);
    lose_session(&p);
    assert_int_equal(tl_rw_remaining_ms(reader), 0);
    assert_int_equal(tl_rw_remaining_ms(writer), 0);
    assert_status(tl_rw_renew(reader, 1000), TL_LOST);
    assert_status(tl_rw_downgrade(writer), TL_LOST);
    caller = caller_new();
    assert_status(tl_rw_guard(writer, caller, TL_GUARD_ANY_IDLE), TL_ROLL_BACK);
    assert_status(tl_rw_done(reader, caller, TL_GUARD_ANY_IDLE), TL_ROLL_BACK);
    mysql_close(caller);
    assert_status(tl_rw_write(other, 0), TL_GRANTED); /* the dead reader is freed */
    assert_status(tl_rw_unlock(reader), TL_LOST);
    assert_status(tl_rw_read(reader, 0), TL_BUSY);
    assert_status(tl_rw_unlock(other), TL_OK);
    assert_status(tl_rw_read(reader, 0), TL_GRANTED);
    assert_true(tl_rw_remaining_ms(reader) > 0);
    tl_rw_free(other);
    tl_rw_free(writer);
    tl_rw_free(reader);
    tl_client_close(p.client);
}

/* ----------------------------------------------------------------------- its end -- */

/* What was left under the old session is not held against the next one. */
TEST(test_it_ends_in_order)
{
    char last[TL_UUID_TEXT];
    struct process p;
    tl_lock *left;

    open_process(&p, database_option_file(f.db), TL_CLIENT_NO_JANITOR);
    left = granted(p.client, "left", "c1", SYNC);
    lose_session(&p);
    expect_work(p.client, "done");
    snprintf(last, sizeof last, "%s", tl_client_session(p.client));
    tl_lock_free(left);
    tl_client_close(p.client);
    database_expect(
        f.sql, 1,
        "SELECT settled AND ended_by = session_id FROM tl_session WHERE session_id = '%s'", last);
}

/* ------------------------------------------------------------------------ a crowd -- */

#define LOSSES 5

struct crowd {
    struct process process;
    atomic_int over, succeeded, lost, told_lost, doubt;
};

/* One trade to its end, whatever becomes of the session meanwhile. */
static void one_trade(struct crowd *c, const char *serial)
{
    tl_lock *lock = lock_new(c->process.client, serial, "crowd", SYNC);
    tl_status status;

    do {
        status = tl_lock_ask(lock, 0);
        if (status == TL_SESSION_LOST) {
            atomic_fetch_add(&c->told_lost, 1);
            crew_sleep_ms(1);
        }
    } while (tl_status_class(status) == TL_CLASS_RETRY || status == TL_UNKNOWN);
    if (status == TL_IN_DOUBT) { /* it was granted to a session that is over */
        atomic_fetch_add(&c->doubt, 1);
        tl_lock_free(lock);
        return;
    }
    CREW_STATUS(status, TL_GRANTED);
    do {
        status = finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE);
    } while (tl_status_class(status) == TL_CLASS_RETRY || status == TL_UNKNOWN);
    if (status == TL_LOST) {
        CREW_CHECK(!tl_may_send(lock, 0));
        atomic_fetch_add(&c->lost, 1);
    } else {
        CREW_STATUS(status, TL_SUCCEEDED);
        atomic_fetch_add(&c->succeeded, 1);
    }
    tl_lock_free(lock);
}

static void work_or_take_away(void *context, int number)
{
    struct crowd *c = context;

    if (number == 0) {
        for (int i = 0; i < LOSSES; i++) {
            lose_session(&c->process);
            crew_sleep_ms(20);
        }
        atomic_store(&c->over, 1);
        return;
    }
    for (int i = 0; !atomic_load(&c->over); i++)
        one_trade(c, text_of("crowd-%d-%d", number, i).is);
}

static long long crowd_number(const char *where)
{
    return database_number(f.sql,
                           "SELECT COUNT(*) FROM trade_lock WHERE cust_no = 'crowd' AND lane = 'S' "
                           "AND %s",
                           where);
}

/* Groups of steps of both sessions, while one takes the other's place. */
TEST(test_a_crowd)
{
    struct crowd c = {.over = 0};

    open_process(&c.process, database_option_file(f.db), TL_CLIENT_NO_JANITOR);
    crew_threads((int)crew_number("threads", 24) + 1, work_or_take_away, &c);
    assert_int_equal(atomic_load(&c.process.losses), LOSSES);
    assert_int_equal(crowd_number("status = 'Y'"), atomic_load(&c.succeeded));
    assert_int_equal(crowd_number("status = 'P'"), atomic_load(&c.lost) + atomic_load(&c.doubt));
    database_expect(
        f.sql, atomic_load(&c.lost),
        "SELECT COUNT(*) FROM trade_evidence WHERE cust_no = 'crowd' AND outcome = 'SUCCEEDED'");
    print_message("a crowd: %d succeeded, %d lost, %d in doubt, %d times told\n",
                  atomic_load(&c.succeeded), atomic_load(&c.lost), atomic_load(&c.doubt),
                  atomic_load(&c.told_lost));
    expect_work(c.process.client, "crowd-next");
    tl_client_close(c.process.client);
}

TESTS_OF(anew, setup, teardown)
