/* --dry-run: what is due. */
#ifndef WORKER_DUE_H
#define WORKER_DUE_H

#include <tradelock/workflow.h>

/* Prints a line for each operation that is registered, and for each other one that has work due. */
tl_status due_print(tl_client *client, tl_workflows *workflows);

#endif
