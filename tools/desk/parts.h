/* Parts that several pages have. */
#ifndef DESK_PARTS_H
#define DESK_PARTS_H

#include "desk.h"
#include "house.h"

/* The state as a coloured word, with the word "conflict" beside it where that is so. */
void part_state(struct page *page, const tl_view *view);
/* A link to the trade; its text is the serial number. */
void part_trade_link(struct visit *visit, const tl_view *view);
/* Rows as a table. */
void part_rows(struct visit *visit, const struct rows *rows);
/* The success rate of what ended, as "94.0 %"; nothing where nothing did. */
void part_rate(struct page *page, const tl_channel_state *state);
/* What the probes of an open breaker came to, and when the next may begin; as in tl_pause_row. */
void part_probes(struct page *page, int64_t silent, int64_t probed_us, int probes,
                 int64_t probe_us);
/* A command line that does the same, from the words up to NULL. */
void part_command(struct page *page, const char *first, ...) __attribute__((sentinel));

#endif
