/* A primary that waits for its replica at each commit, and is cut off from it.  It shows what the
 * replica never had, as soon as the commit that waits is ended; whoever is promoted lacks it. */
#include "fixture.h"

#include "support/crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 60000
/* No beat comes meanwhile: what is committed behind one that waits would be seen by nobody. */
#define SETTINGS "beat_ms=1m\nsession_ms=10m\nread_timeout_s=2\ncommit_ms=1s\npool_wait_ms=1s\n"

static server *primary, *replica;
static fixture f;

static void start_primary(const char *wait_point, unsigned port)
{
    char at[64], point[64];
    const char *const options[] = {"--log-bin=binlog",
                                   "--sync-binlog=1",
                                   "--server-id=1",
                                   "--skip-networking=0",
                                   "--bind-address=127.0.0.1",
                                   "--rpl-semi-sync-master-timeout=3600000",
                                   at,
                                   point,
                                   NULL};

    snprintf(at, sizeof at, "--port=%u", port);
    snprintf(point, sizeof point, "--rpl-semi-sync-master-wait-point=%s", wait_point);
    primary = server_start(options);
}

static void start_replica(unsigned port)
{
    static const char *const options[] = {"--server-id=2", "--rpl-semi-sync-slave-enabled=1", NULL};
    MYSQL *sql;

    replica = server_start(options);
    sql = server_connect(replica);
    database_run(sql,
                 "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %u, "
                 "MASTER_USER = 'replica', MASTER_USE_GTID = slave_pos; START SLAVE",
                 port);
    mysql_close(sql);
}

static int64_t status_of(const char *name)
{
    return database_number(f.sql,
                           "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "
                           "WHERE VARIABLE_NAME = '%s'",
                           name);
}

static void await_replica(void)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;

    while (status_of("Rpl_semi_sync_master_clients") != 1) {
        if (crew_now_ms() > end_ms)
            server_panic("the replica does not come");
        usleep(10000);
    }
}

static void open_pair(const char *wait_point)
{
    const unsigned port = server_free_port();
    MYSQL *sql;

    start_primary(wait_point, port);
    sql = server_connect(primary);
    database_run(sql, "CREATE USER replica@'127.0.0.1'; "
                      "GRANT REPLICATION SLAVE ON *.* TO replica@'127.0.0.1'");
    start_replica(port);
    f.db = database_new(primary, SETTINGS);
    f.client = client_new(&f, TL_CLIENT_NO_JANITOR);
    f.other = client_new(&f, TL_CLIENT_NO_JANITOR);
    f.sql = database_connect(f.db);
    /* Not earlier: it waits for a replica from then on. */
    database_run(sql, "SET GLOBAL rpl_semi_sync_master_enabled = 1");
    mysql_close(sql);
    await_replica();
}

static void close_pair(void)
{
    assert_log_whole(&f);
    fixture_close(&f);
    server_free(replica);
    server_free(primary);
}

static int is_open(tl_status status)
{
    const tl_class class_ = tl_status_class(status);

    return class_ == TL_CLASS_UNKNOWN || class_ == TL_CLASS_RETRY;
}

static tl_status ask_again(tl_lock *lock)
{
    return tl_lock_ask(lock, 0);
}

static tl_status end_again(tl_lock *lock)
{
    return finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE);
}

typedef tl_status (*call)(tl_lock *lock);

/* The same call until somebody can tell. */
static tl_status call_on(call again, tl_lock *lock)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_status status;

    do
        status = again(lock);
    while (is_open(status) && crew_now_ms() < end_ms);
    return status;
}

/* The same call until the primary shows what it did, and once more.  Nobody can tell, since nobody
 * else has it. */
static void call_alone(call again, tl_lock *lock, char shown)
{
    const int64_t begin_ms = crew_now_ms(), end_ms = begin_ms + PATIENCE_MS;
    int shows = 0, showed;
    tl_status status;

    do {
        showed = shows;
        status = again(lock);
        if (!is_open(status))
            fail_msg("%s, and nobody else has it", tl_status_name(status));
        shows =
            database_number(f.sql, "SELECT status = '%c' FROM trade_lock WHERE serial_no = 'CUT'",
                            shown) == 1;
        if (crew_now_ms() > end_ms)
            fail_msg("the primary does not show it");
    } while (!showed || crew_now_ms() < begin_ms + 5000);
    /* The calls leave nobody behind that waits; a beat may. */
    assert_in_range(database_number(f.sql, "SELECT COUNT(*) FROM information_schema.PROCESSLIST "
                                           "WHERE STATE LIKE 'Waiting for semi-sync ACK%%'"),
                    0, 1);
}

static void nothing_counts_that_only_one_has(const char *wait_point)
{
    tl_lock_options options = sync_options("x");
    tl_lock *lock;

    options.max_hold_ms = 600000;
    open_pair(wait_point);
    lock = lock_new(f.client, "CUT", "C1", &options);
    server_freeze(replica);
    call_alone(ask_again, lock, 'P');
    assert_false(tl_may_send(lock, 1000));
    server_thaw(replica);
    assert_status(call_on(ask_again, lock), TL_GRANTED);
    assert_true(tl_may_send(lock, 1000));
    server_freeze(replica);
    call_alone(end_again, lock, 'Y');
    server_thaw(replica);
    assert_status(call_on(end_again, lock), TL_SUCCEEDED);
    tl_lock_free(lock);
    close_pair();
}

static void after_sync(void **state)
{
    (void)state;
    nothing_counts_that_only_one_has("AFTER_SYNC");
}

static void after_commit(void **state)
{
    (void)state;
    nothing_counts_that_only_one_has("AFTER_COMMIT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_sync),
        cmocka_unit_test(after_commit),
    };

    return server_run_tests(tests, NULL, NULL);
}
