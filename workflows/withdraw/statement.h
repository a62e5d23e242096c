/* One prepared statement on the library's connection, run once. */
#ifndef WITHDRAW_STATEMENT_H
#define WITHDRAW_STATEMENT_H

#include <tradelock/workflow.h>

typedef struct parameter {
    const char *text; /* NULL: the number is used */
    int64_t number;
} parameter;

#define TEXT(value)                                                                                \
    {                                                                                              \
        .text = (value)                                                                            \
    }
#define NUMBER(value)                                                                              \
    {                                                                                              \
        .number = (value)                                                                          \
    }
#define PARAMETERS_MAX 12

/*
 * TL_OK: *changed is how many rows it changed.  TL_TRY_AGAIN: a deadlock, a lock wait or a snapshot
 * conflict; the library then runs the callback again.  TL_CALLBACK_FAILED: any other error.  name:
 * for the sentence and the test points.
 */
tl_status statement_run(struct st_mysql *connection, const char *name, const char *sql,
                        const parameter *parameters, unsigned count, uint64_t *changed);

#endif
