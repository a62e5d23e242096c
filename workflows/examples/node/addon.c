/*
 * addon.c - the library's calls as promises of {status, paid, not_paid, reference, message}:
 *
 *     open(config, handler)
 *     run(serial_no, cust_no, payload, amount_minor)    numbers are BigInt
 *     look(serial_no, cust_no)
 *     await_(serial_no, cust_no, wait_ms)
 *     close()
 *
 * A call has a thread of its own: it may wait for a handler, and so for JavaScript, which must not
 * wait for it.
 */
#include "addon.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tl_client *client;
static tl_workflows *workflows;
static tl_worker *worker;
static napi_threadsafe_function settles; /* NULL: not open */

struct call {
    const struct kind *kind;
    napi_deferred deferred;
    char *text[3];
    int64_t number;
    tl_status status;
    char reference[TL_REF_MAX + 1], message[512];
};

/* What a call is made of: its texts come first, then its number. */
struct kind {
    const char *name;
    void (*perform)(struct call *call);
    unsigned texts;
    int has_number;
};

/* ------------------------------------------------------------- on the call's own thread -- */

static void say(struct call *call, tl_status status, const char *reference)
{
    call->status = status;
    snprintf(call->message, sizeof call->message, "%s", tl_error_message());
    snprintf(call->reference, sizeof call->reference, "%s", reference);
}

static void perform_open(struct call *call)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_worker_options threads = TL_WORKER_OPTIONS_INIT;
    tl_status status;

    options.config_file = call->text[0];
    options.program = "withdraw.js";
    status = tl_client_open(&client, &options);
    if (status == TL_OK)
        status = tl_workflows_new(&workflows, client);
    if (status == TL_OK)
        status = operation_register(workflows);
    /* The threads of the retry lane; tradelock-worker is the same in a process of its own. */
    if (status == TL_OK)
        status = tl_worker_start(&worker, workflows, &threads);
    say(call, status, "");
}

static void perform_run(struct call *call)
{
    tl_request request = TL_REQUEST_INIT;
    tl_answer answer = TL_ANSWER_INIT;
    tl_status status;

    request.key = (tl_key){call->text[0], call->text[1], "WITHDRAW"};
    request.payload = call->text[2];
    request.payload_size = strlen(call->text[2]);
    request.amount_minor = call->number;
    request.currency = "EUR";
    status = tl_workflow_run(workflows, &request, &answer);
    if (status == TL_UNKNOWN) /* an answer of the server was lost */
        status = tl_workflow_settle(workflows, &answer);
    say(call, status, answer.view.channel_ref);
    tl_answer_clear(&answer);
}

static void perform_look(struct call *call)
{
    const tl_key key = {call->text[0], call->text[1], "WITHDRAW"};
    tl_trade trade = TL_TRADE_INIT;

    say(call, tl_workflow_look(workflows, &key, &trade), trade.channel_ref);
}

static void perform_await(struct call *call)
{
    const tl_key key = {call->text[0], call->text[1], "WITHDRAW"};
    tl_trade trade = TL_TRADE_INIT;

    say(call, tl_workflow_await(workflows, &key, call->number, &trade), trade.channel_ref);
}

static void perform_close(struct call *call)
{
    (void)call;
    tl_worker_free(worker);
    tl_workflows_free(workflows);
    tl_client_close(client);
    worker = NULL, workflows = NULL, client = NULL;
}

static const struct kind kinds[] = {
    {"open", perform_open, 1, 0},    {"run", perform_run, 3, 1},     {"look", perform_look, 2, 0},
    {"await_", perform_await, 2, 1}, {"close", perform_close, 0, 0},
};

static void *work(void *call)
{
    ((struct call *)call)->kind->perform(call);
    napi_call_threadsafe_function(settles, call, napi_tsfn_blocking);
    return NULL;
}

/* ------------------------------------------------------------- on JavaScript's own thread -- */

static void put_bool(napi_env env, napi_value object, const char *name, int is_true)
{
    napi_value value;

    napi_get_boolean(env, is_true != 0, &value);
    napi_set_named_property(env, object, name, value);
}

static void forget(struct call *call)
{
    for (unsigned i = 0; i < call->kind->texts; i++)
        free(call->text[i]);
    free(call);
}

static void settle(napi_env env, napi_value function, void *context, void *data)
{
    struct call *call = data;
    napi_value said;

    (void)function, (void)context;
    if (env != NULL) {
        napi_create_object(env, &said);
        put_text(env, said, "status", tl_status_name(call->status));
        put_bool(env, said, "paid", tl_paid(call->status));
        put_bool(env, said, "not_paid", tl_not_paid(call->status));
        put_text(env, said, "reference", call->reference);
        put_text(env, said, "message", call->message);
        napi_resolve_deferred(env, call->deferred, said);
        if (call->kind->perform == perform_close) {
            napi_release_threadsafe_function(settles, napi_tsfn_release);
            settles = NULL;
            handlers_end();
        }
    }
    forget(call);
}

static napi_status begin_promises(napi_env env)
{
    napi_value name;

    napi_create_string_utf8(env, "tradelock calls", NAPI_AUTO_LENGTH, &name);
    return napi_create_threadsafe_function(env, NULL, NULL, name, 0, 1, NULL, NULL, NULL, settle,
                                           &settles);
}

/* 0, and an exception of JavaScript: the call is not what it must be, or comes at a wrong time. */
static int fill(napi_env env, struct call *call, const napi_value *arguments)
{
    const struct kind *kind = call->kind;
    bool lossless = true;

    for (unsigned i = 0; i < kind->texts; i++)
        if ((call->text[i] = text_of(env, arguments[i])) == NULL)
            return 0;
    if (kind->has_number && (napi_get_value_bigint_int64(env, arguments[kind->texts], &call->number,
                                                         &lossless) != napi_ok ||
                             !lossless)) {
        napi_throw_type_error(env, NULL, "a BigInt of 64 bits is needed");
        return 0;
    }
    if ((kind->perform == perform_open) != (settles == NULL) ||
        (settles == NULL &&
         (handlers_begin(env, arguments[1]) != napi_ok || begin_promises(env) != napi_ok))) {
        napi_throw_error(env, NULL, "it is open already, or not yet, or without a handler");
        return 0;
    }
    return 1;
}

static napi_value begin(napi_env env, napi_callback_info info)
{
    struct call *call = calloc(1, sizeof *call);
    napi_value arguments[4], promise;
    size_t count = 4;
    void *kind;
    pthread_t thread;

    if (call == NULL)
        return NULL;
    napi_get_cb_info(env, info, &count, arguments, NULL, &kind);
    call->kind = kind;
    if (!fill(env, call, arguments)) {
        forget(call);
        return NULL;
    }
    napi_create_promise(env, &call->deferred, &promise);
    if (pthread_create(&thread, NULL, work, call) == 0) {
        pthread_detach(thread);
    } else {
        call->status = TL_NO_MEMORY;
        settle(env, NULL, NULL, call);
    }
    return promise;
}

static void put_function(napi_env env, napi_value exports, const char *name, napi_callback function,
                         const void *data)
{
    napi_value made;

    napi_create_function(env, name, NAPI_AUTO_LENGTH, function, (void *)data, &made);
    napi_set_named_property(env, exports, name, made);
}

NAPI_MODULE_INIT()
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        put_function(env, exports, kinds[i].name, begin, &kinds[i]);
    put_function(env, exports, "answer", handlers_answer, NULL);
    put_function(env, exports, "left_ms", handlers_left_ms, NULL);
    handlers_numbers(env, exports);
    return exports;
}
