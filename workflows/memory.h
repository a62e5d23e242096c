/*
 * Memory.  All of the workflow layer allocates here, so that a test can let the n-th allocation of
 * both libraries together fail.  Free it with free().
 */
#ifndef TL_WORKFLOWS_MEMORY_H
#define TL_WORKFLOWS_MEMORY_H

#include <stddef.h>

/* Filled with zeros; NULL: no memory is left.  A block of 0 bytes is not NULL. */
void *workflow_memory(size_t size);

/* Called at the beginning of every public call: clears the sentence of an earlier one. */
void workflow_call_begins(void);

#endif
