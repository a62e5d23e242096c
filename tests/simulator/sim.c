#include "sim.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include "support/theme.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#define ARGUMENTS_MAX 40

int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static const char *program(void)
{
    static char path[512];
    const char *build = getenv("TL_BUILD_DIR");

    snprintf(path, sizeof(path), "%s/bin/tradelock-simulator", build ? build : "build");
    return path;
}

char *file_read(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;
    FILE *memory;
    int byte;

    if (!file)
        return NULL;
    memory = open_memstream(&text, &size);
    assert_non_null(memory);
    while ((byte = fgetc(file)) != EOF)
        fputc(byte, memory);
    fclose(memory);
    fclose(file);
    return text;
}

int64_t text_count(const char *text, const char *wanted)
{
    int64_t count = 0;

    for (; (text = strstr(text, wanted)); text += strlen(wanted))
        count++;
    return count;
}

void sim_prepare(struct sim *sim)
{
    memset(sim, 0, sizeof(*sim));
    strcpy(sim->directory, "/tmp/tl-sim-XXXXXX");
    assert_non_null(mkdtemp(sim->directory));
    snprintf(sim->ledger, sizeof(sim->ledger), "%s/ledger", sim->directory);
    snprintf(sim->port_file, sizeof(sim->port_file), "%s/port", sim->directory);
    snprintf(sim->request_log, sizeof(sim->request_log), "%s/requests", sim->directory);
    snprintf(sim->errors, sizeof(sim->errors), "%s/errors", sim->directory);
}

/* In the child: becomes the program. */
static void become(const struct sim *sim, const char **arguments, int out, int err)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* it never outlives a test that failed */
    if (sim && sim->file_limit) {
        struct rlimit limit = {(rlim_t)sim->file_limit, (rlim_t)sim->file_limit};

        setrlimit(RLIMIT_FSIZE, &limit);
    }
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execv(program(), (char *const *)(uintptr_t)arguments);
    _exit(127);
}

