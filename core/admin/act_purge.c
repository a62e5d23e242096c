/* The record that a purge leaves, and the purge of such records. */
#include "admin/act.h"

#include "client/read.h"

#include "base/text.h"
#include "store/bind.h"

#include <inttypes.h>
#include <stdio.h>

#define PAGE 200
#define DAY_MS 86400000

tl_status act_purge_begin(db *connection, int64_t older_ms, int archives, uint64_t *act_no)
{
    const char *with = archives ? " --archive" : "";
    char said[64];
    const store_act act = {.what = "purge", .said = said, .reason = "", .actor = ""};

    if (older_ms % DAY_MS == 0)
        snprintf(said, sizeof said, "--older %" PRId64 "d%s", older_ms / DAY_MS, with);
    else
        snprintf(said, sizeof said, "--older %" PRId64 "ms%s", older_ms, with);
    return act_begin(connection, &act, 0, act_no);
}

static tl_status purge_acts(db *connection, int64_t older_ms, uint64_t *removed)
{
    db_result result = DB_RESULT_INIT;
    uint64_t page = PAGE;
    tl_status status = TL_OK;

    while (status == TL_OK && page >= PAGE) {
        status = read_status(connection,
                             SQL_RUN(connection, NULL, purge_acts, .older_ms = db_int(older_ms),
                                     .most = db_uint(PAGE)),
                             "purging acts");
        if (status == TL_OK)
            status = read_status(connection,
                                 db_run(connection, &sql_purge_acts_result, NULL, 0, &result),
                                 "reading what was purged");
        page = status == TL_OK ? db_get_uint(&result, 0, 0) : 0;
        *removed += page;
    }
    db_result_free(&result);
    return status;
}

tl_status act_purge_end(db *connection, int64_t older_ms, const archive_dir *archive,
                        uint64_t act_no, const tl_purged *purged)
{
    char counts[320], sets[32 + ARCHIVE_SHA] = "";
    uint64_t acts = 0;
    tl_status status = archive != NULL ? TL_OK : purge_acts(connection, older_ms, &acts);

    if (archive != NULL && archive->last > 0)
        snprintf(sets, sizeof sets, " sets=%" PRIu32 " sha256=%s", archive->last,
                 archive->last_sha);
    snprintf(counts, sizeof counts,
             "trades=%" PRIu64 " resources=%" PRIu64 " sessions=%" PRIu64 " acts=%" PRIu64
             " looked_at=%" PRIu64 "%s",
             purged->trades, purged->resources, purged->sessions, acts, purged->looked_at, sets);
    return status == TL_OK ? act_end(connection, act_no, counts) : status;
}
