/*
 * Plays tests/cli/transcripts/NAME.txt: what a person types, and what comes of it, compared whole
 * but for named patterns.  tests/README.md explains the lines.  With --rewrite the file is written
 * anew from what came.
 */
#include "fields.h"
#include "stage.h"
#include "support/theme.h"

#include <ctype.h>
#include <regex.h>

#define LINES_MAX 4000

typedef struct lines {
    char *at[LINES_MAX];
    size_t count;
} lines;

static struct play {
    const char *name;
    char path[512];
    lines file;
    size_t next;   /* the line after the step that is played */
    FILE *written; /* the file as it would be */
    unsigned steps, differ;
    int looks_for_leaks;
} play;

static void lines_add(lines *self, const char *text, size_t size)
{
    if (self->count == LINES_MAX)
        server_panic("%s: more than %d lines", play.path, LINES_MAX);
    self->at[self->count++] = strndup(text, size);
}

/* Each line of the text, with `mark` before it. */
static void lines_add_text(lines *self, const char *mark, const char *text)
{
    while (*text != '\0') {
        const size_t size = strcspn(text, "\n");
        char *line = NULL;

        if (asprintf(&line, "%s%.*s", mark, (int)size, text) < 0)
            server_panic("out of memory");
        lines_add(self, line, strlen(line));
        free(line);
        text += size + (text[size] == '\n');
    }
}

static void lines_clear(lines *self)
{
    while (self->count > 0)
        free(self->at[--self->count]);
}

static int lines_equal(const lines *a, const lines *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++)
        if (strcmp(a->at[i], b->at[i]) != 0)
            return 0;
    return a->count == b->count;
}

/* ----------------------------------------------------------------- patterns -- */

#define DAY "20[0-9]{2}-[0-9]{2}-[0-9]{2}"
#define CLOCK "[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?Z?"

/* What varies from run to run.  A rewrite puts those that are `seen` in the place of what came; of
 * one name the first form is what matches. */
static struct pattern {
    const char *name, *form;
    int seen, compiled;
    regex_t regex;
} patterns[] = {
    {"<uuid>", "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", 1, 0, {0}},
    {"<time>", "^(" DAY "([ T][0-9]{2}:[0-9]{2}|[ T]" CLOCK ")?|" CLOCK ")", 1, 0, {0}},
    {"<fence>", "^[0-9]{15,17}", 1, 0, {0}},
    {"<account>", "^(ann|bob|svc)[0-9]{7}('?@'?[a-z0-9%.-]+)?", 1, 0, {0}},
    {"<process>", "^[A-Za-z_-]+ [0-9]+@[A-Za-z0-9._-]+", 1, 0, {0}},
    {"<file>", "^/[^ :'\"]+", 1, 0, {0}},
    {"<database>", "^t[0-9]+_[0-9]+", 1, 0, {0}},
    {"<age>", "^[-+]?([0-9]+ ?(min|m|h|d) ?)?([0-9.]+ ?(ms|s|min|m|h))?", 0, 0, {0}},
    {"<age>", "^[-+]?([0-9]+ ?(min|h|d) ?)?[0-9.]+ ?(ms|s)", 1, 0, {0}},
    {"<number>", "^[0-9]+", 0, 0, {0}},
    {"<hex>", "^[0-9a-f]{18,}", 1, 0, {0}},
    {"<words>", "^.+", 0, 0, {0}},
};
#define PATTERNS (sizeof patterns / sizeof patterns[0])

/* How much of the text the pattern takes; 0: it is not there. */
static size_t pattern_takes(struct pattern *self, const char *text)
{
    regmatch_t match;

    if (!self->compiled && regcomp(&self->regex, self->form, REG_EXTENDED) != 0)
        server_panic("%s is no regular expression", self->form);
    self->compiled = 1;
    return regexec(&self->regex, text, 1, &match, 0) == 0 ? (size_t)match.rm_eo : 0;
}

static struct pattern *pattern_named(const char *text)
{
    for (size_t i = 0; i < PATTERNS; i++)
        if (strncmp(text, patterns[i].name, strlen(patterns[i].name)) == 0)
            return &patterns[i];
    return NULL;
}

