/* tradelock-desk: the operators' pages.  Starts the parts, waits for a signal, ends them. */
#include "audit_run.h"
#include "command.h"
#include "desk.h"
#include "log_print.h"
#include "now.h"
#include "options.h"
#include "server.h"

#include <arpa/inet.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SWEEP_S 10

static int write_port(const char *path, uint16_t port)
{
    char unfinished[4096];
    FILE *file;

    if (path == NULL)
        return 1;
    snprintf(unfinished, sizeof unfinished, "%s.new", path);
    file = fopen(unfinished, "we");
    if (file == NULL)
        return 0;
    fprintf(file, "%u\n", (unsigned)port);
    return fclose(file) == 0 && rename(unfinished, path) == 0;
}

/* Until somebody ends us; meanwhile sessions that nobody uses are ended. */
static void wait_for_end(struct desk *desk, const sigset_t *signals)
{
    const struct timespec a_while = {.tv_sec = SWEEP_S};

    while (sigtimedwait(signals, NULL, &a_while) < 0)
        sessions_sweep(desk->sessions);
    /* A page of an audit may run still; who does not want to wait for it interrupts again. */
    pthread_sigmask(SIG_UNBLOCK, signals, NULL);
}

static int serve(struct desk *desk, const sigset_t *signals)
{
    const struct options *options = desk->options;
    char problem[256], host[INET_ADDRSTRLEN];
    uint16_t port = 0;
    struct server *server = server_start(desk, &port, problem, sizeof problem);

    if (server == NULL) {
        log_say(TL_ALARM, "%s", problem);
        return EXIT_USAGE;
    }
    if (!write_port(options->port_file, port)) {
        log_say(TL_ALARM, "%s cannot be written", options->port_file);
        server_stop(server);
        return EXIT_USAGE;
    }
    inet_ntop(AF_INET, &options->address.sin_addr, host, sizeof host);
    log_answer("The desk is at %s://%s:%u/", options->certificate_file != NULL ? "https" : "http",
               host, (unsigned)port);
    if (options->is_behind_proxy)
        log_answer("It expects a proxy in front of it that speaks TLS to the browsers.");
    wait_for_end(desk, signals);
    server_stop(server);
    return 0;
}

int desk_run(const struct options *options)
{
    const int speaks_tls = options->certificate_file != NULL || options->is_behind_proxy;
    struct desk desk = {.options = options, .origin_scheme = speaks_tls ? "https" : "http"};
    sigset_t signals;
    int code = EXIT_INTERNAL;

    log_begin("tradelock-desk", TL_INFO, options->config_file);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    logins_begin(&desk.logins);
    desk.sessions = sessions_new(options->idle_ms, options->longest_ms);
    desk.refs = refs_new();
    desk.now = now_keeper_new();
    desk.audit = desk.sessions != NULL ? audit_keeper_new(desk.sessions) : NULL;
    if (desk.refs != NULL && desk.now != NULL && desk.audit != NULL)
        code = serve(&desk, &signals);
    else
        log_say(TL_ALARM, "out of memory");
    audit_keeper_free(desk.audit);
    now_keeper_free(desk.now);
    sessions_free(desk.sessions);
    refs_free(desk.refs);
    logins_end(&desk.logins);
    return code;
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    return run_command(&command_serve, argc, argv);
}
