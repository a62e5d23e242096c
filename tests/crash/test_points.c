/*
 * Death at every numbered point.
 *
 * For each role (service, worker, janitor, heartbeat), kind of channel and outcome the
 * process is run once to count its points, which are compared with what the server and the
 * channel saw of it, so that no statement, commit or call goes past the one function that
 * counts.  Then it is run once for each point and killed there, always at another trade.
 * In the end a worker finishes, and books and audit are asked.
 */
#include "points.h"
#include "town.h"

#include "support/theme.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>

#define WIDTH_MAX 4
#define SUPPLY 40

typedef struct outcome {
    const char *name, *rule;
} outcome;

static const outcome outcomes[] = {
    {"success", NULL},
    {"decline", "{\"kind\":\"decline\",\"count\":0}"},
    {"unknown, paid", "{\"kind\":\"drop_after\",\"endpoint\":\"pay\",\"count\":0}"},
    {"unknown, not paid", "{\"kind\":\"drop_before\",\"endpoint\":\"pay\",\"count\":0}"},
    {"accepted", "{\"kind\":\"accepted\",\"count\":0}"},
    {"accepted, declined", "{\"kind\":\"accepted_declined\",\"count\":0}"},
};
enum { SUCCESS, DECLINE, UNKNOWN_PAID, UNKNOWN_UNPAID, ACCEPTED, ACCEPTED_DECLINED };

/* What all tests of this run came to. */
static struct {
    unsigned points, runs, deaths, unreached;
    town_figures books;
} sum;

typedef struct role role;
struct role {
    const char *name;
    unsigned width; /* runs at once */
    unsigned nth_max;
    int64_t limit_ms;
    const char *const *only; /* points of these names, ended by NULL; NULL: all */
    /* Makes what it needs and starts it. */
    child (*start)(town *self, const outcome *what, const char *const environment[]);
};

/* -------------------------------------------------------------------- the roles -- */

static child start_service(town *self, const outcome *what, const char *const environment[])
{
    char *rows = town_rows(self, 1);
    child started = town_service(self, self->service_config, rows, 1, environment);

    (void)what;
    free(rows);
    return started;
}

/* So slow an answer that the heart beats many times meanwhile. */
static child start_heart(town *self, const outcome *what, const char *const environment[])
{
    char *rows = town_rows(self, 1);
    child started = town_service(self, self->heart_config, rows, 1, environment);

    (void)what;
    free(rows);
    return started;
}

/* Trades in doubt, as the outcome leaves them, for workers to die at. */
static void supply(town *self, const outcome *what)
{
    char *rows;
    child service;

    /* What a dead worker holds is out of reach until a janitor comes by. */
    if (database_number(self->sql, "SELECT COUNT(*) FROM trade_lock WHERE lane = 'R' AND "
                                   "status = 'F' AND next_run_at IS NOT NULL") >= 8)
        return;
    rows = town_rows(self, SUPPLY);
    if (what->rule != NULL)
        town_rule(self, what->rule);
    service = town_service(self, self->service_config, rows, 8, NULL);
    assert_int_not_equal(child_wait(&service, PATIENCE_MS), -1);
    /* Workers meet a channel that is well again, but for one thing: sometimes a query is not
     * answered either. */
    town_no_rules(self);
    town_rule(self, "{\"kind\":\"unreachable\",\"count\":3,\"skip\":5}");
    free(rows);
}

static child start_worker(town *self, const outcome *what, const char *const environment[])
{
    supply(self, what);
    return town_worker(self, self->service_config, 1, environment);
}

/* Four trades whose holder has died, on a session of a tenth of a second. */
static void make_victims(town *self)
{
    static const char *const dies[] = {"TL_FAULT_ONLY=execute/before", "TL_FAULT_KILL=4", NULL};
    char *rows = town_rows(self, 4);
    child dead = town_service(self, self->janitor_config, rows, 4, dies);

    assert_int_not_equal(child_wait(&dead, PATIENCE_MS), -1);
    free(rows);
}

static child reap(town *self, const char *const environment[])
{
    const char *const arguments[] = {"reap", "--config", self->janitor_config, NULL};

    return town_start(self, "tradelock", arguments, environment);
}

static child start_janitor(town *self, const outcome *what, const char *const environment[])
{
    (void)what;
    make_victims(self);
    return reap(self, environment);
}

