#include "town.h"

#include "support/crew.h"
#include "support/theme.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define ARGUMENTS_MAX 40
#define WINDOW "3600000" /* longer than the deadline, or registration refuses */
#define SLOW_BEATS "beat_ms=300ms\nsession_ms=1s\n"

/* --------------------------------------------------------------------- the town -- */

static void make_tables(town *self)
{
    char path[512], *schema;

    snprintf(path, sizeof path, "%s/workflows/withdraw/schema.sql", test_source_dir());
    schema = file_read(path);
    database_run(self->sql, "%s", schema);
    free(schema);
}

char *town_config(town *self, const char *settings)
{
    char *file = database_option_file_at(self->db, server_socket(self->own), settings), channel[64];

    snprintf(channel, sizeof channel, "channel=%s\nwindow_ms=" WINDOW "\n", self->kind);
    sim_name_in(&self->sim, file, channel);
    return file;
}

static char *config(town *self, const char *more)
{
    char settings[1024];

    snprintf(settings, sizeof settings, TOWN_SETTINGS_OF("%s") "%s", self->deadline, more);
    return town_config(self, settings);
}

static void start_channel(town *self)
{
    const char *const arguments[] = {"--kind",      self->kind, "--window-ms", WINDOW,
                                     "--settle-ms", "100",      "--slow-ms",   "100",
                                     "--lag-ms",    "100",      NULL};

    sim_prepare(&self->sim);
    sim_start(&self->sim, arguments);
    snprintf(self->url, sizeof self->url, "http://127.0.0.1:%u", self->sim.port);
}

void town_open(town *self, const char *kind, const char *const options[])
{
    town_open_on(self, kind, server_start(options), "10m");
}

void town_open_on(town *self, const char *kind, server *where, const char *deadline)
{
    memset(self, 0, sizeof *self);
    self->kind = kind;
    self->deadline = deadline;
    strcpy(self->dir, "/tmp/tl-town-XXXXXX");
    assert_non_null(mkdtemp(self->dir));
    self->own = where;
    self->db = database_new(self->own, TOWN_SETTINGS SLOW_BEATS);
    self->sql = database_connect(self->db);
    make_tables(self);
    start_channel(self);
    self->service_config = config(self, SLOW_BEATS "janitor=0\n");
    self->worker_config = config(self, SLOW_BEATS);
    self->janitor_config = config(self, "beat_ms=30ms\nsession_ms=100ms\njanitor=0\n");
    self->heart_config = config(self, "beat_ms=25ms\nsession_ms=400ms\n");
}

void town_close(town *self)
{
    char command[128];

    free(self->service_config);
    free(self->worker_config);
    free(self->janitor_config);
    free(self->heart_config);
    sim_remove(&self->sim);
    mysql_close(self->sql);
    server_free(self->own);
    snprintf(command, sizeof command, "rm -rf %s", self->dir);
    assert_int_equal(system(command), 0);
}

void town_reconnect(town *self)
{
    mysql_close(self->sql);
    self->sql = database_connect(self->db);
}

void town_rule(town *self, const char *rule)
{
    struct answer answer = sim_ask(&self->sim, NULL, "/v1/faults", rule, 5000);

    if (answer.status != 201)
        fail_msg("rule %s: %ld %s", rule, answer.status, answer.text);
    answer_free(&answer);
}

void town_no_rules(town *self)
{
    sim_expect(&self->sim, "DELETE", "/v1/faults", NULL, 200, NULL, NULL);
}

char *town_rows(town *self, unsigned count)
{
    unsigned long long first = self->serial + 1;
    char *path = NULL;
    FILE *file;

    assert_true(asprintf(&path, "%s/rows-%llu.csv", self->dir, first) > 0);
    file = fopen(path, "we");
    assert_non_null(file);
    fputs("serial_no,cust_no,op,amount_minor,currency,payee\n", file);
    for (unsigned i = 0; i < count; i++) {
        ++self->serial;
        fprintf(file, "W%llu,C%llu,WITHDRAW,%llu,EUR,Anna\n", self->serial, self->serial % 500,
                100 + self->serial % 900);
    }
    fclose(file);
    if (first == 1)
        database_run(self->sql, "INSERT INTO account (cust_no, currency, balance_minor) "
                                "SELECT CONCAT('C', seq), 'EUR', 1000000000000 FROM seq_0_to_499");
    return path;
}

