/* Which rows a list shows.  Looks at filters and views only. */
#include "admin/list.h"
#include "admin/money_read.h"

#include "base/error.h"
#include "base/text.h"

#include <tradelock/layer.h>

#include <stdio.h>
#include <string.h>

int list_op_matches(const char *op, const char *op_code)
{
    const size_t size = strlen(op);

    return strncmp(op_code, op, size) == 0 &&
           (op_code[size] == '\0' || strcmp(op_code + size, TL_RETRY_SUFFIX) == 0);
}

int list_is_open(const tl_view *view)
{
    return view->state != TL_STATE_SUCCEEDED && view->state != TL_STATE_FAILED &&
           view->state != TL_STATE_CLOSED;
}

static tl_status check_op(const char *op)
{
    TRY(text_check_name("operation", op, TL_OP_MAX - strlen(TL_RETRY_SUFFIX)));
    if (text_is_retry_op(op))
        return error_set(TL_INVALID, "operation %s: name the business operation, without %s", op,
                         TL_RETRY_SUFFIX);
    return TL_OK;
}

static tl_status check_name(const char *what, const char *value, size_t max)
{
    return value != NULL ? text_check_name(what, value, max) : TL_OK;
}

static tl_status check_ref(const char *ref)
{
    if (ref[0] == '\0')
        return error_set(TL_INVALID, "channel reference: is empty");
    if (strnlen(ref, TL_REF_MAX + 1) > TL_REF_MAX)
        return error_set(TL_INVALID, "channel reference: is longer than %d bytes", TL_REF_MAX);
    return text_check_utf8("channel reference", ref);
}

static tl_status check_letters(const tl_filter *filter)
{
    if (filter->lane != 0 && filter->lane != 'S' && filter->lane != 'R')
        return error_set(TL_INVALID, "the lane is S (sync) or R (retry)");
    if (filter->status != 0 && strchr("PFY", filter->status) == NULL)
        return error_set(TL_INVALID, "the status is P, F or Y");
    return TL_OK;
}

static tl_status check_numbers(const tl_filter *filter)
{
    if (filter->older_ms < 0 || filter->idle_ms < 0)
        return error_set(TL_INVALID, "an age is not negative");
    if (filter->since_us < 0 || filter->until_us < 0 || filter->as_of_us < 0 ||
        filter->since_us > STRETCH_END_US || filter->until_us > STRETCH_END_US ||
        filter->as_of_us > STRETCH_END_US)
        return error_set(TL_INVALID, "a moment lies between the years 1970 and 9998");
    return TL_OK;
}

static tl_status check_trace(const char *trace)
{
    char context[TL_TRACEPARENT + 1];

    if (snprintf(context, sizeof context, "00-%s-0000000000000001-00", trace) != TL_TRACEPARENT ||
        !text_is_traceparent(context))
        return error_set(TL_INVALID,
                         "trace: is no id of a trace, 32 hexadecimal digits in small letters");
    return TL_OK;
}

static tl_status check_amount(const tl_filter *filter)
{
    struct money money;
    const char *currency = filter->currency;

    if (!money_read(&money, filter->amount))
        return error_set(TL_INVALID, MONEY_UNREAD);
    if (currency == NULL)
        currency = money.currency;
    if (currency[0] != '\0' && money_minor(&money, currency) < 0)
        return error_set(TL_INVALID, "amount: is none in %s", currency);
    return TL_OK;
}

tl_status list_names_check(const tl_filter *filter)
{
    uint8_t uuid[TEXT_UUID];
    char currency[TL_CURRENCY + 1];
    int64_t minor;

    TRY(filter->op != NULL ? check_op(filter->op) : TL_OK);
    TRY(check_name("customer", filter->cust, TL_CUST_MAX));
    TRY(check_name("serial number", filter->serial, TL_SERIAL_MAX));
    TRY(check_name("beginning of serial numbers", filter->serial_prefix, TL_SERIAL_MAX));
    TRY(check_name("channel", filter->channel, TL_CHANNEL_MAX));
    TRY(check_name("currency", filter->currency, TL_CURRENCY));
    if (filter->batch != NULL)
        TRY(tl_batch_check(filter->batch));
    if (filter->channel_ref != NULL)
        TRY(check_ref(filter->channel_ref));
    if (filter->label != NULL)
        TRY(text_check_line("label", filter->label, TL_LABEL_MAX));
    if (filter->trace != NULL)
        TRY(check_trace(filter->trace));
    if (filter->amount != NULL)
        TRY(check_amount(filter));
    if (filter->amount_over != NULL)
        TRY(tl_amount_read(filter->amount_over, filter->currency, &minor, currency));
    if (filter->held && filter->newest_first)
        return error_set(TL_INVALID, "what is held is not listed among what is finished");
    if (filter->serial != NULL && filter->serial_prefix != NULL)
        return error_set(TL_INVALID, "a list is by a serial number or by a beginning, not both");
    if (filter->log_uuid != NULL && !text_from_uuid(uuid, filter->log_uuid))
        return error_set(TL_INVALID, "the log UUID is not a UUID as log lines and rows have it");
    return TL_OK;
}

