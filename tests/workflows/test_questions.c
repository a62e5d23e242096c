/* Questions about trades, by a web front without a session whose account may only SELECT, while
 * another process pays. */
#include "payout.h"
#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/questions.h>

#include <signal.h>

#define WAITERS 1000
#define DOUBTS 100

static house self;
static tl_client *front;
static tl_workflows *questions;

/* ---------------------------------------------------------------------- fixture -- */

static void open_front(void)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;

    options.config_file = database_option_file(self.db);
    options.flags = TL_CLIENT_NO_SESSION;
    options.program = "front";
    options.user = "looker";
    options.password = "looks only";
    if (tl_client_open(&front, &options) != TL_OK)
        fail_msg("the front: %s", tl_error_message());
    assert_status(tl_workflows_new(&questions, front), TL_OK);
}

static void close_front(void)
{
    tl_workflows_free(questions);
    tl_client_close(front);
    questions = NULL;
    front = NULL;
}

/* All that a front needs (questions.h). */
static void grant(int is_given)
{
    static const char *const rights[] = {
        "SELECT ON trade_lock",           "SELECT ON trade_lock_state",
        "SELECT ON tl_session",           "SELECT ON tl_schema",
        "SELECT ON tl_restore",           "EXECUTE ON FUNCTION tl_restored",
        "EXECUTE ON FUNCTION tl_identity"};

    for (size_t i = 0; i < sizeof rights / sizeof *rights; i++)
        database_run(self.sql, "%s %s %s looker@'%%', looker@localhost",
                     is_given ? "GRANT" : "REVOKE", rights[i], is_given ? "TO" : "FROM");
}

FIXTURE(open_all)
{
    payout_say(TL_EXECUTE_SUCCEEDED, TL_QUERY_UNREACHABLE);
    house_open_bare(&self, HOUSE_PATIENT_SETTINGS, server_start(NULL));
    payout_open(&self);
    house_leave(&self); /* whoever pays is another process */
    database_run(self.sql, "UPDATE purse SET balance = 1000000");
    database_run(self.sql, "CREATE USER looker@'%%' IDENTIFIED BY 'looks only'");
    database_run(self.sql, "CREATE USER looker@localhost IDENTIFIED BY 'looks only'");
    grant(1);
}

FIXTURE(close_all)
{
    if (front != NULL)
        close_front();
    house_close(&self);
    server_free(self.own);
}

/* ------------------------------------------------------------- the other process -- */

/* What it does with W1: after 300 ms it pays; then perhaps a worker ends what is in doubt. */
struct work {
    const char *serial;
    tl_execute_result executed;
    tl_status expected;
    int64_t works_ms; /* after so long a worker begins; -1: none */
    const char *batch;
    int64_t before_ms;
    const char *ends; /* by the worker */
    atomic_int *go;   /* it begins when this is 1; NULL: at once */
};

/* The worker of this process has ended the trade. */
static void await_worked(const char *serial)
{
    const tl_key key = {serial, "C1", PAYOUT_OP};
    tl_trade trade = TL_TRADE_INIT;

    AWAIT_WHILE(tl_workflow_look(self.workflows, &key, &trade) != TL_SUCCEEDED);
}

static void pay(void *context, int number)
{
    const struct work *work = context;
    tl_workflow workflow = payout_workflow();
    tl_request request = payout_request(work->serial, 100);
    tl_answer answer = TL_ANSWER_INIT;

    (void)number;
    while (work->go != NULL && !atomic_load(work->go))
        crew_sleep_ms(10);
    payout_say(work->executed, TL_QUERY_SUCCEEDED);
    house_reopen(&self);
    CREW_STATUS(tl_workflow_register(self.workflows, &workflow), TL_OK);
    request.batch = work->batch;
    crew_sleep_ms(work->before_ms);
    CREW_STATUS(tl_workflow_run(self.workflows, &request, &answer), work->expected);
    tl_answer_clear(&answer);
    if (work->works_ms >= 0) {
        tl_worker_options options = TL_WORKER_OPTIONS_INIT;
        tl_worker *worker = NULL;

        crew_sleep_ms(work->works_ms);
        CREW_STATUS(tl_worker_start(&worker, self.workflows, &options), TL_OK);
        await_worked(work->ends);
        tl_worker_free(worker);
    }
    house_leave(&self);
}