/* ----------------------------------------------------------------- its processes -- */

static void become(const char *path, char **argv, const char *output,
                   const char *const environment[])
{
    int file = open(output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody outlives a test that failed */
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    unsetenv("TL_MUTATION");
    for (size_t i = 0; environment != NULL && environment[i] != NULL; i++)
        putenv((char *)(uintptr_t)environment[i]);
    execv(path, argv);
    _exit(127);
}

child town_start(town *self, const char *program, const char *const arguments[],
                 const char *const environment[])
{
    static unsigned number;
    char path[512], *argv[ARGUMENTS_MAX] = {path};
    child started = {.pid = 0};

    snprintf(path, sizeof path, "%s/bin/%s", test_build_dir(), program);
    snprintf(started.name, sizeof started.name, "%.23s", program);
    snprintf(started.output, sizeof started.output, "%s/output-%u", self->dir, ++number);
    for (size_t i = 0; arguments[i] != NULL; i++) {
        assert_true(i + 2 < ARGUMENTS_MAX);
        argv[i + 1] = (char *)(uintptr_t)arguments[i];
    }
    started.pid = fork();
    assert_true(started.pid >= 0);
    if (started.pid == 0)
        become(path, argv, started.output, environment);
    return started;
}

child town_service(town *self, const char *config, const char *rows, unsigned threads,
                   const char *const environment[])
{
    char count[16];
    const char *const arguments[] = {"--config",      config,  "--threads", count,
                                     "--patience-ms", "20000", rows,        NULL};

    snprintf(count, sizeof count, "%u", threads);
    return town_start(self, "tradelock-withdraw", arguments, environment);
}

child town_worker(town *self, const char *config, unsigned threads, const char *const environment[])
{
    char count[16], plugin[512];
    const char *const arguments[] = {"--config", config,      "--plugin", plugin, "--threads",
                                     count,      "--idle-ms", "20",       NULL};

    snprintf(count, sizeof count, "%u", threads);
    snprintf(plugin, sizeof plugin, "%s/lib/withdraw.so", test_build_dir());
    return town_start(self, "tradelock-worker", arguments, environment);
}

int child_ended(child *self, int *status)
{
    pid_t pid = waitpid(self->pid, status, WNOHANG);

    assert_true(pid >= 0);
    if (pid == 0)
        return 0;
    self->pid = 0;
    return 1;
}

int child_wait(child *self, int64_t limit_ms)
{
    int64_t end_ms = now_ms() + limit_ms;
    int status;

    while (now_ms() < end_ms) {
        if (child_ended(self, &status))
            return status;
        usleep(2000);
    }
    kill(self->pid, SIGKILL);
    waitpid(self->pid, &status, 0);
    self->pid = 0;
    return -1;
}

void child_signal(const child *self, int signal)
{
    assert_int_equal(kill(self->pid, signal), 0);
}

/* --------------------------------------------------------------- to a good end -- */

long long town_open_trades(town *self)
{
    return database_number(self->sql, "SELECT COUNT(*) FROM trade_lock_state WHERE "
                                      "lane = 'S' AND status = 'P' AND state <> 'parked'");
}

/* The first of them whole, with its lane's row and their history. */
static void show_open(town *self)
{
    char *lines = database_text(
        self->sql, "SELECT GROUP_CONCAT(CONCAT_WS(' ', CONVERT(serial_no USING utf8mb4), state, "
                   "epoch, sends) SEPARATOR ', ') FROM trade_lock_state WHERE lane = 'S' AND "
                   "status = 'P'");
    char *first = database_text(self->sql, "SELECT CONVERT(MIN(serial_no) USING utf8mb4) FROM "
                                           "trade_lock_state WHERE lane = 'S' AND status = 'P'");

    print_error("still open: %s\n", lines != NULL ? lines : "-");
    if (first != NULL)
        crew_shell("mariadb --defaults-file=%s -e \"SELECT UTC_TIMESTAMP(6); "
                   "SELECT * FROM trade_lock WHERE serial_no = '%s'\\G "
                   "SELECT * FROM trade_lock_log WHERE serial_no = '%s' ORDER BY logged_at\\G "
                   "SELECT * FROM tl_clock\\G SELECT * FROM tl_clock_step\\G\" >&2",
                   database_option_file(self->db), first, first);
    free(lines);
    free(first);
}

/* Before it is ready, a signal to end would end it as if it were nobody's. */
void town_await_ready(const child *worker)
{
    for (int i = 0; i < PATIENCE_MS / 5; i++) {
        char *text = file_read(worker->output);
        int ready = text != NULL && strstr(text, "ready") != NULL;

        free(text);
        if (ready)
            return;
        usleep(5000);
    }
    fail_msg("the worker in %s does not come to work", worker->output);
}

void town_finish(town *self, int64_t limit_ms)
{
    int64_t end_ms = now_ms() + limit_ms;
    child worker;
    int status;

    town_no_rules(self);
    worker = town_worker(self, self->worker_config, 8, NULL);
    town_await_ready(&worker);
    while (town_open_trades(self) > 0 && now_ms() < end_ms)
        usleep(20000);
    child_signal(&worker, SIGTERM);
    status = child_wait(&worker, PATIENCE_MS);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || town_open_trades(self) > 0) {
        char *text = file_read(worker.output);

        show_open(self);
        fail_msg("the worker ended with %x and left %lld trades open: %s", status,
                 town_open_trades(self), text);
    }
}

