/* Starts `tradelock-simulator`, which stands beside this program, and gives it rules over HTTP. */
#include "simulator.h"

#include <curl/curl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OPTIONS_MAX 64
#define PATIENCE 200 /* times 50 ms */

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void become(const channel_process *self, int64_t port, char *const options[])
{
    char program[PATH_MAX + 32], ledger[96], requests[96], port_file[96], listen[48];
    const char *arguments[OPTIONS_MAX + 10] = {
        "tradelock-simulator", "--ledger", ledger,     "--request-log", requests,
        "--port-file",         port_file,  "--listen", listen};
    ssize_t size = readlink("/proc/self/exe", program, PATH_MAX);
    char *slash;
    unsigned count = 9;

    if (size <= 0)
        _exit(127);
    program[size] = '\0';
    slash = strrchr(program, '/');
    snprintf(slash, sizeof "/tradelock-simulator", "/tradelock-simulator");
    snprintf(ledger, sizeof ledger, "%s/ledger", self->dir);
    snprintf(requests, sizeof requests, "%s/requests", self->dir);
    snprintf(port_file, sizeof port_file, "%s/port", self->dir);
    snprintf(listen, sizeof listen, "127.0.0.1:%lld", (long long)port);
    for (unsigned i = 0; options[i] != NULL && count < OPTIONS_MAX + 9; i++)
        arguments[count++] = options[i];
    /* It goes when this program goes, however that ends. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (freopen("/dev/null", "we", stdout) == NULL)
        _exit(127);
    execv(program, (char *const *)(uintptr_t)arguments);
    _exit(127);
}

static size_t forget(char *bytes, size_t size, size_t count, void *to)
{
    (void)bytes;
    (void)to;
    return size * count;
}

/* The HTTP status; 0: no answer. */
static long ask(const char *url, const char *method, const char *body)
{
    CURL *curl = curl_easy_init();
    long code = 0;

    if (curl == NULL)
        return 0;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 10000L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, forget);
    if (body != NULL)
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    if (method != NULL)
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    if (curl_easy_perform(curl) == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    curl_easy_cleanup(curl);
    return code;
}

static int has_proxy(char *const options[])
{
    for (unsigned i = 0; options[i] != NULL; i++)
        if (strncmp(options[i], "--proxy", 7) == 0)
            return 1;
    return 0;
}

int channel_start(channel_process *self, int64_t port, char *const options[], char *problem,
                  size_t space)
{
    char port_file[96];
    pid_t pid;

    memset(self, 0, sizeof *self);
    snprintf(self->dir, sizeof self->dir, "/tmp/tradelock-try.XXXXXX");
    if (mkdtemp(self->dir) == NULL) {
        snprintf(problem, space, "no folder can be made in /tmp");
        return -1;
    }
    snprintf(self->url, sizeof self->url, "http://127.0.0.1:%lld", (long long)port);
    self->proxy = has_proxy(options);
    snprintf(self->rules, sizeof self->rules, "%s%s", self->url,
             self->proxy ? "/.tradelock/faults" : "/v1/faults");
    snprintf(port_file, sizeof port_file, "%s/port", self->dir);
    fflush(NULL);
    pid = fork();
    if (pid == 0)
        become(self, port, options);
    self->pid = pid;
    for (unsigned i = 0; i < PATIENCE; i++) {
        if (access(port_file, R_OK) == 0)
            return 0;
        if (pid < 0 || waitpid(pid, NULL, WNOHANG) == pid) {
            self->pid = 0;
            break;
        }
        pause_ms(50);
    }
    snprintf(problem, space, "tradelock-simulator did not begin to listen at %s", self->url);
    channel_stop(self);
    return -1;
}

void channel_stop(channel_process *self)
{
    static const char *const files[] = {"ledger", "requests", "port"};
    char path[128];

    if (self->pid > 0) {
        kill((pid_t)self->pid, SIGTERM);
        waitpid((pid_t)self->pid, NULL, 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", self->dir, files[i]);
        unlink(path);
    }
    rmdir(self->dir);
    self->pid = 0;
}

int channel_clear(channel_process *self)
{
    return ask(self->rules, "DELETE", NULL) == 200 ? 0 : -1;
}

int channel_rule(channel_process *self, const char *rule)
{
    return ask(self->rules, NULL, rule) == 201 ? 0 : -1;
}
