/* From a parsed request to its answer: checks the order, asks the channel, applies the chosen
 * fault. */
#include "export.h"
#include "ledger.h"
#include "work.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define PAYMENTS "/v1/payments/"
#define CANCEL "/cancel"

static const char *const outcome_names[OUTCOME_COUNT] = {
    "none",         "succeeded", "declined",  "accepted",    "duplicate_in_progress",
    "key_mismatch", "not_found", "cancelled", "already_done"};

/* The order is NULL for queries and cancels, whose serial and customer are those of the key, if it
 * is known. */
static void begin(struct work *work, enum endpoint endpoint, const char *channel_key,
                  const struct order *order)
{
    char serial_no[ORDER_NAME_MAX + 1], cust_no[ORDER_NAME_MAX + 1];
    struct fault_subject subject;

    subject.endpoint = endpoint;
    subject.channel_key = channel_key;
    subject.number =
        channel_count_request(work->house->channel, endpoint, channel_key, serial_no, cust_no);
    subject.serial_no = order ? order->serial_no : serial_no;
    subject.cust_no = order ? order->cust_no : cust_no;
    work_receive(work, &subject, order ? channel_differs(work->house->channel, order) : "");
}

/* Nothing is told before the ledger has it. */
static bool durable(struct work *work, const struct verdict *verdict)
{
    if (channel_durable(work->house->channel, verdict->seq))
        return true;
    reply_nothing(work);
    return false;
}

static json_t *declined_json(const char *field, const char *word, const struct verdict *verdict)
{
    return json_pack("{s:s, s:s, s:s, s:b}", field, word, "code", verdict->code, "reason",
                     verdict->reason, "final", 1);
}

static void reply_pay(struct work *work, const struct order *order, const struct verdict *verdict)
{
    const char *word = outcome_names[verdict->outcome];
    int told = TOLD_FINAL;

    switch (verdict->outcome) {
    case OUTCOME_SUCCEEDED:
        reply_json(work, 200, word,
                   json_pack("{s:s, s:s, s:I}", "outcome", word, "channel_ref",
                             verdict->channel_ref, "amount_minor",
                             (json_int_t)verdict->amount_minor));
        break;
    case OUTCOME_DECLINED:
        reply_json(work, 200, word, declined_json("outcome", word, verdict));
        break;
    case OUTCOME_MISMATCH:
        reply_json(work, 422, word,
                   json_pack("{s:s, s:s}", "outcome", word, "field", verdict->code));
        told = TOLD_KNOWN;
        break;
    default:
        reply_json(work, verdict->outcome == OUTCOME_ACCEPTED ? 202 : 409, word,
                   json_pack("{s:s}", "outcome", word));
        told = TOLD_KNOWN;
        break;
    }
    channel_told(work->house->channel, order->channel_key, told);
}

/* How the payment is to be taken under the fault, if that is what the fault is about. */
static bool pay_way_of(const struct fault *fault, struct pay_way *way)
{
    memset(way, 0, sizeof(*way));
    way->settle_ms = fault->delay_ms;
    way->later = fault->kind == FAULT_SLOW_PAYING || fault->kind == FAULT_ACCEPTED ||
                 fault->kind == FAULT_ACCEPTED_DECLINED;
    way->replied = way->later && fault->kind != FAULT_SLOW_PAYING;
    if (fault->kind == FAULT_DECLINE || fault->kind == FAULT_ACCEPTED_DECLINED) {
        way->code = fault->code;
        way->reason = fault->reason;
    }
    return way->later || way->code;
}

/* The body as JSON, or NULL with the answer made. */
static json_t *read_body(struct work *work)
{
    struct problem problem;
    json_error_t error;
    json_t *body;

    body = json_loadb(work->request->body, work->request->size, JSON_REJECT_DUPLICATES, &error);
    if (!body) {
        problem_set(&problem, "the body is not JSON: %s", error.text);
        reply_bad(work, 400, problem.text);
    }
    return body;
}

