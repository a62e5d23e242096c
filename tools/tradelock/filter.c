/* The conditions that lists and changes of many trades share: options, and the same words behind
 * --where. */
#include "filter.h"

#include "moment.h"
#include "nearest.h"
#include "print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_MOST 1000000000
#define WORDS_MOST 1024

static int set_age(const struct command *self, const char *option, int64_t *age_ms)
{
    if (read_duration_ms(optarg, age_ms))
        return EXIT_DONE;
    return usage_error(self, "%s is a duration as 90s, 10m, 2h or 7d, not %s", option, optarg);
}

static int set_moment(const struct command *self, const char *option, int64_t *us)
{
    if (read_moment_us(optarg, us))
        return EXIT_DONE;
    return usage_error(self,
                       "%s is a moment as 2026-03-01T09:30, in UTC, or how long ago, as 2h, not %s",
                       option, optarg);
}

static int set_limit(const struct command *self, tl_filter *filter)
{
    uint64_t limit;

    if (!read_number(optarg, LIMIT_MOST, &limit) || limit == 0)
        return usage_error(self, "--limit is a number from 1 to %d, not %s", LIMIT_MOST, optarg);
    filter->limit = (unsigned)limit;
    return EXIT_DONE;
}

static int set_amount(const struct command *self, tl_filter *filter)
{
    uint64_t amount;

    if (!read_number(optarg, INT64_MAX, &amount) || amount == 0)
        return usage_error(self, "--amount-over is a number of minor units from 1 on, not %s",
                           optarg);
    filter->amount_over = (int64_t)amount;
    return EXIT_DONE;
}

