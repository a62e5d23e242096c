/* The HTTP side of metrics, over libmicrohttpd: a thread for each connection, so that a page that
 * waits for a database keeps nobody from /healthz; one page after the other.  Touches its socket, and
 * calls the program's page. */
#include "metrics_server.h"

#include "log_print.h"

#include <stdio.h>
#include <string.h>

static tl_status client_page(void *context, tl_metrics_fn write, void *to)
{
    return tl_metrics_write(context, write, to);
}

int metrics_server_open(metrics_server **out, const tl_client *client, metrics_health_fn health,
                        void *health_context, char *problem, size_t space)
{
    const char *listen = tl_metrics_listen(client);

    *out = NULL;
    if (listen[0] == '\0')
        return 0;
    *out = metrics_server_start(listen, client_page, (void *)(uintptr_t)client, health,
                                health_context, problem, space);
    if (*out == NULL)
        return 1;
    log_answer("metrics at %s", metrics_server_url(*out));
    return 0;
}

#if HAVE_MICROHTTPD

#include "listening.h"
#include "peers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <sys/socket.h>

#define CONNECTIONS_MAX PEERS_MOST
#define IDLE_TIMEOUT_S 10u
#define URL_SPACE 64

struct metrics_server {
    struct MHD_Daemon *daemon;
    metrics_page_fn page;
    void *context;
    metrics_health_fn health; /* or NULL */
    void *health_context;
    struct peers peers;
    pthread_mutex_t page_mutex; /* held while page() runs */
    char url[URL_SPACE];
};

/* An answer as it grows. */
struct text {
    char *bytes;
    size_t size, space;
};

static int add(void *to, const char *bytes, size_t size)
{
    struct text *text = to;

    if (text->bytes == NULL || text->space - text->size < size) {
        const size_t space = 2 * (text->space + size) + 1;
        char *larger = realloc(text->bytes, space);

        if (larger == NULL)
            return 1;
        text->bytes = larger;
        text->space = space;
    }
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
    return 0;
}

/* Frees the text. */
static enum MHD_Result answer(struct MHD_Connection *connection, unsigned code, const char *type,
                              struct text *text)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(text->size, text->bytes, MHD_RESPMEM_MUST_FREE);
    enum MHD_Result result;

    if (response == NULL) {
        free(text->bytes);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result say(struct MHD_Connection *connection, unsigned code, const char *sentence)
{
    struct text text = {.bytes = NULL};

    if (add(&text, sentence, strlen(sentence)) != 0 || add(&text, "\n", 1) != 0) {
        free(text.bytes);
        return MHD_NO;
    }
    return answer(connection, code, "text/plain; charset=utf-8", &text);
}

static enum MHD_Result send_page(metrics_server *server, struct MHD_Connection *connection)
{
    struct text text = {.bytes = NULL};
    tl_status status;

    pthread_mutex_lock(&server->page_mutex);
    status = server->page(server->context, add, &text);
    pthread_mutex_unlock(&server->page_mutex);
    if (status == TL_OK)
        return answer(connection, MHD_HTTP_OK, TL_METRICS_TYPE, &text);
    free(text.bytes);
    return say(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, tl_error_message());
}

static enum MHD_Result tell_health(metrics_server *server, struct MHD_Connection *connection)
{
    if (server->health == NULL || server->health(server->health_context) == TL_OK)
        return say(connection, MHD_HTTP_OK, "it works");
    return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE, tl_error_message());
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *data, size_t *data_size, void **began)
{
    static int mark;

    (void)version;
    (void)data;
    /* The first call is for the headers alone; a body is read and forgotten. */
    if (*began == NULL || *data_size > 0) {
        *began = &mark;
        *data_size = 0;
        return MHD_YES;
    }
    peers_set_waiting(&((metrics_server *)context)->peers, connection, 0);
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET is answered");
    if (strcmp(path, "/healthz") == 0)
        return tell_health(context, connection);
    if (strcmp(path, "/metrics") != 0)
        return say(connection, MHD_HTTP_NOT_FOUND, "the metrics are at /metrics");
    return send_page(context, connection);
}

