/*
 * TCP beyond loopback is verified TLS or nothing.  "127.1" stands for a host that is not loopback
 * by its name: it is judged as any other name would be, and leads to this machine all the same, so
 * that the tests open nothing to the network.
 */
#include "base/clock.h"
#include "base/thread_context.h"
#include "cli/command.h"
#include "common.h"
#include "desk/visitor.h"
#include "support/crew.h"
#include "support/theme.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

static char directory[] = "/tmp/tradelock.tls.XXXXXX";
static server *own;
static int port, port_keeper;

static void make_certificates(void)
{
    char command[1600];

    snprintf(command, sizeof(command),
             "cd %s && exec >log 2>&1 && new='openssl req -newkey rsa:2048 -nodes' && "
             "$new -x509 -keyout ca.key -out ca.pem -subj /CN=tests -days 2 && "
             "$new -x509 -keyout other.key -out other.pem -subj /CN=other -days 2 && "
             "$new -keyout server.key -out server.csr -subj /CN=127.1 && "
             "echo subjectAltName=DNS:127.1 >names && "
             "openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial "
             "-out server.pem -days 2 -extfile names",
             directory);
    if (system(command))
        server_panic("openssl could not make certificates in %s", directory);
}

/* A port that nobody else is given, neither before the server listens nor while it is started anew:
 * this socket, which never listens, stays bound to it. */
static int keep_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    port_keeper = fd;
    return ntohs(address.sin_port);
}

static int set_up(__attribute__((unused)) void **state)
{
    static char port_option[32], ca[96], certificate[96], key[96];
    const char *const options[] = {
        "--skip-networking=0", "--bind-address=127.0.0.1", port_option, ca, certificate, key, NULL};
    MYSQL *plain;

    if (!mkdtemp(directory))
        return 1;
    make_certificates();
    port = keep_port();
    snprintf(port_option, sizeof(port_option), "--port=%d", port);
    snprintf(ca, sizeof(ca), "--ssl-ca=%s/ca.pem", directory);
    snprintf(certificate, sizeof(certificate), "--ssl-cert=%s/server.pem", directory);
    snprintf(key, sizeof(key), "--ssl-key=%s/server.key", directory);
    own = server_start(options);
    plain = server_connect(own);
    database_run(plain, "CREATE USER remote@'%%' IDENTIFIED BY 'word'");
    mysql_close(plain);
    return 0;
}

static int tear_down(__attribute__((unused)) void **state)
{
    char command[96];

    server_free(own);
    close(port_keeper);
    snprintf(command, sizeof(command), "rm -rf '%s'", directory);
    return system(command);
}

/* ca: of which file the certificate must be; or NULL. */
static tl_status try_host(const char *host, const char *ca, int allow_insecure, int *has_tls)
{
    char path[64];
    db_options options;
    db *connection = NULL;
    db_result result = DB_RESULT_INIT;
    tl_status status;
    FILE *file;

    snprintf(path, sizeof(path), "%s/client.cnf", directory);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "[tradelock-client]\nhost=%s\nport=%d\nprotocol=tcp\nuser=remote\n"
            "password=word\ndatabase=information_schema\nssl-verify-server-cert=0\n",
            host, port);
    if (ca)
        fprintf(file, "ssl-ca=%s/%s\n", directory, ca);
    assert_int_equal(fclose(file), 0);
    options = options_at(path);
    options.allow_insecure = allow_insecure;
    status = db_open(&connection, &options);
    *has_tls = -1;
    if (status == TL_OK) {
        *has_tls = mysql_get_ssl_cipher(db_raw(connection)) != NULL;
        assert_true(db_alive(connection));
        EXPECT(connection, run_sql(connection, "SELECT REPEAT('x', 100000)", &result), DB_DONE);
        assert_int_equal(strlen(db_get_text(&result, 0, 0)), 100000);
        assert_true(db_alive(connection)); /* nothing of TLS lies about unread */
    }
    db_close(connection);
    db_result_free(&result);
    return status;
}

/* What to do about it. */
static const char hint[] = "ssl-ca has to name the file";

/* With the settings that were tried last. */
static void expect_told_by_command_and_desk(void)
{
    struct desk_process desk;
    struct visitor visitor;
    char path[64];

    snprintf(path, sizeof(path), "%s/client.cnf", directory);
    assert_int_equal(chmod(path, 0600), 0);
    EXPECT_REFUSED(RUN("ls", "--config", path), 5, hint);
    desk_start(&desk, path, NULL);
    visitor_open(&visitor, &desk);
    visitor_login(&visitor, "remote", "word");
    EXPECT_PAGE(&visitor, 503, hint);
    visitor_close(&visitor);
    desk_stop(&desk);
}

