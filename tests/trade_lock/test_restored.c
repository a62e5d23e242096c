/* A restored database grants nothing until it is accepted. */
#include "fixture.h"

#include "client/client.h"
#include "client/restored.h"
#include "db/db.h"
#include "pool/pool.h"
#include "support/crew.h"
#include "support/tap.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/callback.h>

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#define TOGETHER 8

WHOLE_FIXTURE_OF_ALL("beat_ms=100\nsession_ms=60s\n")

/* Asks for fresh trades until the answer is the expected one; gives the last one. */
static tl_status ask_until(const char *cust, tl_status expected)
{
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_status status = TL_OK;

    for (unsigned i = 0; status != expected && crew_now_ms() < end_ms; i++) {
        tl_lock_free(ask(f.client, text_of("w%u", i).is, cust, SYNC, &status));
        usleep(50 * 1000);
    }
    return status;
}

static void await_answer(const char *cust, tl_status expected)
{
    assert_status(ask_until(cust, expected), expected);
}

static uint64_t in_process(void)
{
    return (uint64_t)database_number(f.sql, "SELECT COUNT(*) FROM trade_lock WHERE "
                                            "lane = 'S' AND status = 'P' AND "
                                            "repeatable = 0");
}

static tl_lock *queued_then_claimed(const char *serial)
{
    tl_lock_options options = sync_options("x"), retry = retry_options();
    end_lock(granted(f.client, serial, "c1", &options), TL_OUTCOME_NOT_SENT, TL_PROOF_NONE,
             TL_QUEUED);
    return granted(f.client, serial, "c1", &retry);
}

TEST(test_declared_and_accepted)
{
    tl_lock *claimed = queued_then_claimed("q1");
    tl_lock_options mutex = TL_LOCK_OPTIONS_INIT;
    uint64_t doubtful = 0, expected;

    assert_status(tl_restore_declare(f.other, "ann", ""), TL_INVALID);
    assert_status(tl_restore_declare(f.other, "ann", "backup of monday"), TL_OK);
    await_answer("declared", TL_ASK_CHANNEL);
    /* The lane looks, and sends nothing. */
    assert_status(tl_lock_arm(claimed, 1000), TL_ASK_CHANNEL);
    end_lock(claimed, TL_OUTCOME_NOT_SENT, TL_PROOF_NONE, TL_QUEUED);
    mutex.flags = TL_ASK_REPEATABLE;
    mutex.max_hold_ms = 1000;
    tl_lock_free(granted(f.client, "m1", "c1", &mutex));

    expected = in_process();
    database_propose(f.sql);
    assert_status(tl_restore_accept(f.other, "bob", "statements agree", &doubtful), TL_OK);
    assert_int_equal(doubtful, expected);
    assert_row(&f, "q1", "c1", "WITHDRAW", "P 1 2");
    await_answer("accepted", TL_GRANTED);
}

static int may_be_sent(const char *serial, int for_s)
{
    return (int)database_number(f.sql,
                                "SELECT send_until > UTC_TIMESTAMP(6) + INTERVAL %d SECOND "
                                "FROM trade_lock WHERE serial_no = '%s' AND lane = 'S'",
                                for_s, serial);
}

static void sent_and_in_doubt(const char *serial, int64_t max_hold_ms)
{
    tl_lock_options options = sync_options("x");

    options.max_hold_ms = max_hold_ms;
    end_in_doubt(granted(f.client, serial, "c1", &options));
}

/* What is lost may have sent late: for one more hold, be it that of the first send, that of the
 * claim, or the settings'.  The longest counts. */
TEST(test_the_longest_hold_counts)
{
    static const struct {
        const char *serial;
        int for_s;
    } expected[] = {{"first", 3000}, {"claim", 3000}, {"settings", 30}};
    tl_lock_options retry = retry_options();
    tl_lock *claimed;

    assert_int_equal(tl_client_policy(f.other)->max_hold_ms, 60000);
    sent_and_in_doubt("first", 3600000);
    sent_and_in_doubt("settings", 10000);
    sent_and_in_doubt("claim", 10000);
    retry.max_hold_ms = 3600000;
    claimed = granted(f.client, "claim", "c1", &retry);
    /* As in a backup of an hour ago. */
    database_run(f.sql, "UPDATE trade_lock SET send_until = send_until - INTERVAL 1 HOUR, rev = "
                        "rev + 1, step = 'test' WHERE serial_no IN ('first', 'claim', 'settings') "
                        "AND lane = 'S'");
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_int_equal(may_be_sent(expected[i].serial, expected[i].for_s), 0);
    assert_status(tl_restore_declare(f.other, "ann", "backup of an hour ago"), TL_OK);
    database_propose(f.sql);
    assert_status(tl_restore_accept(f.other, "bob", "compared", NULL), TL_OK);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        if (!may_be_sent(expected[i].serial, expected[i].for_s))
            fail_msg("the hold of '%s' does not count", expected[i].serial);
    tl_lock_free(claimed);
    await_answer("holds", TL_GRANTED);
}

/* A worker's claim came through and its arming did not: what it sent is not known here, whether it
 * lives or not, and whoever comes next must ask the channel. */
TEST(test_a_claim_without_its_arming)
{
    tl_lock *claimed = queued_then_claimed("q2");
    assert_status(tl_restore_declare(f.other, "ann", "promoted"), TL_OK);
    database_propose(f.sql);
    assert_status(tl_restore_accept(f.other, "bob", "promoted", NULL), TL_OK);
    assert_row(&f, "q2", "c1", "WITHDRAW", "P 1 2");
    await_answer("promoted-q2", TL_GRANTED);
    assert_status(tl_lock_arm(claimed, 1000), TL_LOST);
    tl_lock_free(claimed);
}

