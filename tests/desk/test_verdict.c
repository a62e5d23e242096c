/* What the page Now says first: the worst of what is true, whatever else is. */
#include "verdict.h"

#include "support/theme.h"

#include <tradelock/layer.h>

#define MINUTE_US INT64_C(60000000)
#define NOW_US (1000000 * MINUTE_US)

/* A thing that is wrong, or worth a word: what makes it so, and what is said of it. */
struct trouble {
    enum verdict_kind kind;
    void (*make)(struct now *now);
    uint64_t count;
    int64_t since_us;
};

/* One process, which lives. */
static void make_well(struct now *now)
{
    memset(now, 0, sizeof *now);
    now->now_us = now->overview.now_us = NOW_US;
    now->overview.alive = 1;
}

static void add_alarm(struct now *now, int is_unsafe)
{
    now->alarms[now->alarm_count++].is_unsafe = is_unsafe;
}

static struct channel *add_channel(struct now *now, const char *name, uint64_t waits)
{
    struct channel *one = &now->channels[now->channel_count++];

    snprintf(one->name, sizeof one->name, "%s", name);
    snprintf(one->op_code, sizeof one->op_code, "PAY");
    one->state.waits = waits;
    one->state.down_since_us = NOW_US - (int64_t)waits * MINUTE_US;
    return one;
}

static void add_stop(struct stops *stops, const char *channel, const char *op_code)
{
    struct stopped *one = &stops->of[stops->count++];

    snprintf(one->channel, sizeof one->channel, "%s", channel);
    snprintf(one->op_code, sizeof one->op_code, "%s", op_code);
    one->row.opened_us = NOW_US - 7 * MINUTE_US;
    one->row.now_us = NOW_US;
    one->row.decided_us = NOW_US - MINUTE_US;
}

static void warn(struct now *now)
{
    add_alarm(now, 0);
}

static void pause_one(struct now *now)
{
    add_stop(&now->paused, "quiet", "");
}

static void forget_pause(struct now *now)
{
    add_stop(&now->paused, "old", "");
    now->paused.of[now->paused.count - 1].row.decided_us = NOW_US - 61 * MINUTE_US;
}

static void hold_on(struct now *now)
{
    now->overview.overdue = 2;
}

static void hang(struct now *now)
{
    now->doubt = (struct sums){.trades = 3, .oldest_us = NOW_US - 16 * MINUTE_US};
}

static void propose(struct now *now)
{
    now->closings = 2;
    now->groups[now->group_count++] = (struct group){.kind = GROUP_PROPOSED, .sums.trades = 5};
    now->groups[now->group_count++] = (struct group){.kind = GROUP_PARKED, .sums.trades = 9};
}

static void silence(struct now *now)
{
    now->overview.silent = 1;
}

static void park(struct now *now)
{
    now->parked = (struct sums){.trades = 4, .oldest_us = NOW_US - 2 * MINUTE_US};
}

static void contradict(struct now *now)
{
    now->conflict = (struct sums){.trades = 1, .oldest_us = NOW_US - 3 * MINUTE_US};
}

static void leave_due(struct now *now)
{
    now->overview.due = 6;
    now->overview.due_us = 2 * MINUTE_US;
}

static void block(struct now *now)
{
    now->overview.blocker = 77;
}

static void take_down(struct now *now)
{
    add_channel(now, "small", 1);
    add_channel(now, "large", 8);
    add_channel(now, "quiet", 99); /* paused */
}

static void kill_all(struct now *now)
{
    now->overview.alive = 0;
}

static void endanger(struct now *now)
{
    add_alarm(now, 1);
}

static void restore(struct now *now)
{
    now->restore.open = 1;
    now->restore.since_us = NOW_US - MINUTE_US;
}

static void go_away(struct now *now)
{
    now->away_us = 5;
}

static const struct trouble troubles[] = {
    {VERDICT_PAUSED, pause_one, 1, 0},
    {VERDICT_WARNING, warn, 1, 0},
    {VERDICT_FORGOTTEN, forget_pause, 1, 0},
    {VERDICT_OVERDUE, hold_on, 2, 0},
    {VERDICT_HANGS, hang, 3, NOW_US - 16 * MINUTE_US},
    {VERDICT_PROPOSED, propose, 7, 0},
    {VERDICT_SILENT, silence, 1, 0},
    {VERDICT_PARKED, park, 4, NOW_US - 2 * MINUTE_US},
    {VERDICT_CONFLICT, contradict, 1, NOW_US - 3 * MINUTE_US},
    {VERDICT_UNCLAIMED, leave_due, 6, NOW_US - 2 * MINUTE_US},
    {VERDICT_BLOCKED, block, 1, 0},
    {VERDICT_DOWN, take_down, 2, NOW_US - 8 * MINUTE_US},
    {VERDICT_NOBODY, kill_all, 1, 0},
    {VERDICT_UNFIT, endanger, 1, 0},
    {VERDICT_RESTORE, restore, 1, NOW_US - MINUTE_US},
    {VERDICT_AWAY, go_away, 1, 5},
};
#define TROUBLES (sizeof troubles / sizeof troubles[0])
_Static_assert(TROUBLES == VERDICT_WELL, "each kind but the last has one");