TEST(a_remote_host_needs_verified_tls)
{
    int has_tls;

    assert_int_equal(try_host("127.1", "ca.pem", 0, &has_tls), TL_OK);
    assert_int_equal(has_tls, 1);
    /* no authority, another authority, another name */
    assert_int_equal(try_host("127.1", NULL, 0, &has_tls), TL_SERVER_UNSAFE);
    expect_message("no safe connection to the server: ");
    expect_message(hint);
    expect_told_by_command_and_desk();
    assert_int_equal(try_host("127.1", "other.pem", 0, &has_tls), TL_SERVER_UNSAFE);
    expect_message(hint);
    assert_int_equal(try_host("127.0.1", "ca.pem", 0, &has_tls), TL_SERVER_UNSAFE);
    expect_message(hint);
    assert_int_equal(try_host("127.1", "no-such-file", 0, &has_tls), TL_SERVER_UNSAFE);
    expect_message(hint);
    /* allowed in so many words */
    assert_int_equal(try_host("127.1", NULL, 1, &has_tls), TL_OK);
    assert_int_equal(has_tls, 0);
    /* this machine */
    assert_int_equal(try_host("127.0.0.1", NULL, 0, &has_tls), TL_OK);
}

TEST(a_connection_killed_under_tls_sends_nothing)
{
    char path[64], name[64];
    db *connection;
    MYSQL *plain = server_connect(own);
    int has_tls, tries;

    assert_int_equal(try_host("127.1", "ca.pem", 0, &has_tls), TL_OK);
    snprintf(path, sizeof(path), "%s/client.cnf", directory);
    connection = open_at(path);
    snprintf(name, sizeof(name), "tl:%s", db_name(connection));
    database_run(plain, "KILL %llu", (unsigned long long)db_thread_id(connection));
    for (tries = 0; tries < 6000; tries++) {
        if (database_number(plain, "SELECT IS_USED_LOCK('%s') IS NULL", name) &&
            !db_alive(connection))
            break;
        usleep(10000);
    }
    assert_false(db_alive(connection));
    EXPECT(connection, run_sql(connection, "DO 1", NULL), DB_NOT_SENT);
    db_close(connection);
    mysql_close(plain);
}

/* A connection waits 20 s for an answer, and a thread for as long as it says. */
TEST(a_silent_server_under_tls_prolongs_no_wait)
{
    char path[64];
    db *connection;
    int64_t start_ms;
    int has_tls;

    assert_int_equal(try_host("127.1", "ca.pem", 0, &has_tls), TL_OK);
    snprintf(path, sizeof(path), "%s/client.cnf", directory);
    connection = open_at(path);
    assert_non_null(mysql_get_ssl_cipher(db_raw(connection)));
    thread_context_await_until(clock_deadline(60000));
    EXPECT(connection, run_sql(connection, "DO 1", NULL), DB_DONE);
    server_freeze(own);
    start_ms = crew_now_ms();
    thread_context_await_until(clock_deadline(1000));
    EXPECT(connection, run_sql(connection, "DO 1", NULL), DB_UNANSWERED);
    server_thaw(own);
    assert_true(crew_now_ms() - start_ms < 15000);
    thread_context_await_until(0);
    db_close(connection);
}

/* The last: the server comes back without TLS. */
TEST(a_server_without_tls_is_refused)
{
    char port_option[32];
    const char *const options[] = {"--skip-networking=0", "--bind-address=127.0.0.1", port_option,
                                   "--skip-ssl", NULL}; /* else 11.4 makes itself a certificate */
    int has_tls;

    snprintf(port_option, sizeof(port_option), "--port=%d", port);
    server_restart_with(own, options);
    assert_int_equal(try_host("127.1", "ca.pem", 0, &has_tls), TL_SERVER_UNSAFE);
    expect_message("SSL is required, but the server does not support it");
    assert_null(strstr(tl_error_message(), "ssl-ca"));
    assert_int_equal(try_host("127.1", NULL, 0, &has_tls), TL_SERVER_UNSAFE);
    assert_int_equal(try_host("127.1", NULL, 1, &has_tls), TL_OK);
    assert_int_equal(try_host("127.0.0.1", NULL, 0, &has_tls), TL_OK);
}

TESTS_OF(tls, set_up, tear_down)
