/* Serves metrics to Prometheus over HTTP: GET /metrics, and GET /healthz for whoever keeps programs
 * running. */
#ifndef TRADELOCK_METRICS_SERVER_H
#define TRADELOCK_METRICS_SERVER_H

#include <tradelock/metrics.h>

typedef struct metrics_server metrics_server;

/* Hands the text to write(to, ...), on a thread of the server's, for one scrape after the other.  TL_OK;
 * else the scraper gets an error with the sentence of tl_error_message(). */
typedef tl_status (*metrics_page_fn)(void *context, tl_metrics_fn write, void *to);

/* TL_OK: 200.  Else 503, with the sentence of tl_error_message().  On threads of the server's, several at
 * once, also while a page is made. */
typedef tl_status (*metrics_health_fn)(void *context);

/* Listens on an address such as 127.0.0.1:9464, in threads of its own; port 0 is any free one.
 * NULL: it cannot, and `problem` has the sentence.  Block signals before, since its threads have the
 * caller's mask.  health NULL: who answers is well. */
metrics_server *metrics_server_start(const char *listen, metrics_page_fn page, void *context,
                                     metrics_health_fn health, void *health_context, char *problem,
                                     size_t space);
/* "http://127.0.0.1:9464/metrics" */
const char *metrics_server_url(const metrics_server *server);
/* Ends the scrape under way first; NULL is allowed. */
void metrics_server_stop(metrics_server *server);

/* The setting metrics_listen of the client obeyed, which must outlive the server: *out is NULL
 * where it is off.  Prints where it listens to standard output.  0, or `problem` says what is
 * wrong. */
int metrics_server_open(metrics_server **out, const tl_client *client, metrics_health_fn health,
                        void *health_context, char *problem, size_t space);

#endif