static tl_status await(const char *serial, int64_t wait_ms, tl_trade *trade)
{
    const tl_key key = {serial, "C1", PAYOUT_OP};

    return tl_workflow_await(questions, &key, wait_ms, trade);
}

static tl_status look(const char *serial, tl_trade *trade)
{
    const tl_key key = {serial, "C1", PAYOUT_OP};

    return tl_workflow_look(questions, &key, trade);
}

/* ----------------------------------------------------------------------- one trade -- */

TEST(a_trade_that_another_process_pays_is_awaited)
{
    const struct work work = {"Y1", TL_EXECUTE_SUCCEEDED, TL_SUCCEEDED, -1, "B-1", 500, NULL, NULL};
    pid_t child = crew_fork(pay, (void *)(uintptr_t)&work, 0);
    tl_trade trade = TL_TRADE_INIT, again = TL_TRADE_INIT;

    open_front();
    assert_string_equal(tl_client_session(front), "");
    assert_status(look("Y1", &trade), TL_NOT_FOUND);
    assert_string_equal(trade.serial_no, "");
    assert_status(await("Y1", 60000, &trade), TL_SUCCEEDED);
    assert_status(trade.status, TL_SUCCEEDED);
    assert_string_equal(trade.serial_no, "Y1");
    assert_string_equal(trade.cust_no, "C1");
    assert_string_equal(trade.op_code, PAYOUT_OP);
    assert_string_equal(trade.channel_ref, "Y1");
    assert_string_equal(trade.batch, "B-1");
    assert_string_equal(trade.currency, "EUR");
    assert_int_equal(trade.amount_minor, 100);
    assert_int_equal(trade.sends, 1);
    assert_int_equal(trade.epoch, 1);
    assert_true(trade.created_us > 0 && trade.now_us >= trade.updated_us);
    assert_int_equal(crew_wait(child), 0);
    assert_status(look("Y1", &again), TL_SUCCEEDED);
    assert_string_equal(again.channel_ref, "Y1");
    close_front();
}

TEST(a_failure_is_told_with_its_proof)
{
    const struct work work = {"F1", TL_EXECUTE_DECLINED, TL_FAILED, -1, "B-1", 500, NULL, NULL};
    pid_t child = crew_fork(pay, (void *)(uintptr_t)&work, 0);
    tl_trade trade = TL_TRADE_INIT;

    open_front();
    assert_status(await("F1", 60000, &trade), TL_FAILED);
    assert_int_equal(trade.proof, TL_PROOF_DECLINED);
    assert_int_equal(trade.retryable, 1);
    assert_int_equal(trade.result_size, 0);
    assert_int_equal(crew_wait(child), 0);
    close_front();
}

TEST(the_deadline_answers_what_it_was)
{
    const struct work work = {"D1", TL_EXECUTE_UNKNOWN, TL_IN_DOUBT, -1, NULL, 0, NULL, NULL};
    tl_trade trade = TL_TRADE_INIT;
    int64_t start_ms;

    assert_int_equal(crew_wait(crew_fork(pay, (void *)(uintptr_t)&work, 0)), 0);
    open_front();
    start_ms = crew_now_ms();
    assert_status(await("D1", 700, &trade), TL_IN_DOUBT);
    assert_true(crew_now_ms() - start_ms >= 700);
    assert_string_equal(trade.serial_no, "D1");
    assert_status(await("D1", 0, &trade), TL_IN_DOUBT);
    assert_status(await("nobody", 300, &trade), TL_NOT_FOUND);
    assert_string_equal(trade.serial_no, "D1");
    /* Nothing that waits will mend it, so nobody waits. */
    database_run(self.sql, "UPDATE trade_lock SET parked = 'EXHAUSTED' WHERE serial_no = 'D1' AND "
                           "lane = 'R'");
    start_ms = crew_now_ms();
    assert_status(await("D1", 60000, &trade), TL_PARKED);
    assert_string_equal(trade.parked, "EXHAUSTED");
    assert_true(crew_now_ms() - start_ms < 50000);
    close_front();
}

