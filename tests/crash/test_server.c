/*
 * kill -9 of the database server under load, with services and workers dying at random beside it
 * and a channel that goes wrong, for all three kinds of channel.
 */
#include "crowd.h"

#include "support/theme.h"

#include <signal.h>

/* By then something hangs, however busy the machine is. */
#define LIMIT_MS (tier_is_long() ? 3600000 : 600000)

static struct {
    unsigned server_kills, process_kills;
    town_figures books;
} sum;

static void kill_server(crowd *self)
{
    server_kill9(self->town.own);
    usleep(crowd_random(self, 400) * 1000);
    server_restart(self->town.own);
    town_reconnect(&self->town);
    sum.server_kills++;
}

/* The rows there are say when to kill the server next. */
static void run_crowd(crowd *self, unsigned kills)
{
    int64_t end_ms = now_ms() + LIMIT_MS;
    unsigned killed = 0;

    crowd_start(self);
    for (;;) {
        long long rows = crowd_begun(self);
        int more = rows < (long long)self->trades;

        if (crowd_look_after(self, more) == 0 && killed == kills)
            break;
        usleep(1000 * (50 + crowd_random(self, 250)));
        crowd_kill_one(self, more);
        if (killed < kills && rows * (kills + 1) >= (long long)self->trades * (killed + 1)) {
            kill_server(self);
            killed++;
        }
        assert_true(now_ms() < end_ms);
    }
    crowd_end(self);
}

static void run_kind(const char *kind, unsigned kills, unsigned trades)
{
    crowd self = {.services = 4, .workers = 3, .threads = 8, .trades = trades, .faults = 0.1};
    town_figures figures;

    crowd_open(&self, kind, NULL);
    run_crowd(&self, kills);
    town_no_rules(&self.town);
    crowd_ask_all_again(&self);
    town_finish(&self.town, 300000);
    assert_int_equal(town_check(&self.town, &figures), 0);
    assert_int_equal(figures.trades, trades / self.services * self.services);
    sum.process_kills += self.kills;
    sum.books.trades += figures.trades;
    sum.books.paid += figures.paid;
    sum.books.failed += figures.failed;
    sum.books.parked += figures.parked;
    sum.books.steps += figures.steps;
    crowd_close(&self);
}

TEST(a_plain_channel)
{
    run_kind("plain", tier_pick(1, 1, 4), tier_pick(120, 400, 7000));
}

TEST(an_idempotent_channel)
{
    run_kind("idempotent", tier_pick(1, 1, 3), tier_pick(120, 400, 7000));
}

TEST(a_channel_with_a_window)
{
    if (tier_is_long())
        run_kind("window", 3, 6000);
}

TEST_MAIN(server)
{
    int failed = tests_run(NULL, NULL);

    print_message("%u kills of the server, %u of services and workers; %lld trades: %lld "
                  "paid, %lld failed, %lld parked; %lld steps; paid twice 0\n",
                  sum.server_kills, sum.process_kills, sum.books.trades, sum.books.paid,
                  sum.books.failed, sum.books.parked, sum.books.steps);
    return server_report(failed);
}
