#include "visitor.h"

#include "support/server.h"

#include <curl/curl.h>
#include <fcntl.h>
#include "support/theme.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* ------------------------------------------------------------------ the desk -- */

static void run(const char *config, const char *port_file, const char *log,
                const char *const *options)
{
    const char *arguments[16] = {"tradelock", "desk",        "--config",    config,
                                 "--listen",  "127.0.0.1:0", "--port-file", port_file};
    char program[512];
    const int to = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t count = 8;

    while (options != NULL && *options != NULL && count < 15)
        arguments[count++] = *options++;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(to, STDOUT_FILENO);
    dup2(to, STDERR_FILENO);
    snprintf(program, sizeof program, "%s/bin/tradelock", test_build_dir());
    execv(program, (char **)arguments);
    _exit(127);
}

void desk_start(struct desk_process *desk, const char *config, const char *const *options)
{
    char port_file[300];
    unsigned port = 0;

    snprintf(desk->log, sizeof desk->log, "%s/desk-%ld.log", test_build_dir(), (long)getpid());
    snprintf(port_file, sizeof port_file, "%s/desk-%ld.port", test_build_dir(), (long)getpid());
    unlink(port_file);
    desk->pid = fork();
    if (desk->pid == 0)
        run(config, port_file, desk->log, options);
    for (int i = 0; port == 0 && i < 6000; i++) {
        FILE *file = fopen(port_file, "re");

        if (file != NULL) {
            if (fscanf(file, "%u", &port) != 1)
                port = 0;
            fclose(file);
        }
        if (port == 0 && waitpid(desk->pid, NULL, WNOHANG) == desk->pid)
            server_panic("the desk has ended; see %s", desk->log);
        usleep(10000);
    }
    if (port == 0)
        server_panic("the desk does not listen");
    unlink(port_file);
    snprintf(desk->url, sizeof desk->url, "%s://127.0.0.1:%u",
             options != NULL && strcmp(options[0], "--tls-cert") == 0 ? "https" : "http", port);
}

void desk_stop(struct desk_process *desk)
{
    int status;

    kill(desk->pid, SIGTERM);
    if (waitpid(desk->pid, &status, 0) != desk->pid)
        server_panic("waiting for the desk");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("the desk ended with %#x; see %s", (unsigned)status, desk->log);
    unlink(desk->log);
}

/* ---------------------------------------------------------------- the visitor -- */

static size_t take(char **to, size_t *have, const char *data, size_t size)
{
    char *larger = realloc(*to, *have + size + 1);

    if (larger == NULL)
        return 0;
    memcpy(larger + *have, data, size);
    *have += size;
    larger[*have] = '\0';
    *to = larger;
    return size;
}

static size_t take_body(char *data, size_t one, size_t size, void *context)
{
    struct visitor *visitor = context;

    return take(&visitor->body, &visitor->body_size, data, one * size);
}

static size_t take_header(char *data, size_t one, size_t size, void *context)
{
    struct visitor *visitor = context;

    return take(&visitor->headers, &visitor->headers_size, data, one * size);
}

