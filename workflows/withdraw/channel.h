/* The channel over HTTP, as the callbacks of a workflow, and what each of its answers means. */
#ifndef WITHDRAW_CHANNEL_H
#define WITHDRAW_CHANNEL_H

#include "http.h"

#include <jansson.h>

typedef struct channel channel;

/* TL_INVALID: the URL is not http(s)://host[:port]. */
tl_status channel_new(channel **out, tl_client *client, const char *url);
void channel_free(channel *self);

/* The context is a channel. */
tl_execute_result channel_execute(void *context, const tl_attempt *attempt, tl_reply *reply);
tl_query_result channel_query(void *context, const tl_attempt *attempt, tl_reply *reply);
tl_cancel_result channel_cancel(void *context, const tl_attempt *attempt, tl_reply *reply);

/*
 * What an exchange means; they use no network.  body is NULL if the answer was no JSON object.
 * *mismatch becomes 1 if the channel knows this key with other contents.
 */
tl_execute_result channel_pay_means(const http_exchange *exchange, const json_t *body,
                                    tl_reply *reply, int *mismatch);
tl_query_result channel_query_means(const http_exchange *exchange, const json_t *body,
                                    tl_reply *reply);
tl_cancel_result channel_cancel_means(const http_exchange *exchange, const json_t *body,
                                      tl_reply *reply);

#endif
