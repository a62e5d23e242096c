/* What a step was stays as it was, wherever it is kept: in the row, as its first or its last one,
 * or apart. */
#include "fixture.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/lane.h>

#define CUST "history"
#define THREADS 24

static fixture f;
/* Every step of every row, a line each, as it was told last. */
static char *told;

#define OR_NONE(column) "COALESCE(" column ", '-'), "

static char *read_steps(void)
{
    return database_text(
        f.sql, "SELECT COALESCE(GROUP_CONCAT(CONCAT_WS('|', BINARY cust_no, serial_no, op_code, "
               "rev, "
               "logged_at, step, status, thread_no, HEX(token), fence, epoch, attempts, claims, "
               "sends, conflict, proof, account, " OR_NONE("log_no") OR_NONE("session_id")
                   OR_NONE("send_until") OR_NONE("max_hold_until") OR_NONE("next_run_at")
                       OR_NONE("parked") OR_NONE("channel_key") OR_NONE("channel_ref")
                           OR_NONE("remark") "COALESCE(actor, '-'), '') "
                                             "ORDER BY cust_no, serial_no, op_code, rev "
                                             "SEPARATOR '\n'), '') "
                                             "FROM trade_lock_log");
}

FIXTURE(setup)
{
    fixture_open(&f, "");
    database_run(f.sql, "SET SESSION group_concat_max_len = 10000000");
    told = read_steps();
}

FIXTURE(teardown)
{
    free(told);
    fixture_close(&f);
}

static size_t count_lines(const char *text)
{
    size_t count = *text != '\0';

    for (; *text != '\0'; text++)
        count += *text == '\n';
    return count;
}

/* So many steps are new, and all others are told as they were. */
static void expect_new(const char *what, size_t count)
{
    char *now = read_steps(), *line, *rest = told;

    if (count_lines(now) != count_lines(told) + count)
        fail_msg("%s: not %zu steps more:\n%s\nwas\n%s", what, count, now, told);
    while ((line = strtok_r(rest, "\n", &rest)) != NULL)
        if (strstr(now, line) == NULL)
            fail_msg("%s: gone is\n%s\nnow\n%s", what, line, now);
    free(told);
    told = now;
}

/* What the short forms take for granted is so, alone and in groups: only who may send has a time to
 * do it in, and only a mutex forgets its holder. */
static void expect_forms(void)
{
    database_expect(f.sql, 0,
                    "SELECT COUNT(*) FROM trade_lock WHERE step = 'ask' AND (sends > 0) <> "
                    "(send_until IS NOT NULL)");
    database_expect(f.sql, 0,
                    "SELECT COUNT(*) FROM trade_lock WHERE step = 'end' AND serial_no <> 'retry' "
                    "AND (session_id IS NULL) <> (repeatable = 1)");
}

static void end(tl_lock *lock, tl_outcome outcome, tl_proof proof, const char *remark,
                tl_status expected)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = outcome;
    ending.proof = proof;
    ending.retryable = 1;
    ending.channel_ref = "ref";
    ending.remark = remark;
    assert_status(tl_lock_finish(lock, &ending), expected);
    tl_lock_free(lock);
}

TEST(test_one_step_after_another)
{
    tl_lock_options plain = sync_options("x"), other = plain, again = plain, queued = plain;
    tl_lock_options retry = retry_options();
    tl_lock *lock;

    assert_int_equal(tl_work_begin(), 1);
    lock = granted(f.client, "plain", CUST, &plain);
    expect_new("an ask", 1);
    tl_work_end(1);
    assert_int_equal(tl_work_begin(), 1);
    end(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE, "done", TL_SUCCEEDED);
    expect_new("its end", 1);
    tl_work_end(1);

    queued.not_sent = 1;
    queued.channel = NULL;
    lock = granted(f.client, "not-sent", CUST, &queued);
    expect_new("an ask that sends nothing", 1);
    expect_forms();
    end(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE, NULL, TL_SUCCEEDED);
    expect_new("its end", 1);
    other.remark = "with a remark";
    other.actor = "somebody";
    other.not_sent = 1;
    lock = granted(f.client, "remark", CUST, &other);
    expect_new("an ask with a remark", 1);
    end(lock, TL_OUTCOME_FAILURE, TL_PROOF_DECLINED, "refused", TL_FAILED);
    expect_new("its failure", 1);
    again.flags = TL_ASK_RECLAIM;
    again.reclaim_epoch = 1;
    lock = granted(f.other, "remark", CUST, &again);
    expect_new("a reclaim", 1);
    end(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE, NULL, TL_SUCCEEDED);
    expect_new("its end", 1);

    lock = granted(f.client, "retry", CUST, &plain);
    expect_new("an ask", 1);
    end(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE, NULL, TL_IN_DOUBT);
    expect_new("no answer", 2);
    lock = granted(f.other, "retry", CUST, &retry);
    expect_new("a claim", 2);
    assert_status(tl_lock_arm(lock, 60000), TL_OK);
    expect_new("arming", 1);
    end(lock, TL_OUTCOME_FAILURE, TL_PROOF_NOT_FOUND, NULL, TL_FAILED);
    expect_new("its failure", 2);
}

TEST(test_mutexes)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;

    options.flags = TL_ASK_REPEATABLE;
    options.max_hold_ms = 60000;
    for (int i = 0; i < 3; i++) {
        tl_lock *lock = granted(f.client, "mutex", CUST, &options);

        expect_new("an ask", 1);
        end_paid(lock);
        expect_new("its release", 1);
        expect_forms();
    }
}

static tl_lock *held[THREADS];

/* The form of a group's statement is that of the most that one of its steps tells. */
struct group {
    const char *name, *channel;
    int some_not_sent;
};

static void ask_one(void *context, int number)
{
    const struct group *group = context;
    tl_lock_options options = sync_options("x");

    options.channel = group->channel;
    options.not_sent = group->some_not_sent && number % 3 == 1;
    held[number] =
        granted(f.client, text_of("group-%s-%d", group->name, number).is, CUST, &options);
}

static void end_one(void *context, int number)
{
    (void)context;
    CREW_STATUS(finish(held[number], TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(held[number]);
}

/* Other threads end what these asked for, many in one statement. */
TEST(test_groups)
{
    static struct group groups[] = {{"told", "fastpay", 1}, {"mixed", NULL, 1}, {"plain", NULL, 0}};

    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        crew_threads(THREADS, ask_one, &groups[i]);
        expect_new("asks", THREADS);
        expect_forms();
        crew_threads(THREADS, end_one, NULL);
        expect_new("endings", THREADS);
        expect_forms();
    }
}

/* By hand, behind a first step that the row keeps and behind one that it does not; and the rows
 * removed. */
TEST(test_by_hand)
{
    const long long rows = database_number(f.sql, "SELECT COUNT(*) FROM trade_lock");

    database_run(f.sql, "UPDATE trade_lock SET remark = 'by hand', sends = sends + 1, "
                        "session_id = UUID(), channel_key = 'k', next_run_at = "
                        "UTC_TIMESTAMP(6), max_hold_until = UTC_TIMESTAMP(6)");
    expect_new("typed by hand", (size_t)rows);
    database_run(f.sql, "DELETE FROM trade_lock");
    expect_new("removed", (size_t)rows);
}

TESTS_OF(history, setup, teardown)
