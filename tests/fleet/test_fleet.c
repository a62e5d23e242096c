/*
 * Clients over two real servers: whose customer goes where, a shard that is down, settings that lead
 * elsewhere, a slot that was handed over.
 */
#include "shards.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/lane.h>

#include <sys/wait.h>

static shards all;

#define assert_status(got, expected)                                                               \
    assert_string_equal(tl_status_name(got), tl_status_name(expected))

FIXTURE(set_up)
{
    shards_open(&all, 2);
}

FIXTURE(tear_down)
{
    shards_close(&all);
}

static void straight(void)
{
    static const size_t at[] = {0, 1};

    shards_write(&all, "a, b", at, NULL);
}

static tl_fleet *open_fleet(void)
{
    tl_fleet *fleet = NULL;
    tl_status status = shards_fleet(&all, &fleet);

    if (status != TL_OK)
        fail_msg("%s: %s", tl_status_name(status), tl_error_message());
    return fleet;
}

/* Asks with this client, and ends as a success. */
static tl_status pay_with(tl_client *client, const char *serial, const char *cust)
{
    const tl_key key = {serial, cust, "FLEET"};
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_ending ending = TL_ENDING_INIT;
    tl_lock *lock = NULL;
    tl_status status;

    options.max_hold_ms = 3000;
    options.payload = "x";
    options.payload_size = 1;
    status = tl_lock_new(&lock, client, &key, &options);
    if (status == TL_OK)
        status = tl_lock_ask(lock, 0);
    ending.outcome = TL_OUTCOME_SUCCESS;
    if (status == TL_GRANTED)
        status = tl_lock_finish(lock, &ending);
    tl_lock_free(lock);
    return status;
}

static tl_status pay(tl_fleet *fleet, const char *serial, const char *cust)
{
    tl_client *client = NULL;
    tl_status status = tl_fleet_client(fleet, cust, &client);

    return status == TL_OK ? pay_with(client, serial, cust) : status;
}

static long long rows_at(size_t i, const char *serial)
{
    return database_number(all.sql[i], "SELECT COUNT(*) FROM trade_lock WHERE serial_no = '%s'",
                           serial);
}

/* ------------------------------------------------------------------------------ tests -- */

TEST(test_customers_go_to_their_shard)
{
    char cust[TL_CUST_MAX + 1];
    tl_fleet *fleet = open_fleet();
    size_t owner = 9;

    assert_string_equal(tl_fleet_name(fleet), "payouts");
    assert_int_equal(tl_fleet_size(fleet), 2);
    assert_string_equal(tl_fleet_shard(fleet, 1), "b");
    assert_null(tl_fleet_shard(fleet, 2));
    for (size_t i = 0; i < 2; i++)
        for (unsigned n = 0; n < 3; n++) {
            shards_cust(&all, i, n, cust);
            const struct text serial = text_of("go-%zu-%u", i, n);
            assert_status(tl_fleet_owner(fleet, cust, &owner), TL_OK);
            assert_int_equal(owner, i);
            assert_int_equal(tl_fleet_slot(fleet, cust),
                             database_number(all.sql[0], "SELECT tl_customer_slot('%s')", cust));
            assert_status(pay(fleet, serial.is, cust), TL_SUCCEEDED);
            assert_int_equal(rows_at(i, serial.is), 1);
            assert_int_equal(rows_at(1 - i, serial.is), 0);
            assert_status(pay(fleet, serial.is, cust), TL_ALREADY_DONE);
        }
    assert_status(tl_fleet_owner(fleet, "two words", &owner), TL_INVALID);
    assert_status(tl_fleet_owner(fleet, NULL, &owner), TL_INVALID);
    assert_int_equal(tl_fleet_slot(fleet, ""), TL_FLEET_SLOTS);
    tl_fleet_close(fleet);
}

static tl_status open_one(const char *shard, tl_client **client)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;

    options.config_file = all.file;
    options.shard = shard;
    return tl_client_open(client, &options);
}

