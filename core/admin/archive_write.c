/* Writes a set of an archive: packs rows into the files of ".part", syncs them with their
 * directory, and gives it its name.  Touches files only. */
#include "admin/archive.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <tradelock/test_hooks.h>

#define ZLIB_CONST
#include <csv.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* Most of a row is random (tokens, fingerprints), so that packing harder saves little. */
#define LEVEL 4

typedef struct packed {
    int fd;
    z_stream stream;
    int has_stream;
    sha256 sum;
    uint64_t rows, bytes;
    unsigned char out[ARCHIVE_PIECE];
} packed;

struct archive_writer {
    archive_dir *archive;
    uint32_t set;
    int fd;                      /* of the set's directory; -1 */
    char part[ARCHIVE_NAME + 8]; /* its name until it is complete */
    packed files[ARCHIVE_FILES];
    uint64_t trades;
    char oldest[32], newest[32];
    struct text_buffer text;
    int is_finished;
};

/* ---------------------------------------------------------------- packed files -- */

static tl_status write_out(archive_writer *w, int file, size_t size)
{
    packed *p = &w->files[file];
    size_t done = 0;

    while (done < size) {
        const ssize_t wrote = write(p->fd, p->out + done, size - done);

        if (wrote < 0 && errno != EINTR)
            return archive_problem(w->archive, archive_file_name(file), "written");
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    sha256_add(&p->sum, p->out, size);
    p->bytes += size;
    return TL_OK;
}

static tl_status pack(archive_writer *w, int file, const char *data, size_t size, int flush)
{
    packed *p = &w->files[file];
    int answer = Z_OK;

    p->stream.next_in = (const unsigned char *)data;
    p->stream.avail_in = (unsigned)size;
    do {
        p->stream.next_out = p->out;
        p->stream.avail_out = sizeof p->out;
        answer = deflate(&p->stream, flush);
        if (answer == Z_STREAM_ERROR)
            return error_set(TL_INTERNAL, "%s could not be packed", archive_file_name(file));
        TRY(write_out(w, file, sizeof p->out - p->stream.avail_out));
    } while (p->stream.avail_out == 0);
    return TL_OK;
}

static tl_status pack_text(archive_writer *w, int file)
{
    if (w->text.failed)
        return error_set(TL_NO_MEMORY, "out of memory for a page of an archive");
    if (w->text.size > UINT32_MAX)
        return error_set(TL_INTERNAL, "a page of an archive is too large");
    TRY(pack(w, file, w->text.data, w->text.size, Z_NO_FLUSH));
    text_buffer_clear(&w->text);
    return TL_OK;
}

static tl_status open_file(archive_writer *w, int file)
{
    packed *p = &w->files[file];

    p->fd = openat(w->fd, archive_file_name(file), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (p->fd < 0)
        return archive_problem(w->archive, w->part, "written");
    p->stream.zalloc = archive_take_memory;
    p->stream.zfree = archive_give_memory;
    if (deflateInit2(&p->stream, LEVEL, Z_DEFLATED, ARCHIVE_GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return error_set(TL_NO_MEMORY, "out of memory for the files of an archive");
    p->has_stream = 1;
    sha256_begin(&p->sum);
    if (file < ARCHIVE_TABLES) {
        text_buffer_append_text(&w->text, archive_tables[file].names);
        text_buffer_append_text(&w->text, "\n");
    }
    return pack_text(w, file);
}

static tl_status close_file(archive_writer *w, int file, archive_file_facts *facts)
{
    packed *p = &w->files[file];
    uint8_t digest[SHA256_SIZE];

    TRY(pack(w, file, "", 0, Z_FINISH));
    if (fsync(p->fd) != 0)
        return archive_problem(w->archive, archive_file_name(file), "synced");
    sha256_end(&p->sum, digest);
    text_hex(facts->sha, digest, sizeof digest);
    facts->rows = p->rows;
    facts->bytes = p->bytes;
    return TL_OK;
}

/* ----------------------------------------------------------------------- pages -- */

tl_status archive_begin(archive_dir *self, archive_writer **out)
{
    archive_writer *w = memory_new(sizeof *w);
    tl_status status = TL_OK;

    if (w == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for an archive");
    w->archive = self;
    w->set = self->last + 1;
    w->fd = -1;
    for (int file = 0; file < ARCHIVE_FILES; file++)
        w->files[file].fd = -1;
    text_buffer_init(&w->text);
    snprintf(w->part, sizeof w->part, "%08" PRIu32 ".part", w->set);
    if (mkdirat(self->fd, w->part, 0700) != 0 ||
        (w->fd = openat(self->fd, w->part, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        status = archive_problem(self, w->part, "made");
    for (int file = 0; status == TL_OK && file < ARCHIVE_FILES; file++)
        status = open_file(w, file);
    if (status == TL_OK)
        *out = w;
    else
        archive_end(w);
    return status;
}

/* NULL is nothing, everything else stands in quotes. */
static void add_field(struct text_buffer *to, const db_result *rows, size_t row, size_t column)
{
    size_t size = 0, space;
    const void *data = db_get_bytes(rows, row, column, &size);
    char *at;

    if (db_is_null(rows, row, column))
        return;
    space = 2 * size + 2;
    at = text_buffer_room(to, space);
    if (at != NULL)
        text_buffer_grew(to, at + csv_write2(at, space, data, size, '"'));
}

static void keep_period(archive_writer *w, const db_result *rows)
{
    const size_t column = archive_column(ARCHIVE_TRADE_LOCK, "updated_at");

    for (size_t row = 0; row < rows->rows; row++) {
        const char *at = db_get_text(rows, row, column);

        if (w->oldest[0] == '\0' || strcmp(at, w->oldest) < 0)
            text_copy(w->oldest, sizeof w->oldest, at);
        if (strcmp(at, w->newest) > 0)
            text_copy(w->newest, sizeof w->newest, at);
    }
}

static tl_status add_rows(archive_writer *w, int table, const db_result *rows)
{
    for (size_t row = 0; row < rows->rows; row++) {
        for (size_t column = 0; column < rows->columns; column++) {
            if (column > 0)
                text_buffer_append_text(&w->text, ",");
            add_field(&w->text, rows, row, column);
        }
        text_buffer_append_text(&w->text, "\n");
    }
    w->files[table].rows += rows->rows;
    return pack_text(w, table);
}

tl_status archive_add(archive_writer *writer, const char *named, uint64_t trades,
                      const db_result rows[ARCHIVE_TABLES])
{
    for (int table = 0; table < ARCHIVE_TABLES; table++)
        TRY(add_rows(writer, table, &rows[table]));
    keep_period(writer, &rows[ARCHIVE_TRADE_LOCK]);
    text_buffer_append_text(&writer->text, named);
    text_buffer_append_text(&writer->text, "\n");
    TRY(pack_text(writer, ARCHIVE_TRADES));
    writer->files[ARCHIVE_TRADES].rows++;
    writer->trades += trades;
    return TL_OK;
}

/* ------------------------------------------------------------------- the set -- */

static void write_manifest(archive_writer *w, const archive_manifest *m)
{
    struct text_buffer *to = &w->text;
    uint8_t digest[SHA256_SIZE];
    char sum[ARCHIVE_SHA];

    text_buffer_append_format(to,
                              "tradelock-archive 1\nschema %u\ninstallation %s\n"
                              "database %s\nserver %s\naccount %s\n"
                              "written_at %s\nolder_ms %" PRId64 "\nset %" PRIu32 "\nbefore %s\n",
                              m->schema, m->installation, m->database, m->server, m->account,
                              m->written_at, m->older_ms, m->set, m->before);
    text_buffer_append_format(to, "trades %" PRIu64 "\noldest %s\nnewest %s\n", m->trades,
                              m->oldest, m->newest);
    for (int file = 0; file < ARCHIVE_FILES; file++)
        text_buffer_append_format(to, "file %s rows %" PRIu64 " bytes %" PRIu64 " sha256 %s\n",
                                  archive_file_name(file), m->files[file].rows,
                                  m->files[file].bytes, m->files[file].sha);
    if (to->failed)
        return;
    sha256_of(digest, to->data, to->size);
    text_hex(sum, digest, sizeof digest);
    text_buffer_append_format(to, "sha256 %s\n", sum);
    text_copy(w->archive->last_sha, sizeof w->archive->last_sha, sum);
}

static tl_status save_manifest(archive_writer *w, const archive_manifest *m)
{
    int fd, failed;

    write_manifest(w, m);
    if (w->text.failed)
        return error_set(TL_NO_MEMORY, "out of memory for the manifest of an archive");
    fd = openat(w->fd, "manifest", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return archive_problem(w->archive, "manifest", "written");
    failed = write(fd, w->text.data, w->text.size) != (ssize_t)w->text.size || fsync(fd) != 0;
    if (close(fd) != 0 || failed)
        return archive_problem(w->archive, "manifest", "written");
    return TL_OK;
}

/* From here on the set is there, also after the machine lost its power. */
static tl_status give_name(archive_writer *w)
{
    char name[ARCHIVE_NAME];

    snprintf(name, sizeof name, "%08" PRIu32, w->set);
    tl_test_point('S', "archive_sync", "before");
    if (fsync(w->fd) != 0)
        return archive_problem(w->archive, w->part, "synced");
    tl_test_point('S', "archive_name", "before");
    if (renameat(w->archive->fd, w->part, w->archive->fd, name) != 0)
        return archive_problem(w->archive, w->part, "named");
    w->is_finished = 1;
    w->archive->last = w->set;
    tl_test_point('S', "archive_name", "after");
    if (fsync(w->archive->fd) != 0)
        return archive_problem(w->archive, name, "synced");
    tl_test_point('S', "archive_sync", "after");
    return TL_OK;
}

tl_status archive_finish(archive_writer *writer, archive_manifest *manifest)
{
    manifest->set = writer->set;
    manifest->trades = writer->trades;
    text_copy(manifest->oldest, sizeof manifest->oldest, writer->oldest);
    text_copy(manifest->newest, sizeof manifest->newest, writer->newest);
    text_copy(manifest->before, sizeof manifest->before, writer->archive->last_sha);
    for (int file = 0; file < ARCHIVE_FILES; file++)
        TRY(close_file(writer, file, &manifest->files[file]));
    TRY(save_manifest(writer, manifest));
    return give_name(writer);
}

void archive_end(archive_writer *writer)
{
    if (writer == NULL)
        return;
    for (int file = 0; file < ARCHIVE_FILES; file++) {
        packed *p = &writer->files[file];

        if (p->has_stream)
            deflateEnd(&p->stream);
        if (p->fd >= 0)
            close(p->fd);
        if (writer->fd >= 0 && !writer->is_finished)
            unlinkat(writer->fd, archive_file_name(file), 0);
    }
    if (writer->fd >= 0) {
        if (!writer->is_finished) {
            unlinkat(writer->fd, "manifest", 0);
            unlinkat(writer->archive->fd, writer->part, AT_REMOVEDIR);
        }
        close(writer->fd);
    }
    text_buffer_free(&writer->text);
    memory_free(writer);
}
