/*
 * kill -9 of the database server under load, with services and workers dying at random
 * beside it and a channel that goes wrong, for all three kinds of channel.
 */
#include "town.h"

#include "workflows/cmocka_all.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SERVICES 4
#define WORKERS 3
/* By then something hangs, however busy the machine is. */
#define LIMIT_MS (is_long() ? 3600000 : 600000)

static struct {
    unsigned server_kills, process_kills;
    town_figures books;
} sum;

typedef struct crowd {
    town town;
    unsigned kills, trades; /* of the server; wanted */
    char *rows[SERVICES];
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
        self->services[who] = town_service(t, t->worker_config, self->rows[who], 8, NULL);
    else
        self->workers[who - SERVICES] = town_worker(t, t->worker_config, 4, NULL);
}

static child *one(crowd *self, unsigned who)
{
    return who < SERVICES ? &self->services[who] : &self->workers[who - SERVICES];
}

/* A service begins its lines anew each time, and with thousands of them would never come
 * to the last one: it dies as long as there are trades to begin, workers to the end. */
static void kill_one(crowd *self, int more)
{
    unsigned who = next_random(self, SERVICES + WORKERS);
    child *victim = one(self, who);

    if (victim->pid == 0 || (who < SERVICES && !more))
        return;
    kill(victim->pid, SIGKILL);
    assert_int_not_equal(child_wait(victim, 20000), -1);
    unlink(victim->output);
    sum.process_kills++;
    start_one(self, who);
}

/* A service that ended has answered its lines, those that it had no server for with that,
 * so it begins anew as long as there are trades to begin; a worker ends only when it cannot
 * connect at its start. */
static unsigned look_after(crowd *self, int more)
{
    unsigned busy = 0;
    int status;

    for (unsigned who = 0; who < SERVICES + WORKERS; who++) {
        child *of = one(self, who);

        if (of->pid != 0 && child_ended(of, &status)) {
            if (who >= SERVICES || more || WEXITSTATUS(status) == 3) {
                usleep(100000);
                start_one(self, who);
            }
        }
        busy += who < SERVICES && of->pid != 0;
    }
    return busy;
}

static void kill_server(crowd *self)
{
    server_kill9(self->town.own);
    usleep(next_random(self, 400) * 1000);
    server_restart(self->town.own);
    town_reconnect(&self->town);
    sum.server_kills++;
}

/* Trades that came as far as a row: when to kill the server next. */
static long long begun(crowd *self)
{
    return database_number(self->town.sql,
                           "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S'");
}

static void run_crowd(crowd *self)
{
    int64_t end_ms = now_ms() + LIMIT_MS;
    unsigned killed = 0;

    for (unsigned who = 0; who < SERVICES + WORKERS; who++)
        start_one(self, who);
    for (;;) {
        long long rows = begun(self);
        int more = rows < (long long)self->trades;

        if (look_after(self, more) == 0 && killed == self->kills)
            break;
        usleep(1000 * (50 + next_random(self, 250)));
        kill_one(self, more);
        if (killed < self->kills &&
            rows * (self->kills + 1) >= (long long)self->trades * (killed + 1)) {
            kill_server(self);
            killed++;
        }
        assert_true(now_ms() < end_ms);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        kill(self->workers[i].pid, SIGKILL);
        assert_int_not_equal(child_wait(&self->workers[i], 20000), -1);
    }
}

/* Lines that were cut off are asked again; those that were not are answered again. */
static void ask_all_again(crowd *self)
{
    for (unsigned i = 0; i < SERVICES; i++) {
        child service =
            town_service(&self->town, self->town.worker_config, self->rows[i], 8, NULL);
        int status = child_wait(&service, 300000);

        if (!WIFEXITED(status) ||
            (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 6)) {
            char *text = file_read(service.output);

            fail_msg("the last service ended with %x: %s", status, text);
        }
    }
}

static void run_kind(const char *kind, unsigned kills, unsigned trades)
{
    static const char chance[] = "{\"rate\":0.1,\"seed\":7}";
    crowd self = {.kills = kills, .trades = trades, .random = (uint64_t)now_ms()};
    town_figures figures;
    struct answer answer;

    town_open(&self.town, kind, NULL);
    print_message("%s: %u trades, random %llu\n", kind, trades,
                  (unsigned long long)self.random);
    answer = sim_ask(&self.town.sim, NULL, "/v1/faults", chance, 5000);
    assert_int_equal(answer.status, 200);
    answer_free(&answer);
    for (unsigned i = 0; i < SERVICES; i++)
        self.rows[i] = town_rows(&self.town, trades / SERVICES);
    run_crowd(&self);
    town_no_rules(&self.town);
    ask_all_again(&self);
    town_finish(&self.town, 300000);
    assert_int_equal(town_check(&self.town, &figures), 0);
    assert_int_equal(figures.trades, trades / SERVICES * SERVICES);
    sum.books.trades += figures.trades;
    sum.books.paid += figures.paid;
    sum.books.failed += figures.failed;
    sum.books.parked += figures.parked;
    sum.books.steps += figures.steps;
    for (unsigned i = 0; i < SERVICES; i++)
        free(self.rows[i]);
    town_close(&self.town);
}

static void a_plain_channel(void **state)
{
    (void)state;
    run_kind("plain", is_long() ? 4 : 1, is_long() ? 7000 : 400);
}

static void an_idempotent_channel(void **state)
{
    (void)state;
    run_kind("idempotent", is_long() ? 3 : 1, is_long() ? 7000 : 400);
}

static void a_channel_with_a_window(void **state)
{
    (void)state;
    if (is_long())
        run_kind("window", 3, 6000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_channel),
        cmocka_unit_test(an_idempotent_channel),
        cmocka_unit_test(a_channel_with_a_window),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    print_message("%u kills of the server, %u of services and workers; %lld trades: %lld "
                  "paid, %lld failed, %lld parked; %lld steps; paid twice 0\n",
                  sum.server_kills, sum.process_kills, sum.books.trades, sum.books.paid,
                  sum.books.failed, sum.books.parked, sum.books.steps);
    return server_report(failed);
}
