/*
 * Business rows that are declared, when their moment does not come at once: endings that cannot be
 * written, are put right and written later; failures tried anew; many trades at once; a server that
 * dies.  After each answer the rows are compared with it.
 */
#include "payout.h"
#include "support/crew.h"
#include "support/theme.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* ----------------------------------------------------------------------- endings that fail -- */

static long long evidence(house *self, const char *serial, const char *outcome)
{
    return database_number(self->sql,
                           "SELECT COUNT(*) FROM trade_evidence WHERE serial_no = '%s' AND "
                           "outcome = '%s'",
                           serial, outcome);
}

/* The outcome is on record, its rows are not; once they can be written, they are. */
static void expect_written_later(house *self, const char *serial, enum moment moment,
                                 void (*mend)(house *self))
{
    const int paid = moment == AT_Y;
    unsigned sent;

    script.execute = paid ? TL_EXECUTE_SUCCEEDED : TL_EXECUTE_DECLINED;
    script.query = paid ? TL_QUERY_UNREACHABLE : TL_QUERY_FAILED;
    payout_pay(self, serial, 1, TL_IN_DOUBT);
    sent = atomic_load(&script.sent);
    assert_true(house_alarmed(self, paid ? "the books refused the outcome SUCCEEDED"
                                         : "the books refused the outcome FAILED"));
    assert_int_equal(evidence(self, serial, paid ? "SUCCEEDED" : "FAILED"), 1);
    house_row(self, serial, "P 1 1 -");
    payout_entries(self, serial, "1P");
    mend(self);
    house_work(self, 1, PATIENCE_MS);
    house_row(self, serial, paid ? "Y 1 1 -" : "F 1 1 D");
    payout_entries(self, serial, paid ? "1P 1Y" : "1P 1F");
    assert_int_equal(atomic_load(&script.sent), sent);
    self->alarm_count = 0;
}

static void mend_callbacks(house *self)
{
    (void)self;
    for (int i = 0; i < MOMENTS; i++) {
        script.spoil[i] = NULL;
        script.answer[i] = TL_OK;
    }
}

static void spoil_both_endings(house *self, spoil_fn spoil, tl_status answer, unsigned number)
{
    for (enum moment moment = AT_Y; moment <= AT_F; moment++) {
        const struct text serial = text_of("W%u-%d", number, (int)moment);
        script.spoil[moment] = spoil;
        script.answer[moment] = answer;
        expect_written_later(self, serial.is, moment, mend_callbacks);
    }
}

TEST_IN(bad_lines_of_an_ending_are_written_later, payout_house, payout_house_close)
{
    house *self = *state;

    for (unsigned i = 0; i < PAYOUT_BAD_LINES; i++)
        spoil_both_endings(self, payout_bad_lines[i].spoil, TL_OK, i);
    database_expect(self->sql, 0, "SELECT frozen FROM purse");
}

TEST_IN(a_callback_that_cannot_ends_later, payout_house, payout_house_close)
{
    static const tl_status answers[] = {TL_TRY_AGAIN, TL_REFUSED, TL_NO_MEMORY, TL_CALLBACK_FAILED,
                                        (tl_status)12345};
    house *self = *state;

    for (unsigned i = 0; i < LENGTH(answers); i++)
        spoil_both_endings(self, NULL, answers[i], i);
    database_expect(self->sql, 0, "SELECT frozen FROM purse");
}

static void put_purse_back(house *self)
{
    database_run(self->sql, "UPDATE purse SET cust_no = 'C1'");
}

/* A row that must be there is not. */
TEST_IN(an_ending_that_changes_no_row_is_broken, payout_house, payout_house_close)
{
    house *self = *state;

    script.execute = TL_EXECUTE_UNKNOWN;
    script.query = TL_QUERY_SUCCEEDED;
    payout_pay(self, "W1", 100, TL_IN_DOUBT);
    database_run(self->sql, "UPDATE purse SET cust_no = 'C9'");
    for (int i = 0; i < 1000 && evidence(self, "W1", "SUCCEEDED") == 0; i++)
        house_work(self, 1, 100);
    assert_int_equal(evidence(self, "W1", "SUCCEEDED"), 1);
    assert_true(house_alarmed(self, "'take'"));
    house_row(self, "W1", "P 1 1 -");
    payout_entries(self, "W1", "1P");
    put_purse_back(self);
    house_work(self, 1, PATIENCE_MS);
    house_row(self, "W1", "Y 1 1 -");
    payout_entries(self, "W1", "1P 1Y");
    payout_purse(self, "900 0");
}

