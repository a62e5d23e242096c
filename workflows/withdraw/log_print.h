/* The log of this process, on standard error. */
#ifndef WITHDRAW_LOG_PRINT_H
#define WITHDRAW_LOG_PRINT_H

#include <tradelock/tradelock.h>

/* The program's name in each line, the lowest level of the library's lines, and the settings, which
 * say whether lines are JSON objects.  It may be called again, as when settings are read anew. */
void log_begin(const char *program, tl_level least, const char *config_file);

/* A tl_log_fn, without a context. */
void log_print(void *context, const tl_log_line *line);

/* A line of the program's own, whatever its level. */
void log_say(tl_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What the program was begun to say, on standard output: as it is, or as a JSON object. */
void log_answer(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
