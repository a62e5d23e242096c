/* Reads one setting's text into its field, and writes durations.  Touches the config it is
 * given. */
#include "base/config.h"

#include "base/error.h"

#include <tradelock/metrics.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define SETTING(type, name, initial, least, most, meaning)                                         \
    {CONFIG_##type, offsetof(struct config, name), #name, initial, least, most, meaning},

const struct config_setting config_settings[CONFIG_SETTINGS] = {CONFIG_MAP(SETTING)};

/* Reads digits; returns what follows them.  NULL: no digits, or a number that is too large. */
static const char *read_digits(const char *text, int64_t *number)
{
    const char *next = text;

    *number = 0;
    for (; *next >= '0' && *next <= '9'; next++) {
        int digit = *next - '0';

        if (*number > (INT64_MAX - digit) / 10)
            return NULL;
        *number = *number * 10 + digit;
    }
    return next == text ? NULL : next;
}

static const struct {
    const char *suffix;
    int64_t ms;
} units[] = {
    {"ms", 1}, {"s", CONFIG_SECOND}, {"m", CONFIG_MINUTE}, {"h", CONFIG_HOUR}, {"d", CONFIG_DAY}};

#define UNITS (sizeof(units) / sizeof(units[0]))

/* The milliseconds that a text of this size means, or -1; the unit of a plain number is
 * plain_ms. */
static int64_t read_duration(const char *text, size_t size, int64_t plain_ms)
{
    int64_t number;
    const char *suffix = read_digits(text, &number);
    int64_t unit_ms = 0;

    if (suffix == NULL || suffix > text + size)
        return -1;
    size_t left = size - (size_t)(suffix - text);
    if (left == 0)
        unit_ms = plain_ms;
    for (size_t i = 0; i < UNITS; i++)
        if (strlen(units[i].suffix) == left && memcmp(suffix, units[i].suffix, left) == 0)
            unit_ms = units[i].ms;
    if (unit_ms == 0 || number > INT64_MAX / unit_ms)
        return -1;
    return number * unit_ms;
}

const char *config_duration(char to[CONFIG_DURATION_TEXT], int64_t duration_ms)
{
    size_t best = 0;

    for (size_t i = 0; i < UNITS; i++)
        if (duration_ms != 0 && duration_ms % units[i].ms == 0)
            best = i;
    snprintf(to, CONFIG_DURATION_TEXT, "%lld%s", (long long)(duration_ms / units[best].ms),
             units[best].suffix);
    return to;
}

static tl_status set_duration(const struct config_setting *setting, const char *text, size_t size,
                              int64_t unit_ms, int64_t *to)
{
    char least[CONFIG_DURATION_TEXT], most[CONFIG_DURATION_TEXT];
    int64_t duration_ms = read_duration(text, size, unit_ms);

    if (duration_ms < 0)
        return error_set(TL_BAD_CONFIG,
                         "%s: '%.*s' is not a duration such as 250ms, 30s, 10m, 2h or 7d",
                         setting->name, (int)size, text);
    if (duration_ms % unit_ms != 0)
        return error_set(TL_BAD_CONFIG, "%s: '%.*s' is not a whole number of seconds",
                         setting->name, (int)size, text);
    if (duration_ms / unit_ms < setting->least || duration_ms / unit_ms > setting->most)
        return error_set(TL_BAD_CONFIG, "%s: '%.*s' is out of range, %s to %s", setting->name,
                         (int)size, text, config_duration(least, setting->least * unit_ms),
                         config_duration(most, setting->most * unit_ms));
    *to = duration_ms / unit_ms;
    return TL_OK;
}

static tl_status set_format(const struct config_setting *setting, const char *text, int *is_json)
{
    *is_json = strcmp(text, "json") == 0;
    if (*is_json || strcmp(text, "text") == 0)
        return TL_OK;
    return error_set(TL_BAD_CONFIG, "%s: '%s' is neither text nor json", setting->name, text);
}

static tl_status set_number(const struct config_setting *setting, const char *text, int64_t *to)
{
    int64_t number;
    const char *end = read_digits(text, &number);

    if (end == NULL || *end != '\0')
        return error_set(TL_BAD_CONFIG, "%s: '%s' is not a whole number from %lld to %lld",
                         setting->name, text, (long long)setting->least, (long long)setting->most);
    if (number < setting->least || number > setting->most)
        return error_set(TL_BAD_CONFIG, "%s: %s is out of range, %lld to %lld", setting->name, text,
                         (long long)setting->least, (long long)setting->most);
    *to = number;
    return TL_OK;
}

static tl_status set_schedule(const struct config_setting *setting, const char *text,
                              struct config_schedule *to)
{
    struct config_schedule schedule = {{0}, 0};

    for (const char *next = text;; next++) {
        size_t size = strcspn(next, ",");
        const char *start = next + strspn(next, " \t");
        const char *end = next + size;

        while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
            end--;
        if (schedule.count == TL_SCHEDULE_MAX)
            return error_set(TL_BAD_CONFIG, "%s: has more than %d delays", setting->name,
                             TL_SCHEDULE_MAX);
        if (end <= start)
            return error_set(TL_BAD_CONFIG, "%s: delay %u is empty", setting->name,
                             schedule.count + 1);
        TRY(set_duration(setting, start, (size_t)(end - start), 1,
                         &schedule.step_ms[schedule.count++]));
        next += size;
        if (*next == '\0')
            break;
    }
    *to = schedule;
    return TL_OK;
}

static tl_status set_cust(const struct config_setting *setting, const char *text, config_cust *to)
{
    if (strcmp(text, "plain") == 0)
        *to = CONFIG_CUST_PLAIN;
    else if (strcmp(text, "hashed") == 0)
        *to = CONFIG_CUST_HASHED;
    else
        return error_set(TL_BAD_CONFIG, "%s: '%s' is neither plain nor hashed", setting->name,
                         text);
    return TL_OK;
}

static tl_status set_level(const struct config_setting *setting, const char *text, tl_level *to)
{
    static const char *const names[] = {"debug", "info", "warning", "alarm"};

    for (int level = TL_DEBUG; level <= TL_ALARM; level++)
        if (strcmp(text, names[level]) == 0) {
            *to = (tl_level)level;
            return TL_OK;
        }
    return error_set(TL_BAD_CONFIG, "%s: '%s' is not debug, info, warning or alarm", setting->name,
                     text);
}

/* A text that were cut would be another one. */
static tl_status set_text(const struct config_setting *setting, const char *text, char *to)
{
    if (text_copy(to, (size_t)setting->most + 1, text))
        return TL_OK;
    return error_set(TL_BAD_CONFIG, "%s: '%s' is longer than %lld bytes", setting->name, text,
                     (long long)setting->most);
}

static tl_status set_name(const struct config_setting *setting, const char *text, char *to)
{
    /* text_check_name() says TL_INVALID, but it is the file that must be mended. */
    if (text_check_name(setting->name, text, (size_t)setting->most) != TL_OK)
        return TL_BAD_CONFIG;
    return set_text(setting, text, to);
}

/* Where a program may listen: IPv4 with four numbers, since a name may mean another machine. */
tl_status tl_metrics_check_listen(const char *what, const char *text)
{
    const size_t word = sizeof TL_LISTEN_PUBLIC - 1;
    unsigned bytes[4], port;
    int end = 0, is_public;

    error_clear();
    if (what == NULL || text == NULL)
        return error_set(TL_INVALID, "the address to listen on, or its name, is NULL");
    is_public = strncmp(text, TL_LISTEN_PUBLIC, word) == 0;
    text += is_public ? word : 0;
    if (sscanf(text, "%3u.%3u.%3u.%3u:%5u%n", &bytes[0], &bytes[1], &bytes[2], &bytes[3], &port,
               &end) != 5 ||
        text[end] != '\0' || strspn(text, "0123456789.:") != strlen(text) || port > 65535 ||
        bytes[0] > 255 || bytes[1] > 255 || bytes[2] > 255 || bytes[3] > 255)
        return error_set(TL_BAD_CONFIG,
                         "%s: '%s' is not an address and a port such as "
                         "127.0.0.1:9464",
                         what, text);
    if (bytes[0] != 127 && !is_public)
        return error_set(
            TL_BAD_CONFIG,
            "%s: %s is beyond this machine's loopback, and whoever reaches it may read "
            "metrics; if that is meant, write " TL_LISTEN_PUBLIC "%s",
            what, text, text);
    return TL_OK;
}

static tl_status set_listen(const struct config_setting *setting, const char *text, char *to)
{
    const int is_off = strcmp(text, "off") == 0;

    if (!is_off && tl_metrics_check_listen(setting->name, text) != TL_OK)
        return TL_BAD_CONFIG;
    return set_text(setting, is_off ? "" : text, to);
}

/* A name stands in that of a section, in SQL and in JSON, and two of them are words of commands. */
tl_status config_check_shard(const char *what, const char *name)
{
    const size_t size = strlen(name);

    if (size == 0)
        return error_set(TL_BAD_CONFIG, "%s: a name is empty", what);
    if (size > CONFIG_SHARD_MAX)
        return error_set(TL_BAD_CONFIG, "%s: '%.*s...' is longer than %d bytes", what,
                         CONFIG_SHARD_MAX, name, CONFIG_SHARD_MAX);
    if (strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != size ||
        name[0] == '-' || strcmp(name, "none") == 0 || strcmp(name, "all") == 0)
        return error_set(TL_BAD_CONFIG,
                         "%s: '%s' is no name of letters, digits, - and _ (nor may it be none, all "
                         "or begin with -)",
                         what, name);
    return TL_OK;
}

static tl_status set_fleet(const struct config_setting *setting, const char *text, char *to)
{
    const int is_none = strcmp(text, "none") == 0;
    tl_status status = is_none ? TL_OK : config_check_shard(setting->name, text);

    return status == TL_OK ? set_text(setting, is_none ? "" : text, to) : status;
}

/* Copies the item that begins here, and returns what follows it; NULL: it is the last. */
static const char *next_item(char *to, size_t space, const char *from)
{
    const size_t size = strcspn(from, ",");
    const char *start = from + strspn(from, " \t"), *end = from + size;

    while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    snprintf(to, space, "%.*s", end > start ? (int)(end - start) : 0, start);
    return from[size] == '\0' ? NULL : from + size + 1;
}

static tl_status add_shard(const struct config_setting *setting, const char *name,
                           struct config_shards *to)
{
    TRY(config_check_shard(setting->name, name));
    if (to->count == CONFIG_SHARDS_MAX)
        return error_set(TL_BAD_CONFIG, "%s: has more than %d names", setting->name,
                         CONFIG_SHARDS_MAX);
    for (unsigned i = 0; i < to->count; i++)
        if (strcmp(to->name[i], name) == 0)
            return error_set(TL_BAD_CONFIG, "%s: '%s' stands there twice", setting->name, name);
    text_copy(to->name[to->count++], sizeof to->name[0], name);
    return TL_OK;
}

static tl_status set_shards(const struct config_setting *setting, const char *text,
                            struct config_shards *to)
{
    char name[256];
    struct config_shards shards;
    tl_status status = TL_OK;

    memset(&shards, 0, sizeof shards);
    for (const char *next = strcmp(text, "none") == 0 ? NULL : text;
         next != NULL && status == TL_OK;) {
        next = next_item(name, sizeof name, next);
        status = add_shard(setting, name, &shards);
    }
    if (status == TL_OK)
        *to = shards;
    return status;
}

tl_status config_set(struct config *config, const struct config_setting *setting, const char *text)
{
    void *field = (char *)config + setting->offset;
    int64_t number = 0;

    switch (setting->type) {
    case CONFIG_NAME:
        return set_name(setting, text, field);
    case CONFIG_SCHEDULE:
        return set_schedule(setting, text, field);
    case CONFIG_CUST:
        return set_cust(setting, text, field);
    case CONFIG_LISTEN:
        return set_listen(setting, text, field);
    case CONFIG_FLEET:
        return set_fleet(setting, text, field);
    case CONFIG_SHARDS:
        return set_shards(setting, text, field);
    case CONFIG_LEVEL:
        return set_level(setting, text, field);
    case CONFIG_FORMAT:
        return set_format(setting, text, field);
    case CONFIG_MS:
        return set_duration(setting, text, strlen(text), 1, field);
    case CONFIG_SECONDS:
        TRY(set_duration(setting, text, strlen(text), CONFIG_SECOND, &number));
        *(unsigned *)field = (unsigned)number;
        return TL_OK;
    case CONFIG_COUNT:
        TRY(set_number(setting, text, &number));
        *(unsigned *)field = (unsigned)number;
        return TL_OK;
    case CONFIG_SWITCH:
        TRY(set_number(setting, text, &number));
        *(int *)field = (int)number;
        return TL_OK;
    }
    return TL_BAD_CONFIG;
}
