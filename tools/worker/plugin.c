/*
 * A plug-in's file, and its entry.
 *
 * Whoever can write the file, or a folder above it, decides what is run with the account that pays.
 * So all of them belong to root or to this account, and nobody else may write them: then nobody can
 * change the file between this look and dlopen() either.  In a sticky folder, as /tmp, others may
 * write and yet not rename or remove what is not theirs.  The look is at the path without symbolic
 * links, and that path is loaded.  It comes first, since loading runs the plug-in's constructors.
 */
#include "plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENTRY "tradelock_plugin"
#define NAME_MAX_CHARS 64u

static int check_one(const char *path, char *problem, size_t space)
{
    struct stat about;

    if (stat(path, &about) != 0) {
        snprintf(problem, space, "%s: %s", path, strerror(errno));
        return 0;
    }
    if (about.st_uid != 0 && about.st_uid != geteuid()) {
        snprintf(problem, space,
                 "%s belongs to neither root nor this account, so others could change what is run",
                 path);
        return 0;
    }
    if ((about.st_mode & (S_IWGRP | S_IWOTH)) != 0 &&
        !(S_ISDIR(about.st_mode) && (about.st_mode & S_ISVTX) != 0)) {
        snprintf(problem, space, "%s can be written by others (mode %04o)", path,
                 (unsigned)(about.st_mode & 07777));
        return 0;
    }
    return 1;
}

/* From the root down, the file last. */
static int check_writers(char *path, char *problem, size_t space)
{
    struct stat about;

    if (!check_one("/", problem, space))
        return 0;
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        int fine;

        *slash = '\0';
        fine = check_one(path, problem, space);
        *slash = '/';
        if (!fine)
            return 0;
    }
    if (!check_one(path, problem, space))
        return 0;
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode)) {
        snprintf(problem, space, "%s is not a regular file", path);
        return 0;
    }
    return 1;
}

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
    char resolved[PATH_MAX];
    const tl_plugin *entry;
    void *loaded;

    if (realpath(path, resolved) == NULL) {
        snprintf(problem, space, "the plug-in %s: %s", path, strerror(errno));
        return NULL;
    }
    if (!check_writers(resolved, problem, space))
        return NULL;
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
