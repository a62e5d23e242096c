/* Writes what operators did.  Touches only the connection. */
#include "store/act.h"

#include "store/bind.h"

db_answer store_act_write(db *connection, uint64_t act_no, uint64_t row_no,
                          const store_act_row *row)
{
    return SQL_RUN(connection, NULL, act_row, .act_no = db_uint(act_no), .row_no = db_uint(row_no),
                   .cust_no = db_text(row->key->cust_no), .serial_no = db_text(row->key->serial_no),
                   .op_code = db_text(row->key->op_code), .fence = db_uint(row->fence),
                   .result = db_text(row->result), .done = db_int(row->done));
}

db_answer store_act_note(db *connection, const store_act *act, const store_act_row *row)
{
    return SQL_RUN(connection, NULL, act_note, .what = db_text(act->what),
                   .said = db_text(act->said), .reason = db_text(act->reason),
                   .actor = db_text(act->actor), .log_no = db_text(act->log_no),
                   .cust_no = db_text(row != NULL ? row->key->cust_no : NULL),
                   .serial_no = db_text(row != NULL ? row->key->serial_no : NULL),
                   .op_code = db_text(row != NULL ? row->key->op_code : NULL),
                   .fence = row != NULL ? db_uint(row->fence) : db_null(),
                   .result = db_text(row != NULL ? row->result : NULL));
}
