/* A promoted replica that lacks some of what the primary committed is not accepted by itself: the
 * end of the log never came, or it passed over some of it, by a position set by hand, an old dump, a
 * log begun anew, errors that were skipped or a filter.  One that only lagged is, and so is one that
 * applies commits in parallel. */
#include "pair.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/lane.h>

/* ----------------------------------------------------------- the end of the log is missing -- */

/* ---------------------------------------------------------- some of the log is passed over -- */

/* How a replica comes to pass over what was committed while it stood still: `before` that is
 * committed, `after` it. */
struct passing {
    void (*before)(void), (*after)(void);
};

static void dump(void)
{
    char command[1024];

    snprintf(command, sizeof command,
             "mariadb-dump --no-defaults --socket='%s' --single-transaction --routines %s "
             ">'%s/dump.sql'",
             server_socket(pair.primary), database_name(pair.db), server_dir(pair.primary));
    assert_int_equal(system(command), 0);
}

/* As of the dump, and then as if it were of now. */
static void load_dump(void)
{
    char command[1024];

    set_position();
    database_run(pair.sql_copy, "SET GLOBAL read_only = 0");
    snprintf(command, sizeof command, "mariadb --no-defaults --socket='%s' %s <'%s/dump.sql'",
             server_socket(pair.copy), database_name(pair.db), server_dir(pair.primary));
    assert_int_equal(system(command), 0);
    database_run(pair.sql_copy, "SET GLOBAL read_only = 1; RESET MASTER");
}

/* The primary's log begins anew, and what the replica had received goes, too. */
static void begin_log_anew(void)
{
    database_run(pair.sql_copy, "STOP SLAVE");
    database_run(pair.sql, "RESET MASTER");
    database_run(pair.sql_copy, "RESET SLAVE; RESET MASTER; SET GLOBAL gtid_slave_pos = ''");
}

static const struct passing by_hand = {NULL, set_position};
static const struct passing by_dump = {dump, load_dump};
static const struct passing by_new_log = {NULL, begin_log_anew};

/* goes_on: replication is told to go on in spite of what it does not find. */
static void skip_some(const struct passing *how, int goes_on)
{
    tl_lock_options options = sync_options("x");
    tl_lock *lock;

    open_pair(1);
    await_rounds();
    database_run(pair.sql_copy, "STOP SLAVE SQL_THREAD");
    if (how->before != NULL)
        how->before();
    lock = granted(pair.first, "lost", "c1", &options);
    await_rounds();
    how->after();
    if (goes_on)
        database_run(pair.sql_copy, "SET GLOBAL slave_exec_mode = IDEMPOTENT");
    database_run(pair.sql_copy, "START SLAVE");
    if (goes_on) {
        await_rounds();
        await_copy();
        database_run(pair.sql_copy, "STOP SLAVE; SET GLOBAL slave_exec_mode = STRICT");
    } else {
        await_stopped_at(".tl_beat;");
    }
    server_kill9(pair.primary);
    take_writes();
    open_ops();
    if (goes_on) {
        assert_status(tl_promote(pair.ops, 1, "hook", "the primary is gone"), TL_REFUSED);
        assert_true(is_restored());
    } else {
        assert_status(tl_promote(pair.ops, 1, "hook", "the primary is gone"), TL_OK);
        expect_veto(2);
    }
    assert_int_not_equal(ask_now(pair.second, "lost"), TL_GRANTED);
    tl_lock_free(lock);
    close_pair();
}

