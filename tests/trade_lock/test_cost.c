/*
 * What each path costs, by the counters of a server that serves nobody else: requests, statements
 * of each kind, and transactions that wrote something.
 *
 *     --locks=10000   held by one session while its heartbeats are counted
 */
#include "fixture.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/lane.h>

#define ROUNDS 10

static server *quiet;
static database *base;
static MYSQL *sql;
static tl_client *client;

/* Connections are made, and statements prepared, before anything is counted. */
static void warm_up(void)
{
    tl_lock_options options = sync_options("x"), mutex = TL_LOCK_OPTIONS_INIT;
    tl_lock_options retry = retry_options();
    tl_lock *lock;

    mutex.flags = TL_ASK_REPEATABLE;
    mutex.max_hold_ms = 1000;
    end_paid(granted(client, "warm-1", "cost", &mutex));
    for (int i = 0; i < 2; i++) {
        end_in_doubt(granted(client, i == 0 ? "warm-2" : "warm-3", "cost", &options));
        lock = granted(client, i == 0 ? "warm-2" : "warm-3", "cost", &retry);
        assert_status(tl_lock_arm(lock, 1000), TL_OK);
        end_paid(lock);
    }
    options.flags = TL_ASK_RECLAIM;
    options.reclaim_epoch = 1;
    end_paid(granted(client, "warm-4", "cost", &options));
}

FIXTURE(setup)
{
    /* The server's own commits of statistics would be counted, too. */
    static const char *const options[] = {"--innodb-stats-auto-recalc=OFF", NULL};

    quiet = server_start(options);
    /* One heartbeat an hour is none at all, for a test. */
    base = database_new(quiet, "beat_ms=1m\nsession_ms=10m\n");
    sql = database_connect(base);
    database_run(sql, "SET GLOBAL innodb_monitor_enable = 'trx_rw_commits'");
    client = client_of(database_option_file(base), TL_CLIENT_NO_JANITOR);
    warm_up();
}

FIXTURE(teardown)
{
    tl_client_close(client);
    mysql_close(sql);
    database_free(base);
}

enum counter {
    REQUESTS, /* of any kind, whole round trips */
    SELECTS,
    INSERTS, /* the triggers' into the log too */
    UPDATES, /* of several tables too */
    BEGINS,
    COMMITS,
    WRITTEN, /* transactions that changed something, or set out to */
    COUNTERS
};

struct counters {
    long long is[COUNTERS];
};

static long long status_of(const char *names)
{
    return database_number(sql,
                           "SELECT SUM(VARIABLE_VALUE) FROM information_schema.GLOBAL_"
                           "STATUS WHERE VARIABLE_NAME IN (%s)",
                           names);
}

static struct counters read_counters(void)
{
    static const char *const names[] = {"'Questions'",
                                        "'Com_select'",
                                        "'Com_insert','Com_insert_select'",
                                        "'Com_update','Com_update_multi'",
                                        "'Com_begin'",
                                        "'Com_commit'"};
    struct counters c;

    for (int i = 0; i < WRITTEN; i++)
        c.is[i] = status_of(names[i]);
    c.is[WRITTEN] = database_number(sql, "SELECT COUNT FROM information_schema.INNODB_"
                                         "METRICS WHERE NAME = 'trx_rw_commits'");
    return c;
}

/* What lies between two readings without the readings themselves. */
static struct counters between(const struct counters *before, const struct counters *after)
{
    struct counters d;

    for (int i = 0; i < COUNTERS; i++)
        d.is[i] = after->is[i] - before->is[i];
    /* The readings: each is one request and one SELECT. */
    d.is[REQUESTS] -= COUNTERS;
    d.is[SELECTS] -= COUNTERS;
    return d;
}

static void expect(const char *what, const struct counters *before, const struct counters *after,
                   struct counters each)
{
    static const char *const names[COUNTERS] = {"requests", "selects", "inserts", "updates",
                                                "begins",   "commits", "written"};
    struct counters d = between(before, after);

