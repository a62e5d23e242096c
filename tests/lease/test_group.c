/*
 * Locks and unlocks of many threads that share statements and commits: a crowd, and groups in which
 * something goes wrong with one.  Small enough to run under both sanitizers.
 *
 * --threads=64 --rounds=12
 */
#include "fixture.h"

#include "support/client.h"
#include "support/crew.h"
#include "support/tap.h"
#include "support/theme.h"

#include <stdatomic.h>

/* Groups form, and no session ends, on a machine that is busy with other things. */
#define SETTINGS "session_ms=2m\npool_wait_ms=2m\ncommit_ms=2m\nask_wait_max_ms=20ms\n"
/* So many threads want each shared resource. */
#define RIVALS 8
#define WAIT_MS 120000

static fixture f;
static tap *line;
static char *file;
static tl_client *far; /* behind the tap */

FIXTURE(setup)
{
    fixture_open(&f, SETTINGS);
    line = tap_start(server_socket(server_shared()));
    /* As many connections as are held below. */
    file = database_option_file_at(f.db, tap_socket(line), "pool_size=3\n" SETTINGS);
    far = CLIENT(.config_file = file, .flags = TL_CLIENT_NO_JANITOR);
}

FIXTURE(teardown)
{
    tl_client_close(far);
    tap_free(line);
    remove(file);
    free(file);
    fixture_close(&f);
}

/* The same call again while nothing happened: the machine was too slow for a deadline. */
static tl_status lock_on(tl_mutex *mutex, int64_t wait_ms)
{
    tl_status status;

    do
        status = tl_mutex_lock(mutex, wait_ms);
    while (tl_status_class(status) == TL_CLASS_RETRY);
    return status;
}

/* ------------------------------------------------------------------------- a crowd -- */

/* What the threads know of a shared resource. */
struct shared {
    atomic_int inside;
    atomic_ullong fence, grants;
};

static struct {
    int threads;
    long rounds;
    struct shared *shared;
} crowd;

static void use(struct shared *r, tl_mutex *mutex)
{
    uint64_t fence = tl_mutex_fence(mutex, NULL);

    CREW_CHECK(atomic_fetch_add(&r->inside, 1) == 0);
    CREW_CHECK(fence > atomic_exchange(&r->fence, fence));
    atomic_fetch_add(&r->grants, 1);
    CREW_CHECK(atomic_fetch_sub(&r->inside, 1) == 1);
    CREW_STATUS(tl_mutex_unlock(mutex), TL_OK);
}

static void come_and_go(void *context, int number)
{
    struct shared own = {0}, *theirs = &crowd.shared[number / RIVALS];
    tl_mutex_options renewed = lease_options(0), leased = lease_options(60000);
    char mine[24], ours[24];
    tl_mutex *one, *other;

    (void)context;
    snprintf(mine, sizeof mine, "own-%d", number);
    snprintf(ours, sizeof ours, "shared-%d", number / RIVALS);
    one = mutex_new(f.client, mine, number % 2 ? &renewed : &leased);
    other = mutex_new(f.client, ours, number % 2 ? &renewed : &leased);
    for (long round = 0; round < crowd.rounds; round++) {
        /* Every third time it waits, and has it in the end. */
        int64_t wait_ms = round % 3 == 2 ? WAIT_MS : 0;
        tl_status status;

        CREW_STATUS(lock_on(one, 0), TL_GRANTED);
        use(&own, one);
        status = lock_on(other, wait_ms);
        if (status == TL_GRANTED)
            use(theirs, other);
        else
            CREW_CHECK(status == TL_BUSY && wait_ms == 0);
    }
    tl_mutex_free(one);
    tl_mutex_free(other);
}

static long long steps_of(const char *pattern)
{
    return database_number(f.sql, "SELECT COUNT(*) FROM resource_log WHERE resource LIKE '%s'",
                           pattern);
}

