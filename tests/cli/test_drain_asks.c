/* What a drain waits for that has no row which others see: an ask whose callback runs, one that
 * waits for its channel's limit, what was submitted, a group whose commit is late, and claims. */
#include "operators.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/books.h>
#include <tradelock/callback.h>
#include <tradelock/lane.h>
#include <tradelock/layer.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define CHANNEL "idempotent"
#define BATCH 24 /* more asks than run alone, each on its own connection */

#define DRAIN(...) RUN("drain", __VA_ARGS__, "--config", operators.config[ANN])

/* Nothing is in anybody's hand, and yet the drain waits. */
static void expect_waits(void)
{
    ENDS(DRAIN("--reason", "maintenance", "--timeout", "4s"), 6, "In process still: 0; 1 process");
}

static void expect_waits_on(void)
{
    ENDS(DRAIN("--wait", "--timeout", "4s"), 6, "In process still: 0; 1 process");
}

static void expect_empty(void)
{
    ENDS(DRAIN("--wait", "--timeout", "1m"), 0, "Nothing is in process");
    assert_int_equal(database_number(operators.h.sql, "SELECT COUNT(*) FROM trade_lock WHERE "
                                                      "status = 'P' AND session_id IS NOT NULL"),
                     0);
}

static void await_check(tl_client *client, tl_status status)
{
    AWAIT_WHILE(tl_channel_check(client, "any", "ANY") != status);
}

static void begin_drain(void)
{
    database_run(operators.h.sql,
                 "BEGIN; CALL tl_channel_decide('*', '', 1, NULL, 'ann', 'maintenance'); COMMIT");
}

static void end_drain(void)
{
    ENDS(DRAIN("--end", "--reason", "it is over"), 0, "The drain is over");
    await_check(operators.h.client, TL_OK);
}

static void await_beats(tl_client *client, uint64_t more)
{
    tl_stats stats = TL_STATS_INIT;
    uint64_t until;

    assert_status(tl_client_stats(client, &stats), TL_OK);
    until = stats.beats + more;
    while (stats.beats < until) {
        usleep(10000);
        assert_status(tl_client_stats(client, &stats), TL_OK);
    }
}

static tl_lock *new_lock(const char *serial, const char *channel)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    const tl_key key = {serial, "C1", "BARE"};
    tl_lock *lock = NULL;

    options.max_hold_ms = 600000;
    options.channel = channel;
    options.amount_minor = 1;
    options.currency = "EUR";
    assert_status(tl_lock_new(&lock, operators.h.client, &key, &options), TL_OK);
    return lock;
}

static void finish(tl_lock *lock)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = TL_OUTCOME_SUCCESS;
    assert_status(tl_lock_finish(lock, &ending), TL_SUCCEEDED);
    tl_lock_free(lock);
}

/* ------------------------------------------------------------- a callback that runs -- */

struct asking {
    pthread_t thread;
    tl_lock *lock;
    tl_book *book;
    tl_status status;
    atomic_int runs, may_end;
    atomic_int waits; /* gettid(), as it is about to ask */
};

static tl_status block(void *context, MYSQL *connection)
{
    struct asking *a = context;

    (void)connection;
    atomic_store(&a->runs, 1);
    while (!atomic_load(&a->may_end))
        usleep(1000);
    return TL_OK;
}

static void *ask_with(void *argument)
{
    struct asking *a = argument;

    a->status = tl_lock_ask_with(a->lock, block, a, 0);
    return NULL;
}

TEST(test_a_prepare_callback)
{
    struct asking a = {.lock = new_lock("CALLBACK", NULL)};

    assert_int_equal(pthread_create(&a.thread, NULL, ask_with, &a), 0);
    while (!atomic_load(&a.runs))
        usleep(1000);
    expect_waits();
    assert_int_equal(database_number(operators.h.sql, "SELECT COUNT(*) FROM trade_lock WHERE "
                                                      "serial_no = 'CALLBACK'"),
                     0);
    atomic_store(&a.may_end, 1);
    pthread_join(a.thread, NULL);
    assert_status(a.status, TL_GRANTED);
    ENDS(DRAIN("--wait", "--timeout", "4s"), 6, "CALLBACK");
    finish(a.lock);
    expect_empty();
    end_drain();
}

