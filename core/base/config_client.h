/* Which options may stand in the sections that libmariadb reads, and what the environment adds. */
#ifndef TL_BASE_CONFIG_CLIENT_H
#define TL_BASE_CONFIG_CLIENT_H

#include <tradelock/tradelock.h>

#include <stdio.h>

/* TL_OK: libmariadb knows this name, and tradelock allows it.  Else TL_BAD_CONFIG with a sentence.
 * value: what follows the equal sign; NULL without one. */
tl_status config_client_check(const char *name, const char *value);

/* The allowed names, with dashes; NULL at the end. */
extern const char *const config_client_names[];

/* Whether this line holds a secret. */
int config_client_secret(const char *name, const char *value);

/* Whether the environment says anything of the connection. */
int config_connection_is_set(void);
/* Writes that as lines of a section.  TL_BAD_CONFIG, with a sentence: it cannot be used. */
tl_status config_connection_write(FILE *to);

#endif
