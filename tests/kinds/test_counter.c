/*
 * What each kind of lock is for, with many processes: a counter that they raise by reading it,
 * pausing, and writing it back.  And for the read-write lock: readers side by side with no writer
 * among them, and the repayment of a loan against transfers of its claims.  Each goes wrong without
 * the lock, or would prove nothing.
 */
#include "kinds/kinds.h"
#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/row_lock.h>

#include <stdatomic.h>

#define PROCESSES 8
#define WAIT_MS 600000
#define TIMES_LONG 10000

static fixture f;

/* Seen by all processes. */
struct witness {
    atomic_int readers, writers, most_readers, met;
};
static struct witness *witness;

FIXTURE(setup)
{
    fixture_open(&f, "ask_wait_min_ms=1ms\nask_wait_max_ms=40ms\nsession_ms=60s\n");
    database_run(f.sql, "CREATE TABLE counter (id INT PRIMARY KEY, n BIGINT NOT NULL);"
                        "CREATE TABLE claim (id INT PRIMARY KEY, owner INT NOT NULL, "
                        "paid_to INT NULL);"
                        "INSERT INTO claim SELECT seq, 0, NULL FROM seq_1_to_20");
    witness = crew_share(sizeof *witness);
}

FIXTURE(teardown)
{
    crew_unshare(witness, sizeof *witness);
    assert_holders_whole(&f, 0);
    fixture_close(&f);
}

static int counter_times(void)
{
    return (int)tier_pick(TIMES_LONG / 100, TIMES_LONG / 20, TIMES_LONG);
}

/* One process' part, so many times; 1 when every step went well. */
typedef int (*job_fn)(int number, int with_lock, int times);

struct part {
    job_fn job;
    int with_lock, times;
};

static void do_part(void *context, int number)
{
    const struct part *part = context;

    CREW_CHECK(part->job(number, part->with_lock, part->times));
}

/* The same job in every process; each must end well. */
static void run_processes(job_fn job, int with_lock, int times)
{
    struct part part = {job, with_lock, times};

    assert_int_equal(crew_run(PROCESSES, do_part, &part), 0);
}

/* -------------------------------------------------------------------- the counter -- */

static any_lock make_one(tl_client *client, int number)
{
    (void)number;
    return any_new(client, "counter", 0);
}

/* Every other process names them the other way round. */
static any_lock make_set(tl_client *client, int number)
{
    static const char *const there[] = {"a", "counter", "z"};
    static const char *const back[] = {"z", "counter", "a"};
    tl_mutex_options options = lease_options(0);
    any_lock set = {NULL, NULL};

    if (tl_mutex_new_set(&set.mutex, client, number % 2 ? there : back, 3, &options) != TL_OK)
        server_panic("no set: %s", tl_error_message());
    return set;
}

/* The caller's transaction has the row lock. */
static any_lock make_none(tl_client *client, int number)
{
    (void)client;
    (void)number;
    return (any_lock){NULL, NULL};
}

static const struct counted {
    kind kind;
    const char *name;
    any_lock (*make)(tl_client *client, int number);
    int must_lose; /* without the lock */
} counts[] = {
    {MUTEX, "lease mutex", make_one, 1},
    {MUTEX, "set of three", make_set, 0}, /* the same without */
    {RW, "read-write lock", make_one, 1},
    {ROW, "row lock", make_none, 1},
};
static const struct counted *counted;

/* Reads, pauses, writes: each statement alone, or under the row lock in one transaction, with a
 * plain read.  That lock comes before the first read: a snapshot of REPEATABLE READ would begin
 * with that, and be old by the time the lock is there. */
