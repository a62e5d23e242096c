/* Lost answers: never a false "yes", never a false "no". */
#include "fixture.h"

#include "support/crew.h"
#include "support/tap.h"
#include "support/theme.h"

#include <tradelock/callback.h>
#include <tradelock/lane.h>

#include <pthread.h>
#include <stdatomic.h>

#define COMMON "connect_timeout_s=10\nread_timeout_s=30\nsession_ms=60s\n"
/* Where the line is down every call uses up its budget. */
#define BRIEF "pool_wait_ms=400\ncommit_ms=400\n" COMMON
/* Where it is not, a slow machine has time to find out. */
#define PATIENT "pool_wait_ms=60s\ncommit_ms=60s\n" COMMON

static fixture f;
static tap *line;
/* A client with settings of its own. */
struct place {
    char *file;
    tl_client *client;
};

static struct place brief_place, patient_place;
static tl_client *far, *patient; /* behind the tap, of these settings */

static void open_place(struct place *place, const char *socket, const char *settings)
{
    place->file = database_option_file_at(f.db, socket, settings);
    place->client = client_of(place->file, TL_CLIENT_NO_JANITOR);
}

static void close_place(struct place *place)
{
    tl_client_close(place->client);
    remove(place->file);
    free(place->file);
}

FIXTURE(setup)
{
    fixture_open(&f, PATIENT);
    line = tap_start(server_socket(server_shared()));
    open_place(&brief_place, tap_socket(line), BRIEF);
    open_place(&patient_place, tap_socket(line), PATIENT);
    far = brief_place.client;
    patient = patient_place.client;
}

FIXTURE(teardown)
{
    assert_log_whole(&f);
    close_place(&brief_place);
    close_place(&patient_place);
    tap_free(line);
    fixture_close(&f);
}

/* The words are serials that no UUID contains: heartbeats pass here too. */
static void lose(const char *word, unsigned skip, tap_act act, int down)
{
    tap_rule(line, word, skip, act, down);
}

static void line_up(void)
{
    assert_true(tap_done(line));
    tap_down(line, 0);
}

static int is_open(tl_status status)
{
    tl_class class_ = tl_status_class(status);

    return class_ == TL_CLASS_UNKNOWN || class_ == TL_CLASS_RETRY;
}

/* The line is up: the same call again, as long as a brief budget was too brief for it. */
#define ASSERT_KNOWN(call, expected)                                                               \
    do {                                                                                           \
        int64_t known_until_ms = crew_now_ms() + PATIENCE_MS;                                      \
        tl_status known;                                                                           \
        do                                                                                         \
            known = (call);                                                                        \
        while (is_open(known) && crew_now_ms() < known_until_ms);                                  \
        assert_status(known, expected);                                                            \
    } while (0)

static void refused(const char *serial, const tl_lock_options *options, tl_status expected)
{
    tl_status status;
    tl_lock *lock = ask(f.other, serial, "c1", options, &status);

    assert_status(status, expected);
    tl_lock_free(lock);
}

static int64_t steps_of(const char *serial)
{
    return database_number(f.sql, "SELECT COUNT(*) FROM trade_lock_log WHERE serial_no='%s'",
                           serial);
}

/* The server is there all the time: the library finds out by itself. */
TEST(test_settled_at_once)
{
    static const tap_act acts[] = {TAP_LOSE_REQUEST, TAP_LOSE_ANSWER};
    static const unsigned flags[] = {0, TL_ASK_EXCLUSIVE, TL_ASK_REPEATABLE};

    for (int act = 0; act < 2; act++) {
        for (int kind = 0; kind < 3; kind++) {
            tl_lock_options options = sync_options("x");
            char serial[] = {'t', '-', 'a', (char)('0' + act), (char)('0' + kind), '\0'};
            tl_lock *lock;

            options.flags = flags[kind];
            lose(serial, 0, acts[act], 0);
            lock = granted(patient, serial, "c1", &options);
            assert_true(tap_done(line));
            assert_int_equal(steps_of(serial), 1);
            assert_true(tl_may_send(lock, 1000));
            lose(serial, 0, acts[act], 0);
            assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
            assert_true(tap_done(line));
            assert_int_equal(steps_of(serial), 2);
            tl_lock_free(lock);
        }
    }
}

