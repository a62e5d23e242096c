/*
 * Death and sleep at every numbered point of the other locks.
 *
 * A part of the work (asking, a guarded transaction that raises a balance and keeps a
 * ledger, giving back) is run once to count its points, which are compared with what the
 * server saw of it, so that none is forgotten.  Then it is run once for each
 * point and killed there, and once more and stopped there for longer than its session
 * lives.  Each time another process, whose session lives on, must get the lock and do the
 * same work; then those who were stopped go on, too late.  In the end the balances must
 * be what the ledger says, its fences in their order, and the histories whole.
 */
#include "points.h"

#include "base/fault.h"
#include "rw_lock/fixture.h"

#include <tradelock/row_lock.h>

#include "support/theme.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define NAME_SPACE 64
#define WIDTH 4        /* runs at once */
#define ASLEEP_MAX 100 /* stopped at once: each has connections */
#define NTH_MAX 4
#define WAIT_MS 120000
#define INTENT_WAIT_MS 300
#define EXIT_TOO_LATE 3

/* One run of the work. */
struct work_of {
    tl_client *client;
    MYSQL *caller;
    const char *resource;
    int64_t wait_ms;
    int guarded;
};

typedef struct kind {
    const char *name;
    int (*run)(const struct work_of *w);  /* 1: all went well */
    int (*heir)(const struct work_of *w); /* NULL: the same */
    const char *log;                      /* where its fences are; NULL: none */
    int again, read_meanwhile;            /* used before; somebody reads it */
} kind;

struct victim {
    pid_t pid;
    char resource[NAME_SPACE];
    const kind *of;
    tl_rw *reader;
};

static fixture f;
static char points_path[64];
static unsigned serial;
static struct {
    unsigned points, deaths, sleeps, missed, late, finished;
} sum;
/* While the points are counted on both sides: whose connections are not the child's. */
static int counting;
static char *bystanders;

static void make_books(void)
{
    database_run(f.sql, "CREATE TABLE balance (resource VARCHAR(128) CHARACTER SET ascii COLLATE "
                        "ascii_nopad_bin PRIMARY KEY, n BIGINT NOT NULL);"
                        "CREATE TABLE ledger (id BIGINT AUTO_INCREMENT PRIMARY KEY, resource "
                        "VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL, "
                        "fence BIGINT UNSIGNED NOT NULL)");
}

FIXTURE(setup)
{
    fixture_open(&f, "beat_ms=500ms\nsession_ms=6s\nask_wait_max_ms=200ms\n");
    make_books();
    snprintf(points_path, sizeof points_path, "/tmp/tl-points-%ld", (long)getpid());
}

static void assert_books(void)
{
    assert_int_equal(database_number(f.sql,
                                     "SELECT COUNT(*) FROM balance b WHERE n <> (SELECT "
                                     "COUNT(*) FROM ledger l WHERE l.resource = b.resource)"),
                     0);
    assert_int_equal(database_number(f.sql,
                                     "SELECT COUNT(*) FROM (SELECT CAST(fence AS SIGNED) - "
                                     "LAG(fence) OVER (PARTITION BY resource ORDER BY id) AS rise "
                                     "FROM ledger) x WHERE rise < 0"),
                     0);
}

FIXTURE(teardown)
{
    assert_holders_whole(&f, 0);
    fixture_close(&f);
    unlink(points_path);
}

/* -------------------------------------------------------------------- the work -- */

/* The caller's own statements are points as well. */
static int say(const struct work_of *w, const char *name, const char *sql)
{
    int good;

    fault_point(FAULT_STATEMENT, name, "before");
    good = mysql_query(w->caller, sql) == 0;
    fault_point(FAULT_STATEMENT, name, "after");
    return good;
}

static long long balance(const struct work_of *w)
{
    char sql[160];
    long long n = -1;
    MYSQL_RES *result;
    MYSQL_ROW row;

    snprintf(sql, sizeof sql, "SELECT n FROM balance WHERE resource = '%s'", w->resource);
    if (!say(w, "caller_read", sql))
        return -1;
    result = mysql_store_result(w->caller);
    row = result != NULL ? mysql_fetch_row(result) : NULL;
    if (row != NULL)
        n = strtoll(row[0], NULL, 10);
    mysql_free_result(result);
    return n;
}

