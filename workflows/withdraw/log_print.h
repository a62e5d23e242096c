/* The log of a program that hosts workflows, on standard error. */
#ifndef WITHDRAW_LOG_PRINT_H
#define WITHDRAW_LOG_PRINT_H

#include <tradelock/tradelock.h>

/* A tl_log_fn; context: the program's host_options. */
void log_print(void *context, const tl_log_line *line);

#endif
