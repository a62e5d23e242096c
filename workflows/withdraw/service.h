/* The service itself: many threads, each taking the next line. */
#ifndef WITHDRAW_SERVICE_H
#define WITHDRAW_SERVICE_H

#include "host.h"
#include "rows.h"

#define PROGRAM "tradelock-withdraw"

/* The command line. */
typedef struct options {
    host_options host;
    const char *file, *out, *batch; /* batch NULL: none */
    int64_t threads, wait_ms, patience_ms, final_wait_ms;
    int serves_metrics;
} options;

/* Answers every row that is not bad.  Those that it did not begin, since nothing was taken for so
 * long, stay OPEN.  0, or -1 when threads could not be started. */
int service_run(const host *self, const options *with, rows *all);

/* Waits until no trade of the rows is in process, at most final_wait_ms, and notes what each one
 * is.  Returns how many are in process still (parked ones are not). */
size_t service_settle(const host *self, const options *with, rows *all);

#endif
