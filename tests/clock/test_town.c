/*
 * A town whose server's clock is set at random, forward and back by seconds, days and
 * months, while services and workers pay, die, and a job from cron purges.  The simulator
 * has a clock of its own; what it paid decides.
 */
#include "stepping.h"

#include "crash/town.h"
#include "workflows/cmocka_all.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SERVICES 2
#define WORKERS 2
#define DAY_MS INT64_C(86400000)
/* By then something hangs, however busy the machine is. */
#define LIMIT_MS 240000

static struct {
    unsigned runs, steps, deaths;
    town_figures books;
} sum;

typedef struct crowd {
    town town;
    stepping *clock;
    int64_t ahead_ms;
    unsigned steps, backs; /* to come; and those that brought deadlines forward */
    char *rows[SERVICES], *purge_config;
    child services[SERVICES], workers[WORKERS];
    uint64_t random;
} crowd;

static unsigned next_random(crowd *self, unsigned below)
{
    self->random = self->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(self->random >> 33) % below;
}

static void start_one(crowd *self, unsigned who)
{
    town *t = &self->town;

    if (who < SERVICES)
        self->services[who] = town_service(t, t->worker_config, self->rows[who], 4, NULL);
    else
        self->workers[who - SERVICES] = town_worker(t, t->worker_config, 4, NULL);
}

static child *one(crowd *self, unsigned who)
{
    return who < SERVICES ? &self->services[who] : &self->workers[who - SERVICES];
}

/* Nothing here is a day old, whatever the server's clock says: each row is counted at the
 * end. */
static void purge(crowd *self)
{
    const char *const arguments[] = {"purge",    "--older",          "1d",
                                     "--config", self->purge_config, NULL};
    child command = town_start(&self->town, "tradelock", arguments, NULL);

    assert_int_not_equal(child_wait(&command, 20000), -1);
}

/* Large steps back bring deadlines forward each time: two of them, and the deadline is
 * longer than both. */
static int64_t next_ahead_ms(crowd *self)
{
    static const int64_t small[] = {0, 700000, -12000, 2000, -700000, 400, 60000};
    static const int64_t large[] = {30 * DAY_MS, 100 * DAY_MS};

    if (self->ahead_ms > DAY_MS) {
        self->backs++;
        return 0;
    }
    if (self->backs < 2 && next_random(self, 4) == 0)
        return large[next_random(self, 2)];
    return small[next_random(self, sizeof small / sizeof small[0])];
}

static void step(crowd *self)
{
    int64_t ahead_ms = next_ahead_ms(self);

    sum.steps += ahead_ms != self->ahead_ms;
    self->ahead_ms = ahead_ms;
    stepping_set(self->clock, ahead_ms);
    if (ahead_ms > DAY_MS) {
        usleep(1000 * next_random(self, 1500));
        purge(self);
    }
}

static void kill_one(crowd *self)
{
    unsigned who = next_random(self, SERVICES + WORKERS);
    child *victim = one(self, who);

    if (victim->pid == 0)
        return;
    kill(victim->pid, SIGKILL);
    assert_int_not_equal(child_wait(victim, 20000), -1);
    unlink(victim->output);
    sum.deaths++;
    start_one(self, who);
}

/* How many services are at work. */
static unsigned look_after(crowd *self)
{
    unsigned busy = 0;
    int status;

    for (unsigned who = 0; who < SERVICES + WORKERS; who++) {
        child *of = one(self, who);

        if (of->pid != 0 && child_ended(of, &status) &&
            (who >= SERVICES || WEXITSTATUS(status) == 3)) {
            usleep(100000);
            start_one(self, who);
        }
        busy += who < SERVICES && of->pid != 0;
    }
    return busy;
}

static void run_crowd(crowd *self)
{
    int64_t end_ms = now_ms() + LIMIT_MS;

    for (unsigned who = 0; who < SERVICES + WORKERS; who++)
        start_one(self, who);
    for (unsigned i = 0; look_after(self) > 0 || self->steps > 0; i++) {
        usleep(1000 * (20 + next_random(self, 600)));
        if (self->steps > 0) {
            step(self);
            self->steps--;
            if (i % 4 == 3)
                kill_one(self);
        }
        assert_true(now_ms() < end_ms);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        kill(self->workers[i].pid, SIGKILL);
        assert_int_not_equal(child_wait(&self->workers[i], 20000), -1);
    }
}

/* Lines that a kill cut off, or that met the end of a session, are asked again. */
static void ask_all_again(crowd *self)
{
    for (unsigned i = 0; i < SERVICES; i++) {
        child service =
            town_service(&self->town, self->town.worker_config, self->rows[i], 4, NULL);
        int status = child_wait(&service, 120000);

        assert_true(WIFEXITED(status));
        assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 6);
    }
}

static void add_up(const town_figures *figures)
{
    sum.runs++;
    sum.books.trades += figures->trades;
    sum.books.paid += figures->paid;
    sum.books.failed += figures->failed;
    sum.books.parked += figures->parked;
    sum.books.steps += figures->steps;
}

static void run_once(const char *kind, unsigned steps, unsigned trades)
{
    static const char chance[] = "{\"rate\":0.3,\"seed\":7}";
    crowd self = {.steps = steps, .random = (uint64_t)now_ms()};
    town_figures figures;
    struct answer answer;

    self.clock = stepping_start();
    /* The window kind fails what is not found, before and after the deadline. */
    town_open_on(&self.town, kind, stepping_server(self.clock),
                 strcmp(kind, "window") == 0 ? "50m" : "366d");
    print_message("%s: random %llu\n", kind, (unsigned long long)self.random);
    answer = sim_ask(&self.town.sim, NULL, "/v1/faults", chance, 5000);
    assert_int_equal(answer.status, 200);
    answer_free(&answer);
    for (unsigned i = 0; i < SERVICES; i++)
        self.rows[i] = town_rows(&self.town, trades / SERVICES);
    self.purge_config = database_option_file_at(
        self.town.db, server_socket(self.town.own), TOWN_SETTINGS "retention_ms=1d\n");
    run_crowd(&self);
    ask_all_again(&self);
    town_finish(&self.town, 120000);
    assert_int_equal(town_check(&self.town, &figures), 0);
    assert_int_equal(figures.trades, trades / SERVICES * SERVICES);
    assert_int_equal(figures.parked, 0);
    add_up(&figures);
    for (unsigned i = 0; i < SERVICES; i++)
        free(self.rows[i]);
    free(self.purge_config);
    town_close(&self.town);
    stepping_free(self.clock);
}

static void run_kind(const char *kind)
{
    for (int i = 0; i < (is_long() ? 100 : 1); i++)
        run_once(kind, 12, is_long() ? 400 : 200);
}

static void an_idempotent_channel(void **state)
{
    (void)state;
    run_kind("idempotent");
}

static void a_channel_with_a_window(void **state)
{
    (void)state;
    run_kind("window");
}

static void a_plain_channel(void **state)
{
    (void)state;
    run_kind("plain");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idempotent_channel),
        cmocka_unit_test(a_channel_with_a_window),
        cmocka_unit_test(a_plain_channel),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    print_message(
        "%u runs, %u steps of the clock, %u kills; %lld trades: %lld paid, %lld "
        "failed, %lld parked; %lld steps; paid twice 0\n",
        sum.runs, sum.steps, sum.deaths, sum.books.trades, sum.books.paid,
        sum.books.failed, sum.books.parked, sum.books.steps);
    return server_report(failed);
}
