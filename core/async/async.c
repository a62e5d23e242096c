/*
 * Carries out asks and endings that were submitted, and completes them later.
 *
 * There are three threads, the carriers: for asks, for endings, and for books with a line of a
 * shared statement.  The last may wait in the server, and nobody else is to wait with them.  Each
 * takes everything that was submitted while it was busy, carries it out as one batch
 * (core/transition), and completes it; while one waits for the disk the others work.
 *
 * What met a row that somebody has is tried again after a pause, alone, while its carrier serves
 * others.  What cannot share a statement, and is no step, runs as a blocking call on the carrier.
 *
 * A layer puts completions of its own into the same queue (tl_posting).
 */
#include "trade_lock/with.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "base/thread_context.h"

#include <tradelock/layer.h>

#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TAKEN_AT_ONCE 256
/* So many of those that are tried again go between two batches.  Each is a transaction. */
#define AGAIN_AT_ONCE 8

struct submitted {
    struct submitted *next;
    tl_lock *lock;
    const tl_ending *ending;     /* NULL: an ask */
    const tl_findings *findings; /* of an ending; or NULL */
    tl_book *book;               /* or NULL */
    tl_done_fn done;
    void *context;
    step_task t;
    struct with with; /* with a book */
    int64_t since_us, before_ms;
    int64_t deadline_ms, pause_ms, due_ms;              /* while it is tried again */
    char said[ERROR_MAX];                               /* by its last try */
    int grouped;                                        /* t was carried out with the batch */
    char thread_no[TL_UUID_TEXT], log_no[TL_UUID_TEXT]; /* who submitted, on what */
    tl_status status;
};

struct list {
    struct submitted *first, *last;
};

struct carrier {
    struct async *of;
    pthread_t thread;
    pthread_cond_t wake;
    struct list waiting; /* under the mutex */
    struct list again;   /* its own, by due_ms */
};

enum { FOR_ASKS, FOR_ENDINGS, FOR_SHARED, CARRIERS };

struct async {
    /* Fixed after start. */
    unsigned generation;
    int fd;
    task_engine *engine;
    int64_t budget_ms;
    struct carrier carriers[CARRIERS];
    unsigned started;

    pthread_mutex_t done_mutex; /* one callback at a time */

    /* Under the mutex. */
    pthread_mutex_t mutex;
    struct list completed;
    size_t under_way; /* submitted, and not completed */
    int stopping;
};

static void append(struct list *list, struct submitted *item)
{
    item->next = NULL;
    if (list->last != NULL)
        list->last->next = item;
    else
        list->first = item;
    list->last = item;
}

static struct submitted *take_first(struct list *list)
{
    struct submitted *item = list->first;

    if (item == NULL)
        return NULL;
    list->first = item->next;
    if (list->first == NULL)
        list->last = NULL;
    return item;
}

static void wake_all(struct async *a)
{
    for (size_t i = 0; i < CARRIERS; i++)
        pthread_cond_signal(&a->carriers[i].wake);
}

/* --------------------------------------------------------------- carrying out -- */

static void begin_ending(struct submitted *s)
{
    int armed;

    /* This waits only if an arming is in doubt. */
    s->status = arm_settle(s->lock, &armed);
    s->grouped = s->status == TL_OK;
    if (s->grouped && s->book != NULL)
        with_finish_begin(&s->with, s->lock, s->ending, &s->t, s->book);
    else if (s->grouped)
        ending_to_step(s->lock, s->ending, s->findings, &s->t);
    if (s->grouped && s->book == NULL)
        (void)step_task_of(&s->t);
}

static void begin_ask(struct submitted *s)
{
    tl_lock *lock = s->lock;

    s->status = s->book != NULL ? with_ask_begin(&s->with, lock, &s->t, s->book)
                                : ask_begin(lock, &s->t, lock->base.state != LOCK_ASK_UNKNOWN);
    s->grouped = s->status == TL_OK;
    if (s->grouped && s->book == NULL)
        (void)step_task_of(&s->t);
}

/* Prepares the step, if it can share a statement.  An ask that is refused by what this process
 * knows shares none: conclude() reads what its row says. */
