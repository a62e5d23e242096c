/* Sends a request to the upstream once, and never again. */
#include "upstream.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define CONNECT_LIMIT_MS 10000L

struct upstream {
    char *url;  /* scheme, host and port */
    char *path; /* before each target; "" for most */
    char *host;
    char *port;
    const char *ca_file;
    int64_t limit_ms;
    struct stop_signal *stop;
};

static char *part(CURLU *parsed, CURLUPart which, unsigned flags)
{
    char *text = NULL, *copy;

    if (curl_url_get(parsed, which, &text, flags) != CURLUE_OK)
        return NULL;
    copy = memory_need(strdup(text));
    curl_free(text);
    return copy;
}

static bool has(CURLU *parsed, CURLUPart which)
{
    char *text = part(parsed, which, 0);

    free(text);
    return text != NULL;
}

static bool read_url(struct upstream *self, const char *url, struct problem *problem)
{
    CURLU *parsed = memory_need(curl_url());
    char *scheme = NULL;
    size_t length;
    bool fine = false;

    if (curl_url_set(parsed, CURLUPART_URL, url, 0) == CURLUE_OK && !has(parsed, CURLUPART_USER) &&
        !has(parsed, CURLUPART_QUERY) && !has(parsed, CURLUPART_FRAGMENT)) {
        scheme = part(parsed, CURLUPART_SCHEME, 0);
        self->host = part(parsed, CURLUPART_HOST, 0);
        self->port = part(parsed, CURLUPART_PORT, CURLU_DEFAULT_PORT);
        self->path = part(parsed, CURLUPART_PATH, 0);
    }
    if (scheme && self->host && self->host[0] && self->port && self->path)
        fine = strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0;
    if (fine) {
        length = strlen(self->path);
        while (length > 0 && self->path[length - 1] == '/')
            self->path[--length] = '\0';
        memory_need(asprintf(&self->url, "%s://%s:%s", scheme, self->host, self->port) < 0
                        ? NULL
                        : self->url);
    } else {
        problem_set(problem,
                    "--proxy %.100s is no URL of an upstream, such as https://bank.example:8443",
                    url);
    }
    free(scheme);
    curl_url_cleanup(parsed);
    return fine;
}

struct upstream *upstream_new(const char *url, const char *ca_file, int64_t limit_ms,
                              struct stop_signal *stop, struct problem *problem)
{
    struct upstream *self = memory_new(sizeof(*self));
    FILE *file;

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        memory_need(NULL);
    self->ca_file = ca_file;
    self->limit_ms = limit_ms;
    self->stop = stop;
    if (!read_url(self, url, problem))
        goto out;
    if (ca_file) {
        file = fopen(ca_file, "re");
        if (!file) {
            problem_set(problem, "cannot read --ca-file %.100s", ca_file);
            goto out;
        }
        fclose(file);
    }
    return self;
out:
    upstream_free(self);
    return NULL;
}

void upstream_free(struct upstream *self)
{
    if (!self)
        return;
    free(self->url);
    free(self->path);
    free(self->host);
    free(self->port);
    free(self);
    curl_global_cleanup();
}

/* ------------------------------------------------------------------ one's own address -- */

/* Whether packets to this address stay on this machine and reach who listens at `mine`. */
static bool reaches(const struct sockaddr *to, struct in_addr mine)
{
    struct in_addr address;
    struct ifaddrs *list = NULL;
    bool own = false;

    if (to->sa_family == AF_INET6) {
        const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)to)->sin6_addr;

        if (!IN6_IS_ADDR_V4MAPPED(six))
            return false; /* it listens on IPv4 */
        memcpy(&address, six->s6_addr + 12, sizeof(address));
    } else {
        address = ((const struct sockaddr_in *)(const void *)to)->sin_addr;
    }
    if (address.s_addr == mine.s_addr || address.s_addr == htonl(INADDR_ANY))
        return true;
    if (mine.s_addr != htonl(INADDR_ANY))
        return false;
    own = (ntohl(address.s_addr) >> 24) == 127;
    if (getifaddrs(&list) != 0)
        return own;
    for (struct ifaddrs *each = list; each && !own; each = each->ifa_next)
        own = each->ifa_addr && each->ifa_addr->sa_family == AF_INET &&
              ((struct sockaddr_in *)(void *)each->ifa_addr)->sin_addr.s_addr == address.s_addr;
    freeifaddrs(list);
    return own;
}

