/* Every way of asking, cut at every packet. */
#include "operations.h"

#include "client/client.h"

#include <tradelock/callback.h>

#include "support/theme.h"

static void prepare_once(scene *s)
{
    s->lock = scene_lock(s, s->far, TL_LANE_SYNC, 0);
}

/* The shortest form of an ask. */
static void prepare_plain(scene *s)
{
    s->lock = scene_lock(s, s->far, TL_LANE_SYNC, SCENE_PLAIN);
}

static void prepare_exclusive(scene *s)
{
    s->lock = scene_lock(s, s->far, TL_LANE_SYNC, TL_ASK_EXCLUSIVE);
}

static void prepare_repeatable(scene *s)
{
    s->lock = scene_lock(s, s->far, TL_LANE_SYNC, TL_ASK_REPEATABLE);
}

/* The mutex was held before: the row is there and is taken over. */
static void prepare_repeated(scene *s)
{
    tl_lock *before = scene_granted(s, s->near, TL_LANE_SYNC, TL_ASK_REPEATABLE);
    tl_ending ending = scene_ending(TL_OUTCOME_SUCCESS);

    assert_int_equal(tl_lock_finish(before, &ending), TL_SUCCEEDED);
    tl_lock_free(before);
    prepare_repeatable(s);
}

static void prepare_standalone(scene *s)
{
    s->lock = scene_lock(s, s->far, TL_LANE_RETRY, TL_ASK_STANDALONE);
}

static void prepare_reclaim(scene *s)
{
    scene_past(s, TL_OUTCOME_FAILURE);
    s->lock = scene_lock(s, s->far, TL_LANE_SYNC, TL_ASK_RECLAIM);
}

static tl_status call_ask(scene *s)
{
    return tl_lock_ask(s->lock, 0);
}

static tl_status call_ask_with(scene *s)
{
    return tl_lock_ask_with(s->lock, scene_book, s, 0);
}

/* What refuses must say the same in the end, and write nothing. */
static void prepare_done(scene *s)
{
    scene_past(s, TL_OUTCOME_SUCCESS);
    s->lock = scene_lock(s, s->far, TL_LANE_SYNC, 0);
}

static void prepare_done_reclaim(scene *s)
{
    scene_past(s, TL_OUTCOME_SUCCESS);
    s->lock = scene_lock(s, s->far, TL_LANE_SYNC, TL_ASK_RECLAIM);
}

/* ----------------------------------------------------------------- with a book -- */

static void prepare_booked(scene *s)
{
    scene_open_account(s, 100);
    s->lock = scene_lock(s, s->far, TL_LANE_SYNC, SCENE_PRICED);
}

static void prepare_poor(scene *s)
{
    scene_open_account(s, SCENE_AMOUNT - 1);
    s->lock = scene_lock(s, s->far, TL_LANE_SYNC, SCENE_PRICED);
}

static void prepare_booked_reclaim(scene *s)
{
    scene_open_account(s, 100);
    scene_booked_past(s, TL_OUTCOME_FAILURE);
    s->lock = scene_lock(s, s->far, TL_LANE_SYNC, TL_ASK_RECLAIM | SCENE_PRICED);
}

static void prepare_poor_reclaim(scene *s)
{
    prepare_booked_reclaim(s);
    database_run(s->sql, "UPDATE account SET first = 9, balance = 9 WHERE cust_no = '%s'", s->cust);
}

static void prepare_booked_done(scene *s)
{
    scene_open_account(s, 100);
    scene_booked_past(s, TL_OUTCOME_SUCCESS);
    s->lock = scene_lock(s, s->far, TL_LANE_SYNC, SCENE_PRICED);
}

static tl_status call_ask_book(scene *s)
{
    return scene_ask_book(s->lock, s->far_books);
}

