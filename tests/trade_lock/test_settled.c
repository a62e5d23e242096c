/* A session that ends in order says whether it left a trade in process; only then others look for
 * one. */
#include "fixture.h"

#include "support/crew.h"
#include "support/tap.h"
#include "support/theme.h"

#include <tradelock/callback.h>

/* Heartbeats of the test's own clients are no matter here. */
#define SETTINGS "beat_ms=100ms\nsession_ms=60s\n"

FIXTURE_OF_ALL(SETTINGS)

static void session_of(const tl_client *client, char id[64])
{
    snprintf(id, 64, "%s", tl_client_session(client));
}

static int is_settled(const char *session)
{
    return (int)database_number(f.sql,
                                "SELECT settled FROM tl_session WHERE session_id = '%s' "
                                "AND ended_by = session_id",
                                session);
}

/* Ends the client's session: what it said. */
static int close_and_ask(tl_client *client)
{
    char session[64];

    session_of(client, session);
    tl_client_close(client);
    return is_settled(session);
}

/* An open client with a janitor sees to it. */
static void await_swept(const char *session)
{
    AWAIT_WHILE(!database_number(f.sql,
                                 "SELECT swept_at IS NOT NULL FROM tl_session WHERE "
                                 "session_id = '%s'",
                                 session));
}

TEST(test_all_was_ended)
{
    tl_client *client = client_new(&f, TL_CLIENT_NO_JANITOR);
    tl_lock_options options = sync_options("x"), other = sync_options("y");
    tl_lock *held = granted(f.client, "held", "c1", &options);
    tl_lock *lock = granted(client, "s1", "c1", &options);
    tl_status status;

    end_paid(lock);
    end_in_doubt(granted(client, "s2", "c1", &options));
    /* Refusals of three kinds. */
    tl_lock_free(ask(client, "held", "c1", &options, &status));
    assert_status(status, TL_BUSY);
    tl_lock_free(ask(client, "held", "c1", &other, &status));
    assert_status(status, TL_MISMATCH);
    tl_lock_free(ask(client, "s1", "c1", &options, &status));
    assert_status(status, TL_ALREADY_DONE);
    tl_lock_free(lock_new(client, "never", "c1", &options));
    assert_int_equal(close_and_ask(client), 1);
    end_paid(held);
}

/* A worker who ends what it claimed, and one who gives up. */
TEST(test_claims)
{
    for (int given_up = 0; given_up < 2; given_up++) {
        tl_client *client = client_new(&f, TL_CLIENT_NO_JANITOR);
        tl_lock_options options = retry_options(), first = sync_options("x");
        tl_lock *lock;
        const struct text serial = text_of("claim-%d", given_up);

        end_in_doubt(granted(f.client, serial.is, "c1", &first));
        database_run(f.sql, "UPDATE trade_lock SET next_run_at = UTC_TIMESTAMP(6) WHERE "
                            "serial_no LIKE 'claim-%%' AND lane = 'R'");
        lock = granted(client, serial.is, "c1", &options);
        if (!given_up)
            assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        tl_lock_free(lock);
        assert_int_equal(close_and_ask(client), !given_up);
    }
}

/* What it left is opened long before its max_hold is over. */
TEST(test_a_lock_that_was_forgotten)
{
    tl_client *client = client_new(&f, TL_CLIENT_NO_JANITOR), *janitor;
    tl_lock_options options = sync_options("x");
    char session[64];

    options.max_hold_ms = 3600000;
    tl_lock_free(granted(client, "forgotten", "c1", &options));
    session_of(client, session);
    tl_client_close(client);
    assert_int_equal(is_settled(session), 0);
    janitor = client_new(&f, 0);
    await_swept(session);
    tl_client_close(janitor);
    assert_row(&f, "forgotten", "c1", "WITHDRAW_RETRY", "F 1 0");
}

TEST(test_an_ask_whose_fate_is_unknown)
{
    tap *line = tap_start(server_socket(server_shared()));
    char *file = database_option_file_at(f.db, tap_socket(line),
                                         SETTINGS "pool_wait_ms=300ms\nconnect_timeout_s=1\n");
    tl_client *client = NULL;
    tl_status status;

    client = client_of(file, TL_CLIENT_NO_JANITOR);
    tap_rule(line, "unknown-1", 0, TAP_LOSE_ANSWER, 1);
    tl_lock_free(ask(client, "unknown-1", "c1", SYNC, &status));
    assert_status(status, TL_UNKNOWN);
    tap_down(line, 0);
    /* The heartbeat has a connection again, by which the end is told. */
    while (tl_client_alive_ms(client) == 0)
        crew_sleep_ms(10);
    assert_int_equal(close_and_ask(client), 0);
    tap_free(line);
    remove(file);
    free(file);
}

static tl_status commit_by_itself(void *context, struct st_mysql *connection)
{
    (void)context;
    assert_int_equal(mysql_query(connection, "COMMIT"), 0);
    return TL_OK;
}

/* What a handle does not know may be on the row all the same. */
TEST(test_a_callback_that_commits)
{
    tl_client *client = client_new(&f, TL_CLIENT_NO_JANITOR);
    tl_lock *lock = lock_new(client, "commits", "c1", SYNC);

    assert_status(tl_lock_ask_with(lock, commit_by_itself, NULL, 0), TL_CALLBACK_FAILED);
    tl_lock_free(lock);
    assert_row(&f, "commits", "c1", "WITHDRAW", "P 1 1");
    assert_int_equal(close_and_ask(client), 0);
}

/* Its word is taken: nobody looks.  Were it wrong, the trade is found when its max_hold is over. */
TEST(test_a_wrong_word)
{
    tl_client *client = client_new(&f, TL_CLIENT_NO_JANITOR), *janitor;
    char session[64];

    session_of(client, session);
    tl_client_close(client);
    assert_int_equal(is_settled(session), 1);
    database_run(f.sql,
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                 "thread_no, session_id, token, fence, rev, sends, max_hold_until, "
                 "next_run_at, created_at, updated_at) VALUES ('c1', 'wrong', 'WITHDRAW', "
                 "'S', 'P', 'ask', UUID(), '%s', RANDOM_BYTES(16), 1, 1, 1, "
                 "UTC_TIMESTAMP(6) + INTERVAL 1 HOUR, max_hold_until, UTC_TIMESTAMP(6), "
                 "UTC_TIMESTAMP(6))",
                 session);
    janitor = client_new(&f, 0);
    await_swept(session);
    assert_row(&f, "wrong", "c1", "WITHDRAW_RETRY", "-");
    database_run(f.sql, "UPDATE trade_lock SET max_hold_until = UTC_TIMESTAMP(6), "
                        "next_run_at = UTC_TIMESTAMP(6) WHERE serial_no = 'wrong'");
    AWAIT_WHILE(database_number(f.sql, "SELECT COUNT(*) FROM trade_lock WHERE serial_no = "
                                       "'wrong'") < 2);
    tl_client_close(janitor);
}

/* An ending that was answered may be missing on a server that was restored. */
TEST(test_a_restored_server)
{
    tl_client *client = client_new(&f, TL_CLIENT_NO_JANITOR);
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_status status = TL_OK;

    database_run(f.sql, "UPDATE tl_schema SET restore_no = restore_no + 1");
    while (status != TL_ASK_CHANNEL) {
        assert_true(crew_now_ms() < end_ms);
        tl_lock_free(ask(client, "restored", "c1", SYNC, &status));
    }
    database_run(f.sql, "UPDATE tl_schema SET accepted_no = restore_no");
    assert_int_equal(close_and_ask(client), 0);
}

TESTS_OF(settled, open_all, close_all)
