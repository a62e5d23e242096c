/*
 * layer.h - for a layer above the locks, such as the workflows: it stands on a client, and logs and
 * reports as the library does.
 */
#ifndef TRADELOCK_LAYER_H
#define TRADELOCK_LAYER_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a layer above keeps of a client stands on it: closing the client before the last of them is
 * detached is refused, with an alarm. */
TL_EXPORT tl_status tl_client_attach(tl_client *client);
TL_EXPORT void tl_client_detach(tl_client *client);
/* The bytes of the UTF-8 character that begins here, 0 when there is none.  References and remarks
 * of endings have nothing else.  Reads no further than a NUL. */
TL_EXPORT size_t tl_utf8_size(const char *character);

#ifdef __cplusplus
}
#endif
#endif
