/*
 * What the pages read and do, over the operators' library: the one place that calls it.  It holds
 * what a call told until the page is written.
 */
#ifndef DESK_HOUSE_H
#define DESK_HOUSE_H

#include "desk.h"
#include "refs.h"

#include <tradelock/admin.h>

#include <stddef.h>

/* -------------------------------------------------------------------- lists -- */

/* Rows without payload and result. */
struct rows {
    tl_view *views;
    size_t count;
    int more; /* there are more behind them, or may be */
    char next[TL_NEXT_TEXT];
    /* Of what waits. */
    size_t skip;      /* so many of those that were read stand on this page and before it; 0: all */
    int is_part;      /* there are others than those that were read */
    tl_list_end sums; /* of all that were read, by rows_leave_copies() */
    tl_status failed; /* TL_NO_MEMORY, or TL_OK */
};

void rows_free(struct rows *rows);
int rows_add(void *context, const tl_view *view);
/* Only those stay whose customer is at the shard at which the visit works, or nobody knows where. */
tl_status rows_leave_copies(struct rows *rows, const struct visit *visit);

/* The rows of one shard, while they are shown. */
struct listed {
    size_t shard;
    struct missing missing;
    struct rows rows;
};

/* What people look for; page_trades.c has its word in addresses. */
enum show {
    SHOW_ALL,
    SHOW_PROCESS,
    SHOW_DOUBT,
    SHOW_PARKED,
    SHOW_CONFLICT,
    SHOW_FAILED,
    SHOW_PAID
};

#define PAGE_ROWS 50u
/* A page looks at about so many rows at most, so that something rare takes more pages, not time. */
#define PAGE_LOOKS 2000u

/* What the filter shows of it; it borrows the texts of the search. */
void house_filter(tl_filter *filter, enum show show, const struct ref *search);
/* Whether it stands in the group of the page Now of which the search is; 1 where it is of none. */
int house_is_of_cause(const struct ref *search, const tl_view *view);
/* Whether the list is of what somebody waits for. */
int house_waits(const struct ref *search);
/* Reads what stands behind search->after, at the shard at which the visit works: a page, or of what
 * waits up to PAGE_LOOKS rows, with the oldest of them first. */
tl_status house_list(const struct visit *visit, const struct ref *search, struct rows *rows);
/* The same at that shard, of what waits the page behind search->skip.  What fails is kept as
 * missing. */
tl_status listed_read(struct listed *listed, struct visit *visit, const struct ref *search);
/* The totals of a batch of at most so many trades. */
#define BATCH_MOST 5000u
struct batch {
    tl_batch_part *part;
    size_t count;
    uint64_t trades, open;
    tl_status status; /* of the call; TL_OVERLOADED: there are more */
};

/* Of that shard. */
void house_batch(struct visit *visit, size_t shard, const char *name, struct batch *batch);
void batch_free(struct batch *batch);
/* -------------------------------------------------------------------- a trade -- */

#define TRADE_STEPS 1000u
#define TRADE_OTHERS 200u
#define TRADE_SENTENCES 32u

struct trade {
    tl_view view[2]; /* by tl_lane */
    int has[2];
    tl_step *steps;
    size_t step_count;
    tl_evidence_row *evidence;
    size_t evidence_count;
    tl_resolution_row *halves;
    size_t half_count;
    tl_sentence told[TRADE_SENTENCES]; /* why it is where it is; their views are not kept */
    size_t told_count;
    int cut;          /* there is more than is kept */
    int64_t as_of_us; /* 0: as it is */
    /* Own memory. */
    void **kept;
    size_t kept_count;
    int no_memory;
};

/* As it was at a moment, without a word about now; 0: as it is.  TL_NOT_FOUND: there is no such
 * trade, or was none then. */
tl_status house_trade(tl_client *client, const struct ref *ref, int64_t as_of_us,
                      struct trade *trade);
void trade_free(struct trade *trade);
/* The sync row, or the retry row where that stands alone. */
const tl_view *trade_view(const struct trade *trade);

/* The trade as `tradelock show --json` prints it; free() it.  NULL: out of memory.  shard "": it is of
 * one database. */
char *house_json(const struct trade *trade, const char *shard);

/* ----------------------------------------------------------------- deciding -- */

enum act { ACT_NONE, ACT_RETRY, ACT_PROPOSE, ACT_CONFIRM, ACT_EVIDENCE };

/* page_decide.c: the word of a form; what follows a confirmation; the decision of a form's word, or
 * 0. */
const char *act_word(enum act act);
const char *happens_then(tl_decision as);
int read_as(tl_decision *as, const char *word);

struct decision {
    enum act act;
    tl_decision as; /* of a proposal or confirmation */
    uint64_t fence;
    const char *actor, *reason;
    int although_pending;
    /* Evidence. */
    uint32_t epoch;
    const char *outcome, *channel_ref, *source;
    int final;
    tl_payment_amount amount; /* of success */
    char currency[TL_CURRENCY + 1];
};

/* The answer of the library's call; TL_LOST: the trade has moved on since the fence was seen. */
tl_status house_decide(tl_client *client, const struct ref *ref, const struct decision *decision);

#endif
