/* Names, classes and texts of the statuses, most of them from the maps in tradelock.h.  Touches no
 * state. */
#include <tradelock/rw_lock.h>

const char *tl_status_name(tl_status status)
{
    switch ((int)status) {
#define STATUS_NAME(number, name, class_, payment, text)                                           \
    case number:                                                                                   \
        return "TL_" #name;
        TL_STATUS_MAP(STATUS_NAME)
#undef STATUS_NAME
    default:
        return "TL_?";
    }
}

const char *tl_status_text(tl_status status)
{
    switch ((int)status) {
#define STATUS_TEXT(number, name, class_, payment, text)                                           \
    case number:                                                                                   \
        return text;
        TL_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
    default:
        return "a status that this version does not know";
    }
}

tl_class tl_status_class(tl_status status)
{
    switch ((int)status) {
#define STATUS_CLASS(number, name, class_, payment, text)                                          \
    case number:                                                                                   \
        return TL_CLASS_##class_;
        TL_STATUS_MAP(STATUS_CLASS)
#undef STATUS_CLASS
    default:
        /* A caller that has a status which does not exist must not go on paying. */
        return TL_CLASS_BROKEN;
    }
}

enum { STATUS_OPEN, STATUS_PAID, STATUS_NOT_PAID };

static int payment_of(tl_status status)
{
    switch ((int)status) {
#define STATUS_PAYMENT(number, name, class_, payment, text)                                        \
    case number:                                                                                   \
        return STATUS_##payment;
        TL_STATUS_MAP(STATUS_PAYMENT)
#undef STATUS_PAYMENT
    default:
        return STATUS_OPEN;
    }
}

int tl_paid(tl_status status)
{
    return payment_of(status) == STATUS_PAID;
}

int tl_not_paid(tl_status status)
{
    return payment_of(status) == STATUS_NOT_PAID;
}

const char *tl_class_name(tl_class class_)
{
    switch ((int)class_) {
    case TL_CLASS_DONE:
        return "done";
    case TL_CLASS_CONFLICT:
        return "conflict";
    case TL_CLASS_RETRY:
        return "retry";
    case TL_CLASS_UNKNOWN:
        return "unknown";
    case TL_CLASS_ROLL_BACK:
        return "roll back";
    case TL_CLASS_CALLER:
        return "caller";
    case TL_CLASS_BROKEN:
        return "broken";
    default:
        return "?";
    }
}

const char *tl_state_name(tl_state state)
{
    switch ((int)state) {
    case TL_STATE_ABSENT:
        return "absent";
    case TL_STATE_LIVE:
        return "live";
    case TL_STATE_WORKING:
        return "working";
    case TL_STATE_IN_DOUBT:
        return "in doubt";
    case TL_STATE_QUEUED:
        return "queued";
    case TL_STATE_PARKED:
        return "parked";
    case TL_STATE_FAILED:
        return "failed";
    case TL_STATE_SUCCEEDED:
        return "succeeded";
    case TL_STATE_WAITING:
        return "waiting";
    case TL_STATE_CLOSED:
        return "closed";
    default:
        return "?";
    }
}

const char *tl_resource_state_name(tl_resource_state state)
{
    switch ((int)state) {
    case TL_RESOURCE_FREE:
        return "free";
    case TL_RESOURCE_HELD:
        return "held";
    case TL_RESOURCE_KEPT:
        return "kept";
    case TL_RESOURCE_EXPIRED:
        return "expired";
    default:
        return "?";
    }
}

const char *tl_holder_state_name(tl_holder_state state)
{
    switch ((int)state) {
    case TL_HOLDER_FREE:
        return "free";
    case TL_HOLDER_HELD:
        return "held";
    case TL_HOLDER_DONE:
        return "done";
    case TL_HOLDER_WAITING:
        return "waiting";
    case TL_HOLDER_DEAD:
        return "dead";
    default:
        return "?";
    }
}

const char *tl_proof_name(tl_proof proof)
{
    switch ((int)proof) {
#define PROOF_NAME(code, name, text)                                                               \
    case code:                                                                                     \
        return #name;
        TL_PROOF_MAP(PROOF_NAME)
#undef PROOF_NAME
    default:
        return "?";
    }
}

const char *tl_proof_text(tl_proof proof)
{
    switch ((int)proof) {
#define PROOF_TEXT(code, name, text)                                                               \
    case code:                                                                                     \
        return text;
        TL_PROOF_MAP(PROOF_TEXT)
#undef PROOF_TEXT
    default:
        return "a proof that this version does not know";
    }
}

const char *tl_version(void)
{
    return TL_VERSION_STRING;
}
