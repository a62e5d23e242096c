/* What the log callback is told. */
#include "fixture.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/lane.h>

#include <pthread.h>
#include <stdatomic.h>

#define LINES 256
#define CUSTOMER "4711-customer"
#define SETTINGS "log_cust=hashed\nlog_cust_key=0123456789abcdef\nlog_level=debug\n"

struct line {
    tl_level level;
    char message[300], thread_uuid[TL_UUID_TEXT], log_uuid[TL_UUID_TEXT];
    char serial_no[TL_SERIAL_MAX + 1], cust_no[TL_CUST_MAX + 1], op_code[TL_OP_MAX + 1];
    uint64_t fence;
};

static fixture f;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct line lines[LINES];
static size_t line_count;

static void keep(void *context, const tl_log_line *from)
{
    struct line *to;

    assert_ptr_equal(context, &f);
    pthread_mutex_lock(&mutex);
    if (line_count < LINES) {
        to = &lines[line_count++];
        to->level = from->level;
        to->fence = from->fence;
        snprintf(to->message, sizeof to->message, "%s", from->message);
        snprintf(to->thread_uuid, sizeof to->thread_uuid, "%s", from->thread_uuid);
        snprintf(to->log_uuid, sizeof to->log_uuid, "%s", from->log_uuid);
        snprintf(to->serial_no, sizeof to->serial_no, "%s", from->serial_no);
        snprintf(to->cust_no, sizeof to->cust_no, "%s", from->cust_no);
        snprintf(to->op_code, sizeof to->op_code, "%s", from->op_code);
    }
    pthread_mutex_unlock(&mutex);
}

static tl_client *logging;

static tl_client *open_logging(void)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = database_option_file(f.db);
    options.flags = TL_CLIENT_NO_JANITOR;
    options.log = keep;
    options.log_context = &f;
    assert_status(tl_client_open(&client, &options), TL_OK);
    return client;
}

FIXTURE(setup)
{
    f.db = database_new(server_shared(), SETTINGS);
    f.sql = database_connect(f.db);
    logging = open_logging();
    f.other = client_new(&f, TL_CLIENT_NO_JANITOR);
}

FIXTURE(teardown)
{
    tl_client_close(logging);
    tl_client_close(f.other);
    mysql_close(f.sql);
    database_free(f.db);
}

/* The lines about a serial since the last call, each with who, on what, which and when. */
static size_t take(const char *serial, struct line *to, size_t most)
{
    size_t count = 0;

    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < line_count; i++) {
        assert_null(strstr(lines[i].message, CUSTOMER));
        assert_null(strstr(lines[i].cust_no, CUSTOMER));
        if (strcmp(lines[i].serial_no, serial) == 0 && count < most)
            to[count++] = lines[i];
    }
    line_count = 0;
    pthread_mutex_unlock(&mutex);
    return count;
}

static void check_line(const struct line *line, uint64_t fence)
{
    assert_string_equal(line->thread_uuid, tl_thread_uuid());
    assert_string_equal(line->log_uuid, tl_log_uuid());
    assert_string_equal(line->op_code, "WITHDRAW");
    assert_int_equal(strlen(line->cust_no), 16);
    assert_int_equal(strspn(line->cust_no, "0123456789abcdef"), 16);
    assert_int_equal(line->fence, fence);
    assert_string_not_equal(line->message, "");
}

/* Whatever the test before left. */
FIXTURE(no_work)
{
    tl_work_end(0);
}

TEST_IN(test_a_trade_in_the_log, no_work, NULL)
{
    struct line seen[8];
    tl_lock *lock;
    uint64_t fence;

    assert_int_equal(tl_work_begin(), 1);
    lock = granted(logging, "l1", CUSTOMER, SYNC);
    fence = tl_lock_view(lock)->fence;
    assert_int_equal(take("l1", seen, 8), 1);
    check_line(&seen[0], fence);
    assert_int_equal(seen[0].level, TL_INFO);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    assert_int_equal(take("l1", seen, 8), 1);
    check_line(&seen[0], fence);
    /* The row and the log of the database name the same thread and piece of work. */
    database_expect(f.sql, 2,
                    "SELECT COUNT(*) FROM trade_lock_log WHERE serial_no='l1' AND thread_no='%s' "
                    "AND log_no='%s'",
                    tl_thread_uuid(), tl_log_uuid());
    tl_lock_free(lock);
    tl_work_end(0);
}

