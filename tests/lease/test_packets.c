/*
 * Locking, renewing and unlocking, cut at every packet: whatever answer is lost, the call ends in
 * the truth, is carried out once, and says so when it is called again.  And guard and row lock on a
 * caller's connection that is cut: they never say yes then.
 */
#include "fixture.h"
#include "packets/wire.h"
#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/row_lock.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKETS_MAX 60
/* The fast run takes one packet in so many, always others. */
#define STRIDE 19
#define CALLS_MAX 20

static fixture f;
static wire *line;
static char *through;
static unsigned cases, unknowns, sweeps;

static int setup(void **state)
{
    const char *settings = "beat_ms=20s\nsession_ms=60s\nread_timeout_s=2\n"
                           "pool_wait_ms=300ms\ncommit_ms=300ms\nconnect_timeout_s=2\n";

    (void)state;
    fixture_open(&f, settings);
    line = wire_start(server_socket(server_shared()));
    through = database_option_file_at(f.db, wire_socket(line), settings);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    wire_free(line);
    free(through);
    print_message("%u cases, %u of them UNKNOWN at first\n", cases, unknowns);
    fixture_close(&f);
    return 0;
}

static tl_client *far_client_with(const char *option_file)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = option_file;
    options.flags = TL_CLIENT_NO_JANITOR;
    if (tl_client_open(&client, &options) != TL_OK)
        server_panic("no client: %s", tl_error_message());
    return client;
}

static tl_client *far_client(void)
{
    return far_client_with(through);
}

/* ------------------------------------------------------------------- operations -- */

enum operation { LOCK, UNLOCK, RENEW };

static tl_status call(enum operation operation, tl_mutex *mutex)
{
    switch (operation) {
    case LOCK:
        return tl_mutex_lock(mutex, 0);
    case UNLOCK:
        return tl_mutex_unlock(mutex);
    default:
        return tl_mutex_renew(mutex, 30000);
    }
}

static int may_come_again(tl_status status)
{
    tl_class class_ = tl_status_class(status);

    return class_ == TL_CLASS_UNKNOWN || class_ == TL_CLASS_RETRY;
}

/* The far client's set of this case, made by a near one before, so that the rows are there when
 * `again`. */
static tl_mutex *begin(tl_client *far, unsigned number, size_t count, int again, char names[][32])
{
    const char *all[3];
    tl_mutex_options options = lease_options(30000);
    tl_mutex *mutex = NULL;

    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], 32, "case-%u-%zu", number, i);
        all[i] = names[i];
        if (again)
            assert_status(try_once(f.other, all[i]), TL_GRANTED);
    }
    if (tl_mutex_new_set(&mutex, far, all, count, &options) != TL_OK)
        server_panic("no mutex: %s", tl_error_message());
    return mutex;
}

static void check_rows(enum operation operation, tl_mutex *mutex, size_t count, int again,
                       char names[][32])
{
    for (size_t i = 0; i < count; i++) {
        long long steps = database_number(
            f.sql, "SELECT COUNT(*) FROM resource_log WHERE resource='%s'", names[i]);
        long long fence =
            database_number(f.sql, "SELECT fence FROM resource_lock WHERE resource='%s'", names[i]);
        char *status =
            database_text(f.sql, "SELECT status FROM resource_lock WHERE resource='%s'", names[i]);

        assert_string_equal(status, operation == UNLOCK ? "U" : "L");
        free(status);
        if (operation != UNLOCK)
            assert_int_equal(tl_mutex_fence(mutex, names[i]), fence);
        /* A renewal may be written again; nothing else may. */
        if (operation == RENEW)
            assert_in_range(steps, (again ? 2 : 0) + 2, (again ? 2 : 0) + 2 + CALLS_MAX);
        else
            assert_int_equal(steps, (again ? 2 : 0) + (operation == LOCK ? 1 : 2));
    }
}