/* The worker of another process ends it; meanwhile all connections are cut. */
TEST(a_cut_connection_is_waited_for)
{
    const struct work work = {"K1", TL_EXECUTE_UNKNOWN, TL_IN_DOUBT, 2000, NULL, 0, "K1", NULL};
    pid_t child = crew_fork(pay, (void *)(uintptr_t)&work, 0), cutter;
    tl_trade trade = TL_TRADE_INIT;
    atomic_int *is_open = crew_share(sizeof *is_open);

    cutter = fork();
    if (cutter == 0) {
        MYSQL *own = server_connect(self.own);

        while (!atomic_load(is_open))
            crew_sleep_ms(10);
        for (int i = 0; i < 40; i++) {
            char *kill_all =
                database_text(own, "SELECT GROUP_CONCAT('KILL ', id SEPARATOR ';') FROM "
                                   "information_schema.processlist WHERE user = 'looker'");

            for (char *at = kill_all != NULL ? strtok(kill_all, ";") : NULL; at != NULL;
                 at = strtok(NULL, ";"))
                (void)mysql_query(own, at);
            free(kill_all);
            crew_sleep_ms(50);
        }
        mysql_close(own);
        _exit(0);
    }
    open_front();
    atomic_store(is_open, 1);
    assert_status(await("K1", 2 * PATIENCE_MS, &trade), TL_SUCCEEDED);
    assert_int_equal(crew_wait(cutter), 0);
    crew_unshare(is_open, sizeof *is_open);
    assert_int_equal(crew_wait(child), 0);
    close_front();
}

TEST(a_restart_of_the_server_is_waited_for)
{
    const struct work doubt = {"R1", TL_EXECUTE_UNKNOWN, TL_IN_DOUBT, -1, NULL, 0, NULL, NULL};
    const struct work work = {"R2", TL_EXECUTE_SUCCEEDED, TL_SUCCEEDED, 0, NULL, 0, "R1", NULL};
    tl_trade trade = TL_TRADE_INIT;
    pid_t child, restarted;

    assert_int_equal(crew_wait(crew_fork(pay, (void *)(uintptr_t)&doubt, 0)), 0);
    open_front();
    assert_status(await("R1", 300, &trade), TL_IN_DOUBT);
    server_kill9(self.own);
    /* While no server is there nothing is known. */
    assert_status(await("R1", 500, &trade), TL_UNREACHABLE);
    close_front();
    server_restart(self.own);
    mysql_close(self.sql);
    self.sql = database_connect(self.db);
    child = crew_fork(pay, (void *)(uintptr_t)&work, 0);
    restarted = child;
    open_front();
    assert_status(await("R1", 2 * PATIENCE_MS, &trade), TL_SUCCEEDED);
    assert_int_equal(crew_wait(restarted), 0);
    close_front();
}

/* A server that falls silent keeps nobody beyond their time: neither who has read before, nor who
 * comes then.  Connections wait for half a minute. */
TEST(a_silent_server_prolongs_no_wait)
{
    const struct work doubt = {"Q1", TL_EXECUTE_UNKNOWN, TL_IN_DOUBT, -1, NULL, 0, NULL, NULL};
    static const int64_t waits_ms[] = {1500, 10, 3000};
    tl_trade trade = TL_TRADE_INIT;

    assert_int_equal(crew_wait(crew_fork(pay, (void *)(uintptr_t)&doubt, 0)), 0);
    open_front();
    assert_status(await("Q1", 1500, &trade), TL_IN_DOUBT);
    server_freeze(self.own);
    for (size_t i = 0; i < 3; i++) {
        const int64_t start_ms = crew_now_ms();

        assert_status(await("Q1", waits_ms[i], &trade), TL_UNREACHABLE);
        assert_true(crew_now_ms() - start_ms < 15000);
    }
    server_thaw(self.own);
    assert_status(await("Q1", 60000 / 20, &trade), TL_IN_DOUBT);
    close_front();
}

