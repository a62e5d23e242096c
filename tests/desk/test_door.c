/* How often somebody may try a password at the desk's door, directly and behind a proxy. */
#include "cli/operators.h"
#include "visitor.h"
#include "support/theme.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

/* Another name each time, since after five a name waits for whoever is there. */
static void guess(struct visitor *visitor, unsigned times)
{
    static unsigned number;
    char name[32];

    for (unsigned i = 0; i < times; i++) {
        snprintf(name, sizeof name, "guess%u", number++);
        visitor_login(visitor, name, "wrong");
        EXPECT_PAGE(visitor, 403, "Name and password do not fit");
    }
}

TEST(test_twenty_from_one_address)
{
    struct desk_process desk;
    struct visitor v, ann;

    desk_start(&desk, operators.config[ANN], NULL);
    visitor_open(&v, &desk);
    visitor_open(&ann, &desk);
    guess(&v, 19);
    visitor_login(&ann, operators.user[ANN], "secret");
    EXPECT_PAGE(&ann, 303, "");
    guess(&v, 1);
    visitor_login(&v, operators.user[ANN], "secret");
    EXPECT_PAGE(&v, 429, "Too many wrong passwords");
    assert_non_null(strstr(v.headers, "Retry-After: 60"));
    visitor_close(&v);
    visitor_close(&ann);
    desk_stop(&desk);
}

#define GUESSERS 40

/* Each with a connection of its own; they press the button together. */
struct guesser {
    struct visitor visitor;
    char token[64];
    pthread_barrier_t *together;
};

static void *guess_one_name(void *context)
{
    struct guesser *g = context;

    pthread_barrier_wait(g->together);
    visitor_post(&g->visitor, "/login", NULL, "login_token", g->token, "user", "one", "password",
                 "wrong");
    return NULL;
}

/* Five for a name, and those that were being tried when the fifth was found wrong. */
TEST(test_a_crowd_at_the_door)
{
    static struct guesser guessers[GUESSERS];
    pthread_t threads[GUESSERS];
    pthread_barrier_t together;
    struct desk_process desk;
    int tried = 0;

    desk_start(&desk, operators.config[ANN], NULL);
    pthread_barrier_init(&together, NULL, GUESSERS);
    for (int i = 0; i < GUESSERS; i++) {
        guessers[i].together = &together;
        visitor_open(&guessers[i].visitor, &desk);
        visitor_get(&guessers[i].visitor, "/login");
        snprintf(guessers[i].token, sizeof guessers[i].token, "%s",
                 visitor_field(&guessers[i].visitor, "login_token"));
    }
    for (int i = 0; i < GUESSERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, guess_one_name, &guessers[i]), 0);
    for (int i = 0; i < GUESSERS; i++) {
        pthread_join(threads[i], NULL);
        tried += guessers[i].visitor.status == 403;
        assert_true(guessers[i].visitor.status == 403 || guessers[i].visitor.status == 429);
        visitor_close(&guessers[i].visitor);
    }
    assert_in_range(tried, 5, 5 + 3);
    pthread_barrier_destroy(&together);
    desk_stop(&desk);
}

/* The login form, filled in by somebody whom the proxy saw at this address. */
static void login_from(struct visitor *visitor, const char *address, const char *user,
                       const char *password)
{
    char header[128], token[64];

    visitor_get(visitor, "/login");
    snprintf(token, sizeof token, "%s", visitor_field(visitor, "login_token"));
    snprintf(header, sizeof header, "X-Forwarded-For: %s", address);
    visitor_post(visitor, "/login", header, "login_token", token, "user", user, "password",
                 password);
}

/* The proxy appends the address that it saw to what the browser claims. */
TEST(test_who_guesses_elsewhere_keeps_nobody_out)
{
    static const char *const options[] = {"--behind-proxy", NULL};
    const char *ann = operators.user[ANN];
    struct desk_process desk;
    struct visitor v;
    char token[64];

    desk_start(&desk, operators.config[ANN], options);
    visitor_open(&v, &desk);
    for (int i = 0; i < 5; i++) {
        login_from(&v, i % 2 == 0 ? "203.0.113.5" : "203.0.113.6, 203.0.113.5", ann, "wrong");
        EXPECT_PAGE(&v, 403, "Name and password do not fit");
    }
    login_from(&v, "203.0.113.5", ann, "secret");
    EXPECT_PAGE(&v, 429, "Too many wrong passwords");
    login_from(&v, "203.0.113.6, 203.0.113.5", ann, "secret");
    EXPECT_PAGE(&v, 429, "Too many wrong passwords");
    /* Browsers there speak TLS to the proxy, and say so. */
    visitor_get(&v, "/login");
    snprintf(token, sizeof token, "%s", visitor_field(&v, "login_token"));
    visitor_post(&v, "/login", "Origin: http://127.0.0.1", "login_token", token, "user", "x",
                 "password", "x");
    EXPECT_PAGE(&v, 403, "This form was not sent by a page of this desk");
    login_from(&v, "203.0.113.6", ann, "secret");
    EXPECT_PAGE(&v, 303, "");
    assert_non_null(strstr(v.headers, "SameSite=Strict; Secure"));
    assert_non_null(strstr(v.headers, "Strict-Transport-Security"));
    visitor_close(&v);
    desk_stop(&desk);
}

static void expect_logged_once(const struct desk_process *desk, const char *what)
{
    char command[800];

    snprintf(command, sizeof command,
             "test \"$(grep -c '[0-9]Z tradelock-desk info: access by %s@.* %s$' '%s')\" = 1",
             operators.user[ANN], what, desk->log);
    assert_int_equal(system(command), 0);
}

/* One line for each page of a trade that somebody opens, none for what the script fetches again, and
 * one for a CSV of many. */
