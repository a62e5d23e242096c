/*
 * 256 threads of one client over the path of the groups: asks, refusals and endings of both lanes
 * that share statements and commits.  Small enough to run under both sanitizers.
 *
 *     --threads=256 --rounds=3
 */
#include "fixture.h"

#include "support/crew.h"
#include "support/tap.h"
#include "support/theme.h"

#include <stdatomic.h>

/* So many threads want each trade; one is granted it. */
#define RIVALS 4
/* Groups form, and no session ends, on a machine that is busy with other things. */
#define SETTINGS "session_ms=2m\npool_wait_ms=2m\ncommit_ms=2m\n"

static struct {
    fixture f;
    int threads;
    long rounds;
    pthread_barrier_t barrier;
    /* Of each trade of a round: how many were granted it. */
    int *granted;
    struct phase {
        const char *what;
        uint64_t grouped, groups;
    } phases[3];
} scene = {.phases = {{"openings", 0, 0},
                      {"claims and their endings", 0, 0},
                      {"reclaims and their endings", 0, 0}}};

/* In every other round there are only asks and successes of which little is told, so that groups
 * have the short form of their statement. */
static int is_plain(long round)
{
    return round % 2 == 1;
}

static tl_lock_options options_of(long round, const char *payload)
{
    tl_lock_options options = sync_options(payload);

    if (is_plain(round))
        options.channel = NULL;
    return options;
}

static int is_failure(int trade, long round)
{
    return trade % 3 == 2 && !is_plain(round);
}

/* The same call again while nothing happened: the machine was too slow for a deadline. */
static tl_status ask_on(tl_lock *lock)
{
    tl_status status;

    do
        status = tl_lock_ask(lock, 0);
    while (tl_status_class(status) == TL_CLASS_RETRY);
    return status;
}

/* A failure may be tried anew. */
static tl_status finish_on(tl_lock *lock, tl_outcome outcome, tl_proof proof)
{
    tl_ending ending = TL_ENDING_INIT;
    tl_status status;

    ending.outcome = outcome;
    ending.proof = proof;
    ending.retryable = outcome == TL_OUTCOME_FAILURE;
    do
        status = tl_lock_finish(lock, &ending);
    while (tl_status_class(status) == TL_CLASS_RETRY);
    return status;
}

