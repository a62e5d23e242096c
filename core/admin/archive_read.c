/* Reads the files of a set: compares them with its manifest, and unpacks them.  Changes nothing. */
#include "admin/archive.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static tl_status open_file(const archive_dir *self, uint32_t set, int file, char *name,
                           size_t space, int *fd)
{
    snprintf(name, space, "%08" PRIu32 "/%s", set, archive_file_name(file));
    *fd = openat(self->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return *fd < 0 ? archive_problem(self, name, "read") : TL_OK;
}

static tl_status verify_file(const archive_dir *self, const archive_manifest *m, int file)
{
    const archive_file_facts *facts = &m->files[file];
    unsigned char piece[ARCHIVE_PIECE];
    char name[64], sha[ARCHIVE_SHA];
    uint8_t digest[SHA256_SIZE];
    uint64_t bytes = 0;
    ssize_t got = 1;
    sha256 sum;
    int fd;

    TRY(open_file(self, m->set, file, name, sizeof name, &fd));
    sha256_begin(&sum);
    while (got > 0) {
        got = read(fd, piece, sizeof piece);
        if (got > 0) {
            sha256_add(&sum, piece, (size_t)got);
            bytes += (uint64_t)got;
        }
    }
    close(fd);
    if (got < 0)
        return archive_problem(self, name, "read");
    sha256_end(&sum, digest);
    text_hex(sha, digest, sizeof digest);
    if (bytes != facts->bytes)
        return error_set(TL_INVALID, "%s/%s has %" PRIu64 " bytes, and its manifest says %" PRIu64,
                         self->path, name, bytes, facts->bytes);
    if (strcmp(sha, facts->sha) != 0)
        return error_set(TL_INVALID, "%s/%s is not what was written: its SHA-256 is another",
                         self->path, name);
    return TL_OK;
}

tl_status archive_verify(archive_dir *self, const archive_manifest *manifest)
{
    for (int file = 0; file < ARCHIVE_FILES; file++)
        TRY(verify_file(self, manifest, file));
    return TL_OK;
}

/* -------------------------------------------------------------------- unpacking -- */

void *archive_take_memory(void *nothing, unsigned count, unsigned size)
{
    (void)nothing;
    return memory_new_array(count, size);
}

void archive_give_memory(void *nothing, void *block)
{
    (void)nothing;
    memory_free(block);
}

struct unpacking {
    z_stream stream;
    unsigned char in[ARCHIVE_PIECE], out[ARCHIVE_PIECE];
    int answer; /* of zlib */
};

static tl_status unpack(struct unpacking *u, size_t size, archive_take take, void *context)
{
    u->stream.next_in = u->in;
    u->stream.avail_in = (unsigned)size;
    do {
        u->stream.next_out = u->out;
        u->stream.avail_out = sizeof u->out;
        u->answer = inflate(&u->stream, Z_NO_FLUSH);
        if (u->answer != Z_OK && u->answer != Z_STREAM_END && u->answer != Z_BUF_ERROR)
            return error_set(TL_INVALID, "it cannot be unpacked");
        TRY(take(context, (const char *)u->out, sizeof u->out - u->stream.avail_out));
    } while (u->stream.avail_out == 0 && u->answer == Z_OK);
    return TL_OK;
}

static tl_status unpack_all(struct unpacking *u, int fd, archive_take take, void *context)
{
    ssize_t got = 1;

    while (u->answer != Z_STREAM_END && got > 0) {
        got = read(fd, u->in, sizeof u->in);
        if (got > 0)
            TRY(unpack(u, (size_t)got, take, context));
    }
    if (u->answer != Z_STREAM_END)
        return error_set(TL_INVALID, "it ends too early");
    return TL_OK;
}

tl_status archive_read(archive_dir *self, uint32_t set, int file, archive_take take, void *context)
{
    struct unpacking *u;
    char name[64];
    int fd;
    tl_status status;

    TRY(open_file(self, set, file, name, sizeof name, &fd));
    u = memory_new(sizeof *u);
    if (u != NULL) {
        u->stream.zalloc = archive_take_memory;
        u->stream.zfree = archive_give_memory;
    }
    if (u == NULL || inflateInit2(&u->stream, ARCHIVE_GZIP) != Z_OK) {
        status = error_set(TL_NO_MEMORY, "out of memory for reading an archive");
    } else {
        status = unpack_all(u, fd, take, context);
        inflateEnd(&u->stream);
    }
    memory_free(u);
    close(fd);
    return status;
}