/* Where each commit begins in the primary's log, since a position, that changed a trade. */
static size_t commits_of_trades(const char *since, uint64_t *places, size_t space)
{
    const uint64_t after = strtoull(strrchr(since, '-') + 1, NULL, 10);
    MYSQL_RES *events;
    MYSQL_ROW row;
    uint64_t number = 0, place = 0;
    size_t count = 0;

    assert_int_equal(mysql_query(pair.sql, "SHOW BINLOG EVENTS"), 0);
    events = mysql_store_result(pair.sql);
    while ((row = mysql_fetch_row(events)) != NULL) {
        if (strcmp(row[2], "Gtid") == 0) {
            number = strtoull(strrchr(row[5], '-') + 1, NULL, 10);
            place = strtoull(row[1], NULL, 10);
        } else if (number > after && strcmp(row[2], "Table_map") == 0 &&
                   strstr(row[5], ".trade_lock)") != NULL &&
                   (count == 0 || places[count - 1] != place)) {
            assert_true(count < space);
            places[count++] = place;
        }
    }
    mysql_free_result(events);
    return count;
}

static void await_applied_until(uint64_t place)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    char *there = NULL;

    database_run(pair.sql_copy,
                 "START SLAVE SQL_THREAD UNTIL MASTER_LOG_FILE = 'binlog.000001', "
                 "MASTER_LOG_POS = %llu",
                 (unsigned long long)place);
    do {
        assert_true(crew_now_ms() < end_ms);
        usleep(10 * 1000);
        free(there);
        there = database_replication(pair.sql_copy, "Exec_Master_Log_Pos");
    } while (strtoull(there, NULL, 10) < place);
    assert_int_equal(strtoull(there, NULL, 10), place);
    free(there);
    database_run(pair.sql_copy, "STOP SLAVE SQL_THREAD");
}

static void await_beats_of(tl_client *client)
{
    const uint64_t wanted = beats(client) + 2;

    AWAIT_WHILE(beats(client) < wanted);
}

/* In place of the first process one with these settings. */
static void begin_pair(const char *settings)
{
    open_pair(1);
    tl_client_close(pair.first);
    pair.first = open_with(file_with(both(), settings), 0);
}

/* The replica applies nothing more; returns since when. */
static char *hold_back(void)
{
    database_run(pair.sql_copy, "STOP SLAVE SQL_THREAD");
    return database_text(pair.sql, "SELECT @@gtid_binlog_pos");
}

static void pass_over_at(uint64_t place)
{
    await_applied_until(place);
    database_run(pair.sql_copy, "SET GLOBAL sql_slave_skip_counter = 1");
}

/* The replica passes over the commits of one trade, and then over whatever stops it.  at_once: the
 * primary dies before its process came to a round. */
static void pass_over_one(const char *settings, int at_once)
{
    tl_lock_options options = sync_options("x");
    uint64_t places[2] = {0};
    char *since;
    tl_lock *lock;

    begin_pair(settings);
    await_beats_of(pair.first);
    since = hold_back();
    lock = granted(pair.first, "lost", "c1", &options);
    await_beats_of(pair.second);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    await_beats_of(at_once ? pair.second : pair.first);
    assert_int_equal(commits_of_trades(since, places, 2), 2);
    free(since);
    if (at_once)
        server_kill9(pair.primary);
    pass_over_at(places[0]);
    if (at_once) {
        pass_over_at(places[1]);
        database_run(pair.sql_copy, "START SLAVE SQL_THREAD");
        apply_all();
    } else {
        database_run(pair.sql_copy, "START SLAVE SQL_THREAD");
        await_stopped_at(".tl_receipt;");
        for (unsigned i = 0; i < 10; i++) { /* the usual way out */
            database_run(pair.sql_copy,
                         "STOP SLAVE SQL_THREAD; SET GLOBAL sql_slave_skip_counter = 1; "
                         "START SLAVE SQL_THREAD");
            await_stopped_at("");
        }
        server_kill9(pair.primary);
    }
    assert_false(has_row(pair.sql_copy, "lost"));
    take_writes();
    promote();
    expect_veto(2);
    if (at_once)
        assert_int_equal(what_is_missing().steps, 2);
    assert_int_not_equal(ask_now(pair.second, "lost"), TL_GRANTED);
    tl_lock_free(lock);
    close_pair();
}

