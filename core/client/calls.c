/* Keeps a client's list of counted calls: entries are added, and freed with the client's memory.
 * Counting touches atomics alone. */
#include "client/calls.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "client/client.h"

#include <string.h>

static struct tl_calls *find(struct tl_calls *c, const char *channel, const char *op_code,
                             const char *call)
{
    while (c != NULL && (strcmp(c->channel, channel) != 0 || strcmp(c->op_code, op_code) != 0 ||
                         strcmp(c->call, call) != 0))
        c = c->next;
    return c;
}

static tl_status add(tl_client *client, const struct tl_calls *what, struct tl_calls **out)
{
    struct tl_calls *c = memory_dup(what, sizeof *what);

    if (c == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for counting calls of a channel");
    c->next = atomic_load(&client->calls);
    do {
        *out = find(c->next, what->channel, what->op_code, what->call);
        if (*out != NULL) {
            memory_free(c); /* another thread was faster */
            return TL_OK;
        }
    } while (!atomic_compare_exchange_weak(&client->calls, &c->next, c));
    *out = c;
    return TL_OK;
}

tl_status tl_calls_of(tl_calls **out, tl_client *client, const tl_calls_names *names)
{
    struct tl_calls what = {.next = NULL};

    error_clear();
    TRY(client_check(client));
    if (out == NULL || names == NULL || names->channel == NULL || names->op_code == NULL ||
        names->call == NULL || names->answers == NULL || names->count == 0 ||
        names->count > CALLS_ANSWERS_MAX)
        return error_set(TL_INVALID,
                         "out, names or one of the names is NULL, or there are no "
                         "answers or more than %d",
                         CALLS_ANSWERS_MAX);
    *out = find(atomic_load(&client->calls), names->channel, names->op_code, names->call);
    if (*out != NULL)
        return TL_OK;
    text_copy(what.channel, sizeof what.channel, names->channel);
    text_copy(what.op_code, sizeof what.op_code, names->op_code);
    what.call = names->call;
    what.answers = names->answers;
    what.answer_count = names->count;
    return add(client, &what, out);
}

void tl_calls_count(tl_calls *calls, unsigned answer, int64_t took_us)
{
    if (calls == NULL || answer >= calls->answer_count)
        return;
    client_add(&calls->answered[answer], 1);
    histogram_add(&calls->took, &histogram_of_times, took_us > 0 ? (uint64_t)took_us : 0);
}

void calls_free(struct tl_calls *first)
{
    while (first != NULL) {
        struct tl_calls *next = first->next;

        memory_free(first);
        first = next;
    }
}
