/* What each answer of the channel means; and what libcurl's endings mean, on real sockets that
 * refuse, hang up and stay silent. */
#include "channel.h"

#include "support/theme.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>

/* --------------------------------------------------------------------- meanings -- */

typedef struct meaning {
    long code;
    const char *body;
    int expected;
} meaning;

static http_exchange *answered(long code)
{
    http_exchange *exchange = calloc(1, sizeof *exchange);

    exchange->fate = HTTP_ANSWERED;
    exchange->code = code;
    return exchange;
}

static tl_execute_result pay_means(long code, const char *text, tl_reply *reply, int *mismatch)
{
    http_exchange *exchange = answered(code);
    json_t *body = json_loads(text, 0, NULL);
    tl_execute_result answer = channel_pay_means(exchange, body, reply, mismatch);

    json_decref(body);
    free(exchange);
    return answer;
}

TEST(pay_answers)
{
    static const meaning meanings[] = {
        {200, "{\"outcome\":\"succeeded\",\"channel_ref\":\"P1\"}", TL_EXECUTE_SUCCEEDED},
        {200, "{\"outcome\":\"succeeded\"}", TL_EXECUTE_SUCCEEDED},
        {200, "{\"outcome\":\"declined\",\"code\":\"51\",\"reason\":\"no\",\"final\":true}",
         TL_EXECUTE_DECLINED},
        {200, "{\"outcome\":\"declined\",\"code\":\"51\",\"final\":false}", TL_EXECUTE_UNKNOWN},
        {200, "{\"outcome\":\"declined\",\"code\":\"51\"}", TL_EXECUTE_UNKNOWN},
        {200, "{\"outcome\":\"what\"}", TL_EXECUTE_UNKNOWN},
        {200, "not json", TL_EXECUTE_UNKNOWN},
        {202, "{\"outcome\":\"accepted\"}", TL_EXECUTE_ACCEPTED},
        {202, "{}", TL_EXECUTE_UNKNOWN},
        {429, "{\"outcome\":\"rate_limited\"}", TL_EXECUTE_RETRY_LATER},
        {429, "", TL_EXECUTE_UNKNOWN},
        {409, "{\"outcome\":\"duplicate_in_progress\"}", TL_EXECUTE_UNKNOWN},
        {409, "{\"outcome\":\"declined\",\"final\":true}", TL_EXECUTE_UNKNOWN},
        {422, "{\"outcome\":\"key_mismatch\"}", TL_EXECUTE_UNKNOWN},
        {400, "{\"error\":\"x\"}", TL_EXECUTE_UNKNOWN},
        {404, "", TL_EXECUTE_UNKNOWN},
        {500, "{\"outcome\":\"declined\",\"final\":true}", TL_EXECUTE_UNKNOWN},
        {503, "{\"error\":\"x\"}", TL_EXECUTE_UNKNOWN},
    };
    tl_reply *reply = calloc(1, sizeof *reply);

    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        const meaning *m = &meanings[i];
        int mismatch;
        tl_execute_result answer = pay_means(m->code, m->body, reply, &mismatch);

        if ((int)answer != m->expected)
            fail_msg("%ld %s means %d", m->code, m->body, (int)answer);
        assert_int_equal(mismatch, m->code == 422);
    }
    free(reply);
}

TEST(pay_answers_carry_their_details)
{
    tl_reply *reply = calloc(1, sizeof *reply);
    int mismatch;

    pay_means(200, "{\"outcome\":\"succeeded\",\"channel_ref\":\"P77\"}", reply, &mismatch);
    assert_string_equal(reply->channel_ref, "P77");
    assert_int_equal(reply->result_size, strlen("{\"channel_ref\":\"P77\"}"));
    assert_memory_equal(reply->result, "{\"channel_ref\":\"P77\"}", reply->result_size);
    pay_means(200,
              "{\"outcome\":\"declined\",\"code\":\"51\",\"reason\":\"empty\","
              "\"final\":true}",
              reply, &mismatch);
    assert_string_equal(reply->remark, "51: empty");
    pay_means(404, "", reply, &mismatch);
    assert_string_equal(reply->remark, "HTTP 404");
    pay_means(503, "{\"error\":\"x\"}", reply, &mismatch);
    assert_string_equal(reply->remark, "HTTP 503 x");
    free(reply);
}

