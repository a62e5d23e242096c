/* One attempt at a trade: keeps a copy of what its callbacks are shown, and makes each call of a
 * callback, with its time-out, its answer and its line in the log.  Touches the attempt only. */
#include "attempt.h"

#include "memory.h"
#include "schedule.h"

#include <tradelock/layer.h>
#include <tradelock/test_hooks.h>

#include <inttypes.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

tl_status attempt_init(attempt *a, const workflow *of, const tl_key *key, const void *payload,
                       size_t payload_size)
{
    tl_status status = TL_OK;

    memset(a, 0, sizeof *a);
    a->workflow = of;
    tl_text_keep(a->serial_no, sizeof a->serial_no, key->serial_no);
    tl_text_keep(a->cust_no, sizeof a->cust_no, key->cust_no);
    if (of->books != NULL)
        status = tl_book_new(&a->book, of->books);
    if (status != TL_OK)
        return status;
    a->payload = workflow_memory(payload_size);
    if (a->payload == NULL) {
        attempt_free(a);
        return tl_error_report(TL_NO_MEMORY, "no memory for a payload of %zu bytes", payload_size);
    }
    if (payload_size > 0)
        memcpy(a->payload, payload, payload_size);
    a->seen.key.serial_no = a->serial_no;
    a->seen.key.cust_no = a->cust_no;
    a->seen.key.op_code = of->op_code;
    a->seen.epoch = 1;
    a->seen.sends = 1;
    a->seen.channel_key = a->channel_key;
    a->seen.channel_ref = a->channel_ref;
    a->seen.payload = a->payload;
    a->seen.payload_size = payload_size;
    attempt_show_said(a, &(tl_said){0});
    return TL_OK;
}

void attempt_free(attempt *a)
{
    if (a == NULL)
        return;
    tl_book_free(a->book);
    a->book = NULL;
    free(a->payload);
    a->payload = NULL;
}

int64_t attempt_since_ms(const workflow *of, const tl_lock *lock)
{
    int64_t now_ms = schedule_now_ms();

    return now_ms + tl_lock_remaining_ms(lock) - of->given.policy.max_hold_ms;
}

void attempt_show_said(attempt *a, const tl_said *said)
{
    const tl_said *from = &a->said;
    tl_attempt *to = &a->seen;

    a->said = *said;
    TL_SAID_MAP(TL_PASS)
}

void attempt_show_row(attempt *a, const tl_view *from)
{
    tl_said said, *to = &said;

    TL_SAID_MAP(TL_KEEP)
    attempt_show_said(a, &said);
}

void attempt_show(attempt *a, const tl_view *view, int64_t since_ms)
{
    a->seen.epoch = view->epoch;
    a->seen.number = view->attempts;
    a->seen.sends = view->sends;
    /* 0: the row was not read, and what run.c showed of the trade before still holds. */
    if (view->created_us != 0) {
        a->seen.created_us = view->created_us;
        attempt_show_row(a, view);
    }
    a->deadline_at_ms = 0;
    if (view->deadline_us > 0)
        a->deadline_at_ms = since_ms + (view->deadline_us - view->now_us) / 1000;
    tl_text_keep(a->channel_key, sizeof a->channel_key, view->channel_key);
    tl_text_keep(a->channel_ref, sizeof a->channel_ref, view->channel_ref);
}

/* ------------------------------------------------------------------ the reply -- */

/* Replaces bytes that the database would refuse: a channel's odd bytes must not stop an ending.
 * Whether there were any. */
static int clean_text(char *text, size_t space)
{
    int was_odd = text[space - 1] != '\0';

    text[space - 1] = '\0';
    for (char *at = text; *at != '\0';) {
        unsigned char first = (unsigned char)*at;
        size_t size = first < 0x20 || first == 0x7f ? 0 : tl_utf8_size(at);

        if (size == 0) {
            *at = '?';
            was_odd = 1;
        }
        at += size > 0 ? size : 1;
    }
    return was_odd;
}

void reply_clean(tl_reply *reply)
{
    /* The bank's statement would contradict a reference that was made up. */
    if (clean_text(reply->channel_ref, sizeof reply->channel_ref))
        reply->channel_ref[0] = '\0';
    (void)clean_text(reply->remark, sizeof reply->remark);
    if (reply->result_size > sizeof reply->result)
        reply->result_size = sizeof reply->result;
    if (reply->retry_after_ms < 0)
        reply->retry_after_ms = 0;
    if (reply->retry_after_ms > TL_RETRY_AFTER_MAX_MS)
        reply->retry_after_ms = TL_RETRY_AFTER_MAX_MS;
}

