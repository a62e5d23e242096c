/* What may stand in the sections that libmariadb reads. */
#ifndef TL_BASE_CONFIG_CLIENT_H
#define TL_BASE_CONFIG_CLIENT_H

#include <tradelock/tradelock.h>

/* Whether libmariadb knows this name and tradelock can live with it.  TL_OK, or TL_BAD_CONFIG with
 * a sentence.  value: what follows the equal sign, NULL without. */
tl_status config_client_check(const char *name, const char *value);

/* The names that are allowed, with dashes; NULL at the end. */
extern const char *const config_client_names[];

/* Whether this line tells a secret. */
int config_client_secret(const char *name, const char *value);

#endif
