/* A trade on a page: its head, and all that is known of it. */
#ifndef DESK_PAGE_TRADE_H
#define DESK_PAGE_TRADE_H

#include "desk.h"
#include "house.h"

/* Finds the trade of the reference `r`, of the query or of the form; 0: the answer says why not. */
int trade_read(struct visit *visit, const struct form *form, struct ref *ref, struct trade *trade);
/* Serial number, state, amount, and in three sentences what it is, what happened last and what is
 * next. */
void trade_head(struct visit *visit, const struct trade *trade);

/* attempts.c: who asked for it or looked at it, and what came of that. */
void trade_attempts(struct page *page, const struct trade *trade);
/* Whether a step of the first lane, the one before which had so many sends, is one more. */
int step_sends(const tl_step *step, uint32_t before);

/* timeline.c: both lanes on one line of time, wide at its two ends, with a mark at the moment that is
 * shown; 0: it is now. */
void trade_timeline(struct page *page, const struct trade *trade, int64_t as_of_us);

#endif
