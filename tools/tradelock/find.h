/* The operands SERIAL [CUST [OP]]: the one trade that they name. */
#ifndef TRADELOCK_FIND_H
#define TRADELOCK_FIND_H

#include "command.h"

/* Keeps the operands; the check() of a command. */
int find_check(int argc, char **argv);
/* After fleet_begin() it looks for trades of that serial number, else of those that begin so, of the
 * customer and the operation if they were named.  If several match, they are printed.  EXIT_DONE:
 * there is one, and *client is of the database that has it; else the exit code. */
int find_trade(tl_client **client, tl_key *key);

#endif