TEST(test_many_threads_share_statements)
{
    unsigned long long grants = 0;
    tl_stats stats;

    crowd.threads = (int)crew_number("threads", 64) / RIVALS * RIVALS;
    crowd.rounds = crew_number("rounds", 12);
    crowd.shared = calloc((size_t)crowd.threads / RIVALS, sizeof *crowd.shared);
    crew_threads(crowd.threads, come_and_go, NULL);
    stats = stats_of(f.client);
    for (int i = 0; i < crowd.threads / RIVALS; i++)
        grants += atomic_load(&crowd.shared[i].grants);
    print_message("%d threads: %llu grants and %llu refusals, %llu steps in %llu groups; "
                  "%llu statements, %llu repeats\n",
                  crowd.threads, (unsigned long long)stats.grants,
                  (unsigned long long)stats.refusals, (unsigned long long)stats.grouped,
                  (unsigned long long)stats.groups, (unsigned long long)stats.statements,
                  (unsigned long long)stats.repeats);
    /* Several in a group, or this test has looked at something else. */
    assert_true(stats.grouped > 2 * stats.groups);
    assert_int_equal(stats.lost + stats.unknown, 0);
    /* A row of history for each grant and each unlock, and no other. */
    assert_int_equal(steps_of("own-%"), 2 * crowd.rounds * crowd.threads);
    assert_int_equal(steps_of("shared-%"), (long long)(2 * grants));
    database_expect(
        f.sql, 0,
        "SELECT COUNT(*) FROM (SELECT CAST(fence AS SIGNED) - LAG(fence) OVER (PARTITION BY "
        "resource ORDER BY rev) AS rise FROM resource_log) x WHERE rise <= 0");
    database_expect(f.sql, 0, "SELECT COUNT(*) FROM resource_lock WHERE status = 'L'");
    free(crowd.shared);
}

/* -------------------------------------------------- groups in which one goes wrong -- */

/* As many as are on their way at once, who wait behind them, and the one among those with whom
 * something is wrong. */
enum { HELD = 3, CROWD = 24, ALL = HELD + CROWD, ODD = HELD + 7 };

static struct hand {
    tl_mutex *mutex;
    tl_status status;
    atomic_int thread; /* 0: it has not come yet; -1: it has its answer */
} hands[ALL];

static struct {
    const char *name; /* what all resources of the test begin with */
    tl_status (*call)(tl_mutex *mutex);
    void (*then)(void); /* when the places are free again, while the others are at it */
    int faults;         /* rules of the tap besides those that keep the places taken */
} scene;

static tl_status lock(tl_mutex *mutex)
{
    return lock_on(mutex, 0);
}

/* The first are those on their way. */
static void name_of(char *to, size_t space, int number)
{
    if (number < HELD)
        snprintf(to, space, "%s-%d", scene.name, number);
    else
        snprintf(to, space, "%s-n%d", scene.name, number - HELD);
}

static void begin(const char *name, const char *odd_remark)
{
    scene.name = name;
    for (int i = 0; i < ALL; i++) {
        tl_mutex_options options = lease_options(i % 2 ? 0 : 60000);
        char resource[40];

        name_of(resource, sizeof resource, i);
        options.remark = i == ODD ? odd_remark : "good";
        hands[i].mutex = mutex_new(far, resource, &options);
    }
}

static void end(void)
{
    for (int i = 0; i < ALL; i++)
        tl_mutex_free(hands[i].mutex);
}

static void call_all(tl_status (*call)(tl_mutex *mutex), tl_status expected)
{
    for (int i = 0; i < ALL; i++)
        assert_status(call(hands[i].mutex), expected);
}

static int all_wait(void)
{
    for (int i = 0; i < ALL; i++) {
        int thread = atomic_load(&hands[i].thread);

        if (thread == 0 || (thread > 0 && !crew_is_asleep(thread)))
            return 0;
    }
    return 1;
}

/* Lets the places go when everybody waits, for an answer or for a place. */
static void conduct(void)
{
    for (int quiet = 0; quiet < 20; quiet = all_wait() ? quiet + 1 : 0)
        crew_sleep_ms(5);
    tap_release(line);
    if (scene.then != NULL)
        scene.then();
}

