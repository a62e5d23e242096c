/* The conditions that lists and changes of many trades share: options, and the same words behind
 * --where. */
#include "filter.h"

#include "nearest.h"
#include "print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WORDS_MOST 1024

int filter_take_currency(const char *value, void *to)
{
    if (strlen(value) != TL_CURRENCY || strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != TL_CURRENCY)
        return usage_error("--currency is three capital letters such as EUR, not %s", value);
    *(const char **)to = value;
    return EXIT_DONE;
}

static const struct command_option *condition(const char *word)
{
    const size_t size = strlen(word);

    for (const struct command_option *o = running->options; o->name != NULL; o++)
        if (o->is_filter && strcspn(o->name, " ") == size && strncmp(o->name, word, size) == 0)
            return o;
    return NULL;
}

static int unknown(const char *word)
{
    const char *meant = nearest_condition(word, running->options);

    if (meant != NULL)
        return usage_error("--where knows no condition '%s', did you mean '%.*s'?", word,
                           (int)strcspn(meant, " "), meant);
    return usage_error("--where knows no condition '%s': it knows the filters of `tradelock ls` "
                       "without their dashes",
                       word);
}

static int take_word(char *word)
{
    char *value = strchr(word, '=');
    const struct command_option *option;
    int takes_value;

    if (value != NULL)
        *value++ = '\0';
    option = condition(word);
    if (option == NULL)
        return unknown(word);
    takes_value = strchr(option->name, ' ') != NULL;
    if ((value != NULL) != takes_value || (value != NULL && value[0] == '\0'))
        return usage_error(value != NULL && !takes_value
                               ? "--where: the condition '%s' has no value"
                               : "--where: the condition '%s' needs a value, as in %s=...",
                           word, word);
    return option_take(option, value);
}

int filter_where(char *words)
{
    char *next = NULL;
    int code = EXIT_DONE, count = 0;

    if (strlen(words) > WORDS_MOST)
        return usage_error("--where is longer than %d bytes", WORDS_MOST);
    for (char *word = strtok_r(words, " \t\n", &next); word != NULL && code == EXIT_DONE;
         word = strtok_r(NULL, " \t\n", &next), count++)
        code = take_word(word);
    if (code == EXIT_DONE && count == 0)
        return usage_error("--where names no condition");
    return code;
}

/* "" where the option is not set. */
static const char *value_text(char space[64], const struct command_option *o)
{
    const char *text = "";

    space[0] = '\0';
    if (o->kind == OPTION_MOMENT)
        return time_text(space, *(const int64_t *)o->to);
    if (o->kind == OPTION_NUMBER && *(const uint64_t *)o->to != 0)
        snprintf(space, 64, "%" PRIu64, *(const uint64_t *)o->to);
    else if (o->kind == OPTION_COUNT && *(const unsigned *)o->to != 0)
        snprintf(space, 64, "%u", *(const unsigned *)o->to);
    else if (o->kind == OPTION_DURATION && *(const int64_t *)o->to != 0)
        snprintf(space, 64, "%" PRId64 "ms", *(const int64_t *)o->to);
    else if (o->kind == OPTION_TEXT || o->kind == OPTION_OTHER)
        text = *(const char *const *)o->to;
    return text == NULL || text[0] != '\0' ? text : space;
}

void filter_say(char *to, size_t space)
{
    char number[64];
    size_t size = 0;

    to[0] = '\0';
    for (int flags = 1; flags >= 0; flags--)
        for (const struct command_option *o = running->options; o->name != NULL; o++) {
            const int is_flag = o->kind == OPTION_FLAG;
            const char *value = is_flag || !o->is_filter ? NULL : value_text(number, o);

            if (!o->is_filter || is_flag != flags || size >= space ||
                (is_flag ? !*(const int *)o->to : value == NULL || value[0] == '\0'))
                continue;
            size += (size_t)snprintf(to + size, space - size, "%s%.*s%s%s", size > 0 ? " " : "",
                                     (int)strcspn(o->name, " "), o->name, is_flag ? "" : "=",
                                     is_flag ? "" : value);
        }
}
