/*
 * The server's clock is set, forward and back, while payments are in doubt, while a process dies,
 * and before a purge.  What the rules rest on must hold in real time all the same.
 */
#include "stepping.h"

#include "client/clock_watch.h"
#include "workflows/house.h"
#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/admin.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define SETTINGS                                                                                   \
    "site=clock\nbeat_ms=100ms\nsession_ms=2s\nmax_hold_ms=2s\nexecute_ms=800ms\n"                 \
    "commit_ms=1s\nschedule=100ms\nattempts=500\nbusiness_lock_wait_s=1\n"
#define MARGIN "clock_margin_ms=100ms\n"
#define DAY_MS INT64_C(86400000)

static stepping *server_here;
static house self;

static void open_house(withdraw_kind kind, const char *settings)
{
    server_here = stepping_start();
    house_open(&self, kind, settings, stepping_server(server_here));
    house_account(&self, "C1", 1000000);
}

FIXTURE(close_house)
{
    house_close(&self);
    server_free(stepping_server(server_here));
    stepping_free(server_here);
}

/* From here on no session of the house beats, which would see what the clock does meanwhile. */
static void everybody_leaves(void)
{
    house_leave(&self);
    assert_int_equal(
        database_number(self.sql, "SELECT COUNT(*) FROM tl_session WHERE ended_at IS NULL"), 0);
}

/* A worker that goes on until it is stopped. */
static tl_worker *start_worker(void)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker *worker = NULL;

    options.threads = 2;
    options.idle_max_ms = 50;
    assert_status(tl_worker_start(&worker, self.workflows, &options), TL_OK);
    return worker;
}

/* Whether it became true in time. */
__attribute__((format(printf, 1, 2))) static int becomes(const char *format, ...)
{
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    char condition[600];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(condition, sizeof condition, format, arguments);
    va_end(arguments);
    while (!database_number(self.sql, "SELECT %s", condition)) {
        if (crew_now_ms() >= end_ms)
            return 0;
        usleep(10000);
    }
    return 1;
}

#define ROW(columns) "(SELECT " columns " FROM trade_lock WHERE lane = 'S')"
#define LANE(columns) "(SELECT " columns " FROM trade_lock WHERE lane = 'R')"

/* Forward 760 s: a grace of ten minutes is not over, and what is on its way may be paid.  The lane
 * is due then whatever its jitter, which is up to a quarter. */
TEST_IN(a_grace_is_not_ended, NULL, close_house)
{
    tl_worker *worker;

    open_house(WITHDRAW_WINDOW, SETTINGS "grace_ms=10m\ndeadline_ms=50s\n");
    house_rule(&self, "{\"kind\":\"drop_before\",\"count\":1}");
    house_expect(&self, "W1", "C1", 10, TL_IN_DOUBT);
    worker = start_worker();
    assert_true(becomes("%s", ROW("not_found_since IS NOT NULL")));
    stepping_set(server_here, 760000);
    /* The channel was asked again since, and the grace began anew. */
    assert_true(becomes("status = 'F' OR not_found_since > UTC_TIMESTAMP(6) - INTERVAL 9 "
                        "MINUTE FROM trade_lock WHERE lane = 'S'"));
    tl_worker_free(worker);
    house_row(&self, "W1", "P 1 1 -");
}

/* Back 12 s: the channel's window, and with it the deadline, comes no later. */
TEST_IN(a_window_is_not_stretched, NULL, close_house)
{
    int64_t asked_ms;
    tl_worker *worker;

    open_house(WITHDRAW_IDEMPOTENT, SETTINGS "grace_ms=400ms\ndeadline_ms=3s\n" MARGIN);
    asked_ms = crew_now_ms();
    house_rule(&self, "{\"kind\":\"drop_before\",\"count\":1}");
    house_expect(&self, "W1", "C1", 10, TL_IN_DOUBT);
    stepping_set(server_here, -12000);
    while (crew_now_ms() < asked_ms + 4000)
        usleep(10000);
    worker = start_worker();
    assert_true(becomes("status = 'Y' OR (SELECT parked IS NOT NULL FROM trade_lock "
                        "WHERE lane = 'R') FROM trade_lock WHERE lane = 'S'"));
    tl_worker_free(worker);
    house_row(&self, "W1", "P 1 1 -");
    house_retry_row(&self, "W1", "F", "in doubt after the deadline");
}

