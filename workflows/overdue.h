/* Due work that nobody claims. */
#ifndef TL_WORKFLOWS_OVERDUE_H
#define TL_WORKFLOWS_OVERDUE_H

#include <tradelock/tradelock.h>

/*
 * Looks through every operation that has rows, registered here or not, and raises one alarm for
 * each that has a compensating attempt overdue by late_ms: no worker serves it, or those that do
 * cannot keep up.  Read by index; problems are logged.
 */
void overdue_alarm(tl_client *client, int64_t late_ms);

#endif
