/*
 * A fleet one of whose shards is a primary with a replica: the primary is killed, the replica is
 * promoted by the command, and accepted without a person.  Its customers are served there, also
 * when the primary is back, and those of the other shard throughout.  The slots' table came along.
 */
#include "command.h"

#include "fleet/shards.h"
#include "support/crew.h"
#include "support/theme.h"
#include "trade_lock/fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define A_DAY "86400000"
#define SETTINGS                                                                                   \
    "site=fleet\nbeat_ms=100ms\nsession_ms=30s\nread_timeout_s=2\nconnect_timeout_s=4\n"

enum { A, B, SHARDS };

static shards all; /* b's server is the primary */
static server *copy;
static unsigned port_primary, port_copy;
static int is_killed;
static MYSQL *sql_copy;
static char service[512], ann[512];
/* Two processes of the service. */
static tl_fleet *fleet, *second;

/* ---------------------------------------------------------------------- the three servers -- */

static server *start_at(unsigned number, unsigned *port)
{
    char at[64], id[64];
    const char *const options[] = {"--log-bin=binlog",
                                   "--sync-binlog=1",
                                   "--log-slave-updates=1",
                                   "--skip-networking=0",
                                   "--bind-address=127.0.0.1",
                                   "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
                                   ("--rpl-semi-sync-master-timeout=" A_DAY),
                                   at,
                                   id,
                                   NULL};

    *port = server_free_port();
    snprintf(at, sizeof at, "--port=%u", *port);
    snprintf(id, sizeof id, "--server-id=%u", number);
    return server_start(options);
}

static void replicate(server *from)
{
    MYSQL *sql = server_connect(from);

    database_run(sql, "CREATE USER replica@'%%'; GRANT REPLICATION SLAVE ON *.* TO replica@'%%'");
    mysql_close(sql);
    database_run(sql_copy,
                 "SET GLOBAL rpl_semi_sync_slave_enabled = 1; "
                 "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %u, "
                 "MASTER_SSL = 0, MASTER_USER = 'replica', MASTER_USE_GTID = slave_pos; "
                 "START SLAVE; SET GLOBAL read_only = 1",
                 port_primary);
}

static void await_number(MYSQL *sql, const char *query, long long wanted)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;

    while (database_number(sql, "%s", query) != wanted) {
        if (crew_now_ms() > end_ms)
            server_panic("%s never is %lld", query, wanted);
        crew_sleep_ms(10);
    }
}

static void await_copy_at(const char *position)
{
    assert_int_equal(database_number(sql_copy, "SELECT MASTER_GTID_WAIT('%s', %d)", position,
                                     PATIENCE_MS / 1000),
                     0);
}

static void wait_for_replica(void)
{
    char *position = database_text(all.sql[B], "SELECT @@gtid_binlog_pos");

    await_copy_at(position);
    free(position);
    database_run(all.sql[B], "SET GLOBAL rpl_semi_sync_master_enabled = 1");
    database_run(sql_copy, "STOP SLAVE; START SLAVE; USE %s", database_name(all.db[B]));
    await_number(all.sql[B],
                 "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "
                 "WHERE VARIABLE_NAME = 'RPL_SEMI_SYNC_MASTER_CLIENTS'",
                 1);
}

/* ------------------------------------------------------------------------- the settings -- */

/* Shard b by both its hosts. */
static void write_settings(char path[512], const char *user)
{
    mode_t mask = umask(077);
    FILE *file;

    snprintf(path, 512, "%s/%s.cnf", server_dir(all.where[A]), user);
    file = fopen(path, "we");
    umask(mask);
    assert_non_null(file);
    fprintf(file,
            "[tradelock]\n" SETTINGS "fleet=payouts\nshards=a, b\n"
            "[tradelock-client]\nuser=%s\npassword=secret\n"
            "[tradelock-client-a]\nsocket=%s\ndatabase=%s\n"
            "[tradelock-client-b]\nhost = 127.0.0.1:%u, 127.0.0.1:%u\ndatabase=%s\n",
            user, server_socket(all.where[A]), database_name(all.db[A]), port_primary, port_copy,
            database_name(all.db[B]));
    assert_int_equal(fclose(file), 0);
}

