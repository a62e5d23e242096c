/* Colour on a terminal, unless NO_COLOR is set. */
#ifndef TRADELOCK_COLOUR_H
#define TRADELOCK_COLOUR_H

enum colour { COLOUR_NONE, COLOUR_ALARM, COLOUR_HEAD };

/* What switches it on; "" where the output is no terminal, or a person wants none. */
const char *colour(enum colour which);

#endif