static tl_status check_after(const tl_filter *filter)
{
    enum list_source source;
    store_list_place place;
    struct find_part part;
    const char *after = filter->after;

    if (after == NULL)
        return TL_OK;
    if (filter->find != NULL)
        filter = find_part(&part, filter, find_goes_on(&after)) ? &part.filter : NULL;
    if (filter == NULL || !list_next_read(after, &source, &place) ||
        !list_filter_uses(filter, source))
        return error_set(TL_INVALID, "the place to go on from is not one that a list with this "
                                     "filter ended with");
    return TL_OK;
}

tl_status list_filter_check(const tl_filter *filter)
{
    if (filter == NULL || filter->version != TL_FILTER_VERSION)
        return error_set(TL_INVALID, "the filter is NULL or its version is not set");
    TRY(check_letters(filter));
    TRY(check_numbers(filter));
    TRY(list_names_check(filter));
    if (filter->find != NULL)
        TRY(find_check(filter));
    return check_after(filter);
}

/* ----------------------------------------------------------------- sources -- */

/* A retry row that waits or is parked is F, too. */
static int may_be(const tl_filter *filter, char lane, char status)
{
    return (filter->lane == 0 || filter->lane == lane) &&
           (filter->status == 0 || filter->status == status);
}

static int uses_parked(const tl_filter *filter, enum list_source source)
{
    if (filter->in_doubt)
        return 0;
    return source == LIST_PARKED_SYNC ? may_be(filter, 'S', 'P') : may_be(filter, 'R', 'F');
}

static int uses_open(const tl_filter *filter, enum list_source source)
{
    if (filter->parked)
        return 0;
    switch (source) {
    case LIST_WAITING:
        return may_be(filter, 'R', 'F') && !filter->in_doubt;
    case LIST_HELD_REST:
        return may_be(filter, 'S', 'P') || may_be(filter, 'R', 'P');
    default:
        return may_be(filter, 'S', 'P');
    }
}

static int wants_open(const tl_filter *filter)
{
    return filter->status == 'P' || filter->parked || filter->in_doubt;
}

int list_is_one_walk(const tl_filter *filter)
{
    return filter->as_of_us != 0 || filter->newest_first;
}

int list_mixes_held(const tl_filter *filter)
{
    return filter->newest_first && list_filter_uses(filter, LIST_RECENT);
}

/* What is over is then found by when it was made, not by walking from the latest on. */
static int is_by_moment(const tl_filter *filter)
{
    return !filter->newest_first && (filter->since_us != 0 || filter->until_us != 0 ||
                                     filter->older_ms != 0 || filter->idle_ms != 0);
}

/* Where rows of one name come from; LIST_SOURCES: none is asked for. */
static enum list_source name_of(const tl_filter *f)
{
    return f->channel_ref != NULL ? LIST_BY_REF
           : f->label != NULL     ? LIST_BY_LABEL
           : f->trace != NULL     ? LIST_BY_TRACE
                                  : LIST_SOURCES;
}

