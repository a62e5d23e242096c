#include "base/thread_context.h"

#include "base/error.h"
#include "base/random.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uuid/uuid.h>

_Static_assert(RANDOM_UUID == TL_UUID_TEXT, "one length of UUID text");

struct thread_context {
    unsigned generation; /* of the process this was made in */
    unsigned callbacks;  /* database callbacks this thread is inside of */
    char thread_uuid[TL_UUID_TEXT];
    char log_uuid[TL_UUID_TEXT];
    char log_prefix[TL_UUID_TEXT + sizeof("<uuid=>")];
};

static _Thread_local struct thread_context own;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_uint forks;
static int watched;

static void count_fork(void)
{
    atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
}

static void watch_forks(void)
{
    watched = pthread_atfork(NULL, NULL, count_fork) == 0;
}

unsigned thread_context_generation(void)
{
    pthread_once(&once, watch_forks);
    /* Without the memory for a fork handler the process number does nearly as well. */
    if (!watched)
        return (unsigned)getpid();
    return atomic_load_explicit(&forks, memory_order_relaxed) + 1;
}

/* The calling thread's context.  The child of a fork is a new thread with no work: two
 * processes with one identity would be told apart by nothing. */
static struct thread_context *context_now(void)
{
    unsigned generation = thread_context_generation();

    if (own.generation != generation) {
        memset(&own, 0, sizeof(own));
        own.generation = generation;
    }
    return &own;
}

int thread_context_start(pthread_t *thread, void *(*fn)(void *), void *argument)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(thread, NULL, fn, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static void set_work(struct thread_context *context, const char *log_uuid)
{
    snprintf(context->log_uuid, sizeof(context->log_uuid), "%s", log_uuid);
    snprintf(context->log_prefix, sizeof(context->log_prefix), "<uuid=%s>",
             context->log_uuid);
}

const char *tl_thread_uuid(void)
{
    struct thread_context *context = context_now();

    if (context->thread_uuid[0] == '\0')
        random_uuid(context->thread_uuid);
    return context->thread_uuid;
}

int tl_work_begin(void)
{
    struct thread_context *context = context_now();
    char uuid[TL_UUID_TEXT];

    if (context->log_uuid[0] != '\0')
        return 0;
    random_uuid(uuid);
    set_work(context, uuid);
    return 1;
}

tl_status tl_work_adopt(const char *log_uuid)
{
    struct thread_context *context = context_now();
    char text[TL_UUID_TEXT];
    uuid_t uuid;

    if (log_uuid == NULL || log_uuid[0] == '\0')
        return error_set(TL_INVALID, "a log UUID to take over is missing");
    if (uuid_parse(log_uuid, uuid) != 0)
        return error_set(TL_INVALID, "the log UUID to take over is not a UUID");
    uuid_unparse_lower(uuid, text);
    set_work(context, text);
    return TL_OK;
}

void thread_context_work(const char *log_uuid)
{
    struct thread_context *context = context_now();

    if (log_uuid[0] != '\0') {
        set_work(context, log_uuid);
        return;
    }
    context->log_uuid[0] = '\0';
    context->log_prefix[0] = '\0';
}

int thread_context_lend(const char *log_uuid)
{
    if (context_now()->log_uuid[0] != '\0')
        return 0;
    thread_context_work(log_uuid);
    return 1;
}

void tl_work_end(int renew_thread)
{
    struct thread_context *context = context_now();

    thread_context_work("");
    if (renew_thread)
        context->thread_uuid[0] = '\0'; /* the next use makes another */
}

const char *tl_log_uuid(void)
{
    return context_now()->log_uuid;
}

const char *tl_log_prefix(void)
{
    return context_now()->log_prefix;
}

void thread_context_enter_callback(void)
{
    context_now()->callbacks++;
}

void thread_context_leave_callback(void)
{
    struct thread_context *context = context_now();

    /* A callback that forked returns in the child too, where nothing was entered. */
    if (context->callbacks > 0)
        context->callbacks--;
}

int thread_context_in_callback(void)
{
    return context_now()->callbacks > 0;
}
