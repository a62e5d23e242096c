/*
 * Every exported function, with NULL for each of its pointers in turn, and with structs that were
 * not filled in.  A call that fails says TL_INVALID and a sentence, one that cannot fail does
 * nothing or answers as if there were nothing there, and none of them ends the process.
 *
 * The calls are made by calls.awk from the public headers, and from calls.txt, which says what is
 * special.  tests/header/test_exports compares the functions, and how many pointers each takes, with
 * what the compiler reads.
 */
#include "support/crew.h"
#include "support/database.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/books.h>
#include <tradelock/callback.h>
#include <tradelock/fleet_workflow.h>
#include <tradelock/layer.h>
#include <tradelock/money.h>
#include <tradelock/row_lock.h>
#include <tradelock/struct.h>
#include <tradelock/submit.h>
#include <tradelock/workflow.h>

#include <signal.h>
#include <sys/wait.h>

/* What valid arguments are made of; in the child. */
static struct {
    MYSQL *in_transaction;
    tl_client *client;
    tl_lock *fresh, *held;
    tl_mutex *mutex;
    tl_rw *rw;
    tl_workflows *workflows, *empty;
    tl_worker *worker;
    tl_books *books;
    tl_book *book;
    tl_fleet *fleet; /* of one shard, the same database */
    tl_fleet_workflows *all;
    tl_fleet_worker *all_worker;
    void *request;
} have;

static database *db;
static char fleet_file[640];

static const tl_key key = {"S-1", "C-1", "WITHDRAW"};
/* Of this child: one that was ended before it holds its own for a while. */
static char one[32], serial[32];
static const char *const names[] = {one};

/* --------------------------------------------------------------------- structs -- */

static tl_execute_result pay(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)attempt;
    (void)reply;
    return TL_EXECUTE_SUCCEEDED;
}

static const tl_workflow workflow = {.version = TL_WORKFLOW_VERSION,
                                     .op_code = "WITHDRAW",
                                     .channel = {.name = "fastpay", .idempotent = 1},
                                     .execute = pay};

static tl_status register_at_shard(void *context, const char *shard, tl_client *client,
                                   tl_workflows *workflows, void **state)
{
    (void)context;
    (void)shard;
    (void)client;
    (void)state;
    return tl_workflow_register(workflows, &workflow);
}

static tl_client_options client_options = {.version = TL_CLIENT_OPTIONS_VERSION,
                                           .flags = TL_CLIENT_NO_JANITOR};
static const tl_client_options shard_options = {
    .version = TL_CLIENT_OPTIONS_VERSION, .flags = TL_CLIENT_NO_JANITOR, .config_file = fleet_file};
static const tl_fleet_options fleet_options = {.version = TL_FLEET_OPTIONS_VERSION,
                                               .client = &shard_options};
static tl_fleet_workflows_options all_options = {.version = TL_FLEET_WORKFLOWS_OPTIONS_VERSION,
                                                 .open = register_at_shard};
static const tl_lock_options lock_options = {
    .version = TL_LOCK_OPTIONS_VERSION, .max_hold_ms = 60000, .payload = "1", .payload_size = 1};
static const tl_mutex_options mutex_options = {.version = TL_MUTEX_OPTIONS_VERSION,
                                               .max_hold_ms = 60000};
static const tl_rw_options rw_options = {.version = TL_RW_OPTIONS_VERSION, .max_hold_ms = 60000};
static const tl_statement statement = {
    .name = "note", .sql = "INSERT INTO note VALUES (:id, :what)", .values = "id int, what text"};

/* ------------------------------------------------------------------- the calls -- */

static int is_empty(const char *text)
{
    return text != NULL && text[0] == '\0';
}