/* One case; 0 when the fault came too late to strike. */
static int disturb(enum operation operation, size_t count, int again, wire_fault fault)
{
    char names[3][32];
    tl_client *far = far_client();
    tl_mutex *mutex = begin(far, ++cases, count, again, names);
    tl_status status;
    int calls = 0, struck;

    if (operation != LOCK)
        assert_status(tl_mutex_lock(mutex, 0), TL_GRANTED);
    wire_arm(line, &fault);
    status = call(operation, mutex);
    struck = wire_struck(line);
    if (status == TL_UNKNOWN)
        unknowns++;
    if (fault.down) {
        /* Still away: what is not known stays so, and is neither "no" nor "released". */
        if (status == TL_UNKNOWN)
            assert_status(call(operation, mutex), TL_UNKNOWN);
        wire_down(line, 0);
    }
    for (; may_come_again(status) && calls < CALLS_MAX; calls++)
        status = call(operation, mutex);
    (void)wire_release(line);
    assert_status(status, operation == LOCK ? TL_GRANTED : TL_OK);
    check_rows(operation, mutex, count, again, names);
    wire_reset(line);
    tl_mutex_free(mutex);
    tl_client_close(far);
    return struck != 0;
}

/* With `down` the server stays away meanwhile, so that the first answer is UNKNOWN. */
static void sweep(enum operation operation, size_t count, int again)
{
    static const wire_act acts[] = {WIRE_CUT_BEFORE, WIRE_CUT_AFTER, WIRE_LATE};
    unsigned stride = tier_pick(5 * STRIDE, STRIDE, 1);

    for (size_t act = 0; act < sizeof acts / sizeof acts[0]; act++)
        for (int down = 0; down < 2; down++)
            for (unsigned packet = 1 + sweeps++ % stride; packet < PACKETS_MAX; packet += stride)
                if (!disturb(operation, count, again, (wire_fault){packet, acts[act], down}))
                    break;
}

static void test_lock(void **state)
{
    (void)state;
    sweep(LOCK, 1, 0);
    sweep(LOCK, 1, 1);
}

static void test_lock_several(void **state)
{
    (void)state;
    sweep(LOCK, 3, 1);
}

static void test_unlock(void **state)
{
    (void)state;
    sweep(UNLOCK, 1, 0);
    sweep(UNLOCK, 3, 0);
}

static void test_renew(void **state)
{
    (void)state;
    sweep(RENEW, 1, 0);
}

/* Renewed until the server answers: on a busy machine once is not always enough. */
static tl_status renew_patiently(tl_mutex *mutex, int64_t lease_ms)
{
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_status status = tl_mutex_renew(mutex, lease_ms);

    while (may_come_again(status) && crew_now_ms() < end_ms)
        status = tl_mutex_renew(mutex, lease_ms);
    return status;
}

/* A renewal may have ended the session's renewal: what is certain is what holds either way. */
static void test_a_doubtful_renewal_is_no_longer_certain(void **state)
{
    tl_mutex_options options = lease_options(0);
    unsigned doubtful = 0;

    (void)state;
    for (unsigned packet = 1; packet <= 2; packet++) {
        tl_client *far = far_client();
        tl_mutex *before = locked(far, "before", &options);
        tl_mutex *mutex = locked(far, "doubtful", &options);
        wire_fault fault = {packet, WIRE_CUT_AFTER, 1};

        assert_status(tl_mutex_renew(before, 20000), TL_OK); /* which prepares it */
        assert_status(tl_mutex_unlock(before), TL_OK);
        tl_mutex_free(before);
        wire_arm(line, &fault);
        if (tl_mutex_renew(mutex, 5000) == TL_UNKNOWN) {
            doubtful++;
            assert_in_range(tl_mutex_remaining_ms(mutex), 0, 5000);
            assert_status(tl_mutex_renew(mutex, 20000), TL_UNKNOWN);
            assert_in_range(tl_mutex_remaining_ms(mutex), 0, 5000);
        }
        wire_down(line, 0);
        assert_status(renew_patiently(mutex, 20000), TL_OK);
        assert_true(tl_mutex_remaining_ms(mutex) > 5000);
        assert_status(tl_mutex_unlock(mutex), TL_OK);
        tl_mutex_free(mutex);
        tl_client_close(far);
        wire_reset(line);
    }
    assert_true(doubtful > 0);
}

