/* Reads which schema the server has, and compares it with this library's.  Changes nothing. */
#include "client/schema.h"

#include "base/error.h"
#include "store/bind.h"
#include "store/server.h"

#include "sql_text.h"

#include <string.h>

unsigned schema_newest(void)
{
    return sql_migrations_newest;
}

tl_status schema_read(db *connection, schema_found *found)
{
    RESULT result = DB_RESULT_INIT;
    db_answer answer = db_run(connection, &sql_schema_version, NULL, 0, &result);
    tl_status status = TL_OK;

    memset(found, 0, sizeof *found);
    if (answer == DB_DONE && result.rows > 0) {
        found->version = (unsigned)db_get_uint(&result, 0, 0);
        found->oldest_client = (unsigned)db_get_uint(&result, 0, 1);
    } else if (answer != DB_DONE &&
               (answer != DB_ERROR || db_error_kind_of(db_errno(connection)) != DB_KIND_SCHEMA)) {
        /* A missing table is an answer: the database was never migrated. */
        status = db_read_status(connection, answer, "reading the schema's version");
    }
    return status;
}

tl_status schema_judge(const schema_found *found)
{
    const unsigned newest = schema_newest();

    if (found->version == 0)
        return error_set(TL_NO_SCHEMA,
                         "the database has no tradelock schema: run `tradelock migrate`");
    if (found->version < newest)
        return error_set(TL_WRONG_SCHEMA,
                         "the schema is version %u and this program needs %u: run "
                         "`tradelock migrate` of version %s",
                         found->version, newest, tl_version());
    if (found->oldest_client > newest)
        return error_set(TL_WRONG_SCHEMA,
                         "the schema is version %u and serves programs of schema %u and "
                         "newer; this program is of schema %u and must be upgraded",
                         found->version, found->oldest_client, newest);
    return TL_OK;
}