static void reply_empty(tl_reply *reply)
{
    reply->channel_ref[0] = '\0';
    reply->remark[0] = '\0';
    reply->retryable = 0;
    reply->result_size = 0;
    reply->retry_after_ms = 0;
}

/* -------------------------------------------------------------- the callbacks -- */

/* The words of each enumeration.  Any unknown number counts as the first. */
static const char *const execute_words[] = {"UNKNOWN",     "SUCCEEDED", "DECLINED",
                                            "RETRY_LATER", "NOT_SENT",  "ACCEPTED"};
static const char *const query_words[] = {"UNREACHABLE", "SUCCEEDED", "FAILED", "PENDING",
                                          "NOT_FOUND"};
static const char *const cancel_words[] = {"UNKNOWN", "CANCELLED", "ALREADY_DONE"};

#define COUNT_OF(words) (sizeof(words) / sizeof((words)[0]))

static tl_status count_call(tl_calls **out, const workflow *of, const char *call,
                            const char *const *words, size_t count)
{
    const tl_calls_names names = {of->channel, of->op_code, call, words, (unsigned)count};

    return tl_calls_of(out, of->client, &names);
}

tl_status attempt_count_calls(workflow *of)
{
    tl_status status =
        count_call(&of->executes, of, "execute", execute_words, COUNT_OF(execute_words));

    if (status == TL_OK && of->given.query != NULL)
        status = count_call(&of->queries, of, "query", query_words, COUNT_OF(query_words));
    if (status == TL_OK && of->given.cancel != NULL)
        status = count_call(&of->cancels, of, "cancel", cancel_words, COUNT_OF(cancel_words));
    return status;
}

/* Counts and logs what the channel answered, and tells nothing of what it was sent. */
static void note_answer(const attempt *a, tl_calls *calls, const char *call, const char *answer,
                        unsigned number, int64_t start_us)
{
    const int64_t took_us = schedule_now_us() - start_us;
    const char *ref = a->reply.channel_ref;

    tl_calls_count(calls, number, took_us);
    tl_client_log(a->workflow->client, TL_INFO, &a->seen.key, 0,
                  "%s answered %s after %" PRId64 " ms (attempt %" PRIu32 ", sends %" PRIu32
                  "%s%s)",
                  call, answer, took_us / 1000, a->seen.number, a->seen.sends,
                  ref[0] != '\0' ? ", reference " : "", ref);
}

/* The number of a known answer; of any other, that of the first. */
#define NUMBER(words, answer) ((size_t)(answer) < COUNT_OF(words) ? (unsigned)(answer) : 0)
#define NOTE(a, calls, call, words, answer, start_us)                                              \
    note_answer(a, (a)->workflow->calls, call, (words)[NUMBER(words, answer)],                     \
                NUMBER(words, answer), start_us)

static int64_t left_ms(int64_t until_ms)
{
    int64_t left = until_ms - schedule_now_ms();

    return left > 0 ? left : 0;
}

int64_t tl_attempt_left_ms(const tl_attempt *seen)
{
    return seen != NULL ? left_ms(seen->until_ms) : 0;
}

int64_t attempt_come_again_ms(const attempt *a)
{
    const int64_t until_deadline_ms = left_ms(a->deadline_at_ms);

    return a->reply.retry_after_ms < until_deadline_ms ? a->reply.retry_after_ms
                                                       : until_deadline_ms;
}

/* Sets how much time is left until both moments, as the callback begins. */
static void begin_call(attempt *a, int64_t now_ms, int64_t until_ms)
{
    if (tl_test_mutated("send-by"))
        until_ms = now_ms + a->workflow->given.policy.execute_ms;
    reply_empty(&a->reply);
    a->seen.until_ms = until_ms;
    a->seen.timeout_ms = until_ms > now_ms ? until_ms - now_ms : 0;
    a->seen.deadline_ms = left_ms(a->deadline_at_ms);
}

/* The call gets just so much, from this moment on. */
static void begin_call_of(attempt *a, int64_t timeout_ms)
{
    const int64_t now_ms = schedule_now_ms();

    begin_call(a, now_ms, now_ms + timeout_ms);
}

/* Warns of a call that outlasted its time-out: it may outlast the hold, so its author should
 * know. */
static void mention_overrun(const attempt *a, const char *call, int64_t start_us)
{
    int64_t took_ms = (schedule_now_us() - start_us) / 1000;

    if (took_ms <= a->seen.timeout_ms)
        return;
    tl_client_log(a->workflow->client, TL_WARNING, &a->seen.key, 0,
                  "%s took %" PRId64 " ms, and was to return within %" PRId64 " ms", call, took_ms,
                  a->seen.timeout_ms);
}

