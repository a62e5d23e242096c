/*
 * A slot moves from one server to another while processes ask at both: every key is granted once,
 * wherever it is asked for, and everything that its customers had is there afterwards.
 *
 *     --askers=3 --long=0
 */
#include "fixture.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/layer.h>

#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define SETTINGS "session_ms=2m\npool_wait_ms=1m\ncommit_ms=1m\nbusiness_lock_wait_s=1s\n"
#define CUSTOMERS 6
#define KEYS 100000

static struct {
    server *servers[2];
    database *at[2];
    MYSQL *sql[2];
    char cust[CUSTOMERS][16];
    unsigned slot;
} f;

/* Shared with the processes. */
static struct together {
    atomic_int stop;
    atomic_int next;            /* key */
    atomic_uchar granted[KEYS]; /* how often */
    atomic_uchar known[KEYS];   /* its asker heard that it was done, after its grant */
    atomic_int grants, misdirected, overloaded, filed;
    atomic_int largest, seen; /* transaction: rows that it had changed; how often one was seen */
} *t;

static tl_client *client_at(int shard, unsigned flags)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;
    tl_status status;

    options.config_file = database_option_file(f.at[shard]);
    options.flags = flags;
    status = tl_client_open(&client, &options);
    if (status != TL_OK)
        server_panic("no client: %s", tl_error_message());
    return client;
}

static void join(tl_client *const *shards, int own, const unsigned char *slots)
{
    tl_fleet_joining joining = TL_FLEET_JOINING_INIT;

    joining.fleet = "payouts";
    joining.shard = own == 0 ? "a" : "b";
    joining.slots = slots;
    CREW_STATUS(tl_fleet_join(shards, 2, (size_t)own, &joining, NULL), TL_OK);
}

static void choose_customers(void)
{
    f.slot = (unsigned)database_number(f.sql[0], "SELECT tl_customer_slot('c0')");
    for (int found = 0, i = 0; found < CUSTOMERS; i++) {
        char name[16];

        snprintf(name, sizeof name, "c%d", i);
        if (database_number(f.sql[0], "SELECT tl_customer_slot('%s')", name) == (long long)f.slot)
            strcpy(f.cust[found++], name);
    }
}

static void make_tables(MYSQL *sql)
{
    database_run(sql, "CREATE TABLE account (cust_no VARCHAR(64) PRIMARY KEY, balance BIGINT, "
                      "rate DOUBLE, note BLOB, flag BIT(3), seen TIMESTAMP NULL) ENGINE = InnoDB;"
                      "CREATE TABLE posting (id BIGINT PRIMARY KEY, cust_no VARCHAR(64) NOT NULL, "
                      "amount DECIMAL(30, 10), text VARCHAR(50) CHARACTER SET latin1, "
                      "twice BIGINT AS (id * 2) STORED, KEY (cust_no), "
                      "FOREIGN KEY (cust_no) REFERENCES account (cust_no)) ENGINE = InnoDB;"
                      "CREATE TABLE letter (cust_no VARCHAR(64), text VARCHAR(9), KEY (cust_no)) "
                      "ENGINE = InnoDB;"
                      "CREATE TABLE no_cust (id INT PRIMARY KEY) ENGINE = InnoDB");
}

FIXTURE(setup)
{
    unsigned char slots[TL_FLEET_SLOTS];
    tl_client *shards[2];

    t = crew_share(sizeof *t);
    for (int i = 0; i < 2; i++) {
        f.servers[i] = server_start(NULL);
        f.at[i] = database_new(f.servers[i], SETTINGS);
        f.sql[i] = database_connect(f.at[i]);
        make_tables(f.sql[i]);
    }
    for (int i = 0; i < 2; i++)
        shards[i] = client_at(i, TL_CLIENT_NO_SESSION);
    /* All of the first shard's; the other one has none. */
    memset(slots, 1, sizeof slots);
    join(shards, 0, slots);
    memset(slots, 0, sizeof slots);
    join(shards, 1, slots);
    tl_client_close(shards[0]);
    tl_client_close(shards[1]);
    choose_customers();
}

FIXTURE(teardown)
{
    for (int i = 0; i < 2; i++) {
        mysql_close(f.sql[i]);
        database_free(f.at[i]);
    }
    crew_unshare(t, sizeof *t);
}

/* ---------------------------------------------------------------------------- moving -- */

struct mover {
    const char *look_at; /* calls look() after this step; NULL: never */
    void (*look)(int from);
    const char *die_at; /* after this step; NULL: never */
    int from;
    int64_t wait_ms;
    tl_status expected;
};

static int die(void *context, const char *step, const tl_slot_moved *moved)
{
    const struct mover *m = context;

    (void)moved;
    if (m->die_at != NULL && strcmp(step, m->die_at) == 0)
        raise(SIGKILL);
    if (m->look_at != NULL && strcmp(step, m->look_at) == 0)
        m->look(m->from);
    return 0;
}

static const char *const tables[] = {"account", "posting", "letter"};

static char sentence[512]; /* of the last move */

static tl_status move_tables(int from, int64_t wait_ms, struct mover *m, tl_slot_moved *moved,
                             const char *const *names, size_t count)
{
    tl_client *clients[] = {client_at(0, TL_CLIENT_NO_SESSION), client_at(1, TL_CLIENT_NO_SESSION)};
    tl_slot_moving moving = TL_SLOT_MOVING_INIT;
    tl_status status;

    moving.slot = f.slot;
    moving.actor = "ann";
    moving.reason = "test";
    moving.wait_ms = wait_ms;
    moving.tables = names;
    moving.tables_count = count;
    moving.progress = m != NULL ? die : NULL;
    moving.context = m;
    status = tl_slot_move(clients[from], clients[1 - from], &moving, moved);
    snprintf(sentence, sizeof sentence, "%s", tl_error_message());
    if (status != TL_OK && status != TL_ALREADY_DONE)
        print_message("%s: %s\n", tl_status_name(status), tl_error_message());
    tl_client_close(clients[0]);
    tl_client_close(clients[1]);
    return status;
}

static tl_status move_from(int from, int64_t wait_ms, struct mover *m, tl_slot_moved *moved)
{
    return move_tables(from, wait_ms, m, moved, tables, 3);
}

static void move_in_child(void *context, int number)
{
    struct mover *m = context;

    (void)number;
    CREW_STATUS(move_from(m->from, m->wait_ms, m, NULL), m->expected);
}

/* And the servers know: before that they tell the next one that another process moves the slot. */
static void expect_killed(pid_t child)
{
    int code = 0;

    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFSIGNALED(code) && WTERMSIG(code) == SIGKILL);
    for (int i = 0; i < 2; i++)
        while (database_number(f.sql[i],
                               "SELECT IS_FREE_LOCK(CONCAT('tl:slot:', %u, ':', MD5(DATABASE())))",
                               f.slot) != 1)
            crew_sleep_ms(10);
}

static void kill_after(const char *step, int from)
{
    struct mover m = {.die_at = step, .from = from, .wait_ms = PATIENCE_MS};

    expect_killed(crew_fork(move_in_child, &m, 0));
}

/* Killed after that step; then once more, to the end. */
static void kill_then_finish(const char *step, int from)
{
    struct mover m;

    kill_after(step, from);
    m = (struct mover){.from = from,
                       .wait_ms = PATIENCE_MS,
                       .expected = strcmp(step, "owned") == 0 ? TL_ALREADY_DONE : TL_OK};
    assert_int_equal(crew_wait(crew_fork(move_in_child, &m, 0)), 0);
}

static char *state_at(int shard)
{
    return database_text(f.sql[shard],
                         "SELECT COALESCE((SELECT CONCAT(state, ' ', version) FROM tl_slot WHERE "
                         "slot = %u), 'none')",
                         f.slot);
}

static void assert_state(int shard, const char *expected)
{
    char *state = state_at(shard);

    assert_string_equal(state, expected);
    free(state);
}

/* ---------------------------------------------------------------------------- asking -- */

/* Asks at one shard and, when sent away, at the other; a grant is counted, and ended. */
static void pay_key(tl_client *const *clients, int key, int *at)
{
    tl_lock_options options = sync_options("x");
    char serial[16];
    int done = 0;

    snprintf(serial, sizeof serial, "k%d", key);
    while (!done) {
        tl_status status;
        tl_lock *lock = ask(clients[*at], serial, f.cust[key % CUSTOMERS], &options, &status);

        switch (status) {
        case TL_GRANTED:
            atomic_fetch_add(&t->granted[key], 1);
            atomic_fetch_add(&t->grants, 1);
            CREW_STATUS(finish(lock, key % 7 == 0 ? TL_OUTCOME_FAILURE : TL_OUTCOME_SUCCESS,
                               key % 7 == 0 ? TL_PROOF_DECLARED : TL_PROOF_NONE),
                        key % 7 == 0 ? TL_FAILED : TL_SUCCEEDED);
            break;
        case TL_ALREADY_DONE:
        case TL_FAILED:
            atomic_store(&t->known[key], 1);
            done = 1;
            break;
        case TL_MISDIRECTED:
            atomic_fetch_add(&t->misdirected, 1);
            *at = 1 - *at;
            crew_sleep_ms(10);
            break;
        case TL_OVERLOADED:
            atomic_fetch_add(&t->overloaded, 1);
            crew_sleep_ms(20);
            break;
        default:
            if (status != TL_BUSY && tl_status_class(status) != TL_CLASS_RETRY)
                crew_fail(__FILE__, __LINE__, "%s: %s", tl_status_name(status), tl_error_message());
            crew_sleep_ms(20);
        }
        tl_lock_free(lock);
    }
}

