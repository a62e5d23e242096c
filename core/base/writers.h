/* Who can change a file that says what is run, or which server is believed. */
#ifndef TL_BASE_WRITERS_H
#define TL_BASE_WRITERS_H

#include <tradelock/layer.h>

/* As tl_writers_check().  `only_read`: nothing of it is run, so root also takes the file of another
 * account, where root alone could have put it, as a package puts its service's settings. */
tl_status writers_check(const char *path, int only_read, char resolved[TL_PATH]);

#endif