static void expect(const struct now *now, const struct trouble *trouble)
{
    const struct verdict verdict = verdict_of(now);

    assert_int_equal(verdict.kind, trouble->kind);
    assert_int_equal(verdict.count, trouble->count);
    assert_int_equal(verdict.since_us, trouble->since_us);
}

/* Each alone, and each with all that is less bad. */
TEST(test_the_worst_is_said)
{
    static struct now now, all;

    make_well(&now);
    assert_int_equal(verdict_of(&now).kind, VERDICT_WELL);
    make_well(&all);
    for (size_t i = 0; i < TROUBLES; i++) {
        make_well(&now);
        if (troubles[i].kind == VERDICT_DOWN)
            pause_one(&now);
        troubles[i].make(&now);
        expect(&now, &troubles[i]);
        troubles[i].make(&all);
        expect(&all, &troubles[i]);
    }
}

/* What is named: the channel for which most waits, with its breaker; the alarm of its kind. */
TEST(test_what_it_is_about)
{
    static struct now now;
    struct verdict verdict;

    make_well(&now);
    pause_one(&now);
    take_down(&now);
    add_stop(&now.broken, "small", "");
    add_stop(&now.broken, "large", "OTHER");
    verdict = verdict_of(&now);
    assert_string_equal(verdict.channel->name, "large");
    assert_null(verdict.stopped);
    add_stop(&now.broken, "large", "PAY");
    assert_ptr_equal(verdict_of(&now).stopped, &now.broken.of[2]);
    /* All are paused: by name, and as a whole. */
    add_stop(&now.paused, "small", "PAY");
    add_stop(&now.paused, TL_CHANNEL_ALL, "");
    verdict = verdict_of(&now);
    assert_int_equal(verdict.kind, VERDICT_PAUSED);
    assert_ptr_equal(verdict.stopped, &now.paused.of[0]);
    make_well(&now);
    warn(&now);
    endanger(&now);
    assert_ptr_equal(verdict_of(&now).alarm, &now.alarms[1]);
}

/* An open breaker says the same while its channel was not found to be down, nor is paused. */
TEST(test_a_breaker_alone)
{
    static struct now now;
    const struct trouble broken = {VERDICT_DOWN, NULL, 1, NOW_US - 7 * MINUTE_US};

    make_well(&now);
    add_stop(&now.broken, "large", "");
    expect(&now, &broken);
    assert_null(verdict_of(&now).channel);
    add_stop(&now.paused, "large", "");
    assert_int_equal(verdict_of(&now).kind, VERDICT_PAUSED);
}

/* Up to the minute in which workers come, the quarter of an hour in which most ends, and the hour for
 * which operators pause a channel on purpose. */
TEST(test_what_is_young_is_well)
{
    static struct now now;

    make_well(&now);
    now.overview.due = 1;
    now.overview.due_us = MINUTE_US;
    now.doubt = (struct sums){.trades = 1, .oldest_us = NOW_US - 15 * MINUTE_US};
    assert_int_equal(verdict_of(&now).kind, VERDICT_WELL);
    pause_one(&now);
    now.paused.of[0].row.decided_us = NOW_US - 60 * MINUTE_US;
    assert_int_equal(verdict_of(&now).kind, VERDICT_PAUSED);
    now.paused.of[0].row.decided_us--;
    assert_int_equal(verdict_of(&now).kind, VERDICT_FORGOTTEN);
    now.doubt.oldest_us--;
    assert_int_equal(verdict_of(&now).kind, VERDICT_HANGS);
    now.overview.due_us++;
    assert_int_equal(verdict_of(&now).kind, VERDICT_UNCLAIMED);
}

/* The command's exit code is that of the worst for which it has one. */
TEST(test_codes)
{
    struct facts facts = {{{0}}};
    const struct {
        enum verdict_kind kind;
        int code;
    } told[] = {{VERDICT_PAUSED, 0},    {VERDICT_WARNING, 0}, {VERDICT_NOBODY, 0},
                {VERDICT_FORGOTTEN, 6}, {VERDICT_DOWN, 6},    {VERDICT_UNFIT, 5},
                {VERDICT_OVERDUE, 5}};

    assert_int_equal(facts_worst(&facts), VERDICT_WELL);
    assert_int_equal(facts_code(&facts), 0);
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        facts.of[told[i].kind].count = 1;
        assert_int_equal(facts_code(&facts), told[i].code);
    }
}

/* Whatever is said has a colour, and its own section of the runbook. */
TEST(test_every_kind_has_a_look)
{
    for (int kind = VERDICT_AWAY; kind <= VERDICT_WELL; kind++) {
        assert_non_null(verdict_looks[kind].look);
        assert_non_null(verdict_looks[kind].runbook);
        assert_non_null(verdict_looks[kind].section);
    }
}

TESTS_OF(verdict, NULL, NULL)
