/* One mutex: who gets it, for how long, and what each call answers. */
#include "fixture.h"
#include "support/client.h"
#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/admin.h>

#include <pthread.h>
#include <stdatomic.h>

FIXTURE_OF_ALL("beat_ms=100\nsession_ms=30s\n")

/* ------------------------------------------------------------------ the articles -- */

static atomic_int winners, losers;

/* Until all others have answered, however slow the machine is. */
static void hold_until_all_have_asked(void)
{
    AWAIT_WHILE(atomic_load(&losers) < 19);
}

static void *compete(void *argument)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = mutex_new(argument, "order_7", &options);

    switch (tl_mutex_lock(mutex, 0)) {
    case TL_GRANTED:
        atomic_fetch_add(&winners, 1);
        hold_until_all_have_asked();
        break;
    case TL_BUSY:
        atomic_fetch_add(&losers, 1);
        break;
    default:
        break;
    }
    tl_mutex_free(mutex);
    return NULL;
}

TEST(test_twenty_at_once_one_winner)
{
    pthread_t threads[20];

    for (int i = 0; i < 20; i++)
        pthread_create(&threads[i], NULL, compete, i % 2 ? f.client : f.other);
    for (int i = 0; i < 20; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(winners, 1);
    assert_int_equal(losers, 19);
    assert_status(try_once(f.client, "order_7"), TL_GRANTED);
}

TEST(test_ten_locks_and_nine_unlocks)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = mutex_new(f.client, "key1", &options);
    uint64_t fence;
    long long steps;

    assert_status(tl_mutex_lock(mutex, 1000), TL_GRANTED);
    fence = tl_mutex_fence(mutex, "key1");
    steps = database_number(f.sql, "SELECT COUNT(*) FROM resource_log");
    for (int i = 0; i < 9; i++)
        assert_status(tl_mutex_lock(mutex, 1000), TL_GRANTED);
    assert_int_equal(tl_mutex_depth(mutex), 10);
    assert_int_equal(tl_mutex_fence(mutex, NULL), fence);
    for (int i = 0; i < 9; i++)
        assert_status(tl_mutex_unlock(mutex), TL_OK);
    /* Counted in the process: nothing was written for it. */
    database_expect(f.sql, steps, "SELECT COUNT(*) FROM resource_log");
    assert_status(try_once(f.other, "key1"), TL_BUSY);
    assert_status(tl_mutex_unlock(mutex), TL_OK);
    assert_status(try_once(f.other, "key1"), TL_GRANTED);
    assert_status(tl_mutex_unlock(mutex), TL_RELEASED);
    tl_mutex_free(mutex);
}

TEST(test_ten_handles_of_one_thread)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *handles[10];

    options.flags = TL_MUTEX_BY_THREAD;
    for (int i = 0; i < 10; i++)
        handles[i] = locked(f.client, "key1-thread", &options);
    assert_int_equal(tl_mutex_fence(handles[9], NULL), tl_mutex_fence(handles[0], NULL));
    for (int i = 0; i < 9; i++)
        assert_status(tl_mutex_unlock(handles[i]), TL_OK);
    assert_status(tl_mutex_unlock(handles[0]), TL_RELEASED);
    assert_status(try_once(f.client, "key1-thread"), TL_BUSY);
    /* The handle that was granted may go before the others. */
    tl_mutex_free(handles[0]);
    assert_status(try_once(f.client, "key1-thread"), TL_BUSY);
    assert_status(tl_mutex_unlock(handles[9]), TL_OK);
    assert_status(try_once(f.client, "key1-thread"), TL_GRANTED);
    for (int i = 1; i < 10; i++)
        tl_mutex_free(handles[i]);
}

struct expiry {
    int64_t lease_ms, wait_ms, got_ms;
    tl_status status;
    uint64_t fence;
};

static void *wait_for_expiry(void *argument)
{
    struct expiry *e = argument;
    tl_mutex_options options = lease_options(e->lease_ms);
    tl_mutex *mutex = mutex_new(f.client, "key2", &options);

    e->status = tl_mutex_lock(mutex, e->wait_ms);
    e->got_ms = crew_now_ms();
    e->fence = tl_mutex_fence(mutex, NULL);
    if (tl_mutex_unlock(mutex) != TL_OK)
        e->status = TL_INTERNAL;
    tl_mutex_free(mutex);
    return NULL;
}

