/* What a handle tells of the row after its own ending is what the row says, and costs no read; and
 * endings and asks that contradict themselves. */
#include "fixture.h"
#include "support/theme.h"

WHOLE_FIXTURE_OF_ALL("beat_ms=1m\nsession_ms=10m\n")

static void assert_text(const char *what, const char *told, const char *is)
{
    if (strcmp(told, is) != 0)
        fail_msg("%s: told '%s', is '%s'", what, told, is);
}

static int compare(void *context, const tl_view *is)
{
    const tl_view *told = context;

    assert_string_equal(tl_state_name(told->state), tl_state_name(is->state));
    assert_int_equal(told->status, is->status);
    assert_int_equal(told->lane, is->lane);
    assert_int_equal(told->fence, is->fence);
    assert_int_equal(told->epoch, is->epoch);
    assert_int_equal(told->sends, is->sends);
    assert_int_equal(told->proof, is->proof);
    assert_int_equal(told->retryable, is->retryable);
    assert_int_equal(told->has_retry_row, is->has_retry_row);
    assert_int_equal(told->retry_status, is->retry_status);
    assert_int_equal(told->seen_by_channel, is->seen_by_channel);
    assert_text("session", told->session_id, is->session_id);
    if (is->session_id[0] == '\0') /* its own name is not told to a holder */
        assert_text("holder", told->holder, is->holder);
    assert_text("thread", told->thread_no, is->thread_no);
    assert_text("parked", told->parked, is->parked);
    assert_text("channel key", told->channel_key, is->channel_key);
    assert_text("channel ref", told->channel_ref, is->channel_ref);
    assert_text("remark", told->remark, is->remark);
    assert_text("actor", told->actor, is->actor);
    assert_int_equal(told->result_size, is->result_size);
    if (is->result_size > 0)
        assert_memory_equal(told->result, is->result, is->result_size);
    return 0;
}

static void assert_told(const tl_lock *lock, const char *serial)
{
    tl_key key = {serial, "C1", "WITHDRAW"};
    tl_view told = *tl_lock_view(lock);

    assert_status(tl_show(f.other, &key, TL_LANE_SYNC, compare, &told), TL_OK);
}

/* With everything said that an ending can say, or nothing. */
static tl_ending ending_of(tl_outcome outcome, int says)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = outcome;
    if (outcome == TL_OUTCOME_FAILURE)
        ending.proof = TL_PROOF_DECLINED;
    if (!says)
        return ending;
    ending.retryable = outcome == TL_OUTCOME_FAILURE;
    ending.channel_ref = "R-1";
    ending.remark = "said by the ending";
    ending.actor = "anna";
    if (outcome == TL_OUTCOME_SUCCESS) {
        ending.result = "receipt";
        ending.result_size = 7;
    }
    return ending;
}

static uint64_t requests(void)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    assert_status(tl_client_stats(f.client, &stats), TL_OK);
    return stats.statements;
}

static const tl_outcome outcomes[] = {TL_OUTCOME_SUCCESS, TL_OUTCOME_FAILURE, TL_OUTCOME_UNKNOWN,
                                      TL_OUTCOME_PENDING, TL_OUTCOME_NOT_SENT};
#define OUTCOMES (sizeof outcomes / sizeof outcomes[0])

static const char *serial_of(const char *prefix, size_t i, int says)
{
    static char serial[20];

    snprintf(serial, sizeof serial, "%s%zu-%d", prefix, i, says);
    return serial;
}

TEST(test_after_a_first_attempt)
{
    for (size_t i = 0; i < OUTCOMES; i++)
        for (int says = 0; says < 2; says++) {
            const char *serial = serial_of("A", i, says);
            tl_lock_options options = sync_options("pay");
            tl_ending ending = ending_of(outcomes[i], says);
            tl_lock *lock;
            uint64_t before;

            options.remark = "said by the ask";
            lock = granted(f.client, serial, "C1", &options);
            assert_told(lock, serial);
            before = requests();
            (void)tl_lock_finish(lock, &ending);
            assert_int_equal(requests(), before + 1);
            assert_told(lock, serial);
            tl_lock_free(lock);
        }
}