static void begin(struct submitted *s)
{
    tl_lock *lock = s->lock;

    s->grouped = 0;
    s->before_ms = clock_boottime_ms();
    memcpy(lock->base.thread_no, s->thread_no, sizeof lock->base.thread_no);
    if (s->ending != NULL)
        begin_ending(s);
    else if (!ask_is_claim(lock) && !ask_is_paused(lock))
        begin_ask(s);
    /* The row names the thread that asked, not the one that waits for the server. */
    memcpy(lock->base.thread_no, s->thread_no, sizeof lock->base.thread_no);
    memcpy(lock->base.log_no, s->log_no, sizeof lock->base.log_no);
    s->t.step.log_no = lock->base.log_no[0] != '\0' ? lock->base.log_no : NULL;
}

static tl_status conclude_ask(struct submitted *s)
{
    int again = 0;
    tl_status status;

    if (s->book != NULL)
        return s->grouped ? with_ask_over(&s->with, s->before_ms)
                          : with_ask_alone(s->lock, s->book);
    if (!s->grouped)
        return ask_once(s->lock);
    status = ask_verdict(s->lock, &s->t, s->before_ms, &again);
    return again ? ask_once(s->lock) : ask_over(s->lock, status);
}

static tl_status conclude_ending(struct submitted *s)
{
    if (!s->grouped)
        return s->status;
    return s->book != NULL ? with_finish_over(&s->with, s->ending)
                           : finish_verdict(s->lock, s->ending, &s->t);
}

static void conclude_work(struct submitted *s)
{
    if (s->ending != NULL) {
        s->status = conclude_ending(s);
        return;
    }
    s->status = conclude_ask(s);
    ask_count(s->lock, s->status, s->since_us);
}

/* Concludes the call under the log UUID of the thread that submitted it. */
static void conclude(struct submitted *s)
{
    thread_context_work(s->log_no);
    conclude_work(s);
    thread_context_work("");
}

static void put_completed(struct async *a, struct submitted *s)
{
    uint64_t one = 1;

    pthread_mutex_lock(&a->mutex);
    append(&a->completed, s);
    /* Written under the mutex, so that a reader that empties the list may also reset the
     * counter. */
    (void)!write(a->fd, &one, sizeof one); /* a full counter is readable already */
    pthread_mutex_unlock(&a->mutex);
}

/* One is completed.  Carriers that are to end wait for the last. */
static void leave(struct async *a)
{
    pthread_mutex_lock(&a->mutex);
    if (--a->under_way == 0 && a->stopping)
        wake_all(a);
    pthread_mutex_unlock(&a->mutex);
}

/* Hands the completion over; the item is not ours afterwards. */
static void complete(struct async *a, struct submitted *s)
{
    if (s->book != NULL)
        with_give_back(s->book);
    if (s->done != NULL) {
        thread_context_work(s->log_no);
        pthread_mutex_lock(&a->done_mutex);
        atomic_store(&s->lock->submitted, 0);
        s->done(s->context, s->lock, s->status);
        pthread_mutex_unlock(&a->done_mutex);
        thread_context_work("");
        memory_free(s);
    } else {
        put_completed(a, s);
    }
    leave(a);
}

static void conclude_and_complete(struct async *a, struct submitted *s)
{
    conclude(s);
    complete(a, s);
}

/* Whether begin() may wait for the database. */
static int begin_waits(const struct submitted *s)
{
    return s->ending != NULL ? s->lock->base.state == LOCK_ARM_UNKNOWN : ask_begin_waits(s->lock);
}

static void put_again(struct carrier *c, struct submitted *s)
{
    struct submitted **link = &c->again.first, *before = NULL;

    while (*link != NULL && (*link)->due_ms <= s->due_ms) {
        before = *link;
        link = &before->next;
    }
    s->next = *link;
    *link = s;
    if (s->next == NULL)
        c->again.last = s;
}

/* Goes on with a step that is not over.  Its last try's words stay with it. */
static void go_on(struct carrier *c, struct submitted *s)
{
    int64_t wait_ms;

    error_clear();
    if (s->said[0] != '\0')
        (void)error_set(s->t.task.status, "%s", s->said);
    else if (s->t.task.stage == TASK_AGAIN)
        (void)error_set(s->t.task.status, "'%s' could not be done yet", s->t.task.name);
    wait_ms = task_go_on(c->of->engine, &s->t.task, &s->pause_ms, s->deadline_ms);
    if (wait_ms == 0) {
        conclude_and_complete(c->of, s);
        return;
    }
    text_copy(s->said, sizeof s->said, tl_error_message());
    s->due_ms = clock_deadline(wait_ms);
    put_again(c, s);
}

