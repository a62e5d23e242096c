/* A page while it is written.  Whatever comes from outside goes through page_text() or a %s, and
 * so cannot become markup; only page_put() takes markup, which stands in our code. */
#ifndef DESK_PAGE_H
#define DESK_PAGE_H

#include <stddef.h>
#include <stdint.h>

struct page {
    char *text;
    size_t size, space;
    int failed; /* out of memory, or longer than a page may be */
};

void page_free(struct page *page);
/* Markup of our own. */
void page_put(struct page *page, const char *markup);
/* Text of anybody: escaped; what is no UTF-8 or would steer a terminal or the direction of writing
 * is shown by its number. */
void page_text(struct page *page, const char *text);
void page_bytes(struct page *page, const char *text, size_t size);
/* The same with what stands between ` and ` as code. */
void page_words(struct page *page, const char *text);
/* Markup of our own with %s, %d, %u, %zu, %lld, %llu and %%; every %s is escaped. */
void page_format(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "12.34%": a share of 1, held between 0 and 1. */
void page_percent(struct page *page, double share);

/* -------------------------------------------------------- times and money -- */

/* "3 h 10 min ago" with the moment as a title; "-" for 0. */
void page_ago(struct page *page, int64_t us, int64_t now_us);
/* "2026-03-01T09:30:00.125Z" as a <time>; "-" for 0. */
void page_moment(struct page *page, int64_t us);
/* What tl_amount_text() wrote; "": no amount was told. */
void page_money(struct page *page, const char *amount);

#endif
