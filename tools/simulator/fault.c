/* Chooses what goes wrong with a request: by rule, else by a chance that the seed fixes. */
#include "fault.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define DELAY_MAX_MS 3600000

#define ON_PAY (1u << ENDPOINT_PAY)
#define ON_QUERY (1u << ENDPOINT_QUERY)
#define ON_CANCEL (1u << ENDPOINT_CANCEL)

#define ON_ALL (ON_PAY | ON_QUERY | ON_CANCEL)

struct kind_facts {
    const char *name;
    unsigned endpoints;
    unsigned share[ENDPOINT_COUNT];
};

/* Each kind: its name, where it may happen, and its share of the chance faults there. */
static const struct kind_facts kinds[FAULT_KIND_COUNT] = {
    [FAULT_NONE] = {"none", 0, {0, 0, 0}},
    [FAULT_SLOW] = {"slow", ON_PAY | ON_QUERY | ON_CANCEL, {12, 15, 15}},
    [FAULT_SLOW_PAYING] = {"slow_paying", ON_PAY, {8, 0, 0}},
    [FAULT_SLOW_ANSWER] = {"slow_answer", ON_PAY | ON_CANCEL, {6, 0, 10}},
    [FAULT_DECLINE] = {"decline", ON_PAY, {14, 0, 0}},
    [FAULT_ACCEPTED] = {"accepted", ON_PAY, {8, 0, 0}},
    [FAULT_ACCEPTED_DECLINED] = {"accepted_declined", ON_PAY, {4, 0, 0}},
    [FAULT_ERROR_BEFORE] = {"error_before", ON_PAY | ON_CANCEL, {8, 0, 20}},
    [FAULT_ERROR_AFTER] = {"error_after", ON_PAY | ON_CANCEL, {10, 0, 15}},
    [FAULT_DROP_BEFORE] = {"drop_before", ON_PAY | ON_QUERY | ON_CANCEL, {8, 15, 15}},
    [FAULT_DROP_AFTER] = {"drop_after", ON_PAY | ON_CANCEL, {12, 0, 15}},
    [FAULT_DUPLICATE] = {"duplicate_in_progress", ON_PAY, {5, 0, 0}},
    [FAULT_RATE_LIMIT] = {"rate_limit", ON_PAY | ON_QUERY | ON_CANCEL, {5, 10, 10}},
    [FAULT_NOT_FOUND_FIRST] = {"not_found_first", ON_QUERY, {0, 0, 0}},
    [FAULT_PENDING] = {"pending", ON_QUERY, {0, 25, 0}},
    [FAULT_UNREACHABLE] = {"unreachable", ON_QUERY, {0, 35, 0}},
    [FAULT_DOUBLED] = {"doubled", 0, {0, 0, 0}},
};

/* The same for a proxy, which knows no channel's words. */
static const struct kind_facts proxy_kinds[FAULT_KIND_COUNT] = {
    [FAULT_SLOW] = {"slow", ON_ALL, {16, 25, 16}},
    [FAULT_SLOW_ANSWER] = {"slow_answer", ON_ALL, {12, 15, 12}},
    [FAULT_ERROR_BEFORE] = {"error_before", ON_ALL, {12, 25, 12}},
    [FAULT_ERROR_AFTER] = {"error_after", ON_ALL, {16, 0, 16}},
    [FAULT_DROP_BEFORE] = {"drop_before", ON_ALL, {14, 35, 14}},
    [FAULT_DROP_AFTER] = {"drop_after", ON_ALL, {18, 0, 18}},
    [FAULT_DOUBLED] = {"doubled", ON_ALL, {12, 0, 12}},
};

static const struct decline {
    const char *code;
    const char *reason;
} declines[] = {
    {"insufficient_funds", "the account does not hold the amount"},
    {"payee_unknown", "there is no such payee"},
    {"account_closed", "the payee's account is closed"},
    {"limit_exceeded", "the amount is above the limit"},
};

#define DECLINE_COUNT (sizeof(declines) / sizeof(declines[0]))