/* The server is away: UNKNOWN, as long as it takes, and then the truth. */
TEST(test_unknown_until_it_is_known)
{
    static const tap_act acts[] = {TAP_LOSE_REQUEST, TAP_LOSE_ANSWER};

    for (int act = 0; act < 2; act++) {
        char serial[] = {'t', '-', 'b', (char)('0' + act), '\0'};
        tl_lock *lock = lock_new(far, serial, "c1", SYNC);

        lose(serial, 0, acts[act], 1);
        assert_status(tl_lock_ask(lock, 0), TL_UNKNOWN);
        assert_string_not_equal(tl_error_message(), "");
        assert_false(tl_may_send(lock, 0));
        assert_status(tl_lock_ask(lock, 0), TL_UNKNOWN);
        line_up();
        ASSERT_KNOWN(tl_lock_ask(lock, 0), TL_GRANTED);
        assert_int_equal(steps_of(serial), 1);
        lose(serial, 0, acts[act], 1);
        assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_UNKNOWN);
        assert_false(tl_may_send(lock, 0));
        assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_UNKNOWN);
        line_up();
        ASSERT_KNOWN(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        assert_row(&f, serial, "c1", "WITHDRAW", "Y 1 1");
        assert_int_equal(steps_of(serial), 2);
        tl_lock_free(lock);
    }
}

static tl_status give_back(void *context, struct st_mysql *connection)
{
    (void)connection;
    return *(const tl_status *)context;
}

/* A reclaim with business rows that names no fence is read after its commit.  When that reading
 * fails the lock is granted all the same, and must not be forgotten.  Nor is a claim, whose answer
 * carries the row and was lost. */
TEST(test_granted_but_not_read)
{
    tl_lock_options options = sync_options("x"), retry = retry_options();
    tl_ending ending = TL_ENDING_INIT;
    tl_status go_on = TL_OK;
    tl_lock *lock = granted(f.client, "t-d1", "c1", &options);

    ending.outcome = TL_OUTCOME_FAILURE;
    ending.proof = TL_PROOF_DECLINED;
    ending.retryable = 1;
    assert_status(tl_lock_finish(lock, &ending), TL_FAILED);
    tl_lock_free(lock);
    options.flags = TL_ASK_RECLAIM;
    options.reclaim_epoch = 1;
    lock = lock_new(far, "t-d1", "c1", &options);
    lose("t-d1", 1, TAP_LOSE_REQUEST, 1);
    assert_status(tl_lock_ask_with(lock, give_back, &go_on, 0), TL_UNKNOWN);
    assert_status(tl_lock_ask_with(lock, give_back, &go_on, 0), TL_UNKNOWN);
    line_up();
    ASSERT_KNOWN(tl_lock_ask_with(lock, give_back, &go_on, 0), TL_GRANTED);
    assert_int_equal(tl_lock_view(lock)->epoch, 2);
    end_in_doubt(lock);

    lock = lock_new(far, "t-d1", "c1", &retry);
    lose("t-d1", 0, TAP_LOSE_ANSWER, 1);
    assert_status(tl_lock_ask(lock, 0), TL_UNKNOWN);
    assert_status(tl_lock_ask(lock, 0), TL_UNKNOWN);
    line_up();
    ASSERT_KNOWN(tl_lock_ask(lock, 0), TL_GRANTED);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    assert_row(&f, "t-d1", "c1", "WITHDRAW", "Y 2 1");
    tl_lock_free(lock);
}

/* An ask that was lost did not happen, and the next one with rows was stopped by its callback: all
 * of that is known. */
