/*
 * Writes log lines: text, or JSON objects.  Where the journal listens, a line begins with the priority
 * that it reads, and the journal stamps the time.  Touches standard error and standard output.
 */
#include "log_print.h"

#include <tradelock/money.h>

#include <jansson.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OWN_SPACE 1024

static struct {
    _Atomic(const char *) program;
    atomic_int least, is_json;
} settings = {.program = "tradelock"};

/* By tl_level: our word, and syslog's number. */
static const struct {
    const char *word, *priority;
} levels[] = {{"debug", "<7>"}, {"info", "<6>"}, {"warning", "<4>"}, {"ALARM", "<2>"}};

/* Standard error may become a file later: each line looks. */
static int journal_listens(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat about;
    char here[64];

    if (stream == NULL || fstat(STDERR_FILENO, &about) != 0)
        return 0;
    snprintf(here, sizeof here, "%ju:%ju", (uintmax_t)about.st_dev, (uintmax_t)about.st_ino);
    return strcmp(stream, here) == 0;
}

static void set_text(json_t *json, const char *name, const char *text)
{
    if (text[0] != '\0')
        json_object_set_new(json, name, json_string(text));
}

/* With the names that lists have (`tradelock ls --json`).  NULL: there is no memory. */
static char *line_as_json(const char *when, const tl_log_line *line)
{
    json_t *json = json_object();
    char *text;

    set_text(json, "at", when);
    set_text(json, "level", levels[line->level].word);
    set_text(json, "program", settings.program);
    set_text(json, "message", line->message);
    set_text(json, "serial_no", line->serial_no);
    set_text(json, "cust_no", line->cust_no);
    set_text(json, "op_code", line->op_code);
    if (line->fence != 0)
        json_object_set_new(json, "fence", json_integer((json_int_t)line->fence));
    set_text(json, "thread_no", line->thread_uuid);
    set_text(json, "log_no", line->log_uuid);
    set_text(json, "trace_id", line->trace_id);
    if (line->currency[0] != '\0')
        json_object_set_new(json, "amount_minor", json_integer(line->amount_minor));
    set_text(json, "currency", line->currency);
    set_text(json, "batch", line->batch);
    text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return text;
}

static void print_text(const char *priority, const char *when, const tl_log_line *line)
{
    const int has_thread = line->thread_uuid[0] != '\0';
    char amount[TL_AMOUNT_TEXT];

    tl_amount_text(amount, line->amount_minor, line->currency);
    /* The batch is last: it may have any character but the end of a line. */
    fprintf(stderr, "%s%s%s%s %s: %s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s\n", priority, when,
            when[0] != '\0' ? " " : "", settings.program, levels[line->level].word, line->message,
            line->serial_no[0] != '\0' ? " (" : "", line->serial_no,
            line->serial_no[0] != '\0' ? " of " : "", line->cust_no,
            line->serial_no[0] != '\0' ? ")" : "", has_thread ? " [thread " : "", line->thread_uuid,
            line->log_uuid[0] != '\0' ? ", work " : "", line->log_uuid,
            line->trace_id[0] != '\0' ? ", trace " : "", line->trace_id,
            amount[0] != '\0' ? ", amount " : "", amount, line->batch[0] != '\0' ? ", batch " : "",
            line->batch, has_thread ? "]" : "");
}

static void write_time(char *to, size_t space)
{
    struct timespec now;
    struct tm utc;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(to, space, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(to + strlen(to), space - strlen(to), ".%03ldZ", now.tv_nsec / 1000000);
}

/* One write for each line, so that the lines of many threads and programs stay whole. */
static void print(const tl_log_line *line)
{
    const int journal = journal_listens();
    const char *priority = journal ? levels[line->level].priority : "";
    char when[40] = "", *json = NULL;

    if (!journal)
        write_time(when, sizeof when);
    if (settings.is_json)
        json = line_as_json(when, line);
    if (json != NULL)
        fprintf(stderr, "%s%s\n", priority, json);
    else
        print_text(priority, when, line);
    free(json);
}

void log_begin(const char *program, tl_level least, const char *config_file)
{
    settings.program = program;
    settings.least = (int)least;
    settings.is_json = tl_log_is_json(config_file);
}

void log_print(void *context, const tl_log_line *line)
{
    (void)context;
    if ((int)line->level >= settings.least)
        print(line);
}

static tl_log_line own_line(tl_level level, const char *message)
{
    return (tl_log_line){.level = level,
                         .message = message,
                         .thread_uuid = "",
                         .log_uuid = "",
                         .serial_no = "",
                         .cust_no = "",
                         .op_code = "",
                         .trace_id = "",
                         .currency = "",
                         .batch = ""};
}

void log_say(tl_level level, const char *format, ...)
{
    char message[OWN_SPACE];
    tl_log_line line = own_line(level, message);
    va_list values;

    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    print(&line);
}

void log_answer(const char *format, ...)
{
    char message[OWN_SPACE], when[40], *json = NULL;
    tl_log_line line = own_line(TL_INFO, message);
    va_list values;

    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    write_time(when, sizeof when);
    if (settings.is_json)
        json = line_as_json(when, &line);
    puts(json != NULL ? json : message);
    fflush(stdout);
    free(json);
}
