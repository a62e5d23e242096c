/* Making and freeing the handle of a trade's lock: what its options may say, and its own copies of
 * them. */
#include "trade_lock/lock.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/thread_context.h"

#include <tradelock/layer.h>

#include <string.h>

#define KEY_CHARS_MIN 20                     /* 80 bits */
#define DEADLINE_MAX_MS INT64_C(31622400000) /* 366 days, as in the settings */
#define KNOWN_FLAGS                                                                                \
    (TL_ASK_EXCLUSIVE | TL_ASK_REPEATABLE | TL_ASK_STANDALONE | TL_ASK_RECLAIM | TL_ASK_OVERRIDE)

static tl_status check_flags(const tl_lock_options *o)
{
    int retry = o->lane == TL_LANE_RETRY;

    if (o->flags & ~KNOWN_FLAGS)
        return error_set(TL_INVALID, "flags has bits that this version does not know");
    if ((o->flags & TL_ASK_RECLAIM) && o->reclaim_epoch == 0)
        return error_set(TL_INVALID, "a reclaim names the epoch of the failure that was "
                                     "seen: reclaim_epoch is 0");
    if ((o->flags & TL_ASK_REPEATABLE) && (o->flags & (TL_ASK_EXCLUSIVE | TL_ASK_RECLAIM)))
        return error_set(TL_INVALID, "a repeatable operation is neither exclusive for a "
                                     "customer nor reclaimed");
    if ((o->flags & (TL_ASK_STANDALONE | TL_ASK_OVERRIDE)) && !retry)
        return error_set(TL_INVALID, "standalone and override belong to the retry lane");
    if ((o->flags & (TL_ASK_REPEATABLE | TL_ASK_EXCLUSIVE | TL_ASK_RECLAIM)) && retry)
        return error_set(TL_INVALID, "repeatable, exclusive and reclaim belong to the sync "
                                     "lane");
    return TL_OK;
}

static tl_status check_texts(const tl_lock_options *o)
{
    TRY(text_check_utf8("remark", o->remark));
    TRY(text_check_utf8("actor", o->actor));
    if (o->channel != NULL)
        TRY(text_check_name("channel", o->channel, TL_CHANNEL_MAX));
    return TL_OK;
}

static tl_status check_sizes(const tl_lock_options *o)
{
    if (o->max_hold_ms <= 0 || o->max_hold_ms > TL_HOLD_MAX_MS)
        return error_set(TL_INVALID,
                         "max_hold_ms is %lld; it must be 1 to %lld: a lock "
                         "without an end could never be recovered",
                         (long long)o->max_hold_ms, (long long)TL_HOLD_MAX_MS);
    if (o->deadline_ms < 0)
        return error_set(TL_INVALID, "deadline_ms is negative");
    if (o->deadline_ms > DEADLINE_MAX_MS)
        return error_set(TL_INVALID, "deadline_ms is %lld; it must be at most %lld",
                         (long long)o->deadline_ms, (long long)DEADLINE_MAX_MS);
    if (o->payload_size > TL_PAYLOAD_MAX)
        return error_set(TL_INVALID, "the payload has %zu bytes; at most %d are kept",
                         o->payload_size, TL_PAYLOAD_MAX);
    if (o->payload == NULL && o->payload_size > 0)
        return error_set(TL_INVALID, "payload is NULL and payload_size is not 0");
    if (o->remark != NULL && strlen(o->remark) > TL_REMARK_MAX)
        return error_set(TL_INVALID, "the remark has %zu bytes; at most %d are kept",
                         strlen(o->remark), TL_REMARK_MAX);
    if (o->actor != NULL && strlen(o->actor) > sizeof((tl_lock *)0)->actor - 1)
        return error_set(TL_INVALID, "the actor's name has more than 63 bytes");
    if (o->channel != NULL && o->channel_key_chars != 0 &&
        (o->channel_key_chars < KEY_CHARS_MIN || o->channel_key_chars > TL_CHANNEL_KEY_MAX))
        return error_set(TL_INVALID, "channel_key_chars is %u; it must be %d to %d",
                         o->channel_key_chars, KEY_CHARS_MIN, TL_CHANNEL_KEY_MAX);
    return check_texts(o);
}

static tl_status check_amount(const tl_lock_options *o)
{
    if (o->currency == NULL && o->amount_minor == 0)
        return TL_OK;
    if (o->amount_minor < 0)
        return error_set(TL_INVALID, "amount_minor is %lld; it must be 0 to %lld",
                         (long long)o->amount_minor, (long long)INT64_MAX);
    if (o->currency == NULL)
        return error_set(TL_INVALID,
                         "amount_minor is %lld and currency is NULL: an amount has "
                         "both, or neither",
                         (long long)o->amount_minor);
    if (text_check_currency(o->currency) != TL_OK)
        return TL_INVALID;
    if (o->flags & (TL_ASK_REPEATABLE | TL_ASK_STANDALONE))
        return error_set(TL_INVALID, "what is repeatable or standalone guards no money, so it has "
                                     "no amount");
    return TL_OK;
}