/* The send of a later attempt leaves nothing that a round removes: who holds it keeps it in mind. */
TEST(test_an_arming_is_passed_over)
{
    tl_lock_options first = sync_options("x"), retry = retry_options();
    uint64_t place = 0;
    char *since;
    tl_lock *lock;

    open_pair(1);
    end_lock(granted(pair.first, "armed", "c1", &first), TL_OUTCOME_NOT_SENT, TL_PROOF_NONE,
             TL_QUEUED);
    lock = granted(pair.first, "armed", "c1", &retry);
    await_copy();
    since = hold_back();
    assert_status(tl_lock_arm(lock, 600 * 1000), TL_OK);
    await_rounds();
    assert_int_equal(commits_of_trades(since, &place, 1), 1);
    free(since);
    server_kill9(pair.primary);
    pass_over_at(place);
    database_run(pair.sql_copy, "START SLAVE SQL_THREAD");
    apply_all();
    take_writes();
    promote();
    expect_veto(2);
    assert_int_equal(what_is_missing().steps, 1);
    tl_lock_free(lock);
    close_pair();
}

/* Of a process that died before its next round: whoever sweeps its session makes it. */
TEST(test_a_trade_of_the_dead_is_passed_over)
{
    tl_lock_options options = sync_options("x");
    uint64_t places[2] = {0};
    char *since;
    tl_lock *lock;

    begin_pair(SLOW);
    since = hold_back();
    lock = granted(pair.first, "lost", "c1", &options);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
    assert_int_equal(commits_of_trades(since, places, 2), 2);
    free(since);
    end_mine();
    do
        assert_status(tl_reap(pair.second, NULL), TL_OK);
    while (database_number(pair.sql, "SELECT COUNT(*) FROM tl_session WHERE ended_at IS NOT NULL "
                                     "AND swept_at IS NULL") > 0);
    pass_over_at(places[0]);
    pass_over_at(places[1]);
    database_run(pair.sql_copy, "START SLAVE SQL_THREAD");
    await_stopped_at(".tl_receipt;");
    close_pair();
}

/* ------------------------------------------------------------------ it passes over nothing -- */

static int count_warning(void *context, const tl_finding *finding)
{
    *(int *)context += strcmp(finding->check, "read_only of a replica") == 0 &&
                       finding->level == TL_FINDING_WARNING;
    return 0;
}

static int warns_of_replica(tl_client *client)
{
    int count = 0;

    (void)tl_doctor(client, count_warning, &count);
    return count;
}

/* A replica that takes writes lags as any other, which is no loss once it has caught up. */
TEST(test_a_replica_that_is_not_read_only)
{
    char mine[64];

    open_pair(1);
    snprintf(mine, sizeof mine, "%s", tl_client_session(pair.first));
    database_run(pair.sql_copy, "SET GLOBAL read_only = 0; STOP SLAVE SQL_THREAD");
    await_rounds(); /* beats are missing there */
    database_run(pair.sql_copy, "START SLAVE SQL_THREAD");
    await_number(pair.sql_copy,
                 "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "
                 "WHERE VARIABLE_NAME = 'SLAVES_RUNNING'",
                 1);
    open_ops();
    assert_int_equal(warns_of_replica(pair.ops), 1);
    assert_int_equal(warns_of_replica(pair.first), 0);
    await_copy();
    await_rounds();
    stop_writes();
    take_writes();
    promote();
    await_accepted();
    await_grant(pair.first, "s1");
    await_grant(pair.second, "s2");
    assert_string_equal(tl_client_session(pair.first), mine);
    close_pair();
}

