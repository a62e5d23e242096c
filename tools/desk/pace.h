/* The chart of payments on the page Now. */
#ifndef DESK_PACE_H
#define DESK_PACE_H

#include "now.h"

/* down_since_us: since when a channel does not answer; 0: all do. */
void pace_write(struct page *page, const struct now *now, int64_t down_since_us);

#endif
