/*
 * All payouts of a currency change one row of the treasury.  Its statements are `shared` and stand
 * last, so that they wait for each other there and hold it shortly.  The two of an ending only add
 * to a column: `summed`, a group of payouts changes the row once.  Reserving is not summed, since
 * each payout must hear for itself whether there is money enough.
 *
 * The tables lie in a database of their own on the same server.  Status and business rows are one
 * transaction all the same; a backup takes both databases at one moment.
 */
#include "books.h"

const tl_statement books_statements[BOOKS_STATEMENTS] = {
    {.name = "insert payout",
     .sql = "INSERT INTO payout.payout (serial_no, batch, iban, amount_minor, currency, state,"
            " channel_key, created_at) VALUES (:serial_no, :of_batch, :iban, :amount, :money,"
            " 'ASKED', :channel_key, UTC_TIMESTAMP(6))",
     .values = "of_batch text, iban text, amount int, money text"},
    {.name = "end payout",
     .sql = "UPDATE payout.payout SET state = :state, channel_ref = :channel_ref,"
            " ended_at = UTC_TIMESTAMP(6) WHERE serial_no = :serial_no AND state = :was",
     .values = "state text, was text"},
    {.name = "reserve",
     .sql = "UPDATE payout.treasury SET reserved_minor = reserved_minor + :amount"
            " WHERE currency = :money AND balance_minor - reserved_minor >= :amount",
     .values = "amount int, money text",
     .refused = "no treasury in this currency, or too little money in it",
     .shared = 1},
    {.name = "end reserve",
     .sql = "UPDATE payout.treasury SET reserved_minor = reserved_minor - :amount"
            " WHERE currency = :money",
     .values = "amount int, money text",
     .shared = 1,
     .summed = 1},
    {.name = "pay",
     .sql = "UPDATE payout.treasury SET balance_minor = balance_minor - :amount"
            " WHERE currency = :money",
     .values = "amount int, money text",
     .shared = 1,
     .summed = 1},
};

static tl_status read_order(payout_order *order, const tl_attempt *attempt)
{
    if (payout_order_read(order, attempt->payload, attempt->payload_size))
        return TL_OK;
    return tl_error_report(TL_CALLBACK_FAILED, "the payload of serial %s is no order",
                           attempt->key.serial_no);
}

static void move(tl_book *book, const char *statement, const payout_order *order)
{
    tl_book_line(book, statement);
    tl_book_int(book, "amount", order->amount_minor);
    tl_book_text(book, "money", order->currency);
}

static void end_payout(tl_book *book, const char *was, const char *state)
{
    tl_book_line(book, "end payout");
    tl_book_text(book, "was", was);
    tl_book_text(book, "state", state);
}

tl_status books_reserve(void *context, const tl_attempt *attempt, tl_reply *reply, tl_book *book)
{
    payout_order order;
    tl_status status = read_order(&order, attempt);

    (void)context;
    (void)reply;
    if (status != TL_OK)
        return status;
    move(book, "insert payout", &order);
    tl_book_text(book, "of_batch", attempt->batch);
    tl_book_text(book, "iban", order.iban);
    move(book, "reserve", &order);
    return TL_OK;
}

/* What was given back when it failed is not reserved any more. */
tl_status books_pay(void *context, const tl_attempt *attempt, const tl_reply *reply, tl_book *book)
{
    payout_order order;
    tl_status status = read_order(&order, attempt);

    (void)context;
    (void)reply;
    if (status != TL_OK)
        return status;
    end_payout(book, attempt->after_failure ? "FAILED" : "ASKED", "PAID");
    if (!attempt->after_failure)
        move(book, "end reserve", &order);
    move(book, "pay", &order);
    return TL_OK;
}

tl_status books_release(void *context, const tl_attempt *attempt, const tl_reply *reply,
                        tl_proof proof, tl_book *book)
{
    payout_order order;
    tl_status status = read_order(&order, attempt);

    (void)context;
    (void)reply;
    (void)proof;
    if (status != TL_OK)
        return status;
    end_payout(book, "ASKED", "FAILED");
    move(book, "end reserve", &order);
    return TL_OK;
}