TEST(test_one_shard_alone)
{
    char own[TL_CUST_MAX + 1], foreign[TL_CUST_MAX + 1];
    tl_client *client = NULL;

    shards_cust(&all, 1, 7, own);
    shards_cust(&all, 0, 7, foreign);
    assert_status(open_one("b", &client), TL_OK);
    assert_status(pay_with(client, "one", own), TL_SUCCEEDED);
    assert_status(pay_with(client, "other", foreign), TL_MISDIRECTED);
    assert_int_equal(rows_at(0, "other") + rows_at(1, "other"), 0);
    tl_client_close(client);
    assert_status(open_one("c", &client), TL_BAD_CONFIG);
    assert_non_null(strstr(tl_error_message(), "there is no shard 'c': fleet payouts has a, b"));
    assert_status(open_one(NULL, &client), TL_BAD_CONFIG);
    assert_non_null(strstr(tl_error_message(), "one of its shards has to be named: a, b"));
}

/* The database refuses, also where the settings know of no fleet. */
TEST(test_a_plain_client_meets_a_foreign_customer)
{
    char foreign[TL_CUST_MAX + 1];
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    shards_cust(&all, 1, 3, foreign);
    options.config_file = database_option_file(all.db[0]);
    assert_status(tl_client_open(&client, &options), TL_OK);
    assert_status(pay_with(client, "plain", foreign), TL_MISDIRECTED);
    assert_int_equal(rows_at(0, "plain"), 0);
    tl_client_close(client);
    options.shard = "a";
    assert_status(tl_client_open(&client, &options), TL_BAD_CONFIG);
    assert_non_null(strstr(tl_error_message(), "there is no shard 'a': this file names none"));
}

static void expect_refused(const char *names, const size_t at[], tl_status expected,
                           const char *words)
{
    const long long before = database_number(all.sql[0], "SELECT COUNT(*) FROM trade_lock_log") +
                             database_number(all.sql[1], "SELECT COUNT(*) FROM trade_lock_log");
    tl_fleet *fleet = NULL;

    shards_write(&all, names, at, NULL);
    assert_status(shards_fleet(&all, &fleet), expected);
    if (strstr(tl_error_message(), words) == NULL)
        fail_msg("'%s' has no '%s'", tl_error_message(), words);
    assert_null(fleet);
    assert_int_equal(database_number(all.sql[0], "SELECT COUNT(*) FROM trade_lock_log") +
                         database_number(all.sql[1], "SELECT COUNT(*) FROM trade_lock_log"),
                     before);
    straight();
}

TEST(test_settings_that_lead_elsewhere)
{
    static const size_t swapped[] = {1, 0}, both[] = {0, 0}, alone[] = {0};

    expect_refused("a, b", swapped, TL_BAD_CONFIG,
                   "shard a: the settings lead to shard a of fleet payouts, but the database there "
                   "is shard b of fleet payouts");
    expect_refused("a, b", both, TL_BAD_CONFIG,
                   "shard b: the settings lead to shard b of fleet payouts, but the database there "
                   "is shard a of fleet payouts");
    expect_refused("c", alone, TL_BAD_CONFIG,
                   "shard c: the settings lead to shard c of fleet payouts, but the database there "
                   "is shard a of fleet payouts");
    database_run(all.sql[1], "UPDATE tl_schema SET fleet = 'salaries'");
    expect_refused("a, b", (const size_t[]){0, 1}, TL_BAD_CONFIG,
                   "the database there is shard b of fleet salaries");
    database_run(all.sql[1], "UPDATE tl_schema SET fleet = NULL, shard = NULL");
    expect_refused("a, b", (const size_t[]){0, 1}, TL_BAD_CONFIG,
                   "the database there is of no fleet: run `tradelock fleet join`");
    database_run(all.sql[1], "UPDATE tl_schema SET fleet = 'payouts', shard = 'b', version = 99, "
                             "oldest_client = 99");
    expect_refused("a, b", (const size_t[]){0, 1}, TL_WRONG_SCHEMA,
                   "shard b: the schema is version 99");
    database_run(all.sql[1], "UPDATE tl_schema SET version = %lld, oldest_client = 1",
                 database_number(all.sql[0], "SELECT version FROM tl_schema"));
}

