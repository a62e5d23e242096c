/*
 * Reading, writing, downgrading and unlocking, cut at every packet: whatever answer is lost, the
 * call ends in the truth, is carried out once, and says so when it is called again.
 */
#include "packets/wire.h"
#include "rw_lock/fixture.h"
#include "support/crew.h"
#include "support/theme.h"

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
    assert_holders_whole(&f, 0);
    fixture_close(&f);
    return 0;
}

static tl_client *far_client(void)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = through;
    options.flags = TL_CLIENT_NO_JANITOR;
    if (tl_client_open(&client, &options) != TL_OK)
        server_panic("no client: %s", tl_error_message());
    return client;
}

/* ------------------------------------------------------------------- operations -- */

enum operation { READ, WRITE, UNLOCK, DOWNGRADE };

static tl_status call(enum operation operation, tl_rw *rw)
{
    switch (operation) {
    case READ:
        return tl_rw_read(rw, 0);
    case WRITE:
        return tl_rw_write(rw, 0);
    case UNLOCK:
        return tl_rw_unlock(rw);
    default:
        return tl_rw_downgrade(rw);
    }
}

static int may_come_again(tl_status status)
{
    tl_class class_ = tl_status_class(status);

    return class_ == TL_CLASS_UNKNOWN || class_ == TL_CLASS_RETRY;
}

static long long steps(const char *name, const char *which)
{
    return database_number(f.sql,
                           "SELECT COUNT(*) FROM resource_holder_log WHERE resource = "
                           "'%s' AND step IN (%s)",
                           name, which);
}

static void check_rows(enum operation operation, const tl_rw *rw, const char *name, int again)
{
    char *row = database_text(f.sql,
                              "SELECT GROUP_CONCAT(status, kind) FROM resource_holder "
                              "WHERE resource = '%s'",
                              name);
    static const char *const rows[] = {"HR", "HW", "FW", "HR"};

    assert_string_equal(row, rows[operation]);
    free(row);
    assert_int_equal(steps(name, "'read', 'write'"), 1 + again);
    assert_int_equal(steps(name, "'release'"), (operation == UNLOCK) + again);
    if (operation != UNLOCK)
        assert_int_equal(tl_rw_fence(rw), database_number(f.sql,
                                                          "SELECT fence FROM resource_holder WHERE "
                                                          "resource = '%s'",
                                                          name));
}

/* One case; 0 when the fault came too late to strike. */
static int disturb(enum operation operation, int again, wire_fault fault)
{
    char name[32];
    tl_client *far = far_client();
    tl_rw *rw;
    tl_status status;
    int struck;

    snprintf(name, sizeof name, "case-%u", ++cases);
    rw = rw_new(far, name, 30000);
    if (again)
        assert_status(write_when_free(f.other, name), TL_GRANTED);
    if (operation == UNLOCK || operation == DOWNGRADE)
        assert_status(tl_rw_write(rw, 0), TL_GRANTED);
    wire_arm(line, &fault);
    status = call(operation, rw);
    struck = wire_struck(line);
    if (status == TL_UNKNOWN)
        unknowns++;
    if (fault.down) {
        /* Still away: what is not known stays so, and is neither "no" nor "released". */
        if (status == TL_UNKNOWN)
            assert_status(call(operation, rw), TL_UNKNOWN);
        wire_down(line, 0);
    }
    for (int calls = 0; may_come_again(status) && calls < CALLS_MAX; calls++)
        status = call(operation, rw);
    (void)wire_release(line);
    assert_status(status, operation == READ || operation == WRITE ? TL_GRANTED : TL_OK);
    check_rows(operation, rw, name, again);
    wire_reset(line);
    tl_rw_free(rw);
    tl_client_close(far);
    return struck != 0;
}

/* With `down` the server stays away meanwhile, so that the first answer is UNKNOWN. */
static void sweep(enum operation operation, int again, int down)
{
    static const wire_act acts[] = {WIRE_CUT_BEFORE, WIRE_CUT_AFTER, WIRE_LATE};
    unsigned stride = tier_pick(5 * STRIDE, STRIDE, 1);

    for (size_t act = 0; act < sizeof acts / sizeof acts[0]; act++)
        for (unsigned packet = 1 + sweeps++ % stride; packet < PACKETS_MAX; packet += stride)
            if (!disturb(operation, again, (wire_fault){packet, acts[act], down}))
                break;
}