TEST(test_stopped_after_a_lost_ask)
{
    static const tl_status stops[][2] = {{TL_REFUSED, TL_REFUSED},
                                         {TL_INVALID, TL_CALLBACK_FAILED}};
    tl_status go_on = TL_OK;

    for (int i = 0; i < 2; i++) {
        char serial[] = {'t', '-', 'l', (char)('0' + i), '\0'};
        tl_lock *lock = lock_new(far, serial, "c1", SYNC);
        tl_status stop = stops[i][0];

        lose(serial, 0, TAP_LOSE_REQUEST, 1);
        assert_status(tl_lock_ask_with(lock, give_back, &go_on, 0), TL_UNKNOWN);
        line_up();
        ASSERT_KNOWN(tl_lock_ask_with(lock, give_back, &stop, 0), stops[i][1]);
        assert_row(&f, serial, "c1", "WITHDRAW", "-");
        assert_status(tl_lock_ask_with(lock, give_back, &go_on, 0), TL_GRANTED);
        tl_lock_free(lock);
    }
}

/* A stalled packet arrives after the library has found out that it did not happen. */
TEST(test_a_late_packet_changes_nothing)
{
    tl_lock *lock;

    lose("t-e1", 0, TAP_HOLD_REQUEST, 0);
    lock = granted(patient, "t-e1", "c1", SYNC);
    assert_true(tap_done(line));
    tap_release(line);
    lose("t-e1", 0, TAP_HOLD_REQUEST, 0);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    assert_true(tap_done(line));
    tap_release(line);
    crew_sleep_ms(100);
    assert_int_equal(steps_of("t-e1"), 2);
    tl_lock_free(lock);

    /* Even when the trade was given away meanwhile. */
    lock = lock_new(far, "t-e2", "c1", SYNC);
    lose("t-e2", 0, TAP_HOLD_REQUEST, 1);
    assert_status(tl_lock_ask(lock, 0), TL_UNKNOWN);
    tl_lock_free(granted(f.other, "t-e2", "c1", SYNC));
    line_up();
    ASSERT_KNOWN(tl_lock_ask(lock, 0), TL_BUSY);
    tap_release(line);
    crew_sleep_ms(100);
    assert_int_equal(steps_of("t-e2"), 1);
    tl_lock_free(lock);
}

/* The grant was lost with its answer, and is over before it could be asked for again. */
TEST(test_a_grant_that_is_over)
{
    tl_lock_options options = sync_options("x"), retry = retry_options();
    tl_lock *lock, *other;

    options.max_hold_ms = 50;
    lock = lock_new(far, "t-g1", "c1", &options);
    lose("t-g1", 0, TAP_LOSE_ANSWER, 1);
    assert_status(tl_lock_ask(lock, 0), TL_UNKNOWN);
    line_up();
    crew_sleep_ms(60);
    /* Still P and nobody at it: in doubt, and not to be sent for by this holder. */
    assert_true(tl_status_class(tl_lock_ask(lock, 0)) == TL_CLASS_CONFLICT ||
                !tl_may_send(lock, 0));
    tl_lock_free(lock);

    lock = lock_new(far, "t-g2", "c1", &options);
    lose("t-g2", 0, TAP_LOSE_ANSWER, 1);
    assert_status(tl_lock_ask(lock, 0), TL_UNKNOWN);
    line_up();
    crew_sleep_ms(60);
    other = granted(f.other, "t-g2", "c1", &retry);
    assert_status(finish(other, TL_OUTCOME_FAILURE, TL_PROOF_NOT_FOUND), TL_FAILED);
    ASSERT_KNOWN(tl_lock_ask(lock, 0), TL_FAILED);
    tl_lock_free(other);
    tl_lock_free(lock);
}

