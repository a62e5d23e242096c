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

#ifdef __cplusplus
}
#endif
#endif
