/*
 * Whoever can write the file, or a folder above it, decides what it says.  So all of them belong to
 * root or to this account, and nobody else may write them: then nobody can change the file between
 * this look and its opening either.  In a sticky folder, as /tmp, others may write and yet not rename
 * or remove what is not theirs.  Touches no state.
 */
#include "base/writers.h"

#include "base/error.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(TL_PATH >= PATH_MAX, "realpath() has its room");

static tl_status check_mode(const char *path, const struct stat *about)
{
    if ((about->st_mode & (S_IWGRP | S_IWOTH)) == 0 ||
        (S_ISDIR(about->st_mode) && (about->st_mode & S_ISVTX) != 0))
        return TL_OK;
    return error_set(TL_INVALID, "%s can be written by others (mode %04o)", path,
                     (unsigned)(about->st_mode & 07777));
}

static tl_status check_one(const char *path, int any_owner, struct stat *about)
{
    if (stat(path, about) != 0)
        return error_set(TL_INVALID, "%s: %s", path, strerrordesc_np(errno));
    if (!any_owner && about->st_uid != 0 && about->st_uid != geteuid())
        return error_set(TL_INVALID,
                         "%s belongs to neither root nor this account, so others could change it",
                         path);
    return check_mode(path, about);
}

/* From the root down, the file last. */
tl_status writers_check(const char *path, int only_read, char resolved[TL_PATH])
{
    struct stat about;
    tl_status status;
    int is_roots;

    if (path == NULL || resolved == NULL)
        return error_set(TL_INVALID, "no file was named");
    if (realpath(path, resolved) == NULL)
        return error_set(TL_INVALID, "%s: %s", path, strerrordesc_np(errno));
    status = check_one("/", 0, &about);
    for (char *slash = resolved; status == TL_OK && (slash = strchr(slash + 1, '/')) != NULL;) {
        *slash = '\0';
        status = check_one(resolved, 0, &about);
        *slash = '/';
    }
    is_roots = geteuid() == 0 && (about.st_mode & (S_IWGRP | S_IWOTH)) == 0;
    if (status == TL_OK)
        status = check_one(resolved, only_read && is_roots, &about);
    if (status == TL_OK && !S_ISREG(about.st_mode))
        status = error_set(TL_INVALID, "%s is not a regular file", resolved);
    return status;
}

tl_status tl_writers_check(const char *path, char resolved[TL_PATH])
{
    return writers_check(path, 0, resolved);
}