    for (int i = 0; i < COUNTERS; i++)
        if (d.is[i] != each.is[i] * ROUNDS)
            fail_msg("%s: %lld %s in %d rounds, not %lld each", what, d.is[i], names[i], ROUNDS,
                     each.is[i]);
}

/* One INSERT, or one UPDATE, that commits by itself.  The trigger of the first leaves a receipt;
 * that of the second keeps what was, but for the first step, which stays in the row. */
static const struct counters ONE_INSERT = {{1, 0, 1 + 1, 0, 0, 0, 1}};
static const struct counters FIRST_UPDATE = {{1, 0, 0, 1, 0, 0, 1}};
static const struct counters ONE_UPDATE = {{1, 0, 1, 1, 0, 0, 1}};
/* An INSERT that finds the row there, and changes it. */
static const struct counters ONE_REPEAT = {{1, 0, 1 + 1, 0, 0, 0, 1}};
/* The same for the rows of both lanes. */
static const struct counters ONE_UPDATE_OF_BOTH = {{1, 0, 2, 1, 0, 0, 1}};
/* An UPDATE cannot return what it wrote: where the caller named no fence the row is read after it.
 */
static const struct counters RECLAIM = {{1 + 1, 1, 1, 1, 0, 0, 1}};
static const struct counters CLAIM = {{1 + 1, 1, 2, 1, 0, 0, 1}};
/* Both rows, the second found by the first one's token, in one request. */
static const struct counters OPENING = {{1, 0, 1, 1, 1, 1, 1}};
static const struct counters OPENING_AGAIN = {{1, 0, 1 + 2, 1, 1, 1, 1}};
/* The insert that met a row, and the read that says why. */
static const struct counters REFUSED = {{1 + 1, 1, 1, 0, 0, 0, 1}};

static tl_lock *locks[ROUNDS];

static void make(const char *prefix, int same, const tl_lock_options *options)
{
    for (int i = 0; i < ROUNDS; i++)
        locks[i] = lock_new(client, text_of("%s-%d", prefix, same ? 0 : i).is, "cost", options);
}

static void free_locks(void)
{
    for (int i = 0; i < ROUNDS; i++)
        tl_lock_free(locks[i]);
}

static void ask_all(const char *what, struct counters each)
{
    struct counters before = read_counters(), after;

    for (int i = 0; i < ROUNDS; i++)
        assert_status(tl_lock_ask(locks[i], 0), TL_GRANTED);
    after = read_counters();
    expect(what, &before, &after, each);
}

static void finish_all(const char *what, tl_outcome outcome, tl_proof proof, int retryable,
                       tl_status answer, struct counters each)
{
    struct counters before = read_counters(), after;

    for (int i = 0; i < ROUNDS; i++) {
        tl_ending ending = TL_ENDING_INIT;

        ending.outcome = outcome;
        ending.proof = proof;
        ending.retryable = retryable;
        assert_status(tl_lock_finish(locks[i], &ending), answer);
    }
    after = read_counters();
    expect(what, &before, &after, each);
    free_locks();
}

TEST(test_sync_lane)
{
    tl_lock_options options = sync_options("x");

    make("once", 0, &options);
    ask_all("a first ask", ONE_INSERT);
    finish_all("success", TL_OUTCOME_SUCCESS, TL_PROOF_NONE, 0, TL_SUCCEEDED, FIRST_UPDATE);

    make("fails", 0, &options);
    ask_all("a first ask", ONE_INSERT);
    finish_all("failure", TL_OUTCOME_FAILURE, TL_PROOF_DECLINED, 1, TL_FAILED, FIRST_UPDATE);
    options.flags = TL_ASK_RECLAIM;
    options.reclaim_epoch = 1;
    make("fails", 0, &options);
    ask_all("a reclaim", RECLAIM);
    finish_all("success", TL_OUTCOME_SUCCESS, TL_PROOF_NONE, 0, TL_SUCCEEDED, ONE_UPDATE);
}

