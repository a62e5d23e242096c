/* What operators' commands read of a fleet: the shards of a file, and customers' slots. */
#include "admin/shard_copies.h"
#include "admin/statements.h"

#include "base/config.h"
#include "base/memory.h"
#include "base/text.h"
#include "client/read.h"
#include "fleet/map.h"
#include "store/bind.h"
#include "store/rows.h"
#include "store/server.h"
#include "sql_text.h"

#include <tradelock/admin/shards.h>

#include <string.h>

db_answer store_slots_of(db *connection, const char *const *cust_nos, size_t first, size_t count,
                         db_result *result)
{
    struct sql_slots_of_row *values = memory_new_array(count, sizeof *values);
    const store_rows rows = {.rows = (const db_value *)values, .count = count};
    db_answer answer;

    if (values == NULL)
        return DB_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        values[i] = SQL_ROW(slots_of, .number = db_uint(first + i),
                            .cust_no = db_ascii(cust_nos[first + i]));
    answer = store_run_rows(connection, &sql_slots_of, &rows, result);
    memory_free(values);
    return answer;
}

#define CUSTOMERS 500

/* Of no fleet, nothing is asked: an account of earlier times has no right to it. */
tl_status shard_copies_read(db *connection, shard_copies *copies)
{
    RESULT r = DB_RESULT_INIT;
    db_answer answer = db_run(connection, &sql_fleet_of, NULL, 0, &r);
    const int is_shard = answer == DB_DONE && r.rows == 1 && !db_is_null(&r, 0, FLEET_OF_NAME);

    if (is_shard)
        answer = db_run(connection, &sql_slot_list, NULL, 0, &r);
    for (size_t i = 0; is_shard && answer == DB_DONE && i < r.rows; i++) {
        const size_t slot = (size_t)db_get_uint(&r, i, COLUMN_slot_list_slot);
        const char *state = db_get_text(&r, i, COLUMN_slot_list_state);

        if (slot < TL_FLEET_SLOTS && (strcmp(state, "gone") == 0 || strcmp(state, "arriving") == 0))
            copies->has = copies->is[slot] = 1;
    }
    return read_status(connection, answer, "reading the slots of this shard");
}

tl_status shard_is_copy(db *connection, const shard_copies *copies, const char *cust_no, int *is)
{
    RESULT r = DB_RESULT_INIT;

    *is = 0;
    if (!copies->has)
        return TL_OK;
    TRY(read_status(connection, store_slots_of(connection, &cust_no, 0, 1, &r),
                    "looking for a customer's slot"));
    *is =
        r.rows == 1 && db_get_uint(&r, 0, 1) < TL_FLEET_SLOTS && copies->is[db_get_uint(&r, 0, 1)];
    return TL_OK;
}

tl_status tl_shards(const char *config_file, tl_shard_name_fn each, void *context)
{
    struct config config;

    error_clear();
    TRY(read_check_each(each != NULL));
    if (config_file == NULL)
        return error_set(TL_INVALID, "tl_shards: config_file is NULL");
    TRY(config_load(&config, config_file));
    for (unsigned i = 0; i < config.shards.count; i++)
        if (each(context, config.shards.name[i]) != 0)
            break;
    return TL_OK;
}

/* ---------------------------------------------------------------- customers -- */

static tl_status check_customers(const char *const *cust_nos, size_t count, const unsigned *slots)
{
    if (count > 0 && (cust_nos == NULL || slots == NULL))
        return error_set(TL_INVALID, "tl_slots_of: cust_nos or slots is NULL");
    for (size_t i = 0; i < count; i++)
        if (cust_nos[i] == NULL || strlen(cust_nos[i]) > TL_CUST_MAX)
            return error_set(TL_INVALID, "tl_slots_of: customer %zu is NULL or too long", i + 1);
    return TL_OK;
}

static tl_status slots_of(db *connection, const char *const *cust_nos, size_t count,
                          unsigned *slots)
{
    RESULT r = DB_RESULT_INIT;

    for (size_t first = 0; first < count; first += CUSTOMERS) {
        const size_t some = count - first < CUSTOMERS ? count - first : CUSTOMERS;

        TRY(read_status(connection, store_slots_of(connection, cust_nos, first, some, &r),
                        "looking for customers' slots"));
        if (r.rows != some)
            return error_set(TL_INTERNAL, "the server told %zu slots of %zu customers", r.rows,
                             some);
        for (size_t row = 0; row < r.rows; row++)
            slots[db_get_uint(&r, row, 0)] = (unsigned)db_get_uint(&r, row, 1);
    }
    return TL_OK;
}

size_t tl_slot_owner(const tl_slot_claim *claims, size_t count)
{
    slot_verdict all = {.is_said = 0};

    for (size_t i = 0; claims != NULL && i < count; i++) {
        const slot_said said = {.claim = map_claim_of(claims[i].state),
                                .version = claims[i].version,
                                .other = claims[i].other};

        map_judge(&all, i, &said);
    }
    return map_judged(&all);
}

tl_status tl_slots_of(tl_client *client, const char *const *cust_nos, size_t count, unsigned *slots)
{
    READING at = {.client = client};

    TRY(read_begin(&at));
    TRY(check_customers(cust_nos, count, slots));
    return slots_of(at.connection, cust_nos, count, slots);
}

struct customers {
    tl_customer_fn each;
    void *context;
    db *connection;
    char after[TL_CUST_MAX + 1];
};

/* Not 0: nobody wants more, or there are none. */
static int show_customers(struct customers *list, const db_result *r)
{
    for (size_t row = 0; row < r->rows; row++) {
        const tl_slot_customer one = {.cust_no = db_get_text(r, row, 0),
                                      .slot = (unsigned)db_get_uint(r, row, 1),
                                      .state = db_get_text(r, row, 2)};

        text_copy(list->after, sizeof list->after, one.cust_no);
        if (list->each(list->context, &one) != 0)
            return 1;
    }
    return r->rows < CUSTOMERS;
}

static int all_customers(void *context)
{
    struct customers *list = context;
    RESULT r = DB_RESULT_INIT;
    tl_status status = TL_OK;
    int is_over = 0;

    while (status == TL_OK && !is_over) {
        status = read_status(list->connection,
                             SQL_RUN(list->connection, &r, slot_customers,
                                     .cust_no = db_ascii(list->after), .most = db_uint(CUSTOMERS)),
                             "listing customers");
        is_over = status != TL_OK || show_customers(list, &r);
    }
    return (int)status;
}

tl_status tl_slot_customers(tl_client *client, tl_customer_fn each, void *context)
{
    struct customers list = {.each = each, .context = context, .after = ""};
    READING at = {.client = client};

    TRY(read_begin(&at));
    TRY(read_check_each(each != NULL));
    list.connection = at.connection;
    return read_and_show(all_customers, &list);
}
