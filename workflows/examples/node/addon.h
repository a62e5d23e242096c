/* addon.h - the addon's parts: the calls, the handlers in JavaScript, and the operation. */
#ifndef ADDON_H
#define ADDON_H

#include <tradelock/questions.h>
#include <tradelock/worker.h>

#include <node_api.h>

/* Registers WITHDRAW. */
tl_status operation_register(tl_workflows *workflows);

/* From now on handler(name, id, attempt) of JavaScript is called for each handler that the library
 * calls; answer(id, result, reference) is what it says. */
napi_status handlers_begin(napi_env env, napi_value handler);
/* 0, which is UNKNOWN and UNREACHABLE, unless JavaScript says more in time. */
int handlers_ask(const char *handler, const tl_attempt *attempt, tl_reply *reply);
napi_value handlers_answer(napi_env env, napi_callback_info info);
/* left_ms(attempt): asked for directly before the request leaves. */
napi_value handlers_left_ms(napi_env env, napi_callback_info info);
/* Of their answers: EXECUTE_SUCCEEDED and the like. */
void handlers_numbers(napi_env env, napi_value exports);
/* Once no thread of the library calls any more. */
void handlers_end(void);

/* A copy to be freed; NULL, and an exception of JavaScript: it is no text, or has a NUL inside, and
 * would be cut there and mean something else. */
char *text_of(napi_env env, napi_value value);
void put_text(napi_env env, napi_value object, const char *name, const char *text);

#endif
