/* What an archive holds of each table: the columns of its file, which are those of the statement that
 * reads them.  A test compares them with the tables'. */
#include "admin/archive.h"

#include "store/bind.h"

#include <string.h>

#define TABLE(name)                                                                                \
    {#name, COLUMN_NAMES_archive_##name, COLUMNS_archive_##name, store_archive_##name}

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

db_answer store_archive_trade_lock(db *connection, const char *named, db_result *result)
{
    return SQL_RUN(connection, result, archive_trade_lock, .named = db_text(named));
}

db_answer store_archive_trade_lock_past(db *connection, const char *named, db_result *result)
{
    return SQL_RUN(connection, result, archive_trade_lock_past, .named = db_text(named));
}

db_answer store_archive_trade_evidence(db *connection, const char *named, db_result *result)
{
    return SQL_RUN(connection, result, archive_trade_evidence, .named = db_text(named));
}

db_answer store_archive_trade_resolution(db *connection, const char *named, db_result *result)
{
    return SQL_RUN(connection, result, archive_trade_resolution, .named = db_text(named));
}
