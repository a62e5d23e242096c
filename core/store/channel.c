/* The statements about channels that every process runs, bound to their parameters.  Touches only
 * the connection. */
#include "store/channel.h"

#include "store/bind.h"

db_answer store_channel_declare(db *connection, const store_contract *what, db_result *result)
{
    const db_answer answer = SQL_RUN(
        connection, NULL, channel_declare, .channel = db_text(what->channel),
        .op_code = db_text(what->op_code), .session_id = db_text(what->session_id),
        .was = db_text(what->was), .contract = db_text(what->says), .more = db_int(what->more));

    if (answer == DB_DONE)
        return db_run(connection, &sql_channel_declare_result, NULL, 0, result);
    return answer == DB_ERROR ? db_undo(connection) : answer;
}

db_answer store_site_is(db *connection, const char *site, db_result *result)
{
    const db_answer answer = SQL_RUN(connection, NULL, site_is, .site = db_text(site));

    if (answer == DB_DONE)
        return db_run(connection, &sql_channel_declare_result, NULL, 0, result);
    return answer == DB_ERROR ? db_undo(connection) : answer;
}

db_answer store_channel_share(db *connection, const store_share *share, db_result *result)
{
    db_answer answer =
        SQL_RUN(connection, NULL, channel_share, .channel = db_text(share->channel),
                .op_code = db_text(share->op_code), .session_id = db_text(share->session_id),
                .used = db_uint(share->used), .wanted = db_uint(share->wanted),
                .hold_ms = db_int(share->hold_ms), .claims = db_uint(share->claims),
                .latest_us = db_int(share->latest_us));

    if (answer == DB_DONE)
        return db_run(connection, &sql_channel_share_result, NULL, 0, result);
    return answer == DB_ERROR ? db_undo(connection) : answer;
}

static db_answer tell_or_probe(db *connection, const store_breaker *what)
{
    if (what->tells)
        return SQL_RUN(connection, NULL, channel_told, .channel = db_text(what->channel),
                       .op_code = db_text(what->op_code), .era = db_uint(what->era),
                       .probe = db_uint(what->probe), .answered = db_int(what->answered),
                       .tail = db_uint(what->tail), .unknowns = db_uint(what->unknowns),
                       .sends = db_uint(what->sends));
    return SQL_RUN(connection, NULL, channel_probe, .channel = db_text(what->channel),
                   .op_code = db_text(what->op_code), .probe = db_uint(what->probe),
                   .hold_ms = db_int(what->hold_ms), .latest_us = db_int(what->latest_us));
}

db_answer store_channel_breaker(db *connection, const store_breaker *what, db_result *result)
{
    const db_answer answer = tell_or_probe(connection, what);

    if (answer == DB_DONE)
        return db_run(connection, &sql_channel_breaker_result, NULL, 0, result);
    return answer == DB_ERROR ? db_undo(connection) : answer;
}
