/* Due work that nobody claims. */
#ifndef TL_WORKFLOWS_OVERDUE_H
#define TL_WORKFLOWS_OVERDUE_H

#include "registry.h"

/*
 * Looks through every operation that has rows, registered here or not.  It raises one alarm for
 * each operation with due work that is late_ms late: no worker serves it, or its workers cannot
 * keep up. What waits for a paused channel raises none. It reads by index, and logs its own
 * problems.
 */
void overdue_alarm(tl_workflows *workflows, int64_t late_ms);

#endif