static void ask_on(void *context, int number)
{
    tl_client *clients[] = {client_at(0, 0), client_at(1, 0)};
    int at = number % 2;

    (void)context;
    while (!atomic_load(&t->stop)) {
        const int key = atomic_fetch_add(&t->next, 1);

        CREW_CHECK(key < KEYS);
        pay_key(clients, key, &at);
        /* And once more what somebody paid before. */
        if (key > 20)
            pay_key(clients, key - 20, &at);
        /* Each later move carries the rows of these. */
        crew_sleep_ms((int)tier_pick(100, 100, 0));
    }
    tl_client_close(clients[0]);
    tl_client_close(clients[1]);
}

/* What somebody learns of payments meanwhile: each piece is filed once, wherever the trade is. */
static void file_on(void *context, int number)
{
    tl_client *clients[] = {client_at(0, TL_CLIENT_NO_SESSION), client_at(1, TL_CLIENT_NO_SESSION)};
    int at = 0;

    (void)context;
    (void)number;
    while (!atomic_load(&t->stop)) {
        const int key = atomic_load(&t->next) - 1 - (int)(crew_now_ms() % 20);
        tl_evidence evidence = TL_EVIDENCE_INIT;
        char serial[16];
        tl_status status;

        crew_sleep_ms(20);
        if (key < 0 || !atomic_load(&t->known[key]))
            continue;
        snprintf(serial, sizeof serial, "k%d", key);
        evidence.key = (tl_key){serial, f.cust[key % CUSTOMERS], "WITHDRAW"};
        evidence.outcome = "ACCEPTED";
        evidence.source = "statement";
        while ((status = tl_evidence_add(clients[at], &evidence)) == TL_MISDIRECTED ||
               tl_status_class(status) == TL_CLASS_RETRY) {
            if (status == TL_MISDIRECTED)
                at = 1 - at;
            crew_sleep_ms(20);
        }
        CREW_STATUS(status, TL_OK);
        atomic_fetch_add(&t->filed, 1);
    }
    tl_client_close(clients[0]);
    tl_client_close(clients[1]);
}

/* ------------------------------------------------------------------------ what is there -- */

static long long rows_at(int shard, const char *table)
{
    return database_number(f.sql[shard], "SELECT COUNT(*) FROM %s", table);
}

static int no_finding(void *context, const tl_violation *found)
{
    print_message("%s: %s: %s\n", found->rule, found->key.serial_no, found->sentence);
    ++*(int *)context;
    return 0;
}

static void assert_audit_clean(int shard)
{
    tl_client *client = client_at(shard, TL_CLIENT_NO_SESSION);
    tl_audit_counts counts = TL_AUDIT_COUNTS_INIT;
    const tl_audit_scope scope = TL_AUDIT_SCOPE_INIT;
    int found = 0;

    assert_status(tl_audit(client, &scope, no_finding, NULL, &found, &counts, NULL), TL_OK);
    assert_int_equal(found, 0);
    assert_true(counts.steps > 0);
    tl_client_close(client);
}

static void assert_paid_once(int owner)
{
    const int keys = atomic_load(&t->next);

    for (int key = 0; key < keys; key++)
        if (atomic_load(&t->known[key]) && atomic_load(&t->granted[key]) != 1)
            fail_msg("k%d was granted %d times", key, atomic_load(&t->granted[key]));
    /* Everything is at the owner. */
    assert_int_equal(database_number(f.sql[owner], "SELECT COUNT(*) FROM trade_lock WHERE "
                                                   "serial_no LIKE 'k%%' AND status <> 'P'"),
                     atomic_load(&t->grants));
    assert_int_equal(database_number(f.sql[owner], "SELECT COUNT(*) FROM trade_lock WHERE "
                                                   "status = 'P'"),
                     0);
    assert_audit_clean(owner);
}

/* ---------------------------------------------------------------------------- the tests -- */

static void fill(void)
{
    for (int i = 0; i < CUSTOMERS; i++)
        database_run(f.sql[0],
                     "INSERT INTO account VALUES ('%s', %d, 0.1 + %d / 3, X'00275c0aff', b'101', "
                     "'2024-02-29 01:02:03');"
                     "INSERT INTO posting (id, cust_no, amount, text) VALUES (%d, '%s', "
                     "-12345678901234567890.0123456789, 'it''s \\\\ %c%c'), (%d, '%s', NULL, NULL)",
                     f.cust[i], 100 + i, i, 2 * i, f.cust[i], 0xc3, 0xbc, 2 * i + 1, f.cust[i]);
    /* C0 is another customer than c0, whatever the collation of the column, and of another slot. */
    database_run(f.sql[0], "INSERT INTO letter VALUES ('%s', 'one'), ('C%s', 'other')", f.cust[0],
                 f.cust[0] + 1);
    assert_int_not_equal(database_number(f.sql[0], "SELECT tl_customer_slot('C%s')", f.cust[0] + 1),
                         f.slot);
}

TEST(test_empty_and_refused)
{
    static const char *const without[] = {"no_cust"}, *const none[] = {"nothing"},
                             *const ours[] = {"trade_lock"};
    tl_client *clients[] = {client_at(0, TL_CLIENT_NO_SESSION), client_at(1, TL_CLIENT_NO_SESSION)};
    tl_slot_moving moving = TL_SLOT_MOVING_INIT;

    moving.slot = f.slot;
    moving.tables_count = 1;
    assert_status(tl_slot_move(clients[0], clients[1], NULL, NULL), TL_INVALID);
    assert_status(tl_slot_move(clients[0], clients[1], &moving, NULL), TL_INVALID);
    moving.actor = "ann";
    moving.reason = "test";
    assert_status(tl_slot_move(clients[0], clients[1], &moving, NULL), TL_INVALID);
    moving.tables = without;
    assert_status(tl_slot_move(clients[0], clients[1], &moving, NULL), TL_INVALID);
    moving.tables = none;
    assert_status(tl_slot_move(clients[0], clients[1], &moving, NULL), TL_INVALID);
    moving.tables = ours;
    assert_status(tl_slot_move(clients[0], clients[1], &moving, NULL), TL_INVALID);
    moving.tables_count = 0;
    moving.slot = TL_FLEET_SLOTS;
    assert_status(tl_slot_move(clients[0], clients[1], &moving, NULL), TL_INVALID);
    moving.slot = f.slot;
    assert_status(tl_slot_move(clients[0], clients[0], &moving, NULL), TL_REFUSED);
    assert_status(tl_slot_move(clients[1], clients[0], &moving, NULL), TL_REFUSED);
    /* Another rule, or a restore that is open, at one of them. */
    database_run(f.sql[1], "CREATE OR REPLACE FUNCTION tl_customer_slot(cust VARCHAR(32)) RETURNS "
                           "SMALLINT UNSIGNED DETERMINISTIC NO SQL RETURN 7");
    assert_status(tl_slot_move(clients[0], clients[1], &moving, NULL), TL_REFUSED);
    assert_non_null(strstr(tl_error_message(), "another rule"));
    database_run(f.sql[1],
                 "CREATE OR REPLACE FUNCTION tl_customer_slot(\n    cust VARCHAR(32) CHARACTER SET "
                 "ascii COLLATE ascii_nopad_bin)\nRETURNS SMALLINT UNSIGNED DETERMINISTIC NO SQL "
                 "SQL SECURITY INVOKER\nRETURN CRC32(cust) %% 1024");
    assert_state(0, "owned 1");
    assert_state(1, "none");
    tl_client_close(clients[0]);
    tl_client_close(clients[1]);
}

/* A trade in doubt blocks, and the slot stays; so does a proposal.  Evidence that comes meanwhile is
 * taken. */
