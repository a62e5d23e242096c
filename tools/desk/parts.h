/* Parts that several pages have. */
#ifndef DESK_PARTS_H
#define DESK_PARTS_H

#include "desk.h"
#include "house.h"

/* The state as a coloured word, with the word "conflict" beside it where that is so. */
void part_state(struct page *page, const tl_view *view);
/* A link to the trade; its text is the serial number. */
void part_trade_link(struct visit *visit, const tl_view *view);
/* The rows of all of them as one table. */
void part_rows(struct visit *visit, const struct listed *listed, size_t count);
/* Of a fleet, the heading of a column with the shard. */
void part_shard_column(struct visit *visit);
/* Its cell. */
void part_shard(struct visit *visit, size_t shard);
/* The success rate of what ended, as "94.0 %"; nothing where nothing did. */
void part_rate(struct page *page, const tl_channel_state *state);
/* What the probes of an open breaker came to, and when the next may begin; as in tl_pause_row. */
void part_probes(struct page *page, int64_t silent, int64_t probed_us, int probes,
                 int64_t probe_us);
/* A command line that does the same, from the words up to NULL. */
void part_command(struct page *page, const char *first, ...) __attribute__((sentinel));

#endif
