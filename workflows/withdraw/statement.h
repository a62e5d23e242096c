/* One prepared statement on the library's connection, run once. */
#ifndef WITHDRAW_STATEMENT_H
#define WITHDRAW_STATEMENT_H

#include <tradelock/workflow.h>

typedef struct parameter {
    const char *text; /* or NULL: the number */
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
 * TL_OK and how many rows it changed; TL_TRY_AGAIN for a deadlock, a lock wait or a
 * snapshot conflict, which the library answers by running the callback again; else
 * TL_CALLBACK_FAILED.  name: for the sentence and the test points.
 */
tl_status statement_run(struct st_mysql *connection, const char *name, const char *sql,
                        const parameter *parameters, unsigned count, uint64_t *changed);

#endif
