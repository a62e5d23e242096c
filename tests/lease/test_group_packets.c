/*
 * Locks and unlocks of many threads, which share statements and commits, cut at packets: every
 * thread goes on calling until it has an answer, and every answer is compared with its row and log
 * at once.
 */
#include "fixture.h"
#include "packets/wire.h"

#include "support/crew.h"
#include "support/theme.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 14
#define SETTINGS                                                                                   \
    "beat_ms=20s\nsession_ms=60s\nread_timeout_s=2\n"                                              \
    "pool_size=3\npool_wait_ms=60ms\ncommit_ms=60ms\nconnect_timeout_s=2\n"
/* How long a thread calls again before the round is wrong, and how often: while the line is down an
 * answer comes at once. */
#define AGAIN_MS 5
#define DELAY_US 300 /* of each packet, so that groups form */
#define DOWN_MS 150
/* The fast run takes one packet in so many, always others. */
#define STRIDE 20

static fixture f;
static wire *line;
static char *through;

static struct {
    tl_client *far;
    unsigned number; /* of the round */
    wire_fault fault;
    atomic_int over; /* how many threads have ended */
    atomic_uint undecided, wrong;
} scene;

static struct {
    unsigned rounds, packets;
    uint64_t groups, grouped, settled, killed;
} figures;

/* The test's own connection is used by one thread at a time. */
static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;

FIXTURE(setup)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    fixture_open(&f, SETTINGS);
    line = wire_start(server_socket(server_shared()));
    through = database_option_file_at(f.db, wire_socket(line), SETTINGS);
}

FIXTURE(teardown)
{
    wire_free(line);
    remove(through);
    free(through);
    fixture_close(&f);
}

static void open_far(void)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;

    options.config_file = through;
    options.flags = TL_CLIENT_NO_JANITOR;
    if (tl_client_open(&scene.far, &options) != TL_OK)
        server_panic("no client: %s", tl_error_message());
}

static int may_come_again(tl_status status)
{
    tl_class class_ = tl_status_class(status);

    return class_ == TL_CLASS_UNKNOWN || class_ == TL_CLASS_RETRY;
}

/* Whether row and log are as the answer says: so many steps, all but the last of them known before.
 * An answer that is UNKNOWN says nothing. */
static void check(const char *name, const tl_mutex *mutex, tl_status status, tl_status expected,
                  int steps)
{
    const char *letter = expected == TL_GRANTED ? "L" : "U";
    long long there, good = 1;

    if (tl_status_class(status) == TL_CLASS_UNKNOWN)
        return;
    pthread_mutex_lock(&looking);
    there = database_number(f.sql, "SELECT COUNT(*) FROM resource_log WHERE resource = '%s'", name);
    if (status == expected)
        good = database_number(f.sql,
                               "SELECT COUNT(*) FROM resource_lock WHERE resource = '%s' "
                               "AND status = '%s' AND (status = 'U' OR fence = %llu)",
                               name, letter, (unsigned long long)tl_mutex_fence(mutex, NULL));
    if ((status != expected && !may_come_again(status)) ||
        there != (status == expected ? steps : steps - 1) || !good) {
        atomic_fetch_add(&scene.wrong, 1);
        printf("WRONG: packet %u, act %d%s: %s, %s instead of %s, %lld steps instead of "
               "%d\n",
               scene.fault.packet, (int)scene.fault.act, scene.fault.down ? ", line down" : "",
               name, tl_status_name(status), tl_status_name(expected), there, steps);
    }
    pthread_mutex_unlock(&looking);
}

static void call(tl_status (*once)(tl_mutex *mutex), const char *name, tl_mutex *mutex,
                 tl_status expected, int steps)
{
    int64_t until_ms = crew_now_ms() + PATIENCE_MS;
    tl_status status = once(mutex);

    check(name, mutex, status, expected, steps);
    while (may_come_again(status) && crew_now_ms() < until_ms) {
        atomic_fetch_add(&scene.undecided, 1);
        crew_sleep_ms(AGAIN_MS);
        status = once(mutex);
        check(name, mutex, status, expected, steps);
    }
    if (may_come_again(status))
        atomic_fetch_add(&scene.wrong, 1);
}

