/* Threads that end and processes that fork while they hold locks. */
#include "fixture.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/lane.h>

#include <pthread.h>

WHOLE_FIXTURE_OF_ALL("beat_ms=50ms\nsession_ms=60s\n")

static void ask_in_thread(void *context, int number)
{
    tl_lock **lock = context;
    (void)number;

    CREW_STATUS(tl_lock_ask(*lock, 0), TL_GRANTED);
}

/* Who holds is proved by the handle, not by the thread, which may be gone. */
TEST(test_a_thread_that_ended)
{
    tl_lock *lock = lock_new(f.client, "thread", "c1", SYNC);
    const char *own = tl_thread_uuid();

    crew_threads(1, ask_in_thread, &lock);
    assert_true(tl_may_send(lock, 1000));
    assert_string_not_equal(tl_lock_view(lock)->thread_no, own);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    database_expect(
        f.sql, 2, "SELECT COUNT(DISTINCT thread_no) FROM trade_lock_log WHERE serial_no='thread'");
    tl_lock_free(lock);
}

/* Everything that the child's thread may try with its parent's handles. */
static void misuse(tl_lock *held, tl_lock *fresh)
{
    tl_ending ending = TL_ENDING_INIT;
    tl_key key = {"child", "c1", "WITHDRAW"};
    tl_claim_options claim = TL_CLAIM_OPTIONS_INIT;
    tl_stats stats = {.version = TL_STATS_VERSION};
    tl_lock *made = NULL, *claimed[1];
    size_t count = 1;

    ending.outcome = TL_OUTCOME_SUCCESS;
    claim.op_code = "WITHDRAW";
    claim.max_hold_ms = 1000;
    CREW_STATUS(tl_lock_ask(fresh, 0), TL_WRONG_PROCESS);
    CREW_STATUS(tl_lock_ask(fresh, 1000), TL_WRONG_PROCESS);
    CREW_STATUS(tl_lock_finish(held, &ending), TL_WRONG_PROCESS);
    CREW_STATUS(tl_lock_finish_in(held, f.sql, &ending, 0), TL_WRONG_PROCESS);
    CREW_STATUS(tl_lock_settle(held), TL_WRONG_PROCESS);
    CREW_CHECK(!tl_may_send(held, 0));
    CREW_CHECK(tl_lock_remaining_ms(held) == 0);
    CREW_CHECK(tl_client_alive_ms(f.client) == 0);
    CREW_STATUS(tl_lock_new(&made, f.client, &key, SYNC), TL_WRONG_PROCESS);
    CREW_STATUS(tl_claim_due(f.client, &claim, claimed, &count), TL_WRONG_PROCESS);
    CREW_STATUS(tl_reap(f.client, NULL), TL_WRONG_PROCESS);
    CREW_STATUS(tl_client_stats(f.client, &stats), TL_WRONG_PROCESS);
    CREW_CHECK(made == NULL);
}

struct inherited {
    tl_lock *held, *fresh;
};

static void child(void *context, int number)
{
    struct inherited *from = context;
    tl_client *own = NULL;
    tl_lock *lock;
    tl_status status;

    misuse(from->held, from->fresh);
    if (number == 1) {
        /* First a client of its own, then the inherited ones are freed. */
        own = client_new(&f, TL_CLIENT_NO_JANITOR);
        CREW_CHECK(strcmp(tl_client_session(own), tl_client_session(f.client)) != 0);
    }
    tl_lock_free(from->held);
    tl_lock_free(from->fresh);
    tl_client_close(f.client);
    tl_client_close(f.other);
    if (own == NULL)
        own = client_new(&f, TL_CLIENT_NO_JANITOR);
    lock = ask(own, "held", "c1", SYNC, &status);
    CREW_STATUS(status, TL_BUSY);
    tl_lock_free(lock);
    lock = granted(own, number == 0 ? "child-0" : "child-1", "c1", SYNC);
    CREW_STATUS(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
    tl_client_close(own);
}

TEST(test_a_child)
{
    struct inherited handles = {.held = granted(f.client, "held", "c1", SYNC),
                                .fresh = lock_new(f.client, "fresh", "c1", SYNC)};
    tl_stats stats = {.version = TL_STATS_VERSION};
    uint64_t beats;

    for (int number = 0; number < 2; number++)
        assert_int_equal(crew_wait(crew_fork(child, &handles, number)), 0);
    /* Neither connections nor session nor locks were harmed. */
    assert_status(tl_client_stats(f.client, &stats), TL_OK);
    beats = stats.beats;
    while (stats.beats < beats + 3) {
        assert_true(tl_client_alive_ms(f.client) > 0);
        crew_sleep_ms(5);
        assert_status(tl_client_stats(f.client, &stats), TL_OK);
    }
    assert_int_equal(stats.beats_unreachable, 0);
    assert_int_equal(stats.reconnects, 0);
    database_expect(f.sql, 1,
                    "SELECT COUNT(*) FROM tl_session WHERE session_id='%s' AND ended_at IS NULL",
                    tl_client_session(f.client));
    assert_status(tl_lock_ask(handles.fresh, 0), TL_GRANTED);
    assert_status(finish(handles.fresh, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    assert_status(finish(handles.held, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(handles.held);
    tl_lock_free(handles.fresh);
}

struct busy {
    int stop;
    long rounds;
};

static void work_and_fork(void *context, int number)
{
    struct busy *busy = context;

    for (long i = 0; number < 3 && !__atomic_load_n(&busy->stop, __ATOMIC_SEQ_CST); i++) {
        tl_lock *lock;

        lock = granted(f.client, text_of("busy-%d-%ld", number, i).is, "c1", SYNC);
        CREW_STATUS(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        tl_lock_free(lock);
    }
    if (number < 3)
        return;
    /* Forks at any moment of the others' work; the child only frees. */
    for (long i = 0; i < busy->rounds; i++) {
        pid_t one = fork();

        CREW_CHECK(one >= 0);
        if (one == 0) {
            alarm(20);
            tl_client_close(f.client);
            _exit(0);
        }
        CREW_CHECK(crew_wait(one) == 0);
    }
    __atomic_store_n(&busy->stop, 1, __ATOMIC_SEQ_CST);
}

TEST(test_forks_while_others_work)
{
    struct busy busy = {.rounds = crew_number("forks", 30)};
    long long rows;

    crew_threads(4, work_and_fork, &busy);
    rows = database_number(f.sql, "SELECT COUNT(*) FROM trade_lock WHERE serial_no LIKE "
                                  "'busy-%%'");
    assert_true(rows > 0);
    database_expect(
        f.sql, rows,
        "SELECT COUNT(*) FROM trade_lock WHERE serial_no LIKE 'busy-%%' AND status='Y'");
}

TESTS_OF(process, open_all, close_all)