/* When the next one's pause is over. */
static int64_t again_at_ms(const struct carrier *c)
{
    return c->again.first != NULL ? c->again.first->due_ms : CLOCK_NEVER;
}

/* Those whose pause is over.  Who has no time left is not tried. */
static void run_again(struct carrier *c)
{
    for (unsigned tried = 0; tried < AGAIN_AT_ONCE && clock_left_ms(again_at_ms(c)) == 0;) {
        struct submitted *s = take_first(&c->again);

        tried += clock_left_ms(s->deadline_ms) > 0;
        go_on(c, s);
    }
}

static int64_t deadline_of(const struct async *a, const struct submitted *s)
{
    const int64_t own_ms = s->lock->submit_ms;

    return clock_deadline(own_ms > 0 ? own_ms : a->budget_ms);
}

/* What has its verdict is completed before anything waits for the others, and what is a call of its
 * own comes last. */
static void run_batch(struct carrier *c, struct submitted **taken, size_t count)
{
    struct async *a = c->of;
    task *together[TAKEN_AT_ONCE];
    size_t grouped = 0, left = 0, alone = 0;
    int64_t deadline_ms = CLOCK_NEVER; /* of the first one whose time is over */

    if (count == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        begin(taken[i]);
        taken[i]->deadline_ms = deadline_of(a, taken[i]);
        if (!taken[i]->grouped)
            continue;
        together[grouped++] = &taken[i]->t.task;
        if (taken[i]->deadline_ms < deadline_ms)
            deadline_ms = taken[i]->deadline_ms;
    }
    task_try_all(a->engine, together, grouped, deadline_ms);
    for (size_t i = 0; i < count; i++) {
        if (taken[i]->grouped && task_is_over(&taken[i]->t.task))
            conclude_and_complete(a, taken[i]);
        else
            taken[left++] = taken[i];
    }
    for (size_t i = 0; i < left; i++) {
        if (!taken[i]->grouped) {
            taken[alone++] = taken[i];
            continue;
        }
        go_on(c, taken[i]);
    }
    for (size_t i = 0; i < alone; i++)
        conclude_and_complete(a, taken[i]);
}

/* What waits before it begins, for instance for its channel's limit, goes out after the others. */
static void run_taken(struct carrier *c, struct submitted **taken, size_t count)
{
    struct submitted *later[TAKEN_AT_ONCE];
    size_t at_once = 0, waiting = 0;

    for (size_t i = 0; i < count; i++) {
        if (begin_waits(taken[i]))
            later[waiting++] = taken[i];
        else
            taken[at_once++] = taken[i];
    }
    run_batch(c, taken, at_once);
    run_batch(c, later, waiting);
}

/* Needs: the mutex held. */
static size_t take(struct carrier *c, struct submitted **taken)
{
    size_t count = 0;

    while (count < TAKEN_AT_ONCE && c->waiting.first != NULL)
        taken[count++] = take_first(&c->waiting);
    return count;
}

static void *run(void *argument)
{
    struct carrier *c = argument;
    struct async *a = c->of;
    struct submitted *taken[TAKEN_AT_ONCE];

    pthread_mutex_lock(&a->mutex);
    for (;;) {
        const int64_t again_ms = again_at_ms(c);
        size_t count = take(c, taken);

        if (count > 0 || clock_left_ms(again_ms) == 0) {
            pthread_mutex_unlock(&a->mutex);
            run_taken(c, taken, count);
            run_again(c);
            pthread_mutex_lock(&a->mutex);
        } else if (a->stopping && a->under_way == 0) {
            break;
        } else {
            (void)clock_wait(&c->wake, &a->mutex, again_ms);
        }
    }
    pthread_mutex_unlock(&a->mutex);
    return NULL;
}

/* ------------------------------------------------------------ making and ending -- */

static void free_list(struct list *list)
{
    struct submitted *item;

    while ((item = take_first(list)) != NULL)
        memory_free(item);
}