/* What is lost may be an arming: one send more than the row tells of, still under way, and later
 * than the sighting of nothing. */
TEST(test_another_send_may_be_lost)
{
    tl_lock_options options = sync_options("x"), retry = retry_options();
    tl_ending ending = TL_ENDING_INIT;
    tl_findings findings = {.not_found_first = 1};
    tl_lock *lock = granted(f.client, "q3", "c1", &options);
    tl_lock *held = granted(f.client, "q4", "c1", &options);

    end_in_doubt(lock);
    lock = granted(f.client, "q3", "c1", &retry);
    ending.outcome = TL_OUTCOME_UNKNOWN;
    assert_status(tl_lock_put_back(lock, &ending, &findings), TL_IN_DOUBT);
    tl_lock_free(lock);
    database_run(f.sql, "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6) - INTERVAL 1 "
                        "HOUR WHERE serial_no = 'q3' AND lane = 'S'");
    assert_status(tl_restore_declare(f.other, "ann", "promoted"), TL_OK);
    database_propose(f.sql);
    assert_status(tl_restore_accept(f.other, "bob", "promoted", NULL), TL_OK);
    assert_row(&f, "q3", "c1", "WITHDRAW", "P 1 2");
    database_expect(f.sql, 1,
                    "SELECT COUNT(*) FROM trade_lock WHERE serial_no = 'q3' AND lane = 'S' AND "
                    "not_found_since IS NULL AND send_until > UTC_TIMESTAMP(6)");
    assert_row(&f, "q4", "c1", "WITHDRAW", "P 1 2");
    await_answer("lost-sends", TL_GRANTED);
    /* Its holder has lost it, and what it knows makes the lane due and ends it as paid. */
    end_lock(held, TL_OUTCOME_SUCCESS, TL_PROOF_NONE, TL_LOST);
    tl_lock_free(granted(f.client, "q4", "c1", &retry));
    database_expect(
        f.sql, 1,
        "SELECT success_epoch = epoch FROM trade_lock WHERE serial_no = 'q4' AND lane = 'S'");
}

TEST(test_another_server_is_noticed)
{
    tl_client *late;
    tl_status status;

    database_run(f.sql, "UPDATE tl_schema SET identity = 'the old one'");
    late = client_new(&f, TL_CLIENT_NO_JANITOR);
    tl_lock_free(ask(late, "x1", "c1", SYNC, &status));
    assert_status(status, TL_ASK_CHANNEL);
    database_propose(f.sql);
    assert_status(tl_restore_accept(f.other, "bob", "promoted", NULL), TL_OK);
    await_answer("promoted", TL_GRANTED);
    tl_client_close(late);
}

/* A client whose next heartbeat is far away, so that it is a new connection that shows where it
 * leads. */
static tl_client *slow_client(char **file)
{
    tl_client *client = NULL;

    *file = database_option_file_at(f.db, server_socket(server_shared()),
                                    "beat_ms=60s\nsession_ms=10m\n");
    client = client_of(*file, TL_CLIENT_NO_JANITOR);
    return client;
}

static tl_status prepare_nothing(void *context, struct st_mysql *connection)
{
    (void)context;
    (void)connection;
    return TL_OK;
}

static tl_status ask_plainly(tl_lock *lock)
{
    return tl_lock_ask(lock, 0);
}

static tl_status ask_with_rows(tl_lock *lock)
{
    return tl_lock_ask_with(lock, prepare_nothing, NULL, 0);
}

/* From now on the client's connections lead to another server, and nothing has told it. */
static void fail_over(void)
{
    database_run(f.sql, "UPDATE tl_schema SET identity = 'the old one'");
    database_cut(f.sql);
}

static void accept_and_close(tl_client *client, char *file)
{
    database_propose(f.sql);
    assert_status(tl_restore_accept(f.other, "bob", "promoted", NULL), TL_OK);
    tl_client_close(client);
    remove(file);
    free(file);
}

/* What the first ask hears that meets the promoted server. */
static void ask_first(const char *serial, tl_status (*ask_it)(tl_lock *lock))
{
    char *file;
    tl_client *client = slow_client(&file);
    tl_lock *lock = lock_new(client, serial, "over", SYNC);

    fail_over();
    assert_status(ask_it(lock), TL_ASK_CHANNEL);
    tl_lock_free(lock);
    accept_and_close(client, file);
}

/* A client that was looking while the server was accepted hears of it a beat later. */
static tl_lock *granted_at_last(tl_client *client, const char *serial, const char *cust)
{
    tl_lock *lock = lock_new(client, serial, cust, SYNC);
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_status status;

    while ((status = tl_lock_ask(lock, 0)) == TL_ASK_CHANNEL && crew_now_ms() < end_ms)
        usleep(1000);
    assert_status(status, TL_GRANTED);
    return lock;
}

TEST(test_the_first_ask_after_a_failover)
{
    end_lock(granted_at_last(f.client, "failed", "over"), TL_OUTCOME_FAILURE, TL_PROOF_DECLINED,
             TL_FAILED);
    ask_first("absent", ask_plainly);
    assert_row(&f, "absent", "over", "WITHDRAW", "-");
    ask_first("with", ask_with_rows);
    assert_row(&f, "with", "over", "WITHDRAW", "-");
    /* What it became since then may be lost. */
    ask_first("failed", ask_plainly);
}

