/*
 * Business rows that are declared: the lines of a book, written with the step of its lock.  One
 * trade alone writes them in a callback transaction (with.c).  Trades that wait for each other
 * write in one transaction: their lock rows, each statement once for all of them, one commit.
 *
 * A trade at fault, whose line changed another number of rows than declared, is not judged here.
 * The transaction is rolled back, the trade goes on alone, where it gets exactly its own answer,
 * and the others are written again without it.
 *
 * One thing is remembered.  Where statements refused trades lately (a customer has too little
 * money), the leading ones run before the lock rows: those that may refuse and are declared before
 * all others.  Then nothing of a refused trade was written, and nothing need be rolled back.  Where
 * lock rows were refused lately (a trade was asked for twice), those run first, for the same
 * reason. The lines keep their declared order either way.
 *
 * Nobody keeps a connection while he waits for somebody else's row or table: a trade alone tries
 * again after a pause.  Only groups, and trades that have a permit of their queue, wait in the
 * server, and only at shared statements; they are few.
 *
 * Touches the lock's rows, and what the statements name.
 */
#include "trade_lock/with.h"

#include "base/error.h"
#include "books/write.h"
#include "store/bind.h"
#include "store/group.h"
#include "store/many.h"
#include "store/store.h"

#include <assert.h>
#include <string.h>

/* ------------------------------------------------------------------------- own values -- */

void with_book_own(struct with *w, const tl_ending *ending, uint32_t epoch)
{
    const tl_lock *lock = w->lock;
    const tl_view *v = &lock->view;
    /* A trade that is there has its amount, whatever who asks again says. */
    const int is_there = v->created_us != 0 && (ending != NULL || w->t->step.kind == STEP_RECLAIM);
    const char *currency = is_there ? v->currency : lock->said.currency;
    const int64_t amount_minor = is_there ? v->amount_minor : lock->said.amount_minor;
    const int has_ref =
        ending != NULL && ending->channel_ref != NULL && ending->channel_ref[0] != '\0';
    db_value *own = w->book->own;

    own[BOOK_OWN_serial_no] = db_text(lock->serial_no);
    own[BOOK_OWN_cust_no] = db_text(lock->cust_no);
    own[BOOK_OWN_op_code] = db_text(lock->op_code);
    own[BOOK_OWN_epoch] = db_int(epoch);
    own[BOOK_OWN_channel_key] = db_text(ending != NULL ? v->channel_key : lock->channel_key);
    own[BOOK_OWN_channel_ref] = db_text(has_ref          ? ending->channel_ref
                                        : ending != NULL ? v->channel_ref
                                                         : "");
    /* What was not said is not booked as nothing. */
    own[BOOK_OWN_amount_minor] = currency[0] != '\0' ? db_int(amount_minor) : db_null();
    own[BOOK_OWN_currency] = db_text(currency[0] != '\0' ? currency : NULL);
}

/* ------------------------------------------------------------------------------- alone -- */

/* The server's answer to a line.  An error that passes is tried again; one of the connection is the
 * engine's to judge; any other is the books'. */
static db_answer line_failed(struct with *w, db_answer answer, const book_line *line)
{
    const char *name = line->statement->name;

    if (answer != DB_ERROR)
        return answer;
    switch (db_error_kind_of(db_errno(w->connection))) {
    case DB_KIND_REPEAT:
        return with_stop(
            w, error_set(TL_TRY_AGAIN, "'%s' of the books: %s", name, db_error(w->connection)));
    case DB_KIND_GONE:
    case DB_KIND_OVERLOADED:
    case DB_KIND_READ_ONLY:
        return answer;
    default:
        return with_stop(w, error_set(TL_CALLBACK_FAILED,
                                      "the books are broken: '%s': the server says: %s (error %u)",
                                      name, db_error(w->connection), db_errno(w->connection)));
    }
}

/* The book is not to be written: its own first error says why. */
static tl_status not_written(const struct with *w)
{
    const tl_book *book = w->book;

    if (book->status == TL_REFUSED && w->t->task.asks)
        return error_set(TL_REFUSED, "%s", book->sentence);
    if (book->status == TL_NO_MEMORY)
        return error_set(TL_NO_MEMORY, "%s", book->sentence);
    return error_set(TL_CALLBACK_FAILED, "%s", book->sentence);
}

static db_answer refuse_lock(struct with *w)
{
    w->t->task.verdict = VERDICT_REFUSED;
    return DB_DONE;
}

/* What the lines' answer means, once the lock is granted or ended. */
static db_answer end_lines(struct with *w, db_answer answer, const book_fault *fault)
{
    step *s = &w->t->step;

    if (answer == DB_ERROR && fault->line != NULL)
        return line_failed(w, answer, fault->line);
    if (answer == DB_DONE && fault->line != NULL)
        return with_stop(w, book_fault_status(fault, w->t->task.asks));
    TRY(answer);
    TRY(store_read_granted(w->connection, &s, 1));
    return s->changed ? with_commit(w) : refuse_lock(w);
}

