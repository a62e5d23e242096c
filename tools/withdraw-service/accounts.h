/* Accounts for customers that have none yet, so that a sample can be run at all. */
#ifndef WITHDRAW_ACCOUNTS_H
#define WITHDRAW_ACCOUNTS_H

#include "rows.h"

/* One transaction on a connection of its own, which the option file names.  0; or -1 with one
 * sentence. */
int accounts_open(const char *config_file, const rows *all, int64_t balance_minor, char *problem,
                  size_t space);

#endif
