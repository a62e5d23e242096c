/*
 * tradelock-simulator: a channel over HTTP.  See README.md.
 */
#include "export.h"
#include "options.h"
#include "proxy.h"
#include "server.h"

#include <tradelock/tradelock.h>

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum exit_status { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static int fail(int status, const struct problem *problem)
{
    fprintf(stderr, "tradelock-simulator: %s\n", problem->text);
    return status;
}

/* Complete or not there at all, whoever looks. */
static bool write_port_file(const char *path, unsigned port, struct problem *problem)
{
    size_t size = strlen(path) + 32;
    char *temporary = memory_new(size);
    FILE *file;
    bool fine;

    snprintf(temporary, size, "%s.%ld", path, (long)getpid());
    file = fopen(temporary, "we");
    fine = file && fprintf(file, "%u\n", port) > 0;
    if (file)
        fine = fclose(file) == 0 && fine;
    fine = fine && rename(temporary, path) == 0;
    if (!fine) {
        problem_set(problem, "cannot write the port file %s: %s", path, strerror(errno));
        if (file)
            unlink(temporary);
    }
    free(temporary);
    return fine;
}

/* Waits until `signals`, a signalfd, or the stop signal is readable. */
static void wait_for_end(struct stop_signal *stop, int signals)
{
    struct pollfd events[2] = {{stop->event, POLLIN, 0}, {signals, POLLIN, 0}};

    while (poll(events, 2, -1) <= 0)
        ;
    stop_raise(stop, false);
}

static bool add_rules(struct faults *faults, char *const rules[], struct problem *problem)
{
    struct problem detail;
    json_error_t error;
    int64_t number;

    for (size_t i = 0; rules[i]; i++) {
        json_t *body = json_loads(rules[i], JSON_REJECT_DUPLICATES, &error);
        bool fine = body ? faults_add(faults, body, &number, &detail)
                         : problem_set(&detail, "it is not JSON: %s", error.text);

        json_decref(body);
        if (!fine)
            return problem_set(problem, "--rule %.100s: %s", rules[i], detail.text);
    }
    return true;
}

/* A channel that is asked to stop wakes whoever waits for it; a proxy has nobody to wake. */
static void stop_channel(struct house *house)
{
    if (house->channel)
        channel_stop(house->channel);
}

/* From the open house to the end, which the signalfd announces. */
static int serve(struct house *house, const struct options *options, int signals)
{
    char host[INET_ADDRSTRLEN];
    struct problem problem;
    struct server *server;
    struct sockaddr_in address = options->address;
    uint16_t port = 0;
    int status = EXIT_DONE;

    /* A port file that a killed simulator left would send clients to nobody. */
    if (options->port_file)
        unlink(options->port_file);
    server = server_start(house, &options->address, &port, &problem);
    if (!server) {
        stop_channel(house);
        return fail(EXIT_FAILED, &problem);
    }
    address.sin_port = htons(port);
    if (house->proxy && !proxy_check_address(house->proxy, &address, &problem)) {
        stop_raise(house->stop, true);
        status = fail(EXIT_FAILED, &problem);
    } else if (options->port_file && !write_port_file(options->port_file, port, &problem)) {
        stop_raise(house->stop, true);
        status = fail(EXIT_FAILED, &problem);
    } else {
        inet_ntop(AF_INET, &options->address.sin_addr, host, sizeof(host));
        printf("listening on http://%s:%u\n", host, (unsigned)port);
        fflush(stdout);
    }
    wait_for_end(house->stop, signals);
    stop_channel(house);
    server_stop(server);
    if (options->port_file)
        unlink(options->port_file);
    return house->stop->failed ? EXIT_FAILED : status;
}

/* Turns the signals that end the program into a descriptor, before any thread starts. */
static int take_signals(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a full ledger is an error of write(), not a death */
    return signalfd(-1, &signals, SFD_CLOEXEC);
}

static int run(const struct options *options)
{
    struct house house;
    struct stop_signal stop;
    struct problem problem;
    int signals = take_signals();
    int status = EXIT_FAILED;

    memset(&house, 0, sizeof(house));
    if (signals < 0 || !stop_init(&stop)) {
        problem_set(&problem, "cannot wait for signals: %s", strerror(errno));
        return fail(EXIT_FAILED, &problem);
    }
    house.stop = &stop;
    house.kind = options->kind;
    house.faults = faults_new(&options->faults);
    if (!add_rules(house.faults, options->rules, &problem)) {
        status = fail(EXIT_USAGE, &problem);
        goto out;
    }
    house.log = request_log_open(options->request_log, &problem);
    if (house.log && options->proxy.url)
        house.proxy = proxy_open(options, &stop, &problem);
    else if (house.log)
        house.channel =
            channel_open(options->ledger, options->kind, options->window_ms, &stop, &problem);
    status = house.channel || house.proxy ? serve(&house, options, signals)
                                          : fail(EXIT_FAILED, &problem);
out:
    channel_close(house.channel);
    proxy_close(house.proxy);
    request_log_close(house.log);
    faults_free(house.faults);
    close(stop.event);
    close(signals);
    return status;
}

int main(int argc, char **argv)
{
    struct options options;
    struct problem problem;
    int64_t nameless = 0;

    if (!options_read(&options, argc, argv, &problem))
        return fail(EXIT_USAGE, &problem);
    switch (options.command) {
    case COMMAND_HELP:
        fputs(options_help(), stdout);
        break;
    case COMMAND_VERSION:
        printf("tradelock-simulator %s\n", TL_VERSION_STRING);
        break;
    case COMMAND_EXPORT:
        if (!export_csv(options.export, -1, stdout, &nameless, &problem))
            return fail(EXIT_FAILED, &problem);
        if (nameless > 0)
            fprintf(stderr,
                    "tradelock-simulator: left out are %" PRId64
                    " payments whose requests named no serial_no and cust_no\n",
                    nameless);
        break;
    case COMMAND_EXPORT_REQUESTS:
        if (!export_requests(options.export, stdout, &problem))
            return fail(EXIT_FAILED, &problem);
        break;
    case COMMAND_SERVE:
        return run(&options);
    }
    return fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED;
}
