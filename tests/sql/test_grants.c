/*
 * The roles of sql/grants.sql with real accounts: what each may do works, everything else is
 * refused by the server, and SQL typed by hand is on record.
 */
#include "support/database.h"
#include "support/theme.h"

#include <tradelock/admin.h>

#include <mysqld_error.h>
#include <stdatomic.h>

enum role { APPLICATION, OPERATOR, READER, ROLES };

static const char *const role_names[ROLES] = {"{database}_application", "{database}_operator",
                                              "{database}_reader"};

struct fixture {
    database *where;
    MYSQL *admin;
    char account[ROLES][32];
    MYSQL *as[ROLES];
};

static MYSQL *connect_as(struct fixture *f, const char *account)
{
    MYSQL *connection = mysql_init(NULL);

    if (connection == NULL ||
        mysql_real_connect(connection, NULL, account, "secret", database_name(f->where), 0,
                           server_socket(server_shared()), 0) == NULL)
        server_panic("%s cannot connect: %s", account, mysql_error(connection));
    return connection;
}

static void grant_roles(const struct fixture *f)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = database_option_file(f->where);
    options.flags = TL_CLIENT_NO_SESSION;
    if (tl_client_open(&client, &options) != TL_OK || tl_grant_roles(client) != TL_OK ||
        tl_grant_roles(client) != TL_OK)
        server_panic("the roles: %s", tl_error_message());
    tl_client_close(client);
}

FIXTURE(set_up)
{
    static struct fixture f;

    f.where = database_new(server_shared(), NULL);
    f.admin = database_connect(f.where);
    grant_roles(&f);
    for (int role = 0; role < ROLES; role++) {
        snprintf(f.account[role], sizeof f.account[role], "g%ld_%d", (long)getpid(), role);
        database_run(f.admin, "CREATE USER %s@localhost IDENTIFIED BY 'secret'", f.account[role]);
        database_run(f.admin, "GRANT %s TO %s@localhost", role_names[role], f.account[role]);
        database_run(f.admin, "SET DEFAULT ROLE %s FOR %s@localhost", role_names[role],
                     f.account[role]);
        f.as[role] = connect_as(&f, f.account[role]);
    }
    database_run(f.admin, "INSERT INTO tl_session (session_id, program, host, pid, "
                          "connection_name, timeout_ms, started_at, alive_until) VALUES "
                          "(UUID(), 'p', 'h', 1, UUID(), 1000, UTC_TIMESTAMP(6), "
                          "UTC_TIMESTAMP(6))");
    *state = &f;
}

FIXTURE(tear_down)
{
    struct fixture *f = *state;

    for (int role = 0; role < ROLES; role++) {
        mysql_close(f->as[role]);
        database_run(f->admin, "DROP USER %s@localhost", f->account[role]);
    }
    mysql_close(f->admin);
    database_free(f->where);
}

static unsigned try(MYSQL *connection, const char *sql)
{
    MYSQL_RES *result;

    if (mysql_query(connection, sql) != 0)
        return mysql_errno(connection);
    result = mysql_store_result(connection);
    mysql_free_result(result);
    while (mysql_next_result(connection) == 0) /* a procedure ends with a result of its own */
        mysql_free_result(mysql_store_result(connection));
    return mysql_errno(connection);
}

static int is_refusal(unsigned number)
{
    switch (number) {
    case ER_TABLEACCESS_DENIED_ERROR:
    case ER_COLUMNACCESS_DENIED_ERROR:
    case ER_PROCACCESS_DENIED_ERROR:
    case ER_SPECIFIC_ACCESS_DENIED_ERROR:
    case ER_DBACCESS_DENIED_ERROR:
    case ER_ACCESS_DENIED_ERROR:
        return 1;
    default:
        return 0;
    }
}

#define INSERT_LOCK(serial)                                                                        \
    "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "                    \
    "thread_no, "                                                                                  \
    "token, fence, rev, created_at, updated_at) VALUES ('c', '" serial                             \
    "', 'WITHDRAW', 'S', 'P', 'ask', UUID(), '0123456789abcdef', 1, 1, "                           \
    "UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))"
#define FILE_LOST(serial)                                                                          \
    "INSERT INTO trade_evidence (cust_no, serial_no, op_code, epoch, outcome, source, account, "   \
    "filed_at, amount_minor, currency) VALUES ('c', '" serial "', 'WITHDRAW', 1, 'SUCCEEDED', "    \
    "'bank', '', NOW(), 1250, 'EUR')"
#define INSERT_LOG                                                                                 \
    "INSERT INTO trade_lock_past SELECT * FROM (SELECT 'c' AS cust_no, 'forged', "                 \
    "'WITHDRAW', 1, NOW(6), 'end', 'Y', UUID(), NULL, NULL, '0123456789abcdef', 1, 1, "            \
    "0, "                                                                                          \
    "0, 0, NULL, NULL, NULL, NULL, 0, '-', NULL, NULL, NULL, NULL, 'nobody') x"
/* Who made a row and when is for the server to say. */
#define INSERT_AS(column, value)                                                                   \
    "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "                    \
    "thread_no, token, fence, rev, created_at, updated_at, " column                                \
    ") VALUES ('c', 'as', 'WITHDRAW', 'S', 'P', 'ask', UUID(), '0123456789abcdef', 1, "            \
    "1, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), " value ")"
#define INSERT_EVIDENCE                                                                            \
    "INSERT INTO trade_evidence (cust_no, serial_no, op_code, epoch, outcome, source, "            \
    "account, filed_at) VALUES ('c', 's', 'WITHDRAW', 1, 'FAILED', 'bank', USER(), "               \
    "NOW(6))"

