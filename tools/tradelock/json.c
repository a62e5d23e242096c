/* Rows of the library as JSON objects, for --json. */
#include "print.h"

#include "command.h"
#include "fields.h"

#include <tradelock/admin.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Text that is not UTF-8 cannot be a JSON string; it becomes one of its bytes. */
static json_t *json_any_text(const char *text)
{
    json_t *string = json_string(text);
    char *latin;
    size_t size = 0;

    if (string != NULL)
        return string;
    latin = calloc(2 * strlen(text) + 1, 1);
    if (latin == NULL)
        return json_null();
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c < 0x80) {
            latin[size++] = (char)*c;
        } else {
            latin[size++] = (char)(0xc0 | *c >> 6);
            latin[size++] = (char)(0x80 | (*c & 0x3f));
        }
    }
    string = json_string(latin);
    free(latin);
    return string;
}

json_t *json_text(const char *text)
{
    return text != NULL && text[0] != '\0' ? json_any_text(text) : json_null();
}

json_t *json_time(int64_t us)
{
    char text[TIME_TEXT];

    return json_text(time_text(text, us));
}

json_t *json_char(char c)
{
    const char text[2] = {c == ' ' ? '\0' : c, '\0'};

    return json_text(text);
}

json_t *json_hex(const unsigned char *bytes, size_t size)
{
    char *digits = malloc(2 * size + 1);
    json_t *text;

    if (digits == NULL)
        return json_null();
    for (size_t i = 0; i < size; i++)
        snprintf(digits + 2 * i, 3, "%02x", bytes[i]);
    digits[2 * size] = '\0';
    text = json_text(digits);
    free(digits);
    return text;
}

json_t *json_bytes(const void *data, size_t size)
{
    json_t *text;

    if (data == NULL || size == 0)
        return json_null();
    text = memchr(data, '\0', size) == NULL ? json_stringn(data, size) : NULL;
    if (text != NULL)
        return json_pack("{s:I, s:o}", "size", (json_int_t)size, "text", text);
    return json_pack("{s:I, s:o}", "size", (json_int_t)size, "hex", json_hex(data, size));
}

static void set(json_t *object, const char *name, json_t *value)
{
    json_object_set_new(object, name, value);
}

json_t *json_digits(const char *digits)
{
    long long number;

    errno = 0;
    number = strtoll(digits, NULL, 10);
    return errno == 0 ? json_integer(number) : json_string(digits);
}

json_t *json_unsigned(uint64_t number)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%" PRIu64, number);
    return json_digits(digits);
}

static void set_number(json_t *object, const char *name, uint64_t number)
{
    set(object, name, json_unsigned(number));
}

json_t *json_view(const tl_view *view)
{
    return record_json(view_fields, VIEW_FIELDS, view);
}

json_t *json_step(const tl_step *step)
{
    json_t *o = json_object();

    set(o, "logged_at", json_time(step->logged_us));
    set(o, "op_code", json_text(step->op_code));
    set(o, "step", json_text(step->step));
    set(o, "status", json_char(step->status));
    set_number(o, "rev", step->rev);
    set_number(o, "fence", step->fence);
    set_number(o, "epoch", step->epoch);
    set_number(o, "attempts", step->attempts);
    set_number(o, "claims", step->claims);
    set_number(o, "sends", step->sends);
    set(o, "conflict", json_boolean(step->conflict));
    set(o, "proof",
        step->proof == TL_PROOF_NONE ? json_null()
                                     : json_text(tl_proof_name((tl_proof)step->proof)));
    set(o, "thread_no", json_text(step->thread_no));
    set(o, "log_no", json_text(step->log_no));
    set(o, "session_id", json_text(step->session_id));
    set(o, "parked", json_text(step->parked));
    set(o, "channel_key", json_text(step->channel_key));
    set(o, "channel_ref", json_text(step->channel_ref));
    set(o, "remark", json_text(step->remark));
    set(o, "actor", json_text(step->actor));
    set(o, "account", json_text(step->account));
    set(o, "send_until", json_time(step->send_until_us));
    set(o, "max_hold_until", json_time(step->max_hold_until_us));
    set(o, "next_run_at", json_time(step->next_run_us));
    return o;
}

