/* Errors of a command as JSON. */
#ifndef TRADELOCK_FAILURE_H
#define TRADELOCK_FAILURE_H

#include "command.h"

/* Before the options are read: with --json among them, what is said on stderr is kept. */
void failure_keep(int argc, char **argv);
/* Prints it as a document, unless the command did well or printed one.  Returns the code. */
int failure_print(int code);

#endif