static void handle_pay(struct work *work)
{
    struct channel *channel = work->house->channel;
    json_t *body = read_body(work);
    struct verdict verdict;
    struct problem problem;
    struct order order;
    struct pay_way way;
    bool special;

    if (!body)
        return;
    if (!order_read(body, &order, &problem)) {
        reply_bad(work, 400, problem.text);
        goto out;
    }
    begin(work, ENDPOINT_PAY, order.channel_key, &order);
    if (fault_before(work))
        goto out;
    special = pay_way_of(&work->fault, &way);
    channel_pay(channel, &order, &way, &verdict);
    if (special && verdict.as_asked)
        inject(work, work->fault.kind);
    if (!durable(work, &verdict))
        goto out;
    if (verdict.accepted_seq && !way.replied &&
        (!channel_settled(channel, &verdict) || !durable(work, &verdict))) {
        reply_nothing(work);
        goto out;
    }
    work->house->outcomes[verdict.outcome]++;
    if (!fault_after(work))
        reply_pay(work, &order, &verdict);
out:
    json_decref(body);
}

/* Whether the query does not see yet, or not yet the end of, what the channel knows. */
static void blur(struct work *work, struct verdict *verdict)
{
    const struct fault *fault = &work->fault;
    bool in_time = !fault->for_ms || verdict->age_ms < fault->for_ms;
    bool known = verdict->outcome != OUTCOME_NOT_FOUND;
    bool final = known && verdict->outcome != OUTCOME_ACCEPTED;

    if (known && ((fault->kind == FAULT_NOT_FOUND_FIRST && in_time) ||
                  (verdict->age_ms < fault->lag_ms && verdict->told == TOLD_NOTHING))) {
        inject(work, FAULT_NOT_FOUND_FIRST);
        verdict->outcome = OUTCOME_NOT_FOUND;
    } else if (fault->kind == FAULT_PENDING && final && in_time &&
               !(fault->by_chance && verdict->told == TOLD_FINAL)) {
        inject(work, FAULT_PENDING);
        verdict->outcome = OUTCOME_ACCEPTED;
    }
}

static void handle_query(struct work *work, const char *channel_key)
{
    struct channel *channel = work->house->channel;
    struct verdict verdict;

    begin(work, ENDPOINT_QUERY, channel_key, NULL);
    if (fault_before(work))
        return;
    channel_query(channel, channel_key, &verdict);
    if (!durable(work, &verdict))
        return;
    blur(work, &verdict);
    switch (verdict.outcome) {
    case OUTCOME_SUCCEEDED:
        reply_json(work, 200, "succeeded",
                   json_pack("{s:s, s:s, s:I, s:I}", "status", "succeeded", "channel_ref",
                             verdict.channel_ref, "amount_minor", (json_int_t)verdict.amount_minor,
                             "payments", (json_int_t)verdict.payments));
        break;
    case OUTCOME_DECLINED:
        reply_json(work, 200, "failed", declined_json("status", "failed", &verdict));
        break;
    case OUTCOME_NOT_FOUND:
        reply_json(work, 404, "not_found", json_pack("{s:s}", "status", "not_found"));
        return;
    default:
        reply_json(work, 200, "pending", json_pack("{s:s}", "status", "pending"));
        channel_told(channel, channel_key, TOLD_KNOWN);
        return;
    }
    channel_told(channel, channel_key, TOLD_FINAL);
}

