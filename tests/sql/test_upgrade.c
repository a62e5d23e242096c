/*
 * Databases of earlier versions with trades in every state are brought to now, and their trades are
 * claimed, ended, audited and purged.  The trades are made by this library; then the schema is
 * taken back to what it was, which the first test compares with what that version had made.
 */
#include "was.h"

#include "support/crew.h"
#include "support/theme.h"
#include "workflows/house.h"

#include "sql_text.h"

#include <tradelock/admin.h>

#include "workflows/cmocka_all.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_MS INT64_C(86400000)

static house self;

/* -------------------------------------------------------------- back to what it was -- */

static void take_back(MYSQL *connection, unsigned version)
{
    for (size_t i = 0; i < sql_objects_count; i++)
        database_run(connection, "DROP %s %s", sql_objects[i].kind, sql_objects[i].name);
    database_run(connection,
                 "ALTER TABLE tl_session DROP COLUMN ended_no; UPDATE tl_schema SET version = %u",
                 version);
    if (version < 22)
        database_run(connection,
                     "DROP TABLE tl_archive_set; ALTER TABLE tl_schema DROP COLUMN installation; "
                     "DROP TABLE tl_attestation, tl_attestation_missing, tl_slot; "
                     "ALTER TABLE tl_schema DROP COLUMN fleet, DROP COLUMN shard; "
                     "ALTER TABLE tl_session DROP COLUMN ended_on; "
                     "ALTER TABLE tl_restore DROP CONSTRAINT known_step_of_a_restore; "
                     "ALTER TABLE tl_restore ADD CONSTRAINT step_of_a_restore CHECK (step IN "
                     "('declared', 'found', 'proposed', 'confirmed'))");
    if (version < 20)
        database_run(connection, "DROP TABLE trade_channel_breaker");
    if (version < 19)
        database_run(connection, "DROP TABLE trade_channel_limit, trade_channel_permit");
    if (version < 18)
        database_run(connection, "ALTER TABLE trade_lock DROP KEY batch, DROP KEY channel_ref, "
                                 "DROP COLUMN batch, DROP COLUMN traceparent");
    if (version < 17)
        database_run(connection, "DROP TABLE trade_channel, tl_act, tl_act_row; "
                                 "ALTER TABLE trade_resolution DROP KEY decided; "
                                 "ALTER TABLE audit_closing DROP KEY closed; "
                                 "ALTER TABLE tl_restore DROP KEY decided");
    if (version < 15)
        database_run(connection, "ALTER TABLE trade_lock DROP KEY serial");
    if (version < 14)
        database_run(connection, "ALTER TABLE trade_lock DROP COLUMN longest_hold_ms; "
                                 "ALTER TABLE trade_lock_past DROP COLUMN longest_hold_ms");
    if (version < 13)
        database_run(connection,
                     "ALTER TABLE trade_lock DROP COLUMN amount_minor, DROP COLUMN currency");
    if (version < 12)
        database_run(connection, "ALTER TABLE tl_session DROP KEY boot, DROP COLUMN boot_id, "
                                 "DROP COLUMN clock_us, DROP COLUMN clock_least_us, "
                                 "DROP COLUMN clock_most_us, DROP COLUMN clock_steps");
    if (version == 8)
        database_run(
            connection,
            "DROP TABLE tl_restore, tl_clock_step, tl_clock, audit_closing; "
            "ALTER TABLE tl_schema DROP COLUMN identity, DROP COLUMN restore_no, "
            "DROP COLUMN accepted_no, DROP COLUMN accepted_at; "
            "ALTER TABLE trade_resolution DROP COLUMN although_pending, DROP COLUMN log_no, "
            "DROP COLUMN worker, DROP CONSTRAINT part_is_1_2_or_3, "
            "ADD CONSTRAINT part_is_1_or_2 CHECK (part IN (1, 2))");
    was_make(connection, version);
    assert_int_equal(database_number(connection, "SELECT version FROM tl_schema"), version);
}

static void what_is_taken_back_is_what_was(void **state)
{
    (void)state;
    for (size_t i = 0; i < WAS_COUNT; i++) {
        const unsigned version = was_versions[i];
        database *back = database_new(server_shared(), NULL);
        database *was = database_new_empty(server_shared(), NULL);
        MYSQL *connection = database_connect(back), *other = database_connect(was);
        char *found, *expected;

        take_back(connection, version);
        was_make(other, version);
        found = was_describe(connection);
        expected = was_describe(other);
        was_assert_same(expected, found);
        free(found);
        free(expected);
        mysql_close(connection);
        mysql_close(other);
        database_free(back);
        database_free(was);
    }
}