static int count_up(int number, int with_lock, int times)
{
    tl_client *client = client_new(&f);
    any_lock lock = counted->make(client, number);
    MYSQL *caller = database_connect(f.db);
    int in_row = counted->kind == ROW, good = 0;

    database_run(caller, "SET idle_transaction_timeout = 600, innodb_lock_wait_timeout = 600");
    if (!with_lock && in_row) /* else the server would refuse with 1020 what is to be lost */
        database_run(caller, "SET innodb_snapshot_isolation = OFF");
    for (; good < times; good++) {
        long long n;

        if (in_row)
            database_run(caller, "START TRANSACTION");
        if (with_lock && (in_row ? tl_row_lock(client, "counter", caller, TL_ROW_LOCK_BLOCK, 0)
                                 : any_take(lock, WAIT_MS)) != TL_GRANTED)
            break;
        n = database_number(caller, "SELECT n FROM counter WHERE id = 1");
        usleep(100);
        database_run(caller, "UPDATE counter SET n = %lld WHERE id = 1", n + 1);
        if (in_row)
            database_run(caller, "COMMIT");
        else if (with_lock && any_unlock(lock) != TL_OK)
            break;
    }
    if (good < times)
        print_error("round %d: %s\n", good, tl_error_message());
    mysql_close(caller);
    any_free(lock);
    tl_client_close(client);
    return good == times;
}

/* How many updates were lost. */
static long long count_lost(int with_lock)
{
    int times = counter_times();
    long long wanted = (long long)PROCESSES * times, found;
    int64_t begun_ms = crew_now_ms();

    database_run(f.sql, "REPLACE INTO counter VALUES (1, 0)");
    run_processes(count_up, with_lock, times);
    found = database_number(f.sql, "SELECT n FROM counter WHERE id = 1");
    print_message("%s %s: %d processes x %d: counted %lld of %lld, %lld lost, %.1f s\n",
                  with_lock ? "with the" : "without the", counted->name, PROCESSES, times, found,
                  wanted, wanted - found, (double)(crew_now_ms() - begun_ms) / 1000);
    return wanted - found;
}

static void test_no_update_is_lost_but_without_the_lock(void **state)
{
    (void)state;
    for (counted = counts; counted < counts + sizeof counts / sizeof counts[0]; counted++) {
        if (counted->kind != tested)
            continue;
        assert_int_equal(count_lost(1), 0);
        if (counted->must_lose)
            assert_true(count_lost(0) > 0);
    }
}

/* -------------------------------------------------------- readers beside each other -- */

static void keep_most(int readers)
{
    int most = atomic_load(&witness->most_readers);

    while (readers > most && !atomic_compare_exchange_weak(&witness->most_readers, &most, readers))
        ;
}

/* Inside: counts itself, looks who else is there, and stays a moment. */
static void be_inside(int writes)
{
    if (writes) {
        if (atomic_fetch_add(&witness->writers, 1) > 0 || atomic_load(&witness->readers) > 0)
            atomic_store(&witness->met, 1);
        usleep(300);
        atomic_fetch_sub(&witness->writers, 1);
        return;
    }
    keep_most(atomic_fetch_add(&witness->readers, 1) + 1);
    if (atomic_load(&witness->writers) > 0)
        atomic_store(&witness->met, 1);
    /* Until one reader had company: on a busy machine that takes longer than a moment. */
    for (int stays = 0; stays == 0 || (stays < 500 && atomic_load(&witness->most_readers) < 2);
         stays++)
        usleep(3000);
    atomic_fetch_sub(&witness->readers, 1);
}

/* Two of the processes write; the others read. */
static int go_in_and_out(int number, int with_lock, int times)
{
    tl_client *client = client_new(&f);
    tl_rw *rw = rw_new(client, "witness", 0);
    int writes = number < 2, good = 1;

    for (int i = 0; i < times && good; i++) {
        if (with_lock)
            good = (writes ? tl_rw_write(rw, WAIT_MS) : tl_rw_read(rw, WAIT_MS)) == TL_GRANTED;
        be_inside(writes);
        if (with_lock && good)
            good = tl_rw_unlock(rw) == TL_OK;
        usleep(500);
    }
    if (!good)
        print_error("%s\n", tl_error_message());
    tl_rw_free(rw);
    tl_client_close(client);
    return good;
}

