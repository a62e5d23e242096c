/* Decides what is said first on the page Now.  Touches memory only. */
#include "verdict.h"

#include <tradelock/layer.h>

#include <string.h>

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
    [VERDICT_FORGOTTEN] = LOOK("warn", "channel-down", "channel down", ),
    [VERDICT_WARNING] = LOOK("warn", "incidents", "incidents", ),
    [VERDICT_PAUSED] = LOOK("good", "channel-down", "channel down", ),
    [VERDICT_WELL] = LOOK("good", "routine", "routine", .list = "/trades")};

const struct stopped *stopped_of(const struct stops *stops, const char *channel,
                                 const char *op_code)
{
    for (unsigned i = 0; i < stops->count; i++) {
        const struct stopped *one = &stops->of[i];

        if (strcmp(one->channel, TL_CHANNEL_ALL) == 0 ||
            (strcmp(one->channel, channel) == 0 &&
             (one->op_code[0] == '\0' || strcmp(one->op_code, op_code) == 0)))
            return one;
    }
    return NULL;
}

static uint64_t count_processes(const struct now *now, int alive)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < now->process_count; i++)
        count += now->processes[i].alive == alive;
    return count;
}

/* Of the channels that do not answer, and that nobody has paused, the one for which most waits. */
static int is_down(const struct now *now, struct verdict *verdict)
{
    for (unsigned i = 0; i < now->channel_count; i++) {
        const struct channel *one = &now->channels[i];

        if (one->state.down_since_us == 0 ||
            stopped_of(&now->paused, one->name, one->op_code) != NULL)
            continue;
        verdict->count++;
        if (verdict->channel == NULL || one->state.waits > verdict->channel->state.waits)
            verdict->channel = one;
    }
    if (verdict->channel != NULL) {
        verdict->since_us = verdict->channel->state.down_since_us;
        verdict->stopped =
            stopped_of(&now->broken, verdict->channel->name, verdict->channel->op_code);
    } else if (now->broken.count > 0) {
        verdict->stopped = &now->broken.of[0];
        verdict->since_us = verdict->stopped->row.opened_us;
        verdict->count = now->broken.count;
    }
    return verdict->count > 0;
}

static int has_alarm(const struct now *now, struct verdict *verdict, int is_unsafe)
{
    for (unsigned i = 0; i < now->alarm_count && verdict->alarm == NULL; i++)
        if (now->alarms[i].is_unsafe == is_unsafe)
            verdict->alarm = &now->alarms[i];
    return verdict->alarm != NULL;
}

static int has_proposal(const struct now *now, struct verdict *verdict)
{
    verdict->count = now->closings;
    for (unsigned i = 0; i < now->group_count; i++)
        if (now->groups[i].kind == GROUP_PROPOSED)
            verdict->count += now->groups[i].sums.trades;
    return verdict->count > 0;
}

static int has_forgotten(const struct now *now, struct verdict *verdict)
{
    const int64_t until_us = now->now_us - TL_PAUSED_LONG_S * INT64_C(1000000);

    for (unsigned i = 0; i < now->paused.count && verdict->stopped == NULL; i++)
        if (now->paused.of[i].row.decided_us < until_us)
            verdict->stopped = &now->paused.of[i];
    return verdict->stopped != NULL;
}

static int counts(struct verdict *verdict, const struct sums *sums)
{
    verdict->count = sums->trades;
    verdict->since_us = sums->oldest_us;
    return sums->trades > 0;
}

static int is_so(const struct now *now, enum verdict_kind kind, struct verdict *verdict)
{
    switch (kind) {
    case VERDICT_AWAY:
        verdict->since_us = now->away_us;
        return now->away_us != 0;
    case VERDICT_RESTORE:
        verdict->since_us = now->restore.since_us;
        return now->restore.open;
    case VERDICT_UNFIT:
        return has_alarm(now, verdict, 1);
    case VERDICT_NOBODY:
        return count_processes(now, 1) == 0;
    case VERDICT_DOWN:
        return is_down(now, verdict);
    case VERDICT_BLOCKED:
        return now->overview.blocker != 0;
    case VERDICT_UNCLAIMED:
        verdict->count = now->overview.due;
        verdict->since_us = now->now_us - now->overview.due_us;
        return now->overview.due_us > TL_UNCLAIMED_S * INT64_C(1000000);
    case VERDICT_CONFLICT:
        return counts(verdict, &now->conflict);
    case VERDICT_PARKED:
        return counts(verdict, &now->parked);
    case VERDICT_SILENT:
        verdict->count = count_processes(now, 0);
        return verdict->count > 0;
    case VERDICT_PROPOSED:
        return has_proposal(now, verdict);
    case VERDICT_HANGS:
        return counts(verdict, &now->doubt) &&
               now->now_us - verdict->since_us > TL_HANGS_S * INT64_C(1000000);
    case VERDICT_FORGOTTEN:
        return has_forgotten(now, verdict);
    case VERDICT_WARNING:
        return has_alarm(now, verdict, 0);
    case VERDICT_PAUSED:
        verdict->stopped = now->paused.count > 0 ? &now->paused.of[0] : NULL;
        return now->paused.count > 0;
    case VERDICT_WELL:
        break;
    }
    return 1;
}

struct verdict verdict_of(const struct now *now)
{
    for (enum verdict_kind kind = VERDICT_AWAY;; kind++) {
        struct verdict verdict = {.kind = kind};

        if (is_so(now, kind, &verdict))
            return verdict;
    }
}