/* ---------------------------------------------------------- a limit that is waited for -- */

static void *ask(void *argument)
{
    struct asking *a = argument;
    const int64_t end_ms = now_ms() + PATIENCE_MS;

    /* Its half second is over many times before the drain is heard. */
    do
        a->status = tl_lock_ask(a->lock, 0);
    while (a->status == TL_OVERLOADED && !atomic_load(&a->may_end) && now_ms() < end_ms);
    return NULL;
}

TEST(test_a_permit)
{
    tl_client *client = operators.h.client;
    tl_lock *first = new_lock("FIRST", CHANNEL);
    struct asking a = {.lock = new_lock("SECOND", CHANNEL)};

    assert_status(tl_channel_add(client, CHANNEL, "BARE", NULL), TL_OK);
    ENDS(RUN("channel", "limit", CHANNEL, "--op", "BARE", "--sends", "1", "--reason", "slow",
             "--config", operators.config[ANN]),
         0, "");
    await_beats(client, 3);
    assert_status(tl_lock_ask(first, 0), TL_GRANTED);
    assert_int_equal(pthread_create(&a.thread, NULL, ask, &a), 0);
    usleep(200000);
    begin_drain();
    await_check(client, TL_OVERLOADED);
    /* The one that waits now looked at the pauses before. */
    finish(first);
    expect_empty();
    atomic_store(&a.may_end, 1);
    pthread_join(a.thread, NULL);
    assert_status(a.status, TL_OVERLOADED);
    tl_lock_free(a.lock);
    end_drain();
    ENDS(RUN("channel", "limit", CHANNEL, "--op", "BARE", "--none", "--reason", "over", "--config",
             operators.config[BOB]),
         0, "");
}

/* ------------------------------------------------------------------------------ books -- */

static tl_books *books;

static tl_book *new_book(void)
{
    tl_book *book = NULL;

    assert_status(tl_book_new(&book, books), TL_OK);
    tl_book_line(book, "hot");
    return book;
}

/* Somebody else holds the row that all books change. */
static MYSQL *hold_row(void)
{
    MYSQL *sql = database_connect(operators.h.db);

    database_run(sql, "BEGIN; UPDATE hot SET n = n + 1");
    return sql;
}

static void let_row_go(MYSQL *sql)
{
    database_run(sql, "ROLLBACK");
    mysql_close(sql);
}

static void declare_books(void)
{
    static const tl_statement statements[] = {
        {.name = "hot", .sql = "UPDATE hot SET n = n + :amount_minor WHERE id = 1", .shared = 1}};

    database_run(operators.h.sql, "CREATE TABLE hot (id INT PRIMARY KEY, n BIGINT NOT NULL) "
                                  "ENGINE = InnoDB; INSERT INTO hot VALUES (1, 0)");
    assert_status(tl_books_new(&books, operators.h.client, statements, 1), TL_OK);
}

static void on_done(void *context, tl_lock *lock, tl_status status)
{
    struct asking *a = context;

    (void)lock;
    a->status = status;
    atomic_store(&a->may_end, 1);
}

static struct {
    struct asking first, asks[2];
    MYSQL *row;
    int submitted;
} together;

/* What is submitted while an ask is completed is taken together, before the drain begins. */
static void submit_together(void *context, tl_lock *lock, tl_status status)
{
    int taken = 0;

    together.row = hold_row();
    for (int i = 0; i < 2; i++) {
        struct asking *a = &together.asks[i];

        taken += tl_lock_ask_book_submit(a->lock, a->book, on_done, a) == TL_OK;
    }
    together.submitted = taken;
    on_done(context, lock, status);
}