/* The same of asks that share a statement. */
TEST(test_the_first_asks_together)
{
    char *file;
    tl_client *client = slow_client(&file);
    tl_completion completions[TOGETHER];
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    size_t count = 0;

    fail_over();
    for (int i = 0; i < TOGETHER; i++) {
        assert_status(tl_lock_ask_submit(
                          lock_new(client, text_of("together%d", i).is, "over", SYNC), NULL, NULL),
                      TL_OK);
    }
    while (count < TOGETHER) {
        count += tl_client_completed(client, completions + count, TOGETHER - count);
        assert_true(crew_now_ms() < end_ms);
        usleep(1000);
    }
    for (int i = 0; i < TOGETHER; i++) {
        assert_status(completions[i].status, TL_ASK_CHANNEL);
        tl_lock_free(completions[i].lock);
    }
    database_expect(f.sql, 0, "SELECT COUNT(*) FROM trade_lock WHERE serial_no LIKE 'together%%'");
    accept_and_close(client, file);
}

/* Who was granted the retry lane before does not send after. */
TEST(test_the_first_arming_after_a_failover)
{
    char *file;
    tl_client *client = slow_client(&file);
    tl_lock_options retry = retry_options();
    tl_lock *lock = granted_at_last(f.client, "arm", "over");

    end_lock(lock, TL_OUTCOME_NOT_SENT, TL_PROOF_NONE, TL_QUEUED);
    lock = granted(client, "arm", "over", &retry);
    fail_over();
    assert_status(tl_lock_arm(lock, 1000), TL_ASK_CHANNEL);
    assert_row(&f, "arm", "over", "WITHDRAW", "P 1 0");
    end_lock(lock, TL_OUTCOME_NOT_SENT, TL_PROOF_NONE, TL_QUEUED);
    accept_and_close(client, file);
}

static uint64_t asked_before;

static void wait_or_restore(void *context, int number)
{
    tl_status *answer = context;
    tl_lock *lock = NULL;
    tl_stats stats = {.version = TL_STATS_VERSION};

    if (number == 0) {
        lock = lock_new(f.client, "waits", "c1", SYNC);
        *answer = tl_lock_ask(lock, PATIENCE_MS);
        tl_lock_free(lock);
        return;
    }
    do {
        crew_sleep_ms(1);
        CREW_STATUS(tl_client_stats(f.client, &stats), TL_OK);
    } while (stats.asks == asked_before);
    CREW_STATUS(tl_restore_declare(f.other, "ann", "backup of monday"), TL_OK);
    CREW_STATUS(ask_until("waited", TL_ASK_CHANNEL), TL_ASK_CHANNEL);
    database_run(f.sql, "DELETE FROM trade_lock WHERE serial_no = 'waits'");
}

/* Who waited when the restore was declared is not granted what the backup does not have. */
TEST(test_a_waiter_meets_a_restore)
{
    tl_lock *held;
    tl_stats stats = {.version = TL_STATS_VERSION};
    tl_status answer = TL_OK;

    tl_lock_free(granted_at_last(f.client, "before", "c2"));
    held = granted_at_last(f.other, "waits", "c1");
    assert_status(tl_client_stats(f.client, &stats), TL_OK);
    asked_before = stats.asks;
    crew_threads(2, wait_or_restore, &answer);
    assert_status(answer, TL_ASK_CHANNEL);
    assert_row(&f, "waits", "c1", "WITHDRAW", "-");
    tl_lock_free(held);
    database_propose(f.sql);
    assert_status(tl_restore_accept(f.other, "bob", "statements agree", NULL), TL_OK);
}

/* ------------------------------------------------------- nothing becomes a failure -- */

static int try_by_hand(const char *serial)
{
    char sql[256];

    snprintf(sql, sizeof sql,
             "UPDATE trade_lock SET status = 'F', proof = 'D', rev = rev + 1 "
             "WHERE serial_no = '%s' AND lane = 'S'",
             serial);
    return mysql_query(f.sql, sql) == 0 ? 0 : (int)mysql_errno(f.sql);
}

/* And until every client has heard of it. */
static void accept_now(void)
{
    static unsigned times;

    database_propose(f.sql);
    assert_status(tl_restore_accept(f.other, "bob", "compared", NULL), TL_OK);
    tl_lock_free(granted_at_last(f.client, text_of("heard%u", ++times).is, "heard"));
}

