/*
 * The rows of a slot's customers, in every table that goes with them: read as literals at one
 * database, written at the other, compared, removed.
 */
#ifndef TL_ADMIN_SLOT_COPY_H
#define TL_ADMIN_SLOT_COPY_H

#include "admin/slot_tables.h"

#include "base/text.h"
#include "db/db.h"

#include <tradelock/tradelock.h>

/* A name, as it is, as an SQL literal and as a JSON string. */
typedef struct slot_customer {
    char *name, *quoted, *json;
} slot_customer;

/* In the order of their names. */
typedef struct slot_customers {
    slot_customer *of;
    size_t count;
} slot_customers;

struct slot_table;

typedef struct slot_copy {
    struct slot_table *tables;
    size_t count;
    unsigned slot;
    uint64_t rows; /* copied, compared or counted */
} slot_copy;

/* Our own tables, and those named: parents before their children.  TL_INVALID: a table is not there,
 * has no column cust_no, or is not of InnoDB. */
tl_status slot_copy_open(slot_copy *copy, db *from, unsigned slot, const slot_tables *named);
/* Of which tables what is at the target is not known to be copies of this slot's rows: of all but
 * ours and `known`; NULL: of all but the closings of findings, since the slot never was there. */
void slot_copy_estrange(slot_copy *copy, const slot_tables *known);
void slot_copy_close(slot_copy *copy);

/* Everybody of the slot who has a row in one of the tables. */
tl_status slot_customers_read(slot_customers *all, const slot_copy *copy, db *connection);
/* In one that is not ours; read(context) comes after each table that was read. */
tl_status slot_customers_read_others(slot_customers *all, const slot_copy *copy, db *connection,
                                     tl_status (*read)(void *context), void *context);
void slot_customers_free(slot_customers *all);

/* How many customers go in one statement. */
#define SLOT_CUSTOMERS 20

/* The customers from `first` on, at most SLOT_CUSTOMERS: their names as a JSON array. */
tl_status slot_customers_json(const slot_customers *all, size_t first, struct text_buffer *to);

/* What writes is done in many short transactions.  Begins one of them, in which alone the mover may
 * write; or ends it, by what became of it. */
typedef struct slot_writing {
    tl_status (*begin)(void *context);
    tl_status (*end)(void *context, tl_status status);
    void *context;
} slot_writing;
/* How many rows one transaction writes or removes, at most. */
#define SLOT_ROWS 1000

tl_status slot_copy_page(slot_copy *copy, db *from, db *to, const slot_customers *all, size_t first,
                         const slot_writing *writing);
tl_status slot_copy_wipe(slot_copy *copy, db *at, const slot_customers *all, size_t first,
                         const slot_writing *writing);

/* How many rows of these customers there are, in each table. */
tl_status slot_copy_count(slot_copy *copy, db *at, const slot_customers *all);
typedef void (*slot_counted_fn)(void *context, const char *table, uint64_t rows);
/* Of each table that has some. */
void slot_copy_tell(const slot_copy *copy, slot_counted_fn tell, void *context);

/* Adds to *count how many closings of findings these customers have at this end. */
tl_status slot_copy_closings(const slot_copy *copy, db *at, const slot_customers *all, size_t first,
                             uint64_t *count);

#define SLOT_ALL_THERE 1u /* each row of the source has to be at the target, too */
/* Nobody changes the source's rows of other tables than ours before the transaction of `from` ends. */
#define SLOT_LOCKS 2u
#define SLOT_STRANGE 4u /* strange tables alone */
#define SLOT_OTHERS 8u  /* tables alone that are not ours */
/* TL_REFUSED, with a sentence: a row of the target is not at the source, or a row is missing. */
tl_status slot_copy_compare(slot_copy *copy, db *from, db *to, const slot_customers *all,
                            size_t first, unsigned how);

#endif