TEST(test_submitted)
{
    struct asking *first = &together.first, *a = together.asks;

    first->lock = new_lock("SUBMIT-0", NULL);
    first->book = new_book();
    a[0].lock = new_lock("SUBMIT-1", NULL);
    a[0].book = new_book();
    a[1].lock = new_lock("SUBMIT-2", NULL);
    a[1].book = new_book();
    assert_status(tl_lock_ask_book_submit(first->lock, first->book, submit_together, first), TL_OK);
    while (!atomic_load(&first->may_end))
        usleep(1000);
    assert_int_equal(together.submitted, 2);
    assert_status(first->status, TL_GRANTED);
    finish(first->lock);
    tl_book_free(first->book);
    expect_waits();
    let_row_go(together.row);
    for (int i = 0; i < 2; i++) {
        while (!atomic_load(&a[i].may_end))
            usleep(1000);
        assert_status(a[i].status, TL_GRANTED);
        finish(a[i].lock);
        tl_book_free(a[i].book);
    }
    expect_empty();
    end_drain();
}

static void *ask_book(void *argument)
{
    struct asking *a = argument;

    atomic_store(&a->waits, gettid());
    a->status = tl_lock_ask_book(a->lock, a->book, 0);
    return NULL;
}

TEST(test_a_late_group)
{
    static struct asking a[BATCH];
    MYSQL *row = hold_row();
    tl_stats before = TL_STATS_INIT, after = TL_STATS_INIT;
    char serial[32];

    assert_status(tl_client_stats(operators.h.client, &before), TL_OK);
    for (int i = 0; i < BATCH; i++) {
        snprintf(serial, sizeof serial, "GROUP-%d", i);
        a[i].lock = new_lock(serial, NULL);
        a[i].book = new_book();
        assert_int_equal(pthread_create(&a[i].thread, NULL, ask_book, &a[i]), 0);
    }
    for (int i = 0; i < BATCH; i++)
        crew_await_asleep(&a[i].waits);
    expect_waits();
    expect_waits_on();
    let_row_go(row);
    for (int i = 0; i < BATCH; i++) {
        pthread_join(a[i].thread, NULL);
        assert_status(a[i].status, TL_GRANTED);
        tl_book_free(a[i].book);
    }
    assert_status(tl_client_stats(operators.h.client, &after), TL_OK);
    assert_true(after.groups > before.groups);
    ENDS(DRAIN("--wait", "--timeout", "4s"), 6, "GROUP-");
    for (int i = 0; i < BATCH; i++)
        finish(a[i].lock);
    expect_empty();
    end_drain();
}

/* ----------------------------------------------------------------------------- claims -- */

struct claiming {
    pthread_t thread;
    tl_client *client;
    const char *serial; /* by key; NULL: what is due */
    tl_lock *lock;
    tl_status status;
};

static void *claim(void *argument)
{
    struct claiming *c = argument;
    tl_claim_options options = TL_CLAIM_OPTIONS_INIT;
    tl_lock_options wanted = TL_LOCK_OPTIONS_INIT;
    const tl_key key = {c->serial, "C1", WITHDRAW_OP};
    size_t count = 1;

    if (c->serial != NULL) {
        wanted.lane = TL_LANE_RETRY;
        wanted.max_hold_ms = 600000;
        c->status = tl_lock_new(&c->lock, c->client, &key, &wanted);
        if (c->status == TL_OK)
            c->status = tl_lock_ask(c->lock, 0);
        return NULL;
    }
    options.op_code = WITHDRAW_OP;
    options.max_hold_ms = 600000;
    c->status = tl_claim_due(c->client, &options, &c->lock, &count);
    if (c->status == TL_OK && count == 1)
        c->status = TL_GRANTED;
    return NULL;
}

