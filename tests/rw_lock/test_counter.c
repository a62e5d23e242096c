/*
 * What the lock is for, with many processes: a counter raised by reading, pausing and writing back;
 * readers side by side with no writer among them; and the repayment of a loan against transfers of
 * its claims.  Each goes wrong without the lock, or would prove nothing.
 */
#include "lease/counter.h"
#include "rw_lock/fixture.h"
#include "support/theme.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES 8
#define WAIT_MS 600000

static fixture f;

/* Seen by all processes. */
struct witness {
    atomic_int readers, writers, most_readers, met;
};
static struct witness *witness;

static int setup(void **state)
{
    (void)state;
    fixture_open(&f, "ask_wait_min_ms=1ms\nask_wait_max_ms=40ms\nsession_ms=60s\n");
    counter_make(&f);
    database_run(f.sql, "CREATE TABLE claim (id INT PRIMARY KEY, owner INT NOT NULL, "
                        "paid_to INT NULL);"
                        "INSERT INTO claim SELECT seq, 0, NULL FROM seq_1_to_20");
    witness =
        mmap(NULL, sizeof *witness, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return witness == MAP_FAILED;
}

static int teardown(void **state)
{
    (void)state;
    munmap(witness, sizeof *witness);
    assert_holders_whole(&f, 0);
    fixture_close(&f);
    return 0;
}

typedef int (*job_fn)(int number, int with_lock, int times);

/* The same job in every process; each must end well. */
static void run_processes(job_fn job, int with_lock, int times)
{
    pid_t pids[PROCESSES];

    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            _exit(job(i, with_lock, times) ? 0 : 1);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
}

/* -------------------------------------------------------------------- the counter -- */

static int count_up(const fixture *of, int with_lock, int times)
{
    tl_client *client = client_new(of);
    tl_rw *rw = rw_new(client, "counter", 0);
    MYSQL *connection = database_connect(of->db);
    int good = 0;

    for (; good < times; good++) {
        if (with_lock && tl_rw_write(rw, WAIT_MS) != TL_GRANTED)
            break;
        if (!counter_raise(connection))
            break;
        if (with_lock && tl_rw_unlock(rw) != TL_OK)
            break;
    }
    if (good < times)
        print_error("round %d: %s\n", good, tl_error_message());
    mysql_close(connection);
    tl_rw_free(rw);
    tl_client_close(client);
    return good == times;
}

static void test_no_update_is_lost(void **state)
{
    (void)state;
    counter_is_right(&f, "read-write lock", count_up);
}

static void test_without_the_lock_updates_are_lost(void **state)
{
    (void)state;
    counter_is_wrong_without(&f, "read-write lock", count_up);
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
        cmocka_unit_test(test_no_update_is_lost),
        cmocka_unit_test(test_without_the_lock_updates_are_lost),
        cmocka_unit_test(test_readers_together_and_no_writer_among_them),
        cmocka_unit_test(test_repayment_against_transfers),
    };

    return server_run_tests(tests, setup, teardown);
}