static void end(tl_lock *lock, int fails)
{
    if (fails)
        CREW_STATUS(finish_on(lock, TL_OUTCOME_FAILURE, TL_PROOF_DECLARED), TL_FAILED);
    else
        CREW_STATUS(finish_on(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
}

/* Granted to one of its rivals; the others hear of a holder, or of how it ended. */
static void race(int number, long round)
{
    int trade = number / RIVALS;
    tl_lock_options options = options_of(round, "x");
    tl_status status;
    tl_lock *lock;
    const struct text serial = text_of("g-%ld-%d", round, trade);

    lock = lock_new(scene.f.client, serial.is, text_of("g%d", trade % 5).is, &options);
    status = ask_on(lock);
    if (status == TL_GRANTED) {
        __atomic_add_fetch(&scene.granted[trade], 1, __ATOMIC_SEQ_CST);
        end(lock, is_failure(trade, round));
    } else if (status != TL_BUSY) {
        CREW_STATUS(status, is_failure(trade, round) ? TL_FAILED : TL_ALREADY_DONE);
    }
    tl_lock_free(lock);
}

/* As a mutex: taken over again and again by whoever asks when it is free. */
static void take_turns(int number)
{
    tl_lock_options options = sync_options("m");
    tl_status status;
    tl_lock *lock;
    const struct text serial = text_of("m-%d", number % 16);

    options.flags = TL_ASK_REPEATABLE;
    lock = lock_new(scene.f.client, serial.is, "mutex", &options);
    status = ask_on(lock);
    if (status == TL_GRANTED)
        CREW_STATUS(finish_on(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    else
        CREW_STATUS(status, TL_BUSY);
    tl_lock_free(lock);
}

/* A trade of its own. */
static void pay(int number, long round)
{
    tl_lock_options options = options_of(round, "p");
    tl_lock *lock;
    const struct text serial = text_of("p-%ld-%d", round, number);

    lock = lock_new(scene.f.client, serial.is, text_of("p%d", number % 7).is, &options);
    CREW_STATUS(ask_on(lock), TL_GRANTED);
    end(lock, is_failure(number, round));
    tl_lock_free(lock);
}

/* One of all threads counts what went into groups between two barriers. */
static void count_groups(int number, struct phase *phase, int sign)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    pthread_barrier_wait(&scene.barrier);
    if (number == 0) {
        CREW_STATUS(tl_client_stats(scene.f.client, &stats), TL_OK);
        phase->grouped += (uint64_t)sign * stats.grouped;
        phase->groups += (uint64_t)sign * stats.groups;
    }
    pthread_barrier_wait(&scene.barrier);
}

/* A trade that goes through both lanes, and is tried anew where it fails. */
struct doubtful {
    char serial[48], cust[16];
    int number, trade, fails;
};

/* No first attempt gets an answer from the channel.  Half of the trades would wait for a minute,
 * but for the evidence that is filed meanwhile: they are due at once as well. */
static void leave_in_doubt(const struct doubtful *d)
{
    tl_lock_options options = sync_options("c");
    tl_ending ending = TL_ENDING_INIT;
    tl_evidence evidence = TL_EVIDENCE_INIT;
    tl_lock *lock = NULL;

    evidence.key = (tl_key){d->serial, d->cust, "WITHDRAW"};
    evidence.outcome = "DECLINED";
    evidence.source = "test";
    if (d->trade % 2 == 0)
        ending.next_run_ms = 60000;

    if (d->number % RIVALS == 0) {
        lock = lock_new(scene.f.client, d->serial, d->cust, &options);
        CREW_STATUS(ask_on(lock), TL_GRANTED);
        if (ending.next_run_ms > 0)
            CREW_STATUS(tl_evidence_add(scene.f.client, &evidence), TL_OK);
    }
    count_groups(d->number, &scene.phases[0], -1);
    if (lock != NULL)
        CREW_STATUS(tl_lock_finish(lock, &ending), TL_IN_DOUBT);
    count_groups(d->number, &scene.phases[0], 1);
    tl_lock_free(lock);
}

static void check_row(const struct doubtful *d, const tl_lock *lock, uint32_t epoch)
{
    const tl_view *view = tl_lock_view(lock);

    CREW_CHECK(view->payload_size == 1 && *(const char *)view->payload == 'c');
    CREW_CHECK(strcmp(view->serial_no, d->serial) == 0 && strcmp(view->cust_no, d->cust) == 0);
    CREW_CHECK(view->epoch == epoch && view->status == 'P');
}

/* One of its rivals is granted the attempt, and has the row with it. */
static void compete(const struct doubtful *d, const tl_lock_options *options, uint32_t epoch,
                    int fails)
{
    tl_lock *lock = lock_new(scene.f.client, d->serial, d->cust, options);
    tl_status status = ask_on(lock);

    if (status == TL_GRANTED) {
        check_row(d, lock, epoch);
        __atomic_add_fetch(&scene.granted[d->trade], 1, __ATOMIC_SEQ_CST);
        end(lock, fails);
    } else if (status != TL_BUSY) {
        CREW_STATUS(status, fails ? TL_FAILED : TL_ALREADY_DONE);
    }
    tl_lock_free(lock);
}

/* The fence of a failure, as whoever is told of it sees it.  All ask at once, and one may meet the
 * row's lock in the hand of another's statement. */
static uint64_t failed_fence(const struct doubtful *d)
{
    tl_lock_options options = sync_options("c");
    tl_lock *lock = lock_new(scene.f.client, d->serial, d->cust, &options);
    tl_status status;
    uint64_t fence;

    do
        status = ask_on(lock);
    while (status == TL_BUSY);
    CREW_STATUS(status, TL_FAILED);
    fence = tl_lock_view(lock)->fence;
    tl_lock_free(lock);
    return fence;
}

static void compensate(int number, long round)
{
    const int trade = number / RIVALS;
    struct doubtful d = {.number = number, .trade = trade};
    tl_lock_options retry = retry_options(), again = sync_options("c");

    d.fails = is_failure(trade, round);
    snprintf(d.serial, sizeof d.serial, "c-%ld-%d", round, trade);
    snprintf(d.cust, sizeof d.cust, "c%d", trade % 5);
    if (number % RIVALS == 0)
        scene.granted[trade] = 0;
    leave_in_doubt(&d);
    count_groups(number, &scene.phases[1], -1);
    compete(&d, &retry, 1, d.fails);
    count_groups(number, &scene.phases[1], 1);
    again.flags = TL_ASK_RECLAIM;
    again.reclaim_epoch = 1;
    if (d.fails && trade % 2 == 0)
        again.reclaim_fence = failed_fence(&d);
    count_groups(number, &scene.phases[2], -1);
    if (d.fails)
        compete(&d, &again, 2, 0);
    count_groups(number, &scene.phases[2], 1);
    CREW_CHECK(scene.granted[trade] == (d.fails ? 2 : 1));
    pthread_barrier_wait(&scene.barrier);
}

static void work(void *context, int number)
{
    (void)context;
    for (long round = 0; round < scene.rounds; round++) {
        pthread_barrier_wait(&scene.barrier);
        if (number % RIVALS == 0)
            scene.granted[number / RIVALS] = 0;
        pthread_barrier_wait(&scene.barrier);
        race(number, round);
        if (!is_plain(round))
            take_turns(number);
        pay(number, round);
        pthread_barrier_wait(&scene.barrier);
        if (number % RIVALS == 0)
            CREW_CHECK(scene.granted[number / RIVALS] == 1);
        compensate(number, round);
    }
}

FIXTURE(setup)
{
    scene.threads = (int)crew_number("threads", 256) / RIVALS * RIVALS;
    scene.rounds = crew_number("rounds", 3);
    fixture_open(&scene.f, SETTINGS);
    scene.granted = crew_share((size_t)scene.threads * sizeof *scene.granted);
    pthread_barrier_init(&scene.barrier, NULL, (unsigned)scene.threads);
}

FIXTURE(teardown)
{
    pthread_barrier_destroy(&scene.barrier);
    crew_unshare(scene.granted, (size_t)scene.threads * sizeof *scene.granted);
    fixture_close(&scene.f);
}

TEST(test_many_threads_share_statements)
{
    tl_stats stats = {.version = TL_STATS_VERSION};
    const long doubtful = scene.rounds * (scene.threads / RIVALS);
    const long filed = scene.rounds * ((scene.threads / RIVALS + 1) / 2);
    long reclaimed = 0;
    const long trades = scene.rounds * scene.threads + doubtful;

    for (long round = 0; round < scene.rounds; round++)
        for (int trade = 0; trade < scene.threads / RIVALS; trade++)
            reclaimed += is_failure(trade, round);
    crew_threads(scene.threads, work, NULL);
    assert_status(tl_client_stats(scene.f.client, &stats), TL_OK);
    print_message("%d threads: %llu asks and %llu endings, %llu of them in %llu groups; "
                  "%llu statements\n",
                  scene.threads, (unsigned long long)stats.asks, (unsigned long long)stats.finishes,
                  (unsigned long long)stats.grouped, (unsigned long long)stats.groups,
                  (unsigned long long)stats.statements);
    /* Several in a group, or this test has looked at something else. */
    assert_true(stats.grouped > 2 * stats.groups);
    for (size_t i = 0; i < sizeof scene.phases / sizeof scene.phases[0]; i++) {
        const struct phase *phase = &scene.phases[i];

        print_message("%llu %s in %llu groups\n", (unsigned long long)phase->grouped, phase->what,
                      (unsigned long long)phase->groups);
        assert_true(phase->grouped > 2 * phase->groups);
    }
    assert_int_equal(stats.lost, 0);
    database_expect(scene.f.sql, trades + doubtful,
                    "SELECT COUNT(*) FROM trade_lock WHERE cust_no <> 'mutex' AND status IN ('Y', "
                    "'F') AND rev > 1 AND lane = 'S'");
    database_expect(scene.f.sql, 0, "SELECT COUNT(*) FROM trade_lock WHERE status = 'P'");
    /* Two steps each: nobody was granted what another had.  What was in doubt was opened and
     * claimed in between, and its other row with it; evidence about half of it is a step; what was
     * reclaimed ended once more. */
    database_expect(scene.f.sql, 2 * trades + (4 + 3) * doubtful + filed + 2 * reclaimed,
                    "SELECT COUNT(*) FROM trade_lock_log WHERE cust_no <> 'mutex'");
    database_expect(scene.f.sql, doubtful,
                    "SELECT COUNT(*) FROM trade_lock s JOIN trade_lock r ON r.cust_no = s.cust_no "
                    "AND r.serial_no = s.serial_no AND r.lane = 'R' WHERE s.lane = 'S' AND "
                    "s.status = 'Y' AND r.status = IF(s.epoch = 1, s.status, 'F') AND (s.token = "
                    "r.token) = (s.epoch = 1) AND r.session_id IS NULL AND r.next_run_at IS NULL");
    assert_log_whole(&scene.f);
}

/* --------------------------------------------------------------- who comes too late -- */

/* As many as are on their way at once, who waits behind them in vain, and who comes when the first
 * of those has left. */
enum { HELD = 3, IN_VAIN = 6, LATER = 6 };
#define POOL_WAIT_MS 600

static struct {
    tl_client *client;
    tap *line;
    atomic_int left;
} held;

static void ask_held(int number)
{
    tl_lock *lock;
    const struct text serial = text_of("held-%d", number);

    lock = lock_new(held.client, serial.is, serial.is, SYNC);
    CREW_STATUS(tl_lock_ask(lock, 0), TL_GRANTED);
    end(lock, 0);
    tl_lock_free(lock);
}

static void await_left(int count)
{
    while (tap_left(held.line) > 0 || atomic_load(&held.left) < count)
        crew_sleep_ms(1);
}

/* They come one after the other, so that some leave a group that others stay in. */
static void ask_late(int number)
{
    tl_lock *lock;

    await_left(number < IN_VAIN ? 0 : 1);
    crew_sleep_ms(number % IN_VAIN * POOL_WAIT_MS / IN_VAIN / 2);
    const struct text serial = text_of("late-%d", number);
    lock = lock_new(held.client, serial.is, serial.is, SYNC);
    if (number < IN_VAIN) {
        CREW_STATUS(tl_lock_ask(lock, 0), TL_OVERLOADED);
        CREW_CHECK(strstr(tl_error_message(), "no transition group") != NULL);
        if (atomic_fetch_add(&held.left, 1) + 1 == IN_VAIN)
            tap_release(held.line);
    }
    CREW_STATUS(ask_on(lock), TL_GRANTED);
    end(lock, 0);
    tl_lock_free(lock);
}

static void hold_or_come_late(void *context, int number)
{
    (void)context;
    if (number < HELD)
        ask_held(number);
    else
        ask_late(number - HELD);
}

/*
 * All places are taken by steps whose requests are stuck; who waits for a place longer than its
 * time leaves, and nothing was done for it.  The places are handed on afterwards as if nobody had
 * left.
 */
TEST(test_a_step_leaves_in_time)
{
    char settings[200], *file;

    snprintf(settings, sizeof settings,
             "pool_size=3\nsession_ms=2m\ncommit_ms=2m\npool_wait_ms=%dms\n", POOL_WAIT_MS);
    held.line = tap_start(server_socket(server_shared()));
    file = database_option_file_at(scene.f.db, tap_socket(held.line), settings);
    held.client = client_of(file, 0);
    for (int i = 0; i < HELD; i++)
        tap_rule(held.line, text_of("held-%d", i).is, 0, TAP_DELAY_REQUEST, 0);
    crew_threads(HELD + IN_VAIN + LATER, hold_or_come_late, NULL);
    /* Each trade was asked for once, and ended. */
    database_expect(scene.f.sql, 2 * (HELD + IN_VAIN + LATER),
                    "SELECT COUNT(*) FROM trade_lock_log WHERE serial_no LIKE 'held-%%' OR "
                    "serial_no LIKE 'late-%%'");
    tl_client_close(held.client);
    tap_free(held.line);
    remove(file);
    free(file);
}

TESTS_OF(group, setup, teardown)
