/*
 * How many steps go by themselves: few do, as long as connections are left, and where more come
 * they share statements, until there have been few for a while.
 */
#include "fixture.h"

#include "support/crew.h"
#include "support/tap.h"
#include "support/theme.h"

#include <stdatomic.h>

/* So many go by themselves where there are connections enough, four of which are left. */
enum { ALONE = 4, CONNECTIONS = 7, ABLE = CONNECTIONS - 4, ALL = ALONE + 2 };
/* Of a crowd's first steps, where there are connections enough: three, and one more beside them. */
enum { CROWD = 4 };
#define SETTINGS "session_ms=2m\npool_wait_ms=2m\ncommit_ms=2m\nread_timeout_s=600\n"

static fixture f;
static tap *line;
static tl_client *near; /* behind the tap */
static char *file;      /* its settings */

static struct {
    char name[16];
    /* Each comes when those before it are on their way, as many as are expected to be; and the
     * last, by whom the tap has no rule, when two are done. */
    int ruled, all;
    tap_act acts[TAP_RULES];
    int expected; /* so many are stuck on their way */
    int stuck;    /* so many were */
    atomic_int done, threads[ALL];
} scene;

FIXTURE(setup)
{
    fixture_open(&f, SETTINGS);
    line = tap_start(server_socket(server_shared()));
}

FIXTURE(teardown)
{
    tap_free(line);
    assert_log_whole(&f);
    fixture_close(&f);
}

static void open_near(const char *settings)
{
    file = database_option_file_at(f.db, tap_socket(line), settings);
    near = client_of(file, TL_CLIENT_NO_JANITOR);
}

static void close_near(void)
{
    tl_client_close(near);
    remove(file);
    free(file);
}

static void name_of(char *to, size_t space, int number)
{
    snprintf(to, space, "%s-%d", scene.name, number);
}