void visitor_open(struct visitor *visitor, const struct desk_process *desk)
{
    memset(visitor, 0, sizeof *visitor);
    visitor->url = desk->url;
    visitor->curl = curl_easy_init();
    if (visitor->curl == NULL)
        server_panic("no curl");
    curl_easy_setopt(visitor->curl, CURLOPT_COOKIEFILE, "");
    curl_easy_setopt(visitor->curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(visitor->curl, CURLOPT_WRITEDATA, visitor);
    curl_easy_setopt(visitor->curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(visitor->curl, CURLOPT_HEADERDATA, visitor);
    curl_easy_setopt(visitor->curl, CURLOPT_TIMEOUT, 120L);
    /* Tests sign their own certificate. */
    curl_easy_setopt(visitor->curl, CURLOPT_SSL_VERIFYPEER, 0L);
}

void visitor_close(struct visitor *visitor)
{
    curl_easy_cleanup(visitor->curl);
    free(visitor->body);
    free(visitor->headers);
}

static void perform(struct visitor *visitor, const char *path, const char *header)
{
    struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
    char url[2048];
    CURLcode code;

    snprintf(url, sizeof url, "%s%s", visitor->url, path);
    if (header != NULL)
        headers = curl_slist_append(headers, header);
    free(visitor->body);
    free(visitor->headers);
    visitor->body = calloc(1, 1);
    visitor->headers = calloc(1, 1);
    visitor->body_size = visitor->headers_size = 0;
    curl_easy_setopt(visitor->curl, CURLOPT_URL, url);
    curl_easy_setopt(visitor->curl, CURLOPT_HTTPHEADER, headers);
    code = curl_easy_perform(visitor->curl);
    if (code != CURLE_OK)
        fail_msg("%s: %s", path, curl_easy_strerror(code));
    curl_easy_getinfo(visitor->curl, CURLINFO_RESPONSE_CODE, &visitor->status);
    curl_slist_free_all(headers);
}

void visitor_get_with(struct visitor *visitor, const char *path, const char *header)
{
    curl_easy_setopt(visitor->curl, CURLOPT_HTTPGET, 1L);
    perform(visitor, path, header);
}

void visitor_get(struct visitor *visitor, const char *path)
{
    visitor_get_with(visitor, path, NULL);
}

void visitor_post_fields(struct visitor *visitor, const char *path, const char *header,
                         const char *const *fields)
{
    char *body = calloc(1, 1);
    size_t size = 0;

    for (; fields[0] != NULL; fields += 2) {
        char *value = curl_easy_escape(visitor->curl, fields[1], 0);

        if (size > 0)
            take(&body, &size, "&", 1);
        take(&body, &size, fields[0], strlen(fields[0]));
        take(&body, &size, "=", 1);
        take(&body, &size, value, strlen(value));
        curl_free(value);
    }
    curl_easy_setopt(visitor->curl, CURLOPT_POST, 1L);
    curl_easy_setopt(visitor->curl, CURLOPT_POSTFIELDSIZE, (long)size);
    curl_easy_setopt(visitor->curl, CURLOPT_POSTFIELDS, body);
    perform(visitor, path, header);
    curl_easy_setopt(visitor->curl, CURLOPT_POSTFIELDS, NULL);
    free(body);
}

void visitor_post_bytes(struct visitor *visitor, const char *path, size_t size)
{
    char *body = malloc(size);

    memset(body, 'a', size);
    curl_easy_setopt(visitor->curl, CURLOPT_POST, 1L);
    curl_easy_setopt(visitor->curl, CURLOPT_POSTFIELDSIZE, (long)size);
    curl_easy_setopt(visitor->curl, CURLOPT_POSTFIELDS, body);
    perform(visitor, path, NULL);
    curl_easy_setopt(visitor->curl, CURLOPT_POSTFIELDS, NULL);
    free(body);
}

static void add_field(curl_mime *form, const char *name, const char *value)
{
    curl_mimepart *part = curl_mime_addpart(form);

    curl_mime_name(part, name);
    curl_mime_data(part, value, CURL_ZERO_TERMINATED);
}

void visitor_post_file(struct visitor *visitor, const char *path, const char *token,
                       const char *name, const char *data, size_t size)
{
    visitor_post_file_as(visitor, path, token, name, data, size, "", "");
}

void visitor_post_file_as(struct visitor *visitor, const char *path, const char *token,
                          const char *name, const char *data, size_t size, const char *profile,
                          const char *aside)
{
    curl_mime *form = curl_mime_init(visitor->curl);
    curl_mimepart *part;

    add_field(form, "token", token);
    add_field(form, "profile", profile);
    add_field(form, "aside", aside);
    part = curl_mime_addpart(form);
    curl_mime_name(part, "file");
    curl_mime_data(part, data, size);
    curl_mime_filename(part, name);
    curl_easy_setopt(visitor->curl, CURLOPT_MIMEPOST, form);
    perform(visitor, path, NULL);
    curl_easy_setopt(visitor->curl, CURLOPT_MIMEPOST, NULL);
    curl_mime_free(form);
}

void visitor_login(struct visitor *visitor, const char *user, const char *password)
{
    char token[64];

    visitor_get(visitor, "/login");
    snprintf(token, sizeof token, "%s", visitor_field(visitor, "login_token"));
    visitor_post(visitor, "/login", NULL, "login_token", token, "user", user, "password", password);
}

/* ------------------------------------------------------------------ the page -- */

const char *visitor_field(const struct visitor *visitor, const char *name)
{
    static char value[80];
    char begins[128];
    const char *at;

    snprintf(begins, sizeof begins, "name=\"%s\" value=\"", name);
    at = strstr(visitor->body, begins);
    snprintf(value, sizeof value, "%.*s", at != NULL ? (int)strcspn(at + strlen(begins), "\"") : 0,
             at != NULL ? at + strlen(begins) : "");
    return value;
}

const char *visitor_link(const struct visitor *visitor, const char *begins)
{
    static char path[256];
    char wanted[128];
    const char *at;

    snprintf(wanted, sizeof wanted, "href=\"%s", begins);
    at = strstr(visitor->body, wanted);
    if (at == NULL) {
        fail_msg("no link %s on the page: %s", begins, visitor->body);
        return "";
    }
    at += strlen("href=\"");
    snprintf(path, sizeof path, "%.*s", (int)strcspn(at, "\""), at);
    for (char *sign = path; (sign = strstr(sign, "&amp;")) != NULL;) {
        sign++;
        memmove(sign, sign + 4, strlen(sign + 4) + 1);
    }
    return path;
}

void visitor_expect(const struct visitor *visitor, long status, const char *words, const char *file,
                    int line)
{
    if (visitor->status == status && strstr(visitor->body, words) != NULL)
        return;
    print_error("%s%s\n", visitor->headers, visitor->body);
    print_error("wanted %ld and \"%s\"\n", status, words);
    _fail(file, line);
}

void visitor_expect_none(const struct visitor *visitor, const char *words, const char *file,
                         int line)
{
    if (strstr(visitor->body, words) == NULL)
        return;
    print_error("%s\n\"%s\" stands there\n", visitor->body, words);
    _fail(file, line);
}

/* ------------------------------------------------------------------ going about -- */

void visitor_come_in(struct visitor *visitor, const struct desk_process *desk, const char *user)
{
    visitor_open(visitor, desk);
    visitor_login(visitor, user, "secret");
    EXPECT_PAGE(visitor, 303, "");
}

void visitor_leave(struct visitor *visitor)
{
    visitor_get(visitor, "/audit");
    visitor_post(visitor, "/logout", NULL, "token", visitor_field(visitor, "token"));
    EXPECT_PAGE(visitor, 303, "");
    visitor_close(visitor);
}

const char *visitor_find(struct visitor *visitor, const char *serial)
{
    static char ref[64];
    char token[64];

    visitor_get(visitor, "/trades");
    snprintf(token, sizeof token, "%s", visitor_field(visitor, "token"));
    visitor_post(visitor, "/search", NULL, "token", token, "find", serial);
    EXPECT_PAGE(visitor, 303, "");
    assert_null(strstr(visitor->headers, serial));
    assert_non_null(strstr(visitor->headers, "Location: /trades?r="));
    snprintf(ref, sizeof ref, "%.*s", (int)strcspn(strstr(visitor->headers, "/trades?r="), "\r"),
             strstr(visitor->headers, "/trades?r="));
    visitor_get(visitor, ref);
    snprintf(ref, sizeof ref, "%s", strchr(visitor_link(visitor, "/trade?r="), '=') + 1);
    return ref;
}

const char *visitor_decide(struct visitor *visitor, const char *serial)
{
    const char *ref = visitor_find(visitor, serial);
    char path[128];

    snprintf(path, sizeof path, "/decide?r=%s", ref);
    visitor_get(visitor, path);
    return ref;
}

void visitor_send_half(struct visitor *visitor, const char *act, const char *ref, const char *as,
                       const char *fence)
{
    char token[64], epoch[16];

    snprintf(token, sizeof token, "%s", visitor_field(visitor, "token"));
    snprintf(epoch, sizeof epoch, "%s", visitor_field(visitor, "epoch"));
    visitor_post(visitor, "/decide", NULL, "token", token, "r", ref, "act", act, "as", as, "fence",
                 fence, "epoch", epoch[0] != '\0' ? epoch : "1", "reason", "the bank's letter");
}
