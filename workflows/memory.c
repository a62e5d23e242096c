/* Allocates for the workflow layer; tests can let any allocation fail.  Touches the heap. */
#include "memory.h"

#include <tradelock/test_hooks.h>

#include <stdlib.h>

void *workflow_memory(size_t size)
{
    if (tl_test_allocation())
        return NULL;
    return calloc(1, size > 0 ? size : 1);
}

void workflow_call_begins(void)
{
    (void)tl_error_report(TL_OK, "%s", "");
}