TEST(test_in_the_way)
{
    tl_client *client = client_at(0, TL_CLIENT_NO_JANITOR);
    tl_lock_options options = sync_options("x"), retry = retry_options();
    tl_lock *lock = granted(client, "doubt", f.cust[0], &options);
    tl_slot_moved moved = {0};
    tl_evidence evidence = TL_EVIDENCE_INIT;

    assert_status(move_from(0, 100, NULL, &moved), TL_BUSY);
    assert_string_equal(moved.why, "in process");
    assert_string_equal(moved.serial_no, "doubt");
    assert_state(0, "owned 1");
    assert_status(finish(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_IN_DOUBT);
    tl_lock_free(lock);
    assert_status(move_from(0, 100, NULL, &moved), TL_BUSY);
    assert_state(0, "owned 1");
    assert_state(1, "none");
    evidence.key = (tl_key){"doubt", f.cust[0], "WITHDRAW"};
    evidence.outcome = "SUCCEEDED";
    evidence.source = "test";
    assert_status(tl_evidence_add(client, &evidence), TL_OK);
    lock = granted(client, "doubt", f.cust[0], &retry);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
    tl_client_close(client);
}

/* The target has a row of these customers that the source has not, or has otherwise. */
TEST(test_differing_target)
{
    fill();
    database_run(f.sql[1], "INSERT INTO account (cust_no, balance) VALUES ('%s', 777777)",
                 f.cust[1]);
    assert_status(move_from(0, PATIENCE_MS, NULL, NULL), TL_REFUSED);
    assert_state(0, "owned 1");
    assert_state(1, "none");
    assert_int_equal(database_number(f.sql[1], "SELECT balance FROM account"), 777777);
    database_run(f.sql[1], "DELETE FROM account");
    /* A finding that was closed there is no trade, and in nobody's way. */
    database_run(f.sql[1],
                 "INSERT INTO audit_closing (finding, part, rule, cust_no, serial_no, op_code, "
                 "rev, reason, actor, thread_no) VALUES (RANDOM_BYTES(32), 1, 'test', '%s', 's', "
                 "'WITHDRAW', 1, 'why', 'ann', UUID())",
                 f.cust[1]);
}

static void assert_moved_rows(int from, int to)
{
    static const char *const texts[] = {
        "SELECT GROUP_CONCAT(CONCAT_WS('|', cust_no, balance, rate + 0, HEX(note), flag + 0, seen) "
        "ORDER BY cust_no) FROM account",
        "SELECT GROUP_CONCAT(CONCAT_WS('|', id, cust_no, amount, HEX(text), twice) ORDER BY id) "
        "FROM posting",
        "SELECT GROUP_CONCAT(CONCAT_WS('|', HEX(cust_no), HEX(serial_no), HEX(outcome), "
        "HEX(account), filed_at) ORDER BY evidence_id) FROM trade_evidence",
        "SELECT GROUP_CONCAT(CONCAT_WS('|', HEX(cust_no), HEX(serial_no), HEX(op_code), rev, "
        "logged_at, HEX(step), HEX(status), HEX(token), fence, epoch, HEX(account)) "
        "ORDER BY serial_no, op_code, rev) FROM trade_lock_log WHERE step <> 'moved'",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char *left = database_text(f.sql[from], "%s", texts[i]);
        char *right = database_text(f.sql[to], "%s", texts[i]);

        assert_non_null(left);
        assert_string_equal(left, right);
        free(left);
        free(right);
    }
    assert_int_equal(database_number(f.sql[to], "SELECT COUNT(*) FROM trade_lock WHERE step <> "
                                                "'moved'"),
                     0);
}

/* Nobody asks: every row is there as it was, each with one step more. */
TEST(test_quiet)
{
    tl_slot_moved moved = {0};

    assert_status(move_from(0, PATIENCE_MS, NULL, &moved), TL_OK);
    assert_int_equal(moved.customers, CUSTOMERS);
    assert_true(moved.rows > 3 * CUSTOMERS);
    assert_state(0, "gone 2");
    assert_state(1, "owned 2");
    assert_moved_rows(0, 1);
    /* A finding that had been closed where the slot never was went, which is on record there. */
    assert_int_equal(rows_at(1, "audit_closing"), 0);
    assert_int_equal(database_number(f.sql[1], "SELECT COUNT(*) FROM tl_act WHERE said LIKE "
                                               "'%%: 1 closings of findings here are removed'"),
                     1);
    assert_int_equal(database_number(f.sql[0], "SELECT COUNT(*) FROM tl_act WHERE what LIKE "
                                               "'fleet move%%'"),
                     rows_at(0, "tl_act"));
    assert_int_equal(database_number(f.sql[1], "SELECT COUNT(*) = 1 AND MAX(text) = 'one' FROM "
                                               "letter"),
                     1);
    assert_audit_clean(1);
    assert_status(move_from(0, PATIENCE_MS, NULL, NULL), TL_ALREADY_DONE);
    /* And back: what was left there is stale, and goes. */
    assert_status(move_from(1, PATIENCE_MS, NULL, NULL), TL_OK);
    assert_state(0, "owned 3");
    assert_state(1, "gone 3");
    assert_int_equal(rows_at(0, "letter"), 2);
    assert_audit_clean(0);
}

static void open_restore(int shard)
{
    tl_client *client = client_at(shard, TL_CLIENT_NO_SESSION);

    assert_status(tl_restore_declare(client, "ann", "a backup"), TL_OK);
    tl_client_close(client);
}

static void accept_restore(int shard)
{
    tl_client *client = client_at(shard, TL_CLIENT_NO_SESSION);

    database_propose(f.sql[shard]);
    assert_status(tl_restore_accept(client, "bob", "all is filed", NULL), TL_OK);
    tl_client_close(client);
}

/* The target is restored between the copying and the hand-over: to a moment at which some rows were
 * there, or to one before it had heard of the slot. */
TEST(test_target_that_lost_rows)
{
    for (int hears = 1; hears >= 0; hears--) {
        const int from = hears == 1 ? 0 : 1, to = 1 - from;
        const int64_t rows = rows_at(from, "trade_lock"), past = rows_at(from, "trade_lock_log");

        kill_after("gone", from);
        database_run(f.sql[to], "SET @tl_mover = (SELECT token FROM tl_slot WHERE state = "
                                "'arriving'); DELETE FROM trade_evidence; DELETE FROM trade_lock; "
                                "DELETE FROM trade_lock_past; SET @tl_mover = NULL");
        if (!hears) {
            database_run(f.sql[to], "DELETE FROM tl_slot WHERE state = 'arriving'");
            /* Since it went back in time it may have owned the slot, and paid. */
            assert_status(move_from(from, PATIENCE_MS, NULL, NULL), TL_REFUSED);
            assert_non_null(strstr(sentence, "declare a restore there first"));
            open_restore(to);
        }
        assert_status(move_from(from, PATIENCE_MS, NULL, NULL), TL_OK);
        assert_state(to, hears ? "owned 4" : "owned 5");
        assert_int_equal(rows_at(to, "trade_lock"), rows);
        assert_true(rows_at(to, "trade_lock_log") >= past);
        assert_audit_clean(to);
        if (!hears)
            accept_restore(to);
    }
}

/* Askers all the while; the mover is killed after each step, forth and back. */
TEST(test_killed)
{
    static const char *const steps[] = {"leaving",  "sealed", "arriving", "copied",
                                        "compared", "gone",   "owned"};
    const int askers = (int)crew_number("askers", 3);
    pid_t children[16], files;
    int owner = 0;
    unsigned version = 5;
    char expected[32];

    for (int i = 0; i < askers; i++)
        children[i] = crew_fork(ask_on, NULL, i);
    files = crew_fork(file_on, NULL, 0);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        crew_sleep_ms(300);
        kill_then_finish(steps[i], owner);
        version++;
        owner = 1 - owner;
        snprintf(expected, sizeof expected, "owned %u", version);
        assert_state(owner, expected);
        snprintf(expected, sizeof expected, "gone %u", version);
        assert_state(1 - owner, expected);
    }
    crew_sleep_ms(500);
    atomic_store(&t->stop, 1);
    for (int i = 0; i < askers; i++)
        assert_int_equal(crew_wait(children[i]), 0);
    assert_int_equal(crew_wait(files), 0);
    print_message("%d pieces of evidence\n", atomic_load(&t->filed));
    assert_true(atomic_load(&t->filed) > 0);
    assert_int_equal(database_number(f.sql[owner], "SELECT COUNT(*) FROM trade_evidence WHERE "
                                                   "source = 'statement'"),
                     atomic_load(&t->filed));
    print_message("%d grants, %d sent away, %d told to come again\n", atomic_load(&t->grants),
                  atomic_load(&t->misdirected), atomic_load(&t->overloaded));
    assert_true(atomic_load(&t->misdirected) > 0);
    assert_true(atomic_load(&t->overloaded) > 0);
    assert_paid_once(owner);
}

static int owner_now(void)
{
    return database_number(f.sql[0], "SELECT state = 'owned' FROM tl_slot WHERE slot = %u",
                           f.slot) == 1
               ? 0
               : 1;
}

static tl_status status_at(int shard, const char *serial)
{
    tl_client *client = client_at(shard, 0);
    tl_lock_options options = sync_options("x");
    tl_status status;
    tl_lock *lock = ask(client, serial, f.cust[0], &options, &status);

    if (status == TL_GRANTED)
        assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    else if (status == TL_OVERLOADED)
        assert_true(tl_lock_come_again_ms(lock) > 0);
    tl_lock_free(lock);
    tl_client_close(client);
    return status;
}

static void close_finding(int shard, unsigned expected_error)
{
    const int failed =
        mysql_query(f.sql[shard],
                    "INSERT INTO audit_closing (finding, part, rule, cust_no, serial_no, op_code, "
                    "rev, reason, actor, thread_no) SELECT RANDOM_BYTES(32), 1, 'test', cust_no, "
                    "serial_no, op_code, rev, 'why', 'ann', UUID() FROM trade_lock WHERE status "
                    "= 'Y' LIMIT 1");

    assert_int_equal(failed ? mysql_errno(f.sql[shard]) : 0, expected_error);
}

