/* 32 threads, few connections, some of them killed meanwhile. */
#include "db/db.h"
#include "pool/pool.h"
#include "support/database.h"
#include "support/theme.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 32, ROUNDS = 60, QUICK = 4, BUSINESS = 3 };

struct crowd {
    pool *p;
    database *base;
    atomic_int lent[POOL_KINDS], most[POOL_KINDS];
    atomic_int ended, trouble, replaced;
    atomic_long committed, unanswered;
};

struct member {
    struct crowd *crowd;
    pthread_t thread;
    int number;
};

static db_answer run_sql(db *connection, const char *sql)
{
    return db_run_text(connection, "test", sql, strlen(sql), NULL);
}

static void count_lent(struct crowd *crowd, pool_kind kind, int by)
{
    int now = atomic_fetch_add(&crowd->lent[kind], by) + by;
    int most = atomic_load(&crowd->most[kind]);

    while (now > most && !atomic_compare_exchange_weak(&crowd->most[kind], &most, now))
        ;
}

/* Every third piece of work is left half done, which the pool must undo. */
static void work(struct crowd *crowd, db *connection, int round)
{
    db_answer answer;

    if (round % 3 == 0) {
        if (db_begin(connection) == DB_DONE)
            run_sql(connection, "INSERT INTO t (n) VALUES (-1)");
        return;
    }
    answer = run_sql(connection, "INSERT INTO t (n) VALUES (1)");
    if (answer == DB_DONE)
        atomic_fetch_add(&crowd->committed, 1);
    else if (answer == DB_UNANSWERED)
        atomic_fetch_add(&crowd->unanswered, 1);
    else if (answer != DB_NOT_SENT)
        atomic_fetch_add(&crowd->trouble, 1);
}

static void *member_run(void *context)
{
    struct member *self = context;
    struct crowd *crowd = self->crowd;
    db_counters sum;
    uint64_t reconnects;
    int round;

    /* Until one that was killed has been replaced: who kills may come late. */
    for (round = 0; round < ROUNDS || !atomic_load(&crowd->replaced); round++) {
        pool_kind kind = (self->number + round) % 2 ? POOL_QUICK : POOL_BUSINESS;
        db *connection = NULL;
        tl_status status = pool_get(crowd->p, kind, 60000, &connection);

        if (status != TL_OK) { /* one that was killed before it was ready */
            if (status != TL_UNREACHABLE)
                atomic_fetch_add(&crowd->trouble, 1);
            continue;
        }
        count_lent(crowd, kind, 1);
        if (!db_usable(connection))
            atomic_fetch_add(&crowd->trouble, 1);
        work(crowd, connection, round);
        count_lent(crowd, kind, -1);
        pool_put(crowd->p, connection);
        if (round % 8 == 0) {
            pool_count(crowd->p, &sum, &reconnects);
            if (reconnects > 0)
                atomic_store(&crowd->replaced, 1);
        }
    }
    atomic_fetch_add(&crowd->ended, 1);
    return NULL;
}

/* Kills connections of this database, those that work and those that are idle. */
static void kill_some(struct crowd *crowd, MYSQL *plain)
{
    int i;

    for (i = 0; atomic_load(&crowd->ended) < THREADS; i++) {
        long long id = database_number(plain,
                                       "SELECT COALESCE(MAX(ID), 0) FROM "
                                       "information_schema.PROCESSLIST WHERE DB = '%s' "
                                       "AND ID <> CONNECTION_ID() AND ID %% 3 = %d",
                                       database_name(crowd->base), i % 3);
        char sql[40];

        snprintf(sql, sizeof(sql), "KILL %lld", id);
        if (id)
            (void)mysql_query(plain, sql); /* it may have ended by itself */
        usleep(3000);
    }
}

static void a_crowd(void **state)
{
    struct crowd crowd = {.base = database_new_empty(server_shared(), NULL)};
    pool_options options = {.connect = {.option_file = database_option_file(crowd.base),
                                        .group = "tradelock-client",
                                        .idle_transaction_s = 30,
                                        .connect_timeout_s = 20,
                                        .read_timeout_s = 30},
                            .size = {QUICK, BUSINESS},
                            .business_lock_wait_s = 7};
    struct member members[THREADS];
    MYSQL *plain = database_connect(crowd.base);
    db_counters sum;
    uint64_t reconnects;
    long long rows;
    int i;

    (void)state;
    database_run(plain, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT)");
    assert_int_equal(pool_new(&crowd.p, &options), TL_OK);
    for (i = 0; i < THREADS; i++) {
        members[i] = (struct member){.crowd = &crowd, .number = i};
        assert_int_equal(pthread_create(&members[i].thread, NULL, member_run, &members[i]), 0);
    }
    kill_some(&crowd, plain);
    for (i = 0; i < THREADS; i++)
        pthread_join(members[i].thread, NULL);
    pool_count(crowd.p, &sum, &reconnects);
    assert_int_equal(crowd.trouble, 0);
    assert_true(reconnects > 0);
    assert_true(crowd.most[POOL_QUICK] <= QUICK);
    assert_true(crowd.most[POOL_BUSINESS] <= BUSINESS);
    assert_true(crowd.most[POOL_QUICK] > 1);
    assert_true(sum.statements >= (uint64_t)crowd.committed);
    /* What was answered is there, what was lost may be, what was half done is not. */
    rows = database_number(plain, "SELECT COUNT(*) FROM t WHERE n = 1");
    assert_in_range(rows, crowd.committed, crowd.committed + crowd.unanswered);
    pool_free(crowd.p);
    assert_int_equal(database_number(plain, "SELECT COUNT(*) FROM t WHERE n = -1"), 0);
    mysql_close(plain);
    database_free(crowd.base);
}

TEST_MAIN(crowd)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_crowd)};

    return server_report(cmocka_run_group_tests(tests, NULL, NULL));
}
