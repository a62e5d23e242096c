/* Adds up money and payments, of trades and of several shards.  Touches memory only. */
#include "now.h"

#include <stdio.h>
#include <string.h>

#define MINUTE_US INT64_C(60000000)

static void keep_oldest(int64_t *oldest_us, int64_t us)
{
    if (us != 0 && (*oldest_us == 0 || us < *oldest_us))
        *oldest_us = us;
}

static void sum_add(struct sums *sums, const char *currency, uint64_t count, const char *minor)
{
    unsigned i = 0;

    while (i < sums->count && strcmp(sums->of[i].currency, currency) != 0)
        i++;
    if (i == SUMS_MOST)
        return;
    if (i == sums->count)
        snprintf(sums->of[sums->count++].currency, TL_CURRENCY + 1, "%s", currency);
    sums->of[i].count += count;
    tl_sum_add(sums->of[i].minor, minor);
}

void sums_add(struct sums *sums, const struct sums *more)
{
    sums->trades += more->trades;
    keep_oldest(&sums->oldest_us, more->oldest_us);
    for (unsigned i = 0; i < more->count; i++)
        sum_add(sums, more->of[i].currency, more->of[i].count, more->of[i].minor);
}

/* A minute is counted where every shard that has operations has counted it. */
static void add_minute(int64_t *to, int64_t paid)
{
    *to = *to < 0 || paid < 0 ? -1 : *to + paid;
}

/* The clocks of two servers may be in different minutes. */
static void add_pace(struct now *total, const struct now *shard)
{
    int64_t later;

    if (shard->minute_us == 0)
        return;
    if (total->minute_us == 0) {
        memcpy(total->paid, shard->paid, sizeof total->paid);
        memcpy(total->late, shard->late, sizeof total->late);
        total->minute_us = shard->minute_us;
        return;
    }
    later = (total->minute_us - shard->minute_us) / MINUTE_US;
    for (int64_t i = 0; i < TL_PACE_MINUTES; i++)
        if (i - later >= 0 && i - later < TL_PACE_MINUTES) {
            add_minute(&total->paid[i], shard->paid[i - later]);
            add_minute(&total->late[i], shard->late[i - later]);
        }
}

void now_add(struct now *total, const struct now *shard)
{
    if (shard->now_us > total->now_us)
        total->now_us = shard->now_us;
    total->cut |= shard->cut;
    total->closings += shard->closings;
    total->groups_cut |= shard->groups_cut;
    sums_add(&total->doubt, &shard->doubt);
    sums_add(&total->parked, &shard->parked);
    sums_add(&total->queued, &shard->queued);
    sums_add(&total->conflict, &shard->conflict);
    add_pace(total, shard);
}