/* Forward 30 days and back: what was put back meanwhile is not due in a month. */
TEST_IN(no_lane_is_due_in_a_month, NULL, close_house)
{
    tl_worker *worker;

    open_house(WITHDRAW_IDEMPOTENT, SETTINGS "grace_ms=3s\ndeadline_ms=50s\n");
    house_rule(&self, "{\"kind\":\"drop_after\",\"count\":1}");
    house_rule(&self, "{\"kind\":\"unreachable\",\"endpoint\":\"query\",\"count\":0}");
    house_expect(&self, "W1", "C1", 10, TL_IN_DOUBT);
    worker = start_worker();
    stepping_set(server_here, 30 * DAY_MS);
    assert_true(becomes("%s", LANE("updated_at > UTC_TIMESTAMP(6) - INTERVAL 1 DAY AND "
                                   "status = 'F' AND next_run_at > UTC_TIMESTAMP(6)")));
    stepping_set(server_here, 0);
    sim_expect(&self.sim, "DELETE", "/v1/faults", NULL, 200, NULL, NULL);
    if (!becomes("%s", ROW("status = 'Y'")))
        fail_msg("the lane stays due in %lld s",
                 database_number(self.sql, "SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP()," LANE(
                                               "next_run_at") ")"));
    tl_worker_free(worker);
    house_books(&self, 1);
}

/* Forward 100 days: what succeeded a moment ago is not old, whoever asks for the purge. */
TEST_IN(fresh_trades_are_not_purged, NULL, close_house)
{
    tl_purge_options options = TL_PURGE_OPTIONS_INIT;
    tl_purged purged;
    char *text;

    options.older_ms = 90 * DAY_MS;
    open_house(WITHDRAW_IDEMPOTENT, SETTINGS "grace_ms=3s\ndeadline_ms=50s\nretention_ms=1d\n");
    house_expect(&self, "W1", "C1", 10, TL_SUCCEEDED);
    stepping_set(server_here, 100 * DAY_MS);
    assert_status(tl_purge(self.client, &options, &purged), TL_SERVER_UNSAFE);
    house_row(&self, "W1", "Y 1 1 -");
    /* Once it is known, the procedure itself says so: another machine may be off, too. */
    assert_true(becomes("steps = 1 AND settled = 1 FROM tl_clock"));
    database_run(self.sql, "CALL tl_purge_trades(0, %lld, 100, '', '', '', @purged)",
                 (long long)(90 * DAY_MS));
    text = database_text(self.sql, "SELECT SUBSTRING_INDEX(@purged, ' ', 5)");
    assert_string_equal(text, "0 1 C1 W1 WITHDRAW");
    free(text);
}

/* Nobody has looked at the clock since it was set, and the purge is typed by hand. */
TEST_IN(a_purge_by_hand_takes_nothing_fresh, NULL, close_house)
{
    char *text;

    open_house(WITHDRAW_IDEMPOTENT, "site=clock\nbeat_ms=60s\nsession_ms=10m\njanitor=0\n");
    house_expect(&self, "W1", "C1", 10, TL_SUCCEEDED);
    house_expect(&self, "W2", "C1", 10, TL_SUCCEEDED);
    database_run(self.sql, "UPDATE trade_lock SET updated_at = updated_at - INTERVAL 95 DAY, "
                           "send_until = NULL, deadline_at = NULL WHERE serial_no = 'W2'");
    stepping_set(server_here, 100 * DAY_MS);
    database_run(self.sql, "CALL tl_purge_trades(0, %lld, 100, '', '', '', @purged)",
                 (long long)(90 * DAY_MS));
    text = database_text(
        self.sql, "SELECT CONCAT_WS(',', SUBSTRING_INDEX(@purged, ' ', 5), steps) FROM tl_clock");
    assert_string_equal(text, "1 2 C1 W2 WITHDRAW,0");
    free(text);
    house_row(&self, "W1", "Y 1 1 -");
}

/* As a server finds its data that was started by a wrong clock: all of it is a hundred days old. */
TEST_IN(a_purge_by_hand_before_anybody_lived, NULL, close_house)
{
    char *text;

    open_house(WITHDRAW_IDEMPOTENT, SETTINGS "grace_ms=3s\ndeadline_ms=50s\n");
    house_expect(&self, "W1", "C1", 10, TL_SUCCEEDED);
    everybody_leaves();
    database_run(self.sql,
                 "UPDATE trade_lock SET updated_at = updated_at - INTERVAL 100 DAY, "
                 "send_until = NULL, deadline_at = NULL; "
                 "UPDATE tl_session SET started_at = started_at - INTERVAL 100 DAY, "
                 "alive_until = alive_until - INTERVAL 100 DAY, "
                 "ended_at = ended_at - INTERVAL 100 DAY, swept_at = swept_at - INTERVAL 100 DAY");
    database_run(self.sql, "CALL tl_purge_trades(0, %lld, 100, '', '', '', @purged)",
                 (long long)(90 * DAY_MS));
    text = database_text(self.sql, "SELECT SUBSTRING_INDEX(@purged, ' ', 5)");
    assert_string_equal(text, "0 1 C1 W1 WITHDRAW");
    free(text);
    house_row(&self, "W1", "Y 1 1 -");
}