/* Only an ask can be refused. */
TEST_IN(a_statement_cannot_refuse_an_ending, payout_house, payout_house_close)
{
    house *self = *state;

    database_run(self->sql, "UPDATE purse SET balance = 1");
    script.spoil[AT_Y] = spoil_by_refusing;
    expect_written_later(self, "W1", AT_Y, mend_callbacks);
    payout_purse(self, "0 0");
}

TEST_IN(books_that_stay_broken_are_parked, payout_house, payout_house_close)
{
    house *self = *state;
    tl_worker_counts counts;

    database_run(self->sql, "CREATE TRIGGER shut BEFORE UPDATE ON purse FOR EACH ROW "
                            "IF NEW.frozen < OLD.frozen THEN SIGNAL SQLSTATE '45000' "
                            "SET MESSAGE_TEXT = 'the purse is shut'; END IF");
    payout_pay(self, "W1", 100, TL_IN_DOUBT);
    assert_true(house_alarmed(self, "the purse is shut"));
    counts = house_work(self, 1, PATIENCE_MS);
    assert_int_equal(counts.parked, 1);
    house_retry_row(self, "W1", "F", "apply failed");
    payout_pay(self, "W1", 100, TL_PARKED);
    payout_entries(self, "W1", "1P");
    payout_purse(self, "1000 100");
}

/* ------------------------------------------------------------------------------- tried anew -- */

TEST_IN(each_epoch_has_its_rows, payout_house, payout_house_close)
{
    house *self = *state;
    tl_request request = payout_request("W1", 100);

    script.execute = TL_EXECUTE_DECLINED;
    payout_expect(self, &request, TL_FAILED, NULL);
    payout_entries(self, "W1", "1P 1F");
    /* The trade keeps what its first request said. */
    request.reclaim_epoch = 1;
    request.amount_minor = 3;
    request.currency = "USD";
    payout_expect(self, &request, TL_FAILED, NULL);
    payout_entries(self, "W1", "1P 1F 2P 2F");
    script.execute = TL_EXECUTE_SUCCEEDED;
    request.reclaim_epoch = 2;
    payout_expect(self, &request, TL_SUCCEEDED, NULL);
    house_row(self, "W1", "Y 3 1 -");
    payout_entries(self, "W1", "1P 1F 2P 2F 3P 3Y");
    payout_purse(self, "900 0");
    database_expect(self->sql, 0,
                    "SELECT COUNT(*) FROM entry WHERE amount <> 100 OR currency <> 'EUR'");
    database_expect(self->sql, 3, "SELECT COUNT(DISTINCT channel_key) FROM entry");
}

TEST_IN(a_refusal_leaves_the_failure_as_it_was, payout_house, payout_house_close)
{
    house *self = *state;
    tl_request request = payout_request("W1", 100);

    script.execute = TL_EXECUTE_DECLINED;
    payout_expect(self, &request, TL_FAILED, NULL);
    request.reclaim_epoch = 1;
    database_run(self->sql, "UPDATE purse SET balance = 99");
    payout_expect(self, &request, TL_REFUSED, "too little money");
    script.answer[AT_P] = TL_REFUSED;
    script.remark = "closed today";
    payout_expect(self, &request, TL_REFUSED, "closed today");
    script.answer[AT_P] = TL_OK;
    script.remark = NULL;
    database_run(self->sql, "UPDATE purse SET balance = 100");
    script.spoil[AT_P] = spoil_key;
    payout_expect(self, &request, TL_CALLBACK_FAILED, NULL);
    house_row(self, "W1", "F 1 1 D");
    payout_entries(self, "W1", "1P 1F");
    payout_purse(self, "100 0");
    script.spoil[AT_P] = NULL;
    script.execute = TL_EXECUTE_SUCCEEDED;
    payout_expect(self, &request, TL_SUCCEEDED, NULL);
    payout_entries(self, "W1", "1P 1F 2P 2Y");
    payout_purse(self, "0 0");
}

