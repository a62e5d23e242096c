/* The statements that write what operators did (sql/object/act.sql), bound to their parameters. */
#ifndef TL_STORE_ACT_H
#define TL_STORE_ACT_H

#include "db/db.h"

#include <tradelock/tradelock.h>

typedef struct store_act {
    const char *what, *said, *reason, *actor, *log_no; /* log_no NULL: none */
} store_act;

/* What became of a trade, as a row of an act. */
typedef struct store_act_row {
    const tl_key *key;
    uint64_t fence; /* that was seen */
    const char *result;
    int done; /* 0: it was left alone */
} store_act_row;

/* Within the transaction that does it. */
db_answer store_act_write(db *connection, uint64_t act_no, uint64_t row_no,
                          const store_act_row *row);
/* A whole act, within the transaction that does it; row NULL: it is about no trade. */
db_answer store_act_note(db *connection, const store_act *act, const store_act_row *row);

#endif
