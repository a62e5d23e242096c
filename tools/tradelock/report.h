/* Counts and sums of the trades of a range, as `report` and `audit` print them. */
#ifndef TRADELOCK_REPORT_H
#define TRADELOCK_REPORT_H

#include "fields.h"

struct report {
    const tl_report_scope *scope;
    struct listing rows;
    tl_list_end total;
    tl_report_gaps gaps;
};

/* Reads what this database has; report_free() frees it, whatever the status. */
tl_status report_read(struct report *report, tl_client *client, const tl_report_scope *scope);
void report_free(struct report *report);
void report_print(const struct report *report);
json_t *report_json(const struct report *report);

/* "asked" as --at takes it; EXIT_DONE, or what is wrong was said. */
int report_take_at(const char *value, void *to);
/* Whether --since and --until are a range that has begun, likewise. */
int report_check_range(int64_t since_us, int64_t until_us);

#endif