TEST(test_a_file_of_no_fleet)
{
    tl_client_options client = TL_CLIENT_OPTIONS_INIT;
    tl_fleet_options options = TL_FLEET_OPTIONS_INIT;
    tl_fleet *fleet = NULL;

    client.config_file = database_option_file(all.db[0]);
    options.client = &client;
    assert_status(tl_fleet_open(&fleet, &options), TL_BAD_CONFIG);
    assert_non_null(strstr(tl_error_message(), "this file names no shards"));
    client.shard = "a";
    assert_status(tl_fleet_open(&fleet, &options), TL_INVALID);
    options.client = NULL;
    assert_status(tl_fleet_open(&fleet, &options), TL_INVALID);
}

/* The connection of a client that was opened may lead elsewhere later, as after a failover. */
TEST(test_a_host_that_leads_elsewhere_later)
{
    static const size_t swapped[] = {1, 0};
    char cust[TL_CUST_MAX + 1];
    tl_fleet *fleet = open_fleet();
    tl_status status = TL_OK;
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;

    shards_cust(&all, 0, 20, cust);
    assert_status(pay(fleet, "later-1", cust), TL_SUCCEEDED);
    shards_write(&all, "a, b", swapped, NULL);
    database_run(all.sql[0], "UPDATE tl_schema SET version = version"); /* same connection */
    database_cut(all.sql[0]);
    while (status != TL_BAD_CONFIG && crew_now_ms() < end_ms) {
        status = pay(fleet, "later-2", cust);
        assert_true(status != TL_SUCCEEDED && status != TL_ALREADY_DONE);
        crew_sleep_ms(20);
    }
    assert_status(status, TL_BAD_CONFIG);
    assert_int_equal(rows_at(0, "later-2") + rows_at(1, "later-2"), 0);
    straight();
    while ((status = pay(fleet, "later-2", cust)) != TL_SUCCEEDED && crew_now_ms() < end_ms)
        crew_sleep_ms(20);
    assert_status(status, TL_SUCCEEDED);
    tl_fleet_close(fleet);
}

/* Pays customers of shard 0 until shard 1 says this; counts them. */
static unsigned pay_until(tl_fleet *fleet, const char *prefix, const char *other,
                          tl_status expected)
{
    char cust[TL_CUST_MAX + 1];
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_client *client;
    unsigned paid = 0;

    while (crew_now_ms() < end_ms) {
        shards_cust(&all, 0, paid % 8, cust);
        assert_status(pay(fleet, text_of("%s-%u", prefix, paid).is, cust), TL_SUCCEEDED);
        paid++;
        if (tl_fleet_client(fleet, other, &client) == expected)
            return paid;
        crew_sleep_ms(2);
    }
    fail_msg("it never said %s", tl_status_name(expected));
    return 0;
}

/* Again, where a busy machine took too long. */
static void look_again(tl_fleet *fleet)
{
    tl_status status;

    do
        status = tl_fleet_look_again(fleet);
    while (status == TL_TIMEOUT);
    assert_status(status, TL_OK);
}

static void lose_a_shard(int kills)
{
    char other[TL_CUST_MAX + 1];
    tl_fleet *fleet = open_fleet();
    tl_client *client = NULL;

    shards_cust(&all, 1, 30, other);
    assert_status(pay(fleet, kills ? "kill-before" : "stop-before", other), TL_SUCCEEDED);
    if (kills)
        shards_kill(&all, 1);
    else
        shards_stop(&all, 1);
    assert_true(pay_until(fleet, kills ? "kill" : "stop", other, TL_UNREACHABLE) > 0);
    /* At once, and for as long as it lasts. */
    for (unsigned i = 0; i < 1000; i++)
        assert_status(tl_fleet_client(fleet, other, &client), TL_UNREACHABLE);
    assert_non_null(strstr(tl_error_message(), "shard b"));
    assert_status(tl_fleet_shard_client(fleet, 0, &client), TL_OK);
    look_again(fleet);
    if (kills)
        shards_restart(&all, 1);
    else
        shards_go_on(&all, 1);
    (void)pay_until(fleet, kills ? "kill-back" : "stop-back", other, TL_OK);
    for (int64_t end_ms = crew_now_ms() + PATIENCE_MS;;) {
        tl_status status = pay(fleet, kills ? "kill-after" : "stop-after", other);

        if (status == TL_SUCCEEDED || status == TL_ALREADY_DONE)
            break;
        if (crew_now_ms() > end_ms)
            fail_msg("%s: %s", tl_status_name(status), tl_error_message());
        crew_sleep_ms(20);
    }
    tl_fleet_close(fleet);
}