/* The article's own numbers: a lease of 5 s that is never unlocked, and a second thread that waits
 * up to 7 s. */
TEST(test_held_until_expiry_then_taken_over)
{
    struct expiry e = {.lease_ms = 5000, .wait_ms = 7000};
    tl_mutex_options options = lease_options(5000);
    int64_t begun_ms = crew_now_ms();
    tl_mutex *mutex = locked(f.client, "key2", &options);
    pthread_t thread;

    pthread_create(&thread, NULL, wait_for_expiry, &e);
    pthread_join(thread, NULL);
    assert_status(e.status, TL_GRANTED);
    assert_true(e.got_ms - begun_ms >= 5000);
    print_message("taken over %lld ms after a lease of 5000 ms began\n",
                  (long long)(e.got_ms - begun_ms));
    assert_true(e.fence > tl_mutex_fence(mutex, NULL));
    assert_int_equal(tl_mutex_remaining_ms(mutex), 0);
    assert_status(tl_mutex_unlock(mutex), TL_LOST);
    assert_status(tl_mutex_unlock(mutex), TL_LOST);
    tl_mutex_free(mutex);
}

/* ----------------------------------------------------------------- the answers -- */

TEST(test_four_answers_of_unlock)
{
    tl_mutex_options options = lease_options(100);
    tl_mutex *mutex = mutex_new(f.client, "answers", &options), *next;

    assert_status(tl_mutex_unlock(mutex), TL_NOT_HELD);
    assert_status(tl_mutex_lock(mutex, 0), TL_GRANTED);
    assert_status(tl_mutex_unlock(mutex), TL_OK);
    assert_status(tl_mutex_unlock(mutex), TL_RELEASED);
    /* The handle may lock again; a lease that nobody took over is released honestly. */
    assert_status(tl_mutex_lock(mutex, 0), TL_GRANTED);
    crew_sleep_ms(150);
    assert_int_equal(tl_mutex_remaining_ms(mutex), 0);
    assert_status(tl_mutex_lock(mutex, 0), TL_LOST);
    assert_status(tl_mutex_unlock(mutex), TL_OK);
    assert_status(tl_mutex_lock(mutex, 0), TL_GRANTED);
    crew_sleep_ms(150);
    options = lease_options(60000);
    next = locked(f.other, "answers", &options);
    assert_status(tl_mutex_unlock(mutex), TL_LOST);
    assert_true(tl_mutex_remaining_ms(next) > 0);
    assert_status(tl_mutex_unlock(next), TL_OK);
    tl_mutex_free(mutex);
    tl_mutex_free(next);
}

TEST(test_a_refusal_writes_nothing_and_says_who)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex, *refused;
    long long steps;
    const tl_resource_view *view;

    options.payload = "batch 2026-03";
    options.payload_size = strlen(options.payload);
    options.actor = "cron";
    mutex = locked(f.client, "nightly", &options);
    steps = database_number(f.sql, "SELECT COUNT(*) FROM resource_log");
    refused = mutex_new(f.other, "nightly", &options);
    assert_status(tl_mutex_lock(refused, 0), TL_BUSY);
    view = tl_mutex_view(refused);
    assert_int_equal(view->state, TL_RESOURCE_HELD);
    assert_true(view->renewed);
    assert_memory_equal(view->payload, "batch 2026-03", 13);
    assert_string_equal(view->actor, "cron");
    assert_string_equal(view->session_id, tl_client_session(f.client));
    assert_int_equal(view->fence, tl_mutex_fence(mutex, "nightly"));
    assert_non_null(strstr(view->holder, "test "));
    assert_status(tl_mutex_lock(refused, 300), TL_TIMEOUT);
    database_expect(f.sql, steps, "SELECT COUNT(*) FROM resource_log");
    assert_status(tl_mutex_unlock(refused), TL_NOT_HELD);
    tl_mutex_free(refused);
    tl_mutex_free(mutex);
    assert_status(try_once(f.other, "nightly"), TL_GRANTED);
}

/* The holder counts from before its ask, and the server from when it came. */
static tl_status try_at_last(tl_client *client, const char *resource)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = mutex_new(client, resource, &options);
    tl_status status = tl_mutex_lock(mutex, PATIENCE_MS);

    tl_mutex_free(mutex);
    return status;
}

