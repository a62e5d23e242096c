/* Reads who holds rows or tables for long.  Touches no state. */
#include "client/blocker.h"

#include "base/error.h"
#include "base/text.h"
#include "store/bind.h"

#include <stdio.h>

/* A step is over long before; a callback with business rows may not be. */
#define LONG_US INT64_C(5000000)
#define LOCK_WAIT_TIMEOUT 1205

enum { CONNECTION, ACCOUNT, AGE_US, RUNS, COMMITS, TABLES };

static void add_one(blocker *found, const db_result *r, size_t row)
{
    const unsigned long long id = db_get_uint(r, row, CONNECTION);
    char words[512], runs[80];

    text_printable(runs, sizeof runs, db_get_text(r, row, RUNS));
    snprintf(words, sizeof words, "%sconnection %llu of %s%s for %lld s (%s): KILL SOFT %llu",
             row > 0 ? "; or " : "", id, db_get_text(r, row, ACCOUNT),
             found->tables ? "," : " holds rows", (long long)db_get_int(r, row, AGE_US) / 1000000,
             runs[0] != '\0' ? runs : "idle", id);
    text_add(found->text, sizeof found->text, words);
}

db_answer blocker_read(db *connection, blocker *found)
{
    db_result r = DB_RESULT_INIT;
    const db_answer answer = db_run(connection, &sql_blockers, NULL, 0, &r);

    *found = (blocker){.connection = 0};
    if (answer == DB_DONE && r.rows > 0) {
        found->connection = db_get_uint(&r, 0, CONNECTION);
        found->age_us = db_get_int(&r, 0, AGE_US);
        found->waits_for_replica = db_get_int(&r, 0, COMMITS) != 0;
        found->tables = db_get_int(&r, 0, TABLES) != 0;
        text_copy(found->account, sizeof found->account, db_get_text(&r, 0, ACCOUNT));
        if (found->tables)
            text_copy(found->text, sizeof found->text, "tables are locked, perhaps by ");
        for (size_t row = 0; row < (found->tables ? r.rows : 1); row++)
            add_one(found, &r, row);
    }
    db_result_free(&r);
    return answer;
}

int blocker_is_long(const blocker *found)
{
    return found->connection != 0 && (found->tables || found->age_us >= LONG_US) &&
           !found->waits_for_replica;
}

tl_status blocker_add(db *connection, tl_status status)
{
    char said[ERROR_MAX];
    blocker found;

    if (status != TL_TRY_AGAIN || db_errno(connection) != LOCK_WAIT_TIMEOUT)
        return status;
    text_copy(said, sizeof said, tl_error_message());
    if (blocker_read(connection, &found) == DB_DONE && blocker_is_long(&found))
        return error_set(status, "%s; %s", said, found.text);
    return error_set(status, "%s", said);
}