/* Y: the role may; N: the server must refuse. */
static const struct right {
    const char *may; /* application, operator, reader */
    const char *sql;
} rights[] = {
    /* trades: an operator has the procedures below, and nothing that goes round them */
    {"YNN", "UPDATE trade_lock SET remark = 'x' WHERE serial_no = 'none'"},
    {"YNN", "UPDATE trade_lock SET status = 'F', proof = 'O' WHERE serial_no = 'none'"},
    {"NNN", "UPDATE trade_lock_state SET status = 'Y' WHERE serial_no = 'none'"},
    {"YNN", "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
            "thread_no, token, fence, rev, created_at, updated_at) SELECT cust_no, "
            "serial_no, op_code, lane, status, step, thread_no, token, fence, rev, "
            "created_at, updated_at FROM trade_lock WHERE FALSE"},
    {"YYN", "CALL tl_operator_retry('c', 'none', 'WITHDRAW', 1, UUID(), NULL, 'x', 'a', "
            "'r')"},
    {"YNN", "CALL tl_resolution_refused('c', 'none', 'WITHDRAW', 1, 'r', UUID(), NULL)"},
    /* acts: procedures alone write them, in the caller's name */
    {"NYY", "SELECT COUNT(*) FROM tl_act"},
    {"NYY", "SELECT COUNT(*) FROM tl_act_row"},
    {"NYN", "CALL tl_act_begin('retry', '', 'r', 'a', NULL, 1, @act)"},
    {"NYN", "CALL tl_act_end(@act, NULL)"},
    {"NYN", "CALL tl_purge_acts(7776000000, 10, @purged)"},
    {"NNN", "INSERT INTO tl_act (what, said, reason, actor, account, begun_at) VALUES ('retry', "
            "'', 'r', 'a', 'ann@localhost', NOW(6))"},
    {"NNN", "UPDATE tl_act SET account = 'ann@localhost'"},
    {"NNN", "DELETE FROM tl_act"},
    {"NNN", "INSERT INTO tl_act_row SELECT * FROM tl_act_row"},
    {"NNN", "UPDATE tl_act_row SET result = 'done'"},
    {"NNN", "DELETE FROM tl_act_row"},
    {"NNN", "CALL tl_retry_lane('c', 'none', 'WITHDRAW', 1, UUID(), NULL, 'x', 'a', 'r', @n)"},
    /* channels: workflows make them known, operators pause them by the procedure alone */
    {"YYY", "SELECT COUNT(*) FROM trade_channel"},
    {"YNN", "INSERT IGNORE INTO trade_channel (channel, op_code) VALUES ('bank', 'WITHDRAW')"},
    {"NYN", "BEGIN NOT ATOMIC DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; "
            "START TRANSACTION; CALL tl_channel_decide('bank', 'WITHDRAW', 1, NULL, 'a', 'r'); "
            "ROLLBACK; END"},
    {"NNN", "INSERT INTO trade_channel (channel, op_code, paused, decided_at, reason, actor, "
            "account) VALUES ('b', 'W', 1, NOW(6), 'r', 'a', 'ann@localhost')"},
    {"YYY", "SELECT COUNT(*) FROM tl_session_channel"},
    {"YNN", "CALL tl_channel_declare('bank', 'WITHDRAW', UUID(), NULL, 'x', 0, @said)"},
    {"NNN", "UPDATE trade_channel SET contract = NULL"},
    {"NNN", "INSERT INTO tl_session_channel VALUES ('bank', 'WITHDRAW', UUID())"},
    {"YNN", "CALL tl_site_is('default', @said)"},
    {"NNN", "CALL tl_site_change('other', 'a', 'r')"},
    {"NNN", "UPDATE tl_schema SET site = 'other'"},
    {"YYY", "SELECT COUNT(*) FROM trade_channel_limit"},
    {"YYY", "SELECT COUNT(*) FROM trade_channel_permit"},
    {"NYN",
     "BEGIN NOT ATOMIC DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; "
     "START TRANSACTION; CALL tl_channel_limit('bank', 'WITHDRAW', 3, NULL, NULL, 'a', 'r'); "
     "ROLLBACK; END"},
    {"YNN", "CALL tl_channel_share('bank', 'WITHDRAW', UUID(), 0, 1, 1000, 0, 0, @share)"},
    {"NNN",
     "INSERT INTO trade_channel_limit (channel, op_code, decided_at, reason, actor, account) "
     "VALUES ('other', 'WITHDRAW', UTC_TIMESTAMP(6), 'r', 'a', 'a')"},
    {"NNN", "UPDATE trade_channel_limit SET sends = NULL"},
    {"NNN", "DELETE FROM trade_channel_limit"},
    {"NNN", "INSERT INTO trade_channel_permit (channel, op_code, session_id, permits, wanted, "
            "hold_ms) VALUES ('bank', 'WITHDRAW', UUID(), 1, 1, 1)"},
    {"YYY", "SELECT COUNT(*) FROM trade_channel_breaker"},
    {"NYN",
     "BEGIN NOT ATOMIC DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; "
     "START TRANSACTION; CALL tl_channel_breaker('bank', 'WITHDRAW', 3, NULL, NULL, 10, NULL, 'a', "
     "'r'); ROLLBACK; END"},
    {"YNN", "CALL tl_channel_told('bank', 'WITHDRAW', 1, 0, 0, 1, 1, 1, @state)"},
    {"YNN", "CALL tl_channel_probe('bank', 'WITHDRAW', 0, 1000, 0, @state)"},
    {"NNN",
     "INSERT INTO trade_channel_breaker (channel, op_code, decided_at, reason, actor, account) "
     "VALUES ('other', 'WITHDRAW', UTC_TIMESTAMP(6), 'r', 'a', 'a')"},
    {"NNN", "UPDATE trade_channel_breaker SET opened_at = NULL"},
    {"NNN", "DELETE FROM trade_channel_breaker"},
    {"NNN", "UPDATE trade_channel_permit SET permits = 0"},
    {"NNN", "DELETE FROM trade_channel_permit"},
    {"NNN", "UPDATE trade_channel SET paused = 0"},
    {"NNN", "DELETE FROM trade_channel"},
    /* a promoted server: services attest, nobody writes that it was accepted */
    {"NYY", "SELECT COUNT(*) FROM tl_attestation"},
    {"NYY", "SELECT COUNT(*) FROM tl_attestation_missing"},
    {"YYN", "CALL tl_replicas()"},
    {"YYN", "CALL tl_log_filters()"},
    {"NYY", "CALL tl_connections()"},
    {"NYY", "SELECT tl_passes_over()"},
    {"YNN", "CALL tl_attest(1000, UUID(), 0, 1)"},
    {"YNN", "CALL tl_attest_missing(1000, UUID(), 0, 'ask', 'c', 's', 'W', NULL)"},
    {"YNN", "CALL tl_accept_proved(1000)"},
    {"NNN", "INSERT INTO tl_attestation (restore_no, session_id) VALUES (1000, UUID())"},
    {"NNN", "UPDATE tl_attestation SET attested_at = UTC_TIMESTAMP(6)"},
    {"NNN", "DELETE FROM tl_attestation"},
    {"NNN", "DELETE FROM tl_attestation_missing"},
    {"YYY", "SELECT COUNT(*) FROM audit_closing"},
    {"NNN", "UPDATE audit_closing SET part = 2"},
    {"NNN", "DELETE FROM audit_closing"},
    {"NNN", "INSERT INTO audit_closing SELECT * FROM audit_closing"},
    {"YYY", "SELECT COUNT(*) FROM trade_lock"},
    {"YYY", "SELECT COUNT(*) FROM trade_lock_state"},
    {"NYY", "SELECT COUNT(*) FROM trade_evidence_lost"},
    {"YNN", "UPDATE trade_lock_low_water SET low_water = low_water"},
    {"YYY", "SELECT COUNT(*) FROM trade_lock_low_water"},
    {"NNN", "DELETE FROM trade_lock_low_water"},
    {"YYY", "SELECT version FROM tl_schema"},
    /* a fleet: everybody reads who has which slot, and nobody what the mover knows */
    {"YYY", "SELECT slot, state, version, other, sealed, changed_at, account, reason FROM tl_slot"},
    {"NNN", "SELECT token FROM tl_slot"},
    {"NNN", "INSERT INTO tl_slot (slot, state) VALUES (7, 'owned')"},
    {"NNN", "UPDATE tl_slot SET state = 'owned'"},
    {"NNN", "DELETE FROM tl_slot"},
    {"NNN", "UPDATE tl_schema SET fleet = NULL"},
    {"YYN", "CALL tl_slot_asked('c')"},
    {"NNN", "CALL tl_slot_check('c', 0)"},
    {"NNN", "SELECT tl_slot_copies()"},
    {"YYY", "SELECT COUNT(*) FROM trade_evidence"},
    {"YYN", INSERT_EVIDENCE},
    {"YYY", "SELECT COUNT(*) FROM trade_resolution"},
    {"YYY", "SELECT tl_account_name(CURRENT_USER())"},
    {"YYY", "CALL tl_blockers()"},
    {"YNN", "UPDATE tl_session SET beat = beat + 1"},
    {"YYN", "SELECT tl_token_seen('c', 's', 'WITHDRAW', 'x')"},
    {"NYY", "SELECT COUNT(*) FROM trade_lock_past"},
    {"NYY", "SELECT COUNT(*) FROM trade_lock_first"},
    {"NYY", "SELECT COUNT(*) FROM trade_lock_log"},
    {"YNN", "UPDATE resource_lock SET remark = 'x' WHERE resource = 'none'"},
    {"NYN", "CALL tl_resource_force('none', 1, UUID(), NULL, 'x', 'a', 'r')"},
    {"NYN", "CALL tl_rw_force('none', 1, 1, UUID(), NULL, 'x', 'a', 'r')"},
    {"YYY", "SELECT COUNT(*) FROM resource_lock_state"},
    {"YYN", "SELECT tl_resource_token_seen('r', 'x')"},
    {"NYY", "SELECT COUNT(*) FROM resource_log"},
    {"YNN", "UPDATE rw_lock SET created_at = NOW() WHERE resource = 'none'"},
    {"YNN", "UPDATE resource_holder SET remark = 'x' WHERE resource = 'none'"},
    {"YYY", "SELECT COUNT(*) FROM resource_holder_state"},
    {"YYN", "SELECT tl_holder_token_seen('r', 1, 'x')"},
    {"NYY", "SELECT COUNT(*) FROM resource_holder_log"},
    {"YNN", "CALL tl_clock_stepped(7, 1000000, 1000000, 'ann')"},
    {"NNN", "CALL tl_clock_settle_holds(UTC_TIMESTAMP(6), UUID())"},
    {"YNN", "CALL tl_clock_settle(10, UUID(), 'ann', @settled)"},
    {"YNN", "SELECT tl_carried_us('c', 's', 'WITHDRAW')"},
    {"YYY", "SELECT COUNT(*) FROM tl_clock JOIN tl_clock_step"},
    {"NNN", "UPDATE tl_clock SET settled = steps"},
    {"NNN", "DELETE FROM tl_clock_step"},
    {"NNN", "INSERT INTO tl_clock_step VALUES (9, 1, NOW(), NOW(), 'ann', 'ann')"},
    {"NYN", "CALL tl_purge_named(7776000000, 10, '', '', '', @purged, @named)"},
    {"NYN", "CALL tl_purge_archived(7776000000, '[]', '5e', '-', 1, @purged)"},
    {"NYY", "SELECT COUNT(*) FROM tl_archive_set"},
    {"NNN", "INSERT INTO tl_archive_set (sha, before_sha, set_no, trades, account) VALUES "
            "('5f', '-', 1, 3, 'ann')"},
    {"NNN", "UPDATE tl_archive_set SET set_no = 2"},
    {"NNN", "DELETE FROM tl_archive_set"},
    {"NNN", "CALL tl_purge_page(1, 7776000000, NOW(6), 10, '', '', '', @purged, @named)"},
    {"NNN", "CALL tl_purge_trade(1, NOW(6), 'c', 's', 'WITHDRAW', @state, @a, @b, @c, @d)"},
    {"NYN", "CALL tl_purge_mutexes(0, 7776000000, 10, '', @purged)"},
    /* contents go by the time in the schema, or by the words of two (cli_transcript_privacy) */
    {"YNN", "CALL tl_blank_page(10, 1, @told)"},
    {"NYN", "SELECT tl_forget_name('c')"},
    {"NNN", "SELECT tl_forget_proposed('c')"},
    {"NNN", "UPDATE trade_lock SET blanked_rev = rev"},
    {"NNN", "UPDATE tl_schema SET payload_keep_ms = 1"},
    {"NNN", "UPDATE tl_blanking SET cust_no = ''"},
    {"NNN", "UPDATE tl_act SET reason = ''"},
    {"NYN", "CALL tl_purge_rw_locks(0, 7776000000, 10, '', @purged)"},
    {"NNN", "CALL tl_purge_act(7776000000, 1)"},
    {"NNN", "CALL tl_guard()"},
    {"NNN", "CALL tl_restore_filed('c')"},
    {"YNN", "UPDATE row_lock SET created_at = NOW() WHERE resource = 'none'"},
    /* what nobody's session may bend: rows of others, numbers, and who is who */
    {"YNN", "INSERT INTO tl_session (session_id, program, host, pid, connection_name, timeout_ms, "
            "started_at, alive_until) VALUES (UUID(), 'x', 'x', 1, UUID(), 1000, "
            "UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 1 SECOND)"},
    {"NNN", "UPDATE tl_schema SET retention_ms = 86400000"},
    {"NNN", "SET SESSION timestamp = 1"},
    /* history */
    {"NNN", "UPDATE resource_log SET remark = 'x'"},
    {"NNN", "DELETE FROM resource_log"},
    {"NNN", "UPDATE resource_holder_log SET remark = 'x'"},
    {"NNN", "DELETE FROM resource_holder_log"},
    {"NNN", "DROP FUNCTION tl_holder_token_seen"},
    {"NNN", "DROP FUNCTION tl_resource_token_seen"},
    {"NNN", INSERT_LOG},
    {"NNN", INSERT_AS("account", "'nobody'")},
    {"NNN", INSERT_AS("logged_at", "UTC_TIMESTAMP(6)")},
    {"NNN", INSERT_AS("first_rev", "NULL")},
    {"NNN", INSERT_AS("first_token", "'0123456789abcdef'")},
    {"NNN", INSERT_AS("longest_hold_ms", "1")},
    {"NNN", "UPDATE trade_lock SET longest_hold_ms = 1"},
    {"NNN", "UPDATE trade_lock SET first_rev = NULL"},
    {"NNN", "UPDATE trade_lock SET first_token = token"},
    {"NNN", "UPDATE trade_lock SET account = 'nobody'"},
    {"NNN", "UPDATE trade_lock_past SET remark = 'x'"},
    {"NNN", "DELETE FROM trade_lock_past"},
    {"NNN", "TRUNCATE trade_lock_past"},
    {"NNN", "DROP TABLE trade_lock_past"},
    {"NNN", "ALTER TABLE trade_lock_past ADD COLUMN x INT"},
    {"NNN", "DROP TRIGGER trade_lock_updated"},
    {"NNN", "CREATE TRIGGER extra BEFORE UPDATE ON trade_lock FOR EACH ROW SET @a = 1"},
    {"NNN", "DROP FUNCTION tl_token_seen"},
    {"NNN", "CREATE OR REPLACE VIEW trade_lock_state AS SELECT 1"},
    {"NNN", "RENAME TABLE trade_lock_past TO gone"},
    /* locks */
    {"NNN", "DELETE FROM trade_lock"},
    {"NNN", "TRUNCATE trade_lock"},
    {"NNN", "REPLACE INTO trade_lock SELECT * FROM trade_lock"},
    {"NNN", "DELETE FROM resource_lock"},
    {"NNN", "DELETE FROM rw_lock"},
    {"NNN", "DELETE FROM resource_holder"},
    {"NNN", "DELETE FROM row_lock"},
    {"NNN", "DELETE FROM tl_session"},
    {"NNN", "LOCK TABLES trade_lock WRITE"},
    /* evidence, schema, server */
    {"NNN", "UPDATE trade_evidence SET outcome = 'FAILED'"},
    {"NNN", "DELETE FROM trade_evidence"},
    /* decisions: an operator's own half, and nobody else's (cli_resolve) */
    {"NNN", "UPDATE trade_resolution SET account = 'x'"},
    {"NNN", "DELETE FROM trade_resolution"},
    {"NNN", "INSERT INTO trade_resolution SELECT * FROM trade_resolution"},
    {"NNN", "DROP TRIGGER trade_resolution_inserted"},
    {"NNN", "UPDATE tl_schema SET version = 9"},
    {"NNN", "DELETE FROM tl_schema"},
    {"NNN", "SET GLOBAL innodb_flush_log_at_trx_commit = 2"},
    {"NNN", "SET SESSION sql_log_bin = 0"},
    {"NNN", "CREATE TABLE mine (a INT)"},
    {"NNN", "GRANT SELECT ON trade_lock_log TO PUBLIC"},
};