/* ------------------------------------------------------------------------------ many at once -- */

#define THREADS 16
#define EACH 12
#define POOR 4 /* so many trades of a thread are of a customer without money */

static house *busy;

/* Of customers whom all threads share; a third of them fail. */
static void pay_many(void *context, int number)
{
    (void)context;
    for (int i = 0; i < EACH; i++) {
        char serial[24], cust[8];
        tl_request request = payout_request(serial, 10);
        tl_answer answer = TL_ANSWER_INIT;
        const int poor = i % (EACH / POOR) == 0;

        snprintf(serial, sizeof serial, "M%d-%d", number, i);
        snprintf(cust, sizeof cust, poor ? "POOR" : "C%d", 2 + i % 2);
        request.key.cust_no = cust;
        request.payload = i % 3 == 1 ? "n" : "y";
        request.wait_ms = 60000;
        do {
            tl_answer_clear(&answer);
            (void)tl_workflow_run(busy->workflows, &request, &answer);
        } while (tl_status_class(answer.status) == TL_CLASS_RETRY);
        CREW_STATUS(answer.status, poor ? TL_REFUSED : TL_IN_DOUBT);
        tl_answer_clear(&answer);
    }
}

TEST_IN(many_are_written_once_each, payout_house, payout_house_close)
{
    const int asked = THREADS * (EACH - POOR), failed = THREADS * EACH / 3;
    house *self = *state;
    tl_worker_counts counts;

    busy = self;
    payout_say(TL_EXECUTE_UNKNOWN, TL_QUERY_PENDING);
    database_run(self->sql, "INSERT INTO purse (cust_no, balance) VALUES ('C2', 10000), "
                            "('C3', 10000), ('POOR', 9)");
    crew_threads(THREADS, pay_many, NULL);
    database_expect(self->sql, 10 * asked, "SELECT SUM(frozen) FROM purse");
    database_expect(self->sql, asked,
                    "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'P'");
    counts = house_work(self, THREADS, PATIENCE_MS);
    assert_int_equal(counts.failed, failed);
    assert_int_equal(counts.succeeded, asked - failed);
    database_expect(self->sql, 0, "SELECT SUM(frozen) FROM purse");
    database_expect(self->sql, 20000 - 10 * (asked - failed),
                    "SELECT SUM(balance) FROM purse WHERE cust_no IN ('C2', 'C3')");
    database_expect(self->sql, 2 * asked, "SELECT COUNT(*) FROM entry");
    database_expect(self->sql, asked,
                    "SELECT COUNT(*) FROM trade_lock t JOIN entry e ON e.serial_no = t.serial_no "
                    "AND e.what = t.status WHERE t.lane = 'S'");
}

/* ------------------------------------------------------------------ somebody else's row, held */

/* Who waits in the server for a row waits longer than it is held.  There are fewer connections than
 * trades of the held purse. */
#define HELD_SESSION_MS 3000
#define HELD_SETTINGS(commit_ms)                                                                   \
    "site=test\nbeat_ms=200ms\nsession_ms=3s\nmax_hold_ms=10m\nexecute_ms=20s\ncommit_"            \
    "ms=" commit_ms "\n"                                                                           \
    "deadline_ms=30m\nschedule=50ms,100ms\nattempts=8\ngrace_ms=200ms\nclock_margin_ms=50ms\n"     \
    "business_lock_wait_s=50\npool_size=8\nbusiness_pool_size=4\n"
#define WORKERS 10
#define FEW 6   /* trades of the held purse: fewer than the worker has threads */
#define MANY 24 /* more */
#define FREE 60
#define BARE 4        /* threads that have no books */
#define BARE_LOCKS 80 /* at least so many locks of theirs while the row is held */
#define BEATS 10      /* likewise */