/* The session may still be what keeps it: when that is over, so is the lock. */
static void test_a_doubtful_renewal_ends_with_the_session(void **state)
{
    char *option_file = database_option_file_at(
        f.db, wire_socket(line),
        "beat_ms=500ms\nsession_ms=2s\nread_timeout_s=2\npool_wait_ms=300ms\ncommit_ms=300ms\n"
        "connect_timeout_s=2\n");
    tl_mutex_options options = lease_options(0);
    int doubtful = 0;

    (void)state;
    /* A beat may take the fault. */
    for (int i = 0; i < 40 && !doubtful; i++) {
        char name[16];
        tl_client *far = far_client_with(option_file);
        tl_mutex *before = locked(far, "before", &options), *mutex;
        wire_fault fault = {1 + (unsigned)i % 2, WIRE_CUT_AFTER, 1};

        assert_status(tl_mutex_renew(before, 20000), TL_OK); /* which prepares it */
        assert_status(tl_mutex_unlock(before), TL_OK);
        tl_mutex_free(before);
        snprintf(name, sizeof name, "brief-%d", i);
        mutex = locked(far, name, &options);
        wire_arm(line, &fault);
        if (tl_mutex_renew(mutex, 50000) == TL_UNKNOWN) {
            int64_t end_ms = crew_now_ms() + PATIENCE_MS;

            doubtful = 1;
            while (tl_mutex_remaining_ms(mutex) > 0 && crew_now_ms() < end_ms)
                crew_sleep_ms(20);
            assert_int_equal(tl_mutex_remaining_ms(mutex), 0);
            assert_true(crew_now_ms() < end_ms);
        }
        wire_reset(line);
        (void)tl_mutex_unlock(mutex);
        tl_mutex_free(mutex);
        tl_client_close(far);
    }
    free(option_file);
    assert_true(doubtful);
}

/* What the server leaves of the lease. */
static long long row_left_ms(const char *name)
{
    return database_number(f.sql,
                           "SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), "
                           "lease_until) DIV 1000 FROM resource_lock "
                           "WHERE resource = '%s'",
                           name);
}

/* A short renewal by the first handle is late, a long one by the second (or the same)
 * follows.  Once that is answered, nothing that comes in late may shorten the lease. */
static int disturb_renewals(int two_handles, wire_fault fault)
{
    char name[32];
    tl_mutex_options options = lease_options(60000);
    tl_client *far = far_client();
    tl_mutex *first, *second;
    long long left_ms;
    int struck;

    snprintf(name, sizeof name, "late-%u", ++cases);
    if (two_handles)
        options.flags |= TL_MUTEX_BY_THREAD;
    options.max_hold_ms = 600000;
    first = second = locked(far, name, &options);
    if (two_handles)
        second = locked(far, name, &options);
    wire_arm(line, &fault);
    if (tl_mutex_renew(first, 60000) == TL_UNKNOWN)
        unknowns++;
    struck = wire_struck(line);
    wire_arm(line, NULL); /* what has not struck yet shall not do so later */
    wire_down(line, 0);
    assert_status(renew_patiently(second, 500000), TL_OK);
    (void)wire_release(line);
    left_ms = row_left_ms(name);
    assert_true(left_ms > 300000);
    assert_true(tl_mutex_remaining_ms(first) <= left_ms + 1000);
    assert_true(tl_mutex_remaining_ms(second) > 300000);
    wire_reset(line);
    if (two_handles)
        tl_mutex_free(second);
    tl_mutex_free(first);
    tl_client_close(far);
    return struck != 0;
}

static void test_a_late_renewal_shortens_nothing(void **state)
{
    unsigned struck = 0;

    (void)state;
    for (int way = 0; way < 4; way++)
        for (unsigned packet = 1; packet < PACKETS_MAX; packet++, struck++)
            if (!disturb_renewals(way & 1, (wire_fault){packet, WIRE_LATE, way >> 1}))
                break;
    assert_true(struck >= 8);
}

/* ------------------------------------------------- on the caller's connection -- */

/* A connection of a caller's own that goes through the wire, in a transaction. */
static MYSQL *far_caller(void)
{
    MYSQL *caller = mysql_init(NULL);

    if (caller == NULL || mysql_real_connect(caller, NULL, "root", NULL, database_name(f.db), 0,
                                             wire_socket(line), 0) == NULL)
        server_panic("the caller cannot connect: %s", mysql_error(caller));
    caller_run(caller, "SET idle_transaction_timeout = 60, innodb_lock_wait_timeout = 20");
    caller_run(caller, "START TRANSACTION");
    return caller;
}

