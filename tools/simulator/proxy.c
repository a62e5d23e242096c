/* Takes a request on: finds its key, draws its fault, forwards it, writes down what passed. */
#include "proxy.h"
#include "ledger.h"
#include "upstream.h"
#include "work.h"

#include <nettle/sha2.h>
#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define OWN_FAULTS "/.tradelock/faults"

/* How many requests of a key came to an endpoint. */
struct key_count {
    int64_t count[ENDPOINT_COUNT];
    char channel_key[]; /* the first field that is compared */
};

struct proxy {
    struct upstream *upstream; /* fixed after opening, as are the options */
    const struct proxy_options *options;
    struct ledger *ledger;
    struct stop_signal *stop;

    pthread_mutex_t mutex; /* guards all below */
    void *keys;            /* a tree of struct key_count */
    bool failure_told;
};

/* A request that passes. */
struct passing {
    struct work work;
    struct proxy *proxy;
    struct record record; /* what its lines in the ledger say */
    struct exchange exchange;
};

static bool look_at(void *context, const struct record *record, struct problem *problem)
{
    (void)context, (void)record, (void)problem;
    return true;
}

struct proxy *proxy_open(const struct options *options, struct stop_signal *stop,
                         struct problem *problem)
{
    struct proxy *self = memory_new(sizeof(*self));

    self->options = &options->proxy;
    self->stop = stop;
    pthread_mutex_init(&self->mutex, NULL);
    self->upstream = upstream_new(self->options->url, self->options->ca_file,
                                  self->options->upstream_ms, stop, problem);
    /* An address that is known beforehand is refused before a ledger is made. */
    if (self->upstream &&
        (!options->address.sin_port || proxy_check_address(self, &options->address, problem)))
        self->ledger = ledger_open(options->ledger, true, look_at, NULL, problem);
    if (self->ledger)
        return self;
    proxy_close(self);
    return NULL;
}

void proxy_close(struct proxy *self)
{
    if (!self)
        return;
    ledger_close(self->ledger);
    upstream_free(self->upstream);
    tdestroy(self->keys, free);
    pthread_mutex_destroy(&self->mutex);
    free(self);
}

bool proxy_check_address(const struct proxy *self, const struct sockaddr_in *address,
                         struct problem *problem)
{
    return !upstream_is(self->upstream, address) ||
           problem_set(problem, "--proxy %.100s is the address of this proxy itself",
                       self->options->url);
}

/* --------------------------------------------------------------------- the ledger -- */

static bool durable(struct proxy *self, int64_t seq)
{
    struct problem problem;
    bool first;

    if (ledger_wait(self->ledger, seq))
        return true;
    pthread_mutex_lock(&self->mutex);
    first = !self->failure_told;
    self->failure_told = true;
    pthread_mutex_unlock(&self->mutex);
    if (first) {
        ledger_failure(self->ledger, &problem);
        fprintf(stderr, "tradelock-simulator: %s\n", problem.text);
        stop_raise(self->stop, true);
    }
    return false;
}

static int64_t write_down(struct passing *passing, enum record_type type)
{
    passing->record.type = type;
    return ledger_append(passing->proxy->ledger, &passing->record);
}

/* -------------------------------------------------------------------- the answers -- */

/* The upstream's answer becomes ours, as it is. */
static void pass_on(struct passing *passing)
{
    struct exchange *exchange = &passing->exchange;
    struct reply *reply = passing->work.reply;

    if (!exchange->sent) {
        reply_error(&passing->work, 502, "the upstream cannot be reached; nothing was sent");
        return;
    }
    if (!exchange->status) {
        /* What it leaves without an answer, the caller gets no answer to. */
        if (exchange->late)
            reply_error(&passing->work, 504, "the upstream did not answer in time");
        else
            reply_nothing(&passing->work);
        return;
    }
    reply->status = exchange->status;
    reply->raw = true;
    reply->csv = exchange->answer;
    reply->csv_size = exchange->answer_size;
    if (strcmp(exchange->method, "HEAD") == 0)
        reply->unsent_size = exchange->unsent_size;
    reply->headers = exchange->answer_headers;
    exchange->answer = NULL;
    exchange->answer_headers = NULL;
    passing->work.outcome = "forwarded";
}

/* ------------------------------------------------------------ what a request says -- */