struct rule {
    TAILQ_ENTRY(rule) link;
    int64_t number;
    struct fault fault;
    enum endpoint endpoint;
    char channel_key[ORDER_NAME_MAX + 1]; /* "": any */
    char serial_no[ORDER_NAME_MAX + 1];
    char cust_no[ORDER_NAME_MAX + 1];
    int64_t skip, count; /* count 0: without end */
    bool per_key;        /* skip and count are of each key, not of all requests */
    int64_t seen, used;
};

TAILQ_HEAD(rule_list, rule);

struct faults {
    pthread_mutex_t mutex; /* guards all below */
    struct fault_settings settings;
    struct rule_list rules;
    int64_t last_number;
};

const char *fault_name(enum fault_kind kind)
{
    return kinds[kind].name;
}

struct faults *faults_new(const struct fault_settings *settings)
{
    struct faults *faults = memory_new(sizeof(*faults));

    faults->settings = *settings;
    TAILQ_INIT(&faults->rules);
    pthread_mutex_init(&faults->mutex, NULL);
    return faults;
}

void faults_free(struct faults *faults)
{
    if (!faults)
        return;
    faults_clear(faults);
    pthread_mutex_destroy(&faults->mutex);
    free(faults);
}

int64_t faults_clear(struct faults *faults)
{
    struct rule *rule;
    int64_t count = 0;

    pthread_mutex_lock(&faults->mutex);
    while ((rule = TAILQ_FIRST(&faults->rules))) {
        TAILQ_REMOVE(&faults->rules, rule, link);
        free(rule);
        count++;
    }
    faults->settings.rate = 0;
    pthread_mutex_unlock(&faults->mutex);
    return count;
}

static const struct kind_facts *kinds_of(bool proxy)
{
    return proxy ? proxy_kinds : kinds;
}

static bool read_kind(const json_t *body, bool proxy, struct rule *rule, struct problem *problem)
{
    const char *kind = json_string_value(json_object_get(body, "kind"));
    const json_t *endpoint = json_object_get(body, "endpoint");
    size_t i;

    for (i = 1; i < FAULT_KIND_COUNT; i++) {
        if (kind && strcmp(kind, kinds[i].name) == 0)
            break;
    }
    if (i == FAULT_KIND_COUNT)
        return problem_set(problem, "kind must be the name of a fault, such as drop_after");
    if (kinds_of(proxy)[i].endpoints == 0)
        return problem_set(problem, "the fault %s does not happen %s", kind,
                           proxy ? "at a proxy" : "without --proxy");
    rule->fault.kind = (enum fault_kind)i;
    rule->endpoint = kinds_of(proxy)[i].endpoints & ON_PAY ? ENDPOINT_PAY : ENDPOINT_QUERY;
    if (!endpoint)
        return true;
    for (i = 0; i < ENDPOINT_COUNT; i++) {
        if (json_is_string(endpoint) &&
            strcmp(json_string_value(endpoint), endpoint_name((enum endpoint)i)) == 0)
            break;
    }
    if (i == ENDPOINT_COUNT)
        return problem_set(problem, "endpoint must be pay, query or cancel");
    rule->endpoint = (enum endpoint)i;
    if (!(kinds_of(proxy)[rule->fault.kind].endpoints & (1u << i)))
        return problem_set(problem, "the fault %s does not happen to a %s request", kind,
                           endpoint_name((enum endpoint)i));
    return true;
}