static void handle_cancel(struct work *work, const char *channel_key)
{
    struct channel *channel = work->house->channel;
    struct verdict verdict;

    begin(work, ENDPOINT_CANCEL, channel_key, NULL);
    if (fault_before(work))
        return;
    channel_cancel(channel, channel_key, &verdict);
    if (!durable(work, &verdict))
        return;
    work->house->outcomes[verdict.outcome]++;
    if (fault_after(work))
        return;
    if (verdict.outcome == OUTCOME_CANCELLED)
        reply_json(work, 200, "cancelled", json_pack("{s:s}", "outcome", "cancelled"));
    else
        reply_json(
            work, 200, "already_done",
            json_pack("{s:s, s:s}", "outcome", "already_done", "channel_ref", verdict.channel_ref));
    channel_told(channel, channel_key, TOLD_FINAL);
}

static void handle_ledger(struct work *work)
{
    struct ledger *ledger = channel_ledger(work->house->channel);
    struct reply *reply = work->reply;
    FILE *csv = memory_need(open_memstream(&reply->csv, &reply->csv_size));
    struct problem problem;
    int64_t nameless;
    bool fine;

    fine = export_csv(ledger_path(ledger), ledger_durable_bytes(ledger), csv, &nameless, &problem);
    fclose(csv);
    work->outcome = "ledger";
    reply->status = 200;
    if (!fine) {
        free(reply->csv);
        reply->csv = NULL;
        reply_error(work, 500, problem.text);
    }
}

static json_t *count_json(atomic_llong *count)
{
    return json_integer((json_int_t)*count);
}

static json_t *faults_json(struct house *house)
{
    json_t *result = memory_need(json_object());

    for (int kind = FAULT_NONE + 1; kind < FAULT_KIND_COUNT; kind++)
        json_object_set_new(result, fault_name((enum fault_kind)kind),
                            count_json(&house->faults_injected[kind]));
    return result;
}

static void handle_stats(struct work *work)
{
    struct house *house = work->house;
    struct channel_counts counts;
    json_t *requests, *outcomes;

    channel_count(house->channel, &counts);
    if (!channel_durable(house->channel, counts.last_seq)) {
        reply_nothing(work);
        return;
    }
    requests =
        json_pack("{s:o, s:o, s:o, s:o, s:o}", "pay", count_json(&house->requests[ENDPOINT_PAY]),
                  "query", count_json(&house->requests[ENDPOINT_QUERY]), "cancel",
                  count_json(&house->requests[ENDPOINT_CANCEL]), "other",
                  count_json(&house->other_requests), "bad", count_json(&house->bad_requests));
    outcomes = memory_need(json_object());
    for (int outcome = OUTCOME_SUCCEEDED; outcome < OUTCOME_COUNT; outcome++) {
        if (outcome != OUTCOME_NOT_FOUND)
            json_object_set_new(outcomes, outcome_names[outcome],
                                count_json(&house->outcomes[outcome]));
    }
    reply_json(work, 200, "stats",
               json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "kind",
                         kind_name(house->kind), "payments", (json_int_t)counts.payments,
                         "trades_paid", (json_int_t)counts.trades_paid, "paid_twice",
                         (json_int_t)counts.paid_twice, "declines", (json_int_t)counts.declines,
                         "cancels", (json_int_t)counts.cancels, "accepted_open",
                         (json_int_t)counts.accepted_open, "keys", (json_int_t)counts.keys,
                         "requests", memory_need(requests), "outcomes", outcomes, "dropped",
                         count_json(&house->dropped), "faults", faults_json(house)));
}

static void handle_faults_post(struct work *work)
{
    json_t *body = read_body(work);
    struct problem problem;
    int64_t rule;

    if (!body)
        return;
    if (json_object_get(body, "rate")) {
        if (faults_chance(work->house->faults, body, &problem))
            reply_json(work, 200, "chance", faults_list(work->house->faults));
        else
            reply_bad(work, 400, problem.text);
    } else if (faults_add(work->house->faults, body, &rule, &problem)) {
        reply_json(work, 201, "rule", json_pack("{s:I}", "rule", (json_int_t)rule));
    } else {
        reply_bad(work, 400, problem.text);
    }
    json_decref(body);
}

