/*
 * The business rows of the sample: freezes, pays and releases money.  Touches account and order
 * rows, in the library's transactions.
 *
 * Every callback takes its rows in the same order, account first, so two of them never wait for
 * each other.  Each checks how many rows it changed.  If a row that must be there is missing,
 * somebody tampered with the business rows, and the callback says so.
 */
#include "books.h"

#include "statement.h"

#include <inttypes.h>

#define COUNT(array) ((unsigned)(sizeof(array) / sizeof((array)[0])))

static tl_status read_order(withdraw_order *order, const tl_attempt *attempt)
{
    if (withdraw_order_read(order, attempt->payload, attempt->payload_size))
        return TL_OK;
    return tl_error_report(TL_CALLBACK_FAILED, "the payload of serial %s is no order",
                           attempt->key.serial_no);
}

/* Runs a statement that must change exactly one row. */
static tl_status change_one(struct st_mysql *connection, const char *name, const char *sql,
                            const parameter *parameters, unsigned count)
{
    uint64_t changed = 0;
    tl_status status = statement_run(connection, name, sql, parameters, count, &changed);

    if (status == TL_OK && changed != 1)
        return tl_error_report(TL_CALLBACK_FAILED,
                               "%s: %" PRIu64 " rows were changed instead of one", name, changed);
    return status;
}

/* --------------------------------------------------------------------- prepare -- */

static tl_status freeze_funds(const withdraw_order *order, const tl_attempt *attempt,
                              tl_reply *reply, struct st_mysql *connection)
{
    const parameter parameters[] = {
        NUMBER(order->amount_minor),
        TEXT(attempt->key.cust_no),
        TEXT(order->currency),
        NUMBER(order->amount_minor),
    };
    uint64_t changed = 0;
    tl_status status = statement_run(connection, "freeze funds",
                                     "UPDATE account SET frozen_minor = frozen_minor + ?"
                                     " WHERE cust_no = ? AND currency = ?"
                                     " AND balance_minor - frozen_minor >= ?",
                                     parameters, COUNT(parameters), &changed);

    if (status != TL_OK || changed == 1)
        return status;
    tl_reply_remark(reply, "no account in %s, or too little money on it", order->currency);
    return TL_REFUSED;
}

static tl_status insert_order(const withdraw_order *order, const tl_attempt *attempt,
                              struct st_mysql *connection)
{
    const parameter parameters[] = {
        TEXT(attempt->key.cust_no),  TEXT(attempt->key.serial_no), NUMBER(attempt->epoch),
        NUMBER(order->amount_minor), TEXT(order->currency),        TEXT(order->payee),
        TEXT(attempt->channel_key),
    };

    return change_one(connection, "insert order",
                      "INSERT INTO withdraw_order (cust_no, serial_no, epoch, amount_minor,"
                      " currency, payee, state, channel_key, created_at)"
                      " VALUES (?, ?, ?, ?, ?, ?, 'FROZEN', ?, UTC_TIMESTAMP(6))",
                      parameters, COUNT(parameters));
}

tl_status books_freeze(void *context, const tl_attempt *attempt, tl_reply *reply,
                       struct st_mysql *connection)
{
    withdraw_order order;
    tl_status status = read_order(&order, attempt);

    (void)context;
    if (status == TL_OK)
        status = freeze_funds(&order, attempt, reply, connection);
    if (status == TL_OK)
        status = insert_order(&order, attempt, connection);
    return status;
}

/* ------------------------------------------------------------------ the endings -- */

static tl_status end_order(const char *state, const tl_attempt *attempt,
                           struct st_mysql *connection)
{
    const parameter parameters[] = {
        TEXT(state),
        TEXT(attempt->key.cust_no),
        TEXT(attempt->key.serial_no),
        NUMBER(attempt->epoch),
        TEXT(attempt->after_failure ? "RELEASED" : "FROZEN"),
    };

    return change_one(connection, "end order",
                      "UPDATE withdraw_order SET state = ?, ended_at = UTC_TIMESTAMP(6)"
                      " WHERE cust_no = ? AND serial_no = ? AND epoch = ?"
                      " AND state = ?",
                      parameters, COUNT(parameters));
}

static tl_status take_frozen(const withdraw_order *order, const tl_attempt *attempt, int paid,
                             struct st_mysql *connection)
{
    const parameter parameters[] = {
        NUMBER(paid ? order->amount_minor : 0),
        /* A trade that had failed before has nothing frozen any more. */
        NUMBER(attempt->after_failure ? 0 : order->amount_minor),
        TEXT(attempt->key.cust_no),
        TEXT(order->currency),
    };

    return change_one(connection, paid ? "pay from account" : "unfreeze funds",
                      "UPDATE account SET balance_minor = balance_minor - ?,"
                      " frozen_minor = frozen_minor - ?"
                      " WHERE cust_no = ? AND currency = ?",
                      parameters, COUNT(parameters));
}

static tl_status insert_ledger(const withdraw_order *order, const tl_attempt *attempt,
                               const char *channel_ref, struct st_mysql *connection)
{
    const parameter parameters[] = {
        TEXT(attempt->key.serial_no), TEXT(attempt->key.cust_no), NUMBER(order->amount_minor),
        TEXT(order->currency),        TEXT(order->payee),         TEXT(channel_ref),
        TEXT(attempt->channel_key),
    };

    return change_one(connection, "insert ledger",
                      "INSERT INTO ledger (serial_no, cust_no, amount_minor, currency,"
                      " payee, channel_ref, channel_key, booked_at)"
                      " VALUES (?, ?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(6))",
                      parameters, COUNT(parameters));
}

tl_status books_pay(void *context, const tl_attempt *attempt, const tl_reply *reply,
                    struct st_mysql *connection)
{
    const char *channel_ref =
        reply->channel_ref[0] != '\0' ? reply->channel_ref : attempt->channel_ref;
    withdraw_order order;
    tl_status status = read_order(&order, attempt);

    (void)context;
    if (status == TL_OK)
        status = take_frozen(&order, attempt, 1, connection);
    if (status == TL_OK)
        status = end_order("PAID", attempt, connection);
    if (status == TL_OK)
        status = insert_ledger(&order, attempt, channel_ref, connection);
    return status;
}

tl_status books_release(void *context, const tl_attempt *attempt, const tl_reply *reply,
                        tl_proof proof, struct st_mysql *connection)
{
    withdraw_order order;
    tl_status status = read_order(&order, attempt);

    (void)context;
    (void)reply;
    (void)proof;
    if (status == TL_OK)
        status = take_frozen(&order, attempt, 0, connection);
    if (status == TL_OK)
        status = end_order("RELEASED", attempt, connection);
    return status;
}
