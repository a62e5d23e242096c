/*
 * layer.h - for a layer above the locks, such as the workflows, which keeps a client and checks
 * texts as the library does.
 */
#ifndef TRADELOCK_LAYER_H
#define TRADELOCK_LAYER_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tells the client that a layer uses it.  TL_OK.  Each attach needs its detach; until then
 * tl_client_close() closes nothing, and writes an alarm. */
TL_EXPORT tl_status tl_client_attach(tl_client *client);
TL_EXPORT void tl_client_detach(tl_client *client);

/* How many bytes the UTF-8 character has that begins here; 0: these bytes are none.  References and
 * remarks of endings consist of such characters.  Reads no further than a NUL. */
TL_EXPORT size_t tl_utf8_size(const char *character);

/* Counts one kind of call of a channel, for tl_metrics_write(). */
typedef struct tl_calls tl_calls;

typedef struct tl_calls_names {
    const char *channel, *op_code; /* copied */
    /* Static texts, such as "execute", and what it may be answered: at most 8. */
    const char *call;
    const char *const *answers;
    unsigned count;
} tl_calls_names;

/* Gives the counter of these names, made on first use; whoever gives the same names gets the same.
 * It belongs to the client and lives as long, so nobody frees it.  TL_OK; TL_INVALID; TL_NO_MEMORY;
 * TL_WRONG_PROCESS or TL_WRONG_STATE of the client. */
TL_EXPORT tl_status tl_calls_of(tl_calls **out, tl_client *client, const tl_calls_names *names);
/* Counts a call that got the answer of this number, from 0 on, and how long it took.  Takes no
 * lock. NULL, or a number that has no name: nothing. */
TL_EXPORT void tl_calls_count(tl_calls *calls, unsigned answer, int64_t took_us);

#ifdef __cplusplus
}
#endif
#endif