static atomic_int disbelieved;

static void count_disbelieved(void *context, const tl_log_line *line)
{
    (void)context;
    if (line->level == TL_ALARM && strstr(line->message, "which is not believed") != NULL)
        atomic_fetch_add(&disbelieved, 1);
}

static tl_client *client_without_janitor(const char *settings)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;
    char of_site[300], *file;

    snprintf(of_site, sizeof of_site, "site=clock\n%s", settings);
    file = database_option_file_at(self.db, server_socket(stepping_server(server_here)), of_site);
    options.config_file = file;
    options.flags = TL_CLIENT_NO_JANITOR;
    options.log = count_disbelieved;
    assert_status(tl_client_open(&client, &options), TL_OK);
    free(file);
    return client;
}

/* A claim was made by the clock as it was: by another one nothing is sent for it. */
TEST_IN(nothing_is_armed_by_another_clock, NULL, close_house)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_ending ending = TL_ENDING_INIT;
    tl_key key = {"ARM", "C1", WITHDRAW_OP};
    tl_client *client;
    tl_lock *lock = NULL;

    open_house(WITHDRAW_IDEMPOTENT, SETTINGS "grace_ms=3s\ndeadline_ms=50s\njanitor=0\n");
    client = client_without_janitor("beat_ms=60s\nsession_ms=10m\n" MARGIN);
    options.max_hold_ms = 60000;
    assert_status(tl_lock_new(&lock, client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    ending.outcome = TL_OUTCOME_UNKNOWN;
    assert_status(tl_lock_finish(lock, &ending), TL_IN_DOUBT);
    tl_lock_free(lock);
    options.lane = TL_LANE_RETRY;
    assert_status(tl_lock_new(&lock, client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    stepping_set(server_here, -12000);
    assert_status(tl_lock_arm(lock, 1000), TL_TRY_AGAIN);
    assert_int_equal(database_number(self.sql, "SELECT %s", ROW("sends")), 1);
    /* Not either while others settle it. */
    assert_true(becomes("steps > 0 FROM tl_clock"));
    stepping_set(server_here, 0);
    assert_status(tl_lock_arm(lock, 1000), TL_TRY_AGAIN);
    assert_int_equal(database_number(self.sql, "SELECT %s", ROW("sends")), 1);
    tl_lock_free(lock);
    tl_client_close(client);
}

/* ------------------------------------------------------------ while nobody lived -- */

static int find_clock_step(void *context, const tl_finding *finding)
{
    if (strcmp(finding->check, "clock step") == 0)
        *(int *)context = (int)finding->level;
    return 0;
}

static int level_of_step(tl_client *client, tl_status expected)
{
    int level = -1;

    assert_status(tl_doctor(client, find_clock_step, &level), expected);
    return level;
}

/* The database itself shows that its clock went back; a job from cron settles it. */
TEST_IN(a_step_while_nobody_lived, NULL, close_house)
{
    tl_reaped reaped;
    tl_client *late;

    open_house(WITHDRAW_IDEMPOTENT, SETTINGS "grace_ms=3s\ndeadline_ms=50s\njanitor=0\n");
    house_rule(&self, "{\"kind\":\"drop_before\",\"count\":1}");
    house_expect(&self, "W1", "C1", 10, TL_IN_DOUBT);
    assert_int_equal(level_of_step(self.client, TL_OK), -1);
    everybody_leaves();
    stepping_set(server_here, -3600000);
    late = client_without_janitor("beat_ms=50ms\nsession_ms=200ms\n" MARGIN);
    assert_int_equal(level_of_step(late, TL_SERVER_UNSAFE), TL_FINDING_UNSAFE);
    assert_int_not_equal(mysql_query(self.sql, "CALL tl_purge_trades(0, 7776000000, 10, '', "
                                               "'', '', @purged)"),
                         0);
    assert_status(tl_reap(late, &reaped), TL_OK);
    assert_int_equal(level_of_step(late, TL_OK), TL_FINDING_OK);
    assert_int_equal(database_number(self.sql, "SELECT steps FROM tl_clock"), 1);
    /* The deadline is earlier by an hour, about, and the send is not over for one hold. */
    assert_int_equal(database_number(self.sql,
                                     "SELECT deadline_at BETWEEN UTC_TIMESTAMP(6) - INTERVAL "
                                     "1 MINUTE AND UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE AND "
                                     "send_until <= UTC_TIMESTAMP(6) + INTERVAL 2 SECOND AND "
                                     "step = 'clock' FROM trade_lock WHERE lane = 'S'"),
                     1);
    assert_int_equal(database_number(self.sql, "SELECT %s",
                                     LANE("next_run_at <= UTC_TIMESTAMP(6) + INTERVAL 2 SECOND")),
                     1);
    tl_client_close(late);
}

/* The next process of this boot sees how far it was set, forward too, and no more than that. */
TEST_IN(any_step_while_nobody_lived_is_known, NULL, close_house)
{
    static const int64_t sizes_ms[] = {700000, -3600000, 5000};
    int64_t ahead_ms = 0;
    tl_client *late;

    open_house(WITHDRAW_WINDOW, SETTINGS "grace_ms=10m\ndeadline_ms=50s\n" MARGIN);
    house_rule(&self, "{\"kind\":\"drop_before\",\"count\":1}");
    house_expect(&self, "W1", "C1", 10, TL_IN_DOUBT);
    everybody_leaves();
    for (int i = 0; i < 3; i++) {
        stepping_set(server_here, ahead_ms += sizes_ms[i]);
        late = client_without_janitor("beat_ms=50ms\nsession_ms=10s\n" MARGIN);
        assert_int_equal(database_number(self.sql, "SELECT steps FROM tl_clock"), i + 1);
        assert_in_range(database_number(self.sql,
                                        "SELECT ABS(size_us - %lld) DIV 1000 FROM tl_clock_step "
                                        "ORDER BY step_no DESC LIMIT 1",
                                        (long long)sizes_ms[i] * 1000),
                        0, 300);
        tl_client_close(late);
        /* Nothing was set since. */
        late = client_without_janitor("beat_ms=50ms\nsession_ms=10s\n" MARGIN);
        assert_int_equal(database_number(self.sql, "SELECT steps FROM tl_clock"), i + 1);
        tl_client_close(late);
    }
}

/* Rows alone tell of a jump by years, as a forged one does: that is not believed, with one alarm, and
 * once no row tells of it the clock is clear. */
TEST_IN(years_are_not_inferred, NULL, close_house)
{
    tl_client *late;

    open_house(WITHDRAW_WINDOW, SETTINGS "grace_ms=10m\ndeadline_ms=50s\n" MARGIN);
    house_rule(&self, "{\"kind\":\"drop_before\",\"count\":1}");
    house_expect(&self, "W1", "C1", 10, TL_IN_DOUBT);
    everybody_leaves();
    database_run(self.sql, "UPDATE tl_session SET boot_id = UUID(); "
                           "INSERT INTO trade_lock_low_water (op_code, low_water) VALUES "
                           "('FORGED', '2038-01-01')");
    late = client_without_janitor("beat_ms=50ms\nsession_ms=10s\n" MARGIN);
    assert_true(becomes("MAX(beat) > 3 FROM tl_session WHERE ended_at IS NULL"));
    assert_int_equal(database_number(self.sql, "SELECT steps FROM tl_clock"), 0);
    assert_int_equal(clock_watch_check(late), TL_TRY_AGAIN);
    assert_int_equal(atomic_load(&disbelieved), 1);
    database_run(self.sql, "DELETE FROM trade_lock_low_water WHERE op_code = 'FORGED'");
    assert_true(becomes("MAX(beat) > 9 FROM tl_session WHERE ended_at IS NULL"));
    assert_int_equal(clock_watch_check(late), TL_OK);
    assert_int_equal(database_number(self.sql, "SELECT steps FROM tl_clock"), 0);
    tl_client_close(late);
}

/* What another boot, or another machine, knew says nothing. */
TEST_IN(another_boot_is_believed, NULL, close_house)
{
    tl_client *late;

    open_house(WITHDRAW_WINDOW, SETTINGS "grace_ms=10m\ndeadline_ms=50s\n" MARGIN);
    everybody_leaves();
    assert_int_equal(database_number(self.sql, "SELECT COUNT(*) FROM tl_session WHERE boot_id IS "
                                               "NOT NULL AND clock_least_us <= clock_most_us"),
                     1);
    database_run(self.sql, "UPDATE tl_session SET boot_id = UUID()");
    stepping_set(server_here, 700000);
    late = client_without_janitor("beat_ms=50ms\nsession_ms=10s\n" MARGIN);
    assert_int_equal(database_number(self.sql, "SELECT steps FROM tl_clock"), 0);
    tl_client_close(late);
}

/* ------------------------------------------------------- while others adjust -- */

static MYSQL *adjusting;

static void *adjust_for_a_while(void *context)
{
    usleep(1000 * *(const unsigned *)context);
    mysql_close(adjusting);
    return NULL;
}

/* Meanwhile a process begins that sees the clock set, and has to record that. */
static void begin_while_rows_are_adjusted(unsigned for_ms)
{
    pthread_t other;

    adjusting = database_connect(self.db);
    database_run(adjusting, "START TRANSACTION; SELECT steps INTO @steps FROM tl_clock FOR UPDATE");
    assert_int_equal(pthread_create(&other, NULL, adjust_for_a_while, &for_ms), 0);
    tl_client_close(client_without_janitor("beat_ms=50ms\nsession_ms=200ms\n" MARGIN));
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(database_number(self.sql, "SELECT steps FROM tl_clock"), 1);
}

/* A process that begins just then waits for its turn. */
TEST_IN(a_process_begins_while_rows_are_adjusted, NULL, close_house)
{
    open_house(WITHDRAW_IDEMPOTENT, SETTINGS "grace_ms=3s\ndeadline_ms=50s\njanitor=0\n");
    everybody_leaves();
    stepping_set(server_here, -3600000);
    begin_while_rows_are_adjusted(300);
}

/* However long it waits, the jump is on record for when it may have been. */
TEST_IN(a_record_that_waits_is_as_early, NULL, close_house)
{
    long long set_us;

    open_house(WITHDRAW_IDEMPOTENT, SETTINGS "grace_ms=3s\ndeadline_ms=50s\njanitor=0\n");
    everybody_leaves();
    stepping_set(server_here, 700000);
    set_us = database_number(self.sql,
                             "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))");
    begin_while_rows_are_adjusted(3000);
    assert_true(database_number(self.sql, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', "
                                          "earliest_at) FROM tl_clock_step") <= set_us);
}

/* ------------------------------------------------------- between two looks -- */

/* Of itself nobody looks at the clock while a test lasts. */
#define LONELY                                                                                     \
    "site=clock\nbeat_ms=20s\nsession_ms=10m\njanitor=0\nmax_hold_ms=2s\n"                         \
    "execute_ms=800ms\ncommit_ms=1s\nschedule=100ms\nattempts=500\n"                               \
    "grace_ms=3s\ndeadline_ms=50s\n"

/* A worker has put it back, by the right clock, and nobody knows of the other one. */
#define LOOKED_AT                                                                                  \
    "next_run_at > UTC_TIMESTAMP(6) + INTERVAL 2 SECOND AND updated_at <= UTC_TIMESTAMP(6) AND "   \
    "EXISTS (SELECT 1 FROM tl_clock WHERE steps = 0) FROM trade_lock WHERE lane = 'R'"

/* The clock is right again as soon as the trade has its row. */
static void *set_right(void *context)
{
    MYSQL *sql = database_connect(self.db);

    (void)context;
    for (int i = 0; i < PATIENCE_MS; i++) {
        if (database_number(sql, "SELECT COUNT(*) FROM trade_lock") > 0)
            break;
        usleep(1000);
    }
    stepping_set(server_here, 0);
    mysql_close(sql);
    return NULL;
}

/* Forward 700 s while a trade is asked for, and back before anybody looks.  Its holder and a worker
 * write its rows anew by the right clock, but its send would be over in 700 s, and its deadline
 * with it.  What was sent came too late for the channel. */
TEST_IN(a_trade_of_a_moment_is_found, NULL, close_house)
{
    tl_reaped reaped;
    tl_client *cron;
    tl_worker *worker;
    pthread_t setter;

    open_house(WITHDRAW_WINDOW, LONELY);
    house_rule(&self, "{\"kind\":\"slow\",\"delay_ms\":1500,\"count\":1}");
    house_rule(&self, "{\"kind\":\"not_found_first\",\"endpoint\":\"query\",\"count\":0}");
    stepping_set(server_here, 700000);
    assert_int_equal(pthread_create(&setter, NULL, set_right, NULL), 0);
    house_expect(&self, "W1", "C1", 10, TL_IN_DOUBT);
    assert_int_equal(pthread_join(setter, NULL), 0);
    worker = start_worker();
    assert_true(becomes(LOOKED_AT));
    sim_expect(&self.sim, "DELETE", "/v1/faults", NULL, 200, NULL, NULL);
    /* Its own looks come in between as often as they can. */
    cron = client_without_janitor("beat_ms=20ms\nsession_ms=200ms\n" MARGIN);
    assert_status(tl_reap(cron, &reaped), TL_OK);
    assert_int_equal(database_number(self.sql, "SELECT steps = 1 AND settled = 1 FROM tl_clock"),
                     1);
    assert_int_equal(database_number(self.sql, "SELECT %s",
                                     ROW("deadline_at <= UTC_TIMESTAMP(6) + "
                                         "INTERVAL 50 SECOND")),
                     1);
    assert_true(becomes("status = 'F' FROM trade_lock WHERE lane = 'S'"));
    /* What is settled is not found again. */
    assert_status(tl_reap(cron, &reaped), TL_OK);
    assert_int_equal(database_number(self.sql, "SELECT steps FROM tl_clock"), 1);
    tl_client_close(cron);
    tl_worker_free(worker);
    house_books(&self, 0);
}

/* As above, and the clock is set forward once more before anybody searched.  The row was written by
 * the clock before, and until when its send is under way by the one before that. */
TEST_IN(a_send_of_a_moment_is_over_in_one_hold, NULL, close_house)
{
    tl_reaped reaped;
    tl_client *cron;
    tl_worker *worker;
    pthread_t setter;

    open_house(WITHDRAW_WINDOW, LONELY);
    house_rule(&self, "{\"kind\":\"slow\",\"delay_ms\":1500,\"count\":1}");
    house_rule(&self, "{\"kind\":\"not_found_first\",\"endpoint\":\"query\",\"count\":0}");
    stepping_set(server_here, 700000);
    assert_int_equal(pthread_create(&setter, NULL, set_right, NULL), 0);
    house_expect(&self, "W1", "C1", 10, TL_IN_DOUBT);
    assert_int_equal(pthread_join(setter, NULL), 0);
    worker = start_worker();
    assert_true(becomes(LOOKED_AT));
    tl_worker_free(worker);
    stepping_set(server_here, 5000);
    cron = client_without_janitor("beat_ms=20ms\nsession_ms=200ms\n" MARGIN);
    assert_status(tl_reap(cron, &reaped), TL_OK);
    assert_int_equal(database_number(self.sql, "SELECT steps = 1 AND settled = 1 AND size_us > 0 "
                                               "FROM tl_clock JOIN tl_clock_step"),
                     1);
    assert_int_equal(database_number(self.sql, "SELECT %s",
                                     ROW("send_until <= UTC_TIMESTAMP(6) + INTERVAL 2 SECOND")),
                     1);
    assert_int_equal(database_number(self.sql, "SELECT %s",
                                     LANE("next_run_at <= UTC_TIMESTAMP(6) + INTERVAL 2 SECOND")),
                     1);
    tl_client_close(cron);
}

static tl_lock *new_lock(tl_client *client, const char *serial_no, tl_lane lane,
                         int64_t max_hold_ms)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_key key = {serial_no, "C1", WITHDRAW_OP};
    tl_lock *lock = NULL;

    options.lane = lane;
    options.max_hold_ms = max_hold_ms;
    assert_status(tl_lock_new(&lock, client, &key, &options), TL_OK);
    return lock;
}

static void finish(tl_lock *lock, tl_outcome outcome, tl_status expected)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = outcome;
    if (outcome == TL_OUTCOME_FAILURE) {
        ending.proof = TL_PROOF_DECLINED;
        ending.retryable = 1;
    }
    assert_status(tl_lock_finish(lock, &ending), expected);
    tl_lock_free(lock);
}

/* It has two seconds to be sent. */
static void ask_and_finish(tl_client *client, const char *serial_no, tl_outcome outcome,
                           tl_status expected)
{
    tl_lock *lock = new_lock(client, serial_no, TL_LANE_SYNC, 2000);

    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    finish(lock, outcome, expected);
}

/* Then it is armed: a send that has a minute. */
static tl_lock *arm_for_a_minute(tl_client *client)
{
    tl_lock *lock;

    ask_and_finish(client, "MINUTE", TL_OUTCOME_UNKNOWN, TL_IN_DOUBT);
    lock = new_lock(client, "MINUTE", TL_LANE_RETRY, 2000);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    assert_status(tl_lock_arm(lock, 60000), TL_OK);
    return lock;
}

/* By a process that begins. */
static void record_jumps(unsigned expected)
{
    tl_client_close(client_without_janitor("beat_ms=20ms\nsession_ms=10s\n" MARGIN));
    assert_int_equal(database_number(self.sql, "SELECT steps FROM tl_clock"), expected);
}

/* The clock jumped so often, and once all rows are adjusted the send may go on for a minute. */
static void expect_a_minute(unsigned jumps)
{
    tl_client *cron = client_without_janitor("beat_ms=20ms\nsession_ms=10s\n" MARGIN);
    tl_reaped reaped;

    assert_status(tl_reap(cron, &reaped), TL_OK);
    tl_client_close(cron);
    assert_int_equal(database_number(self.sql, "SELECT steps FROM tl_clock WHERE settled = steps"),
                     jumps);
    assert_in_range(database_number(self.sql,
                                    "SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(6), send_until) "
                                    "FROM trade_lock WHERE serial_no = 'MINUTE' AND lane = 'S'"),
                    45, 60);
}

/* Two jumps at once: by which clock the row was written is not certain.  All the same the send may
 * be under way for as long as its arming said. */
TEST_IN(a_send_of_a_long_hold_is_not_forgotten, NULL, close_house)
{
    open_house(WITHDRAW_WINDOW, LONELY);
    finish(arm_for_a_minute(self.client), TL_OUTCOME_UNKNOWN, TL_IN_DOUBT);
    for (unsigned i = 1; i <= 2; i++) {
        stepping_set(server_here, i == 1 ? 700000 : 0);
        record_jumps(i);
    }
    expect_a_minute(2);
}

/* Two jumps forward which one look sees as one.  The row was written between them. */
TEST_IN(a_send_before_two_jumps_is_not_forgotten, NULL, close_house)
{
    tl_lock *lock;

    open_house(WITHDRAW_WINDOW, LONELY);
    lock = arm_for_a_minute(self.client);
    stepping_set(server_here, 700000);
    finish(lock, TL_OUTCOME_UNKNOWN, TL_IN_DOUBT);
    stepping_set(server_here, 1400000);
    record_jumps(1);
    expect_a_minute(1);
}

static void *ask_for(void *lock)
{
    CREW_STATUS(tl_lock_ask(lock, 0), TL_GRANTED);
    return NULL;
}

static tl_lock *new_reclaim(int64_t max_hold_ms)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_key key = {"MINUTE", "C1", WITHDRAW_OP};
    tl_lock *lock = NULL;

    options.max_hold_ms = max_hold_ms;
    options.flags = TL_ASK_RECLAIM;
    options.reclaim_epoch = 1;
    assert_status(tl_lock_new(&lock, self.client, &key, &options), TL_OK);
    return lock;
}