static void hash(char text[SHA256_TEXT + 1], const void *bytes, size_t size)
{
    struct sha256_ctx context;
    uint8_t digest[SHA256_DIGEST_SIZE];

    sha256_init(&context);
    sha256_update(&context, size, bytes);
    sha256_digest(&context, sizeof(digest), digest);
    for (size_t i = 0; i < sizeof(digest); i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

/* A key that is no name, since it is too long or has a blank, is known by its hash. */
static bool take_key(char key[ORDER_NAME_MAX + 1], const char *from, size_t size)
{
    if (size == 0)
        return false;
    if (size <= ORDER_NAME_MAX) {
        memcpy(key, from, size);
        key[size] = '\0';
        if (strlen(key) == size && name_valid(key))
            return true;
    }
    strcpy(key, "sha256:");
    hash(key + strlen(key), from, size);
    return true;
}

static bool key_in_headers(const struct curl_slist *headers, const char *name,
                           char key[ORDER_NAME_MAX + 1])
{
    size_t length = strlen(name);

    for (; headers; headers = headers->next) {
        if (strncasecmp(headers->data, name, length) == 0 && headers->data[length] == ':') {
            const char *value = headers->data + length + 1;

            value += strspn(value, " \t");
            return take_key(key, value, strlen(value));
        }
    }
    return false;
}

static bool key_in_body(const json_t *body, const char *name, char key[ORDER_NAME_MAX + 1])
{
    const json_t *value = json_object_get(body, name);
    char number[32];

    if (json_is_string(value))
        return take_key(key, json_string_value(value), json_string_length(value));
    if (!json_is_integer(value))
        return false;
    snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
    return take_key(key, number, strlen(number));
}

static bool key_in_path(const char *path, const char *prefix, char key[ORDER_NAME_MAX + 1])
{
    size_t length = strlen(prefix);

    return strncmp(path, prefix, length) == 0 &&
           take_key(key, path + length, strcspn(path + length, "/?"));
}

static void find_key(struct passing *passing, const json_t *body)
{
    const struct key_place *place = passing->proxy->options->keys;
    char *key = passing->record.order.channel_key;
    bool found = false;

    for (; place->name && !found; place++) {
        if (place->where == KEY_HEADER)
            found = key_in_headers(passing->work.request->headers, place->name, key);
        else if (place->where == KEY_FIELD)
            found = key_in_body(body, place->name, key);
        else
            found = key_in_path(passing->work.request->path, place->name, key);
    }
}

static void take_text(const json_t *body, const char *name, enum field_kind kind, char *text,
                      size_t size)
{
    const char *value = json_string_value(json_object_get(body, name));

    if (value && strlen(value) < size &&
        (kind == FIELD_TEXT ? text_valid(value, size) : name_valid(value)))
        strcpy(text, value);
}

/* What the body says of the order, as far as it is there and can be one. */
static void find_order(struct passing *passing, const json_t *body)
{
    const char *const *names = passing->proxy->options->names;
    struct order *order = &passing->record.order;

    for (size_t i = 0; i < ORDER_FACTS; i++) {
        const struct field *fact = &order_fields[1 + i];
        const json_t *amount = json_object_get(body, names[i]);

        if (fact->kind != FIELD_INT)
            take_text(body, names[i], fact->kind, (char *)order + fact->offset, fact->size);
        else if (json_is_integer(amount) && json_integer_value(amount) > 0)
            order->amount_minor = json_integer_value(amount);
    }
}

static void find_ref(const struct passing *passing, struct passage *passage)
{
    const struct exchange *exchange = &passing->exchange;
    json_t *body;

    passage->channel_ref[0] = '\0';
    if (exchange->status < 200 || exchange->status > 299 || !exchange->answer)
        return;
    body = json_loadb(exchange->answer, exchange->answer_size, 0, NULL);
    take_text(body, passing->proxy->options->names[NAME_REF], FIELD_TEXT, passage->channel_ref,
              sizeof(passage->channel_ref));
    json_decref(body);
}

/* --------------------------------------------------------------------- the passage -- */

static int compare_keys(const void *left, const void *right)
{
    return strcmp(((const struct key_count *)left)->channel_key,
                  ((const struct key_count *)right)->channel_key);
}

static int64_t count_request(struct proxy *self, enum endpoint endpoint, const char *channel_key)
{
    struct key_count *own = memory_new(sizeof(*own) + strlen(channel_key) + 1);
    struct key_count **place;
    int64_t number;

    strcpy(own->channel_key, channel_key);
    pthread_mutex_lock(&self->mutex);
    place = memory_need(tsearch(own, &self->keys, compare_keys));
    if (*place != own)
        free(own);
    number = ++(*place)->count[endpoint];
    pthread_mutex_unlock(&self->mutex);
    return number;
}

/* Which of the three a fault takes it for. */
static enum endpoint endpoint_of(const struct request *request)
{
    static const char cancel[] = "/cancel";
    size_t length = strcspn(request->path, "?");

    if (strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0 ||
        strcmp(request->method, "OPTIONS") == 0)
        return ENDPOINT_QUERY;
    if (strcmp(request->method, "DELETE") == 0 ||
        (length >= strlen(cancel) &&
         strncmp(request->path + length - strlen(cancel), cancel, strlen(cancel)) == 0))
        return ENDPOINT_CANCEL;
    return ENDPOINT_PAY;
}

/* Notes what the request says. */
static void begin(struct passing *passing)
{
    const struct request *request = passing->work.request;
    json_t *body = json_loadb(request->body, request->size, 0, NULL);
    struct passage *passage = &passing->record.passage;
    struct order *order = &passing->record.order;
    struct fault_subject subject;

    find_key(passing, body);
    find_order(passing, body);
    json_decref(body);
    strcpy(passage->method, request->method);
    strcpy(passage->path, request->path);
    hash(passage->body_sha256, request->body, request->size);
    subject.endpoint = endpoint_of(request);
    subject.channel_key = order->channel_key;
    subject.serial_no = order->serial_no;
    subject.cust_no = order->cust_no;
    subject.number = count_request(passing->proxy, subject.endpoint, order->channel_key);
    work_receive(&passing->work, &subject, NULL);
    strcpy(passage->fault, fault_name(passing->work.fault.kind));
}

/* Whether a fault keeps the request back, and so it is over. */
static bool kept_back(struct passing *passing)
{
    struct reply *reply = passing->work.reply;

    if (!fault_before(&passing->work))
        return false;
    if (!durable(passing->proxy, write_down(passing, RECORD_KEPT)) && reply->body) {
        json_decref(reply->body);
        reply->body = NULL;
        reply_nothing(&passing->work);
    }
    return true;
}

static void clear_exchange(struct exchange *exchange)
{
    free(exchange->answer);
    curl_slist_free_all(exchange->answer_headers);
    memset(exchange, 0, sizeof(*exchange));
}

/* Forwards once, between its two lines in the ledger.  False when that cannot be written. */
static bool forward(struct passing *passing)
{
    struct exchange *exchange = &passing->exchange;
    struct passage *passage = &passing->record.passage;

    passage->forwarding_seq = write_down(passing, RECORD_FORWARDING);
    if (!durable(passing->proxy, passage->forwarding_seq))
        return false;
    clear_exchange(exchange);
    exchange->method = passing->work.request->method;
    exchange->target = passing->work.request->path;
    exchange->headers = passing->work.request->headers;
    exchange->body = passing->work.request->body;
    exchange->size = passing->work.request->size;
    upstream_send(passing->proxy->upstream, exchange);
    passage->sent = exchange->sent;
    passage->status = exchange->status;
    snprintf(passage->why, sizeof(passage->why), "%.*s", WHY_MAX, exchange->problem.text);
    find_ref(passing, passage);
    return durable(passing->proxy, write_down(passing, RECORD_FORWARDED));
}

static void take_on(struct passing *passing)
{
    bool fine;

    begin(passing);
    if (kept_back(passing))
        return;
    fine = forward(passing);
    if (fine && passing->work.fault.kind == FAULT_DOUBLED && passing->exchange.sent) {
        inject(&passing->work, FAULT_DOUBLED);
        fine = forward(passing);
    }
    if (!fine || stop_raised(passing->proxy->stop))
        reply_nothing(&passing->work);
    else if (!(passing->exchange.sent && fault_after(&passing->work)))
        pass_on(passing);
    clear_exchange(&passing->exchange);
}

/* Only what can be written down and forwarded as it is. */
static bool can_take(struct work *work)
{
    const struct request *request = work->request;

    if (strlen(request->path) > TARGET_MAX)
        reply_bad(work, 414, "the path is longer than 2000 bytes");
    else if (request->path[0] != '/')
        reply_bad(work, 400, "a path that begins with / is asked for: this is no forward proxy");
    else if (strspn(request->path,
                    "!\"$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_"
                    "`abcdefghijklmnopqrstuvwxyz{|}~") != strlen(request->path))
        reply_bad(work, 400, "the path has characters that a URL must escape");
    else if (strlen(request->method) > METHOD_MAX || strcmp(request->method, "CONNECT") == 0)
        reply_bad(work, 501, "this method is not forwarded");
    else if (request->too_big)
        reply_bad(work, 413, "the body is longer than 1048576 bytes");
    else
        return true;
    return false;
}

void proxy_handle(struct house *house, const struct request *request, struct reply *reply)
{
    struct request faults = *request;
    struct passing *passing;

    if (strcmp(request->path, OWN_FAULTS) == 0) {
        faults.path = "/v1/faults";
        handle(house, &faults, reply);
        return;
    }
    passing = memory_new(sizeof(*passing));
    passing->proxy = house->proxy;
    work_begin(&passing->work, house, request, reply);
    if (can_take(&passing->work))
        take_on(passing);
    work_end(&passing->work);
    free(passing);
}