#define AT(member) FIELD_AT(struct rule, member)
static bool read_rule(const json_t *body, bool proxy, struct rule *rule, struct problem *problem)
{
    static const struct field fields[] = {
        {"kind", .kind = FIELD_OTHER},
        {"endpoint", .kind = FIELD_OTHER},
        {"channel_key", FIELD_NAME, AT(channel_key), .may = 1},
        {"serial_no", FIELD_NAME, AT(serial_no), .may = 1},
        {"cust_no", FIELD_NAME, AT(cust_no), .may = 1},
        {"skip", FIELD_INT, AT(skip), .may = 1, .highest = INT32_MAX},
        {"count", FIELD_INT, AT(count), .may = 1, .highest = INT32_MAX},
        {"per_key", FIELD_BOOL, AT(per_key), .may = 1},
        {"delay_ms", FIELD_INT, AT(fault.delay_ms), .may = 1, .highest = DELAY_MAX_MS},
        {"for_ms", FIELD_INT, AT(fault.for_ms), .may = 1, .highest = DELAY_MAX_MS},
        {"code", FIELD_TEXT, AT(fault.code), .may = 1},
        {"reason", FIELD_TEXT, AT(fault.reason), .may = 1},
        {.name = NULL}};

    if (!json_is_object(body))
        return problem_set(problem, "a fault rule must be one JSON object");
    return fields_known(body, fields, problem) && read_kind(body, proxy, rule, problem) &&
           fields_read(body, fields, 1, rule, problem);
}

/* The usual delay of a kind. */
static int64_t kind_delay_ms(const struct fault_settings *settings, enum fault_kind kind)
{
    if (kind == FAULT_ACCEPTED || kind == FAULT_ACCEPTED_DECLINED)
        return settings->settle_ms;
    return settings->slow_ms;
}

bool faults_add(struct faults *faults, const json_t *body, int64_t *rule_number,
                struct problem *problem)
{
    struct rule *rule = memory_new(sizeof(*rule));

    rule->count = 1;
    rule->fault.delay_ms = -1;
    strcpy(rule->fault.code, declines[0].code);
    strcpy(rule->fault.reason, declines[0].reason);
    if (!read_rule(body, faults->settings.proxy, rule, problem)) {
        free(rule);
        return false;
    }
    pthread_mutex_lock(&faults->mutex);
    if (rule->fault.delay_ms < 0)
        rule->fault.delay_ms = kind_delay_ms(&faults->settings, rule->fault.kind);
    *rule_number = rule->number = ++faults->last_number;
    TAILQ_INSERT_TAIL(&faults->rules, rule, link);
    pthread_mutex_unlock(&faults->mutex);
    return true;
}

bool faults_chance(struct faults *faults, const json_t *body, struct problem *problem)
{
    static const struct field fields[] = {{"rate", .kind = FIELD_OTHER},
                                          {"seed", FIELD_INT, .may = 1, .highest = INT64_MAX},
                                          {.name = NULL}};
    const json_t *rate = json_object_get(body, "rate");
    bool fine;
    int64_t seed;

    pthread_mutex_lock(&faults->mutex);
    seed = (int64_t)faults->settings.seed;
    fine = fields_known(body, fields, problem) && fields_read(body, fields, 1, &seed, problem);
    if (fine &&
        (!json_is_number(rate) || json_number_value(rate) < 0 || json_number_value(rate) > 1))
        fine = problem_set(problem, "rate must be a number from 0 to 1");
    if (fine) {
        faults->settings.rate = json_number_value(rate);
        faults->settings.seed = (uint64_t)seed;
    }
    pthread_mutex_unlock(&faults->mutex);
    return fine;
}

json_t *faults_list(struct faults *faults)
{
    json_t *list = memory_need(json_array()), *result;
    struct rule *rule;

    pthread_mutex_lock(&faults->mutex);
    TAILQ_FOREACH(rule, &faults->rules, link)
    {
        json_array_append_new(
            list, memory_need(json_pack(
                      "{s:I, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:b, s:I}", "rule",
                      (json_int_t)rule->number, "kind", kinds[rule->fault.kind].name, "endpoint",
                      endpoint_name(rule->endpoint), "channel_key", rule->channel_key, "serial_no",
                      rule->serial_no, "cust_no", rule->cust_no, "skip", (json_int_t)rule->skip,
                      "count", (json_int_t)rule->count, "per_key", rule->per_key, "used",
                      (json_int_t)rule->used)));
    }
    result = memory_need(json_pack("{s:f, s:I, s:o}", "rate", faults->settings.rate, "seed",
                                   (json_int_t)faults->settings.seed, "rules", list));
    pthread_mutex_unlock(&faults->mutex);
    return result;
}

