/* Chooses the form of a statement: in builds with TL_TEST_HOOKS, the one without the safety rule
 * that the environment switches off.  The build makes those forms (tools/dev/embed_sql).
 * Touches no state. */
#include "store/mutation.h"

#ifdef TL_TEST_HOOKS

#include "base/fault.h"
#include "sql_text.h"

const struct sql_text *store_mutated(const struct sql_text *statement)
{
    const int rules = (fault_mutated("fence") ? 1 : 0) + (fault_mutated("token") ? 2 : 0);

    return rules != 0 && statement->without != NULL ? statement->without[rules - 1] : statement;
}

#else

/* ISO C forbids an empty file. */
typedef int mutation_needs_test_hooks;

#endif