static void add_account(MYSQL *sql, const char *user, const char *role)
{
    static const char *const hosts[] = {"localhost", "127.0.0.1"};

    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        database_run(sql,
                     "CREATE USER %s@'%s' IDENTIFIED BY 'secret'; GRANT %s TO %s@'%s'; "
                     "SET DEFAULT ROLE %s FOR %s@'%s'",
                     user, hosts[i], role, user, hosts[i], role, user, hosts[i]);
}

static void run(const char *word, const char *shard, const char *config)
{
    ENDS(RUN(word, "--grants", "--shard", shard, "--config", config), 0);
}

static tl_fleet *open_fleet(void)
{
    tl_client_options client = TL_CLIENT_OPTIONS_INIT;
    tl_fleet_options options = TL_FLEET_OPTIONS_INIT;
    tl_fleet *opened = NULL;
    tl_status status;

    client.config_file = service;
    client.program = "service";
    client.flags = TL_CLIENT_NO_JANITOR;
    options.client = &client;
    status = tl_fleet_open(&opened, &options);
    if (status != TL_OK)
        fail_msg("%s: %s", tl_status_name(status), tl_error_message());
    return opened;
}

FIXTURE(set_up)
{
    static const size_t straight[] = {A, B};
    server *where[SHARDS];

    where[A] = server_start(NULL);
    where[B] = start_at(1, &port_primary);
    copy = start_at(2, &port_copy);
    sql_copy = server_connect(copy);
    replicate(where[B]);
    shards_make_at(&all, where, SHARDS);
    shards_join(&all, A, 0, TL_FLEET_SLOTS / 2);
    shards_join(&all, B, TL_FLEET_SLOTS / 2, TL_FLEET_SLOTS);
    shards_write(&all, "a, b", straight, NULL);
    for (int i = 0; i < SHARDS; i++) {
        run("migrate", shards_names[i], all.file);
        add_account(all.sql[i], "service", "{database}_application");
        add_account(all.sql[i], "ann", "{database}_operator");
    }
    wait_for_replica();
    write_settings(service, "service");
    write_settings(ann, "ann");
    fleet = open_fleet();
    second = open_fleet();
}

/* ------------------------------------------------------------------------------- trades -- */

static tl_client *client_there(tl_fleet *of, size_t shard)
{
    tl_client *client = NULL;

    assert_status(tl_fleet_shard_client(of, shard, &client), TL_OK);
    return client;
}

/* Once, and ended as a success where it is granted. */
static tl_status pay_with(tl_client *client, const char *serial, const char *cust)
{
    tl_lock_options options = sync_options("x");
    tl_status status;
    tl_lock *lock;

    options.max_hold_ms = 600000;
    lock = ask(client, serial, cust, &options, &status);
    if (status == TL_GRANTED)
        status = finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE);
    tl_lock_free(lock);
    return status;
}

static tl_status pay(tl_fleet *of, const char *serial, const char *cust)
{
    tl_client *client = NULL;
    tl_status status = tl_fleet_client(of, cust, &client);

    return status == TL_OK ? pay_with(client, serial, cust) : status;
}

/* As a service does that is told to try again. */
static void await_paid(tl_fleet *of, const char *serial, const char *cust)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_lock_options options = sync_options("x");
    tl_client *client = NULL;
    tl_lock *lock = NULL;
    tl_status status;

    options.max_hold_ms = 600000;
    for (;;) {
        status = tl_fleet_client(of, cust, &client);
        if (status == TL_OK && lock == NULL)
            lock = lock_new(client, serial, cust, &options);
        if (status == TL_OK)
            status = tl_lock_ask(lock, 0);
        if (status == TL_GRANTED)
            status = finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE);
        if (status == TL_SUCCEEDED)
            break;
        if (status == TL_MISDIRECTED) { /* by an older map */
            tl_lock_free(lock);
            lock = NULL;
        }
        if (crew_now_ms() > end_ms)
            fail_msg("%s: %s: %s", serial, tl_status_name(status), tl_error_message());
        crew_sleep_ms(20);
    }
    tl_lock_free(lock);
}

/* "Y 1" = status and sends; to be freed with free(). */
static char *row_at(MYSQL *sql, const char *serial)
{
    return database_text(
        sql, "SELECT CONCAT(status, ' ', sends) FROM trade_lock WHERE serial_no = '%s'", serial);
}

static void expect_row(MYSQL *sql, const char *serial, const char *expected)
{
    char *row = row_at(sql, serial);

    assert_non_null(row);
    assert_string_equal(row, expected);
    free(row);
}

