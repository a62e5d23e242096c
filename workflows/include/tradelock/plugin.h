/*
 * plugin.h - a service's workflows as a file that `tradelock-worker --plugin FILE` loads.
 *
 * A plug-in is a shared object that exports one entry, under exactly this name:
 *
 *     static tl_status open(tl_client *client, tl_workflows *workflows, const char *config_file,
 *                           void **state);
 *
 *     const tl_plugin tradelock_plugin = {
 *         .version = TL_PLUGIN_VERSION, .size = sizeof(tl_plugin), .name = "payout", .open = open};
 *
 *     cc -shared -fPIC payout.c $(pkg-config --cflags --libs tradelock-workflow) -o payout.so
 *
 * The program does the rest: settings, connection, session, threads, log, metrics, signals.  It
 * loads one plug-in and never unloads it.  The file and all folders above it must be writable by
 * root and the program's own account alone, since whoever can write them can pay.
 */
#ifndef TRADELOCK_PLUGIN_H
#define TRADELOCK_PLUGIN_H

#include <tradelock/workflow.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TL_PLUGIN_VERSION 1u

/* What a plug-in offers to the worker. */
typedef struct tl_plugin {
    uint32_t version; /* TL_PLUGIN_VERSION; any other is refused */
    uint32_t size;    /* sizeof(tl_plugin).  Fields are added at its end; a program refuses what is
                         larger than it knows */
    const char
        *name; /* for the log, the session row and systemd: 1 to 64 visible ASCII characters */
    /*
     * Registers the workflows.  config_file is the program's settings file, "" if it has none: a
     * plug-in keeps its own settings in a section [service-NAME] there, which the library passes
     * over.  *state is NULL
     * before, and handed to close().
     *
     * TL_OK; or another status, with a sentence left by tl_error_report() or by the call of the
     * library that failed.  It has then freed what it made, and close() is not called; what it
     * registered is never run.
     *
     * It may be called again, with another registry, before what it opened first is closed: so a
     * program reads its settings anew.  It must not fork, nor take signals.
     */
    tl_status (*open)(tl_client *client, tl_workflows *workflows, const char *config_file,
                      void **state);
    /* After the registry was freed, so that no callback is under way, and before the client is
     * closed.  NULL: there is nothing to free. */
    void (*close)(void *state);
} tl_plugin;

/* What a plug-in defines. */
TL_EXPORT extern const tl_plugin tradelock_plugin;

#ifdef __cplusplus
}
#endif
#endif
