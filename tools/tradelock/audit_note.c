/* Notes that an audit was made, and what it found by rule. */
#include "audit_note.h"

#include "fleet.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* How many of each rule are open, as an object. */
static json_t *by_rule(const json_t *violations)
{
    json_t *rules = json_object();
    const json_t *violation;
    size_t i;

    json_array_foreach(violations, i, violation)
    {
        const char *rule = json_string_value(json_object_get(violation, "rule"));

        if (rule != NULL && !json_is_true(json_object_get(violation, "closed")))
            json_object_set_new(rules, rule,
                                json_integer(json_integer_value(json_object_get(rules, rule)) + 1));
    }
    return rules;
}

void audit_note(tl_client *client, const tl_audit_counts *counts, const json_t *violations,
                const char *statement)
{
    json_t *rules = by_rule(violations), *number;
    char said[600] = "", text[1024];
    const tl_act act = {
        .version = TL_ACT_VERSION, .what = "audit", .said = said, .actor = person()};
    const char *rule;
    size_t size = (size_t)snprintf(text, sizeof text,
                                   "rows=%" PRIu64 " steps=%" PRIu64 " payments=%" PRIu64
                                   " violations=%" PRIu64 " closed=%" PRIu64,
                                   counts->rows, counts->steps, counts->payments,
                                   counts->violations, counts->closed);
    tl_status status;

    if (statement != NULL)
        snprintf(said, sizeof said, "--statement %.500s", statement);
    json_object_foreach(rules, rule, number)
    {
        if (size < sizeof text)
            size += (size_t)snprintf(text + size, sizeof text - size, " %s=%lld", rule,
                                     (long long)json_integer_value(number));
    }
    status = tl_act_note(client, &act, text);
    if (status == TL_ACCESS_DENIED)
        fprintf(stderr, "%sthis audit is not on record: an operator's account may write one\n",
                fleet_said_by());
    else if (status != TL_OK)
        fprintf(stderr, "%sthis audit is not on record: %s\n", fleet_said_by(), tl_error_message());
    json_decref(rules);
}
