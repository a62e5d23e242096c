/* The business rows of a withdrawal, written in the library's transactions. */
#ifndef WITHDRAW_BOOKS_H
#define WITHDRAW_BOOKS_H

#include "withdraw.h"

/* prepare: freezes the amount, or refuses. */
tl_status books_freeze(void *context, const tl_attempt *attempt, tl_reply *reply,
                       struct st_mysql *connection);
/* apply_success: takes the frozen amount out and books it. */
tl_status books_pay(void *context, const tl_attempt *attempt, const tl_reply *reply,
                    struct st_mysql *connection);
/* apply_failure: gives the frozen amount back. */
tl_status books_release(void *context, const tl_attempt *attempt, const tl_reply *reply,
                        tl_proof proof, struct st_mysql *connection);

#endif
