/* Programs that are older than a kind of decision about channels, and so do not obey it: for the
 * command and the desk. */
#ifndef TRADELOCK_DISOBEDIENT_H
#define TRADELOCK_DISOBEDIENT_H

#include <tradelock/tradelock.h>

#include <jansson.h>

#define DISOBEDIENT_SAYS "%s does not obey: its program is older than such decisions.  End it."

/* what: "pause", "limit" or "breaker".  *names: an array of "program pid@host", to be freed also after
 * an error. */
tl_status disobedient_list(tl_client *client, const char *what, json_t **names);

#endif