static tl_status lock(tl_mutex *mutex)
{
    return tl_mutex_lock(mutex, 0);
}

static void take_part(void *context, int number)
{
    tl_mutex_options options = lease_options(number % 2 ? 0 : 60000);
    char name[32];
    tl_mutex *mutex;

    (void)context;
    if (number == THREADS) {
        /* The line goes down with the packet that is struck, and comes back a while after. */
        while (!wire_struck(line) && atomic_load(&scene.over) < THREADS)
            crew_sleep_ms(1);
        crew_sleep_ms(DOWN_MS);
        wire_down(line, 0);
        return;
    }
    snprintf(name, sizeof name, "round-%u-%d", scene.number, number);
    mutex = mutex_new(scene.far, name, &options);
    call(lock, name, mutex, TL_GRANTED, 1);
    call(tl_mutex_unlock, name, mutex, TL_OK, 2);
    tl_mutex_free(mutex);
    atomic_fetch_add(&scene.over, 1);
}

static void run_round(wire_fault fault)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    open_far();
    scene.number++;
    scene.fault = fault;
    atomic_store(&scene.over, 0);
    wire_delay_us(line, DELAY_US);
    wire_arm(line, &scene.fault);
    crew_threads(THREADS + (fault.down ? 1 : 0), take_part, NULL);
    figures.rounds += wire_struck(line) != 0;
    if (fault.act == WIRE_LATE)
        (void)wire_release(line);
    if (fault.packet == 0)
        figures.packets = wire_count(line);
    /* Once more, after what was late. */
    if (database_number(f.sql,
                        "SELECT COUNT(*) FROM resource_log WHERE resource LIKE "
                        "'round-%u-%%'",
                        scene.number) != 2 * THREADS)
        atomic_fetch_add(&scene.wrong, 1);
    assert_int_equal(tl_client_stats(scene.far, &stats), TL_OK);
    figures.groups += stats.groups;
    figures.grouped += stats.grouped;
    figures.settled += stats.settled;
    figures.killed += stats.killed;
    wire_delay_us(line, 0);
    tl_client_close(scene.far);
    wire_reset(line);
}

static void test_every_packet_of_groups(void **state)
{
    static const wire_fault faults[] = {{0, WIRE_CUT_BEFORE, 0}, {0, WIRE_CUT_AFTER, 0},
                                        {0, WIRE_LATE, 0},       {0, WIRE_CUT_AFTER, 1},
                                        {0, WIRE_LATE, 1},       {0, WIRE_CUT_BEFORE, 1}};
    unsigned stride = tier_pick(5 * STRIDE, STRIDE, 1);

    (void)state;
    run_round((wire_fault){0, WIRE_CUT_BEFORE, 0});
    for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++) {
        for (unsigned n = 1 + (i * 3) % stride; n <= figures.packets; n += stride) {
            wire_fault fault = faults[i];

            fault.packet = n;
            run_round(fault);
        }
    }
    printf("groups: %d threads, %u packets, %u rounds cut; %llu groups of %llu steps; "
           "undecided answers %u, settled %llu, connections killed %llu; wrong %u\n",
           THREADS, figures.packets, figures.rounds, (unsigned long long)figures.groups,
           (unsigned long long)figures.grouped, atomic_load(&scene.undecided),
           (unsigned long long)figures.settled, (unsigned long long)figures.killed,
           atomic_load(&scene.wrong));
    assert_true(figures.grouped > figures.groups);
    assert_true(figures.settled > 0);
    assert_int_equal(atomic_load(&scene.wrong), 0);
}

TEST_MAIN(group_packets)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_packet_of_groups)};

    return server_run_tests(tests, setup, teardown);
}