static int is_text(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* The last answer that was a status. */
static tl_status last;

static int is_invalid(tl_status got)
{
    last = got;
    return got == TL_INVALID && !is_empty(tl_error_message());
}

static int is_the_callers(tl_status got)
{
    last = got;
    return tl_status_class(got) == TL_CLASS_CALLER && !is_empty(tl_error_message());
}

/* What may be NULL is. */
static int is_taken(tl_status got)
{
    last = got;
    return got != TL_INVALID;
}

struct entry {
    const char *call;   /* or a sentence: what was not decided about it */
    const char *answer; /* what it must be */
    int (*make)(void);  /* 1: it was; NULL: not decided */
};

/* What is generated has callbacks that use nothing, or are not used, and formats that are NULL. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wformat"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
#include "null_calls.h"
#pragma GCC diagnostic pop

#define ENTRIES (sizeof table / sizeof table[0])

/* Of a new function somebody may have to say what is a valid argument, or what it answers. */
TEST(test_every_function_is_decided)
{
    int missing = 0;

    for (size_t i = 0; i < ENTRIES; i++)
        if (table[i].make == NULL) {
            print_error("%s\n", table[i].call);
            missing++;
        }
    assert_int_equal(missing, 0);
}

/* ------------------------------------------------------------------- the child -- */

static void take_locks(void)
{
    tl_key held = {serial, serial, "WITHDRAW"};

    snprintf(one, sizeof one, "one-%ld", (long)getpid());
    snprintf(serial, sizeof serial, "S-%ld", (long)getpid());
    CREW_STATUS(tl_lock_new(&have.fresh, have.client, &key, &lock_options), TL_OK);
    CREW_STATUS(tl_lock_new(&have.held, have.client, &held, &lock_options), TL_OK);
    CREW_STATUS(tl_lock_ask(have.held, 0), TL_GRANTED);
    CREW_STATUS(tl_mutex_new(&have.mutex, have.client, one, &mutex_options), TL_OK);
    CREW_STATUS(tl_mutex_lock(have.mutex, 0), TL_GRANTED);
    CREW_STATUS(tl_rw_new(&have.rw, have.client, one, &rw_options), TL_OK);
    CREW_STATUS(tl_rw_read(have.rw, 0), TL_GRANTED);
}

static void open_all(void)
{
    tl_worker_options of_worker = TL_WORKER_OPTIONS_INIT;

    CREW_STATUS(tl_client_open(&have.client, &client_options), TL_OK);
    have.in_transaction = database_connect(db);
    database_run(have.in_transaction, "SET idle_transaction_timeout = 120; BEGIN");
    CREW_STATUS(tl_workflows_new(&have.workflows, have.client), TL_OK);
    CREW_STATUS(tl_workflow_register(have.workflows, &workflow), TL_OK);
    CREW_STATUS(tl_workflows_new(&have.empty, have.client), TL_OK);
    CREW_STATUS(tl_worker_start(&have.worker, have.workflows, &of_worker), TL_OK);
    CREW_STATUS(tl_struct_new(&have.request, "tl_request"), TL_OK);
    CREW_STATUS(tl_books_new(&have.books, have.client, &statement, 1), TL_OK);
    CREW_STATUS(tl_book_new(&have.book, have.books), TL_OK);
    take_locks();
    CREW_STATUS(tl_fleet_open(&have.fleet, &fleet_options), TL_OK);
    all_options.fleet = have.fleet;
    CREW_STATUS(tl_fleet_workflows_new(&have.all, &all_options), TL_OK);
    CREW_STATUS(tl_fleet_worker_start(&have.all_worker, have.all, &of_worker), TL_OK);
}

/* What parent and child know of each other. */
struct shared {
    size_t entry;
    int wrong, calls;
};

static void call(struct shared *shared, const struct entry *entry)
{
    if (entry->make == NULL)
        return;
    tl_work_end(0);
    last = tl_error_report(TL_OK, "%s", "");
    shared->calls++;
    if (entry->make())
        return;
    shared->wrong++;
    fprintf(stderr, "%s: %s is not so; the status is %s \"%s\"\n", entry->call, entry->answer,
            tl_status_name(last), tl_error_message());
}

/* From where the child before this one was ended. */
static void call_all(void *context, int unused)
{
    static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
    struct shared *shared = context;

    (void)unused;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], SIG_DFL);
    open_all();
    for (; shared->entry < ENTRIES; shared->entry++)
        call(shared, &table[shared->entry]);
    _exit(0);
}

TEST(test_no_call_ends_the_process)
{
    struct shared *shared = crew_share(sizeof *shared);
    int ended = 0;

    while (shared->entry < ENTRIES) {
        int how = 0;
        pid_t child = crew_fork(call_all, shared, 0);

        assert_int_equal(waitpid(child, &how, 0), child);
        if (how == 0)
            break;
        /* Under a sanitizer it is an exit. */
        print_error("%s: ended by %s %d\n", table[shared->entry].call,
                    WIFSIGNALED(how) ? "signal" : "exit",
                    WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
        ended++;
        shared->entry++;
    }
    print_message("%d calls, %d wrong, %d ended the process\n", shared->calls, shared->wrong,
                  ended);
    assert_int_equal(shared->wrong + ended, 0);
    crew_unshare(shared, sizeof *shared);
}

/* The database becomes the one shard of a fleet, with all customers. */
static void make_fleet(void)
{
    tl_client_options options = client_options;
    tl_fleet_joining joining = TL_FLEET_JOINING_INIT;
    tl_fleet_joined joined;
    tl_client *client = NULL;
    FILE *file;

    options.flags |= TL_CLIENT_NO_SESSION;
    joining.fleet = "payouts";
    joining.shard = "a";
    assert_int_equal(tl_client_open(&client, &options), TL_OK);
    assert_int_equal(tl_fleet_join(&client, 1, 0, &joining, &joined), TL_OK);
    tl_client_close(client);
    snprintf(fleet_file, sizeof fleet_file, "%s.fleet", database_option_file(db));
    file = fopen(fleet_file, "we");
    assert_non_null(file);
    fprintf(file,
            "[tradelock]\nsession_ms=30s\nfleet=payouts\nshards=a\n[tradelock-client]\nuser=%s\n"
            "database=%s\n[tradelock-client-a]\nsocket=%s\n",
            server_user(server_shared()), database_name(db), server_socket(server_shared()));
    assert_int_equal(fclose(file), 0);
}

FIXTURE(setup)
{
    MYSQL *sql;

    db = database_new(server_shared(), "session_ms=30s\n");
    client_options.config_file = database_option_file(db);
    sql = database_connect(db);
    database_run(sql, "CREATE TABLE note (id INT PRIMARY KEY, what TEXT) ENGINE = InnoDB");
    mysql_close(sql);
    make_fleet();
}

FIXTURE(teardown)
{
    unlink(fleet_file);
    database_free(db);
}

TESTS_OF(null, setup, teardown)