/* The mover has both rows of the slot locked.  A new trade comes again to the source, and is not told
 * that somebody has it; the target sends it away, since it may have been paid at the source.  What
 * is there is told. */
static void look_while_compared(int from)
{
    assert_status(status_at(from, "locked"), TL_OVERLOADED);
    assert_status(status_at(1 - from, "locked"), TL_MISDIRECTED);
    assert_status(status_at(from, "before"), TL_ALREADY_DONE);
    close_finding(from, 31004);
    close_finding(1 - from, 31004);
}

static void look_while_sealed(int from)
{
    assert_status(status_at(from, "locked"), TL_ALREADY_DONE);
    assert_status(status_at(from, "sealed"), TL_OVERLOADED);
    close_finding(from, 31004);
}

TEST(test_asked_while_it_is_handed_over)
{
    const int owner = owner_now();
    struct mover m = {.from = owner, .look_at = "compared", .look = look_while_compared};
    const long long closed = rows_at(owner, "audit_closing");

    assert_status(status_at(owner, "before"), TL_GRANTED);
    close_finding(owner, 0);
    assert_status(move_from(owner, PATIENCE_MS, &m, NULL), TL_OK);
    assert_status(status_at(1 - owner, "locked"), TL_GRANTED);
    assert_status(status_at(owner, "locked"), TL_MISDIRECTED);
    assert_int_equal(rows_at(1 - owner, "audit_closing"), closed + 1);
    /* What is found in the rows that were left may be closed there, and goes with them. */
    close_finding(owner, 0);
    m = (struct mover){.from = 1 - owner, .look_at = "sealed", .look = look_while_sealed};
    assert_status(move_from(1 - owner, PATIENCE_MS, &m, NULL), TL_OK);
    assert_int_equal(rows_at(owner, "audit_closing"), closed + 1);
    assert_status(status_at(owner, "locked"), TL_ALREADY_DONE);
}

/* Rows at the target that another connection has locked, until the mover tries once more. */
static struct mover held;

static void unlock_at_target(int from)
{
    database_run(f.sql[1 - from], "COMMIT");
    held.look_at = NULL;
}

static void lock_at_target(int from)
{
    database_run(f.sql[1 - from], "BEGIN");
    assert_true(database_number(f.sql[1 - from], "SELECT COUNT(*) FROM trade_lock FOR UPDATE") > 0);
    held.look_at = "arriving";
    held.look = unlock_at_target;
}

/* A step that the server refuses now is tried again, as long as the caller waits; as is one that a
 * deadlock undid. */
TEST(test_a_step_is_tried_again)
{
    const int owner = owner_now();

    assert_status(status_at(owner, "again"), TL_GRANTED);
    held = (struct mover){.from = owner, .look_at = "gone", .look = lock_at_target};
    assert_status(move_from(owner, PATIENCE_MS, &held, NULL), TL_OK);
    assert_null(held.look_at);
}

/* A table that cannot be read is a read that would be met. */
static void hide_at_target(int from)
{
    database_run(f.sql[1 - from], "RENAME TABLE letter TO letter_away, account TO account_away, "
                                  "trade_evidence TO trade_evidence_away");
}

/* While nobody has the slot its rows are not looked for: that would take as long as the tables are
 * large. */
TEST(test_nothing_is_read_once_it_is_gone)
{
    const int owner = owner_now(), other = 1 - owner;
    struct mover m = {.from = owner, .look_at = "gone", .look = hide_at_target};

    assert_status(status_at(owner, "hidden"), TL_GRANTED);
    assert_status(move_from(owner, PATIENCE_MS, &m, NULL), TL_OK);
    database_run(f.sql[other], "RENAME TABLE letter_away TO letter, account_away TO account, "
                               "trade_evidence_away TO trade_evidence");
    assert_audit_clean(other);
    assert_int_equal(database_number(f.sql[other],
                                     "SELECT COUNT(*) FROM trade_lock WHERE step <> 'moved' AND "
                                     "tl_customer_slot(cust_no) = %u",
                                     f.slot),
                     0);
}

#define RULE                                                                                       \
    "CREATE OR REPLACE FUNCTION tl_customer_slot(\n    cust VARCHAR(32) CHARACTER SET "            \
    "ascii COLLATE ascii_nopad_bin)\nRETURNS SMALLINT UNSIGNED DETERMINISTIC NO SQL "              \
    "SQL SECURITY INVOKER\nRETURN "
#define IDLE "idle_transaction_s=5s\n"
#define SLOW "2"

/* Each business table takes so long to look through, while the slot's rows are locked. */
static void be_slow_at_source(int from)
{
    database_run(f.sql[from],
                 RULE "IF(@@in_transaction = 1 AND cust = '%s', SLEEP(" SLOW "), 0) "
                      "+ CRC32(cust) %% 1024",
                 f.cust[0]);
}

/* All tables together take longer than a transaction may stand idle: the target's does not, while
 * the source is read. */
static void compare_large_tables(const char *settings)
{
    const int owner = owner_now(), other = 1 - owner;
    struct mover m = {.from = owner, .look_at = "copied", .look = be_slow_at_source};

    /* One row of the customer in each. */
    database_run(f.sql[owner],
                 "INSERT IGNORE INTO account (cust_no) VALUES ('%s');"
                 "DELETE FROM posting WHERE cust_no = '%s';"
                 "INSERT INTO posting (id, cust_no) VALUES (500000, '%s');"
                 "DELETE FROM letter WHERE cust_no = '%s'; INSERT INTO letter VALUES ('%s', 'one')",
                 f.cust[0], f.cust[0], f.cust[0], f.cust[0], f.cust[0]);
    for (int i = 0; i < 2; i++)
        database_set(f.at[i], settings);
    assert_status(move_from(owner, PATIENCE_MS, &m, NULL), TL_OK);
    database_run(f.sql[owner], RULE "CRC32(cust) %% 1024");
    for (int i = 0; i < 2; i++)
        database_set(f.at[i], SETTINGS);
    assert_audit_clean(other);
}

/* Nor does either transaction while a statement at the other end takes longer, for itself. */
TEST(test_large_tables_are_compared)
{
    compare_large_tables(SETTINGS IDLE);
    compare_large_tables(SETTINGS "idle_transaction_s=1s\n");
}

/* As in a backup from before the payment, with its slot as it was then. */
static void go_back(int shard, const char *serial, const char *slot)
{
    database_run(f.sql[shard],
                 "DELETE FROM trade_lock WHERE serial_no = '%s';"
                 "DELETE FROM trade_lock_past WHERE serial_no = '%s';"
                 "%s WHERE slot = %u",
                 serial, serial, slot, f.slot);
    open_restore(shard);
}

static tl_status file_paid(int shard, const char *serial)
{
    tl_client *client = client_at(shard, TL_CLIENT_NO_SESSION);
    tl_evidence evidence = TL_EVIDENCE_INIT;
    tl_status status;

    evidence.key = (tl_key){serial, f.cust[0], "WITHDRAW"};
    evidence.outcome = "SUCCEEDED";
    evidence.source = "statement";
    status = tl_evidence_add(client, &evidence);
    tl_client_close(client);
    return status;
}

/* The target paid, and is restored to a moment before it owned the slot.  What it paid is filed as soon
 * as the move is completed, before the restore is accepted, and is not granted again. */
TEST(test_target_that_paid)
{
    static const char *const slots[] = {
        "UPDATE tl_slot SET state = 'arriving', version = version - 1, other = (SELECT IF(shard = "
        "'a', 'b', 'a') FROM tl_schema)",
        "UPDATE tl_slot SET state = 'arriving', version = 1, other = 'x'",
        "UPDATE tl_slot SET state = 'gone', version = version - 2, other = 'x'",
        "DELETE FROM trade_lock; DELETE FROM trade_lock_past; DELETE FROM trade_evidence; DELETE "
        "FROM "
        "posting; DELETE FROM letter; DELETE FROM account; DELETE FROM tl_slot"};

    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        const int from = owner_now(), to = 1 - from;
        char serial[16];

        snprintf(serial, sizeof serial, "paid%zu", i);
        assert_status(move_from(from, PATIENCE_MS, NULL, NULL), TL_OK);
        assert_status(status_at(to, serial), TL_GRANTED);
        go_back(to, serial, slots[i]);
        assert_status(file_paid(to, serial), TL_MISDIRECTED);
        assert_status(move_from(from, PATIENCE_MS, NULL, NULL), TL_OK);
        assert_int_equal(to, owner_now());
        assert_status(status_at(to, serial), TL_ASK_CHANNEL);
        assert_status(file_paid(to, serial), TL_OK);
        accept_restore(to);
        assert_status(status_at(to, serial), TL_ALREADY_DONE);
        assert_audit_clean(to);
        /* No other move begins while one is open at either end. */
        open_restore(from);
        assert_status(move_from(to, 0, NULL, NULL), TL_ASK_CHANNEL);
        accept_restore(from);
        open_restore(to);
        assert_status(move_from(to, 0, NULL, NULL), TL_ASK_CHANNEL);
        accept_restore(to);
    }
}

static void assert_balance(int shard, long long expected)
{
    assert_int_equal(database_number(f.sql[shard],
                                     "SELECT balance FROM account WHERE cust_no = "
                                     "'%s'",
                                     f.cust[0]),
                     expected);
}

