/*
 * A plug-in's file, and its entry.  The look at who can write it comes first, since loading runs the
 * plug-in's constructors.
 */
#include "plugin.h"

#include <tradelock/layer.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define ENTRY "tradelock_plugin"
#define NAME_MAX_CHARS 64u

static int is_name(const char *name)
{
    const size_t size = name != NULL ? strnlen(name, NAME_MAX_CHARS + 1) : 0;

    if (size == 0 || size > NAME_MAX_CHARS)
        return 0;
    for (size_t i = 0; i < size; i++)
        if (name[i] <= ' ' || name[i] > '~')
            return 0;
    return 1;
}

/* Of another version nothing else is read: it may lie elsewhere. */
static int check_entry(const tl_plugin *entry, const char *path, char *problem, size_t space)
{
    if (entry->version != TL_PLUGIN_VERSION)
        snprintf(problem, space, "%s has version %u of the plug-in's entry, and this program %u",
                 path, (unsigned)entry->version, TL_PLUGIN_VERSION);
    else if (entry->size != sizeof *entry)
        snprintf(problem, space,
                 "%s was built with another plugin.h: its entry has %u bytes, and this program's "
                 "%zu",
                 path, (unsigned)entry->size, sizeof *entry);
    else if (!is_name(entry->name))
        snprintf(problem, space, "%s: the name is not 1 to %u visible ASCII characters", path,
                 NAME_MAX_CHARS);
    else if (entry->open == NULL)
        snprintf(problem, space, "%s: its entry has no open()", path);
    else
        return 1;
    return 0;
}

const tl_plugin *plugin_load(const char *path, char *problem, size_t space)
{
    char resolved[TL_PATH];
    const tl_plugin *entry;
    void *loaded;

    if (tl_writers_check(path, resolved) != TL_OK) {
        snprintf(problem, space, "the plug-in: %s", tl_error_message());
        return NULL;
    }
    loaded = dlopen(resolved, RTLD_NOW | RTLD_LOCAL);
    if (loaded == NULL) {
        snprintf(problem, space, "the plug-in cannot be loaded: %s", dlerror());
        return NULL;
    }
    entry = dlsym(loaded, ENTRY);
    if (entry == NULL) {
        snprintf(problem, space, "%s is no plug-in: it has no symbol " ENTRY, path);
        return NULL;
    }
    return check_entry(entry, path, problem, space) ? entry : NULL;
}
