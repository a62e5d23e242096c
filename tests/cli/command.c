#include "command.h"

#include "support/server.h"

#include "support/theme.h"

#include <spawn.h>
#include <sys/wait.h>

#define ARGUMENTS 32

extern char **environ;

static char *read_all(FILE *file)
{
    char *text;
    long size;

    fseek(file, 0, SEEK_END);
    size = ftell(file);
    fseek(file, 0, SEEK_SET);
    text = calloc(1, (size_t)size + 1);
    if (text == NULL || fread(text, 1, (size_t)size, file) != (size_t)size)
        server_panic("the command's output cannot be read");
    fclose(file);
    return text;
}

/* The environment with the tree's programs first on PATH, and `more`. */
static char **environment_of(const char *more)
{
    size_t count = 0, kept = 0;
    char **all;

    while (environ[count] != NULL)
        count++;
    all = calloc(count + 3, sizeof *all);
    if (all == NULL ||
        asprintf(&all[kept++], "PATH=%s/bin:%s", test_build_dir(), getenv("PATH")) < 0)
        server_panic("out of memory");
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "PATH=", 5) != 0 &&
            strncmp(environ[i], "TRADELOCK_CONFIG=", 17) != 0)
            all[kept++] = environ[i];
    all[kept] = (char *)(uintptr_t)more;
    return all;
}

/* Spawned, not forked: a test under a sanitizer has a large address space to copy. */
static pid_t start(const char *program, const char *environment, const char *const arguments[],
                   int out, int err)
{
    char *argv[ARGUMENTS] = {(char *)(uintptr_t)program};
    char **all = environment_of(environment);
    posix_spawn_file_actions_t actions;
    size_t count = 1;
    pid_t pid;
    int error;

    for (; arguments[count - 1] != NULL && count < ARGUMENTS - 1; count++)
        argv[count] = (char *)(uintptr_t)arguments[count - 1];
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
    error = posix_spawn(&pid, program, &actions, NULL, argv, all);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        server_panic("%s cannot be run: %s", program, strerror(error));
    free(all[0]);
    free(all);
    return pid;
}

static output *run(const char *program, const char *environment, const char *const arguments[])
{
    output *o = calloc(1, sizeof *o);
    FILE *out = tmpfile(), *err = tmpfile();
    int status;
    pid_t pid;

    if (o == NULL || out == NULL || err == NULL)
        server_panic("no place for the command's output");
    fflush(NULL);
    pid = start(program, environment, arguments, fileno(out), fileno(err));
    if (waitpid(pid, &status, 0) != pid)
        server_panic("the command was lost");
    o->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    o->out = read_all(out);
    o->err = read_all(err);
    return o;
}

output *command_run(const char *environment, const char *const arguments[])
{
    char path[512];

    snprintf(path, sizeof path, "%s/bin/tradelock", test_build_dir());
    return run(path, environment, arguments);
}

output *command_shell(const char *environment, const char *line)
{
    return run("/bin/sh", environment, (const char *const[]){"-c", line, NULL});
}

void output_free(output *o)
{
    if (o == NULL)
        return;
    free(o->out);
    free(o->err);
    free(o);
}

static void show(const output *o)
{
    print_error("exit code %d\n-- stdout\n%s-- stderr\n%s--\n", o->code, o->out, o->err);
}

void expect_code(const output *o, int code, const char *file, int line)
{
    if (o->code != code)
        show(o);
    _assert_int_equal((uintmax_t)o->code, (uintmax_t)code, file, line);
}

/* With --json the sentence is on standard output, too. */
#define AS_JSON "{\n  \"errors\": ["

void expect_sentence(const output *o, int code, const char *words, const char *file, int line)
{
    const char *end = strchr(o->err, '\n');
    const int one_line = end != NULL && end[1] == '\0';
    const int right = one_line && strncmp(o->err, "tradelock: ", 11) == 0 &&
                      strstr(o->err, words) != NULL &&
                      (o->out[0] == '\0' || strncmp(o->out, AS_JSON, strlen(AS_JSON)) == 0);

    if (!right) {
        print_error("%s:%d: not one sentence with \"%s\"\n", file, line, words);
        show(o);
    }
    _assert_true((uintmax_t)right, "one sentence", file, line);
    expect_code(o, code, file, line);
}

void expect_refusal(const char *file, int line, output *o, int code, const char *words)
{
    expect_sentence(o, code, words, file, line);
    output_free(o);
}

void expect_output(const char *file, int line, output *o, int code, ...)
{
    va_list all;

    if (code != ANY_CODE)
        expect_code(o, code, file, line);
    va_start(all, code);
    for (const char *words; (words = va_arg(all, const char *)) != NULL;)
        expect_words(o, words, file, line);
    va_end(all);
    output_free(o);
}

void expect_words(const output *o, const char *words, const char *file, int line)
{
    const int on_stderr = strncmp(words, "! ", 2) == 0;
    const int without = words[0] == '\1';
    const char *const at = words + 2 * on_stderr + without;
    const int there = (strstr(on_stderr ? o->err : o->out, at) != NULL) != without;

    if (!there) {
        print_error("%s:%d: %s \"%s\" in\n", file, line, without ? "there is" : "no", at);
        show(o);
    }
    _assert_true((uintmax_t)there, words, file, line);
}

json_t *output_json(const output *o)
{
    json_error_t error;
    json_t *document = json_loads(o->out, JSON_REJECT_DUPLICATES, &error);

    if (document == NULL) {
        show(o);
        fail_msg("not JSON: line %d: %s", error.line, error.text);
    }
    return document;
}

json_t *output_ended(output *o, int code)
{
    json_t *document;

    EXPECT_CODE(o, code);
    document = output_json(o);
    output_free(o);
    return document;
}