/* A decline of the only send that is known of, and what never left, as far as is known. */
TEST(test_nothing_fails_until_accepted)
{
    tl_lock *declined = granted_at_last(f.client, "n1", "c1");
    tl_lock *queued = queued_then_claimed("n2");
    tl_lock *paid = granted_at_last(f.client, "n3", "c1");

    assert_status(tl_restore_declare(f.other, "ann", "promoted"), TL_OK);
    /* The database itself refuses, before the client has noticed and after it. */
    assert_status(finish(declined, TL_OUTCOME_FAILURE, TL_PROOF_DECLINED), TL_ASK_CHANNEL);
    assert_int_equal(try_by_hand("n1"), 31001);
    await_answer("declared-f", TL_ASK_CHANNEL);
    assert_status(finish(queued, TL_OUTCOME_FAILURE, TL_PROOF_NEVER_LEFT), TL_ASK_CHANNEL);
    assert_status(finish(declined, TL_OUTCOME_FAILURE, TL_PROOF_DECLINED), TL_ASK_CHANNEL);
    assert_row(&f, "n1", "c1", "WITHDRAW", "P 1 1");
    assert_row(&f, "n2", "c1", "WITHDRAW", "P 1 0");
    /* Success is true whatever was lost, and who was refused still holds. */
    assert_status(finish(paid, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    assert_status(finish(declined, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_IN_DOUBT);
    assert_status(finish(queued, TL_OUTCOME_NOT_SENT, TL_PROOF_NONE), TL_QUEUED);
    tl_lock_free(paid);
    tl_lock_free(declined);
    tl_lock_free(queued);
    accept_now();
}

struct ending_crew {
    tl_lock *locks[TOGETHER];
    tl_status answers[TOGETHER];
};

static void end_one(void *context, int number)
{
    struct ending_crew *crew = context;

    crew->answers[number] =
        number % 2 == 0 ? finish(crew->locks[number], TL_OUTCOME_SUCCESS, TL_PROOF_NONE)
                        : finish(crew->locks[number], TL_OUTCOME_FAILURE, TL_PROOF_DECLINED);
}

/* Endings that share a statement, of a process that has not noticed: each hears its own. */
TEST(test_neighbours_of_a_failure)
{
    for (int turn = 0; turn < 5; turn++) {
        char *file;
        tl_client *client = slow_client(&file);
        struct ending_crew crew;

        for (int i = 0; i < TOGETHER; i++) {

            crew.locks[i] = granted(client, text_of("g%d-%d", turn, i).is, "crew", SYNC);
        }
        assert_status(tl_restore_declare(f.other, "ann", "promoted"), TL_OK);
        crew_threads(TOGETHER, end_one, &crew);
        for (int i = 0; i < TOGETHER; i++) {
            assert_status(crew.answers[i], i % 2 == 0 ? TL_SUCCEEDED : TL_ASK_CHANNEL);
            tl_lock_free(crew.locks[i]);
        }
        accept_now();
        tl_client_close(client);
        remove(file);
        free(file);
    }
}

/* -------------------------------------------------------------------- remembered -- */

static long long is_restored(void)
{
    return database_number(f.sql, "SELECT tl_restored()");
}

static void await_restored(void)
{
    AWAIT_WHILE(is_restored() == 0);
}

/* A failed over to R, and nobody accepted; A is cloned from R and takes over again. */
TEST(test_it_is_remembered)
{
    tl_client *late;
    tl_status status;

    database_run(f.sql, "UPDATE tl_schema SET identity = 'the old one'");
    late = client_new(&f, TL_CLIENT_NO_JANITOR);
    tl_client_close(late);
    database_run(f.sql, "UPDATE tl_schema SET identity = tl_identity()");
    late = client_new(&f, TL_CLIENT_NO_JANITOR);
    tl_lock_free(ask(late, "again", "c1", SYNC, &status));
    assert_status(status, TL_ASK_CHANNEL);
    accept_now();
    tl_client_close(late);
    await_answer("remembered", TL_GRANTED);
}

/* The same server with the data of yesterday: a beat that was confirmed is not there. */
static void witness(const char *change, const char *cust)
{
    tl_client *client = client_new(&f, TL_CLIENT_NO_JANITOR);
    tl_stats stats = {.version = TL_STATS_VERSION};
    const char *const first = tl_client_session(client);
    uint64_t least = 3;

    do {
        usleep(10 * 1000);
        assert_status(tl_client_stats(client, &stats), TL_OK);
    } while (stats.beats < least);
    database_run(f.sql, "%s WHERE session_id = '%s'", change, first);
    if (cust != NULL) {
        await_restored();
        accept_now();
        await_answer(cust, TL_GRANTED);
    } else {
        while (strcmp(tl_client_session(client), first) == 0)
            usleep(10 * 1000);
    }
    tl_client_close(client);
    assert_int_equal(is_restored(), 0);
}

TEST(test_a_session_bears_witness)
{
    witness("DELETE FROM tl_session", "row");
    witness("UPDATE tl_session SET beat = 0", "beat");
    witness("UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6)", NULL);
}

static void await_beats_of_another(tl_client *client, const char *first)
{
    tl_stats before = {.version = TL_STATS_VERSION}, now = {.version = TL_STATS_VERSION};

    while (strcmp(tl_client_session(client), first) == 0)
        usleep(10 * 1000);
    assert_status(tl_client_stats(client, &before), TL_OK);
    do {
        usleep(10 * 1000);
        assert_status(tl_client_stats(client, &now), TL_OK);
    } while (now.beats < before.beats + 3);
}

/* Monday's backup was found to be one, and then Sunday's is restored: what Monday's confirmed,
 * although nobody had accepted it, bears witness of the same server. */
TEST(test_restored_twice)
{
    tl_client *client = client_new(&f, TL_CLIENT_NO_JANITOR);
    const char *const first = tl_client_session(client);

    database_run(f.sql, "DELETE FROM tl_session WHERE session_id = '%s'", first);
    await_restored();
    await_beats_of_another(client, first);
    database_run(f.sql,
                 "DELETE FROM tl_restore WHERE restore_no = (SELECT restore_no FROM tl_schema); "
                 "UPDATE tl_schema SET restore_no = accepted_no; "
                 "DELETE FROM tl_session WHERE session_id = '%s'",
                 tl_client_session(client));
    await_restored();
    accept_now();
    await_answer("twice", TL_GRANTED);
    tl_client_close(client);
}

/* What it knows and could not be written down is not forgotten, and the process takes no new
 * session before that. */
TEST(test_a_witness_is_heard_out)
{
    tl_client *client = client_new(&f, TL_CLIENT_NO_JANITOR), *other;
    const char *const first = tl_client_session(client);
    tl_stats stats = {.version = TL_STATS_VERSION};
    tl_migrated migrated;
    tl_status status;

    do {
        usleep(10 * 1000);
        assert_status(tl_client_stats(client, &stats), TL_OK);
    } while (stats.beats < 3);
    database_run(f.sql,
                 "DROP PROCEDURE tl_restore_found; "
                 "DELETE FROM tl_session WHERE session_id = '%s'",
                 first);
    while (tl_client_alive_ms(client) > 0)
        usleep(10 * 1000);
    for (int i = 0; i < 20; i++) {
        tl_lock_free(ask(client, "unheard", "c1", SYNC, &status));
        assert_string_not_equal(tl_status_name(status), "TL_GRANTED");
        usleep(20 * 1000);
    }
    assert_string_equal(tl_client_session(client), first);
    other = client_new(&f, TL_CLIENT_NO_SCHEMA | TL_CLIENT_NO_SESSION);
    assert_status(tl_migrate(other, &migrated), TL_OK);
    tl_client_close(other);
    await_restored();
    accept_now();
    await_answer("heard-out", TL_GRANTED);
    tl_client_close(client);
}

/* A connection on which the look failed is nobody's. */
TEST(test_a_look_that_failed)
{
    char *file;
    tl_client *client = slow_client(&file);
    tl_lock *lock = lock_new(client, "blind", "c1", SYNC);
    tl_migrated migrated;

    database_run(f.sql, "DROP FUNCTION tl_restored");
    database_cut(f.sql);
    assert_status(tl_lock_ask(lock, 0), TL_NO_SCHEMA);
    assert_row(&f, "blind", "c1", "WITHDRAW", "-");
    tl_lock_free(lock);
    tl_client_close(client);
    client = client_new(&f, TL_CLIENT_NO_SCHEMA | TL_CLIENT_NO_SESSION);
    assert_status(tl_migrate(client, &migrated), TL_OK);
    tl_client_close(client);
    remove(file);
    free(file);
    await_answer("sees", TL_GRANTED);
}

#define LOOKS 4000

struct looking {
    atomic_ullong id; /* of the connection that looks; 0: no more */
    int killed;
};

static void look(struct looking *l)
{
    for (int looks = 0; looks < LOOKS; looks++) {
        db *connection;

        CREW_STATUS(pool_get(f.client->connections, POOL_QUICK, PATIENCE_MS, &connection), TL_OK);
        atomic_store(&l->id, db_thread_id(connection));
        l->killed += restored_look(f.client, connection) != TL_OK;
        pool_put(f.client->connections, connection);
    }
    atomic_store(&l->id, 0);
}

/* One looks again and again; the other kills its queries, as somebody does who tidies up. */
static void look_or_kill(void *context, int number)
{
    struct looking *l = context;
    unsigned turn = 0;
    MYSQL *sql;
    unsigned long long id;

    if (number == 0) {
        look(l);
        return;
    }
    sql = database_connect(f.db);
    while ((id = atomic_load(&l->id)) != 0) {
        (void)mysql_query(sql, text_of("KILL QUERY %llu", id).is); /* it may be gone */
        usleep(turn++ * 137 % 1000);
    }
    mysql_close(sql);
}

/* A subquery that is killed says "nothing there", without an error: it is no witness. */
TEST(test_a_killed_look)
{
    struct looking l = {.id = ULLONG_MAX};
    tl_status status;

    crew_threads(2, look_or_kill, &l);
    assert_true(l.killed > 0);
    database_expect(f.sql, 0, "SELECT restore_no <> accepted_no FROM tl_schema");
    tl_lock_free(ask(f.client, "looked", "c1", SYNC, &status));
    assert_status(status, TL_GRANTED);
}

/* -------------------------------------------------------------------- accepting -- */

/* Longer than the client's commit_ms. */
#define HELD_MS 2500

struct holding {
    MYSQL *holder;
    tl_client *client;
};

static void accept_or_hold(void *context, int number)
{
    const struct holding *h = context;

    if (number == 0) {
        CREW_STATUS(tl_restore_accept(h->client, "bob", "compared", NULL), TL_OK);
        return;
    }
    crew_sleep_ms(HELD_MS);
    database_run(h->holder, "ROLLBACK");
}

/* ----------------------------------------------------------------- real deadlocks -- */

#define HEAVY_ROWS 3000

static void declare_it(void)
{
    CREW_STATUS(tl_restore_declare(f.other, "ann", "promoted"), TL_OK);
}

static void propose_it(void)
{
    CREW_STATUS(tl_restore_accept(f.other, "ann", "compared", NULL), TL_PARKED);
}

static void accept_it(void)
{
    CREW_STATUS(tl_restore_accept(f.other, "bob", "compared", NULL), TL_OK);
}

struct deadlock {
    MYSQL *heavy;
    void (*operate)(void);
    uint64_t repeats;
};

/* Until the operator's transaction waits for the heavier one, or was undone since it would. */
static void await_the_meeting(const struct deadlock *d)
{
    tl_stats now = {.version = TL_STATS_VERSION};
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    long long waits = 0;

    do {
        CREW_CHECK(crew_now_ms() < end_ms);
        CREW_STATUS(tl_client_stats(f.other, &now), TL_OK);
        waits = database_transactions(f.sql, "LOCK WAIT", "1");
    } while (waits == 0 && now.repeats == d->repeats);
}

static void operate_or_cross(void *context, int number)
{
    const struct deadlock *d = context;

    if (number == 0) {
        d->operate();
        return;
    }
    await_the_meeting(d);
    database_run(d->heavy, "SELECT one FROM tl_schema FOR UPDATE");
    database_run(d->heavy, "ROLLBACK");
}

/* Each has what the other wants: the operator the schema's row, and a transaction that is so heavy
 * that the server would give the operator's up, with 1213. */
static void cross(const char *locks, void (*operate)(void))
{
    tl_stats before = {.version = TL_STATS_VERSION};
    struct deadlock d = {database_connect(f.db), operate, 0};

    assert_status(tl_client_stats(f.other, &before), TL_OK);
    d.repeats = before.repeats;
    database_run(d.heavy,
                 "SET tx_isolation = 'REPEATABLE-READ'; BEGIN; "
                 "INSERT INTO weight (n) SELECT seq FROM seq_1_to_%d; %s",
                 HEAVY_ROWS, locks);
    crew_threads(2, operate_or_cross, &d);
    assert_status(tl_client_stats(f.other, &before), TL_OK);
    assert_true(before.repeats > d.repeats);
    mysql_close(d.heavy);
}

/* ------------------------------------------------------------ a house under load -- */

struct turns {
    MYSQL *holders[2];
    atomic_int over;
};

/* Takes the row without waiting for it; 0: whoever has it waits for another one, or is done. */
static int take_turn(struct turns *t, int number)
{
    static const char *const serials[] = {"h0", "h1"};
    char text[200];

    snprintf(text, sizeof text,
             "SELECT rev FROM trade_lock WHERE cust_no = 'c1' AND serial_no = '%s' AND "
             "op_code = 'WITHDRAW' FOR UPDATE NOWAIT",
             serials[number]);
    database_run(t->holders[number], "BEGIN");
    while (mysql_query(t->holders[number], text) != 0)
        if (atomic_load(&t->over) || database_transactions(f.sql, "LOCK WAIT", "1") > 0)
            return 0;
    mysql_free_result(mysql_store_result(t->holders[number]));
    return 1;
}

/* At each moment somebody is at one of the rows, and at none of them for long. */
static void accept_or_take_turns(void *context, int number)
{
    struct turns *t = context;

    if (number == 0) {
        accept_it();
        atomic_store(&t->over, 1);
        return;
    }
    for (int next = 1; !atomic_load(&t->over) && take_turn(t, next); next = !next) {
        database_run(t->holders[!next], "ROLLBACK");
        crew_sleep_ms(20);
    }
    database_run(t->holders[0], "ROLLBACK");
    database_run(t->holders[1], "ROLLBACK");
}

TEST(test_accepting_takes_two)
{
    tl_restore r = {.version = TL_RESTORE_VERSION};

    assert_status(tl_restore_accept(f.other, "ann", "why not", NULL), TL_REFUSED);
    assert_status(tl_restore_declare(f.other, "ann", "promoted"), TL_OK);
    assert_status(tl_restore_accept(f.other, "ann", "compared", NULL), TL_PARKED);
    assert_status(tl_restore_accept(f.other, "bob", "compared too", NULL), TL_PARKED);
    assert_int_equal(is_restored(), 1);
    assert_status(tl_restore_status(f.other, &r, NULL, NULL), TL_OK);
    assert_true(r.open && r.own_proposal && r.proposed_us > 0);
    assert_string_equal(r.how, "declared");
    assert_string_equal(r.proposer, "ann");
    /* Another restore in between voids the proposal. */
    assert_status(tl_restore_declare(f.other, "ann", "promoted once more"), TL_OK);
    assert_status(tl_restore_status(f.other, &r, NULL, NULL), TL_OK);
    assert_int_equal(r.proposed_us, 0);
    accept_now();
    assert_int_equal(is_restored(), 0);
    assert_status(tl_restore_status(f.other, &r, NULL, NULL), TL_OK);
    assert_true(!r.open && r.accepted == r.number && r.accepted_us > 0);
}

/* Others are at the row: accepting is repeated until it comes through, for longer than a payment. */
TEST(test_accepting_is_repeated)
{
    char *file = database_option_file_at(f.db, server_socket(server_shared()), "commit_ms=1s\n");
    struct holding h = {database_connect(f.db), client_of(file, TL_CLIENT_NO_JANITOR)};
    tl_stats after = {.version = TL_STATS_VERSION};

    database_propose(f.sql);
    database_run(h.holder, "BEGIN; SELECT one FROM tl_schema FOR UPDATE");
    crew_threads(2, accept_or_hold, &h);
    assert_status(tl_client_stats(h.client, &after), TL_OK);
    assert_true(after.repeats > 0);
    assert_int_equal(is_restored(), 0);
    tl_client_close(h.client);
    mysql_close(h.holder);
    remove(file);
    free(file);
    await_answer("repeated", TL_GRANTED);
}

/* Whoever is given up comes again until the other one is done. */
TEST(test_a_heavier_transaction_is_outlived)
{
    tl_lock *lock = queued_then_claimed("d1");
    const long long rows = database_number(f.sql, "SELECT COUNT(*) FROM tl_restore");

    database_run(f.sql, "CREATE OR REPLACE TABLE weight (n INT PRIMARY KEY) ENGINE = InnoDB");
    cross("SELECT * FROM tl_restore FOR UPDATE", declare_it);
    assert_int_equal(is_restored(), 1);
    database_expect(f.sql, rows + 1, "SELECT COUNT(*) FROM tl_restore");
    cross("SELECT * FROM tl_restore FOR UPDATE", propose_it);
    database_expect(f.sql, rows + 2, "SELECT COUNT(*) FROM tl_restore");
    database_run(f.sql, "DELETE FROM tl_restore WHERE step = 'proposed' ORDER BY "
                        "restore_no DESC LIMIT 1");
    database_propose(f.sql);
    cross("SELECT serial_no FROM trade_lock WHERE serial_no = 'd1' FOR UPDATE", accept_it);
    assert_int_equal(is_restored(), 0);
    database_run(f.sql, "DROP TABLE weight");
    tl_lock_free(lock);
    await_answer("outlived", TL_GRANTED);
}

/* It meets every trade in process: what does not wait for them would never have all at once. */
TEST(test_accepting_waits_for_each_row)
{
    struct turns t = {{database_connect(f.db), database_connect(f.db)}, 0};
    tl_lock *locks[] = {queued_then_claimed("h0"), queued_then_claimed("h1")};

    database_propose(f.sql);
    assert_int_equal(take_turn(&t, 0), 1);
    crew_threads(2, accept_or_take_turns, &t);
    assert_int_equal(is_restored(), 0);
    for (int i = 0; i < 2; i++) {
        mysql_close(t.holders[i]);
        tl_lock_free(locks[i]);
    }
    await_answer("turns", TL_GRANTED);
}

/* The attempt of a lane that a restored server lets do nothing is none. */
TEST(test_refused_armings_are_no_attempts)
{
    tl_lock_options retry = retry_options();
    tl_ending ending = TL_ENDING_INIT;
    tl_findings findings = {.not_counted = 1};
    tl_lock *lock = queued_then_claimed("a1");

    ending.outcome = TL_OUTCOME_UNKNOWN;
    assert_int_equal(tl_lock_view(lock)->attempts, 1);
    assert_status(tl_lock_put_back(lock, &ending, &findings), TL_QUEUED);
    tl_lock_free(lock);
    lock = granted(f.client, "a1", "c1", &retry);
    assert_int_equal(tl_lock_view(lock)->attempts, 1);
    end_paid(lock);
}

/* ---------------------------------------------------- payments whose rows are gone -- */

struct found {
    const char *serial;
    int count;
};

static int count_violation(void *context, const tl_violation *violation)
{
    struct found *found = context;

    found->count += strcmp(violation->key.serial_no, found->serial) == 0;
    return 0;
}

/* What the audit says of it, with this payment on the channel's statement. */
static void assert_audit(const char *serial, int violations)
{
    const tl_payment payment = {
        .serial_no = serial, .cust_no = "gone", .op_code = "WITHDRAW", .channel_ref = "ref-1"};
    tl_audit_counts counts = {.version = TL_AUDIT_COUNTS_VERSION};
    tl_audit_scope scope = TL_AUDIT_SCOPE_INIT;
    struct found found = {serial, 0};

    scope.payments = &payment;
    scope.payment_count = 1;
    assert_status(tl_audit(f.other, &scope, count_violation, NULL, &found, &counts, NULL), TL_OK);
    assert_int_equal(found.count, violations);
}

static tl_evidence paid(const char *serial)
{
    tl_evidence evidence = {.version = TL_EVIDENCE_VERSION};

    evidence.key = (tl_key){serial, "gone", "WITHDRAW"};
    evidence.outcome = "SUCCEEDED";
    evidence.channel_ref = "ref-1";
    evidence.source = "statement";
    return evidence;
}

static void forget(const char *serial)
{
    database_run(f.sql,
                 "DELETE FROM trade_lock WHERE serial_no = '%s'; DELETE FROM "
                 "trade_lock_past WHERE serial_no = '%s'; DELETE FROM trade_evidence "
                 "WHERE serial_no = '%s'",
                 serial, serial, serial);
}

static void assert_done(const char *serial, unsigned flags, const char *payload)
{
    tl_lock_options options = sync_options(payload);
    tl_status status;

    options.flags = flags;
    options.reclaim_epoch = flags & TL_ASK_RECLAIM ? 1 : 0;
    tl_lock_free(ask(f.client, serial, "gone", &options, &status));
    assert_status(status, TL_ALREADY_DONE);
}

TEST(test_a_payment_without_a_row)
{
    tl_evidence evidence = paid("p1");

    assert_status(tl_evidence_add(f.other, &evidence), TL_NOT_FOUND);
    assert_audit("p1", 1); /* the payment is unknown */
    assert_status(tl_restore_declare(f.other, "ann", "promoted"), TL_OK);
    assert_status(tl_evidence_add(f.other, &evidence), TL_OK);
    assert_status(tl_evidence_add(f.other, &evidence), TL_OK);
    assert_row(&f, "p1", "gone", "WITHDRAW", "-");
    assert_audit("p1", 0);
    accept_now();
    assert_row(&f, "p1", "gone", "WITHDRAW", "Y 1 1");
    assert_audit("p1", 0);
    await_answer("filed", TL_GRANTED);
    assert_done("p1", 0, "whatever it was");
    assert_done("p1", TL_ASK_EXCLUSIVE, "whatever it was");
    assert_done("p1", TL_ASK_RECLAIM, "whatever it was");
}

struct filer {
    tl_client *client;
    tl_evidence evidence;
    tl_status status;
};

static void *file_it(void *context)
{
    struct filer *filer = context;

    filer->status = tl_evidence_add(filer->client, &filer->evidence);
    return NULL;
}

/* Its first answer is lost, and somebody else files the same before its second try: the trade is made
 * once, and that is no conflict. */
TEST(test_a_filing_that_is_outrun)
{
    tap *line = tap_start(server_socket(server_shared()));
    char *file = database_option_file_at(f.db, tap_socket(line), "commit_ms=2s\n");
    struct filer filer = {.evidence = paid("p2")};
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    pthread_t thread;

    filer.client = client_of(file, TL_CLIENT_NO_JANITOR);
    assert_status(tl_restore_declare(f.other, "ann", "promoted"), TL_OK);
    /* The row is looked for, and evidence filed; then both once more. */
    tap_rule(line, "p2", 1, TAP_LOSE_ANSWER, 0);
    tap_rule(line, "p2", 2, TAP_DELAY_REQUEST, 0);
    assert_int_equal(pthread_create(&thread, NULL, file_it, &filer), 0);
    while (!tap_done(line) && crew_now_ms() < end_ms)
        crew_sleep_ms(5);
    assert_true(tap_done(line));
    assert_status(tl_evidence_add(f.other, &filer.evidence), TL_OK);
    crew_sleep_ms(2200);
    tap_release(line);
    pthread_join(thread, NULL);
    assert_status(filer.status, TL_OK);
    tl_client_close(filer.client);
    remove(file);
    free(file);
    tap_free(line);
    accept_now();
    assert_row(&f, "p2", "gone", "WITHDRAW", "Y 1 1");
    database_expect(f.sql, 0, "SELECT conflict FROM trade_lock WHERE serial_no = 'p2'");
    await_answer("outrun", TL_GRANTED);
}

static void assert_gone(const char *serial, tl_outcome outcome, tl_proof proof, const char *row,
                        int success)
{
    tl_lock_options options = sync_options("all that is known");
    tl_lock *lock = granted(f.client, serial, "gone", &options);

    forget(serial);
    assert_status(finish(lock, outcome, proof), TL_LOST);
    assert_row(&f, serial, "gone", "WITHDRAW", row);
    tl_lock_free(lock);
    if (row[0] == '-')
        return;
    database_expect(f.sql, 1,
                    "SELECT payload = 'all that is known' AND channel IS NOT NULL AND channel_key "
                    "IS NOT NULL AND fingerprint IS NOT NULL AND send_until > UTC_TIMESTAMP(6) AND "
                    "deadline_at <= UTC_TIMESTAMP(6) AND (success_epoch <=> 1) = %d AND session_id "
                    "IS NULL FROM trade_lock WHERE serial_no = '%s' AND lane = 'S'",
                    success, serial);
    /* A worker finds it. */
    database_expect(f.sql, 1,
                    "SELECT COUNT(*) FROM trade_lock WHERE serial_no = '%s' AND lane = 'R' AND "
                    "status = 'F' AND next_run_at <= UTC_TIMESTAMP(6)",
                    serial);
}

/* What a holder knows whose row went with a restore is not dropped, and ends the trade. */
TEST(test_a_holder_without_a_row)
{
    tl_lock_options retry = retry_options();
    tl_lock *lock;

    assert_gone("h1", TL_OUTCOME_SUCCESS, TL_PROOF_NONE, "P 1 2", 1);
    assert_gone("h2", TL_OUTCOME_UNKNOWN, TL_PROOF_NONE, "P 1 2", 0);
    assert_gone("h3", TL_OUTCOME_PENDING, TL_PROOF_NONE, "P 1 2", 0);
    assert_gone("h4", TL_OUTCOME_FAILURE, TL_PROOF_DECLINED, "-", 0);
    lock = granted(f.client, "h1", "gone", &retry);
    assert_status(tl_lock_arm(lock, 1000), TL_EVIDENCE);
    end_paid(lock);
    lock = granted(f.client, "h2", "gone", &retry);
    assert_status(tl_lock_arm(lock, 1000), TL_EVIDENCE); /* nothing is sent for it */
    /* Of a compensating attempt, too. */
    forget("h2");
    assert_status(finish(lock, TL_OUTCOME_NOT_SENT, TL_PROOF_NONE), TL_LOST);
    assert_row(&f, "h2", "gone", "WITHDRAW", "P 1 3");
    tl_lock_free(lock);
    assert_audit("h1", 0);
}

/* Whoever names the fence is granted a failure without reading it, and makes the row anew with what
 * the ask said. */
TEST(test_a_reclaim_without_a_row)
{
    tl_lock_options options = sync_options("all that is known");
    tl_ending failed = TL_ENDING_INIT;
    tl_lock *lock;

    options.amount_minor = 1050;
    options.currency = "EUR";
    options.batch = "b";
    options.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    options.label = "order 7";
    failed.outcome = TL_OUTCOME_FAILURE;
    failed.proof = TL_PROOF_DECLINED;
    failed.retryable = 1;
    lock = granted(f.client, "h5", "gone", &options);
    assert_status(tl_lock_finish(lock, &failed), TL_FAILED);
    tl_lock_free(lock);
    options.flags = TL_ASK_RECLAIM;
    options.reclaim_epoch = 1;
    options.reclaim_fence = (uint64_t)database_number(
        f.sql, "SELECT fence FROM trade_lock WHERE serial_no = 'h5' AND lane = 'S'");
    lock = granted(f.client, "h5", "gone", &options);
    forget("h5");
    end_lock(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE, TL_LOST);
    database_expect(f.sql, 1,
                    "SELECT COUNT(*) FROM trade_lock WHERE serial_no = 'h5' AND lane = 'S' AND "
                    "status = 'P' AND amount_minor = 1050 AND currency = 'EUR' AND batch = 'b' AND "
                    "traceparent = '%s' AND label = 'order 7'",
                    options.traceparent);
}

TESTS_OF(restored, open_all, close_all)
