/* Text for people within the width of their terminal. */
#ifndef TRADELOCK_WRAP_H
#define TRADELOCK_WRAP_H

/* The columns of the terminal, or what COLUMNS says, at least 40; 0: the output is no terminal, and
 * lines may be of any length, so that a search finds what stands in them. */
unsigned terminal_columns(void);

/* The text behind a label of that width, wrapped at blanks.  Bytes that a terminal would obey are
 * shown as \x1b. */
void wrap_print(const char *label, unsigned width, const char *text);

#endif
