/* The cases, each a trade of its own. */
#ifndef TRY_CASES_H
#define TRY_CASES_H

#include "plan.h"

enum who { WHO_NOBODY, WHO_SERVICE, WHO_WORKER };

typedef struct one_case {
    const char *title;
    const char *pay_rule, *query_rule; /* of the channel, or NULL */
    forced execute, query;
    int nothing_left;
    int asks;        /* it is nothing without a query */
    int simulated;   /* its answers are the simulator's own: no proxy gives them */
    int late_ms;     /* after which the last request has arrived, or was settled */
    enum who killed; /* at each of its crash points */
    char ends;       /* how it must: Y, F; 0: either */
} one_case;

/* The first one simply pays; after the last one there is one without a title. */
extern const one_case cases[];

#endif