/* A reclaim has begun by one clock, and is written by the next. */
TEST_IN(a_reclaim_across_a_jump_is_not_forgotten, NULL, close_house)
{
    MYSQL *holding;
    pthread_t asking;
    tl_lock *lock;

    open_house(WITHDRAW_WINDOW, LONELY);
    ask_and_finish(self.client, "MINUTE", TL_OUTCOME_FAILURE, TL_FAILED);
    lock = new_reclaim(60000);
    holding = database_connect(self.db);
    /* The statement has begun, and waits for the table that its triggers write. */
    database_run(holding, "LOCK TABLES trade_lock_past WRITE");
    assert_int_equal(pthread_create(&asking, NULL, ask_for, lock), 0);
    assert_true(becomes("COUNT(*) FROM information_schema.processlist WHERE state = "
                        "'Waiting for table metadata lock'"));
    stepping_set(server_here, 700000);
    mysql_close(holding);
    assert_int_equal(pthread_join(asking, NULL), 0);
    finish(lock, TL_OUTCOME_UNKNOWN, TL_IN_DOUBT);
    record_jumps(1);
    expect_a_minute(1);
}

static void *adjust_a_page(void *connection)
{
    database_run(connection, "CALL tl_clock_settle(1000, UUID(), 'test', @settled)");
    return NULL;
}