static void take_part(void *context, int number)
{
    struct hand *hand = &hands[number < ALL ? number : 0];

    (void)context;
    if (number == ALL) {
        conduct();
        return;
    }
    while (number >= HELD && tap_left(line) > scene.faults)
        crew_sleep_ms(1);
    atomic_store(&hand->thread, (int)gettid());
    hand->status = scene.call(hand->mutex);
    atomic_store(&hand->thread, -1);
}

/* A crowd was here; now tasks come one by one for so long that no group waits for more of them. */
static void calm_down(void)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = mutex_new(far, "calm", &options);

    for (int i = 0; i < 70; i++) {
        assert_status(lock(mutex), TL_GRANTED);
        assert_status(tl_mutex_unlock(mutex), TL_OK);
    }
    tl_mutex_free(mutex);
}

/* Everybody calls this, all but the first of them in groups; gives what the client has counted
 * meanwhile. */
static tl_stats in_groups(tl_status (*call)(tl_mutex *mutex), void (*then)(void), int faults)
{
    tl_stats before, after;

    calm_down();
    before = stats_of(far);
    scene.call = call;
    scene.then = then;
    scene.faults = faults;
    for (int i = 0; i < ALL; i++)
        atomic_store(&hands[i].thread, 0);
    for (int i = 0; i < HELD; i++) {
        char word[40];

        name_of(word, sizeof word, i);
        tap_rule(line, word, 0, TAP_DELAY_REQUEST, 0);
    }
    crew_threads(ALL + 1, take_part, NULL);
    assert_true(tap_done(line));
    after = stats_of(far);
    after.groups -= before.groups;
    after.grouped -= before.grouped;
    after.settled -= before.settled;
    after.statements -= before.statements;
    assert_true(after.grouped >= CROWD - 1); /* the odd one may have nothing to ask */
    assert_true(after.grouped >= 2 * after.groups);
    return after;
}

static void assert_answers(tl_status expected, tl_status of_the_odd)
{
    for (int i = 0; i < ALL; i++)
        assert_status(hands[i].status, i == ODD ? of_the_odd : expected);
}

static void assert_steps(int expected, int of_the_odd)
{
    for (int i = 0; i < ALL; i++) {
        char resource[40];

        name_of(resource, sizeof resource, i);
        assert_int_equal(steps_of(resource), i == ODD ? of_the_odd : expected);
    }
}

/* The statement, with the odd one's name in quotes at its end. */
static void run_on_odd(const char *sql)
{
    char resource[40];

    name_of(resource, sizeof resource, ODD);
    database_run(f.sql, "%s'%s'", sql, resource);
}

TEST(test_a_row_that_the_server_refuses)
{
    database_run(f.sql, "ALTER TABLE resource_lock ADD CONSTRAINT no_bad_remark "
                        "CHECK (remark IS NULL OR remark <> 'bad')");
    begin("refused", "bad");
    in_groups(lock, NULL, 0);
    assert_answers(TL_GRANTED, TL_SERVER_ERROR);
    assert_steps(1, 0);
    in_groups(tl_mutex_unlock, NULL, 0);
    assert_answers(TL_OK, TL_NOT_HELD);
    assert_steps(2, 0);
    end();
    database_run(f.sql, "ALTER TABLE resource_lock DROP CONSTRAINT no_bad_remark");
}

static void let_go_when_the_others_are_done(void)
{
    for (int i = 0; i < ALL; i++)
        while (i != ODD && atomic_load(&hands[i].thread) != -1)
            crew_sleep_ms(1);
    CREW_CHECK(atomic_load(&hands[ODD].thread) != -1);
    database_run(f.sql, "COMMIT");
}

static void take_odd_row(void)
{
    database_run(f.sql, "START TRANSACTION");
    run_on_odd("UPDATE resource_lock SET rev = rev WHERE resource = ");
}

