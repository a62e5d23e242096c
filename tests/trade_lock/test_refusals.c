/* Asks of one process that are refused for one key share what they read. */
#include "fixture.h"

#include "support/crew.h"
#include "support/tap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* How long a thread that has the processor may think before it sends something. */
#define LOOK_MS 300

static fixture f;

struct scene {
    tap *line;
    tl_client *far;
    const tl_lock_options *options;
    const char *serial;
    atomic_int asking;
    tl_status first, second, expected;
};

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

/* The first ask was refused, and the read that tells it why does not come through; the
 * second one sends nothing meanwhile, and its answer is right all the same. */
static void play(const char *serial, const tl_lock_options *options, tl_status expected)
{
    struct scene scene = {.line = tap_start(server_socket(server_shared())),
                          .options = options,
                          .serial = serial};
    char *file = database_option_file_at(f.db, tap_socket(scene.line),
                                         "beat_ms=20s\nsession_ms=60s\n"
                                         "read_timeout_s=60\n");
    tl_client_options client = TL_CLIENT_OPTIONS_INIT;

    client.config_file = file;
    client.flags = TL_CLIENT_NO_JANITOR;
    assert_status(tl_client_open(&scene.far, &client), TL_OK);
    /* The insert, and then the read. */
    tap_rule(scene.line, serial, 1, TAP_DELAY_REQUEST, 0);
    crew_threads(3, act, &scene);
    assert_status(scene.first, expected);
    assert_status(scene.second, expected);
    tl_client_close(scene.far);
    tap_free(scene.line);
    remove(file);
    free(file);
}

static void test_a_trade(void **state)
{
    tl_lock_options options = sync_options("x");
    tl_lock *held = granted(f.client, "live", "c1", &options);

    (void)state;
    play("live", &options, TL_BUSY);
    assert_status(finish(held, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(held);
    play("live", &options, TL_ALREADY_DONE);
}

static void test_a_mutex(void **state)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_lock *held;

    (void)state;
    options.flags = TL_ASK_REPEATABLE;
    options.max_hold_ms = 60000;
    held = granted(f.client, "mutex", "c1", &options);
    play("mutex", &options, TL_BUSY);
    tl_lock_free(held);
}

static int setup(void **state)
{
    (void)state;
    fixture_open(&f, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_close(&f);
    return 0;
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_trade),
                                       cmocka_unit_test(test_a_mutex)};

    crew_arguments(count, arguments);
    return server_report(cmocka_run_group_tests(tests, setup, teardown));
}