static const char *const heart_points[] = {"session_insert",
                                           "session_beat",
                                           "session_others",
                                           "session_expire",
                                           "operations",
                                           "reap_overdue",
                                           "session_to_sweep",
                                           "reap_dead",
                                           "session_swept",
                                           "reap_now",
                                           NULL};

static const role service = {"service", 4, 4, 20000, NULL, start_service};
static const role worker = {"worker", 1, 3, 4000, NULL, start_worker};
static const role janitor = {"janitor", 1, 3, 20000, NULL, start_janitor};
static const role heart = {"heartbeat", 4, 2, 20000, heart_points, start_heart};

/* ------------------------------------------------------------- nothing forgotten -- */

static long long requests(const town *self)
{
    char *text = file_read(self->sim.request_log);
    long long count = text_count(text, "\"received\"");

    free(text);
    return count;
}

/* The processes have ended; the server may still read what they said last. */
static void await_farewells(town *self)
{
    AWAIT_WHILE(database_number(self->sql,
                                "SELECT COUNT(*) FROM information_schema.processlist WHERE "
                                "id <> CONNECTION_ID() AND command <> 'Daemon'") > 0);
}

/* Server and channel have seen as many connections, statements and calls as were counted. */
static void compare(town *self, const points *seen, long long asked_before,
                    long long requests_before)
{
    long long connects, statements;
    char *others = database_text(self->sql, "SELECT CONNECTION_ID()");

    points_seen(self->sql, others, &connects, &statements);
    /* A worker's groups write arrays. */
    statements = points_asked(self->sql) - asked_before -
                 database_number(self->sql,
                                 "SELECT COUNT(*) FROM mysql.general_log WHERE thread_id NOT IN "
                                 "(%s) AND command_type = 'Quit'",
                                 others);
    print_message("  points: %zu connects, %zu statements and commits, %zu calls, "
                  "%zu callbacks; the server saw %lld and %lld, the channel %lld\n",
                  seen->connects, seen->statements, seen->calls, seen->callbacks, connects,
                  statements, requests(self) - requests_before);
    if ((long long)seen->statements != statements)
        points_show(self->sql, others);
    free(others);
    assert_int_equal(seen->connects, connects);
    assert_int_equal(seen->statements, statements);
    assert_int_equal(seen->calls, requests(self) - requests_before);
}

static int is_wanted(const role *of, const point *at)
{
    if (of->only == NULL)
        return 1;
    for (size_t i = 0; of->only[i] != NULL; i++)
        if (strcmp(of->only[i], at->name) == 0)
            return 1;
    return 0;
}

static void stop_worker(town *self, child *running, long long open_before)
{
    for (int i = 0; i < 1000 && town_open_trades(self) >= open_before; i++)
        usleep(5000);
    child_signal(running, SIGTERM);
}

static void count_points(town *self, const role *of, const outcome *what, points *to)
{
    char path[128], log[sizeof path + 16];
    const char *const environment[] = {log, NULL};
    long long asked, before, open_before;
    child running;

    snprintf(path, sizeof path, "%s/points", self->dir);
    snprintf(log, sizeof log, "TL_FAULT_LOG=%s", path);
    unlink(path);
    if (of == &worker)
        supply(self, what);
    open_before = town_open_trades(self);
    if (of == &janitor)
        make_victims(self); /* before the log is on */
    before = requests(self);
    await_farewells(self);
    asked = points_asked(self->sql);
    database_run(self->sql, "TRUNCATE mysql.general_log; SET GLOBAL general_log = 1");
    running = of == &janitor ? reap(self, environment) : of->start(self, what, environment);
    if (of == &worker)
        stop_worker(self, &running, open_before);
    assert_int_not_equal(child_wait(&running, PATIENCE_MS), -1);
    await_farewells(self);
    database_run(self->sql, "SET GLOBAL general_log = 0");
    points_read(to, path, of->nth_max);
    compare(self, to, asked, before);
}

/* -------------------------------------------------------------------- the deaths -- */

struct flight {
    child running;
    int64_t end_ms;
};

