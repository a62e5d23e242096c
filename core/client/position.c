/* Attests to a promoted server: looks up there what this process was last told was committed.
 * Touches tl_attestation and tl_attestation_missing, and accepts by tl_accept_proved(). */
#include "client/position.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "client/client.h"
#include "client/clock_watch.h"
#include "client/restored.h"
#include "store/bind.h"
#include "store/position.h"
#include "store/store.h"

#include <string.h>

static db_answer look_up(db *connection, const commit_mark *m, int *there)
{
    const tl_key key = {m->serial_no, m->cust_no, m->op_code};

    switch (m->kind) {
    case MARK_BEAT:
        return store_attest_beat(connection, m->serial_no, m->number, there);
    case MARK_TRADE:
        return store_attest_trade(connection, &key, m->token, there);
    case MARK_RESOURCE:
        return store_attest_lease(connection, &store_mutexes, m->serial_no, 0, m->token, m->number,
                                  NULL, there);
    case MARK_HOLDER:
        return store_attest_lease(connection, &store_holders, m->serial_no, m->slot, m->token,
                                  m->number, m->name, there);
    case MARK_EVIDENCE:
        return store_attest_evidence(connection, &key, m->number, m->thread_no, there);
    case MARK_NONE:
    case MARK_UNTOLD:
        break;
    }
    *there = 0;
    return DB_DONE;
}

static db_answer tell_missing(db *connection, uint64_t number, const char *session_id,
                              unsigned item, const commit_mark *m)
{
    const int is_by_token = m->kind >= MARK_TRADE && m->number == 0;

    return SQL_RUN(connection, NULL, attest_missing, .number = db_uint(number),
                   .session_id = db_text(session_id), .item = db_uint(item),
                   .step = db_text(m->name), .cust_no = db_text(m->cust_no),
                   .serial_no = db_text(m->serial_no), .op_code = db_text(m->op_code),
                   .token = db_bytes(is_by_token ? m->token : NULL, MARK_TOKEN));
}

/* Under each session that this process had, since the end of an earlier one may be missing. */
static db_answer attest(const tl_client *client, db *connection, uint64_t number,
                        position_found *found)
{
    db_answer answer = DB_DONE;

    found->under = session_life(client->session);
    for (const life *l = found->under; l != NULL && answer == DB_DONE; l = l->before)
        answer = SQL_RUN(connection, NULL, attest, .number = db_uint(number),
                         .session_id = db_text(l->session_id), .missing = db_uint(found->missing),
                         .kept = found->kept >= 0 ? db_int(found->kept) : db_null());
    return answer;
}

/* What is missing is written before the attestation that counts it; number 0: it is not. */
static db_answer look_up_all(tl_client *client, db *connection, uint64_t number,
                             const commit_mark *all, size_t count, unsigned *missing)
{
    const char *mine = session_id(client->session);
    db_answer answer = DB_DONE;

    for (size_t i = 0; i < count && answer == DB_DONE; i++) {
        int there = 0;

        answer = look_up(connection, &all[i], &there);
        if (answer != DB_DONE || there)
            continue;
        if (number != 0)
            answer = tell_missing(connection, number, mine, *missing, &all[i]);
        ++*missing;
    }
    return answer;
}

/* Whether this is the server that kept a commit.  Of a cluster: a node of it, and it was so since then.
 * Where a node that may lack it was started to make the cluster anew, the number of the membership
 * begins anew, and all nodes were started since.  A node that was told to be a cluster while it ran
 * (pc.bootstrap) is not noticed: that is to be declared (tools/RESTORE.md). */
static db_answer is_keeper(db *connection, const store_kept *before, int64_t age_ms, int *is)
{
    store_kept here;
    const db_answer answer = store_attest_kept(connection, &here);

    if (before->cluster[0] == '\0')
        *is = answer == DB_DONE && here.server_id == before->keeper &&
              here.on_record == before->keeper;
    else
        *is = answer == DB_DONE && strcmp(here.cluster, before->cluster) == 0 &&
              here.membership >= before->membership && (int64_t)here.up_s * 1000 >= age_ms;
    return answer;
}