/* One customer of a after another is paid until it is told to end. */
static pthread_t steady;
static atomic_int ends, paid_at_a;
static int is_steady;

static void *pay_at_a(void *unused)
{
    char cust[TL_CUST_MAX + 1], serial[32];

    (void)unused;
    for (int n = 0; !ends; n++) {
        shards_cust(&all, A, 1 + (unsigned)n % 5, cust);
        snprintf(serial, sizeof serial, "steady-%d", n);
        CREW_STATUS(pay(fleet, serial, cust), TL_SUCCEEDED);
        paid_at_a++;
        crew_sleep_ms(5);
    }
    return NULL;
}

static void begin_at_a(void)
{
    assert_int_equal(pthread_create(&steady, NULL, pay_at_a, NULL), 0);
    is_steady = 1;
}

static void end_at_a(void)
{
    ends = 1;
    if (is_steady)
        pthread_join(steady, NULL);
    is_steady = 0;
}

/* None of them waits for shard b. */
static void await_more_at_a(void)
{
    const int wanted = paid_at_a + 10;

    AWAIT_WHILE(paid_at_a < wanted);
}

static uint64_t beats_at_b(tl_fleet *of)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    assert_status(tl_client_stats(client_there(of, B), &stats), TL_OK);
    return stats.beats;
}

/* Each has looked at b's primary in a round since now. */
static void await_rounds(void)
{
    const uint64_t one = beats_at_b(fleet) + 4, other = beats_at_b(second) + 4;

    AWAIT_WHILE(beats_at_b(fleet) < one || beats_at_b(second) < other);
    crew_sleep_ms(200);
}

static void restart_primary(void)
{
    if (is_killed)
        shards_restart(&all, B);
    is_killed = 0;
}

/* --------------------------------------------------------------------------- the command -- */

#define ANN(...) RUN(__VA_ARGS__, "--config", ann)

/* All that the replica was sent is applied; then it is none any more. */
static void take_writes(void)
{
    char *position;

    database_run(sql_copy, "STOP SLAVE IO_THREAD");
    position = database_replication(sql_copy, "Gtid_IO_Pos");
    assert_non_null(position);
    await_copy_at(position);
    free(position);
    database_run(sql_copy, "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0");
}

static void promote(void)
{
    ENDS(ANN("promote", "--shard", "b", "--reason", "the primary is gone", "--wait", "60s"), 0,
         "Accepted: nothing is missing.");
    assert_int_equal(database_number(sql_copy, "SELECT tl_restored()"), 0);
    assert_int_equal(
        database_number(sql_copy, "SELECT COUNT(*) FROM tl_restore WHERE step = 'proved'"), 1);
    assert_int_equal(
        database_number(sql_copy, "SELECT COUNT(*) FROM tl_restore WHERE step = 'confirmed'"), 0);
}

static json_t *answer_of(output *o, int code)
{
    json_t *document;

    EXPECT_CODE(o, code);
    document = output_json(o);
    output_free(o);
    assert_int_equal(json_array_size(json_object_get(document, "missing")), 0);
    return document;
}

static void expect_shards(const json_t *document)
{
    const json_t *list = json_object_get(document, "shards"), *page;
    size_t i;

    assert_int_equal(json_array_size(list), SHARDS);
    json_array_foreach(list, i, page)
        assert_string_equal(json_string_value(json_object_get(page, "shard")), shards_names[i]);
}

/* That serial's row is told of shard b. */
static void expect_listed(const char *serial)
{
    json_t *document = answer_of(ANN("ls", "--lane", "sync", "--json", "--limit", "1000"), 0), *row;
    size_t i;
    int found = 0;

    json_array_foreach(json_object_get(document, "rows"), i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "serial_no")), serial) != 0)
            continue;
        assert_string_equal(json_string_value(json_object_get(row, "shard")), "b");
        found++;
    }
    assert_int_equal(found, 1);
    json_decref(document);
}

/* Of either shard, and of the fleet. */
static void expect_healthy(void)
{
    json_t *document = answer_of(ANN("doctor", "--json"), 0), *row;
    size_t i, told[SHARDS] = {0};

    json_array_foreach(json_object_get(document, "findings"), i, row)
    {
        const char *shard = json_string_value(json_object_get(row, "shard"));

        if (strcmp(json_string_value(json_object_get(row, "level")), "ok") != 0)
            fail_msg("%s: %s", json_string_value(json_object_get(row, "check")),
                     json_string_value(json_object_get(row, "sentence")));
        if (shard != NULL)
            told[strcmp(shard, "a") == 0 ? A : B]++;
    }
    assert_true(told[A] > 0 && told[B] > 0);
    json_decref(document);
}

