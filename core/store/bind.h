/* Gives a statement its values: a step for those of sql/step, values by name for all others. */
#ifndef TL_STORE_BIND_H
#define TL_STORE_BIND_H

#include "db/db.h"
#include "sql_text.h"
#include "store/step.h"
#include "store/step_map.h"
#include "store/store.h"

/* What a request says of itself, as values: what it does not say is NULL. */
#define STORE_SAID_MONEY(said, member)                                                             \
    ((said)->currency[0] != '\0' ? db_int((said)->member) : db_null())
#define STORE_SAID_TEXT(said, member)                                                              \
    ((said)->member[0] != '\0' ? db_text((said)->member) : db_null())

/* The most UUIDs that a statement of sql/step has. */
#define STEP_UUIDS 4
typedef unsigned char step_uuids[STEP_UUIDS][DB_UUID];

/* Fills statement->values values.  They borrow from the step and from `uuids`. */
void step_bind(const struct sql_text *statement, const step *s, db_value *values, step_uuids uuids);
/* The values of all, one step after the other, for memory_free(); NULL: there is no memory. */
db_value *step_bind_all(const struct sql_text *statement, step *const *steps, size_t count);
/* If this row, which the statement returned, carries the step's token, the step was carried out. */
void step_read_row(step *s, const db_result *result, size_t row);

/* A step as a request for db_run_ahead().  It stays where it is until that is over. */
typedef struct store_ahead {
    db_request request;
    db_result result;
    db_value values[STEP_FIELDS];
    step_uuids uuids;
} store_ahead;
void store_step_ahead(step *s, store_ahead *ahead);
/* What became of it, but for its row (store_read_granted); is_done: the server carried it out. */
void store_step_taken(step *s, store_ahead *ahead, int is_done);

/* Runs a statement of sql/step that is for one step; result may be NULL. */
db_answer step_run(db *connection, const struct sql_text *statement, const step *s, store_way way,
                   db_result *result);

/* After the call of a procedure, which this is the answer to: reads the one text that it left. */
db_answer store_called(db *connection, db_answer answer, const struct sql_text *left,
                       db_result *result);

/*
 * SQL_RUN(connection, result, purge, .older_ms = db_int(older_ms), .most = db_uint(most)) runs
 * the statement purge.  Each of its names has to be given a value, in any order: one that it does
 * not have, that is missing or given twice does not compile.  Needs: a statement with names.
 */
#define SQL_RUN(connection, result, statement, ...)                                                \
    db_run(connection, &sql_##statement, SQL_VALUES(statement, __VA_ARGS__),                       \
           sql_##statement##_values_count, result)

#define SQL_VALUES(statement, ...)                                                                 \
    ((const db_value *)&(const struct sql_##statement##_values){__VA_ARGS__} +                     \
     SQL_COMPLETE(sql_##statement##_values_count, __VA_ARGS__))

/* The same values as a struct sql_NAME_values; and those of one row of a group of rows as a struct
 * sql_NAME_row. */
#define SQL_STRUCT(statement, ...)                                                                 \
    ((void)SQL_COMPLETE(sql_##statement##_values_count, __VA_ARGS__),                              \
     (struct sql_##statement##_values){__VA_ARGS__})
#define SQL_ROW(statement, ...)                                                                    \
    ((void)SQL_COMPLETE(sql_##statement##_row_count, __VA_ARGS__),                                 \
     (struct sql_##statement##_row){__VA_ARGS__})

/* Is 0.  The compiler refuses an unknown name and one that is given twice; this refuses too few. */
#define SQL_COMPLETE(names, ...)                                                                   \
    (0 * sizeof(struct {                                                                           \
         _Static_assert((names) == SQL_COUNT(__VA_ARGS__), "not every name has a value");          \
         char one;                                                                                 \
     }))
#define SQL_COUNT(...)                                                                             \
    SQL_COUNT_OF(__VA_ARGS__, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12,  \
                 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define SQL_COUNT_OF(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16, _17,   \
                     _18, _19, _20, _21, _22, _23, _24, _25, _26, _27, _28, count, ...)            \
    count

#endif