int list_filter_uses(const tl_filter *filter, enum list_source source)
{
    if (name_of(filter) != LIST_SOURCES)
        return source == name_of(filter) && filter->lane != 'R';
    if (filter->serial != NULL || filter->serial_prefix != NULL) {
        /* A parked retry row stands apart from the others of its serial number. */
        return source == LIST_CONFLICT || source == LIST_BY_SERIAL ||
               ((source == LIST_CONFLICT_PARKED || source == LIST_PARKED) && filter->lane != 'S');
    }
    if (filter->batch != NULL) {
        if (filter->lane == 'R')
            return 0;
        return (source == LIST_BATCH_OPEN && !list_is_one_walk(filter)) ||
               (source == LIST_BATCH_REST && (list_is_one_walk(filter) || !wants_open(filter)));
    }
    if (filter->amount != NULL && filter->cust == NULL && !wants_open(filter) &&
        !filter->conflict && !filter->held)
        return source == LIST_BY_AMOUNT && filter->lane != 'R';
    if (filter->as_of_us != 0) {
        /* A row is found by where it stands now, whatever it was. */
        if (filter->cust != NULL)
            return source == LIST_CUSTOMER_REST;
        return source == LIST_WAITING || source == LIST_HELD_REST || source == LIST_RECENT ||
               source == LIST_IDLE;
    }
    if (filter->cust != NULL)
        return source == LIST_CUSTOMER_OPEN ||
               (source == LIST_CUSTOMER_REST && !wants_open(filter));
    if (filter->held)
        return (source == LIST_HELD || source == LIST_HELD_REST) && uses_open(filter, source);
    switch (source) {
    case LIST_HELD:
        return !list_mixes_held(filter) && !filter->conflict && uses_open(filter, source);
    case LIST_CONFLICT:
        return filter->conflict || !filter->parked;
    case LIST_CONFLICT_PARKED:
        return uses_parked(filter, source);
    case LIST_PARKED_SYNC:
    case LIST_PARKED:
        return !filter->conflict && uses_parked(filter, source);
    case LIST_RECENT:
        return !filter->conflict && !wants_open(filter) && filter->lane != 'R' &&
               !is_by_moment(filter);
    case LIST_IDLE:
        return !filter->conflict && !wants_open(filter) && !is_by_moment(filter);
    case LIST_MADE:
        return !filter->conflict && !wants_open(filter) && is_by_moment(filter);
    default:
        return list_is_by_operation(source) && !filter->conflict && uses_open(filter, source);
    }
}

/* -------------------------------------------------------------------- rows -- */

static int passes_amount(const char *amount, const tl_view *view)
{
    struct money money;

    return view->currency[0] != '\0' && money_read(&money, amount) &&
           money_minor(&money, view->currency) == view->amount_minor;
}

static int passes_over(const tl_filter *f, const tl_view *view)
{
    char currency[TL_CURRENCY + 1];
    int64_t minor;

    return tl_amount_read(f->amount_over, f->currency, &minor, currency) == TL_OK &&
           strcmp(currency, view->currency) == 0 && view->amount_minor > minor;
}

static int passes_names(const tl_filter *f, const tl_view *view)
{
    return (f->op == NULL || list_op_matches(f->op, view->op_code)) &&
           (f->cust == NULL || strcmp(f->cust, view->cust_no) == 0) &&
           (f->serial == NULL || strcmp(f->serial, view->serial_no) == 0) &&
           (f->serial_prefix == NULL ||
            strncmp(f->serial_prefix, view->serial_no, strlen(f->serial_prefix)) == 0) &&
           (f->channel == NULL || strcmp(f->channel, view->channel) == 0) &&
           (f->currency == NULL || strcmp(f->currency, view->currency) == 0) &&
           (f->batch == NULL || strcmp(f->batch, view->batch) == 0) &&
           (f->label == NULL || strcmp(f->label, view->label) == 0) &&
           (f->trace == NULL ||
            (view->traceparent[0] != '\0' &&
             strncmp(f->trace, view->traceparent + strlen("00-"), strlen(f->trace)) == 0)) &&
           (f->amount == NULL || passes_amount(f->amount, view)) &&
           /* At a moment before, it may have had none yet. */
           (f->as_of_us != 0 || f->channel_ref == NULL ||
            strcmp(f->channel_ref, view->channel_ref) == 0);
}

static int passes_times(const tl_filter *f, const tl_view *view)
{
    return (f->older_ms == 0 || (view->now_us - view->created_us) / 1000 >= f->older_ms) &&
           (f->idle_ms == 0 || (view->now_us - view->updated_us) / 1000 >= f->idle_ms) &&
           (f->since_us == 0 || view->created_us >= f->since_us) &&
           (f->until_us == 0 || view->created_us < f->until_us);
}

int list_filter_passes(const tl_filter *f, const tl_view *view)
{
    return (f->status == 0 || f->status == view->status) &&
           (f->lane == 0 || f->lane == view->lane) && passes_names(f, view) &&
           passes_times(f, view) && (f->amount_over == NULL || passes_over(f, view)) &&
           (!f->held || (view->status == 'P' && view->session_id[0] != '\0')) &&
           (!f->parked || view->parked[0] != '\0') &&
           (!f->in_doubt || view->state == TL_STATE_IN_DOUBT) && (!f->conflict || view->conflict);
}