static void test_read(void **state)
{
    (void)state;
    sweep(READ, 1, 0);
    sweep(READ, 1, 1);
}

/* The first ask of all makes the gate. */
static void test_write(void **state)
{
    (void)state;
    sweep(WRITE, 0, 0);
    sweep(WRITE, 0, 1);
}

static void test_unlock(void **state)
{
    (void)state;
    sweep(UNLOCK, 0, 0);
    sweep(UNLOCK, 0, 1);
}

static void test_downgrade(void **state)
{
    (void)state;
    sweep(DOWNGRADE, 0, 0);
    sweep(DOWNGRADE, 0, 1);
}

static tl_status downgrade_patiently(tl_rw *rw)
{
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_status status = tl_rw_downgrade(rw);

    while (may_come_again(status) && crew_now_ms() < end_ms)
        status = tl_rw_downgrade(rw);
    return status;
}

/* Perhaps it only reads already: nothing may be written under it until that is known. */
static void test_a_doubtful_downgrade_writes_no_more(void **state)
{
    unsigned doubtful = 0;

    (void)state;
    for (unsigned packet = 1; packet <= 2; packet++) {
        tl_client *far = far_client();
        tl_rw *before = writing(far, "before", 0), *rw = writing(far, "doubtful", 0);
        MYSQL *caller = caller_new(&f);
        wire_fault fault = {packet, WIRE_CUT_AFTER, 1};

        assert_status(tl_rw_downgrade(before), TL_OK); /* which prepares it */
        assert_status(tl_rw_unlock(before), TL_OK);
        tl_rw_free(before);
        wire_arm(line, &fault);
        if (tl_rw_downgrade(rw) == TL_UNKNOWN) {
            doubtful++;
            assert_int_equal(tl_rw_held(rw), TL_RW_READ);
            assert_status(tl_rw_guard(rw, caller, 0), TL_WRONG_STATE);
            assert_status(tl_rw_done(rw, caller, 0), TL_WRONG_STATE);
        }
        wire_down(line, 0);
        assert_status(downgrade_patiently(rw), TL_OK);
        assert_status(tl_rw_done(rw, caller, 0), TL_OK);
        caller_run(caller, "COMMIT");
        assert_status(tl_rw_unlock(rw), TL_OK);
        mysql_close(caller);
        tl_rw_free(rw);
        tl_client_close(far);
        wire_reset(line);
    }
    assert_true(doubtful > 0);
}

/* Renewed until the server answers: on a busy machine once is not always enough. */
static tl_status renew_patiently(tl_rw *rw, int64_t lease_ms)
{
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_status status = tl_rw_renew(rw, lease_ms);

    while (may_come_again(status) && crew_now_ms() < end_ms)
        status = tl_rw_renew(rw, lease_ms);
    return status;
}

/* A renewal may have ended the session's renewal: what is certain is what holds either way. */
static void test_a_doubtful_renewal_is_no_longer_certain(void **state)
{
    unsigned doubtful = 0;

    (void)state;
    for (unsigned packet = 1; packet <= 2; packet++) {
        tl_client *far = far_client();
        tl_rw *before = writing(far, "before", 0), *rw = writing(far, "doubtful", 0);
        wire_fault fault = {packet, WIRE_CUT_AFTER, 1};

        assert_status(tl_rw_renew(before, 20000), TL_OK); /* which prepares it */
        assert_status(tl_rw_unlock(before), TL_OK);
        tl_rw_free(before);
        wire_arm(line, &fault);
        if (tl_rw_renew(rw, 5000) == TL_UNKNOWN) {
            doubtful++;
            assert_in_range(tl_rw_remaining_ms(rw), 0, 5000);
            assert_status(tl_rw_renew(rw, 20000), TL_UNKNOWN);
        }
        wire_down(line, 0);
        assert_status(renew_patiently(rw, 20000), TL_OK);
        assert_true(tl_rw_remaining_ms(rw) > 5000);
        assert_status(tl_rw_unlock(rw), TL_OK);
        tl_rw_free(rw);
        tl_client_close(far);
        wire_reset(line);
    }
    assert_true(doubtful > 0);
}

