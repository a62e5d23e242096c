/* Judges how things are.  Touches memory only. */
#include "facts.h"

#include "command.h"

#include <tradelock/layer.h>

#include <stdio.h>
#include <string.h>

/* The age in microseconds counts from so many seconds on. */
static int is_older(int64_t age_us, int64_t s)
{
    return age_us > s * INT64_C(1000000);
}

void facts_take(struct facts *facts, const tl_overview *o)
{
    facts->of[VERDICT_RESTORE].count = o->restore_open != 0;
    facts->of[VERDICT_UNFIT].count = !o->fit || o->clock_jumps_open > 0;
    facts->of[VERDICT_NOBODY].count = o->alive == 0;
    facts->of[VERDICT_BLOCKED].count = o->blocker != 0;
    facts->of[VERDICT_SILENT].count = o->silent;
    facts->of[VERDICT_OVERDUE].count = o->overdue;
    if (is_older(o->due_us, TL_UNCLAIMED_S))
        facts->of[VERDICT_UNCLAIMED] = (struct fact){o->due, o->now_us - o->due_us};
}

void facts_take_doubt(struct facts *facts, uint64_t count, int64_t oldest_us, int64_t now_us)
{
    if (is_older(now_us - oldest_us, TL_HANGS_S))
        facts->of[VERDICT_HANGS] = (struct fact){count, oldest_us};
}

void facts_take_pause(struct facts *facts, const tl_pause_row *row)
{
    facts->of[VERDICT_PAUSED].count++;
    if (is_older(row->now_us - row->decided_us, TL_PAUSED_LONG_S))
        facts->of[VERDICT_FORGOTTEN].count++;
}

void stops_keep(struct stops *stops, const tl_pause_row *row)
{
    struct stopped *one = &stops->of[stops->count];

    if (stops->count == STOPS_MOST)
        return;
    snprintf(one->channel, sizeof one->channel, "%s", row->channel);
    snprintf(one->op_code, sizeof one->op_code, "%s", row->op_code);
    snprintf(one->account, sizeof one->account, "%s", row->account);
    snprintf(one->reason, sizeof one->reason, "%s", row->reason);
    one->row = *row;
    stops->count++;
}

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

int facts_take_down(struct facts *facts, const struct stops *paused, const char *channel,
                    const char *op_code)
{
    const int counts = stopped_of(paused, channel, op_code) == NULL;

    facts->of[VERDICT_DOWN].count += (uint64_t)counts;
    return counts;
}

enum verdict_kind facts_worst(const struct facts *facts)
{
    enum verdict_kind kind = VERDICT_AWAY;

    while (kind < VERDICT_WELL && facts->of[kind].count == 0)
        kind++;
    return kind;
}

int facts_code(const struct facts *facts)
{
    static const int codes[] = {[VERDICT_RESTORE] = EXIT_UNSAFE, [VERDICT_UNFIT] = EXIT_UNSAFE,
                                [VERDICT_DOWN] = EXIT_OPEN,      [VERDICT_BLOCKED] = EXIT_OPEN,
                                [VERDICT_UNCLAIMED] = EXIT_OPEN, [VERDICT_CONFLICT] = EXIT_OPEN,
                                [VERDICT_PARKED] = EXIT_OPEN,    [VERDICT_SILENT] = EXIT_OPEN,
                                [VERDICT_PROPOSED] = EXIT_OPEN,  [VERDICT_HANGS] = EXIT_OPEN,
                                [VERDICT_OVERDUE] = EXIT_OPEN,   [VERDICT_FORGOTTEN] = EXIT_OPEN,
                                [VERDICT_WELL] = EXIT_DONE};

    for (enum verdict_kind kind = VERDICT_AWAY; kind < VERDICT_WELL; kind++)
        if (facts->of[kind].count > 0 && codes[kind] != EXIT_DONE)
            return codes[kind];
    return EXIT_DONE;
}
