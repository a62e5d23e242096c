/* The statements by which a promoted server is accepted by itself, bound to their parameters.
 * Touches only the connection. */
#include "store/position.h"

#include "base/text.h"
#include "store/bind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 0: no row, NULL or 0. */
static db_answer is_true(db_answer answer, db_result *result, int *out)
{
    *out = answer == DB_DONE && result->rows == 1 && db_get_int(result, 0, 0) != 0;
    db_result_free(result);
    return answer;
}

static int64_t id_of(const db_result *result, size_t column)
{
    return result->rows != 1 || db_is_null(result, 0, column)
               ? STORE_NOBODY
               : strtoll(db_get_text(result, 0, column), NULL, 10);
}

db_answer store_attest_kept(db *connection, store_kept *kept)
{
    RESULT result = DB_RESULT_INIT;
    db_answer answer = db_run(connection, &sql_attest_kept, NULL, 0, &result);

    memset(kept, 0, sizeof *kept);
    kept->keeper = kept->on_record = STORE_NOBODY;
    if (answer == DB_DONE && result.rows == 1) {
        kept->kept = db_get_int(&result, 0, 0) != 0;
        text_copy(kept->cluster, sizeof kept->cluster, db_get_text(&result, 0, 1));
        kept->membership = db_get_uint(&result, 0, 2);
        kept->up_s = db_get_uint(&result, 0, 3);
        kept->server_id = db_get_int(&result, 0, 4);
        kept->on_record = id_of(&result, 5);
        kept->read_only = db_get_int(&result, 0, 6) != 0;
    }
    return answer;
}

db_answer store_attest_keeper(db *connection, store_kept *kept)
{
    RESULT result = DB_RESULT_INIT;
    db_answer answer;

    kept->keeper = kept->kept && kept->cluster[0] != '\0' ? 0 : STORE_NOBODY;
    if (!kept->kept || kept->keeper == 0)
        return DB_DONE;
    answer = db_run(connection, &sql_attest_filters, NULL, 0, &result);
    if (answer == DB_DONE && result.rows == 1 && db_get_text(&result, 0, 2)[0] == '\0' &&
        db_get_text(&result, 0, 3)[0] == '\0') {
        db_result_free(&result);
        answer = db_run(connection, &sql_attest_replicas, NULL, 0, &result);
        if (answer == DB_DONE && result.rows == 1)
            kept->keeper = id_of(&result, 0);
    }
    return answer;
}

db_answer store_attest_record(db *connection, store_kept *kept)
{
    RESULT result = DB_RESULT_INIT;
    const db_answer answer =
        SQL_RUN(connection, &result, attest_record, .keeper = db_int(kept->keeper));

    if (answer == DB_DONE)
        kept->on_record = id_of(&result, 0);
    return answer;
}

static int is_filter(const char *column)
{
    return strcmp(column, "Replicate_Ignore_Server_Ids") == 0 ||
           strcmp(column, "Replicate_Do_Domain_Ids") == 0 ||
           strcmp(column, "Replicate_Ignore_Domain_Ids") == 0;
}

db_answer store_connection_filter(db *connection, char *filter, size_t space, int *has_name)
{
    RESULT result = {.has_heading = 1};
    const db_answer answer = db_run(connection, &sql_replica_connections, NULL, 0, &result);

    filter[0] = '\0';
    *has_name = 0;
    for (size_t row = 1; answer == DB_DONE && row < result.rows && !*has_name; row++) {
        const char *name = db_get_text(&result, row, 0);

        *has_name = name[0] != '\0';
        if (*has_name)
            snprintf(filter, space, "connection '%s'", name);
        for (size_t i = 1; i < result.columns && filter[0] == '\0'; i++)
            if (is_filter(db_get_text(&result, 0, i)) && db_get_text(&result, row, i)[0] != '\0')
                snprintf(filter, space, "%s = %.200s", db_get_text(&result, 0, i),
                         db_get_text(&result, row, i));
    }
    return answer;
}

db_answer store_attest_in_step(db *connection)
{
    RESULT result = DB_RESULT_INIT;

    return db_run(connection, &sql_attest_in_step, NULL, 0, &result);
}

db_answer store_attest_clock(db *connection, int64_t least_us, int64_t most_us, int *fits)
{
    db_result result = DB_RESULT_INIT;

    return is_true(SQL_RUN(connection, &result, attest_clock, .least_us = db_int(least_us),
                           .most_us = db_int(most_us)),
                   &result, fits);
}

db_answer store_attest_beat(db *connection, const char *session_id, uint64_t beat, int *there)
{
    db_result result = DB_RESULT_INIT;

    return is_true(SQL_RUN(connection, &result, attest_beat, .session_id = db_text(session_id),
                           .beat = db_uint(beat)),
                   &result, there);
}

db_answer store_attest_trade(db *connection, const tl_key *key, const uint8_t *token, int *there)
{
    step s = {.cust_no = key->cust_no, .serial_no = key->serial_no, .op_code = key->op_code};
    db_result result = DB_RESULT_INIT;

    memcpy(s.token, token, sizeof s.token);
    return is_true(store_token_seen(connection, &s, &result), &result, there);
}

/* A server that lacks a renewal makes no other, but it may have made a writer a reader by its change
 * of that number. */
static int has_come_to(const db_result *now, uint64_t rev, const char *step_name)
{
    const uint64_t is = db_get_uint(now, 0, LEASE_NOW_REV);

    return is > rev || (is == rev && (step_name == NULL ||
                                      strcmp(db_get_text(now, 0, RW_NOW_STEP), step_name) == 0));
}

db_answer store_attest_lease(db *connection, const lease_statements *kind, const char *resource,
                             unsigned slot, const uint8_t *token, uint64_t rev,
                             const char *step_name, int *there)
{
    RESULT now = DB_RESULT_INIT;
    db_answer answer = kind->now(connection, resource, slot, token, &now);
    const int is_last = answer == DB_DONE && now.rows == 1 && db_get_int(&now, 0, 0) != 0;

    *there = is_last && (rev == 0 || has_come_to(&now, rev, step_name));
    if (answer == DB_DONE && !*there && rev == 0)
        answer = kind->seen(connection, resource, slot, token, there);
    return answer;
}

db_answer store_attest_evidence(db *connection, const tl_key *key, uint64_t evidence_id,
                                const char *thread_no, int *there)
{
    db_result result = DB_RESULT_INIT;

    return is_true(SQL_RUN(connection, &result, attest_evidence,
                           .evidence_id = db_uint(evidence_id), .cust_no = db_text(key->cust_no),
                           .serial_no = db_text(key->serial_no), .op_code = db_text(key->op_code),
                           .thread_no = db_text(thread_no)),
                   &result, there);
}