static tl_status move_back_with(int from, const char *const *names, size_t count)
{
    return move_tables(from, PATIENCE_MS, NULL, NULL, names, count);
}

/* Once a table went along it goes along, whether it is named or not: neither do its rows stay
 * behind, nor are those that were left there taken for its own.  One that never went along is taken
 * only where its rows are not at the target otherwise. */
TEST(test_forgotten_tables)
{
    static const char *const some[] = {"account", "posting"},
                             *const more[] = {"account", "posting", "letter", "later"},
                             *const twice[] = {"account", "posting", "account"},
                             *const comma[] = {"account,posting"},
                             *const closing[] = {"audit_closing"};
    const int owner = owner_now(), other = 1 - owner;
    char *before = state_at(owner);

    assert_status(move_back_with(owner, some, 2), TL_REFUSED);
    assert_non_null(strstr(sentence, "account,posting,letter"));
    assert_status(move_back_with(owner, twice, 3), TL_INVALID);
    assert_status(move_back_with(owner, comma, 1), TL_INVALID);
    assert_status(move_back_with(owner, closing, 1), TL_INVALID);
    assert_state(owner, before);
    free(before);
    database_run(f.sql[owner], "UPDATE account SET balance = 31 WHERE cust_no = '%s'", f.cust[0]);
    assert_status(move_back_with(owner, NULL, 0), TL_OK);
    assert_balance(other, 31);
    /* A table that is new: rows of it that are at the target are nobody's copies. */
    for (int i = 0; i < 2; i++)
        database_run(f.sql[i],
                     "CREATE TABLE later (cust_no VARCHAR(64) PRIMARY KEY, at INT) "
                     "ENGINE = InnoDB;"
                     "INSERT INTO later VALUES ('%s', %d)",
                     f.cust[0], i);
    assert_status(move_back_with(other, more, 4), TL_REFUSED);
    assert_int_equal(database_number(f.sql[owner], "SELECT at FROM later"), owner);
    database_run(f.sql[owner], "DELETE FROM later");
    /* A move that was begun goes on with the same ones, until it is taken back. */
    kill_after("arriving", other);
    assert_status(move_back_with(other, more, 4), TL_REFUSED);
    assert_status(move_back_with(other, some, 2), TL_REFUSED);
    assert_status(move_back_with(other, NULL, 0), TL_OK);
    assert_balance(owner, 31);
    assert_int_equal(rows_at(owner, "later"), 0);
    assert_status(move_back_with(owner, NULL, 0), TL_OK);
    assert_status(move_back_with(other, more, 4), TL_OK);
    assert_int_equal(database_number(f.sql[owner], "SELECT at FROM later"), other);
    /* From here on the fourth one belongs to it, at the completion too. */
    assert_status(move_back_with(owner, tables, 3), TL_REFUSED);
    assert_status(move_back_with(owner, NULL, 0), TL_OK);
    assert_status(move_back_with(other, NULL, 0), TL_OK);
    assert_audit_clean(owner);
}

/* --------------------------------------------------------------------------- cleaning -- */

struct cleaner {
    int at;
    const char *die_at; /* after this step has come so often; NULL: never */
    int times;
    const char *look_at; /* calls look() after this step; NULL: never */
    void (*look)(int at);
    int tables; /* that were told */
};

static int on_cleaning(void *context, const char *step, const tl_slot_moved *left)
{
    struct cleaner *c = context;

    (void)left;
    if (c->die_at != NULL && strcmp(step, c->die_at) == 0 && --c->times == 0)
        raise(SIGKILL);
    if (c->look_at != NULL && strcmp(step, c->look_at) == 0) {
        c->look_at = NULL;
        c->look(c->at);
    }
    return 0;
}

static void on_table(void *context, const char *table, uint64_t rows)
{
    struct cleaner *c = context;

    (void)table;
    CREW_CHECK(rows > 0);
    c->tables++;
}

static tl_status clean_by(struct cleaner *c, int owner, tl_slot_moved *left)
{
    tl_client *clients[] = {client_at(0, TL_CLIENT_NO_SESSION), client_at(1, TL_CLIENT_NO_SESSION)};
    tl_slot_cleaning cleaning = TL_SLOT_CLEANING_INIT;
    tl_status status;

    cleaning.slot = f.slot;
    cleaning.actor = "ann";
    cleaning.reason = "test";
    cleaning.progress = on_cleaning;
    cleaning.each_table = on_table;
    cleaning.context = c;
    status = tl_slot_clean(clients[c->at], clients[owner], &cleaning, left);
    snprintf(sentence, sizeof sentence, "%s", tl_error_message());
    if (status != TL_OK)
        print_message("%s: %s\n", tl_status_name(status), sentence);
    tl_client_close(clients[0]);
    tl_client_close(clients[1]);
    return status;
}

static tl_status clean_at(int at, tl_slot_moved *left)
{
    struct cleaner c = {.at = at};

    return clean_by(&c, 1 - at, left);
}

static void assert_not_cleaned(int at, const char *words)
{
    const long long rows = rows_at(at, "trade_lock");

    assert_status(clean_at(at, NULL), TL_REFUSED);
    assert_non_null(strstr(sentence, words));
    assert_int_equal(rows_at(at, "trade_lock"), rows);
}

static void clean_in_child(void *context, int number)
{
    (void)number;
    CREW_STATUS(clean_by(context, 1 - ((struct cleaner *)context)->at, NULL), TL_OK);
}

/* With the tables of its row. */
static void move_unnamed_in_child(void *context, int number)
{
    struct mover *m = context;

    (void)number;
    CREW_STATUS(move_tables(m->from, m->wait_ms, m, NULL, NULL, 0), TL_OK);
}

static void kill_cleaner(int at, const char *step, int times)
{
    struct cleaner c = {.at = at, .die_at = step, .times = times};

    expect_killed(crew_fork(clean_in_child, &c, 0));
}

static const char *const slot_tables[] = {"trade_lock",       "trade_lock_past", "trade_evidence",
                                          "trade_resolution", "audit_closing",   "account",
                                          "posting",          "letter"};
#define SLOT_TABLES_COUNT (sizeof slot_tables / sizeof slot_tables[0])

static long long left_at(int shard, const char *table)
{
    return database_number(f.sql[shard],
                           "SELECT COUNT(*) FROM %s WHERE tl_customer_slot(cust_no) "
                           "= %u",
                           table, f.slot);
}

static long long all_left_at(int shard)
{
    long long rows = 0;

    for (size_t i = 0; i < SLOT_TABLES_COUNT; i++)
        rows += left_at(shard, slot_tables[i]);
    return rows;
}

/* But for history, into which a lock row goes when it is removed. */
static long long most_left_at(int shard)
{
    return all_left_at(shard) - left_at(shard, "trade_lock_past");
}

static char *content_of(int shard)
{
    return database_text(
        f.sql[shard],
        "SELECT CONCAT_WS('|', "
        "(SELECT MD5(GROUP_CONCAT(HEX(cust_no), HEX(serial_no), HEX(op_code), rev, fence, "
        "HEX(status) ORDER BY serial_no, op_code, cust_no)) FROM trade_lock), "
        "(SELECT MD5(GROUP_CONCAT(HEX(cust_no), HEX(serial_no), HEX(op_code), rev ORDER BY "
        "serial_no, op_code, cust_no, rev)) FROM trade_lock_past), "
        "(SELECT MD5(GROUP_CONCAT(HEX(cust_no), balance ORDER BY cust_no)) FROM account), "
        "(SELECT COUNT(*) FROM trade_evidence), (SELECT COUNT(*) FROM audit_closing), "
        "(SELECT COUNT(*) FROM posting), (SELECT COUNT(*) FROM letter))");
}

/* The slot is at `owner`, with rows in each table, and so is what it left behind at the other. */
static void leave_rows(int *owner, int *at)
{
    *owner = owner_now();
    *at = 1 - *owner;
    for (int i = 0; i < CUSTOMERS; i++)
        database_run(f.sql[*owner],
                     "INSERT IGNORE INTO account (cust_no, balance) VALUES ('%s', 5);"
                     "INSERT INTO posting (id, cust_no) VALUES (%d, '%s');"
                     "INSERT INTO letter VALUES ('%s', 'left')",
                     f.cust[i], 700000 + *owner * 1000 + (int)rows_at(*owner, "posting"), f.cust[i],
                     f.cust[i]);
    close_finding(*owner, 0);
    assert_status(move_tables(*owner, PATIENCE_MS, NULL, NULL, NULL, 0), TL_OK);
    *owner = 1 - *owner;
    *at = 1 - *at;
}