static void put_back(tl_lock *lock)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = TL_OUTCOME_UNKNOWN;
    ending.next_run_ms = 0;
    assert_status(tl_lock_finish(lock, &ending), TL_IN_DOUBT);
    tl_lock_free(lock);
}

struct named {
    const char *session_id;
    int obeys;
};

static int take_session(void *context, const tl_session_row *row)
{
    struct named *n = context;

    if (strcmp(row->session_id, n->session_id) == 0)
        n->obeys = row->obeys_drain;
    return 0;
}

static int obeys(tl_client *client)
{
    struct named n = {.session_id = tl_client_session(client), .obeys = -1};

    assert_status(tl_session_list(operators.h.client, take_session, &n), TL_OK);
    assert_int_not_equal(n.obeys, -1);
    return n.obeys;
}

/* Its statement waits in the server; the client has heard of the drain. */
static void claim_waits(const char *serial)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    MYSQL *table = database_connect(operators.h.db);
    struct claiming c = {.serial = serial};

    options.config_file = operators.admin;
    options.program = "claimer";
    options.flags = TL_CLIENT_NO_JANITOR; /* its round waits for nothing */
    assert_status(tl_client_open(&c.client, &options), TL_OK);
    database_run(table, "LOCK TABLES trade_lock WRITE");
    assert_int_equal(pthread_create(&c.thread, NULL, claim, &c), 0);
    usleep(500000);
    begin_drain();
    await_check(c.client, TL_OVERLOADED);
    await_beats(c.client, 5);
    assert_int_equal(obeys(c.client), 0);
    database_run(table, "UNLOCK TABLES");
    mysql_close(table);
    pthread_join(c.thread, NULL);
    assert_status(c.status, TL_GRANTED);
    put_back(c.lock);
    expect_empty();
    assert_int_equal(obeys(c.client), 1);
    tl_client_close(c.client);
    end_drain();
}

TEST(test_claims)
{
    operators_make_doubtful("DUE-1");
    database_run(operators.h.sql, "UPDATE trade_lock SET next_run_at = UTC_TIMESTAMP(6) WHERE "
                                  "serial_no = 'DUE-1' AND lane = 'R'");
    claim_waits("DUE-1");
    database_run(operators.h.sql, "UPDATE trade_lock SET next_run_at = UTC_TIMESTAMP(6) WHERE "
                                  "serial_no = 'DUE-1' AND lane = 'R'");
    claim_waits(NULL);
}

/* --------------------------------------------------------------------------- sessions -- */

/* Its process is stopped, and silent; it could go on, and ask, until somebody ends the session. */
TEST(test_a_silent_process)
{
    const pid_t pid = fork();
    int status;

    if (pid == 0) {
        tl_client_options options = TL_CLIENT_OPTIONS_INIT;
        tl_client *client = NULL;

        options.config_file = operators.admin;
        options.program = "stopped";
        assert_status(tl_client_open(&client, &options), TL_OK);
        raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    database_run(operators.h.sql, "UPDATE tl_session SET alive_until = UTC_TIMESTAMP(6) - INTERVAL "
                                  "1 SECOND WHERE program = 'stopped'");
    ENDS(DRAIN("--reason", "maintenance", "--timeout", "4s"), 6, "1 process");
    database_run(operators.h.sql, "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6), ended_by = "
                                  "session_id WHERE program = 'stopped'");
    expect_empty();
    end_drain();
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static int set_up(void **state)
{
    const int code = operators_set_up(state);

    /* What is blocked stays so for as long as a drain is waited for. */
    database_set(operators.h.db, HOUSE_SETTINGS_WITH("1m", "3m", "20s", "2m", "10m"));
    house_reopen(&operators.h);
    declare_books();
    return code;
}

static int tear_down(void **state)
{
    return operators_tear_down(state);
}

TESTS_OF(drain_asks, set_up, tear_down)