/* Whatever varies in width moves what stands beside it: blanks around a pattern are any. */
static int line_matches(const char *expected, const char *got)
{
    while (*expected != '\0') {
        const size_t blanks = strspn(expected, " ");
        struct pattern *pattern = pattern_named(expected + blanks);
        size_t size;

        if (pattern == NULL) {
            if (*expected++ != *got++)
                return 0;
            continue;
        }
        got += blanks > 0 ? strspn(got, " ") : 0;
        size = pattern_takes(pattern, got);
        if (size == 0)
            return 0;
        got += size;
        expected += blanks + strlen(pattern->name);
        if (*expected == ' ' && *got == ' ') {
            expected += strspn(expected, " ");
            got += strspn(got, " ");
        }
    }
    return *got == '\0';
}

static int in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* What of the text is one whole word that varies; NULL: nothing at its beginning. */
static struct pattern *pattern_seen(const char *text, size_t *taken)
{
    for (size_t i = 0; i < PATTERNS; i++) {
        *taken = patterns[i].seen ? pattern_takes(&patterns[i], text) : 0;
        if (*taken > 0 && !in_word(text[*taken]))
            return &patterns[i];
    }
    return NULL;
}

/* The line with the names of patterns; free() it. */
static char *line_in_patterns(const char *got)
{
    char *text = NULL, before = ' ';
    size_t size = 0, taken;
    FILE *to = open_memstream(&text, &size);

    for (; *got != '\0'; got += taken) {
        const struct pattern *seen = in_word(before) ? NULL : pattern_seen(got, &taken);

        if (seen == NULL)
            taken = 1;
        fprintf(to, "%.*s", seen != NULL ? (int)strlen(seen->name) : 1,
                seen != NULL ? seen->name : got);
        before = got[taken - 1];
    }
    fclose(to);
    return text;
}

/* Lines that match what is expected become it, in order; the others show what varies by name. */
static void lines_fit(lines *got, const lines *expected)
{
    size_t from = 0;

    for (size_t i = 0; i < got->count; i++) {
        size_t at = from;
        char *line;

        while (at < expected->count && !line_matches(expected->at[at], got->at[i]))
            at++;
        line = at < expected->count ? strdup(expected->at[at]) : line_in_patterns(got->at[i]);
        if (at < expected->count)
            from = at + 1;
        free(got->at[i]);
        got->at[i] = line;
    }
}

/* -------------------------------------------------------------------- steps -- */

/* The step's lines in one: each but the last ends with a backslash.  free() it. */
static char *take_step(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    for (;;) {
        const char *line = play.file.at[play.next++];
        const size_t length = strlen(line);

        if (length == 0 || line[length - 1] != '\\' || play.next == play.file.count) {
            fputs(line, to);
            break;
        }
        fwrite(line, 1, length - 1, to);
    }
    fclose(to);
    return text;
}

static void write_lines(size_t from, size_t to)
{
    for (; from < to; from++)
        fprintf(play.written, "%s\n", play.file.at[from]);
}

static void show_lines(const lines *self, const char *path)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    for (size_t i = 0; i < self->count; i++)
        fprintf(file, "%s\n", self->at[i]);
    fclose(file);
}

static void show_difference(size_t line, const lines *expected, const lines *got)
{
    char wanted[64], came[64], command[1024];

    snprintf(wanted, sizeof wanted, "/tmp/tl-transcript-%ld.expected", (long)getpid());
    snprintf(came, sizeof came, "/tmp/tl-transcript-%ld.got", (long)getpid());
    show_lines(expected, wanted);
    show_lines(got, came);
    print_error("%s:%zu: %s\n", play.path, line, play.file.at[line - 1]);
    snprintf(command, sizeof command, "diff -u --label '%s:%zu expected' --label got %s %s >&2",
             play.path, line, wanted, came);
    if (system(command) == 0)
        print_error("(no difference?)\n");
    unlink(wanted);
    unlink(came);
}

/* "text", "6> text" (stdout and exit code) or "2: sentence" (of stderr). */
static void expect_short(lines *to, const char *result)
{
    const size_t digits = strspn(result, "0123456789");
    const int is_code = digits > 0 && digits < 4 && result[digits] != '\0' &&
                        (strncmp(result + digits, ": ", 2) == 0 || result[digits] == '>');
    char text[16];

    if (is_code && result[digits] == ':')
        lines_add_text(to, "! tradelock: ", result + digits + 2);
    else if (is_code && result[digits + 1] == ' ')
        lines_add_text(to, "", result + digits + 2);
    else if (!is_code)
        lines_add_text(to, "", result);
    snprintf(text, sizeof text, "exit %.*s", is_code ? (int)digits : 1, is_code ? result : "0");
    lines_add(to, text, strlen(text));
}