TEST(test_a_shard_that_stands_still)
{
    lose_a_shard(0);
}

TEST(test_a_shard_that_is_killed)
{
    lose_a_shard(1);
}

/* It takes connections and says nothing. */
TEST(test_a_shard_that_is_down_at_the_start)
{
    char own[TL_CUST_MAX + 1], other[TL_CUST_MAX + 1];
    tl_fleet *fleet;
    tl_client *client = NULL;
    size_t owner = 9;

    shards_cust(&all, 0, 40, own);
    shards_cust(&all, 1, 40, other);
    shards_stop(&all, 1);
    fleet = open_fleet();
    assert_status(pay(fleet, "start-1", own), TL_SUCCEEDED);
    assert_status(tl_fleet_client(fleet, other, &client), TL_UNREACHABLE);
    assert_status(tl_fleet_owner(fleet, other, &owner), TL_UNREACHABLE);
    assert_non_null(strstr(tl_error_message(), "shard b"));
    assert_status(tl_fleet_shard_client(fleet, 1, &client), TL_UNREACHABLE);
    shards_go_on(&all, 1);
    (void)pay_until(fleet, "start", other, TL_OK);
    assert_status(tl_fleet_owner(fleet, other, &owner), TL_OK);
    assert_int_equal(owner, 1);
    tl_fleet_close(fleet);
}

TEST(test_a_slot_that_was_handed_over)
{
    char cust[TL_CUST_MAX + 1];
    tl_fleet *fleet = open_fleet();
    tl_client *client = NULL, *before = NULL;
    unsigned slot;
    size_t owner = 9;

    shards_cust(&all, 0, 50, cust);
    slot = tl_fleet_slot(fleet, cust);
    assert_status(tl_fleet_client(fleet, cust, &before), TL_OK);
    shards_hand_over(&all, 0, 1, slot);
    /* With the client of before: whatever the map says, the database refuses. */
    assert_status(pay_with(before, "moved", cust), TL_MISDIRECTED);
    assert_int_equal(rows_at(0, "moved"), 0);
    look_again(fleet);
    assert_status(tl_fleet_owner(fleet, cust, &owner), TL_OK);
    assert_int_equal(owner, 1);
    assert_status(tl_fleet_client(fleet, cust, &client), TL_OK);
    assert_ptr_not_equal(client, before);
    assert_status(pay_with(client, "moved", cust), TL_SUCCEEDED);
    assert_int_equal(rows_at(1, "moved"), 1);
    /* Only the old owner was asked; the new one is down: it is told, and not that nobody has it. */
    tl_fleet_close(fleet);
    shards_stop(&all, 1);
    fleet = open_fleet();
    assert_status(tl_fleet_owner(fleet, cust, &owner), TL_OK);
    assert_int_equal(owner, 1);
    assert_status(tl_fleet_client(fleet, cust, &client), TL_UNREACHABLE);
    shards_go_on(&all, 1);
    tl_fleet_close(fleet);
    database_run(all.sql[1], "DELETE FROM tl_slot WHERE slot = %u", slot);
    database_run(all.sql[0], "UPDATE tl_slot SET other = 'z' WHERE slot = %u", slot);
    fleet = open_fleet();
    assert_status(tl_fleet_client(fleet, cust, &client), TL_MISDIRECTED);
    assert_non_null(strstr(tl_error_message(), "no shard that the settings name has slot"));
    tl_fleet_close(fleet);
    database_run(all.sql[0], "UPDATE tl_slot SET state = 'owned', other = NULL WHERE slot = %u",
                 slot);
}