/* ------------------------------------------------------------------------ the trades -- */

static tl_client *another_client(void)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = database_option_file(self.db);
    options.flags = TL_CLIENT_NO_JANITOR;
    CREW_STATUS(tl_client_open(&client, &options), TL_OK);
    return client;
}

/* A worker that dies with a claim in hand. */
static void claim_and_die(void *context, int number)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_key key = {"CLAIMED", "C1", WITHDRAW_OP};
    tl_lock *lock = NULL;

    (void)context;
    (void)number;
    options.lane = TL_LANE_RETRY;
    options.max_hold_ms = 1000;
    CREW_STATUS(tl_lock_new(&lock, another_client(), &key, &options), TL_OK);
    CREW_STATUS(tl_lock_ask(lock, 5000), TL_GRANTED);
    raise(SIGKILL);
}

static void file_evidence(const char *serial, const char *outcome)
{
    tl_evidence evidence = {.version = TL_EVIDENCE_VERSION};

    evidence.key = (tl_key){serial, "C1", WITHDRAW_OP};
    evidence.outcome = outcome;
    evidence.source = "a statement";
    assert_status(tl_evidence_add(self.client, &evidence), TL_OK);
}

static void propose_a_failure(const char *serial)
{
    database_run(self.sql,
                 "SELECT rev, fence, epoch INTO @rev, @fence, @epoch FROM trade_lock "
                 "WHERE serial_no = '%s' AND lane = 'S'; "
                 "INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, "
                 "fence, epoch, reason, actor, thread_no) VALUES ('C1', '%s', 'WITHDRAW', @rev, "
                 "'F', 1, @fence, @epoch, 'nobody knows it', 'ann', UUID())",
                 serial, serial);
}

/* Paid; declined; in doubt with the payment made, and not made; claimed by one who died; with
 * evidence; with half a decision; and one that is old enough to go. */
static void make_trades(void)
{
    house_account(&self, "C1", 1000000);
    house_expect(&self, "PAID", "C1", 10, TL_SUCCEEDED);
    house_expect(&self, "OLD", "C1", 10, TL_SUCCEEDED);
    house_rule(&self, "{\"kind\":\"decline\",\"code\":\"51\",\"reason\":\"closed\"}");
    house_expect(&self, "DECLINED", "C1", 10, TL_FAILED);
    house_rule(&self, "{\"kind\":\"drop_after\",\"count\":3}");
    house_expect(&self, "MADE", "C1", 10, TL_IN_DOUBT);
    house_expect(&self, "CLAIMED", "C1", 10, TL_IN_DOUBT);
    house_expect(&self, "DECIDED", "C1", 10, TL_IN_DOUBT);
    house_rule(&self, "{\"kind\":\"drop_before\",\"count\":2}");
    house_expect(&self, "NOT_MADE", "C1", 10, TL_IN_DOUBT);
    house_expect(&self, "KNOWN", "C1", 10, TL_IN_DOUBT);
    file_evidence("MADE", "ACCEPTED");
    file_evidence("KNOWN", "UNKNOWN");
    propose_a_failure("DECIDED");
    assert_int_not_equal(crew_wait(crew_fork(claim_and_die, NULL, 0)), 0);
}

static int name_violation(void *context, const tl_violation *violation)
{
    (void)context;
    print_error("%s %s: %s\n", violation->rule, violation->key.serial_no, violation->sentence);
    return 0;
}

static void assert_clean(void)
{
    tl_audit_counts counts = {.version = TL_AUDIT_COUNTS_VERSION};

    assert_status(tl_audit(self.client, NULL, 0, name_violation, NULL, &counts), TL_OK);
    assert_int_equal(counts.violations, 0);
}

static void migrate(unsigned from)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_migrated migrated;
    tl_client *client = NULL;

    options.config_file = database_option_file(self.db);
    options.flags = TL_CLIENT_NO_SESSION | TL_CLIENT_NO_SCHEMA;
    assert_status(tl_client_open(&client, &options), TL_OK);
    assert_status(tl_migrate(client, &migrated), TL_OK);
    assert_int_equal(migrated.from, from);
    tl_client_close(client);
}