/* An ending that left the trade in doubt was never "failed, with proof". */
TEST(test_settling_an_opening)
{
    tl_ending ending = TL_ENDING_INIT;
    tl_lock *lock = granted(far, "t-h1", "c1", SYNC);

    lose("t-h1", 0, TAP_LOSE_ANSWER, 1);
    assert_status(finish(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_UNKNOWN);
    line_up();
    ASSERT_KNOWN(tl_lock_settle(lock), TL_IN_DOUBT);
    tl_lock_free(lock);
    refused("t-h1", SYNC, TL_IN_DOUBT);

    lock = granted(far, "t-h2", "c1", SYNC);
    ending.park_reason = "by test";
    lose("t-h2", 0, TAP_LOSE_ANSWER, 1);
    assert_status(tl_lock_finish(lock, &ending), TL_UNKNOWN);
    line_up();
    ASSERT_KNOWN(tl_lock_settle(lock), TL_PARKED);
    tl_lock_free(lock);

    lock = granted(far, "t-h3", "c1", SYNC);
    lose("t-h3", 0, TAP_LOSE_REQUEST, 1);
    assert_status(finish(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_UNKNOWN);
    line_up();
    ASSERT_KNOWN(tl_lock_settle(lock), TL_GRANTED);
    end_paid(lock);
}

/* While one ending may have been committed, another one is not an answer. */
TEST(test_another_ending_meanwhile)
{
    tl_lock *lock = granted(far, "t-i1", "c1", SYNC);

    lose("t-i1", 0, TAP_LOSE_ANSWER, 1);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_UNKNOWN);
    line_up();
    assert_status(finish(lock, TL_OUTCOME_FAILURE, TL_PROOF_DECLINED), TL_WRONG_STATE);
    assert_status(finish(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_WRONG_STATE);
    ASSERT_KNOWN(tl_lock_settle(lock), TL_SUCCEEDED);
    assert_row(&f, "t-i1", "c1", "WITHDRAW", "Y 1 1");
    tl_lock_free(lock);
}

/* A compensating attempt whose arming may not have been committed must not send. */
TEST(test_a_lost_arming)
{
    static const tap_act acts[] = {TAP_LOSE_REQUEST, TAP_LOSE_ANSWER};
    tl_lock_options options = sync_options("x"), retry = retry_options();

    for (int act = 0; act < 2; act++) {
        char serial[] = {'t', '-', 'j', (char)('0' + act), '\0'};
        tl_lock *lock = granted(f.client, serial, "c1", &options);

        end_in_doubt(lock);
        lock = granted(patient, serial, "c1", &retry);
        lose(serial, 0, acts[act], 0);
        assert_status(tl_lock_arm(lock, 60000), TL_OK);
        assert_row(&f, serial, "c1", "WITHDRAW", "P 1 2");
        end_in_doubt(lock);
        lock = granted(far, serial, "c1", &retry);
        lose(serial, 0, acts[act], 1);
        assert_status(tl_lock_arm(lock, 60000), TL_UNKNOWN);
        assert_false(tl_may_send(lock, 0));
        line_up();
        tl_lock_free(lock);
    }
}

/* An administrator kills connections while asks and endings run. */
struct storm {
    int stop;
    unsigned killed;
};

static void kill_connections(struct storm *storm, MYSQL *sql)
{
    char *id = database_text(sql,
                             "SELECT id FROM information_schema.processlist WHERE db='%s' "
                             "AND id NOT IN (CONNECTION_ID(), %lu) "
                             "ORDER BY RAND() LIMIT 1",
                             database_name(f.db), mysql_thread_id(f.sql));

    if (id != NULL) {
        const struct text statement = text_of("KILL CONNECTION %s", id);
        if (mysql_query(sql, statement.is) == 0)
            __atomic_add_fetch(&storm->killed, 1, __ATOMIC_SEQ_CST);
    }
    free(id);
}

struct cycle {
    tl_client *client;
    long rounds;
    unsigned granted[8];
};

static void ask_and_finish(void *context, int number)
{
    struct cycle *cycle = context;

    for (long round = 0; round < cycle->rounds; round++) {
        tl_key key = {NULL, "storm", "WITHDRAW"};
        char serial[40];
        tl_lock *lock = NULL;
        tl_status status;

        snprintf(serial, sizeof serial, "k-%d-%ld", number, round);
        key.serial_no = serial;
        CREW_STATUS(tl_lock_new(&lock, cycle->client, &key, SYNC), TL_OK);
        do
            status = tl_lock_ask(lock, 0);
        while (is_open(status));
        CREW_STATUS(status, TL_GRANTED);
        do
            status = finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE);
        while (is_open(status));
        CREW_STATUS(status, TL_SUCCEEDED);
        cycle->granted[number]++;
        tl_lock_free(lock);
    }
}

static struct storm storm;

static void storm_hand(void *context, int number)
{
    MYSQL *sql;

    if (number < 4) {
        while (__atomic_load_n(&storm.killed, __ATOMIC_SEQ_CST) == 0)
            crew_sleep_ms(1);
        ask_and_finish(context, number);
        __atomic_add_fetch(&storm.stop, 1, __ATOMIC_SEQ_CST);
        return;
    }
    sql = server_connect(server_shared());
    while (__atomic_load_n(&storm.stop, __ATOMIC_SEQ_CST) < 4) {
        kill_connections(&storm, sql);
        crew_sleep_ms(20);
    }
    mysql_close(sql);
}

TEST(test_killed_connections)
{
    struct cycle cycle = {.rounds = crew_number("kills", 60)};
    struct place near;

    open_place(&near, server_socket(server_shared()), BRIEF);
    cycle.client = near.client;
    memset(&storm, 0, sizeof storm);
    crew_threads(5, storm_hand, &cycle);
    assert_true(storm.killed > 0);
    database_expect(f.sql, 4 * cycle.rounds,
                    "SELECT COUNT(*) FROM trade_lock WHERE cust_no='storm' AND status='Y'");
    /* Each was asked for and ended once, and none of it twice. */
    database_expect(f.sql, 8 * cycle.rounds,
                    "SELECT COUNT(*) FROM trade_lock_log WHERE cust_no='storm'");
    close_place(&near);
}

/* Asks that keep all places of the groups, an ask with little time that leads the next group, and
 * an ending with much time in it. */
enum { KEEPING = 3, HASTY = KEEPING, ENDING, FATES, CONTROLLER = FATES };
#define HASTE_MS 3000

struct shared_fate {
    tl_client *client;
    tl_lock *locks[FATES];
    tl_status status[FATES];
    atomic_int threads[FATES]; /* as they are about to join, by gettid() */
};

/* All places are taken. */
static void await_delayed(void)
{
    int64_t until_ms = crew_now_ms() + PATIENCE_MS;

    while (tap_left(line) > 1 && crew_now_ms() < until_ms)
        crew_sleep_ms(1);
}

static void control(struct shared_fate *all)
{
    int64_t until_ms = crew_now_ms() + PATIENCE_MS;

    crew_await_asleep(&all->threads[ENDING]);
    tap_release(line);
    while (!tap_done(line) && crew_now_ms() < until_ms)
        crew_sleep_ms(10);
    crew_sleep_ms(HASTE_MS + 1500);
    tap_down(line, 0);
}

static void share_a_fate(void *context, int number)
{
    struct shared_fate *all = context;

    if (number == CONTROLLER) {
        control(all);
        return;
    }
    if (number >= KEEPING)
        await_delayed();
    if (number == ENDING) {
        crew_await_asleep(&all->threads[HASTY]);
        crew_sleep_ms(20); /* who sleeps first is called first; a group's first sleeps twice */
    }
    atomic_store(&all->threads[number], gettid());
    all->status[number] = number != ENDING
                              ? tl_lock_ask(all->locks[number], 0)
                              : finish(all->locks[number], TL_OUTCOME_SUCCESS, TL_PROOF_NONE);
}

/* Whoever has time goes on settling where the leader's time is over. */
TEST(test_a_group_that_is_cut)
{
    tl_stats stats = {.version = TL_STATS_VERSION};
    struct shared_fate all = {.client = NULL};
    char settings[200], *file;

    snprintf(settings, sizeof settings,
             "pool_size=3\npool_wait_ms=%d\ncommit_ms=60s\nconnect_timeout_s=10\n"
             "read_timeout_s=20\nsession_ms=60s\n",
             HASTE_MS);
    file = database_option_file_at(f.db, tap_socket(line), settings);
    all.client = client_of(file, TL_CLIENT_NO_JANITOR);
    for (int i = 0; i < FATES; i++) {
        char serial[] = {'t', '-', 'q', (char)('0' + i), '\0'};

        all.locks[i] = lock_new(all.client, serial, "c1", SYNC);
        if (i < KEEPING)
            lose(serial, 0, TAP_DELAY_REQUEST, 0);
    }
    assert_status(tl_lock_ask(all.locks[ENDING], 0), TL_GRANTED);
    lose("t-q4", 0, TAP_LOSE_ANSWER, 1);
    crew_threads(FATES + 1, share_a_fate, &all);
    assert_true(tap_done(line));
    /* Or this test has looked at something else. */
    assert_status(tl_client_stats(all.client, &stats), TL_OK);
    assert_int_equal(stats.groups, 1);
    assert_int_equal(stats.grouped, 2);
    assert_status(all.status[HASTY], TL_UNKNOWN);
    assert_status(all.status[ENDING], TL_SUCCEEDED);
    assert_row(&f, "t-q4", "c1", "WITHDRAW", "Y 1 1");
    for (int i = 0; i < FATES; i++)
        tl_lock_free(all.locks[i]);
    tl_client_close(all.client);
    remove(file);
    free(file);
}

static tl_status lose_the_commit(void *context, struct st_mysql *connection)
{
    (void)context;
    (void)connection;
    tap_rule(line, "\x17", 0, TAP_LOSE_REQUEST, 1);
    return TL_OK;
}

static tl_status write_a_note(void *context, struct st_mysql *connection)
{
    const char *sql = "INSERT INTO noted VALUES ('x')";

    (void)context;
    return mysql_query(connection, sql) == 0 ? TL_OK : TL_SERVER_ERROR;
}

/* Whether the rule was met or not. */
static void line_up_again(void)
{
    tap_clear(line);
    tap_down(line, 0);
}

/* With rows, without, and with rows again, on one handle: granted is what has the rows. */
TEST(test_business_rows_by_and_by)
{
    int granted_with = 0, refused = 0;
    tl_status status;

    database_run(f.sql, "CREATE TABLE noted (note VARCHAR(20)) ENGINE=InnoDB");
    for (unsigned skip = 0; skip < 4; skip++) {
        tl_lock *lock;
        const struct text serial = text_of("by-and-by-%u", skip);

        database_run(f.sql, "DELETE FROM noted");
        lock = lock_new(far, serial.is, "c1", SYNC);
        status = tl_lock_ask_with(lock, lose_the_commit, NULL, 0);
        line_up_again();
        if (status == TL_GRANTED) { /* a beat took the commit's place */
            tl_lock_free(lock);
            continue;
        }
        assert_status(status, TL_UNKNOWN);
        lose(serial.is, skip, TAP_LOSE_ANSWER, 1);
        assert_status(tl_lock_ask(lock, 0), TL_UNKNOWN);
        line_up_again();
        do
            status = tl_lock_ask_with(lock, write_a_note, NULL, 0);
        while (is_open(status));
        if (status != TL_GRANTED)
            assert_status(status, TL_CALLBACK_FAILED);
        granted_with += status == TL_GRANTED;
        refused += status == TL_CALLBACK_FAILED;
        database_expect(f.sql, status == TL_GRANTED, "SELECT COUNT(*) FROM noted");
        tl_lock_free(lock);
    }
    assert_true(granted_with > 0);
    assert_true(refused > 0);
}

/* Who writes none misses none. */
TEST(test_no_business_rows)
{
    tl_ending ending = TL_ENDING_INIT;
    tl_lock *lock = lock_new(far, "no-rows", "c1", SYNC);

    ending.outcome = TL_OUTCOME_SUCCESS;
    lose("no-rows", 0, TAP_LOSE_ANSWER, 1);
    assert_status(tl_lock_ask(lock, 0), TL_UNKNOWN);
    line_up();
    ASSERT_KNOWN(tl_lock_ask_with(lock, NULL, NULL, 0), TL_GRANTED);
    lose("no-rows", 0, TAP_LOSE_ANSWER, 1);
    assert_status(tl_lock_finish(lock, &ending), TL_UNKNOWN);
    line_up();
    ASSERT_KNOWN(tl_lock_finish_with(lock, &ending, NULL, NULL, 1000), TL_SUCCEEDED);
    tl_lock_free(lock);
}

/* Somebody of the same process who waits for a lock. */
struct rival {
    tl_lock *lock;
    atomic_int asks;
    tl_status status;
};

static void *wait_for_it(void *context)
{
    struct rival *r = context;

    do {
        atomic_fetch_add(&r->asks, 1);
        r->status = tl_lock_ask(r->lock, PATIENCE_MS);
    } while (is_open(r->status));
    return NULL;
}

/* What the others of its process wait for may be its own: it is not told to wait behind them. */
TEST(test_an_ask_in_doubt_does_not_queue)
{
    tl_lock *lock = lock_new(far, "t-q", "c1", SYNC);
    struct rival rival = {.lock = lock_new(far, "t-q", "c1", SYNC)};
    int64_t until_ms;
    tl_status status;
    pthread_t thread;

    lose("t-q", 0, TAP_LOSE_ANSWER, 1);
    assert_status(tl_lock_ask(lock, 0), TL_UNKNOWN);
    line_up();
    assert_int_equal(pthread_create(&thread, NULL, wait_for_it, &rival), 0);
    until_ms = crew_now_ms() + 500; /* its turn has come */
    while (atomic_load(&rival.asks) == 0 || crew_now_ms() < until_ms)
        crew_sleep_ms(10);
    do {
        status = tl_lock_ask(lock, 300);
        assert_string_not_equal(tl_status_name(status), "TL_TIMEOUT");
    } while (is_open(status));
    assert_status(status, TL_GRANTED);
    ASSERT_KNOWN(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    pthread_join(thread, NULL);
    assert_status(rival.status, TL_ALREADY_DONE);
    tl_lock_free(rival.lock);
    tl_lock_free(lock);
}

static void *line_up_soon(void *context)
{
    (void)context;
    crew_sleep_ms(600); /* the time of a brief claim is over, and that for settling it is not */
    tap_down(line, 0);
    return NULL;
}

/* The next call is only said to have something where it has. */
TEST(test_claims_that_did_not_happen)
{
    tl_claim_options claim = TL_CLAIM_OPTIONS_INIT;
    tl_lock *lock = granted(f.client, "t-n", "c1", SYNC), *claimed;
    size_t count = 1; /* the oldest */
    pthread_t thread;
    tl_status status;

    end_in_doubt(lock);
    database_run(f.sql, "UPDATE trade_lock SET next_run_at = UTC_TIMESTAMP(6) - INTERVAL 1 DAY "
                        "WHERE serial_no = 't-n' AND lane = 'R'");
    claim.op_code = "WITHDRAW";
    claim.max_hold_ms = 60000;
    lose("t-n", 0, TAP_LOSE_REQUEST, 1);
    assert_int_equal(pthread_create(&thread, NULL, line_up_soon, NULL), 0);
    status = tl_claim_due(far, &claim, &claimed, &count);
    pthread_join(thread, NULL);
    line_up();
    if (status == TL_UNKNOWN)
        assert_non_null(strstr(tl_error_message(), "the next call finds out"));
    if (status == TL_OK && count == 1)
        tl_lock_free(claimed);
}

TESTS_OF(lost, setup, teardown)