/* The same for execute; the row says so too, if it has no other remark. */
static void mention_execute(attempt *a, int64_t start_us)
{
    int64_t took_ms = (schedule_now_us() - start_us) / 1000;

    mention_overrun(a, "execute", start_us);
    if (took_ms > a->seen.timeout_ms && a->reply.remark[0] == '\0')
        tl_reply_remark(&a->reply, "execute took %" PRId64 " ms instead of %" PRId64 " ms", took_ms,
                        a->seen.timeout_ms);
}

/* So many calls in a row without a clear answer are no accident. */
#define MISSES 5

/* "3 min 10 s": since its first call without an answer. */
static const char *since_text(char to[32], channel_watch *watch)
{
    const int64_t ms = schedule_now_ms() - atomic_load(&watch->since_ms), s = ms / 1000;

    if (s < 1)
        snprintf(to, 32, "less than a second");
    else if (s < 60)
        snprintf(to, 32, "%" PRId64 ".%" PRId64 " s", s, ms % 1000 / 100);
    else if (s < 3600)
        snprintf(to, 32, "%" PRId64 " min %" PRId64 " s", s / 60, s % 60);
    else
        snprintf(to, 32, "%" PRId64 " h %" PRId64 " min", s / 3600, s % 3600 / 60);
    return to;
}

/* Tells once that a channel fails, and once that it is back; each call has its own line besides,
 * for whoever wants more. */
static void watch_channel(const attempt *a, int answered)
{
    const workflow *of = a->workflow;
    channel_watch *watch = of->watch;
    char span[32];
    unsigned misses;

    if (answered) {
        if (atomic_load(&watch->misses) == 0)
            return;
        misses = atomic_exchange(&watch->misses, 0);
        if (misses >= MISSES)
            tl_client_log(of->client, TL_WARNING, NULL, 0, "channel %s (%s) is back after %s",
                          of->channel, of->op_code, since_text(span, watch));
        return;
    }
    /* Before it is counted: another thread may count the fifth meanwhile. */
    if (atomic_load(&watch->misses) == 0)
        atomic_store(&watch->since_ms, schedule_now_ms());
    misses = atomic_fetch_add(&watch->misses, 1) + 1;
    if (misses == MISSES)
        tl_client_log(
            of->client, TL_ALARM, NULL, 0,
            "channel %s (%s) has been failing for %s: no clear answer to %u calls in a row",
            of->channel, of->op_code, since_text(span, watch), misses);
}

int attempt_send_begin(attempt *a, int64_t until_ms)
{
    tl_test_point('C', "execute", "before");
    begin_call(a, schedule_now_ms(), until_ms);
    if (a->seen.timeout_ms == 0)
        tl_reply_remark(&a->reply, "not sent: the time for it was over");
    return a->seen.timeout_ms != 0;
}

tl_execute_result attempt_execute(attempt *a, int64_t until_ms)
{
    const tl_workflow *w = &a->workflow->given;
    const int64_t start_us = schedule_now_us();
    tl_execute_result answer;

    if (!attempt_send_begin(a, until_ms))
        return TL_EXECUTE_NOT_SENT;
    TL_CALLED(answer, "execute", w->execute(a->workflow->channel_context, &a->seen, &a->reply));
    answer = attempt_send_end(a, answer, start_us);
    if (answer == TL_EXECUTE_NOT_SENT)
        watch_channel(a, 0); /* it was tried, and the channel could not be reached */
    return answer;
}

tl_execute_result attempt_send_end(attempt *a, tl_execute_result answer, int64_t start_us)
{
    tl_test_point('C', "execute", "after");
    reply_clean(&a->reply);
    NOTE(a, executes, "execute", execute_words, answer, start_us);
    mention_execute(a, start_us);
    /* A service that closes sends nothing, which says nothing of the channel. */
    if (answer != TL_EXECUTE_NOT_SENT)
        watch_channel(a, answer != TL_EXECUTE_UNKNOWN);
    switch (answer) {
    case TL_EXECUTE_SUCCEEDED:
    case TL_EXECUTE_DECLINED:
    case TL_EXECUTE_RETRY_LATER:
    case TL_EXECUTE_NOT_SENT:
    case TL_EXECUTE_ACCEPTED:
        return answer;
    case TL_EXECUTE_UNKNOWN:
    default:
        return TL_EXECUTE_UNKNOWN;
    }
}