bool upstream_is(const struct upstream *self, const struct sockaddr_in *address)
{
    struct addrinfo *found = NULL;
    char name[256];
    size_t length = strlen(self->host);
    bool own = false;

    if (strtoul(self->port, NULL, 10) != ntohs(address->sin_port) || length >= sizeof(name))
        return false;
    /* In a URL an IPv6 address stands in brackets. */
    if (self->host[0] == '[')
        snprintf(name, sizeof(name), "%.*s", (int)length - 2, self->host + 1);
    else
        memcpy(name, self->host, length + 1);
    if (getaddrinfo(name, NULL, NULL, &found) != 0)
        return false;
    for (struct addrinfo *each = found; each && !own; each = each->ai_next)
        own = reaches(each->ai_addr, address->sin_addr);
    freeaddrinfo(found);
    return own;
}

/* ------------------------------------------------------------------------- headers -- */

/* Whether the comma-separated list has this word, as far as its first `length` bytes go. */
static bool list_has(const char *list, const char *word, size_t length)
{
    while (*list) {
        size_t size = strcspn(list, ",");
        const char *from = list + strspn(list, " \t");
        size_t left = size > (size_t)(from - list) ? size - (size_t)(from - list) : 0;

        while (left > 0 && (from[left - 1] == ' ' || from[left - 1] == '\t'))
            left--;
        if (left == length && strncasecmp(from, word, length) == 0)
            return true;
        list += size + (list[size] == ',');
    }
    return false;
}

static size_t name_length(const char *line)
{
    return strcspn(line, ":");
}

/* Headers of one connection, and those that each side writes anew for its own. */
static bool passes(const struct curl_slist *all, const char *line)
{
    static const char never[] = "connection,keep-alive,proxy-authenticate,proxy-authorization,"
                                "proxy-connection,te,trailer,transfer-encoding,upgrade,host,"
                                "content-length,expect";
    size_t length = name_length(line);

    if (list_has(never, line, length))
        return false;
    for (; all; all = all->next) {
        if (name_length(all->data) == 10 && strncasecmp(all->data, "connection", 10) == 0 &&
            list_has(all->data + 11, line, length))
            return false;
    }
    return true;
}

static struct curl_slist *append(struct curl_slist *list, const char *line)
{
    return memory_need(curl_slist_append(list, line));
}

static bool given(const struct curl_slist *headers, const char *name)
{
    for (; headers; headers = headers->next) {
        if (name_length(headers->data) == strlen(name) &&
            strncasecmp(headers->data, name, strlen(name)) == 0)
            return true;
    }
    return false;
}

/* Those that pass, and none that libcurl would add. */
static struct curl_slist *request_headers(const struct curl_slist *from)
{
    static const char *const own[] = {"Accept", "Content-Type"};
    struct curl_slist *list = append(NULL, "Expect:");
    char line[32];

    for (const struct curl_slist *each = from; each; each = each->next) {
        size_t length = name_length(each->data);
        const char *value = each->data + length;
        char *empty;

        if (!passes(from, each->data))
            continue;
        if (value[0] == ':' && value[1 + strspn(value + 1, " ")] == '\0') {
            /* libcurl's way to say that a header is there and empty. */
            empty = memory_need(strndup(each->data, length + 1));
            empty[length] = ';';
            list = append(list, empty);
            free(empty);
        } else {
            list = append(list, each->data);
        }
    }
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        snprintf(line, sizeof(line), "%s:", own[i]);
        if (!given(from, own[i]))
            list = append(list, line);
    }
    return list;
}

/* -------------------------------------------------------------------- the transfer -- */

struct transfer {
    const struct upstream *upstream;
    struct exchange *exchange;
    struct curl_slist *headers; /* of the answer, all of them */
    size_t space;
    bool too_long;
};

