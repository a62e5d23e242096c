/*
 * HTTP over libmicrohttpd: a thread for each connection, so that a page the server lets wait holds
 * nobody else's; a bounded number of connections, of which a new one displaces the one that has
 * sent nothing whole for longest; bounded bodies.
 * Nothing that a request says is logged.
 */
#include "server.h"

#include "listening.h"
#include "options.h"
#include "peers.h"
#include "upload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define IDLE_S 30u
#define MEMORY_OF_CONNECTION ((size_t)32 * 1024)
#define BODY_MOST ((size_t)16 * 1024)
#define FILE_MOST ((size_t)64 * 1024)
/* Beyond that nobody listens any more; up to it, what is too long gets an answer. */
#define BODY_END ((size_t)32 * 1024 * 1024)
/* Files that arrive at once: each is kept in memory. */
#define UPLOADS_MOST 2

struct server {
    struct MHD_Daemon *daemon;
    struct desk *desk;
    char *certificate, *key;
    atomic_int uploads;
    struct peers peers;
};

/* A request while its body arrives. */
struct arrival {
    char *body;
    size_t size, received;
    struct upload *upload; /* instead of body, where a file may be sent */
    int is_too_many;
};

/* ----------------------------------------------------------------- sending -- */

static void add_headers(struct MHD_Response *response, const struct desk *desk,
                        const struct answer *answer)
{
    static const char *const headers[][2] = {
        {"Content-Security-Policy",
         "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
         "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"}};
    char seconds[16];

    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
    MHD_add_response_header(response, "Content-Type",
                            answer->type != NULL ? answer->type : "text/html; charset=utf-8");
    MHD_add_response_header(response, "Cache-Control",
                            answer->may_be_kept ? "private, max-age=600" : "no-store");
    if (strcmp(desk->origin_scheme, "https") == 0)
        MHD_add_response_header(response, "Strict-Transport-Security", "max-age=31536000");
    if (answer->location[0] != '\0')
        MHD_add_response_header(response, "Location", answer->location);
    if (answer->set_cookie[0] != '\0')
        MHD_add_response_header(response, "Set-Cookie", answer->set_cookie);
    if (answer->set_login_cookie[0] != '\0')
        MHD_add_response_header(response, "Set-Cookie", answer->set_login_cookie);
    if (answer->retry_after_s > 0) {
        snprintf(seconds, sizeof seconds, "%u", answer->retry_after_s);
        MHD_add_response_header(response, "Retry-After", seconds);
    }
}

static enum MHD_Result send_answer(struct MHD_Connection *connection, const struct desk *desk,
                                   struct answer *answer)
{
    static char sorry[] = "The page could not be made: it is too long, or there is no memory.\n";
    const int failed = answer->page.failed || answer->status == 0;
    struct MHD_Response *response =
        failed ? MHD_create_response_from_buffer(strlen(sorry), sorry, MHD_RESPMEM_PERSISTENT)
               : MHD_create_response_from_buffer(answer->page.size, answer->page.text,
                                                 MHD_RESPMEM_MUST_FREE);
    enum MHD_Result result;

    if (response == NULL)
        return MHD_NO;
    if (failed) {
        answer->type = "text/plain; charset=utf-8";
        answer->status = 500;
    } else {
        memset(&answer->page, 0, sizeof answer->page);
    }
    add_headers(response, desk, answer);
    result = MHD_queue_response(connection, answer->status, response);
    MHD_destroy_response(response);
    return result;
}

/* ---------------------------------------------------------------- arriving -- */

static int body_add(struct arrival *arrival, const char *data, size_t size)
{
    arrival->received += size;
    if (arrival->upload != NULL)
        upload_take(arrival->upload, data, size);
    if (arrival->upload != NULL || arrival->is_too_many || arrival->received > BODY_MOST)
        return arrival->received <= BODY_END;
    if (arrival->body == NULL)
        arrival->body = malloc(BODY_MOST + 1);
    if (arrival->body == NULL)
        return 0;
    memcpy(arrival->body + arrival->size, data, size);
    arrival->size += size;
    arrival->body[arrival->size] = '\0';
    return 1;
}

static enum MHD_Result take_query(void *context, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    struct form *form = context;

    (void)kind;
    if (form->count == FORM_FIELDS)
        return MHD_NO;
    form->fields[form->count].name = name;
    form->fields[form->count++].value = value != NULL ? value : "";
    return MHD_YES;
}

static const char *header(struct MHD_Connection *connection, enum MHD_ValueKind kind,
                          const char *name)
{
    const char *value = MHD_lookup_connection_value(connection, kind, name);

    return value != NULL ? value : "";
}

struct framing {
    unsigned lengths, hosts;
};