static void on_end(void *context, struct MHD_Connection *connection, void **began,
                   enum MHD_RequestTerminationCode code)
{
    (void)began;
    (void)code;
    peers_set_waiting(&((metrics_server *)context)->peers, connection, 1);
}

/* Needs: an address that tl_metrics_check_listen() accepted. */
static void read_address(struct sockaddr_in *address, const char *listen)
{
    unsigned bytes[4] = {127, 0, 0, 1}, port = 0;

    if (strncmp(listen, TL_LISTEN_PUBLIC, strlen(TL_LISTEN_PUBLIC)) == 0)
        listen += strlen(TL_LISTEN_PUBLIC);
    (void)sscanf(listen, "%3u.%3u.%3u.%3u:%5u", &bytes[0], &bytes[1], &bytes[2], &bytes[3], &port);
    memset(address, 0, sizeof *address);
    address->sin_family = AF_INET;
    address->sin_port = htons((uint16_t)port);
    address->sin_addr.s_addr = htonl(bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3]);
}

/* The port in use, which the kernel chose for port 0. */
static void write_url(metrics_server *server, const struct sockaddr_in *address)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    char host[INET_ADDRSTRLEN];

    inet_ntop(AF_INET, &address->sin_addr, host, sizeof host);
    snprintf(server->url, sizeof server->url, "http://%s:%u/metrics", host,
             info != NULL ? info->port : ntohs(address->sin_port));
}

static void free_server(metrics_server *server)
{
    pthread_mutex_destroy(&server->page_mutex);
    peers_destroy(&server->peers);
    free(server);
}

metrics_server *metrics_server_start(const char *listen, metrics_page_fn page, void *context,
                                     metrics_health_fn health, void *health_context, char *problem,
                                     size_t space)
{
    struct sockaddr_in address;
    metrics_server *server;
    int fd;

    if (tl_metrics_check_listen("the address for metrics", listen) != TL_OK) {
        snprintf(problem, space, "%s", tl_error_message());
        return NULL;
    }
    read_address(&address, listen);
    server = calloc(1, sizeof *server);
    if (server == NULL) {
        snprintf(problem, space, "out of memory for serving metrics");
        return NULL;
    }
    server->page = page;
    server->context = context;
    server->health = health;
    server->health_context = health_context;
    peers_init(&server->peers, CONNECTIONS_MAX);
    pthread_mutex_init(&server->page_mutex, NULL);
    fd = listening_socket(&address);
    if (fd >= 0)
        server->daemon = MHD_start_daemon(
            MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, NULL,
            NULL, on_request, server, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED,
            on_end, server, MHD_OPTION_NOTIFY_CONNECTION, peers_notify, &server->peers,
            MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
            IDLE_TIMEOUT_S, MHD_OPTION_END);
    if (server->daemon == NULL) {
        snprintf(problem, space, "metrics cannot be served at %s: %s", listen,
                 fd < 0 ? strerror(errno) : "no thread can be had");
        free_server(server);
        return NULL;
    }
    write_url(server, &address);
    return server;
}

const char *metrics_server_url(const metrics_server *server)
{
    return server->url;
}

void metrics_server_stop(metrics_server *server)
{
    if (server == NULL)
        return;
    MHD_stop_daemon(server->daemon);
    free_server(server);
}

#else

metrics_server *metrics_server_start(const char *listen, metrics_page_fn page, void *context,
                                     metrics_health_fn health, void *health_context, char *problem,
                                     size_t space)
{
    (void)page;
    (void)context;
    (void)health;
    (void)health_context;
    snprintf(problem, space,
             "metrics cannot be served at %s: this program was built without libmicrohttpd",
             listen);
    return NULL;
}

const char *metrics_server_url(const metrics_server *server)
{
    (void)server;
    return "";
}

void metrics_server_stop(metrics_server *server)
{
    (void)server;
}

#endif