static int run_shell(char **output, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int run_shell(char **output, const char *format, ...)
{
    char command[2048];
    size_t space = 0;
    va_list arguments;
    FILE *pipe;
    int code;

    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    pipe = popen(command, "re");
    assert_non_null(pipe);
    *output = NULL;
    if (getdelim(output, &space, '\0', pipe) < 0) {
        free(*output);
        *output = strdup("");
    }
    code = pclose(pipe);
    return WIFEXITED(code) ? WEXITSTATUS(code) : -1;
}

static void export_ledger(town *self)
{
    char *text;

    assert_int_equal(run_shell(&text, "%s/bin/tradelock-simulator --export-csv %s >%s/paid.csv",
                               test_build_dir(), self->sim.ledger, self->dir),
                     0);
    free(text);
}

int town_books(town *self, char **output)
{
    export_ledger(self);
    return run_shell(output,
                     "echo serial_no,cust_no >%s/answers.csv; %s/tools/dev/books %s "
                     "%s/answers.csv %s/paid.csv 2>&1",
                     self->dir, test_source_dir(), database_option_file(self->db), self->dir,
                     self->dir);
}

int town_audit(town *self, char **output)
{
    export_ledger(self);
    return run_shell(output, "%s/bin/tradelock audit --config %s --statement %s/paid.csv 2>&1",
                     test_build_dir(), self->service_config, self->dir);
}

static void read_figures(town *self, town_figures *to)
{
#define COUNT(from) database_number(self->sql, "SELECT COUNT(*) FROM " from)
    to->trades = COUNT("trade_lock WHERE lane = 'S'");
    to->paid = COUNT("trade_lock WHERE lane = 'S' AND status = 'Y'");
    to->failed = COUNT("trade_lock WHERE lane = 'S' AND status = 'F'");
    to->parked = COUNT("trade_lock_state WHERE lane = 'S' AND state = 'parked'");
    to->steps = COUNT("trade_lock_log");
#undef COUNT
    to->payments = sim_stat(&self->sim, "payments");
}

/* Trades that were asked for here, and whose row does not say what their order says. */
static long long wrong_amounts(town *self)
{
    return database_number(self->sql,
                           "SELECT COUNT(*) FROM trade_lock t LEFT JOIN withdraw_order o "
                           "ON o.cust_no = t.cust_no AND o.serial_no = t.serial_no AND o.epoch = 1 "
                           "WHERE t.lane = 'S' AND t.first_rev IS NOT NULL AND NOT COALESCE("
                           "t.amount_minor = o.amount_minor AND t.currency = o.currency, 0)");
}

int town_check(town *self, town_figures *figures)
{
    char *books, *audit;
    int wrong = town_books(self, &books) != 0;

    wrong |= town_audit(self, &audit) != 0;
    wrong |= wrong_amounts(self) != 0;
    if (wrong)
        print_error("%s%s%lld amounts are wrong\n", books, audit, wrong_amounts(self));
    free(books);
    free(audit);
    if (figures != NULL)
        read_figures(self, figures);
    return wrong;
}
