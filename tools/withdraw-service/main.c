/*
 * tradelock-withdraw: the sample withdraw service.  Each line of a CSV file is a customer's
 * request; the same request may come twice, from two threads, with another amount, or after a crash
 * of this very program, and is paid once.
 */
#include "accounts.h"
#include "answers.h"
#include "metrics_server.h"
#include "options.h"
#include "service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(int code, const char *what, const char *sentence)
{
    fprintf(stderr, PROGRAM ": %s%s%s\n", what, what[0] != '\0' ? ": " : "", sentence);
    return code;
}

static int read_file(const options *with, rows *all)
{
    char problem[512];
    FILE *file = fopen(with->file, "rb");
    int code = EXIT_DONE;

    if (file == NULL)
        return fail(EXIT_USAGE, with->file, strerror(errno));
    if (rows_read(all, file, with->file, problem, sizeof problem) != 0)
        code = fail(EXIT_USAGE, "", problem);
    fclose(file);
    return code;
}

static void print_books(const rows *all)
{
    size_t counts[ROW_ERROR + 1] = {0};

    for (size_t i = 0; i < all->count; i++)
        counts[all->list[i].kind]++;
    printf("lines %zu = new %zu + repeated %zu + mismatch %zu + refused %zu + bad %zu"
           " + error %zu\n",
           all->count, counts[ROW_NEW], counts[ROW_REPEATED], counts[ROW_MISMATCH],
           counts[ROW_REFUSED], counts[ROW_BAD], counts[ROW_ERROR]);
}

static void print_bad(const rows *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].kind == ROW_BAD)
            fprintf(stderr, PROGRAM ": %s\n",
                    all->list[i].sentence != NULL ? all->list[i].sentence : "bad line");
}

static int has_errors(const rows *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].kind == ROW_ERROR || all->list[i].kind == ROW_OPEN)
            return 1;
    return 0;
}

/* Closes the file. */
static int write_out(const options *with, FILE *file, const rows *all)
{
    int failed;

    if (file == NULL)
        return EXIT_DONE;
    failed = ftruncate(fileno(file), 0) != 0 && errno != EINVAL; /* a pipe has no size */
    failed |= answers_write(file, all) != 0;
    if (fclose(file) != 0 || failed)
        return fail(EXIT_REFUSED, with->out, "could not be written");
    return EXIT_DONE;
}

/* What is of one database only: EXIT_DONE, or it is refused over a fleet. */
static int open_extras(const options *with, const host *here, const rows *all,
                       metrics_server **metrics)
{
    char problem[512];
    tl_client *client = here->client;

    if (here->fleet != NULL) {
        if (with->open_minor >= 0)
            return fail(EXIT_USAGE, "--open-accounts",
                        "the settings name the shards of a fleet; "
                        "open accounts at each of them");
        for (size_t i = 0; client == NULL && i < tl_fleet_size(here->fleet); i++)
            (void)tl_fleet_shard_client(here->fleet, i, &client);
        if (client != NULL && tl_metrics_listen(client)[0] != '\0')
            return fail(EXIT_USAGE, "metrics_listen",
                        "metrics are served for one database; set it "
                        "to off for a service of a fleet");
        return EXIT_DONE;
    }
    if (metrics_server_open(metrics, client, NULL, NULL, problem, sizeof problem) != 0)
        return fail(EXIT_USAGE, "", problem);
    if (with->open_minor >= 0 &&
        accounts_open(with->host.config_file, all, with->open_minor, problem, sizeof problem) != 0)
        return fail(EXIT_SERVER, "", problem);
    return EXIT_DONE;
}

/* *open: how many lines are in process still. */
static int pay(const options *with, rows *all, size_t *open)
{
    host here;
    metrics_server *metrics = NULL;
    int code;
    tl_status status = host_open(&here, &with->host);

    if (status != TL_OK)
        return fail(host_exit_code(status), "", tl_error_message());
    code = open_extras(with, &here, all, &metrics);
    if (code == EXIT_DONE && service_run(&here, with, all) != 0)
        code = fail(EXIT_INTERNAL, "", "no thread could be started");
    else if (code == EXIT_DONE)
        *open = service_settle(&here, with, all);
    metrics_server_stop(metrics);
    host_close(&here);
    return code;
}

static int are_one_file(const char *one, const char *other)
{
    struct stat a, b;

    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static int serve(const options *with, rows *all)
{
    FILE *out = NULL;
    size_t open = 0;
    int code;

    if (with->out != NULL && are_one_file(with->out, with->file))
        return fail(EXIT_USAGE, with->out, "the answers would overwrite the withdrawals");
    /* Before the first payment, whose answer would have nowhere to go; what an earlier run wrote
     * stays until there is something new. */
    if (with->out != NULL && (out = fopen(with->out, "ab")) == NULL)
        return fail(EXIT_USAGE, with->out, strerror(errno));
    code = pay(with, all, &open);
    if (code != EXIT_DONE) {
        if (out != NULL)
            fclose(out);
        return code;
    }
    print_bad(all);
    print_books(all);
    code = write_out(with, out, all);
    if (code != EXIT_DONE)
        return code;
    if (has_errors(all))
        return fail(EXIT_INTERNAL, "", "not every line could be answered");
    if (open > 0)
        fprintf(stderr, PROGRAM ": %zu lines are in process still\n", open);
    return open > 0 ? EXIT_DOUBT : EXIT_DONE;
}

int main(int argc, char **argv)
{
    options with = {
        .host = {.program = PROGRAM, .window_ms = 60000, .least = TL_WARNING, .serves_fleets = 1},
        .threads = 8,
        .open_minor = -1,
        .patience_ms = 60000};
    rows all = {0};
    int code = options_read(&with, argc, argv);

    if (code >= 0)
        return code;
    with.host.threads = with.threads;
    code = read_file(&with, &all);
    if (code == EXIT_DONE)
        code = serve(&with, &all);
    rows_free(&all);
    return code;
}
