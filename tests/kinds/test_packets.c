/*
 * Locking, reading, renewing, downgrading and unlocking, cut at every packet: whatever answer is
 * lost, the call ends in the truth, is carried out once, and says so when it is called again.  And
 * guard and row lock on a caller's connection that is cut: they never say yes then.
 */
#include "kinds/kinds.h"
#include "packets/wire.h"
#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/row_lock.h>

#include <pthread.h>

#define PACKETS_MAX 60
/* The fast run takes one packet in so many, always others. */
#define STRIDE 19
#define CALLS_MAX 20
#define NAMES_MAX 3

static fixture f;
static wire *line;
static char *through;
static unsigned cases, unknowns, swept;

FIXTURE(setup)
{
    const char *settings = "beat_ms=20s\nsession_ms=60s\nread_timeout_s=2\n"
                           "pool_wait_ms=300ms\ncommit_ms=300ms\nconnect_timeout_s=2\n";

    fixture_open(&f, settings);
    line = wire_start(server_socket(server_shared()));
    through = database_option_file_at(f.db, wire_socket(line), settings);
}

FIXTURE(teardown)
{
    wire_free(line);
    free(through);
    print_message("%u cases, %u of them UNKNOWN at first\n", cases, unknowns);
    assert_holders_whole(&f, 0);
    fixture_close(&f);
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

enum operation { TAKE, READ, UNLOCK, RENEW, DOWNGRADE };

/* ms: how long it waits, or what it renews for. */
static tl_status call(enum operation operation, any_lock lock, int64_t ms)
{
    switch (operation) {
    case TAKE:
        return any_take(lock, ms);
    case READ:
        return tl_rw_read(lock.rw, ms);
    case UNLOCK:
        return any_unlock(lock);
    case RENEW:
        return any_renew(lock, ms);
    default:
        return tl_rw_downgrade(lock.rw);
    }
}

static int may_come_again(tl_status status)
{
    tl_class class_ = tl_status_class(status);

    return class_ == TL_CLASS_UNKNOWN || class_ == TL_CLASS_RETRY;
}

/* Called until the server answers: on a busy machine once is not always enough. */
static tl_status call_patiently(enum operation operation, any_lock lock, int64_t ms)
{
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_status status = call(operation, lock, ms);

    while (may_come_again(status) && crew_now_ms() < end_ms)
        status = call(operation, lock, ms);
    return status;
}

/* What is swept, over so many names; again: they were locked and unlocked before. */
static const struct sweep {
    kind kind;
    const char *name;
    enum operation operation;
    size_t count;
    int again;
} sweeps[] = {
    {MUTEX, "lock", TAKE, 1, 0},
    {MUTEX, "lock again", TAKE, 1, 1},
    {MUTEX, "lock several", TAKE, NAMES_MAX, 1},
    {MUTEX, "unlock", UNLOCK, 1, 0},
    {MUTEX, "unlock several", UNLOCK, NAMES_MAX, 0},
    {MUTEX, "renew", RENEW, 1, 0},
    {RW, "read", READ, 1, 1},
    {RW, "write", TAKE, 1, 0}, /* the first ask of all makes the gate */
    {RW, "unlock", UNLOCK, 1, 0},
    {RW, "downgrade", DOWNGRADE, 1, 0},
};

/* The far client's lock of this case.  A near client makes the rows before when `again`. */
static any_lock begin(tl_client *far, const struct sweep *s, char names[][32])
{
    const char *all[NAMES_MAX];
    tl_mutex_options options = lease_options(30000);
    any_lock set = {NULL, NULL};

    cases++;
    for (size_t i = 0; i < s->count; i++) {
        snprintf(names[i], 32, "case-%u-%zu", cases, i);
        all[i] = names[i];
        if (s->again)
            assert_status(any_take_when_free(f.other, names[i]), TL_GRANTED);
    }
    if (s->count == 1)
        return any_new(far, names[0], 30000);
    assert_status(tl_mutex_new_set(&set.mutex, far, all, s->count, &options), TL_OK);
    return set;
}

static void check_mutex_row(const struct sweep *s, tl_mutex *mutex, const char *name)
{
    long long steps =
        database_number(f.sql, "SELECT COUNT(*) FROM resource_log WHERE resource='%s'", name);
    long long before = s->again ? 2 : 0;
    char *status =
        database_text(f.sql, "SELECT status FROM resource_lock WHERE resource='%s'", name);

    assert_string_equal(status, s->operation == UNLOCK ? "U" : "L");
    free(status);
    if (s->operation != UNLOCK)
        assert_int_equal(
            tl_mutex_fence(mutex, name),
            database_number(f.sql, "SELECT fence FROM resource_lock WHERE resource='%s'", name));
    /* A renewal may be written again; nothing else may. */
    if (s->operation == RENEW)
        assert_in_range(steps, before + 2, before + 2 + CALLS_MAX);
    else
        assert_int_equal(steps, before + (s->operation == TAKE ? 1 : 2));
}

static long long rw_steps(const char *name, const char *which)
{
    return database_number(f.sql,
                           "SELECT COUNT(*) FROM resource_holder_log WHERE resource = "
                           "'%s' AND step IN (%s)",
                           name, which);
}

static void check_rw_row(const struct sweep *s, const tl_rw *rw, const char *name)
{
    static const char *const rows[] = {
        [TAKE] = "HW", [READ] = "HR", [UNLOCK] = "FW", [DOWNGRADE] = "HR"};
    char *row = database_text(f.sql,
                              "SELECT GROUP_CONCAT(status, kind) FROM resource_holder "
                              "WHERE resource = '%s'",
                              name);

    assert_string_equal(row, rows[s->operation]);
    free(row);
    assert_int_equal(rw_steps(name, "'read', 'write'"), 1 + s->again);
    assert_int_equal(rw_steps(name, "'release'"), (s->operation == UNLOCK) + s->again);
    if (s->operation != UNLOCK)
        assert_int_equal(tl_rw_fence(rw), database_number(f.sql,
                                                          "SELECT fence FROM resource_holder WHERE "
                                                          "resource = '%s'",
                                                          name));
}

/* One case; 0 when the fault came too late to strike. */
static int disturb(const struct sweep *s, wire_fault fault)
{
    char names[NAMES_MAX][32];
    tl_client *far = far_client();
    any_lock lock = begin(far, s, names);
    int asks = s->operation == TAKE || s->operation == READ, struck;
    int64_t ms = s->operation == RENEW ? 30000 : 0;
    tl_status status;

    if (!asks)
        assert_status(any_take(lock, 0), TL_GRANTED);
    wire_arm(line, &fault);
    status = call(s->operation, lock, ms);
    struck = wire_struck(line);
    if (status == TL_UNKNOWN)
        unknowns++;
    if (fault.down) {
        /* Still away: what is not known stays so, and is neither "no" nor "released". */
        if (status == TL_UNKNOWN)
            assert_status(call(s->operation, lock, ms), TL_UNKNOWN);
        wire_down(line, 0);
    }
    for (int calls = 0; may_come_again(status) && calls < CALLS_MAX; calls++)
        status = call(s->operation, lock, ms);
    (void)wire_release(line);
    assert_status(status, asks ? TL_GRANTED : TL_OK);
    for (size_t i = 0; i < s->count; i++) {
        if (s->kind == RW)
            check_rw_row(s, lock.rw, names[i]);
        else
            check_mutex_row(s, lock.mutex, names[i]);
    }
    wire_reset(line);
    any_free(lock);
    tl_client_close(far);
    return struck != 0;
}

/* With `down` the server stays away meanwhile, so that the first answer is UNKNOWN. */
static void sweep(const struct sweep *s)
{
    static const wire_act acts[] = {WIRE_CUT_BEFORE, WIRE_CUT_AFTER, WIRE_LATE};
    unsigned stride = tier_pick(5 * STRIDE, STRIDE, 1);

    for (size_t act = 0; act < sizeof acts / sizeof acts[0]; act++)
        for (int down = 0; down < 2; down++)
            for (unsigned packet = 1 + swept++ % stride; packet < PACKETS_MAX; packet += stride)
                if (!disturb(s, (wire_fault){packet, acts[act], down}))
                    break;
}

static void test_each_packet(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sweeps / sizeof sweeps[0]; i++) {
        if (sweeps[i].kind != tested)
            continue;
        print_message("%s\n", sweeps[i].name);
        sweep(&sweeps[i]);
    }
}