/* The rows are adjusted in one statement, which waits at the first one.  Behind it a trade is tried
 * anew meanwhile. */
TEST_IN(a_send_beside_the_adjustment_is_not_forgotten, NULL, close_house)
{
    MYSQL *holding, *janitor;
    pthread_t settling;
    tl_lock *lock;
    char *until;

    open_house(WITHDRAW_WINDOW, LONELY);
    ask_and_finish(self.client, "FIRST", TL_OUTCOME_UNKNOWN, TL_IN_DOUBT);
    ask_and_finish(self.client, "MINUTE", TL_OUTCOME_FAILURE, TL_FAILED);
    for (unsigned i = 1; i <= 2; i++) {
        stepping_set(server_here, i == 1 ? 700000 : 0);
        record_jumps(i);
    }
    holding = database_connect(self.db);
    janitor = database_connect(self.db);
    database_run(holding, "START TRANSACTION; SELECT rev INTO @rev FROM trade_lock WHERE "
                          "cust_no = 'C1' AND serial_no = 'FIRST' AND op_code = 'WITHDRAW' "
                          "FOR UPDATE");
    assert_int_equal(pthread_create(&settling, NULL, adjust_a_page, janitor), 0);
    for (int i = 0; database_transactions(self.sql, "LOCK WAIT", "1") == 0 && i < 1000; i++)
        usleep(10000);
    sleep(2);
    lock = new_reclaim(60000);
    ask_for(lock);
    finish(lock, TL_OUTCOME_UNKNOWN, TL_IN_DOUBT);
    until = database_text(self.sql, "SELECT send_until FROM trade_lock WHERE serial_no = 'MINUTE' "
                                    "AND lane = 'S'");
    mysql_close(holding);
    assert_int_equal(pthread_join(settling, NULL), 0);
    mysql_close(janitor);
    assert_int_equal(database_number(self.sql,
                                     "SELECT step = 'clock' AND send_until >= '%s' FROM "
                                     "trade_lock WHERE serial_no = 'MINUTE' AND "
                                     "lane = 'S'",
                                     until),
                     1);
    free(until);
    expect_a_minute(2);
}