json_t *json_resource(const tl_resource_view *view)
{
    json_t *o = json_object();

    set(o, "resource", json_text(view->resource));
    set(o, "state", json_text(tl_resource_state_name(view->state)));
    set(o, "step", json_text(view->step));
    set_number(o, "fence", view->fence);
    set_number(o, "rev", view->rev);
    set(o, "renewed", json_boolean(view->renewed));
    set(o, "thread_no", json_text(view->thread_no));
    set(o, "log_no", json_text(view->log_no));
    set(o, "session_id", json_text(view->session_id));
    set(o, "holder", json_text(view->holder));
    set(o, "remark", json_text(view->remark));
    set(o, "actor", json_text(view->actor));
    set(o, "locked_at", json_time(view->locked_us));
    set(o, "updated_at", json_time(view->updated_us));
    set(o, "read_at", json_time(view->now_us));
    set(o, "lease_until", json_time(view->lease_until_us));
    set(o, "max_hold_until", json_time(view->max_hold_until_us));
    set(o, "not_before", json_time(view->free_us));
    set(o, "payload", json_bytes(view->payload, view->payload_size));
    return o;
}

json_t *json_evidence(const tl_evidence_row *row)
{
    json_t *o = json_object();

    set_number(o, "evidence_id", row->evidence_id);
    set(o, "filed_at", json_time(row->filed_us));
    set_number(o, "epoch", row->epoch);
    set(o, "outcome", json_text(row->outcome));
    set(o, "final", json_boolean(row->final));
    set(o, "channel_key", json_text(row->channel_key));
    set(o, "channel_ref", json_text(row->channel_ref));
    set(o, "source", json_text(row->source));
    set(o, "remark", json_text(row->remark));
    set(o, "account", json_text(row->account));
    set(o, "paid_minor",
        row->amount.is_told ? json_integer(row->amount.amount_minor) : json_null());
    set(o, "paid_currency", json_text(row->amount.currency));
    set(o, "contradicts", json_boolean(row->contradicts));
    return o;
}

json_t *json_resolution(const tl_resolution_row *row)
{
    json_t *o = json_object();

    set(o, "decided_at", json_time(row->decided_us));
    set_number(o, "rev", row->rev);
    set_number(o, "fence", row->fence);
    set_number(o, "epoch", row->epoch);
    set(o, "verdict", json_text(tl_decision_name(row->decision)));
    set(o, "confirms", json_boolean(row->confirms));
    set(o, "refused", json_boolean(row->refused));
    set(o, "although_pending", json_boolean(row->although_pending));
    set(o, "account", json_text(row->account));
    set(o, "actor", json_text(row->actor));
    set(o, "reason", json_text(row->reason));
    return o;
}

json_t *json_trade(const struct json_trade *trade)
{
    json_t *o = json_object();

    set(o, "sync", trade->sync != NULL ? trade->sync : json_null());
    set(o, "retry", trade->retry != NULL ? trade->retry : json_null());
    set(o, "explanation", trade->explanation != NULL ? trade->explanation : json_null());
    set(o, "evidence", trade->evidence != NULL ? trade->evidence : json_null());
    set(o, "resolutions", trade->resolutions != NULL ? trade->resolutions : json_null());
    set(o, "timeline", trade->timeline != NULL ? trade->timeline : json_null());
    set(o, "channel_said", json_text(trade->channel_said));
    set(o, "channel_said_at", json_time(trade->channel_said_us));
    set(o, "as_of", json_time(trade->as_of_us));
    return o;
}

int print_json(json_t *document, int code)
{
    int failed = document == NULL || json_dumpf(document, stdout, JSON_INDENT(2)) != 0;

    json_decref(document);
    if (failed) {
        fputs("tradelock: the JSON document could not be made or written\n", stderr);
        return EXIT_INTERNAL;
    }
    putchar('\n');
    return finish_output(code);
}
