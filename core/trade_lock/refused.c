/* Why an ask for a lock of a trade was refused: the row that was read says it.  A customer's other
 * trade is looked up. */
#include "trade_lock/lock.h"

#include "base/error.h"
#include "base/text.h"
#include "store/bind.h"
#include "store/store.h"

#include <string.h>

#define FINGERPRINT_TEXT 9 /* 8 digits and the end */

static tl_status find_customer(tl_lock *lock)
{
    tl_client *client = lock->base.client;
    RESULT result = DB_RESULT_INIT;
    db *connection;

    TRY(pool_get(client->connections, POOL_QUICK, client->config.pool_wait_ms, &connection));
    if (SQL_RUN(connection, &result, customer_busy, .cust_no = db_text(lock->cust_no),
                .op_code = db_text(lock->op_code)) == DB_DONE &&
        result.rows > 0) {
        text_copy(lock->view.other_serial, sizeof lock->view.other_serial,
                  db_get_text(&result, 0, 0));
        lock->view.other_state = view_state(db_get_text(&result, 0, 1));
    }
    pool_put(client->connections, connection);
    return TL_OK;
}

/* Whether the contents differ.  Nobody knows the contents of a payment that was filed after a
 * restore; it contradicts no ask. */
int ask_fingerprint_differs(const tl_lock *lock)
{
    if (lock->view.status == 'Y' && !lock->inside.has_fingerprint)
        return 0;
    if (!lock->has_fingerprint || !lock->inside.has_fingerprint)
        return lock->has_fingerprint != lock->inside.has_fingerprint;
    return memcmp(lock->fingerprint, lock->view.fingerprint, TL_FINGERPRINT) != 0;
}

/* The key belongs to the other kind of row: a repeatable trade never takes over a payment, and
 * never answers for one. */
int ask_kind_differs(const tl_lock *lock)
{
    return lock->view.state != TL_STATE_ABSENT &&
           (lock->view.repeatable != 0) != lock_repeats(lock);
}

tl_status ask_refuse_kind(const tl_lock *lock)
{
    return error_set(TL_MISMATCH,
                     lock->view.repeatable
                         ? "this key is a repeatable or standalone operation, and was asked for "
                           "as a trade that happens once"
                         : "this key is a trade that happens once, and was asked for as "
                           "a repeatable or standalone operation");
}

tl_status ask_refuse_customer_busy(tl_lock *lock)
{
    TRY(lock_read(lock));
    TRY(find_customer(lock));
    /* The row may have come to be while the customer was looked up; and other contents come before
     * everything else. */
    if (ask_kind_differs(lock) || (lock->view.state != TL_STATE_ABSENT &&
                                   (lock->view.status != 'F' || ask_fingerprint_differs(lock))))
        return ask_classify(lock);
    return error_set(TL_CUSTOMER_BUSY, "serial %s of this customer is in process",
                     lock->view.other_serial[0] != '\0' ? lock->view.other_serial
                                                        : "(another, just decided)");
}

static tl_status classify_not_live(const tl_lock *lock)
{
    switch (lock->view.state) {
    case TL_STATE_PARKED:
        return error_set(TL_PARKED, "parked: %s", lock->view.parked);
    case TL_STATE_QUEUED:
        return error_set(TL_QUEUED, "nothing was sent yet; the retry lane will send");
    default:
        return error_set(TL_IN_DOUBT, "money may have moved; the retry lane finds out");
    }
}

/* The row as it was read, in the order of precedence. */
tl_status ask_classify(tl_lock *lock)
{
    const tl_view *v = &lock->view;

    if (ask_kind_differs(lock))
        return ask_refuse_kind(lock);
    if (ask_fingerprint_differs(lock))
        return error_set(TL_MISMATCH, "the same key was asked for with other contents");
    if (v->status == 'Y')
        return TL_ALREADY_DONE;
    if (v->status == 'F' && v->conflict)
        return error_set(TL_IN_CONFLICT,
                         "the trade failed with proof (%s), but evidence "
                         "says that money moved",
                         tl_proof_text((tl_proof)v->proof));
    if (v->status == 'F' && lock->channel[0] != '\0' && strcmp(lock->channel, v->channel) != 0)
        return error_set(TL_FAILED,
                         "the trade failed: %s; it is of channel \"%s\", and not tried anew at %s: "
                         "pay under a new serial number",
                         tl_proof_text((tl_proof)v->proof), v->channel, lock->channel);
    if (v->status == 'F')
        return error_set(TL_FAILED, "the trade failed: %s", tl_proof_text((tl_proof)v->proof));
    if (lock->inside.alive)
        return error_set(TL_BUSY, "in process by %s", v->holder);
    return classify_not_live(lock);
}

tl_status ask_classify_repeating(tl_lock *lock)
{
    if (ask_kind_differs(lock))
        return ask_refuse_kind(lock);
    if (lock->view.status == 'Y' && lock_is_standalone(lock))
        return TL_ALREADY_DONE;
    if (lock->view.state == TL_STATE_ABSENT)
        lock->view.being_decided = 1;
    return error_set(TL_BUSY, "in process by %s",
                     lock->view.holder[0] != '\0' ? lock->view.holder : "another attempt");
}

/* The first digits of a fingerprint. */
static const char *fingerprint_text(char to[FINGERPRINT_TEXT], int has,
                                    const unsigned char *fingerprint)
{
    if (!has)
        return "none";
    text_hex(to, fingerprint, (FINGERPRINT_TEXT - 1) / 2);
    return to;
}

/* Other contents under one key are a program's mistake, or fraud. */
static void log_mismatch(const tl_lock *lock)
{
    char own[FINGERPRINT_TEXT], other[FINGERPRINT_TEXT];

    if (lock->view.repeatable || lock_repeats(lock)) {
        lock_log(lock, TL_WARNING, 0, "refused, TL_MISMATCH: %s", tl_error_message());
        return;
    }
    lock_log(lock, TL_WARNING, 0, "refused, TL_MISMATCH: %s (fingerprint %s%s%s, the trade has %s)",
             tl_error_message(), fingerprint_text(own, lock->has_fingerprint, lock->fingerprint),
             lock->actor[0] != '\0' ? " of " : "", lock->actor,
             fingerprint_text(other, lock->inside.has_fingerprint, lock->view.fingerprint));
}

tl_status ask_explain(lock_handle *h, tl_status status)
{
    const tl_lock *lock = (const tl_lock *)h;

    if (status == TL_MISMATCH)
        log_mismatch(lock);
    else if (status == TL_ALREADY_DONE) /* which leaves no sentence */
        lock_log(lock, TL_DEBUG, 0, "refused, TL_ALREADY_DONE");
    else
        lock_log(lock, TL_DEBUG, 0, "refused, %s: %s", tl_status_name(status), tl_error_message());
    return status;
}
