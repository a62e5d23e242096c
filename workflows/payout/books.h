/* The business rows of a payout: declared statements, and the callbacks that write their lines. */
#ifndef PAYOUT_BOOKS_H
#define PAYOUT_BOOKS_H

#include "payout.h"

#define BOOKS_STATEMENTS 5
extern const tl_statement books_statements[BOOKS_STATEMENTS];

/* Reserves the amount in the treasury, or refuses. */
tl_status books_reserve(void *context, const tl_attempt *attempt, tl_reply *reply, tl_book *book);
/* Takes it out of the treasury. */
tl_status books_pay(void *context, const tl_attempt *attempt, const tl_reply *reply, tl_book *book);
/* Gives it back. */
tl_status books_release(void *context, const tl_attempt *attempt, const tl_reply *reply,
                        tl_proof proof, tl_book *book);

#endif
