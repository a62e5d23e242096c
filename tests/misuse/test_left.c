/*
 * Callbacks that do not return: an exception, a longjmp, the end of the thread.  Each ends its
 * process, a child, with one sentence; then a worker of another process ends the trade, once.
 */
#include "leaving.h"
#include "support/crew.h"
#include "support/database.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/callback.h>
#include <tradelock/worker.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

/* What is left, and how the sentence names it. */
enum place { AN_ASK, A_LIST, IN_PREPARE, IN_EXECUTE, IN_SUCCESS, IN_BOOK, IN_QUERY, PLACES };
static const char *const names[PLACES] = {
    "a database callback", "a callback",   "book_prepare", "execute",
    "a database callback", "book_success", "query"};

static database *db;
static MYSQL *sql;
/* Of a child alone. */
static tl_client *client;
static tl_workflows *workflows;
static enum place place;
static leave_way way;
static char serial[40];
static int leaves;

static void leave_here(enum place at)
{
    if (leaves && at == place)
        leave_now(way);
}

/* ------------------------------------------------------------------------ the workflow -- */

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
    (void)context, (void)attempt, (void)reply;
    note_line(book, "order");
    leave_here(IN_PREPARE);
    return TL_OK;
}

static tl_status book_success(void *context, const tl_attempt *attempt, const tl_reply *reply,
                              tl_book *book)
{
    (void)context, (void)attempt, (void)reply;
    note_line(book, "paid");
    leave_here(IN_BOOK);
    return TL_OK;
}

static tl_status sql_success(void *context, const tl_attempt *attempt, const tl_reply *reply,
                             struct st_mysql *connection)
{
    char text[100];

    (void)context, (void)reply;
    snprintf(text, sizeof text, "INSERT INTO ledger VALUES ('paid %s')", attempt->key.serial_no);
    CREW_CHECK(mysql_query(connection, text) == 0);
    leave_here(IN_SUCCESS);
    return TL_OK;
}

static tl_execute_result execute(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context, (void)attempt, (void)reply;
    leave_here(IN_EXECUTE);
    return place == IN_QUERY ? TL_EXECUTE_UNKNOWN : TL_EXECUTE_SUCCEEDED;
}

static tl_query_result query(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context, (void)attempt, (void)reply;
    leave_here(IN_QUERY);
    return TL_QUERY_SUCCEEDED;
}

static void open_all(void)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_workflow workflow = TL_WORKFLOW_INIT;

    options.config_file = database_option_file(db);
    workflow.channel.name = "fastpay";
    workflow.channel.idempotent = 1;
    workflow.channel.can_query = 1;
    workflow.op_code = "WITHDRAW";
    workflow.execute = execute;
    workflow.query = query;
    workflow.statements = statements;
    workflow.statement_count = 1;
    workflow.book_prepare = book_prepare;
    if (place == IN_SUCCESS)
        workflow.sql_success = sql_success;
    else
        workflow.book_success = book_success;
    CREW_STATUS(tl_client_open(&client, &options), TL_OK);
    CREW_STATUS(tl_workflows_new(&workflows, client), TL_OK);
    CREW_STATUS(tl_workflow_register(workflows, &workflow), TL_OK);
}

/* ------------------------------------------------------------------------------ a child -- */

static tl_status write_and_leave(void *context, struct st_mysql *connection)
{
    (void)context;
    CREW_CHECK(mysql_query(connection, "INSERT INTO ledger VALUES ('undone')") == 0);
    leave_here(AN_ASK);
    return TL_OK;
}

static int show(void *context, const tl_view *view)
{
    (void)context, (void)view;
    leave_here(A_LIST);
    return 0;
}

static void bare_ask(void)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_key key = {serial, "C-1", "BARE"};
    tl_lock *lock = NULL;

    options.max_hold_ms = 60000;
    CREW_STATUS(tl_lock_new(&lock, client, &key, &options), TL_OK);
    (void)tl_lock_ask_with(lock, write_and_leave, NULL, 0);
}

static void run(void)
{
    static tl_answer answer = TL_ANSWER_INIT; /* a longjmp leaves it */
    tl_request request = TL_REQUEST_INIT;

    request.key = (tl_key){serial, "C-1", "WITHDRAW"};
    request.payload = "1";
    request.payload_size = 1;
    (void)tl_workflow_run(workflows, &request, &answer);
}

