/* What the database knows of an archive: whose it is, and which sets it had.  Reads the directory. */
#include "admin/archive.h"
#include "base/text.h"
#include "client/read.h"
#include "client/schema.h"
#include "store/bind.h"

#include <inttypes.h>
#include <string.h>

enum of_server { SERVER, DATABASE, ACCOUNT, NOW, IS_OURS, INSTALLATION, MAY_LACK };
enum of_record { IS_RECORDED, FOLLOWED_BY, WAS_RESTORED };
enum of_sets { TRADES, SETS, ALL_SETS, ALL_TRADES };

/* A copy that nobody has accepted would write its own trades beside those of the original. */
static tl_status judge_owner(const archive_dir *self, const archive_manifest *last,
                             const db_result *row)
{
    const int writes = self->lock_fd >= 0;

    if (self->last > 0 && (db_get_int(row, 0, IS_OURS) == 0 ||
                           strcmp(last->database, db_get_text(row, 0, DATABASE)) != 0))
        return error_set(TL_INVALID, "%s is the archive of another installation: database %s on %s",
                         self->path, last->database, last->server);
    if (writes && db_get_int(row, 0, MAY_LACK) != 0)
        return error_set(TL_SERVER_UNSAFE,
                         "a restore is open, so steps may be missing in this database: nothing is "
                         "written to %s until it is accepted",
                         self->path);
    return TL_OK;
}

/* The newest set stands for all before it.  It is on record since the first of its trades was
 * removed; none was where its mark is missing, or says so. */
static tl_status judge_record(const archive_dir *self, const db_result *row, int may_lack)
{
    const uint32_t next = (uint32_t)db_get_uint(row, 0, FOLLOWED_BY);

    /* One that came while this looked is there now. */
    if (next > 0 && !archive_has(self, next))
        return error_set(TL_INVALID,
                         "%s ends with set %" PRIu32 ", and set %" PRIu32
                         " is on record in the database: the newest sets are lost",
                         self->path, self->last, next);
    if (self->last == 0 || may_lack || db_get_int(row, 0, IS_RECORDED) != 0 ||
        db_get_int(row, 0, WAS_RESTORED) != 0 || archive_removed(self, self->last) == 0)
        return TL_OK;
    return error_set(TL_INVALID,
                     "%s/%08" PRIu32 " is not on record in the database: it was changed, or is not "
                     "of this archive",
                     self->path, self->last);
}

/* An archive may be begun beside others. */
static tl_status check_record(const archive_dir *self, db *connection, const archive_manifest *last,
                              int may_lack)
{
    RESULT row = DB_RESULT_INIT;

    if (self->last == 0 && self->lock_fd >= 0)
        return TL_OK;
    TRY(read_status(connection,
                    SQL_RUN(connection, &row, archive_recorded, .sha = db_text(last->sha),
                            .written_at = db_text(last->written_at)),
                    "reading which sets are on record"));
    return judge_record(self, &row, may_lack);
}

tl_status archive_read_record(db *connection, const archive_manifest *set, archive_record *record)
{
    RESULT row = DB_RESULT_INIT;

    TRY(read_status(connection, SQL_RUN(connection, &row, archive_set, .sha = db_text(set->sha)),
                    "reading what is on record of a set"));
    *record = (archive_record){.trades = db_get_uint(&row, 0, TRADES),
                               .sets = db_get_uint(&row, 0, SETS),
                               .all_sets = db_get_uint(&row, 0, ALL_SETS),
                               .all_trades = db_get_uint(&row, 0, ALL_TRADES)};
    return TL_OK;
}

tl_status archive_check_server(archive_dir *self, db *connection, archive_manifest *server)
{
    archive_manifest last = {.written_at = "1970-01-01", .sha = "-"};
    RESULT row = DB_RESULT_INIT;
    schema_found schema;

    if (self->last > 0)
        TRY(archive_read_manifest(self, self->last, &last));
    TRY(schema_read(connection, &schema));
    TRY(read_status(
        connection,
        SQL_RUN(connection, &row, archive_server, .installation = db_text(last.installation)),
        "asking which server this is"));
    TRY(judge_owner(self, &last, &row));
    TRY(check_record(self, connection, &last, db_get_int(&row, 0, MAY_LACK) != 0));
    *server = (archive_manifest){.schema = schema.version};
    text_copy(server->installation, sizeof server->installation,
              db_get_text(&row, 0, INSTALLATION));
    text_copy(server->server, sizeof server->server, db_get_text(&row, 0, SERVER));
    text_copy(server->database, sizeof server->database, db_get_text(&row, 0, DATABASE));
    text_copy(server->account, sizeof server->account, db_get_text(&row, 0, ACCOUNT));
    text_copy(server->written_at, sizeof server->written_at, db_get_text(&row, 0, NOW));
    memcpy(self->last_sha, last.sha, sizeof self->last_sha);
    return TL_OK;
}

/* What an archive holds of each table: the columns of its file, which are those of the statement that
 * reads them.  A test compares them with the tables'. */

#define TABLE(name)                                                                                \
    {#name, COLUMN_NAMES_archive_##name, COLUMNS_archive_##name, &sql_archive_##name,              \
     sql_archive_##name##_values_count}

const archive_columns archive_tables[ARCHIVE_TABLES] = {
    TABLE(trade_lock),
    TABLE(trade_lock_past),
    TABLE(trade_evidence),
    TABLE(trade_resolution),
};

const char *archive_file_name(int file)
{
    static const char *const names[ARCHIVE_FILES] = {"trade_lock.csv.gz", "trade_lock_past.csv.gz",
                                                     "trade_evidence.csv.gz",
                                                     "trade_resolution.csv.gz", "trades.gz"};

    return names[file];
}

size_t archive_column(enum archive_table table, const char *name)
{
    const char *at = archive_tables[table].names;
    const size_t size = strlen(name);
    size_t place = 0;

    while (strncmp(at, name, size) != 0 || (at[size] != ',' && at[size] != '\0')) {
        at = strchr(at, ',');
        if (at == NULL)
            return ARCHIVE_COLUMNS;
        at++;
        place++;
    }
    return place;
}