TEST(test_rights)
{
    struct fixture *f = *state;
    unsigned wrong = 0;

    assert_int_equal(try(f->admin, INSERT_LOCK("rights")), 0);
    for (size_t i = 0; i < sizeof rights / sizeof rights[0]; i++)
        for (int role = 0; role < ROLES; role++) {
            const unsigned number = try(f->as[role], rights[i].sql);
            const int right = rights[i].may[role] == 'Y' ? number == 0 : is_refusal(number);

            if (!right) {
                print_error("%s: %s: error %u (%s), expected %s\n", role_names[role], rights[i].sql,
                            number, mysql_error(f->as[role]),
                            rights[i].may[role] == 'Y' ? "none" : "a refusal");
                wrong++;
            }
        }
    assert_int_equal(wrong, 0);
    /* Also of a trigger that an account does not see by itself everybody is told. */
    for (int role = 0; role < ROLES; role++)
        assert_int_equal(database_number(f->as[role], "SELECT tl_parts() LIKE "
                                                      "'%%trigger trade_resolution_inserted%%'"),
                         1);
    assert_int_equal(try(f->as[APPLICATION], INSERT_LOCK("app")), 0);
    assert_true(is_refusal(try(f->as[OPERATOR], INSERT_LOCK("op"))));
    assert_true(is_refusal(try(f->as[READER], INSERT_LOCK("reader"))));
}

/* One account of each role, plain SQL: what it may call, but not so.  `first` is run in the same
 * session; `words` are in the refusal. */
static const struct forgery {
    enum role as;
    const char *first, *sql, *words;
} forgeries[] = {
    {APPLICATION, "DO 1",
     "INSERT INTO tl_session (session_id, program, host, pid, connection_name, timeout_ms, "
     "started_at, alive_until) VALUES (UUID(), 'x', 'x', 1, UUID(), 1000, UTC_TIMESTAMP(6), "
     "'2038-01-01')",
     "ahead of the clock"},
    {APPLICATION, "DO 1", "UPDATE tl_session SET alive_until = '2038-01-01'", "ahead of the clock"},
    {APPLICATION, "DO 1", "UPDATE tl_session SET ended_at = '2038-01-01'", "ahead of the clock"},
    {APPLICATION, "DO 1", "UPDATE tl_session SET swept_at = '2038-01-01'", "ahead of the clock"},
    {APPLICATION, "DO 1", "UPDATE tl_session SET started_at = '2038-01-01'", "ahead of the clock"},
    {APPLICATION, "UPDATE tl_session SET timeout_ms = 1000",
     "UPDATE tl_session SET alive_until = UTC_TIMESTAMP(6) + INTERVAL 49 DAY, timeout_ms = 1",
     "ahead of the clock"},
    {OPERATOR, "SET SESSION insert_id = 18446744073709551614",
     "CALL tl_act_begin('audit', 'x', 'y', 'a', UUID(), 0, @act)", "insert_id"},
    {OPERATOR, "DO 1",
     "INSERT INTO trade_evidence (evidence_id, cust_no, serial_no, op_code, epoch, outcome, "
     "source, account, filed_at) VALUES (18446744073709551614, 'c', 's', 'WITHDRAW', 1, "
     "'UNKNOWN', 'me', 'root@localhost', '2000-01-01')",
     "its number from the server"},
    {APPLICATION, "DO 1",
     "INSERT INTO trade_evidence (evidence_id, cust_no, serial_no, op_code, epoch, outcome, "
     "source, account, filed_at) VALUES (18446744073709551614, 'c', 's', 'WITHDRAW', 1, "
     "'UNKNOWN', 'me', 'root@localhost', '2000-01-01')",
     "its number from the server"},
    {OPERATOR, "SET SESSION insert_id = 18446744073709551614", INSERT_EVIDENCE, "insert_id"},
    {APPLICATION, "SET SESSION insert_id = 18446744073709551614", INSERT_EVIDENCE, "insert_id"},
    {OPERATOR, "SET SESSION check_constraint_checks = 0",
     "INSERT INTO trade_evidence (cust_no, serial_no, op_code, epoch, outcome, source, account, "
     "filed_at) VALUES ('c', 's', 'WITHDRAW', 1, 'NONSENSE', 'me', '', NOW())",
     "check_constraint_checks"},
    {OPERATOR, "SET SESSION check_constraint_checks = 0",
     "INSERT INTO tl_restore (step, reason, actor) VALUES ('nonsense', 'r', 'a')",
     "check_constraint_checks"},
    {APPLICATION, "DO 1",
     "UPDATE trade_lock SET amount_minor = 1, currency = CONCAT(CHAR(27), '[2') WHERE serial_no = "
     "'rights'",
     "currency_is_letters"},
    {APPLICATION, "DO 1",
     "UPDATE trade_lock SET fence = 18446744073709551615, rev = rev + 1 WHERE serial_no = 'rights'",
     "beyond all clocks"},
    {APPLICATION, "DO 1",
     "UPDATE trade_lock SET rev = 18446744073709551615 WHERE serial_no = 'rights'",
     "beyond all clocks"},
    {APPLICATION, "DO 1",
     "INSERT INTO resource_lock (resource, status, step, thread_no, token, fence, rev, locked_at, "
     "created_at, updated_at) VALUES ('poison', 'U', 'x', UUID(), RANDOM_BYTES(16), "
     "18446744073709551615, 1, NOW(6), NOW(6), NOW(6))",
     "beyond all clocks"},
    {APPLICATION,
     "INSERT INTO resource_lock (resource, status, step, thread_no, token, fence, rev, locked_at, "
     "created_at, updated_at) VALUES ('sound', 'U', 'x', UUID(), RANDOM_BYTES(16), 1, 1, NOW(6), "
     "NOW(6), NOW(6))",
     "UPDATE resource_lock SET fence = 18446744073709551615", "beyond all clocks"},
    {APPLICATION, "DO 1",
     "INSERT INTO resource_holder (resource, slot, kind, status, step, thread_no, by_session, "
     "token, fence, rev, acquired_at, updated_at) VALUES ('poison', 1, 'R', 'F', 'x', UUID(), 0, "
     "RANDOM_BYTES(16), 18446744073709551615, 1, NOW(6), NOW(6))",
     "beyond all clocks"},
    {OPERATOR, "DO 1", "CALL tl_purge_trades(0, 86400000, 1000, '', '', '', @p)", "retention"},
    {OPERATOR, "DO 1", "CALL tl_purge_named(86400000, 1000, '', '', '', @p, @n)", "retention"},
    {OPERATOR, "DO 1", "CALL tl_purge_archived(86400000, '[]', '5e', '-', 1, @p)", "retention"},
    {OPERATOR, "DO 1", "CALL tl_purge_acts(86400000, 10, @p)", "retention"},
    {OPERATOR, "DO 1", "CALL tl_purge_sessions(86400000, 10, @p)", "retention"},
    {OPERATOR, "DO 1", "CALL tl_purge_mutexes(0, NULL, 10, '', @p)", "retention"},
};

/* Temporary tables stand in for ours in all code that a session calls, where an account may make
 * them. */
