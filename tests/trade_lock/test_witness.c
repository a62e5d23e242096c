/*
 * The lock as a mutex, watched by a witness that knows nothing of it: a number in shared memory
 * that is read, and written one higher after a pause.  Two inside at once overlap or lose an
 * update.  The same without the lock must show both, or the witness is blind.
 *
 *     --processes=8 --threads=8 --rounds=50
 */
#include "fixture.h"

#include "support/crew.h"
#include "support/theme.h"

#include <sched.h>

#define WAIT_MS 300000

struct witness {
    long value, inside;
    long overlaps;
};

struct scene {
    fixture f;
    struct witness *witness;
    int locked;
    int processes, threads;
    long rounds;
};

static long get(const long *number)
{
    return __atomic_load_n(number, __ATOMIC_RELAXED);
}

static void set(long *number, long value)
{
    __atomic_store_n(number, value, __ATOMIC_RELAXED);
}

static void see(struct witness *w, long who)
{
    long value = get(&w->value);
    int alone = get(&w->inside) == 0;

    set(&w->inside, who);
    for (int i = 0; i < 20; i++)
        sched_yield();
    alone = alone && get(&w->inside) == who;
    set(&w->inside, 0);
    set(&w->value, value + 1);
    if (!alone)
        __atomic_add_fetch(&w->overlaps, 1, __ATOMIC_RELAXED);
}

struct hand {
    struct scene *scene;
    tl_client *client;
    int process;
};

static void one_round(const struct hand *hand, long who)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_key key = {"the-one", "w", "MUTEX"};
    tl_lock *lock = NULL;

    options.flags = TL_ASK_REPEATABLE;
    options.max_hold_ms = 120000;
    CREW_STATUS(tl_lock_new(&lock, hand->client, &key, &options), TL_OK);
    CREW_STATUS(tl_lock_ask(lock, WAIT_MS), TL_GRANTED);
    see(hand->scene->witness, who);
    CREW_STATUS(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
}

static void work(void *context, int number)
{
    const struct hand *hand = context;
    long who = hand->process * 1000L + number + 1;

    for (long round = 0; round < hand->scene->rounds; round++) {
        if (hand->scene->locked)
            one_round(hand, who);
        else
            see(hand->scene->witness, who);
    }
}

static void process(void *context, int number)
{
    struct hand hand = {.scene = context, .process = number};

    if (hand.scene->locked)
        hand.client = client_new(&hand.scene->f, 0);
    crew_threads(hand.scene->threads, work, &hand);
    tl_client_close(hand.client);
}

static long run(struct scene *scene)
{
    long total;

    scene->processes = (int)crew_number("processes", 8);
    scene->threads = (int)crew_number("threads", 8);
    scene->rounds = crew_number("rounds", 50);
    scene->witness = crew_share(sizeof *scene->witness);
    assert_int_equal(crew_run(scene->processes, process, scene), 0);
    total = scene->processes * scene->threads * scene->rounds;
    print_message("%s the lock: %d processes, %d threads in all, %ld rounds each: %ld times "
                  "inside, %ld of them not alone, %ld updates lost\n",
                  scene->locked ? "with" : "without", scene->processes,
                  scene->processes * scene->threads, scene->rounds, total, scene->witness->overlaps,
                  total - scene->witness->value);
    return total;
}

TEST(test_without_the_lock_they_meet)
{
    struct scene scene = {.locked = 0};
    long total;

    total = run(&scene);
    assert_true(scene.witness->overlaps > 0);
    assert_true(scene.witness->value < total);
    crew_unshare(scene.witness, sizeof *scene.witness);
}

TEST(test_nobody_meets_anybody)
{
    struct scene scene = {.locked = 1};
    long total;

    scene.f.db = database_new(server_shared(), NULL);
    scene.f.sql = database_connect(scene.f.db);
    total = run(&scene);
    assert_int_equal(scene.witness->overlaps, 0);
    assert_int_equal(scene.witness->value, total);
    database_expect(scene.f.sql, total, "SELECT epoch FROM trade_lock");
    database_expect(scene.f.sql, 2 * total, "SELECT COUNT(*) FROM trade_lock_log");
    assert_log_whole(&scene.f);
    crew_unshare(scene.witness, sizeof *scene.witness);
    mysql_close(scene.f.sql);
    database_free(scene.f.db);
}

TESTS_OF(witness, NULL, NULL)
