/* Which states of a handle may follow each other, and what is certain of a grant by itself. */
#include "lease/lease.h"

#include "base/clock.h"
#include "support/theme.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { STATES = LOCK_OVER + 1 };

/* From each state, in their order, the letters of those that may follow: as the picture in
 * lock/handle.h has it. */
static const char letters[STATES + 1] =
    "naHceALO"; /* new, ask, Held, caller, end, Arm, Lost, Over */
static const char *const next[STATES] = {
    "naH", "naH", "HceALO", "cHLO", "eHLO", "AH", "Ln", "On",
};

static int left; /* whether another server was accepted after that of the life */

static int is_left(const struct db_server *server)
{
    (void)server;
    return left;
}

static life one_life = {.is_left = is_left};
static const lock_method swept = {.is_swept = 1}, other = {.is_swept = 0};

static lock_handle in_state(const lock_method *method, lock_state state)
{
    lock_handle h = {.method = method, .state = state, .life = &one_life};

    return h;
}

/* In a process of its own, which an assertion ends. */
static int survives(const lock_method *method, lock_state from, lock_state to)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        const struct rlimit none = {0, 0};
        lock_handle h = in_state(method, from);

        (void)setrlimit(RLIMIT_CORE, &none);
        (void)signal(SIGABRT, SIG_DFL);
        (void)close(STDERR_FILENO);
        handle_become(&h, to);
        _exit(h.state == to ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status))
        return WEXITSTATUS(status) == 0;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    return 0;
}

TEST(test_states_that_may_follow)
{
    for (int from = 0; from < STATES; from++)
        for (int to = 0; to < STATES; to++)
            assert_int_equal(survives(&other, (lock_state)from, (lock_state)to),
                             strchr(next[from], letters[to]) != NULL);
}

/* The end of a session has to look for rows that a handle may still hold. */
TEST(test_handles_that_may_hold_are_counted)
{
    lock_handle h = in_state(&swept, LOCK_NEW), uncounted = in_state(&other, LOCK_NEW);

    atomic_store(&one_life.may_hold, 0);
    handle_become(&h, LOCK_ASK_UNKNOWN);
    assert_int_equal(atomic_load(&one_life.may_hold), 1);
    handle_become(&h, LOCK_HELD);
    handle_become(&uncounted, LOCK_HELD);
    assert_int_equal(atomic_load(&one_life.may_hold), 1);
    handle_become(&h, LOCK_OVER);
    assert_int_equal(atomic_load(&one_life.may_hold), 0);
    h = in_state(&swept, LOCK_NEW);
    handle_become(&h, LOCK_HELD);
    handle_become(&h, LOCK_LOST); /* its row may be in process all the same */
    assert_int_equal(atomic_load(&one_life.may_hold), 1);
}

static lock_grant grant_for(int64_t left_ms, int64_t hold_ms, int by_session)
{
    lock_grant grant = {.life = &one_life,
                        .by_session = by_session,
                        .until_ms = clock_boottime_ms() + left_ms,
                        .hold_until_ms = clock_boottime_ms() + hold_ms};

    return grant;
}

TEST(test_what_is_certain)
{
    lock_grant grant = grant_for(50000, 60000, 0);

    atomic_store(&one_life.certain_until_ms, clock_boottime_ms() + 10000);
    atomic_store(&one_life.over, 0);
    assert_in_range(grant_left_ms(&grant), 40000, 50000);
    grant.by_session = 1;
    assert_in_range(grant_left_ms(&grant), 1, 10000);
    left = 1;
    assert_int_equal(grant_left_ms(&grant), 0);
    left = 0;
    assert_in_range(grant_left_ms(&grant), 1, 10000);
    atomic_store(&one_life.over, 1);
    assert_int_equal(grant_left_ms(&grant), 0);
    grant = grant_for(50000, 60000, 0);
    atomic_store(&grant.lost, 1);
    assert_int_equal(grant_left_ms(&grant), 0);
}

TEST(test_a_renewal)
{
    lock_grant grant = grant_for(60000, 60000, 1);
    int64_t now_ms = clock_boottime_ms();

    atomic_store(&one_life.certain_until_ms, now_ms + 10000);
    atomic_store(&one_life.over, 0);
    grant_renew(&grant, now_ms + 30000, 1); /* in doubt: both may be true */
    assert_in_range(grant_left_ms(&grant), 1, 10000);
    grant_renew(&grant, now_ms + 40000, 1);
    assert_true(grant.until_ms == now_ms + 30000);
    grant_renew(&grant, now_ms + 40000, 0);
    assert_in_range(grant_left_ms(&grant), 30000, 40000);
    grant_renew(&grant, now_ms + 90000, 0);
    assert_true(grant.until_ms == grant.hold_until_ms);
}

TESTS_OF(handle, NULL, NULL)