static enum MHD_Result count_framing(void *context, enum MHD_ValueKind kind, const char *name,
                                     const char *value)
{
    struct framing *framing = context;

    (void)kind, (void)value;
    framing->lengths +=
        strcasecmp(name, "Content-Length") == 0 || strcasecmp(name, "Transfer-Encoding") == 0;
    framing->hosts += strcasecmp(name, "Host") == 0;
    return MHD_YES;
}

/* A proxy might see another end of this request, and another request behind it. */
static int is_ambiguous(struct MHD_Connection *connection)
{
    struct framing framing = {0, 0};

    MHD_get_connection_values(connection, MHD_HEADER_KIND, count_framing, &framing);
    return framing.lengths > 1 || framing.hosts > 1;
}

static enum MHD_Result refuse_ambiguous(struct MHD_Connection *connection)
{
    static char said[] = "This request tells its length or its host twice.\n";
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(said), said, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result result = MHD_NO;

    if (response == NULL)
        return MHD_NO;
    if (MHD_add_response_header(response, "Connection", "close") == MHD_YES)
        result = MHD_queue_response(connection, MHD_HTTP_BAD_REQUEST, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result keep_last(void *context, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    const char **last = context;

    (void)kind;
    if (strcasecmp(name, "X-Forwarded-For") == 0 && value != NULL)
        *last = value;
    return MHD_YES;
}

/* The address that our own proxy saw, which it appends to whatever a browser sent. */
static const char *forwarded_for(struct MHD_Connection *connection)
{
    const char *last = "", *comma;

    MHD_get_connection_values(connection, MHD_HEADER_KIND, keep_last, &last);
    comma = strrchr(last, ',');
    if (comma != NULL)
        last = comma + 1;
    return last + strspn(last, " ");
}

static void address_text(char to[INET_ADDRSTRLEN], struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct sockaddr_in four;

    to[0] = '\0';
    if (info == NULL || info->client_addr->sa_family != AF_INET)
        return;
    memcpy(&four, info->client_addr, sizeof four);
    (void)inet_ntop(AF_INET, &four.sin_addr, to, INET_ADDRSTRLEN);
}

/* The form that has arrived, with its file or without. */
static void read_body(struct request *request, struct arrival *arrival, const char *type)
{
    request->is_too_many = arrival->is_too_many;
    request->upload = arrival->upload;
    if (arrival->upload != NULL) {
        request->body_is_form = upload_end(arrival->upload, &request->body);
        request->too_big = upload_is_too_big(arrival->upload);
        return;
    }
    request->too_big = arrival->received > BODY_MOST;
    request->body_is_form = !request->too_big && arrival->body != NULL &&
                            strncmp(type, "application/x-www-form-urlencoded", 33) == 0 &&
                            form_read(&request->body, arrival->body, arrival->size);
}

static enum MHD_Result answer_whole(struct server *server, struct MHD_Connection *connection,
                                    const char *path, const char *method, struct arrival *arrival)
{
    char address[INET_ADDRSTRLEN];
    struct request request = {.method = method, .path = path};
    struct answer answer = {.status = 0};
    enum MHD_Result result;

    address_text(address, connection);
    request.address = server->desk->options->is_behind_proxy ? forwarded_for(connection) : address;
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, take_query, &request.query);
    read_body(&request, arrival, header(connection, MHD_HEADER_KIND, "Content-Type"));
    request.cookie = header(connection, MHD_COOKIE_KIND, "tl_desk");
    request.login_cookie = header(connection, MHD_COOKIE_KIND, "tl_desk_login");
    request.host = header(connection, MHD_HEADER_KIND, "Host");
    request.origin = header(connection, MHD_HEADER_KIND, "Origin");
    request.fetch_site = header(connection, MHD_HEADER_KIND, "Sec-Fetch-Site");
    request.is_refresh = header(connection, MHD_HEADER_KIND, "X-Desk-Refresh")[0] != '\0';
    peers_set_waiting(&server->peers, connection, 0);
    desk_answer(server->desk, &request, &answer);
    result = send_answer(connection, server->desk, &answer);
    page_free(&answer.page);
    return result;
}

/* A request with its headers; only who is logged in may send a file. */
static struct arrival *arrive(struct server *server, struct MHD_Connection *connection,
                              const char *path, const char *method)
{
    struct arrival *arrival = calloc(1, sizeof *arrival);
    const char *type = header(connection, MHD_HEADER_KIND, "Content-Type");

    if (arrival == NULL || strcmp(method, "POST") != 0 ||
        strncmp(type, "multipart/form-data", 19) != 0 ||
        !desk_takes_file(server->desk, path, header(connection, MHD_COOKIE_KIND, "tl_desk")))
        return arrival;
    arrival->is_too_many = atomic_fetch_add(&server->uploads, 1) >= UPLOADS_MOST;
    if (!arrival->is_too_many)
        arrival->upload = upload_begin(connection);
    if (arrival->upload == NULL)
        atomic_fetch_sub(&server->uploads, 1);
    return arrival;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *data, size_t *data_size, void **connection_context)
{
    struct arrival *arrival = *connection_context;

    (void)version;
    if (arrival == NULL && is_ambiguous(connection))
        return refuse_ambiguous(connection);
    if (arrival == NULL) {
        *connection_context = arrive(context, connection, path, method);
        return *connection_context != NULL ? MHD_YES : MHD_NO;
    }
    if (*data_size > 0) {
        if (!body_add(arrival, data, *data_size))
            return MHD_NO;
        *data_size = 0;
        return MHD_YES;
    }
    return answer_whole(context, connection, path, method, arrival);
}

/* A body may hold a password. */
static void on_end(void *context, struct MHD_Connection *connection, void **connection_context,
                   enum MHD_RequestTerminationCode code)
{
    struct arrival *arrival = *connection_context;
    struct server *server = context;