static void end_carriers(struct async *a)
{
    pthread_mutex_lock(&a->mutex);
    a->stopping = 1;
    wake_all(a);
    pthread_mutex_unlock(&a->mutex);
    for (unsigned i = 0; i < a->started; i++)
        pthread_join(a->carriers[i].thread, NULL);
    for (size_t i = 0; i < CARRIERS; i++)
        pthread_cond_destroy(&a->carriers[i].wake);
    pthread_mutex_destroy(&a->mutex);
    pthread_mutex_destroy(&a->done_mutex);
}

/* Everything submitted is carried out first; completions that nobody took are dropped. */
static void async_free(struct async *a)
{
    if (a->generation == process_generation())
        end_carriers(a);
    for (size_t i = 0; i < CARRIERS; i++) {
        free_list(&a->carriers[i].waiting);
        free_list(&a->carriers[i].again);
    }
    free_list(&a->completed);
    if (a->fd >= 0)
        close(a->fd);
    memory_free(a);
}

/* 0, or there is no thread for one of them. */
static int start_carriers(struct async *a)
{
    while (a->started < CARRIERS) {
        struct carrier *c = &a->carriers[a->started];

        c->of = a;
        if (thread_context_start(&c->thread, run, c) != 0)
            return -1;
        a->started++;
    }
    return 0;
}

static struct async *async_new(tl_client *client)
{
    struct async *a = memory_new(sizeof *a);

    if (a == NULL)
        return NULL;
    a->generation = client->generation;
    a->engine = client->engine;
    a->budget_ms = client->config.commit_ms;
    a->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&a->mutex, NULL);
    pthread_mutex_init(&a->done_mutex, NULL);
    for (size_t i = 0; i < CARRIERS; i++)
        clock_condition_init(&a->carriers[i].wake);
    if (a->fd >= 0 && start_carriers(a) == 0)
        return a;
    async_free(a);
    return NULL;
}

static struct async *async_of(tl_client *client)
{
    struct async *a;

    pthread_mutex_lock(&client->async_mutex);
    if (client->async == NULL) {
        client->async = async_new(client);
        client->async_free = async_free;
    }
    a = client->async;
    pthread_mutex_unlock(&client->async_mutex);
    return a;
}

/* ------------------------------------------------------------------ submitting -- */

struct call {
    tl_lock *lock;
    const tl_ending *ending;
    const tl_findings *findings;
    tl_book *book;
};

/* Whether the same piece of work tries this call anew: the row names the thread that began it,
 * whichever thread tries it now. */
static int is_repeat(const struct call *call)
{
    const tl_lock *lock = call->lock;

    if (lock->base.log_no[0] == '\0' || strcmp(lock->base.log_no, tl_log_uuid()) != 0)
        return 0;
    return call->ending != NULL ? lock->ended.status != '\0' : lock->base.state == LOCK_ASK_UNKNOWN;
}

static unsigned carrier_of(const struct call *call)
{
    if (call->book != NULL && with_book_waits(call->book))
        return FOR_SHARED;
    return call->ending != NULL ? FOR_ENDINGS : FOR_ASKS;
}

/* Whether the carrier has it; once the client is being closed nothing more comes, or a completion
 * that always submits again would keep it open for ever. */
static int hand_over(struct async *a, struct carrier *c, struct submitted *s)
{
    int stopping;

    pthread_mutex_lock(&a->mutex);
    stopping = a->stopping;
    if (!stopping) {
        atomic_store(&s->lock->submitted, 1);
        append(&c->waiting, s);
        a->under_way++;
        pthread_cond_signal(&c->wake);
    }
    pthread_mutex_unlock(&a->mutex);
    return !stopping;
}