/* An ask looks at the holder's session and never locks it: one that is stopped halfway, as of a set
 * it may be, would stop the holder's heartbeat.  So it does not wait for it either. */
static void ask_beside_a_locked_session(const char *const *resources, size_t count)
{
    tl_mutex_options options = lease_options(0);
    tl_client *client = client_new(&f);
    tl_mutex *dead = locked(client, resources[0], &options), *mutex = NULL;
    MYSQL *admin = database_connect(f.db);

    database_run(admin,
                 "SELECT session_id INTO @s FROM resource_lock WHERE resource = '%s';"
                 "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6) WHERE session_id = @s;"
                 "BEGIN; UPDATE tl_session SET beat = beat + 1 WHERE session_id = @s",
                 resources[0]);
    assert_status(tl_mutex_new_set(&mutex, f.other, resources, count, &options), TL_OK);
    assert_status(tl_mutex_lock(mutex, 0), TL_GRANTED);
    database_run(admin, "ROLLBACK");
    mysql_close(admin);
    assert_status(tl_mutex_unlock(dead), TL_LOST);
    assert_status(tl_mutex_unlock(mutex), TL_OK);
    tl_mutex_free(mutex);
    tl_mutex_free(dead);
    tl_client_close(client);
}

/* The heartbeat counts for the lock: no write for it, however long. */
TEST(test_renewed_by_the_session_until_max_hold)
{
    tl_mutex_options options = lease_options(0);
    char *file = database_option_file_at(f.db, server_socket(server_shared()),
                                         "beat_ms=100\nsession_ms=4s\n");
    tl_client *client = NULL;
    tl_mutex *mutex;
    int64_t begun_ms;

    client = CLIENT(.config_file = file);
    options.max_hold_ms = 9000;
    begun_ms = crew_now_ms();
    mutex = locked(client, "long-job", &options);
    crew_sleep_ms(4600); /* longer than a session time-out */
    assert_true(tl_mutex_remaining_ms(mutex) > 0);
    assert_status(try_once(f.other, "long-job"), TL_BUSY);
    database_expect(f.sql, 1, "SELECT COUNT(*) FROM resource_log WHERE resource='long-job'");
    while (tl_mutex_remaining_ms(mutex) > 0)
        crew_sleep_ms(10);
    assert_true(crew_now_ms() - begun_ms >= 9000);
    assert_status(try_at_last(f.other, "long-job"), TL_GRANTED);
    assert_status(tl_mutex_unlock(mutex), TL_LOST);
    tl_mutex_free(mutex);
    tl_client_close(client);
    remove(file);
    free(file);
}

TEST(test_sessions_are_never_locked)
{
    static const char *const resources[] = {"session/2", "session/1", "session/3"};

    ask_beside_a_locked_session(resources, 1);
    ask_beside_a_locked_session(resources, 3);
}

TEST(test_minimum_hold)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex, *late;

    options.min_hold_ms = 4000;
    mutex = locked(f.client, "min-hold", &options);
    assert_status(tl_mutex_unlock(mutex), TL_OK);
    late = mutex_new(f.other, "min-hold", &options);
    assert_status(tl_mutex_lock(late, 0), TL_BUSY);
    assert_int_equal(tl_mutex_view(late)->state, TL_RESOURCE_KEPT);
    assert_status(tl_mutex_lock(late, PATIENCE_MS), TL_GRANTED);
    tl_mutex_free(mutex);
    tl_mutex_free(late);
}

/* ------------------------------------------------------------------- operators -- */

static int count_views(void *context, const tl_resource_view *view)
{
    (void)view;
    ++*(int *)context;
    return 0;
}