TEST(query_answers)
{
    static const meaning meanings[] = {
        {200, "{\"status\":\"succeeded\",\"channel_ref\":\"P1\"}", TL_QUERY_SUCCEEDED},
        {200, "{\"status\":\"succeeded\"}", TL_QUERY_SUCCEEDED},
        {200, "{\"status\":\"failed\"}", TL_QUERY_FAILED},
        {200, "{\"status\":\"pending\"}", TL_QUERY_PENDING},
        {200, "{}", TL_QUERY_UNREACHABLE},
        {404, "{\"status\":\"not_found\"}", TL_QUERY_NOT_FOUND},
        {404, "<html>not found</html>", TL_QUERY_UNREACHABLE},
        {404, "{\"status\":\"succeeded\"}", TL_QUERY_UNREACHABLE},
        {429, "{\"outcome\":\"rate_limited\"}", TL_QUERY_UNREACHABLE},
        {503, "{\"status\":\"failed\"}", TL_QUERY_UNREACHABLE},
    };
    tl_reply *reply = calloc(1, sizeof *reply);

    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        http_exchange *exchange = answered(meanings[i].code);
        json_t *body = json_loads(meanings[i].body, 0, NULL);

        assert_int_equal(channel_query_means(exchange, body, reply), meanings[i].expected);
        json_decref(body);
        free(exchange);
    }
    free(reply);
}

/* ---------------------------------------------------------------------- sockets -- */

/* A listener that takes each connection, reads a while, writes its answer, and hangs up. */
typedef struct peer {
    int listener;
    int accepts; /* 0: takes nothing, so that requests are sent but never answered */
    const char *answer;
    pthread_t thread;
    int connections;
    atomic_int requests; /* of which something was read */
    char url[64];
} peer;

static void *peer_main(void *argument)
{
    peer *self = argument;
    char bytes[65536];
    int connection;

    while ((connection = accept(self->listener, NULL, NULL)) >= 0) {
        self->connections++;
        if (recv(connection, bytes, sizeof bytes, 0) > 0) {
            self->requests++;
            if (self->answer[0] != '\0')
                (void)!write(connection, self->answer, strlen(self->answer));
        }
        close(connection);
    }
    return NULL;
}

static void peer_start(peer *self, int accepts, const char *answer)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;

    memset(self, 0, sizeof *self);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    self->accepts = accepts;
    self->answer = answer;
    self->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(self->listener >= 0);
    assert_int_equal(bind(self->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(self->listener, 16), 0);
    assert_int_equal(getsockname(self->listener, (struct sockaddr *)&address, &size), 0);
    snprintf(self->url, sizeof self->url, "http://127.0.0.1:%d/v1/pay", ntohs(address.sin_port));
    if (accepts)
        assert_int_equal(pthread_create(&self->thread, NULL, peer_main, self), 0);
}

static void peer_stop(peer *self)
{
    shutdown(self->listener, SHUT_RDWR);
    if (self->accepts)
        pthread_join(self->thread, NULL);
    close(self->listener);
}

static tl_attempt attempt_of(int64_t left_ms)
{
    static const char order[] = "{\"amount_minor\":100,\"currency\":\"EUR\",\"payee\":\"Anna\"}";
    struct timespec now;
    tl_attempt attempt = {.key = {"W1", "C1", "WITHDRAW"},
                          .channel_key = "key",
                          .payload = order,
                          .payload_size = sizeof order - 1};

    clock_gettime(CLOCK_BOOTTIME, &now);
    attempt.until_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + left_ms;
    return attempt;
}

static http_fate fate_of(const char *url, int64_t timeout_ms, long *code)
{
    http_exchange *exchange = calloc(1, sizeof *exchange);
    tl_attempt attempt = attempt_of(timeout_ms);
    http_fate fate;

    assert_int_equal(http_start(), 0);
    http_run(exchange, "pay", url, "{}", &attempt);
    fate = exchange->fate;
    *code = exchange->code;
    free(exchange);
    return fate;
}

#define LONG "0123456789012345678901234567890123456789012345678901234567890123"

/* A payment that succeeded is not lost for a name.  The row has the bank's own or none, and the
 * remark says what became of it. */
