/*
 * handlers.c - handlers in JavaScript.
 *
 * The library calls execute and query on threads of its own, or on that of a run.  Such a thread
 * waits until JavaScript has answered.  What comes after the handler's time is not heard.
 */
#include "addon.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A handler that waits for JavaScript; it lies on the stack of its thread. */
struct question {
    uintptr_t id;
    const char *handler;
    const tl_attempt *attempt;
    tl_reply *reply;
    int answered, result;
    struct question *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t heard = PTHREAD_COND_INITIALIZER;
static struct question *questions;
static napi_threadsafe_function javascript;

char *text_of(napi_env env, napi_value value)
{
    size_t size = 0;
    char *text = NULL;

    if (napi_get_value_string_utf8(env, value, NULL, 0, &size) == napi_ok)
        text = malloc(size + 1);
    if (text != NULL)
        napi_get_value_string_utf8(env, value, text, size + 1, &size);
    if (text == NULL || strlen(text) != size) {
        free(text);
        napi_throw_type_error(env, NULL, "a text without NUL is needed");
        return NULL;
    }
    return text;
}

void put_text(napi_env env, napi_value object, const char *name, const char *text)
{
    napi_value value;

    napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &value);
    napi_set_named_property(env, object, name, value);
}

/* With the lock held; NULL: its time is over. */
static struct question *find(uintptr_t id)
{
    struct question *at = questions;

    while (at != NULL && at->id != id)
        at = at->next;
    return at;
}

int handlers_ask(const char *handler, const tl_attempt *attempt, tl_reply *reply)
{
    static uintptr_t last_id;
    const int64_t left_ms = tl_attempt_left_ms(attempt);
    struct question mine = {.handler = handler, .attempt = attempt, .reply = reply};
    struct question **at = &questions;
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += left_ms % 1000 * 1000000;
    end.tv_sec += left_ms / 1000 + end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    pthread_mutex_lock(&lock);
    mine.id = ++last_id;
    mine.next = questions;
    questions = &mine;
    if (napi_call_threadsafe_function(javascript, (void *)mine.id, napi_tsfn_nonblocking) ==
        napi_ok)
        while (!mine.answered && pthread_cond_timedwait(&heard, &lock, &end) == 0)
            continue;
    while (*at != &mine)
        at = &(*at)->next;
    *at = mine.next;
    pthread_mutex_unlock(&lock);
    return mine.result;
}

/* On the thread of JavaScript. */
static void call_javascript(napi_env env, napi_value handler, void *context, void *id)
{
    napi_value arguments[3], number, nothing;
    const struct question *question;

    (void)context;
    if (env == NULL) /* it ends */
        return;
    pthread_mutex_lock(&lock);
    question = find((uintptr_t)id);
    if (question != NULL) {
        const tl_attempt *attempt = question->attempt;

        napi_create_string_utf8(env, question->handler, NAPI_AUTO_LENGTH, &arguments[0]);
        napi_create_int64(env, (int64_t)question->id, &arguments[1]);
        napi_create_object(env, &arguments[2]);
        napi_create_string_utf8(env, attempt->payload, attempt->payload_size, &number);
        napi_set_named_property(env, arguments[2], "payload", number);
        napi_create_int64(env, attempt->until_ms, &number);
        napi_set_named_property(env, arguments[2], "until_ms", number);
        put_text(env, arguments[2], "channel_key", attempt->channel_key);
        put_text(env, arguments[2], "serial_no", attempt->key.serial_no);
        put_text(env, arguments[2], "cust_no", attempt->key.cust_no);
        put_text(env, arguments[2], "op_code", attempt->key.op_code);
    }
    pthread_mutex_unlock(&lock);
    napi_get_undefined(env, &nothing);
    if (question != NULL)
        napi_call_function(env, nothing, handler, 3, arguments, NULL);
}

napi_value handlers_answer(napi_env env, napi_callback_info info)
{
    napi_value arguments[3];
    size_t count = 3;
    int64_t id = 0;
    int32_t result = 0;
    char *reference;
    struct question *question;

    napi_get_cb_info(env, info, &count, arguments, NULL, NULL);
    napi_get_value_int64(env, arguments[0], &id);
    napi_get_value_int32(env, arguments[1], &result);
    reference = text_of(env, arguments[2]);
    pthread_mutex_lock(&lock);
    question = find((uintptr_t)id);
    if (question != NULL && reference != NULL) {
        tl_reply_ref(question->reply, reference); /* one that cannot be stored is left out */
        question->result = result;
        question->answered = 1;
        pthread_cond_broadcast(&heard);
    }
    pthread_mutex_unlock(&lock);
    free(reference);
    return NULL;
}

napi_value handlers_left_ms(napi_env env, napi_callback_info info)
{
    napi_value argument, until, left;
    size_t count = 1;
    tl_attempt attempt = {0};

    napi_get_cb_info(env, info, &count, &argument, NULL, NULL);
    napi_get_named_property(env, argument, "until_ms", &until);
    napi_get_value_int64(env, until, &attempt.until_ms);
    napi_create_int64(env, tl_attempt_left_ms(&attempt), &left);
    return left;
}

napi_status handlers_begin(napi_env env, napi_value handler)
{
    napi_value name;

    napi_create_string_utf8(env, "tradelock handlers", NAPI_AUTO_LENGTH, &name);
    return napi_create_threadsafe_function(env, handler, NULL, name, 0, 1, NULL, NULL, NULL,
                                           call_javascript, &javascript);
}

void handlers_numbers(napi_env env, napi_value exports)
{
    static const struct {
        const char *name;
        int number;
    } numbers[] = {
#define NUMBER(name) {#name, TL_##name}
        NUMBER(EXECUTE_UNKNOWN),   NUMBER(EXECUTE_SUCCEEDED),   NUMBER(EXECUTE_DECLINED),
        NUMBER(EXECUTE_NOT_SENT),  NUMBER(EXECUTE_RETRY_LATER), NUMBER(EXECUTE_ACCEPTED),
        NUMBER(QUERY_UNREACHABLE), NUMBER(QUERY_SUCCEEDED),     NUMBER(QUERY_FAILED),
        NUMBER(QUERY_PENDING),     NUMBER(QUERY_NOT_FOUND),
    };

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        napi_value value;

        napi_create_int32(env, numbers[i].number, &value);
        napi_set_named_property(env, exports, numbers[i].name, value);
    }
}

void handlers_end(void)
{
    napi_release_threadsafe_function(javascript, napi_tsfn_release);
}