static bool name_fits(const char *wanted, const char *name)
{
    return !wanted[0] || strcmp(wanted, name) == 0;
}

/* Whether this rule takes the request; counts it.  Needs: mutex held. */
static bool rule_takes(struct rule *rule, const struct fault_subject *subject)
{
    int64_t number;

    if (rule->endpoint != subject->endpoint ||
        !name_fits(rule->channel_key, subject->channel_key) ||
        !name_fits(rule->serial_no, subject->serial_no) ||
        !name_fits(rule->cust_no, subject->cust_no))
        return false;
    number = rule->per_key ? subject->number : ++rule->seen;
    if (number <= rule->skip || (rule->count && number > rule->skip + rule->count))
        return false;
    rule->used++;
    return true;
}

/* FNV-1a over the text, then the finaliser of SplitMix64, which spreads every bit. */
static uint64_t hash(const char *text)
{
    uint64_t value = UINT64_C(14695981039346656037);

    for (; *text; text++)
        value = (value ^ (unsigned char)*text) * UINT64_C(1099511628211);
    value += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

/* A number from the seed and the request; `purpose` keeps separate draws independent. */
static uint64_t draw(const struct fault_settings *settings, const struct fault_subject *subject,
                     int64_t number, const char *purpose)
{
    char text[ORDER_NAME_MAX + 96];

    snprintf(text, sizeof(text), "%" PRIu64 "/%d/%" PRId64 "/%s/%s", settings->seed,
             (int)subject->endpoint, number, purpose, subject->channel_key);
    return hash(text);
}

static bool happens(const struct fault_settings *settings, uint64_t number)
{
    return (double)(number >> 11) / 9007199254740992.0 < settings->rate; /* 2^53 */
}

/* Chooses among the kinds of the endpoint by their shares. */
static enum fault_kind choose(bool proxy, enum endpoint endpoint, uint64_t number)
{
    const struct kind_facts *facts = kinds_of(proxy);
    unsigned total = 0, place;
    size_t kind;

    for (kind = 0; kind < FAULT_KIND_COUNT; kind++)
        total += facts[kind].share[endpoint];
    place = (unsigned)(number % total);
    for (kind = 0; place >= facts[kind].share[endpoint]; kind++)
        place -= facts[kind].share[endpoint];
    return (enum fault_kind)kind;
}

static void draw_by_chance(const struct fault_settings *settings,
                           const struct fault_subject *subject, struct fault *fault)
{
    const struct decline *decline;

    fault->by_chance = true;
    /* The lag belongs to the key, not to one query, else it would seem to come back. */
    if (subject->endpoint == ENDPOINT_QUERY && happens(settings, draw(settings, subject, 0, "lag")))
        fault->lag_ms = settings->lag_ms;
    if (!happens(settings, draw(settings, subject, subject->number, "whether")))
        return;
    fault->kind = choose(settings->proxy, subject->endpoint,
                         draw(settings, subject, subject->number, "which"));
    fault->delay_ms = kind_delay_ms(settings, fault->kind);
    decline = &declines[draw(settings, subject, subject->number, "code") % DECLINE_COUNT];
    strcpy(fault->code, decline->code);
    strcpy(fault->reason, decline->reason);
}

void faults_draw(struct faults *faults, const struct fault_subject *subject, struct fault *fault)
{
    struct rule *rule;

    memset(fault, 0, sizeof(*fault));
    pthread_mutex_lock(&faults->mutex);
    TAILQ_FOREACH(rule, &faults->rules, link)
    {
        if (rule_takes(rule, subject)) {
            *fault = rule->fault;
            break;
        }
    }
    if (!rule && faults->settings.rate > 0)
        draw_by_chance(&faults->settings, subject, fault);
    pthread_mutex_unlock(&faults->mutex);
}
