/* Takes a request on: finds its key, draws its fault, forwards it, writes down what passed. */
#include "proxy.h"
#include "ledger.h"
#include "upstream.h"

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

/* A request while it is handled. */
struct work {
    struct house *house;
    struct proxy *proxy;
    const struct request *request;
    struct reply *reply;
    enum endpoint endpoint;
    struct fault fault;
    struct record record; /* what its lines in the ledger say */
    struct exchange exchange;
    const char *outcome; /* for the log */
    bool received;       /* the log has a line for its arrival */
    bool injected;       /* the fault was done */
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

static int64_t write_down(struct work *work, enum record_type type)
{
    work->record.type = type;
    return ledger_append(work->proxy->ledger, &work->record);
}

/* -------------------------------------------------------------------- the answers -- */

static void answer_nothing(struct work *work)
{
    work->reply->status = 0;
    work->outcome = "none";
}

static void answer_error(struct work *work, int status, const char *sentence)
{
    work->reply->status = status;
    work->reply->body = memory_need(json_pack("{s:s}", "error", sentence));
    work->outcome = "error";
}

static void refuse(struct work *work, int status, const char *sentence)
{
    work->house->bad_requests++;
    answer_error(work, status, sentence);
}

static void inject(struct work *work)
{
    work->house->faults_injected[work->fault.kind]++;
    work->injected = true;
}

/* Sleeps; when the program stops meanwhile, nothing is answered and false returned. */
static bool delay(struct work *work)
{
    inject(work);
    if (stop_sleep(work->proxy->stop, work->fault.delay_ms))
        return true;
    answer_nothing(work);
    return false;
}

/* The upstream's answer becomes ours, as it is. */
static void pass_on(struct work *work)
{
    struct exchange *exchange = &work->exchange;
    struct reply *reply = work->reply;

    if (!exchange->sent) {
        answer_error(work, 502, "the upstream cannot be reached; nothing was sent");
        return;
    }
    if (!exchange->status) {
        /* What it leaves without an answer, the caller gets no answer to. */
        if (exchange->late)
            answer_error(work, 504, "the upstream did not answer in time");
        else
            answer_nothing(work);
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
    work->outcome = "forwarded";
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

static void find_key(struct work *work, const json_t *body)
{
    const struct key_place *place = work->proxy->options->keys;
    char *key = work->record.order.channel_key;
    bool found = false;

    for (; place->name && !found; place++) {
        if (place->where == KEY_HEADER)
            found = key_in_headers(work->request->headers, place->name, key);
        else if (place->where == KEY_FIELD)
            found = key_in_body(body, place->name, key);
        else
            found = key_in_path(work->request->path, place->name, key);
    }
}

static void take_text(const json_t *body, const char *field, char *text, size_t size, bool name)
{
    struct problem problem;
    json_t *object;
    const char *value = json_string_value(json_object_get(body, field));
    char taken[ORDER_PAYEE_MAX + 1] = "";

    if (!value)
        return;
    object = memory_need(json_pack("{s:s}", "value", value));
    if (strlen(value) < size &&
        (name ? field_name(object, "value", FIELD_MAY, taken, &problem)
              : field_text(object, "value", FIELD_MAY, taken, sizeof(taken), &problem)))
        memcpy(text, taken, strlen(taken) + 1);
    json_decref(object);
}

/* What the body says of the order, as far as it is there and can be one. */
static void find_order(struct work *work, const json_t *body)
{
    const char *const *names = work->proxy->options->names;
    struct order *order = &work->record.order;
    const json_t *amount = json_object_get(body, names[NAME_AMOUNT]);

    take_text(body, names[NAME_SERIAL], order->serial_no, sizeof(order->serial_no), true);
    take_text(body, names[NAME_CUST], order->cust_no, sizeof(order->cust_no), true);
    take_text(body, names[NAME_OP], order->op_code, sizeof(order->op_code), true);
    take_text(body, names[NAME_CURRENCY], order->currency, sizeof(order->currency), true);
    take_text(body, names[NAME_PAYEE], order->payee, sizeof(order->payee), false);
    if (json_is_integer(amount) && json_integer_value(amount) > 0)
        order->amount_minor = json_integer_value(amount);
}

static void find_ref(const struct work *work, struct passage *passage)
{
    const struct exchange *exchange = &work->exchange;
    json_t *body;

    passage->channel_ref[0] = '\0';
    if (exchange->status < 200 || exchange->status > 299 || !exchange->answer)
        return;
    body = json_loadb(exchange->answer, exchange->answer_size, 0, NULL);
    take_text(body, work->proxy->options->names[NAME_REF], passage->channel_ref,
              sizeof(passage->channel_ref), false);
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

/* Notes the request, draws its fault and logs its arrival. */
static void begin(struct work *work)
{
    const struct request *request = work->request;
    json_t *body = json_loadb(request->body, request->size, 0, NULL);
    struct passage *passage = &work->record.passage;
    struct order *order = &work->record.order;
    struct fault_subject subject;

    find_key(work, body);
    find_order(work, body);
    json_decref(body);
    strcpy(passage->method, request->method);
    strcpy(passage->path, request->path);
    hash(passage->body_sha256, request->body, request->size);
    subject.endpoint = endpoint_of(request);
    subject.channel_key = order->channel_key;
    subject.serial_no = order->serial_no;
    subject.cust_no = order->cust_no;
    subject.number = count_request(work->proxy, subject.endpoint, order->channel_key);
    work->house->requests[subject.endpoint]++;
    faults_draw(work->house->faults, &subject, &work->fault);
    strcpy(passage->fault, fault_name(work->fault.kind));
    request_log_line(work->house->log, "received", request->number,
                     json_pack("{s:s, s:s, s:s, s:s, s:I}", "endpoint",
                               endpoint_name(subject.endpoint), "channel_key", order->channel_key,
                               "serial_no", order->serial_no, "cust_no", order->cust_no, "number",
                               (json_int_t)subject.number));
    work->received = true;
}

/* The faults that keep a request back.  True when it is over. */
static bool kept_back(struct work *work)
{
    switch (work->fault.kind) {
    case FAULT_SLOW:
        if (delay(work))
            return false;
        durable(work->proxy, write_down(work, RECORD_KEPT));
        return true;
    case FAULT_DROP_BEFORE:
        answer_nothing(work);
        break;
    case FAULT_ERROR_BEFORE:
        answer_error(work, 503, "the channel is not available");
        break;
    default:
        return false;
    }
    inject(work);
    if (!durable(work->proxy, write_down(work, RECORD_KEPT)) && work->reply->body) {
        json_decref(work->reply->body);
        work->reply->body = NULL;
        answer_nothing(work);
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
static bool forward(struct work *work)
{
    struct exchange *exchange = &work->exchange;
    struct passage *passage = &work->record.passage;
    bool fine;

    passage->forwarding_seq = 0;
    passage->forwarding_seq = write_down(work, RECORD_FORWARDING);
    if (!durable(work->proxy, passage->forwarding_seq))
        return false;
    clear_exchange(exchange);
    exchange->method = work->request->method;
    exchange->target = work->request->path;
    exchange->headers = work->request->headers;
    exchange->body = work->request->body;
    exchange->size = work->request->size;
    upstream_send(work->proxy->upstream, exchange);
    passage->sent = exchange->sent;
    passage->status = exchange->status;
    snprintf(passage->why, sizeof(passage->why), "%.*s", WHY_MAX, exchange->problem.text);
    find_ref(work, passage);
    fine = durable(work->proxy, write_down(work, RECORD_FORWARDED));
    passage->forwarding_seq = 0;
    return fine;
}

/* The faults of the way back.  True when the request is over. */
static bool lost_on_return(struct work *work)
{
    if (!work->exchange.sent)
        return false;
    switch (work->fault.kind) {
    case FAULT_SLOW_ANSWER:
        return !delay(work);
    case FAULT_ERROR_AFTER:
        answer_error(work, 500, "something went wrong in the channel");
        break;
    case FAULT_DROP_AFTER:
        answer_nothing(work);
        break;
    default:
        return false;
    }
    inject(work);
    return true;
}

static void take_on(struct work *work)
{
    bool fine;

    begin(work);
    if (kept_back(work))
        return;
    fine = forward(work);
    if (fine && work->fault.kind == FAULT_DOUBLED && work->exchange.sent) {
        inject(work);
        fine = forward(work);
    }
    if (!fine || stop_raised(work->proxy->stop))
        answer_nothing(work);
    else if (!lost_on_return(work))
        pass_on(work);
    clear_exchange(&work->exchange);
}

/* Only what can be written down and forwarded as it is. */
static bool can_take(struct work *work)
{
    const struct request *request = work->request;

    if (strlen(request->path) > TARGET_MAX)
        refuse(work, 414, "the path is longer than 2000 bytes");
    else if (request->path[0] != '/')
        refuse(work, 400, "a path that begins with / is asked for: this is no forward proxy");
    else if (strspn(request->path,
                    "!\"$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_"
                    "`abcdefghijklmnopqrstuvwxyz{|}~") != strlen(request->path))
        refuse(work, 400, "the path has characters that a URL must escape");
    else if (strlen(request->method) > METHOD_MAX || strcmp(request->method, "CONNECT") == 0)
        refuse(work, 501, "this method is not forwarded");
    else if (request->too_big)
        refuse(work, 413, "the body is longer than 1048576 bytes");
    else
        return true;
    return false;
}

static void log_refused(const struct work *work)
{
    struct problem path;

    work->house->other_requests++;
    problem_set(&path, "%.20s %.400s", work->request->method, work->request->path);
    request_log_line(work->house->log, "received", work->request->number,
                     json_pack("{s:s, s:s}", "endpoint", "other", "path", path.text));
}

void proxy_handle(struct house *house, const struct request *request, struct reply *reply)
{
    struct request faults = *request;
    struct work *work;

    if (strcmp(request->path, OWN_FAULTS) == 0) {
        faults.path = "/v1/faults";
        handle(house, &faults, reply);
        return;
    }
    work = memory_new(sizeof(*work));
    memset(reply, 0, sizeof(*reply));
    work->house = house;
    work->proxy = house->proxy;
    work->request = request;
    work->reply = reply;
    if (can_take(work))
        take_on(work);
    if (!work->received)
        log_refused(work);
    if (reply->status == 0)
        house->dropped++;
    request_log_line(house->log, reply->status ? "answered" : "dropped", request->number,
                     json_pack("{s:i, s:s, s:s}", "status", reply->status, "outcome", work->outcome,
                               "fault", work->injected ? fault_name(work->fault.kind) : "none"));
    free(work);
}