/* A success does not keep what an earlier attempt remarked of its failure. */
TEST(test_after_a_compensating_attempt)
{
    for (size_t i = 0; i < OUTCOMES; i++)
        for (int says = 0; says < 2; says++) {
            const char *serial = serial_of("B", i, says);
            tl_lock_options options = sync_options("pay"), retry = retry_options();
            tl_ending ending = ending_of(outcomes[i], says);
            tl_ending unknown = ending_of(TL_OUTCOME_UNKNOWN, 1);
            tl_lock *lock = granted(f.client, serial, "C1", &options);

            unknown.remark = "the line was cut";
            assert_status(tl_lock_finish(lock, &unknown), TL_IN_DOUBT);
            tl_lock_free(lock);
            lock = granted(f.client, serial, "C1", &retry);
            (void)tl_lock_finish(lock, &ending);
            assert_told(lock, serial);
            if (outcomes[i] == TL_OUTCOME_SUCCESS)
                assert_string_equal(tl_lock_view(lock)->remark, says ? "said by the ending" : "");
            tl_lock_free(lock);
        }
}

/* The same where endings share a statement. */
TEST(test_after_endings_together)
{
    enum { TOGETHER = 32 };
    tl_ending ending = ending_of(TL_OUTCOME_SUCCESS, 0);
    tl_lock_options options = sync_options("pay"), retry = retry_options();
    tl_lock *locks[TOGETHER];
    tl_completion done[TOGETHER];
    size_t count = 0;

    for (size_t i = 0; i < TOGETHER; i++) {
        tl_ending unknown = ending_of(TL_OUTCOME_UNKNOWN, 1);

        locks[i] = granted(f.client, serial_of("C", i, 0), "C1", &options);
        assert_status(tl_lock_finish(locks[i], &unknown), TL_IN_DOUBT);
        tl_lock_free(locks[i]);
        locks[i] = granted(f.client, serial_of("C", i, 0), "C1", &retry);
    }
    for (size_t i = 0; i < TOGETHER; i++)
        assert_status(tl_lock_finish_submit(locks[i], &ending, NULL, NULL), TL_OK);
    while (count < TOGETHER)
        count += tl_client_completed(f.client, done + count, TOGETHER - count);
    for (size_t i = 0; i < TOGETHER; i++) {
        assert_status(done[i].status, TL_SUCCEEDED);
        assert_told(locks[i], serial_of("C", i, 0));
        assert_string_equal(tl_lock_view(locks[i])->remark, "");
        tl_lock_free(locks[i]);
    }
}

TEST(test_after_the_callers_commit)
{
    tl_lock_options options = sync_options("pay");
    tl_ending ending = ending_of(TL_OUTCOME_SUCCESS, 1);
    tl_lock *lock = granted(f.client, "D1", "C1", &options);

    database_run(f.sql, "BEGIN");
    assert_status(tl_lock_finish_in(lock, f.sql, &ending, TL_GUARD_ANY_IDLE), TL_OK);
    database_run(f.sql, "ROLLBACK");
    assert_status(tl_lock_committed(lock, TL_COMMIT_ROLLED_BACK), TL_OK);
    assert_told(lock, "D1");
    database_run(f.sql, "BEGIN");
    assert_status(tl_lock_finish_in(lock, f.sql, &ending, TL_GUARD_ANY_IDLE), TL_OK);
    database_run(f.sql, "COMMIT");
    assert_status(tl_lock_committed(lock, TL_COMMIT_OK), TL_SUCCEEDED);
    assert_told(lock, "D1");
    tl_lock_free(lock);
}

TEST(test_a_success_has_no_proof)
{
    tl_lock_options options = sync_options("pay");
    tl_lock *lock = granted(f.client, "E1", "C1", &options);

    for (size_t i = 0; i < OUTCOMES; i++) {
        tl_ending ending = ending_of(outcomes[i], 0);

        ending.proof = TL_PROOF_DECLINED;
        if (outcomes[i] == TL_OUTCOME_FAILURE)
            continue;
        assert_status(tl_lock_finish(lock, &ending), TL_INVALID);
        assert_non_null(strstr(tl_error_message(), "only a failure has a proof"));
    }
    assert_row(&f, "E1", "C1", "WITHDRAW", "P 1 1");
    end_paid(lock);
}

TEST(test_a_reclaim_names_its_epoch)
{
    tl_lock_options options = sync_options("pay");
    tl_key key = {"E2", "C1", "WITHDRAW"};
    tl_lock *lock = NULL;

    options.flags = TL_ASK_RECLAIM;
    assert_status(tl_lock_new(&lock, f.client, &key, &options), TL_INVALID);
    assert_non_null(strstr(tl_error_message(), "reclaim_epoch is 0"));
    assert_null(lock);
}

TESTS_OF(told, open_all, close_all)
