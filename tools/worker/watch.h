/* Tells systemd how the worker does (sd_notify(3)).  Without NOTIFY_SOCKET in the environment, or
 * built without libsystemd, all of it does nothing. */
#ifndef WORKER_WATCH_H
#define WORKER_WATCH_H

#include "either.h"

/* READY=1, and what is served. */
void watch_ready(const char *served);
/* To be called often.  Feeds the watchdog while the worker makes progress, and tells its state when
 * it has changed. */
void watch_worker(const either *worker);
/* STOPPING=1: systemd's own limit for stopping counts from now on. */
void watch_stopping(void);

#endif
