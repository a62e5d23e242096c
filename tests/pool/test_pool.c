/* Bounds, order, deadlines and cleanliness of the pool. */
#include "db/db.h"
#include "pool/pool.h"
#include "support/database.h"
#include "support/theme.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

static database *base;
static MYSQL *plain;

FIXTURE(set_up)
{
    base = database_new_empty(server_shared(), NULL);
    plain = database_connect(base);
    database_run(plain, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT)");
}

FIXTURE(tear_down)
{
    mysql_close(plain);
    database_free(base);
}

static pool *new_pool(unsigned quick, unsigned business)
{
    pool_options options = {.connect = {.option_file = database_option_file(base),
                                        .group = "tradelock-client",
                                        .lock_wait_s = 0,
                                        .idle_transaction_s = 30,
                                        .connect_timeout_s = 20,
                                        .read_timeout_s = 30},
                            .size = {quick, business},
                            .business_lock_wait_s = 7};
    pool *p = NULL;

    assert_int_equal(pool_new(&p, &options), TL_OK);
    return p;
}

static db *get(pool *p, pool_kind kind)
{
    db *connection = NULL;
    tl_status status = pool_get(p, kind, 20000, &connection);

    if (status != TL_OK)
        fail_msg("pool_get: %s: %s", tl_status_name(status), tl_error_message());
    return connection;
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static db_answer run_sql(db *connection, const char *sql, db_result *result)
{
    return db_run_text(connection, "test", sql, strlen(sql), result);
}

static long long number_of(db *connection, const char *sql)
{
    db_result result = DB_RESULT_INIT;
    long long number;

    assert_int_equal(run_sql(connection, sql, &result), DB_DONE);
    number = db_get_int(&result, 0, 0);
    db_result_free(&result);
    return number;
}

static void wait_until_gone(uint64_t thread_id)
{
    int tries;

    for (tries = 0; tries < 6000; tries++) {
        if (!database_number(plain,
                             "SELECT COUNT(*) FROM information_schema.PROCESSLIST "
                             "WHERE ID = %llu",
                             (unsigned long long)thread_id))
            return;
        usleep(10000);
    }
    fail_msg("connection %llu does not end", (unsigned long long)thread_id);
}

TEST(two_kinds_with_bounds_of_their_own)
{
    pool *p = new_pool(2, 1);
    db *quick[2], *business, *none = NULL;
    int64_t start;

    quick[0] = get(p, POOL_QUICK);
    quick[1] = get(p, POOL_QUICK);
    business = get(p, POOL_BUSINESS);
    assert_int_equal(number_of(quick[0], "SELECT @@innodb_lock_wait_timeout"), 0);
    assert_int_equal(number_of(business, "SELECT @@innodb_lock_wait_timeout"), 7);
    assert_int_equal(pool_get(p, POOL_QUICK, 0, &none), TL_OVERLOADED);
    start = now_ms();
    assert_int_equal(pool_get(p, POOL_BUSINESS, 150, &none), TL_OVERLOADED);
    assert_true(now_ms() - start >= 149);
    assert_non_null(strstr(tl_error_message(), "business"));
    assert_int_equal(pool_count_waits(p, POOL_QUICK).waits, 0);
    assert_int_equal(pool_count_waits(p, POOL_QUICK).timeouts, 1);
    assert_int_equal(pool_count_waits(p, POOL_BUSINESS).waits, 1);
    assert_int_equal(pool_count_waits(p, POOL_BUSINESS).timeouts, 1);
    assert_true(pool_count_waits(p, POOL_BUSINESS).waited_us >= 149000);
    assert_null(none);
    pool_put(p, business);
    assert_int_equal(pool_get(p, POOL_QUICK, 0, &none), TL_OVERLOADED);
    assert_ptr_equal(get(p, POOL_BUSINESS), business); /* the same, still open */
    pool_put(p, business);
    pool_put(p, quick[0]);
    pool_put(p, quick[1]);
    pool_put(p, NULL);
    assert_ptr_equal(get(p, POOL_QUICK), quick[1]); /* the warm one */
    pool_put(p, quick[1]);
    pool_free(p);
    pool_free(NULL);
}

TEST(a_pool_needs_places)
{
    pool_options options = {.size = {1, 0}};
    pool *p = NULL;

    assert_int_equal(pool_new(&p, &options), TL_INVALID);
    assert_null(p);
}

struct waiting {
    pool *p;
    pthread_t thread;
    atomic_int *order;
    int64_t wait_ms;
    int place; /* in the order of being served */
    tl_status status;
};

static void *wait_for_one(void *context)
{
    struct waiting *self = context;
    db *connection = NULL;

    self->status = pool_get(self->p, POOL_QUICK, self->wait_ms, &connection);
    self->place = atomic_fetch_add(self->order, 1);
    pool_put(self->p, connection);
    return NULL;
}

enum { COUNT = 6, IMPATIENT = 2 };

/* They come one after the other; 0 when the impatient one has gone before all were there.
 * *come: how many came. */
static int queue_up(pool *p, struct waiting *waiting, atomic_int *order, int64_t patience_ms,
                    int *come)
{
    for (*come = 0; *come < COUNT;) {
        struct waiting *one = &waiting[*come];

        *one = (struct waiting){.p = p, .order = order, .wait_ms = 60000};
        if (*come == IMPATIENT)
            one->wait_ms = patience_ms;
        assert_int_equal(pthread_create(&one->thread, NULL, wait_for_one, one), 0);
        ++*come;
        while (pool_waiting(p, POOL_QUICK) != (unsigned)*come) {
            if (atomic_load(order) > 0)
                return 0;
            usleep(1000);
        }
    }
    return 1;
}

/* 0 when they came too slowly for the patience. */
static int serve_in_order(pool *p, int64_t patience_ms)
{
    db *connection = get(p, POOL_QUICK);
    struct waiting waiting[COUNT];
    atomic_int order = 0;
    int come, in_time = queue_up(p, waiting, &order, patience_ms, &come);

    if (come > IMPATIENT) {
        pthread_join(waiting[IMPATIENT].thread, NULL);
        assert_int_equal(waiting[IMPATIENT].status, TL_OVERLOADED);
        assert_int_equal(waiting[IMPATIENT].place, 0);
    }
    pool_put(p, connection);
    for (int i = 0; i < come; i++) {
        if (i == IMPATIENT)
            continue;
        pthread_join(waiting[i].thread, NULL);
        assert_int_equal(waiting[i].status, TL_OK);
        assert_int_equal(waiting[i].place, i < IMPATIENT ? i + 1 : i);
    }
    return in_time;
}

TEST(first_come_first_served)
{
    pool *p = new_pool(1, 1);
    int64_t patience_ms = 300;

    while (!serve_in_order(p, patience_ms))
        patience_ms *= 2;
    pool_free(p);
}

TEST(it_comes_back_clean)
{
    pool *p = new_pool(1, 1);
    db *connection = get(p, POOL_QUICK), *again;
    uint64_t thread_id = db_thread_id(connection);
    db_counters sum;
    uint64_t reconnects;

    assert_int_equal(db_begin(connection), DB_DONE);
    assert_int_equal(run_sql(connection, "INSERT INTO t (n) VALUES (41)", NULL), DB_DONE);
    pool_put(p, connection);
    again = get(p, POOL_QUICK);
    assert_true(db_thread_id(again) == thread_id);
    assert_true(db_usable(again));
    assert_int_equal(database_number(plain, "SELECT COUNT(*) FROM t WHERE n = 41"), 0);
    pool_count(p, &sum, &reconnects);
    assert_int_equal(sum.rollbacks, 1);
    assert_int_equal(reconnects, 0);
    pool_put(p, again);
    pool_free(p);
}

TEST(the_dead_are_replaced)
{
    pool *p = new_pool(1, 1);
    db *connection = get(p, POOL_QUICK);
    uint64_t first = db_thread_id(connection), second, reconnects;
    db_counters before, after;

    assert_int_equal(run_sql(connection, "DO 1", NULL), DB_DONE);
    pool_count(p, &before, &reconnects);
    pool_put(p, connection);
    /* killed while idle: found out without a round trip, before anybody gets it */
    database_run(plain, "KILL %llu", (unsigned long long)first);
    wait_until_gone(first);
    connection = get(p, POOL_QUICK);
    second = db_thread_id(connection);
    assert_true(second != first);
    assert_int_equal(run_sql(connection, "DO 1", NULL), DB_DONE);
    /* killed while lent: found out by whoever gives it back */
    database_run(plain, "KILL %llu", (unsigned long long)second);
    wait_until_gone(second);
    assert_int_equal(run_sql(connection, "DO 1", NULL), DB_NOT_SENT);
    pool_put(p, connection);
    connection = get(p, POOL_QUICK);
    assert_true(db_usable(connection));
    pool_count(p, &after, &reconnects);
    assert_int_equal(reconnects, 2);
    assert_true(after.statements > before.statements); /* the closed ones still count */
    pool_put(p, connection);
    pool_free(p);
}

static void *get_and_put(void *context)
{
    struct waiting *self = context;
    db *connection = NULL;

    self->status = pool_get(self->p, POOL_QUICK, self->wait_ms, &connection);
    pool_put(self->p, connection);
    return NULL;
}

/* A broken connection's place goes to who waits, who opens a new one. */
TEST(the_queue_moves_on_when_one_breaks)
{
    pool *p = new_pool(1, 1);
    db *connection = get(p, POOL_QUICK);
    struct waiting waiting = {.p = p, .wait_ms = 20000};

    assert_int_equal(pthread_create(&waiting.thread, NULL, get_and_put, &waiting), 0);
    while (pool_waiting(p, POOL_QUICK) != 1)
        usleep(1000);
    database_run(plain, "KILL %llu", (unsigned long long)db_thread_id(connection));
    wait_until_gone(db_thread_id(connection));
    assert_int_equal(run_sql(connection, "DO 1", NULL), DB_NOT_SENT);
    pool_put(p, connection);
    pthread_join(waiting.thread, NULL);
    assert_int_equal(waiting.status, TL_OK);
    pool_free(p);
}

TEST(outside_the_bounds)
{
    pool *p = new_pool(1, 1);
    db *connection = get(p, POOL_QUICK), *extra = NULL, *second = NULL;
    db_counters sum, later;
    uint64_t reconnects;

    assert_int_equal(pool_open_extra(p, POOL_BUSINESS, &extra), TL_OK);
    assert_int_equal(pool_open_extra(p, POOL_QUICK, &second), TL_OK);
    assert_int_equal(number_of(extra, "SELECT @@innodb_lock_wait_timeout"), 7);
    pool_count(p, &sum, &reconnects);
    pool_close_extra(p, extra);
    pool_count(p, &later, &reconnects);
    assert_int_equal(later.statements, sum.statements);
    pool_close_extra(p, second);
    pool_close_extra(p, NULL);
    pool_put(p, connection);
    pool_free(p);
}

static int child_is_refused(pool *p, db *lent)
{
    db *connection = NULL;
    db_counters sum;
    uint64_t reconnects;
    int good = pool_get(p, POOL_QUICK, 1000, &connection) == TL_WRONG_PROCESS &&
               pool_open_extra(p, POOL_QUICK, &connection) == TL_WRONG_PROCESS &&
               run_sql(lent, "INSERT INTO t (n) VALUES (66)", NULL) == DB_NOT_SENT;

    pool_count(p, &sum, &reconnects);
    pool_free(p);
    return good ? 0 : 1;
}

TEST(a_child_gets_nothing_and_breaks_nothing)
{
    pool *p = new_pool(2, 1);
    db *idle = get(p, POOL_BUSINESS), *lent = get(p, POOL_QUICK), *extra = NULL;
    uint64_t idle_id = db_thread_id(idle);
    int child_status = -1;
    pid_t child;

    assert_int_equal(pool_open_extra(p, POOL_QUICK, &extra), TL_OK);
    pool_put(p, idle);
    assert_int_equal(db_begin(lent), DB_DONE);
    assert_int_equal(run_sql(lent, "INSERT INTO t (n) VALUES (55)", NULL), DB_DONE);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(child_is_refused(p, lent));
    assert_int_equal(waitpid(child, &child_status, 0), child);
    assert_int_equal(child_status, 0);
    assert_int_equal(db_commit(lent), DB_DONE);
    assert_int_equal(database_number(plain, "SELECT COUNT(*) FROM t WHERE n = 55"), 1);
    assert_int_equal(database_number(plain, "SELECT COUNT(*) FROM t WHERE n = 66"), 0);
    assert_true(db_alive(extra));
    idle = get(p, POOL_BUSINESS);
    assert_true(db_thread_id(idle) == idle_id);
    assert_int_equal(run_sql(idle, "DO 1", NULL), DB_DONE);
    pool_put(p, idle);
    pool_put(p, lent);
    pool_close_extra(p, extra);
    pool_free(p);
}

TEST(nobody_waits_for_a_server_that_is_not_there)
{
    pool_options options = {
        .connect = {.option_file = "/tmp/tradelock-no-such-file", .group = "tradelock-client"},
        .size = {1, 1}};
    pool *p = NULL;
    db *connection = NULL;
    int i;

    assert_int_equal(pool_new(&p, &options), TL_OK);
    for (i = 0; i < 3; i++) /* the place is given back each time */
        assert_int_equal(pool_get(p, POOL_QUICK, 20000, &connection), TL_BAD_CONFIG);
    assert_null(connection);
    pool_free(p);
}

TESTS_OF(pool, set_up, tear_down)
