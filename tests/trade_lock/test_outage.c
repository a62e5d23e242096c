/* What is not the processes' fault: a server that is away or stands still, a connection that dies
 * in silence. */
#include "fixture.h"

#include "support/crew.h"
#include "support/tap.h"
#include "support/theme.h"

#include <sys/types.h>

/* A client that stands still for a moment is not dead, and away is longer than that. */
#define SETTINGS "beat_ms=100ms\nsession_ms=4s\nconnect_timeout_s=1\n"
#define AWAY_MS 5000

static server *own;
static database *base;

FIXTURE(setup)
{
    own = server_start(NULL);
    base = database_new(own, SETTINGS);
}

FIXTURE(teardown)
{
    database_free(base);
}

static void away_by_restart(void)
{
    server_kill9(own); /* its socket keeps its place */
    crew_sleep_ms(AWAY_MS);
    server_restart(own);
}

static void away_by_standing_still(void)
{
    server_freeze(own);
    crew_sleep_ms(AWAY_MS);
    server_thaw(own);
}

static uint64_t beats_of(const tl_client *client)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    assert_status(tl_client_stats(client, &stats), TL_OK);
    return stats.beats;
}

static void await_beats(const tl_client *client, unsigned beats)
{
    uint64_t first = beats_of(client);

    AWAIT_WHILE(beats_of(client) < first + beats);
}

/*
 * Everybody was silent for longer than a session time-out, and nobody is to blame: no session is
 * ended, no lane opened, every lock is ended by its holder.  The last client finds its way back
 * later than the others, whose patience begins anew with their own return.
 */
static void nobody_is_ended(const char *serial, void (*away)(void))
{
    enum { CLIENTS = 3, LAST = CLIENTS - 1, LATER_MS = 300 };
    tap *line = tap_start(server_socket(own));
    char *file = database_option_file_at(base, tap_socket(line), SETTINGS);
    tl_client *clients[CLIENTS];
    tl_lock *locks[CLIENTS];
    MYSQL *sql;

    for (int i = 0; i < CLIENTS; i++) {
        char cust[] = {'c', (char)('0' + i), '\0'};

        clients[i] = client_of(i == LAST ? file : database_option_file(base), 0);
        locks[i] = granted(clients[i], serial, cust, SYNC);
    }
    for (int i = 0; i < CLIENTS; i++)
        await_beats(clients[i], 2);
    /* Its last heartbeat has been seen by the others before everybody falls silent. */
    tap_down(line, 1);
    await_beats(clients[0], 2);
    await_beats(clients[1], 2);
    away();
    await_beats(clients[0], 2);
    crew_sleep_ms(LATER_MS);
    tap_down(line, 0);
    for (int i = 0; i < CLIENTS; i++)
        await_beats(clients[i], 50); /* longer than a session time-out */
    sql = database_connect(base);
    database_expect(
        sql, 0,
        "SELECT COUNT(*) FROM tl_session WHERE ended_at IS NOT NULL AND ended_by <> session_id");
    for (int i = 0; i < CLIENTS; i++) {
        assert_true(tl_may_send(locks[i], 1));
        assert_status(finish(locks[i], TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        tl_lock_free(locks[i]);
    }
    database_expect(sql, 0, "SELECT COUNT(*) FROM trade_lock WHERE lane='R'");
    for (int i = 0; i < CLIENTS; i++)
        tl_client_close(clients[i]);
    mysql_close(sql);
    tap_free(line);
    remove(file);
    free(file);
}

TEST(test_a_restart)
{
    nobody_is_ended("restart", away_by_restart);
}

TEST(test_a_server_that_stood_still)
{
    nobody_is_ended("still", away_by_standing_still);
}

/* The next connection that names the session dies without a word. */
static void stall(tap *line, tl_client *client)
{
    tap_rule(line, tl_client_session(client), 0, TAP_STALL, 0);
    while (!tap_done(line))
        crew_sleep_ms(1);
}

/* The least that was certain of the session meanwhile. */
static int64_t least_alive_ms(tl_client *client, int64_t while_ms)
{
    const int64_t end_ms = crew_now_ms() + while_ms;
    int64_t least_ms = tl_client_alive_ms(client);

    while (crew_now_ms() < end_ms) {
        const int64_t alive_ms = tl_client_alive_ms(client);

        if (alive_ms < least_ms)
            least_ms = alive_ms;
        crew_sleep_ms(5);
    }
    return least_ms;
}

/* The heartbeat's connection dies without a word; the session is older than the time-out of a
 * silent server, and lives on by another connection.  The round that follows a beat names the
 * session too, on a connection of its own: if that is the one that died, only beats are left. */
TEST(test_a_connection_that_died_in_silence)
{
    tap *line = tap_start(server_socket(own));
    char *file = database_option_file_at(base, tap_socket(line),
                                         "beat_ms=100ms\nsession_ms=6s\nread_timeout_s=30\n"
                                         "janitor=0\n");
    tl_client *client = client_of(file, 0);
    int64_t least_ms;

    await_beats(client, 2);
    stall(line, client);
    least_ms = least_alive_ms(client, 3000);
    if (least_ms > 5000) {
        stall(line, client);
        least_ms = least_alive_ms(client, 8000);
    }
    assert_in_range(least_ms, 1500, 5000);
    await_beats(client, 2);
    tl_client_close(client);
    tap_free(line);
    remove(file);
    free(file);
}

TESTS_OF(outage, setup, teardown)