/* What accepting a restored server lets a send take stands on the row alone. */
TEST_IN(a_restored_hold_is_not_forgotten, NULL, close_house)
{
    tl_reaped reaped;
    tl_client *operator;

    open_house(WITHDRAW_WINDOW, LONELY);
    operator= client_without_janitor("beat_ms=20ms\nsession_ms=10s\nmax_hold_ms=60s\n" MARGIN);
    ask_and_finish(self.client, "MINUTE", TL_OUTCOME_UNKNOWN, TL_IN_DOUBT);
    assert_status(tl_restore_declare(operator, "ann", "promoted"), TL_OK);
    database_propose(self.sql);
    assert_status(tl_restore_accept(operator, "bob", "compared", NULL), TL_OK);
    tl_client_close(operator);
    stepping_set(server_here, -700000);
    operator= client_without_janitor("beat_ms=20ms\nsession_ms=10s\n" MARGIN);
    assert_int_equal(database_number(self.sql, "SELECT steps FROM tl_clock"), 1);
    assert_status(tl_reap(operator, & reaped), TL_OK);
    assert_int_equal(database_number(self.sql, "SELECT settled FROM tl_clock"), 1);
    assert_in_range(database_number(self.sql, "SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(6), "
                                              "send_until) FROM trade_lock WHERE serial_no = "
                                              "'MINUTE' AND lane = 'S'"),
                    50, 60);
    tl_client_close(operator);
}