TEST(references_that_cannot_be_stored)
{
    static const struct {
        const char *ref, *kept, *remark;
    } cases[] = {
        {",\"channel_ref\":\"M\303\274ller\"", "M\303\274ller", ""},
        {",\"channel_ref\":\"M\374ller\"", "", "or no text: \"M\357\277\275ller\""},
        {",\"channel_ref\":\"\\ud800\"", "", "or no text: \"\357\277\275\""},
        {",\"channel_ref\":\"\\udc00\\ud83d\"", "", "or no text"},
        {",\"channel_ref\":\"\\ud83d\\ude00\"", "\360\237\230\200", ""},
        {",\"channel_ref\":\"a\\\\ud800\"", "a\\ud800", ""},
        {",\"channel_ref\":\"" LONG LONG "9\"", "", "is longer than 128 bytes or no text: \"0123"},
        {",\"channel_ref\":4711", "4711", ""},
        {",\"channel_ref\":12345678901234567890", "", "no text: 1.234567890"},
        {",\"channel_ref\":true", "", "no text: true"},
        {",\"channel_ref\":\"a\\u0000b\"", "", "no text: \"a\\u0000b\""},
        {",\"channel_ref\":\"a\\nb\"", "", "no text: \"a\\nb\""},
        {",\"channel_ref\":null", "", "paid, but its reference is missing"},
        {"", "", "paid, but its reference is missing"},
    };
    tl_reply *reply = calloc(1, sizeof *reply);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tl_attempt attempt = attempt_of(5000);
        channel *bank = NULL;
        char answer[1024];
        peer asked;

        snprintf(answer, sizeof answer,
                 "HTTP/1.1 200 OK\r\n\r\n{\"outcome\":\"succeeded\",\"status\":\"succeeded\"%s}",
                 cases[i].ref);
        peer_start(&asked, 2, answer);
        assert_int_equal(channel_new(&bank, NULL, asked.url), TL_OK);
        memset(reply, 0, sizeof *reply);
        assert_int_equal(channel_execute(bank, &attempt, reply), TL_EXECUTE_SUCCEEDED);
        assert_string_equal(reply->channel_ref, cases[i].kept);
        assert_non_null(strstr(reply->remark, cases[i].remark));
        memset(reply, 0, sizeof *reply);
        assert_int_equal(channel_query(bank, &attempt, reply), TL_QUERY_SUCCEEDED);
        assert_string_equal(reply->channel_ref, cases[i].kept);
        peer_stop(&asked);
        channel_free(bank);
    }
    free(reply);
}

TEST(cancel_answers)
{
    static const meaning meanings[] = {
        {200, "{\"outcome\":\"cancelled\"}", TL_CANCEL_CANCELLED},
        {200, "{\"outcome\":\"already_done\"}", TL_CANCEL_ALREADY_DONE},
        {200, "{}", TL_CANCEL_UNKNOWN},
        {500, "{\"outcome\":\"cancelled\"}", TL_CANCEL_UNKNOWN},
    };
    tl_reply *reply = calloc(1, sizeof *reply);

    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        http_exchange *exchange = answered(meanings[i].code);
        json_t *body = json_loads(meanings[i].body, 0, NULL);

        assert_int_equal(channel_cancel_means(exchange, body, reply), meanings[i].expected);
        json_decref(body);
        free(exchange);
    }
    free(reply);
}

TEST(nobody_listens)
{
    peer gone;
    long code;

    peer_start(&gone, 0, "");
    peer_stop(&gone);
    assert_int_equal(fate_of(gone.url, 2000, &code), HTTP_NOT_SENT);
    assert_int_equal(fate_of("http://no-such-host.invalid/", 5000, &code), HTTP_NOT_SENT);
}

TEST(nobody_answers)
{
    peer silent;
    long code;

    peer_start(&silent, 0, "");
    assert_int_equal(fate_of(silent.url, 150, &code), HTTP_LOST);
    peer_stop(&silent);
}

/* The channel may have paid: the request must not be repeated behind our back. */
TEST(the_peer_hangs_up)
{
    peer rude;
    long code;

    peer_start(&rude, 1, "");
    for (int i = 0; i < 3; i++)
        assert_int_equal(fate_of(rude.url, 2000, &code), HTTP_LOST);
    peer_stop(&rude);
    assert_int_equal(rude.connections, 3);
}

TEST(half_an_answer)
{
    peer half;
    long code;

    peer_start(&half, 1, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"outcome\":");
    assert_int_equal(fate_of(half.url, 2000, &code), HTTP_LOST);
    peer_stop(&half);
}