TEST(test_clean_is_refused)
{
    tl_client *client = client_at(0, TL_CLIENT_NO_SESSION);
    tl_slot_cleaning cleaning = TL_SLOT_CLEANING_INIT;
    struct cleaner itself;
    int owner, at;
    char *before;

    leave_rows(&owner, &at);
    before = content_of(at);
    assert_status(tl_slot_clean(client, client, NULL, NULL), TL_INVALID);
    assert_status(tl_slot_clean(client, client, &cleaning, NULL), TL_INVALID);
    cleaning.slot = TL_FLEET_SLOTS;
    assert_status(tl_slot_clean(client, client, &cleaning, NULL), TL_INVALID);
    tl_client_close(client);
    /* Where it is owned; where both ends are one. */
    assert_not_cleaned(owner, "is not gone from shard");
    itself.at = at;
    assert_status(clean_by(&itself, at, NULL), TL_REFUSED);
    /* The owner went back in time: to before it had the slot, or to when it had it before. */
    database_run(f.sql[owner], "UPDATE tl_slot SET version = version - 2 WHERE slot = %u", f.slot);
    assert_not_cleaned(at, "earlier version");
    database_run(f.sql[owner],
                 "UPDATE tl_slot SET version = version + 1, state = 'arriving' WHERE slot = %u",
                 f.slot);
    assert_not_cleaned(at, "does not own");
    database_run(f.sql[owner],
                 "UPDATE tl_slot SET version = version + 1, state = 'gone' WHERE slot = %u",
                 f.slot);
    assert_not_cleaned(at, "does not own");
    database_run(f.sql[owner], "UPDATE tl_slot SET state = 'owned' WHERE slot = %u", f.slot);
    /* Rows of whom would be removed is not the same question there. */
    database_run(f.sql[at], RULE "7");
    assert_not_cleaned(at, "another rule");
    database_run(f.sql[at], RULE "CRC32(cust) %% 1024");
    /* A server that takes no commit is no owner, whatever it has to tell. */
    database_run(f.sql[owner], "RENAME TABLE tl_act TO tl_act_away");
    assert_int_not_equal(clean_at(at, NULL), TL_OK);
    assert_non_null(strstr(sentence, "noting the move"));
    database_run(f.sql[owner], "RENAME TABLE tl_act_away TO tl_act");
    assert_int_equal(
        database_number(f.sql[at], "SELECT token IS NULL FROM tl_slot WHERE slot = %u", f.slot), 1);
    {
        char *after = content_of(at);

        assert_string_equal(before, after);
        free(after);
    }
    free(before);
}

/* Killed at each of its commits, and called again: nothing of the slot is left, and all else is as it
 * was, at both ends. */
TEST(test_clean_killed)
{
    tl_slot_moved left = {0};
    int owner, at;
    char *before;
    long long strange, rows;

    leave_rows(&owner, &at);
    database_run(f.sql[at], "INSERT INTO letter VALUES ('C%s', 'strange')", f.cust[0] + 1);
    strange = rows_at(at, "letter") - left_at(at, "letter");
    assert_true(strange > 0);
    for (size_t i = 0; i < SLOT_TABLES_COUNT; i++)
        if (strcmp(slot_tables[i], "trade_resolution") != 0)
            assert_true(left_at(at, slot_tables[i]) > 0);
    before = content_of(owner);
    rows = most_left_at(at);
    kill_cleaner(at, "counted", 1);
    assert_int_equal(most_left_at(at), rows);
    assert_int_equal(database_number(f.sql[at], "SELECT COUNT(*) FROM tl_act WHERE what = "
                                                "'fleet clean'"),
                     0);
    kill_cleaner(at, "noted", 1);
    assert_int_equal(most_left_at(at), rows);
    /* The tables are later, letter, posting, account, and then our own. */
    for (int times = 2; times <= 5; times++) {
        kill_cleaner(at, "removed", times);
        assert_in_range(most_left_at(at), 1, rows - 1);
        rows = most_left_at(at);
    }
    rows = all_left_at(at);
    assert_status(clean_at(at, &left), TL_OK);
    assert_int_equal(left.rows, rows);
    assert_int_equal(all_left_at(at), 0);
    assert_int_equal(rows_at(at, "letter"), strange);
    /* Once more there is nothing to be done, and nothing to be noted. */
    assert_status(clean_at(at, &left), TL_OK);
    assert_int_equal(left.rows, 0);
    {
        char *after = content_of(owner);

        assert_string_equal(before, after);
        free(after);
    }
    free(before);
    /* Each that removed something is on record, at both ends, and those that were killed have no
     * end. */
    assert_int_equal(database_number(f.sql[at], "SELECT COUNT(*) * 100 + COUNT(ended_at) FROM "
                                                "tl_act WHERE what = 'fleet clean'"),
                     601);
    assert_int_equal(database_number(f.sql[owner], "SELECT COUNT(*) FROM tl_act WHERE what = "
                                                   "'fleet clean'"),
                     6);
    assert_int_equal(database_number(f.sql[at],
                                     "SELECT COUNT(*) FROM tl_slot WHERE slot = %u AND "
                                     "state = 'gone'",
                                     f.slot),
                     1);
    assert_audit_clean(owner);
    database_run(f.sql[at], "DELETE FROM letter WHERE text = 'strange'");
}

/* What was removed is no source any more: the owner is restored to before it had the slot, and would
 * come to own it with nothing. */
TEST(test_nothing_is_completed_from_what_was_removed)
{
    const int owner = owner_now(), at = 1 - owner;
    char *before = state_at(owner);

    assert_int_equal(all_left_at(at), 0);
    database_run(f.sql[owner],
                 "CREATE TABLE was AS SELECT * FROM tl_slot WHERE slot = %u;"
                 "UPDATE tl_slot SET state = 'arriving', version = version - 1, other = '%s' WHERE "
                 "slot = %u",
                 f.slot, at == 0 ? "a" : "b", f.slot);
    assert_status(move_tables(at, PATIENCE_MS, NULL, NULL, NULL, 0), TL_REFUSED);
    assert_non_null(strstr(sentence, "was removed from shard"));
    database_run(f.sql[owner], "DELETE FROM tl_slot WHERE slot = %u", f.slot);
    assert_status(move_tables(at, PATIENCE_MS, NULL, NULL, NULL, 0), TL_REFUSED);
    assert_state(owner, "none");
    database_run(f.sql[owner], "INSERT INTO tl_slot SELECT * FROM was; DROP TABLE was");
    assert_state(owner, before);
    free(before);
}

/* It comes back to where it was removed, and is a source again when it has gone once more. */
TEST(test_clean_slot_comes_back)
{
    const int owner = owner_now(), at = 1 - owner;
    char *before = content_of(owner);
    const long long rows = all_left_at(owner);
    struct mover m = {.from = at, .wait_ms = PATIENCE_MS, .die_at = "gone"};
    char arriving[32];

    assert_status(move_tables(owner, PATIENCE_MS, NULL, NULL, NULL, 0), TL_OK);
    snprintf(arriving, sizeof arriving, "arriving %lld",
             database_number(f.sql[at], "SELECT version FROM tl_slot WHERE slot = %u", f.slot));
    assert_audit_clean(at);
    for (size_t i = 0; i < SLOT_TABLES_COUNT; i++)
        if (strcmp(slot_tables[i], "trade_lock_past") != 0)
            assert_int_equal(left_at(at, slot_tables[i]), left_at(owner, slot_tables[i]));
    assert_true(all_left_at(at) >= rows);
    free(before);
    expect_killed(crew_fork(move_unnamed_in_child, &m, 0));
    assert_state(owner, arriving);
    assert_status(move_tables(at, PATIENCE_MS, NULL, NULL, NULL, 0), TL_OK);
    assert_audit_clean(owner);
}

static void take_over(int at)
{
    database_run(f.sql[at], "UPDATE tl_slot SET token = RANDOM_BYTES(16) WHERE slot = %u", f.slot);
}

/* Somebody else brings the slot back, or cleans it: whoever was stopped removes nothing more. */
TEST(test_clean_is_taken_over)
{
    struct cleaner c = {.look_at = "removed", .look = take_over};
    int owner, at;
    tl_slot_moved left = {0};

    leave_rows(&owner, &at);
    c.at = at;
    assert_status(clean_by(&c, owner, &left), TL_LOST);
    /* All but decisions, and the table that came later. */
    assert_int_equal(c.tables, SLOT_TABLES_COUNT);
    assert_in_range(all_left_at(at), 1, (long long)left.rows - 1);
    assert_status(clean_at(at, NULL), TL_OK);
    assert_int_equal(all_left_at(at), 0);
}

static pid_t holder;

/* Whoever waits for a lock there; 0: nobody. */
static long long waiting_at(MYSQL *sql)
{
    /* Whoever reads it within 100 ms of the last reading is told the same once more. */
    crew_sleep_ms(110);
    return database_number(sql, "SELECT COALESCE(MAX(trx_id), 0) FROM "
                                "information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'");
}

/* Until the cleaner's transaction has given up, and its next one waits. */
static void hold_a_row(void *context, int number)
{
    MYSQL *sql = database_connect(f.at[number]);
    long long first, next;

    (void)context;
    database_run(sql, "START TRANSACTION; UPDATE letter SET text = 'held' WHERE cust_no = '%s'",
                 f.cust[0]);
    atomic_store(&t->stop, 1);
    while ((first = waiting_at(sql)) == 0)
        continue;
    while ((next = waiting_at(sql)) == 0 || next == first)
        continue;
    database_run(sql, "ROLLBACK");
    mysql_close(sql);
}