/* An ask does not wait for it, an unlock does. */
TEST(test_a_row_that_is_taken)
{
    begin("taken", "good");
    call_all(lock, TL_GRANTED);
    call_all(tl_mutex_unlock, TL_OK);
    take_odd_row();
    in_groups(lock, NULL, 0);
    database_run(f.sql, "COMMIT");
    assert_answers(TL_GRANTED, TL_BUSY);
    assert_steps(3, 2);
    assert_status(lock(hands[ODD].mutex), TL_GRANTED);
    take_odd_row();
    in_groups(tl_mutex_unlock, let_go_when_the_others_are_done, 0);
    assert_answers(TL_OK, TL_OK);
    assert_steps(4, 4);
    end();
}

/* Taken away, or not there any more: the lock was lost, and no row is made of it. */
TEST(test_a_row_that_was_lost)
{
    static const char *const names[] = {"forced", "gone"};
    static const char *const how[] = {
        "UPDATE resource_lock SET status = 'U', token = REVERSE(token), step = 'force', "
        "fence = fence + 1, rev = rev + 1 WHERE resource = ",
        "DELETE FROM resource_lock WHERE resource = "};

    for (int way = 0; way < 2; way++) {
        begin(names[way], "good");
        call_all(lock, TL_GRANTED);
        run_on_odd(how[way]);
        in_groups(tl_mutex_unlock, NULL, 0);
        assert_answers(TL_OK, TL_LOST);
        assert_steps(2, 2);
        end();
    }
    database_expect(f.sql, 0, "SELECT COUNT(*) FROM resource_lock WHERE resource = 'gone-n7'");
}

/* Whoever is refused reads who has it, and asks again only where that one is dead; the first ask is
 * not made again. */
TEST(test_dead_and_living_holders)
{
    tl_mutex *holders[ALL];
    tl_stats stats;

    begin("dead", "good");
    /* With all connections that it takes, which are there then. */
    in_groups(lock, NULL, 0);
    in_groups(tl_mutex_unlock, NULL, 0);
    database_run(f.sql, "UPDATE resource_lock SET status = 'L', step = 'lock', rev = rev "
                        "+ 1, max_hold_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR, "
                        "session_id = UUID() WHERE resource LIKE 'dead-%%'");
    stats = in_groups(lock, NULL, 0);
    assert_answers(TL_GRANTED, TL_GRANTED);
    assert_steps(4, 4);
    database_expect(
        f.sql, ALL,
        "SELECT COUNT(*) FROM resource_lock WHERE resource LIKE 'dead-%%' AND step = 'take over'");
    /* Of each the read and the second ask, and one first ask, which most share. */
    assert_in_range(stats.statements, 2 * ALL, 3 * ALL + 2 * stats.repeats);
    for (int i = 0; i < ALL; i++)
        holders[i] = hands[i].mutex;
    begin("dead", "good");
    in_groups(lock, NULL, 0);
    assert_answers(TL_BUSY, TL_BUSY);
    assert_int_equal(tl_mutex_view(hands[ODD].mutex)->state, TL_RESOURCE_HELD);
    assert_steps(4, 4);
    end();
    for (int i = 0; i < ALL; i++)
        tl_mutex_free(holders[i]);
}

static void lose(tap_act act)
{
    char word[40];

    name_of(word, sizeof word, ODD);
    tap_rule(line, word, 0, act, 0);
}

/* Never carried out a second time: each row is settled by its token, by its own thread. */
TEST(test_a_lost_answer)
{
    static const tap_act acts[] = {TAP_LOSE_REQUEST, TAP_LOSE_ANSWER, TAP_HOLD_REQUEST};
    static const char *const names[] = {"request", "answer", "late"};

    for (int i = 0; i < 3; i++) {
        begin(names[i], "good");
        lose(acts[i]);
        assert_true(in_groups(lock, NULL, 1).settled >= 2);
        assert_answers(TL_GRANTED, TL_GRANTED);
        assert_steps(1, 1);
        for (int hand = 0; hand < ALL; hand++)
            assert_true(tl_mutex_remaining_ms(hands[hand].mutex) > 0);
        lose(acts[i]);
        assert_true(in_groups(tl_mutex_unlock, NULL, 1).settled >= 2);
        assert_answers(TL_OK, TL_OK);
        assert_steps(2, 2);
        end();
    }
}

TESTS_OF(group, setup, teardown)
