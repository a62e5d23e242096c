/*
 * Makes a connection that is fit for money.  Touches the option file, the network and the new
 * connection.
 *
 * libmariadb reads the option file, but only inside mysql_real_connect().  So a first connect goes
 * to a socket that cannot exist: nothing is sent to anybody, and the settings stay in the handle
 * (CLIENT_REMEMBER_OPTIONS).  Now it is known where the connection will go, before a password can
 * leave.  Then everything is set that must not be left to the file: no reconnecting, no LOAD DATA
 * LOCAL, no clear-text passwords, affected rows counted as changed rows (no CLIENT_FOUND_ROWS), one
 * statement a call.
 *
 * TCP beyond loopback must be TLS with a certificate of an authority that the file names.
 * MYSQL_OPT_SSL_VERIFY_SERVER_CERT alone makes libmariadb insist on TLS, even if the file does not
 * ask for it.  From 11.4 on it is on by default, and without an authority any certificate is taken
 * of a server that knows the password's hash, which stands in each copy of mysql.user.
 */
#include "db/db_internal.h"

#include "base/clock.h"
#include "base/config_client.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/random.h"
#include "base/thread_context.h"

#include <arpa/inet.h>
#include <errmsg.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NO_SOCKET "/dev/null/tradelock"
#define AUTHENTICATIONS                                                                            \
    "mysql_native_password,client_ed25519,auth_gssapi_client,caching_sha2_password,"               \
    "parsec,auth_socket,unix_socket"

static pthread_once_t library_once = PTHREAD_ONCE_INIT;
static int library_failed;

static void start_library(void)
{
    library_failed = mysql_library_init(0, NULL, NULL);
}

/* -------------------------------------------------------------- settings -- */

static tl_status read_file(MYSQL *mysql, const char *file, const db_options *options)
{
    if (file != NULL)
        mysql_options(mysql, MYSQL_READ_DEFAULT_FILE, file);
    mysql_options(mysql, MYSQL_READ_DEFAULT_GROUP, options->group);
    if (mysql_real_connect(mysql, "localhost", NULL, NULL, NULL, 0, NO_SOCKET,
                           CLIENT_REMEMBER_OPTIONS))
        return error_set(TL_INTERNAL, "a connection was made to %s", NO_SOCKET);
    if (mysql_errno(mysql) != CR_CONNECTION_ERROR)
        return db_connect_status(mysql);
    return TL_OK;
}

static tl_status read_settings(MYSQL *mysql, const db_options *options)
{
    db_layers layers;
    tl_status status;

    if (options->option_file && access(options->option_file, R_OK))
        return error_set(TL_BAD_CONFIG, "the settings file %s cannot be read",
                         options->option_file);
    if (!config_connection_is_set() &&
        (options->option_file == NULL || options->over_group == NULL))
        return read_file(mysql, options->option_file, options);
    status = db_layers_open(&layers, options);
    if (status == TL_OK)
        status = read_file(mysql, layers.path, options);
    db_layers_close(&layers);
    return status;
}

static tl_status new_handle(MYSQL **out)
{
    pthread_once(&library_once, start_library);
    if (library_failed)
        return error_set(TL_NO_MEMORY, "the client library of the database cannot start");
    *out = mysql_init(NULL);
    return *out != NULL ? TL_OK : error_set(TL_NO_MEMORY, "out of memory while connecting");
}

tl_status db_settings_read(MYSQL **out, const db_options *options)
{
    TRY(new_handle(out));
    return read_settings(*out, options);
}

/* Nobody could tell a connection without a database from one to an empty database. */
static tl_status check_database(const MYSQL *mysql, const db_options *options)
{
    const char *named = options->database ? options->database : mysql->options.db;

    if (named && *named)
        return TL_OK;
    return error_set(
        TL_BAD_CONFIG,
        "%s: no database is named; [%s] needs a line database=NAME, or the environment "
        "TRADELOCK_DATABASE=NAME",
        options->option_file ? options->option_file : "the settings", options->group);
}