static int write_books(const struct work_of *w, long long n, uint64_t fence)
{
    char update[160], insert[200];

    snprintf(update, sizeof update, "UPDATE balance SET n = %lld WHERE resource = '%s'", n + 1,
             w->resource);
    snprintf(insert, sizeof insert, "INSERT INTO ledger (resource, fence) VALUES ('%s', %llu)",
             w->resource, (unsigned long long)fence);
    return say(w, "caller_update", update) && say(w, "caller_insert", insert) &&
           say(w, "caller_commit", "COMMIT");
}

/* The balance is read under the lock, before the transaction: whoever was too late would write an
 * old one. */
static int pay_under_mutex(const struct work_of *w, tl_mutex *mutex)
{
    long long n = balance(w);

    if (n < 0 || !say(w, "caller_begin", "START TRANSACTION"))
        return 0;
    if (w->guarded && tl_mutex_guard(mutex, w->caller, 0) != TL_OK) {
        (void)say(w, "caller_rollback", "ROLLBACK");
        return 0;
    }
    return write_books(w, n, tl_mutex_fence(mutex, NULL));
}

static int pay_under_rw(const struct work_of *w, tl_rw *rw,
                        tl_status (*prove)(tl_rw *, struct st_mysql *, unsigned))
{
    long long n = balance(w);

    if (n < 0 || !say(w, "caller_begin", "START TRANSACTION"))
        return 0;
    if (w->guarded && prove(rw, w->caller, 0) != TL_OK) {
        (void)say(w, "caller_rollback", "ROLLBACK");
        return 0;
    }
    return write_books(w, n, tl_rw_fence(rw));
}

static int run_mutex(const struct work_of *w, tl_mutex *mutex, int64_t renew_ms)
{
    int good = tl_mutex_lock(mutex, w->wait_ms) == TL_GRANTED &&
               (renew_ms == 0 || tl_mutex_renew(mutex, renew_ms) == TL_OK) &&
               pay_under_mutex(w, mutex) && tl_mutex_unlock(mutex) == TL_OK;

    tl_mutex_free(mutex);
    return good;
}

static int under_mutex(const struct work_of *w)
{
    tl_mutex_options options = lease_options(0);

    return run_mutex(w, mutex_new(w->client, w->resource, &options), 0);
}

/* Its own lease frees it, not its session. */
static int under_lease(const struct work_of *w)
{
    tl_mutex_options options = lease_options(2000);

    return run_mutex(w, mutex_new(w->client, w->resource, &options), 2500);
}

static int under_set(const struct work_of *w)
{
    tl_mutex_options options = lease_options(0);
    char others[2][NAME_SPACE + 8];
    const char *const all[] = {others[1], w->resource, others[0]};
    tl_mutex *mutex = NULL;

    for (int i = 0; i < 2; i++)
        snprintf(others[i], sizeof others[i], "%s-%c", w->resource, 'a' + i);
    if (tl_mutex_new_set(&mutex, w->client, all, 3, &options) != TL_OK)
        return 0;
    return run_mutex(w, mutex, 0);
}

static int under_read(const struct work_of *w)
{
    tl_rw *rw = rw_new(w->client, w->resource, 0);
    int good = tl_rw_read(rw, w->wait_ms) == TL_GRANTED && pay_under_rw(w, rw, tl_rw_done) &&
               tl_rw_unlock(rw) == TL_OK;

    tl_rw_free(rw);
    return good;
}

static int under_write(const struct work_of *w)
{
    tl_rw *rw = rw_new(w->client, w->resource, 0);
    int good = tl_rw_write(rw, w->wait_ms) == TL_GRANTED && pay_under_rw(w, rw, tl_rw_done) &&
               tl_rw_downgrade(rw) == TL_OK && pay_under_rw(w, rw, tl_rw_guard) &&
               tl_rw_unlock(rw) == TL_OK;

    tl_rw_free(rw);
    return good;
}

