/* The moments at which something of a trade is on record, and the slider over them. */
#ifndef DESK_MOMENTS_H
#define DESK_MOMENTS_H

#include "desk.h"
#include "house.h"

struct moments {
    int64_t *us; /* each once, oldest first */
    size_t count;
};

/* 0: out of memory. */
int moments_of(struct moments *moments, const struct trade *trade);
void moments_free(struct moments *moments);
/* The moment at this place of the slider, as it was typed; 0: now, which is the place behind
 * all. */
int64_t moments_at(const struct moments *moments, const char *place);

/* The slider, where `as_of_us` says (0: now), and a field for any other moment. */
void moments_write(struct page *page, const struct moments *moments, int64_t as_of_us,
                   const char *ref);

#endif