static const struct forgery behind_a_table[] = {
    {OPERATOR, "DO 1", "INSERT INTO tl_restore (step, reason, actor) VALUES ('declared', 'r', 'a')",
     "temporary table"},
    {OPERATOR, "START TRANSACTION", "CALL tl_restore_accept(1, UUID())", "temporary table"},
    {OPERATOR, "ROLLBACK", FILE_LOST("hidden"), "temporary table"},
    {OPERATOR, "DO 1", "CALL tl_operator_retry('c', 'n', 'W', 1, UUID(), NULL, 'x', 'a', 'r')",
     "temporary table"},
    {OPERATOR, "DO 1", "CALL tl_purge_trades(0, 7776000000, 10, '', '', '', @p)",
     "temporary table"},
    {OPERATOR, "DO 1", "CALL tl_act_begin('audit', 'x', 'y', 'a', UUID(), 0, @act)",
     "temporary table"},
    {OPERATOR, "START TRANSACTION", "CALL tl_channel_decide('bank', '', 1, NULL, 'a', 'r')",
     "temporary table"},
    {OPERATOR, "ROLLBACK",
     "INSERT INTO audit_closing (finding, part, rule, cust_no, serial_no, op_code, rev, reason, "
     "actor, thread_no) VALUES ('x', 1, 'r', 'c', 's', 'W', 0, 'why', 'a', UUID())",
     "temporary table"},
    {OPERATOR, "DO 1",
     "INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, fence, epoch, "
     "reason, actor, thread_no) VALUES ('c', 's', 'W', 1, 'F', 1, 1, 1, 'r', 'a', UUID())",
     "temporary table"},
};

static unsigned not_refused(MYSQL *as[ROLES], const struct forgery *tried, size_t count)
{
    unsigned wrong = 0;

    for (size_t i = 0; i < count; i++) {
        MYSQL *session = as[tried[i].as];

        assert_int_equal(try(session, tried[i].first), 0);
        if (try(session, tried[i].sql) == 0 ||
            strstr(mysql_error(session), tried[i].words) == NULL) {
            print_error("%s; %s: error %u (%s), expected '%s'\n", tried[i].first, tried[i].sql,
                        mysql_errno(session), mysql_error(session), tried[i].words);
            wrong++;
        }
        assert_int_equal(try(session, "SET SESSION insert_id = 0, check_constraint_checks = "
                                      "DEFAULT"),
                         0);
    }
    return wrong;
}

TEST(test_no_role_forges)
{
    struct fixture *f = *state;
    MYSQL *behind[ROLES] = {NULL};
    unsigned wrong = not_refused(f->as, forgeries, sizeof forgeries / sizeof *forgeries);

    database_run(f->admin, "GRANT CREATE TEMPORARY TABLES ON {database}.* TO %s@localhost",
                 f->account[OPERATOR]);
    behind[OPERATOR] = connect_as(f, f->account[OPERATOR]);
    assert_int_equal(try(behind[OPERATOR], "EXECUTE IMMEDIATE 'CREATE TEMPORARY TABLE tl_schema AS "
                                           "SELECT * FROM tl_schema'"),
                     0);
    wrong += not_refused(behind, behind_a_table, sizeof behind_a_table / sizeof *behind_a_table);
    mysql_close(behind[OPERATOR]);
    database_run(f->admin, "REVOKE CREATE TEMPORARY TABLES ON {database}.* FROM %s@localhost",
                 f->account[OPERATOR]);
    assert_int_equal(wrong, 0);
    assert_true(is_refusal(try(f->as[READER], "CREATE TEMPORARY TABLE tl_restore (a INT)")));
    /* Numbers go on from where they were. */
    assert_true(database_number(f->admin, "SELECT MAX(auto_increment) < 1000 FROM "
                                          "information_schema.tables WHERE table_schema = "
                                          "DATABASE()"));
}

static long long missing_revs(struct fixture *f, const char *serial)
{
    return database_number(f->admin,
                           "SELECT MAX(rev) - MIN(rev) + 1 - COUNT(*) FROM trade_lock_log "
                           "WHERE serial_no = '%s'",
                           serial);
}

static long long log_rows(struct fixture *f, const char *serial)
{
    return database_number(f->admin, "SELECT COUNT(*) FROM trade_lock_log WHERE serial_no = '%s'",
                           serial);
}

/* A purge in plain SQL is on record, and goes by the moment itself. */
TEST(test_a_purge_leaves_an_act)
{
    struct fixture *f = *state;
    unsigned error;

    /* A jump of the clock counts, whatever snapshot the session has. */
    assert_int_equal(try(f->as[OPERATOR], "START TRANSACTION WITH CONSISTENT SNAPSHOT"), 0);
    database_run(f->admin, "UPDATE tl_clock SET steps = steps + 1");
    error = try(f->as[OPERATOR], "CALL tl_purge_trades(0, 7776000000, 10, '', '', '', @p)");
    /* From 11.6 on the server itself refuses to read what came after the snapshot. */
    if (error != 1020) {
        assert_int_equal(error, 1644);
        assert_non_null(strstr(mysql_error(f->as[OPERATOR]), "the server's clock was set"));
    }
    assert_int_equal(try(f->as[OPERATOR], "ROLLBACK"), 0);
    database_run(f->admin, "UPDATE tl_clock SET steps = steps - 1");
    database_run(f->admin,
                 INSERT_LOCK("old") "; UPDATE trade_lock SET rev = rev + 1, status = 'Y', step = "
                                    "'end', updated_at = UTC_TIMESTAMP(6) - INTERVAL 91 DAY, "
                                    "deadline_at = UTC_TIMESTAMP(6) + INTERVAL 1 DAY WHERE "
                                    "serial_no = 'old'");
    assert_int_equal(try(f->as[OPERATOR], "CALL tl_purge_trades(0, 7776000000, 1000, '', '', '', "
                                          "@p)"),
                     0);
    assert_int_equal(log_rows(f, "old"), 2);
    database_run(f->admin, "UPDATE trade_lock SET deadline_at = NULL, rev = rev + 1 WHERE "
                           "serial_no = 'old'");
    assert_int_equal(try(f->as[OPERATOR], "CALL tl_purge_trades(0, 7776000000, 1000, '', '', '', "
                                          "@p)"),
                     0);
    assert_int_equal(log_rows(f, "old"), 0);
    assert_int_equal(database_number(f->admin,
                                     "SELECT COUNT(*) FROM tl_act WHERE what = 'purge' AND done = "
                                     "1 AND ended_at IS NOT NULL AND account = '%s@localhost'",
                                     f->account[OPERATOR]),
                     1);
    /* That a set of an archive was there is no word of an operator's, not even in a purge. */
    assert_int_equal(try(f->as[OPERATOR], "CALL tl_act_begin('purge', '--archive /x', '', 'a', "
                                          "NULL, 0, @tl_act)"),
                     0);
    assert_int_not_equal(try(f->as[OPERATOR], "INSERT INTO tl_archive_set (sha, before_sha, "
                                              "set_no, trades) VALUES ('5e', '-', 1, 3)"),
                         0);
    assert_int_equal(try(f->as[OPERATOR], "CALL tl_purge_archived(7776000000, '[[\"c\", \"none\", "
                                          "\"WITHDRAW\", \"1 0 0 0 0\"]]', '5e', '-', 1, @p)"),
                     0);
    assert_int_equal(try(f->as[OPERATOR], "CALL tl_act_end(@tl_act, NULL)"), 0);
    assert_int_equal(database_number(f->admin, "SELECT COUNT(*) FROM tl_archive_set"), 0);
}

#define ROW_OF(serial) " FROM trade_lock WHERE serial_no = '" serial "' AND lane = 'S'"
#define HALF(serial, verdict, part)                                                                \
    "INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, "              \
    "fence, epoch, reason, actor, thread_no) VALUES ('c', '" serial                                \
    "', 'WITHDRAW', @rev, '" verdict "', " part ", @fence, 1, 'r', 'a', UUID())"

static void expect_words(MYSQL *connection, const char *sql, const char *words)
{
    if (try(connection, sql) == 0 || strstr(mysql_error(connection), words) == NULL)
        fail_msg("%s: %s", sql, mysql_error(connection));
}

/* A trade in doubt whose lane is parked, and one that failed and is in conflict. */
static void make_undecided(struct fixture *f)
{
    assert_int_equal(try(f->admin, INSERT_LOCK("two")), 0);
    assert_int_equal(try(f->admin, "UPDATE trade_lock SET sends = 1, rev = rev + 1 WHERE "
                                   "serial_no = 'two'"),
                     0);
    assert_int_equal(
        try(f->admin, "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                      "thread_no, token, fence, rev, parked, created_at, updated_at) VALUES ('c', "
                      "'two', 'WITHDRAW_RETRY', 'R', 'F', 'park', UUID(), '0123456789abcdef', 1, "
                      "1, "
                      "'why', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))"),
        0);
    assert_int_equal(try(f->admin, INSERT_LOCK("odd")), 0);
    assert_int_equal(try(f->admin, "UPDATE trade_lock SET status = 'F', proof = 'D', "
                                   "conflict = 1, success_epoch = 1, rev = rev + 1 WHERE "
                                   "serial_no = 'odd'"),
                     0);
}

static void expect_undecided(struct fixture *f)
{
    assert_int_equal(database_number(f->admin, "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' "
                                               "AND ((serial_no = 'two' AND status = 'P') OR "
                                               "(serial_no = 'odd' AND status = 'F' AND conflict = "
                                               "1)) AND rev = 2"),
                     2);
}