static int host_is_loopback(const char *host)
{
    struct in_addr four;
    struct in6_addr six;

    if (!host || !*host || !strcmp(host, "localhost"))
        return 1;
    if (inet_pton(AF_INET, host, &four) == 1)
        return (ntohl(four.s_addr) >> 24) == 127;
    if (inet_pton(AF_INET6, host, &six) == 1)
        return IN6_IS_ADDR_LOOPBACK(&six);
    return 0;
}

static int is_path(const db_host *host)
{
    return host != NULL && host->name[0] == '/';
}

static int leads_here(const MYSQL *mysql, const db_options *options)
{
    return is_path(options->host) ||
           host_is_loopback(options->host != NULL ? options->host->name : mysql->options.host);
}

/* Whoever waits for a connection waits no longer than for an answer on it. */
static unsigned within_wait_s(unsigned as_set_s)
{
    const int64_t until_ms = thread_context_awaits_until();
    const int64_t left_s = until_ms != 0 ? (clock_left_ms(until_ms) + 999) / 1000 : as_set_s;

    return left_s < as_set_s ? (unsigned)left_s : as_set_s;
}

static void enforce_settings(MYSQL *mysql, const db_options *options)
{
    my_bool off = 0;
    unsigned no = 0, connect_timeout = within_wait_s(options->connect_timeout_s);
    unsigned io_timeout = within_wait_s(options->read_timeout_s);

    mysql_options(mysql, MYSQL_OPT_RECONNECT, &off);
    mysql_options(mysql, MYSQL_OPT_LOCAL_INFILE, &no);
    mysql_options(mysql, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    mysql_options(mysql, MYSQL_OPT_CONNECT_TIMEOUT, &connect_timeout);
    mysql_options(mysql, MYSQL_OPT_READ_TIMEOUT, &io_timeout);
    mysql_options(mysql, MYSQL_OPT_WRITE_TIMEOUT, &io_timeout);
    mysql_options(mysql, MARIADB_OPT_RESTRICTED_AUTH, AUTHENTICATIONS);
    mysql_options4(mysql, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "tradelock");
    mysql->options.client_flag &= ~(unsigned long)(CLIENT_FOUND_ROWS | CLIENT_MULTI_STATEMENTS);
}

/* Without an authority nothing can be verified: that is refused, or is right as it is. */
static tl_status enforce_tls(MYSQL *mysql, const db_options *options)
{
    const int may_be_plain = options->allow_insecure || leads_here(mysql, options);
    const int has_authority = mysql->options.ssl_ca != NULL || mysql->options.ssl_capath != NULL;
    const my_bool verify = !may_be_plain;

    if (!has_authority && verify)
        return error_set(TL_SERVER_UNSAFE,
                         "no safe connection to the server: no authority is named; " DB_NAME_A_CA);
    if (!has_authority || verify)
        mysql_options(mysql, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
    return TL_OK;
}

/* ------------------------------------------------------- what was reached -- */

static int peer_is_here(MYSQL *mysql)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof(peer);

    memset(&peer, 0, sizeof(peer));
    if (getpeername((int)mysql_get_socket(mysql), (struct sockaddr *)&peer, &size))
        return 0;
    if (peer.ss_family == AF_UNIX)
        return 1;
    if (peer.ss_family == AF_INET) {
        struct sockaddr_in four;

        memcpy(&four, &peer, sizeof(four));
        return (ntohl(four.sin_addr.s_addr) >> 24) == 127;
    }
    if (peer.ss_family == AF_INET6) {
        struct sockaddr_in6 six;

        memcpy(&six, &peer, sizeof(six));
        return IN6_IS_ADDR_LOOPBACK(&six.sin6_addr) ||
               (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr) && six.sin6_addr.s6_addr[12] == 127);
    }
    return 0;
}

static int is_verified_tls(MYSQL *mysql)
{
    my_bool verified = 0;

    mysql_get_option(mysql, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verified);
    return verified && mysql_get_ssl_cipher(mysql);
}

/* The host's name was judged before; this judges the address to which it led. */
static tl_status check_connection(MYSQL *mysql, const db_options *options)
{
    if (!options->allow_insecure && !peer_is_here(mysql) && !is_verified_tls(mysql))
        return error_set(TL_SERVER_UNSAFE,
                         "the connection to %s is not TLS with a verified certificate",
                         mysql_get_host_info(mysql));
    if (mysql->client_flag & CLIENT_FOUND_ROWS)
        return error_set(TL_BAD_CONFIG, "the settings ask for found rows; tradelock needs "
                                        "affected rows");
    return TL_OK;
}