/* A short renewal is late, a long one follows: once that is answered, nothing that comes in late
 * may shorten the lease. */
static int disturb_renewals(wire_fault fault)
{
    char name[32];
    tl_rw_options options = TL_RW_OPTIONS_INIT;
    tl_client *far = far_client();
    tl_rw *rw = NULL;
    long long left_ms;
    int struck;

    snprintf(name, sizeof name, "late-%u", ++cases);
    options.lease_ms = 60000;
    options.max_hold_ms = 600000;
    assert_status(tl_rw_new(&rw, far, name, &options), TL_OK);
    assert_status(tl_rw_write(rw, 0), TL_GRANTED);
    wire_arm(line, &fault);
    if (tl_rw_renew(rw, 60000) == TL_UNKNOWN)
        unknowns++;
    struck = wire_struck(line);
    wire_arm(line, NULL); /* what has not struck yet shall not do so later */
    wire_down(line, 0);
    assert_status(renew_patiently(rw, 500000), TL_OK);
    (void)wire_release(line);
    left_ms = database_number(f.sql,
                              "SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), "
                              "over_at) DIV 1000 FROM resource_holder "
                              "WHERE resource = '%s'",
                              name);
    assert_true(left_ms > 300000);
    assert_in_range(tl_rw_remaining_ms(rw), 300000, left_ms + 1000);
    wire_reset(line);
    tl_rw_free(rw);
    tl_client_close(far);
    return struck != 0;
}

static void test_a_late_renewal_shortens_nothing(void **state)
{
    unsigned struck = 0;

    (void)state;
    for (int down = 0; down < 2; down++)
        for (unsigned packet = 1; packet < PACKETS_MAX; packet++, struck++)
            if (!disturb_renewals((wire_fault){packet, WIRE_LATE, down}))
                break;
    assert_true(struck >= 4);
}

static void *write_far(void *rw)
{
    return (void *)(intptr_t)tl_rw_write(rw, 0);
}

/* An answer that comes when the lease is over and somebody else has the lock: a process that was
 * stopped would read it as late. */
static void test_an_answer_that_comes_too_late(void **state)
{
    tl_client *far = far_client();
    tl_rw *late = rw_new(far, "late-answer", 200), *next;
    wire_fault stall = {.act = WIRE_STALL};
    pthread_t thread;
    void *status;

    (void)state;
    for (int i = 0; i < 2; i++) {
        wire_arm(line, NULL);
        assert_status(tl_rw_write(late, 0), TL_GRANTED);
        stall.packet = wire_count(line); /* the answer of the commit */
        assert_status(tl_rw_unlock(late), TL_OK);
    }
    wire_arm(line, &stall);
    assert_int_equal(pthread_create(&thread, NULL, write_far, late), 0);
    while (wire_struck(line) != '<')
        crew_sleep_ms(5);
    crew_sleep_ms(400);
    next = writing(f.other, "late-answer", 0);
    (void)wire_release(line);
    pthread_join(thread, &status);
    assert_status((tl_status)(intptr_t)status, TL_BUSY);
    assert_true(tl_rw_remaining_ms(next) > 0);
    assert_status(tl_rw_unlock(late), TL_NOT_HELD);
    assert_status(tl_rw_unlock(next), TL_OK);
    wire_reset(line);
    tl_rw_free(next);
    tl_rw_free(late);
    tl_client_close(far);
}

TEST_MAIN(packets)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_that_comes_too_late),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_unlock),
        cmocka_unit_test(test_downgrade),
        cmocka_unit_test(test_a_doubtful_downgrade_writes_no_more),
        cmocka_unit_test(test_a_doubtful_renewal_is_no_longer_certain),
        cmocka_unit_test(test_a_late_renewal_shortens_nothing),
    };

    return server_run_tests(tests, setup, teardown);
}
