/* What the log callback is told. */
#include "fixture.h"

#include "support/crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LINES 256
#define CUSTOMER "4711-customer"

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

static int setup(void **state)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;

    (void)state;
    f.db = database_new(server_shared(), "log_cust=hashed\n");
    f.sql = database_connect(f.db);
    options.config_file = database_option_file(f.db);
    options.flags = TL_CLIENT_NO_JANITOR;
    options.log = keep;
    options.log_context = &f;
    assert_status(tl_client_open(&logging, &options), TL_OK);
    f.other = client_new(&f, TL_CLIENT_NO_JANITOR);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tl_client_close(logging);
    tl_client_close(f.other);
    mysql_close(f.sql);
    database_free(f.db);
    return 0;
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

static void test_a_trade_in_the_log(void **state)
{
    tl_lock_options options = sync_options("x");
    struct line seen[8];
    tl_lock *lock;
    uint64_t fence;

    (void)state;
    assert_int_equal(tl_work_begin(), 1);
    lock = granted(logging, "l1", CUSTOMER, &options);
    fence = tl_lock_view(lock)->fence;
    assert_int_equal(take("l1", seen, 8), 1);
    check_line(&seen[0], fence);
    assert_int_equal(seen[0].level, TL_INFO);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    assert_int_equal(take("l1", seen, 8), 1);
    check_line(&seen[0], fence);
    /* The row and the log of the database name the same thread and piece of work. */
    assert_int_equal(database_number(f.sql,
                                     "SELECT COUNT(*) FROM trade_lock_log WHERE "
                                     "serial_no='l1' AND thread_no='%s' AND "
                                     "log_no='%s'",
                                     tl_thread_uuid(), tl_log_uuid()),
                     2);
    tl_lock_free(lock);
    tl_work_end(0);
}

/* A lost lock is a warning, and says which. */
static void test_losing_in_the_log(void **state)
{
    tl_lock_options options = sync_options("x"), retry = retry_options();
    struct line seen[8];
    tl_lock *lock, *other;
    uint64_t fence;

    (void)state;
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
    assert_status(finish(other, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(other);
    tl_lock_free(lock);
    tl_work_end(0);
}

struct handed {
    const char *log_uuid, *thread_uuid;
};

static void go_on(void *context, int number)
{
    const struct handed *from = context;
    tl_lock_options options = sync_options("x");
    tl_lock *lock;

    (void)number;
    CREW_STATUS(tl_work_adopt(from->log_uuid), TL_OK);
    CREW_CHECK(strcmp(tl_thread_uuid(), from->thread_uuid) != 0);
    lock = granted(logging, "l3", CUSTOMER, &options);
    CREW_STATUS(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
}

/* A child thread goes on with its parent's piece of work, as a thread of its own. */
static void test_work_goes_on_in_another_thread(void **state)
{
    struct line seen[8];
    struct handed handed;

    (void)state;
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

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_trade_in_the_log),
        cmocka_unit_test(test_losing_in_the_log),
        cmocka_unit_test(test_work_goes_on_in_another_thread),
    };

    crew_arguments(count, arguments);
    return server_run_tests(tests, setup, teardown);
}