/* --------------------------------------------------------------- session -- */

static tl_status session_failed(const db *connection, db_answer answer)
{
    tl_status status = db_error_status(connection, answer, "preparing a connection");

    /* No payment was asked for yet, so a lost answer here leaves no doubt about money. */
    if (status == TL_UNKNOWN && db_errno(connection) == CR_OUT_OF_MEMORY)
        return error_set(TL_NO_MEMORY, "out of memory while connecting");
    if (status == TL_UNKNOWN)
        return error_set(TL_UNREACHABLE, "preparing a connection: %s", db_error(connection));
    return status;
}

/* Every variable of the session that can change an answer gets a value: DEFAULT is the server's. */
static tl_status fix_session(db *connection, const db_options *options)
{
    char sql[1536];
    int size;
    db_answer answer;

    /* lock_wait_timeout limits the wait for a table that is being altered, and for a backup that
     * holds back commits.  1 s lets an online change pass; a row may be waited for as long.  It
     * must not be less than 1 s, for db_row_is_taken(). */
    size = snprintf(sql, sizeof(sql),
                    "SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin,"
                    "autocommit=1,completion_type='NO_CHAIN',tx_read_only=0,"
                    "tx_isolation='READ-COMMITTED',time_zone='+00:00',"
                    "sql_mode='STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,"
                    "NO_ZERO_DATE,NO_ZERO_IN_DATE,NO_ENGINE_SUBSTITUTION',"
                    "sql_auto_is_null=0,sql_safe_updates=0,sql_select_limit=18446744073709551615,"
                    "sql_big_selects=1,max_join_size=18446744073709551615,"
                    "group_concat_max_len=1048576,max_sort_length=1024,"
                    "max_session_mem_used=9223372036854775807,old_mode='',sql_if_exists=0,"
                    "div_precision_increment=4,auto_increment_increment=1,"
                    "auto_increment_offset=1,lc_time_names='en_US',default_week_format=0,"
                    "sql_quote_show_create=1,default_storage_engine='InnoDB',"
                    "innodb_strict_mode=1,system_versioning_asof=DEFAULT,"
                    "foreign_key_checks=1,unique_checks=1,check_constraint_checks=1,"
                    "lc_messages='en_US',max_statement_time=0,sort_buffer_size=2097152,"
                    "wait_timeout=28800,net_read_timeout=30,net_write_timeout=60,"
                    "idle_write_transaction_timeout=0,idle_readonly_transaction_timeout=0,"
                    "innodb_lock_wait_timeout=%u,"
                    "lock_wait_timeout=%u,idle_transaction_timeout=%u",
                    options->lock_wait_s, options->lock_wait_s + 1, options->idle_transaction_s);
    if (size < 0 || (size_t)size >= sizeof(sql))
        return error_set(TL_INTERNAL, "the session settings do not fit");
    answer = db_run_text(connection, "session", sql, (size_t)size, NULL);
    return answer == DB_DONE ? TL_OK : session_failed(connection, answer);
}

/* Takes the name by which others find and end this connection.  Unlike its id, the name is never
 * given to another connection. */
static tl_status take_name(db *connection)
{
    char sql[128];
    RESULT result = DB_RESULT_INIT;
    db_answer answer;
    tl_status status = TL_OK;

    random_uuid(connection->name);
    snprintf(sql, sizeof(sql), "SELECT GET_LOCK('tl:%s', 0), CONNECTION_ID()", connection->name);
    answer = db_run_text(connection, "name", sql, strlen(sql), &result);
    if (answer != DB_DONE)
        status = session_failed(connection, answer);
    else if (db_get_int(&result, 0, 0) != 1)
        status = error_set(TL_SERVER_ERROR, "the server did not give the connection's name");
    else if ((db_get_uint(&result, 0, 1) & 0xffffffffu) != (connection->thread_id & 0xffffffffu))
        status = error_set(TL_SERVER_UNSAFE, "a proxy between here and the server shares "
                                             "sessions; connect to the server itself");
    else
        connection->thread_id = db_get_uint(&result, 0, 1);
    return status;
}