static tl_status not_submitted(const struct call *call, struct submitted *s)
{
    if (call->book != NULL)
        with_give_back(call->book);
    if (s == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for an asynchronous call");
    memory_free(s);
    return error_set(TL_WRONG_STATE, "the client is being closed");
}

static tl_status submit(const struct call *call, tl_done_fn done, void *context)
{
    tl_lock *lock = call->lock;
    struct async *a = async_of(lock->base.client);
    struct submitted *s = a != NULL ? memory_new(sizeof *s) : NULL;

    if (s == NULL)
        return not_submitted(call, s);
    s->lock = lock;
    s->ending = call->ending;
    s->findings = call->findings;
    s->book = call->book;
    s->done = done;
    s->context = context;
    s->since_us = clock_boottime_us();
    text_copy(s->thread_no, sizeof s->thread_no,
              is_repeat(call) ? lock->base.thread_no : tl_thread_uuid());
    text_copy(s->log_no, sizeof s->log_no, tl_log_uuid());
    return hand_over(a, &a->carriers[carrier_of(call)], s) ? TL_OK : not_submitted(call, s);
}

tl_status tl_lock_ask_submit(tl_lock *lock, tl_done_fn done, void *context)
{
    error_clear();
    TRY(ask_check(lock));
    client_add(&lock->base.client->counters.asks, 1);
    return submit(&(struct call){.lock = lock}, done, context);
}

tl_status tl_lock_ask_book_submit(tl_lock *lock, tl_book *book, tl_done_fn done, void *context)
{
    error_clear();
    TRY(ask_check(lock));
    TRY(with_take_ask(lock, book));
    client_add(&lock->base.client->counters.asks, 1);
    return submit(&(struct call){.lock = lock, .book = book}, done, context);
}

tl_status tl_lock_finish_submit(tl_lock *lock, const tl_ending *ending, tl_done_fn done,
                                void *context)
{
    error_clear();
    TRY(lock_check_held(lock));
    TRY(ending_check(lock, ending));
    return submit(&(struct call){.lock = lock, .ending = ending}, done, context);
}

tl_status tl_lock_finish_book_submit(tl_lock *lock, const tl_ending *ending, tl_book *book,
                                     tl_done_fn done, void *context)
{
    error_clear();
    TRY(lock_check_held(lock));
    TRY(with_take_finish(lock, ending, book));
    return submit(&(struct call){.lock = lock, .ending = ending, .book = book}, done, context);
}

tl_status tl_lock_put_back_submit(tl_lock *lock, const tl_ending *ending,
                                  const tl_findings *findings, tl_done_fn done, void *context)
{
    error_clear();
    TRY(lock_check_held(lock));
    TRY(ending_check(lock, ending));
    if (ending_is_final(lock, ending))
        return error_set(TL_INVALID, "a final ending does not put the trade back");
    return submit(&(struct call){.lock = lock, .ending = ending, .findings = findings}, done,
                  context);
}

/* ------------------------------------------------------------ completions of a layer -- */

/* Its item is made beforehand, so that there is room for it. */
struct tl_posting {
    struct submitted item; /* first: this is what is freed */
    struct async *of;
};

tl_status tl_posting_new(tl_posting **out, tl_client *client, void *context)
{
    tl_posting *posting = NULL;
    struct async *a;

    error_clear();
    TRY(out != NULL ? client_check(client) : error_set(TL_INVALID, "out is NULL"));
    a = async_of(client);
    if (a != NULL)
        posting = memory_new(sizeof *posting);
    if (posting == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for a completion");
    posting->item.context = context;
    posting->of = a;
    *out = posting;
    return TL_OK;
}

void tl_posting_complete(tl_posting *posting, tl_status status)
{
    struct async *a;

    if (posting == NULL)
        return;
    a = posting->of;
    if (a->generation != process_generation()) {
        memory_free(posting);
        return;
    }
    posting->item.status = status;
    put_completed(a, &posting->item);
}

void tl_posting_free(tl_posting *posting)
{
    memory_free(posting);
}

int tl_client_completed_fd(tl_client *client)
{
    struct async *a = client_check(client) == TL_OK ? async_of(client) : NULL;

    return a != NULL ? a->fd : -1;
}

size_t tl_client_completed(tl_client *client, tl_completion *completions, size_t max)
{
    struct async *a = client_check(client) == TL_OK ? async_of(client) : NULL;
    size_t count = 0;
    uint64_t number;

    if (a == NULL || completions == NULL)
        return 0;
    pthread_mutex_lock(&a->mutex);
    while (count < max && a->completed.first != NULL) {
        struct submitted *s = take_first(&a->completed);

        if (s->lock != NULL)
            atomic_store(&s->lock->submitted, 0);
        completions[count++] = (tl_completion){s->lock, s->context, s->status};
        memory_free(s);
    }
    /* Readable means that completions wait: an emptied list resets the counter. */
    if (a->completed.first == NULL)
        /* It never blocks. NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection) */
        while (read(a->fd, &number, sizeof number) > 0)
            ;
    pthread_mutex_unlock(&a->mutex);
    return count;
}
