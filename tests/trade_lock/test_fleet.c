/*
 * A shard of a fleet refuses customers of other shards in the statement that would begin something
 * for them, however it is asked, and whoever asks beside them is unharmed.
 */
#include "fixture.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/books.h>
#include <tradelock/callback.h>

#include <poll.h>
#include <stdatomic.h>

#define SETTINGS "session_ms=2m\npool_wait_ms=2m\ncommit_ms=2m\n"
#define CUSTOMERS 40
#define THREADS 48
#define ROUNDS 6
#define ROUNDS_MAX 1000 /* where no group forms before */
#define SUBMITTED 200
#define MISDIRECTED 31003
#define MOVES 31004

static fixture f;
/* The first half of the slots is this shard's. */
static char ours[CUSTOMERS][16], theirs[CUSTOMERS][16];

static void choose_customers(void)
{
    int here = 0, there = 0;

    for (int i = 0; here < CUSTOMERS || there < CUSTOMERS; i++) {
        const struct text name = text_of("c%d", i);
        if (database_number(f.sql, "SELECT tl_customer_slot('%s') < 512", name.is) == 1) {
            if (here < CUSTOMERS)
                strcpy(ours[here++], name.is);
        } else if (there < CUSTOMERS) {
            strcpy(theirs[there++], name.is);
        }
    }
}

static tl_status join_as(tl_client *client, const char *fleet, const char *shard,
                         const unsigned char *slots, tl_fleet_joined *joined)
{
    tl_fleet_joining joining = TL_FLEET_JOINING_INIT;

    joining.fleet = fleet;
    joining.shard = shard;
    joining.reason = "test";
    joining.slots = slots;
    return tl_fleet_join(&client, 1, 0, &joining, joined);
}

FIXTURE(setup)
{
    static const unsigned char first_half[TL_FLEET_SLOTS] = {0};
    unsigned char slots[TL_FLEET_SLOTS];
    tl_fleet_joined joined = {0};

    memcpy(slots, first_half, sizeof slots);
    memset(slots, 1, 512);
    fixture_open(&f, SETTINGS);
    assert_status(join_as(f.other, "payouts", "a", slots, &joined), TL_OK);
    assert_int_equal(joined.taken, 512);
    assert_int_equal(joined.owned, 512);
    choose_customers();
}

FIXTURE(teardown)
{
    assert_log_whole(&f);
    fixture_close(&f);
}

static void set_slot(const char *cust, const char *state, int sealed)
{
    database_run(f.sql,
                 "UPDATE tl_slot SET state = '%s', sealed = %d, other = 'b' "
                 "WHERE slot = tl_customer_slot('%s')",
                 state, sealed, cust);
}

static void put_back(const char *cust)
{
    set_slot(cust, "owned", 0);
}

static long long rows_of(const char *cust)
{
    return database_number(f.sql, "SELECT COUNT(*) FROM trade_lock WHERE cust_no = '%s'", cust);
}

static tl_status ask_as(const char *serial, const char *cust, unsigned flags)
{
    tl_lock_options options = sync_options("x");
    tl_status status;

    options.flags = flags;
    if (flags & TL_ASK_REPEATABLE) {
        options.channel = NULL;
        options.payload = NULL;
        options.payload_size = 0;
    }
    if (flags & TL_ASK_RECLAIM)
        options.reclaim_epoch = 1;
    tl_lock_free(ask(f.client, serial, cust, &options, &status));
    return status;
}

/* ---------------------------------------------------------------------------- alone -- */

TEST(test_alone)
{
    tl_lock_options options = sync_options("x"), standalone = retry_options();
    tl_status status;
    tl_lock *lock;

    assert_status(ask_as("a1", theirs[0], 0), TL_MISDIRECTED);
    assert_non_null(strstr(tl_error_message(), "not of this shard"));
    assert_int_equal(tl_status_class(TL_MISDIRECTED), TL_CLASS_CONFLICT);
    assert_status(ask_as("a1", theirs[0], TL_ASK_EXCLUSIVE), TL_MISDIRECTED);
    assert_status(ask_as("a1", theirs[0], TL_ASK_REPEATABLE), TL_MISDIRECTED);
    assert_status(ask_as("a1", theirs[0], TL_ASK_RECLAIM), TL_MISDIRECTED);
    standalone.flags = TL_ASK_STANDALONE;
    tl_lock_free(ask(f.client, "a1", theirs[0], &standalone, &status));
    assert_status(status, TL_MISDIRECTED);
    /* Whoever waits hears it at once. */
    lock = lock_new(f.client, "a1", theirs[0], &options);
    assert_status(tl_lock_ask(lock, 60000), TL_MISDIRECTED);
    tl_lock_free(lock);
    assert_int_equal(rows_of(theirs[0]), 0);

    end_paid(granted(f.client, "a1", ours[0], &options));
    assert_row(&f, "a1", ours[0], "WITHDRAW", "Y 1 1");
}