/* Whoever is refused a lock may ask again and again.  So after a refusal the next lines wait until
 * their lock is granted, and nobody meets rows that are only rolled back. */
static int go_together(const struct with *w)
{
    return w->book->status == TL_OK && !atomic_load(&w->book->books->lock_apart);
}

/* The lock's statement and the first lines are one round trip.  If the lock is refused, the
 * transaction is rolled back with those lines. */
db_answer with_book(struct with *w)
{
    static const tl_book no_lines = {.count = 0};
    const tl_book *first = go_together(w) ? w->book : &no_lines;
    const int waits = w->t->task.permitted;
    store_ahead ahead;
    book_fault fault;
    size_t written;
    db_answer answer;

    store_step_ahead(&w->t->step, &ahead);
    answer = book_write_first(w->connection, first, &ahead.request, waits, &written, &fault);
    store_step_taken(&w->t->step, &ahead, fault.led);
    atomic_store(&w->book->books->lock_apart, !fault.led || !w->t->step.changed);
    if (!fault.led || (answer != DB_DONE && answer != DB_ERROR))
        return answer;
    if (!w->t->step.changed)
        return refuse_lock(w);
    if (w->book->status != TL_OK)
        return with_stop(w, not_written(w));
    if (answer == DB_DONE && fault.line == NULL)
        answer = book_write(w->connection, w->book, written, waits, &fault);
    return end_lines(w, answer, &fault);
}

/* ----------------------------------------------------------------------------- a group -- */

/* One transaction of a group.  The arrays have a place for each task that is still in it. */
struct round {
    db *connection;
    task **tasks;
    size_t count;
    step *steps[STORE_GROUP_MAX];
    tl_book *books[STORE_GROUP_MAX];
    size_t asked[STORE_GROUP_MAX]; /* of each step that was run: whose it is */
    size_t asked_count;
    book_group group;
    int refusing_first; /* the leading statements that may refuse run before the lock rows */
    int undo;           /* something was written that is not to be committed */
};

static struct with *with_of(const task *t)
{
    return t->context;
}

/* For the groups to come; this one turns only away from it, so that it comes to an end. */
static void remember(struct round *r, int refusing_first)
{
    atomic_store(&r->books[0]->books->refusing_first, refusing_first);
    r->refusing_first = r->refusing_first && refusing_first;
}

static int takes_part(const struct round *r, size_t i)
{
    return r->group.states[i] == BOOK_RIGHT;
}

/* The lock rows of all that take part. */
static db_answer write_lock_rows(struct round *r)
{
    db_answer answer;

    r->asked_count = 0;
    for (size_t i = 0; i < r->count; i++) {
        if (!takes_part(r, i))
            continue;
        r->steps[r->asked_count] = &with_of(r->tasks[i])->t->step;
        r->asked[r->asked_count++] = i;
    }
    if (r->asked_count == 0)
        return DB_DONE;
    answer = store_group(r->connection, r->steps, r->asked_count);
    for (size_t i = 0; i < r->asked_count && answer == DB_DONE; i++) {
        if (r->steps[i]->changed)
            continue;
        r->tasks[r->asked[i]]->verdict = VERDICT_REFUSED;
        book_group_leave_out(&r->group, r->asked[i]);
    }
    return answer;
}

static db_answer check_lines(struct round *r)
{
    db_answer answer = book_group_check(&r->group);

    for (size_t i = 0; i < r->count && answer == DB_DONE; i++)
        r->undo |= r->group.states[i] == BOOK_AT_FAULT;
    return answer;
}

static int is_given_up(const struct round *r)
{
    return r->undo || r->group.blocked || r->group.unexplained;
}

/* The lock rows of those that were not refused.  A lock row that is refused here comes too late:
 * its lines are written. */
static db_answer write_lock_rows_last(struct round *r)
{
    db_answer answer = write_lock_rows(r);

    for (size_t i = 0; i < r->asked_count && answer == DB_DONE; i++)
        r->undo |= !r->steps[i]->changed && r->books[r->asked[i]]->count > 0;
    if (answer == DB_DONE && r->undo)
        remember(r, 0);
    return answer;
}

static db_answer write_refusing_first(struct round *r)
{
    TRY(book_group_write(&r->group, BOOK_LEADING_STATEMENTS));
    if (!r->group.blocked && !book_group_sum_is_right(&r->group))
        TRY(check_lines(r));
    if (!is_given_up(r))
        TRY(write_lock_rows_last(r));
    if (!is_given_up(r))
        TRY(book_group_write(&r->group, BOOK_OTHER_STATEMENTS));
    return DB_DONE;
}