/* The rows are what they were. */
static char *trades(void)
{
    return database_text(self.sql, "SELECT GROUP_CONCAT(HEX(serial_no), ' ', HEX(op_code), ' ', "
                                   "HEX(status), rev, ' ', fence, HEX(token), updated_at ORDER BY "
                                   "serial_no, op_code) FROM trade_lock");
}

static void purge_the_old(void)
{
    tl_purged purged;

    database_run(self.sql, "UPDATE trade_lock SET updated_at = updated_at - INTERVAL 95 DAY, "
                           "deadline_at = NULL, send_until = NULL WHERE serial_no = 'OLD'");
    assert_status(tl_purge(self.client, 90 * DAY_MS, &purged), TL_OK);
    assert_int_equal(purged.trades, 1);
    house_row(&self, "OLD", "none");
    house_row(&self, "PAID", "Y 1 1 -");
}

static void trades_go_on_from(unsigned version)
{
    char *before, *after;

    house_open(&self, WITHDRAW_IDEMPOTENT, HOUSE_SETTINGS_OF("3s"), NULL);
    make_trades();
    /* Its janitor would open what the dead worker claimed. */
    house_leave(&self);
    take_back(self.sql, version);
    before = trades();
    migrate(version);
    after = trades();
    assert_string_equal(before, after);
    free(before);
    free(after);
    house_reopen(&self);
    assert_clean();
    house_row(&self, "DECLINED", "F 1 1 D");
    if (version < 13)
        assert_int_equal(database_number(self.sql, "SELECT COUNT(amount_minor) + COUNT(currency) "
                                                   "FROM trade_lock"),
                         0);
    assert_int_equal(database_number(self.sql, "SELECT COUNT(batch) + COUNT(traceparent) "
                                               "FROM trade_lock"),
                     0);
    /* Each of two seconds, and by the history of a minute more. */
    assert_int_equal(database_number(self.sql, "SELECT MIN(longest_hold_ms) >= 2000 AND "
                                               "MAX(longest_hold_ms) <= 62000 AND COUNT(*) = "
                                               "COUNT(longest_hold_ms) FROM trade_lock WHERE "
                                               "lane = 'S' AND status = 'P'"),
                     1);
    house_expect(&self, "PAID", "C1", 10, TL_ALREADY_DONE);
    house_expect(&self, "NEW", "C1", 10, TL_SUCCEEDED);
    assert_int_equal(database_number(self.sql, "SELECT amount_minor FROM trade_lock WHERE "
                                               "serial_no = 'NEW' AND currency = 'EUR'"),
                     10);
    house_work(&self, 2, HOUSE_PATIENCE_MS);
    assert_int_equal(database_number(self.sql, "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' "
                                               "AND status = 'Y'"),
                     8);
    house_books(&self, 8);
    assert_clean();
    purge_the_old();
}

static void trades_go_on_from_8(void **state)
{
    (void)state;
    trades_go_on_from(8);
}

static void trades_go_on_from_11(void **state)
{
    (void)state;
    trades_go_on_from(11);
}

static void trades_go_on_from_12(void **state)
{
    (void)state;
    trades_go_on_from(12);
}

static void trades_go_on_from_13(void **state)
{
    (void)state;
    trades_go_on_from(13);
}

static void trades_go_on_from_14(void **state)
{
    (void)state;
    trades_go_on_from(14);
}

static void trades_go_on_from_15(void **state)
{
    (void)state;
    trades_go_on_from(15);
}

static void trades_go_on_from_17(void **state)
{
    (void)state;
    trades_go_on_from(17);
}

static void trades_go_on_from_22(void **state)
{
    (void)state;
    trades_go_on_from(22);
}

static int close_house(void **state)
{
    (void)state;
    house_close(&self);
    return 0;
}

TEST_MAIN(upgrade)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_taken_back_is_what_was),
        cmocka_unit_test_teardown(trades_go_on_from_8, close_house),
        cmocka_unit_test_teardown(trades_go_on_from_11, close_house),
        cmocka_unit_test_teardown(trades_go_on_from_12, close_house),
        cmocka_unit_test_teardown(trades_go_on_from_13, close_house),
        cmocka_unit_test_teardown(trades_go_on_from_14, close_house),
        cmocka_unit_test_teardown(trades_go_on_from_15, close_house),
        cmocka_unit_test_teardown(trades_go_on_from_17, close_house),
        cmocka_unit_test_teardown(trades_go_on_from_22, close_house),
    };

    return server_report(cmocka_run_group_tests(tests, NULL, NULL));
}
