/* Reads which shard a database is, and compares it with the client's.  Changes nothing. */
#include "client/shard.h"

#include "base/error.h"
#include "base/text.h"
#include "client/client.h"
#include "client/read.h"
#include "client/schema.h"
#include "store/server.h"

#include <string.h>

static tl_status judge(const struct tl_client *client, const db_result *said, int may_be_none)
{
    const char *fleet = said->rows > 0 ? db_get_text(said, 0, 0) : "";
    const char *shard = said->rows > 0 ? db_get_text(said, 0, 1) : "";
    const int is_none = fleet[0] == '\0' || shard[0] == '\0';

    if (is_none && may_be_none)
        return TL_OK;
    if (is_none)
        return error_set(TL_BAD_CONFIG,
                         "the settings lead to shard %s of fleet %s, but the database there is of "
                         "no fleet: run `tradelock fleet join`",
                         client->shard, client->config.fleet);
    if (strcmp(fleet, client->config.fleet) != 0 || strcmp(shard, client->shard) != 0)
        return error_set(TL_BAD_CONFIG,
                         "the settings lead to shard %s of fleet %s, but the database there is "
                         "shard %s of fleet %s",
                         client->shard, client->config.fleet, shard, fleet);
    return TL_OK;
}

tl_status shard_check(const struct tl_client *client, db *connection, int may_be_none)
{
    RESULT said = DB_RESULT_INIT;
    db_answer answer;
    tl_status status;

    if (client->shard == NULL)
        return TL_OK;
    answer = store_fleet_of(connection, &said);
    if (answer == DB_ERROR && db_error_kind_of(db_errno(connection)) == DB_KIND_SCHEMA)
        status = may_be_none ? TL_OK : schema_judge(&(schema_found){0});
    else if (answer != DB_DONE)
        status = db_read_status(connection, answer, "reading which shard this is");
    else
        status = judge(client, &said, may_be_none);
    return status;
}

tl_status shard_installation(struct tl_client *client, char installation[SHARD_INSTALLATION])
{
    READING at = {.client = client};
    RESULT r = DB_RESULT_INIT;

    installation[0] = '\0';
    TRY(read_begin(&at));
    TRY(read_status(at.connection, store_fleet_of(at.connection, &r),
                    "reading which installation this is"));
    if (r.rows == 1)
        text_copy(installation, SHARD_INSTALLATION, db_get_text(&r, 0, FLEET_OF_INSTALLATION));
    return TL_OK;
}
