/* What a transcript happens in: a database of its own, trades, and, after `house>`, the sample
 * workflow with a real channel.  It opens with the first step that needs it. */
#ifndef TESTS_CLI_STAGE_H
#define TESTS_CLI_STAGE_H

#include "operators.h"

int stage_set_up(void **state);
int stage_tear_down(void **state);
/* `who` begins with the account, or with "$": the administrator; free with output_free(). */
output *stage_command(const char *who, const char *command);
/* The first value of the first row, or NULL; free() it. */
char *stage_sql(const char *statements);
/* "SERIAL MINOR [FAULT]": the name of its status; free() it. */
char *stage_pay(const char *text);
/* Any other verb; 0: there is none of this name. */
int stage_do(const char *verb, char *text);

#endif