/* Whoever names the fence of the failure needs no read to know the next one. */
TEST(test_a_reclaim_of_what_was_seen)
{
    tl_lock_options options = sync_options("x");

    make("seen", 0, &options);
    ask_all("a first ask", ONE_INSERT);
    finish_all("failure", TL_OUTCOME_FAILURE, TL_PROOF_DECLINED, 1, TL_FAILED, FIRST_UPDATE);
    options.flags = TL_ASK_RECLAIM;
    options.reclaim_epoch = 1;
    for (int i = 0; i < ROUNDS; i++) {
        char serial[40];

        snprintf(serial, sizeof serial, "seen-%d", i);
        options.reclaim_fence = (uint64_t)database_number(
            sql, "SELECT fence FROM trade_lock WHERE serial_no = '%s'", serial);
        locks[i] = lock_new(client, serial, "cost", &options);
    }
    ask_all("a reclaim of what was seen", ONE_UPDATE);
    for (int i = 0; i < ROUNDS; i++) {
        char serial[40];

        snprintf(serial, sizeof serial, "seen-%d", i);
        assert_int_equal(tl_lock_view(locks[i])->epoch, 2);
        assert_true(
            (long long)tl_lock_view(locks[i])->fence ==
            database_number(sql, "SELECT fence FROM trade_lock WHERE serial_no = '%s'", serial));
    }
    finish_all("success", TL_OUTCOME_SUCCESS, TL_PROOF_NONE, 0, TL_SUCCEEDED, ONE_UPDATE);
}

TEST(test_exclusive)
{
    tl_lock_options options = sync_options("x");

    options.flags = TL_ASK_EXCLUSIVE;
    for (int i = 0; i < ROUNDS; i++)
        locks[i] = lock_new(client, "alone", text_of("cost%d", i).is, &options);
    ask_all("an exclusive ask", ONE_INSERT);
    finish_all("success", TL_OUTCOME_SUCCESS, TL_PROOF_NONE, 0, TL_SUCCEEDED, FIRST_UPDATE);
}

static void repeat(const char *prefix, const tl_lock_options *options, tl_outcome outcome)
{
    tl_proof proof = outcome == TL_OUTCOME_FAILURE ? TL_PROOF_DECLARED : TL_PROOF_NONE;

    make(prefix, 0, options);
    ask_all("a mutex's first ask", ONE_INSERT);
    finish_all("its release", outcome, proof, 0,
               outcome == TL_OUTCOME_SUCCESS ? TL_SUCCEEDED : TL_FAILED, FIRST_UPDATE);
    make(prefix, 0, options);
    ask_all("a mutex's later ask", ONE_REPEAT);
    finish_all("its release", outcome, proof, 0,
               outcome == TL_OUTCOME_SUCCESS ? TL_SUCCEEDED : TL_FAILED, ONE_UPDATE);
}

TEST(test_mutexes)
{
    tl_lock_options mutex = TL_LOCK_OPTIONS_INIT, standalone = retry_options();

    mutex.flags = TL_ASK_REPEATABLE;
    mutex.max_hold_ms = 60000;
    standalone.flags = TL_ASK_STANDALONE;
    repeat("mutex", &mutex, TL_OUTCOME_SUCCESS);
    repeat("standalone", &standalone, TL_OUTCOME_FAILURE);
}

TEST(test_retry_lane)
{
    tl_lock_options options = sync_options("x"), retry = retry_options();

    for (int success = 0; success < 2; success++) {
        const char *prefix = success ? "in-doubt-y" : "in-doubt-f";

        make(prefix, 0, &options);
        ask_all("a first ask", ONE_INSERT);
        finish_all("no answer", TL_OUTCOME_UNKNOWN, TL_PROOF_NONE, 0, TL_IN_DOUBT, OPENING);
        make(prefix, 0, &retry);
        ask_all("a claim", CLAIM);
        finish_all("again", TL_OUTCOME_FAILURE, TL_PROOF_NONE, 0, TL_IN_DOUBT, OPENING_AGAIN);
        make(prefix, 0, &retry);
        ask_all("a claim of a retry row, F -> P", CLAIM);
        if (success)
            finish_all("a retry's success", TL_OUTCOME_SUCCESS, TL_PROOF_NONE, 0, TL_SUCCEEDED,
                       ONE_UPDATE_OF_BOTH);
        else
            finish_all("a retry's failure", TL_OUTCOME_FAILURE, TL_PROOF_NOT_FOUND, 0, TL_FAILED,
                       ONE_UPDATE_OF_BOTH);
    }
}

