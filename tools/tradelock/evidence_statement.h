/* Filing a bank's statement. */
#ifndef TRADELOCK_EVIDENCE_STATEMENT_H
#define TRADELOCK_EVIDENCE_STATEMENT_H

#include "command.h"
#include "statement.h"

struct filing {
    struct statement *statement;
    const char *path;
    struct statement_rules rules;
    const char *source, *reason, *actor;
    int has_yes;
    uint64_t yes;
};

/* After fleet_begin() it shows what it would file, and files it once that is agreed, each payment at
 * the shard that has its customer; returns the exit code. */
int evidence_statement(const struct common *common, const struct filing *filing);

#endif