static db_answer write_rows(struct round *r)
{
    if (r->refusing_first)
        return write_refusing_first(r);
    TRY(write_lock_rows(r));
    return book_group_write(&r->group, BOOK_ALL_STATEMENTS);
}

static db_answer commit(struct round *r)
{
    int committed;
    db_answer answer = book_group_commit(&r->group, &committed);
    const int sent = committed || answer == DB_ERROR || answer == DB_UNANSWERED;

    for (size_t i = 0; i < r->count && sent; i++)
        if (takes_part(r, i))
            with_commit_sent(with_of(r->tasks[i]));
    if (answer != DB_DONE || committed)
        return answer;
    answer = check_lines(r);
    r->undo = 1;
    return answer;
}

static db_answer write_and_commit(struct round *r)
{
    db_answer answer = write_rows(r);

    return answer == DB_DONE && !is_given_up(r) ? commit(r) : answer;
}

/* Who was at fault goes on alone; the others stay for the next round, if this one is undone. */
static void send_back_faults(struct round *r)
{
    size_t kept = 0;

    for (size_t i = 0; i < r->count; i++) {
        if (r->group.states[i] == BOOK_UNCHANGED || r->group.states[i] == BOOK_AT_FAULT)
            task_send_back(r->tasks[i]);
        else
            r->tasks[kept++] = r->tasks[i];
    }
    r->count = kept;
}

static void begin_round(struct round *r)
{
    for (size_t i = 0; i < r->count; i++) {
        struct with *w = with_of(r->tasks[i]);

        w->connection = r->connection;
        with_lost_before_commit(w);
        w->t->task.doubt.rows = ROWS_NOT_SENT;
        w->t->task.verdict = VERDICT_APPLIED;
        r->books[i] = w->book;
    }
    r->undo = 0;
    r->asked_count = 0;
}

/* What a group cannot explain is split by the engine until the trade at fault stands alone. */
static db_answer undo(struct round *r, db_answer answer)
{
    answer = answer == DB_ERROR ? db_undo(r->connection) : db_rollback(r->connection);
    return answer == DB_DONE && r->group.unexplained ? DB_ERROR : answer;
}

static db_answer run_round(struct round *r, int *again)
{
    db_answer answer;

    *again = 0;
    begin_round(r);
    answer = book_group_begin(&r->group, r->connection, r->books, r->count);
    if (answer == DB_DONE)
        answer = write_and_commit(r);
    if (answer == DB_DONE && r->group.refused)
        remember(r, 1);
    *again = answer == DB_DONE && (r->undo || r->group.blocked) && !r->group.unexplained;
    if (answer == DB_ERROR || (answer == DB_DONE && is_given_up(r)))
        answer = undo(r, answer);
    if (answer == DB_DONE)
        send_back_faults(r);
    book_group_end(&r->group);
    return answer;
}

static db_answer run_group(task **tasks, size_t count, db *connection)
{
    task *left[STORE_GROUP_MAX];
    struct round r = {.connection = connection, .tasks = left, .count = count};
    db_answer answer = DB_DONE;
    int again = 1;

    r.refusing_first = atomic_load(&with_of(tasks[0])->book->books->refusing_first);
    assert(count <= STORE_GROUP_MAX);
    memcpy(left, tasks, count * sizeof *left);
    while (again && answer == DB_DONE && r.count > 0)
        answer = run_round(&r, &again);
    return answer;
}

/* Each row that a line is to change is noted, and a note is added to all those before it. */
#define NOTE_BYTES 512

static size_t size_of(const task *t)
{
    const tl_book *book = with_of(t)->book;
    size_t rows = 0;

    for (size_t i = 0; i < book->count; i++)
        rows += book->lines[i].statement->rows;
    return step_task_size(t) + book->bytes + rows * NOTE_BYTES;
}

#define BATCH_KIND                                                                                 \
    {.pool = POOL_BOOKS,                                                                           \
     .size = size_of,                                                                              \
     .order = step_task_order,                                                                     \
     .follow = step_task_follow,                                                                   \
     .run = run_group}

/* Asks and endings go apart: together each group would run the statements of both. */
const batch_kind *with_book_batch(const task *t)
{
    static const batch_kind asks = BATCH_KIND, endings = BATCH_KIND, both_rows = BATCH_KIND;
    const struct with *w = with_of(t);

    if (w->book == NULL || w->book->status != TL_OK)
        return NULL;
    switch (step_shares(&w->t->step)) {
    case SHARE_ROWS:
        return t->asks ? &asks : &endings;
    case SHARE_ENDINGS:
        return &both_rows;
    default:
        return NULL;
    }
}

int with_book_waits(const tl_book *book)
{
    for (size_t i = 0; i < book->count; i++)
        if (book->lines[i].statement->shared)
            return 1;
    return 0;
}

group_queue *with_book_queue(const tl_book *book)
{
    return with_book_waits(book) ? book->books->waiting_groups : book->books->groups;
}