/* The mutex is near: what is cut is the caller's transaction. */
static tl_status guard(const char *name, MYSQL *caller)
{
    tl_mutex_options options = lease_options(30000);
    tl_mutex *mutex = locked(f.client, name, &options);
    tl_status status = tl_mutex_guard(mutex, caller, 0);

    tl_mutex_free(mutex);
    return status;
}

static tl_status lock_row(const char *name, MYSQL *caller)
{
    return tl_row_lock(f.client, name, caller, TL_ROW_LOCK_NOWAIT, 0);
}

/* Yes, or roll back; 0 when the fault came too late to strike. */
static int disturb_caller(tl_status (*prove)(const char *name, MYSQL *caller), tl_status yes,
                          wire_fault fault)
{
    char name[32];
    MYSQL *caller = far_caller();
    tl_status status;
    int struck, committed;

    snprintf(name, sizeof name, "caller-%u", ++cases);
    wire_arm(line, &fault);
    status = prove(name, caller);
    struck = wire_struck(line);
    (void)wire_release(line);
    committed = status == yes && mysql_query(caller, "COMMIT") == 0;
    if (status != yes)
        assert_int_equal(tl_status_class(status), TL_CLASS_ROLL_BACK);
    /* A yes may have arrived before the line was cut; then nothing can be committed. */
    assert_false(struck && committed);
    mysql_close(caller);
    wire_reset(line);
    return !committed;
}

static void sweep_caller(tl_status (*prove)(const char *name, MYSQL *caller), tl_status yes)
{
    static const wire_act acts[] = {WIRE_CUT_BEFORE, WIRE_CUT_AFTER, WIRE_LATE};
    unsigned struck = 0;

    for (size_t act = 0; act < sizeof acts / sizeof acts[0]; act++)
        for (unsigned packet = 1; packet < PACKETS_MAX; packet++) {
            if (!disturb_caller(prove, yes, (wire_fault){packet, acts[act], 0}))
                break;
            struck++;
        }
    assert_true(struck >= 6);
}

static void test_guard(void **state)
{
    (void)state;
    sweep_caller(guard, TL_OK);
}

static void test_row_lock(void **state)
{
    (void)state;
    sweep_caller(lock_row, TL_GRANTED);
}

static void *lock_far(void *mutex)
{
    return (void *)(intptr_t)tl_mutex_lock(mutex, 0);
}

/* An answer that comes when the lease is over and somebody else has the lock: a process that was
 * stopped would read it as late. */
static void test_an_answer_that_comes_too_late(void **state)
{
    tl_client *far = far_client();
    tl_mutex_options options = lease_options(200);
    tl_mutex *late = mutex_new(far, "late-answer", &options), *next;
    wire_fault stall = {.packet = 2, .act = WIRE_STALL};
    pthread_t thread;
    void *status;

    (void)state;
    assert_status(tl_mutex_lock(late, 0), TL_GRANTED);
    assert_status(tl_mutex_unlock(late), TL_OK);
    wire_arm(line, &stall);
    assert_int_equal(pthread_create(&thread, NULL, lock_far, late), 0);
    while (wire_struck(line) != '<')
        crew_sleep_ms(5);
    crew_sleep_ms(400);
    options = lease_options(0);
    next = locked(f.other, "late-answer", &options);
    (void)wire_release(line);
    pthread_join(thread, &status);
    assert_status((tl_status)(intptr_t)status, TL_BUSY);
    assert_true(tl_mutex_remaining_ms(next) > 0);
    assert_status(tl_mutex_unlock(late), TL_NOT_HELD);
    assert_status(tl_mutex_unlock(next), TL_OK);
    wire_reset(line);
    tl_mutex_free(next);
    tl_mutex_free(late);
    tl_client_close(far);
}

TEST_MAIN(packets)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_that_comes_too_late),
        cmocka_unit_test(test_lock),
        cmocka_unit_test(test_lock_several),
        cmocka_unit_test(test_unlock),
        cmocka_unit_test(test_renew),
        cmocka_unit_test(test_a_doubtful_renewal_is_no_longer_certain),
        cmocka_unit_test(test_a_doubtful_renewal_ends_with_the_session),
        cmocka_unit_test(test_a_late_renewal_shortens_nothing),
        cmocka_unit_test(test_guard),
        cmocka_unit_test(test_row_lock),
    };

    return server_run_tests(tests, setup, teardown);
}
