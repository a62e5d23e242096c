/*
 * Statements are declared in the order in which they lock rows, so that two transactions can wait
 * for each other only in one direction.  Each line must change one row: a book that does not find
 * what must be there has been tampered with, and the library says so.
 *
 * One account may pay very many payees, as that of the house does.  So its statements are `shared`
 * and stand last: trades wait for each other there, and hold the row shortly.  The two of an ending
 * only add to a column: `summed`, a group of trades changes the row once.  Freezing is not summed,
 * since each trade must hear for itself whether there is money enough.
 *
 * Amount, currency and payee are those of the payload, which is what the channel is sent.
 */
#include "books.h"

const tl_statement books_statements[BOOKS_STATEMENTS] = {
    {.name = "insert order",
     .sql =
         "INSERT INTO withdraw_order (cust_no, serial_no, epoch, amount_minor, currency, payee,"
         " state, channel_key, created_at) VALUES (:cust_no, :serial_no, :epoch, :amount, :money,"
         " :payee, 'FROZEN', :channel_key, UTC_TIMESTAMP(6))",
     .values = "amount int, money text, payee text"},
    {.name = "end order",
     .sql = "UPDATE withdraw_order SET state = :state, ended_at = UTC_TIMESTAMP(6) WHERE"
            " cust_no = :cust_no AND serial_no = :serial_no AND epoch = :epoch AND state = :was",
     .values = "state text, was text"},
    {.name = "insert ledger",
     .sql = "INSERT INTO ledger (serial_no, cust_no, amount_minor, currency, payee, channel_ref,"
            " channel_key, booked_at) VALUES (:serial_no, :cust_no, :amount, :money, :payee,"
            " :channel_ref, :channel_key, UTC_TIMESTAMP(6))",
     .values = "amount int, money text, payee text"},
    {.name = "freeze funds",
     .sql = "UPDATE account SET frozen_minor = frozen_minor + :amount WHERE cust_no = :cust_no"
            " AND currency = :money AND balance_minor - frozen_minor >= :amount",
     .values = "amount int, money text",
     .refused = "no account in this currency, or too little money on it",
     .shared = 1},
    {.name = "unfreeze funds",
     .sql = "UPDATE account SET frozen_minor = frozen_minor - :amount"
            " WHERE cust_no = :cust_no AND currency = :money",
     .values = "amount int, money text",
     .shared = 1,
     .summed = 1},
    {.name = "take funds",
     .sql = "UPDATE account SET balance_minor = balance_minor - :amount"
            " WHERE cust_no = :cust_no AND currency = :money",
     .values = "amount int, money text",
     .shared = 1,
     .summed = 1},
};

static tl_status read_order(withdraw_order *order, const tl_attempt *attempt)
{
    if (withdraw_order_read(order, attempt->payload, attempt->payload_size))
        return TL_OK;
    return tl_error_report(TL_CALLBACK_FAILED, "the payload of serial %s is no order",
                           attempt->key.serial_no);
}

static void move(tl_book *book, const char *statement, const withdraw_order *order)
{
    tl_book_line(book, statement);
    tl_book_int(book, "amount", order->amount_minor);
    tl_book_text(book, "money", order->currency);
}

static void end_order(tl_book *book, const char *was, const char *state)
{
    tl_book_line(book, "end order");
    tl_book_text(book, "was", was);
    tl_book_text(book, "state", state);
}

tl_status books_freeze(void *context, const tl_attempt *attempt, tl_reply *reply, tl_book *book)
{
    withdraw_order order;
    tl_status status = read_order(&order, attempt);

    (void)context;
    (void)reply;
    if (status != TL_OK)
        return status;
    move(book, "insert order", &order);
    tl_book_text(book, "payee", order.payee);
    move(book, "freeze funds", &order);
    return TL_OK;
}

/* What was unfrozen when it failed is not frozen any more. */
tl_status books_pay(void *context, const tl_attempt *attempt, const tl_reply *reply, tl_book *book)
{
    withdraw_order order;
    tl_status status = read_order(&order, attempt);

    (void)context;
    (void)reply;
    if (status != TL_OK)
        return status;
    end_order(book, attempt->after_failure ? "RELEASED" : "FROZEN", "PAID");
    move(book, "insert ledger", &order);
    tl_book_text(book, "payee", order.payee);
    if (!attempt->after_failure)
        move(book, "unfreeze funds", &order);
    move(book, "take funds", &order);
    return TL_OK;
}

tl_status books_release(void *context, const tl_attempt *attempt, const tl_reply *reply,
                        tl_proof proof, tl_book *book)
{
    withdraw_order order;
    tl_status status = read_order(&order, attempt);

    (void)context;
    (void)reply;
    (void)proof;
    if (status != TL_OK)
        return status;
    end_order(book, "FROZEN", "RELEASED");
    move(book, "unfreeze funds", &order);
    return TL_OK;
}
