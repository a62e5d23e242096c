/*
 * The operation PAYOUT in a payment house: its business rows are declared, and a script says what
 * its callbacks do.  A customer's purse is frozen, taken from or released, and each moment of a
 * trade is an entry, so that all of a moment's rows can be seen to be there, or none.
 */
#ifndef TESTS_WORKFLOWS_PAYOUT_H
#define TESTS_WORKFLOWS_PAYOUT_H

#include "house.h"

#include <stdatomic.h>

#define PAYOUT_OP "PAYOUT"
#define PAYOUT_STATEMENTS 4
extern const tl_statement payout_statements[PAYOUT_STATEMENTS];

enum moment { AT_P, AT_Y, AT_F, MOMENTS };

typedef void (*spoil_fn)(tl_book *book);

/* What the callbacks do. */
extern struct script {
    spoil_fn spoil[MOMENTS];   /* besides the right lines; or NULL */
    tl_status answer[MOMENTS]; /* TL_OK by itself */
    const char *remark, *sentence;
    tl_execute_result execute;
    tl_query_result query; /* PENDING: SUCCEEDED if the payload is "y", else FAILED */
    server *dies;          /* while money moves */
    atomic_uint sent;
} script;

/* All callbacks do the right thing, and the channel says this. */
void payout_say(tl_execute_result executed, tl_query_result queried);
tl_workflow payout_workflow(void);
/* The tables, a purse of 1000 for customer C1, and the workflow of this name. */
void payout_open(house *self);

/* A cmocka setup and teardown: a house on the shared server, with payouts. */
int payout_house(void **state);
int payout_house_close(void **state);

/* Of customer C1, with payload "y". */
tl_request payout_request(const char *serial, int64_t amount_minor);
/* remark: of the answer; NULL: any. */
void payout_expect(house *self, const tl_request *request, tl_status expected, const char *remark);
void payout_pay(house *self, const char *serial, int64_t amount_minor, tl_status expected);

/* "900 100" = balance and frozen of C1. */
void payout_purse(house *self, const char *expected);
/* "1P 1Y" = epoch and moment of each entry; "none". */
void payout_entries(house *self, const char *serial, const char *expected);
/* The thread's sentence has these words. */
void payout_said(const char *words);

/* Lines that are not to be written, and a word of the sentence that says so. */
typedef struct bad_lines {
    spoil_fn spoil;
    const char *words;
} bad_lines;

#define PAYOUT_BAD_LINES 12
extern const bad_lines payout_bad_lines[PAYOUT_BAD_LINES];
/* Some of them: found by the library, by the server, and by the server in a unique key. */
void spoil_statement(tl_book *book);
void spoil_by_null(tl_book *book);
void spoil_key(tl_book *book);
/* Freezes again, which may refuse. */
void spoil_by_refusing(tl_book *book);

#endif