/* -------------------------------------------------------------------------------- the tests -- */

/* By the slots that the replica has, and a has; of_a and moved are customers. */
static void expect_slots(const char *of_a, const char *moved)
{
    assert_status(pay_with(client_there(fleet, B), "foreign", of_a), TL_MISDIRECTED);
    assert_status(pay_with(client_there(second, A), "foreign", moved), TL_MISDIRECTED);
    assert_null(row_at(sql_copy, "foreign"));
    assert_null(row_at(all.sql[A], "foreign"));
    assert_null(row_at(all.sql[A], "moved"));
    assert_status(pay(second, "before", moved), TL_ALREADY_DONE);
}

/* It takes writes, and stands first. */
static void bring_old_primary_back(const char *of_b)
{
    restart_primary();
    for (int i = 0; i < 10; i++) {
        char serial[16];

        snprintf(serial, sizeof serial, "again-%d", i);
        await_paid(i % 2 == 0 ? fleet : second, serial, of_b);
        expect_row(sql_copy, serial, "Y 1");
        assert_null(row_at(all.sql[B], serial));
        crew_sleep_ms(20);
    }
}

static void expect_nothing_wrong(void)
{
    json_t *document = answer_of(ANN("status", "--json"), 0);

    expect_shards(document);
    json_decref(document);
    document = answer_of(ANN("audit", "--json"), 0);
    expect_shards(document);
    assert_int_equal(json_array_size(json_object_get(document, "fleet")), 0);
    json_decref(document);
    expect_healthy();
}

static void test_a_shard_is_promoted(void **state)
{
    char held[TL_CUST_MAX + 1], of_a[TL_CUST_MAX + 1], of_b[TL_CUST_MAX + 1],
        moved[TL_CUST_MAX + 1], session[64];
    tl_lock_options options = sync_options("x");
    tl_lock *lock;

    (void)state;
    shards_cust(&all, A, 0, moved);
    shards_cust(&all, A, 6, of_a);
    shards_cust(&all, B, 0, held);
    shards_cust(&all, B, 1, of_b);
    assert_status(pay(fleet, "before", moved), TL_SUCCEEDED);
    assert_status(shards_move(&all, A, B, tl_fleet_slot(fleet, moved), NULL, NULL), TL_OK);
    options.max_hold_ms = 600000;
    lock = granted(client_there(fleet, B), "held", held, &options);
    begin_at_a();
    await_rounds();
    snprintf(session, sizeof session, "%s", tl_client_session(client_there(fleet, B)));

    shards_kill(&all, B);
    is_killed = 1;
    assert_int_not_equal(pay(second, "early", of_b), TL_SUCCEEDED);
    await_more_at_a();
    take_writes();
    promote();
    await_paid(fleet, "of-b", of_b);
    await_paid(second, "moved", moved);
    await_more_at_a();
    assert_null(row_at(sql_copy, "early"));
    expect_row(sql_copy, "of-b", "Y 1");
    expect_row(sql_copy, "moved", "Y 1");
    expect_row(sql_copy, "before", "Y 1");

    /* Who holds a lock keeps it. */
    assert_string_equal(tl_client_session(client_there(fleet, B)), session);
    expect_listed("held");
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
    expect_row(sql_copy, "held", "Y 1");

    expect_slots(of_a, moved);
    bring_old_primary_back(of_b);
    end_at_a();
    assert_int_equal(database_number(all.sql[A], "SELECT COUNT(*) FROM trade_lock "
                                                 "WHERE serial_no LIKE 'steady-%%' "
                                                 "AND status = 'Y' AND sends = 1"),
                     paid_at_a);
    expect_nothing_wrong();
}

FIXTURE(tear_down)
{
    end_at_a();
    tl_fleet_close(fleet);
    tl_fleet_close(second);
    mysql_close(sql_copy);
    server_free(copy);
    restart_primary();
    shards_close(&all);
    unlink(service);
    unlink(ann);
}

TEST_MAIN(fleet_promote)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_shard_is_promoted)};

    return server_run_tests(tests, set_up, tear_down);
}
