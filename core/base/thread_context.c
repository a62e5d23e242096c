/* Thread and log UUIDs, and calls out of the library.  Touches nothing but the calling thread's own
 * context. */
#include "base/thread_context.h"

#include "base/error.h"
#include "base/process.h"
#include "base/random.h"
#include "base/text.h"

#include <tradelock/layer.h>

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

_Static_assert(RANDOM_UUID == TL_UUID_TEXT, "one length of UUID text");

struct thread_context {
    unsigned generation;  /* of the process in which this was made */
    const char *callback; /* the innermost that has not returned yet; NULL: there is none */
    const void *frame;    /* of its caller */
    int in_database;      /* it, or one around it, is a database callback */
    int64_t awaits_until_ms;
    char thread_uuid[TL_UUID_TEXT];
    char log_uuid[TL_UUID_TEXT];
    char log_prefix[TL_UUID_TEXT + sizeof("<uuid=>")];
    tl_said said;
};

static _Thread_local struct thread_context own;

/* The calling thread's context.  In the child of a fork it starts empty: parent and child must not
 * write under the same UUIDs. */
static struct thread_context *context_now(void)
{
    unsigned generation = process_generation();

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
    snprintf(context->log_prefix, sizeof(context->log_prefix), "<uuid=%.*s>", TL_UUID_TEXT - 1,
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

    error_clear();
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
    memset(&context->said, 0, sizeof context->said);
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

void tl_log_context_set(const tl_said *said)
{
    static const tl_said nothing;
    const tl_said *from = said != NULL ? said : &nothing;
    tl_said *to = &context_now()->said;

    TL_SAID_MAP(TL_KEEP)
}

const tl_said *tl_log_context(void)
{
    return &context_now()->said;
}

void tl_log_trace_set(const char *traceparent)
{
    text_copy(context_now()->said.traceparent, TL_TRACEPARENT + 1,
              text_is_traceparent(traceparent) ? traceparent : NULL);
}

const char *tl_log_trace(void)
{
    return context_now()->said.traceparent;
}

int64_t thread_context_await_until(int64_t until_ms)
{
    struct thread_context *context = context_now();
    const int64_t was_ms = context->awaits_until_ms;

    context->awaits_until_ms = until_ms;
    return was_ms;
}

int64_t thread_context_awaits_until(void)
{
    return context_now()->awaits_until_ms;
}

/* ------------------------------------------------------- calls out of the library -- */

static void end_process(const char *name)
{
    (void)fprintf(stderr,
                  "tradelock: %s was left by an exception, a longjmp or the end of its thread. "
                  "Callbacks return, so this process ends.\n",
                  name);
    abort();
}

void tl_callback_begins(tl_callback *callback, const char *name, const void *frame)
{
    struct thread_context *context = context_now();

    *callback = (tl_callback){name, context->callback, context->frame};
    context->callback = name;
    context->frame = frame;
}

void tl_callback_returned(tl_callback *callback)
{
    struct thread_context *context = context_now();

    /* A callback that forked returns in the child as well, where the context is empty. */
    if (context->callback != NULL) {
        context->callback = callback->around;
        context->frame = callback->frame;
    }
    callback->name = NULL;
}

void tl_callback_over(tl_callback *callback)
{
    if (callback->name != NULL)
        end_process(callback->name);
}

int thread_context_call_out(int (*fn)(void *context), void *argument, int is_database)
{
    struct thread_context *context = context_now();
    const unsigned generation = context->generation;
    const int64_t awaits_until_ms = thread_context_await_until(0);
    const int in_database = context->in_database;
    int answer;

    context->in_database = in_database || is_database;
    TL_CALLED(answer, is_database ? "a database callback" : "a callback", fn(argument));
    if (context_now()->generation == generation) {
        context->in_database = in_database;
        (void)thread_context_await_until(awaits_until_ms);
    }
    return answer;
}

static int is_of_this_stack(uintptr_t address)
{
    pthread_attr_t attributes;
    void *start;
    size_t size;
    int is_here;

    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return 0;
    is_here = pthread_attr_getstack(&attributes, &start, &size) == 0 &&
              address >= (uintptr_t)start && address - (uintptr_t)start < size;
    pthread_attr_destroy(&attributes);
    return is_here;
}

void thread_context_come_in(void)
{
    const struct thread_context *context = context_now();
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    const uintptr_t frame = (uintptr_t)context->frame;

    if (context->callback != NULL && here > frame && is_of_this_stack(here) &&
        is_of_this_stack(frame))
        end_process(context->callback);
}

int thread_context_in_callback(void)
{
    return context_now()->in_database;
}