/* The last of what was acknowledged never came: the list names it. */
TEST(test_some_of_the_log_is_missing)
{
    tl_lock_options options = sync_options("x");
    struct found found;
    char *token;
    tl_lock *lock;

    open_pair(1);
    await_rounds();
    /* What the replica has received it does not apply, and loses with its relay log. */
    database_run(pair.sql_copy, "STOP SLAVE SQL_THREAD");
    lock = granted(pair.first, "lost", "c1", &options);
    token = database_text(pair.sql, "SELECT LOWER(HEX(token)) FROM trade_lock "
                                    "WHERE serial_no = 'lost'");
    server_kill9(pair.primary);
    take_writes();
    promote();
    expect_veto(2);
    found = what_is_missing();
    assert_true(found.steps <= 1);
    assert_true(found.rows > 0);
    assert_int_equal(found.not_kept, 0);
    if (found.steps == 1) { /* no beat came after it */
        assert_string_equal(found.serial, "lost");
        assert_string_equal(found.token, token);
    }
    assert_int_not_equal(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    accept_as_two();
    await_grant(pair.first, "s1");
    free(token);
    tl_lock_free(lock);
    close_pair();
}

TEST(test_a_position_set_by_hand)
{
    skip_some(&by_hand, 0);
}

TEST(test_a_replica_made_of_an_old_dump)
{
    skip_some(&by_dump, 0);
}

TEST(test_a_log_that_begins_anew)
{
    skip_some(&by_new_log, 0);
}

TEST(test_beats_that_were_passed_over)
{
    skip_some(&by_hand, 1);
}

static void apply_in_parallel(const char *mode)
{
    database_run(pair.sql_copy,
                 "STOP SLAVE; SET GLOBAL slave_parallel_threads = 4; "
                 "SET GLOBAL slave_parallel_mode = '%s'; START SLAVE",
                 mode);
}

/* A replica that tries commits side by side, undoes them and begins anew passes over none. */
static void promote_one_in_parallel(const char *mode)
{
    tl_lock_options options = sync_options("x");
    char serial[16];

    open_pair(1);
    apply_in_parallel(mode);
    database_run(pair.sql_copy, "STOP SLAVE SQL_THREAD");
    for (unsigned i = 0; i < 50; i++) {
        tl_lock *lock;

        snprintf(serial, sizeof serial, "p%u", i);
        lock = granted(i % 2 ? pair.first : pair.second, serial, "c1", &options);
        assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        tl_lock_free(lock);
    }
    await_rounds();
    database_run(pair.sql_copy, "START SLAVE SQL_THREAD");
    server_kill9(pair.primary);
    apply_all();
    take_writes();
    promote();
    await_accepted();
    await_grant(pair.first, "s1");
    close_pair();
}

TEST(test_a_replica_in_parallel)
{
    promote_one_in_parallel("aggressive");
}

TEST(test_an_optimistic_replica)
{
    promote_one_in_parallel("optimistic");
}

/* Commits of two domains come to a replica in any order: what it has is no prefix. */
TEST(test_a_replica_out_of_order)
{
    open_pair(1);
    apply_in_parallel("optimistic");
    database_run(pair.sql, "SET gtid_domain_id = 7; CREATE TABLE reports (report INT); "
                           "INSERT INTO reports VALUES (1)");
    await_rounds();
    await_copy();
    server_kill9(pair.primary);
    take_writes();
    open_ops();
    assert_status(tl_promote(pair.ops, 1, "hook", "the primary is gone"), TL_REFUSED);
    assert_non_null(strstr(tl_error_message(), "gtid_slave_pos = "));
    assert_int_not_equal(ask_now(pair.second, "s1"), TL_GRANTED);
    close_pair();
}

TEST(test_one_trade_is_passed_over)
{
    pass_over_one(BEATING, 0);
}

TEST(test_one_trade_is_passed_over_at_last)
{
    pass_over_one("beat_ms=5s\nsession_ms=40s\nread_timeout_s=2\nconnect_timeout_s=4\n", 1);
}

/* Beats cover the grant that is lost; the sessions wait on the new server, and beat there, until it
 * is promoted.  Somebody else has written down before that it is another one. */
TEST(test_who_waits_counts_no_beats)
{
    tl_lock_options options = sync_options("x");
    struct found found;
    tl_lock *lock;

    open_pair(1);
    await_rounds();
    database_run(pair.sql_copy, "STOP SLAVE SQL_THREAD");
    lock = granted(pair.first, "lost", "c1", &options);
    await_rounds();
    server_kill9(pair.primary);
    database_run(pair.sql_copy, "INSERT INTO tl_restore (step, reason, account) VALUES ('found', "
                                "'it is another server than the one that was accepted', USER())");
    take_writes();
    usleep(3000 * 1000);
    promote();
    expect_veto(2);
    found = what_is_missing();
    assert_true(found.rows > 0);
    assert_int_not_equal(ask_now(pair.second, "lost"), TL_GRANTED);
    assert_int_not_equal(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    accept_as_two();
    await_grant(pair.first, "s1");
    tl_lock_free(lock);
    close_pair();
}

/* The same where the replica was never read-only: its beats are seen to be missing, and then there
 * are as many, since those who wait write them there. */
TEST(test_who_waits_has_not_caught_up)
{
    tl_lock_options options = sync_options("x");
    struct found found;
    tl_lock *lock;

    open_pair(1);
    database_run(pair.sql_copy, "SET GLOBAL read_only = 0");
    await_rounds();
    database_run(pair.sql_copy, "STOP SLAVE SQL_THREAD");
    lock = granted(pair.first, "lost", "c1", &options);
    await_rounds();
    server_kill9(pair.primary);
    usleep(3000 * 1000);
    take_writes();
    promote();
    expect_veto(2);
    found = what_is_missing();
    assert_true(found.rows > 0);
    assert_int_not_equal(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
    close_pair();
}

/* --------------------------------------------------------------------------------- filters -- */

/* What the log leaves out nobody has but the primary. */
TEST(test_a_log_with_a_filter)
{
    open_pair_with(1, "--binlog-ignore-db=elsewhere");
    await_rounds();
    database_run(pair.sql, "SET GLOBAL read_only = 1");
    await_copy();
    take_writes();
    promote();
    expect_veto(2);
    assert_int_equal(what_is_missing().not_kept, 2);
    close_pair();
}

struct told {
    tl_finding_level level;
    const char *found;
    int times;
};

static int take_told(void *context, const tl_finding *finding)
{
    struct told *told = context;

    told->times += strcmp(finding->check, "replication") == 0 && finding->level == told->level &&
                   strstr(finding->found, told->found) != NULL;
    return 0;
}

static void expect_told(tl_finding_level level, const char *found)
{
    struct told told = {level, found, 0};

    (void)tl_doctor(pair.ops, take_told, &told);
    assert_int_equal(told.times, 1);
}

/* A replica that leaves out what its primary committed; the last one does since it was started. */
TEST(test_a_replica_that_passes_over)
{
    static const struct {
        const char *name, *value, *otherwise;
    } settings[] = {{"replicate_do_db", "payments", ""},
                    {"replicate_ignore_db", "payments", ""},
                    {"replicate_do_table", "payments.ledger", ""},
                    {"replicate_ignore_table", "payments.ledger", ""},
                    {"replicate_wild_do_table", "payments.%", ""},
                    {"replicate_wild_ignore_table", "payments.ledger", ""},
                    {"replicate_rewrite_db", "payments->books", ""},
                    {"replicate_events_marked_for_skip", "FILTER_ON_SLAVE", "REPLICATE"},
                    {"sql_slave_skip_counter", "1", "0"},
                    {"gtid_slave_pos", "0-1-4000000,7-1-1", "0-1-4000000"},
                    {"slave_exec_mode", "IDEMPOTENT", "STRICT"},
                    {"slave_skip_errors", "1062", NULL}};
    const size_t count = sizeof settings / sizeof *settings;

    open_pair_with(1, "--slave-skip-errors=1062");
    take_writes();
    open_ops();
    for (size_t i = 0; i < count; i++) {
        const int is_number = settings[i].otherwise != NULL && settings[i].otherwise[0] == '0' &&
                              settings[i].otherwise[1] == '\0';
        const char *quote = is_number ? "" : "'";
        char found[128];

        snprintf(found, sizeof found, "%s = %s", settings[i].name, settings[i].value);
        if (settings[i].otherwise != NULL)
            database_run(pair.sql_copy, "SET GLOBAL %s = %s%s%s", settings[i].name, quote,
                         settings[i].value, quote);
        database_run(pair.sql_copy, "SET GLOBAL read_only = 1");
        expect_told(TL_FINDING_UNSAFE, found);
        database_run(pair.sql_copy, "SET GLOBAL read_only = 0");
        assert_status(tl_promote(pair.ops, 1, "hook", "the primary is gone"), TL_REFUSED);
        assert_non_null(strstr(tl_error_message(), found));
        if (settings[i].otherwise != NULL)
            database_run(pair.sql_copy, "SET GLOBAL %s = %s%s%s", settings[i].name, quote,
                         settings[i].otherwise, quote);
    }
    assert_int_equal(
        database_number(pair.sql_copy, "SELECT COUNT(*) FROM tl_restore WHERE step = 'promoted'"),
        0);
    close_pair();
}

static void expect_filter(const char *found)
{
    database_run(pair.sql_copy, "SET GLOBAL read_only = 1");
    expect_told(TL_FINDING_UNSAFE, found);
    database_run(pair.sql_copy, "SET GLOBAL read_only = 0");
    assert_status(tl_promote(pair.ops, 1, "hook", "the primary is gone"), TL_REFUSED);
    assert_non_null(strstr(tl_error_message(), found));
}

/* No variable shows what a connection with a name leaves out: it may be there for other data alone,
 * or stand still, as before a promotion. */
TEST(test_a_replica_with_a_named_connection)
{
    open_pair(1);
    take_writes();
    open_ops();
    database_run(pair.sql_copy, "CHANGE MASTER 'books' TO master_host = '127.0.0.1',"
                                " master_user = 'nobody', master_port = 9;"
                                "SET default_master_connection = 'books';"
                                "SET GLOBAL replicate_wild_ignore_table = 'payments.%%';"
                                "SET default_master_connection = ''");
    expect_filter("connection 'books'");
    database_run(pair.sql_copy, "RESET SLAVE 'books' ALL;"
                                "CREATE USER low@localhost; GRANT EXECUTE ON *.* TO low@localhost;"
                                "CREATE OR REPLACE DEFINER = low@localhost PROCEDURE"
                                " tl_connections() READS SQL DATA SHOW ALL SLAVES STATUS");
    expect_told(TL_FINDING_WARNING, "unknown");
    assert_status(tl_promote(pair.ops, 1, "hook", "the primary is gone"), TL_ACCESS_DENIED);
    assert_int_equal(
        database_number(pair.sql_copy, "SELECT COUNT(*) FROM tl_restore WHERE step = 'promoted'"),
        0);
    close_pair();
}

/* Nor what the unnamed one leaves out by domains and servers. */
TEST(test_a_replica_that_ignores_domains)
{
    static const char *const filters[][2] = {
        {"ignore_domain_ids = (7, 9)", "Replicate_Ignore_Domain_Ids = 7, 9"},
        {"do_domain_ids = (0)", "Replicate_Do_Domain_Ids = 0"},
        {"ignore_server_ids = (77)", "Replicate_Ignore_Server_Ids = 77"}};

    open_pair(1);
    take_writes();
    open_ops();
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        database_run(pair.sql_copy,
                     "RESET SLAVE ALL;"
                     "CHANGE MASTER TO master_host = '127.0.0.1', master_user = "
                     "'nobody', master_port = 9, %s",
                     filters[i][0]);
        expect_filter(filters[i][1]);
    }
    database_run(pair.sql_copy, "RESET SLAVE ALL");
    assert_int_equal(
        database_number(pair.sql_copy, "SELECT COUNT(*) FROM tl_restore WHERE step = 'promoted'"),
        0);
    close_pair();
}

TESTS_OF(promotion_replica, NULL, NULL)
