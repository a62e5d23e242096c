/* A workflow's callbacks that do not return: in a service's own call, and on a worker's thread,
 * which ends. */
#include "leaving.h"
#include "support/crew.h"
#include "support/database.h"
#include "support/theme.h"

#include <tradelock/worker.h>
#include <tradelock/workflow.h>

#include <stdatomic.h>

enum place { IN_PREPARE, IN_EXECUTE, IN_APPLY, PLACES };

static database *db;
static MYSQL *sql;
static tl_client *client;
static tl_workflows *workflows;
static atomic_int leaving_place, leaving_way, leaves, unknown, alarms;

static void keep_alarms(void *context, const tl_log_line *line)
{
    (void)context;
    if (line->level == TL_ALARM && strstr(line->message, "ended the worker") != NULL)
        atomic_fetch_add(&alarms, 1);
}

static void leave_here(enum place place)
{
    if (atomic_load(&leaving_place) == (int)place && atomic_fetch_sub(&leaves, 1) > 0)
        leave_now((leave_way)atomic_load(&leaving_way));
}

static void note(const tl_attempt *attempt, const char *what, MYSQL *connection)
{
    char text[200];

    snprintf(text, sizeof text, "INSERT INTO ledger VALUES ('%s %s')", what,
             attempt->key.serial_no);
    CREW_CHECK(mysql_query(connection, text) == 0);
}

static tl_status prepare(void *context, const tl_attempt *attempt, tl_reply *reply,
                         struct st_mysql *connection)
{
    (void)context;
    (void)reply;
    note(attempt, "order", connection);
    leave_here(IN_PREPARE);
    return TL_OK;
}

static tl_execute_result execute(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)attempt;
    (void)reply;
    if (atomic_load(&unknown))
        return TL_EXECUTE_UNKNOWN;
    leave_here(IN_EXECUTE);
    return TL_EXECUTE_SUCCEEDED;
}

static tl_status apply(void *context, const tl_attempt *attempt, const tl_reply *reply,
                       struct st_mysql *connection)
{
    (void)context;
    (void)reply;
    note(attempt, "paid", connection);
    leave_here(IN_APPLY);
    return TL_OK;
}

static const tl_statement statements[] = {
    {.name = "note",
     .sql = "INSERT INTO ledger (note) VALUES (CONCAT(:what, ' ', :serial_no))",
     .values = "what text"},
};

static void note_line(tl_book *book, const char *what)
{
    tl_book_line(book, "note");
    tl_book_text(book, "what", what);
}

static tl_status book_prepare(void *context, const tl_attempt *attempt, tl_reply *reply,
                              tl_book *book)
{
    (void)context;
    (void)attempt;
    (void)reply;
    note_line(book, "order");
    leave_here(IN_PREPARE);
    return TL_OK;
}

static tl_status book_success(void *context, const tl_attempt *attempt, const tl_reply *reply,
                              tl_book *book)
{
    (void)context;
    (void)attempt;
    (void)reply;
    note_line(book, "paid");
    leave_here(IN_APPLY);
    return TL_OK;
}

/* The same workflow in both forms: with a connection, and declared. */
static const char *const operations[] = {"WITHDRAW", "DECLARED"};

static void register_both(void)
{
    tl_workflow workflow = TL_WORKFLOW_INIT;

    workflow.channel.name = "fastpay";
    workflow.channel.idempotent = 1;
    workflow.execute = execute;
    workflow.op_code = operations[0];
    workflow.sql_prepare = prepare;
    workflow.sql_success = apply;
    CREW_STATUS(tl_workflow_register(workflows, &workflow), TL_OK);
    workflow.op_code = operations[1];
    workflow.sql_prepare = NULL;
    workflow.sql_success = NULL;
    workflow.statements = statements;
    workflow.statement_count = 1;
    workflow.book_prepare = book_prepare;
    workflow.book_success = book_success;
    CREW_STATUS(tl_workflow_register(workflows, &workflow), TL_OK);
}

FIXTURE(setup)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;

    db = database_new(server_shared(),
                      "beat_ms=100ms\nmax_hold_ms=2s\nexecute_ms=500ms\ncommit_ms=1s\n"
                      "schedule=10ms\nattempts=20\ngrace_ms=100ms\nclock_margin_ms=50ms\n");
    sql = database_connect(db);
    database_run(sql, "CREATE TABLE ledger (note VARCHAR(60) PRIMARY KEY) ENGINE=InnoDB");
    options.config_file = database_option_file(db);
    options.log = keep_alarms;
    CREW_STATUS(tl_client_open(&client, &options), TL_OK);
    CREW_STATUS(tl_workflows_new(&workflows, client), TL_OK);
    register_both();
}

FIXTURE(teardown)
{
    tl_workflows_free(workflows);
    tl_client_close(client);
    assert_string_equal(tl_error_message(), "");
    mysql_close(sql);
    database_free(db);
}