/* A host of a list is left early if its machine is gone: the network acknowledges nothing then,
 * however long the answer itself may take. */
static void watch_peer(int fd, unsigned silent_s)
{
    const unsigned silent_ms = silent_s * 1000;
    const int on = 1;

    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof(silent_ms));
}

/* A password that is given, also an empty one, is never replaced by the file's. */
static MYSQL *connect_to(MYSQL *mysql, const db_options *options)
{
    const db_host *host = options->host;
    const int by_path = is_path(host);
    const char *name = by_path ? "localhost" : host != NULL ? host->name : NULL;
    unsigned protocol = by_path ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;

    /* "localhost" alone is the socket; with a port it is not. */
    if (by_path || (host != NULL && host->port != 0))
        mysql_options(mysql, MYSQL_OPT_PROTOCOL, &protocol);
    return mysql_real_connect(mysql, name, options->user, options->password, options->database,
                              host != NULL ? host->port : 0, by_path ? host->name : NULL,
                              CLIENT_REMEMBER_OPTIONS);
}

static tl_status reach(db *connection, const db_options *options)
{
    MYSQL *mysql = connection->mysql;
    int fd;

    TRY(read_settings(mysql, options));
    TRY(check_database(mysql, options));
    TRY(enforce_tls(mysql, options));
    enforce_settings(mysql, options);
    db_listen(connection);
    fault_point(FAULT_CONNECT, "connect", "before");
    if (!connect_to(mysql, options))
        return db_connect_status(mysql);
    fault_point(FAULT_CONNECT, "connect", "after");
    (void)mysql_options(mysql, MYSQL_OPT_READ_TIMEOUT, &options->read_timeout_s);
    db_await_for(mysql, (int64_t)options->read_timeout_s * 1000);
    connection->thread_id = mysql_thread_id(mysql);
    /* A program that this process starts must not keep the connection open. */
    fd = (int)mysql_get_socket(mysql);
    if (fcntl(fd, F_SETFD, FD_CLOEXEC))
        return error_set(TL_INTERNAL, "the connection's descriptor cannot be set up");
    if (options->silent_s > 0) {
        watch_peer(fd, options->silent_s);
        /* libmariadb closes its own when it likes, and its number may be another's then. */
        connection->cut_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    }
    return check_connection(mysql, options);
}

tl_status db_open(db **out, const db_options *options)
{
    db *connection;
    tl_status status;

    if (within_wait_s(1) == 0)
        return error_set(TL_UNREACHABLE, "the wait is over before there was a connection");
    connection = memory_new(sizeof(*connection));
    if (!connection)
        return error_set(TL_NO_MEMORY, "out of memory while connecting");
    connection->generation = process_generation();
    connection->cut_fd = -1;
    connection->lock_wait_s = options->lock_wait_s;
    connection->is_for_books = options->is_for_books;
    connection->books_lock_wait_s = options->books_lock_wait_s;
    status = new_handle(&connection->mysql);
    if (status == TL_OK)
        status = reach(connection, options);
    if (status == TL_OK)
        status = fix_session(connection, options);
    if (status == TL_OK)
        status = take_name(connection);
    if (status == TL_OK) {
        *out = connection;
        connection = NULL;
    }
    db_close(connection);
    return status;
}

tl_status db_borrow(db **out, struct st_mysql *caller)
{
    db *connection;
    my_bool reconnect = 0;

    if (!caller || !caller->net.pvio)
        return error_set(TL_INVALID, "the caller's connection is not open");
    mysql_get_option(caller, MYSQL_OPT_RECONNECT, &reconnect);
    if (reconnect)
        return error_set(TL_INVALID, "the caller's connection reconnects by itself, which "
                                     "would lose its transaction silently");
    connection = memory_new(sizeof(*connection));
    if (!connection)
        return error_set(TL_NO_MEMORY, "out of memory");
    connection->mysql = caller;
    connection->borrowed = 1;
    connection->cut_fd = -1;
    connection->generation = process_generation();
    connection->thread_id = mysql_thread_id(caller);
    *out = connection;
    return TL_OK;
}