static void hold_rows(int at)
{
    atomic_store(&t->stop, 0);
    holder = crew_fork(hold_a_row, NULL, at);
    while (!atomic_load(&t->stop))
        crew_sleep_ms(10);
}

/* A row that the shard has locked for a while is waited for. */
TEST(test_clean_meets_a_lock)
{
    struct cleaner c = {.look_at = "noted", .look = hold_rows};
    int owner, at;

    leave_rows(&owner, &at);
    c.at = at;
    assert_status(clean_by(&c, owner, NULL), TL_OK);
    assert_int_equal(crew_wait(holder), 0);
    assert_int_equal(all_left_at(at), 0);
}

#define HELD_MS 5000

/* As a worker's claim whose answer is lost: its transaction stands until the server ends it. */
static void hold_slot(void *context, int number)
{
    MYSQL *sql = database_connect(f.at[number]);

    (void)context;
    database_run(sql, "BEGIN; SELECT state FROM tl_slot WHERE slot = %u LOCK IN SHARE MODE",
                 f.slot);
    atomic_store(&t->stop, 1);
    crew_sleep_ms(HELD_MS);
    database_run(sql, "ROLLBACK");
    mysql_close(sql);
}

static void claim_in_doubt(int from)
{
    atomic_store(&t->stop, 0);
    holder = crew_fork(hold_slot, NULL, from);
    while (!atomic_load(&t->stop))
        crew_sleep_ms(10);
}

/* It is waited for as whatever else is in process, and no longer; the slot does not stay on its way. */
TEST(test_claim_whose_answer_is_lost)
{
    const int from = owner_now();
    struct mover m = {.from = from, .look_at = "leaving", .look = claim_in_doubt};
    char *before = state_at(from);

    assert_status(move_tables(from, 1500, &m, NULL, NULL, 0), TL_BUSY);
    assert_non_null(strstr(sentence, "another transaction has its row locked"));
    assert_int_equal(crew_wait(holder), 0);
    assert_state(from, before);
    assert_status(move_tables(from, PATIENCE_MS, &m, NULL, NULL, 0), TL_OK);
    assert_int_equal(crew_wait(holder), 0);
    assert_int_equal(owner_now(), 1 - from);
    free(before);
}

/* ------------------------------------------------------------------ a claim of before -- */

struct giver {
    int at; /* whose claim is given up */
    const char *die_at;
    const char *look_at;
    void (*look)(int at);
    tl_status expected;
};

static int on_giving(void *context, const char *step, const tl_slot_moved *moved)
{
    const struct giver *g = context;

    (void)moved;
    if (g->die_at != NULL && strcmp(step, g->die_at) == 0)
        raise(SIGKILL);
    if (g->look_at != NULL && strcmp(step, g->look_at) == 0)
        g->look(g->at);
    return strcmp(step, "agree") == 0;
}

static tl_status give_up_by(struct giver *g)
{
    tl_client *clients[] = {client_at(0, TL_CLIENT_NO_SESSION), client_at(1, TL_CLIENT_NO_SESSION)};
    tl_slot_moving moving = TL_SLOT_MOVING_INIT;
    tl_status status;

    moving.slot = f.slot;
    moving.actor = "ann";
    moving.reason = "test";
    moving.progress = on_giving;
    moving.context = g;
    status = tl_slot_give_up(clients[1 - g->at], clients[g->at], &moving);
    snprintf(sentence, sizeof sentence, "%s", tl_error_message());
    tl_client_close(clients[0]);
    tl_client_close(clients[1]);
    return status;
}

static tl_status end_claim_at(int at)
{
    struct giver g = {.at = at};

    return give_up_by(&g);
}

static void give_up_in_child(void *context, int number)
{
    struct giver *g = context;

    (void)number;
    CREW_STATUS(give_up_by(g), g->expected);
}

static void forget(int shard)
{
    database_run(f.sql[shard],
                 "CREATE TABLE was AS SELECT * FROM tl_slot WHERE slot = %u; DELETE FROM tl_slot "
                 "WHERE slot = %u",
                 f.slot, f.slot);
}

static void remember(int shard)
{
    database_run(f.sql[shard], "REPLACE INTO tl_slot SELECT * FROM was; DROP TABLE was");
}

/* The shard that let it go is as in a backup of before that. */
static void claim_again(int at, const char *state)
{
    database_run(f.sql[at],
                 "UPDATE tl_slot SET state = '%s', version = version - 1, other = NULL, token = "
                 "NULL WHERE slot = %u",
                 state, f.slot);
}

static void assert_given_up(int at, int owner)
{
    char expected[32];

    snprintf(expected, sizeof expected, "gone %lld",
             database_number(f.sql[owner], "SELECT version FROM tl_slot WHERE slot = %u", f.slot));
    assert_state(at, expected);
    assert_int_equal(database_number(f.sql[at], "SELECT other = '%s' FROM tl_slot WHERE slot = %u",
                                     owner == 0 ? "a" : "b", f.slot),
                     1);
}

static tl_status other_operator;

/* While the first one is between the two commits. */
static void give_up_too(int at)
{
    other_operator = end_claim_at(at);
}

/* The owner is restored to before it had the slot, between the two commits. */
static void restore_owner(int at)
{
    forget(1 - at);
}

static long long given_up_at(int shard)
{
    return database_number(f.sql[shard], "SELECT COUNT(*) FROM tl_act WHERE what = 'fleet claim "
                                         "given up' AND actor = 'ann' AND reason = 'test'");
}

/* Never the owner's own, also while it is restored itself, or was to before it had the slot. */
static void expect_refused_claims(int at, int owner, const char *had)
{
    claim_again(at, "owned");
    assert_status(end_claim_at(at), TL_REFUSED);
    assert_non_null(strstr(sentence, "declare a restore there first"));
    open_restore(at);
    assert_status(end_claim_at(owner), TL_REFUSED);
    assert_non_null(strstr(sentence, "no later version"));
    open_restore(owner);
    assert_status(end_claim_at(owner), TL_REFUSED);
    assert_non_null(strstr(sentence, "no later version"));
    accept_restore(owner);
    assert_state(owner, had);
    forget(owner);
    assert_status(end_claim_at(at), TL_REFUSED);
    assert_non_null(strstr(sentence, "does not own slot"));
    remember(owner);
}

/* Killed after each commit; once more finishes it. */
static void expect_killed_claims(int at, int owner, const char *had)
{
    static const char *const steps[] = {"noted", "given up"};
    struct giver g = {.at = at};

    for (size_t i = 0; i < 2; i++) {
        char *claim = state_at(at);

        g.die_at = steps[i];
        expect_killed(crew_fork(give_up_in_child, &g, 0));
        if (i == 0)
            assert_state(at, claim);
        else
            assert_given_up(at, owner);
        assert_state(owner, had);
        assert_status(end_claim_at(at), i == 0 ? TL_OK : TL_REFUSED);
        assert_given_up(at, owner);
        claim_again(at, "owned");
        free(claim);
    }
}

/* Two operators; and the owner restored between the two commits: nobody pays, and nothing is
 * completed from what is not all. */
static void expect_claims_at_once(int at, int owner)
{
    struct giver g = {.at = at, .look_at = "noted", .look = give_up_too};

    assert_status(give_up_by(&g), TL_OK);
    assert_status(other_operator, TL_BUSY);
    assert_given_up(at, owner);
    claim_again(at, "owned");
    g.look = restore_owner;
    assert_status(give_up_by(&g), TL_OK);
    accept_restore(at);
    open_restore(owner);
    assert_status(move_tables(at, PATIENCE_MS, NULL, NULL, NULL, 0), TL_REFUSED);
    assert_non_null(strstr(sentence, "restore it to a later moment"));
    assert_state(owner, "none");
    remember(owner);
    accept_restore(owner);
    assert_given_up(at, owner);
}

TEST(test_claim_of_before)
{
    static const char *const claims[] = {"owned", "leaving"};
    const int at = owner_now(), owner = 1 - at;
    char *had;

    assert_status(move_tables(at, PATIENCE_MS, NULL, NULL, NULL, 0), TL_OK);
    assert_status(end_claim_at(at), TL_REFUSED); /* it is gone from there */
    assert_status(end_claim_at(owner), TL_REFUSED);
    had = state_at(owner);
    expect_refused_claims(at, owner, had);
    for (size_t i = 0; i < 2; i++) {
        const long long before = given_up_at(at);

        assert_status(end_claim_at(at), TL_OK);
        assert_given_up(at, owner);
        assert_int_equal(given_up_at(at), before + 1);
        assert_status(end_claim_at(at), TL_REFUSED);
        claim_again(at, claims[i]);
    }
    expect_killed_claims(at, owner, had);
    expect_claims_at_once(at, owner);
    assert_state(owner, had);
    free(had);
}

/* What the owner paid stays, and what a holder of before does ends where it counts for nothing. */
TEST(test_claim_is_not_asked)
{
    const int owner = owner_now(), at = 1 - owner;

    claim_again(at, "owned");
    open_restore(at);
    assert_status(status_at(owner, "beside"), TL_GRANTED);
    assert_status(status_at(at, "beside"), TL_ASK_CHANNEL);
    assert_status(end_claim_at(at), TL_OK);
    accept_restore(at);
    assert_status(status_at(at, "beside"), TL_MISDIRECTED);
    assert_status(status_at(owner, "beside"), TL_ALREADY_DONE);
    assert_status(move_tables(owner, PATIENCE_MS, NULL, NULL, NULL, 0), TL_OK);
    assert_status(status_at(at, "beside"), TL_ALREADY_DONE);
    assert_audit_clean(at);
}

