/* The directory of an archive: who may write there, which sets it has, what their manifests say.
 * Touches files only. */
#include "admin/archive.h"

#include "client/schema.h"

#include "base/error.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST_MAX 8192

tl_status archive_problem(const archive_dir *self, const char *name, const char *doing)
{
    const int number = errno;

    const int is_input = number == ENOENT || number == ENOTDIR || number == EACCES ||
                         number == EROFS || number == ELOOP;

    return error_set(is_input ? TL_INVALID : TL_INTERNAL, "%s%s%s cannot be %s: %s", self->path,
                     name[0] != '\0' ? "/" : "", name, doing, strerror(number));
}

static void name_set(char to[ARCHIVE_NAME], uint32_t set)
{
    snprintf(to, ARCHIVE_NAME, "%08" PRIu32, set);
}

/* ----------------------------------------------------------------- opening it -- */

/* What a purge that was cut off has left of a set that never got its name. */
static tl_status remove_part(const archive_dir *self, const char *name)
{
    const int fd = openat(self->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return archive_problem(self, name, "opened");
    for (int file = 0; file < ARCHIVE_FILES; file++)
        unlinkat(fd, archive_file_name(file), 0);
    unlinkat(fd, "manifest", 0);
    close(fd);
    if (unlinkat(self->fd, name, AT_REMOVEDIR) != 0)
        return archive_problem(self, name, "removed");
    return TL_OK;
}

/* 8 digits, and ".part" behind them where it was never finished. */
static int is_set(const char *name, uint32_t *set, int *is_part)
{
    if (strspn(name, "0123456789") != 8 ||
        (strcmp(name + 8, "") != 0 && strcmp(name + 8, ".part") != 0))
        return 0;
    *set = (uint32_t)strtoul(name, NULL, 10);
    *is_part = name[8] != '\0';
    return *set > 0;
}

static tl_status find_sets(archive_dir *self, int writes)
{
    const int fd = openat(self->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    tl_status status = TL_OK;
    uint32_t set;
    int is_part;

    if (dir == NULL) {
        status = archive_problem(self, "", "read");
        if (fd >= 0)
            close(fd);
        return status;
    }
    while (status == TL_OK && (entry = readdir(dir)) != NULL) {
        if (!is_set(entry->d_name, &set, &is_part))
            continue;
        if (is_part && writes)
            status = remove_part(self, entry->d_name);
        else if (!is_part && set > self->last)
            self->last = set;
    }
    closedir(dir);
    return status;
}

static tl_status check_owner(const archive_dir *self)
{
    struct stat about;

    if (fstat(self->fd, &about) != 0)
        return archive_problem(self, "", "looked at");
    if (about.st_uid != geteuid() && about.st_uid != 0)
        return error_set(TL_INVALID, "%s belongs to somebody else: no archive is written there",
                         self->path);
    if (about.st_mode & (S_IWGRP | S_IWOTH))
        return error_set(TL_INVALID,
                         "%s may be written by others: no archive is written there (chmod go-w)",
                         self->path);
    return TL_OK;
}

static tl_status take_lock(archive_dir *self)
{
    self->lock_fd = openat(self->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (self->lock_fd < 0)
        return archive_problem(self, "lock", "written");
    if (flock(self->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return TL_OK;
    if (errno == EWOULDBLOCK)
        return error_set(TL_BUSY, "another purge writes to %s", self->path);
    return archive_problem(self, "lock", "locked");
}

tl_status archive_open(archive_dir *self, const char *path, int writes)
{
    tl_status status = TL_OK;

    *self = (archive_dir){.path = path, .fd = -1, .lock_fd = -1, .last_sha = "-"};
    self->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (self->fd < 0)
        status = archive_problem(self, "", "opened");
    if (status == TL_OK && writes)
        status = check_owner(self);
    if (status == TL_OK && writes)
        status = take_lock(self);
    if (status == TL_OK)
        status = find_sets(self, writes);
    if (status != TL_OK)
        archive_close(self);
    return status;
}

void archive_close(archive_dir *self)
{
    if (self->lock_fd >= 0)
        close(self->lock_fd);
    if (self->fd >= 0)
        close(self->fd);
    self->lock_fd = self->fd = -1;
}

/* ------------------------------------------------------------------ manifests -- */

/* Reads a small file whole; *size is at most MANIFEST_MAX. */
static tl_status read_small(const archive_dir *self, const char *set, char *to, size_t *size)
{
    char name[ARCHIVE_NAME + 16];
    ssize_t got = 1;
    int fd;

    snprintf(name, sizeof name, "%s/manifest", set);
    fd = openat(self->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return archive_problem(self, name, "read");
    *size = 0;
    while (got > 0 && *size < MANIFEST_MAX) {
        got = read(fd, to + *size, MANIFEST_MAX - *size);
        if (got > 0)
            *size += (size_t)got;
    }
    close(fd);
    to[*size] = '\0';
    return got < 0 ? archive_problem(self, name, "read") : TL_OK;
}

/* "name value" is the next line; *at goes on to the one after. */
static int take_line(char **at, const char *name, char *to, size_t space)
{
    const size_t size = strlen(name);
    char *end = strchr(*at, '\n');
    int fits;

    if (end == NULL || strncmp(*at, name, size) != 0 || (*at)[size] != ' ')
        return 0;
    *end = '\0';
    fits = text_copy(to, space, *at + size + 1);
    *at = end + 1;
    return fits;
}

static int take_number(char **at, const char *name, uint64_t *to)
{
    char text[24], *end;

    if (!take_line(at, name, text, sizeof text) || strspn(text, "0123456789") == 0)
        return 0;
    *to = strtoull(text, &end, 10);
    return *end == '\0';
}

static int take_file(char **at, int file, archive_file_facts *to)
{
    char text[256], name[32];

    return take_line(at, "file", text, sizeof text) &&
           sscanf(text, "%31s rows %" SCNu64 " bytes %" SCNu64 " sha256 %64s", name, &to->rows,
                  &to->bytes, to->sha) == 4 &&
           strcmp(name, archive_file_name(file)) == 0;
}

static int take_all(char *at, archive_manifest *m)
{
    uint64_t set, older_ms;
    int good = take_line(&at, "installation", m->installation, sizeof m->installation) &&
               take_line(&at, "database", m->database, sizeof m->database) &&
               take_line(&at, "server", m->server, sizeof m->server) &&
               take_line(&at, "account", m->account, sizeof m->account) &&
               take_line(&at, "written_at", m->written_at, sizeof m->written_at) &&
               take_number(&at, "older_ms", &older_ms) && take_number(&at, "set", &set) &&
               take_line(&at, "before", m->before, sizeof m->before) &&
               take_number(&at, "trades", &m->trades) &&
               take_line(&at, "oldest", m->oldest, sizeof m->oldest) &&
               take_line(&at, "newest", m->newest, sizeof m->newest);

    for (int file = 0; good && file < ARCHIVE_FILES; file++)
        good = take_file(&at, file, &m->files[file]);
    if (!good || at[0] != '\0')
        return 0;
    m->set = (uint32_t)set;
    m->older_ms = (int64_t)older_ms;
    return 1;
}

/* The last line is the sum of all before it.  Cuts it off. */
static int sum_is_right(archive_manifest *m, char *text, size_t size)
{
    uint8_t digest[SHA256_SIZE];
    const size_t last = strlen("sha256 \n") + 2 * (size_t)SHA256_SIZE;
    char *at = text + size - last;

    if (size < last || strlen(text) != size || strncmp(at, "sha256 ", 7) != 0 ||
        text[size - 1] != '\n')
        return 0;
    sha256_of(digest, text, size - last);
    text_hex(m->sha, digest, sizeof digest);
    if (strncmp(m->sha, at + 7, 2 * (size_t)SHA256_SIZE) != 0)
        return 0;
    *at = '\0';
    return 1;
}

tl_status archive_read_manifest(archive_dir *self, uint32_t set, archive_manifest *manifest)
{
    char name[ARCHIVE_NAME], text[MANIFEST_MAX + 1], *at = text;
    uint64_t format = 0, schema = 0;
    size_t size = 0;

    *manifest = (archive_manifest){.set = set};
    name_set(name, set);
    TRY(read_small(self, name, text, &size));
    if (!sum_is_right(manifest, text, size))
        return error_set(TL_INVALID, "%s/%s/manifest is cut short or was changed", self->path,
                         name);
    if (!take_number(&at, "tradelock-archive", &format) || !take_number(&at, "schema", &schema))
        return error_set(TL_INVALID, "%s/%s/manifest is not one of an archive", self->path, name);
    manifest->schema = (unsigned)schema;
    if (format != 1 || schema > schema_newest())
        return error_set(TL_WRONG_SCHEMA,
                         "%s/%s was written with schema %u, and this program knows schema %u: it "
                         "must be upgraded",
                         self->path, name, manifest->schema, schema_newest());
    if (!take_all(at, manifest) || manifest->set != set)
        return error_set(TL_INVALID, "%s/%s/manifest is not one of an archive", self->path, name);
    return TL_OK;
}

/* ------------------------------------------------------- what was removed of it -- */

int archive_has(const archive_dir *self, uint32_t set)
{
    char name[ARCHIVE_NAME];

    name_set(name, set);
    return faccessat(self->fd, name, F_OK, 0) == 0;
}

static void name_mark(char path[static ARCHIVE_NAME + 16], uint32_t set)
{
    char name[ARCHIVE_NAME];

    name_set(name, set);
    snprintf(path, ARCHIVE_NAME + 16, "%s/removed", name);
}

int archive_is_removed(const archive_dir *self, uint32_t set)
{
    char path[ARCHIVE_NAME + 16];

    name_mark(path, set);
    return faccessat(self->fd, path, F_OK, 0) == 0;
}

uint64_t archive_removed(const archive_dir *self, uint32_t set)
{
    char path[ARCHIVE_NAME + 16], text[64] = "";
    int fd;

    name_mark(path, set);
    fd = openat(self->fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        text[0] = '\0';
    if (fd >= 0)
        close(fd);
    return strtoull(text, NULL, 10);
}

/* Only said, never relied on to be there: without it the set is gone through once more. */
tl_status archive_mark_removed(archive_dir *self, uint32_t set, uint64_t removed)
{
    char path[ARCHIVE_NAME + 16], text[64];
    const int size = snprintf(text, sizeof text, "%" PRIu64 " trades\n", removed);
    int fd, failed;

    name_mark(path, set);
    fd = openat(self->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return archive_problem(self, path, "written");
    failed = write(fd, text, (size_t)size) != size || fsync(fd) != 0;
    if (close(fd) != 0 || failed)
        return archive_problem(self, path, "written");
    return TL_OK;
}
