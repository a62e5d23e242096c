/* What a list is made of: which rows pass its filter, how they were at a moment, where it
 * stopped. */
#ifndef TL_ADMIN_LIST_H
#define TL_ADMIN_LIST_H

#include "admin/shard_copies.h"
#include "admin/statements.h"

#include <tradelock/admin/trades.h>

/* Where rows come from, in the order in which a list shows them. */
enum list_source {
    LIST_CONFLICT,
    LIST_CONFLICT_PARKED, /* a parked retry row in conflict, which only SQL typed by hand makes */
    LIST_PARKED_SYNC,     /* the sync rows of parked retry rows */
    LIST_PARKED,
    /* Of each operation: */
    LIST_LEFT,         /* repeatable trades in doubt, which stand at a moment that is never due */
    LIST_WAITING_SYNC, /* the sync rows of retry rows that wait */
    LIST_WAITING,
    LIST_HELD,      /* from the low-water mark on; or the latest first, as LIST_RECENT */
    LIST_HELD_REST, /* held without a next moment */
    LIST_RECENT,    /* the latest first; those of all operations are merged */
    LIST_IDLE,      /* neither held nor with a next moment */
    LIST_MADE,      /* of those two, in place of them: by when they were made */
    LIST_CUSTOMER_OPEN,
    LIST_CUSTOMER_REST,
    LIST_BY_SERIAL,
    LIST_BY_REF,
    LIST_BY_LABEL,
    LIST_BY_TRACE,
    LIST_BY_AMOUNT,
    LIST_BATCH_OPEN,
    LIST_BATCH_REST,
    LIST_SOURCES
};

/* After every key and every reason, and whatever begins with what stands before it. */
#define LIST_LAST_TEXT "\x7f"

/* Rows read whole in one statement. */
#define LIST_BATCH 64

/* A row of a page. */
struct list_row {
    const db_result *page;
    size_t row;
};

/* One that passes. */
struct list_found {
    struct list_row on;
    char sync_op[TL_OP_MAX + 1]; /* of a retry row that leads to its sync row */
};

/* What somebody looks for is one of these kinds after the other, each a list by its own filter. */
#define FIND_KINDS 9u
#define FIND_MOST 160 /* the longest, a channel's reference, and more */
struct find_part {
    tl_filter filter;
    char text[FIND_MOST]; /* what the filter borrows */
};

/* A list under way. */
struct list {
    const tl_filter *filter; /* of a search: the part of this kind */
    const tl_filter *search; /* or NULL */
    struct find_part part;
    unsigned kind, last_kind;
    tl_view_fn each;
    void *context;
    db *connection;
    store_list_filter asked;
    char retry_op[TL_OP_MAX + 1], lane[2], status[2];
    char currency[TL_CURRENCY + 1]; /* of LIST_BY_AMOUNT, and so much of it */
    int64_t amount_minor;
    char last_serial[TL_SERIAL_MAX + 2];
    store_serials serials;
    unsigned left, behind, page;
    int64_t held_end_us; /* no held row behind it passes */
    size_t looked_at;
    size_t space;
    int stopped, has_last;
    /* Read once: a mark that moves meanwhile would hide a row. */
    store_operation *operations;
    size_t operation_count;
    int is_own; /* without copies: over all shards of a fleet each trade stands once */
    shard_copies copies;
    int resumes; /* `from` is where the list goes on */
    enum list_source resumed, source, last_source;
    store_list_place from, last;
    tl_list_end *end;
    /* Of the rows that are shown together. */
    struct list_row *rows;
    tl_key *keys;
    struct list_found *found;
    db_result views, of_work;
    tl_view view[LIST_BATCH];
};

/* tl_list_page(), of a fleet's shard without the copies of customers who are at another one. */
tl_status list_page_own(tl_client *client, const tl_filter *filter, tl_view_fn each, void *context,
                        tl_list_end *end);

/* Reads the source's page behind that place, of one operation or NULL. */
db_answer list_read_page(const struct list *list, const store_operation *operation,
                         const store_list_place *after, db_result *rows);
/* The place before the source's first row. */
void list_place_first(const struct list *list, const store_operation *operation,
                      store_list_place *place);
int list_is_latest_first(const struct list *list);

/* Shows the first so many of list->rows that pass, as long as the list is not stopped. */
tl_status list_show_rows(struct list *list, size_t rows);
/* The list goes on behind this row. */
void list_stands_at(struct list *list, const struct list_row *on);
void list_place_of(store_list_place *place, const db_result *page, size_t row);

static inline int list_is_by_operation(enum list_source source)
{
    return source >= LIST_LEFT && source <= LIST_IDLE;
}

/* Whether the rows of a page lead to the sync rows beside them. */
static inline int list_is_of_sync(enum list_source source)
{
    return source == LIST_PARKED_SYNC || source == LIST_WAITING_SYNC;
}

tl_status list_filter_check(const tl_filter *filter);
tl_status list_names_check(const tl_filter *filter);
/* Whether open and ended trades of a batch come from LIST_BATCH_REST, each found once. */
int list_is_one_walk(const tl_filter *filter);
/* Whether LIST_RECENT shows what LIST_HELD would. */
int list_mixes_held(const tl_filter *filter);
/* Whether rows from there can pass. */
int list_filter_uses(const tl_filter *filter, enum list_source source);
/* Whether the row passes.  Its page may be older than it; what counts is the row that is shown. */
int list_filter_passes(const tl_filter *filter, const tl_view *view);

/* Whether op_code is that operation, on either lane. */
int list_op_matches(const char *op, const char *op_code);
int list_is_open(const tl_view *view);

/* Makes the filter of this kind; 0: what is looked for is none of it. */
int find_part(struct find_part *part, const tl_filter *search, unsigned kind);
/* Whether the row is found as a kind before this one. */
int find_comes_before(const tl_filter *search, unsigned kind, const tl_view *view);
tl_status find_check(const tl_filter *search);
/* The kind in which the list goes on behind that place, and where there: a letter, then the place. */
unsigned find_goes_on(const char **after);

/* A row shown: counts it. */
void list_end_add(tl_list_end *end, const tl_view *view);
void list_next_write(char to[TL_NEXT_TEXT], enum list_source source, const store_list_place *place);
/* 1: that was written by list_next_write(). */
int list_next_read(const char *next, enum list_source *source, store_list_place *place);

/* Writes '.' and the text, in printable ASCII, and returns the end; reads one, and returns what
 * stands behind it, or NULL: it is none, or too long. */
char *list_next_put(char *to, const char *from);
const char *list_next_take(const char *from, char *to, size_t space);

/* Makes the view what it was at that moment.  *there: 0, and the view is undefined, when there was
 * no such row.  The view names a key and a lane at least; the rest is empty where there is no row
 * any more. */
tl_status list_as_of(db *connection, tl_view *view, int64_t as_of_us, int *there);

#endif