/* ----------------------------------------------------------- renewals in doubt -- */

/* Prepares the statement: the fault strikes the call itself. */
static void call_once(enum operation operation, tl_client *far)
{
    any_lock before = any_taken(far, "before", 0);

    assert_status(call(operation, before, 20000), TL_OK);
    assert_status(any_unlock(before), TL_OK);
    any_free(before);
}

/* A renewal may have ended the session's renewal: what is certain is what holds either way. */
static void test_a_doubtful_renewal_is_no_longer_certain(void **state)
{
    unsigned doubtful = 0;

    (void)state;
    for (unsigned packet = 1; packet <= 2; packet++) {
        tl_client *far = far_client();
        any_lock lock = any_taken(far, "doubtful", 0);
        wire_fault fault = {packet, WIRE_CUT_AFTER, 1};

        call_once(RENEW, far);
        wire_arm(line, &fault);
        if (any_renew(lock, 5000) == TL_UNKNOWN) {
            doubtful++;
            assert_in_range(any_remaining_ms(lock), 0, 5000);
            assert_status(any_renew(lock, 20000), TL_UNKNOWN);
            assert_in_range(any_remaining_ms(lock), 0, 5000);
        }
        wire_down(line, 0);
        assert_status(call_patiently(RENEW, lock, 20000), TL_OK);
        assert_true(any_remaining_ms(lock) > 5000);
        assert_status(any_unlock(lock), TL_OK);
        any_free(lock);
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
    int doubtful = 0;

    (void)state;
    /* A beat may take the fault. */
    for (int i = 0; i < 40 && !doubtful; i++) {
        char name[16];
        tl_client *far = far_client_with(option_file);
        any_lock lock;
        wire_fault fault = {1 + (unsigned)i % 2, WIRE_CUT_AFTER, 1};

        call_once(RENEW, far);
        snprintf(name, sizeof name, "brief-%d", i);
        lock = any_taken(far, name, 0);
        wire_arm(line, &fault);
        if (any_renew(lock, 50000) == TL_UNKNOWN) {
            int64_t end_ms = crew_now_ms() + PATIENCE_MS;

            doubtful = 1;
            while (any_remaining_ms(lock) > 0 && crew_now_ms() < end_ms)
                crew_sleep_ms(20);
            assert_int_equal(any_remaining_ms(lock), 0);
            assert_true(crew_now_ms() < end_ms);
        }
        wire_reset(line);
        (void)any_unlock(lock);
        any_free(lock);
        tl_client_close(far);
    }
    free(option_file);
    assert_true(doubtful);
}

/* What the server leaves of the lease. */
static long long row_left_ms(const char *name)
{
    return database_number(f.sql,
                           "SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), %s) DIV 1000 "
                           "FROM %s WHERE resource = '%s'",
                           tested == RW ? "over_at" : "lease_until",
                           tested == RW ? "resource_holder" : "resource_lock", name);
}

/* A short renewal by the first handle is late, a long one by the second (or the same) follows.
 * Once that is answered, nothing that comes in late may shorten the lease. */
static int disturb_renewals(int two_handles, wire_fault fault)
{
    char name[32];
    tl_mutex_options options = lease_options(60000);
    tl_client *far = far_client();
    any_lock first, second;
    long long left_ms;
    int struck;

    snprintf(name, sizeof name, "late-%u", ++cases);
    if (two_handles) {
        options.flags |= TL_MUTEX_BY_THREAD;
        options.max_hold_ms = 600000;
        first = (any_lock){.mutex = locked(far, name, &options)};
        second = (any_lock){.mutex = locked(far, name, &options)};
    } else {
        first = second = any_taken(far, name, 60000);
    }
    wire_arm(line, &fault);
    if (any_renew(first, 60000) == TL_UNKNOWN)
        unknowns++;
    struck = wire_struck(line);
    wire_arm(line, NULL); /* what has not struck yet shall not do so later */
    wire_down(line, 0);
    assert_status(call_patiently(RENEW, second, 500000), TL_OK);
    (void)wire_release(line);
    left_ms = row_left_ms(name);
    assert_true(left_ms > 300000);
    assert_true(any_remaining_ms(first) <= left_ms + 1000);
    assert_true(any_remaining_ms(second) > 300000);
    wire_reset(line);
    if (two_handles)
        any_free(second);
    any_free(first);
    tl_client_close(far);
    return struck != 0;
}

static void test_a_late_renewal_shortens_nothing(void **state)
{
    int handles_max = tested == MUTEX ? 2 : 1;
    unsigned struck = 0;

    (void)state;
    for (int handles = 1; handles <= handles_max; handles++)
        for (int down = 0; down < 2; down++)
            for (unsigned packet = 1; packet < PACKETS_MAX; packet++, struck++)
                if (!disturb_renewals(handles == 2, (wire_fault){packet, WIRE_LATE, down}))
                    break;
    assert_true(struck >= 4 * (unsigned)handles_max);
}

/* Perhaps it only reads already: nothing may be written under it until that is known. */
static void test_a_doubtful_downgrade_writes_no_more(void **state)
{
    unsigned doubtful = 0;

    (void)state;
    for (unsigned packet = 1; packet <= 2; packet++) {
        tl_client *far = far_client();
        any_lock lock = any_taken(far, "doubtful", 0);
        MYSQL *caller = caller_new(&f);
        wire_fault fault = {packet, WIRE_CUT_AFTER, 1};

        call_once(DOWNGRADE, far);
        wire_arm(line, &fault);
        if (tl_rw_downgrade(lock.rw) == TL_UNKNOWN) {
            doubtful++;
            assert_int_equal(tl_rw_held(lock.rw), TL_RW_READ);
            assert_status(tl_rw_guard(lock.rw, caller, 0), TL_WRONG_STATE);
            assert_status(tl_rw_done(lock.rw, caller, 0), TL_WRONG_STATE);
        }
        wire_down(line, 0);
        assert_status(call_patiently(DOWNGRADE, lock, 0), TL_OK);
        assert_status(tl_rw_done(lock.rw, caller, 0), TL_OK);
        caller_run(caller, "COMMIT");
        assert_status(any_unlock(lock), TL_OK);
        mysql_close(caller);
        any_free(lock);
        tl_client_close(far);
        wire_reset(line);
    }
    assert_true(doubtful > 0);
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

/* The lock is near: what is cut is the caller's transaction. */
static tl_status guard(const char *name, MYSQL *caller)
{
    any_lock lock = any_taken(f.client, name, 30000);
    tl_status status = any_guard(lock, caller);

    any_free(lock);
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

/* ------------------------------------------------------------------ a late answer -- */

static void *take_far(void *lock)
{
    return (void *)(intptr_t)any_take(*(any_lock *)lock, 0);
}

/* An answer that comes when the lease is over and somebody else has the lock: a process that was
 * stopped would read it as late. */
static void test_an_answer_that_comes_too_late(void **state)
{
    tl_client *far = far_client();
    any_lock late = any_new(far, "late-answer", 200), next;
    wire_fault stall = {.act = WIRE_STALL};
    pthread_t thread;
    void *status;

    (void)state;
    for (int i = 0; i < 2; i++) {
        wire_arm(line, NULL);
        assert_status(any_take(late, 0), TL_GRANTED);
        stall.packet = wire_count(line); /* the last answer: that of the commit */
        assert_status(any_unlock(late), TL_OK);
    }
    wire_arm(line, &stall);
    assert_int_equal(pthread_create(&thread, NULL, take_far, &late), 0);
    while (wire_struck(line) != '<')
        crew_sleep_ms(5);
    crew_sleep_ms(400);
    next = any_taken(f.other, "late-answer", 0);
    (void)wire_release(line);
    pthread_join(thread, &status);
    assert_status((tl_status)(intptr_t)status, TL_BUSY);
    assert_true(any_remaining_ms(next) > 0);
    assert_status(any_unlock(late), TL_NOT_HELD);
    assert_status(any_unlock(next), TL_OK);
    wire_reset(line);
    any_free(next);
    any_free(late);
    tl_client_close(far);
}

TEST_MAIN(packets)
{
    const struct CMUnitTest mutex_tests[] = {
        cmocka_unit_test(test_an_answer_that_comes_too_late),
        cmocka_unit_test(test_each_packet),
        cmocka_unit_test(test_a_doubtful_renewal_is_no_longer_certain),
        cmocka_unit_test(test_a_doubtful_renewal_ends_with_the_session),
        cmocka_unit_test(test_a_late_renewal_shortens_nothing),
        cmocka_unit_test(test_guard),
        cmocka_unit_test(test_row_lock),
    };
    const struct CMUnitTest rw_tests[] = {
        cmocka_unit_test(test_an_answer_that_comes_too_late),
        cmocka_unit_test(test_each_packet),
        cmocka_unit_test(test_a_doubtful_renewal_is_no_longer_certain),
        cmocka_unit_test(test_a_doubtful_renewal_ends_with_the_session),
        cmocka_unit_test(test_a_late_renewal_shortens_nothing),
        cmocka_unit_test(test_guard),
        cmocka_unit_test(test_a_doubtful_downgrade_writes_no_more),
    };

    kind_choose(argc, argv);
    return tested == RW ? server_run_tests(rw_tests, setup, teardown)
                        : server_run_tests(mutex_tests, setup, teardown);
}