/* ------------------------------------------------------------------- among many others -- */

static atomic_int misdirected, ended;
static uint64_t grouped_before;

static uint64_t grouped(void)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    tl_client_stats(f.client, &stats);
    return stats.grouped;
}

static void mixed(void *unused, int number)
{
    tl_lock_options options = sync_options("x");

    (void)unused;
    options.channel = number % 3 == 0 ? NULL : options.channel;
    for (int round = 0; round < ROUNDS || (round < ROUNDS_MAX && grouped() == grouped_before);
         round++) {
        const int foreign = (number + round) % 4 == 0;
        const char *cust = (foreign ? theirs : ours)[(number + round) % CUSTOMERS];
        tl_status status;
        tl_lock *lock;

        lock = ask(f.client, text_of("m-%d-%d", number, round).is, cust, &options, &status);
        CREW_STATUS(status, foreign ? TL_MISDIRECTED : TL_GRANTED);
        if (foreign)
            atomic_fetch_add(&misdirected, 1);
        else
            CREW_STATUS(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        atomic_fetch_add(&ended, 1);
        tl_lock_free(lock);
    }
}

TEST(test_many_threads)
{
    grouped_before = grouped();
    crew_threads(THREADS, mixed, NULL);
    assert_true(grouped() > grouped_before);
    assert_true(atomic_load(&ended) >= THREADS * ROUNDS);
    database_expect(f.sql, atomic_load(&ended) - atomic_load(&misdirected),
                    "SELECT COUNT(*) FROM trade_lock WHERE serial_no LIKE 'm-%%'");
    database_expect(
        f.sql, 0, "SELECT COUNT(*) FROM trade_lock WHERE serial_no LIKE 'm-%%' AND status <> 'Y'");
    database_expect(f.sql, 0,
                    "SELECT COUNT(*) FROM trade_lock WHERE tl_customer_slot(cust_no) >= 512");
}

TEST(test_submitted)
{
    static tl_lock *locks[SUBMITTED];
    struct pollfd readable = {.fd = tl_client_completed_fd(f.client), .events = POLLIN};
    int taken = 0;

    for (int i = 0; i < SUBMITTED; i++) {
        locks[i] = lock_new(f.client, text_of("s%d", i).is,
                            (i % 5 == 0 ? theirs : ours)[i % CUSTOMERS], SYNC);
        assert_status(tl_lock_ask_submit(locks[i], NULL, &locks[i]), TL_OK);
    }
    while (taken < SUBMITTED) {
        tl_completion done[64];
        size_t count;

        assert_int_equal(poll(&readable, 1, PATIENCE_MS), 1);
        count = tl_client_completed(f.client, done, 64);
        for (size_t i = 0; i < count; i++) {
            const int foreign = ((tl_lock **)done[i].context - locks) % 5 == 0;

            assert_status(done[i].status, foreign ? TL_MISDIRECTED : TL_GRANTED);
        }
        taken += (int)count;
    }
    for (int i = 0; i < SUBMITTED; i++) {
        if (i % 5 != 0)
            assert_status(finish(locks[i], TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        tl_lock_free(locks[i]);
    }
}

/* ---------------------------------------------------------------------------- books -- */

static tl_books *books;

static const tl_statement statements[] = {
    {.name = "order",
     .sql = "INSERT INTO orders (cust_no, serial_no) VALUES (:cust_no, :serial_no)"},
};

static void booked(void *unused, int number)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        const int foreign = (number + round) % 4 == 0;
        const char *cust = (foreign ? theirs : ours)[(number + round) % CUSTOMERS];
        tl_book *book = NULL;
        tl_lock *lock;

        lock = lock_new(f.client, text_of("b-%d-%d", number, round).is, cust, SYNC);
        CREW_STATUS(tl_book_new(&book, books), TL_OK);
        tl_book_line(book, "order");
        CREW_STATUS(tl_lock_ask_book(lock, book, 0), foreign ? TL_MISDIRECTED : TL_GRANTED);
        if (!foreign)
            CREW_STATUS(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        tl_book_free(book);
        tl_lock_free(lock);
    }
}

TEST(test_books)
{
    database_run(f.sql, "CREATE TABLE orders (cust_no VARCHAR(32), serial_no VARCHAR(64),"
                        " PRIMARY KEY (cust_no, serial_no)) ENGINE = InnoDB");
    assert_status(tl_books_new(&books, f.client, statements, 1), TL_OK);
    booked(NULL, 1000);
    crew_threads(THREADS, booked, NULL);
    database_expect(f.sql, 0, "SELECT COUNT(*) FROM orders WHERE tl_customer_slot(cust_no) >= 512");
    database_expect(f.sql,
                    database_number(f.sql, "SELECT COUNT(*) FROM trade_lock WHERE serial_no LIKE "
                                           "'b-%%' AND status = 'Y'"),
                    "SELECT COUNT(*) FROM orders");
}

static tl_status write_order(void *context, struct st_mysql *connection)
{
    (void)context;
    database_run((MYSQL *)connection, "INSERT INTO orders VALUES ('by', 'callback')");
    return TL_OK;
}

TEST(test_callback)
{
    tl_lock *lock = lock_new(f.client, "cb", theirs[0], SYNC);

    assert_status(tl_lock_ask_with(lock, write_order, NULL, 0), TL_MISDIRECTED);
    tl_lock_free(lock);
    database_expect(f.sql, 0, "SELECT COUNT(*) FROM orders WHERE cust_no = 'by'");
}

/* ------------------------------------------------------------- a slot that moves away -- */

static void end_failed(const char *serial, const char *cust)
{
    tl_lock *lock = granted(f.client, serial, cust, SYNC);
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = TL_OUTCOME_FAILURE;
    ending.proof = TL_PROOF_DECLARED;
    ending.retryable = 1;
    assert_status(tl_lock_finish(lock, &ending), TL_FAILED);
    tl_lock_free(lock);
}

/* What is held ends, in both lanes; what is there answers as ever; nothing begins. */
TEST(test_leaving)
{
    const char *cust = ours[1];
    tl_lock_options options = sync_options("x"), retry = retry_options();
    tl_lock *held = granted(f.client, "l1", cust, &options);
    tl_lock *doubt = granted(f.client, "l2", cust, &options), *claimed;

    end_failed("l0", cust);
    set_slot(cust, "leaving", 0);
    assert_status(ask_as("l3", cust, 0), TL_OVERLOADED);
    assert_non_null(strstr(tl_error_message(), "being moved"));
    assert_status(ask_as("l3", cust, TL_ASK_EXCLUSIVE), TL_OVERLOADED);
    assert_status(ask_as("l3", cust, TL_ASK_REPEATABLE), TL_OVERLOADED);
    assert_int_equal(has_row(f.sql, "l3"), 0);
    assert_status(ask_as("l0", cust, TL_ASK_RECLAIM), TL_OVERLOADED);
    assert_row(&f, "l0", cust, "WITHDRAW", "F 1 1");
    assert_status(ask_as("l0", cust, 0), TL_FAILED);
    assert_status(ask_as("l1", cust, 0), TL_BUSY);
    assert_status(finish(held, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    assert_status(ask_as("l1", cust, 0), TL_ALREADY_DONE);
    assert_status(finish(doubt, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_IN_DOUBT);
    assert_status(ask_as("l2", cust, 0), TL_IN_DOUBT);
    claimed = granted(f.client, "l2", cust, &retry);
    assert_status(tl_lock_arm(claimed, 1000), TL_OK);
    assert_status(finish(claimed, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(held);
    tl_lock_free(doubt);
    tl_lock_free(claimed);
    put_back(cust);
    assert_status(ask_as("l3", cust, 0), TL_GRANTED);
}

/* Claims what is due and ends it; how many there were. */
static size_t claim_all(void)
{
    tl_claim_options wanted = TL_CLAIM_OPTIONS_INIT;
    tl_lock *claimed[TL_CLAIM_MAX];
    size_t count = TL_CLAIM_MAX;

    wanted.op_code = "WITHDRAW";
    wanted.max_hold_ms = 60000;
    assert_status(tl_claim_due(f.client, &wanted, claimed, &count), TL_OK);
    for (size_t i = 0; i < count; i++) {
        assert_status(tl_lock_arm(claimed[i], 1000), TL_OK);
        assert_status(finish(claimed[i], TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        tl_lock_free(claimed[i]);
    }
    return count;
}

/* Whoever moves a slot has its row: what is due of the others is claimed all the same. */
TEST(test_claimed_beside_a_mover)
{
    static const char *const serials[] = {"d0", "d1", "d2"};
    MYSQL *mover = database_connect(f.db);

    for (int i = 0; i < 3; i++)
        end_in_doubt(granted(f.client, serials[i], ours[20 + i], SYNC));
    while (database_number(f.sql, "SELECT COUNT(*) FROM trade_lock WHERE lane = 'R' AND status = "
                                  "'F' AND next_run_at <= UTC_TIMESTAMP(6)") < 3)
        usleep(10000);
    for (int i = 1; i < 3; i++)
        database_expect(f.sql, 0, "SELECT tl_customer_slot('%s') = tl_customer_slot('%s')",
                        ours[20], ours[20 + i]);
    database_run(mover,
                 "START TRANSACTION; SELECT * FROM tl_slot WHERE slot = tl_customer_slot('%s') "
                 "FOR UPDATE",
                 ours[20]);
    assert_int_equal(claim_all(), 2);
    assert_status(ask_as("d0", ours[20], 0), TL_IN_DOUBT);
    database_run(mover, "COMMIT");
    assert_int_equal(claim_all(), 1);
    assert_status(ask_as("d0", ours[20], 0), TL_ALREADY_DONE);
    mysql_close(mover);
}

static tl_status evidence(const char *serial, const char *cust)
{
    tl_evidence e = TL_EVIDENCE_INIT;

    e.key = (tl_key){serial, cust, "WITHDRAW"};
    e.outcome = "SUCCEEDED";
    e.source = "test";
    return tl_evidence_add(f.client, &e);
}

TEST(test_evidence)
{
    const char *cust = ours[2];

    end_failed("e1", cust);
    set_slot(cust, "gone", 0);
    assert_status(evidence("e1", cust), TL_MISDIRECTED);
    /* Nobody hears that there is no such trade: it may be at the other shard. */
    assert_status(evidence("none", cust), TL_MISDIRECTED);
    assert_status(evidence("none", theirs[0]), TL_MISDIRECTED);
    set_slot(cust, "arriving", 0);
    assert_status(evidence("e1", cust), TL_MISDIRECTED);
    database_expect(f.sql, 0, "SELECT COUNT(*) FROM trade_evidence WHERE cust_no = '%s'", cust);
    database_expect(f.sql, 0, "SELECT conflict FROM trade_lock WHERE cust_no = '%s'", cust);
    set_slot(cust, "leaving", 0);
    assert_status(evidence("e1", cust), TL_IN_CONFLICT);
    put_back(cust);
    assert_status(evidence("none", cust), TL_NOT_FOUND);
}

static void *unseal(void *cust)
{
    crew_sleep_ms(1000);
    put_back(cust);
    return NULL;
}

/* While it is copied nothing changes; who files evidence then is patient. */
TEST(test_sealed)
{
    char *cust = ours[3];
    pthread_t other;

    end_failed("z1", cust);
    set_slot(cust, "leaving", 1);
    assert_status(ask_as("z1", cust, TL_ASK_RECLAIM), TL_OVERLOADED);
    assert_status(ask_as("z1", cust, 0), TL_FAILED);
    pthread_create(&other, NULL, unseal, cust);
    assert_status(evidence("z1", cust), TL_IN_CONFLICT);
    pthread_join(other, NULL);
    database_expect(f.sql, 1, "SELECT COUNT(*) FROM trade_evidence WHERE serial_no = 'z1'");
}

TEST(test_gone)
{
    const char *cust = ours[4];

    end_failed("g1", cust);
    set_slot(cust, "gone", 0);
    assert_status(ask_as("g1", cust, 0), TL_MISDIRECTED);
    assert_status(ask_as("g1", cust, TL_ASK_RECLAIM), TL_MISDIRECTED);
    assert_status(ask_as("g2", cust, 0), TL_MISDIRECTED);
    /* Its rows may not be there yet. */
    set_slot(cust, "arriving", 0);
    assert_status(ask_as("g2", cust, 0), TL_MISDIRECTED);
    assert_row(&f, "g1", cust, "WITHDRAW", "F 1 1");
    put_back(cust);
}

/* ---------------------------------------------------------------------------- by hand -- */

static unsigned try(MYSQL *connection, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static unsigned try(MYSQL *connection, const char *format, ...)
{
    char sql[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sql, sizeof sql, format, arguments);
    va_end(arguments);
    return mysql_query(connection, sql) == 0 ? 0 : mysql_errno(connection);
}

#define INSERT_LOCK(step, lane, status)                                                            \
    "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, token, "  \
    "fence, rev, created_at, updated_at) VALUES ('%s', 'hand', 'WITHDRAW', '" lane "', '" status   \
    "', '" step "', UUID(), 'x', 1, 1, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))"
#define INSERT_EVIDENCE                                                                            \
    "INSERT INTO trade_evidence (cust_no, serial_no, op_code, epoch, outcome, source, account, "   \
    "filed_at) VALUES ('%s', 'h1', 'WITHDRAW', 1, 'SUCCEEDED', 'hand', '', NOW(6))"
#define INSERT_DECISION                                                                            \
    "INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, fence, "       \
    "epoch, "                                                                                      \
    "reason, actor, thread_no) SELECT cust_no, 'h1', op_code, rev, 'Y', 1, fence, epoch, 'hand', " \
    "'hand', UUID() "                                                                              \
    "FROM (SELECT * FROM trade_lock WHERE cust_no = '%s' AND serial_no = 'h1') x"

TEST(test_by_hand)
{
    const char *cust = ours[5];

    assert_int_equal(try(f.sql, INSERT_LOCK("ask", "S", "P"), theirs[0]), MISDIRECTED);
    assert_int_equal(try(f.sql, INSERT_LOCK("ask", "S", "Y"), theirs[0]), MISDIRECTED);
    assert_int_equal(try(f.sql, INSERT_LOCK("ask", "R", "P"), theirs[0]), MISDIRECTED);
    assert_int_equal(try(f.sql, INSERT_LOCK("end", "S", "Y"), theirs[0]), 1644);
    assert_int_equal(try(f.sql, INSERT_EVIDENCE, theirs[0]), MISDIRECTED);
    end_failed("h1", cust);
    set_slot(cust, "gone", 0);
    assert_int_equal(try(f.sql, "UPDATE trade_lock SET status = 'P' WHERE cust_no = '%s'", cust),
                     MISDIRECTED);
    assert_int_equal(try(f.sql, "UPDATE trade_lock SET conflict = 1 WHERE cust_no = '%s'", cust),
                     MISDIRECTED);
    assert_int_equal(try(f.sql, INSERT_EVIDENCE, cust), MISDIRECTED);
    assert_int_equal(try(f.sql, INSERT_DECISION, cust), MISDIRECTED);
    set_slot(cust, "leaving", 1);
    assert_int_equal(try(f.sql, "DELETE FROM trade_lock WHERE cust_no = '%s'", cust), MOVES);
    assert_int_equal(try(f.sql, INSERT_EVIDENCE, cust), MOVES);
    assert_int_equal(try(f.sql, INSERT_DECISION, cust), MOVES);
    assert_int_equal(try(f.sql, "UPDATE trade_lock SET conflict = 1 WHERE cust_no = '%s'", cust),
                     MOVES);
    assert_row(&f, "h1", cust, "WITHDRAW", "F 1 1");
    put_back(cust);
}

/* Into an arriving slot only the mover writes, who knows what no role can read. */
TEST(test_mover_alone)
{
    const char *cust = ours[6];
    MYSQL *mover = database_connect(f.db);

    set_slot(cust, "arriving", 0);
    database_run(f.sql, "UPDATE tl_slot SET token = 'sixteen letters.' WHERE state = 'arriving'");
    assert_int_equal(try(mover, INSERT_LOCK("end", "S", "Y"), cust), 1644);
    /* Compared as numbers, letters would be 0, and the warning would tell them. */
    database_run(mover, "SET @tl_mover = 0");
    assert_int_equal(try(mover, INSERT_LOCK("ask", "S", "P"), cust), MISDIRECTED);
    assert_int_equal(try(mover, INSERT_EVIDENCE, cust), MISDIRECTED);
    database_expect(mover, 0, "SELECT tl_slot_copies()");
    database_run(mover, "SET @tl_mover = 'a guess'");
    assert_int_equal(try(mover, INSERT_LOCK("end", "S", "Y"), cust), MISDIRECTED);
    assert_int_equal(try(mover, INSERT_LOCK("end", "S", "Y"), theirs[0]), MISDIRECTED);
    assert_int_equal(try(mover, INSERT_EVIDENCE, cust), MISDIRECTED);
    database_run(mover, "SET @tl_mover = (SELECT token FROM tl_slot WHERE state = 'arriving')");
    assert_int_equal(try(mover, INSERT_LOCK("end", "S", "Y"), theirs[0]), MISDIRECTED);
    assert_int_equal(try(mover, INSERT_LOCK("end", "S", "Y"), cust), 0);
    assert_int_equal(
        try(mover,
            "INSERT INTO trade_evidence (cust_no, serial_no, op_code, epoch, outcome, source, "
            "account, filed_at) VALUES ('%s', 'hand', 'WITHDRAW', 2, 'SUCCEEDED', 'copy', "
            "'bob@there', '2020-01-01')",
            cust),
        0);
    database_expect(f.sql, 1,
                    "SELECT COUNT(*) FROM trade_evidence WHERE account = 'bob@there' AND filed_at "
                    "= '2020-01-01'");
    database_expect(f.sql, 0, "SELECT conflict FROM trade_lock WHERE cust_no = '%s'", cust);
    assert_int_equal(try(mover, "DELETE FROM trade_lock WHERE cust_no = '%s'", cust), 0);
    database_run(f.sql,
                 "DELETE FROM trade_lock_past WHERE cust_no = '%s';"
                 "DELETE FROM trade_evidence WHERE cust_no = '%s'",
                 cust, cust);
    put_back(cust);
    /* It knows a token that counts for nothing now. */
    assert_int_equal(try(mover, INSERT_EVIDENCE, theirs[0]), MISDIRECTED);
    mysql_close(mover);
}

/* -------------------------------------------------------------------- beside the mover -- */

/* What was let through and is not committed yet keeps the mover waiting; an ask never waits for
 * him. */
TEST(test_locks)
{
    const char *cust = ours[7];
    MYSQL *asks = database_connect(f.db);

    database_run(f.sql, "SET innodb_lock_wait_timeout = 1");
    database_run(asks, "BEGIN");
    assert_int_equal(try(asks, INSERT_LOCK("ask", "S", "P"), cust), 0);
    assert_int_equal(try(f.sql,
                         "UPDATE tl_slot SET state = 'leaving' WHERE slot = tl_customer_slot('%s')",
                         cust),
                     1205);
    database_run(asks, "ROLLBACK");
    database_run(f.sql, "BEGIN");
    set_slot(cust, "leaving", 0);
    assert_status(ask_as("k1", cust, 0), TL_OVERLOADED);
    database_run(f.sql, "ROLLBACK");
    assert_status(ask_as("k1", cust, 0), TL_GRANTED);
    mysql_close(asks);
}

/* A purge steps over what is being copied, and takes what is left of a slot that is gone. */
static void purge(const char *serial, long long left)
{
    database_run(f.sql, "UPDATE tl_schema SET retention_ms = 172800000; "
                        "CALL tl_purge_trades(0, 172800000, 10000, '', '', '', @purged)");
    assert_int_equal(has_row(f.sql, serial), left);
}

TEST(test_purge)
{
    const char *cust = ours[9];

    database_run(f.sql,
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                 "thread_no, token, fence, rev, created_at, updated_at) SELECT '%s', x.serial, "
                 "'WITHDRAW', 'S', 'Y', 'ask', UUID(), 'x', 1, 1, UTC_TIMESTAMP(6) - INTERVAL 9 "
                 "DAY, UTC_TIMESTAMP(6) - INTERVAL 9 DAY FROM (SELECT 'p1' AS serial UNION SELECT "
                 "'p2') x",
                 cust);
    set_slot(cust, "leaving", 1);
    purge("p1", 1);
    set_slot(cust, "arriving", 0);
    purge("p1", 1);
    set_slot(cust, "gone", 0);
    purge("p1", 0);
    assert_int_equal(has_row(f.sql, "p2"), 0);
    put_back(cust);
}

/* -------------------------------------------------------------- the rights of a service -- */

/* The triggers read the slot with their definer's rights, in statements of one row and of both. */
TEST(test_service)
{
    tl_lock_options options = sync_options("x"), retry = retry_options();
    tl_client_options as = TL_CLIENT_OPTIONS_INIT;
    tl_evidence e = TL_EVIDENCE_INIT;
    char account[32];
    tl_client *service = NULL;
    tl_status status;
    tl_lock *lock;

    snprintf(account, sizeof account, "f%ld", (long)getpid());
    assert_status(tl_grant_roles(f.other), TL_OK);
    database_run(f.sql, "CREATE USER %s@localhost IDENTIFIED BY 'secret'", account);
    database_run(f.sql, "GRANT {database}_application TO %s@localhost", account);
    database_run(f.sql, "SET DEFAULT ROLE {database}_application FOR %s@localhost", account);
    as.config_file = database_option_file(f.db);
    as.flags = TL_CLIENT_NO_JANITOR;
    as.user = account;
    as.password = "secret";
    assert_status(tl_client_open(&service, &as), TL_OK);
    for (int i = 0; i < 3; i++) {
        const struct text serial = text_of("r%d", i);
        end_in_doubt(granted(service, serial.is, ours[8], &options));
        lock = granted(service, serial.is, ours[8], &retry);
        assert_status(tl_lock_arm(lock, 1000), TL_OK);
        assert_status(finish(lock, i == 0 ? TL_OUTCOME_FAILURE : TL_OUTCOME_SUCCESS,
                             i == 0 ? TL_PROOF_DECLARED : TL_PROOF_NONE),
                      i == 0 ? TL_FAILED : TL_SUCCEEDED);
        tl_lock_free(lock);
    }
    tl_lock_free(ask(service, "r9", theirs[0], &options, &status));
    assert_status(status, TL_MISDIRECTED);
    e.key = (tl_key){"r0", ours[8], "WITHDRAW"};
    e.outcome = "SUCCEEDED";
    e.source = "test";
    assert_status(tl_evidence_add(service, &e), TL_IN_CONFLICT);
    e.key.cust_no = theirs[0];
    assert_status(tl_evidence_add(service, &e), TL_MISDIRECTED);
    tl_client_close(service);
    database_run(f.sql, "DROP USER %s@localhost", account);
}

/* ----------------------------------------------------------------------------- joining -- */

static tl_client *admin_of(database *db)
{
    return client_of(database_option_file(db), TL_CLIENT_NO_SESSION);
}

static long long fleet_triggers(MYSQL *sql)
{
    return database_number(sql, "SELECT COUNT(*) FROM information_schema.triggers WHERE "
                                "event_object_schema = DATABASE() AND trigger_name IN "
                                "('trade_lock_begun', 'trade_lock_moved', 'trade_lock_removed', "
                                "'trade_evidence_known', 'trade_resolution_known', "
                                "'audit_closing_known')");
}

static int count_slot(void *context, const tl_slot_row *row)
{
    ++*(int *)context;
    assert_string_equal(row->state, "owned");
    assert_int_equal(row->version, 1);
    return 0;
}

static void assert_nothing(MYSQL *sql)
{
    assert_int_equal(fleet_triggers(sql), 0);
    database_expect(sql, 0, "SELECT COUNT(*) FROM tl_slot");
    database_expect(sql, 1, "SELECT fleet IS NULL AND shard IS NULL FROM tl_schema");
}

static void expect_bad_joinings(tl_client *shards[])
{
    tl_fleet_joining joining = TL_FLEET_JOINING_INIT;

    assert_status(tl_fleet_join(shards, 2, 0, NULL, NULL), TL_INVALID);
    assert_status(tl_fleet_join(shards, 2, 2, &joining, NULL), TL_INVALID);
    joining.fleet = "pay outs";
    joining.shard = "a";
    assert_status(tl_fleet_join(shards, 2, 0, &joining, NULL), TL_INVALID);
    joining.fleet = "payouts";
    joining.shard = "";
    assert_status(tl_fleet_join(shards, 2, 0, &joining, NULL), TL_INVALID);
}

/* The other shard never gets what the first one has. */
static void expect_only_the_rest(tl_client *shards[], MYSQL *other, const unsigned char *slots)
{
    tl_fleet_joining joining = TL_FLEET_JOINING_INIT;
    tl_fleet_joined joined = {0};

    joining.fleet = "payouts";
    joining.shard = "a";
    assert_status(tl_fleet_join(shards, 2, 1, &joining, NULL), TL_REFUSED);
    joining.shard = "b";
    joining.slots = slots;
    assert_status(tl_fleet_join(shards, 2, 1, &joining, NULL), TL_REFUSED);
    assert_nothing(other);
    joining.fleet = "others";
    joining.slots = NULL;
    assert_status(tl_fleet_join(shards, 2, 1, &joining, NULL), TL_REFUSED);
    assert_nothing(other);
    joining.fleet = "payouts";
    assert_status(tl_fleet_join(shards, 2, 1, &joining, &joined), TL_OK);
    assert_int_equal(joined.owned, 1);
}

TEST(test_joining)
{
    unsigned char slots[TL_FLEET_SLOTS] = {0};
    database *one = database_new(server_shared(), NULL), *two = database_new(server_shared(), NULL);
    MYSQL *sql = database_connect(one), *other = database_connect(two);
    tl_client *shards[] = {admin_of(one), admin_of(two)};
    char fleet[TL_FLEET_NAME_MAX + 1], shard[TL_FLEET_NAME_MAX + 1];
    tl_fleet_joining joining = TL_FLEET_JOINING_INIT;
    tl_fleet_joined joined = {0};
    int count = 0;

    assert_nothing(sql);
    assert_status(tl_slot_list(shards[0], fleet, shard, count_slot, &count), TL_OK);
    assert_string_equal(fleet, "");
    expect_bad_joinings(shards);
    joining.fleet = "payouts";
    joining.shard = "a";

    /* Somebody is here whose slot is not asked for. */
    database_run(sql, INSERT_LOCK("ask", "S", "P"), "stranger");
    memset(slots, 1, sizeof slots);
    slots[database_number(f.sql, "SELECT tl_customer_slot('stranger')")] = 0;
    joining.slots = slots;
    assert_status(tl_fleet_join(shards, 2, 0, &joining, NULL), TL_REFUSED);
    assert_non_null(strstr(tl_error_message(), "stranger"));
    assert_nothing(sql);

    slots[database_number(f.sql, "SELECT tl_customer_slot('stranger')")] = 1;
    slots[7] = 0;
    assert_status(tl_fleet_join(shards, 2, 0, &joining, &joined), TL_OK);
    assert_int_equal(joined.owned, TL_FLEET_SLOTS - 1);
    assert_int_equal(joined.made, 6);
    assert_int_equal(fleet_triggers(sql), 6);
    assert_int_equal(fleet_triggers(other), 0);
    /* Again: nothing is left to do. */
    assert_status(tl_fleet_join(shards, 2, 0, &joining, &joined), TL_OK);
    assert_int_equal(joined.taken + joined.made, 0);
    assert_int_equal(joined.owned, TL_FLEET_SLOTS - 1);
    joining.shard = "c";
    assert_status(tl_fleet_join(shards, 2, 0, &joining, NULL), TL_REFUSED);
    expect_only_the_rest(shards, other, slots);
    assert_status(tl_slot_list(shards[1], fleet, shard, count_slot, &count), TL_OK);
    assert_string_equal(fleet, "payouts");
    assert_string_equal(shard, "b");
    assert_int_equal(count, 1);
    tl_client_close(shards[0]);
    tl_client_close(shards[1]);
    mysql_close(sql);
    mysql_close(other);
    database_free(one);
    database_free(two);
}

/* What a service had put in its place stays, and `migrate` mends the rest, never in a database of no
 * fleet. */
static int find_parts(void *context, const tl_finding *finding)
{
    if (strcmp(finding->check, "parts") == 0 || strcmp(finding->check, "definitions") == 0 ||
        strcmp(finding->check, "log") == 0)
        *(tl_finding_level *)context = finding->level > *(tl_finding_level *)context
                                           ? finding->level
                                           : *(tl_finding_level *)context;
    return 0;
}

static tl_finding_level worst(tl_client *client)
{
    tl_finding_level level = TL_FINDING_OK;

    (void)tl_doctor(client, find_parts, &level);
    return level;
}

TEST(test_mended)
{
    database *db = database_new(server_shared(), NULL);
    MYSQL *sql = database_connect(db);
    tl_client *client = admin_of(db);
    tl_migrated migrated;

    database_run(sql, "CREATE FUNCTION tl_customer_slot(cust VARCHAR(32) CHARACTER SET ascii) "
                      "RETURNS INT DETERMINISTIC NO SQL RETURN LENGTH(cust)");
    assert_status(tl_migrate(client, &migrated), TL_OK);
    assert_int_equal(migrated.mended, 0);
    assert_nothing(sql);
    assert_status(join_as(client, "lengths", "l", NULL, NULL), TL_OK);
    database_expect(sql, 3, "SELECT tl_customer_slot('abc')");
    assert_int_equal(worst(client), TL_FINDING_OK);
    database_run(sql, "DROP TRIGGER trade_lock_begun");
    assert_int_equal(worst(client), TL_FINDING_UNSAFE);
    assert_status(tl_migrate(client, &migrated), TL_OK);
    assert_int_equal(migrated.mended, 1);
    database_run(sql, "CREATE OR REPLACE TRIGGER trade_lock_begun BEFORE INSERT ON trade_lock "
                      "FOR EACH ROW SET NEW.remark = 'ours'");
    assert_int_equal(worst(client), TL_FINDING_WARNING);
    assert_status(tl_migrate(client, &migrated), TL_OK);
    assert_int_equal(migrated.mended, 1);
    assert_int_equal(worst(client), TL_FINDING_OK);
    database_expect(sql, 3, "SELECT tl_customer_slot('abc')");
    assert_status(tl_grant_roles(client), TL_OK);
    tl_client_close(client);
    mysql_close(sql);
    database_free(db);
}

TESTS_OF(fleet, setup, teardown)