/* Waits to write, and gives up: somebody reads. */
static int wait_to_write(const struct work_of *w)
{
    tl_rw *rw = rw_new(w->client, w->resource, 0);
    int good = tl_rw_write(rw, INTENT_WAIT_MS) == TL_TIMEOUT;

    tl_rw_free(rw);
    return good;
}

/* The lock comes first, the balance is read under it. */
static int under_row_lock(const struct work_of *w)
{
    long long n;

    if (!say(w, "caller_begin", "START TRANSACTION"))
        return 0;
    if (tl_row_lock(w->client, w->resource, w->caller, TL_ROW_LOCK_BLOCK, 0) != TL_GRANTED) {
        (void)say(w, "caller_rollback", "ROLLBACK");
        return 0;
    }
    n = balance(w);
    return n >= 0 && write_books(w, n, 0);
}

static const kind kinds[] = {
    {"mutex", under_mutex, NULL, "resource_log", 0, 0},
    {"mutex-again", under_mutex, NULL, "resource_log", 1, 0},
    {"lease", under_lease, NULL, "resource_log", 1, 0},
    {"set", under_set, NULL, "resource_log", 0, 0},
    {"read", under_read, under_write, "resource_holder_log", 0, 0},
    {"write", under_write, NULL, "resource_holder_log", 1, 0},
    {"intent", wait_to_write, under_read, "resource_holder_log", 0, 1},
    {"row", under_row_lock, NULL, NULL, 0, 0},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

/* --------------------------------------------------------------------- one run -- */

/* In the child: points are counted from here on, when all is open. */
static void go(const kind *of, const char *resource, int guarded, const char *const environment[])
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    struct work_of w = {.resource = resource, .wait_ms = 10000, .guarded = guarded};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    options.config_file = database_option_file(f.db);
    options.flags = TL_CLIENT_NO_JANITOR;
    if (tl_client_open(&w.client, &options) != TL_OK)
        _exit(1);
    w.caller = database_connect(f.db);
    database_run(w.caller, "SET idle_transaction_timeout = 4, "
                           "innodb_lock_wait_timeout = 60");
    /* The server counts as long as this process does. */
    if (counting)
        database_run(w.caller, "SET GLOBAL general_log = 1");
    for (size_t i = 0; environment[i] != NULL; i++)
        putenv((char *)(uintptr_t)environment[i]);
    fault_reload();
    if (!of->run(&w))
        _exit(EXIT_TOO_LATE);
    if (counting)
        database_run(w.caller, "SET GLOBAL general_log = 0");
    unsetenv("TL_FAULT_KILL");
    unsetenv("TL_FAULT_STOP");
    unsetenv("TL_FAULT_LOG");
    fault_reload();
    mysql_close(w.caller);
    tl_client_close(w.client);
    _exit(0);
}

static struct victim start(const kind *of, int guarded, const char *const environment[])
{
    struct victim v = {.of = of};

    snprintf(v.resource, sizeof v.resource, "%s/%u", of->name, ++serial);
    database_run(f.sql, "INSERT INTO balance VALUES ('%s', 0)", v.resource);
    if (of->again) {
        struct work_of w = {f.other, caller_new(&f), v.resource, WAIT_MS, 1};

        caller_run(w.caller, "ROLLBACK");
        assert_true(of->run(&w));
        mysql_close(w.caller);
    }
    if (of->read_meanwhile)
        v.reader = reading(f.other, v.resource, 0);
    if (counting) {
        free(bystanders);
        bystanders = database_text(f.sql, "SELECT GROUP_CONCAT(id) FROM "
                                          "information_schema.processlist");
    }
    v.pid = fork();
    assert_true(v.pid >= 0);
    if (v.pid == 0)
        go(of, v.resource, guarded, environment);
    return v;
}