static atomic_int is_held, let_go, bare;

static void leave_in_doubt(house *self, const char *prefix, const char *cust, int count)
{
    for (int i = 0; i < count; i++) {
        char serial[16];
        tl_request request = payout_request(serial, 10);

        snprintf(serial, sizeof serial, "%s%d", prefix, i);
        request.key.cust_no = cust;
        request.payload = i % 3 == 1 ? "n" : "y";
        payout_expect(self, &request, TL_IN_DOUBT, NULL);
    }
}

static void lock_without_books(house *self, int number)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_ending ending = TL_ENDING_INIT;

    options.max_hold_ms = PATIENCE_MS;
    ending.outcome = TL_OUTCOME_SUCCESS;
    for (int i = 0; !atomic_load(&let_go); i++) {
        char serial[24];
        const tl_key key = {serial, "C9", "BARE"};
        tl_lock *lock = NULL;

        snprintf(serial, sizeof serial, "B%d-%d", number, i);
        CREW_STATUS(tl_lock_new(&lock, self->client, &key, &options), TL_OK);
        CREW_STATUS(tl_lock_ask(lock, 0), TL_GRANTED);
        CREW_STATUS(tl_lock_finish(lock, &ending), TL_SUCCEEDED);
        tl_lock_free(lock);
        atomic_fetch_add(&bare, 1);
        crew_sleep_ms(10);
    }
}

static int count_ended(MYSQL *sql, const char *prefix)
{
    return (int)database_number(sql,
                                "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND status <> 'P'"
                                " AND op_code = '" PAYOUT_OP "' AND serial_no LIKE '%s%%'",
                                prefix);
}

static uint64_t count_beats(house *self)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    CREW_STATUS(tl_client_stats(self->client, &stats), TL_OK);
    return stats.beats;
}

/* Until all that shall go on went on, and two sessions are over. */
static void hold_the_purse(house *self)
{
    MYSQL *sql = database_connect(self->db), *look = database_connect(self->db);
    const char *session = tl_client_session(self->client);
    const int64_t began_ms = now_ms();
    const uint64_t beats = count_beats(self);

    database_run(sql, "BEGIN; UPDATE purse SET balance = balance + 1 WHERE cust_no = 'HELD'");
    atomic_store(&is_held, 1);
    while ((now_ms() < began_ms + 2 * HELD_SESSION_MS || count_ended(look, "F") < FREE ||
            atomic_load(&bare) < BARE_LOCKS || count_beats(self) < beats + BEATS) &&
           now_ms() < began_ms + PATIENCE_MS)
        crew_sleep_ms(20);
    print_message("%d of %d ended, %d locks without books, %d beats in %d ms\n",
                  count_ended(look, "F"), FREE, atomic_load(&bare),
                  (int)(count_beats(self) - beats), (int)(now_ms() - began_ms));
    CREW_CHECK(count_ended(look, "F") == FREE);
    CREW_CHECK(count_ended(look, "H") == 0);
    CREW_CHECK(atomic_load(&bare) >= BARE_LOCKS);
    CREW_CHECK(count_beats(self) >= beats + BEATS);
    CREW_CHECK(tl_client_alive_ms(self->client) > 0);
    CREW_CHECK(strcmp(tl_client_session(self->client), session) == 0);
    atomic_store(&let_go, 1);
    database_run(sql, "ROLLBACK");
    mysql_close(sql);
    mysql_close(look);
}

static void beside_the_worker(void *context, int number)
{
    if (number == BARE)
        hold_the_purse(context);
    else
        lock_without_books(context, number);
}

static void *run_beside_the_worker(void *context)
{
    crew_threads(BARE + 1, beside_the_worker, context);
    return NULL;
}

