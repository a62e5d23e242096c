/*
 * What two operators decided about a trade, as whoever carries it out needs it: reading the halves,
 * and putting on record that a decision is not carried out.  Deciding is libtradelock-admin's.
 */
#include "trade_lock/decision.h"

#include "client/read.h"

#include "base/error.h"
#include "base/text.h"
#include "store/bind.h"
#include "store/record.h"
#include "transition/task.h"

#include "sql_text.h"

const char *tl_decision_name(tl_decision of)
{
    switch (of) {
    case TL_DECISION_CLEAR:
        return "clear";
    case TL_DECISION_PAID:
        return "paid";
    case TL_DECISION_FAILED:
        return "failed";
    default:
        return "";
    }
}

#define AT(member) COLUMN_resolve_list_##member

void decision_read(tl_resolution_row *to, const db_result *result, size_t row)
{
    TL_RESOLUTION_MAP(RECORD_READ);
}

tl_status tl_resolution_list(tl_client *client, const tl_key *key, tl_resolution_fn each,
                             void *context)
{
    RESULT rows = DB_RESULT_INIT;
    tl_status status = read_check_each(each != NULL);

    if (status == TL_OK)
        status =
            read_of_trade(client, key, store_resolve_list, "reading what operators decided", &rows);

    for (size_t row = 0; status == TL_OK && row < rows.rows; row++) {
        tl_resolution_row one;

        decision_read(&one, &rows, row);
        if (each(context, &one) != 0)
            break;
    }
    return status;
}

/* Writes that the decision about this revision is not carried out. */
static db_answer run_refusal(task *t, db *connection)
{
    const store_resolution *r = t->context;

    return SQL_RUN(connection, NULL, resolve_refuse, .cust_no = db_text(r->key->cust_no),
                   .serial_no = db_text(r->key->serial_no), .op_code = db_text(r->key->op_code),
                   .rev = db_uint(r->rev), .reason = db_text(r->reason),
                   .thread_no = db_text(r->thread_no), .log_no = db_text(r->log_no));
}

tl_status tl_resolution_refuse(tl_client *client, const tl_key *key, uint64_t rev,
                               const char *reason)
{
    char thread_no[TL_UUID_TEXT], log_no[TL_UUID_TEXT], retry_op[TL_OP_MAX + 1];
    store_resolution refusal = {.key = key, .rev = rev, .reason = reason, .thread_no = thread_no};
    static const task_kind kind = {.run = run_refusal};
    task t = {.kind = &kind, .name = "refuse", .context = &refusal};

    error_clear();
    TRY(client_check(client));
    TRY(read_key(key, retry_op));
    TRY(read_check_person("worker", reason));
    text_copy(thread_no, sizeof thread_no, tl_thread_uuid());
    text_copy(log_no, sizeof log_no, tl_log_uuid());
    refusal.log_no = log_no[0] != '\0' ? log_no : NULL;
    task_run(client->engine, &t, client->config.commit_ms);
    return t.verdict == VERDICT_APPLIED ? TL_OK : t.status;
}