/* 1 when it was killed, or is stopped. */
static int wait_for_end(const struct victim *v)
{
    int status;

    assert_int_equal(waitpid(v->pid, &status, WUNTRACED), v->pid);
    return WIFSTOPPED(status) || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void read_points(const kind *of, points *at)
{
    char log[128];
    const char *const environment[] = {log, NULL};
    int status = -1;

    snprintf(log, sizeof log, "TL_FAULT_LOG=%s", points_path);
    /* On a machine that is too busy its session may be lost: once more, then. */
    for (int i = 0; i < 5 && status != 0; i++) {
        struct victim v;

        unlink(points_path);
        v = start(of, 1, environment);
        assert_int_equal(waitpid(v.pid, &status, 0), v.pid);
        tl_rw_free(v.reader);
    }
    assert_int_equal(status, 0);
    points_read(at, points_path, NTH_MAX);
}

/* Sessions that do not beat while the points are counted: what happens at the very ends of the
 * counting would be seen by one side only. */
static void fixture_open_quiet(fixture *own, server *where)
{
    memset(own, 0, sizeof *own);
    own->db = database_new(where, "beat_ms=1m\nsession_ms=10m\nask_wait_max_ms=200ms\n");
    own->client = client_new(own);
    own->other = client_new(own);
    own->sql = database_connect(own->db);
}

static void compare(const kind *of, const char *path)
{
    char log[128];
    const char *const environment[] = {log, NULL};
    long long connects, statements;
    points at = {.count = 0};
    struct victim v;
    int status;

    snprintf(log, sizeof log, "TL_FAULT_LOG=%s", path);
    unlink(path);
    database_run(f.sql, "TRUNCATE mysql.general_log");
    v = start(of, 1, environment);
    assert_int_equal(waitpid(v.pid, &status, 0), v.pid);
    assert_int_equal(status, 0);
    tl_rw_free(v.reader);
    points_read(&at, path, NTH_MAX);
    points_seen(f.sql, bystanders, &connects, &statements);
    print_message("%s: %zu connects, %zu statements and commits; the server saw %lld and "
                  "%lld\n",
                  of->name, at.connects, at.statements, connects, statements);
    if ((long long)at.statements != statements)
        points_show(f.sql, bystanders);
    assert_int_equal(at.connects, connects);
    assert_int_equal(at.statements, statements);
    points_free(&at);
}

/* On a server of its own, which has seen nobody else. */
TEST(test_no_point_is_forgotten)
{
    static const char *const options[] = {"--log-output=TABLE", NULL};
    server *own = server_start(options);
    fixture kept = f;

    fixture_open_quiet(&f, own);
    make_books();
    counting = 1;
    for (size_t k = 0; k < KINDS; k++)
        compare(&kinds[k], points_path);
    counting = 0;
    free(bystanders);
    tl_client_close(f.client);
    tl_client_close(f.other);
    mysql_close(f.sql);
    database_free(f.db);
    f = kept;
    server_free(own);
}

/* The heartbeat's points depend on time; crash_points has them. */
static int is_wanted(const point *at)
{
    return strncmp(at->name, "session_", 8) != 0 && strncmp(at->name, "server_", 7) != 0 &&
           strcmp(at->name, "connect") != 0;
}

/* -------------------------------------------------------------------- the heirs -- */

static long long last_fence(const struct victim *v)
{
    if (v->of->log == NULL)
        return -1;
    return database_number(f.sql,
                           "SELECT COALESCE(MAX(fence), 0) FROM %s WHERE resource "
                           "= '%s'",
                           v->of->log, v->resource);
}

/* Another process, whose session lives, does the same work after the dead. */
static void inherit(struct victim *v)
{
    struct work_of w = {f.client, caller_new(&f), v->resource, WAIT_MS, 1};
    long long before = last_fence(v);

    caller_run(w.caller, "ROLLBACK");
    tl_rw_free(v->reader);
    v->reader = NULL;
    if (!(v->of->heir != NULL ? v->of->heir : v->of->run)(&w))
        fail_msg("nobody got %s: %s", v->resource, tl_error_message());
    if (v->of->log != NULL) {
        assert_true(last_fence(v) > before);
        assert_true(database_number(f.sql, "SELECT MAX(fence) FROM ledger WHERE resource = '%s'",
                                    v->resource) > before);
    }
    mysql_close(w.caller);
}

/* ------------------------------------------------------------------- every point -- */

struct crowd {
    struct victim *list;
    unsigned count, waited;
    int stops;
};

/* Those that did not come to their point have ended, and have no heir. */
static void wait_until(struct crowd *c, unsigned running)
{
    while (c->count - c->waited > running) {
        struct victim *v = &c->list[c->waited];

        if (wait_for_end(v)) {
            c->waited++;
            continue;
        }
        sum.missed++;
        tl_rw_free(v->reader);
        *v = c->list[--c->count];
    }
}

static void wake(const struct victim *v)
{
    int status;

    kill(v->pid, SIGCONT);
    assert_int_equal(waitpid(v->pid, &status, 0), v->pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == EXIT_TOO_LATE)
        sum.late++;
    else if (WEXITSTATUS(status) == 0)
        sum.finished++;
    else
        fail_msg("%s ended with %d", v->resource, WEXITSTATUS(status));
}

static void settle(struct crowd *c)
{
    wait_until(c, 0);
    for (unsigned i = 0; i < c->count; i++)
        inherit(&c->list[i]);
    for (unsigned i = 0; i < c->count && c->stops; i++)
        wake(&c->list[i]);
    assert_books();
    *(c->stops ? &sum.sleeps : &sum.deaths) += c->count;
    c->count = c->waited = 0;
}

static void strike(struct crowd *c, const kind *of, const point *at)
{
    char only[96], kill_at[32], stop_at[32];
    const char *const environment[] = {only, c->stops ? stop_at : kill_at, NULL};

    point_environment(at, only, kill_at);
    snprintf(stop_at, sizeof stop_at, "TL_FAULT_STOP=%u", at->nth);
    wait_until(c, WIDTH - 1);
    c->list[c->count++] = start(of, 1, environment);
}

static void strike_everywhere(int stops, unsigned stride)
{
    struct crowd c = {.stops = stops};
    unsigned turn = 0;

    c.list = calloc(ASLEEP_MAX, sizeof *c.list);
    assert_non_null(c.list);
    for (size_t k = 0; k < KINDS; k++) {
        points at = {.count = 0};
        unsigned wanted = 0;

        read_points(&kinds[k], &at);
        for (size_t i = 0; i < at.count; i++) {
            if (!is_wanted(&at.list[i]) || (wanted++, turn++ % stride != 0))
                continue;
            if (c.count == ASLEEP_MAX)
                settle(&c);
            strike(&c, &kinds[k], &at.list[i]);
        }
        if (!stops) {
            sum.points += wanted;
            print_message("%s: %u points\n", kinds[k].name, wanted);
        }
        assert_true(wanted >= 10);
        points_free(&at);
    }
    settle(&c);
    free(c.list);
}

TEST(test_killed_at_every_point)
{
    strike_everywhere(0, tier_pick(36, 3, 1));
    /* Whoever does not come to its point proves nothing; how often somebody polls depends on
     * time. */
    assert_true(sum.missed * 2 < sum.deaths);
    print_message("%u points, %u deaths at their point, %u not reached; each lock was "
                  "got by another, with a higher fence\n",
                  sum.points, sum.deaths, sum.missed);
}

TEST(test_asleep_at_every_point)
{
    unsigned missed = sum.missed;

    strike_everywhere(1, tier_pick(72, 6, 1));
    assert_true((sum.missed - missed) * 2 < sum.sleeps);
    assert_true(sum.late > 0);
    print_message("%u stopped at their point until another had had the lock, %u not "
                  "reached; %u of them came too late, %u had nothing left to lose\n",
                  sum.sleeps, sum.missed - missed, sum.late, sum.finished);
}

/* The books notice a stale holder: without the guard he writes his old balance. */
TEST(test_without_the_guard_a_late_holder_writes)
{
    const char *const environment[] = {"TL_FAULT_ONLY=caller_begin/before", "TL_FAULT_STOP=1",
                                       NULL};
    struct victim v = start(&kinds[0], 0, environment);

    assert_true(wait_for_end(&v));
    inherit(&v);
    wake(&v);
    assert_int_equal(
        database_number(f.sql, "SELECT n FROM balance WHERE resource = '%s'", v.resource), 1);
    assert_int_equal(
        database_number(f.sql, "SELECT COUNT(*) FROM ledger WHERE resource = '%s'", v.resource), 2);
}

TESTS_OF(locks, setup, teardown)
