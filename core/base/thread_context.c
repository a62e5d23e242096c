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
#include <string.h>
#include <unistd.h>
#include <unwind.h>
#include <uuid/uuid.h>

#define CALLS_MAX 16 /* nested calls beyond these are not noticed when they were left */

_Static_assert(RANDOM_UUID == TL_UUID_TEXT, "one length of UUID text");

/* A call out of the library that has not returned yet. */
struct under_way {
    uintptr_t frame; /* of thread_context_call_out(), which made it */
    void (*left)(void *of, void *what);
    void *of, *what;
    int is_database;
    int64_t awaits_until_ms; /* outside of it */
};

struct thread_context {
    unsigned generation; /* of the process in which this was made */
    unsigned calls;
    int64_t awaits_until_ms;
    struct under_way under_way[CALLS_MAX];
    char thread_uuid[TL_UUID_TEXT];
    char log_uuid[TL_UUID_TEXT];
    char log_prefix[TL_UUID_TEXT + sizeof("<uuid=>")];
    tl_said said;
};

static _Thread_local struct thread_context own;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_end; /* its destructor runs when a thread ends */
static int has_end;

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

/* The last call is over, and those within it; so many are under way now. */
static void pop(struct thread_context *context, unsigned calls)
{
    context->calls = calls;
    context->awaits_until_ms = calls < CALLS_MAX ? context->under_way[calls].awaits_until_ms : 0;
}

/* Removes the last call, which was left, and releases what was held for it. */
static void let_go(struct thread_context *context)
{
    const struct under_way *last;

    pop(context, context->calls - 1);
    if (context->calls >= CALLS_MAX)
        return;
    last = &context->under_way[context->calls];
    last->left(last->of, last->what);
}

static void thread_ends(void *unused)
{
    struct thread_context *context = context_now();

    (void)unused;
    while (context->calls > 0)
        let_go(context);
}

static void watch_ends(void)
{
    has_end = pthread_key_create(&at_end, thread_ends) == 0;
}

/* What unwound() needs to know of a call when the stack is unwound. */
struct place {
    unsigned calls; /* this one and those around it; 0 when it has returned */
};

static void unwound(const struct place *place)
{
    struct thread_context *context = context_now();

    /* Calls nested in it are over too.  In the child of a fork none is under way. */
    while (place->calls > 0 && context->calls >= place->calls)
        let_go(context);
}

/* was_left() finds a call by the frame of this function.  So the function must never be inlined or
 * cloned. */
#ifdef __clang__
__attribute__((noinline))
#else
__attribute__((noipa))
#endif
int thread_context_call_out(const call_out *call)
{
    struct thread_context *context = context_now();
    __attribute__((cleanup(unwound))) struct place place = {++context->calls};
    int answer;

    if (place.calls <= CALLS_MAX)
        context->under_way[place.calls - 1] =
            (struct under_way){(uintptr_t)__builtin_frame_address(0),
                               call->left,
                               call->of,
                               call->what,
                               call->is_database,
                               context->awaits_until_ms};
    context->awaits_until_ms = 0;
    pthread_once(&once, watch_ends);
    if (has_end)
        pthread_setspecific(at_end, context);
    answer = call->fn(call->context);
    /* A callback that forked returns in the child as well, where the context is empty. */
    if (context_now()->calls >= place.calls)
        pop(context, place.calls - 1);
    place.calls = 0;
    return answer;
}

struct walk {
    uintptr_t frame;
    int below, passed, is_call;
};

/* Called for each frame, the innermost first.  The last frame that begins at the address or below
 * it is the one that has that place now. */
static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *frame, void *context)
{
    struct walk *walk = context;
    uintptr_t begin = (uintptr_t)_Unwind_GetCFA(frame);

    if (begin > walk->frame) {
        walk->passed = walk->below;
        return _URC_NORMAL_STOP;
    }
    walk->below = 1;
    walk->is_call = (uintptr_t)_Unwind_GetRegionStart(frame) == (uintptr_t)thread_context_call_out;
    return _URC_NO_REASON;
}

/* Whether that place still belongs to thread_context_call_out(); below 0: nobody can tell. */
static int is_still_there(uintptr_t frame)
{
    struct walk walk = {.frame = frame};

    _Unwind_Backtrace(look_at_frame, &walk);
    return walk.passed ? walk.is_call : -1;
}

static int find_itself(void *unused)
{
    const struct thread_context *context = context_now();

    (void)unused;
    return is_still_there(context->under_way[context->calls - 1].frame) > 0;
}

static void nothing_is_left(void *of, void *what)
{
    (void)of;
    (void)what;
}

/* Whether such a walk finds a call that is certainly under way, in this build and on this stack. */
static int walks_are_true(const struct thread_context *context)
{
    const call_out call = {.fn = find_itself, .left = nothing_is_left};

    return context->calls < CALLS_MAX && thread_context_call_out(&call);
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

/*
 * Whether the call was certainly left: the stack ends above its frame, or another function has that
 * place now.  A call counts as under way if its callback has a stack of its own, or if there is
 * code in between that cannot be walked through.
 */
static int was_left(const struct under_way *call)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    if (here > call->frame)
        return is_of_this_stack(here) && is_of_this_stack(call->frame);
    return is_still_there(call->frame) == 0 && walks_are_true(context_now());
}

void thread_context_come_in(void)
{
    struct thread_context *context = context_now();

    while (context->calls > 0 && context->calls <= CALLS_MAX &&
           was_left(&context->under_way[context->calls - 1]))
        let_go(context);
}

int thread_context_in_callback(void)
{
    struct thread_context *context = context_now();

    thread_context_come_in();
    for (unsigned i = 0; i < context->calls && i < CALLS_MAX; i++)
        if (context->under_way[i].is_database)
            return 1;
    return 0;
}