static void act(void *context)
{
    tl_filter filter = {.version = TL_FILTER_VERSION, .cust = "C-0"};

    (void)context;
    if (place == AN_ASK)
        bare_ask();
    else if (place == A_LIST)
        (void)tl_list(client, &filter, show, NULL);
    else
        run();
}

/* On the worker's thread, which a service cannot catch anything on. */
static void work(void)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker *worker = NULL;

    options.idle_max_ms = 50;
    act(NULL);
    CREW_STATUS(tl_worker_start(&worker, workflows, &options), TL_OK);
    (void)tl_worker_wait(worker, PATIENCE_MS);
}

static _Noreturn void child(const char *said)
{
    const int file = open(said, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    CREW_CHECK(file >= 0 && dup2(file, 2) == 2);
    leaves = 1;
    open_all();
    if (place == IN_QUERY)
        work();
    else
        leave_by(way, act, NULL);
    (void)tl_client_alive_ms(client); /* a longjmp is noticed here */
    _exit(3);
}

static void assert_said(const char *said)
{
    char line[300] = "", expected[300];
    FILE *file = fopen(said, "r");

    snprintf(expected, sizeof expected, "tradelock: %s was left by ", names[place]);
    assert_non_null(file);
    while (strstr(line, expected) == NULL)
        if (fgets(line, sizeof line, file) == NULL)
            fail_msg("no line says '%s', but '%s'", expected, line);
    fclose(file);
}

/* ---------------------------------------------------------------------------- the tests -- */

FIXTURE(setup)
{
    db = database_new(server_shared(), "beat_ms=100ms\nmax_hold_ms=2s\nexecute_ms=500ms\n"
                                       "commit_ms=1s\nschedule=10ms\nattempts=20\n"
                                       "grace_ms=100ms\nclock_margin_ms=50ms\n");
    sql = database_connect(db);
    database_run(sql, "CREATE TABLE ledger (note VARCHAR(60) PRIMARY KEY) ENGINE=InnoDB");
}

FIXTURE(teardown)
{
    mysql_close(sql);
    database_free(db);
}

/* What a child left in process, ended by a worker of this process. */
static void end_it(void)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker *worker = NULL;
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;

    leaves = 0;
    open_all();
    options.idle_max_ms = 50;
    CREW_STATUS(tl_worker_start(&worker, workflows, &options), TL_OK);
    while (database_number(sql, "SELECT COUNT(*) FROM trade_lock WHERE status = 'P'") > 0 &&
           crew_now_ms() < end_ms)
        crew_sleep_ms(20);
    tl_worker_free(worker);
    tl_workflows_free(workflows);
    tl_client_close(client);
    database_expect(sql, 0, "SELECT COUNT(*) FROM trade_lock WHERE status = 'P'");
    database_expect(sql, place >= IN_EXECUTE, "SELECT COUNT(*) FROM ledger WHERE note = 'paid %s'",
                    serial);
    database_expect(sql, 0, "SELECT COUNT(*) FROM ledger WHERE note = 'undone'");
}

static void leave(void)
{
    static int number;
    char said[100];
    int status;
    pid_t pid;

    snprintf(serial, sizeof serial, "S-%d", ++number);
    snprintf(said, sizeof said, "left-%d.%d", (int)getpid(), number);
    print_message("%s by %s\n", names[place], way_name(way));
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        child(said);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_said(said);
    unlink(said);
    end_it();
}

/* A trade that every child can list. */
TEST(test_the_process_ends)
{
    tl_lock *lock = NULL;
    tl_key key = {"LISTED", "C-0", "LISTED"};
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_ending ending = TL_ENDING_INIT;

    open_all();
    options.max_hold_ms = 60000;
    ending.outcome = TL_OUTCOME_SUCCESS;
    CREW_STATUS(tl_lock_new(&lock, client, &key, &options), TL_OK);
    CREW_STATUS(tl_lock_ask(lock, 0), TL_GRANTED);
    CREW_STATUS(tl_lock_finish(lock, &ending), TL_SUCCEEDED);
    tl_lock_free(lock);
    tl_workflows_free(workflows);
    tl_client_close(client);
    for (place = AN_ASK; place < PLACES; place++)
        for (way = BY_LONGJMP; way < WAYS; way++)
            /* On a worker's thread nobody can catch what its callback throws. */
            if (place != IN_QUERY || way == BY_THE_END_OF_ITS_THREAD)
                leave();
}

TESTS_OF(left, setup, teardown)