static void test_readers_together_and_no_writer_among_them(void **state)
{
    (void)state;
    run_processes(go_in_and_out, 1, counter_times() / 20);
    assert_int_equal(atomic_load(&witness->met), 0);
    print_message("%d readers at once\n", atomic_load(&witness->most_readers));
    assert_true(atomic_load(&witness->most_readers) >= 2);
    /* The witness sees what it is there for. */
    run_processes(go_in_and_out, 0, 100);
    assert_int_equal(atomic_load(&witness->met), 1);
}

/* ------------------------------------------------- a repayment against transfers -- */

/* Reads who owns the claims, and pays them one after the other: a claim that changes hands
 * meanwhile is paid to the wrong one. */
static int repay(tl_rw *rw, MYSQL *caller, int with_lock)
{
    int owner[21];

    if (with_lock && tl_rw_write(rw, WAIT_MS) != TL_GRANTED)
        return 0;
    for (int id = 1; id <= 20; id++)
        owner[id] = (int)database_number(caller, "SELECT owner FROM claim WHERE id = %d", id);
    database_run(caller, "START TRANSACTION");
    for (int id = 1; id <= 20; id++)
        database_run(caller, "UPDATE claim SET paid_to = %d WHERE id = %d", owner[id], id);
    if (with_lock && tl_rw_done(rw, caller, 0) != TL_OK)
        return 0;
    database_run(caller, "COMMIT");
    if (database_number(caller, "SELECT COUNT(*) FROM claim WHERE paid_to <> owner") > 0)
        atomic_store(&witness->met, 1);
    return !with_lock || tl_rw_unlock(rw) == TL_OK;
}

static int transfer(tl_rw *rw, MYSQL *caller, int with_lock, int id, int to)
{
    if (with_lock && tl_rw_read(rw, WAIT_MS) != TL_GRANTED)
        return 0;
    database_run(caller, "START TRANSACTION");
    database_run(caller, "UPDATE claim SET owner = %d WHERE id = %d", to, id);
    if (with_lock && tl_rw_done(rw, caller, 0) != TL_OK)
        return 0;
    database_run(caller, "COMMIT");
    return !with_lock || tl_rw_unlock(rw) == TL_OK;
}

static int trade_claims(int number, int with_lock, int times)
{
    tl_client *client = client_new(&f);
    tl_rw *rw = rw_new(client, "loan/1", 0);
    MYSQL *caller = database_connect(f.db);
    int good = 1;

    database_run(caller, "SET idle_transaction_timeout = 60");
    for (int i = 0; i < times && good; i++)
        good = number == 0
                   ? repay(rw, caller, with_lock)
                   : transfer(rw, caller, with_lock, 1 + (i + number) % 20, number * 1000 + i);
    if (!good)
        print_error("%s\n", tl_error_message());
    mysql_close(caller);
    tl_rw_free(rw);
    tl_client_close(client);
    return good;
}

static void test_repayment_against_transfers(void **state)
{
    (void)state;
    atomic_store(&witness->met, 0);
    run_processes(trade_claims, 1, counter_times() / 20);
    assert_int_equal(atomic_load(&witness->met), 0);
    run_processes(trade_claims, 0, 200);
    assert_int_equal(atomic_load(&witness->met), 1);
}

TEST_MAIN(counter)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_update_is_lost_but_without_the_lock),
    };
    const struct CMUnitTest rw_tests[] = {
        cmocka_unit_test(test_no_update_is_lost_but_without_the_lock),
        cmocka_unit_test(test_readers_together_and_no_writer_among_them),
        cmocka_unit_test(test_repayment_against_transfers),
    };

    kind_choose(argc, argv);
    return tested == RW ? server_run_tests(rw_tests, setup, teardown)
                        : server_run_tests(tests, setup, teardown);
}
