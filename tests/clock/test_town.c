/*
 * A town whose server's clock is set at random, forward and back by seconds, days and months, while
 * services and workers pay, die, and a job from cron purges.  The simulator has a clock of its own;
 * what it paid decides.
 */
#include "stepping.h"

#include "crash/crowd.h"
#include "support/theme.h"

#include <signal.h>
#include <sys/wait.h>

#define DAY_MS INT64_C(86400000)
/* By then something hangs, however busy the machine is. */
#define LIMIT_MS 240000

static struct {
    unsigned runs, steps, deaths;
    town_figures books;
} sum;

typedef struct stepped {
    crowd crowd;
    stepping *clock;
    int64_t ahead_ms;
    unsigned steps, backs; /* to come; and those that brought deadlines forward */
    char *purge_config;
} stepped;

/* Nothing here is a day old, whatever the server's clock says: each row is counted at the end. */
static void purge(stepped *self)
{
    const char *const arguments[] = {"purge",    "--older",          "1d",
                                     "--config", self->purge_config, NULL};
    child command = town_start(&self->crowd.town, "tradelock", arguments, NULL);

    assert_int_not_equal(child_wait(&command, PATIENCE_MS), -1);
}

/* Large steps back bring deadlines forward each time: two of them, and the deadline is longer than
 * both. */
static int64_t next_ahead_ms(stepped *self)
{
    static const int64_t small[] = {0, 700000, -12000, 2000, -700000, 400, 60000};
    static const int64_t large[] = {30 * DAY_MS, 100 * DAY_MS};

    if (self->ahead_ms > DAY_MS) {
        self->backs++;
        return 0;
    }
    if (self->backs < 2 && crowd_random(&self->crowd, 4) == 0)
        return large[crowd_random(&self->crowd, 2)];
    return small[crowd_random(&self->crowd, sizeof small / sizeof small[0])];
}

static void step(stepped *self)
{
    int64_t ahead_ms = next_ahead_ms(self);

    sum.steps += ahead_ms != self->ahead_ms;
    self->ahead_ms = ahead_ms;
    stepping_set(self->clock, ahead_ms);
    if (ahead_ms > DAY_MS) {
        usleep(1000 * crowd_random(&self->crowd, 1500));
        purge(self);
    }
}

/* Services whose every line is answered have ended for good. */
static void run_crowd(stepped *self)
{
    int64_t end_ms = now_ms() + LIMIT_MS;

    crowd_start(&self->crowd);
    for (unsigned i = 0; crowd_look_after(&self->crowd, 0) > 0 || self->steps > 0; i++) {
        usleep(1000 * (20 + crowd_random(&self->crowd, 600)));
        if (self->steps > 0) {
            step(self);
            self->steps--;
            if (i % 4 == 3)
                crowd_kill_one(&self->crowd, 1);
        }
        assert_true(now_ms() < end_ms);
    }
    crowd_end(&self->crowd);
}

static void add_up(const stepped *self, const town_figures *figures)
{
    sum.runs++;
    sum.deaths += self->crowd.kills;
    sum.books.trades += figures->trades;
    sum.books.paid += figures->paid;
    sum.books.failed += figures->failed;
    sum.books.parked += figures->parked;
    sum.books.steps += figures->steps;
}

static void run_once(const char *kind, unsigned steps, unsigned trades)
{
    stepped self = {
        .crowd = {.services = 2, .workers = 2, .threads = 4, .trades = trades, .faults = 0.3},
        .steps = steps};
    town *t = &self.crowd.town;
    town_figures figures;

    self.clock = stepping_start();
    /* The window kind fails what is not found, before and after the deadline. */
    crowd_open_on(&self.crowd, kind, stepping_server(self.clock),
                  strcmp(kind, "window") == 0 ? "50m" : "366d");
    self.purge_config =
        database_option_file_at(t->db, server_socket(t->own), TOWN_SETTINGS "retention_ms=1d\n");
    run_crowd(&self);
    crowd_ask_all_again(&self.crowd);
    town_finish(t, 120000);
    assert_int_equal(town_check(t, &figures), 0);
    assert_int_equal(figures.trades, trades);
    assert_int_equal(figures.parked, 0);
    add_up(&self, &figures);
    free(self.purge_config);
    crowd_close(&self.crowd);
    stepping_free(self.clock);
}

static void run_kind(const char *kind)
{
    for (unsigned i = 0; i < tier_pick(1, 1, 100); i++)
        run_once(kind, 12, tier_pick(100, 200, 400));
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

TEST_MAIN(town)
{
    int failed = tests_run(NULL, NULL);

    print_message("%u runs, %u steps of the clock, %u kills; %lld trades: %lld paid, %lld "
                  "failed, %lld parked; %lld steps; paid twice 0\n",
                  sum.runs, sum.steps, sum.deaths, sum.books.trades, sum.books.paid,
                  sum.books.failed, sum.books.parked, sum.books.steps);
    return server_report(failed);
}