struct interrupted {
    tl_status status;
    tl_trade trade;
};

static void *await_long(void *context)
{
    struct interrupted *seen = context;

    seen->status = await("S1", 2 * PATIENCE_MS, &seen->trade);
    return NULL;
}

/* One wait that stands through the death and the return of the server. */
TEST(a_wait_outlasts_the_server)
{
    const struct work doubt = {"S1", TL_EXECUTE_UNKNOWN, TL_IN_DOUBT, -1, NULL, 0, NULL, NULL};
    atomic_int *go = crew_share(sizeof *go);
    const struct work work = {"S2", TL_EXECUTE_SUCCEEDED, TL_SUCCEEDED, 0, NULL, 0, "S1", go};
    struct interrupted seen = {.trade = TL_TRADE_INIT};
    pthread_t thread;
    pid_t child;

    assert_int_equal(crew_wait(crew_fork(pay, (void *)(uintptr_t)&doubt, 0)), 0);
    child = crew_fork(pay, (void *)(uintptr_t)&work, 0); /* before there are threads */
    open_front();
    assert_int_equal(pthread_create(&thread, NULL, await_long, &seen), 0);
    crew_sleep_ms(300);
    server_kill9(self.own);
    crew_sleep_ms(300);
    server_restart(self.own);
    mysql_close(self.sql);
    self.sql = database_connect(self.db);
    atomic_store(go, 1);
    pthread_join(thread, NULL);
    assert_status(seen.status, TL_SUCCEEDED);
    assert_string_equal(seen.trade.serial_no, "S1");
    assert_int_equal(crew_wait(child), 0);
    crew_unshare(go, sizeof *go);
    close_front();
}

/* --------------------------------------------------------------------------- many -- */

static void doubt_many(void *context, int number)
{
    tl_workflow workflow = payout_workflow();

    (void)context;
    (void)number;
    payout_say(TL_EXECUTE_UNKNOWN, TL_QUERY_SUCCEEDED);
    house_reopen(&self);
    CREW_STATUS(tl_workflow_register(self.workflows, &workflow), TL_OK);
    for (int i = 0; i < DOUBTS; i++) {
        tl_answer answer = TL_ANSWER_INIT;
        tl_request request;

        request = payout_request(text_of("M%03d", i).is, 7);
        request.batch = "many";
        CREW_STATUS(tl_workflow_run(self.workflows, &request, &answer), TL_IN_DOUBT);
        tl_answer_clear(&answer);
    }
    house_leave(&self);
}

/* Ten wait for each of a hundred trades that nobody ends. */
static void await_one_of_many(void *context, int number)
{
    tl_trade trade = TL_TRADE_INIT;
    tl_status status;

    (void)context;
    const struct text serial = text_of("M%03d", number % DOUBTS);
    do
        status = await(serial.is, 3000, &trade);
    while (status == TL_UNREACHABLE); /* a machine that is busy: no answer in all that time */
    CREW_STATUS(status, TL_IN_DOUBT);
    CREW_CHECK(strcmp(trade.serial_no, serial.is) == 0);
}

TEST(a_thousand_waiters_share_their_reads)
{
    long long before, after;
    int64_t start_ms, took_ms;

    assert_int_equal(crew_wait(crew_fork(doubt_many, NULL, 0)), 0);
    open_front();
    before = database_counter(self.sql, "Questions");
    start_ms = crew_now_ms();
    crew_threads(WAITERS, await_one_of_many, NULL);
    took_ms = crew_now_ms() - start_ms;
    after = database_counter(self.sql, "Questions");
    print_message("%lld statements of %d waiters in %lld ms\n", after - before, WAITERS,
                  (long long)took_ms);
    /* Two statements each 100 ms, and what opens a connection. */
    assert_true(after - before >= 4);
    assert_true(after - before <= took_ms / 100 * 2 + 40);
    close_front();
}

