/* Parts that several pages have. */
#ifndef DESK_PARTS_H
#define DESK_PARTS_H

#include "desk.h"
#include "grid.h"
#include "house.h"

/* What people call it: "paid", "waits for a person". */
const char *part_state_words(tl_state state);
/* Of a tl_view: the state as a coloured word, with the word "conflict" beside it where that is so. */
void part_state(struct visit *visit, const void *view);
/* Of a tl_view: a link to the trade; its text is the serial number. */
void part_trade_link(struct visit *visit, const void *view);
/* What the word of a list shows. */
enum show part_show_of(const char *word);
/* page_many.c: what can be done at this shard to all of the list with this reference at once. */
void part_many_links(struct visit *visit, enum show show, const char *ref, const char *shard);
/* What an address has in the place of a trade's key. */
void part_ref(struct visit *visit, const tl_key *key, char to[SECRET_TEXT]);
/* Of a trade's key, on that page. */
void part_link(struct visit *visit, const tl_key *key, const char *path);
/* ": 301.50 EUR, 12.00 USD"; "" where no trade told an amount. */
void part_sums(struct page *page, const tl_list_end *sums);
/* "Payments of the file: 12: 301.50 EUR" as a paragraph. */
void part_sum_line(struct page *page, const char *what, const tl_list_end *sum);
/* The name of a channel's card on the page Channels; and a link to it, as a button of this class. */
void part_channel_id(struct page *page, const char *shard, const char *channel,
                     const char *op_code);
void part_channel_button(struct page *page, const char *shard, const char *channel,
                         const char *op_code, const char *kind, const char *words);
/* What the probes of an open breaker came to, and when the next may begin. */
void part_probes(struct page *page, const tl_pause_row *row);

/* A bar of a chart, its segments one behind the other; `longest` fills the width.  The caller writes
 * its value, and closes the two elements. */
struct part_segment {
    const char *name, *colour; /* a class of desk.css */
    uint64_t count;
};
void part_bar(struct page *page, const char *name, const struct part_segment *segments,
              size_t count, uint64_t longest);
/* What the colours mean; the caller closes the list. */
void part_legend(struct page *page, const struct part_segment *segments, size_t count);

/* So many are done at once, and so many of them are shown. */
#define MANY_MOST 300u
#define MANY_SHOWN 50u
/* What a page showed, text by text, for its form: what is sent is done only if that is still so. */
#define PART_SEEN UINT64_C(14695981039346656037)
uint64_t part_seen(uint64_t seen, const char *text);

/* Says so, if the account may not; whether it may. */
int part_may_decide(struct visit *visit);
/* Why what was sent was not done, and what the page shows; problem NULL: nothing. */
void part_problem(struct page *page, const char *problem, const char *what_follows);
/* A form with hidden fields: names and values up to a NULL; an empty value is left out. */
void part_form_of(struct visit *visit, const char *path, const char *const *fields);
#define part_form(visit, path, ...)                                                                \
    part_form_of(visit, path, (const char *const[]){__VA_ARGS__, NULL})
/* Its end; id NULL: it asks for no reason.  `reason`: what was typed before. */
void part_form_end(struct page *page, const char *id, const char *reason, const char *button);
/* A command that does the same; an option whose value is "" is left out. */
void part_command_of(struct page *page, const char *const *words);
#define part_command(page, ...) part_command_of(page, (const char *const[]){__VA_ARGS__, NULL})

#endif