    (void)code;
    peers_set_waiting(&server->peers, connection, 1);
    if (arrival != NULL && arrival->upload != NULL) {
        upload_free(arrival->upload);
        atomic_fetch_sub(&server->uploads, 1);
    }
    if (arrival != NULL && arrival->body != NULL) {
        explicit_bzero(arrival->body, BODY_MOST);
        free(arrival->body);
    }
    free(arrival);
    *connection_context = NULL;
}

static void say_nothing(void *context, const char *format, va_list arguments)
{
    (void)context, (void)format, (void)arguments;
}

/* ---------------------------------------------------------------- starting -- */

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = file != NULL ? calloc(1, FILE_MOST + 1) : NULL;
    size_t size = 0;

    if (text != NULL)
        size = fread(text, 1, FILE_MOST, file);
    if (file != NULL)
        fclose(file);
    if (size > 0)
        return text;
    free(text);
    return NULL;
}

static int start_daemon(struct server *server, int fd)
{
    const int speaks_tls = server->certificate != NULL;
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, server->certificate},
                                   {MHD_OPTION_HTTPS_MEM_KEY, 0, server->key},
                                   {MHD_OPTION_END, 0, NULL}};
    struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};

    server->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL |
            (speaks_tls ? MHD_USE_TLS : 0),
        0, NULL, NULL, on_request, server, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_NOTIFY_COMPLETED, on_end, server, MHD_OPTION_NOTIFY_CONNECTION, peers_notify,
        &server->peers, MHD_OPTION_EXTERNAL_LOGGER, say_nothing, NULL, MHD_OPTION_CONNECTION_LIMIT,
        PEERS_MOST, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        MEMORY_OF_CONNECTION, MHD_OPTION_ARRAY, speaks_tls ? tls : none, MHD_OPTION_END);
    return server->daemon != NULL;
}

struct server *server_start(struct desk *desk, uint16_t *port, char *problem, size_t space)
{
    const struct options *options = desk->options;
    struct server *server = calloc(1, sizeof *server);
    const union MHD_DaemonInfo *info;
    char host[INET_ADDRSTRLEN];
    int fd;

    if (server == NULL) {
        snprintf(problem, space, "out of memory");
        return NULL;
    }
    server->desk = desk;
    peers_init(&server->peers, PEERS_MOST);
    if (options->certificate_file != NULL) {
        server->certificate = read_file(options->certificate_file);
        server->key = read_file(options->key_file);
        if (server->certificate == NULL || server->key == NULL) {
            snprintf(problem, space, "certificate and key cannot be read");
            goto out;
        }
    }
    fd = listening_socket(&options->address);
    if (fd < 0) {
        inet_ntop(AF_INET, &options->address.sin_addr, host, sizeof host);
        snprintf(problem, space, "cannot listen on %s:%u: %s", host,
                 (unsigned)ntohs(options->address.sin_port), strerror(errno));
        goto out;
    }
    if (!start_daemon(server, fd)) {
        snprintf(problem, space, "the server of HTTP cannot be started%s",
                 server->certificate != NULL ? ": certificate and key cannot be used" : "");
        goto out;
    }
    info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    *port = info != NULL ? info->port : 0;
    return server;
out:
    server_stop(server);
    return NULL;
}

void server_stop(struct server *server)
{
    if (server == NULL)
        return;
    if (server->daemon != NULL)
        MHD_stop_daemon(server->daemon);
    if (server->key != NULL)
        explicit_bzero(server->key, FILE_MOST);
    free(server->key);
    free(server->certificate);
    peers_destroy(&server->peers);
    free(server);
}
