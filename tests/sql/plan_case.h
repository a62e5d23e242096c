/* One way to run each statement, for the test of plans. */
#ifndef TESTS_SQL_PLAN_CASE_H
#define TESTS_SQL_PLAN_CASE_H

#include "store/bind.h"

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
    const db_value *values; /* as many as the statement takes */
    const step *step;       /* or what a statement of sql/step is told */
} plan_case;

extern const plan_case plan_cases[];
extern const size_t plan_cases_count;

/* The values of the case, which may be in the room that is given: STEP_FIELDS of them. */
const db_value *plan_values(const plan_case *c, db_value *values, step_uuids uuids);

#endif
