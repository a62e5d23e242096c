/*
 * The janitor's statements.  All take the same struct, so that one function can run each of them;
 * each says which fields count.
 */
#ifndef TL_STORE_SWEEP_H
#define TL_STORE_SWEEP_H

#include "store/store.h"

/* Rows of dead sessions that are read at once. */
#define STORE_SWEEP_BATCH 256

typedef struct store_sweep {
    const char *session_id;
    const char *op_code;
    store_stretch stretch;
    store_operation operation;
    int empty, hidden;
    db_result rows; /* the caller frees them */
} store_sweep;

/* operation: becomes the next one. */
db_answer store_sweep_operation(db *connection, store_sweep *s);
/* Brings the end of op_code's stretch nearer; empty: no row stands in it. */
db_answer store_sweep_stretch(db *connection, store_sweep *s);
/* hidden: an open transaction has a row of op_code's stretch.  For a connection that does not wait
 * for rows. */
db_answer store_sweep_look_hidden(db *connection, store_sweep *s);
/* rows of op_code's stretch: (cust_no, serial_no, fence, log_no, next_run in microseconds, and
 * said_columns). */
db_answer store_sweep_overdue(db *connection, store_sweep *s);
/* The same of any session that is ended, neither settled nor swept: (cust_no, serial_no, fence,
 * log_no, session_id, and said_columns). */
db_answer store_sweep_dead(db *connection, store_sweep *s);
/* Moves the mark of op_code from the stretch's beginning to its end, unless another process moved
 * it. */
db_answer store_sweep_move(db *connection, store_sweep *s);

/* rows: (session_id, settled) of ended sessions that are not swept. */
db_answer store_sweep_sessions(db *connection, store_sweep *s);
/* Writes that session_id is swept. */
db_answer store_sweep_swept(db *connection, store_sweep *s);
/* rows: (resource), perhaps more than once, of holders of session_id; NULL: whose time is over. */
db_answer store_sweep_holders(db *connection, store_sweep *s);

#endif
