/*
 * What stands in a URL instead of a trade or of a search: an opaque reference, so that no serial or
 * customer number gets into a browser's history, a proxy's log or a colleague's chat.
 *
 * A reference is good for everybody who is logged in, so that it can be sent to a colleague, until
 * the desk ends or 16,384 others were used since.
 */
#ifndef DESK_REFS_H
#define DESK_REFS_H

#include "secret.h"

#include <tradelock/admin/trades.h>

/* A trade, or a page of what somebody looks for; every text is "" where nothing is said.  Texts
 * alone, and zeros behind them: a reference stands for all its bytes. */
struct ref {
    char serial_no[TL_SERIAL_MAX + 1], cust_no[TL_CUST_MAX + 1], op_code[TL_OP_MAX + 1];
    char log_no[TL_UUID_TEXT], channel[TL_CHANNEL_MAX + 1];
    char find[256];                /* of a search: what somebody looks for */
    char show[16];                 /* of a search: the word of page_trades.c */
    char shard[33];                /* of a search: of this shard of a fleet alone */
    char cause[TL_REMARK_MAX + 1]; /* of a search: of this group of the page Now alone */
    /* Of a page that is not the first: its number, the `next` of the page before (which names a
     * customer), of what is read from there what the pages before have, and that page's reference. */
    char page[8], after[TL_NEXT_TEXT], skip[24], before[SECRET_TEXT];
};

struct refs;

struct refs *refs_new(void); /* NULL: out of memory */
void refs_free(struct refs *refs);
void refs_keep(struct refs *refs, const struct ref *ref, char to[SECRET_TEXT]);
/* 0: it is not known, or not any more. */
int refs_find(struct refs *refs, const char *text, struct ref *ref);

void ref_of_trade(struct ref *ref, const char *serial_no, const char *cust_no, const char *op_code);
tl_key ref_key(const struct ref *ref);

#endif
