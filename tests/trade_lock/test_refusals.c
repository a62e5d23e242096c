/* Asks of one process that are refused for one key share what they read. */
#include "fixture.h"

#include "support/crew.h"
#include "support/tap.h"
#include "support/theme.h"

#include <tradelock/admin.h>

#include <stdatomic.h>

/* How long a thread that has the processor may think before it sends something. */
#define LOOK_MS 300

struct scene {
    tap *line;
    char *file;
    tl_client *far;
    const tl_lock_options *options;
    const char *serial;
    atomic_int asking;
    tl_status first, second, expected;
};

FIXTURE_OF_ALL(NULL)

static uint64_t statements(const struct scene *scene)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    CREW_STATUS(tl_client_stats(scene->far, &stats), TL_OK);
    return stats.statements;
}

static tl_status ask_once(const struct scene *scene)
{
    tl_status status;
    tl_lock *lock = ask(scene->far, scene->serial, "c1", scene->options, &status);

    tl_lock_free(lock);
    return status;
}

static void act(void *context, int number)
{
    struct scene *scene = context;
    uint64_t before;

    switch (number) {
    case 0:
        scene->first = ask_once(scene);
        return;
    case 1:
        while (!tap_done(scene->line))
            crew_sleep_ms(1);
        atomic_store(&scene->asking, 1);
        scene->second = ask_once(scene);
        return;
    default:
        while (!atomic_load(&scene->asking))
            crew_sleep_ms(1);
        before = statements(scene);
        crew_sleep_ms(LOOK_MS);
        CREW_CHECK(statements(scene) == before);
        tap_release(scene->line);
    }
}

/* A client behind a line of its own; its next heartbeat is far away. */
static void open_far(struct scene *scene)
{
    scene->line = tap_start(server_socket(server_shared()));
    scene->file = database_option_file_at(f.db, tap_socket(scene->line),
                                          "beat_ms=60s\nsession_ms=10m\n"
                                          "read_timeout_s=60\n");
    scene->far = client_of(scene->file, TL_CLIENT_NO_JANITOR);
}

static void close_far(struct scene *scene)
{
    tl_client_close(scene->far);
    tap_free(scene->line);
    remove(scene->file);
    free(scene->file);
}

/* The first ask was refused, and the read that tells it why does not come through; the second one
 * sends nothing meanwhile, and its answer is right all the same. */
static void play(const char *serial, const tl_lock_options *options, tl_status expected)
{
    struct scene scene = {.options = options, .serial = serial};

    open_far(&scene);
    /* The insert, and then the read. */
    tap_rule(scene.line, serial, 1, TAP_DELAY_REQUEST, 0);
    crew_threads(3, act, &scene);
    assert_status(scene.first, expected);
    assert_status(scene.second, expected);
    close_far(&scene);
}

TEST(test_a_trade)
{
    tl_lock *held = granted(f.client, "live", "c1", SYNC);

    play("live", SYNC, TL_BUSY);
    end_paid(held);
    play("live", SYNC, TL_ALREADY_DONE);
}

TEST(test_a_mutex)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_lock *held;

    options.flags = TL_ASK_REPEATABLE;
    options.max_hold_ms = 60000;
    held = granted(f.client, "mutex", "c1", &options);
    play("mutex", &options, TL_BUSY);
    tl_lock_free(held);
}

/* Somebody's open transaction may turn the failure into something else. */
TEST(test_a_failure_that_is_being_decided)
{
    end_lock(granted(f.client, "failed", "c1", SYNC), TL_OUTCOME_FAILURE, TL_PROOF_DECLINED,
             TL_FAILED);
    database_run(f.sql, "START TRANSACTION; SELECT 1 FROM trade_lock WHERE "
                        "cust_no = 'c1' AND serial_no = 'failed' FOR UPDATE");
    play("failed", SYNC, TL_BUSY);
    database_run(f.sql, "ROLLBACK");
    play("failed", SYNC, TL_FAILED);
}

static void act_beside(void *context, int number)
{
    struct scene *scene = context;
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_lock *lock;

    switch (number) {
    case 0:
        lock = ask(scene->far, "slash", "a/b", scene->options, &scene->first);
        tl_lock_free(lock);
        return;
    case 1:
        while (!tap_done(scene->line))
            crew_sleep_ms(1);
        lock = ask(scene->far, "b/slash", "a", scene->options, &scene->second);
        tl_lock_free(lock);
        atomic_store(&scene->asking, 1);
        return;
    default:
        while (!atomic_load(&scene->asking) && crew_now_ms() < end_ms)
            crew_sleep_ms(1);
        CREW_CHECK(atomic_load(&scene->asking));
        tap_release(scene->line);
    }
}

/* Two keys are two, however their parts read one behind the other. */
TEST(test_another_key)
{
    tl_lock_options options = sync_options("x");
    struct scene scene = {.options = &options};

    tl_lock_free(granted(f.client, "slash", "a/b", &options));
    open_far(&scene);
    tap_rule(scene.line, "slash", 1, TAP_DELAY_REQUEST, 0);
    crew_threads(3, act_beside, &scene);
    assert_status(scene.first, TL_BUSY);
    assert_status(scene.second, TL_GRANTED);
    close_far(&scene);
}

static void act_restored(void *context, int number)
{
    struct scene *scene = context;
    tl_lock *lock;

    if (number == 0) {
        scene->first = ask_once(scene);
        return;
    }
    while (!tap_done(scene->line))
        crew_sleep_ms(1);
    CREW_STATUS(tl_restore_declare(f.client, "ann", "backup of monday"), TL_OK);
    /* On a new connection, since the first ask has the only one that was open. */
    lock = ask(scene->far, "fresh", "c1", scene->options, &scene->second);
    tl_lock_free(lock);
    tap_release(scene->line);
}

/* What the row says is read before a restore is noticed, and answered after it. */
TEST(test_a_failure_meets_a_restore)
{
    tl_lock_options options = sync_options("x");
    struct scene scene = {.options = &options, .serial = "backup"};
    end_lock(granted(f.client, "backup", "c1", &options), TL_OUTCOME_FAILURE, TL_PROOF_DECLINED,
             TL_FAILED);
    open_far(&scene);
    tap_rule(scene.line, "backup", 1, TAP_DELAY_REQUEST, 0);
    crew_threads(2, act_restored, &scene);
    assert_status(scene.first, TL_ASK_CHANNEL);
    assert_status(scene.second, TL_ASK_CHANNEL);
    assert_row(&f, "fresh", "c1", "WITHDRAW", "-");
    close_far(&scene);
    database_propose(f.sql);
    assert_status(tl_restore_accept(f.client, "bob", "statements agree", NULL), TL_OK);
}

TESTS_OF(refusals, open_all, close_all)