/* A lost lock is a warning, and says which. */
TEST_IN(test_losing_in_the_log, no_work, NULL)
{
    tl_lock_options options = sync_options("x"), retry = retry_options();
    struct line seen[8];
    tl_lock *lock, *other;
    uint64_t fence;

    assert_int_equal(tl_work_begin(), 1);
    options.max_hold_ms = 20;
    lock = granted(logging, "l2", CUSTOMER, &options);
    fence = tl_lock_view(lock)->fence;
    crew_sleep_ms(40);
    other = granted(f.other, "l2", CUSTOMER, &retry);
    (void)take("l2", seen, 8);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_LOST);
    assert_int_equal(take("l2", seen, 8), 1);
    check_line(&seen[0], fence);
    assert_int_equal(seen[0].level, TL_WARNING);
    end_paid(other);
    tl_lock_free(lock);
    tl_work_end(0);
}

struct handed {
    const char *log_uuid, *thread_uuid;
};

static void go_on(void *context, int number)
{
    const struct handed *from = context;
    tl_lock *lock;

    (void)number;
    CREW_STATUS(tl_work_adopt(from->log_uuid), TL_OK);
    CREW_CHECK(strcmp(tl_thread_uuid(), from->thread_uuid) != 0);
    lock = granted(logging, "l3", CUSTOMER, SYNC);
    CREW_STATUS(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
}

/* A child thread goes on with its parent's piece of work, as a thread of its own. */
TEST_IN(test_work_goes_on_in_another_thread, no_work, NULL)
{
    struct line seen[8];
    struct handed handed;

    assert_int_equal(tl_work_begin(), 1);
    handed = (struct handed){tl_log_uuid(), tl_thread_uuid()};
    crew_threads(1, go_on, &handed);
    assert_int_equal(take("l3", seen, 8), 2);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(seen[i].log_uuid, handed.log_uuid);
        assert_string_not_equal(seen[i].thread_uuid, handed.thread_uuid);
        assert_int_equal(strlen(seen[i].thread_uuid), TL_UUID_TEXT - 1);
    }
    tl_work_end(1);
}

/* --------------------------------------------------------------------- refusals -- */

static void refused(const char *serial, const tl_lock_options *options, tl_status wanted)
{
    tl_status status;

    tl_lock_free(ask(logging, serial, CUSTOMER, options, &status));
    assert_status(status, wanted);
}

/* Other contents under the same key may be fraud: whose, and of whom, is in the log. */
TEST_IN(test_other_contents_in_the_log, no_work, NULL)
{
    tl_lock_options options = sync_options("100.00 EUR"), other;
    struct line seen[8];
    tl_lock *lock;

    assert_int_equal(tl_work_begin(), 1);
    lock = granted(f.other, "l4", CUSTOMER, &options);
    other = sync_options("900.00 EUR");
    other.actor = "anna";
    refused("l4", &other, TL_MISMATCH);
    assert_int_equal(take("l4", seen, 8), 1);
    check_line(&seen[0], 0);
    assert_int_equal(seen[0].level, TL_WARNING);
    /* The first digits of sha256sum. */
    assert_string_equal(seen[0].message,
                        "refused, TL_MISMATCH: the same key was asked for with other "
                        "contents (fingerprint b45ce3df of anna, the trade has "
                        "b2cfad92)");
    options = sync_options(NULL);
    options.flags = TL_ASK_REPEATABLE;
    options.channel = NULL;
    refused("l4", &options, TL_MISMATCH);
    assert_int_equal(take("l4", seen, 8), 1);
    assert_int_equal(seen[0].level, TL_WARNING);
    assert_non_null(strstr(seen[0].message, "this key is a trade that happens once"));
    end_paid(lock);
    tl_work_end(0);
}

/* What every double tap meets is for those who look for it. */
TEST_IN(test_ordinary_refusals_in_the_log, no_work, NULL)
{
    struct line seen[8];
    tl_lock *lock;

    assert_int_equal(tl_work_begin(), 1);
    lock = granted(f.other, "l5", CUSTOMER, SYNC);
    refused("l5", SYNC, TL_BUSY);
    assert_int_equal(take("l5", seen, 8), 1);
    check_line(&seen[0], 0);
    assert_int_equal(seen[0].level, TL_DEBUG);
    assert_non_null(strstr(seen[0].message, "refused, TL_BUSY: in process by test "));
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    refused("l5", SYNC, TL_ALREADY_DONE);
    assert_int_equal(take("l5", seen, 8), 1);
    assert_int_equal(seen[0].level, TL_DEBUG);
    assert_string_equal(seen[0].message, "refused, TL_ALREADY_DONE");
    tl_lock_free(lock);
    tl_work_end(0);
}