/* ------------------------------------------------------- behind the low-water mark -- */

/* It asks, and is killed before its first beat. */
static void ask_and_die(void *context, int number)
{
    tl_client *client = client_without_janitor("beat_ms=60s\nsession_ms=10m\nclock_margin_ms=1h\n");
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_key key = {"BEHIND", "C1", WITHDRAW_OP};
    tl_lock *lock = NULL;

    (void)context;
    (void)number;
    options.max_hold_ms = 1000;
    assert_status(tl_lock_new(&lock, client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    raise(SIGKILL);
}

TEST_IN(what_a_dead_process_held_is_found, NULL, close_house)
{
    tl_reaped reaped;
    tl_client *cron;
    pid_t child;

    open_house(WITHDRAW_IDEMPOTENT, SETTINGS "grace_ms=3s\ndeadline_ms=50s\njanitor=0\n");
    house_expect(&self, "W1", "C1", 10, TL_SUCCEEDED);
    everybody_leaves();
    cron = client_without_janitor("beat_ms=50ms\nsession_ms=200ms\n");
    /* Its mark has come by the trade that is finished. */
    do
        assert_status(tl_reap(cron, &reaped), TL_OK);
    while (!database_number(self.sql, "SELECT EXISTS (SELECT 1 FROM trade_lock_low_water w "
                                      "JOIN trade_lock t USING (op_code) WHERE "
                                      "w.low_water > t.next_run_at)"));
    tl_client_close(cron);
    stepping_set(server_here, -60000);
    child = crew_fork(ask_and_die, NULL, 0);
    assert_int_not_equal(crew_wait(child), 0);
    stepping_set(server_here, 0);
    assert_int_equal(database_number(self.sql, "SELECT COUNT(*) FROM trade_lock t JOIN "
                                               "trade_lock_low_water w USING (op_code) WHERE "
                                               "t.serial_no = 'BEHIND' AND t.status = 'P' AND "
                                               "t.next_run_at < w.low_water"),
                     1);
    database_run(self.sql, "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6) "
                           "WHERE ended_at IS NULL");
    /* It does not see the clock set, since that would begin the marks anew. */
    cron = client_without_janitor("beat_ms=50ms\nsession_ms=200ms\nclock_margin_ms=1h\n");
    assert_status(tl_reap(cron, &reaped), TL_OK);
    assert_int_equal(reaped.opened, 1);
    tl_client_close(cron);
}

TESTS_OF(steps, NULL, NULL)