/* -------------------------------------------------------------------------- lists -- */

struct listed {
    char serials[DOUBTS + 50][TL_SERIAL_MAX + 1];
    int count, stop_after;
};

static int keep_serial(void *context, const tl_trade *trade)
{
    struct listed *listed = context;

    assert_true(listed->count < DOUBTS + 50);
    snprintf(listed->serials[listed->count++], sizeof listed->serials[0], "%s", trade->serial_no);
    return listed->count == listed->stop_after;
}

static int all_pages(tl_trades *which, struct listed *listed)
{
    char next[TL_TRADES_NEXT] = "";
    int pages = 0;

    listed->count = 0;
    do {
        char after[TL_TRADES_NEXT];

        memcpy(after, next, sizeof after);
        which->after = after;
        assert_status(tl_workflow_list(questions, which, keep_serial, listed, next), TL_OK);
        pages++;
    } while (next[0] != '\0');
    return pages;
}

struct sums {
    uint64_t trades;
    int parts;
    char text[256];
};

static int keep_sum(void *context, const tl_batch_sum *sum)
{
    struct sums *sums = context;
    size_t end = strlen(sums->text);

    snprintf(sums->text + end, sizeof sums->text - end, "%s %llu %s %s;",
             tl_status_name(sum->status), (unsigned long long)sum->trades, sum->currency,
             sum->sum_minor);
    return 0;
}

TEST(lists_come_in_pages_each_trade_once)
{
    tl_trades which = TL_TRADES_INIT;
    static struct listed listed;

    open_front();
    which.batch = "many";
    which.limit = 30;
    assert_int_equal(all_pages(&which, &listed), 4);
    assert_int_equal(listed.count, DOUBTS);
    for (int i = 0; i < DOUBTS; i++)
        assert_string_equal(listed.serials[i], text_of("M%03d", DOUBTS - 1 - i).is);
    which.batch = NULL;
    which.cust_no = "C1";
    which.limit = 0;
    assert_true(all_pages(&which, &listed) >= 2);
    assert_int_equal(listed.count, database_number(self.sql, "SELECT COUNT(*) FROM trade_lock "
                                                             "WHERE lane = 'S'"));
    which.cust_no = "C2";
    assert_int_equal(all_pages(&which, &listed), 1);
    assert_int_equal(listed.count, 0);
    close_front();
}

TEST(a_batch_is_complete_when_all_have_ended)
{
    tl_batch_total total = TL_BATCH_TOTAL_INIT;
    struct sums sums = {0};

    open_front();
    assert_status(tl_workflow_batch(questions, "B-1", &total, keep_sum, &sums), TL_OK);
    assert_string_equal(sums.text, "TL_FAILED 1 EUR 100;TL_SUCCEEDED 1 EUR 100;");
    assert_int_equal(total.trades, 2);
    assert_int_equal(total.succeeded, 1);
    assert_int_equal(total.failed, 1);
    assert_int_equal(total.open, 0);
    assert_true(total.complete);
    memset(&sums, 0, sizeof sums);
    assert_status(tl_workflow_batch(questions, "many", &total, keep_sum, &sums), TL_OK);
    assert_string_equal(sums.text, "TL_IN_DOUBT 100 EUR 700;");
    assert_int_equal(total.open, DOUBTS);
    assert_false(total.complete);
    assert_status(tl_workflow_batch(questions, "none such", &total, NULL, NULL), TL_NOT_FOUND);
    assert_int_equal(total.open, DOUBTS);
    close_front();
}

/* ---------------------------------------------------------------------- bad input -- */

