/* Loads a plug-in, after a look at who may write it. */
#ifndef WORKER_PLUGIN_H
#define WORKER_PLUGIN_H

#include <tradelock/plugin.h>

#include <stddef.h>

/* The entry of the plug-in at this path; NULL: it is refused, and `problem` has the sentence.  It
 * stays loaded for as long as the process lives. */
const tl_plugin *plugin_load(const char *path, char *problem, size_t space);

#endif