/* In plain SQL, with an operator's own account: nothing that one may do does what needs two. */
TEST(test_one_operator_decides_nothing)
{
    static const char *const tried[] = {
        HALF("two", "F", "2"),
        "UPDATE trade_resolution SET part = 2",
        "INSERT INTO trade_resolution SET cust_no = 'c', serial_no = 'two', op_code = "
        "'WITHDRAW', rev = @rev, verdict = 'F', part = 2, fence = @fence, epoch = 1, "
        "reason = 'r', actor = 'a', thread_no = UUID(), account = 'bob@localhost'",
        "CALL tl_resolution_refused('c', 'two', 'WITHDRAW', @rev, 'r', UUID(), NULL)",
        HALF("two", "F", "3"),
        "UPDATE trade_lock SET status = 'F', proof = 'O' WHERE serial_no = 'two'",
        "INSERT INTO trade_lock SELECT * FROM trade_lock WHERE FALSE",
    };
    struct fixture *f = *state;
    MYSQL *operator= f->as[OPERATOR];

    make_undecided(f);
    assert_int_equal(try(operator, "SELECT rev, fence INTO @rev, @fence" ROW_OF("two")), 0);
    assert_int_equal(try(operator, HALF("two", "F", "1")), 0);
    for (size_t i = 0; i < sizeof tried / sizeof tried[0]; i++)
        assert_int_not_equal(try(operator, tried[i]), 0);
    assert_int_equal(try(operator, "SELECT rev, fence INTO @rev, @fence" ROW_OF("odd")), 0);
    assert_int_equal(try(operator, HALF("odd", "C", "1")), 0);
    assert_int_equal(try(operator, HALF("odd", "Y", "1")), 0);
    expect_words(operator, HALF("odd", "C", "2"), "cannot confirm");
    expect_words(operator, HALF("odd", "Y", "2"), "cannot confirm");
    expect_undecided(f);
    /* One may have it looked at, and says why. */
    expect_words(operator, "CALL tl_operator_retry('c', 'two', 'WITHDRAW', 1, UUID(), NULL, "
                           "RANDOM_BYTES(16), 'ann', '')",
                 "and why");
    assert_int_equal(try(operator, "CALL tl_operator_retry('c', 'two', 'WITHDRAW', 1, "
                                   "UUID(), NULL, RANDOM_BYTES(16), 'ann', 'r')"),
                     0);
    assert_int_equal(database_number(f->admin,
                                     "SELECT COUNT(*) FROM trade_lock WHERE serial_no = "
                                     "'two' AND step = 'operator' AND account = "
                                     "'%s@localhost' AND (lane = 'R' OR (status = 'P' AND "
                                     "remark IS NULL))",
                                     f->account[OPERATOR]),
                     2);
}

/* Whoever asks for it drops it. */
static MYSQL *second_operator(struct fixture *f, char name[40])
{
    snprintf(name, 40, "%s_b", f->account[OPERATOR]);
    database_run(f->admin,
                 "CREATE USER %1$s@localhost IDENTIFIED BY 'secret'; GRANT "
                 "{database}_operator TO %1$s@localhost; SET DEFAULT ROLE "
                 "{database}_operator FOR %1$s@localhost",
                 name);
    return connect_as(f, name);
}

/* Two can, and the step is by the account that confirmed. */
#define CLOSING(part)                                                                              \
    "INSERT INTO audit_closing (finding, part, rule, cust_no, serial_no, op_code, rev, reason, "   \
    "actor, thread_no) VALUES ('dirty', " part ", 'r', 'c', 's', 'W', 0, 'why', 'a', UUID())"

TEST(test_two_operators_decide)
{
    struct fixture *f = *state;
    char second[40];
    MYSQL *other = second_operator(f, second);

    assert_int_equal(try(other, "SELECT rev, fence INTO @rev, @fence" ROW_OF("odd")), 0);
    assert_int_equal(try(other, HALF("odd", "C", "2")), 0);
    assert_int_equal(database_number(f->admin,
                                     "SELECT COUNT(*) FROM trade_lock WHERE serial_no = "
                                     "'odd' AND conflict = 0 AND step = 'resolve clear' "
                                     "AND account = '%s@localhost'",
                                     second),
                     1);
    /* And one alone does not undo it. */
    expect_words(other, HALF("odd", "C", "3"), "only a worker refuses");
    /* What was proposed and not committed yet was not proposed. */
    assert_int_equal(try(f->as[OPERATOR], "START TRANSACTION"), 0);
    assert_int_equal(try(f->as[OPERATOR], CLOSING("1")), 0);
    assert_int_equal(try(other, "SET SESSION innodb_lock_wait_timeout = 1"), 0);
    assert_int_equal(try(other, "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"), 0);
    assert_int_equal(try(other, CLOSING("2")), 1205);
    assert_int_equal(try(f->as[OPERATOR], "ROLLBACK"), 0);
    mysql_close(other);
    database_run(f->admin, "DROP USER %s@localhost", second);
}

#define HALF_OF_RESTORE(half)                                                                      \
    "INSERT INTO tl_restore (restore_no, step, reason, actor) VALUES (@no, '" half "', 'r', 'a')"

static void look_and_run(MYSQL *connection, const char *half)
{
    assert_int_equal(try(connection, "SELECT restore_no INTO @no FROM tl_schema"), 0);
    if (try(connection, half) != 0)
        fail_msg("%s: %s", half, mysql_error(connection));
}

static void accept_restore(MYSQL *operator)
{
    assert_int_equal(try(operator, "START TRANSACTION"), 0);
    look_and_run(operator, HALF_OF_RESTORE("confirmed"));
    look_and_run(operator, "CALL tl_restore_accept(1000, UUID())");
    assert_int_equal(try(operator, "COMMIT"), 0);
}

/* What is filed has its effect whoever types it, and says who typed it. */
TEST(test_evidence_says_who_filed_it)
{
    struct fixture *f = *state;

    assert_int_equal(try(f->admin, INSERT_LOCK("filed")), 0);
    assert_int_equal(try(f->as[OPERATOR],
                         "INSERT INTO trade_evidence (cust_no, serial_no, op_code, epoch, outcome, "
                         "source, account, filed_at) VALUES ('c', 'filed', 'WITHDRAW', 1, "
                         "'SUCCEEDED', "
                         "'bank', 'nobody', '2001-01-01')"),
                     0);
    assert_int_equal(database_number(f->admin,
                                     "SELECT COUNT(*) FROM trade_lock l JOIN "
                                     "trade_evidence e USING (cust_no, serial_no, "
                                     "op_code) WHERE l.serial_no = 'filed' AND "
                                     "l.success_epoch = 1 AND l.step = 'evidence' AND "
                                     "e.account = '%s@localhost' AND e.filed_at > "
                                     "UTC_TIMESTAMP(6) - INTERVAL 1 HOUR",
                                     f->account[OPERATOR]),
                     1);
}

/* Rights of an earlier version are taken back when the roles are granted anew. */
TEST(test_old_rights_are_taken_back)
{
    struct fixture *f = *state;

    database_run(f->admin, "GRANT UPDATE (remark), INSERT (remark) ON trade_lock "
                           "TO {database}_operator; "
                           "GRANT UPDATE ON trade_lock_low_water TO {database}_operator");
    assert_int_equal(try(f->as[OPERATOR], "UPDATE trade_lock SET remark = 'x' WHERE FALSE"), 0);
    grant_roles(f);
    assert_true(is_refusal(try(f->as[OPERATOR], "UPDATE trade_lock SET remark = 'x' WHERE FALSE")));
    assert_true(
        is_refusal(try(f->as[OPERATOR], "UPDATE trade_lock_low_water SET low_water = low_water")));
    assert_int_equal(try(f->as[OPERATOR], "SELECT COUNT(*) FROM trade_lock"), 0);
}

TEST(test_sql_typed_by_hand_is_recorded)
{
    struct fixture *f = *state;
    char expected[128];
    char *who;

    assert_int_equal(try(f->as[APPLICATION], INSERT_LOCK("hand")), 0);
    assert_int_equal(try(f->as[APPLICATION], "UPDATE trade_lock SET remark = 'I know better' "
                                             "WHERE serial_no = 'hand'"),
                     0);
    assert_int_equal(try(f->as[APPLICATION], "UPDATE trade_lock SET status = 'F', proof = 'O' "
                                             "WHERE serial_no = 'hand'"),
                     0);
    assert_int_equal(log_rows(f, "hand"), 3);
    assert_int_equal(missing_revs(f, "hand"), 0);
    who = database_text(f->admin, "SELECT GROUP_CONCAT(account, ' ', step, ' ', status "
                                  "ORDER BY rev) FROM trade_lock_log WHERE "
                                  "serial_no = 'hand' AND rev > 1");
    snprintf(expected, sizeof expected, "%s@localhost by hand P,%s@localhost by hand F",
             f->account[APPLICATION], f->account[APPLICATION]);
    assert_string_equal(who, expected);
    free(who);
    assert_int_equal(database_number(f->admin, "SELECT l.rev = t.rev FROM trade_lock t JOIN "
                                               "trade_lock_log l USING (serial_no) WHERE "
                                               "serial_no = 'hand' ORDER BY l.rev DESC "
                                               "LIMIT 1"),
                     1);
}

/* Whoever counts rev himself leaves a gap, or it is counted for him. */
TEST(test_history_is_not_forged_by_rev)
{
    struct fixture *f = *state;

    assert_int_equal(try(f->as[APPLICATION], INSERT_LOCK("forge")), 0);
    assert_int_equal(try(f->as[APPLICATION], "UPDATE trade_lock SET rev = rev + 5, "
                                             "status = 'Y' WHERE serial_no = 'forge'"),
                     0);
    assert_int_equal(missing_revs(f, "forge"), 4);
    assert_int_equal(try(f->as[APPLICATION], "UPDATE trade_lock SET rev = 1, status = 'P' "
                                             "WHERE serial_no = 'forge'"),
                     0);
    assert_int_equal(database_number(f->admin, "SELECT rev FROM trade_lock WHERE "
                                               "serial_no = 'forge' AND status = 'P' "
                                               "AND step = 'by hand'"),
                     7);
    assert_int_equal(log_rows(f, "forge"), 3);
    assert_int_equal(missing_revs(f, "forge"), 4);
}