/* The same of what came, in `to`; 0: it needs more than a line. */
static int tell_short(const lines *got, char *to, size_t size)
{
    static const char sentence[] = "! tradelock: ";
    const char *code = got->at[got->count - 1] + 5, *text = got->count > 1 ? got->at[0] : "";

    if (got->count > 2 || text[0] == '!') {
        if (got->count != 2 || strncmp(text, sentence, strlen(sentence)) != 0)
            return 0;
        snprintf(to, size, "%s: %s", code, text + strlen(sentence));
    } else if (strcmp(code, "0") == 0) {
        snprintf(to, size, "%s", text);
    } else {
        snprintf(to, size, "%s>%s%s", code, text[0] != '\0' ? " " : "", text);
    }
    return 1;
}

/* Compares, and writes the step as it should be: its lines from `first`, the output from `body`. */
static void settle(size_t first, size_t body, int is_short, const lines *expected, lines *got)
{
    const char *last = play.file.at[body - 1];
    char result[4096];

    lines_fit(got, expected);
    if (lines_equal(expected, got)) {
        write_lines(first, play.next);
        return;
    }
    play.differ++;
    show_difference(first + 1, expected, got);
    if (!is_short) {
        write_lines(first, body);
    } else {
        write_lines(first, body - 1);
        fprintf(play.written, "%.*s", (int)(strstr(last, " =>") - last), last);
        if (tell_short(got, result, sizeof result)) {
            fprintf(play.written, " =>%s%s\n", result[0] != '\0' ? " " : "", result);
            return;
        }
        fputc('\n', play.written);
    }
    for (size_t i = 0; i < got->count; i++)
        fprintf(play.written, "%s\n", got->at[i]);
}

/* Cuts "TEXT => RESULT" in two; NULL: only TEXT. */
static char *cut_result(char *text)
{
    char *arrow = strstr(text, " =>");

    if (arrow == NULL)
        return NULL;
    *arrow = '\0';
    return arrow + 3 + (arrow[3] == ' ');
}

static void take_output(size_t first, lines *expected)
{
    const char *line = "";

    while (strncmp(line, "exit ", 5) != 0) {
        if (play.next == play.file.count)
            server_panic("%s:%zu: no line `exit CODE` follows", play.path, first + 1);
        line = play.file.at[play.next++];
        lines_add(expected, line, strlen(line));
    }
}

/* In programs that this starts, and if the test asks for that. */
static void look_for_leaks(int yes)
{
    if (play.looks_for_leaks)
        setenv("ASAN_OPTIONS", yes ? "detect_leaks=1" : "detect_leaks=0:malloc_context_size=5", 1);
}

/* A program that is looked through for leaks takes ten times as long, so of each command the first
 * run of a transcript is. */
static void look_for_leaks_once(const char *command)
{
    static char seen[64][32];
    static size_t count;
    const char *name = strstr(command, "tradelock ");
    size_t size, i = 0;

    name = name != NULL ? name + strlen("tradelock ") : command;
    size = strcspn(name, " ");
    size = size < sizeof seen[0] ? size : sizeof seen[0] - 1;
    while (i < count && (strlen(seen[i]) != size || strncmp(seen[i], name, size) != 0))
        i++;
    look_for_leaks(i == count);
    if (i == count && count < sizeof seen / sizeof seen[0])
        memcpy(seen[count++], name, size);
}

static void play_command(size_t first, const char *who, char *command)
{
    const size_t body = play.next;
    const char *result = cut_result(command);
    static lines expected, got;
    char code[32];
    output *o;

    if (result != NULL)
        expect_short(&expected, result);
    else
        take_output(first, &expected);
    look_for_leaks_once(command);
    o = stage_command(who, command);
    lines_add_text(&got, "", o->out);
    lines_add_text(&got, "! ", o->err);
    snprintf(code, sizeof code, "exit %d", o->code);
    lines_add(&got, code, strlen(code));
    settle(first, body, result != NULL, &expected, &got);
    output_free(o);
    lines_clear(&expected);
    lines_clear(&got);
}