static void kill_completion(int from, const char *step)
{
    struct mover m = {.from = from, .wait_ms = PATIENCE_MS, .die_at = step};

    expect_killed(crew_fork(move_unnamed_in_child, &m, 0));
}

/* There and back, and then the owner is as it was before, with the business rows of then; killed after
 * each step. */
TEST(test_owner_is_as_before)
{
    static const char *const steps[] = {"arriving", "copied", "owned"};

    for (size_t i = 0; i < 3; i++) {
        const int owner = owner_now(), from = 1 - owner;
        const long long version =
            database_number(f.sql[owner], "SELECT version FROM tl_slot WHERE slot = %u", f.slot);
        char serial[16], last[32], *old;

        snprintf(serial, sizeof serial, "there%zu", i);
        snprintf(last, sizeof last, "owned %lld", version + 2);
        database_run(f.sql[owner],
                     "CREATE TABLE was AS SELECT * FROM tl_slot WHERE slot = %u; "
                     "CREATE TABLE had AS SELECT * FROM account",
                     f.slot);
        old = state_at(owner);
        assert_status(move_tables(owner, PATIENCE_MS, NULL, NULL, NULL, 0), TL_OK);
        assert_status(status_at(from, serial), TL_GRANTED);
        database_run(f.sql[from], "UPDATE account SET balance = balance + 7");
        assert_status(move_tables(from, PATIENCE_MS, NULL, NULL, NULL, 0), TL_OK);
        assert_state(owner, last);
        go_back(owner, serial,
                "UPDATE tl_slot SET state = 'owned', version = version - 2, other = NULL, token = "
                "NULL, tables = NULL");
        database_run(f.sql[owner], "UPDATE account a JOIN had h ON h.cust_no = a.cust_no SET "
                                   "a.balance = h.balance; DROP TABLE had; DROP TABLE was");
        assert_state(owner, old);
        assert_status(file_paid(owner, "filed"), TL_OK);
        /* What was filed at it is known to it alone. */
        assert_status(move_tables(from, PATIENCE_MS, NULL, NULL, NULL, 0), TL_REFUSED);
        assert_non_null(strstr(sentence, "1 trades that shard"));
        assert_state(owner, old);
        database_run(f.sql[owner], "DELETE FROM trade_evidence WHERE serial_no = 'filed'; DELETE "
                                   "FROM trade_lock WHERE serial_no = 'filed'; DELETE FROM "
                                   "trade_lock_past WHERE serial_no = 'filed'");
        kill_completion(from, steps[i]);
        assert_status(move_tables(from, PATIENCE_MS, NULL, NULL, NULL, 0),
                      i == 2 ? TL_ALREADY_DONE : TL_OK);
        assert_state(owner, last);
        assert_int_equal(rows_at(owner, "trade_lock"), rows_at(from, "trade_lock"));
        assert_int_equal(database_number(f.sql[owner], "SELECT SUM(balance) FROM account"),
                         database_number(f.sql[from], "SELECT SUM(balance) FROM account"));
        accept_restore(owner);
        assert_status(status_at(owner, serial), TL_ALREADY_DONE);
        assert_audit_clean(owner);
        free(old);
    }
}

/* Of one transaction: those of one statement, or of one customer's fences, each with a step of the
 * history. */
#define LARGEST_ROWS 5000

static void watch_transactions(void *context, int number)
{
    MYSQL *sql[] = {database_connect(f.at[0]), database_connect(f.at[1])};

    (void)context;
    (void)number;
    while (!atomic_load(&t->stop))
        for (int i = 0; i < 2; i++) {
            const int rows = (int)database_number(sql[i], "SELECT COALESCE(MAX(trx_rows_modified), "
                                                          "0) FROM information_schema.innodb_trx");

            if (rows > atomic_load(&t->largest))
                atomic_store(&t->largest, rows);
            atomic_fetch_add(&t->seen, rows > 0);
            /* Whoever reads it within 100 ms of the last reading is told the same once more. */
            crew_sleep_ms(60);
        }
    mysql_close(sql[0]);
    mysql_close(sql[1]);
}

/* A large slot goes in transactions that are as small as ever, there and back, where the stale rows
 * are removed first. */
TEST(test_large)
{
    const int is_long = crew_number("long", 0) != 0;
    const int owner = owner_now(), other = 1 - owner;
    /* Trades of each customer, and rows of one table: alone more than any transaction may have. */
    const int each = is_long ? 1000 : 200, postings = is_long ? 14000 : LARGEST_ROWS + 500;
    const int known = (int)database_number(
        f.sql[owner], "SELECT tables IS NOT NULL FROM tl_slot WHERE slot = %u", f.slot);
    pid_t watcher;

    for (int i = 0; i < CUSTOMERS; i++)
        database_run(f.sql[owner],
                     "INSERT IGNORE INTO account (cust_no) VALUES ('%s');"
                     "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                     "thread_no, token, fence, rev, created_at, updated_at) SELECT '%s', "
                     "CONCAT('big', seq), 'WITHDRAW', 'S', 'Y', 'ask', UUID(), 'x', 1, 1, "
                     "UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) FROM seq_1_to_%d",
                     f.cust[i], f.cust[i], each);
    database_run(f.sql[owner],
                 "INSERT INTO posting (id, cust_no, amount) SELECT 1000000 + seq, '%s', seq FROM "
                 "seq_1_to_%d",
                 f.cust[0], postings);
    atomic_store(&t->stop, 0);
    watcher = crew_fork(watch_transactions, NULL, 0);
    assert_status(move_back_with(owner, tables, known ? 0 : 3), TL_OK);
    assert_status(move_back_with(other, NULL, 0), TL_OK);
    assert_status(move_back_with(owner, NULL, 0), TL_OK);
    assert_true(left_at(owner, "posting") >= postings);
    assert_status(clean_at(owner, NULL), TL_OK);
    assert_int_equal(all_left_at(owner), 0);
    atomic_store(&t->stop, 1);
    assert_int_equal(crew_wait(watcher), 0);
    print_message("%d rows at most in a transaction, of %d that were seen\n",
                  atomic_load(&t->largest), atomic_load(&t->seen));
    assert_true(atomic_load(&t->seen) > 0);
    assert_in_range(atomic_load(&t->largest), 1, LARGEST_ROWS);
    assert_int_equal(database_number(f.sql[other], "SELECT COUNT(*) FROM posting WHERE id > "
                                                   "1000000"),
                     postings);
    assert_int_equal(database_number(f.sql[other], "SELECT COUNT(*) FROM trade_lock WHERE "
                                                   "serial_no LIKE 'big%%' AND fence = 4"),
                     CUSTOMERS * each);
}

/* Of the customers of the slot. */
static void remove_trades(int shard)
{
    database_run(f.sql[shard],
                 "UPDATE tl_slot SET state = 'arriving', token = 'sixteen bytes...' WHERE slot = "
                 "%u; SET @tl_mover = 'sixteen bytes...'; DELETE FROM audit_closing; DELETE FROM "
                 "trade_evidence; DELETE FROM trade_lock; DELETE FROM trade_lock_past; "
                 "SET @tl_mover = NULL",
                 f.slot);
}

static void give_up_at(int owner, int at)
{
    tl_client *clients[] = {client_at(0, TL_CLIENT_NO_SESSION), client_at(1, TL_CLIENT_NO_SESSION)};
    tl_slot_moving moving = TL_SLOT_MOVING_INIT;

    moving.slot = f.slot;
    moving.actor = "ann";
    moving.reason = "test";
    assert_status(tl_slot_take_back(clients[owner], &moving), TL_OK);
    assert_status(tl_slot_give_up(clients[owner], clients[at], &moving), TL_OK);
    tl_client_close(clients[0]);
    tl_client_close(clients[1]);
}

/* Nor is what came in part: a mover was killed when it had removed what was stale, and had copied
 * nothing yet; it was given up; and the owner is restored to before it had the slot. */
TEST(test_nothing_is_completed_from_what_came_in_part)
{
    struct mover m = {.wait_ms = PATIENCE_MS, .die_at = "arriving"};
    char *before;
    int owner, at;

    leave_rows(&owner, &at);
    before = state_at(at);
    assert_true(left_at(at, "trade_lock") > 0);
    m.from = owner;
    expect_killed(crew_fork(move_unnamed_in_child, &m, 0));
    remove_trades(at);
    give_up_at(owner, at);
    assert_state(at, before);
    remove_trades(owner);
    database_run(f.sql[owner], "DELETE FROM tl_slot WHERE slot = %u", f.slot);
    open_restore(owner);
    assert_status(move_tables(at, PATIENCE_MS, NULL, NULL, NULL, 0), TL_REFUSED);
    assert_non_null(strstr(sentence, "restore it to a later moment"));
    assert_state(owner, "none");
    free(before);
}

TESTS_OF(fleet_move, setup, teardown)