tl_query_result attempt_query(attempt *a, int64_t timeout_ms)
{
    const tl_workflow *w = &a->workflow->given;
    const int64_t start_us = schedule_now_us();
    tl_query_result answer;

    tl_test_point('C', "query", "before");
    begin_call_of(a, timeout_ms);
    TL_CALLED(answer, "query", w->query(a->workflow->channel_context, &a->seen, &a->reply));
    tl_test_point('C', "query", "after");
    reply_clean(&a->reply);
    NOTE(a, queries, "query", query_words, answer, start_us);
    mention_overrun(a, "query", start_us);
    watch_channel(a, answer != TL_QUERY_UNREACHABLE);
    switch (answer) {
    case TL_QUERY_SUCCEEDED:
    case TL_QUERY_FAILED:
    case TL_QUERY_PENDING:
    case TL_QUERY_NOT_FOUND:
        return answer;
    case TL_QUERY_UNREACHABLE:
    default:
        return TL_QUERY_UNREACHABLE;
    }
}

tl_cancel_result attempt_cancel(attempt *a, int64_t timeout_ms)
{
    const tl_workflow *w = &a->workflow->given;
    const int64_t start_us = schedule_now_us();
    tl_cancel_result answer;

    tl_test_point('C', "cancel", "before");
    begin_call_of(a, timeout_ms);
    TL_CALLED(answer, "cancel", w->cancel(a->workflow->channel_context, &a->seen, &a->reply));
    tl_test_point('C', "cancel", "after");
    reply_clean(&a->reply);
    NOTE(a, cancels, "cancel", cancel_words, answer, start_us);
    mention_overrun(a, "cancel", start_us);
    switch (answer) {
    case TL_CANCEL_CANCELLED:
    case TL_CANCEL_ALREADY_DONE:
        return answer;
    case TL_CANCEL_UNKNOWN:
    default:
        return TL_CANCEL_UNKNOWN;
    }
}

tl_status attempt_sql_prepare(void *context, struct st_mysql *connection)
{
    attempt *a = context;
    const tl_workflow *w = &a->workflow->given;
    tl_status status;

    reply_empty(&a->reply);
    status = w->sql_prepare(w->context, &a->seen, &a->reply, connection);
    reply_clean(&a->reply);
    return status;
}

tl_status attempt_sql_success(void *context, struct st_mysql *connection)
{
    attempt *a = context;
    const tl_workflow *w = &a->workflow->given;

    return w->sql_success(w->context, &a->seen, &a->reply, connection);
}

/* --------------------------------------------------------- the lines of a book -- */

static void begin_book(attempt *a)
{
    tl_book_clear(a->book);
    workflow_call_begins(); /* what is said from here on is the callback's */
}

/* If the callback cannot, its sentence is kept: it says more than the status. */
static void end_book(attempt *a, const char *callback, tl_status status)
{
    tl_test_point('C', callback, "after");
    if (status == TL_OK)
        return;
    if (tl_error_message()[0] != '\0')
        status = tl_error_report(TL_CALLBACK_FAILED, "%s: %s", callback, tl_error_message());
    else
        status =
            tl_error_report(TL_CALLBACK_FAILED, "%s answered %s", callback, tl_status_name(status));
    tl_book_refuse(a->book, status);
}

void attempt_book_prepare(attempt *a)
{
    const tl_workflow *w = &a->workflow->given;
    tl_status status;

    tl_test_point('C', "book_prepare", "before");
    begin_book(a);
    reply_empty(&a->reply);
    TL_CALLED(status, "book_prepare", w->book_prepare(w->context, &a->seen, &a->reply, a->book));
    reply_clean(&a->reply);
    if (status == TL_REFUSED) {
        (void)tl_error_report(status, "the workflow's prepare refused; no row was left");
        tl_book_refuse(a->book, status);
        status = TL_OK;
    }
    end_book(a, "book_prepare", status);
}

void attempt_book_success(attempt *a)
{
    const tl_workflow *w = &a->workflow->given;
    tl_status status;

    tl_test_point('C', "book_success", "before");
    begin_book(a);
    TL_CALLED(status, "book_success", w->book_success(w->context, &a->seen, &a->reply, a->book));
    end_book(a, "book_success", status);
}

void attempt_book_failure(attempt *a, tl_proof proof)
{
    const tl_workflow *w = &a->workflow->given;
    tl_status status;

    tl_test_point('C', "book_failure", "before");
    begin_book(a);
    TL_CALLED(status, "book_failure",
              w->book_failure(w->context, &a->seen, &a->reply, proof, a->book));
    end_book(a, "book_failure", status);
}
