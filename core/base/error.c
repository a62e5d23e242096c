/* Keeps the last problem of each thread as a sentence.  Touches the calling thread's own only. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef error_set
#undef error_prefix
#undef tl_error_report

static _Thread_local char message[ERROR_MAX];
static _Thread_local int interrupted;

/* Ends a sentence that was cut with a mark that says so. */
static void mark_cut(char *text, int wanted)
{
    if (wanted >= ERROR_MAX)
        memcpy(text + ERROR_MAX - 4, "...", 4);
}

static void set_sentence(const char *format, va_list arguments)
    __attribute__((format(printf, 1, 0)));

static void set_sentence(const char *format, va_list arguments)
{
    /* Arguments may point into the old sentence, so the new one is made beside it. */
    char next[ERROR_MAX];
    int wanted = vsnprintf(next, sizeof(next), format, arguments);

    if (wanted < 0)
        next[0] = '\0';
    mark_cut(next, wanted);
    memcpy(message, next, sizeof(message));
    interrupted = 0;
}

tl_status error_set(tl_status status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    set_sentence(format, arguments);
    va_end(arguments);
    return status;
}

tl_status tl_error_report(tl_status status, const char *format, ...)
{
    va_list arguments;

    if (format == NULL)
        format = "";
    va_start(arguments, format);
    set_sentence(format, arguments);
    va_end(arguments);
    return status;
}

tl_status error_prefix(tl_status status, const char *format, ...)
{
    char prefix[ERROR_MAX];
    char next[ERROR_MAX + ERROR_MAX + 3];
    va_list arguments;

    va_start(arguments, format);
    int wanted = vsnprintf(prefix, sizeof(prefix), format, arguments);
    va_end(arguments);
    if (wanted < 0)
        prefix[0] = '\0';
    wanted = snprintf(next, sizeof(next), "%s: %s", prefix, message);
    mark_cut(next, wanted);
    next[ERROR_MAX - 1] = '\0';
    memcpy(message, next, sizeof(message));
    return status;
}

void error_clear(void)
{
    message[0] = '\0';
    interrupted = 0;
}

void error_note_interrupted(void)
{
    interrupted = 1;
}

int error_is_interrupted(void)
{
    return interrupted;
}

tl_status error_over(tl_status status)
{
    if (status == TL_OK || status == TL_GRANTED || status == TL_SUCCEEDED)
        error_clear();
    return status;
}

const char *tl_error_message(void)
{
    return message;
}
