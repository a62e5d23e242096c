/* The janitor's statements, bound to their values.  They change low-water marks, and write which
 * sessions are swept. */
#include "store/sweep.h"

#include "sql_text.h"
#include "store/bind.h"

db_answer store_sweep_operation(db *connection, store_sweep *s)
{
    return store_operation_next(connection, &s->operation);
}

db_answer store_sweep_stretch(db *connection, store_sweep *s)
{
    return store_low_water_stretch(connection, s->op_code, &s->stretch, &s->empty);
}

static int is_taken(const db *connection, db_answer answer)
{
    return answer == DB_ERROR && db_error_kind_of(db_errno(connection)) == DB_KIND_REPEAT;
}

db_answer store_sweep_look_hidden(db *connection, store_sweep *s)
{
    db_answer answer =
        SQL_RUN(connection, NULL, low_water_clear, .op_code = db_text(s->op_code),
                .from_us = db_int(s->stretch.from_us), .to_us = db_int(s->stretch.to_us));

    s->hidden = answer != DB_DONE;
    return is_taken(connection, answer) ? DB_DONE : answer;
}

db_answer store_sweep_overdue(db *connection, store_sweep *s)
{
    return SQL_RUN(connection, &s->rows, reap_overdue, .op_code = db_text(s->op_code),
                   .from_us = db_int(s->stretch.from_us), .to_us = db_int(s->stretch.to_us));
}

db_answer store_sweep_dead(db *connection, store_sweep *s)
{
    return SQL_RUN(connection, &s->rows, reap_dead, .op_code = db_text(s->op_code),
                   .from_us = db_int(s->stretch.from_us), .to_us = db_int(s->stretch.to_us),
                   .most = db_uint(STORE_SWEEP_BATCH));
}

db_answer store_sweep_move(db *connection, store_sweep *s)
{
    db_answer answer =
        SQL_RUN(connection, NULL, low_water_move, .op_code = db_text(s->op_code),
                .from_us = db_int(s->stretch.from_us), .to_us = db_int(s->stretch.to_us));

    return is_taken(connection, answer) ? DB_DONE : answer;
}

db_answer store_sweep_sessions(db *connection, store_sweep *s)
{
    return db_run(connection, &sql_session_to_sweep, NULL, 0, &s->rows);
}

db_answer store_sweep_swept(db *connection, store_sweep *s)
{
    const db_value id = db_text(s->session_id);
    const db_answer answer = SQL_RUN(connection, NULL, session_close, .session_id = id);

    return answer == DB_DONE ? SQL_RUN(connection, NULL, session_swept, .session_id = id) : answer;
}

db_answer store_sweep_holders(db *connection, store_sweep *s)
{
    if (s->session_id == NULL)
        return db_run(connection, &sql_rw_overdue, NULL, 0, &s->rows);
    return SQL_RUN(connection, &s->rows, rw_session, .session_id = db_text(s->session_id));
}
