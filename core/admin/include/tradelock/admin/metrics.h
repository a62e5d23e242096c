/*
 * admin/metrics.h - what waits in the database, as text for Prometheus.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>; the text and write() are as
 * in <tradelock/metrics.h>.
 */
#ifndef TRADELOCK_ADMIN_METRICS_H
#define TRADELOCK_ADMIN_METRICS_H

#include <tradelock/metrics.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Writes how much waits, for how long, and who is alive, for all processes of the database.  It
 * reads what is unresolved by index, at most some ten thousands of rows for an operation, and never
 * walks through what is finished.  write() is first called when everything was read.  Needs a
 * reader's account; a client with TL_CLIENT_NO_SESSION and TL_CLIENT_NO_SCHEMA will do.
 *
 *     TL_OK               All of it was written.
 *     TL_CALLBACK_FAILED  write() did not return 0.
 *     TL_NO_SCHEMA, TL_WRONG_SCHEMA, TL_UNREACHABLE, TL_ACCESS_DENIED ...
 *                         The database could not be read, and write() was not called.
 */
TL_EXPORT tl_status tl_metrics_write_database(tl_client *client, tl_metrics_fn write,
                                              void *context);

#ifdef __cplusplus
}
#endif
#endif