static size_t take_header(char *data, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    size_t bytes = size * count, length = bytes;
    char *line;

    /* What follows the body is no header, and a new status line begins the headers anew. */
    if (transfer->exchange->answer)
        return bytes;
    while (length > 0 && (data[length - 1] == '\n' || data[length - 1] == '\r'))
        length--;
    if (length >= 5 && memcmp(data, "HTTP/", 5) == 0) {
        curl_slist_free_all(transfer->headers);
        transfer->headers = NULL;
    } else if (length > 0) {
        line = memory_need(strndup(data, length));
        transfer->headers = append(transfer->headers, line);
        free(line);
    }
    return bytes;
}

static size_t take_body(char *data, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    struct exchange *exchange = transfer->exchange;
    size_t bytes = size * count;

    transfer->too_long = bytes > ANSWER_MAX - exchange->answer_size;
    if (transfer->too_long)
        return 0;
    if (exchange->answer_size + bytes > transfer->space) {
        transfer->space = 2 * (exchange->answer_size + bytes);
        exchange->answer = memory_need(realloc(exchange->answer, transfer->space));
    }
    memcpy(exchange->answer + exchange->answer_size, data, bytes);
    exchange->answer_size += bytes;
    return bytes;
}

/* Ends the transfer when the program is told to stop. */
static int look(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct transfer *transfer = context;

    (void)a, (void)b, (void)c, (void)d;
    return stop_raised(transfer->upstream->stop);
}

static void set_request(CURL *handle, const struct exchange *exchange)
{
    const char *method = exchange->method;

    if (strcmp(method, "HEAD") == 0)
        curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
    else if (exchange->size > 0 || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
             strcmp(method, "PATCH") == 0) {
        curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)exchange->size);
        curl_easy_setopt(handle, CURLOPT_POSTFIELDS, exchange->body);
    }
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, method);
}

static void set_transfer(CURL *handle, struct transfer *transfer)
{
    const struct upstream *upstream = transfer->upstream;

    curl_easy_setopt(handle, CURLOPT_URL, upstream->url);
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_PROXY, "");
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(handle, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(handle, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_LIMIT_MS);
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, (long)upstream->limit_ms);
    if (upstream->ca_file)
        curl_easy_setopt(handle, CURLOPT_CAINFO, upstream->ca_file);
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, look);
    curl_easy_setopt(handle, CURLOPT_XFERINFODATA, transfer);
    curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
    set_request(handle, transfer->exchange);
}

/* Whether this error comes before the first byte of a request, whatever libcurl has counted. After
 * a time-out, or a stop, only the count tells. */
static bool before_request(CURLcode code)
{
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_ABORTED_BY_CALLBACK:
        return true;
    default:
        return false;
    }
}

static void find_fate(struct transfer *transfer, CURL *handle, CURLcode code)
{
    struct exchange *exchange = transfer->exchange;
    curl_off_t length = 0;
    long number = 0;

    exchange->sent = true;
    if (code == CURLE_OK) {
        curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &number);
        exchange->status = (int)number;
        curl_easy_getinfo(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        exchange->unsent_size = length > 0 ? (uint64_t)length : 0;
        return;
    }
    number = 1;
    curl_easy_getinfo(handle, CURLINFO_REQUEST_SIZE, &number);
    exchange->sent = number != 0 || !before_request(code);
    exchange->late = code == CURLE_OPERATION_TIMEDOUT;
    problem_set(&exchange->problem, "%.150s",
                transfer->too_long ? "the answer is longer than 4194304 bytes"
                                   : curl_easy_strerror(code));
}

void upstream_send(const struct upstream *self, struct exchange *exchange)
{
    CURL *handle = memory_need(curl_easy_init());
    struct curl_slist *headers = request_headers(exchange->headers);
    struct transfer transfer = {self, exchange, NULL, 0, false};
    char *target = NULL;

    memory_need(asprintf(&target, "%s%s", self->path, exchange->target) < 0 ? NULL : target);
    set_transfer(handle, &transfer);
    curl_easy_setopt(handle, CURLOPT_REQUEST_TARGET, target);
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
    find_fate(&transfer, handle, curl_easy_perform(handle));
    for (struct curl_slist *each = transfer.headers; each; each = each->next) {
        if (exchange->status && passes(transfer.headers, each->data))
            exchange->answer_headers = append(exchange->answer_headers, each->data);
    }
    curl_slist_free_all(transfer.headers);
    curl_slist_free_all(headers);
    curl_easy_cleanup(handle);
    free(target);
}
