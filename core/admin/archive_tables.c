/* What an archive holds of each table: the columns of its file, and the statement that reads them.
 * A test compares the columns with the tables'. */
#include "admin/archive.h"

#include "store/bind.h"

#include <string.h>

const archive_columns archive_tables[ARCHIVE_TABLES] = {
    {"trade_lock",
     "cust_no,serial_no,op_code,lane,status,step,thread_no,log_no,session_id,token,"
     "fence,rev,epoch,attempts,claims,sends,send_until,not_found_since,"
     "seen_by_channel,cancel_tried,success_epoch,max_hold_until,next_run_at,"
     "deadline_at,parked,conflict,exclusive,repeatable,retryable,proof,fingerprint,"
     "channel,channel_key,channel_ref,payload,result,remark,actor,created_at,"
     "updated_at,logged_at,account,first_rev,first_logged_at,first_account,"
     "first_thread_no,first_log_no,first_session_id,first_token,first_sends,"
     "first_max_hold_until,first_next_run_at,first_channel_key,amount_minor,currency,"
     "longest_hold_ms,batch,traceparent,session_ended_us,first_session_ended_us,"
     "operators",
     61, store_archive_trade_lock},
    {"trade_lock_past",
     "cust_no,serial_no,op_code,rev,logged_at,step,status,thread_no,log_no,session_id,"
     "token,fence,epoch,attempts,claims,sends,send_until,max_hold_until,next_run_at,"
     "parked,conflict,proof,channel_key,channel_ref,remark,actor,account,"
     "longest_hold_ms,session_ended_us,operators",
     30, store_archive_trade_lock_past},
    {"trade_evidence",
     "evidence_id,cust_no,serial_no,op_code,epoch,channel_key,outcome,final,"
     "channel_ref,source,remark,thread_no,account,filed_at,amount_minor,currency,contradicts",
     17, store_archive_trade_evidence},
    {"trade_resolution",
     "cust_no,serial_no,op_code,rev,verdict,part,fence,epoch,reason,actor,thread_no,"
     "account,decided_at,although_pending,log_no,worker",
     16, store_archive_trade_resolution},
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

db_answer store_archive_server(db *connection, const archive_manifest *last, db_result *result)
{
    return SQL_RUN(connection, result, archive_server, .installation = db_text(last->installation));
}

db_answer store_archive_recorded(db *connection, const archive_manifest *last, db_result *result)
{
    return SQL_RUN(connection, result, archive_recorded, .sha = db_text(last->sha),
                   .written_at = db_text(last->written_at));
}

db_answer store_purge_archived(db *connection, const archive_manifest *set, int64_t older_ms,
                               const char *named)
{
    return SQL_RUN(connection, NULL, purge_archived, .older_ms = db_int(older_ms),
                   .named = db_text(named), .sha = db_text(set->sha),
                   .before_sha = db_text(set->before), .set_no = db_uint(set->set));
}