/* A statement's first value, or how a payment ended; "-" for NULL and no row. */
static void play_value(size_t first, char *(*run)(const char *text), char *text)
{
    const char *result = cut_result(text);
    static lines expected, got;
    char *value = run(text);

    if (result == NULL) {
        write_lines(first, play.next);
    } else {
        expect_short(&expected, result);
        lines_add_text(&got, "", value != NULL ? value : "-");
        lines_add(&got, "exit 0", 6);
        settle(first, play.next, 1, &expected, &got);
    }
    free(value);
    lines_clear(&expected);
    lines_clear(&got);
}

/* "NAME: COMMAND": all JSON that it prints has the fields that tools/README.md lists there. */
static void expect_fields(const char *who, char *text)
{
    char *command = strstr(text, ": ");
    json_t *set = json_object(), *document;
    const char *from;
    json_error_t error;
    output *o;

    if (command == NULL)
        server_panic("fields> NAME: COMMAND, not %s", text);
    *command = '\0';
    look_for_leaks_once(command + 2);
    o = stage_command(who, command + 2);
    for (from = o->out; (document = json_loads(from, JSON_DISABLE_EOF_CHECK, &error)) != NULL;
         from += error.position) {
        fields_add(set, document);
        json_decref(document);
    }
    output_free(o);
    fields_expect(set, text);
    json_decref(set);
}

static void play_step(void)
{
    const size_t first = play.next;
    char *step = take_step(), *text = strpbrk(step, "$>#");
    char verb[24] = "";

    if (text != NULL && (text - step) < (ptrdiff_t)sizeof verb)
        snprintf(verb, sizeof verb, "%.*s", (int)(text - step + 1), step);
    text = text != NULL && text[1] == ' ' ? text + 2 : step + strlen(step);
    play.steps += step[0] != '\0' && verb[0] != '#';
    if (strchr(verb, '$') != NULL)
        play_command(first, step, text);
    else if (strcmp(verb, "sql>") == 0)
        play_value(first, stage_sql, text);
    else if (strcmp(verb, "pay>") == 0)
        play_value(first, stage_pay, text);
    else {
        if (strstr(verb, "fields>") != NULL)
            expect_fields(step, text);
        else if (step[0] != '\0' && verb[0] != '#' && !stage_do(verb, text))
            server_panic("%s:%zu: no step begins so: %s", play.path, first + 1, step);
        write_lines(first, play.next);
    }
    free(step);
}

static void read_file(void)
{
    FILE *file;
    char *text = NULL;
    size_t space = 0;
    ssize_t size;

    snprintf(play.path, sizeof play.path, "%s/tests/cli/transcripts/%s.txt", test_source_dir(),
             play.name);
    file = fopen(play.path, "re");
    if (file == NULL)
        server_panic("%s cannot be read", play.path);
    while ((size = getline(&text, &space, file)) > 0)
        lines_add(&play.file, text, (size_t)size - (text[size - 1] == '\n'));
    free(text);
    fclose(file);
}

static void test_play(void **state)
{
    (void)state;
    while (play.next < play.file.count)
        play_step();
    assert_true(play.steps > 0);
    assert_int_equal(play.differ, 0);
}

TEST_MAIN(transcript)
{
    const struct CMUnitTest tests[] = {{play.path, test_play, NULL, NULL, NULL}};
    char *text = NULL;
    size_t size = 0;
    int failed;

    if (argc < 2)
        server_panic("usage: cli-tests transcript NAME [--rewrite]");
    play.name = argv[1];
    play.looks_for_leaks = getenv("TL_LEAKS") != NULL && getenv("ASAN_OPTIONS") == NULL;
    look_for_leaks(0);
    play.written = open_memstream(&text, &size);
    read_file();
    failed = server_run_tests(tests, stage_set_up, stage_tear_down);
    fclose(play.written);
    if (argc > 2 && strcmp(argv[2], "--rewrite") == 0 && play.next == play.file.count) {
        FILE *file = fopen(play.path, "we");

        if (file == NULL || fwrite(text, 1, size, file) != size || fclose(file) != 0)
            server_panic("%s cannot be written", play.path);
    }
    free(text);
    lines_clear(&play.file);
    return failed;
}
