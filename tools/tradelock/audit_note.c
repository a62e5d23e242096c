/* Notes that an audit was made, and what it found by rule. */
#include "audit_note.h"

#include "fleet.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void audit_note(tl_client *client, const tl_audit_counts *counts, const struct by_rule *rules,
                size_t count, const char *statement)
{
    char said[600] = "", text[1024];
    const tl_act act = {
        .version = TL_ACT_VERSION, .what = "audit", .said = said, .actor = person()};
    size_t size = (size_t)snprintf(text, sizeof text,
                                   "rows=%" PRIu64 " steps=%" PRIu64 " payments=%" PRIu64
                                   " violations=%" PRIu64 " closed=%" PRIu64,
                                   counts->rows, counts->steps, counts->payments,
                                   counts->violations, counts->closed);
    tl_status status;

    if (statement != NULL)
        snprintf(said, sizeof said, "--statement %.500s", statement);
    for (size_t i = 0; i < count; i++)
        if (rules[i].violations > 0 && size < sizeof text)
            size += (size_t)snprintf(text + size, sizeof text - size, " %s=%" PRIu64, rules[i].rule,
                                     rules[i].violations);
    status = tl_act_note(client, &act, text);
    if (status == TL_ACCESS_DENIED)
        fprintf(stderr, "%sthis audit is not on record: an operator's account may write one\n",
                fleet_said_by());
    else if (status != TL_OK)
        fprintf(stderr, "%sthis audit is not on record: %s\n", fleet_said_by(), tl_error_message());
}