/* --------------------------------------------------------------- the retry lane -- */

/* Asked for and left in doubt, due now. */
static void leave_in_doubt(const char *serial)
{
    end_in_doubt(granted(f.other, serial, CUSTOMER, SYNC));
}

static tl_lock *claim_due(void)
{
    tl_claim_options options = TL_CLAIM_OPTIONS_INIT;
    tl_lock *locks[1];
    size_t count = 1;

    options.op_code = "WITHDRAW";
    options.max_hold_ms = 60000;
    assert_status(tl_claim_due(logging, &options, locks, &count), TL_OK);
    assert_int_equal(count, 1);
    return locks[0];
}

static long long steps_under(const char *serial, const char *uuid)
{
    return database_number(f.sql,
                           "SELECT COUNT(*) FROM trade_lock_log WHERE serial_no='%s' "
                           "AND log_no='%s'",
                           serial, uuid);
}

static long long steps_elsewhere(const char *serial, const char *uuid)
{
    return database_number(f.sql,
                           "SELECT COUNT(*) FROM trade_lock_log WHERE serial_no='%s' "
                           "AND NOT log_no <=> '%s'",
                           serial, uuid);
}

/* A claim by a thread without work goes on with the trade's, and the line says so. */
static void check_claim(tl_lock *lock, const char *serial, const char *uuid)
{
    struct line seen[8];

    assert_string_equal(tl_lock_view(lock)->serial_no, serial);
    assert_string_equal(tl_lock_view(lock)->log_no, uuid);
    assert_string_equal(tl_log_uuid(), "");
    assert_int_equal(take(serial, seen, 8), 1);
    assert_string_equal(seen[0].log_uuid, uuid);
    assert_int_equal(seen[0].fence, tl_lock_view(lock)->fence);
}

