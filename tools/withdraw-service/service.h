/* The service itself: many threads, each taking the next line. */
#ifndef WITHDRAW_SERVICE_H
#define WITHDRAW_SERVICE_H

#include "options.h"
#include "rows.h"

/* Answers every row that is not bad.  0, or -1 when threads could not be started. */
int service_run(const host *self, const options *with, rows *all);

/* Waits until no trade of the rows is in process, at most final_wait_ms, and notes what each one
 * is.  Returns how many are in process still (parked ones are not). */
size_t service_settle(const host *self, const options *with, rows *all);

#endif
