/* Runs the real command and keeps what it printed. */
#ifndef TESTS_CLI_COMMAND_H
#define TESTS_CLI_COMMAND_H

#include <jansson.h>

typedef struct output {
    int code; /* its exit code, or -1 when it was killed */
    char *out, *err;
} output;

/* `tradelock` with these arguments, ended by NULL; environment: NAME=value or NULL. */
output *command_run(const char *environment, const char *const arguments[]);
#define RUN(...) command_run(NULL, (const char *const[]){__VA_ARGS__, NULL})
/* A line for the shell that calls `tradelock`, as a person would copy it. */
output *command_shell(const char *environment, const char *line);
void output_free(output *o);

/* Fails the test, showing everything, unless the command ended so. */
void expect_code(const output *o, int code, const char *file, int line);
#define EXPECT_CODE(o, code) expect_code(o, code, __FILE__, __LINE__)
/* Exactly one sentence on stderr that begins with "tradelock: " and holds these words, and nothing
 * on stdout. */
void expect_sentence(const output *o, int code, const char *words, const char *file, int line);
#define EXPECT_SENTENCE(o, code, words) expect_sentence(o, code, words, __FILE__, __LINE__)
void expect_words(const output *o, const char *words, const char *file, int line);
#define EXPECT_WORDS(o, words) expect_words(o, words, __FILE__, __LINE__)

/* Frees it after the test has failed, showing everything, unless the command ended with this code and
 * stdout has all these words; "! WORDS" are on stderr, and those WITHOUT() are not on stdout. */
#define ENDS(...) expect_output(__FILE__, __LINE__, __VA_ARGS__, NULL)
void expect_output(const char *file, int line, output *o, int code, ...) __attribute__((sentinel));
#define ANY_CODE (-2)
#define WITHOUT(words) "\1" words
/* The same of one sentence; EXPECT_USAGE: with exit code 2. */
#define EXPECT_REFUSED(o, code, words) expect_refusal(__FILE__, __LINE__, o, code, words)
#define EXPECT_USAGE(o, words) EXPECT_REFUSED(o, 2, words)
void expect_refusal(const char *file, int line, output *o, int code, const char *words);

/* Its stdout as JSON; json_decref() it. */
json_t *output_json(const output *o);
/* The same of one that ended with this code, which is freed. */
json_t *output_ended(output *o, int code);

#endif
