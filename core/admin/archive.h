/*
 * An archive: a directory in which a purge writes down what it is about to remove.
 *
 *   DIR/lock                    held while a purge writes there
 *   DIR/00000001/               a set: some thousand trades with everything that belongs to them
 *       trade_lock.csv.gz ...   a file for each table, its first line the names of the columns
 *       trades.gz               the trades as they were named, a page of the purge a line
 *       manifest                what the files hold, their SHA-256, that of the manifest before, and
 *                               of itself
 *       removed                 the trades of the set are gone from the database, as far as they go
 *   DIR/00000002.part/          a set that is being written, or was when a purge was cut off
 *
 * A set gets its name only when it is complete and on the disk with its directory, and nothing of
 * it is removed before.  So a row is in the database, or in a complete set, or in both.  A set
 * without `removed` may be half removed; the next purge goes on with it.  Rows that are in both, or
 * in two sets, have the same key and revision.
 */
#ifndef TL_ADMIN_ARCHIVE_H
#define TL_ADMIN_ARCHIVE_H

#include "db/db.h"

#include "base/sha256.h"

#include <tradelock/admin/server.h>

#include <stdint.h>

#define ARCHIVE_NAME 16    /* of a set, with ".part" and the end */
#define ARCHIVE_COLUMNS 80 /* more than any table has */
#define ARCHIVE_SHA (2 * SHA256_SIZE + 1)

enum archive_table {
    ARCHIVE_TRADE_LOCK,
    ARCHIVE_TRADE_LOCK_PAST,
    ARCHIVE_TRADE_EVIDENCE,
    ARCHIVE_TRADE_RESOLUTION,
    ARCHIVE_TABLES,
    ARCHIVE_TRADES = ARCHIVE_TABLES, /* trades.gz */
    ARCHIVE_FILES
};

typedef struct archive_columns {
    const char *table, *names; /* the header */
    size_t count;
    const struct sql_text *rows; /* reads them by what was named */
    size_t values;
} archive_columns;
extern const archive_columns archive_tables[ARCHIVE_TABLES];
const char *archive_file_name(int file);
/* The place of a column in the file of a table. */
size_t archive_column(enum archive_table table, const char *name);

typedef struct archive_file_facts {
    uint64_t rows, bytes;
    char sha[ARCHIVE_SHA];
} archive_file_facts;

/* What a manifest says. */
typedef struct archive_manifest {
    unsigned schema;
    char installation[40];
    char database[65], server[256], account[385], written_at[32];
    int64_t older_ms;
    uint32_t set;
    char before[ARCHIVE_SHA]; /* the sum of the manifest before; "-": this is the first */
    uint64_t trades;
    char oldest[32], newest[32]; /* when the lock rows changed last */
    archive_file_facts files[ARCHIVE_FILES];
    char sha[ARCHIVE_SHA]; /* of the manifest itself */
} archive_manifest;

typedef struct archive_dir {
    const char *path;
    int fd, lock_fd; /* of the directory; -1 */
    uint32_t last;   /* the newest set; 0: there is none */
    char last_sha[ARCHIVE_SHA];
} archive_dir;

/* Opens a directory that is there, and reads where its sets end.  writes: it has to belong to
 * somebody trusted, be writable, and not be written by another purge; what a cut off purge left
 * unfinished is removed. */
tl_status archive_open(archive_dir *self, const char *path, int writes);
void archive_close(archive_dir *self);
/* Whether the archive is this database's, and has every set that is on record there: *server
 * becomes what a new manifest says of it. */
tl_status archive_check_server(archive_dir *self, db *connection, archive_manifest *server);

/* What is on record of sets.  trades: of those that were removed under this set. */
typedef struct archive_record {
    uint64_t trades, sets, all_trades, all_sets; /* sets: 1, or 0 where it is not on record */
} archive_record;
tl_status archive_read_record(db *connection, const archive_manifest *set, archive_record *record);

/* The manifest of a set, whose own sum is right, which is of a format and a schema that are known,
 * and which follows the one before. */
tl_status archive_read_manifest(archive_dir *self, uint32_t set, archive_manifest *manifest);
/* Whether every file of the set is what its manifest says. */
tl_status archive_verify(archive_dir *self, const archive_manifest *manifest);
/* Whether it is there now: another program may have finished it meanwhile. */
int archive_has(const archive_dir *self, uint32_t set);
int archive_is_removed(const archive_dir *self, uint32_t set);
/* How many trades of it the last purge removed, as that said; 0 also if it said nothing. */
uint64_t archive_removed(const archive_dir *self, uint32_t set);
tl_status archive_mark_removed(archive_dir *self, uint32_t set, uint64_t removed);

/* Reads a file of a set piece by piece, unpacked.  take() returns TL_OK to go on. */
typedef tl_status (*archive_take)(void *context, const char *data, size_t size);
tl_status archive_read(archive_dir *self, uint32_t set, int file, archive_take take, void *context);

#define ARCHIVE_GZIP (15 + 16) /* window bits, and that it is a gzip file */
#define ARCHIVE_PIECE 65536
/* The memory of zlib's streams. */
void *archive_take_memory(void *nothing, unsigned count, unsigned size);
void archive_give_memory(void *nothing, void *block);

/* Writing a set. */
typedef struct archive_writer archive_writer;
tl_status archive_begin(archive_dir *self, archive_writer **out);
/* A page: what was named, and the rows of each table. */
tl_status archive_add(archive_writer *writer, const char *named, uint64_t trades,
                      const db_result rows[ARCHIVE_TABLES]);
/* The set is complete and on the disk, under its name. */
tl_status archive_finish(archive_writer *writer, archive_manifest *manifest);
/* Frees it; what was written and not finished is removed. */
void archive_end(archive_writer *writer);

tl_status archive_problem(const archive_dir *self, const char *name, const char *doing);

#endif