static void land(struct flight *flight, int status)
{
    sum.runs++;
    if (status >= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        sum.deaths++;
    else
        sum.unreached++;
    unlink(flight->running.output);
}

/* Waits until fewer than most are running. */
static void wait_for_room(struct flight *flights, unsigned *flying, unsigned most)
{
    while (*flying > most) {
        for (unsigned i = 0; i < *flying; i++) {
            struct flight *flight = &flights[i];
            int status = -1;

            if (now_ms() >= flight->end_ms) {
                /* It works on without having come to its point. */
                child_signal(&flight->running, SIGTERM);
                status = child_wait(&flight->running, PATIENCE_MS);
            } else if (!child_ended(&flight->running, &status)) {
                continue;
            }
            land(flight, status);
            *flight = flights[--*flying];
            i--;
        }
        usleep(1000);
    }
}

static void kill_everywhere(town *self, const role *of, const outcome *what, const points *at,
                            unsigned stride)
{
    struct flight flights[WIDTH_MAX];
    unsigned flying = 0, turn = sum.points;

    for (size_t i = 0; i < at->count; i++) {
        char only[96], kill[32];
        const char *const environment[] = {only, kill, NULL};

        if (!is_wanted(of, &at->list[i]) || turn++ % stride != 0)
            continue;
        point_environment(&at->list[i], only, kill);
        wait_for_room(flights, &flying, of->width - 1);
        flights[flying].running = of->start(self, what, environment);
        flights[flying++].end_ms = now_ms() + of->limit_ms;
    }
    wait_for_room(flights, &flying, 0);
}

static void run_role(town *self, const role *of, const outcome *what)
{
    unsigned deaths = sum.deaths, runs = sum.runs;
    points at = {.count = 0};

    print_message("%s, %s, %s\n", of->name, self->kind, what->name);
    if (what->rule != NULL && of != &worker)
        town_rule(self, what->rule);
    if (of == &heart)
        town_rule(self, "{\"kind\":\"slow_answer\",\"delay_ms\":300,\"count\":0}");
    /* The heart's points depend on time; its statements are counted in the service. */
    count_points(self, of, what, &at);
    kill_everywhere(self, of, what, &at, tier_pick(160, 20, 1));
    sum.points += (unsigned)at.count;
    points_free(&at);
    town_finish(self, 120000);
    print_message("  %u runs, %u died at their point\n", sum.runs - runs, sum.deaths - deaths);
    assert_int_equal(town_check(self, NULL), 0);
}

static void run_kind(const char *kind)
{
    static const char *const options[] = {"--log-output=TABLE", NULL};
    static const int of_service[] = {SUCCESS, DECLINE, UNKNOWN_PAID, UNKNOWN_UNPAID, ACCEPTED};
    static const int of_worker[] = {UNKNOWN_PAID, UNKNOWN_UNPAID, ACCEPTED_DECLINED};
    town_figures figures;
    town self;

    town_open(&self, kind, options);
    for (size_t i = 0; i < sizeof of_service / sizeof of_service[0]; i++)
        run_role(&self, &service, &outcomes[of_service[i]]);
    for (size_t i = 0; i < sizeof of_worker / sizeof of_worker[0]; i++)
        run_role(&self, &worker, &outcomes[of_worker[i]]);
    run_role(&self, &janitor, &outcomes[SUCCESS]);
    run_role(&self, &heart, &outcomes[SUCCESS]);
    assert_int_equal(town_check(&self, &figures), 0);
    sum.books.trades += figures.trades;
    sum.books.paid += figures.paid;
    sum.books.failed += figures.failed;
    sum.books.parked += figures.parked;
    sum.books.steps += figures.steps;
    town_close(&self);
}

TEST(an_idempotent_channel)
{
    run_kind("idempotent");
}

TEST(a_channel_with_a_window)
{
    run_kind("window");
}

TEST(a_plain_channel)
{
    run_kind("plain");
}

TEST_MAIN(points)
{
    int failed;

    /* One kind stands for all in the short run. */
    if (tier_is_long())
        failed = tests_run(NULL, NULL);
    else
        failed = cmocka_run_group_tests_name(
            "points", (const struct CMUnitTest[]){cmocka_unit_test(a_plain_channel)}, NULL, NULL);
    print_message("%u points counted, %u runs, %u deaths at their point (%u not reached); "
                  "%lld trades: %lld paid, %lld failed, %lld parked; %lld steps; paid "
                  "twice 0\n",
                  sum.points, sum.runs, sum.deaths, sum.unreached, sum.books.trades, sum.books.paid,
                  sum.books.failed, sum.books.parked, sum.books.steps);
    return server_report(failed);
}