static void ask_and_end(int number)
{
    char serial[32];
    tl_lock *lock;
    tl_status status;

    name_of(serial, sizeof serial, number);
    lock = lock_new(near, serial, "c1", SYNC);
    do
        status = tl_lock_ask(lock, 0);
    while (tl_status_class(status) == TL_CLASS_RETRY || status == TL_UNKNOWN);
    CREW_STATUS(status, TL_GRANTED);
    CREW_STATUS(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
}

static int count_stuck(void)
{
    return scene.ruled - tap_left(line);
}

/* Waits for so many, as long as that can take on a busy machine. */
static void await(int (*count)(void), int wanted)
{
    const int64_t until_ms = crew_now_ms() + PATIENCE_MS;

    while (count() < wanted && crew_now_ms() < until_ms)
        crew_sleep_ms(1);
}

static int count_done(void)
{
    return atomic_load(&scene.done);
}

static int all_sleep(void)
{
    for (int i = 0; i < scene.ruled; i++) {
        int thread = atomic_load(&scene.threads[i]);

        if (thread == 0 || !crew_is_asleep(thread))
            return 0;
    }
    return 1;
}

/* When as many as expected are stuck, and all others have had the time to be. */
static void see_who_is_stuck(void)
{
    await(count_stuck, scene.expected);
    for (int quiet = 0; quiet < 20 && count_done() == 0; quiet = all_sleep() ? quiet + 1 : 0)
        crew_sleep_ms(5);
    scene.stuck = count_stuck();
}

static void let_all_go(void)
{
    while (count_done() < scene.all) {
        tap_release(line);
        crew_sleep_ms(1);
    }
}

static void take_part(int number)
{
    if (number >= scene.ruled)
        await(count_done, 2);
    else
        await(count_stuck, number < scene.expected ? number : scene.expected);
    atomic_store(&scene.threads[number], (int)gettid());
    ask_and_end(number);
    atomic_fetch_add(&scene.done, 1);
}

static void take_part_or_conduct(void *context, int number)
{
    void (*conduct)(void) = *(void (**)(void))context;

    if (number == scene.all)
        conduct();
    else
        take_part(number);
}

static void play(const char *name, int ruled, int expected, void (*conduct)(void))
{
    snprintf(scene.name, sizeof scene.name, "%s", name);
    scene.ruled = ruled;
    scene.expected = expected;
    atomic_store(&scene.done, 0);
    for (int i = 0; i < ruled; i++) {
        char word[32];

        name_of(word, sizeof word, i);
        tap_rule(line, word, 0, scene.acts[i], 0);
        atomic_store(&scene.threads[i], 0);
    }
    crew_threads(scene.all + 1, take_part_or_conduct, &conduct);
    tap_clear(line); /* where steps shared statements some were not met */
}

static void see_and_let_go(void)
{
    see_who_is_stuck();
    let_all_go();
}

/* How many were on their way at once, when nobody got on any more. */
static int stuck_at_once(const char *name, int all, int expected)
{
    for (int i = 0; i < TAP_RULES; i++)
        scene.acts[i] = TAP_DELAY_REQUEST;
    scene.all = all;
    play(name, all, expected, see_and_let_go);
    return scene.stuck;
}

static void ask_and_end_alone(const char *name, int times)
{
    snprintf(scene.name, sizeof scene.name, "%s", name);
    for (int i = 0; i < times; i++)
        ask_and_end(i);
}

TEST(test_four_connections_are_left)
{
    char settings[160];

    snprintf(settings, sizeof settings, "pool_size=%d\n" SETTINGS, CONNECTIONS);
    open_near(settings);
    assert_int_equal(stuck_at_once("four", ABLE, ABLE), ABLE);
    assert_int_equal(stuck_at_once("more", ABLE + 2, ABLE), ABLE);
    assert_int_equal(stuck_at_once("many", ABLE + 2, ABLE), ABLE);
    close_near();
}

TEST(test_no_more_than_four)
{
    tl_stats stats = {.version = TL_STATS_VERSION};
    int64_t begin_ms;

    open_near("pool_size=64\n" SETTINGS);
    assert_int_equal(stuck_at_once("few", ALONE, ALONE), ALONE);
    assert_status(tl_client_stats(near, &stats), TL_OK);
    assert_int_equal(stats.groups, 0);

    /* One too many; from then on there are the places of a crowd, for at least one span of
     * steps. */
    assert_int_equal(stuck_at_once("crowd", ALONE + 1, ALONE), ALONE);
    assert_int_equal(stuck_at_once("wary", ALONE, CROWD), CROWD);
    /* So each of these waits for others, a millisecond. */
    begin_ms = crew_now_ms();
    ask_and_end_alone("span", 20);
    assert_true(crew_now_ms() - begin_ms >= 2 * 20 - 1);
    assert_int_equal(stuck_at_once("still", ALONE, CROWD), CROWD);
    ask_and_end_alone("calm", 100);
    assert_int_equal(stuck_at_once("again", ALONE, ALONE), ALONE);
    close_near();
}

/* The fourth is back, and the fifth has had its verdict, while three are stuck; and so has the
 * sixth, who came when nobody else was there any more. */
static void release_one(void)
{
    see_who_is_stuck();
    tap_release(line); /* from now on the fifth's request goes by, too */
    await(count_done, ALL - scene.expected + 1);
    scene.stuck = scene.all - count_done();
    tap_cut(line);
}

/* More came than may go by themselves, and of those who do most never come back: a group may go
 * beside them. */
TEST(test_nobody_waits_for_who_is_stuck)
{
    open_near("pool_size=64\n" SETTINGS);
    for (int i = 0; i < TAP_RULES; i++)
        scene.acts[i] = i < ALONE - 1 ? TAP_STALL : TAP_DELAY_REQUEST;
    scene.all = ALL;
    play("stalled", ALONE + 1, ALONE, release_one);
    assert_int_equal(scene.stuck, ALONE - 1);
    close_near();
}

TESTS_OF(places, setup, teardown)