TEST(a_whole_answer_and_a_redirect)
{
    peer whole;
    long code;

    peer_start(&whole, 1, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    assert_int_equal(fate_of(whole.url, 2000, &code), HTTP_ANSWERED);
    assert_int_equal(code, 200);
    peer_stop(&whole);
    peer_start(&whole, 1, "HTTP/1.1 307 Go\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(fate_of(whole.url, 2000, &code), HTTP_ANSWERED);
    assert_int_equal(code, 307);
    peer_stop(&whole);
    assert_int_equal(whole.connections, 1);
}

/* The header counts with 429 and 503, in seconds or as a date; whatever else it says, the answer
 * stands. */
TEST(when_to_come_again)
{
    static const struct {
        const char *answer;
        int64_t least_ms, most_ms;
    } cases[] = {
        {"HTTP/1.1 429 No\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\n{}", 7000, 7000},
        {"HTTP/1.1 503 No\r\nretry-after: 1\r\nContent-Length: 2\r\n\r\n{}", 1000, 1000},
        {"HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\n{}", 0, 0},
        {"HTTP/1.1 500 No\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\n{}", 0, 0},
        {"HTTP/1.1 429 No\r\nRetry-After: soon\r\nContent-Length: 2\r\n\r\n{}", 0, 0},
        {"HTTP/1.1 429 No\r\nRetry-After: -5\r\nContent-Length: 2\r\n\r\n{}", 0, 0},
        {"HTTP/1.1 429 No\r\nRetry-After: 99999999999999999999\r\nContent-Length: 2\r\n\r\n{}", 0,
         TL_RETRY_AFTER_MAX_MS},
        {"HTTP/1.1 429 No\r\nRetry-After: Fri, 01 Jan 2100 00:00:00 GMT\r\nContent-Length: "
         "2\r\n\r\n{}",
         TL_RETRY_AFTER_MAX_MS, TL_RETRY_AFTER_MAX_MS},
        {"HTTP/1.1 429 No\r\nRetry-After: Fri, 01 Jan 2010 00:00:00 GMT\r\nContent-Length: "
         "2\r\n\r\n{}",
         0, 0},
    };
    http_exchange *exchange = calloc(1, sizeof *exchange);
    tl_reply *reply = calloc(1, sizeof *reply);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tl_attempt attempt = attempt_of(5000);
        json_t *body = json_object();
        int mismatch;
        peer asked;

        peer_start(&asked, 1, cases[i].answer);
        http_run(exchange, "pay", asked.url, "{}", &attempt);
        peer_stop(&asked);
        reply->retry_after_ms = 0;
        assert_int_equal(channel_pay_means(exchange, body, reply, &mismatch), TL_EXECUTE_UNKNOWN);
        assert_in_range(reply->retry_after_ms, cases[i].least_ms, cases[i].most_ms);
        reply->retry_after_ms = 0;
        assert_int_equal(channel_query_means(exchange, body, reply), TL_QUERY_UNREACHABLE);
        assert_in_range(reply->retry_after_ms, cases[i].least_ms, cases[i].most_ms);
        json_decref(body);
    }
    free(reply);
    free(exchange);
}

TEST(too_much_of_an_answer)
{
    static char flood[HTTP_BODY_MAX + 4096];
    peer much;
    long code;
    int head = snprintf(flood, sizeof flood, "HTTP/1.1 200 OK\r\n\r\n");

    memset(flood + head, ' ', sizeof flood - (size_t)head - 1);
    peer_start(&much, 1, flood);
    assert_int_equal(fate_of(much.url, 2000, &code), HTTP_LOST);
    peer_stop(&much);
}

/* A listener is there, and would answer. */
TEST(nothing_is_begun_when_nothing_is_left)
{
    tl_reply *reply = calloc(1, sizeof *reply);
    channel *asked;
    tl_attempt attempt;
    long code;
    peer willing;

    assert_int_equal(tl_attempt_left_ms(NULL), 0);
    peer_start(&willing, 1, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    assert_int_equal(fate_of(willing.url, 0, &code), HTTP_NOT_SENT);
    assert_int_equal(fate_of(willing.url, -5000, &code), HTTP_NOT_SENT);
    assert_int_equal(
        channel_new(
            &asked, NULL,
            text_of("%.*s", (int)(strlen(willing.url) - strlen("/v1/pay")), willing.url).is),
        TL_OK);
    attempt = attempt_of(-1);
    assert_int_equal(tl_attempt_left_ms(&attempt), 0);
    assert_int_equal(channel_execute(asked, &attempt, reply), TL_EXECUTE_NOT_SENT);
    assert_int_equal(channel_query(asked, &attempt, reply), TL_QUERY_UNREACHABLE);
    /* Not one byte: the peer answers, and so counts, only what it has read. */
    assert_int_equal(willing.requests, 0);
    attempt.until_ms += 60000;
    assert_int_equal(channel_execute(asked, &attempt, reply), TL_EXECUTE_UNKNOWN);
    assert_int_equal(willing.requests, 1);
    peer_stop(&willing);
    channel_free(asked);
    free(reply);
}

TEST(refuses_bad_urls)
{
    static const char *const urls[] = {"", "localhost:80", "ftp://x", "http://", NULL};
    channel *made;

    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++)
        assert_int_equal(channel_new(&made, NULL, urls[i]), TL_INVALID);
    assert_int_equal(channel_new(&made, NULL, "http://127.0.0.1:1/"), TL_OK);
    channel_free(made);
}

TESTS_OF(channel, NULL, NULL)