static int set_currency(const struct command *self, tl_filter *filter)
{
    if (optarg == NULL || strlen(optarg) != TL_CURRENCY ||
        strspn(optarg, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != TL_CURRENCY)
        return usage_error(self, "--currency is three capital letters such as EUR, not %s", optarg);
    filter->currency = optarg;
    return EXIT_DONE;
}

/* What needs no look at the value. */
static int set_text(tl_filter *filter, int option)
{
    const char **field = option == FILTER_OP       ? &filter->op
                         : option == FILTER_CUST   ? &filter->cust
                         : option == FILTER_SERIAL ? &filter->serial
                         : option == FILTER_PREFIX ? &filter->serial_prefix
                         : option == FILTER_LOG    ? &filter->log_uuid
                         : option == FILTER_BATCH  ? &filter->batch
                         : option == FILTER_REF    ? &filter->channel_ref
                                                   : &filter->channel;

    *field = optarg;
    return EXIT_DONE;
}

static int set_flag(tl_filter *filter, int option)
{
    int *field = option == FILTER_PARKED     ? &filter->parked
                 : option == FILTER_IN_DOUBT ? &filter->in_doubt
                                             : &filter->conflict;

    *field = 1;
    return EXIT_DONE;
}

int filter_has(int option)
{
    return option >= FILTER_OP && option < FILTER_OPTIONS_END;
}

int filter_set(const struct command *self, tl_filter *filter, int option)
{
    switch (option) {
    case FILTER_OLDER:
        return set_age(self, "--older", &filter->older_ms);
    case FILTER_IDLE:
        return set_age(self, "--idle", &filter->idle_ms);
    case FILTER_SINCE:
        return set_moment(self, "--since", &filter->since_us);
    case FILTER_UNTIL:
        return set_moment(self, "--until", &filter->until_us);
    case FILTER_AMOUNT:
        return set_amount(self, filter);
    case FILTER_CURRENCY:
        return set_currency(self, filter);
    case FILTER_LIMIT:
        return set_limit(self, filter);
    case FILTER_PARKED:
    case FILTER_IN_DOUBT:
    case FILTER_CONFLICT:
        return set_flag(filter, option);
    default:
        return set_text(filter, option);
    }
}

static const struct option *option_named(const char *name)
{
    static const struct option options[] = {FILTER_OPTIONS, {NULL, 0, NULL, 0}};

    for (const struct option *o = options; o->name != NULL; o++)
        if (strcmp(o->name, name) == 0)
            return o;
    return NULL;
}

static int unknown(const struct command *self, const char *word)
{
    static const struct option options[] = {FILTER_OPTIONS, {NULL, 0, NULL, 0}};
    char typed[WORDS_MOST + 3];
    const char *meant;

    snprintf(typed, sizeof typed, "--%s", word);
    meant = nearest_option(typed, options);
    if (meant != NULL)
        return usage_error(self, "--where knows no condition '%s', did you mean '%s'?", word,
                           meant);
    return usage_error(self,
                       "--where knows no condition '%s': it knows the filters of `tradelock ls` "
                       "without their dashes",
                       word);
}

static int set_word(const struct command *self, tl_filter *filter, char *word)
{
    char *value = strchr(word, '=');
    const struct option *option;

    if (value != NULL)
        *value++ = '\0';
    option = option_named(word);
    if (option == NULL)
        return unknown(self, word);
    if ((value != NULL) != (option->has_arg == required_argument) ||
        (value != NULL && value[0] == '\0'))
        return usage_error(self,
                           value != NULL && option->has_arg == no_argument
                               ? "--where: the condition '%s' has no value"
                               : "--where: the condition '%s' needs a value, as in %s=...",
                           word, word);
    optarg = value;
    return filter_set(self, filter, option->val);
}

int filter_where(const struct command *self, tl_filter *filter, char *words)
{
    char *next = NULL;
    int code = EXIT_DONE, count = 0;

    if (strlen(words) > WORDS_MOST)
        return usage_error(self, "--where is longer than %d bytes", WORDS_MOST);
    for (char *word = strtok_r(words, " \t\n", &next); word != NULL && code == EXIT_DONE;
         word = strtok_r(NULL, " \t\n", &next), count++)
        code = set_word(self, filter, word);
    if (code == EXIT_DONE && count == 0)
        return usage_error(self, "--where names no condition");
    return code;
}

static void add_text(char *to, size_t space, const char *name, const char *value)
{
    const size_t size = strlen(to);

    if (value != NULL)
        snprintf(to + size, space - size, "%s%s=%s", size > 0 ? " " : "", name, value);
}

static void add_number(char *to, size_t space, const char *name, int64_t value, const char *unit)
{
    char text[32];

    snprintf(text, sizeof text, "%lld%s", (long long)value, unit);
    add_text(to, space, name, value != 0 ? text : NULL);
}

static void add_flag(char *to, size_t space, const char *name, int is_set)
{
    const size_t size = strlen(to);

    if (is_set)
        snprintf(to + size, space - size, "%s%s", size > 0 ? " " : "", name);
}

void filter_say(char *to, size_t space, const tl_filter *f)
{
    char when[TIME_TEXT];

    to[0] = '\0';
    add_flag(to, space, "parked", f->parked);
    add_flag(to, space, "in-doubt", f->in_doubt);
    add_flag(to, space, "conflict", f->conflict);
    add_text(to, space, "op", f->op);
    add_text(to, space, "channel", f->channel);
    add_text(to, space, "cust", f->cust);
    add_text(to, space, "serial", f->serial);
    add_text(to, space, "prefix", f->serial_prefix);
    add_text(to, space, "log", f->log_uuid);
    add_text(to, space, "batch", f->batch);
    add_text(to, space, "ref", f->channel_ref);
    add_text(to, space, "currency", f->currency);
    add_number(to, space, "amount-over", f->amount_over, "");
    add_number(to, space, "older", f->older_ms, "ms");
    add_number(to, space, "idle", f->idle_ms, "ms");
    add_text(to, space, "since", f->since_us != 0 ? time_text(when, f->since_us) : NULL);
    add_text(to, space, "until", f->until_us != 0 ? time_text(when, f->until_us) : NULL);
    add_number(to, space, "limit", f->limit, "");
}
