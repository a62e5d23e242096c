/* What the operators' statements share: filters, places and pages. */
#ifndef TL_ADMIN_STATEMENTS_H
#define TL_ADMIN_STATEMENTS_H

#include "db/db.h"
#include "store/decision.h"
#include "store/store.h"

#include <tradelock/admin/audit.h>

/* The columns of every page of a list. */
enum store_list_column {
    LIST_CUST,
    LIST_SERIAL,
    LIST_OP,
    LIST_STATUS,
    LIST_REV,
    LIST_LOGGED,
    LIST_PASSES,
    LIST_PLACE_US,
    LIST_PLACE_TEXT
};

/* What list_columns asks of a row; "" and 0 (amount_over: -1) for whatever is not asked. */
typedef struct store_list_filter {
    const char *cust, *op, *retry_op, *lane, *status, *channel, *log_no, *batch, *channel_ref;
    int64_t amount_over, since_us, until_us, as_of_us, older_ms, idle_ms;
} store_list_filter;

/* A row's place in a list; the next page starts behind it.  What `us` and `text` are depends on the
 * list: the next moment; the reason why it is parked, or the holder's session. */
typedef struct store_list_place {
    int64_t us;
    char text[64];
    char cust_no[TL_CUST_MAX + 1], serial_no[TL_SERIAL_MAX + 1], op_code[TL_OP_MAX + 1];
} store_list_place;

/* Serial numbers from one to another. */
typedef struct store_serials {
    const char *first, *last;
} store_serials;

/* The steps of both lanes. */
db_answer store_timeline(db *connection, const tl_key *key, db_result *result);

/* (number, slot), numbered from `first` on */
db_answer store_slots_of(db *connection, const char *const *cust_nos, size_t first, size_t count,
                         db_result *result);

/* Of that result; 0: the table is not in it. */
uint64_t table_rows(const db_result *tables, const char *table);

/* What a slot is, or is to become.  NULL: none. */
#define STORE_SLOT_TOKEN 16
typedef struct store_slot {
    const char *state, *other, *tables, *taking;
    uint64_t version;
    int sealed;
    const unsigned char *token;
} store_slot;

#endif