/* A number that every change of a row or of the history changes. */
static long long rows_written(void)
{
    return database_number(sql, "SELECT (SELECT SUM(CRC32(CONCAT_WS('|', rev, status, "
                                "HEX(token), fence, session_id, updated_at))) FROM trade_lock) "
                                "+ (SELECT COUNT(*) FROM trade_lock_log)");
}

/* Arming is one statement more, and so is every refusal after its read. */
TEST(test_arming_and_refusals)
{
    tl_lock_options options = sync_options("x"), retry = retry_options();
    struct counters before, after;
    long long rows;

    make("armed", 0, &options);
    ask_all("a first ask", ONE_INSERT);
    finish_all("no answer", TL_OUTCOME_UNKNOWN, TL_PROOF_NONE, 0, TL_IN_DOUBT, OPENING);
    make("armed", 0, &retry);
    ask_all("a claim", CLAIM);
    rows = rows_written();
    before = read_counters();
    for (int i = 0; i < ROUNDS; i++)
        assert_status(tl_lock_arm(locks[i], 60000), TL_OK);
    after = read_counters();
    expect("arming", &before, &after, ONE_UPDATE);
    assert_true(rows_written() != rows);
    free_locks();

    make("armed", 0, &options);
    rows = rows_written();
    before = read_counters();
    for (int i = 0; i < ROUNDS; i++)
        assert_status(tl_lock_ask(locks[i], 0), TL_BUSY);
    after = read_counters();
    expect("a refusal", &before, &after, REFUSED);
    assert_int_equal(rows_written(), rows);
    free_locks();
}

/* Rows in process under this session, without asking for each. */
static void hold_rows(const char *session, long first, long last)
{
    database_run(sql,
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                 "thread_no, session_id, token, fence, rev, sends, max_hold_until, "
                 "next_run_at, created_at, updated_at) SELECT 'beats', CONCAT('b-', seq), "
                 "'WITHDRAW', 'S', 'P', 'ask', UUID(), '%s', RANDOM_BYTES(16), 1, 1, 1, "
                 "UTC_TIMESTAMP() + INTERVAL 1 DAY, UTC_TIMESTAMP() + INTERVAL 1 DAY, "
                 "UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) FROM seq_%ld_to_%ld",
                 session, first, last);
}

static uint64_t beats_of(const tl_client *beating)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    assert_status(tl_client_stats(beating, &stats), TL_OK);
    return stats.beats;
}

/* What heartbeats cost the server.  Some pass while the counters are read, on a slow machine many;
 * so how many there were is known within bounds. */
struct beating {
    long long least, most;
    struct counters cost;
};

static struct beating count_beats(tl_client *client_, int beats)
{
    uint64_t before_first = beats_of(client_), first, last;
    struct counters before = read_counters(), after;
    struct beating counted;

    first = beats_of(client_);
    while (beats_of(client_) < first + (uint64_t)beats)
        crew_sleep_ms(1);
    last = beats_of(client_);
    after = read_counters();
    /* One may be carried out and not be counted yet, at either end. */
    counted.least = (long long)(last - first) - 1;
    counted.most = (long long)(beats_of(client_) - before_first) + 1;
    counted.cost = between(&before, &after);
    return counted;
}