TEST(test_access_is_logged)
{
    static const char *const options[] = {"--access-log", NULL};
    struct desk_process desk;
    struct visitor v;
    char path[200];

    house_expect(&operators.h, "SEEN", "C1", 100, TL_SUCCEEDED);
    operators_make_doubtful("WAITS");
    desk_start(&desk, operators.config[ANN], options);
    visitor_come_in(&v, &desk, operators.user[ANN]);
    snprintf(path, sizeof path, "/trade?r=%s", visitor_find(&v, "SEEN"));
    visitor_get(&v, path);
    EXPECT_PAGE(&v, 200, "SEEN");
    expect_logged_once(&desk, "SEEN C1 WITHDRAW");
    visitor_get(&v, "/trades?show=doubt");
    EXPECT_PAGE(&v, 200, "&amp;csv=1\">");
    snprintf(path, sizeof path, "/trades?r=%.22s&csv=1", strstr(v.body, "&amp;csv=1\">") - 22);
    visitor_get(&v, path);
    EXPECT_PAGE(&v, 200, "WAITS");
    expect_logged_once(&desk, "to a CSV of so many trades: [0-9]*");
    visitor_leave(&v);
    desk_stop(&desk);
}

/* Sends these bytes, and leaves the connection open. */
static int send_bytes(const struct desk_process *desk, const char *bytes)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_port = htons((uint16_t)strtoul(strrchr(desk->url, ':') + 1, NULL, 10));
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    (void)send(fd, bytes, strlen(bytes), MSG_NOSIGNAL);
    return fd;
}

#define SLOW 400

/* More than the desk takes, and none of them ends what it sends. */
TEST(test_slow_connections_keep_nobody_out)
{
    static const char *const begun[] = {
        "", "GET / HTTP/1.1\r\nHost: x\r\n",
        "POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nuser="};
    struct desk_process desk;
    struct visitor ann;
    int fds[SLOW];

    desk_start(&desk, operators.config[ANN], NULL);
    for (unsigned i = 0; i < SLOW; i++)
        fds[i] = send_bytes(&desk, begun[i % 3]);
    visitor_open(&ann, &desk);
    visitor_login(&ann, operators.user[ANN], "secret");
    EXPECT_PAGE(&ann, 303, "");
    visitor_get(&ann, "/audit");
    EXPECT_PAGE(&ann, 200, "Run it now");
    visitor_close(&ann);
    for (unsigned i = 0; i < SLOW; i++)
        close(fds[i]);
    desk_stop(&desk);
}

/* A proxy in front might read another request behind the end that it sees. */
TEST(test_requests_with_two_ends)
{
#define HEAD "POST /login HTTP/1.1\r\nHost: x\r\n"
    static const char *const requests[] = {
        HEAD "Content-Length: 4\r\nContent-Length: 0\r\n\r\nuser",
        HEAD "Content-Length: 4\r\nContent-Length: 4\r\n\r\nuser",
        HEAD "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD "Host: y\r\nContent-Length: 4\r\n\r\nuser"};
#undef HEAD
    struct desk_process desk;

    desk_start(&desk, operators.config[ANN], NULL);
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        const int fd = send_bytes(&desk, requests[i]);
        char answer[13] = "";

        assert_int_equal(recv(fd, answer, 12, MSG_WAITALL), 12);
        assert_string_equal(answer, "HTTP/1.1 400");
        close(fd);
    }
    desk_stop(&desk);
}

/* Logs Bob in, and tries an act after `taken` was done to his account, as an administrator may. */
static void lose(const struct desk_process *desk, const char *taken)
{
    struct visitor v;
    char token[64];

    visitor_come_in(&v, desk, operators.user[BOB]);
    visitor_get(&v, "/audit");
    snprintf(token, sizeof token, "%s", visitor_field(&v, "token"));
    database_run(operators.h.sql, "%s", taken);
    visitor_post(&v, "/audit", NULL, "token", token);
    EXPECT_PAGE(&v, 403, "This account may not come in any more");
    /* The session has ended with it. */
    visitor_get(&v, "/audit");
    EXPECT_PAGE(&v, 403, "You are not logged in any more");
    visitor_close(&v);
}

TEST(test_rights_that_are_taken_away)
{
    const char *bob = operators.user[BOB];
    char *role = database_text(operators.h.sql,
                               "SELECT default_role FROM mysql.user WHERE user = '%s'", bob);
    struct desk_process desk;
    char taken[128];

    desk_start(&desk, operators.config[ANN], NULL);
    snprintf(taken, sizeof taken, "ALTER USER %s@localhost ACCOUNT LOCK", bob);
    lose(&desk, taken);
    database_run(operators.h.sql, "ALTER USER %s@localhost ACCOUNT UNLOCK", bob);
    snprintf(taken, sizeof taken, "ALTER USER %s@localhost IDENTIFIED BY 'another'", bob);
    lose(&desk, taken);
    database_run(operators.h.sql, "ALTER USER %s@localhost IDENTIFIED BY 'secret'", bob);
    snprintf(taken, sizeof taken, "REVOKE %s FROM %s@localhost", role, bob);
    lose(&desk, taken);
    database_run(operators.h.sql, "GRANT %s TO %s@localhost; SET DEFAULT ROLE %s FOR %s@localhost",
                 role, bob, role, bob);
    snprintf(taken, sizeof taken, "DROP USER %s@localhost", bob);
    lose(&desk, taken);
    database_run(operators.h.sql,
                 "CREATE USER %s@localhost IDENTIFIED BY 'secret'; GRANT %s TO %s@localhost; "
                 "SET DEFAULT ROLE %s FOR %s@localhost",
                 bob, role, bob, role, bob);
    free(role);
    desk_stop(&desk);
}

TESTS_OF(door, operators_set_up, operators_tear_down)
