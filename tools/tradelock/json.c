/* Rows of the library as JSON objects, for --json. */
#include "print.h"

#include "command.h"

#include <tradelock/admin.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Text that is not UTF-8 cannot be a JSON string; it becomes one of its bytes. */
static json_t *json_any_text(const char *text)
{
    json_t *string = json_string(text);
    char *latin;
    size_t size = 0;

    if (string != NULL)
        return string;
    latin = calloc(2 * strlen(text) + 1, 1);
    if (latin == NULL)
        return json_null();
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c < 0x80) {
            latin[size++] = (char)*c;
        } else {
            latin[size++] = (char)(0xc0 | *c >> 6);
            latin[size++] = (char)(0x80 | (*c & 0x3f));
        }
    }
    string = json_string(latin);
    free(latin);
    return string;
}

json_t *json_text(const char *text)
{
    return text != NULL && text[0] != '\0' ? json_any_text(text) : json_null();
}

json_t *json_time(int64_t us)
{
    char text[TIME_TEXT];

    return json_text(time_text(text, us));
}

json_t *json_char(char c)
{
    const char text[2] = {c == ' ' ? '\0' : c, '\0'};

    return json_text(text);
}

json_t *json_hex(const unsigned char *bytes, size_t size)
{
    char *digits = malloc(2 * size + 1);
    json_t *text;

    if (digits == NULL)
        return json_null();
    for (size_t i = 0; i < size; i++)
        snprintf(digits + 2 * i, 3, "%02x", bytes[i]);
    digits[2 * size] = '\0';
    text = json_text(digits);
    free(digits);
    return text;
}

json_t *json_bytes(const void *data, size_t size)
{
    json_t *text;

    if (data == NULL || size == 0)
        return json_null();
    text = memchr(data, '\0', size) == NULL ? json_stringn(data, size) : NULL;
    if (text != NULL)
        return json_pack("{s:I, s:o}", "size", (json_int_t)size, "text", text);
    return json_pack("{s:I, s:o}", "size", (json_int_t)size, "hex", json_hex(data, size));
}

static void set(json_t *object, const char *name, json_t *value)
{
    json_object_set_new(object, name, value);
}

json_t *json_digits(const char *digits)
{
    long long number;

    errno = 0;
    number = strtoll(digits, NULL, 10);
    return errno == 0 ? json_integer(number) : json_string(digits);
}

json_t *json_unsigned(uint64_t number)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%" PRIu64, number);
    return json_digits(digits);
}

json_t *json_trade(const struct json_trade *trade)
{
    json_t *o = json_object();

    set(o, "sync", trade->sync != NULL ? trade->sync : json_null());
    set(o, "retry", trade->retry != NULL ? trade->retry : json_null());
    set(o, "explanation", trade->explanation != NULL ? trade->explanation : json_null());
    set(o, "evidence", trade->evidence != NULL ? trade->evidence : json_null());
    set(o, "resolutions", trade->resolutions != NULL ? trade->resolutions : json_null());
    set(o, "timeline", trade->timeline != NULL ? trade->timeline : json_null());
    set(o, "channel_said", json_text(trade->channel_said));
    set(o, "channel_said_at", json_time(trade->channel_said_us));
    set(o, "as_of", json_time(trade->as_of_us));
    return o;
}

int print_json(json_t *document, int code)
{
    int failed = document == NULL || json_dumpf(document, stdout, JSON_INDENT(2)) != 0;

    common.has_document = 1;
    json_decref(document);
    if (failed) {
        fputs("tradelock: the JSON document could not be made or written\n", stderr);
        return EXIT_INTERNAL;
    }
    putchar('\n');
    return finish_output(code);
}

int print_answer(json_t *document, int code, const char *format, ...)
{
    va_list arguments;

    if (common.json)
        return print_json(document, code);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    json_decref(document);
    return finish_output(code);
}
