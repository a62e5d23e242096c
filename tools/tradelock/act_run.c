/* Does the rows of one act.  Writes to the database what each row does. */
#include "act_run.h"

#include <inttypes.h>
#include <stdio.h>

tl_status act_run(struct act_run *run, tl_client *client)
{
    const uint64_t end = run->first + run->act.planned;
    tl_status status = tl_act_begin(client, &run->act, &run->act_no);
    char why[1024] = "", counts[64];
    int is_last = 0;

    if (status != TL_OK)
        return status;
    for (uint64_t row = run->first; row < end && status == TL_OK && !is_last; row++) {
        const tl_status one = run->each(run->context, client, run->act_no, row);

        if (one == TL_OK || one == TL_IN_CONFLICT) {
            run->done++;
            run->conflicts += one == TL_IN_CONFLICT;
        } else if (run->is_of_row(one)) {
            run->skipped++;
        } else {
            status = one;
            snprintf(why, sizeof why, "%s", tl_error_message());
        }
        is_last = run->told != NULL && run->told(run->listener, row, one);
    }
    snprintf(counts, sizeof counts, "left=%" PRIu64, run->act.planned - run->done - run->skipped);
    if (tl_act_end(client, run->act_no, counts) != TL_OK)
        snprintf(run->no_end, sizeof run->no_end, "%s", tl_error_message());
    return status == TL_OK ? TL_OK : tl_error_report(status, "%s", why);
}
