/* The simulator's HTTP side, over libmicrohttpd: reads requests, hands them to handlers.c, sends
 * or breaks off the answers. */
#include "server.h"
#include "handlers.h"
#include "listening.h"
#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define CONNECTIONS_MAX 4000u
#define IDLE_TIMEOUT_S 120u
#define UPLOAD_MAX ((size_t)16 * 1024 * 1024) /* beyond that, nobody listens any more */
#define STACK_SIZE ((size_t)256 * 1024)
#define PROXY_STACK_SIZE ((size_t)1024 * 1024) /* libcurl, and TLS */

struct server {
    struct MHD_Daemon *daemon;
    struct house *house;
    atomic_llong last_number;
};

/* A request while its body arrives. */
struct arrival {
    char *uri; /* the path with its query */
    char *body;
    size_t size;
    size_t space;
    size_t received;
    bool begun;
    bool too_big;
    struct curl_slist *headers;
};

/* The headers of an upstream's answer.  Those that the library refuses belong to the connection. */
static void add_headers(struct MHD_Response *response, const struct curl_slist *headers)
{
    for (; headers; headers = headers->next) {
        char *colon = strchr(headers->data, ':');

        if (!colon)
            continue;
        *colon = '\0';
        MHD_add_response_header(response, headers->data, colon + 1 + strspn(colon + 1, " \t"));
    }
}

/* After HEAD only the length is told; the library never asks for the body. */
static ssize_t no_body(void *context, uint64_t place, char *buffer, size_t size)
{
    (void)context, (void)place, (void)buffer, (void)size;
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static enum MHD_Result send_reply(struct MHD_Connection *connection, struct reply *reply)
{
    const char *type = reply->csv ? "text/csv; charset=utf-8" : "application/json";
    struct MHD_Response *response;
    enum MHD_Result result;
    char *text = reply->csv;
    size_t size = reply->csv_size;

    /* Refusing to go on is the library's way to close a connection without an answer. */
    if (reply->status == 0)
        return MHD_NO;
    if (!text && !reply->raw) {
        text = memory_need(json_dumps(reply->body, JSON_COMPACT));
        json_decref(reply->body);
        size = strlen(text);
    }
    if (reply->unsent_size > 0)
        response = memory_need(
            MHD_create_response_from_callback(reply->unsent_size, 1024, no_body, NULL, NULL));
    else
        response = memory_need(MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE));
    if (reply->raw)
        add_headers(response, reply->headers);
    else
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    curl_slist_free_all(reply->headers);
    result = MHD_queue_response(connection, (unsigned)reply->status, response);
    MHD_destroy_response(response);
    return result;
}

/* Keeps at most `most` bytes; what is longer is read all the same, so that it can be answered, but
 * not for ever: false closes the connection. */
static bool body_add(struct arrival *arrival, size_t most, const char *data, size_t size)
{
    arrival->received += size;
    if (arrival->received > most) {
        arrival->too_big = true;
        return arrival->received <= UPLOAD_MAX;
    }
    if (arrival->received > arrival->space) {
        arrival->space = 2 * arrival->received + 1024;
        arrival->body = memory_need(realloc(arrival->body, arrival->space));
    }
    memcpy(arrival->body + arrival->size, data, size);
    arrival->size += size;
    return true;
}

static enum MHD_Result keep_header(void *context, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    struct arrival *arrival = context;
    char *line = NULL;

    (void)kind;
    memory_need(asprintf(&line, "%s: %s", name, value ? value : "") < 0 ? NULL : line);
    arrival->headers = memory_need(curl_slist_append(arrival->headers, line));
    free(line);
    return MHD_YES;
}

/* The library calls this first, with the path and its query as they were sent. */
static void *on_line(void *context, const char *uri, struct MHD_Connection *connection)
{
    struct arrival *arrival = memory_new(sizeof(*arrival));

    (void)context;
    (void)connection;
    arrival->uri = memory_need(strdup(uri));
    return arrival;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *data, size_t *data_size, void **connection_context)
{
    struct server *server = context;
    struct arrival *arrival = *connection_context;
    struct request request;
    struct reply reply;

    (void)version;
    if (!arrival->begun) {
        arrival->begun = true;
        if (server->house->proxy)
            MHD_get_connection_values(connection, MHD_HEADER_KIND, keep_header, arrival);
        return MHD_YES;
    }
    if (*data_size > 0) {
        if (!body_add(arrival, server->house->proxy ? PROXY_BODY_MAX : BODY_MAX, data, *data_size))
            return MHD_NO;
        *data_size = 0;
        return MHD_YES;
    }
    request.number = ++server->last_number;
    request.method = method;
    request.path = server->house->proxy ? arrival->uri : path;
    request.body = arrival->body ? arrival->body : "";
    request.size = arrival->size;
    request.too_big = arrival->too_big;
    request.headers = arrival->headers;
    if (server->house->proxy)
        proxy_handle(server->house, &request, &reply);
    else
        handle(server->house, &request, &reply);
    return send_reply(connection, &reply);
}

static void on_end(void *context, struct MHD_Connection *connection, void **connection_context,
                   enum MHD_RequestTerminationCode code)
{
    struct arrival *arrival = *connection_context;

    (void)context;
    (void)connection;
    (void)code;
    if (arrival) {
        curl_slist_free_all(arrival->headers);
        free(arrival->uri);
        free(arrival->body);
    }
    free(arrival);
    *connection_context = NULL;
}

/* Paths stay as they were sent: an escaped slash in a channel key is not a separator. */
static size_t keep_escaped(void *context, struct MHD_Connection *connection, char *text)
{
    (void)context;
    (void)connection;
    return strlen(text);
}

/* Room for many clients at once, as far as the system lets us. */
static unsigned connections_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 900;
    if (limit.rlim_cur < CONNECTIONS_MAX + 64) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        getrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur >= CONNECTIONS_MAX + 64)
        return CONNECTIONS_MAX;
    return limit.rlim_cur > 128 ? (unsigned)limit.rlim_cur - 64 : 64;
}

struct server *server_start(struct house *house, const struct sockaddr_in *address, uint16_t *port,
                            struct problem *problem)
{
    struct server *server = memory_new(sizeof(*server));
    const union MHD_DaemonInfo *info;
    const int fd = listening_socket(address);
    char host[INET_ADDRSTRLEN];

    server->house = house;
    if (fd < 0) {
        inet_ntop(AF_INET, &address->sin_addr, host, sizeof(host));
        problem_set(problem, "cannot listen on %s:%u: %s", host, (unsigned)ntohs(address->sin_port),
                    strerror(errno));
        goto out;
    }
    server->daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, NULL,
        NULL, on_request, server, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, on_end,
        server, MHD_OPTION_UNESCAPE_CALLBACK, keep_escaped, server, MHD_OPTION_CONNECTION_LIMIT,
        connections_limit(), MHD_OPTION_CONNECTION_TIMEOUT, IDLE_TIMEOUT_S,
        MHD_OPTION_THREAD_STACK_SIZE, house->proxy ? PROXY_STACK_SIZE : STACK_SIZE,
        MHD_OPTION_URI_LOG_CALLBACK, on_line, server, MHD_OPTION_END);
    if (!server->daemon) {
        problem_set(problem, "the server of HTTP cannot be started");
        goto out;
    }
    info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    if (!info || info->port == 0) {
        problem_set(problem, "cannot find out the port");
        goto out;
    }
    *port = info->port;
    return server;
out:
    server_stop(server);
    return NULL;
}

void server_stop(struct server *server)
{
    if (!server)
        return;
    if (server->daemon)
        MHD_stop_daemon(server->daemon);
    free(server);
}