static void handle_faults(struct work *work)
{
    const char *method = work->request->method;

    if (strcmp(method, "POST") == 0)
        handle_faults_post(work);
    else if (strcmp(method, "GET") == 0)
        reply_json(work, 200, "faults", faults_list(work->house->faults));
    else
        reply_json(work, 200, "faults",
                   json_pack("{s:I}", "removed", (json_int_t)faults_clear(work->house->faults)));
}

static void handle_health(struct work *work)
{
    reply_json(work, 200, "health",
               json_pack("{s:s, s:s}", "status", "ok", "kind", kind_name(work->house->kind)));
}

/* Undoes %XX; false when it is broken or the text too long. */
static bool unescape(const char *from, size_t length, char to[ORDER_NAME_MAX + 1])
{
    size_t used = 0;

    for (size_t i = 0; i < length; i++) {
        unsigned value = (unsigned char)from[i];

        if (from[i] == '%') {
            char digits[3] = {0};

            if (length - i < 3)
                return false;
            memcpy(digits, from + i + 1, 2);
            if (!isxdigit((unsigned char)digits[0]) || !isxdigit((unsigned char)digits[1]))
                return false;
            value = (unsigned)strtoul(digits, NULL, 16);
            i += 2;
        }
        if (value == 0 || used == ORDER_NAME_MAX)
            return false;
        to[used++] = (char)value;
    }
    to[used] = '\0';
    return name_valid(to);
}

/* /v1/payments/KEY and /v1/payments/KEY/cancel; false when the path is neither. */
static bool handle_payment(struct work *work)
{
    const char *key = work->request->path + strlen(PAYMENTS);
    size_t length = strcspn(key, "/");
    char channel_key[ORDER_NAME_MAX + 1];
    bool cancel = strcmp(key + length, CANCEL) == 0;

    if (!cancel && key[length])
        return false;
    if (strcmp(work->request->method, cancel ? "POST" : "GET") != 0)
        reply_error(work, 405,
                    cancel ? "a cancel is sent with POST" : "a payment is queried with GET");
    else if (!unescape(key, length, channel_key))
        reply_bad(work, 400,
                  "the channel key in the path must be 1 to 128 visible ASCII "
                  "characters without blanks, escaped where a URL needs it");
    else if (cancel)
        handle_cancel(work, channel_key);
    else
        handle_query(work, channel_key);
    return true;
}

static const struct route {
    const char *path;
    const char *methods; /* space before and after each */
    void (*handle)(struct work *work);
} routes[] = {
    {"/v1/pay", " POST ", handle_pay},
    {"/v1/ledger", " GET ", handle_ledger},
    {"/v1/stats", " GET ", handle_stats},
    {"/v1/health", " GET ", handle_health},
    {"/v1/faults", " POST GET DELETE ", handle_faults},
};

static void handle_route(struct work *work)
{
    const struct request *request = work->request;
    char method[16];
    struct problem problem;

    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        if (strcmp(request->path, routes[i].path) != 0)
            continue;
        snprintf(method, sizeof(method), " %.12s ", request->method);
        if (strstr(routes[i].methods, method)) {
            routes[i].handle(work);
        } else {
            problem_set(&problem, "%s is asked with%s", request->path, routes[i].methods);
            problem.text[strlen(problem.text) - 1] = '\0';
            reply_error(work, 405, problem.text);
        }
        return;
    }
    if (strncmp(request->path, PAYMENTS, strlen(PAYMENTS)) == 0 && handle_payment(work))
        return;
    problem_set(&problem, "there is no %.200s here", request->path);
    reply_error(work, 404, problem.text);
}

void handle(struct house *house, const struct request *request, struct reply *reply)
{
    struct work work = {.house = NULL};

    work_begin(&work, house, request, reply);
    if (request->too_big)
        reply_bad(&work, 400, "the body is longer than 16384 bytes");
    else
        handle_route(&work);
    work_end(&work);
}