/* ---------------------------------------------------------------- in a service's call -- */

struct run {
    const char *operation;
    char serial[40];
    tl_answer answer;
    tl_status status;
};

static void run(void *context)
{
    struct run *r = context;
    tl_request request = TL_REQUEST_INIT;

    request.key = (tl_key){r->serial, "C-1", r->operation};
    request.payload = "1";
    request.payload_size = 1;
    r->status = tl_workflow_run(workflows, &request, &r->answer);
}

static void begin(struct run *r, const char *operation)
{
    static int number;
    const tl_answer empty = TL_ANSWER_INIT;

    memset(r, 0, sizeof *r);
    r->operation = operation;
    r->answer = empty;
    snprintf(r->serial, sizeof r->serial, "S-%d", ++number);
}

static long long count(const struct run *r, const char *what)
{
    return database_number(sql, "SELECT COUNT(*) FROM ledger WHERE note = '%s %s'", what,
                           r->serial);
}

/* Whoever catches it can settle the answer: what never returned is not known. */
static void leave_run(const char *operation, enum place place, leave_way way, int settles)
{
    struct run r;

    begin(&r, operation);
    atomic_store(&leaving_place, (int)place);
    atomic_store(&leaving_way, (int)way);
    atomic_store(&leaves, 1);
    leave_by(way, run, &r);
    assert_int_equal(atomic_load(&leaves), 0);
    /* Before the transaction nothing is in doubt. */
    if (place == IN_PREPARE && strcmp(operation, "DECLARED") == 0)
        database_expect(sql, 0, "SELECT COUNT(*) FROM trade_lock WHERE serial_no = '%s'", r.serial);
    if (settles) {
        CREW_STATUS(tl_workflow_settle(workflows, &r.answer),
                    place == IN_EXECUTE ? TL_IN_DOUBT : TL_SUCCEEDED);
        assert_int_equal(count(&r, "order"), 1);
        assert_int_equal(count(&r, "paid"), place != IN_EXECUTE);
    }
    tl_answer_clear(&r.answer);
    /* The thread, its log and the pool are as they were. */
    tl_work_end(0);
    begin(&r, operation);
    run(&r);
    CREW_STATUS(r.status, TL_SUCCEEDED);
    tl_answer_clear(&r.answer);
    assert_string_equal(tl_log_uuid(), "");
}

TEST(test_a_run_is_left)
{
    for (int form = 0; form < 2; form++)
        for (leave_way way = BY_LONGJMP; way < WAYS; way++)
            for (enum place place = IN_PREPARE; place < PLACES; place++) {
                print_message("%s, %s, place %d\n", operations[form], way_name(way), (int)place);
                leave_run(operations[form], place, way, 1);
                leave_run(operations[form], place, way, 0);
            }
}

/* ------------------------------------------------------------------------ by a worker -- */

static long long in_process(void)
{
    return database_number(sql, "SELECT COUNT(*) FROM trade_lock WHERE status = 'P'");
}

static void compensate(enum place place, int times)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker_counts counts = {.version = TL_WORKER_COUNTS_VERSION};
    tl_worker *worker = NULL;
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;

    options.threads = 2;
    options.idle_max_ms = 50;
    atomic_store(&leaving_place, (int)place);
    atomic_store(&leaving_way, (int)BY_THE_END_OF_ITS_THREAD);
    atomic_store(&leaves, times);
    atomic_store(&alarms, 0);
    CREW_STATUS(tl_worker_start(&worker, workflows, &options), TL_OK);
    while (in_process() > 0 && crew_now_ms() < end_ms)
        crew_sleep_ms(20);
    assert_int_equal(in_process(), 0);
    tl_worker_stop(worker);
    CREW_STATUS(tl_worker_wait(worker, PATIENCE_MS), TL_OK);
    CREW_STATUS(tl_worker_count(worker, &counts), TL_OK);
    assert_int_equal(counts.unknown, times);
    assert_int_equal(counts.in_flight, 0);
    assert_int_equal(atomic_load(&alarms), times);
    tl_worker_free(worker);
}

/* More threads end than it was started with; each trade is paid in the end, once. */
TEST(test_a_workers_thread_ends)
{
    for (enum place place = IN_EXECUTE; place < PLACES; place++) {
        struct run trades[6];

        atomic_store(&unknown, 1);
        for (int i = 0; i < 6; i++) {
            begin(&trades[i], operations[i % 2]);
            run(&trades[i]);
            CREW_STATUS(trades[i].status, TL_IN_DOUBT);
            tl_answer_clear(&trades[i].answer);
        }
        atomic_store(&unknown, 0);
        compensate(place, 3);
        for (int i = 0; i < 6; i++)
            assert_int_equal(count(&trades[i], "paid"), 1);
    }
}

TESTS_OF(workflow, setup, teardown)
