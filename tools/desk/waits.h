/* The table of channels on the page Now: how each is, and for how long how much waits for it. */
#ifndef DESK_WAITS_H
#define DESK_WAITS_H

#include "now.h"

/* "1,250.00 EUR, 10.00 USD". */
void sums_write(struct page *page, const struct sums *sums, const char *between);
/* "8 min", of more than a minute without its seconds. */
const char *waits_span(char to[TL_SPAN_TEXT], int64_t since_us, int64_t now_us);
/* Of each shard, NULL where one is missing; may_act: with buttons that pause and resume. */
void waits_write(struct visit *visit, struct now *const *shards, size_t count, int may_act);

#endif