static int wait_status(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int sim_try_start(struct sim *sim, const char *const arguments[])
{
    const char *all[ARGUMENTS_MAX] = {program(),       "--ledger",     sim->ledger,
                                      "--port-file",   sim->port_file, "--request-log",
                                      sim->request_log};
    int64_t limit_ms = now_ms() + PATIENCE_MS;
    struct timespec pause = {0, 5000000};
    size_t count = 7;
    int null, errors, status;

    for (size_t i = 0; arguments && arguments[i]; i++) {
        assert_true(count < ARGUMENTS_MAX - 1);
        all[count++] = arguments[i];
    }
    unlink(sim->port_file);
    null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    errors = open(sim->errors, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(null >= 0 && errors >= 0);
    sim->pid = fork();
    assert_true(sim->pid >= 0);
    if (sim->pid == 0)
        become(sim, all, null, errors);
    close(null);
    close(errors);
    for (;;) {
        char *port = file_read(sim->port_file);

        if (port) {
            sim->port = (unsigned)strtoul(port, NULL, 10);
            free(port);
            return -1;
        }
        if (waitpid(sim->pid, &status, WNOHANG) == sim->pid) {
            sim->pid = 0;
            return WEXITSTATUS(status);
        }
        assert_true(now_ms() < limit_ms);
        nanosleep(&pause, NULL);
    }
}

void sim_start(struct sim *sim, const char *const arguments[])
{
    assert_int_equal(sim_try_start(sim, arguments), -1);
}

void sim_stop(struct sim *sim, int expected)
{
    kill(sim->pid, SIGTERM);
    assert_int_equal(wait_status(sim->pid), expected);
    sim->pid = 0;
}

void sim_kill(struct sim *sim)
{
    kill(sim->pid, SIGKILL);
    assert_int_equal(wait_status(sim->pid), 128 + SIGKILL);
    sim->pid = 0;
}

void sim_remove(struct sim *sim)
{
    if (sim->pid)
        sim_stop(sim, 0);
    unlink(sim->ledger);
    unlink(sim->port_file);
    unlink(sim->request_log);
    unlink(sim->errors);
    assert_int_equal(rmdir(sim->directory), 0);
}

int sim_run(const char *const arguments[], char **output)
{
    const char *all[ARGUMENTS_MAX] = {program()};
    char path[] = "/tmp/tl-sim-out-XXXXXX";
    int out = mkstemp(path), status;
    pid_t pid;

    assert_true(out >= 0);
    for (size_t i = 0; arguments[i]; i++)
        all[i + 1] = arguments[i];
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(PATIENCE_MS / 1000); /* holds for the program too */
        become(NULL, all, out, out);
    }
    status = wait_status(pid);
    close(out);
    *output = file_read(path);
    unlink(path);
    return status;
}

static size_t keep(char *data, size_t size, size_t count, void *context)
{
    return fwrite(data, size, count, context);
}

struct answer sim_ask(const struct sim *sim, const char *method, const char *path, const char *body,
                      long timeout_ms)
{
    struct answer answer = {0, NULL, NULL};
    CURL *curl = curl_easy_init();
    char url[1024];
    size_t size = 0;
    FILE *memory = open_memstream(&answer.text, &size);

    assert_non_null(curl);
    assert_non_null(memory);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", sim->port, path);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, memory);
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    if (body)
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    if (method)
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    if (curl_easy_perform(curl) == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
    curl_easy_cleanup(curl);
    fclose(memory);
    answer.json = json_loads(answer.text, 0, NULL);
    return answer;
}

void answer_free(struct answer *answer)
{
    json_decref(answer->json);
    free(answer->text);
}

void sim_expect(const struct sim *sim, const char *method, const char *path, const char *body,
                long status, const char *field, const char *value)
{
    struct answer answer = sim_ask(sim, method, path, body, 10000);

    if (answer.status != status)
        print_error("%s answered %ld %s\n", path, answer.status, answer.text);
    assert_int_equal(answer.status, status);
    if (field) {
        const char *found = json_string_value(json_object_get(answer.json, field));

        if (!found || strcmp(found, value) != 0)
            print_error("%s answered %s\n", path, answer.text);
        assert_non_null(found);
        assert_string_equal(found, value);
    }
    answer_free(&answer);
}

static int64_t stat_get(const struct sim *sim, const char *group, const char *name)
{
    struct answer answer = sim_ask(sim, NULL, "/v1/stats", NULL, 10000);
    json_t *object = answer.json, *number;
    int64_t result;

    if (group)
        object = json_object_get(object, group);
    number = json_object_get(object, name);
    assert_true(json_is_integer(number));
    result = json_integer_value(number);
    answer_free(&answer);
    return result;
}

int64_t sim_stat(const struct sim *sim, const char *name)
{
    return stat_get(sim, NULL, name);
}

int64_t sim_faults(const struct sim *sim, const char *kind)
{
    return stat_get(sim, "faults", kind);
}

char *order_text(const char *channel_key, const char *serial_no, const char *cust_no,
                 int64_t amount_minor)
{
    char *text = NULL;

    assert_true(asprintf(&text,
                         "{\"channel_key\":\"%s\",\"serial_no\":\"%s\",\"cust_no\":\"%s\","
                         "\"op_code\":\"WITHDRAW\",\"amount_minor\":%" PRId64
                         ",\"currency\":\"EUR\",\"payee\":\"DE02 1203, \\\"x\\\"\"}",
                         channel_key, serial_no, cust_no, amount_minor) > 0);
    return text;
}

void pay_expect(const struct sim *sim, const char *channel_key, long status, const char *field,
                const char *value)
{
    char serial_no[160];
    char *body;

    snprintf(serial_no, sizeof(serial_no), "S-%s", channel_key);
    body = order_text(channel_key, serial_no, "C1", 10000);
    sim_expect(sim, NULL, "/v1/pay", body, status, field, value);
    free(body);
}

char *ledger_text(const struct sim *sim)
{
    const char *const arguments[] = {"--export-csv", sim->ledger, NULL};
    static const char header[] = "seq,paid_at,channel_ref,channel_key,serial_no,cust_no,"
                                 "op_code,amount_minor,currency,payee\n";
    char *text;

    assert_int_equal(sim_run(arguments, &text), 0);
    assert_int_equal(strncmp(text, header, strlen(header)), 0);
    return text;
}

int64_t ledger_holds(const char *text, const char *value)
{
    char wanted[192];

    snprintf(wanted, sizeof(wanted), ",%s,", value);
    return text_count(text, wanted);
}

int64_t ledger_count(const struct sim *sim, const char *value)
{
    char *text = ledger_text(sim);
    const int64_t count = value ? ledger_holds(text, value) : text_count(text, "\n") - 1;

    free(text);
    return count;
}

void sim_name_in(const struct sim *sim, const char *option_file, const char *more)
{
    char line[256];
    FILE *file = fopen(option_file, "r+e");

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        if (strcmp(line, "[service-withdraw]\n") == 0)
            break;
    if (feof(file))
        fprintf(file, "[service-withdraw]\nchannel_url=http://127.0.0.1:%u\n%s", sim->port, more);
    assert_int_equal(fclose(file), 0);
}
