/* Which options may stand in the sections that libmariadb reads. */
#ifndef TL_BASE_CONFIG_CLIENT_H
#define TL_BASE_CONFIG_CLIENT_H

#include <tradelock/tradelock.h>

/* TL_OK: libmariadb knows this name, and tradelock allows it.  Else TL_BAD_CONFIG with a sentence.
 * value: what follows the equal sign; NULL without one. */
tl_status config_client_check(const char *name, const char *value);

/* The allowed names, with dashes; NULL at the end. */
extern const char *const config_client_names[];

/* Whether this line holds a secret. */
int config_client_secret(const char *name, const char *value);

#endif