/* Two have it under one version: no program may go by the order in which its file names them. */
TEST(test_a_slot_that_two_have)
{
    char cust[TL_CUST_MAX + 1];
    tl_fleet *fleet = open_fleet();
    tl_client *client = NULL;
    unsigned slot;

    shards_cust(&all, 0, 51, cust);
    slot = tl_fleet_slot(fleet, cust);
    tl_fleet_close(fleet);
    database_run(all.sql[1],
                 "INSERT INTO tl_slot (slot, state, version) VALUES (%u, 'owned', %lld)", slot,
                 (long long)database_number(all.sql[0],
                                            "SELECT version FROM tl_slot WHERE slot = %u", slot));
    fleet = open_fleet();
    assert_status(tl_fleet_client(fleet, cust, &client), TL_MISDIRECTED);
    tl_fleet_close(fleet);
    database_run(all.sql[1], "DELETE FROM tl_slot WHERE slot = %u", slot);
    fleet = open_fleet();
    assert_status(tl_fleet_client(fleet, cust, &client), TL_OK);
    tl_fleet_close(fleet);
}

/* A copy that was named by hand has all that was paid before, under another name. */
TEST(test_a_copy_of_a_shard)
{
    char *own = database_text(all.sql[1], "SELECT CAST(installation AS CHAR) FROM tl_schema"),
         *other = database_text(all.sql[0], "SELECT CAST(installation AS CHAR) FROM tl_schema");
    tl_fleet *fleet = NULL;

    database_run(all.sql[1], "UPDATE tl_schema SET installation = '%s'", other);
    assert_status(shards_fleet(&all, &fleet), TL_BAD_CONFIG);
    assert_null(fleet);
    assert_non_null(strstr(tl_error_message(), ", or to a copy of it (installation "));
    database_run(all.sql[1], "UPDATE tl_schema SET installation = '%s'", own);
    fleet = open_fleet();
    tl_fleet_close(fleet);
    free(own);
    free(other);
}