/* One line too many, which finds no row or is not declared. */
static tl_status call_ask_broken(scene *s, const char *line)
{
    tl_book *book = scene_pages(s->far_books, PAGES_ASK);
    tl_status status = TL_NO_MEMORY;

    if (book != NULL) {
        tl_book_line(book, line);
        status = tl_lock_ask_book(s->lock, book, 0);
    }
    tl_book_free(book);
    return status;
}

static tl_status call_ask_undeclared(scene *s)
{
    return call_ask_broken(s, "no such statement");
}

static tl_status call_ask_without_a_row(scene *s)
{
    return call_ask_broken(s, "strike out");
}

static const operation operations[] = {
    {"ask once", OPERATION_GRANTS | OPERATION_RIVAL, prepare_once, call_ask, TL_GRANTED, "P 1 1",
     "-", 1, 0, NULL},
    {"ask plain", OPERATION_GRANTS | OPERATION_RIVAL, prepare_plain, call_ask, TL_GRANTED, "P 1 1",
     "-", 1, 0, NULL},
    {"ask exclusive", OPERATION_GRANTS | OPERATION_RIVAL, prepare_exclusive, call_ask, TL_GRANTED,
     "P 1 1", "-", 1, 0, NULL},
    {"ask repeatable", OPERATION_GRANTS, prepare_repeatable, call_ask, TL_GRANTED, "P 1 1", "-", 1,
     0, NULL},
    {"ask repeatable again", OPERATION_GRANTS, prepare_repeated, call_ask, TL_GRANTED, "P 2 1", "-",
     1, 0, NULL},
    {"ask standalone", OPERATION_GRANTS, prepare_standalone, call_ask, TL_GRANTED, "-", "P 1 1", 1,
     0, NULL},
    {"reclaim", OPERATION_GRANTS, prepare_reclaim, call_ask, TL_GRANTED, "P 2 1", "-", 1, 0, NULL},
    {"ask with rows", OPERATION_GRANTS | OPERATION_RIVAL, prepare_once, call_ask_with, TL_GRANTED,
     "P 1 1", "-", 1, 1, NULL},
    {"reclaim with rows", OPERATION_GRANTS, prepare_reclaim, call_ask_with, TL_GRANTED, "P 2 1",
     "-", 1, 1, NULL},
    {"ask for what is done", 0, prepare_done, call_ask, TL_ALREADY_DONE, "Y 1 1", "-", 0, 0, NULL},
    {"ask with rows for what is done", 0, prepare_done, call_ask_with, TL_ALREADY_DONE, "Y 1 1",
     "-", 0, 0, NULL},
    {"reclaim with rows of what is done", 0, prepare_done_reclaim, call_ask_with, TL_ALREADY_DONE,
     "Y 1 1", "-", 0, 0, NULL},
    {"ask with a book", OPERATION_GRANTS | OPERATION_RIVAL, prepare_booked, call_ask_book,
     TL_GRANTED, "P 1 1", "-", 1, 1, NULL},
    {"ask with a book that refuses", 0, prepare_poor, call_ask_book, TL_REFUSED, "-", "-", 0, 0,
     NULL},
    {"ask with a book that finds no row", 0, prepare_booked, call_ask_without_a_row,
     TL_CALLBACK_FAILED, "-", "-", 0, 0, NULL},
    {"ask with a book that is not declared", 0, prepare_booked, call_ask_undeclared,
     TL_CALLBACK_FAILED, "-", "-", 0, 0, NULL},
    {"reclaim with a book", OPERATION_GRANTS, prepare_booked_reclaim, call_ask_book, TL_GRANTED,
     "P 2 1", "-", 1, 1, NULL},
    {"reclaim with a book that refuses", 0, prepare_poor_reclaim, call_ask_book, TL_REFUSED,
     "F 1 1", "-", 0, 0, NULL},
    {"ask with a book for what is done", 0, prepare_booked_done, call_ask_book, TL_ALREADY_DONE,
     "Y 1 1", "-", 0, 0, NULL},
};

const struct operations operations_asks = {"asks", operations,
                                           sizeof operations / sizeof *operations};