static const struct keyed {
    const char *table, *columns[3], *row;
} keyed[] = {
    {"trade_lock", {"cust_no", "serial_no", "op_code"}, "serial_no = 'key'"},
    {"resource_lock", {"resource"}, "resource = 'key'"},
    {"resource_holder", {"resource", "slot"}, "resource = 'key'"},
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
/* With and without IGNORE, and with a rev as a step of the library's has. */
static void expect_key_stays(MYSQL *who, const struct keyed *table, const char *column)
{
    for (int way = 0; way < 4; way++) {
        const char *to = strcmp(column, "slot") == 0 ? "2" : "'moved'";
        char sql[200];
        unsigned number;

        snprintf(sql, sizeof sql, "UPDATE %s %s SET %s = %s%s WHERE %s", way < 2 ? "" : "IGNORE",
                 table->table, column, to, way % 2 == 0 ? "" : ", rev = rev + 1", table->row);
        number = try(who, sql);
        if (way < 2)
            assert_int_equal(number, ER_SIGNAL_EXCEPTION);
        assert_int_equal(database_number(who, "SELECT COUNT(*) FROM %s WHERE %s AND rev = 1",
                                         table->table, table->row),
                         1);
    }
}
#pragma GCC diagnostic pop

#define INSERT_RESOURCE(name)                                                                      \
    "INSERT INTO resource_lock (resource, status, step, thread_no, token, fence, rev, "            \
    "max_hold_until, locked_at, created_at, updated_at) VALUES ('" name                            \
    "', 'L', 'lock', UUID(), '0123456789abcdef', 1, 1, UTC_TIMESTAMP(6), "                         \
    "UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))"
#define INSERT_HOLDER(name)                                                                        \
    "INSERT INTO resource_holder (resource, slot, kind, status, step, thread_no, "                 \
    "by_session, token, fence, rev, over_at, acquired_at, updated_at) VALUES ('" name              \
    "', 1, 'R', 'H', 'lock', UUID(), 0, '0123456789abcdef', 1, 1, UTC_TIMESTAMP(6), "              \
    "UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))"

/* Neither by an UPDATE, nor by a clock of the session's own. */
TEST(test_who_and_when_are_the_servers_to_say)
{
    struct fixture *f = *state;
    char *who;

    assert_int_equal(try(f->as[APPLICATION], INSERT_LOCK("who")), 0);
    assert_int_equal(try(f->admin, "SET SESSION timestamp = 1000000000"), 0);
    assert_int_equal(try(f->admin, "UPDATE trade_lock SET account = 'nobody', rev = rev + 1, "
                                   "logged_at = '2001-01-01' WHERE serial_no = 'who'"),
                     0);
    assert_int_equal(try(f->admin, "SET SESSION timestamp = DEFAULT"), 0);
    assert_int_equal(try(f->admin, "UPDATE trade_lock SET account = 'nobody' "
                                   "WHERE serial_no = 'who'"),
                     0);
    assert_int_equal(try(f->admin, "UPDATE trade_lock SET logged_at = '2001-01-01' "
                                   "WHERE serial_no = 'who'"),
                     0);
    who = database_text(f->admin, "SELECT GROUP_CONCAT(step ORDER BY rev) FROM "
                                  "trade_lock_log WHERE serial_no = 'who'");
    assert_string_equal(who, "ask,ask,by hand,by hand");
    free(who);
    assert_int_equal(database_number(f->admin,
                                     "SELECT COUNT(*) FROM trade_lock_log WHERE "
                                     "serial_no = 'who' AND account = IF(rev = 1, "
                                     "'%s@localhost', USER()) "
                                     "AND logged_at BETWEEN UTC_TIMESTAMP(6) - "
                                     "INTERVAL 1 HOUR AND UTC_TIMESTAMP(6)",
                                     f->account[APPLICATION]),
                     4);
}

/* Nor does code of definers take a moment that a session can set: but of the two triggers of trade_lock
 * that measure by the clock of the statement. */
TEST(test_no_definer_asks_the_sessions_clock)
{
    struct fixture *f = *state;
    char *bent;

    bent = database_text(
        f->admin, "SELECT COALESCE(GROUP_CONCAT(name ORDER BY name), '') FROM (SELECT routine_name "
                  "AS name, routine_definition AS body FROM information_schema.routines WHERE "
                  "routine_schema = DATABASE() AND security_type = 'DEFINER' UNION ALL SELECT "
                  "trigger_name, action_statement FROM information_schema.triggers WHERE "
                  "trigger_schema = DATABASE()) o WHERE REPLACE(body, 'TIMESTAMPDIFF(MICROSECOND, "
                  "NOW(6), UTC_TIMESTAMP(6))', '') REGEXP '[[:<:]]NOW[(]|_TIMESTAMP'");
    assert_string_equal(bent, "trade_lock_inserted,trade_lock_updated");
    free(bent);
    assert_int_equal(try(f->as[APPLICATION], INSERT_LOCK("clock")), 0);
    assert_int_equal(try(f->admin, "SET SESSION timestamp = 2100000000"), 0);
    assert_int_equal(try(f->admin, FILE_LOST("clock")), 0);
    assert_int_equal(try(f->admin, "SET SESSION timestamp = DEFAULT"), 0);
    assert_int_equal(database_number(f->admin, "SELECT updated_at > UTC_TIMESTAMP(6) FROM "
                                               "trade_lock WHERE serial_no = 'clock'"),
                     0);
}

/* Nor who began a session: by that a clock jump that was inferred from its row has an author. */
TEST(test_a_session_says_who_began_it)
{
    struct fixture *f = *state;

    assert_int_equal(
        try(f->as[APPLICATION],
            "INSERT INTO tl_session (session_id, program, host, pid, connection_name, timeout_ms, "
            "started_at, alive_until, begun_by) VALUES (UUID(), 'forged', 'h', 1, UUID(), 1000, "
            "UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), 'bob@localhost')"),
        0);
    database_expect(f->admin, 1,
                    "SELECT COUNT(*) FROM tl_session WHERE program = 'forged' AND begun_by = "
                    "'%s@localhost'",
                    f->account[APPLICATION]);
    assert_int_equal(try(f->admin, "UPDATE tl_session SET begun_by = 'bob@localhost'"), 0);
    database_expect(f->admin, 0, "SELECT COUNT(*) FROM tl_session WHERE begun_by LIKE 'bob@%%'");
}

/* What definers' code writes is in UTC, whatever zone the session that calls it has. */
TEST(test_a_zone_bends_no_moment)
{
    struct fixture *f = *state;

    database_run(f->admin, "INSERT INTO trade_channel_breaker (channel, op_code, unknowns, "
                           "decided_at, reason, actor, account) VALUES ('zone', 'PAY', 1, "
                           "UTC_TIMESTAMP(6), 'r', 'a', 'a')");
    assert_int_equal(try(f->as[APPLICATION], "SET time_zone = '+13:00'"), 0);
    assert_int_equal(
        try(f->as[APPLICATION], "CALL tl_channel_told('zone', 'PAY', 0, 0, 0, 1, 1, 1, @said)"), 0);
    assert_int_equal(try(f->as[APPLICATION], "SET time_zone = DEFAULT"), 0);
    assert_int_equal(database_number(f->admin,
                                     "SELECT COUNT(*) FROM trade_channel_breaker WHERE channel = "
                                     "'zone' AND opened_at BETWEEN UTC_TIMESTAMP(6) - INTERVAL 1 "
                                     "HOUR AND UTC_TIMESTAMP(6)"),
                     1);
}

/* What a server that is not strict, or told to ignore, takes for 0 is no revision either. */
TEST(test_no_revision_is_by_hand_too)
{
    struct fixture *f = *state;
    static const char *const ways[] = {
        "UPDATE IGNORE trade_lock SET rev = NULL, fence = 0, account = 'nobody', "
        "created_at = '1970-01-01' WHERE serial_no = 'null'",
        "INSERT IGNORE INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
        "thread_no, token, fence, rev, created_at, updated_at) VALUES ('c', 'null', "
        "'WITHDRAW', 'S', 'P', 'ask', UUID(), '0123456789abcdef', 1, 1, NOW(), NOW()) "
        "ON DUPLICATE KEY UPDATE rev = NULL, account = 'nobody'",
        "UPDATE trade_lock SET rev = NULL, logged_at = '2001-01-01' WHERE serial_no = "
        "'null'"};
    char *steps;

    assert_int_equal(try(f->admin, INSERT_LOCK("null")), 0);
    assert_int_equal(try(f->admin, "SET SESSION sql_mode = ''"), 0);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        assert_int_equal(try(f->admin, ways[i]), 0);
    assert_int_equal(try(f->admin, "SET SESSION sql_mode = DEFAULT"), 0);
    steps = database_text(f->admin, "SELECT GROUP_CONCAT(rev, ' ', step ORDER BY rev) "
                                    "FROM trade_lock_log WHERE serial_no = 'null'");
    assert_string_equal(steps, "1 ask,2 by hand,3 by hand,4 by hand");
    free(steps);
    assert_int_equal(database_number(f->admin, "SELECT COUNT(*) FROM trade_lock_log WHERE "
                                               "serial_no = 'null' AND account = USER() AND "
                                               "logged_at > UTC_TIMESTAMP(6) - INTERVAL 1 HOUR"),
                     4);
}

/* Whatever was done under a key stays under it. */
TEST(test_a_key_never_changes)
{
    struct fixture *f = *state;

    assert_int_equal(try(f->as[APPLICATION], INSERT_LOCK("key")), 0);
    assert_int_equal(try(f->as[APPLICATION], INSERT_RESOURCE("key")), 0);
    assert_int_equal(try(f->as[APPLICATION], INSERT_HOLDER("key")), 0);
    for (size_t i = 0; i < sizeof keyed / sizeof keyed[0]; i++)
        for (size_t c = 0; c < 3 && keyed[i].columns[c] != NULL; c++) {
            expect_key_stays(f->as[APPLICATION], &keyed[i], keyed[i].columns[c]);
            expect_key_stays(f->admin, &keyed[i], keyed[i].columns[c]);
        }
    assert_int_equal(log_rows(f, "key"), 1);
}

/* The history of the other locks holds what their rows held, also where a change was cut, counted
 * by hand, or refused by a constraint and ignored. */
TEST(test_other_locks_and_what_is_ignored)
{
    static const struct {
        const char *table, *log, *cut, *refused, *counted;
    } locks[] = {
        {"resource_lock", "resource_log", "remark = REPEAT('x', 300), rev = rev + 1",
         "max_hold_until = NULL, rev = rev + 1", "fence = 7, rev = NULL"},
        {"resource_holder", "resource_holder_log", "remark = REPEAT('x', 300), rev = rev + 1",
         "over_at = NULL, rev = rev + 1", "fence = 7, rev = 0"},
    };
    struct fixture *f = *state;

    assert_int_equal(try(f->as[APPLICATION], INSERT_RESOURCE("other")), 0);
    assert_int_equal(try(f->as[APPLICATION], INSERT_HOLDER("other")), 0);
    assert_int_equal(try(f->admin, "SET SESSION sql_mode = ''"), 0);
    for (size_t i = 0; i < sizeof locks / sizeof locks[0]; i++) {
        const char *changes[] = {locks[i].cut, locks[i].refused, locks[i].counted};

        for (size_t c = 0; c < 3; c++)
            database_run(f->admin, "UPDATE IGNORE %s SET %s WHERE resource = 'other'",
                         locks[i].table, changes[c]);
        assert_int_equal(database_number(f->admin,
                                         "SELECT COUNT(*) FROM %s WHERE resource = "
                                         "'other' AND rev <= 3",
                                         locks[i].log),
                         3);
        assert_int_equal(database_number(f->admin,
                                         "SELECT COUNT(*) FROM %s t JOIN %s l USING "
                                         "(resource, rev) WHERE resource = 'other' AND "
                                         "rev = 3 AND t.fence = 7 AND l.fence = 7 AND "
                                         "t.remark = l.remark AND l.step = 'by hand'",
                                         locks[i].table, locks[i].log),
                         1);
    }
    assert_int_equal(try(f->admin, "SET SESSION sql_mode = DEFAULT"), 0);
}

/* One that a unique key refuses keeps a step early; the row can be changed afterwards. */
TEST(test_a_change_ignored_blocks_nothing)
{
    struct fixture *f = *state;

    assert_int_equal(try(f->as[APPLICATION], INSERT_LOCK("busy")), 0);
    assert_int_equal(try(f->as[APPLICATION], "UPDATE trade_lock SET exclusive = 1 WHERE "
                                             "serial_no = 'busy'"),
                     0);
    assert_int_equal(try(f->as[APPLICATION], INSERT_LOCK("next")), 0);
    assert_int_equal(try(f->as[APPLICATION], "UPDATE trade_lock SET remark = 'x' WHERE "
                                             "serial_no = 'next'"),
                     0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(try(f->as[APPLICATION],
                             "UPDATE IGNORE trade_lock SET exclusive = 1 WHERE serial_no = "
                             "'next'"),
                         0);
    assert_int_equal(database_number(f->admin, "SELECT exclusive FROM trade_lock WHERE "
                                               "serial_no = 'next'"),
                     0);
    assert_int_equal(try(f->as[APPLICATION],
                         "UPDATE trade_lock SET rev = rev + 1, step = 'end', token = "
                         "'fedcba9876543210', status = 'Y' WHERE serial_no = 'next'"),
                     0);
    assert_int_equal(log_rows(f, "next"), 3);
    assert_int_equal(missing_revs(f, "next"), 0);
    assert_int_equal(try(f->admin, "DELETE FROM trade_lock WHERE serial_no = 'next'"), 0);
    assert_int_equal(log_rows(f, "next"), 4);
}

/* A change that a constraint refuses is none, also where the statement goes on. */
TEST(test_a_change_refused_leaves_nothing)
{
    struct fixture *f = *state;

    assert_int_equal(try(f->as[APPLICATION], INSERT_LOCK("refused")), 0);
    assert_int_equal(try(f->as[APPLICATION],
                         "UPDATE IGNORE trade_lock SET rev = rev + 1, step = 'end', "
                         "status = 'F' WHERE serial_no = 'refused'"),
                     0);
    assert_int_equal(log_rows(f, "refused"), 1);
    assert_int_equal(try(f->as[APPLICATION], "UPDATE trade_lock SET rev = rev + 1, step = 'end', "
                                             "status = 'Y' WHERE serial_no = 'refused'"),
                     0);
    assert_int_equal(log_rows(f, "refused"), 2);
    assert_int_equal(missing_revs(f, "refused"), 0);
}

/* All columns but those that the server fills in. */
TEST(test_the_grants_name_every_column)
{
    static const char *const may[] = {"INSERT", "UPDATE"};
    struct fixture *f = *state;

    for (size_t i = 0; i < 2; i++)
        assert_int_equal(
            database_number(f->admin,
                            "SELECT COUNT(*) FROM information_schema.columns c LEFT JOIN "
                            "information_schema.column_privileges p ON p.table_schema = "
                            "c.table_schema AND p.table_name = c.table_name AND p.column_name = "
                            "c.column_name AND p.privilege_type = '%1$s' AND p.grantee LIKE "
                            "'''%2$s''%%' WHERE c.table_schema = DATABASE() AND c.table_name = "
                            "'trade_lock' AND (p.column_name IS NULL) <> (c.column_name IN "
                            "('logged_at', 'account', 'busy', 'longest_hold_ms', "
                            "'blanked_rev') OR c.column_name LIKE 'first\\_%%')",
                            may[i], role_names[APPLICATION]),
            0);
}

TEST(test_nothing_changed_nothing_recorded)
{
    struct fixture *f = *state;

    assert_int_equal(try(f->as[APPLICATION], INSERT_LOCK("same")), 0);
    assert_int_equal(try(f->as[APPLICATION], "UPDATE trade_lock SET status = status WHERE "
                                             "serial_no = 'same'"),
                     0);
    assert_int_equal(log_rows(f, "same"), 1);
}

/* The administrator can remove a row; that is a step too. */
TEST(test_removal_is_recorded)
{
    struct fixture *f = *state;

    assert_int_equal(try(f->as[APPLICATION], INSERT_LOCK("gone")), 0);
    database_run(f->admin, "DELETE FROM trade_lock WHERE serial_no = 'gone'");
    assert_int_equal(database_number(f->admin,
                                     "SELECT COUNT(*) FROM trade_lock_log WHERE "
                                     "serial_no = 'gone' AND step = 'deleted' AND rev = 2"),
                     1);
    assert_int_equal(log_rows(f, "gone"), 2);
}

/* Success of a trade that is not there makes it Y once two accept the restore that was open: not
 * before, not whoever filed it, not by what was proposed before, and not what is filed later. */
TEST(test_another_one_accepts_what_was_filed)
{
    static const char declare[] =
        "INSERT INTO tl_restore (step, reason, actor) VALUES ('declared', 'r', 'a')";
    struct fixture *f = *state;
    unsigned error;
    char second[40];
    MYSQL *ann = f->as[OPERATOR], *bob = second_operator(f, second);
    MYSQL *late = connect_as(f, f->account[OPERATOR]);

    look_and_run(ann, declare);
    look_and_run(bob, HALF_OF_RESTORE("proposed"));
    look_and_run(ann, FILE_LOST("new1"));
    assert_int_equal(log_rows(f, "new1"), 0);
    assert_int_equal(try(ann, "SELECT restore_no INTO @no FROM tl_schema"), 0);
    expect_words(ann, HALF_OF_RESTORE("confirmed"), "nothing was proposed");
    look_and_run(bob, HALF_OF_RESTORE("proposed"));
    expect_words(ann, HALF_OF_RESTORE("confirmed"), "whoever filed a payment without a trade");
    look_and_run(ann, declare);
    look_and_run(ann, HALF_OF_RESTORE("proposed"));
    assert_int_equal(try(late, "START TRANSACTION WITH CONSISTENT SNAPSHOT"), 0);
    accept_restore(bob);
    assert_int_equal(database_number(f->admin, "SELECT tl_restored()"), 0);
    assert_int_equal(try(late, "SELECT restore_no INTO @no FROM tl_schema"), 0);
    error = try(late, FILE_LOST("new2"));
    assert_true(error == 0 || error == 1020); /* from 11.6 on it is refused */
    assert_int_equal(try(late, error == 0 ? "COMMIT" : "ROLLBACK"), 0);
    assert_int_equal(database_number(f->admin, "SELECT COUNT(*) FROM trade_lock WHERE serial_no = "
                                               "'new1' AND status = 'Y' AND step = 'filed' AND "
                                               "conflict = 0 AND amount_minor = 1250 AND "
                                               "currency = 'EUR'"),
                     1);
    assert_int_equal(log_rows(f, "new1"), 1);
    assert_int_equal(log_rows(f, "new2"), 0);
    mysql_close(late);
    mysql_close(bob);
    database_run(f->admin, "DROP USER %s@localhost", second);
}

/* One process may say that nothing is missing on a promoted server, and then nobody asks two. */
TEST(test_no_promotion_covers_what_was_filed)
{
    struct fixture *f = *state;

    database_run(f->admin, "UPDATE tl_schema SET identity = 'elsewhere 1 /x'");
    assert_int_equal(
        try(f->as[OPERATOR],
            "INSERT INTO tl_restore (step, reason, actor) VALUES ('promoted', 'r', 'a')"),
        0);
    look_and_run(f->as[OPERATOR], FILE_LOST("new4"));
    assert_int_equal(log_rows(f, "new4"), 0);
    assert_int_equal(
        database_number(f->admin, "SELECT COUNT(*) FROM tl_restore r JOIN tl_schema s USING "
                                  "(restore_no) WHERE r.step = 'found' AND r.reason = 'a payment "
                                  "was filed of which no trade is here'"),
        1);
    database_run(f->admin, "UPDATE tl_schema SET identity = tl_identity(), accepted_no = "
                           "restore_no; DELETE FROM trade_evidence WHERE serial_no = 'new4'");
}

/* On a server that nobody has accepted the first success of a lost trade puts that on record. */
TEST(test_a_restore_is_found_by_what_is_filed)
{
    struct fixture *f = *state;

    database_run(f->admin, "UPDATE tl_schema SET identity = 'elsewhere 1 /x'");
    assert_int_equal(try(f->as[OPERATOR], FILE_LOST("new3")), 0);
    assert_int_equal(
        database_number(f->admin,
                        "SELECT COUNT(*) FROM tl_restore r JOIN tl_schema s ON r.restore_no = "
                        "s.accepted_no + 1 JOIN trade_evidence e ON e.serial_no = 'new3' AND "
                        "e.filed_at >= r.decided_at WHERE r.step = 'found' AND r.account = "
                        "'%s@localhost'",
                        f->account[OPERATOR]),
        1);
    database_run(f->admin, "UPDATE tl_schema SET identity = tl_identity(), accepted_no = "
                           "restore_no");
}

/* A session that has not attested beats while a promoted server is accepted: neither waits. */
TEST(test_accepting_waits_for_no_heartbeat)
{
    const struct fixture *f = *state;
    MYSQL *beats = database_connect(f->where);

    database_run(f->admin,
                 "INSERT INTO tl_session (session_id, program, host, pid, connection_name,"
                 " timeout_ms, started_at, alive_until) VALUES"
                 " ('00000000-0000-4000-8000-000000000099', 'p', 'h', 1, UUID(), 60000,"
                 " UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 10 SECOND);"
                 "INSERT INTO tl_attestation (restore_no, session_id) VALUES"
                 " (99, '00000000-0000-4000-8000-000000000099')");
    database_run(beats, "START TRANSACTION; UPDATE tl_session SET beat = beat + 1"
                        " WHERE session_id = '00000000-0000-4000-8000-000000000099'");
    database_run(f->admin,
                 "SET STATEMENT innodb_lock_wait_timeout = 0 FOR CALL tl_accept_proved(99)");
    mysql_close(beats);
    database_run(f->admin, "DELETE FROM tl_attestation WHERE restore_no = 99;"
                           "DELETE FROM tl_session WHERE pid = 1 AND program = 'p'");
}

#define BEATING "00000000-0000-4000-8000-000000000098"

/* Two operators accept a restored server, which takes minutes in a large one: meanwhile sessions
 * beat, and none of them counts as passed over afterwards. */
TEST(test_accepting_holds_up_no_heartbeat)
{
    const struct fixture *f = *state;
    MYSQL *beats = database_connect(f->where), *accepts = database_connect(f->where);

    database_run(f->admin,
                 "INSERT INTO tl_session (session_id, program, host, pid, connection_name,"
                 " timeout_ms, started_at, alive_until) VALUES ('" BEATING "', 'p', 'h', 1, UUID(),"
                 " 60000, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 10 SECOND);"
                 "UPDATE tl_beat SET rounds = 3 WHERE session_id = '" BEATING "'");
    database_propose(accepts);
    database_run(accepts, "INSERT INTO tl_restore (restore_no, step, reason, actor, account)"
                          " VALUES (@open, 'confirmed', 'a test', 'bob', 'bob@localhost');"
                          "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;"
                          "START TRANSACTION; CALL tl_restore_accept(1000, UUID())");
    database_run(beats, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;"
                        "SET SESSION innodb_lock_wait_timeout = 0");
    database_run(beats, "UPDATE tl_session x LEFT JOIN tl_beat b ON b.session_id = x.session_id"
                        " AND b.beat = x.beat SET x.beat = x.beat + 1, b.beat = b.beat + 1"
                        " WHERE x.session_id = '" BEATING "'");
    database_run(accepts, "COMMIT");
    assert_int_equal(database_number(f->admin, "SELECT tl_passes_over() IS NULL"), 1);
    /* One that was passed over is put right by it. */
    database_run(f->admin, "UPDATE tl_beat SET beat = beat + 5 WHERE session_id = '" BEATING "'");
    assert_int_equal(database_number(f->admin, "SELECT tl_passes_over() IS NULL"), 0);
    database_run(f->admin, "INSERT INTO tl_restore (step, reason) VALUES ('declared', 'a test')");
    database_propose(accepts);
    database_run(accepts, "INSERT INTO tl_restore (restore_no, step, reason, actor, account)"
                          " VALUES (@open, 'confirmed', 'a test', 'bob', 'bob@localhost');"
                          "START TRANSACTION; CALL tl_restore_accept(1000, UUID()); COMMIT");
    assert_int_equal(database_number(f->admin, "SELECT tl_passes_over() IS NULL"), 1);
    database_run(f->admin, "DELETE FROM tl_session WHERE session_id = '" BEATING "'");
    mysql_close(beats);
    mysql_close(accepts);
}

static tl_client_options as_application(const struct fixture *f)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;

    options.config_file = database_option_file(f->where);
    options.user = f->account[APPLICATION];
    options.password = "secret";
    return options;
}

/* Who may not read what operators set would obey none of it, and begins no session. */
TEST(test_who_may_not_read_what_is_set)
{
    const struct fixture *f = *state;
    tl_client_options options = as_application(f);
    tl_client *client = NULL;

    database_run(f->admin, "REVOKE SELECT ON trade_channel_breaker FROM {database}_application");
    assert_int_equal(tl_client_open(&client, &options), TL_ACCESS_DENIED);
    assert_non_null(strstr(tl_error_message(), "trade_channel_breaker"));
    assert_null(client);
    database_run(f->admin, "GRANT SELECT ON trade_channel_breaker TO {database}_application");
}

#define RECEIPTS "removing the receipts of sends"
#define ACCEPTED "looking whether this server is the accepted one"

/* What was told of the works that fail here, by their rights. */
static atomic_int receipts_fail, receipts_work, looks_fail, looks_work;

static void count_told(void *context, const tl_log_line *line)
{
    (void)context;
    print_message("%s\n", line->message);
    receipts_fail += strstr(line->message, RECEIPTS ": it goes on failing: ") != NULL;
    receipts_work += strstr(line->message, RECEIPTS ": it works again, ") != NULL;
    looks_fail += strstr(line->message, ACCEPTED ": it goes on failing: ") != NULL;
    looks_work += strstr(line->message, ACCEPTED ": it works again, ") != NULL;
}

static tl_status ask_once(tl_client *client, const char *serial)
{
    const tl_key key = {.serial_no = serial, .cust_no = "C1", .op_code = "WITHDRAW"};
    tl_lock_options of = TL_LOCK_OPTIONS_INIT;
    tl_lock *lock = NULL;
    tl_status status;

    of.max_hold_ms = 60000;
    assert_int_equal(tl_lock_new(&lock, client, &key, &of), TL_OK);
    status = tl_lock_ask(lock, 0);
    tl_lock_free(lock);
    return status;
}

/* Nobody waits for what follows a beat.  Where it fails for good, that is told once, and once when it
 * works again; and where it would not be seen that the server was restored, nothing is granted. */
TEST(test_what_goes_on_failing_is_told)
{
    const struct fixture *f = *state;
    tl_client_options options = as_application(f);
    tl_client *client = NULL;

    options.log = count_told;
    if (tl_client_open(&client, &options) != TL_OK)
        fail_msg("%s", tl_error_message());
    database_run(f->admin,
                 "REVOKE EXECUTE ON PROCEDURE tl_receipts_close FROM {database}_application");
    assert_int_equal(ask_once(client, "T1"), TL_GRANTED);
    AWAIT_WHILE(receipts_fail == 0);
    database_run(f->admin,
                 "GRANT EXECUTE ON PROCEDURE tl_receipts_close TO {database}_application");
    AWAIT_WHILE(receipts_work == 0);
    database_run(f->admin, "REVOKE SELECT ON tl_restore FROM {database}_application");
    AWAIT_WHILE(looks_fail == 0);
    assert_int_not_equal(ask_once(client, "T2"), TL_GRANTED);
    database_run(f->admin, "GRANT SELECT ON tl_restore TO {database}_application");
    AWAIT_WHILE(looks_work == 0);
    AWAIT_WHILE(ask_once(client, "T3") != TL_GRANTED);
    assert_int_equal(receipts_fail, 1);
    assert_int_equal(looks_fail, 1);
    tl_client_close(client);
}

/* A janitor that was slow over its page takes the walk of all back to no earlier place. */
TEST(test_a_slow_janitor_takes_nobody_back)
{
    const struct fixture *f = *state;
    static const char page[] = "CALL tl_blank_page(1, 0, @told)";
    MYSQL *faster = database_connect(f->where), *slow = f->as[APPLICATION];

    database_run(f->admin,
                 INSERT_LOCK("a page") ";UPDATE tl_schema SET payload_keep_ms = 86400000");
    database_run(faster, "START TRANSACTION; UPDATE tl_blanking SET cust_no = 'further'");
    assert_int_equal(mysql_send_query(slow, page, sizeof page - 1), 0);
    AWAIT_WHILE(database_transactions(f->admin, "LOCK WAIT", "1") == 0);
    database_run(faster, "COMMIT");
    assert_int_equal(mysql_read_query_result(slow), 0);
    assert_int_equal(database_number(f->admin, "SELECT COUNT(*) FROM tl_blanking WHERE cust_no ="
                                               " 'further'"),
                     1);
    /* A walk that begins anew goes on from there for all. */
    assert_int_equal(try(slow, "CALL tl_blank_page(1, 1, @told)"), 0);
    assert_int_equal(database_number(f->admin, "SELECT COUNT(*) FROM tl_blanking WHERE cust_no ="
                                               " 'further'"),
                     0);
    database_run(f->admin, "UPDATE tl_schema SET payload_keep_ms = NULL");
    mysql_close(faster);
}

TESTS_OF(grants, set_up, tear_down)
