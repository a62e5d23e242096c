/*
 * Carries out asks and endings that were submitted, and completes them later.
 *
 * One thread takes everything that was submitted while it was busy, carries it out as one batch
 * (core/transition), and completes it.  What cannot share a statement, and what a batch leaves
 * open, runs as a blocking call on the same thread.
 */
#include "trade_lock/lock.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "base/thread_context.h"

#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TAKEN_AT_ONCE 256

struct submitted {
    struct submitted *next;
    tl_lock *lock;
    const tl_ending *ending; /* NULL: an ask */
    tl_done_fn done;
    void *context;
    step_task t;
    int64_t since_us, before_ms;
    int grouped;                                        /* t was carried out with the batch */
    char thread_no[TL_UUID_TEXT], log_no[TL_UUID_TEXT]; /* who submitted, on what */
    tl_status status;
};

struct list {
    struct submitted *first, *last;
};

struct async {
    /* Fixed after start. */
    unsigned generation;
    pthread_t thread;
    int fd;
    task_engine *engine;
    int64_t budget_ms;

    /* Under the mutex. */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct list waiting, completed;
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

/* --------------------------------------------------------------- carrying out -- */

/* Prepares the step, if it can share a statement. */
static void begin(struct submitted *s)
{
    tl_lock *lock = s->lock;

    s->grouped = 0;
    s->before_ms = clock_boottime_ms();
    if (s->ending != NULL) {
        int armed;

        /* This waits only if an arming is in doubt. */
        s->status = arm_settle(lock, &armed);
        s->grouped = s->status == TL_OK;
        if (s->grouped)
            ending_to_step(lock, s->ending, NULL, &s->t);
    } else if (!ask_is_claim(lock)) {
        s->status = ask_begin(lock, &s->t, lock->base.state != LOCK_ASK_UNKNOWN);
        s->grouped = s->status == TL_OK;
    }
    /* The row names the thread that asked, not the one that waits for the server. */
    memcpy(lock->base.thread_no, s->thread_no, sizeof lock->base.thread_no);
    memcpy(lock->base.log_no, s->log_no, sizeof lock->base.log_no);
    s->t.step.log_no = lock->base.log_no[0] != '\0' ? lock->base.log_no : NULL;
}

static void conclude_work(struct submitted *s)
{
    int again = 0;

    if (s->ending != NULL) {
        if (s->grouped)
            s->status = finish_verdict(s->lock, s->ending, &s->t);
        return;
    }
    if (s->grouped) {
        s->status = ask_verdict(s->lock, &s->t, s->before_ms, &again);
        s->status = again ? ask_once(s->lock) : ask_over(s->lock, s->status);
    } else {
        s->status = ask_once(s->lock);
    }
    ask_count(s->lock, s->status, s->since_us);
}

/* Concludes the call under the log UUID of the thread that submitted it. */
static void conclude(struct submitted *s)
{
    thread_context_work(s->log_no);
    conclude_work(s);
    thread_context_work("");
}

/* Hands the completion over; the item is not ours afterwards. */
static void complete(struct async *a, struct submitted *s)
{
    uint64_t one = 1;

    if (s->done != NULL) {
        atomic_store(&s->lock->submitted, 0);
        thread_context_work(s->log_no);
        s->done(s->context, s->lock, s->status);
        thread_context_work("");
        memory_free(s);
        return;
    }
    pthread_mutex_lock(&a->mutex);
    append(&a->completed, s);
    /* Written under the mutex, so that a reader that empties the list may also reset the
     * counter. */
    (void)!write(a->fd, &one, sizeof one); /* a full counter is readable already */
    pthread_mutex_unlock(&a->mutex);
}

static void run_taken(struct async *a, struct submitted **taken, size_t count)
{
    task *together[TAKEN_AT_ONCE];
    size_t grouped = 0;

    for (size_t i = 0; i < count; i++) {
        begin(taken[i]);
        if (taken[i]->grouped)
            together[grouped++] = step_task_of(&taken[i]->t);
    }
    task_run_all(a->engine, together, grouped, a->budget_ms);
    for (size_t i = 0; i < count; i++) {
        conclude(taken[i]);
        complete(a, taken[i]);
    }
}

/* Needs: a->mutex held. */
static size_t take(struct async *a, struct submitted **taken)
{
    size_t count = 0;

    while (count < TAKEN_AT_ONCE && a->waiting.first != NULL)
        taken[count++] = take_first(&a->waiting);
    return count;
}

static void *run(void *argument)
{
    struct async *a = argument;
    struct submitted *taken[TAKEN_AT_ONCE];

    pthread_mutex_lock(&a->mutex);
    for (;;) {
        size_t count = take(a, taken);

        if (count > 0) {
            pthread_mutex_unlock(&a->mutex);
            run_taken(a, taken, count);
            pthread_mutex_lock(&a->mutex);
        } else if (a->stopping) {
            break;
        } else {
            pthread_cond_wait(&a->wake, &a->mutex);
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

/* Everything submitted is carried out first; completions that nobody took are dropped. */
static void async_free(struct async *a)
{
    if (a->generation == process_generation()) {
        pthread_mutex_lock(&a->mutex);
        a->stopping = 1;
        pthread_cond_signal(&a->wake);
        pthread_mutex_unlock(&a->mutex);
        pthread_join(a->thread, NULL);
        pthread_cond_destroy(&a->wake);
        pthread_mutex_destroy(&a->mutex);
    }
    free_list(&a->waiting);
    free_list(&a->completed);
    close(a->fd);
    memory_free(a);
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
    pthread_cond_init(&a->wake, NULL);
    if (a->fd < 0 || thread_context_start(&a->thread, run, a) != 0) {
        if (a->fd >= 0)
            close(a->fd);
        memory_free(a);
        return NULL;
    }
    return a;
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

static tl_status submit(tl_lock *lock, const tl_ending *ending, tl_done_fn done, void *context)
{
    struct async *a = async_of(lock->base.client);
    struct submitted *s = a != NULL ? memory_new(sizeof *s) : NULL;

    if (s == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for an asynchronous call");
    s->lock = lock;
    s->ending = ending;
    s->done = done;
    s->context = context;
    s->since_us = clock_boottime_us();
    text_copy(s->thread_no, sizeof s->thread_no, tl_thread_uuid());
    text_copy(s->log_no, sizeof s->log_no, tl_log_uuid());
    atomic_store(&lock->submitted, 1);
    pthread_mutex_lock(&a->mutex);
    append(&a->waiting, s);
    pthread_cond_signal(&a->wake);
    pthread_mutex_unlock(&a->mutex);
    return TL_OK;
}

tl_status tl_lock_ask_submit(tl_lock *lock, tl_done_fn done, void *context)
{
    tl_status status;

    error_clear();
    status = ask_check(lock);
    if (status != TL_OK)
        return status;
    client_add(&lock->base.client->counters.asks, 1);
    return submit(lock, NULL, done, context);
}

tl_status tl_lock_finish_submit(tl_lock *lock, const tl_ending *ending, tl_done_fn done,
                                void *context)
{
    tl_status status;

    error_clear();
    status = lock_check_held(lock);
    if (status == TL_OK)
        status = ending_check(lock, ending);
    return status == TL_OK ? submit(lock, ending, done, context) : status;
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

        atomic_store(&s->lock->submitted, 0);
        completions[count++] = (tl_completion){s->lock, s->context, s->status};
        memory_free(s);
    }
    /* Readable means that completions wait: an emptied list resets the counter. */
    if (a->completed.first == NULL)
        while (read(a->fd, &number, sizeof number) > 0)
            ;
    pthread_mutex_unlock(&a->mutex);
    return count;
}
