/* An ask or an ending with business rows, as the files of this room share it: rows that a callback
 * writes (with.c), or the lines of a book (books.c). */
#ifndef TL_TRADE_LOCK_WITH_H
#define TL_TRADE_LOCK_WITH_H

#include "trade_lock/lock.h"

#include "base/error.h"
#include "books/books.h"

#include <tradelock/callback.h>

struct with {
    tl_lock *lock;
    step_task *t;
    /* One of the two. */
    tl_tx_fn fn;
    tl_book *book;
    void *context; /* of fn */
    db *connection;
    int sent;       /* some try sent a commit with the business rows */
    int deadlocked; /* an earlier try met a deadlock, as its callback said */
    /* If a step in doubt proves not to have happened: its status, and the sentence. */
    tl_status if_undone; /* TL_TRY_AGAIN: it is tried again */
    char sentence[ERROR_MAX];
    /* Why the last try stopped; "": it did not.  The thread may carry out others before it answers
     * for this one. */
    char said[ERROR_MAX];
};

/* Ends the try: nothing was written, and the transaction is rolled back. */
db_answer with_stop(struct with *w, tl_status status);
/* If an answer is lost from here on and the step did not happen, it is tried again. */
void with_lost_before_commit(struct with *w);
/* The commit of the transaction is sent now. */
void with_commit_sent(struct with *w);
/* Commits the callback transaction. */
db_answer with_commit(struct with *w);

/* books.c: the lock's statement, the book's lines and the commit. */
db_answer with_book(struct with *w);
/* Whether it has a line of a shared statement, which may wait in the server: nobody else is to wait
 * with it. */
int with_book_waits(const tl_book *book);
/* In which its task meets others. */
group_queue *with_book_queue(const tl_book *book);
/* The batch kind of a task with a book; NULL: it goes alone. */
const batch_kind *with_book_batch(const task *t);
/* Before a try: the values that the trade itself knows.  ending: NULL for an ask. */
void with_book_own(struct with *w, const tl_ending *ending, uint32_t epoch);

/* An ask and an ending with a book in two halves each, for those that are carried out together
 * (async).  with_take_*() check the call, and take the book until with_give_back(). */
tl_status with_take_ask(const tl_lock *lock, tl_book *book);
tl_status with_take_finish(const tl_lock *lock, const tl_ending *ending, tl_book *book);
void with_give_back(tl_book *book);
/* TL_OK: w's task is to be run, and then with_ask_over() says what its verdict means.  Else
 * with_ask_alone() asks again as a call of its own, and finds the words. */
tl_status with_ask_begin(struct with *w, tl_lock *lock, step_task *t, tl_book *book);
tl_status with_ask_over(struct with *w, int64_t before_ms);
tl_status with_ask_alone(tl_lock *lock, tl_book *book);
/* Needs: an arming in doubt was settled. */
void with_finish_begin(struct with *w, tl_lock *lock, const tl_ending *ending, step_task *t,
                       tl_book *book);
tl_status with_finish_over(struct with *w, const tl_ending *ending);

#endif