/* They write one row and commit once. */
static void check_beats(const char *session, const struct beating *counted)
{
    const long long *is = counted->cost.is;
    long long held = database_number(
        sql, "SELECT COUNT(*) FROM trade_lock WHERE session_id = '%s' AND status = 'P'", session);

    print_message("%lld locks held, %lld to %lld beats: %lld UPDATEs, %lld transactions "
                  "that wrote, %lld INSERTs, %lld SELECTs\n",
                  held, counted->least, counted->most, is[UPDATES], is[WRITTEN], is[INSERTS],
                  is[SELECTS]);

    assert_in_range(is[UPDATES], counted->least, counted->most);
    assert_in_range(is[WRITTEN], counted->least, counted->most);
    assert_int_equal(is[INSERTS] + is[BEGINS] + is[COMMITS], 0);
}

TEST(test_one_statement_a_beat)
{
    enum { BEATS = 10 };
    char *file =
        database_option_file_at(base, server_socket(quiet), "beat_ms=100ms\nsession_ms=30s\n");
    tl_client *beating = client_of(file, TL_CLIENT_NO_JANITOR);
    const char *session = tl_client_session(beating);
    struct beating few, many;

    hold_rows(session, 1, 1);
    few = count_beats(beating, BEATS);
    check_beats(session, &few);
    hold_rows(session, 2, crew_number("locks", 10000));
    many = count_beats(beating, BEATS);
    check_beats(session, &many);
    /* Nothing is read more often, whatever is held; a round that follows two beats at once makes a
     * difference of its own. */
    assert_true(many.cost.is[REQUESTS] * few.cost.is[UPDATES] <=
                (few.cost.is[REQUESTS] + 2 * few.cost.is[UPDATES]) * many.cost.is[UPDATES]);
    tl_client_close(beating);
    remove(file);
    free(file);
}

/* ----------------------------------------------------------------------- of a fleet -- */

static long long rows_read(void)
{
    return status_of("'Handler_read_key','Handler_read_next','Handler_read_first','Handler_read_"
                     "prev','Handler_read_rnd','Handler_read_last'");
}

/* Rows that the server reads for ROUNDS asks, and for their endings. */
static void count_reads(const char *prefix, long long *asks, long long *endings)
{
    tl_ending ending = TL_ENDING_INIT;
    long long before = rows_read(), after;

    ending.outcome = TL_OUTCOME_SUCCESS;
    make(prefix, 0, SYNC);
    for (int i = 0; i < ROUNDS; i++)
        assert_status(tl_lock_ask(locks[i], 0), TL_GRANTED);
    after = rows_read();
    *asks = after - before;
    for (int i = 0; i < ROUNDS; i++)
        assert_status(tl_lock_finish(locks[i], &ending), TL_SUCCEEDED);
    *endings = rows_read() - after;
    free_locks();
}

/* Requests, statements that write and commits are as many as without.  An ask reads its slot, one
 * row by its key; an ending reads none.  A database of no fleet reads none either. */
TEST(test_in_a_fleet)
{
    tl_fleet_joining joining = TL_FLEET_JOINING_INIT;
    long long asks, endings, asks_in_fleet, endings_in_fleet;
    struct counters ask = ONE_INSERT;

    count_reads("plain", &asks, &endings);
    count_reads("plain-again", &asks, &endings);
    joining.fleet = "fleet";
    joining.shard = "one";
    assert_status(tl_fleet_join(&client, 1, 0, &joining, NULL), TL_OK);
    count_reads("warm-fleet", &asks_in_fleet, &endings_in_fleet);
    count_reads("fleet", &asks_in_fleet, &endings_in_fleet);
    assert_int_equal(asks_in_fleet - asks, ROUNDS);
    assert_int_equal(endings_in_fleet - endings, 0);
    ask.is[SELECTS] = 1; /* the trigger's */
    make("in-fleet", 0, SYNC);
    ask_all("an ask in a fleet", ask);
    finish_all("success", TL_OUTCOME_SUCCESS, TL_PROOF_NONE, 0, TL_SUCCEEDED, FIRST_UPDATE);
}

TESTS_OF(cost, setup, teardown)
