/* Reads who holds rows or tables for long.  Touches no state. */
#include "client/blocker.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "store/bind.h"

#include <stdio.h>

/* A step is over long before; a callback with business rows may not be. */
#define LONG_US INT64_C(5000000)
#define LOCK_WAIT_TIMEOUT 1205

/* What changes a table is over in a moment. */
#define MOMENT_MS 1000

enum { CONNECTION, ACCOUNT, AGE_US, DOES, COMMITS, TABLES };

static void add_one(blocker *found, const db_result *r, size_t row)
{
    const unsigned long long id = db_get_uint(r, row, CONNECTION);
    char words[256], account[96];

    text_printable(account, sizeof account, db_get_text(r, row, ACCOUNT));
    snprintf(words, sizeof words, "%sconnection %llu of %s%s for %lld s (%s): KILL SOFT %llu",
             row > 0 ? "; or " : "", id, account, found->tables ? "," : " holds rows",
             (long long)db_get_int(r, row, AGE_US) / 1000000, db_get_text(r, row, DOES), id);
    text_add(found->text, sizeof found->text, words);
}

/* Of tables all who may hold them, and a row without a connection at the end. */
static void tell_tables(blocker *found, const db_result *r)
{
    text_copy(found->text, sizeof found->text,
              r->rows > 1 ? "tables are locked, perhaps by "
                          : "tables are locked, and the server does not show by whom");
    for (size_t row = 0; row + 1 < r->rows; row++)
        if (!db_get_int(r, row, COMMITS))
            add_one(found, r, row);
}

static db_answer read_once(db *connection, blocker *found)
{
    RESULT r = DB_RESULT_INIT;
    const db_answer answer = db_run(connection, &sql_blockers, NULL, 0, &r);

    *found = (blocker){.connection = 0};
    if (answer == DB_DONE && r.rows > 0) {
        found->connection = db_get_uint(&r, 0, CONNECTION);
        found->age_us = db_get_int(&r, 0, AGE_US);
        found->waits_for_replica = db_get_int(&r, 0, COMMITS) != 0;
        found->tables = db_get_int(&r, 0, TABLES) != 0;
        text_copy(found->account, sizeof found->account, db_get_text(&r, 0, ACCOUNT));
        if (found->tables)
            tell_tables(found, &r);
        else
            add_one(found, &r, 0);
    }
    return answer;
}

db_answer blocker_read(db *connection, blocker *found)
{
    db_answer answer = read_once(connection, found);

    if (answer == DB_DONE && found->tables) {
        clock_sleep_until_ms(clock_deadline(MOMENT_MS));
        answer = read_once(connection, found);
    }
    return answer;
}

int blocker_is_long(const blocker *found)
{
    return !found->waits_for_replica &&
           (found->tables || (found->connection != 0 && found->age_us >= LONG_US));
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
