/* Answers requests, does the faults that any request may meet, and logs arrivals and ends. */
#include "work.h"

#include <string.h>

void work_begin(struct work *work, struct house *house, const struct request *request,
                struct reply *reply)
{
    memset(reply, 0, sizeof(*reply));
    work->house = house;
    work->request = request;
    work->reply = reply;
}

void work_receive(struct work *work, const struct fault_subject *subject, const char *differs)
{
    work->house->requests[subject->endpoint]++;
    request_log_line(
        work->house->log, "received", work->request->number,
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:s*}", "endpoint", endpoint_name(subject->endpoint),
                  "channel_key", subject->channel_key, "serial_no", subject->serial_no, "cust_no",
                  subject->cust_no, "number", (json_int_t)subject->number, "differs", differs));
    work->received = true;
    faults_draw(work->house->faults, subject, &work->fault);
}

/* Requests that never got to a channel key: bad ones, and those for stats and the like. */
static void log_other(const struct work *work)
{
    struct problem path;

    work->house->other_requests++;
    problem_set(&path, "%s %s", work->request->method, work->request->path);
    request_log_line(work->house->log, "received", work->request->number,
                     json_pack("{s:s, s:s}", "endpoint", "other", "path", path.text));
}

void work_end(struct work *work)
{
    if (!work->received)
        log_other(work);
    if (work->reply->status == 0)
        work->house->dropped++;
    request_log_line(work->house->log, work->reply->status ? "answered" : "dropped",
                     work->request->number,
                     json_pack("{s:i, s:s, s:s}", "status", work->reply->status, "outcome",
                               work->outcome, "fault", work->injected ? work->injected : "none"));
}

void reply_json(struct work *work, int status, const char *outcome, json_t *body)
{
    work->reply->status = status;
    work->reply->body = memory_need(body);
    work->outcome = outcome;
}

void reply_error(struct work *work, int status, const char *sentence)
{
    reply_json(work, status, "error", json_pack("{s:s}", "error", sentence));
}

void reply_bad(struct work *work, int status, const char *sentence)
{
    work->house->bad_requests++;
    reply_error(work, status, sentence);
}

void reply_nothing(struct work *work)
{
    work->reply->status = 0;
    work->outcome = "none";
}

void inject(struct work *work, enum fault_kind kind)
{
    work->house->faults_injected[kind]++;
    work->injected = fault_name(kind);
}

/* Sleeps; when the program stops meanwhile, nothing is answered and false returned. */
static bool delay(struct work *work)
{
    inject(work, work->fault.kind);
    if (stop_sleep(work->house->stop, work->fault.delay_ms))
        return true;
    reply_nothing(work);
    return false;
}

bool fault_before(struct work *work)
{
    switch (work->fault.kind) {
    case FAULT_SLOW:
        return !delay(work);
    case FAULT_ERROR_BEFORE:
    case FAULT_UNREACHABLE:
        reply_error(work, 503, "the channel is not available");
        break;
    case FAULT_DROP_BEFORE:
        reply_nothing(work);
        break;
    case FAULT_RATE_LIMIT:
        reply_json(work, 429, "rate_limited", json_pack("{s:s}", "outcome", "rate_limited"));
        break;
    case FAULT_DUPLICATE:
        reply_json(work, 409, "duplicate_in_progress",
                   json_pack("{s:s}", "outcome", "duplicate_in_progress"));
        break;
    default:
        return false;
    }
    inject(work, work->fault.kind);
    return true;
}

bool fault_after(struct work *work)
{
    switch (work->fault.kind) {
    case FAULT_SLOW_ANSWER:
        return !delay(work);
    case FAULT_ERROR_AFTER:
        reply_error(work, 500, "something went wrong in the channel");
        break;
    case FAULT_DROP_AFTER:
        reply_nothing(work);
        break;
    default:
        return false;
    }
    inject(work, work->fault.kind);
    return true;
}
