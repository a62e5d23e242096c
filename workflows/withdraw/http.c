/* Makes one exchange over libcurl, on a connection of its own, so that nothing is sent twice
 * unnoticed. Touches the network only. */
#include "http.h"

#include <tradelock/tradelock.h>

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Where tradelock's own tests stop it; a copy of this file does without. */
#ifdef TL_TEST_HOOKS
#include <tradelock/test_hooks.h>
#else
#define tl_test_point(kind, name, when) ((void)0)
#endif

/* Whatever a channel says: so much is multiplied without an overflow. */
#define MOST_S 86400

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CURLcode started = CURLE_FAILED_INIT;

static void start(void)
{
    started = curl_global_init(CURL_GLOBAL_DEFAULT);
}

int http_start(void)
{
    pthread_once(&once, start);
    return started == CURLE_OK ? 0 : -1;
}

static size_t take_body(char *data, size_t size, size_t count, void *context)
{
    http_exchange *exchange = context;
    size_t bytes = size * count;

    /* No real answer is so long.  Ending the transfer makes the exchange LOST. */
    if (bytes > sizeof exchange->body - exchange->size)
        return 0;
    memcpy(exchange->body + exchange->size, data, bytes);
    exchange->size += bytes;
    return bytes;
}

/* Whether this error comes before the first byte of the request, whatever libcurl has counted.
 * After a time-out only the count tells. */
static int before_request(CURLcode result)
{
    switch (result) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_FAILED_INIT:
    case CURLE_URL_MALFORMAT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_ABORTED_BY_CALLBACK: /* may_begin() */
        return 1;
    default:
        return 0;
    }
}

static void find_fate(http_exchange *exchange, CURL *handle, CURLcode result)
{
    curl_off_t after_s = 0;
    long request_size = 1;

    if (result == CURLE_OK) {
        exchange->fate = HTTP_ANSWERED;
        curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &exchange->code);
        if (curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &after_s) == CURLE_OK && after_s > 0)
            exchange->retry_after_ms =
                after_s < MOST_S ? (int64_t)after_s * 1000 : (int64_t)MOST_S * 1000;
        return;
    }
    curl_easy_getinfo(handle, CURLINFO_REQUEST_SIZE, &request_size);
    exchange->fate =
        request_size == 0 && (before_request(result) || result == CURLE_OPERATION_TIMEDOUT)
            ? HTTP_NOT_SENT
            : HTTP_LOST;
    snprintf(exchange->problem, sizeof exchange->problem, "%s",
             result == CURLE_ABORTED_BY_CALLBACK ? "the time for it was over"
                                                 : curl_easy_strerror(result));
}

/* libcurl calls this when it is connected, directly before it writes the request. */
static int may_begin(void *context, char *peer, char *local, int peer_port, int local_port)
{
    (void)peer;
    (void)local;
    (void)peer_port;
    (void)local_port;
    return tl_attempt_left_ms(context) > 0 ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

#define SET(option, value) (curl_easy_setopt(handle, CURLOPT_##option, value) == CURLE_OK)

/* 0: there is no memory.  For libcurl a time of 0 means no limit. */
static int set_request(CURL *handle, const char *url, const struct curl_slist *headers,
                       const char *body, http_exchange *exchange, const tl_attempt *attempt)
{
    const long left_ms = (long)tl_attempt_left_ms(attempt);

    return SET(URL, url) && SET(PROTOCOLS_STR, "http,https") && SET(PROXY, "") &&
           SET(NOSIGNAL, 1L) && SET(HTTP_VERSION, CURL_HTTP_VERSION_1_1) &&
           SET(FRESH_CONNECT, 1L) && SET(FORBID_REUSE, 1L) &&
           SET(TIMEOUT_MS, left_ms > 0 ? left_ms : 1L) && SET(PREREQFUNCTION, may_begin) &&
           SET(PREREQDATA, attempt) && SET(WRITEFUNCTION, take_body) && SET(WRITEDATA, exchange) &&
           (body == NULL || (SET(POSTFIELDSIZE, (long)strlen(body)) && SET(POSTFIELDS, body) &&
                             SET(HTTPHEADER, headers)));
}

void http_run(http_exchange *exchange, const char *name, const char *url, const char *body,
              const tl_attempt *attempt)
{
    CURL *handle = curl_easy_init();
    struct curl_slist *headers = NULL;
    CURLcode code = CURLE_FAILED_INIT;

    exchange->fate = HTTP_NOT_SENT;
    exchange->code = 0;
    exchange->retry_after_ms = 0;
    exchange->size = 0;
    snprintf(exchange->problem, sizeof exchange->problem, "no memory");
    if (handle == NULL)
        return;
    headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (headers == NULL || !set_request(handle, url, headers, body, exchange, attempt))
        goto out;
    exchange->problem[0] = '\0';
    tl_test_point('H', name, "before");
    code = curl_easy_perform(handle);
    tl_test_point('H', name, "after");
    find_fate(exchange, handle, code);
out:
    (void)name;
    curl_slist_free_all(headers);
    curl_easy_cleanup(handle);
}