TEST(test_force_unlock_raises_the_fence)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = locked(f.client, "stuck/1", &options), *next;
    uint64_t fence = tl_mutex_fence(mutex, NULL);
    tl_resource_filter filter = {.version = TL_RESOURCE_FILTER_VERSION, .prefix = "stuck/"};
    int seen = 0;

    assert_status(tl_resource_list(f.other, &filter, count_views, &seen), TL_OK);
    assert_int_equal(seen, 1);
    assert_status(tl_resource_show(f.other, "stuck/2", count_views, &seen), TL_NOT_FOUND);
    assert_status(tl_resource_unlock(f.other, "stuck/1", fence - 1, "ann", "hangs"), TL_LOST);
    assert_status(tl_resource_unlock(f.other, "stuck/1", fence, "", "hangs"), TL_INVALID);
    assert_status(tl_resource_unlock(f.other, "stuck/1", fence, "ann", "hangs"), TL_OK);
    assert_status(tl_resource_unlock(f.other, "stuck/1", fence + 1, "ann", "again"), TL_NOT_HELD);
    assert_status(tl_resource_unlock(f.other, "stuck/2", 1, "ann", "hangs"), TL_NOT_FOUND);
    next = locked(f.other, "stuck/1", &options);
    assert_true(tl_mutex_fence(next, NULL) > fence + 1);
    assert_status(tl_mutex_unlock(mutex), TL_LOST);
    database_expect(f.sql, 1,
                    "SELECT COUNT(*) FROM resource_log WHERE step='force unlock' AND actor='ann' "
                    "AND remark='hangs'");
    tl_mutex_free(mutex);
    tl_mutex_free(next);
}

/* ------------------------------------------------------------------------ loss -- */

struct loss {
    atomic_int calls, why;
};

static void on_loss(void *context, const char *resource, tl_status why)
{
    struct loss *loss = context;

    (void)resource;
    atomic_store(&loss->why, (int)why);
    atomic_fetch_add(&loss->calls, 1);
}

static void wait_for_loss(struct loss *loss, tl_status why)
{
    int64_t begun_ms = crew_now_ms();

    while (atomic_load(&loss->calls) == 0 && crew_now_ms() - begun_ms < PATIENCE_MS)
        crew_sleep_ms(10);
    assert_int_equal(atomic_load(&loss->calls), 1);
    assert_status((tl_status)atomic_load(&loss->why), why);
}

TEST(test_loss_is_told)
{
    struct loss lease = {0}, forced = {0}, none = {0};
    tl_mutex_options options = lease_options(300);
    tl_mutex *a, *b, *c;

    options.loss = on_loss;
    options.loss_context = &lease;
    a = locked(f.client, "loss-lease", &options);
    options = lease_options(0);
    options.loss = on_loss;
    options.loss_context = &forced;
    b = locked(f.client, "loss-forced", &options);
    options.loss_context = &none;
    c = locked(f.client, "loss-none", &options);
    assert_status(
        tl_resource_unlock(f.other, "loss-forced", tl_mutex_fence(b, NULL), "ann", "test"), TL_OK);
    wait_for_loss(&forced, TL_LOST);
    wait_for_loss(&lease, TL_TIMEOUT);
    assert_int_equal(tl_mutex_remaining_ms(b), 0);
    assert_status(tl_mutex_unlock(b), TL_LOST);
    assert_status(tl_mutex_unlock(c), TL_OK);
    tl_mutex_free(a);
    tl_mutex_free(b);
    tl_mutex_free(c);
    crew_sleep_ms(300);
    assert_int_equal(atomic_load(&none.calls), 0);
    assert_int_equal(atomic_load(&lease.calls), 1);
}

static void *lock_handle_of_another(void *argument)
{
    tl_mutex *mutex = argument;

    assert_status(tl_mutex_lock(mutex, 0), TL_WRONG_STATE);
    assert_status(tl_mutex_unlock(mutex), TL_NOT_HELD);
    assert_status(tl_mutex_renew(mutex, 1000), TL_NOT_HELD);
    return NULL;
}

TEST(test_reentering_through_anothers_handle)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = locked(f.client, "mine", &options), *second;
    pthread_t thread;

    /* Without the flag another handle is another holder, even of the same thread. */
    second = mutex_new(f.client, "mine", &options);
    assert_status(tl_mutex_lock(second, 0), TL_BUSY);
    assert_status(tl_mutex_unlock(second), TL_NOT_HELD);
    tl_mutex_free(mutex);
    options.flags = TL_MUTEX_BY_THREAD;
    mutex = locked(f.client, "mine", &options);
    pthread_create(&thread, NULL, lock_handle_of_another, mutex);
    pthread_join(thread, NULL);
    assert_int_equal(tl_mutex_depth(mutex), 1);
    assert_status(tl_mutex_unlock(mutex), TL_OK);
    tl_mutex_free(mutex);
    tl_mutex_free(second);
}

TESTS_OF(mutex, open_all, close_all)
