/*
 * Memory.  Everything in the workflow layer is allocated here, so that a test can let the
 * n-th allocation of both libraries together fail.  Freed with free().
 */
#ifndef TL_WORKFLOWS_MEMORY_H
#define TL_WORKFLOWS_MEMORY_H

#include <stddef.h>

/* Filled with zeros; NULL when there is none left.  A block of no bytes is a block. */
void *workflow_memory(size_t size);

/* At the beginning of every public call: the sentence of an earlier one is forgotten. */
void workflow_call_begins(void);

#endif