/* Whose row it is has to wait; the worker's other threads end what is due, in shared transactions. */
static void end_beside_a_held_purse(house *self, int held)
{
    tl_worker_counts counts;
    pthread_t others;

    assert_int_equal(pthread_create(&others, NULL, run_beside_the_worker, self), 0);
    while (!atomic_load(&is_held))
        crew_sleep_ms(5);
    counts = house_work(self, WORKERS, 2 * PATIENCE_MS);
    assert_int_equal(pthread_join(others, NULL), 0);
    assert_int_equal(counts.failed, (held + FREE) / 3);
    assert_int_equal(counts.succeeded, held + FREE - (held + FREE) / 3);
}

/* given_up: endings are, meanwhile. */
static void hold_a_purse(const char *settings, int held, int given_up)
{
    static house self;

    is_held = let_go = bare = 0;
    payout_say(TL_EXECUTE_UNKNOWN, TL_QUERY_PENDING);
    house_open_bare(&self, settings, NULL);
    payout_open(&self);
    database_run(self.sql, "INSERT INTO purse (cust_no, balance) VALUES ('HELD', 1000), "
                           "('C2', 1000), ('C3', 1000)");
    leave_in_doubt(&self, "H", "HELD", held);
    leave_in_doubt(&self, "F2-", "C2", FREE / 2);
    leave_in_doubt(&self, "F3-", "C3", FREE / 2);
    end_beside_a_held_purse(&self, held);
    assert_int_equal(house_alarmed(&self, "the books refused"), given_up);
    database_expect(self.sql, 0, "SELECT SUM(frozen) FROM purse");
    database_expect(self.sql, 1000 - 10 * (held - held / 3),
                    "SELECT balance FROM purse WHERE cust_no = 'HELD'");
    database_expect(self.sql, 2000 - 10 * (FREE - FREE / 3),
                    "SELECT SUM(balance) FROM purse WHERE cust_no IN ('C2', 'C3')");
    database_expect(self.sql, 2 * (held + FREE), "SELECT COUNT(*) FROM entry");
    house_close(&self);
}

TEST(a_held_purse_stops_no_other_endings)
{
    hold_a_purse(HELD_SETTINGS("2m"), FEW, 0);
}

TEST(nor_do_more_held_trades_than_threads)
{
    hold_a_purse(HELD_SETTINGS("2m"), MANY, 0);
}

/* Once their endings are given up.  None is left to the end of its hold. */
TEST(more_held_trades_than_threads_are_put_back)
{
    hold_a_purse(HELD_SETTINGS("3s"), MANY, 1);
}

/* ----------------------------------------------------------------- the server dies meanwhile -- */

TEST(an_ending_is_settled_with_its_rows)
{
    static house self;
    server *own = server_start(NULL);
    tl_request request = payout_request("W1", 100);
    tl_answer answer = TL_ANSWER_INIT;
    tl_status status;
    int64_t end_ms;

    house_open_bare(&self,
                    "beat_ms=100ms\nsession_ms=30s\nmax_hold_ms=60s\nexecute_ms=1s\n"
                    "commit_ms=300ms\npool_wait_ms=200ms\n",
                    own);
    payout_open(&self);
    payout_say(TL_EXECUTE_SUCCEEDED, TL_QUERY_UNREACHABLE);
    script.dies = own;
    assert_status(tl_workflow_run(self.workflows, &request, &answer), TL_UNKNOWN);
    assert_true(answer.own);
    assert_string_equal(answer.view.channel_ref, "W1"); /* heard, and not on the row yet */
    server_restart(own);
    end_ms = now_ms() + PATIENCE_MS;
    do {
        status = tl_workflow_settle(self.workflows, &answer);
    } while (status == TL_UNKNOWN && now_ms() < end_ms);
    assert_status(status, TL_SUCCEEDED);
    tl_answer_clear(&answer);
    mysql_close(self.sql);
    self.sql = database_connect(self.db);
    house_row(&self, "W1", "Y 1 1 -");
    payout_entries(&self, "W1", "1P 1Y");
    payout_purse(&self, "900 0");
    house_close(&self);
    server_free(own);
}

/* An argument: only the tests whose names fit it, as TEST or *PART*. */
TESTS_OF(books_later, NULL, NULL)
