/* Decides what is said first on the page Now.  Touches memory only. */
#include "verdict.h"

#define LOOK(look_, section_, runbook_, ...)                                                       \
    {.look = look_, .section = section_, .runbook = runbook_, __VA_ARGS__}
const struct verdict_look verdict_looks[] = {
    [VERDICT_AWAY] = LOOK("bad", "server-away", "server away", ),
    [VERDICT_RESTORE] = LOOK("bad", "restored", "restored", .title = "A restore is open."),
    [VERDICT_UNFIT] = LOOK("bad", "incidents", "incidents", ),
    [VERDICT_NOBODY] = LOOK("bad", "no-worker", "no worker", .title = "No process is alive.",
                            .detail = "Nobody opens, retries or ends anything."),
    [VERDICT_DOWN] = LOOK("bad", "channel-down", "channel down", ),
    [VERDICT_BLOCKED] = LOOK("bad", "payment-hangs", "payment hangs", ),
    [VERDICT_UNCLAIMED] = LOOK("bad", "no-worker", "no worker", .list = "/trades?show=doubt"),
    [VERDICT_CONFLICT] =
        LOOK("bad", "statement-says-paid", "statement says paid", .list = "/trades?show=conflict"),
    [VERDICT_PARKED] = LOOK("warn", "parked", "parked", .list = "/trades?show=parked"),
    [VERDICT_SILENT] = LOOK("warn", "process-stopped", "process stopped",
                            .detail = "What they held is opened, and workers end it."),
    [VERDICT_PROPOSED] = LOOK("warn", "parked", "parked", .list = "#person",
                              .detail = "Nothing is done before that."),
    [VERDICT_HANGS] = LOOK("warn", "payment-hangs", "payment hangs", .list = "/trades?show=doubt"),
    [VERDICT_OVERDUE] = LOOK("warn", "process-stopped", "process stopped",
                             .detail = "Nobody opens them: start any process with janitor = 1."),
    [VERDICT_FORGOTTEN] = LOOK("warn", "channel-down", "channel down", ),
    [VERDICT_WARNING] = LOOK("warn", "incidents", "incidents", ),
    [VERDICT_PAUSED] = LOOK("good", "channel-down", "channel down", ),
    [VERDICT_WELL] = LOOK("good", "routine", "routine", .list = "/trades")};

/* Of the channels that are down the one for which most waits; else the first with an open breaker. */
static struct verdict find_down(const struct now *now)
{
    struct verdict verdict = {.kind = VERDICT_DOWN};
    struct facts facts = {{{0}}};

    for (unsigned i = 0; i < now->channel_count; i++) {
        const struct channel *one = &now->channels[i];

        if (one->state.down_since_us != 0 &&
            facts_take_down(&facts, &now->paused, one->name, one->op_code) &&
            (verdict.channel == NULL || one->state.waits > verdict.channel->state.waits))
            verdict.channel = one;
    }
    for (unsigned i = 0; verdict.channel == NULL && i < now->broken.count; i++) {
        const struct stopped *one = &now->broken.of[i];

        if (facts_take_down(&facts, &now->paused, one->channel, one->op_code) &&
            verdict.stopped == NULL)
            verdict.stopped = one;
    }
    verdict.count = facts.of[VERDICT_DOWN].count;
    if (verdict.channel != NULL) {
        verdict.since_us = verdict.channel->state.down_since_us;
        verdict.stopped = stopped_of(&now->broken, verdict.channel->name, verdict.channel->op_code);
    } else if (verdict.stopped != NULL) {
        verdict.since_us = verdict.stopped->row.opened_us;
    }
    return verdict;
}

/* NULL: there is none of that kind. */
static const struct alarm *alarm_of(const struct now *now, enum verdict_kind kind)
{
    for (unsigned i = 0; i < now->alarm_count; i++)
        if (now->alarms[i].is_unsafe == (kind == VERDICT_UNFIT))
            return &now->alarms[i];
    return NULL;
}

static uint64_t proposals(const struct now *now)
{
    uint64_t count = now->closings;

    for (unsigned i = 0; i < now->group_count; i++)
        if (now->groups[i].kind == GROUP_PROPOSED)
            count += now->groups[i].sums.trades;
    return count;
}

/* The first pause that makes it so. */
static const struct stopped *paused_of(const struct now *now, enum verdict_kind kind)
{
    for (unsigned i = 0; i < now->paused.count; i++) {
        struct facts facts = {{{0}}};

        facts_take_pause(&facts, &now->paused.of[i].row);
        if (facts.of[kind].count > 0)
            return &now->paused.of[i];
    }
    return NULL;
}

static void take(struct facts *facts, enum verdict_kind kind, uint64_t count, int64_t since_us)
{
    facts->of[kind] = (struct fact){count, since_us};
}

/* What `doctor` says of the server counts here, and not the settings alone. */
struct verdict verdict_of(const struct now *now)
{
    const struct verdict down = find_down(now);
    struct verdict verdict = {.stopped = NULL};
    struct facts facts = {{{0}}};

    facts_take(&facts, &now->overview);
    facts_take_doubt(&facts, now->doubt.trades, now->doubt.oldest_us, now->now_us);
    for (unsigned i = 0; i < now->paused.count; i++)
        facts_take_pause(&facts, &now->paused.of[i].row);
    take(&facts, VERDICT_AWAY, now->away_us != 0, now->away_us);
    take(&facts, VERDICT_RESTORE, now->restore.open != 0, now->restore.since_us);
    take(&facts, VERDICT_UNFIT, alarm_of(now, VERDICT_UNFIT) != NULL, 0);
    take(&facts, VERDICT_DOWN, down.count, down.since_us);
    take(&facts, VERDICT_CONFLICT, now->conflict.trades, now->conflict.oldest_us);
    take(&facts, VERDICT_PARKED, now->parked.trades, now->parked.oldest_us);
    take(&facts, VERDICT_PROPOSED, proposals(now), 0);
    take(&facts, VERDICT_WARNING, alarm_of(now, VERDICT_WARNING) != NULL, 0);
    verdict.kind = facts_worst(&facts);
    if (verdict.kind == VERDICT_DOWN)
        return down;
    verdict.count = facts.of[verdict.kind].count;
    verdict.since_us = facts.of[verdict.kind].since_us;
    if (verdict.kind == VERDICT_UNFIT || verdict.kind == VERDICT_WARNING)
        verdict.alarm = alarm_of(now, verdict.kind);
    if (verdict.kind == VERDICT_PAUSED || verdict.kind == VERDICT_FORGOTTEN)
        verdict.stopped = paused_of(now, verdict.kind);
    return verdict;
}