static void expect_invalid(tl_status status, const char *words)
{
    assert_status(status, TL_INVALID);
    payout_said(words);
}

TEST(bad_input_is_one_sentence)
{
    const tl_key key = {"Y1", "C1", PAYOUT_OP}, hole = {"Y1", NULL, PAYOUT_OP},
                 blank = {"Y 1", "C1", PAYOUT_OP};
    tl_trade trade = TL_TRADE_INIT, unset = TL_TRADE_INIT;
    tl_trades which = TL_TRADES_INIT;
    tl_batch_total total = TL_BATCH_TOTAL_INIT;
    static struct listed listed;
    char next[TL_TRADES_NEXT] = "kept";

    open_front();
    unset.version = 0;
    expect_invalid(tl_workflow_look(NULL, &key, &trade), "registry");
    expect_invalid(tl_workflow_look(questions, NULL, &trade), "key");
    expect_invalid(tl_workflow_look(questions, &key, NULL), "trade");
    expect_invalid(tl_workflow_look(questions, &key, &unset), "TL_TRADE_INIT");
    expect_invalid(tl_workflow_look(questions, &hole, &trade), "cust_no");
    expect_invalid(tl_workflow_await(questions, &blank, 100, &trade), "serial");
    expect_invalid(tl_workflow_await(questions, &hole, 100, &trade), "cust_no");
    expect_invalid(tl_workflow_await(questions, &key, -1, &trade), "wait_ms");
    expect_invalid(tl_workflow_await(questions, &key, INT64_MAX, &trade), "wait_ms");
    expect_invalid(tl_workflow_list(questions, &which, keep_serial, &listed, next), "batch");
    which.batch = "many";
    expect_invalid(tl_workflow_list(questions, &which, NULL, NULL, next), "each");
    expect_invalid(tl_workflow_list(questions, &which, keep_serial, &listed, NULL), "next");
    which.after = "nonsense";
    expect_invalid(tl_workflow_list(questions, &which, keep_serial, &listed, next), "place");
    which.after = NULL;
    which.batch = "two\nlines";
    expect_invalid(tl_workflow_list(questions, &which, keep_serial, &listed, next), "batch");
    which.version = 7;
    expect_invalid(tl_workflow_list(questions, &which, keep_serial, &listed, next),
                   "TL_TRADES_INIT");
    expect_invalid(tl_workflow_batch(questions, NULL, &total, NULL, NULL), "batch");
    expect_invalid(tl_workflow_batch(questions, "", &total, NULL, NULL), "empty");
    total.version = 0;
    expect_invalid(tl_workflow_batch(questions, "many", &total, NULL, NULL), "TL_BATCH_TOTAL_INIT");
    assert_string_equal(next, "kept");
    assert_string_equal(trade.serial_no, "");
    close_front();
}

/* An account that lost its right is told at once, and not after a minute. */
TEST(a_missing_right_ends_the_wait)
{
    tl_trade trade = TL_TRADE_INIT;
    int64_t start_ms;

    open_front();
    assert_status(await("M002", 0, &trade), TL_IN_DOUBT);
    grant(0);
    start_ms = crew_now_ms();
    assert_status(await("M001", 60000, &trade), TL_ACCESS_DENIED);
    assert_true(crew_now_ms() - start_ms < 30000);
    grant(1);
    close_front();
}

static void *await_doubt(void *context)
{
    tl_trade trade = TL_TRADE_INIT;

    *(tl_status *)context = await("M001", 1500, &trade);
    return NULL;
}

TEST(a_registry_is_not_freed_under_a_wait)
{
    tl_status status = TL_OK;
    pthread_t thread;

    open_front();
    assert_int_equal(pthread_create(&thread, NULL, await_doubt, &status), 0);
    crew_sleep_ms(500);
    tl_workflows_free(questions);
    payout_said("awaits");
    pthread_join(thread, NULL);
    assert_status(status, TL_IN_DOUBT);
    close_front();
}

TESTS_OF(questions, open_all, close_all)
