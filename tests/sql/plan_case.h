/* One way to run each statement, for the test of plans. */
#ifndef TESTS_SQL_PLAN_CASE_H
#define TESTS_SQL_PLAN_CASE_H

#include "db/db.h"
#include "sql_text.h"

#define PLAN_VALUES 28
/* A row for each trigger, function, procedure and view of the migrations. */
#define EVERY_PART (~0U)

typedef struct plan_case {
    const struct sql_text *statement;
    const char *what; /* tells two cases of one statement apart; "" */
    unsigned rows;    /* returned or affected, exactly; or EVERY_PART */
    unsigned reads;   /* of the server's handler, at most */
    /* KEYS: no full scan.  NONE: it reads no table of ours, or only adds a row, or is a block,
     * whose statements have their own cases.  WALK: it walks one index up to a limit. */
    enum { PLAN_KEYS, PLAN_NONE, PLAN_WALK } plan;
    db_value values[PLAN_VALUES]; /* as many as it has question marks */
} plan_case;

extern const plan_case plan_cases[];
extern const size_t plan_cases_count;

/* The number of its question marks. */
size_t plan_values_count(const struct sql_text *statement);

#endif