TEST_IN(test_the_retry_lane_goes_on_with_the_work, no_work, NULL)
{
    char first[TL_UUID_TEXT];
    struct line seen[8];
    uint64_t fence;
    tl_lock *lock;

    assert_int_equal(tl_work_begin(), 1);
    strcpy(first, tl_log_uuid());
    leave_in_doubt("l6");
    tl_work_end(0);
    (void)take("l6", seen, 8);
    lock = claim_due();
    check_claim(lock, "l6", first);
    assert_status(tl_work_adopt(first), TL_OK);
    assert_status(tl_lock_arm(lock, 60000), TL_OK);
    fence = tl_lock_view(lock)->fence;
    assert_int_equal(take("l6", seen, 8), 1);
    check_line(&seen[0], fence);
    assert_int_equal(seen[0].level, TL_INFO);
    assert_non_null(strstr(seen[0].message, "armed: send 2 may leave within "));
    assert_status(finish(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_IN_DOUBT);
    tl_work_end(0);
    tl_lock_free(lock);
    /* Somebody else's work in between; and one who claims by key. */
    database_run(f.sql, "UPDATE trade_lock SET log_no = UUID() WHERE serial_no='l6'");
    assert_int_equal(steps_under("l6", first), 8);
    (void)take("l6", seen, 8);
    lock = claim_due();
    check_claim(lock, "l6", first);
    assert_status(tl_work_adopt(first), TL_OK);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_work_end(0);
    tl_lock_free(lock);
    assert_int_equal(steps_elsewhere("l6", first), 2);
}

/* Whoever claims by key within a piece of work does it for that. */
TEST_IN(test_a_claim_within_work, no_work, NULL)
{
    tl_lock_options retry = retry_options();
    struct line seen[8];
    tl_lock *lock;

    assert_int_equal(tl_work_begin(), 1);
    leave_in_doubt("l7");
    tl_work_end(0);
    (void)take("l7", seen, 8);
    assert_int_equal(tl_work_begin(), 1);
    lock = granted(logging, "l7", CUSTOMER, &retry);
    assert_string_equal(tl_lock_view(lock)->log_no, tl_log_uuid());
    assert_int_equal(take("l7", seen, 8), 1);
    check_line(&seen[0], tl_lock_view(lock)->fence);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    assert_int_equal(steps_under("l7", tl_log_uuid()), 4);
    tl_work_end(0);
    tl_lock_free(lock);
}

/* Where the trade was asked for outside any work, the retry lane begins one and keeps it. */
TEST_IN(test_a_trade_without_work, no_work, NULL)
{
    char begun[TL_UUID_TEXT];
    struct line seen[8];
    tl_lock *lock;

    leave_in_doubt("l8");
    (void)take("l8", seen, 8);
    lock = claim_due();
    strcpy(begun, tl_lock_view(lock)->log_no);
    assert_int_equal(strlen(begun), TL_UUID_TEXT - 1);
    check_claim(lock, "l8", begun);
    assert_int_equal(steps_under("l8", begun), 2);
    assert_status(tl_work_adopt(begun), TL_OK);
    assert_status(finish(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_IN_DOUBT);
    tl_work_end(0);
    tl_lock_free(lock);
    (void)take("l8", seen, 8);
    lock = claim_due();
    check_claim(lock, "l8", begun);
    end_paid(lock);
}

/* What a janitor does about a trade is said under the trade's work. */
TEST_IN(test_a_death_in_the_log, no_work, NULL)
{
    tl_client *dying = client_new(&f, TL_CLIENT_NO_JANITOR), *reaper;
    tl_lock_options options = sync_options("x"), retry = retry_options();
    char uuid[TL_UUID_TEXT];
    struct line seen[8];
    tl_reaped reaped;
    tl_lock *lock;

    assert_int_equal(tl_work_begin(), 1);
    strcpy(uuid, tl_log_uuid());
    tl_lock_free(granted(dying, "l9", CUSTOMER, &options));
    tl_work_end(0);
    database_run(f.sql,
                 "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6) WHERE "
                 "session_id = '%s'",
                 tl_client_session(dying));
    /* It looks for as long as a session may be silent. */
    database_set(f.db, SETTINGS "session_ms=2s\nbeat_ms=100ms\n");
    reaper = open_logging();
    assert_status(tl_reap(reaper, &reaped), TL_OK);
    tl_client_close(reaper);
    assert_int_equal(reaped.opened, 1);
    assert_int_equal(take("l9", seen, 8), 1);
    assert_int_equal(seen[0].level, TL_WARNING);
    assert_string_equal(seen[0].message, "the holder is dead: the retry lane was opened");
    assert_string_equal(seen[0].log_uuid, uuid);
    assert_string_equal(tl_log_uuid(), "");
    lock = granted(logging, "l9", CUSTOMER, &retry);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    /* The ending of both rows is nobody's work. */
    assert_int_equal(steps_elsewhere("l9", uuid), 2);
    tl_lock_free(lock);
    tl_client_close(dying);
}

/* ------------------------------------------------------------------ submitted -- */

struct noted {
    char log_uuid[TL_UUID_TEXT];
    atomic_int over;
};

static void note_work(void *context, tl_lock *lock, tl_status status)
{
    struct noted *noted = context;

    (void)lock;
    CREW_STATUS(status, TL_GRANTED);
    strcpy(noted->log_uuid, tl_log_uuid());
    noted->over = 1;
}

/* What was submitted is the work of who submitted it, whichever thread carries it out. */
TEST_IN(test_submitted_work_in_the_log, no_work, NULL)
{
    struct noted noted = {"", 0};
    tl_ending ending = TL_ENDING_INIT;
    tl_completion completion;
    struct line seen[8];
    tl_lock *lock;

    assert_int_equal(tl_work_begin(), 1);
    lock = lock_new(logging, "l10", CUSTOMER, SYNC);
    assert_status(tl_lock_ask_submit(lock, note_work, &noted), TL_OK);
    while (!noted.over)
        crew_sleep_ms(1);
    ending.outcome = TL_OUTCOME_SUCCESS;
    assert_status(tl_lock_finish_submit(lock, &ending, NULL, NULL), TL_OK);
    while (tl_client_completed(logging, &completion, 1) == 0)
        crew_sleep_ms(1);
    assert_status(completion.status, TL_SUCCEEDED);
    assert_string_equal(noted.log_uuid, tl_log_uuid());
    assert_int_equal(take("l10", seen, 8), 2);
    for (int i = 0; i < 2; i++)
        assert_string_equal(seen[i].log_uuid, tl_log_uuid());
    assert_int_equal(steps_under("l10", tl_log_uuid()), 2);
    tl_work_end(0);
    tl_lock_free(lock);
}

TESTS_OF(log, setup, teardown)