/* The serial's trade of the lane, due at once: asked for at that client, ended without an answer. */
static void leave_due(tl_client *client, const char *serial, const char *cust)
{
    const tl_key key = {serial, cust, "FLEET"};
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_ending ending = TL_ENDING_INIT;
    tl_lock *lock = NULL;

    options.max_hold_ms = 3000;
    options.payload = "x";
    options.payload_size = 1;
    assert_status(tl_lock_new(&lock, client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    ending.outcome = TL_OUTCOME_UNKNOWN;
    assert_status(tl_lock_finish(lock, &ending), TL_IN_DOUBT);
    tl_lock_free(lock);
}

/* How many are claimed of what is due; each is put back. */
static size_t claim_due(tl_client *client)
{
    tl_claim_options options = TL_CLAIM_OPTIONS_INIT;
    tl_ending ending = TL_ENDING_INIT;
    tl_lock *locks[TL_CLAIM_MAX];
    size_t count = TL_CLAIM_MAX;

    options.op_code = "FLEET";
    options.max_hold_ms = 3000;
    assert_status(tl_claim_due(client, &options, locks, &count), TL_OK);
    ending.outcome = TL_OUTCOME_UNKNOWN;
    for (size_t i = 0; i < count; i++) {
        assert_status(tl_lock_finish(locks[i], &ending), TL_IN_DOUBT);
        tl_lock_free(locks[i]);
    }
    return count;
}

static void await_client(tl_fleet *fleet, const char *cust, tl_status expected)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_client *client = NULL;
    tl_status status;

    while ((status = tl_fleet_client(fleet, cust, &client)) != expected) {
        if (crew_now_ms() > end_ms)
            fail_msg("%s: %s", tl_status_name(status), tl_error_message());
        crew_sleep_ms(20);
    }
}

/* Shard 1 becomes a copy of shard 0, named by hand; or what it was. */
static void copy_slots(const char *installation, int is_copy)
{
    const unsigned half = TL_FLEET_SLOTS / 2;

    if (is_copy)
        for (unsigned slot = 0; slot < half; slot++)
            database_run(
                all.sql[1],
                "REPLACE INTO tl_slot (slot, state, version) VALUES (%u, 'owned', %lld)", slot,
                database_number(all.sql[0], "SELECT version FROM tl_slot WHERE slot = %u", slot));
    else
        database_run(all.sql[1], "DELETE FROM tl_slot WHERE slot < %u", half);
    database_run(all.sql[1], "UPDATE tl_schema SET installation = '%s'", installation);
}

/* One of the two is away when the fleet is opened, and comes up: nobody is paid at either, also not
 * by who got a client or a worker's claim before. */
static void copy_that_meets(size_t away, const char *name)
{
    char *own = database_text(all.sql[1], "SELECT CAST(installation AS CHAR) FROM tl_schema"),
         *other = database_text(all.sql[0], "SELECT CAST(installation AS CHAR) FROM tl_schema");
    char cust[TL_CUST_MAX + 1], serial[32];
    const size_t there = 1 - away;
    tl_client *client = NULL, *before = NULL;
    tl_fleet *fleet;
    size_t owner = 9;

    shards_cust(&all, 0, 60, cust);
    copy_slots(other, 1);
    shards_kill(&all, away);
    fleet = open_fleet();
    assert_status(tl_fleet_shard_client(fleet, there, &before), TL_OK);
    snprintf(serial, sizeof serial, "due-%s", name);
    leave_due(before, serial, cust);
    shards_restart(&all, away);
    await_client(fleet, cust, TL_BAD_CONFIG);
    assert_non_null(strstr(tl_error_message(), ", or to a copy of it (installation "));
    assert_non_null(strstr(tl_error_message(), "take the copy out of the settings, then restart"));
    snprintf(serial, sizeof serial, "copy-%s", name);
    for (unsigned i = 0; i < 20; i++) {
        assert_status(pay(fleet, serial, cust), TL_BAD_CONFIG);
        assert_status(pay_with(before, serial, cust), TL_BAD_CONFIG);
        assert_int_equal(claim_due(before), 0);
        crew_sleep_ms(20);
    }
    for (size_t i = 0; i < 2; i++)
        assert_status(tl_fleet_shard_client(fleet, i, &client), TL_BAD_CONFIG);
    assert_status(tl_fleet_owner(fleet, cust, &owner), TL_BAD_CONFIG);
    assert_int_equal(rows_at(0, serial) + rows_at(1, serial), 0);
    /* Until they differ. */
    copy_slots(own, 0);
    await_client(fleet, cust, TL_OK);
    assert_status(pay(fleet, serial, cust), TL_SUCCEEDED);
    assert_int_equal(rows_at(0, serial), 1);
    if (there == 0) /* the copy has no such customer any more */
        assert_int_equal(claim_due(before), 1);
    tl_fleet_close(fleet);
    free(own);
    free(other);
}

TEST(test_a_copy_that_is_there_first)
{
    copy_that_meets(0, "first");
}

TEST(test_a_copy_that_comes_later)
{
    copy_that_meets(1, "later");
}

static uint16_t always_last(void *context, const char *cust_no)
{
    (void)cust_no;
    return *(uint16_t *)context;
}

TEST(test_a_rule_of_the_service)
{
    tl_client_options client = TL_CLIENT_OPTIONS_INIT;
    tl_fleet_options options = TL_FLEET_OPTIONS_INIT;
    uint16_t slot = TL_FLEET_SLOTS - 1;
    tl_fleet *fleet = NULL;
    size_t owner = 9;

    client.config_file = all.file;
    options.client = &client;
    options.slot = always_last;
    options.slot_context = &slot;
    assert_status(tl_fleet_open(&fleet, &options), TL_OK);
    assert_status(tl_fleet_owner(fleet, "anybody", &owner), TL_OK);
    assert_int_equal(owner, 1);
    slot = TL_FLEET_SLOTS;
    assert_status(tl_fleet_owner(fleet, "anybody", &owner), TL_INVALID);
    tl_fleet_close(fleet);
}

TEST(test_after_fork)
{
    tl_fleet *fleet = open_fleet();
    int status = -1;
    pid_t child;

    child = fork();
    if (child == 0) {
        tl_client *client = NULL;
        int fine = tl_fleet_client(fleet, "C1", &client) == TL_WRONG_PROCESS &&
                   tl_fleet_look_again(fleet) == TL_WRONG_PROCESS;

        tl_fleet_close(fleet);
        _exit(fine ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_status(pay(fleet, "forked", "C1"), TL_SUCCEEDED);
    tl_fleet_close(fleet);
    tl_fleet_close(NULL);
}

TESTS_OF(fleet, set_up, tear_down)
