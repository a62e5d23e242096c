/* The business rows of a withdrawal: declared statements, and the callbacks that write their
 * lines. */
#ifndef WITHDRAW_BOOKS_H
#define WITHDRAW_BOOKS_H

#include "withdraw.h"

#define BOOKS_STATEMENTS 6
extern const tl_statement books_statements[BOOKS_STATEMENTS];

/* Freezes the amount, or refuses. */
tl_status books_freeze(void *context, const tl_attempt *attempt, tl_reply *reply, tl_book *book);
/* Takes the frozen amount out and books it. */
tl_status books_pay(void *context, const tl_attempt *attempt, const tl_reply *reply, tl_book *book);
/* Gives the frozen amount back. */
tl_status books_release(void *context, const tl_attempt *attempt, const tl_reply *reply,
                        tl_proof proof, tl_book *book);

#endif
