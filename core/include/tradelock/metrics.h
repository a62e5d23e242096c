/*
 * metrics.h - what a process did, as text for Prometheus (version 0.0.4 of its format).
 *
 * A client counts by itself, always.  A program that wants to be watched writes the text where a
 * scraper finds it: into a file, or as the answer of an endpoint (tools/metrics_server.h).  What
 * hangs in the database is told by `tradelock exporter` instead, once for all processes.
 *
 * No metric and no label has a serial number, a customer, a payload or a reference.
 */
#ifndef TRADELOCK_METRICS_H
#define TRADELOCK_METRICS_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The content type of the text. */
#define TL_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Takes the next piece of the text, which has no NUL at its end and lives until this returns.
 * Pieces end anywhere.  Returns 0 to go on. */
typedef int (*tl_metrics_fn)(void *context, const char *text, size_t size);

/*
 * Hands the metrics of this client to write(), in pieces of a few kilobytes, from first to last
 * line on the calling thread.  It allocates nothing, asks the server nothing and waits for nobody,
 * so it also answers while the server is away.  Any thread may call it at any time, several at
 * once; numbers that change meanwhile may be of slightly different moments.  Counters begin at 0
 * when the client is opened, and never fall.
 *
 *     TL_OK               All of it was written.
 *     TL_CALLBACK_FAILED  write() did not return 0; it was not called again.
 *     TL_INVALID          client or write is NULL.
 */
TL_EXPORT tl_status tl_metrics_write(const tl_client *client, tl_metrics_fn write, void *context);

/* The setting metrics_listen: where the program is asked to serve its metrics, as
 * "127.0.0.1:9464"; "": nowhere.  The library itself listens nowhere.  It lives as long as the
 * client. */
TL_EXPORT const char *tl_metrics_listen(const tl_client *client);

/* TL_OK: text names a port on this machine's loopback, as 127.0.0.1:9464 (port 0: any free one), or
 * expressly one beyond it, as public:0.0.0.0:9464: plain HTTP, which whoever reaches it may read.
 * TL_BAD_CONFIG: it does neither; `what` names it in the sentence. */
#define TL_LISTEN_PUBLIC "public:"
TL_EXPORT tl_status tl_metrics_check_listen(const char *what, const char *text);

#ifdef __cplusplus
}
#endif
#endif
