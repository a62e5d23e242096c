/* The record that an audit leaves. */
#ifndef TRADELOCK_AUDIT_NOTE_H
#define TRADELOCK_AUDIT_NOTE_H

#include "command.h"

#include <tradelock/admin.h>

/* What was found by one rule. */
struct by_rule {
    char rule[32];
    uint64_t violations, closed;
};

/* Notes an audit that is complete, with the open violations by rule; statement NULL: without one.
 * An account that may only read leaves no record, and is told so. */
void audit_note(tl_client *client, const tl_audit_counts *counts, const struct by_rule *rules,
                size_t count, const char *statement);

#endif