/* By the newest mark of a server that may have granted something; *kept is -1 if there is none. */
static db_answer was_kept(tl_client *client, db *connection, const commit_mark *all, size_t count,
                          int *kept)
{
    const commit_mark *newest = NULL;
    store_kept by;

    *kept = -1;
    for (size_t i = 0; i < count; i++)
        if (all[i].may_grant && (newest == NULL || all[i].answered > newest->answered))
            newest = &all[i];
    if (newest == NULL)
        return DB_DONE;
    *kept = restored_was_kept(client, newest->server, newest->answered_ms, &by);
    return *kept ? is_keeper(connection, &by, clock_boottime_ms() - newest->answered_ms, kept)
                 : DB_DONE;
}

/* A node of Galera may not have applied yet what others answered. */
static db_answer get_in_step(db *connection)
{
    store_kept here;
    const db_answer answer = store_attest_kept(connection, &here);

    return answer == DB_DONE && here.cluster[0] != '\0' ? store_attest_in_step(connection) : answer;
}

tl_status position_attest(tl_client *client, db *connection, uint64_t number, position_found *found)
{
    commit_mark *all = NULL;
    size_t count = 0;
    int fits = 0, whole;
    const int64_t margin_us = client->config.clock_margin_ms * 1000;
    int64_t least_us, most_us;
    db_answer answer;

    *found = (position_found){.kept = -1};
    clock_watch_now(client, &least_us, &most_us);
    answer = store_attest_clock(connection, least_us - margin_us, most_us + margin_us, &fits);
    if (answer == DB_DONE && !fits)
        return error_set(TL_TRY_AGAIN, "the clock of the promoted server was not compared yet");
    whole = marks_of_others(&client->servers.noted, db_server_of(connection), &all, &count);
    if (answer == DB_DONE)
        answer = get_in_step(connection);
    if (answer == DB_DONE)
        answer = look_up_all(client, connection, number, all, count, &found->missing);
    if (!whole)
        found->missing++; /* it does not know any more what it was told */
    if (answer == DB_DONE)
        answer = was_kept(client, connection, all, count, &found->kept);
    if (answer == DB_DONE)
        answer = attest(client, connection, number, found);
    memory_free(all);
    return db_read_status(connection, answer, "attesting to the new server");
}

tl_status position_attest_again(tl_client *client, db *connection, uint64_t number,
                                position_found *found)
{
    db_answer answer = DB_DONE;

    if (found->under != session_life(client->session))
        answer = attest(client, connection, number, found);
    return db_read_status(connection, answer, "attesting to the new server");
}

void position_close(tl_client *client, db *connection)
{
    commit_marks *noted = &client->servers.noted;
    const db_server *server = db_server_of(connection);
    db_answer answer;
    uint64_t began;

    if (db_state_of(server) != DB_SERVER_WHOLE || !marks_drop_closed(noted, server))
        return;
    began = marks_begin(noted);
    answer = SQL_RUN(connection, NULL, session_close,
                     .session_id = db_text(session_id(client->session)));
    if (answer == DB_DONE)
        marks_closed(noted, server, began);
    client_note(client, WORK_RECEIPTS,
                answer == DB_DONE ? TL_OK : db_read_status(connection, answer, "its end"));
}

tl_status position_count_missing(tl_client *client, db *connection, unsigned *missing)
{
    commit_mark *all = NULL;
    size_t count = 0;
    db_answer answer = get_in_step(connection);

    *missing = 0;
    if (!marks_of_others(&client->servers.noted, db_server_of(connection), &all, &count))
        ++*missing;
    if (answer == DB_DONE)
        answer = look_up_all(client, connection, 0, all, count, missing);
    memory_free(all);
    return db_read_status(connection, answer, "looking at the new server");
}

tl_status position_accept(db *connection, uint64_t number)
{
    return db_read_status(connection,
                          SQL_RUN(connection, NULL, attest_accept, .number = db_uint(number)),
                          "accepting the new server");
}