static tl_status check_text(const tl_lock_options *o, const char *what, const char *value,
                            size_t most)
{
    if (o->flags & (TL_ASK_REPEATABLE | TL_ASK_STANDALONE))
        return error_set(TL_INVALID,
                         "what is repeatable or standalone guards no money, so it has no %s", what);
    /* What is no trace context is left out. */
    return strcmp(what, "traceparent") == 0 ? TL_OK : text_check_line(what, value, most);
}

#define CHECK_SAID(type, member, ...) CHECK_SAID_##type(member)
#define CHECK_SAID_MONEY(member)
#define CHECK_SAID_TEXT(member)                                                                    \
    if (status == TL_OK && o->member != NULL)                                                      \
        status = check_text(o, #member, o->member, sizeof((tl_said *)0)->member - 1);

static tl_status check_said(const tl_lock_options *o)
{
    tl_status status = check_amount(o);

    TL_SAID_MAP(CHECK_SAID)
    return status;
}

static tl_status check_options(const tl_lock_options *o)
{
    if (o == NULL || o->version != TL_LOCK_OPTIONS_VERSION)
        return error_set(TL_INVALID, "options is NULL or was not made with "
                                     "TL_LOCK_OPTIONS_INIT");
    if (o->lane != TL_LANE_SYNC && o->lane != TL_LANE_RETRY)
        return error_set(TL_INVALID, "lane is neither sync nor retry");
    TRY(check_flags(o));
    TRY(check_said(o));
    return check_sizes(o);
}

static void copy_key(tl_lock *lock, const tl_key *key)
{
    text_copy(lock->serial_no, sizeof lock->serial_no, key->serial_no);
    text_copy(lock->cust_no, sizeof lock->cust_no, key->cust_no);
    text_copy(lock->op_code, sizeof lock->op_code, key->op_code);
    text_copy(lock->retry_op, sizeof lock->retry_op - strlen(TL_RETRY_SUFFIX), key->op_code);
    text_add(lock->retry_op, sizeof lock->retry_op, TL_RETRY_SUFFIX);
    /* A blank is in no name, so that two keys are never one here. */
    text_copy(lock->wait_key, sizeof lock->wait_key, lock->cust_no);
    text_add(lock->wait_key, sizeof lock->wait_key, " ");
    text_add(lock->wait_key, sizeof lock->wait_key, lock->serial_no);
    text_add(lock->wait_key, sizeof lock->wait_key, " ");
    text_add(lock->wait_key, sizeof lock->wait_key, lock_row_op(lock));
    lock->wait_name = lock->wait_key;
    lock->grant.names = &lock->wait_name;
    lock->grant.count = 1;
}

/* A trace context only correlates, and may be what others sent: what is none refuses nothing. */
static void copy_said(tl_lock *lock, const tl_lock_options *from)
{
    const tl_key key = {lock->serial_no, lock->cust_no, lock->op_code};
    tl_said *to = &lock->said;

    TL_SAID_MAP(TL_KEEP)
    if (from->traceparent == NULL || text_is_traceparent(from->traceparent))
        return;
    to->traceparent[0] = '\0';
    tl_client_log(lock->base.client, TL_WARNING, &key, 0,
                  "the traceparent of the request is left out: it is no W3C trace context of "
                  "version 00 in small letters");
}

static tl_status copy_options(tl_lock *lock, const tl_lock_options *o)
{
    lock->options = *o;
    text_copy(lock->channel, sizeof lock->channel, o->channel);
    text_copy(lock->remark, sizeof lock->remark, o->remark);
    text_copy(lock->actor, sizeof lock->actor, o->actor);
    copy_said(lock, o);
    if (o->payload != NULL) {
        /* An empty payload is still one: never NULL. */
        lock->payload = memory_dup(o->payload, o->payload_size > 0 ? o->payload_size : 1);
        if (lock->payload == NULL)
            return error_set(TL_NO_MEMORY, "out of memory for the payload");
    }
    lock->options.payload = lock->payload;
    lock->has_fingerprint = o->fingerprint != NULL || o->payload != NULL;
    if (o->fingerprint != NULL)
        memcpy(lock->fingerprint, o->fingerprint, TL_FINGERPRINT);
    else if (o->payload != NULL)
        sha256_of(lock->fingerprint, o->payload, o->payload_size);
    return TL_OK;
}

tl_status tl_lock_new(tl_lock **out, tl_client *client, const tl_key *key,
                      const tl_lock_options *options)
{
    tl_lock *lock;
    tl_status status;

    error_clear();
    if (out == NULL)
        return error_set(TL_INVALID, "tl_lock_new: out is NULL");
    TRY(client_check(client));
    TRY(key_check(key));
    TRY(check_options(options));
    lock = memory_new(sizeof *lock);
    if (lock == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for a lock handle");
    handle_init(&lock->base, &trade_method, client_keep(client), &lock->grant);
    view_clear(&lock->view, &lock->inside);
    copy_key(lock, key);
    status = copy_options(lock, options);
    if (status != TL_OK) {
        tl_lock_free(lock);
        return status;
    }
    *out = lock;
    return TL_OK;
}

void tl_lock_free(tl_lock *lock)
{
    if (lock == NULL)
        return;
    thread_context_come_in();
    gate_drop(lock->base.client, &lock->pass);
    shared_row_release(lock->row);
    shared_row_release(lock->coming);
    memory_free(lock->payload);
    memory_free(lock->ended.result);
    client_release(lock->base.client);
    memory_free(lock);
}
